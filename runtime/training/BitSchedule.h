// The widths of weights that training quantizes (MoQ): DeepSpeed's rule as of 2022. With t updates done, q = t -
// offset, k bits dropped and a first period of P updates, the next bit drops at the first update with q >= P 2^k: since
// q is not reset, bits(q) = max(target, start - 1 - floor(log2(q / P))) for q >= P.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_BITSCHEDULE_H
#define DEEPSTRIDE_RUNTIME_TRAINING_BITSCHEDULE_H

#include "runtime/training/Settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ds {

class BitSchedule {
public:
  // Parameters of a block have one width.
  BitSchedule(const QuantizationSettings &settings, size_t blocks);

  // After an update that was not skipped. A block that drops a bit multiplies its period by twice its factor.
  void advance();
  // One for each block; they are 1 until they are set.
  void setFactors(const std::vector<int64_t> &factors);

  int64_t updates() const { return done; }
  size_t blocks() const { return all.size(); }
  // Whether weights are rounded at all: from the first update on, or from that of the offset.
  bool hasBegun() const { return done >= firstRounding(); }
  // After how many updates they are.
  int64_t firstRounding() const { return std::max<int64_t>(settings.offset, 1); }
  // 0 until weights are rounded.
  int64_t bits(size_t block) const { return hasBegun() ? all[block].bits : 0; }
  // 2^bits, or 0.
  double levels(size_t block) const;
  // Of the weights themselves in what products read.
  double share(size_t block) const;
  // Whether the next update drops a bit of a block.
  bool isAboutToDrop() const;
  // Whether all blocks are at the target, and nothing of the weights themselves is left.
  bool isAtTarget() const { return updatesToTarget() == 0; }
  // How many further updates that takes at least, with factors of 1, or with others.
  int64_t updatesToTarget(int64_t factor = 1) const;

  // For checkpoints, with the numbers of the schedule, which those of a restored one replace. Throws Error(BadFile) for
  // what cannot be a state.
  nlohmann::json state() const;
  void restore(const nlohmann::json &state);
  // How the numbers of another schedule differ: "quantize_bits.target_bits: found 6, expected 4"; empty if they do not.
  std::string difference(const BitSchedule &expected) const;

private:
  struct Block {
    int64_t bits = 0, period = 0;
    int64_t factor = 1;
    int64_t age = 0; // updates since a bit was dropped, or since weights are rounded
  };
  // Numbers of the schedule, by their keys.
  static const std::vector<std::pair<const char *, int64_t QuantizationSettings::*>> &numbers();
  int64_t counter() const { return done - settings.offset; }
  int64_t updatesToTarget(const Block &block, int64_t factor) const;

  QuantizationSettings settings;
  int64_t done = 0;
  std::vector<Block> all;
};

} // namespace ds
#endif
