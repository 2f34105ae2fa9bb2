// Evaluates ops over small constants, as recipes do, with numbers in double precision rounded to the element type after
// every op: correctly rounded for the four operations and the square root. Ops and element types that are missing here
// are left to packaging.
#include "passes/graph/Recipes.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

namespace {
/// Elements of any type as doubles; 64-bit integers beyond 2^53 are refused.
using Numbers = SmallVector<double>;
} // namespace

static std::optional<Numbers> toNumbers(DenseElementsAttr elements) {
  Numbers numbers;
  Type type = elements.getElementType();
  if (isa<FloatType>(type)) {
    for (APFloat value : elements.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      numbers.push_back(value.convertToDouble());
    }
    return numbers;
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
  for (APInt value : elements.getValues<APInt>()) {
    if (value.getBitWidth() > 53 && !(isUnsigned ? value.isIntN(53) : value.isSignedIntN(53)))
      return std::nullopt;
    numbers.push_back(isUnsigned ? static_cast<double>(value.getZExtValue())
                                 : static_cast<double>(value.getSExtValue()));
  }
  return numbers;
}

static DenseElementsAttr toElements(RankedTensorType type, ArrayRef<double> numbers) {
  SmallVector<Attribute> values;
  for (double number : numbers) {
    if (auto format = dyn_cast<FloatType>(type.getElementType())) {
      values.push_back(FloatAttr::get(format, number));
      continue;
    }
    auto integer = dyn_cast<IntegerType>(type.getElementType());
    bool isUnsigned = integer && (integer.isUnsigned() || integer.getWidth() == 1);
    if (!integer || !(std::abs(number) < 0x1p53) || number != std::trunc(number))
      return {};
    auto whole = static_cast<int64_t>(number);
    unsigned width = integer.getWidth();
    if (width < 64 && !(isUnsigned ? number >= 0 && llvm::isUIntN(width, whole) : llvm::isIntN(width, whole)))
      return {}; // wraps at run time
    values.push_back(IntegerAttr::get(integer, APInt(width, static_cast<uint64_t>(whole), !isUnsigned)));
  }
  return DenseElementsAttr::get(type, values);
}

/// Flat positions in an operand of the elements that a result of `shape` reads: numpy broadcasting.
static SmallVector<int64_t> broadcastPositions(ArrayRef<int64_t> shape, ArrayRef<int64_t> operand) {
  int64_t count = ShapedType::getNumElements(shape);
  SmallVector<int64_t> positions;
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, position = 0, stride = 1;
    for (size_t back = 1; back <= shape.size(); ++back) {
      int64_t index = rest % shape[shape.size() - back];
      rest /= shape[shape.size() - back];
      if (back > operand.size())
        continue;
      int64_t size = operand[operand.size() - back];
      position += (size == 1 ? 0 : index) * stride;
      stride *= size;
    }
    positions.push_back(position);
  }
  return positions;
}

static std::optional<double> compute(ds::BinaryKind kind, double a, double b, bool isFloat) {
  switch (kind) {
  case ds::BinaryKind::add: return a + b;
  case ds::BinaryKind::sub: return a - b;
  case ds::BinaryKind::mul: return a * b;
  case ds::BinaryKind::div:
    if (!isFloat && b == 0)
      return std::nullopt;
    return isFloat ? a / b : std::trunc(a / b);
  case ds::BinaryKind::pow: return isFloat ? std::optional(std::pow(a, b)) : std::nullopt;
  default: return std::nullopt;
  }
}

static std::optional<double> compute(ds::UnaryKind kind, double x) {
  switch (kind) {
  case ds::UnaryKind::neg: return -x;
  case ds::UnaryKind::abs: return std::abs(x);
  case ds::UnaryKind::sqrt: return std::sqrt(x);
  case ds::UnaryKind::reciprocal: return 1 / x;
  case ds::UnaryKind::exp: return std::exp(x);
  case ds::UnaryKind::log: return std::log(x);
  case ds::UnaryKind::floor: return std::floor(x);
  case ds::UnaryKind::ceil: return std::ceil(x);
  default: return std::nullopt;
  }
}

DenseElementsAttr evaluate(Operation *op, ArrayRef<DenseElementsAttr> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (isa<ds::ReshapeOp>(op))
    return DenseElementsAttr(operands[0]).reshape(type);
  SmallVector<Numbers> inputs;
  SmallVector<SmallVector<int64_t>> positions;
  for (DenseElementsAttr operand : operands) {
    auto numbers = toNumbers(operand);
    if (!numbers)
      return {};
    inputs.push_back(std::move(*numbers));
  }
  Numbers result;
  int64_t count = type.getNumElements();
  if (auto transpose = dyn_cast<ds::TransposeOp>(op)) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(transpose.getInput().getType()).getShape();
    for (int64_t flat = 0; flat < count; ++flat) {
      int64_t rest = flat;
      SmallVector<int64_t> index(shape.size());
      for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
        index[transpose.getPermutation()[axis]] = rest % type.getDimSize(axis);
        rest /= type.getDimSize(axis);
      }
      int64_t position = 0;
      for (size_t axis = 0; axis < shape.size(); ++axis)
        position = position * shape[axis] + index[axis];
      result.push_back(inputs[0][position]);
    }
    return toElements(type, result);
  }
  if (!isa<ds::BinaryOp, ds::UnaryOp, ds::CastOp, ds::BroadcastOp>(op))
    return {};
  for (DenseElementsAttr operand : operands)
    positions.push_back(broadcastPositions(type.getShape(), operand.getType().getShape()));
  bool fromFloat = isa<FloatType>(operands[0].getElementType());
  for (int64_t i = 0; i < count; ++i) {
    double x = inputs[0][positions[0][i]];
    std::optional<double> value = x;
    if (auto binary = dyn_cast<ds::BinaryOp>(op))
      value = compute(binary.getKind(), x, inputs[1][positions[1][i]], fromFloat);
    if (auto unary = dyn_cast<ds::UnaryOp>(op))
      value = compute(unary.getKind(), x);
    if (isa<ds::CastOp>(op))
      value = type.getElementType().isInteger(1) ? x != 0 : isa<IntegerType>(type.getElementType()) ? std::trunc(x) : x;
    if (!value)
      return {};
    result.push_back(*value);
  }
  return toElements(type, result);
}

} // namespace deepstride
