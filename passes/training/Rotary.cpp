// Rotary embeddings are told by structure, not by names or numbers: tables by the sum x cos + rotated(x) sin that reads
// them, frequencies by positions, which are integers, and by ending in both cosines and sines.
#include "passes/training/Roles.h"

using namespace mlir;

namespace deepstride {

namespace {

bool isNegation(Operation *op) {
  auto unary = dyn_cast<ds::UnaryOp>(op);
  return unary && unary.getKind() == ds::UnaryKind::neg;
}

bool isKind(Operation *op, ArrayRef<ds::BinaryKind> kinds) {
  auto binary = dyn_cast<ds::BinaryOp>(op);
  return binary && llvm::is_contained(kinds, binary.getKind());
}

/// Whether an op makes its last axis shorter, as what takes a half of each head does.
bool takesPartOfLastAxis(Operation *op) {
  if (!isa<ds::SliceOp>(op))
    return false;
  auto from = cast<RankedTensorType>(op->getOperand(0).getType()),
       to = cast<RankedTensorType>(op->getResult(0).getType());
  return from.getRank() > 0 && from.getDimSize(from.getRank() - 1) != to.getDimSize(to.getRank() - 1);
}

/// The values that parts of this one are taken from, its own way back included; `takesParts` says whether any is a
/// part.
void collectOrigins(Value value, llvm::SmallDenseSet<Value> &origins, bool &takesParts) {
  if (!origins.insert(value).second)
    return;
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  takesParts |= takesPartOfLastAxis(op);
  if (movesElements(op) || isNegation(op))
    return collectOrigins(op->getOperand(0), origins, takesParts);
  if (isa<ds::ConcatOp>(op))
    for (Value operand : op->getOperands())
      collectOrigins(operand, origins, takesParts);
}

/// Whether one is the other one rotated, or both are parts of one value: x and rotated(x), or the halves of x.
bool areRotated(Value a, Value b) {
  if (a == b)
    return false;
  llvm::SmallDenseSet<Value> ofA, ofB;
  bool takesParts = false;
  collectOrigins(a, ofA, takesParts);
  collectOrigins(b, ofB, takesParts);
  return takesParts && llvm::any_of(ofA, [&](Value value) { return ofB.contains(value); });
}

/// Whether the product with a table is a term of a rotation.
bool isTermOfRotation(OpOperand &use) {
  Operation *product = use.getOwner();
  if (!isKind(product, ds::BinaryKind::mul) || product->use_empty())
    return false;
  Value rotated = product->getOperand(1 - use.getOperandNumber());
  return llvm::all_of(product->getUses(), [&](OpOperand &term) {
    Operation *sum = term.getOwner();
    if (!isKind(sum, {ds::BinaryKind::add, ds::BinaryKind::sub}))
      return false;
    Operation *other = sum->getOperand(1 - term.getOperandNumber()).getDefiningOp();
    return other && isKind(other, ds::BinaryKind::mul) &&
           llvm::any_of(other->getOperands(), [&](Value value) { return areRotated(rotated, value); });
  });
}

/// Whether a value is computed from integers and numbers alone, as positions are.
bool isPosition(Value value) {
  SmallVector<Value> open = {value};
  llvm::SmallDenseSet<Value> seen;
  bool holdsIntegers = false;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto type = dyn_cast<RankedTensorType>(next.getType()); type && isa<IntegerType>(type.getElementType())) {
      holdsIntegers = true;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op || op->getNumRegions() > 0 || isa<ds::WeightOp>(op))
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return holdsIntegers;
}

/// Whether all that is computed from a weight passes `isEnd`, seen through what `isSeen` allows.
bool endsOnlyIn(Value weight, llvm::function_ref<bool(OpOperand &)> isEnd,
                llvm::function_ref<bool(OpOperand &)> isSeen) {
  SmallVector<Value> open = {weight};
  llvm::SmallDenseSet<Value> seen;
  bool ends = false;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      if (isEnd(use))
        ends = true;
      else if (isSeen(use))
        open.push_back(use.getOwner()->getResult(0));
      else
        return false;
    }
  }
  return ends;
}

bool isTable(Value weight) {
  auto isEnd = [](OpOperand &use) {
    if (isa<ds::RotaryOp>(use.getOwner()))
      return use.getOperandNumber() > 0;
    return isTermOfRotation(use);
  };
  auto isSeen = [](OpOperand &use) {
    Operation *op = use.getOwner();
    bool moves = use.getOperandNumber() == 0 && (movesElements(op) || isa<ds::GatherOp>(op));
    return moves || isNegation(op) || isa<ds::ConcatOp>(op);
  };
  // What scales features is the same at all positions, a rotation is not.
  return !isVector(weight) && endsOnlyIn(weight, isEnd, isSeen);
}

bool isFrequency(Value weight) {
  bool meetsPositions = false, hasCosine = false, hasSine = false;
  auto isEnd = [&](OpOperand &use) {
    auto unary = dyn_cast<ds::UnaryOp>(use.getOwner());
    hasCosine |= unary && unary.getKind() == ds::UnaryKind::cos;
    hasSine |= unary && unary.getKind() == ds::UnaryKind::sin;
    return unary && (unary.getKind() == ds::UnaryKind::cos || unary.getKind() == ds::UnaryKind::sin);
  };
  auto isSeen = [&](OpOperand &use) {
    Operation *op = use.getOwner();
    if (movesElements(op))
      return use.getOperandNumber() == 0;
    if (isa<ds::ConcatOp>(op))
      return true;
    bool isProduct = isa<ds::MatmulOp>(op) || isKind(op, ds::BinaryKind::mul);
    bool multiplies = isProduct && isPosition(op->getOperand(1 - use.getOperandNumber()));
    meetsPositions |= multiplies;
    return multiplies;
  };
  return endsOnlyIn(weight, isEnd, isSeen) && meetsPositions && hasCosine && hasSine;
}

} // namespace

StringRef rotaryRoleOf(Value weight) {
  return isTable(weight) ? "rotary table" : isFrequency(weight) ? "vector of rotary frequencies" : "";
}

} // namespace deepstride
