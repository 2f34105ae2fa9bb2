// Gathers elementwise ops, with the broadcasts and transposes that feed them, into ds.fused regions of one result.
// Works per block on values whose symbolic sizes are equal. Which loops the region becomes is left to codegen.
//
//   %1 = ds.binary add %0, %b ; %2 = ds.unary tanh %1
// becomes
//   %2 = ds.fused { %1 = ds.binary add %0, %b ; %2 = ds.unary tanh %1 ; ds.yield %2 }
#include "passes/Report.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsDialect.h"
#include "llvm/ADT/SetVector.h"

namespace deepstride {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

// What scans an operand is left alone: the operand must be in memory.
bool isElementwise(Operation *op) {
  auto element = dyn_cast<ds::PerElement>(op);
  return element && element.isPointwise() && element.joinsRegions() && !element.scannedOperand();
}

/// Reads at another index: free inside a loop as long as the innermost axis stays the innermost.
bool isCheapRead(Operation *op) {
  if (auto transpose = dyn_cast<ds::TransposeOp>(op))
    return !transpose.getPermutation().empty() &&
           transpose.getPermutation().back() == static_cast<int64_t>(transpose.getPermutation().size()) - 1;
  return false;
}

struct FuseElementwise : deepstride::impl::FuseElementwiseBase<FuseElementwise>, PassReport {
  // Larger regions only lengthen compilation: registers run out first.
  static constexpr size_t regionLimit = 32;

  void runOnOperation() override {
    count("ops fused", 0);
    if (!getOperation()->hasAttr(ds::entryAttr))
      return;
    auto result = SizeAnalysis::run(getOperation());
    if (failed(result))
      return signalPassFailure();
    analysis = std::move(*result);
    getOperation().walk([&](Block *block) {
      if (!isa<ds::FusedOp>(block->getParentOp()))
        fuse(*block);
    });
  }

  void fuse(Block &block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    llvm::SmallPtrSet<Operation *, 32> done;
    for (Operation *root : llvm::reverse(ops)) {
      if (done.contains(root) || !isElementwise(root))
        continue;
      llvm::SetVector<Operation *> region;
      region.insert(root);
      for (size_t i = 0; i < region.size() && region.size() < regionLimit; ++i)
        for (Value operand : region[i]->getOperands())
          if (joins(operand, root, region))
            region.insert(operand.getDefiningOp());
      done.insert(region.begin(), region.end());
      if (region.size() > 1)
        wrap(root, region);
    }
  }

  bool joins(Value operand, Operation *root, const llvm::SetVector<Operation *> &region) {
    Operation *op = operand.getDefiningOp();
    if (!op || op->getBlock() != root->getBlock() || region.contains(op) || !(isElementwise(op) || isCheapRead(op)))
      return false;
    return llvm::all_of(op->getUsers(), [&](Operation *user) { return region.contains(user); }) &&
           analysis.facts(operand).sizes == analysis.facts(root->getResult(0)).sizes;
  }

  void wrap(Operation *root, llvm::SetVector<Operation *> &region) {
    OpBuilder builder(root);
    auto fused = ds::FusedOp::create(builder, root->getLoc(), root->getResultTypes());
    if (Attribute names = root->getAttr(ds::valueNameAttr))
      fused->setAttr(ds::valueNameAttr, names);
    root->getResult(0).replaceAllUsesWith(fused.getResult(0));
    analysis.set(fused.getResult(0), analysis.facts(root->getResult(0)));
    Block &body = fused.getBody().emplaceBlock();
    SmallVector<Operation *> ordered(region.begin(), region.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : ordered)
      op->moveBefore(&body, body.end());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    ds::YieldOp::create(inner, root->getLoc(), root->getResult(0));
    count("ops fused", ordered.size());
    count("regions");
  }

  SizeAnalysis analysis;
};

} // namespace
