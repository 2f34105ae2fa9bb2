// The iteration space of row kernels: outer axes make the grid, inner axes make the row.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_ROWS_H
#define DEEPSTRIDE_CODEGEN_LOWER_ROWS_H

#include "codegen/lower/Blocks.h"

namespace deepstride {

class RowOutput;

class RowSpace {
public:
  /// `length`: how many elements of rows along one axis are taken; null for all.
  RowSpace(KernelBuilder &k, llvm::ArrayRef<SizeExpr> shape, llvm::ArrayRef<int64_t> reduced, mlir::Value length = {});

  /// Loops over the rows of [begin, end) with one index per outer axis, and sets the launch grid.
  void forEachRow(llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);
  /// Combines map(elements of the views) over a row; elements arrive as stored.
  mlir::Value reduce(ds::ReduceKind kind, mlir::Type element, llvm::ArrayRef<const View *> views,
                     llvm::ArrayRef<mlir::Value> row,
                     llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> map);
  /// The same for several kinds at once; `map` gives a value for each.
  llvm::SmallVector<mlir::Value>
  reduce(llvm::ArrayRef<ds::ReduceKind> kinds, mlir::Type element, llvm::ArrayRef<const View *> views,
         llvm::ArrayRef<mlir::Value> row,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)> map);
  /// output = body(elements of the views) over a row, which is row `to` of the output (empty: the same).
  void map(const View &output, mlir::Type element, llvm::ArrayRef<const View *> views, llvm::ArrayRef<mlir::Value> row,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body,
           llvm::ArrayRef<mlir::Value> to = {});
  /// The number of elements of a row, in the compute type of `element`.
  mlir::Value lengthAs(mlir::Type element);

  llvm::SmallVector<unsigned> outer, inner;
  SizeVector outerSizes, innerSizes, shape;

private:
  /// The loops over a row, and views of it: neighbouring axes along which all views lie without a gap are one loop.
  struct Loops {
    SizeVector sizes;
    llvm::SmallVector<View> views;
    llvm::SmallVector<mlir::Value> starts; // of each view
  };
  Loops loopsOf(llvm::ArrayRef<const View *> views, llvm::ArrayRef<mlir::Value> row);
  /// A view of the loops, or of the part of it in `block`.
  mlir::Value windowOf(const Loops &loops, size_t number, const LoopBlock *block = nullptr);
  mlir::AffineMap mapOf(const View &view);
  /// How many sums run side by side along the last loop: in vectors, or not (codegen/cpu).
  int64_t chainsOf(const Loops &loops);

  KernelBuilder &k;
  mlir::Value length;
};

/// Normalizes a row of ds.layer_norm or ds.rms_norm: the row of `input` over the space's shape becomes row `to` of
/// `output` (empty: the same), or what `behind` makes of it does.
void emitNormRow(KernelBuilder &k, RowSpace &rows, mlir::Operation *norm, const View &input, const View &output,
                 llvm::ArrayRef<mlir::Value> row, llvm::ArrayRef<mlir::Value> to = {}, RowOutput *behind = nullptr);

/// The softmax of a row: of the row of `input` over the space's shape, which may be that of `output`. In the types that
/// keep it, `output` holds exponentials on the way.
void emitSoftmaxRow(KernelBuilder &k, RowSpace &rows, ds::SoftmaxOp op, const View &input, const View &output,
                    llvm::ArrayRef<mlir::Value> row);

/// Quantizes a row of ds.quantize_rows: the row of `input` over the space's shape becomes row `to` of `codes` (empty:
/// the same). Gives its scale.
mlir::Value emitQuantizeRow(KernelBuilder &k, RowSpace &rows, ds::QuantizeRowsOp op, const View &input,
                            const View &codes, llvm::ArrayRef<mlir::Value> row, llvm::ArrayRef<mlir::Value> to = {});

/// Stores the extremes that the kernel takes of rows of `made`, of one row of the view that shows them.
void emitRowExtremes(KernelBuilder &k, mlir::Value made, const View &view, llvm::ArrayRef<mlir::Value> row);

} // namespace deepstride

#endif
