// Evaluates ops of the ds dialect on host tensors, element by element.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

static std::optional<double> realFunction(ds::UnaryKind kind, double x) {
  switch (kind) {
  case ds::UnaryKind::exp: return std::exp(x);
  case ds::UnaryKind::log: return std::log(x);
  case ds::UnaryKind::sqrt: return std::sqrt(x);
  case ds::UnaryKind::reciprocal: return 1.0 / x;
  case ds::UnaryKind::erf: return std::erf(x);
  case ds::UnaryKind::tanh: return std::tanh(x);
  case ds::UnaryKind::sigmoid: return 1.0 / (1.0 + std::exp(-x));
  case ds::UnaryKind::sin: return std::sin(x);
  case ds::UnaryKind::cos: return std::cos(x);
  case ds::UnaryKind::tan: return std::tan(x);
  case ds::UnaryKind::asin: return std::asin(x);
  case ds::UnaryKind::acos: return std::acos(x);
  case ds::UnaryKind::atan: return std::atan(x);
  case ds::UnaryKind::sinh: return std::sinh(x);
  case ds::UnaryKind::cosh: return std::cosh(x);
  case ds::UnaryKind::asinh: return std::asinh(x);
  case ds::UnaryKind::acosh: return std::acosh(x);
  case ds::UnaryKind::atanh: return std::atanh(x);
  case ds::UnaryKind::floor: return std::floor(x);
  case ds::UnaryKind::ceil: return std::ceil(x);
  case ds::UnaryKind::round: return std::nearbyint(x);
  default: return std::nullopt;
  }
}

namespace {
/// What the bits of the operands mean; a number has both a real and an integer reading.
struct Reading {
  bool isFloat, isUnsigned;
};
} // namespace

static std::optional<HostNumber> applyUnary(ds::UnaryKind kind, const HostNumber &x, Reading as) {
  if (as.isUnsigned && kind == ds::UnaryKind::sign)
    return HostNumber{0.0, x.integer != 0};
  if (as.isUnsigned && (kind == ds::UnaryKind::abs || kind == ds::UnaryKind::relu))
    return x;
  switch (kind) {
  case ds::UnaryKind::neg: return HostNumber{-x.real, static_cast<int64_t>(0 - static_cast<uint64_t>(x.integer))};
  case ds::UnaryKind::abs:
    return HostNumber{std::fabs(x.real),
                      x.integer < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x.integer)) : x.integer};
  case ds::UnaryKind::relu:
    return HostNumber{std::isnan(x.real) || x.real > 0 ? x.real : 0.0, std::max<int64_t>(x.integer, 0)};
  case ds::UnaryKind::sign:
    return HostNumber{x.real > 0 ? 1.0 : x.real < 0 ? -1.0 : x.real, x.integer > 0 ? 1 : x.integer < 0 ? -1 : 0};
  case ds::UnaryKind::logical_not: return HostNumber{0.0, x.integer == 0};
  case ds::UnaryKind::bitwise_not: return HostNumber{0.0, ~x.integer};
  case ds::UnaryKind::is_nan: return HostNumber{0.0, std::isnan(x.real)};
  default: break;
  }
  auto value = as.isFloat ? realFunction(kind, x.real) : std::nullopt;
  return value ? std::optional(HostNumber{*value, 0}) : std::nullopt;
}

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

/// As processors do: what is no 64-bit integer becomes the least one.
static int64_t truncate(double x, bool isUnsigned) {
  if (isUnsigned && x >= 0x1p63 && x < 0x1p64)
    return wrap(static_cast<uint64_t>(x));
  return std::fabs(x) < 9.2e18 ? static_cast<int64_t>(x) : INT64_MIN;
}

static std::optional<HostNumber> applyBinary(ds::BinaryKind kind, const HostNumber &x, const HostNumber &y,
                                             Reading as) {
  uint64_t a = static_cast<uint64_t>(x.integer), b = static_cast<uint64_t>(y.integer);
  bool isFloat = as.isFloat, isLess = as.isUnsigned ? a < b : x.integer < y.integer;
  auto truth = [&](bool real, bool integer) { return HostNumber{0.0, isFloat ? real : integer}; };
  switch (kind) {
  case ds::BinaryKind::add: return HostNumber{x.real + y.real, wrap(a + b)};
  case ds::BinaryKind::sub: return HostNumber{x.real - y.real, wrap(a - b)};
  case ds::BinaryKind::mul: return HostNumber{x.real * y.real, wrap(a * b)};
  case ds::BinaryKind::div:
    if (!isFloat && y.integer == 0)
      return std::nullopt;
    if (as.isUnsigned)
      return HostNumber{0.0, wrap(a / b)};
    return HostNumber{x.real / y.real, isFloat ? 0 : y.integer == -1 ? wrap(0 - a) : x.integer / y.integer};
  case ds::BinaryKind::fmod:
  case ds::BinaryKind::mod: {
    if (!isFloat && y.integer == 0)
      return std::nullopt;
    if (as.isUnsigned)
      return HostNumber{0.0, wrap(a % b)};
    bool floored = kind == ds::BinaryKind::mod;
    double real = std::fmod(x.real, y.real);
    int64_t integer = isFloat || y.integer == -1 ? 0 : x.integer % y.integer;
    if (floored && real != 0 && (real < 0) != (y.real < 0))
      real += y.real;
    if (floored && integer != 0 && (integer < 0) != (y.integer < 0))
      integer += y.integer;
    return HostNumber{real, integer};
  }
  case ds::BinaryKind::pow:
    return HostNumber{std::pow(x.real, y.real), isFloat ? 0 : truncate(std::pow(x.real, y.real), as.isUnsigned)};
  case ds::BinaryKind::min:
    return HostNumber{std::isnan(x.real) || x.real < y.real ? x.real : y.real, isLess ? x.integer : y.integer};
  case ds::BinaryKind::max:
    return HostNumber{std::isnan(x.real) || x.real > y.real ? x.real : y.real, isLess ? y.integer : x.integer};
  case ds::BinaryKind::bit_and: return HostNumber{0.0, x.integer & y.integer};
  case ds::BinaryKind::bit_or: return HostNumber{0.0, x.integer | y.integer};
  case ds::BinaryKind::bit_xor: return HostNumber{0.0, x.integer ^ y.integer};
  case ds::BinaryKind::eq: return truth(x.real == y.real, x.integer == y.integer);
  case ds::BinaryKind::ne: return truth(x.real != y.real, x.integer != y.integer);
  case ds::BinaryKind::lt: return truth(x.real < y.real, isLess);
  case ds::BinaryKind::le: return truth(x.real <= y.real, isLess || a == b);
  case ds::BinaryKind::gt: return truth(x.real > y.real, !isLess && a != b);
  case ds::BinaryKind::ge: return truth(x.real >= y.real, !isLess);
  case ds::BinaryKind::shift_left: return HostNumber{0.0, b < 64 ? wrap(a << b) : 0};
  case ds::BinaryKind::shift_right: return HostNumber{0.0, b < 64 ? wrap(a >> b) : 0};
  }
  return std::nullopt;
}

static std::optional<SmallVector<int64_t>> constants(ArrayAttr sizes) {
  SmallVector<int64_t> result;
  for (Attribute size : sizes) {
    auto value = sizeFromAttribute(size);
    if (!value || !value->constant())
      return std::nullopt;
    result.push_back(*value->constant());
  }
  return result;
}

std::optional<HostTensor> evaluateOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto constant = dyn_cast<ds::ConstantOp>(op))
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return HostTensor::fromAttribute(dense);
  if (isa<ds::ReshapeOp>(op)) {
    HostTensor result = operands[0];
    result.shape = SmallVector<int64_t>(type.getShape());
    return result;
  }
  if (auto moved = dyn_cast<ds::TransposeOp>(op))
    return transposeOnHost(operands[0], moved.getPermutation());
  if (auto joined = dyn_cast<ds::ConcatOp>(op))
    return concatOnHost(operands, joined.getAxis());
  if (auto packed = dyn_cast<ds::PackOp>(op))
    return packOnHost(operands[0], packed.getPanel());
  if (isa<ds::BroadcastOp>(op))
    return broadcastOnHost(operands[0], type.getShape());
  if (auto taken = dyn_cast<ds::GatherOp>(op))
    if (auto result = gatherOnHost(operands[0], operands[1], taken.getAxis(), type.getShape()))
      return *result;
  if (auto box = dyn_cast<ds::SliceOp>(op))
    if (auto starts = constants(box.getStarts()))
      return sliceOnHost(operands[0], *starts, type.getShape(), box.getSteps());
  if (auto bits = dyn_cast<ds::BitcastOp>(op); bits && operands[0].elementBytes() == 1) {
    HostTensor result = operands[0];
    result.element = type.getElementType();
    return result;
  }
  if (isa<ds::CastOp, ds::UnaryOp, ds::BinaryOp>(op)) {
    // How narrow floats saturate and what they do with NaN is code generation's to say.
    if (isa<FloatType>(type.getElementType()) && type.getElementTypeBitWidth() <= 8)
      return std::nullopt;
    HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
    bool fromFloat = isa<FloatType>(operands[0].element), toFloat = isa<FloatType>(result.element);
    Reading reading{fromFloat, operands[0].element.isUnsignedInteger()};
    int64_t width = result.elementBytes();
    auto unary = dyn_cast<ds::UnaryOp>(op);
    auto binary = dyn_cast<ds::BinaryOp>(op);
    for (int64_t i = 0, n = result.count(); i < n; ++i) {
      auto read = [&](unsigned index) {
        const HostTensor &tensor = operands[index];
        bool sameShape = ArrayRef<int64_t>(tensor.shape) == type.getShape();
        int64_t at = sameShape ? i : broadcastOffset(i, type.getShape(), tensor.shape);
        return readNumber(tensor.element, tensor.data + at * tensor.elementBytes());
      };
      std::optional<HostNumber> value;
      if (unary)
        value = applyUnary(unary.getKind(), read(0), reading);
      else if (binary)
        value = applyBinary(binary.getKind(), read(0), read(1), reading);
      else {
        value = read(0);
        if (result.element.isInteger(1))
          value->integer = fromFloat ? value->real != 0 : value->integer != 0;
        else if (fromFloat && !toFloat)
          value->integer = truncate(value->real, result.element.isUnsignedInteger(64));
      }
      if (!value)
        return std::nullopt;
      writeNumber(result.element, result.owned->data() + i * width, *value);
    }
    return result;
  }
  return evaluateChoiceOnHost(op, operands);
}

} // namespace deepstride
