// Casts between f32 and narrower floats on host tensors by loops of their own. All elements of a model's weights pass
// through one where it is packaged in 16 bits, or was trained in them.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"
#include "dialects/ds/NarrowFloats.h"

#include <cstring>

using namespace mlir;

namespace deepstride {

template <typename To, typename From, typename Convert>
static HostTensor convertAll(const HostTensor &source, RankedTensorType type, Convert convert) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  auto *write = reinterpret_cast<To *>(result.owned->data());
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    From element; // those of a file that is mapped need not be aligned
    std::memcpy(&element, source.data + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    write[i] = convert(element);
  }
  return result;
}

std::optional<HostTensor> castFloatsOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  if (!isa<ds::CastOp>(op))
    return std::nullopt;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type from = operands[0].element, to = type.getElementType();
  if (from.isF32() && to.isF16())
    return convertAll<uint16_t, float>(operands[0], type, halfOf);
  if (from.isF32() && to.isBF16())
    return convertAll<uint16_t, float>(operands[0], type, bfloatOf);
  if (from.isF16() && to.isF32())
    return convertAll<float, uint16_t>(operands[0], type, floatOfHalf);
  if (from.isBF16() && to.isF32())
    return convertAll<float, uint16_t>(operands[0], type, floatOfBfloat);
  return std::nullopt;
}

} // namespace deepstride
