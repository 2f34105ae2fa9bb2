// ds-squeeze-convolutions: drops trailing axes of one pixel from ds.conv, as exporters write convolutions over one
// axis. Kernels read runs of pixels along the last axis, which such an axis makes as short as they can be. Reshapes
// around the convolution are views; the one behind it mostly meets one that takes the axis off again.
//
//   ds.conv %x, %w : (?x256x512x1, 512x256x5x1)  =>  ds.reshape (ds.conv %x', %w' : (?x256x512, 512x256x5))
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/Requirements.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_SQUEEZECONVOLUTIONS
#include "passes/graph/Passes.h.inc"

namespace {
struct SqueezeConvolutions : impl::SqueezeConvolutionsBase<SqueezeConvolutions>, PassReport {
  void runOnOperation() override {
    count("squeezed", 0);
    SmallVector<ds::ConvOp> ops;
    getOperation().walk([&](ds::ConvOp op) { ops.push_back(op); });
    auto analysis = SizeAnalysis::run(getOperation());
    if (failed(analysis))
      return signalPassFailure();
    for (ds::ConvOp op : ops)
      if (size_t dropped = trailing(op))
        squeeze(op, dropped, *analysis);
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  /// How many of the last axes have one pixel, which a filter of one tap reads; one axis is kept.
  static size_t trailing(ds::ConvOp op) {
    auto image = cast<RankedTensorType>(op.getInput().getType()),
         filter = cast<RankedTensorType>(op.getWeight().getType());
    size_t spatial = op.getStrides().size(), count = 0;
    for (; count + 1 < spatial; ++count) {
      size_t axis = spatial - 1 - count;
      auto isOne = [&](RankedTensorType type) { return type.getDimSize(static_cast<int64_t>(axis) + 2) == 1; };
      if (!isOne(image) || !isOne(filter) || op.getPads()[axis] != 0 || op.getPads()[spatial + axis] != 0)
        break;
    }
    return count;
  }

  void squeeze(ds::ConvOp op, size_t dropped, SizeAnalysis &analysis) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    size_t spatial = op.getStrides().size(), kept = spatial - dropped;
    auto squeezed = [&](Value value) {
      SizeVector sizes = b.sizes(value);
      return b.reshape(value, ArrayRef(sizes).drop_back(dropped));
    };
    auto first = [&](ArrayRef<int64_t> numbers) { return numbers.take_front(kept); };
    SmallVector<int64_t> pads(first(op.getPads()));
    llvm::append_range(pads, first(op.getPads().drop_front(spatial)));
    SizeVector whole = b.sizes(op.getResult());
    Value image = squeezed(op.getInput()), filter = squeezed(op.getWeight());
    SmallVector<Value> operands = {image, filter};
    if (op.getBias())
      operands.push_back(op.getBias());
    Value conv = b.create<ds::ConvOp>(operands, image, filter, op.getBias(), first(op.getStrides()),
                                      ArrayRef<int64_t>(pads), first(op.getDilations()), op.getGroups());
    Value result = b.reshape(conv, whole);
    keepNames(op, result.getDefiningOp());
    op.getResult().replaceAllUsesWith(result);
    count("squeezed");
  }
};
} // namespace

} // namespace deepstride
