// What commands say of the widths of quantized weights.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WIDTHS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WIDTHS_H

#include "runtime/core/Text.h"
#include "runtime/training/BitSchedule.h"

#include <string>

namespace ds {

// Throws Error(InvalidArgument) where a run of so many steps, of which `done` were done, ends before the widths are at
// their target: with the step that it takes.
void checkTargetIsReached(const QuantizationSettings &settings, const BitSchedule &widths, int64_t done, int64_t steps);

// "8 bits", "8, 9, 8 bits", "not rounded"
std::string bitsText(const std::vector<int64_t> &bits);

// "1.5, 2, 1"
template <typename Number> std::string numbersText(const std::vector<Number> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += concat(i ? ", " : "", numbers[i]);
  return text;
}

// One width where all blocks have it, else a list; null where weights are not rounded.
nlohmann::ordered_json bitsJson(const std::vector<int64_t> &bits);

// Of each block; empty where weights are not rounded.
std::vector<int64_t> bitsOf(const BitSchedule &widths);

} // namespace ds
#endif
