// Gathers what an attention reads into its region: queries, keys and values are windows of what is in memory, or rows
// that the kernel computes. What is stored may be rounded behind it.
#include "passes/optimization/AttentionRegions.h"
#include "passes/optimization/ProductSteps.h"

#include "dialects/ds/HeadRows.h"
#include "passes/optimization/ComputedRows.h"
#include "passes/optimization/WindowChains.h"

using namespace mlir;

namespace deepstride {

namespace {

class AttentionGatherer {
public:
  AttentionGatherer(ds::AttentionOp attention, bool computesRows, SizeAnalysis &analysis)
      : attention(attention), computesRows(computesRows), analysis(analysis) {}

  std::pair<OpSet, Operation *> run() {
    last = attention;
    if (attention->hasOneUse())
      if (auto transpose = dyn_cast<ds::TransposeOp>(*attention->user_begin());
          transpose && transpose->getBlock() == attention->getBlock() && keepsLastAxis(transpose))
        last = transpose;
    region.insert(attention);
    region.insert(last);
    if (computesRows)
      takeRounding();
    SmallVector<OpOperand *> inPlace;
    RowReader reader{attention,
                     {&attention.getQueryMutable(), &attention.getKeyMutable(), &attention.getValueMutable()},
                     llvm::to_vector(attention->getOperands().drop_front(3))};
    for (OpOperand *operand : reader.operands)
      if (!computesRows || !takeComputedRows(reader, *operand, region, last, analysis))
        inPlace.push_back(operand);
    for (OpOperand *operand : inPlace) {
      bool isKey = operand == &attention.getKeyMutable(); // packed before it is multiplied, whichever axis is the last
      takeIn(windowChain(*operand, analysis, /*keepsRows=*/!isKey), *operand, region, analysis);
    }
    return {region, last};
  }

private:
  /// The result is stored as it is multiplied next, in bf16 or as f32 that was rounded to f16: a reshape of a whole
  /// buffer before that changes nothing.
  void takeRounding() {
    auto element = [](Value value) { return mlir::cast<RankedTensorType>(value.getType()).getElementType(); };
    if (!element(attention->getResult(0)).isF32())
      return;
    SmallVector<Operation *> ops;
    for (Operation *op = last; op->hasOneUse();) {
      op = *op->user_begin();
      auto cast = dyn_cast<ds::CastOp>(op);
      if (op->getBlock() != attention->getBlock() || !(cast || isa<ds::ReshapeOp>(op)))
        return;
      ops.push_back(op);
      if (!cast || element(cast.getResult()).isF16())
        continue;
      bool isBack = element(cast.getInput()).isF16() && element(cast.getResult()).isF32();
      if (!isBack && !element(cast.getResult()).isBF16())
        return;
      region.insert(ops.begin(), ops.end());
      last = cast;
      return;
    }
  }

  ds::AttentionOp attention;
  bool computesRows;
  SizeAnalysis &analysis;
  OpSet region;
  Operation *last = nullptr;
};

} // namespace

std::pair<OpSet, Operation *> attentionRegion(ds::AttentionOp attention, bool computesRows, SizeAnalysis &analysis) {
  return AttentionGatherer(attention, computesRows, analysis).run();
}

/// Whether the op computes elements of its first operand and of numbers, as codes are made of floats.
static bool changesByNumbers(Operation *op) {
  return isa<ds::UnaryOp>(op) || (isa<ds::BinaryOp>(op) && isSplat(op->getOperand(1)));
}

ds::LinearOp projectionOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto linear = dyn_cast<ds::LinearOp>(op))
      return linear;
    if (ds::LinearOp product = productBehind(value))
      return product;
    if (auto concat = dyn_cast<ds::ConcatOp>(op))
      value = concat.getInputs().back();
    else if (auto insert = dyn_cast<ds::InsertOp>(op))
      value = insert.getUpdate();
    else if (auto scatter = dyn_cast<ds::ScatterElementsOp>(op)) // each sequence has its own place
      value = scatter.getUpdates();
    else if (ds::isWindowOp(op) || ds::isRowOp(op) || isa<ds::BroadcastOp, ds::CastOp>(op) || changesByNumbers(op))
      value = op->getOperand(0);
    else
      break;
  }
  return {};
}

} // namespace deepstride
