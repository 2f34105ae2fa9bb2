// The integers that a quantized parameter stands for: what it is rounded to is (code - zero point) * scale, with a
// scale and a zero point for each group, in the same bits.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CODES_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CODES_H

#include "runtime/core/Tensor.h"
#include "runtime/training/Settings.h"

#include <string>
#include <vector>

namespace ds {

struct Codes {
  Shape shape;      // of the parameter
  int64_t bits = 8; // of a code: 4 or 8
  bool isSigned = true;
  std::vector<int16_t> codes;
  std::vector<float> scales;       // of each group
  std::vector<int16_t> zeroPoints; // the same; empty: all are 0
};

// Of a parameter and what it is rounded to with so many bits. Where there are none, `refusal` says why.
Codes codesOf(const TensorView &parameter, const TensorView &image, const QuantizationSettings &settings, int64_t bits,
              std::string &refusal);

} // namespace ds
#endif
