// RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial.
#include "frontends/onnx/convert/Random.h"
#include "frontends/onnx/convert/Registry.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

/// Where the node's stream starts.
static uint64_t streamOf(Node &n) {
  if (auto seed = dyn_cast_if_present<FloatAttr>(n.attribute("seed")))
    return llvm::bit_cast<uint64_t>(seed.getValueAsDouble());
  if (auto seed = dyn_cast_if_present<IntegerAttr>(n.attribute("seed")))
    return static_cast<uint64_t>(seed.getInt());
  return llvm::xxh3_64bits(cast<StringAttr>(n.operation().getOutputs()[0]).getValue());
}

// SplitMix64 (Steele, Lea and Flood 2014): a Weyl sequence, here indexed by the counter, and a 64-bit mixer.
Value uniformNumbers(Node &n, const SizeVector &sizes, Type type, uint64_t draw) {
  DsBuilder &b = n.b;
  auto ui64 = IntegerType::get(b.getContext(), 64, IntegerType::Unsigned);
  auto word = [&](uint64_t bits) {
    return b.constant(DenseElementsAttr::get(RankedTensorType::get({}, ui64), IntegerAttr::get(ui64, APInt(64, bits))));
  };
  auto fold = [&](Value x, uint64_t shift) {
    return b.binary(BinaryKind::bit_xor, x, b.binary(BinaryKind::shift_right, x, word(shift)));
  };
  constexpr uint64_t golden = 0x9e3779b97f4a7c15;
  // Seeds are often small and streams must not overlap: mix them before they become an offset.
  uint64_t start = streamOf(n) + golden * (draw + 1);
  start = (start ^ (start >> 30)) * 0xbf58476d1ce4e5b9;
  start = (start ^ (start >> 27)) * 0x94d049bb133111eb;
  start ^= start >> 31;

  Value counter = b.cast(b.iota(0, {product(sizes)}), ui64);
  Value x = b.add(b.mul(counter, word(golden)), word(start));
  x = b.mul(fold(x, 30), word(0xbf58476d1ce4e5b9));
  x = fold(b.mul(fold(x, 27), word(0x94d049bb133111eb)), 31);
  // As many high bits as the mantissa holds: nothing rounds up to 1.
  uint64_t bits = type.isF64() ? 53 : 24;
  Value high = b.cast(b.binary(BinaryKind::shift_right, x, word(64 - bits)), type);
  return b.reshape(b.mul(high, std::ldexp(1.0, -static_cast<int>(bits))), sizes);
}

/// The type that a random result is computed in.
static Type drawType(Node &n, Type result) { return result.isF64() ? n.b.f64() : n.b.f32(); }

static Value uniform(Node &n, const SizeVector &sizes, Type type) {
  double low = n.real("low", 0), high = n.real("high", 1);
  Value u = uniformNumbers(n, sizes, drawType(n, type));
  return n.b.cast(n.b.add(n.b.mul(u, high - low), low), type);
}

/// By Box and Muller, from two uniform numbers each.
static Value normal(Node &n, const SizeVector &sizes, Type type) {
  DsBuilder &b = n.b;
  Type inner = drawType(n, type);
  constexpr double twoPi = 6.283185307179586;
  Value one = b.scalar(inner, 1);
  Value away = b.unary(UnaryKind::log, b.sub(one, uniformNumbers(n, sizes, inner, 0))); // of (0, 1]
  Value radius = b.unary(UnaryKind::sqrt, b.mul(away, -2.0));
  Value angle = b.unary(UnaryKind::cos, b.mul(uniformNumbers(n, sizes, inner, 1), twoPi));
  return b.cast(b.add(b.mul(b.mul(radius, angle), n.real("scale", 1)), n.real("mean", 0)), type);
}

using Draw = Value (*)(Node &, const SizeVector &, Type);

static Convert shaped(Draw draw) {
  return [draw](Node &n) -> Values {
    auto shape = n.requiredIntegers("shape");
    Type type = n.elementType(n.integer("dtype", 1));
    if (!shape || !type)
      return {};
    if (!isa<FloatType>(type))
      return n.refuse("attribute 'dtype': expected a float type, found " + describeElement(type));
    for (int64_t size : *shape)
      if (size < 0)
        return n.refuse("attribute 'shape': expected sizes of at least 0, found " + Twine(size));
    return {draw(n, SizeVector(shape->begin(), shape->end()), type)};
  };
}

static Convert like(Draw draw) {
  return [draw](Node &n) -> Values {
    Type type = n.attribute("dtype") ? n.elementType(n.integer("dtype", 1)) : n.b.element(n.in(0));
    if (!type)
      return {};
    if (!isa<FloatType>(type))
      return n.refuse("expected a float type from attribute 'dtype' or the operand, found " + describeElement(type));
    return {draw(n, n.b.sizes(n.in(0)), type)};
  };
}

static Values convertBernoulli(Node &n) {
  Type type = n.attribute("dtype") ? n.elementType(n.integer("dtype", 1)) : n.b.element(n.in(0));
  if (!type || !n.requireFloat(0))
    return {};
  Type inner = drawType(n, n.b.element(n.in(0)));
  Value drawn = uniformNumbers(n, n.b.sizes(n.in(0)), inner);
  return {n.b.cast(n.b.binary(BinaryKind::lt, drawn, n.b.cast(n.in(0), inner)), type)};
}

/// Per row of unnormalised log-probabilities: how many steps of the distribution function a uniform number passes.
static Values convertMultinomial(Node &n) {
  DsBuilder &b = n.b;
  Type type = n.elementType(n.integer("dtype", 6));
  int64_t count = n.integer("sample_size", 1);
  if (!type || !n.requireFloat(0) || !n.requireRank(0, 2, 2))
    return {};
  if (!isa<IntegerType>(type) || type.isInteger(1))
    return n.refuse("attribute 'dtype': expected an integer type, found " + describeElement(type));
  if (count < 1)
    return n.refuse("attribute 'sample_size': expected at least 1, found " + Twine(count));
  SizeVector sizes = b.sizes(n.in(0));
  Value shares = b.softmax(b.cast(n.in(0), b.f64()), 1);
  Value steps = b.create<ds::CumulativeOp>({shares}, ReduceKind::sum, shares, 1, false, false);
  Value drawn = b.insertAxis(uniformNumbers(n, {sizes[0], count}, b.f64()), 2);
  Value passed = b.cast(b.binary(BinaryKind::le, b.insertAxis(steps, 1), drawn), b.i64());
  Value index = b.reduce(ReduceKind::sum, passed, {2}, /*keep=*/false);
  Value last = b.reshape(b.shape({sizes[1] - SizeExpr(1)}), {}); // rounding may leave the last step below 1
  return {b.cast(b.binary(BinaryKind::min, index, last), type)};
}

void addRandom(PatternRegistry &registry) {
  registry.add("RandomUniform", 1, 0, shaped(uniform));
  registry.add("RandomNormal", 1, 0, shaped(normal));
  registry.add("RandomUniformLike", 1, 1, like(uniform));
  registry.add("RandomNormalLike", 1, 1, like(normal));
  registry.add("Bernoulli", 15, 1, convertBernoulli);
  registry.add("Multinomial", 7, 1, convertMultinomial);
}

} // namespace deepstride::onnx
