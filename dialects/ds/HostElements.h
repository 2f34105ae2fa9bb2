// Elements of host tensors as numbers: how they are read, written, added, multiplied and put in order, for the files
// that evaluate ops. Floats are rounded at every step; integers wrap when they are written.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTELEMENTS_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTELEMENTS_H

#include "dialects/ds/HostTensor.h"

#include <algorithm>
#include <cmath>

namespace deepstride {

inline HostNumber numberAt(const HostTensor &tensor, int64_t flat) {
  return readNumber(tensor.element, tensor.data + flat * tensor.elementBytes());
}

inline void setNumber(HostTensor &tensor, int64_t flat, const HostNumber &number) {
  writeNumber(tensor.element, tensor.owned->data() + flat * tensor.elementBytes(), number);
}

/// Copies elements between tensors of one type.
inline void copyElements(const HostTensor &from, int64_t source, HostTensor &to, int64_t target, int64_t count = 1) {
  int64_t width = to.elementBytes();
  std::copy_n(from.data + source * width, count * width, to.owned->data() + target * width);
}

inline llvm::SmallVector<int64_t> positionOf(int64_t flat, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i])
    position[i] = flat % shape[i];
  return position;
}

inline int64_t flatOf(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    flat = flat * shape[i] + position[i];
  return flat;
}

/// How many elements there are along the axes from `first` up to `end`.
inline int64_t countBetween(llvm::ArrayRef<int64_t> shape, size_t first, size_t end) {
  int64_t count = 1;
  for (int64_t size : shape.slice(first, end - first))
    count *= size;
  return count;
}

/// A sum, product, quotient or root of floats of the type, computed in double. Rounded once more it is what the type's
/// own operation gives: the double has more than twice the digits of a float. Kernels compute narrow floats in f32.
inline double rounded(double value, mlir::Type element) { return element.isF64() ? value : static_cast<float>(value); }

inline HostNumber sumOf(const HostNumber &a, const HostNumber &b, mlir::Type element) {
  return {rounded(a.real + b.real, element),
          static_cast<int64_t>(static_cast<uint64_t>(a.integer) + static_cast<uint64_t>(b.integer))};
}

inline HostNumber productOf(const HostNumber &a, const HostNumber &b, mlir::Type element) {
  return {rounded(a.real * b.real, element),
          static_cast<int64_t>(static_cast<uint64_t>(a.integer) * static_cast<uint64_t>(b.integer))};
}

/// Whether a comes before b in the order of maxima: it is greater, or the first NaN.
inline bool isGreater(const HostNumber &a, const HostNumber &b, mlir::Type element) {
  if (llvm::isa<mlir::FloatType>(element))
    return a.real > b.real || (std::isnan(a.real) && !std::isnan(b.real));
  return element.isUnsignedInteger() ? static_cast<uint64_t>(a.integer) > static_cast<uint64_t>(b.integer)
                                     : a.integer > b.integer;
}

inline bool isLess(const HostNumber &a, const HostNumber &b, mlir::Type element) {
  if (llvm::isa<mlir::FloatType>(element))
    return a.real < b.real || (std::isnan(a.real) && !std::isnan(b.real));
  return isGreater(b, a, element);
}

} // namespace deepstride

#endif
