// The attention kernel in its forms: plain loops, panels, one query.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONLOWERING_H
#define DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONLOWERING_H

#include "codegen/kernel/JoinedHeads.h"
#include "codegen/lower/AttentionRows.h"

namespace deepstride {

class AttentionLowering : AttentionRows {
public:
  AttentionLowering(KernelBuilder &k, ds::AttentionOp op) : AttentionRows(k, op), op(op) {}
  llvm::LogicalResult run();

private:
  struct Panels;
  void emitPlain();
  void emitPanels();
  /// Whether each head has one query, against rows of keys and values that vectors divide.
  bool hasOneQuery() const;
  void emitOneQuery();
  /// `micro->lanes()` elements of an operand as they are multiplied.
  mlir::Value loadStored(mlir::Value buffer, mlir::Value place);
  /// So far ahead that memory answers in time: into the rows of the next head, where heads lie together.
  void prefetchRow(const Matrix &rows, mlir::Value offset, int64_t vectors);
  mlir::Value emitDots(const Matrix &keys, mlir::Value first, int64_t count, llvm::ArrayRef<mlir::Value> query);
  struct RowBlock;
  Panels makePanels();
  void emitPack(const Panels &p, const HeadGroup &group, const KeyBlock &keys);
  Matrix rowsOf(std::optional<JoinedHeads> &joined, const View &view, const HeadGroup &group, const KeyBlock &keys);
  mlir::Value queriesAt(const Panels &p, const RowBlock &block);
  void emitBlock(const Panels &p, const RowBlock &block, const KeyBlock &keys, mlir::Value isAgain);
  void emitSoftmax(const Panels &p, const RowBlock &block, const KeyBlock &keys, const View &lines,
                   const std::optional<BlockWindow> &window);
  void emitProducts(const Panels &p, const RowBlock &block, const KeyBlock &keys,
                    const std::optional<BlockWindow> &window, mlir::Value isAgain);
  void note(const Panels &p, const RowBlock &block, mlir::Value isMissed);
  mlir::Value negated(mlir::Value condition);
  static RowRange rangeOf(const KeyBlock &keys) { return keys.isOnly ? RowRange{} : RowRange{keys.begin, keys.end}; }
  /// What was summed before, times the factor of a row.
  mlir::Value shrunk(mlir::Value old, mlir::Value factor);
  /// Whether nothing is left of what was summed before, or nothing was: it may be infinite, of keys that are hidden.
  mlir::Value isGone(mlir::Value factor);
  mlir::Value addedTo(mlir::Value before, mlir::Value place, mlir::Value factor, mlir::Value sum, const KeyBlock &keys);
  Matrix packRows(const Panels &p, const Matrix &rows, mlir::Type given, mlir::Value count, mlir::Value depth);
  /// An operand of a product as it is multiplied.
  mlir::Value asMultiplied(mlir::Value x);
  /// Sets the grid, and walks over the groups of [begin, end).
  void forEachGroup(llvm::function_ref<void(const HeadGroup &)> body);
  void forEachHead(const HeadGroup &group, llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);
  mlir::Value rounded(mlir::Value result);
  ds::AttentionOp op;
  mlir::Type resultElement;                   // as the result is stored
  llvm::SmallVector<ds::CastOp, 2> roundings; // behind it, in order
  bool takesExtremes = false;                 // of each row of the result
  View queryView, keyView, valueView, resultView;
  std::optional<RowSource> queryRows; // where queries are computed
  std::optional<JoinedHeads> joinedKeys, joinedValues;
};

} // namespace deepstride

#endif
