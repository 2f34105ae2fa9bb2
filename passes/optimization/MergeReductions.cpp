// ds-merge-reductions: gathers reductions of one input over the same axes into one ds.fused region, which reads the
// input once; so do the extremes of all of a kernel's results, each of a few numbers. What is computed of the numbers
// that a whole tensor is reduced to, as the scale of its codes, joins.
// Works per block, before elementwise ops are gathered. How they are combined is left to codegen.
//
//   %1 = ds.reduce max %0 axes [1] keep false      %1, %2 = ds.fused { ds.reduce max %0 axes [1] keep false
//   %2 = ds.reduce min %0 axes [1] keep false  =>                      ds.reduce min %0 axes [1] keep false
//                                                                      ds.yield }
#include "dialects/ds/Reductions.h"
#include "passes/Report.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/Regions.h"

namespace deepstride {
#define GEN_PASS_DEF_MERGEREDUCTIONS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct MergeReductions : deepstride::impl::MergeReductionsBase<MergeReductions>, PassReport {
  static constexpr size_t mostReductions = 4; // four vectors of accumulators each

  void runOnOperation() override {
    count("reductions merged", 0);
    count("ops fused", 0);
    if (!getOperation()->hasAttr(ds::entryAttr))
      return;
    auto result = SizeAnalysis::run(getOperation());
    if (failed(result))
      return signalPassFailure();
    analysis = std::move(*result);
    getOperation().walk([&](Block *block) {
      if (!isa<ds::FusedOp>(block->getParentOp()))
        merge(*block);
    });
  }

  void merge(Block &block) {
    SmallVector<OpSet> regions;
    for (auto op : block.getOps<ds::ReduceOp>()) {
      if (op->use_empty())
        continue;
      auto *joined = llvm::find_if(regions, [&](const OpSet &region) { return joins(op, region); });
      if (joined == regions.end())
        joined = regions.insert(regions.end(), OpSet());
      joined->insert(op);
    }
    for (const OpSet &region : regions) {
      // An earlier region may have moved what stands between these.
      Operation *last = *llvm::max_element(region, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      if (!dependentsOf(region, last))
        continue;
      OpSet whole(region);
      takeFollowers(whole, last);
      if (whole.size() == 1)
        continue;
      wrapRegion(whole, last, *dependentsOf(whole, last), analysis);
      if (region.size() > 1)
        count("reductions merged", static_cast<int64_t>(region.size()));
      count("ops fused", static_cast<int64_t>(whole.size() - region.size()));
    }
  }

  /// Takes in elementwise ops of nothing but the region's numbers. Rows, whose results threads share, have no
  /// followers.
  void takeFollowers(OpSet &region, Operation *&last) {
    if (!ds::reducesWhole(cast<ds::ReduceOp>(region.front())))
      return;
    for (size_t i = 0; i < region.size() && region.size() < regionLimit; ++i)
      for (Operation *user : region[i]->getUsers())
        if (region.size() < regionLimit && follows(user, region))
          takeBehind(region, user, last);
  }

  bool follows(Operation *op, const OpSet &region) {
    return op->getBlock() == region.front()->getBlock() && !region.contains(op) && isFusablePointwise(op) &&
           !isa<ds::BitcastOp>(op) && !op->use_empty() &&
           analysis.facts(op->getResult(0)).sizes == analysis.facts(region.front()->getResult(0)).sizes &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isSplat(operand) || region.contains(operand.getDefiningOp()); });
  }

  static bool joins(ds::ReduceOp op, const OpSet &region) {
    auto first = cast<ds::ReduceOp>(region.front());
    if (region.size() == mostReductions || !(ds::shareScan(first, op) || ds::shareKernel(first, op)))
      return false;
    OpSet larger(region);
    larger.insert(op);
    return dependentsOf(larger, op).has_value();
  }

  SizeAnalysis analysis;
};

} // namespace
