// Activation functions, as the formulas of the ONNX specification in ds ops.
#include "frontends/onnx/convert/Activations.h"
#include "frontends/onnx/convert/PerAxis.h"
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

static Values convertLeakyRelu(Node &n) {
  return {whereSign(n.b, BinaryKind::ge, n.in(0), n.b.mul(n.in(0), n.real("alpha", 0.01)))};
}

static Values convertPRelu(Node &n) {
  Value x = n.in(0), slope = n.in(1);
  constexpr int64_t numpyBroadcast = 7; // before, a slope per channel
  SizeVector sizes = n.b.sizes(x);
  if (n.version() < numpyBroadcast && sizes.size() > 1 && n.b.rank(slope) == 1)
    slope = vectorAlong(n, 1, slope, 1, n.b.rank(x), {sizes[1], "channel", /*orOne=*/true});
  if (!slope)
    return {};
  return {whereSign(n.b, BinaryKind::ge, x, n.b.mul(slope, x))};
}

// Where x is not taken from it, the exponential is that of 0: the slope of infinity would be no number.
Value elu(DsBuilder &b, Value x, double alpha, double scale) {
  Value least = b.binary(BinaryKind::min, x, 0.0);
  Value below = b.unary(UnaryKind::expm1, scale == 1 ? least : b.div(least, scale));
  return whereSign(b, BinaryKind::ge, x, alpha == 1 ? below : b.mul(below, alpha));
}

// max(x, 0) + log(1 + e^-|x|) does not overflow. Both parts choose the same side of 0 there, so that their slopes add
// up to those of the whole; |x| and max have slopes of their own.
Value softplus(DsBuilder &b, Value x) {
  Value isPositive = b.binary(BinaryKind::ge, x, 0.0), negated = b.unary(UnaryKind::neg, x);
  Value decayed = b.unary(UnaryKind::exp, b.select(isPositive, negated, x));
  Value line = b.select(isPositive, x, b.scalar(b.element(x), 0));
  return b.add(line, b.unary(UnaryKind::log1p, decayed));
}

static Values convertElu(Node &n) { return {elu(n.b, n.in(0), n.real("alpha", 1))}; }

static Values convertSelu(Node &n) {
  double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
  return {n.b.mul(elu(n.b, n.in(0), alpha), gamma)};
}

static Values convertCelu(Node &n) {
  double alpha = n.real("alpha", 1);
  return {elu(n.b, n.in(0), alpha, alpha)};
}

static Value hardSigmoid(DsBuilder &b, Value x, double alpha, double beta) {
  Value line = b.add(b.mul(x, alpha), beta);
  return b.binary(BinaryKind::max, b.binary(BinaryKind::min, line, 1.0), 0.0);
}

static Values convertHardSigmoid(Node &n) {
  return {hardSigmoid(n.b, n.in(0), n.real("alpha", 0.2), n.real("beta", 0.5))};
}

static Values convertHardSwish(Node &n) { return {n.b.mul(n.in(0), hardSigmoid(n.b, n.in(0), 1.0 / 6, 0.5))}; }

static Values convertSoftplus(Node &n) { return {softplus(n.b, n.in(0))}; }

static Values convertMish(Node &n) { return {n.b.mul(n.in(0), n.b.unary(UnaryKind::tanh, softplus(n.b, n.in(0))))}; }

static Values convertSoftsign(Node &n) { return {n.b.div(n.in(0), n.b.add(n.b.unary(UnaryKind::abs, n.in(0)), 1.0))}; }

static Values convertThresholdedRelu(Node &n) {
  Value passes = n.b.binary(BinaryKind::gt, n.in(0), n.real("alpha", 1));
  return {n.b.select(passes, n.in(0), n.b.scalar(n.b.element(n.in(0)), 0))};
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

static Values convertSwish(Node &n) {
  return {n.b.mul(n.in(0), n.b.unary(UnaryKind::sigmoid, n.b.mul(n.in(0), n.real("alpha", 1))))};
}

void addActivations(PatternRegistry &registry) {
  registry.add("LeakyRelu", 1, 1, convertLeakyRelu).inFloat32 = true;
  registry.add("PRelu", 1, 2, convertPRelu);
  registry.add("Elu", 1, 1, convertElu).inFloat32 = true;
  registry.add("Selu", 1, 1, convertSelu).inFloat32 = true;
  registry.add("Celu", 12, 1, convertCelu).inFloat32 = true;
  registry.add("HardSigmoid", 1, 1, convertHardSigmoid).inFloat32 = true;
  registry.add("HardSwish", 14, 1, convertHardSwish).inFloat32 = true;
  registry.add("Mish", 18, 1, convertMish).inFloat32 = true;
  registry.add("Softplus", 1, 1, convertSoftplus).inFloat32 = true;
  registry.add("Softsign", 1, 1, convertSoftsign).inFloat32 = true;
  registry.add("ThresholdedRelu", 10, 1, convertThresholdedRelu).inFloat32 = true;
  registry.add("Shrink", 9, 1, convertShrink).inFloat32 = true;
  registry.add("Gelu", 20, 1, convertGelu);
  registry.add("Swish", 24, 1, convertSwish).inFloat32 = true;
}

} // namespace deepstride::onnx
