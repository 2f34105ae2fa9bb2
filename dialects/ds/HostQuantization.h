// Weights as integers of 8 or 4 bits, as ds.quantize_weight defines them, and how far they are from what they stand
// for.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTQUANTIZATION_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTQUANTIZATION_H

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"

namespace deepstride {

struct QuantizationScheme {
  int64_t bits = 8;
  int64_t group = 0; // rows of a column that share a scale; 0: all of them
  bool isAsymmetric = false;
};

/// One part of a weight [K, N] of f32. Nothing where a number is not finite.
std::optional<HostTensor> quantizeOnHost(const HostTensor &weight, ds::QuantizedPart part,
                                         const QuantizationScheme &scheme);

struct QuantizationError {
  double largest = 0;  // of |w - (q - z) s|
  double relative = 0; // sqrt(sum (w - (q - z) s)^2 / sum w^2)
};
/// Nothing where a number is not finite.
std::optional<QuantizationError> quantizationError(const HostTensor &weight, const QuantizationScheme &scheme);

} // namespace deepstride

#endif
