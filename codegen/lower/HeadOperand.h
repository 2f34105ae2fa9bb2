// What the products of quantized attention read: windows of memory or rows that are computed or put together, and the
// elementwise ops behind them.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_HEADOPERAND_H
#define DEEPSTRIDE_CODEGEN_LOWER_HEADOPERAND_H

#include "codegen/kernel/JoinedHeads.h"

namespace deepstride {

/// Neighbours along the one axis of a view, from a place of its buffer on: `count` of them (null: all).
struct Line {
  View view;
  mlir::Value start, count = {};

  static Line at(mlir::Value buffer, mlir::Value start, const SizeExpr &length, mlir::Value count = {}) {
    return {{buffer, 0, {Axis{length, 1, true, std::nullopt}}}, start, count};
  }
  static Line of(const View &view, unsigned axis, mlir::Value start, mlir::Value count = {}) {
    return {{view.buffer, 0, {view.axes[axis]}}, start, count};
  }
};

/// Makes a line of `value` by elementwise ops, in order, of lines of `operands`.
void emitLine(KernelBuilder &k, const Line &target, mlir::Value value, llvm::ArrayRef<mlir::Operation *> steps,
              llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<Line> lines);
/// Whether the op may be one of those.
bool isLineStep(mlir::Operation *op);

/// Queries, keys or values, [batch..., rows, columns] as a product reads them. Reserve, then begin each group of heads,
/// then ask for some of its tokens.
class HeadOperand {
public:
  /// None where the value is neither a window of memory nor rows that can be put together.
  static std::optional<HeadOperand> of(KernelBuilder &k, mlir::Value value, bool isQuery);

  int64_t repeat() const { return shown.repeat; }
  /// What has one head of each group.
  mlir::Value rows() const { return shown.rows; }
  /// Whether the kernel yields the value beside its result, or what the operand is put together from.
  bool yields(mlir::Value of) const { return (joined && joined->has(of)) || (output && of == value); }

  /// Which axis of a matrix, 0 or 1, counts keys.
  void setTokens(unsigned axis) { tokens = axis; }
  /// Whether some tokens can be put together without the others: those are rows.
  bool isDivisible() const { return !joined || (shown.isTurned ? 1 : 0) == tokens; }
  /// Makes room for so many tokens of a head; `isShared`: threads may meet one head.
  void reserve(bool isShared, const SizeExpr &atOnce);
  /// Writes what the kernel yields of a group.
  void begin(const HeadGroup &group);
  /// Tokens of the range, or all, as a matrix. What was made of others is lost.
  Matrix block(const HeadGroup &group, RowRange range = {});

  /// Of queries: makes room for so many rows, of which at most `atOnce` are made in one piece.
  void reserveQueries(int64_t rows, int64_t atOnce, bool readsStrided);
  bool makesQueries() const { return made != nullptr; }
  /// Writes rows of a head, an index for each axis before, from number `number` on, where queries are made.
  void makeQueries(llvm::ArrayRef<mlir::Value> head, mlir::Value first, mlir::Value count, mlir::Value number);
  /// Where they are.
  Matrix queries(llvm::ArrayRef<mlir::Value> head, mlir::Value first, mlir::Value number);

private:
  HeadOperand(KernelBuilder &k, mlir::Value value) : k(&k), value(value) {}
  mlir::Value headOffset(llvm::ArrayRef<mlir::Value> head);
  mlir::Value placeOfOutput(const HeadGroup &group);
  Matrix joinedRows(const HeadGroup &group, RowRange range, mlir::Value target, mlir::Value place);
  Matrix madeLines(const HeadGroup &group, RowRange range, mlir::Value target, mlir::Value place);

  KernelBuilder *k;
  mlir::Value value, source;                  // behind and before the steps
  ds::ShownHeads shown;                       // of which the source is made
  View view;                                  // of the source, with its groups for its heads; where it is in memory
  std::optional<JoinedHeads> joined;          // keys and values
  std::optional<RowSource> computed;          // queries
  llvm::SmallVector<mlir::Operation *> steps; // in order
  mlir::Value output;                         // of values that are yielded, a head behind the other
  unsigned tokens = 0;
  SizeExpr room = 0; // tokens
  mlir::Value scratch, made, computedRows;
};

} // namespace deepstride

#endif
