#include "tools/ds-run/training/Widths.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {

void checkTargetIsReached(const QuantizationSettings &settings, const BitSchedule &widths, int64_t done,
                          int64_t steps) {
  int64_t needed = done + widths.updatesToTarget();
  if (needed <= steps)
    return;
  fail(ErrorCode::InvalidArgument, "quantize_training: found a run of ", steps, " steps, expected at least ", needed,
       ": so many it takes from ", settings.startBits, " bits to ", settings.targetBits, " with schedule_offset ",
       settings.offset, " and quantize_period ", settings.period,
       settings.isMixed ? concat(", and until nothing of the weights themselves is mixed in") : std::string());
}

std::string bitsText(const std::vector<int64_t> &bits) {
  if (bits.empty())
    return "not rounded";
  bool isOne = std::all_of(bits.begin(), bits.end(), [&](int64_t own) { return own == bits[0]; });
  std::string text;
  for (size_t i = 0; i < (isOne ? 1 : bits.size()); ++i)
    text += (i ? ", " : "") + std::to_string(bits[i]);
  return text + (text == "1" ? " bit" : " bits");
}

nlohmann::ordered_json bitsJson(const std::vector<int64_t> &bits) {
  if (bits.empty())
    return nullptr;
  bool isOne = std::all_of(bits.begin(), bits.end(), [&](int64_t own) { return own == bits[0]; });
  return isOne ? nlohmann::ordered_json(bits[0]) : nlohmann::ordered_json(bits);
}

std::vector<int64_t> bitsOf(const BitSchedule &widths) {
  std::vector<int64_t> bits;
  for (size_t i = 0; widths.hasBegun() && i < widths.blocks(); ++i)
    bits.push_back(widths.bits(i));
  return bits;
}

} // namespace ds
