// Derivatives of elementwise functions. Where a function has a corner, the derivative is one of those beside it or
// between them: 0 for |x| and relu at 0, half for each of two equal operands of min and max.
#include "passes/training/Derivative.h"

#include <cmath>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::GeluKind;
using ds::UnaryKind;

/// The slope of the function at x, where it is y; null where it is 0 everywhere.
static Value slopeOf(UnaryKind kind, Value x, Value y, DsBuilder &b) {
  Value one = b.scalar(b.element(x), 1);
  auto squared = [&](Value v) { return b.mul(v, v); };
  auto inverse = [&](Value v) { return b.unary(UnaryKind::reciprocal, v); };
  auto inverseRoot = [&](Value v) { return inverse(b.unary(UnaryKind::sqrt, v)); };
  // As a product: 1 - x^2 cancels near 1.
  auto belowOne = [&](Value v) { return b.mul(b.sub(one, v), b.add(one, v)); };
  auto negated = [&](Value v) { return b.unary(UnaryKind::neg, v); };
  switch (kind) {
  case UnaryKind::abs: return b.unary(UnaryKind::sign, x);
  case UnaryKind::neg: return b.scalar(b.element(x), -1);
  case UnaryKind::exp: return y;
  case UnaryKind::expm1: return b.unary(UnaryKind::exp, x); // y + 1 cancels where y is near -1
  case UnaryKind::log: return inverse(x);
  case UnaryKind::log1p: return inverse(b.add(x, 1.0));
  case UnaryKind::sqrt: return b.mul(inverse(y), 0.5);
  case UnaryKind::reciprocal: return negated(squared(y));
  case UnaryKind::erf: return b.mul(b.unary(UnaryKind::exp, negated(squared(x))), 2 / std::sqrt(M_PI));
  case UnaryKind::tanh: return belowOne(y);
  case UnaryKind::sigmoid: return b.mul(y, b.sub(one, y));
  case UnaryKind::relu: return b.cast(b.binary(BinaryKind::gt, x, 0.0), b.element(x));
  case UnaryKind::sin: return b.unary(UnaryKind::cos, x);
  case UnaryKind::cos: return negated(b.unary(UnaryKind::sin, x));
  case UnaryKind::tan: return b.add(squared(y), 1.0);
  case UnaryKind::asin: return inverseRoot(belowOne(x));
  case UnaryKind::acos: return negated(inverseRoot(belowOne(x)));
  case UnaryKind::atan: return inverse(b.add(squared(x), 1.0));
  case UnaryKind::sinh: return b.unary(UnaryKind::cosh, x);
  case UnaryKind::cosh: return b.unary(UnaryKind::sinh, x);
  case UnaryKind::asinh: return inverseRoot(b.add(squared(x), 1.0));
  case UnaryKind::acosh: return inverseRoot(b.mul(b.sub(x, 1.0), b.add(x, 1.0)));
  case UnaryKind::atanh: return inverse(belowOne(x));
  case UnaryKind::floor:
  case UnaryKind::ceil:
  case UnaryKind::round:
  case UnaryKind::sign: return {};
  case UnaryKind::logical_not:
  case UnaryKind::bitwise_not:
  case UnaryKind::is_nan: break; // of no floats, or yielding none
  }
  llvm_unreachable("no float depends on these");
}

static void differentiateUnary(ds::UnaryOp op, Derivative &d) {
  Value slope = slopeOf(op.getKind(), d.wide(d.in()), d.wide(d.out()), d.b);
  if (slope)
    d.give(0, d.b.mul(d.wide(d.gradient()), slope));
}

/// a^b: b a^(b-1) and a^b ln a, both 0 where the factor in front is: 0 * infinity would be no number.
static void differentiatePow(Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.wide(d.gradient()), base = d.wide(d.in(0)), y = d.wide(d.out());
  Type type = b.element(base);
  Value exponent = b.cast(d.in(1), type), zero = b.scalar(type, 0);
  if (d.wants(0)) {
    Value power = b.binary(BinaryKind::pow, base, b.sub(exponent, 1.0));
    d.give(0, b.mul(g, b.select(b.binary(BinaryKind::eq, exponent, 0.0), zero, b.mul(exponent, power))));
  }
  if (d.wants(1)) {
    Value slope = b.mul(y, b.unary(UnaryKind::log, base));
    d.give(1, b.mul(g, b.select(b.binary(BinaryKind::eq, y, 0.0), zero, slope)));
  }
}

/// The whole gradient for the operand that was chosen, half for each of two equal ones.
static void differentiateChoice(BinaryKind chosen, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient(), zero = b.scalar(b.element(g), 0);
  Value half = b.select(b.binary(BinaryKind::eq, d.in(0), d.in(1)), b.mul(g, 0.5), zero);
  d.give(0, b.select(b.binary(chosen, d.in(0), d.in(1)), g, half));
  d.give(1, b.select(b.binary(chosen, d.in(1), d.in(0)), g, half));
}

static void differentiateBinary(ds::BinaryOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient(), left = d.in(0), right = d.in(1);
  switch (op.getKind()) {
  case BinaryKind::add: d.give(0, g), d.give(1, g); return;
  case BinaryKind::sub: d.give(0, g), d.give(1, b.unary(UnaryKind::neg, g)); return;
  case BinaryKind::mul: d.give(0, b.mul(d.wide(g), d.wide(right))), d.give(1, b.mul(d.wide(g), d.wide(left))); return;
  case BinaryKind::div: {
    Value quotient = b.div(d.wide(g), d.wide(right));
    d.give(0, quotient);
    d.give(1, b.unary(UnaryKind::neg, b.mul(quotient, d.wide(d.out()))));
    return;
  }
  case BinaryKind::pow: return differentiatePow(d);
  case BinaryKind::min: return differentiateChoice(BinaryKind::lt, d);
  case BinaryKind::max: return differentiateChoice(BinaryKind::gt, d);
  case BinaryKind::mod:
  case BinaryKind::fmod: { // a - n b with a whole n
    Value whole = b.div(b.sub(d.wide(left), d.wide(d.out())), d.wide(right));
    d.give(0, g);
    d.give(1, b.unary(UnaryKind::neg, b.mul(d.wide(g), b.unary(UnaryKind::round, whole))));
    return;
  }
  default: llvm_unreachable("the others take or yield no floats");
  }
}

static void differentiateSelect(ds::SelectOp op, Derivative &d) {
  Value g = d.gradient(), zero = d.b.scalar(d.b.element(g), 0);
  d.give(1, d.b.select(op.getCondition(), g, zero));
  d.give(2, d.b.select(op.getCondition(), zero, g));
}

static void differentiateCast(ds::CastOp, Derivative &d) {
  constexpr unsigned narrow = 8;
  for (Value value : {d.in(), d.out()})
    if (d.b.element(value).getIntOrFloatBitWidth() <= narrow)
      return d.refuse("between floats of which one has 8 bits or less");
  d.give(0, d.gradient());
}

static void differentiateGelu(ds::GeluOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value x = d.wide(d.in()), one = b.scalar(b.element(x), 1), square = b.mul(x, x), share, slope;
  switch (op.getKind()) {
  case GeluKind::erf:
    share = b.mul(b.add(b.unary(UnaryKind::erf, b.mul(x, M_SQRT1_2)), 1.0), 0.5);
    slope = b.mul(b.unary(UnaryKind::exp, b.mul(square, -0.5)), 1 / std::sqrt(2 * M_PI));
    break;
  case GeluKind::tanh: {
    double factor = std::sqrt(2 / M_PI), cubic = 0.044715;
    Value t = b.unary(UnaryKind::tanh, b.mul(b.mul(x, b.add(b.mul(square, cubic), 1.0)), factor));
    share = b.mul(b.add(t, 1.0), 0.5);
    Value inner = b.mul(b.add(b.mul(square, 3 * cubic), 1.0), factor / 2);
    slope = b.mul(b.mul(b.sub(one, t), b.add(one, t)), inner);
    break;
  }
  case GeluKind::quick:
    share = b.unary(UnaryKind::sigmoid, b.mul(x, 1.702));
    slope = b.mul(b.mul(share, b.sub(one, share)), 1.702);
    break;
  }
  d.give(0, b.mul(d.wide(d.gradient()), b.add(share, b.mul(x, slope))));
}

/// The same places are 0, drawn again.
static void differentiateDropout(ds::DropoutOp op, Derivative &d) {
  Value g = d.gradient();
  d.give(0, d.b.create<ds::DropoutOp>({g}, g, op.getRatioAttr(), op.getStreamAttr()));
}

void addElementwiseRules(RuleTable &table) {
  table.add(differentiateDropout);
  table.add(differentiateUnary);
  table.add(differentiateBinary);
  table.add(differentiateSelect);
  table.add(differentiateCast);
  table.add(differentiateGelu);
}

} // namespace deepstride
