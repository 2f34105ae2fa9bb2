// ds-merge-duplicates: ops that compute the same become the first of them, whatever the model called their values,
// where a common subexpression elimination goes by names, too. Exporters that write each layer by itself (Keras) build
// masks and angles in every one.
//
//   %1 = ds.binary mul %a, %b {ds.values = ["mask_1"]}
//   %2 = ds.binary mul %a, %b {ds.values = ["mask_2"]}    =>    %1 alone
#include "passes/Report.h"
#include "passes/graph/Passes.h"

#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_MERGEDUPLICATES
#include "passes/graph/Passes.h.inc"

namespace {
constexpr auto withoutNames =
    OperationEquivalence::IgnoreLocations | OperationEquivalence::IgnoreDiscardableAttrs; // which are compared apart

/// All discardable attributes but names.
SmallVector<NamedAttribute> marksOf(Operation *op) {
  return llvm::filter_to_vector(op->getDiscardableAttrs(),
                                [](NamedAttribute attribute) { return attribute.getName() != ds::valueNameAttr; });
}

struct MergeDuplicates : impl::MergeDuplicatesBase<MergeDuplicates>, PassReport {
  void runOnOperation() override {
    count("merged", 0);
    getOperation().walk([&](Block *block) { merge(*block); });
  }

  void merge(Block &block) {
    llvm::DenseMap<size_t, SmallVector<Operation *, 1>> seen; // by what they compute
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getNumRegions() > 0 || op.hasTrait<OpTrait::IsTerminator>() || !isPure(&op))
        continue;
      size_t hash = OperationEquivalence::computeHash(&op, OperationEquivalence::directHashValue,
                                                      OperationEquivalence::ignoreHashValue, withoutNames);
      auto &others = seen[hash];
      auto *same = llvm::find_if(others, [&](Operation *other) {
        return OperationEquivalence::isEquivalentTo(other, &op, withoutNames) && marksOf(other) == marksOf(&op);
      });
      if (same == others.end()) {
        others.push_back(&op);
        continue;
      }
      op.replaceAllUsesWith(*same);
      op.erase();
      count("merged");
    }
  }
};
} // namespace

} // namespace deepstride
