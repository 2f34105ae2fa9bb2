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

/// One part of a weight [K, N] of f32, whose codes are rounded against a triangle [K, K] of f32 where there is one.
/// Nothing where a number is not finite, or the triangle's diagonal not positive.
std::optional<HostTensor> quantizeOnHost(const HostTensor &weight, ds::QuantizedPart part,
                                         const QuantizationScheme &scheme, const HostTensor *triangle = nullptr);

/// Whether scales [G, N] of groups of `depth` codes of a column in all cannot be those of one sum in f32: one is not
/// finite, or two of a column are too far apart. Until they meet the unit of their row, kernels divide sums by a power
/// of two near the column's first scale (codegen/tile/SegmentProduct.cpp): others must not be so much greater that sums
/// leave f32, nor so much less that they lose bits.
bool areScalesApart(llvm::ArrayRef<float> scales, int64_t columns, int64_t depth, int64_t bits);
/// Where it is false areScalesApart is, in whatever order the scales lie.
bool mayScalesBeApart(llvm::ArrayRef<float> scales, int64_t depth, int64_t bits);

struct QuantizationError {
  double largest = 0;          // of |w - (q - z) s|
  double relative = 0;         // sqrt(sum (w - (q - z) s)^2 / sum w^2)
  double inResults = 0;        // sqrt(sum |L (w - (q - z) s)|^2 / sum |L w|^2), where there is a triangle L
  bool areScalesApart = false; // with groups
};
/// As reports have it: "relative error 1.00e-02, largest 2.00e-03".
std::string describe(const QuantizationError &error);
/// Nothing where quantizeOnHost gives nothing, or where codes stand for numbers that f32 does not hold.
std::optional<QuantizationError> quantizationError(const HostTensor &weight, const QuantizationScheme &scheme,
                                                   const HostTensor *triangle = nullptr);
/// What a weight [K, N] of f32 loses as f16 or bf16. Nothing where a column loses more than rounding to as many bits
/// does, since its elements are below the type's range, and where an element is beyond that, or not finite.
std::optional<QuantizationError> roundingError(const HostTensor &weight, mlir::FloatType narrow);

} // namespace deepstride

#endif
