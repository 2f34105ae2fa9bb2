// ds-unstack-reductions: combines the parts of a stack one by one where a ds.reduce would read them from it. It works
// on reductions over the one axis along which parts of size 1 were joined; more parts, and parts that are longer, stay:
// a reduction reads those in vectors. What is combined is elementwise, and joins the kernels around it.
//
//   ds.reduce max (ds.concat 2 %a, %b : (?x8x1, ?x8x1)) axes [2]  =>  ds.binary max %a', %b' : ?x8
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/Requirements.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_UNSTACKREDUCTIONS
#include "passes/graph/Passes.h.inc"

namespace {
struct UnstackReductions : impl::UnstackReductionsBase<UnstackReductions>, PassReport {
  static constexpr size_t mostParts = 8;

  void runOnOperation() override {
    count("unstacked", 0);
    SmallVector<ds::ReduceOp> ops;
    getOperation().walk([&](ds::ReduceOp op) { ops.push_back(op); });
    auto analysis = SizeAnalysis::run(getOperation());
    if (failed(analysis))
      return signalPassFailure();
    for (ds::ReduceOp op : ops) {
      auto stack = op.getInput().getDefiningOp<ds::ConcatOp>();
      auto kind = kindOf(op);
      if (kind && stack && isStack(stack, op.getAxes()))
        unstack(op, stack, *kind, *analysis);
    }
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  /// What combines two elements as the reduction does, bit by bit but for the order of a sum.
  static std::optional<ds::BinaryKind> kindOf(ds::ReduceOp op) {
    Type element = cast<RankedTensorType>(op.getType()).getElementType();
    bool isWide = element.isF32() || element.isF64(); // sums of narrow floats are rounded once
    bool isNumber = isa<FloatType>(element) || element.getIntOrFloatBitWidth() >= 8;
    switch (op.getKind()) {
    case ds::ReduceKind::max: return isNumber ? std::optional(ds::BinaryKind::max) : std::nullopt;
    case ds::ReduceKind::min: return isNumber ? std::optional(ds::BinaryKind::min) : std::nullopt;
    case ds::ReduceKind::sum: return isWide ? std::optional(ds::BinaryKind::add) : std::nullopt;
    case ds::ReduceKind::prod: return isWide ? std::optional(ds::BinaryKind::mul) : std::nullopt;
    default: return std::nullopt;
    }
  }

  static bool isStack(ds::ConcatOp stack, ArrayRef<int64_t> axes) {
    int64_t axis = static_cast<int64_t>(stack.getAxis());
    auto isOne = [&](Value part) { return cast<RankedTensorType>(part.getType()).getDimSize(axis) == 1; };
    return axes == ArrayRef(axis) && stack.getInputs().size() <= mostParts && llvm::all_of(stack.getInputs(), isOne);
  }

  void unstack(ds::ReduceOp op, ds::ConcatOp stack, ds::BinaryKind kind, SizeAnalysis &analysis) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    Value result;
    SizeVector sizes = b.sizes(op.getResult());
    for (Value part : stack.getInputs()) {
      Value own = b.reshape(part, sizes); // without the axis, or with it
      result = result ? b.binary(kind, result, own) : own;
    }
    if (result.getDefiningOp() && result != stack.getInputs().front())
      keepNames(op, result.getDefiningOp());
    op.getResult().replaceAllUsesWith(result);
    count("unstacked");
  }
};
} // namespace

} // namespace deepstride
