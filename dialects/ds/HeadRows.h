// Rows that are normalized or turned between a buffer and their reader: what fusion lets the reader compute, and how
// code generation computes it.
#ifndef DEEPSTRIDE_DIALECTS_DS_HEADROWS_H
#define DEEPSTRIDE_DIALECTS_DS_HEADROWS_H

#include "dialects/ds/StridedWindow.h"

namespace deepstride::ds {

/// Whether kernels copy, normalize and turn rows of such elements: what vectors hold of floats.
bool holdsRows(mlir::Type element);

/// Whether every row of the last axis becomes that row of the result: norms over that axis, and rotary embeddings.
bool isRowOp(mlir::Operation *op);

/// A cache, [batch, group, token, feature], that each sequence of a batch continues behind the rows that it has: those
/// stay, new ones come to the places that are given, and what is left is 0.
struct PlacedRows {
  ScatterElementsOp scatter;
  PadOp pad;                                // of the cache, to the size of the result; null where it has that size
  mlir::Value cache, lengths, places;       // lengths: [batch, 1, 1, 1]; places: [batch, 1, new rows, 1]; i64
  llvm::SmallVector<mlir::Operation *> ops; // the scatter and what it reads, up to these, each behind its reader

  /// None where something else makes the value.
  static std::optional<PlacedRows> of(mlir::Value value);
  /// Whether lengths and places are those of all rows and heads.
  bool fit(llvm::function_ref<SizeVector(mlir::Value)> sizesOf) const;
};

/// Whether the op of a region or a kernel puts rows of a cache at their places there.
bool placesRows(mlir::Operation *op);

/// Whether the kernel of attention computes the op: what shows, computes or puts together rows of its operands.
inline bool joinsAttention(mlir::Operation *op) {
  return isWindowOp(op) || isRowOp(op) || llvm::isa_and_present<ConcatOp, InsertOp>(op) || placesRows(op);
}

/// Whether the op's kernel reads what it joins, inserts, normalizes or turns through windows.
inline bool readsWindows(mlir::Operation *op) { return isRowOp(op) || llvm::isa_and_present<ConcatOp, InsertOp>(op); }

/// A row op, and where its cosines and sines lie for each of the rows. The windows' last axis is not to be looked at.
struct RowStep {
  mlir::Operation *op;
  llvm::SmallVector<StridedWindow, 2> tables;
};

/// Rows as windows show them of `source`, and what is done to each of them, the first step first.
struct HeadRows {
  mlir::Value source;
  StridedWindow window;
  llvm::SmallVector<RowStep> steps;
};

/// The rows of a value, back to the nearest one for which `isSource` holds. None where anything but windows and row ops
/// stands between, where a row that is computed is not contiguous, or where a table's axis may turn out to be 1.
std::optional<HeadRows> headRows(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isSource,
                                 llvm::function_ref<SizeVector(mlir::Value)> sizesOf,
                                 llvm::function_ref<SizeVector(mlir::ArrayAttr)> startsOf);

/// Heads of keys or values as the products of an attention read them: those of a group, once for each of its queries'
/// heads, and features before tokens where scores are multiplied.
struct ShownHeads {
  mlir::Value rows; // [batch, group, token, feature], where something stands behind them
  int64_t repeat = 1;
  bool isTurned = false;
  llvm::SmallVector<mlir::Operation *> ops; // behind the rows, the last first

  static ShownHeads of(mlir::Value value, llvm::function_ref<SizeVector(mlir::Value)> sizesOf);
};

} // namespace deepstride::ds

#endif
