// Looks backwards from a product: which ops change nothing but the rows that it reads, and read nothing but rows,
// numbers, and what all rows share column by column.
#include "passes/optimization/RowSteps.h"

#include "dialects/ds/Norms.h"
#include "dialects/ds/TileAccess.h"

using namespace mlir;

namespace deepstride {

static constexpr int64_t rowLimit = 16384; // bytes of a row, of which threads hold 128

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
static int64_t bytesOf(Value value) { return (elementOf(value).getIntOrFloatBitWidth() + 7) / 8; } // of an element

/// Whether the op computes elements of rows of these sizes, of rows and what is beside them.
static bool changesRows(Operation *op, const SizeVector &sizes, const SizeAnalysis &analysis) {
  if (!isFusablePointwise(op) || !ds::isCheapForRows(op) || analysis.facts(op->getResult(0)).sizes != sizes ||
      !ds::isTileElement(elementOf(op->getResult(0))))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (isSplat(operand))
      return true;
    const SizeVector &own = analysis.facts(operand).sizes;
    bool isShared = own.empty() || (own.size() == 1 && (own[0].isConstant(1) || own[0] == sizes.back()));
    return ds::isTileElement(elementOf(operand)) && (own == sizes || isShared);
  });
}

SmallVector<Operation *> rowSteps(ds::LinearOp product, const SizeAnalysis &analysis) {
  SmallVector<Operation *> steps;
  const SizeVector &sizes = analysis.facts(product.getInput()).sizes;
  bool hasNorm = false;
  Operation *shared = nullptr, *stored = nullptr; // codes that something else reads, too
  auto take = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != product->getBlock() || llvm::is_contained(steps, op) || steps.size() >= regionLimit)
      return;
    if (ds::isNorm(op)) {
      if (std::exchange(hasNorm, true))
        return;
    } else if (!(steps.empty() && isa<ds::QuantizeRowsOp>(op)) && !changesRows(op, sizes, analysis)) {
      return;
    } else if (!steps.empty() && op != stored &&
               llvm::any_of(op->getUsers(), [&](Operation *user) { return !llvm::is_contained(steps, user); })) {
      if (elementOf(op->getResult(0)).isInteger(8) && !shared)
        shared = op;
      return; // not yet, or it is in memory
    }
    steps.push_back(op);
  };
  take(product.getInput());
  for (size_t before = 0; before != steps.size();) {
    before = steps.size();
    for (Operation *step : SmallVector<Operation *>(steps))
      if (!ds::isNorm(step))
        for (Value operand : step->getOperands())
          take(operand);
    if (before == steps.size() && shared && !stored) { // the kernel stores these: a byte for each element
      stored = shared;
      take(stored->getResult(0));
    }
  }
  // The norm is the first to go.
  if (auto *norm = llvm::find_if(steps, ds::isNorm); norm != steps.end())
    std::rotate(norm, norm + 1, steps.end());
  return steps;
}

std::optional<StringRef> normObstacle(Operation *norm, const SizeAnalysis &analysis) {
  auto layer = dyn_cast<ds::LayerNormOp>(norm);
  uint64_t axis = layer ? layer.getAxis() : cast<ds::RmsNormOp>(norm).getAxis();
  if (axis + 1 != analysis.facts(norm->getOperand(0)).sizes.size())
    return "it spans several axes";
  if (llvm::any_of(norm->getOperands().drop_front(),
                   [&](Value value) { return analysis.facts(value).sizes.size() != 1; }))
    return "its scale or bias has several axes";
  return std::nullopt;
}

static std::optional<StringRef> stepObstacle(Operation *step, ArrayRef<Operation *> steps, ds::LinearOp product,
                                             const OpSet &region, const SizeAnalysis &analysis) {
  bool isNorm = ds::isNorm(step), areCodes = isa<ds::QuantizeRowsOp>(step);
  if (isNorm)
    if (auto reason = normObstacle(step, analysis))
      return reason;
  for (OpOperand &use : step->getUses()) {
    Operation *user = use.getOwner();
    if (llvm::is_contained(steps, user) || (isa<ds::LinearOp>(user) && region.contains(user)))
      continue;
    // Scales of rows are what the epilogue may read of it; anything else it reads from memory.
    if (areCodes && !(cast<OpResult>(use.get()).getResultNumber() > 0 && region.contains(user)))
      return "something else reads it after it is quantized";
    if (!areCodes && region.contains(user))
      return "what follows the product reads it, too";
  }
  if (isNorm)
    return std::nullopt;
  for (Value operand : step->getOperands()) {
    Operation *op = operand.getDefiningOp();
    // What could be computed in one kernel with the step would be stored for it.
    if (op && !llvm::is_contained(steps, op) && !isSplat(operand) && op->getBlock() == product->getBlock() &&
        isFusablePointwise(op) && op->hasOneUse() &&
        analysis.facts(operand).sizes == analysis.facts(product.getInput()).sizes)
      return "what it reads would be in memory instead";
  }
  return std::nullopt;
}

std::optional<std::pair<Operation *, StringRef>> rowStepsObstacle(ArrayRef<Operation *> steps, ds::LinearOp product,
                                                                  const OpSet &region, const SizeAnalysis &analysis) {
  if (!product.getPanel() || product.getColumns() == int64_t(0))
    return std::pair(steps.back(), StringRef("the product's weight is not packed"));
  auto length = analysis.facts(product.getInput()).sizes.back().constant();
  if (!length || *length * bytesOf(product.getInput()) > rowLimit)
    return std::pair(steps.back(), StringRef("its rows are too long for each thread to hold a block of them"));
  for (Operation *step : llvm::reverse(steps))
    if (auto reason = stepObstacle(step, steps, product, region, analysis))
      return std::pair(step, *reason);
  return std::nullopt;
}

} // namespace deepstride
