// What an op's shape rules see and produce. One Inference is one op's turn: operand facts in, result facts out,
// conditions that only a run can check recorded as constraints.
#ifndef DEEPSTRIDE_DIALECTS_DS_INFERENCE_H
#define DEEPSTRIDE_DIALECTS_DS_INFERENCE_H

#include "dialects/ds/SizeExpr.h"
#include "mlir/IR/Operation.h"

namespace mlir::scf {
class WhileOp;
} // namespace mlir::scf

namespace deepstride {

/// What is known of a tensor: element type, symbolic sizes and, for small integer tensors, symbolic elements. Those are
/// numbers without a width; dialects/ds/Contents.h says what they tell of the elements.
struct TensorFacts {
  mlir::Type elementType;
  SizeVector sizes;
  std::optional<SizeVector> contents;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  mlir::RankedTensorType type() const;
};

/// A condition between sizes that was neither proved nor refuted at compile time.
struct SizeConstraint {
  enum class Relation { Equal, Broadcast, AtLeast };
  Relation relation;
  SizeExpr lhs, rhs;
  mlir::Location where;
};
llvm::StringRef toString(SizeConstraint::Relation relation);

class Inference {
public:
  /// Contents of more elements are not tracked: shape arithmetic is short, data is not.
  static constexpr size_t contentsLimit = 1024;

  Inference(mlir::Operation *op, llvm::ArrayRef<TensorFacts> operands, bool quiet = false)
      : op(op), operands(operands), quiet(quiet) {}

  const TensorFacts &operand(unsigned index) const { return operands[index]; }
  unsigned operandCount() const { return operands.size(); }
  void addResult(mlir::Type elementType, SizeVector sizes, std::optional<SizeVector> contents = std::nullopt);

  /// Emits "<op> C<n>: <message>" at the op (unless quiet) and fails.
  llvm::LogicalResult error(const llvm::Twine &message);

  /// Records that two sizes must be equal; fails where they never are, saying what they are sizes of.
  llvm::LogicalResult requireEqual(const SizeExpr &a, const SizeExpr &b, const llvm::Twine &what);
  llvm::LogicalResult requireAtLeast(const SizeExpr &a, const SizeExpr &bound, const llvm::Twine &what);
  /// The same for sizes that are to broadcast with each other.
  llvm::LogicalResult requireBroadcast(const SizeExpr &a, const SizeExpr &b, const llvm::Twine &what);
  llvm::LogicalResult require(const SizeConstraint &constraint);
  /// The NumPy broadcast of two shapes.
  std::optional<SizeVector> broadcast(llvm::ArrayRef<SizeExpr> a, llvm::ArrayRef<SizeExpr> b);
  /// Fails where `given` does not broadcast to `target`, which must not grow; where only a run tells, it is checked
  /// there.
  llvm::LogicalResult requireBroadcastTo(llvm::ArrayRef<SizeExpr> target, llvm::ArrayRef<SizeExpr> given,
                                         const llvm::Twine &what);
  /// Reads a size list attribute; fails with `what` where an element does not parse.
  std::optional<SizeVector> sizesOf(mlir::ArrayAttr attribute, llvm::StringRef what);
  /// The axis counted from the front, if it is inside the rank.
  std::optional<int64_t> axis(int64_t value, int64_t rank) const;

  std::vector<TensorFacts> results;
  std::vector<SizeConstraint> constraints;

private:
  SizeExpr broadcastSize(const SizeExpr &a, const SizeExpr &b);
  mlir::Operation *op;
  llvm::ArrayRef<TensorFacts> operands;
  bool quiet;
};

/// Symbolic facts of all values of a function, kept up to date as ops are appended: the size analysis.
class SizeAnalysis {
public:
  /// Seeds entry arguments from their `ds.dims` attributes, then visits every op in order.
  static mlir::FailureOr<SizeAnalysis> run(mlir::Operation *function);

  /// What the type and the attributes of an entry argument state; small integer inputs have symbolic contents.
  static mlir::FailureOr<TensorFacts> factsOfArgument(mlir::Operation *function, unsigned index);

  const TensorFacts &facts(mlir::Value value) const;
  const TensorFacts *lookup(mlir::Value value) const;
  void set(mlir::Value value, TensorFacts facts);
  /// Infers the results of one op whose operands are known. Gives the results their inferred types if `retype`.
  llvm::LogicalResult visit(mlir::Operation *op, bool retype = false);
  llvm::LogicalResult readStatedSizes(mlir::Operation *op);

  /// The condition of a branch as an expression that is 0 where it is false: its contents, or the symbol that a
  /// ds.define gave it. Nothing where it has neither.
  std::optional<SizeExpr> conditionOf(mlir::Value condition) const;
  /// The same of the tensor that holds it, as `reader` finds it.
  std::optional<SizeExpr> conditionIn(mlir::Value tensor, mlir::Operation *reader) const;

  std::vector<SizeConstraint> constraints;
  /// What evaluating constants for this function may still cost, in elements.
  int64_t evaluationBudget = int64_t(1) << 24;

private:
  llvm::LogicalResult visitRegion(mlir::Region &region);
  llvm::LogicalResult visitLoop(mlir::Operation *op);
  llvm::LogicalResult visitSides(mlir::Operation *op);
  std::optional<SizeExpr> firstCondition(mlir::scf::WhileOp loop, mlir::Value condition) const;
  llvm::DenseMap<mlir::Value, TensorFacts> known;
  unsigned scopes = 0; // of unknown sizes
};

/// Facts that a type alone states; dynamic sizes become unknown ones, those of one scope being the same.
TensorFacts factsOfType(mlir::Type type, unsigned scope);
/// With dynamic sizes that are the symbols "<prefix><index>".
TensorFacts factsOfType(mlir::Type type, llvm::StringRef prefix);

/// Types cannot hold negative sizes, which wrong operands may lead to, and whoever counts bytes relies on products of
/// sizes that fit. An empty tensor counts as if its sizes of 0 were 1: its strides must fit, too.
llvm::LogicalResult requireSizes(mlir::Operation *op, const TensorFacts &facts);

namespace ds {
/// C-labelled checks of inferResults against the types that the op carries.
llvm::LogicalResult verifyAgainstInference(mlir::Operation *op);
} // namespace ds

} // namespace deepstride

#endif
