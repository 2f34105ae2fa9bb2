// ds-fuse-copies: what several transposes, slices and reshapes show is copied once, where something reads it that
// follows no windows. Works per block on what other regions have left. Which loops a copy becomes is left to codegen.
//
//   %1 = ds.transpose %x [1, 0] ; %2 = ds.slice %1 ...
// becomes
//   %2 = ds.fused { %1 = ds.transpose %x [1, 0] ; %2 = ds.slice %1 ... ; ds.yield %2 }
#include "passes/optimization/Passes.h"
#include "passes/optimization/RegionPass.h"
#include "passes/optimization/WindowChains.h"

namespace deepstride {
#define GEN_PASS_DEF_FUSECOPIES
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct FuseCopies : RegionPass<deepstride::impl::FuseCopiesBase<FuseCopies>> {
  void fuseAll() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ds::TransposeOp, ds::SliceOp>(op) && !isa<ds::FusedOp>(op->getParentOp()))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops)) // readers first: what they have taken in is not left
      if (!isa<ds::FusedOp>(op->getParentOp()) && !op->use_empty())
        fuse(op);
  }

  void fuse(Operation *op) {
    OpSet region;
    region.insert(op);
    OpOperand &source = op->getOpOperand(0);
    takeIn(windowChain(source, analysis, /*keepsRows=*/false), source, region, analysis);
    wrap(region, op);
  }
};

} // namespace
