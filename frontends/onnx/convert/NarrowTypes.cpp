// Casts to the float types of eight and four bits. What is out of range is limited here; ds.cast then only rounds.
#include "frontends/onnx/convert/Node.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;

/// Powers of two that float8e8m0 holds, from f32; the sign is dropped.
static Value roundToPower(Node &n, Value x) {
  DsBuilder &b = n.b;
  std::string mode = n.text("round_mode", "up", {"up", "down", "nearest"});
  if (mode == "nearest") // what the cast does
    return x;
  auto bits = [&](Value value, Type type) { return b.create<ds::BitcastOp>({value}, value, type); };
  constexpr double exponent = 0x7f800000, justBelow = 0x7fffff;
  Value power = bits(x, b.i32());
  if (mode == "up")
    power = b.add(b.binary(BinaryKind::bit_and, power, 0x7fffffff), justBelow);
  Value rounded = bits(b.binary(BinaryKind::bit_and, power, exponent), b.f32());
  // The least power is subnormal in f32, so masking cannot give it.
  Value isLeast = b.binary(BinaryKind::le, b.unary(ds::UnaryKind::abs, x), 0x1p-127);
  Value special = b.binary(BinaryKind::ne, x, x);
  return b.select(special, x, b.select(isLeast, b.scalar(b.f32(), 0), rounded));
}

Value convertElements(Node &n, Value x, Type type) {
  DsBuilder &b = n.b;
  if (!x)
    return {};
  if (!isNarrowFloat(type) || b.element(x) == type)
    return b.cast(x, type);
  Type inner = b.element(x).isF64() && !isa<Float8E8M0FNUType>(type) ? b.f64() : b.f32();
  Value wide = b.cast(x, inner);
  if (isa<Float8E8M0FNUType>(type))
    wide = roundToPower(n, wide);
  if (n.flag("saturate", true) && !isa<Float4E2M1FNType>(type)) { // which has nothing else to overflow to
    double most = llvm::APFloat::getLargest(cast<FloatType>(type).getFloatSemantics()).convertToDouble();
    wide = b.binary(BinaryKind::min, b.binary(BinaryKind::max, wide, -most), most);
  }
  return b.cast(wide, type);
}

} // namespace deepstride::onnx
