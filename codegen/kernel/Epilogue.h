// What happens to the tiles of an anchor before they are stored: the elementwise ops behind it in its kernel.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_EPILOGUE_H
#define DEEPSTRIDE_CODEGEN_KERNEL_EPILOGUE_H

#include "codegen/kernel/SharedNumbers.h"
#include "codegen/kernel/Views.h"
#include "codegen/tile/Gemm.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"
#include "dialects/ds/TileAccess.h"

#include <functional>

namespace deepstride {

/// Neighbouring elements of an anchor's result: the row, counted over all axes of rows, and the first column. `mask`
/// selects lanes of a vector, all where it is null.
struct TilePlace {
  mlir::Value row, column, mask;
};

/// Rows of one panel: `rows` of them from `firstRow` on, and `columns` columns (null: the panel's `width`).
struct TileArea {
  mlir::Value firstRow, rows, firstColumn, columns;
  int64_t width;
};

/// Columns of an area that lie elsewhere in the result: `columns` of them, `staged` behind the area's first one, come
/// to rows `rowOffset` below the area's, from `firstColumn` on.
struct TilePiece {
  mlir::Value rowOffset, firstColumn, staged, columns;
};
/// Hands over all pieces of an area, one after the other.
using TilePieces = llvm::function_ref<void(llvm::function_ref<void(const TilePiece &)>)>;

class Epilogue {
public:
  Epilogue(KernelBuilder &k, mlir::Operation *anchor);

  /// A diagnostic where an op cannot be applied to a tile, or what is yielded is not as large as the anchor's result.
  llvm::LogicalResult verify();

  /// Makes room for tiles of at most that many rows and columns. Call it before other scratch is taken, and where
  /// `emit` is given vectors row by row at many places of the code. With `inPieces` for emitPieces, too.
  void reserve(int64_t rows, int64_t width, bool inPieces = false);

  /// Whether areas are put into scratch before the ops are applied: whole vectors of them.
  bool isStaged() const { return staging != nullptr; }

  /// The product whose result the ops combine with the anchor's: the other half of a gate. Null where there is none.
  ds::LinearOp companion() const { return other; }

  /// Whether it takes extremes of the rows of each panel, for which it needs room.
  bool takesExtremes() const { return !extremes.empty(); }

  /// Where scales are that the kernel computes of rows: of `firstRow`, and behind it of those that come next.
  void readScales(mlir::Value buffer, mlir::Value firstRow) { scales = {buffer, firstRow}; }

  /// Where numbers lie that the kernel computes before all rows.
  void readNumbers(const SharedNumbers &places) { numbers = &places; }

  /// Has `product` compute an area, and `companion` the same one of the companion's result, and stores what the kernel
  /// yields of it. Where room was made, code for a vector appears once for every row and vector of a block in a
  /// product, so that longer epilogues are applied to a copy of the area in scratch.
  void emit(const TileArea &area, int64_t lanes, llvm::function_ref<void(TileSink)> product,
            llvm::function_ref<void(TileSink)> companion = nullptr);
  /// The same of an area whose columns do not lie side by side in the result, of an anchor without a companion.
  void emitPieces(const TileArea &area, int64_t lanes, llvm::function_ref<void(TileSink)> product, TilePieces pieces);

  /// Applies the ops to a vector or a scalar of the anchor's result, in its compute type, and stores what is yielded.
  void store(mlir::Value value, const TilePlace &place);

private:
  /// To what memory could hold of the anchor's result, and of its companion's. Gives what each op gave.
  llvm::DenseMap<mlir::Value, mlir::Value> apply(mlir::Value value, const TilePlace &place, mlir::Value companion = {});
  /// A sink that puts an area into scratch.
  std::function<void(mlir::Value, int64_t, mlir::Value, mlir::Value)> stageIn(mlir::Value buffer, int64_t width);
  /// `lanes` elements of an area in scratch.
  mlir::Value staged(mlir::Value buffer, mlir::Value position, int64_t lanes);
  llvm::LogicalResult verifyExtreme(ds::ReduceOp op);
  /// Of one row of an area: what the ops gave of each of its vectors.
  void storeExtremes(const TileArea &area, mlir::Value row, int64_t lanes,
                     llvm::ArrayRef<llvm::DenseMap<mlir::Value, mlir::Value>> vectors);
  /// What the anchor reads may be computed before it, and is stored by whoever does.
  static bool isPrologue(mlir::Operation *op) {
    return op && !ds::givesSharedNumber(op) && (ds::preparesRows(op) || ds::preparesFilters(op));
  }
  /// Whether the value is a number that the kernel computes before all rows.
  static bool isSharedNumber(mlir::Value value) {
    return value.getDefiningOp() && ds::givesSharedNumber(value.getDefiningOp());
  }
  /// Whether the value is the result of another product beside the anchor, which stores it.
  bool isStoredByOther(mlir::Value value) const {
    auto product = llvm::dyn_cast<ds::LinearOp>(anchor), of = value.getDefiningOp<ds::LinearOp>();
    return product && of && ds::areBeside(product, of, k.yielded());
  }
  /// The scales of rows that become codes in the kernel.
  static bool areScales(mlir::Value value) {
    auto quantize = value.getDefiningOp<ds::QuantizeRowsOp>();
    return quantize && value == quantize.getScales();
  }
  std::optional<ds::RowWindow> shownRows(mlir::Value value);
  std::optional<ds::RowWindow> storedRows(unsigned number);
  /// The place of an element in a buffer that holds the rows.
  mlir::Value placeIn(const ds::RowWindow &rows, const TilePlace &place);
  ds::TileAccess accessOf(mlir::Value value) { return *ds::tileAccess(k.sizesOf(value), shape, rowAxes); }
  mlir::Value operand(mlir::Value value, const TilePlace &place, mlir::Value like);

  KernelBuilder &k;
  mlir::Operation *anchor;
  ds::LinearOp other, beside;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<ds::ReduceOp> extremes;
  SizeVector shape; // of the result
  int64_t rowAxes;
  mlir::Type element;
  mlir::Value columns, staging, otherStaging;
  const SharedNumbers *numbers = nullptr;
  std::pair<mlir::Value, mlir::Value> scales; // and the row of the first
};

} // namespace deepstride

#endif
