// Progressive layer dropping (Zhang and He, 2010.13369): which blocks of a model a micro-batch runs, and what those
// that run are rescaled by. Drawn from step, micro-batch and block alone: a resumed run, and every rank, draws the
// same.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_LAYERDROP_H
#define DEEPSTRIDE_RUNTIME_TRAINING_LAYERDROP_H

#include "runtime/training/Settings.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds {

// What dropout and layer dropping draw by, besides the node and the element, or the block.
struct RandomPlace {
  uint64_t seed = 0;
  int64_t step = 0, micro = 0; // micro: of the step's micro-batches
};

// A block in one micro-batch.
struct LayerGate {
  bool runs = true;
  double scale = 1; // 1 / its probability: what it adds has the mean of a block that always runs
};

class LayerDrop {
public:
  LayerDrop(const LayerDropSettings &settings, size_t blocks) : settings(settings), count(blocks) {}

  size_t blocks() const { return count; }
  // (1 - limit) * exp(-gamma * t) + limit at t = max(step - 1, 0), as DeepSpeed's engine has it in step `step` from 0:
  // it recomputes theta behind a step, of the number that the step had. Steps that overflow count.
  double theta(int64_t step) const;
  // The probability of block l of L: 1 - l / L * (1 - theta), from l = 0 ("shipped") or 1 ("paper").
  double keep(size_t block, double theta) const;
  // Block l runs where the first word of Philox4x32-10, on the key `seed` and the counter (l, micro, step, 2^32 - 1),
  // is below keep * 2^32.
  std::vector<LayerGate> draw(const RandomPlace &place) const;

private:
  LayerDropSettings settings;
  size_t count;
};

// Which blocks ran in the micro-batches of a run so far.
struct LayerCounts {
  int64_t microBatches = 0;
  std::vector<int64_t> ran;

  void add(const std::vector<LayerGate> &gates);
  // The share of micro-batches in which each block ran.
  std::vector<double> rates() const;
};

} // namespace ds
#endif
