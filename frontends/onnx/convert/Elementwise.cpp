// Arithmetic, comparison, logic and casts: mostly one ds op per node.
#include "frontends/onnx/convert/Registry.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

static Convert unary(UnaryKind kind) {
  return [kind](Node &n) -> Values { return {n.b.unary(kind, n.in(0))}; };
}

/// Functions that are the identity on types where they have nothing to do, as Floor on integers.
static Convert unaryOnFloats(UnaryKind kind) {
  return [kind](Node &n) -> Values {
    return {isa<IntegerType>(n.b.element(n.in(0))) ? n.in(0) : n.b.unary(kind, n.in(0))};
  };
}

static Values convertAbs(Node &n) {
  Value x = n.in(0);
  return {n.b.element(x).isUnsignedInteger() ? x : n.b.unary(UnaryKind::abs, x)};
}

/// Before opset 7 operands broadcast only where the node says so, and may be aligned at an axis.
static Value alignOldBroadcast(Node &n, Value a, Value b) {
  int64_t axis = n.integer("axis", n.b.rank(a) - n.b.rank(b));
  if (!n.flag("broadcast", false) || n.b.rank(b) == 0)
    return b;
  if (axis < 0)
    axis += n.b.rank(a);
  if (axis < 0 || axis + n.b.rank(b) > n.b.rank(a))
    return n.refuse("attribute 'axis': expected an alignment inside the first operand, found " + Twine(axis));
  SizeVector target = n.b.sizes(b);
  target.resize(n.b.rank(a) - axis, SizeExpr(1));
  return n.b.reshape(b, target);
}

static Convert binary(BinaryKind kind) {
  return [kind](Node &n) -> Values {
    constexpr int64_t numpyBroadcast = 7;
    Value rhs = n.version() < numpyBroadcast ? alignOldBroadcast(n, n.in(0), n.in(1)) : n.in(1);
    return {n.b.binary(kind, n.in(0), rhs)};
  };
}

/// The exponent may have a type of its own; ds.pow gets one type, the wider kind of the two.
static Values convertPow(Node &n) {
  Value base = n.in(0), exponent = n.in(1);
  Type result = n.b.element(base), own = n.b.element(exponent);
  if (isa<IntegerType>(result) && isa<FloatType>(own))
    return {n.b.cast(n.b.binary(BinaryKind::pow, n.b.cast(base, own), exponent), result)};
  return {n.b.binary(BinaryKind::pow, base, n.b.cast(exponent, result))};
}

static Values convertMod(Node &n) {
  bool truncates = n.flag("fmod", false);
  if (!truncates && isa<FloatType>(n.b.element(n.in(0))))
    return n.refuse("attribute 'fmod': expected 1 for floats, found 0");
  return {n.b.binary(truncates ? BinaryKind::fmod : BinaryKind::mod, n.in(0), n.in(1))};
}

static Values convertBitShift(Node &n) {
  std::string direction = n.text("direction", "", {"LEFT", "RIGHT"});
  return {n.b.binary(direction == "LEFT" ? BinaryKind::shift_left : BinaryKind::shift_right, n.in(0), n.in(1))};
}

static Convert variadic(BinaryKind kind, bool isMean = false) {
  return [kind, isMean](Node &n) -> Values {
    Value result = n.in(0);
    for (unsigned i = 1; i < n.inputCount(); ++i)
      result = n.b.binary(kind, result, n.in(i));
    return {isMean ? n.b.div(result, static_cast<double>(n.inputCount())) : result};
  };
}

static Values convertWhere(Node &n) { return {n.b.select(n.in(0), n.in(1), n.in(2))}; }

static Values convertClipAttributes(Node &n) {
  constexpr double most = std::numeric_limits<float>::max(); // the defaults, which limit infinities
  Value result = n.b.binary(BinaryKind::max, n.in(0), n.real("min", -most));
  return {n.b.binary(BinaryKind::min, result, n.real("max", most))};
}

static Values convertClip(Node &n) {
  Value result = n.in(0);
  for (unsigned index : {1, 2}) // PyTorch writes float bounds for integers at opset 11
    if (n.has(index) && n.b.element(n.in(index)) != n.b.element(result))
      return n.refuse("input " + Twine(index) + ": expected a bound of the element type of " +
                      describe(n.b.facts(result)) + ", found " + describe(n.b.facts(n.in(index))));
  auto bound = [&](BinaryKind kind, Value limit) { result = n.b.binary(kind, result, n.b.reshape(limit, {})); };
  if (n.has(1))
    bound(BinaryKind::max, n.in(1));
  if (n.has(2))
    bound(BinaryKind::min, n.in(2));
  return {result};
}

static Values convertCast(Node &n) {
  auto to = n.requiredInteger("to");
  Type type = to ? n.elementType(*to) : Type();
  return {type ? convertElements(n, n.in(0), type) : Value()};
}

static Values convertCastLike(Node &n) { return {convertElements(n, n.in(0), n.b.element(n.in(1)))}; }

static Values convertIsInf(Node &n) {
  Value x = n.in(0);
  bool positive = n.flag("detect_positive", true), negative = n.flag("detect_negative", true);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!n.requireFloat(0))
    return {};
  if (positive && negative)
    return {n.b.binary(BinaryKind::eq, n.b.unary(UnaryKind::abs, x), infinity)};
  if (positive || negative)
    return {n.b.binary(BinaryKind::eq, x, positive ? infinity : -infinity)};
  return {n.b.broadcast(n.b.scalar(n.b.i1(), 0), n.b.sizes(x))};
}

static Values convertIdentity(Node &n) { return {n.in(0)}; }

static void addUnary(PatternRegistry &registry) {
  static constexpr std::pair<const char *, UnaryKind> functions[] = {{"Neg", UnaryKind::neg},
                                                                     {"Exp", UnaryKind::exp},
                                                                     {"Log", UnaryKind::log},
                                                                     {"Sqrt", UnaryKind::sqrt},
                                                                     {"Reciprocal", UnaryKind::reciprocal},
                                                                     {"Erf", UnaryKind::erf},
                                                                     {"Tanh", UnaryKind::tanh},
                                                                     {"Sigmoid", UnaryKind::sigmoid},
                                                                     {"Relu", UnaryKind::relu},
                                                                     {"Sin", UnaryKind::sin},
                                                                     {"Cos", UnaryKind::cos},
                                                                     {"Tan", UnaryKind::tan},
                                                                     {"Asin", UnaryKind::asin},
                                                                     {"Acos", UnaryKind::acos},
                                                                     {"Atan", UnaryKind::atan},
                                                                     {"Sinh", UnaryKind::sinh},
                                                                     {"Cosh", UnaryKind::cosh},
                                                                     {"Asinh", UnaryKind::asinh},
                                                                     {"Acosh", UnaryKind::acosh},
                                                                     {"Atanh", UnaryKind::atanh},
                                                                     {"Sign", UnaryKind::sign},
                                                                     {"Not", UnaryKind::logical_not},
                                                                     {"BitwiseNot", UnaryKind::bitwise_not},
                                                                     {"IsNaN", UnaryKind::is_nan}};
  for (auto [name, kind] : functions)
    registry.add(name, 1, 1, unary(kind));
  registry.add("Abs", 1, 1, convertAbs);
  registry.add("Floor", 1, 1, unaryOnFloats(UnaryKind::floor));
  registry.add("Ceil", 1, 1, unaryOnFloats(UnaryKind::ceil));
  registry.add("Round", 11, 1, unaryOnFloats(UnaryKind::round));
}

static Values convertBitCast(Node &n) {
  auto code = n.requiredInteger("to");
  Type type = code ? n.elementType(*code) : Type();
  if (!type)
    return {};
  Type own = n.b.element(n.in(0));
  auto bits = [](Type element) { return element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth(); };
  if (bits(own) != bits(type))
    return n.refuse("attribute 'to': expected a type of " + Twine(bits(own)) + " bits, as that of the operand, found " +
                    describeElement(type));
  return {n.b.create<ds::BitcastOp>({n.in(0)}, n.in(0), type)};
}

void addElementwise(PatternRegistry &registry) {
  addUnary(registry);
  static constexpr std::pair<const char *, BinaryKind> functions[] = {
      {"Add", BinaryKind::add},          {"Sub", BinaryKind::sub},
      {"Mul", BinaryKind::mul},          {"Div", BinaryKind::div},
      {"And", BinaryKind::bit_and},      {"Or", BinaryKind::bit_or},
      {"Xor", BinaryKind::bit_xor},      {"BitwiseAnd", BinaryKind::bit_and},
      {"BitwiseOr", BinaryKind::bit_or}, {"BitwiseXor", BinaryKind::bit_xor},
      {"Equal", BinaryKind::eq},         {"Less", BinaryKind::lt},
      {"LessOrEqual", BinaryKind::le},   {"Greater", BinaryKind::gt},
      {"GreaterOrEqual", BinaryKind::ge}};
  for (auto [name, kind] : functions)
    registry.add(name, 1, 2, binary(kind));
  registry.add("Pow", 1, 2, convertPow);
  registry.add("Mod", 10, 2, convertMod);
  registry.add("BitShift", 11, 2, convertBitShift);
  registry.add("Min", 1, 1, variadic(BinaryKind::min));
  registry.add("Max", 1, 1, variadic(BinaryKind::max));
  registry.add("Sum", 1, 1, variadic(BinaryKind::add));
  registry.add("Mean", 1, 1, variadic(BinaryKind::add, /*isMean=*/true)).inFloat32 = true;
  registry.add("Where", 9, 3, convertWhere);
  registry.add("Clip", 1, 1, convertClipAttributes);
  registry.add("Clip", 11, 1, convertClip);
  registry.add("Cast", 6, 1, convertCast);
  registry.add("CastLike", 15, 2, convertCastLike);
  registry.add("IsInf", 10, 1, convertIsInf);
  registry.add("BitCast", 26, 1, convertBitCast);
  registry.add("Identity", 1, 1, convertIdentity).takesSequences = true;
}

} // namespace deepstride::onnx
