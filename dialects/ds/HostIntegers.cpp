// Casts, sums and products of integers on host tensors by loops over their own types. The codes of quantized weights
// pass through a few of these in every recipe, millions at a time; element by element they would take most of the time
// that packaging takes.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"

#include <cstring>
#include <functional>
#include <type_traits>

using namespace mlir;

namespace deepstride {

/// Calls `body` with a number of the C++ type that holds elements of the type; false for all but integers of whole
/// bytes.
template <typename Body> static bool withInteger(Type element, Body body) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return false;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 8: return isUnsigned ? body(uint8_t()) : body(int8_t());
  case 16: return isUnsigned ? body(uint16_t()) : body(int16_t());
  case 32: return isUnsigned ? body(uint32_t()) : body(int32_t());
  case 64: return isUnsigned ? body(uint64_t()) : body(int64_t());
  default: return false;
  }
}

/// Element i; those of a file that is mapped need not be aligned.
template <typename T> static T elementAt(const HostTensor &tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T> static T *elementsOf(HostTensor &result) { return reinterpret_cast<T *>(result.owned->data()); }

static bool castIntegers(const HostTensor &source, HostTensor &result) {
  return withInteger(source.element, [&](auto from) {
    return withInteger(result.element, [&](auto to) {
      auto *write = elementsOf<decltype(to)>(result);
      for (int64_t i = 0, n = result.count(); i < n; ++i)
        write[i] = static_cast<decltype(to)>(elementAt<decltype(from)>(source, i));
      return true;
    });
  });
}

/// After how many elements of the result the operand repeats; nothing where it repeats in another way.
static std::optional<int64_t> periodOf(const HostTensor &operand, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> own = operand.shape;
  while (!own.empty() && own.front() == 1)
    own = own.drop_front();
  return own.size() <= shape.size() && own == shape.take_back(own.size()) ? std::optional(operand.count())
                                                                          : std::nullopt;
}

/// Integers wrap, as those of kernels do.
static bool combineIntegers(ds::BinaryKind kind, ArrayRef<HostTensor> operands, HostTensor &result) {
  auto left = periodOf(operands[0], result.shape), right = periodOf(operands[1], result.shape);
  if (!left || !right || operands[0].element != result.element || operands[1].element != result.element)
    return false;
  return withInteger(result.element, [&](auto number) {
    using T = decltype(number);
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    T *write = elementsOf<T>(result);
    auto run = [&](auto combine) {
      int64_t i = 0, j = 0;
      for (int64_t at = 0, n = result.count(); at < n; ++at) {
        write[at] = static_cast<T>(
            combine(static_cast<Wide>(elementAt<T>(operands[0], i)), static_cast<Wide>(elementAt<T>(operands[1], j))));
        i = i + 1 == *left ? 0 : i + 1;
        j = j + 1 == *right ? 0 : j + 1;
      }
      return true;
    };
    switch (kind) {
    case ds::BinaryKind::add: return run(std::plus<Wide>());
    case ds::BinaryKind::sub: return run(std::minus<Wide>());
    case ds::BinaryKind::mul: return run(std::multiplies<Wide>());
    default: return false;
    }
  });
}

/// Sums over axes that follow each other.
static bool sumIntegers(const HostTensor &source, ArrayRef<int64_t> axes, HostTensor &result) {
  SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted);
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] != sorted[i - 1] + 1)
      return false;
  if (sorted.empty() || source.element != result.element)
    return false;
  int64_t outer = 1, summed = 1, inner = 1;
  for (auto [axis, size] : llvm::enumerate(source.shape)) {
    auto at = static_cast<int64_t>(axis);
    (at < sorted.front() ? outer : at > sorted.back() ? inner : summed) *= size;
  }
  return withInteger(source.element, [&](auto number) {
    using T = decltype(number);
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    T *write = elementsOf<T>(result); // zeros
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t m = 0; m < summed; ++m)
        for (int64_t i = 0; i < inner; ++i)
          write[o * inner + i] =
              static_cast<T>(static_cast<Wide>(write[o * inner + i]) + static_cast<Wide>(elementAt<T>(source, at++)));
    return true;
  });
}

std::optional<HostTensor> computeIntegersOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto reduction = dyn_cast<ds::ReduceOp>(op);
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!isa<ds::CastOp>(op) && !binary && !(reduction && reduction.getKind() == ds::ReduceKind::sum))
    return std::nullopt;
  if (!isa<IntegerType>(type.getElementType()))
    return std::nullopt;
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  bool isDone = reduction ? sumIntegers(operands[0], reduction.getAxes(), result)
                : binary  ? combineIntegers(binary.getKind(), operands, result)
                          : castIntegers(operands[0], result);
  return isDone ? std::optional(std::move(result)) : std::nullopt;
}

} // namespace deepstride
