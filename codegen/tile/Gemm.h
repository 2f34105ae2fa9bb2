// Products by tiles: blocks of rows of the left operand against a packed panel of columns, accumulated in registers
// over all of K. Every row is one chain of multiply-adds in rising k, whatever block it is in, so that its bits do not
// depend on how many rows there are or which thread computes them.
#ifndef DEEPSTRIDE_CODEGEN_TILE_GEMM_H
#define DEEPSTRIDE_CODEGEN_TILE_GEMM_H

#include "codegen/tile/MicroKernel.h"

namespace deepstride {

/// What the codes of a packed panel stand for: (code - zero point) * scale. Scales and zero points lie in panels of
/// their own, from `offset` on, one row for every `group` steps of K. Where there are groups, the sums of each are
/// multiplied by its scales; else scales are null, and whoever takes the sums multiplies them.
struct PanelCodes {
  mlir::Value scales, zeroPoints, offset;
  int64_t group = 0; // 0: one row for all of K
  mlir::Value last;  // the last row of those of the thread's panels
  mlir::Value apart; // from a panel's rows to those of the next one
};

/// A packed panel: for each group of `interleave` steps along K, `vectors * lanes` columns with their elements side by
/// side. `next`, where given, is the place of the panel that the thread takes after this one: tiles prefetch it. It is
/// in the same buffer, and as long, or it has `nextElements` elements of `nextBuffer`. Few rows may meet `together`
/// panels at a time, which lie one behind the other: `vectors` are those of all. With `places` the panel has `steps`
/// steps, and the one of that number meets the elements of a row from there on along K (FitPanel.h).
struct Panel {
  mlir::Value buffer, offset;
  int64_t vectors;
  mlir::Value next;
  PanelCodes codes = {};
  mlir::Value nextBuffer = {}, nextElements = {};
  int64_t together = 1;
  mlir::Value places = {}, steps = {};

  int64_t vectorsOfEach() const { return vectors / together; }
};

/// Rows of the left operand that a schedule may have walked under one sweep over the panels, where squares keep sums.
constexpr int64_t mostRowsPerSweep = 512;

/// Takes a finished vector: columns [vector * lanes, ...) of the panel in one row. Where `mask` is given, only the
/// columns that it selects exist.
using TileSink = llvm::function_ref<void(mlir::Value row, int64_t vector, mlir::Value value, mlir::Value mask)>;
/// Gives what a vector's sums begin with, in the type of sums.
using TileStart = llvm::function_ref<mlir::Value(mlir::Value row, int64_t vector)>;

/// Emits the product of `rows` rows, at most mostRowsPerSweep for squares, with one panel, of which `columns` columns
/// exist (null: all). Blocks have equally many rows, give or take one, and at most `rowBlock`. Rows are packed first
/// where the micro-kernel multiplies squares (codegen/tile/Squares.h). With `areWhole` blocks of vectors have
/// `rowBlock` rows, however few there are, and the sink takes the last one several times: the product without its path
/// for few rows. `start`, of vectors without codes: the chain goes on where a product before left it; null: at 0.
void emitPanelProduct(KernelBuilder &k, const MicroKernel &micro, const Matrix &lhs, mlir::Value rows,
                      mlir::Value depth, const Panel &panel, mlir::Value columns, int64_t rowBlock, TileSink sink,
                      bool areWhole = false, TileStart start = nullptr);

/// Emits code for all vectors of a panel, of which `columns` columns exist (null: all): once with null masks for a
/// panel that is whole, once with those of a panel that is cut.
void emitForMasks(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, mlir::Value columns,
                  llvm::function_ref<void(llvm::ArrayRef<mlir::Value> masks)> emit);

/// Columns of a panel that has `vectors` vectors of the micro-kernel.
inline int64_t panelWidth(const MicroKernel &micro, int64_t vectors) { return vectors * micro.lanes(); }
/// Elements of a panel of that many columns, K in whole steps; and, as kernels compute polynomials of sizes only, how
/// many there are at most.
mlir::Value panelElements(KernelBuilder &k, const MicroKernel &micro, mlir::Value depth, int64_t width);
SizeExpr panelSpace(const MicroKernel &micro, const SizeExpr &depth, int64_t width);

/// The zero points of a group, as floats for the vectors of a panel; nulls where there are none.
llvm::SmallVector<mlir::Value> zeroPointsOf(KernelBuilder &k, const MicroKernel &micro, const Panel &panel,
                                            mlir::Value group);

/// Where scales and zero points of a group are, for a vector of the panel.
mlir::Value codesAt(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, mlir::Value group, int64_t vector);

/// Asks for the scales of a later group, of this panel or the next one: they are few, and a miss takes as long as a
/// group.
void fetchScales(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, mlir::Value group);

/// Bytes of a panel that are asked for before they are read.
constexpr int64_t prefetchAhead = 8192;
/// Asks the second-level cache for the line of an element.
void prefetch(KernelBuilder &k, mlir::Value buffer, mlir::Value position);

/// Packs columns [firstColumn, firstColumn + width) of a K x columns matrix of `element`, zero beyond its columns.
void emitPackPanel(KernelBuilder &k, const MicroKernel &micro, const Matrix &source, mlir::Type element,
                   mlir::Value depth, mlir::Value firstColumn, mlir::Value columns, mlir::Value panel,
                   mlir::Value panelOffset, int64_t width);

/// Loads and stores of the lanes that `mask` selects, all where it is null. Elements that are not loaded are 0.
mlir::Value loadLanes(KernelBuilder &k, mlir::VectorType type, mlir::Value buffer, mlir::Value position,
                      mlir::Value mask);
void storeLanes(KernelBuilder &k, mlir::Value vector, mlir::Value buffer, mlir::Value position, mlir::Value mask);
/// The first `count` of `lanes` lanes; a count below 0 or beyond is cut.
mlir::Value lanesBelow(KernelBuilder &k, int64_t lanes, mlir::Value count);

} // namespace deepstride

#endif
