#include "codegen/cpu/LoopWeights.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace deepstride {

/// Vectors that a loop carries from one iteration to the next, from which on it is the tile of a product: anything else
/// that our kernels repeat carries fewer.
static constexpr unsigned vectorsOfTile = 6;

/// What other loops are said to repeat. LLVM takes 32 where it knows nothing.
static constexpr unsigned fewIterations = 2;

static bool isTile(const llvm::Loop &loop) {
  return loop.isInnermost() && llvm::count_if(loop.getHeader()->phis(), [](const llvm::PHINode &phi) {
                                 return phi.getType()->isVectorTy();
                               }) >= vectorsOfTile;
}

void weighLoops(llvm::Module &module, llvm::FunctionAnalysisManager &functions) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    auto loops = functions.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder();
    llvm::SmallPtrSet<const llvm::Loop *, 16> aroundTiles;
    for (llvm::Loop *loop : loops)
      if (isTile(*loop))
        for (const llvm::Loop *outer = loop; outer; outer = outer->getParentLoop())
          aroundTiles.insert(outer);
    if (aroundTiles.empty())
      continue;
    for (llvm::Loop *loop : loops)
      if (!aroundTiles.contains(loop))
        llvm::setLoopEstimatedTripCount(loop, fewIterations, /*EstimatedLoopInvocationWeight=*/1);
  }
}

} // namespace deepstride
