// Builds the operands of ds.attention from what stands between the products of a chain.
#ifndef DEEPSTRIDE_PASSES_GRAPH_ATTENTIONOPERANDS_H
#define DEEPSTRIDE_PASSES_GRAPH_ATTENTIONOPERANDS_H

#include "passes/graph/AttentionScores.h"
#include "passes/graph/AttentionWindow.h"

namespace deepstride {

/// Builds the operands of one attention. Ops that it creates are known to the size analysis.
class AttentionOperands {
public:
  /// `shape` are the scores' sizes, as far as they are split into batch, heads, rows and columns; `total` those of the
  /// softmax, which masks may have enlarged.
  AttentionOperands(mlir::Operation *root, SizeAnalysis &sizes, const SizeVector &shape, const SizeVector &total);

  static mlir::Type elementOf(mlir::Value value);

  template <typename Op, typename... Args> mlir::Value create(mlir::Type element, int64_t rank, Args &&...args) {
    llvm::SmallVector<int64_t> unknown(rank, mlir::ShapedType::kDynamic);
    auto op = Op::create(builder, location, mlir::RankedTensorType::get(unknown, element), std::forward<Args>(args)...);
    known(op);
    return op->getResult(0);
  }
  mlir::Value reshape(mlir::Value value, const SizeVector &shape);

  /// The query, the key from the right operand of its product, the value; as [batch, heads, rows or columns, size].
  mlir::Value query(mlir::Value value, const AttentionScores &scores, double &scale);
  mlir::Value key(ds::MatmulOp product, double &scale);
  /// [batch * heads, rows, columns] or [batch, groups, heads, rows, columns] as [batch, heads, rows, columns].
  mlir::Value splitHeads(mlir::Value value);
  /// The value with these batches and rows; without `rows` it keeps its own.
  mlir::Value enlarge(mlir::Value value, const SizeExpr &batches, std::optional<SizeExpr> rows = std::nullopt);

  /// The terms as steps of ds.attention, in its order, without those that hide nothing, as constants show. One window
  /// takes the place of masks that hide places by their distance.
  llvm::SmallVector<ds::ScoreStep> steps(const AttentionScores &scores);
  /// The window of the steps, and why masks that look like windows are none.
  ds::ScoreWindow window;
  std::string unread;

  mlir::OpBuilder builder;

private:
  void known(mlir::Operation *op);
  mlir::Value peelMovedScale(mlir::Value value, double &scale);
  mlir::Value exchangedSource(mlir::Value value);
  mlir::Value alignMask(mlir::Value mask, int64_t rank);
  mlir::Value narrow(mlir::Value mask);
  mlir::Value withoutCopies(mlir::Value mask);
  mlir::Value number(double value, mlir::Type element);
  mlir::Value choose(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value all(llvm::ArrayRef<Literal> conditions, int64_t rank);
  bool isVoid(const ScoreTerm &term, mlir::Value mask);
  bool isGrouped() const { return shape.size() == 5; }
  bool takeWindow(const SeenPlaces &places, const ScoreTerm &term);
  bool addByWindow(const ScoreTerm &term, llvm::SmallVectorImpl<ds::ScoreStep> &steps);
  bool addByFlags(const ScoreTerm &term, llvm::SmallVectorImpl<ds::ScoreStep> &steps);
  bool chooseByWindow(const ScoreTerm &term, llvm::SmallVectorImpl<ds::ScoreStep> &steps);
  void addStep(const ScoreTerm &term, llvm::SmallVectorImpl<ds::ScoreStep> &steps);
  mlir::Value scalar(mlir::Value number);

  mlir::Location location;
  SizeAnalysis &sizes;
  SizeExpr batch, heads;
  SizeVector shape, total;
  llvm::DenseMap<mlir::Value, mlir::Value> narrowed;
  // A value may be an operand of many: what is looked at in all of the masks together, where real ones have a few.
  int narrowings = 64, sums = 16;
  std::string missed; // why the step at hand has no window
};

} // namespace deepstride

#endif
