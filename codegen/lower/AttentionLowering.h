// The attention kernel in two forms; what they share works on rows of scores: steps, windows, softmax.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONLOWERING_H
#define DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONLOWERING_H

#include "codegen/kernel/HeadRows.h"

namespace deepstride {

/// Columns [begin, end) of a row, all inside the window or all outside.
struct Segment {
  mlir::Value begin, end;
  bool inside;
};

/// The weights that the columns of one block of rows have: the columns that any row of it sees, and whether a column
/// beside them has a weight, too.
struct BlockWindow {
  mlir::Value firsts, ends, hidden; // of each row: first and end of its window; the weight of what it hides
  mlir::Value begin, end;           // cells
  mlir::Value spills;               // cell
};

class AttentionLowering {
public:
  AttentionLowering(KernelBuilder &k, ds::AttentionOp op)
      : k(k), op(op), element(k.elementOf(op.getQuery())), q(k.sizesOf(op.getQuery())), key(k.sizesOf(op.getKey())),
        value(k.sizesOf(op.getValue())), steps(op.getScoreSteps()), bounds(op.getWindow()) {}
  llvm::LogicalResult run();

private:
  struct Panels;
  void emitPlain();
  void emitPanels();
  /// Whether each head has one query, against rows of keys and values that vectors divide.
  bool hasOneQuery() const;
  void emitOneQuery();
  mlir::Value emitDots(const Matrix &keys, mlir::Value first, int64_t count, llvm::ArrayRef<mlir::Value> query);
  void emitHead(const Panels &p, llvm::ArrayRef<mlir::Value> at);
  Matrix packRows(const Panels &p, const Matrix &rows, mlir::Value count, mlir::Value depth);
  /// An operand of a product as it is multiplied.
  mlir::Value asMultiplied(mlir::Value x);
  mlir::Value repeatOf();
  /// Heads of queries [from, to) of a group, that share keys and values: those that are the thread's.
  struct Group {
    mlir::Value batch, group, from, to;
    mlir::Value isOwner; // whether the thread has the first one; null where each group has one
  };
  /// Sets the grid, and walks over the groups of [begin, end).
  void forEachGroup(llvm::function_ref<void(const Group &)> body);
  void forEachHead(const Group &group, llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);
  /// Whether several heads of queries share one of keys.
  bool isShared() const { return q[1] != key[1]; }
  mlir::Value rounded(mlir::Value result);
  /// One head of an operand or of the result, as a matrix of tokens by features.
  Matrix headOf(const View &view, mlir::Value batch, mlir::Value head);
  mlir::Value divisorOf(mlir::Value sum);
  mlir::Value orZero(mlir::Value result, mlir::Value sum);

  /// The last step that puts a constant wherever the window hides a score; none where hidden scores are read.
  std::optional<size_t> replacingStep() const;
  Segment windowOf(llvm::ArrayRef<mlir::Value> row);
  llvm::SmallVector<Segment> segmentsOf(const Segment &window);
  mlir::Value adjust(mlir::OpBuilder &b, mlir::Value score, llvm::ArrayRef<mlir::Value> masks, bool inside);

  mlir::Value lineOf(const View &view, mlir::Value base, const Segment &segment);
  void adjustRow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row, const Segment &segment);
  mlir::Value reduceRow(const View &scores, mlir::Value offset, const Segment &segment, ds::ReduceKind kind,
                        mlir::Value start = {});
  void exponentials(const View &scores, mlir::Value offset, const Segment &segment, mlir::Value greatest);
  void fillRow(mlir::Value scores, mlir::Value offset, mlir::Value from, mlir::Value to, mlir::Value number);
  void softmaxRow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row, mlir::Value inverseCell);
  void softmaxWindow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row, mlir::Value number,
                     const BlockWindow &block, mlir::Value inverseCell);
  BlockWindow emitWindows(int64_t rowBlock, llvm::ArrayRef<mlir::Value> head, mlir::Value firstRow, mlir::Value count);
  void spread(const View &scores, mlir::Value scoresAt, mlir::Value stride, mlir::Value count,
              const BlockWindow &block);

  /// Whether what the window hides has one score: the last step puts it there.
  bool hidesEqually() const { return replacingStep() == steps.size() - 1; }
  mlir::Value constant(mlir::OpBuilder &b, double number) { return scalarConstant(b, k.loc, element, number); }
  mlir::Value loadCell(mlir::Value cell) { return mlir::memref::LoadOp::create(k.b, k.loc, cell); }
  void storeCell(mlir::Value value, mlir::Value cell) { mlir::memref::StoreOp::create(k.b, k.loc, value, cell); }

  KernelBuilder &k;
  ds::AttentionOp op;
  mlir::Type element, resultElement; // of the operands; as the result is stored
  SizeVector q, key, value;
  llvm::SmallVector<ds::ScoreStep> steps;
  ds::ScoreWindow bounds;
  View queryView, keyView, valueView, resultView;
  std::optional<RowSource> queryRows; // where queries are computed
  std::optional<JoinedHeads> joinedKeys, joinedValues;
  llvm::SmallVector<View> masks; // one for each step, some without a buffer
  View positions;
  std::unique_ptr<MicroKernel> micro; // null for plain loops
};

} // namespace deepstride

#endif
