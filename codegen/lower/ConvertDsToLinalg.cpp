// Lowers every ds.kernel of a module to a func.func over flat buffers, by the family of its anchor op.
#include "codegen/Passes.h"
#include "codegen/kernel/SharedNumbers.h"
#include "codegen/lower/QuantizedAttention.h"
#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"
#include "dialects/ds/ScalarFunctions.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

namespace deepstride {
#define GEN_PASS_DEF_CONVERTDSTOLINALG
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

LogicalResult lowerAnchor(KernelBuilder &k, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ds::ShapeOp anchor) { return lowerShape(k, anchor); })
      .Case([&](ds::ReduceOp anchor) { return lowerReduce(k, anchor); })
      .Case([&](ds::ArgReduceOp anchor) { return lowerArgReduce(k, anchor); })
      .Case([&](ds::SoftmaxOp anchor) { return lowerSoftmax(k, anchor); })
      .Case([&](ds::LayerNormOp anchor) { return lowerLayerNorm(k, anchor); })
      .Case([&](ds::RmsNormOp anchor) { return lowerRmsNorm(k, anchor); })
      .Case([&](ds::CumulativeOp anchor) { return lowerCumulative(k, anchor); })
      .Case([&](ds::SuppressOp anchor) { return lowerSuppress(k, anchor); })
      .Case([&](ds::LinearAttentionOp anchor) { return lowerLinearAttention(k, anchor); })
      .Case([&](ds::ArgsortOp anchor) { return lowerArgsort(k, anchor); })
      .Case([&](ds::QuantizeRowsOp anchor) { return lowerQuantizeRows(k, anchor); })
      .Case([&](ds::TopKOp anchor) { return lowerTopK(k, anchor); })
      .Case([&](ds::GatherOp anchor) { return lowerGather(k, anchor); })
      .Case([&](ds::GatherElementsOp anchor) { return lowerGatherElements(k, anchor); })
      .Case([&](ds::GatherNdOp anchor) { return lowerGatherNd(k, anchor); })
      .Case([&](ds::ScatterElementsOp anchor) { return lowerScatterElements(k, anchor); })
      .Case([&](ds::ScatterNdOp anchor) { return lowerScatterNd(k, anchor); })
      .Case([&](ds::InsertOp anchor) { return lowerInsert(k, anchor); })
      .Case([&](ds::NonZeroOp anchor) { return lowerNonZero(k, anchor); })
      .Case([&](ds::ConcatOp anchor) { return lowerConcat(k, anchor); })
      .Case([&](ds::PadOp anchor) { return lowerPad(k, anchor); })
      .Case([&](ds::MatmulOp anchor) { return lowerMatmul(k, anchor); })
      .Case([&](ds::LinearOp anchor) { return lowerLinear(k, anchor); })
      .Case([&](ds::AttentionOp anchor) { return lowerAttention(k, anchor); })
      .Case([&](ds::AttentionGradientOp anchor) { return lowerAttentionGradient(k, anchor); })
      .Case([&](ds::RotaryOp anchor) { return lowerRotary(k, anchor); })
      .Case([&](ds::ConvOp anchor) { return lowerConv(k, anchor); })
      .Case([&](ds::PoolOp anchor) { return lowerPool(k, anchor); })
      .Default([](Operation *other) { return other->emitOpError("has no kernel"); });
}

LogicalResult lowerKernel(ds::KernelOp kernel, const LoweringTarget &target) {
  OpBuilder builder(kernel);
  KernelBuilder k(kernel, target, builder);
  Operation *anchor = nullptr;
  for (Operation *op : k.ops())
    if (isa<ds::AttentionOp, ds::AttentionGradientOp>(op)) // it looks at the ops before it
      anchor = op;
  auto softmax = ds::SoftmaxProducts::of(k.ops());
  bool hasAttention = anchor != nullptr, hasProduct = llvm::any_of(k.ops(), llvm::IsaPred<ds::LinearOp>);
  auto *reduction = llvm::find_if(k.ops(), llvm::IsaPred<ds::ReduceOp>);
  auto first = reduction == k.ops().end() ? ds::ReduceOp() : cast<ds::ReduceOp>(*reduction);
  bool isScan =
      first && llvm::all_of(k.ops(), [&](Operation *op) {
        auto other = dyn_cast<ds::ReduceOp>(op);
        return other ? op == first || ds::shareScan(first, other) : isa<ds::PerElement>(op) && ds::reducesWhole(first);
      });
  bool areNumbers = first && !isScan && llvm::all_of(k.ops(), [](Operation *op) {
                      return isa<ds::ConstantOp>(op) || ds::givesSharedNumber(op);
                    });
  auto hasScalars = [](Type type) { return ElementInfo::of(getElementTypeOrSelf(type)).has_value(); };
  for (Operation *op : k.ops()) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (!hasScalars(type))
        return op->emitOpError(
                   "expects elements of 1, 2, 4, 8, 16, 32 or 64 bits that are integers, or floats of 16 to "
                   "64 bits or the standard's narrow formats, found ")
               << type;
    if (softmax)
      continue; // it looks at all of them
    if (areNumbers || (hasProduct && ds::givesSharedNumber(op)) || ds::extremesOf(op) || ds::insertedResult(op))
      continue; // before the anchor, or of what it makes
    if (hasAttention ? op == anchor || ds::joinsAttention(op) || isa<ds::CastOp, ds::ConstantOp>(op)
                     : isa<ds::PerElement, ds::ReshapeOp>(op))
      continue;
    if (isa<ds::LinearOp>(op) && isa_and_present<ds::LinearOp>(anchor)) {
      if (!llvm::is_contained(k.yielded(), anchor->getResult(0)))
        anchor = op; // the epilogue looks at the other
      continue;
    }
    if (ds::preparesRows(op) && hasProduct)
      continue; // before the product, which asks for it
    if (isScan && anchor)
      continue; // beside the first
    bool isAlone =
        isScan || llvm::all_of(k.ops(), [&](Operation *other) { return other == op || ds::isWindowOp(other); });
    // What comes before is the rows that it reads.
    bool readsRows = ds::readsRows(op) && llvm::all_of(op->getBlock()->without_terminator(), [&](Operation &other) {
                       return !op->isBeforeInBlock(&other) || ds::followsRows(&other, op);
                     });
    if (anchor ||
        !(isa<ds::Anchor>(op) || readsRows || (isAlone && (k.ops().size() == 1 || isScan || ds::readsWindows(op)))))
      return op->emitOpError("cannot share a kernel with other ops");
    anchor = op;
  }
  if (failed(softmax              ? lowerQuantizedAttention(k, *softmax)
             : anchor             ? lowerAnchor(k, anchor)
             : areNumbers         ? lowerSharedNumbers(k)
             : lowerInterleave(k) ? success()
                                  : lowerElementwise(k)))
    return failure();
  k.finish();
  return success();
}

struct ConvertDsToLinalg : deepstride::impl::ConvertDsToLinalgBase<ConvertDsToLinalg> {
  using Base::Base;
  void runOnOperation() override {
    LoweringTarget target{reference ? 1 : lanes.getValue(), reference, manyRows, farLoads};
    if (target.lanes < 1) {
      getOperation().emitError("lanes must be positive, found ") << lanes.getValue();
      return signalPassFailure();
    }
    for (auto kernel : llvm::to_vector(getOperation().getOps<ds::KernelOp>())) {
      if (failed(lowerKernel(kernel, target)))
        return signalPassFailure();
      kernel.erase();
    }
  }
};

} // namespace
