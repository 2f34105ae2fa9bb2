// Recognizes constants and products in the spellings of exporters. It looks at a value and the ops behind it, and at
// nothing that depends on names. Which chain is which block is said by the Recompose*.cpp beside it.
#include "passes/graph/Matching.h"

#include "mlir/IR/Iterators.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

void keepNames(Operation *from, Operation *to) {
  if (Attribute names = from->getDiscardableAttr(ds::valueNameAttr))
    to->setDiscardableAttr(ds::valueNameAttr, names);
}

void remarkLeft(Operation *op, StringRef block, const Twine &reason) {
  std::string text = (block + " not recomposed: " + reason).str();
  op->emitRemark() << text;
  op->setDiscardableAttr(leftAttr, StringAttr::get(op->getContext(), text));
}

void eraseDeadOps(Operation *root) {
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != root && isOpTriviallyDead(op))
      op->erase();
  });
}

static DenseElementsAttr elementsOf(Value value) {
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
}

static std::optional<double> splatOf(DenseElementsAttr elements) {
  if (!elements || elements.empty() || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  APInt number = elements.getSplatValue<APInt>();
  bool isUnsigned = elements.getElementType().isUnsignedInteger() || number.getBitWidth() == 1;
  if (isUnsigned ? number.getActiveBits() > 52 : number.getSignificantBits() > 53)
    return std::nullopt; // no double
  return isUnsigned ? static_cast<double>(number.getZExtValue()) : static_cast<double>(number.getSExtValue());
}

std::optional<double> scalarOf(Value value) {
  DenseElementsAttr elements = elementsOf(value);
  return elements && elements.getNumElements() == 1 ? splatOf(elements) : std::nullopt;
}

std::optional<double> uniformOf(Value value) {
  while (isa_and_present<ds::BroadcastOp, ds::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return splatOf(elementsOf(value));
}

bool isNear(double value, double ideal, Type element) {
  // Of what is further away than the type and the spellings of exporters explain, the numbers would be others.
  double tolerance = element.isBF16() ? 4e-3 : element.isF16() ? 1e-3 : element.isF32() ? 2e-5 : 1e-7;
  return std::abs(value - ideal) <= tolerance * std::abs(ideal);
}

ds::BinaryOp binaryOf(Value value, ds::BinaryKind kind) {
  auto op = value.getDefiningOp<ds::BinaryOp>();
  return op && op.getKind() == kind ? op : ds::BinaryOp();
}

ds::UnaryOp unaryOf(Value value, ds::UnaryKind kind) {
  auto op = value.getDefiningOp<ds::UnaryOp>();
  return op && op.getKind() == kind ? op : ds::UnaryOp();
}

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

std::optional<ScaledValue> matchScalar(Value value, ds::BinaryKind kind) {
  ds::BinaryOp op = binaryOf(value, kind);
  if (!op)
    return std::nullopt;
  if (auto scalar = scalarOf(op.getRhs()); scalar && rankOf(op.getRhs()) <= rankOf(op.getLhs()))
    return ScaledValue{op.getLhs(), *scalar};
  bool commutes = kind == ds::BinaryKind::add || kind == ds::BinaryKind::mul;
  if (auto scalar = scalarOf(op.getLhs()); commutes && scalar && rankOf(op.getLhs()) <= rankOf(op.getRhs()))
    return ScaledValue{op.getRhs(), *scalar};
  return std::nullopt;
}

static void collect(Value value, bool isRoot, Product &product) {
  if (isRoot || value.hasOneUse()) {
    if (auto scaled = matchScalar(value, ds::BinaryKind::mul)) {
      product.factor *= scaled->scalar;
      return collect(scaled->tensor, false, product);
    }
    if (auto scaled = matchScalar(value, ds::BinaryKind::div)) {
      product.factor /= scaled->scalar;
      return collect(scaled->tensor, false, product);
    }
    ds::BinaryOp op = binaryOf(value, ds::BinaryKind::mul);
    if (op && op.getLhs() != op.getRhs()) {
      collect(op.getLhs(), false, product);
      return collect(op.getRhs(), false, product);
    }
  }
  product.leaves.push_back(value);
}

Product takeApart(Value value) {
  Product product;
  collect(value, true, product);
  return product;
}

Value matchSquare(Value value) {
  if (ds::BinaryOp op = binaryOf(value, ds::BinaryKind::mul); op && op.getLhs() == op.getRhs())
    return op.getLhs();
  auto power = matchScalar(value, ds::BinaryKind::pow);
  return power && power->scalar == 2 ? power->tensor : Value();
}

Value matchCube(Value value) {
  if (auto power = matchScalar(value, ds::BinaryKind::pow))
    return power->scalar == 3 ? power->tensor : Value();
  ds::BinaryOp op = binaryOf(value, ds::BinaryKind::mul);
  if (!op)
    return {};
  if (matchSquare(op.getLhs()) == op.getRhs())
    return op.getRhs();
  return matchSquare(op.getRhs()) == op.getLhs() ? op.getLhs() : Value();
}

bool isClamped(const SizeExpr &size, const SizeExpr &whole) { return size.isMinimumOf(whole, 2); }

ds::ReduceOp meanOf(Value value) {
  auto reduce = value.getDefiningOp<ds::ReduceOp>();
  return reduce && reduce.getKind() == ds::ReduceKind::mean && reduce.getKeepDims() ? reduce : ds::ReduceOp();
}

bool areLastAxes(ArrayRef<int64_t> axes, int64_t rank) {
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis != rank - static_cast<int64_t>(axes.size() - index))
      return false;
  return !axes.empty();
}

static Value squareRootOf(Value value) {
  ds::UnaryOp root = unaryOf(value, ds::UnaryKind::sqrt);
  if (root)
    return root.getInput();
  auto power = matchScalar(value, ds::BinaryKind::pow);
  return power && power->scalar == 0.5 ? power->tensor : Value();
}

Value inverseRootOf(Value value) {
  if (ds::UnaryOp reciprocal = unaryOf(value, ds::UnaryKind::reciprocal))
    return squareRootOf(reciprocal.getInput());
  if (ds::BinaryOp quotient = binaryOf(value, ds::BinaryKind::div); quotient && scalarOf(quotient.getLhs()) == 1.0)
    return squareRootOf(quotient.getRhs());
  auto power = matchScalar(value, ds::BinaryKind::pow);
  return power && power->scalar == -0.5 ? power->tensor : Value();
}

SmallVector<RootQuotient, 2> rootQuotients(ds::BinaryOp op) {
  SmallVector<RootQuotient, 2> readings;
  if (op.getKind() == ds::BinaryKind::div)
    if (Value radicand = squareRootOf(op.getRhs()))
      readings.push_back({op.getLhs(), radicand});
  if (op.getKind() != ds::BinaryKind::mul)
    return readings;
  for (auto [numerator, factor] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (Value radicand = inverseRootOf(factor))
      readings.push_back({numerator, radicand});
  }
  return readings;
}

ds::BinaryOp onlyUser(Value value, ds::BinaryKind kind, Value &other) {
  auto user = value.hasOneUse() ? dyn_cast<ds::BinaryOp>(*value.getUsers().begin()) : ds::BinaryOp();
  if (!user || user.getKind() != kind || user.getType() != value.getType())
    return {};
  other = user.getLhs() == value ? user.getRhs() : user.getLhs();
  return user;
}

bool hasShape(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getShape() == shape && type.hasStaticShape();
}

bool isParameter(Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> given = cast<RankedTensorType>(value.getType()).getShape();
  return given.size() >= shape.size() && !ShapedType::isDynamicShape(shape) && given.take_back(shape.size()) == shape &&
         llvm::all_of(given.drop_back(shape.size()), [](int64_t size) { return size == 1; });
}

Value parameterOf(OpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  if (hasShape(value, shape))
    return value;
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(value.getType()).getElementType());
  if (auto constant = value.getDefiningOp<ds::ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return ds::ConstantOp::create(builder, constant.getLoc(), elements.reshape(type));
  SmallVector<SizeExpr> sizes(shape.begin(), shape.end());
  return ds::ReshapeOp::create(builder, value.getLoc(), type, value, toAttribute(builder.getContext(), sizes));
}

Value createOnes(OpBuilder &builder, Location location, ArrayRef<int64_t> shape, Type element) {
  auto type = RankedTensorType::get(ShapedType::isDynamicShape(shape) ? ArrayRef<int64_t>() : shape, element);
  return ds::ConstantOp::create(builder, location, DenseElementsAttr::get(type, FloatAttr::get(element, 1.0)));
}

} // namespace deepstride
