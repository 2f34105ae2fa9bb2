// Gathers elementwise ops, with the broadcasts and transposes that feed them, into ds.fused regions. Works per block on
// values whose symbolic sizes are equal. A value that is also used outside becomes a result of its region, so that an
// optimizer's step is one pass over memory. Which loops the region becomes is left to codegen.
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
  // Tensors that one loop reads and writes where it has several results: prefetchers follow no more.
  static constexpr size_t streamLimit = 16;
  // Ops between the first and the last of a region: what is far apart is not worth keeping alive for.
  static constexpr size_t spanLimit = 512;

  using Region = llvm::SetVector<Operation *>;

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
    done.clear();
    for (Operation *root : llvm::reverse(ops)) {
      if (done.contains(root) || !isElementwise(root) || root->use_empty())
        continue;
      Region region;
      region.insert(root);
      for (size_t i = 0; i < region.size() && region.size() < regionLimit; ++i) {
        for (Value operand : region[i]->getOperands())
          if (region.size() < regionLimit && joins(operand.getDefiningOp(), root, region))
            region.insert(operand.getDefiningOp());
        // What reads a value of the region beside it belongs to the same pass over memory.
        for (Operation *user : region[i]->getUsers())
          if (region.size() < regionLimit && isElementwise(user) && joins(user, root, region))
            region.insert(user);
      }
      done.insert(region.begin(), region.end());
      if (region.size() > 1)
        wrap(root, region);
    }
  }

  bool joins(Operation *op, Operation *root, Region &region) {
    // What nobody reads was no root, and may stand behind this one, as may its operands.
    if (!op || op->getBlock() != root->getBlock() || region.contains(op) || done.contains(op) || op->use_empty() ||
        root->isBeforeInBlock(op) || !(isElementwise(op) || isCheapRead(op)) ||
        analysis.facts(op->getResult(0)).sizes != analysis.facts(root->getResult(0)).sizes)
      return false;
    bool isInner = llvm::all_of(op->getUsers(), [&](Operation *user) { return region.contains(user); });
    bool hasOneResult =
        llvm::all_of(region, [&](Operation *member) { return member == root || !isResult(member, region); });
    if (isInner && hasOneResult)
      return true;
    if (!isInner && !isElementwise(op))
      return false;
    Region larger(region);
    larger.insert(op);
    return streams(larger) <= streamLimit && dependents(larger, root).has_value();
  }

  static bool isResult(Operation *op, const Region &region) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return !region.contains(user); });
  }

  size_t streams(const Region &region) {
    llvm::SmallDenseSet<Value> values;
    for (Operation *op : region) {
      if (isResult(op, region))
        values.insert(op->getResult(0));
      for (Value operand : op->getOperands())
        if (!region.contains(operand.getDefiningOp()))
          values.insert(operand);
    }
    return values.size();
  }

  /// What lies between the region's ops and needs their results: it has to move behind the region, which stands where
  /// its last op stood. Nothing where it cannot, or where the region needs it in turn.
  std::optional<SmallVector<Operation *>> dependents(const Region &region, Operation *root) {
    Operation *first = root;
    for (Operation *op : region)
      if (op->isBeforeInBlock(first))
        first = op;
    SmallVector<Operation *> moved;
    llvm::SmallPtrSet<Operation *, 16> late;
    size_t span = 0;
    for (Operation *op = first; op != root->getNextNode(); op = op->getNextNode()) {
      if (++span > spanLimit)
        return std::nullopt;
      bool isMember = region.contains(op);
      bool needs = false;
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          needs |= operand.getDefiningOp() &&
                   (late.contains(operand.getDefiningOp()) || (!isMember && region.contains(operand.getDefiningOp())));
      });
      if (!needs)
        continue;
      if (isMember || !(isa<ds::FusedOp>(op) || (op->getNumRegions() == 0 && isPure(op))))
        return std::nullopt;
      late.insert(op);
      moved.push_back(op);
    }
    return moved;
  }

  void wrap(Operation *root, Region &region) {
    SmallVector<Operation *> ordered(region.begin(), region.end());
    auto moved = dependents(region, root);
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    SmallVector<Value> results;
    SmallVector<Attribute> names;
    bool hasNames = false;
    OpBuilder builder(root);
    for (Operation *op : ordered) {
      if (!isResult(op, region))
        continue;
      results.push_back(op->getResult(0));
      auto named = op->getAttrOfType<ArrayAttr>(ds::valueNameAttr);
      hasNames |= named && !named.empty();
      names.push_back(named && !named.empty() ? named[0] : builder.getStringAttr(""));
    }
    auto fused = ds::FusedOp::create(builder, root->getLoc(), TypeRange(ValueRange(results)));
    if (hasNames)
      fused->setAttr(ds::valueNameAttr, builder.getArrayAttr(names));
    for (auto [value, result] : llvm::zip_equal(results, fused.getResults())) {
      value.replaceUsesWithIf(result, [&](OpOperand &use) { return !region.contains(use.getOwner()); });
      analysis.set(result, analysis.facts(value));
    }
    if (moved) // beyond the limit there is one result and nothing to move
      for (Operation *op : llvm::reverse(*moved))
        op->moveAfter(fused);
    Block &body = fused.getBody().emplaceBlock();
    for (Operation *op : ordered)
      op->moveBefore(&body, body.end());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    ds::YieldOp::create(inner, root->getLoc(), results);
    count("ops fused", ordered.size());
    count("regions");
  }

  SizeAnalysis analysis;
  llvm::SmallPtrSet<Operation *, 32> done; // of the block
};

} // namespace
