// ds-compose-transposes: two transposes between which a reshape only joins axes become one. Keras moves features to the
// end before a reshape that joins batch and heads, and back behind it; together they say that tokens and heads change
// places, which a kernel reads in place, where no strides reach what the reshape alone makes of the first one.
//
//   %1 = ds.transpose %x [0, 2, 3, 1] : [b, s, h, d] -> [b, h, d, s]     %1 = ds.transpose %x [0, 2, 1, 3]
//   %2 = ds.reshape %1 ["b*h", d, "s"]                                =>  %2 = ds.reshape %1 ["b*h", "s", d]
//   %3 = ds.transpose %2 [0, 2, 1]
#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_COMPOSETRANSPOSES
#include "passes/graph/Passes.h.inc"

namespace {
/// Which axes of the operand each axis of a reshape's result joins, neighbours in their order; none where an axis of
/// the operand is split, or sizes may be 0, whose products say nothing.
std::optional<SmallVector<SmallVector<int64_t>>> joinedAxes(ArrayRef<SizeExpr> from, ArrayRef<SizeExpr> to) {
  SmallVector<SmallVector<int64_t>> groups;
  size_t axis = 0;
  for (const SizeExpr &size : to) {
    if (size.isConstant(0))
      return std::nullopt;
    auto &group = groups.emplace_back();
    for (SizeExpr count = 1; count != size; group.push_back(static_cast<int64_t>(axis++))) {
      if (axis == from.size())
        return std::nullopt;
      count = count * from[axis];
    }
  }
  for (; axis < from.size(); ++axis) { // the last axes may be of size 1
    if (!from[axis].isConstant(1) || groups.empty())
      return std::nullopt;
    groups.back().push_back(static_cast<int64_t>(axis));
  }
  return groups;
}

struct ComposeTransposes : impl::ComposeTransposesBase<ComposeTransposes>, PassReport {
  void runOnOperation() override {
    count("composed", 0);
    auto found = SizeAnalysis::run(getOperation());
    if (failed(found))
      return signalPassFailure();
    SmallVector<ds::TransposeOp> ops; // what moves elements first comes first
    getOperation().walk([&](ds::TransposeOp op) { ops.push_back(op); });
    for (ds::TransposeOp op : ops)
      compose(op, *found);
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  void compose(ds::TransposeOp last, SizeAnalysis &analysis) {
    auto sizesOf = [&](Value value) -> const SizeVector & { return analysis.facts(value).sizes; };
    auto reshape = last.getInput().getDefiningOp<ds::ReshapeOp>();
    auto first = (reshape ? reshape.getInput() : last.getInput()).getDefiningOp<ds::TransposeOp>();
    if (!first || !last.getInput().hasOneUse() || !first->hasOneUse() || first->getBlock() != last->getBlock())
      return;
    SizeVector sizes = sizesOf(last); // what is made below may move the analysis' own
    auto groups = joinedAxes(sizesOf(first), sizesOf(last.getInput()));
    if (!groups) {
      last.emitRemark() << "not composed with the transpose before it: a reshape between them splits axes";
      return;
    }
    SmallVector<int64_t> permutation;
    for (int64_t axis : last.getPermutation())
      for (int64_t joined : (*groups)[static_cast<size_t>(axis)])
        permutation.push_back(first.getPermutation()[static_cast<size_t>(joined)]);
    DsBuilder b(OpBuilder(last), analysis);
    b.setLocation(last->getLoc());
    Value result = b.reshape(b.transpose(first.getInput(), permutation), sizes);
    if (result != first.getInput())
      keepNames(last, result.getDefiningOp());
    last.getResult().replaceAllUsesWith(result);
    count("composed");
  }
};
} // namespace

} // namespace deepstride
