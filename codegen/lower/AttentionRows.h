// What the kernels of attention and of its derivative do to rows of scores: the steps that mask them, their softmax,
// and which columns a window leaves out.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONROWS_H
#define DEEPSTRIDE_CODEGEN_LOWER_ATTENTIONROWS_H

#include "codegen/lower/RandomWords.h"
#include "codegen/tile/MicroKernel.h"

namespace deepstride {

/// Columns [begin, end) of a row, all inside the window or all outside.
struct Segment {
  mlir::Value begin, end;
  bool inside;
};

/// Keys [begin, end), of which scratch has the scores: column c of a row stands c - begin behind the first.
struct KeyBlock {
  mlir::Value begin, end;
  mlir::Value isFirst, isLast; // of the blocks that a row meets
  bool isOnly;                 // whatever the sizes are, there is no other

  Segment columns() const { return {begin, end, true}; }
};

/// The softmax of a row behind some blocks of its keys: the greatest score, and the sum of the exponentials of the
/// differences to it. What was summed with weights before the last of them is to be multiplied by `factor`, which is
/// anything behind the first block.
struct RunningSoftmax {
  mlir::Value greatest, sum, factor = {};
};

/// The weights that the columns of one block of rows have: the columns that any row of it sees, and whether a column
/// beside them has a weight, too.
struct BlockWindow {
  mlir::Value firsts, ends, hidden; // of each row: first and end of its window; the weight of what it hides
  mlir::Value begin, end;           // cells
  mlir::Value spills;               // cell
};

class AttentionRows {
protected:
  template <typename Op>
  AttentionRows(KernelBuilder &k, Op op)
      : k(k), stored(k.elementOf(op.getQuery())), element(computeType(stored)), q(k.sizesOf(op.getQuery())),
        key(k.sizesOf(op.getKey())), value(k.sizesOf(op.getValue())), steps(op.getScoreSteps()), bounds(op.getWindow()),
        scale(op.getScale().convertToDouble()), guard(op.getGuard()) {
    if (op.getSoftcap())
      softcap = op.getSoftcap()->convertToDouble();
    if (op.getDropout())
      dropout = Dropout{op.getDropout()->convertToDouble(), op.getRandom(), {}};
  }
  /// Where masks and positions lie, and what dropout is drawn by; fails, with a message, where the kernel computes one,
  /// or nothing is there to draw by.
  llvm::LogicalResult findMasks(mlir::Operation *op, unsigned firstMask);

  /// How many heads of queries share a head of keys.
  mlir::Value repeatOf();
  /// Whether several heads of queries share one of keys.
  bool isShared() const { return q[1] != key[1]; }
  /// One head of an operand or of the result, as a matrix of tokens by features.
  Matrix headOf(const View &view, mlir::Value batch, mlir::Value head);
  mlir::Value divisorOf(mlir::Value sum);
  mlir::Value orZero(mlir::Value result, mlir::Value sum);

  /// The last step that puts a constant wherever the window hides a score; none where hidden scores are read.
  std::optional<size_t> replacingStep() const;
  Segment windowOf(llvm::ArrayRef<mlir::Value> row);
  llvm::SmallVector<Segment> segmentsOf(const Segment &window, const KeyBlock &keys);

  /// The keys as one block.
  KeyBlock allKeys();
  /// How many keys a block has: a multiple of `step`, or the number of all keys where that is known and less.
  SizeExpr keysAtOnce(int64_t step) const;
  /// Walks over blocks of so many keys, one at least.
  void forEachKeyBlock(const SizeExpr &keysAtOnce, llvm::function_ref<void(const KeyBlock &)> body);
  /// `index`, moved into the block.
  mlir::Value within(const KeyBlock &keys, mlir::Value index);
  mlir::Value adjust(mlir::OpBuilder &b, mlir::Value score, llvm::ArrayRef<mlir::Value> masks, bool inside);

  /// In plain loops: the sum of `count` terms, one after the other.
  mlir::Value plainSum(mlir::Value count, llvm::function_ref<mlir::Value(mlir::Value)> term);
  /// In plain loops: writes the exponentials of a row's scores, [batch, head, row], of a block of keys. `dotOf` makes
  /// the product of the query and a key.
  RunningSoftmax plainSoftmax(llvm::ArrayRef<mlir::Value> row, mlir::Value scores, const KeyBlock &keys,
                              const RunningSoftmax &before, llvm::function_ref<mlir::Value(mlir::Value)> dotOf);
  /// One element of the mask of each step, or null.
  llvm::SmallVector<mlir::Value> masksAt(llvm::ArrayRef<mlir::Value> row, mlir::Value column);

  mlir::Value lineOf(const View &view, mlir::Value base, const Segment &segment);
  mlir::Value segmentOf(const View &view, mlir::Value base, const Segment &segment);
  void adjustRow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row, const Segment &segment);
  mlir::Value reduceRow(const View &scores, mlir::Value offset, const Segment &segment, ds::ReduceKind kind,
                        mlir::Value start = {});
  void exponentials(const View &scores, mlir::Value offset, const Segment &segment, mlir::Value greatest);
  void fillRow(mlir::Value scores, mlir::Value offset, mlir::Value from, mlir::Value to, mlir::Value number);
  /// Before any key.
  RunningSoftmax noSoftmax();
  /// The scores of a row of which a block of keys is added, less this or, where there are others, less 0 for none.
  mlir::Value shiftOf(mlir::Value greatest, const KeyBlock &keys);
  /// What exponentials of differences to `before` are to be multiplied by; 0 in the first block.
  mlir::Value factorOf(mlir::Value before, mlir::Value shift, const KeyBlock &keys);
  /// What divides the exponentials of a row, behind all its keys: NaN where no score is more than -inf. `isOnly`: they
  /// were one block.
  mlir::Value totalOf(const RunningSoftmax &softmax, bool isOnly);
  mlir::Value inverseOf(const RunningSoftmax &softmax, bool isOnly);
  /// Makes the products of a row's query, [batch, head, row], and a block of keys exponentials. `offset`: where the
  /// product with key 0 would stand.
  RunningSoftmax softmaxRow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row,
                            const KeyBlock &keys, const RunningSoftmax &before);
  RunningSoftmax softmaxWindow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row,
                               mlir::Value number, const BlockWindow &block, const KeyBlock &keys,
                               const RunningSoftmax &before);
  BlockWindow emitWindows(int64_t rowBlock, llvm::ArrayRef<mlir::Value> head, mlir::Value firstRow, mlir::Value count);
  void spread(const View &scores, mlir::Value scoresAt, mlir::Value stride, mlir::Value count, const BlockWindow &block,
              const KeyBlock &keys);

  // Dropout of the softmax's weights, which is drawn anew wherever it is needed.
  /// Emits what all places share.
  void prepareDropout();
  /// The place of the first column of a row, [batch, head, row], among all scores.
  mlir::Value placeOf(llvm::ArrayRef<mlir::Value> row);
  /// Whether a column of a row is kept, i1.
  mlir::Value keeps(mlir::OpBuilder &b, mlir::Value rowPlace, mlir::Value column);
  /// `number`, but 1 where that is NaN and all columns of the row are dropped: of such a row nothing is left.
  mlir::Value unlessDropped(llvm::ArrayRef<mlir::Value> row, mlir::Value number);
  /// What a kept weight is multiplied with.
  double dropoutScale() const { return dropout ? 1 / (1 - dropout->ratio) : 1; }
  /// Multiplies a row's columns that are kept with dropoutScale(), and makes the others 0. Whole vectors are written:
  /// columns behind the segment may be anything.
  void dropRow(const View &scores, mlir::Value offset, llvm::ArrayRef<mlir::Value> row, const Segment &segment);
  /// Writes dropoutScale() for the columns that are kept, 0 for the others, as dropRow writes.
  void fillFactors(mlir::Value factors, llvm::ArrayRef<mlir::Value> row, const Segment &segment);
  /// Applies what fillFactors wrote.
  void dropLine(mlir::Value line, mlir::Value factors);
  /// A number as a factor leaves it: 0 where that is 0, NaN or not.
  mlir::Value dropped(mlir::OpBuilder &b, mlir::Value x, mlir::Value factor);

  /// Whether what the window hides has one score: the last step puts it there.
  bool hidesEqually() const { return replacingStep() == steps.size() - 1; }
  mlir::Value constant(mlir::OpBuilder &b, double number) { return scalarConstant(b, k.loc, element, number); }
  /// Elements on the kernel's stack frame.
  mlir::Value cells(int64_t count, mlir::Type type);
  mlir::Value loadCell(mlir::Value cell) { return mlir::memref::LoadOp::create(k.b, k.loc, cell); }
  void storeCell(mlir::Value value, mlir::Value cell) { mlir::memref::StoreOp::create(k.b, k.loc, value, cell); }

  struct Dropout {
    double ratio;
    mlir::ValueRange random; // seed, step, micro-batch, stream
    std::unique_ptr<RandomWords> words;
  };

  KernelBuilder &k;
  mlir::Type stored, element; // of operands, and in which they are multiplied: f32 for narrower floats
  SizeVector q, key, value;
  llvm::SmallVector<ds::ScoreStep> steps;
  ds::ScoreWindow bounds;
  double scale;
  std::optional<double> softcap;
  bool guard;
  std::optional<Dropout> dropout;
  llvm::SmallVector<View> masks; // one for each step, some without a buffer
  View positions;
  std::unique_ptr<MicroKernel> micro; // null for plain loops
};

} // namespace deepstride

#endif
