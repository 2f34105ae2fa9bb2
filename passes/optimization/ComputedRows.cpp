// Follows an operand of attention back to memory. Rows are windows of a buffer, normalized and turned behind it, or
// cached rows and new ones, which become results of the region where something else reads them. What cannot be taken in
// together is left where it is.
#include "passes/optimization/ComputedRows.h"

#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Recomputation.h"
#include "mlir/IR/IRMapping.h"
#include "passes/optimization/WindowChains.h"

using namespace mlir;

namespace deepstride {

namespace {

/// The ops between an operand and a value in memory, nearest first.
struct RowChain {
  OpOperand *operand;
  SmallVector<Operation *> ops;
  Operation *end = nullptr; // what ends the chain, where that is worth a remark, and why
  StringRef why;

  bool computes() const { return llvm::any_of(ops, ds::isRowOp); }
  Value source() const { return ops.empty() ? operand->get() : ops.back()->getOperand(0); }
};

class RowGatherer : RowReader {
public:
  RowGatherer(const RowReader &reader, OpSet &region, Operation *last, SizeAnalysis &analysis)
      : RowReader(reader), region(region), last(last), analysis(analysis) {}

  bool compute(OpOperand &operand) {
    if (!ds::holdsRows(cast<RankedTensorType>(operand.get().getType()).getElementType()))
      return false;
    bool isQuery = &operand == operands.front();
    SmallVector<RowChain> chains;
    OpSet larger(region);
    Operation *joint = operand.get().getDefiningOp();
    if (isQuery || !isa_and_present<ds::ConcatOp, ds::InsertOp, ds::ScatterElementsOp>(joint))
      joint = nullptr;
    if (joint) {
      if (auto reason = jointObstacle(joint)) {
        stays(joint, *reason);
        return false;
      }
      for (OpOperand &input : joint->getOpOperands())
        if (readsWindows(input)) // what is inserted, and all of what is joined
          chains.push_back(rowsBehind(input, /*mayYield=*/true));
      larger.insert(joint);
    } else {
      chains.push_back(rowsBehind(operand, /*mayYield=*/!isQuery));
      bool yields = !chains.front().ops.empty() && isNeededInMemory(chains.front().ops.front());
      if (!chains.front().computes() && !yields && !ds::isRowOp(chains.front().end))
        return false;
    }
    for (const RowChain &chain : chains)
      if (chain.end && !isa<ds::ReshapeOp>(chain.end))
        stays(chain.end, chain.why);
    if (!joint && chains.front().ops.empty())
      return false;
    for (RowChain &chain : chains)
      for (Operation *op : chain.ops)
        if (ds::isRowOp(op) || op->hasOneUse() || isNeededInMemory(op))
          larger.insert(op);
    if (auto reason = jointObstacle(operand, larger, chains)) {
      stays(operand.get().getDefiningOp(), *reason);
      return false;
    }
    if (joint && region.insert(joint)) // keys may be values, too
      if (auto rows = ds::PlacedRows::of(operand.get()))
        takePlaces(*rows);
    for (RowChain &chain : chains)
      take(chain);
    return true;
  }

private:
  void stays(Operation *op, StringRef why) {
    op->emitRemark() << "does not join the region of '" << anchor->getName().getStringRef() << "': " << why;
  }

  /// Whether something reads the value that follows no windows.
  bool isNeededInMemory(Operation *op) const {
    return !llvm::all_of(op->getUses(), [&](OpOperand &use) {
      return llvm::is_contained(operands, &use) || (use.getOwner()->getBlock() == op->getBlock() && readsWindows(use));
    });
  }

  /// Windows and row ops behind an operand whose rows stay contiguous. Row ops have one reader; so has, but for
  /// windows, what they yield, unless the first of the chain may become a result of the region.
  RowChain rowsBehind(OpOperand &operand, bool mayYield) {
    RowChain chain{&operand, {}, nullptr, {}};
    bool isCopied = false; // a window that several read is copied, and what computes its rows is not
    for (Operation *op = operand.get().getDefiningOp(); ds::isWindowOp(op) || ds::isRowOp(op);
         op = op->getOperand(0).getDefiningOp()) {
      bool isShared = ds::isRowOp(op) ? !op->hasOneUse() : isNeededInMemory(op);
      bool isOfAnchor = op->getBlock() == anchor->getBlock();
      if (!isOfAnchor || (isShared && !(mayYield && chain.ops.empty()))) {
        chain.end = op;
        chain.why = isOfAnchor ? "something else reads it" : "it is in another block";
        break;
      }
      if (isCopied && ds::isRowOp(op)) {
        chain.end = op;
        chain.why = "something else reads it";
        break;
      }
      isCopied |= !isShared && !op->hasOneUse();
      chain.ops.push_back(op);
    }
    auto isReached = [&] {
      auto rows = ds::headRows(
          operand.get(), [&](Value value) { return value == chain.source(); },
          [&](Value value) { return asSymbols(analysis.facts(value).sizes); },
          [](ArrayAttr starts) { return asSymbols(*sizesFromAttribute(starts)); });
      return rows && rows->window.strides.back().isConstant(1);
    };
    // A reshape of a whole buffer is a view of it already.
    while (!chain.ops.empty() && (isa<ds::ReshapeOp>(chain.ops.back()) || !isReached())) {
      if (!isa<ds::ReshapeOp>(chain.ops.back())) {
        chain.end = chain.ops.back();
        chain.why = "its rows are not contiguous, or joined with others";
      }
      chain.ops.pop_back();
    }
    return chain;
  }

  /// What is against putting rows together in the kernel, where an op does it.
  std::optional<StringRef> jointObstacle(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (type.getRank() != 4)
      return "it has not four axes";
    if (op->getBlock() != anchor->getBlock())
      return "it is in another block";
    auto concat = dyn_cast<ds::ConcatOp>(op);
    bool isOfTokens = concat && concat.getAxis() == 2;
    if (isa<ds::ScatterElementsOp>(op)) {
      auto rows = ds::PlacedRows::of(op->getResult(0));
      isOfTokens = rows && rows->fit([&](Value value) { return analysis.facts(value).sizes; });
    }
    if (auto insert = dyn_cast<ds::InsertOp>(op)) {
      const SizeVector &rows = analysis.facts(insert.getUpdate()).sizes, &all = analysis.facts(insert.getInto()).sizes;
      SizeVector starts = *sizesFromAttribute(insert.getStarts());
      isOfTokens = llvm::all_of(ArrayRef<size_t>{0, 1, 3},
                                [&](size_t axis) { return starts[axis].isConstant(0) && rows[axis] == all[axis]; });
    }
    return isOfTokens ? std::nullopt : std::optional<StringRef>("it joins something else than tokens");
  }

  /// Gives the scatter what chooses its places: they cost nothing, and several layers share them.
  void takePlaces(const ds::PlacedRows &rows) {
    IRMapping mapping;
    Operation *scatter = rows.scatter;
    for (Operation *op : llvm::reverse(ArrayRef(rows.ops).drop_front())) {
      OpBuilder builder(scatter);
      Operation *copy = builder.clone(*op, mapping);
      copy->setAttr(ds::recomputedAttr, builder.getUnitAttr()); // an equal op outside does not take its place
      mapping.map(op->getResult(0), copy->getResult(0));
      analysis.set(copy->getResult(0), analysis.facts(op->getResult(0)));
      region.insert(copy);
    }
    for (OpOperand &operand : scatter->getOpOperands())
      operand.set(mapping.lookupOrDefault(operand.get()));
    for (Operation *op : ArrayRef(rows.ops).drop_front())
      if (op->use_empty())
        op->erase();
  }

  /// What is against computing an operand with the ops that `larger` has beside the region's.
  std::optional<StringRef> jointObstacle(OpOperand &operand, const OpSet &larger, ArrayRef<RowChain> chains) {
    auto isInside = [&](Value value) { return value.getDefiningOp() && larger.contains(value.getDefiningOp()); };
    bool readsInside = llvm::any_of(others, isInside) ||
                       llvm::any_of(chains, [&](const RowChain &chain) { return isInside(chain.source()); });
    for (Operation *op : larger)
      if (ds::isRowOp(op) || isa<ds::InsertOp>(op))
        readsInside |= llvm::any_of(op->getOperands().drop_front(), isInside);
    for (Operation *op : larger)
      if (auto rows = isa<ds::ScatterElementsOp>(op) ? ds::PlacedRows::of(op->getResult(0)) : std::nullopt)
        readsInside |= isInside(rows->cache) || isInside(rows->lengths) || isInside(rows->places) ||
                       (rows->pad && isInside(rows->pad.getValue()));
    // Other operands are computed of what is in memory before.
    for (OpOperand *other : operands) {
      if (other == &operand || (other->get() == operand.get() && other != operands.front()))
        continue;
      for (Operation *op = other->get().getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
        readsInside |= larger.contains(op) && !region.contains(op);
        if (!ds::isWindowOp(op) && !ds::isRowOp(op))
          break;
      }
    }
    if (readsInside)
      return "the attention reads it in another way, too";
    return dependentsOf(larger, last) ? std::nullopt : std::optional<StringRef>("something between them needs it");
  }

  /// Gives the reader ops of its own, as takeIn does for windows alone.
  void take(const RowChain &chain) {
    OpOperand *read = chain.operand;
    SmallVector<Operation *> windows;
    auto flush = [&] {
      takeIn(windows, *read, region, analysis);
      windows.clear();
    };
    for (Operation *op : chain.ops) {
      if (ds::isWindowOp(op) && !isNeededInMemory(op)) {
        windows.push_back(op);
        continue;
      }
      flush();
      region.insert(op);
      read = &op->getOpOperand(0);
    }
    flush();
  }

  OpSet &region;
  Operation *last;
  SizeAnalysis &analysis;
};

} // namespace

bool takeComputedRows(const RowReader &reader, OpOperand &operand, OpSet &region, Operation *last,
                      SizeAnalysis &analysis) {
  return RowGatherer(reader, region, last, analysis).compute(operand);
}

} // namespace deepstride
