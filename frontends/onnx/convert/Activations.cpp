// Activation functions, as the formulas of the ONNX specification in ds ops.
#include "frontends/onnx/convert/Registry.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

/// x where x is `kind` 0, else `other`.
static Value whereSign(DsBuilder &b, BinaryKind kind, Value x, Value other) {
  return b.select(b.binary(kind, x, 0.0), x, other);
}

static Value expMinusOne(DsBuilder &b, Value x) { return b.sub(b.unary(UnaryKind::exp, x), 1.0); }

static Values convertLeakyRelu(Node &n) {
  return {whereSign(n.b, BinaryKind::ge, n.in(0), n.b.mul(n.in(0), n.real("alpha", 0.01)))};
}

static Values convertPRelu(Node &n) {
  Value x = n.in(0), slope = n.in(1);
  constexpr int64_t numpyBroadcast = 7; // before, a slope per channel
  if (n.version() < numpyBroadcast && n.b.rank(x) > 1)
    slope = n.b.alignVector(slope, 1, n.b.rank(x));
  return {whereSign(n.b, BinaryKind::ge, x, n.b.mul(slope, x))};
}

/// Floats of 16 bits in f32: attributes keep their digits, and differences such as e^x - 1 theirs.
static Convert inFloat32(Value (*function)(Node &, Value)) {
  return [=](Node &n) -> Values {
    Type type = n.b.element(n.in(0));
    if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() >= 32)
      return {function(n, n.in(0))};
    return {n.b.cast(function(n, n.b.cast(n.in(0), n.b.f32())), type)};
  };
}

static Value elu(Node &n, Value x) {
  return whereSign(n.b, BinaryKind::ge, x, n.b.mul(expMinusOne(n.b, x), n.real("alpha", 1)));
}

static Value selu(Node &n, Value x) {
  double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
  return n.b.mul(whereSign(n.b, BinaryKind::gt, x, n.b.mul(expMinusOne(n.b, x), alpha)), gamma);
}

static Value celu(Node &n, Value x) {
  double alpha = n.real("alpha", 1);
  return whereSign(n.b, BinaryKind::ge, x, n.b.mul(expMinusOne(n.b, n.b.div(x, alpha)), alpha));
}

static Value hardSigmoid(DsBuilder &b, Value x, double alpha, double beta) {
  Value line = b.add(b.mul(x, alpha), beta);
  return b.binary(BinaryKind::max, b.binary(BinaryKind::min, line, 1.0), 0.0);
}

static Value hardSigmoid(Node &n, Value x) { return hardSigmoid(n.b, x, n.real("alpha", 0.2), n.real("beta", 0.5)); }

static Value hardSwish(Node &n, Value x) { return n.b.mul(x, hardSigmoid(n.b, x, 1.0 / 6, 0.5)); }

/// log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|).
static Value softplus(Node &n, Value x) {
  DsBuilder &b = n.b;
  Value decayed = b.unary(UnaryKind::exp, b.unary(UnaryKind::neg, b.unary(UnaryKind::abs, x)));
  return b.add(b.unary(UnaryKind::relu, x), b.unary(UnaryKind::log, b.add(decayed, 1.0)));
}

static Value mish(Node &n, Value x) { return n.b.mul(x, n.b.unary(UnaryKind::tanh, softplus(n, x))); }

static Value softsign(Node &n, Value x) { return n.b.div(x, n.b.add(n.b.unary(UnaryKind::abs, x), 1.0)); }

static Value thresholdedRelu(Node &n, Value x) {
  return n.b.select(n.b.binary(BinaryKind::gt, x, n.real("alpha", 1)), x, n.b.scalar(n.b.element(x), 0));
}

static Values convertShrink(Node &n) {
  Type type = n.b.element(n.in(0));
  bool isInteger = isa<IntegerType>(type); // whose sums with the bias are real numbers
  Value x = isInteger ? n.b.cast(n.in(0), n.b.f64()) : n.in(0);
  double bias = n.real("bias", 0), lambda = n.real("lambd", 0.5);
  Value zero = n.b.scalar(n.b.element(x), 0);
  Value above = n.b.select(n.b.binary(BinaryKind::gt, x, lambda), n.b.sub(x, bias), zero);
  return {n.b.cast(n.b.select(n.b.binary(BinaryKind::lt, x, -lambda), n.b.add(x, bias), above), type)};
}

static Values convertGelu(Node &n) {
  std::string kind = n.text("approximate", "none", {"none", "tanh"});
  return {n.b.gelu(kind == "tanh" ? ds::GeluKind::tanh : ds::GeluKind::erf, n.in(0))};
}

static Value swish(Node &n, Value x) {
  return n.b.mul(x, n.b.unary(UnaryKind::sigmoid, n.b.mul(x, n.real("alpha", 1))));
}

void addActivations(PatternRegistry &registry) {
  registry.add("LeakyRelu", 1, 1, convertLeakyRelu);
  registry.add("PRelu", 1, 2, convertPRelu);
  registry.add("Elu", 1, 1, inFloat32(elu));
  registry.add("Selu", 1, 1, inFloat32(selu));
  registry.add("Celu", 12, 1, inFloat32(celu));
  registry.add("HardSigmoid", 1, 1, inFloat32(hardSigmoid));
  registry.add("HardSwish", 14, 1, inFloat32(hardSwish));
  registry.add("Mish", 18, 1, inFloat32(mish));
  registry.add("Softplus", 1, 1, inFloat32(softplus));
  registry.add("Softsign", 1, 1, inFloat32(softsign));
  registry.add("ThresholdedRelu", 10, 1, inFloat32(thresholdedRelu));
  registry.add("Shrink", 9, 1, convertShrink);
  registry.add("Gelu", 20, 1, convertGelu);
  registry.add("Swish", 24, 1, inFloat32(swish));
}

} // namespace deepstride::onnx
