// Roles are read off the first readers of a weight, seen through what only moves elements.
#include "passes/training/Roles.h"

using namespace mlir;

namespace deepstride {

bool movesElements(Operation *op) {
  return isa<ds::ReshapeOp, ds::TransposeOp, ds::SliceOp, ds::CastOp, ds::BroadcastOp>(op);
}

bool isVector(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  return llvm::count_if(shape, [](int64_t size) { return size != 1; }) <= 1;
}

namespace {

/// Whether a value is computed from inputs of the entry.
bool isActivation(Value value) {
  SmallVector<Value> open = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (!function || !function.getArgAttr(argument.getArgNumber(), ds::stateAttr))
        return true;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op->getNumRegions() > 0)
      return true;
    llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether the op joins weights alone, as exporters join the gates of a recurrence in another order.
bool joinsWeights(Operation *op) { return isa<ds::ConcatOp>(op) && llvm::none_of(op->getOperands(), isActivation); }

/// Whether scores that end in a softmax are what a sum is part of: then what is added is a mask.
bool leadsToSoftmax(Operation *op) {
  for (unsigned step = 0; step < 6 && op; ++step) {
    if (isa<ds::SoftmaxOp, ds::AttentionOp>(op))
      return true;
    if (!op->hasOneUse() || !(movesElements(op) || isa<ds::BinaryOp, ds::SelectOp>(op)))
      return false;
    op = *op->user_begin();
  }
  return false;
}

} // namespace

StringRef roleAt(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (isa<ds::MatmulOp, ds::LinearOp, ds::ConvOp>(op))
    return number == 2 ? "bias" : "weight";
  if (isa<ds::GatherOp>(op))
    return number == 0 ? "table" : "";
  if (isa<ds::LayerNormOp, ds::RmsNormOp>(op))
    return number == 2 ? "bias" : number == 1 ? "scale" : "";
  if (isa<ds::ConcatOp>(op))
    return llvm::any_of(op->getOperands(), isActivation) ? "token" : "";
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || !isActivation(op->getOperand(1 - number)))
    return "";
  if (binary.getKind() == ds::BinaryKind::add)
    return isVector(use.get()) ? "bias" : leadsToSoftmax(op) ? "" : "table";
  return binary.getKind() == ds::BinaryKind::mul && isVector(use.get()) ? "scale" : "";
}

namespace {

/// Whether what is learned may be seen through: a sum or product with other weights, as of two biases, or of a scale
/// and a deviation. What divides or is taken away, such as statistics of a norm, is not seen.
bool isPartOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (movesElements(op) || joinsWeights(op))
    return true;
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || isActivation(op->getOperand(1 - use.getOperandNumber())))
    return false;
  bool isSymmetric = binary.getKind() == ds::BinaryKind::add || binary.getKind() == ds::BinaryKind::mul;
  bool isFirst = binary.getKind() == ds::BinaryKind::sub || binary.getKind() == ds::BinaryKind::div;
  return isSymmetric || (isFirst && use.getOperandNumber() == 0);
}

/// Whether a value of weights alone is made of a square root, such as a scale over a deviation.
bool holdsDeviation(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isActivation(value) || !(movesElements(op) || isa<ds::BinaryOp, ds::UnaryOp>(op)))
    return false;
  auto unary = dyn_cast<ds::UnaryOp>(op);
  return (unary && unary.getKind() == ds::UnaryKind::sqrt) || llvm::any_of(op->getOperands(), holdsDeviation);
}

/// Whether the op takes a norm's mean away, or the root of its variance.
bool isStatisticAt(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto unary = dyn_cast<ds::UnaryOp>(op))
    return unary.getKind() == ds::UnaryKind::sqrt;
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || binary.getKind() != ds::BinaryKind::sub || use.getOperandNumber() != 1 ||
      !isActivation(binary.getLhs()))
    return false;
  return llvm::any_of(binary->getUses(), [](OpOperand &scaled) {
    auto factor = dyn_cast<ds::BinaryOp>(scaled.getOwner());
    bool isScaling = factor && (factor.getKind() == ds::BinaryKind::mul || factor.getKind() == ds::BinaryKind::div);
    return isScaling && holdsDeviation(factor->getOperand(1 - scaled.getOperandNumber()));
  });
}

} // namespace

SmallVector<OpOperand *> roleUsesOf(Value weight) {
  SmallVector<OpOperand *> found;
  SmallVector<Value> open = {weight};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses())
      if (!roleAt(use).empty())
        found.push_back(&use);
      else if (isPartOf(use))
        open.push_back(use.getOwner()->getResult(0));
  }
  return found;
}

StringRef roleOf(Value weight) {
  SmallVector<OpOperand *> uses = roleUsesOf(weight);
  return uses.empty() ? "" : roleAt(*uses.front());
}

bool isStatistic(Value weight) {
  SmallVector<Value> open = {weight};
  while (!open.empty()) {
    for (OpOperand &use : open.pop_back_val().getUses()) {
      if (isStatisticAt(use))
        return true;
      auto binary = dyn_cast<ds::BinaryOp>(use.getOwner());
      bool addsEpsilon = binary && binary.getKind() == ds::BinaryKind::add && !isActivation(binary->getResult(0));
      if (addsEpsilon || movesElements(use.getOwner()))
        open.push_back(use.getOwner()->getResult(0));
    }
  }
  return false;
}

bool isRunning(ds::WeightOp weight) {
  return llvm::any_of(weight->getUses(), [](OpOperand &use) {
    auto op = dyn_cast<ds::RunningStatisticOp>(use.getOwner());
    return op && op.getRunning() == use.get();
  });
}

} // namespace deepstride
