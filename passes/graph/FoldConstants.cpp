// ds-fold-constants: moves ops over weights and constants into the recipes of weights. Of a region of such ops, the
// values that the rest of the program reads become weights; the ops between vanish. Evaluation is packaging's, but for
// small constants, which are evaluated here.
//
//   %0 = ds.weight @w : tensor<8x4xf32>                  ds.recipe @w_t { source, transpose, yield }
//   %1 = ds.transpose %0 [1, 0] : ...            =>      %1 = ds.weight @w_t : tensor<4x8xf32>
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"
#include "passes/graph/Recipes.h"

#include "dialects/ds/RecipeOps.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_FOLDCONSTANTS
#include "passes/graph/Passes.h.inc"

namespace {
struct FoldConstants : impl::FoldConstantsBase<FoldConstants>, PassReport {
  void runOnOperation() override {
    count("folded", 0);
    RecipeBook recipes(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      fold(function, recipes);
      eraseDeadOps(function);
    }
    eraseUnusedRecipes(getOperation());
  }

  void fold(func::FuncOp function, RecipeBook &recipes) {
    llvm::DenseSet<Operation *> constant; // computed from constants only
    SmallVector<Operation *> candidates;
    function.walk([&](ds::ResultInference op) {
      bool fromConstants = op->getNumOperands() > 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
                             Operation *source = operand.getDefiningOp();
                             return isa_and_present<ds::ConstantOp, ds::WeightOp>(source) || constant.contains(source);
                           });
      if (!fromConstants)
        return;
      if (!isStorable(op)) {
        if (isRecipeOp(op) && isa<ds::BroadcastOp, ds::GatherOp, ds::BinaryOp>(op.getOperation()))
          op->emitRemark() << "stays in the program: storing its result would take more than its operands";
        return;
      }
      constant.insert(op);
      candidates.push_back(op);
    });
    for (Operation *op : candidates) {
      bool isRead = llvm::any_of(op->getUsers(), [&](Operation *user) { return !constant.contains(user); });
      if (!isRead)
        continue;
      OpBuilder builder(op);
      Value stored = recipes.store(builder, op);
      if (!stored) {
        op->emitRemark() << "stays in the program: its recipe would have too many ops";
        continue;
      }
      // Only readers outside: the ops between still stand for recipes that are yet to be written.
      op->getResult(0).replaceUsesWithIf(stored, [&](OpOperand &use) { return !constant.contains(use.getOwner()); });
      count("folded");
    }
  }
};
} // namespace

} // namespace deepstride
