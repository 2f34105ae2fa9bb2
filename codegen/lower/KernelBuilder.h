// Builds the func.func of one kernel from a ds.kernel: flat buffers in, loops over [begin, end) inside.
// Every buffer is memref<?xT> over dense row-major elements; multi-dimensional access is offset arithmetic over the
// kernel's size symbols, so no bufferization is needed and nothing is allocated.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_KERNELBUILDER_H
#define DEEPSTRIDE_CODEGEN_LOWER_KERNELBUILDER_H

#include "codegen/lower/Scalar.h"
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace deepstride {

/// What kernels are lowered for.
struct LoweringTarget {
  int64_t lanes = 1;      // f32 elements of a native vector; 1 gives plain loops
  bool reference = false; // plain loops and libm everywhere
  bool manyRows = false;  // products with weights, and attention, have no path of their own for few rows
  bool farLoads = false;  // loads reach far enough ahead of more than two rows (convert-ds-to-linalg)
};

/// One axis of a strided read or write: element i lies `stride * i` after the start. A guarded axis may turn out to
/// have size 1 at run time and is then broadcast.
struct Axis {
  SizeExpr size, stride;
  bool present = true;           // absent axes are broadcast
  std::optional<SizeExpr> guard; // the operand's own size on that axis, where it may be 1
};

/// A strided window into a flat buffer, over some loop axes.
struct View {
  mlir::Value buffer;
  SizeExpr offset;
  std::vector<Axis> axes;
};

class KernelBuilder {
public:
  KernelBuilder(ds::KernelOp kernel, const LoweringTarget &target, mlir::OpBuilder &moduleBuilder);

  ds::KernelOp kernel;
  const LoweringTarget &target;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::func::FuncOp function;
  mlir::Value begin, end, scratch;

  llvm::ArrayRef<mlir::Operation *> ops() const { return body; }
  /// The sizes of a value inside the ds.kernel, over d0, d1, ...
  SizeVector sizesOf(mlir::Value value) const;
  mlir::Type elementOf(mlir::Value value) const {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
  }
  /// The flat memref of a kernel argument or yielded value.
  mlir::Value bufferOf(mlir::Value value) const;
  bool hasBuffer(mlir::Value value) const { return buffers.contains(value); }
  llvm::ArrayRef<mlir::Value> yielded() const { return results; }
  mlir::Value outputBuffer(unsigned index) const { return outputs[index]; }

  mlir::Value index(const SizeExpr &size);
  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value minimum(mlir::Value a, mlir::Value b);
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  /// Of sizes and places, which are not negative.
  mlir::Value divide(mlir::Value a, mlir::Value b);
  mlir::Value remainder(mlir::Value a, mlir::Value b);
  mlir::Value ceilDiv(mlir::Value a, int64_t b);

  /// for (i = from; i < to; i += step) body(i)
  void loop(mlir::Value from, mlir::Value to, mlir::Value step, llvm::function_ref<void(mlir::Value)> body);
  /// if (condition) body(), always where the condition is null
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Loops over all axes, outermost first; hands over the loop indices.
  void loopNest(llvm::ArrayRef<SizeExpr> sizes, llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);
  /// Splits a linear index into one index per axis.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> indices, llvm::ArrayRef<SizeExpr> sizes);

  /// Element access in the compute type of `element` (see Scalar.h).
  mlir::Value load(mlir::Value buffer, mlir::Value position, mlir::Type element);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value position, mlir::Type element);

  /// The address of an element, for instructions that read or write memory by themselves.
  mlir::Value addressOf(mlir::Value buffer, mlir::Value position);

  /// Records `code` as the kernel's result when the condition holds; the kernel goes on with safe values.
  void failIf(mlir::Value condition, int32_t code);
  /// An index that counts from the end when negative, checked against [0, size) and clamped into it.
  mlir::Value checkedIndex(mlir::Value raw, mlir::Value size);

  /// A one-element accumulator that lives on the kernel's stack frame.
  mlir::Value cell(mlir::Type type);
  /// Per-thread scratch as a flat memref of `type`, behind what was taken before.
  mlir::Value scratchOf(mlir::Type type, const SizeExpr &elements);

  void setGrid(const SizeExpr &items, int64_t grain);
  void setFlops(const SizeExpr &flops);
  /// Which of the machine's ceilings the operations count against, where that is not the one of f32: bf16 or int8.
  void setArithmetic(llvm::StringRef arithmetic);
  void finish();

  /// Row-major strides of a shape.
  static SizeVector strides(llvm::ArrayRef<SizeExpr> sizes);
  /// How a tensor of `own` sizes is read over loop axes of `sizes` when NumPy broadcasts it.
  View broadcastView(mlir::Value buffer, llvm::ArrayRef<SizeExpr> own, llvm::ArrayRef<SizeExpr> sizes);
  /// A memref of the present axes of a view, plus `extraOffset`; axes are those in `which`, with `lengths` places each
  /// (empty: all).
  mlir::Value memrefOf(const View &view, mlir::Value extraOffset, llvm::ArrayRef<unsigned> which,
                       llvm::ArrayRef<mlir::Value> lengths = {});
  /// stride * index summed over the given axes of a view.
  mlir::Value offsetAt(const View &view, llvm::ArrayRef<unsigned> which, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value strideOf(const Axis &axis);

private:
  void recordTraffic();

  llvm::SmallVector<mlir::Operation *> body;
  llvm::SmallVector<mlir::Value> results, outputs, sizes;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  mlir::Value status;
  SizeExpr scratchSize = 0; // bytes
  mlir::OpBuilder entry;
};

// One function per family; each fills the kernel's body and its launch attributes, or says what it cannot lower.
llvm::LogicalResult lowerElementwise(KernelBuilder &builder);
/// A transpose that puts two or four elements side by side which lie apart; false for any other kernel.
bool lowerInterleave(KernelBuilder &builder);
llvm::LogicalResult lowerShape(KernelBuilder &builder, ds::ShapeOp op);
/// All reductions of the kernel, which share one pass.
llvm::LogicalResult lowerReduce(KernelBuilder &builder, ds::ReduceOp op);
/// Their kinds, in the order of the results.
llvm::SmallVector<ds::ReduceKind> reducedKinds(KernelBuilder &builder);
/// What is combined of an element.
mlir::Value reducedValue(KernelBuilder &builder, mlir::OpBuilder &b, ds::ReduceKind kind, mlir::Value x,
                         mlir::Type element);
/// The result of a log_sum_exp, from the logarithm of the sum of what is relative to the greatest element.
mlir::Value addLogarithm(mlir::OpBuilder &b, mlir::Location loc, mlir::Value greatest, mlir::Value logarithm,
                         mlir::Value zero);
/// Where what lies behind the axes is contiguous and vectors hold the type; false elsewhere, and nothing is emitted.
bool lowerReduceColumns(KernelBuilder &builder, ds::ReduceOp op);
bool lowerSoftmaxColumns(KernelBuilder &builder, ds::SoftmaxOp op);
llvm::LogicalResult lowerArgReduce(KernelBuilder &builder, ds::ArgReduceOp op);
llvm::LogicalResult lowerSoftmax(KernelBuilder &builder, ds::SoftmaxOp op);
llvm::LogicalResult lowerLayerNorm(KernelBuilder &builder, ds::LayerNormOp op);
llvm::LogicalResult lowerRmsNorm(KernelBuilder &builder, ds::RmsNormOp op);
llvm::LogicalResult lowerCumulative(KernelBuilder &builder, ds::CumulativeOp op);
llvm::LogicalResult lowerSuppress(KernelBuilder &builder, ds::SuppressOp op);
llvm::LogicalResult lowerLinearAttention(KernelBuilder &builder, ds::LinearAttentionOp op);
llvm::LogicalResult lowerArgsort(KernelBuilder &builder, ds::ArgsortOp op);
/// Of single elements; false for others, and nothing is emitted.
bool lowerArgsortDigits(KernelBuilder &builder, ds::ArgsortOp op);
llvm::LogicalResult lowerQuantizeRows(KernelBuilder &builder, ds::QuantizeRowsOp op);
llvm::LogicalResult lowerTopK(KernelBuilder &builder, ds::TopKOp op);
llvm::LogicalResult lowerGather(KernelBuilder &builder, ds::GatherOp op);
llvm::LogicalResult lowerGatherElements(KernelBuilder &builder, ds::GatherElementsOp op);
llvm::LogicalResult lowerGatherNd(KernelBuilder &builder, ds::GatherNdOp op);
llvm::LogicalResult lowerScatterElements(KernelBuilder &builder, ds::ScatterElementsOp op);
llvm::LogicalResult lowerScatterNd(KernelBuilder &builder, ds::ScatterNdOp op);
llvm::LogicalResult lowerInsert(KernelBuilder &builder, ds::InsertOp op);
llvm::LogicalResult lowerNonZero(KernelBuilder &builder, ds::NonZeroOp op);
llvm::LogicalResult lowerConcat(KernelBuilder &builder, ds::ConcatOp op);
llvm::LogicalResult lowerPad(KernelBuilder &builder, ds::PadOp op);
llvm::LogicalResult lowerMatmul(KernelBuilder &builder, ds::MatmulOp op);
llvm::LogicalResult lowerLinear(KernelBuilder &builder, ds::LinearOp op);
llvm::LogicalResult lowerAttention(KernelBuilder &builder, ds::AttentionOp op);
llvm::LogicalResult lowerAttentionGradient(KernelBuilder &builder, ds::AttentionGradientOp op);
llvm::LogicalResult lowerRotary(KernelBuilder &builder, ds::RotaryOp op);
llvm::LogicalResult lowerConv(KernelBuilder &builder, ds::ConvOp op);
llvm::LogicalResult lowerPlainConv(KernelBuilder &builder, ds::ConvOp op);
llvm::LogicalResult lowerPool(KernelBuilder &builder, ds::PoolOp op);
/// In vectors; false where they do not hold the type, and nothing is emitted.
bool lowerPoolRows(KernelBuilder &builder, ds::PoolOp op);

} // namespace deepstride

#endif
