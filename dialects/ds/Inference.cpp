// Helpers that shape rules share, and the verifier built on them.
#include "dialects/ds/Inference.h"

#include "dialects/ds/DsDialect.h"

using namespace mlir;

namespace deepstride {

RankedTensorType TensorFacts::type() const {
  SmallVector<int64_t> shape;
  for (const SizeExpr &size : sizes)
    shape.push_back(size.constant().value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, elementType);
}

StringRef toString(SizeConstraint::Relation relation) {
  switch (relation) {
  case SizeConstraint::Relation::Equal: return "equal";
  case SizeConstraint::Relation::Broadcast: return "broadcast";
  case SizeConstraint::Relation::AtLeast: return "at-least";
  }
  llvm_unreachable("all relations handled");
}

void Inference::addResult(Type elementType, SizeVector sizes, std::optional<SizeVector> contents) {
  if (contents && contents->size() > contentsLimit)
    contents.reset();
  results.push_back({elementType, std::move(sizes), std::move(contents)});
}

LogicalResult Inference::error(const Twine &message) {
  if (!quiet)
    op->emitOpError(message);
  return failure();
}

LogicalResult Inference::requireEqual(const SizeExpr &a, const SizeExpr &b, const Twine &what) {
  SizeExpr difference = a - b;
  if (difference.isConstant(0))
    return success();
  if (difference.constant())
    return error(what + ": expected equal sizes, found " + a.brief() + " and " + b.brief());
  constraints.push_back({SizeConstraint::Relation::Equal, a, b, op->getLoc()});
  return success();
}

LogicalResult Inference::requireAtLeast(const SizeExpr &a, const SizeExpr &bound, const Twine &what) {
  SizeExpr difference = a - bound;
  if (difference.isKnownNonNegative())
    return success();
  if (difference.constant())
    return error(what + ": expected at least " + bound.brief() + ", found " + a.brief());
  constraints.push_back({SizeConstraint::Relation::AtLeast, a, bound, op->getLoc()});
  return success();
}

LogicalResult Inference::requireBroadcast(const SizeExpr &a, const SizeExpr &b, const Twine &what) {
  if (a == b || a.isConstant(1) || b.isConstant(1))
    return success();
  if (a.constant() && b.constant())
    return error(what + ": expected equal sizes or a 1, found " + a.brief() + " and " + b.brief());
  constraints.push_back({SizeConstraint::Relation::Broadcast, a, b, op->getLoc()});
  return success();
}

LogicalResult Inference::require(const SizeConstraint &constraint) {
  switch (constraint.relation) {
  case SizeConstraint::Relation::Equal: return requireEqual(constraint.lhs, constraint.rhs, "size");
  case SizeConstraint::Relation::Broadcast: return requireBroadcast(constraint.lhs, constraint.rhs, "size");
  case SizeConstraint::Relation::AtLeast: return requireAtLeast(constraint.lhs, constraint.rhs, "size");
  }
  llvm_unreachable("all relations handled");
}

/// Whether `part` is a cut of a table: the minimum of `whole` and of a number of rows that may be none.
static bool isRestOfTable(const SizeExpr &part, const SizeExpr &whole) {
  llvm::ArrayRef<SizeExpr> arguments = part.argumentsOf("min");
  for (unsigned i : {0, 1})
    if (!arguments.empty() && arguments[i] == whole)
      for (const SizeExpr &bound : arguments[1 - i].argumentsOf("max"))
        if (bound.isConstant(0))
          return true;
  return false;
}

// Which of two sizes that match (or of which one is 1) the result has: select(eq(a, 1), b, a) always is right, and so
// is the form with both exchanged. Where a is the minimum of b and of sizes that are at least 1, it is b: a is 1 only
// where b is or where b is what the result has. Positions cut from a table (min(max(512 - past, 0), seq) rows against
// seq) are taken for whole, too, so that sizes behind them stay simple; that the table does not end there is required.
SizeExpr Inference::broadcastSize(const SizeExpr &a, const SizeExpr &b) {
  if (a.constant())
    return a;
  if (b.constant())
    return b;
  for (auto [part, whole] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (part->isMinimumOf(*whole, 1))
      return *whole;
    if (!isRestOfTable(*part, *whole))
      continue;
    constraints.push_back({SizeConstraint::Relation::AtLeast, *part, SizeExpr::min(1, *whole), op->getLoc()});
    return *whole;
  }
  SizeExpr forward = SizeExpr::select(SizeExpr::eq(a, 1), b, a), backward = SizeExpr::select(SizeExpr::eq(b, 1), a, b);
  // Both are right; the one that simplified is kept.
  return backward.str().size() < forward.str().size() ? backward : forward;
}

std::optional<SizeVector> Inference::broadcast(ArrayRef<SizeExpr> a, ArrayRef<SizeExpr> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SizeVector result(a.begin(), a.end());
  size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    const SizeExpr &left = a[offset + i], &right = b[i];
    if (left == right || right.isConstant(1))
      continue;
    if (left.isConstant(1)) {
      result[offset + i] = right;
      continue;
    }
    if (left.constant() && right.constant()) {
      (void)error("shapes do not broadcast: axis " + Twine(offset + i) + " has sizes " + left.str() + " and " +
                  right.str());
      return std::nullopt;
    }
    constraints.push_back({SizeConstraint::Relation::Broadcast, left, right, op->getLoc()});
    result[offset + i] = broadcastSize(left, right);
  }
  return result;
}

LogicalResult Inference::requireBroadcastTo(ArrayRef<SizeExpr> target, ArrayRef<SizeExpr> given, const Twine &what) {
  if (given.size() > target.size())
    return error(what + " must have at most the operand's rank");
  auto sizes = broadcast(target, given);
  if (!sizes)
    return failure();
  for (auto [before, after] : llvm::zip_equal(target, *sizes))
    if (before.isConstant(1) && after.constant() && after != before)
      return error(what + " must broadcast to the operand, found size " + after.str() + " for 1");
    else if (failed(requireEqual(before, after, what + " must broadcast to the operand")))
      return failure();
  return success();
}

std::optional<SizeVector> Inference::sizesOf(ArrayAttr attribute, StringRef what) {
  auto sizes = sizesFromAttribute(attribute);
  if (!sizes)
    (void)error(what + " holds a text that is no size expression");
  return sizes;
}

std::optional<int64_t> Inference::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank)
    return std::nullopt;
  return value < 0 ? value + rank : value;
}

static TensorFacts factsOfType(Type type, llvm::function_ref<SizeExpr(size_t)> dynamicSize) {
  TensorFacts facts;
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (!shaped)
    return facts;
  facts.elementType = shaped.getElementType();
  for (auto [index, size] : llvm::enumerate(shaped.getShape()))
    facts.sizes.push_back(ShapedType::isDynamic(size) ? dynamicSize(index) : SizeExpr(size));
  return facts;
}

TensorFacts factsOfType(Type type, unsigned scope) {
  return factsOfType(type, [&](size_t axis) { return SizeExpr::unknown((Twine(scope) + "_" + Twine(axis)).str()); });
}

TensorFacts factsOfType(Type type, StringRef prefix) {
  return factsOfType(type, [&](size_t axis) { return SizeExpr::symbol((prefix + Twine(axis)).str()); });
}

LogicalResult requireSizes(Operation *op, const TensorFacts &facts) {
  constexpr int64_t mostElements = int64_t(1) << 55;
  int64_t elements = 1;
  for (const SizeExpr &size : facts.sizes) {
    auto value = size.constant();
    if (!value && size.symbols().empty()) // evaluating it fails, for every run
      return op->emitOpError("has a size that no integer of 64 bits holds, ") << size.brief();
    if (!value)
      continue;
    if (*value < 0)
      return op->emitOpError("has a negative size, ") << *value;
    if (llvm::MulOverflow(elements, std::max<int64_t>(*value, 1), elements) || elements > mostElements)
      return op->emitOpError("has a result of more than 2^55 elements");
  }
  return success();
}

namespace ds {

LogicalResult verifyAgainstInference(Operation *op) {
  SmallVector<TensorFacts> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    operands.push_back(factsOfType(operand.getType(), index));
  Inference turn(op, operands);
  if (failed(cast<ResultInference>(op).inferResults(turn)))
    return failure();
  if (turn.results.size() != op->getNumResults())
    return op->emitOpError("expects ") << turn.results.size() << " results";
  for (auto [result, facts] : llvm::zip_equal(op->getResults(), turn.results)) {
    if (failed(requireSizes(op, facts)))
      return failure();
    auto type = cast<RankedTensorType>(result.getType());
    if (type.getElementType() != facts.elementType || type.getRank() != facts.rank() ||
        failed(verifyCompatibleShape(type, facts.type())))
      return op->emitOpError("result #") << result.getResultNumber() << " expects a type compatible with "
                                         << facts.type() << ", found " << type;
  }
  return success();
}

} // namespace ds
} // namespace deepstride
