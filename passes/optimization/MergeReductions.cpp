// ds-merge-reductions: gathers reductions of one input over the same axes into one ds.fused region, which reads the
// input once. Works per block, before elementwise ops are gathered. How they are combined is left to codegen.
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
      auto joined = llvm::find_if(regions, [&](const OpSet &region) { return joins(op, region); });
      if (joined == regions.end())
        joined = regions.insert(regions.end(), OpSet());
      joined->insert(op);
    }
    for (const OpSet &region : regions) {
      // An earlier region may have moved what stands between these.
      Operation *last = *llvm::max_element(region, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      auto moved = region.size() > 1 ? dependentsOf(region, last) : std::nullopt;
      if (!moved)
        continue;
      wrapRegion(region, last, *moved, analysis);
      count("reductions merged", static_cast<int64_t>(region.size()));
    }
  }

  static bool joins(ds::ReduceOp op, const OpSet &region) {
    auto first = cast<ds::ReduceOp>(region.front());
    if (region.size() == mostReductions || !ds::shareScan(first, op))
      return false;
    OpSet larger(region);
    larger.insert(op);
    return dependentsOf(larger, op).has_value();
  }

  SizeAnalysis analysis;
};

} // namespace
