// Gathers elementwise ops, with the broadcasts and transposes that feed them, into ds.fused regions. Works per block on
// values whose symbolic sizes are equal. A value that is also used outside becomes a result of its region, so that an
// optimizer's step is one pass over memory. Which loops the region becomes is left to codegen.
//
//   %1 = ds.binary add %0, %b ; %2 = ds.unary tanh %1
// becomes
//   %2 = ds.fused { %1 = ds.binary add %0, %b ; %2 = ds.unary tanh %1 ; ds.yield %2 }
#include "passes/optimization/Passes.h"
#include "passes/optimization/RegionPass.h"
#include "passes/optimization/WindowChains.h"

namespace deepstride {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// Reads at another index: free inside a loop as long as the innermost axis stays the innermost.
bool isCheapRead(Operation *op) {
  if (auto transpose = dyn_cast<ds::TransposeOp>(op))
    return !transpose.getPermutation().empty() &&
           transpose.getPermutation().back() == static_cast<int64_t>(transpose.getPermutation().size()) - 1;
  return false;
}

struct FuseElementwise : RegionPass<deepstride::impl::FuseElementwiseBase<FuseElementwise>> {
  // Tensors that one loop reads and writes where it has several results: prefetchers follow no more.
  static constexpr size_t streamLimit = 16;

  void fuseAll() override {
    getOperation().walk([&](Block *block) {
      if (!isa<ds::FusedOp>(block->getParentOp()))
        fuse(*block);
    });
  }

  void fuse(Block &block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    done.clear();
    for (Operation *root : llvm::reverse(ops)) {
      if (done.contains(root) || !isFusablePointwise(root) || root->use_empty())
        continue;
      OpSet region;
      region.insert(root);
      for (size_t i = 0; i < region.size() && region.size() < regionLimit; ++i) {
        for (Value operand : region[i]->getOperands())
          if (region.size() < regionLimit && joins(operand.getDefiningOp(), root, region))
            region.insert(operand.getDefiningOp());
        // What reads a value of the region beside it belongs to the same pass over memory.
        for (Operation *user : region[i]->getUsers())
          if (region.size() < regionLimit && isFusablePointwise(user) && joins(user, root, region))
            region.insert(user);
      }
      Operation *last = root;
      takeInsertions(region, last, /*rowAxes=*/std::nullopt, analysis);
      takeSlices(region, last);
      done.insert(region.begin(), region.end());
      if (region.size() > 1)
        wrapAll(last, region);
    }
  }

  bool joins(Operation *op, Operation *root, OpSet &region) {
    // What nobody reads was no root, and may stand behind this one, as may its operands.
    if (!op || op->getBlock() != root->getBlock() || region.contains(op) || done.contains(op) || op->use_empty() ||
        root->isBeforeInBlock(op) || !(isFusablePointwise(op) || isCheapRead(op)) ||
        analysis.facts(op->getResult(0)).sizes != analysis.facts(root->getResult(0)).sizes)
      return false;
    bool isInner = llvm::all_of(op->getUsers(), [&](Operation *user) { return region.contains(user); });
    bool hasOneResult =
        llvm::all_of(region, [&](Operation *member) { return member == root || !isRegionResult(member, region); });
    if (isInner && hasOneResult)
      return true;
    if (!isInner && !isFusablePointwise(op))
      return false;
    OpSet larger(region);
    larger.insert(op);
    return streams(larger) <= streamLimit && dependentsOf(larger, root).has_value();
  }

  size_t streams(const OpSet &region) {
    llvm::SmallDenseSet<Value> values;
    for (Operation *op : region) {
      if (isRegionResult(op, region))
        values.insert(op->getResult(0));
      for (Value operand : op->getOperands())
        if (!region.contains(operand.getDefiningOp()))
          values.insert(operand);
    }
    return values.size();
  }

  /// Has operands read in place what slices show of memory, where rows of it are worth a vector.
  void takeSlices(OpSet &region, Operation *last) {
    constexpr int64_t shortest = 16, few = 4096; // elements of a row; of all, which take less than a launch
    for (Operation *op : llvm::to_vector(region))
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *shown = operand.get().getDefiningOp();
        if (region.contains(shown) || !isFusablePointwise(op))
          continue;
        auto chain = windowChain(operand, analysis, /*keepsRows=*/true);
        if (llvm::none_of(chain, llvm::IsaPred<ds::SliceOp>) ||
            isChangedBefore(chain.back()->getOperand(0), region, last))
          continue;
        const SizeVector &sizes = analysis.facts(operand.get()).sizes, &around = analysis.facts(op->getResult(0)).sizes;
        bool isOneOfMany = !sizes.empty() && sizes.back().isConstant(1) && !around.back().isConstant(1);
        bool areFew = product(around).constant().value_or(few + 1) <= few;
        if (isOneOfMany || areFew || neighboursShown(chain, analysis).constant().value_or(shortest) >= shortest)
          takeIn(chain, operand, region, analysis);
      }
  }

  void wrapAll(Operation *root, OpSet &region) {
    // Beyond the limit there is one result and nothing to move.
    wrapRegion(region, root, dependentsOf(region, root).value_or(SmallVector<Operation *>()), analysis);
    count("ops fused", static_cast<int64_t>(region.size()));
    count("regions");
  }

  llvm::SmallPtrSet<Operation *, 32> done; // of the block
};

} // namespace
