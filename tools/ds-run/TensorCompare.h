// How far two tensors are apart.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TENSORCOMPARE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TENSORCOMPARE_H

#include "runtime/core/Tensor.h"

#include <optional>
#include <string>

namespace ds {

// What is not given follows from the data. Floats: relative 1e-3, that of the ONNX test suite, or what the type itself
// rounds by where that is more; absolute the relative one times the tensor's typical magnitude (the median of what is
// neither 0 nor infinite). An element near zero is a sum of larger terms that cancel: its error has their size, not its
// own. A fixed bound would be too strict for large data and see nothing in small. Integers are exact, but for an
// absolute tolerance that is given: an index or a count that is 1e-3 off is wrong. Booleans are always exact.
struct Tolerance {
  std::optional<double> relative, absolute;
};

struct Difference {
  bool isComparable = true; // false: shapes or types differ, `reason` says how
  std::string reason;
  double maxAbsolute = 0, maxRelative = 0;
  double relative = 0, absolute = 0; // the tolerance that was used
  uint64_t maxUlp = 0;
  // Of floats, over all elements that are finite in both: the cosine of the angle between the two as vectors, and the
  // energy of what is expected over that of the error, in decibels; infinite without an error. NaN where there is
  // nothing to compare, or nothing but zeros, and where elements that are not finite differ.
  std::optional<double> cosine, signalToNoise;
  int64_t outside = 0;       // elements outside the tolerance
  int64_t firstOutside = -1; // their first
  bool isWithin() const { return isComparable && outside == 0; }
};

// |found - expected| <= absolute + relative * |expected| for every element. Equal NaNs and equal infinities agree; a
// NaN against a number never does. ULPs are of the type, for integers units. With mayDifferInType the comparison and
// its ULPs are in the narrower of two float types.
Difference compareTensors(const TensorView &found, const TensorView &expected, const Tolerance &tolerance,
                          bool mayDifferInType = false);

// "max abs 1e-07, max rel 2e-06, max ulp 3, cosine 1, snr 120.5 dB: ok"
std::string differenceText(const Difference &difference, const TensorView &found, const TensorView &expected);

// Steps between two numbers of a float type, counting through zero.
uint64_t ulpDistance(ElementType type, double a, double b);

} // namespace ds
#endif
