// Registration of the ds dialect and the generated definitions.
#include "dialects/ds/DsDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace deepstride;

#include "dialects/ds/DsDialect.cpp.inc"
#include "dialects/ds/DsEnums.cpp.inc"
#include "dialects/ds/DsInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/ds/DsAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/ds/DsOps.cpp.inc"

void ds::DSDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ds/DsAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ds/DsOps.cpp.inc"
      >();
}

LogicalResult ds::ScheduleAttr::verify(llvm::function_ref<InFlightDiagnostic()> error, ProductKernel, int64_t rows,
                                       int64_t columns, int64_t sweep, int64_t few) {
  constexpr int64_t most = 1 << 20;
  for (int64_t number : {rows, columns, sweep})
    if (number < 1 || number > most)
      return error() << "rows, columns and sweep of a schedule must be between 1 and 2^20, found " << number;
  if (few < 0)
    return error() << "few of a schedule must not be negative, found " << few;
  return success();
}

LogicalResult ds::DSDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != scheduleAttr)
    return success();
  if (!isa<Anchor, AttentionOp, AttentionGradientOp>(op))
    return op->emitOpError("has a schedule, but is no product");
  if (!isa<ScheduleAttr>(attribute.getValue()))
    return op->emitOpError("expects a #ds.schedule, found ") << attribute.getValue();
  return success();
}

Operation *ds::DSDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  if (auto elements = dyn_cast<ElementsAttr>(value); elements && isa<RankedTensorType>(type))
    return ConstantOp::create(builder, location, elements);
  return nullptr;
}

namespace {
/// Upstream turns an scf.if that only chooses between tensors into arith.select, which has no buffer to write.
struct SelectBetweenTensors : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    if (!isa<RankedTensorType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "chooses between scalars");
    auto condition = op.getCondition().getDefiningOp<tensor::ExtractOp>();
    if (!condition || !condition.getIndices().empty())
      return rewriter.notifyMatchFailure(op, "its condition is not read from a tensor without axes");
    rewriter.replaceOpWithNewOp<ds::SelectOp>(op, op.getType(), condition.getTensor(), op.getTrueValue(),
                                              op.getFalseValue());
    return success();
  }
};
} // namespace

void ds::DSDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<SelectBetweenTensors>(getContext());
}
