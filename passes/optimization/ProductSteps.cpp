// Steps of several products become one row: what they share stays, constants of columns are joined, and what is
// computed of both is computed for all columns.
#include "passes/optimization/ProductSteps.h"

#include "passes/graph/Parameters.h"

using namespace mlir;

namespace deepstride {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static bool isOne(Value value) { return typeOf(value).hasStaticShape() && typeOf(value).getNumElements() == 1; }
static bool isStep(Operation *op) { return isa_and_present<ds::BinaryOp, ds::UnaryOp, ds::CastOp>(op); }
static bool isFloatProduct(ds::LinearOp op) { return isa<FloatType>(typeOf(op.getResult()).getElementType()); }

/// Whether the ops differ in their operands at most.
static bool areLike(Operation *a, Operation *b) {
  auto binary = dyn_cast<ds::BinaryOp>(a), other = dyn_cast<ds::BinaryOp>(b);
  auto unary = dyn_cast<ds::UnaryOp>(a), second = dyn_cast<ds::UnaryOp>(b);
  return a->getName() == b->getName() && a->getNumOperands() == b->getNumOperands() && a->getNumResults() == 1 &&
         (!binary || binary.getKind() == other.getKind()) && (!unary || unary.getKind() == second.getKind()) &&
         typeOf(a->getResult(0)).getElementType() == typeOf(b->getResult(0)).getElementType();
}

/// One number that both names stand for.
static bool areSame(Value a, Value b) {
  if (a == b)
    return isOne(a);
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  if (!left || !right || !isOne(a) || a.getType() != b.getType())
    return false;
  if (auto constant = dyn_cast<ds::ConstantOp>(left))
    return isa<ds::ConstantOp>(right) && constant.getValue() == cast<ds::ConstantOp>(right).getValue();
  return (isStep(left) || isa<ds::ReshapeOp>(left)) && areLike(left, right) &&
         llvm::all_of_zip(left->getOperands(), right->getOperands(), areSame);
}

/// Constants that have an element for each column, or can be given one.
static bool isConstant(Value value) {
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  bool isNumber = constant && isOne(value) && isa<SplatElementsAttr>(constant.getValue());
  return isNumber || (typeOf(value).getRank() == 1 && !isOne(value) && isFoldable(parameterSourceOf(value)));
}

static bool canJoin(Value a, Value b) {
  if (areSame(a, b) || (isConstant(a) && isConstant(b)))
    return true;
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  return isStep(left) && isStep(right) && typeOf(a).getRank() < 2 && typeOf(b).getRank() < 2 && areLike(left, right) &&
         llvm::all_of_zip(left->getOperands(), right->getOperands(), canJoin);
}

/// Which operand of the step is what the steps before have made.
static unsigned placeOf(Operation *step, Value before) { return step->getOperand(0) == before ? 0 : 1; }

SmallVector<Operation *> stepsOf(ds::LinearOp product) {
  SmallVector<Operation *> steps;
  if (isFloatProduct(product))
    return steps;
  for (Value value = product.getResult(); value.hasOneUse(); value = steps.back()->getResult(0)) {
    Operation *user = *value.user_begin();
    if (!isStep(user) || user->getBlock() != product->getBlock())
      break;
    unsigned place = placeOf(user, value);
    if (user->getNumOperands() == 2 && typeOf(user->getOperand(1 - place)).getRank() > 1)
      break;
    steps.push_back(user);
  }
  return steps;
}

Value steppedResult(ds::LinearOp product) {
  auto steps = stepsOf(product);
  return steps.empty() ? Value(product.getResult()) : Value(steps.back()->getResult(0));
}

ds::LinearOp productBehind(Value value) {
  Value last = value;
  while (isStep(value.getDefiningOp())) {
    Operation *step = value.getDefiningOp();
    bool isSecond = step->getNumOperands() == 2 && typeOf(step->getOperand(0)).getRank() < 2;
    value = step->getOperand(isSecond ? 1 : 0);
  }
  auto product = value.getDefiningOp<ds::LinearOp>();
  return product && steppedResult(product) == last ? product : ds::LinearOp();
}

bool haveLikeSteps(ds::LinearOp a, ds::LinearOp b) {
  auto left = stepsOf(a), right = stepsOf(b);
  if (left.size() != right.size())
    return false;
  Value x = a.getResult(), y = b.getResult();
  for (auto [one, other] : llvm::zip_equal(left, right)) {
    unsigned place = placeOf(one, x);
    if (!areLike(one, other) || placeOf(other, y) != place ||
        (one->getNumOperands() == 2 && !canJoin(one->getOperand(1 - place), other->getOperand(1 - place))))
      return false;
    x = one->getResult(0);
    y = other->getResult(0);
  }
  return true;
}

namespace {

struct StepJoiner {
  OpBuilder builder;
  ArrayRef<ds::LinearOp> products;
  size_t first; // whose steps are done first: what they read is there
  function_ref<Value(OpBuilder &, ArrayRef<Value>)> join;

  /// A constant with an element for each column of the product.
  Value ofColumns(Value value, ds::LinearOp product) {
    if (!isOne(value))
      return value;
    auto type = RankedTensorType::get({typeOf(product.getResult()).getShape().back()}, typeOf(value).getElementType());
    auto number = cast<SplatElementsAttr>(value.getDefiningOp<ds::ConstantOp>().getValue()).getSplatValue<Attribute>();
    return ds::ConstantOp::create(builder, value.getLoc(), SplatElementsAttr::get(type, number));
  }

  Value joined(ArrayRef<Value> sides) {
    Value own = sides[first];
    if (llvm::all_of(sides, [&](Value side) { return areSame(side, own); }))
      return own;
    if (llvm::all_of(sides, isConstant)) {
      SmallVector<Value> parts;
      for (auto [side, product] : llvm::zip_equal(sides, products))
        parts.push_back(ofColumns(side, product));
      return join(builder, parts);
    }
    SmallVector<Value> operands;
    int64_t columns = ShapedType::kDynamic;
    for (unsigned number = 0; number < own.getDefiningOp()->getNumOperands(); ++number) {
      operands.push_back(
          joined(llvm::map_to_vector(sides, [&](Value side) { return side.getDefiningOp()->getOperand(number); })));
      if (!operands.back())
        return {};
      if (!isOne(operands.back()))
        columns = typeOf(operands.back()).getShape().back();
    }
    return follow(own.getDefiningOp(), operands, {columns});
  }

  /// The op, of other operands.
  Value follow(Operation *op, ArrayRef<Value> operands, ArrayRef<int64_t> shape) {
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->removeAttr(ds::valueNameAttr);
    copy->getResult(0).setType(RankedTensorType::get(shape, typeOf(op->getResult(0)).getElementType()));
    return copy->getResult(0);
  }
};

} // namespace

Value joinSteps(ArrayRef<ds::LinearOp> products, Value whole, function_ref<Value(OpBuilder &, ArrayRef<Value>)> join) {
  auto rows = llvm::map_to_vector(products, stepsOf);
  if (rows.front().empty())
    return whole;
  auto *earliest =
      llvm::min_element(rows, [](const auto &a, const auto &b) { return a.back()->isBeforeInBlock(b.back()); });
  StepJoiner joiner{OpBuilder(earliest->back()), products, static_cast<size_t>(earliest - rows.begin()), join};
  SmallVector<Value> before = llvm::map_to_vector(products, [](ds::LinearOp op) -> Value { return op.getResult(); });
  for (size_t number = 0; number < earliest->size(); ++number) {
    Operation *step = (*earliest)[number];
    unsigned place = placeOf(step, before[joiner.first]);
    SmallVector<Value> operands(step->getNumOperands(), whole);
    if (operands.size() == 2)
      operands[1 - place] = joiner.joined(
          llvm::map_to_vector(rows, [&](const auto &steps) { return steps[number]->getOperand(1 - place); }));
    if (!llvm::all_of(operands, [](Value operand) { return operand != nullptr; }))
      return {};
    whole = joiner.follow(step, operands, typeOf(whole).getShape());
    for (auto [value, steps] : llvm::zip_equal(before, rows))
      value = steps[number]->getResult(0);
  }
  return whole;
}

} // namespace deepstride
