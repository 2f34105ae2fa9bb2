// The iteration space of column kernels: axes before the last one are walked, and what lies behind them is contiguous,
// so that vectors hold neighbouring columns. One grid item is a strip of a few vectors. A column is the same chain of
// steps in whatever lane it lies.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_COLUMNS_H
#define DEEPSTRIDE_CODEGEN_LOWER_COLUMNS_H

#include "codegen/lower/Blocks.h"

namespace deepstride {

/// Neighbouring columns: where the first one starts in a tensor of the whole shape, and in one of the kept axes; the
/// lanes of each vector that are columns, null where all are.
struct Strip {
  mlir::Value from, to;
  llvm::SmallVector<mlir::Value> masks;
};

class ColumnSpace {
public:
  /// Whether there are columns beside each other and vectors hold the element type.
  static bool exists(KernelBuilder &k, mlir::Type element, llvm::ArrayRef<SizeExpr> shape,
                     llvm::ArrayRef<int64_t> walked);
  ColumnSpace(KernelBuilder &k, mlir::Type element, llvm::ArrayRef<SizeExpr> shape, llvm::ArrayRef<int64_t> walked);

  /// Loops over the strips of [begin, end), and sets the launch grid.
  void forEachStrip(llvm::function_ref<void(const Strip &)> body);
  /// Loops over the walked axes: `at` is where the strip lies in the whole shape.
  void forEachRow(const Strip &strip, llvm::function_ref<void(mlir::Value at)> body);
  /// Has `body`, which is told where the strip lies, combine each step over the walked axes into cells of each kind,
  /// which hold neutral elements; yields what they come to.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>>
  combine(llvm::ArrayRef<ds::ReduceKind> kinds, const Strip &strip,
          llvm::function_ref<void(mlir::Value, llvm::ArrayRef<llvm::SmallVector<mlir::Value>>)> body);
  /// Combines map(element, number of the vector) over the walked axes. Lanes without a column hold anything.
  llvm::SmallVector<mlir::Value> reduce(ds::ReduceKind kind, const Strip &strip, mlir::Value buffer,
                                        llvm::function_ref<mlir::Value(mlir::Value, int64_t)> map);
  /// The same for several kinds, which `map` is told: a list of vectors for each.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>>
  reduce(llvm::ArrayRef<ds::ReduceKind> kinds, const Strip &strip, mlir::Value buffer,
         llvm::function_ref<mlir::Value(ds::ReduceKind, mlir::Value, int64_t)> map);
  /// Vector `v` of a strip that starts at `at`, in the compute type.
  mlir::Value load(const Strip &strip, mlir::Value buffer, mlir::Value at, int64_t v);
  void store(const Strip &strip, mlir::Value value, mlir::Value buffer, mlir::Value at, int64_t v);
  mlir::Value wide(mlir::Value scalar);
  /// A cell for each vector, which holds `initial`.
  llvm::SmallVector<mlir::Value> cells(mlir::Value initial);

  int64_t lanes, vectors;
  mlir::VectorType type; // of the compute type
  SizeVector walkedSizes;

private:
  KernelBuilder &k;
  mlir::Type element;
  SizeVector walkedStrides, outerSizes, outerStrides;
  SizeExpr columns;
};

} // namespace deepstride

#endif
