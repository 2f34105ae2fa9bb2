// What a rule of ds-differentiate sees of the op that it differentiates, and the table of rules. A rule gets the
// derivative of y with respect to the op's results and gives that with respect to the operands which depend on xs.
#ifndef DEEPSTRIDE_PASSES_TRAINING_DERIVATIVE_H
#define DEEPSTRIDE_PASSES_TRAINING_DERIVATIVE_H

#include "dialects/ds/DsBuilder.h"

#include <functional>

namespace deepstride {

class Derivative {
public:
  using Gradients = llvm::DenseMap<mlir::Value, mlir::Value>;

  /// `varied` holds the values that depend on xs; new ops come where the builder stands.
  Derivative(mlir::Operation *op, DsBuilder &b, const llvm::DenseSet<mlir::Value> &varied, Gradients &gradients)
      : b(b), op(op), varied(varied), gradients(gradients) {}

  DsBuilder &b;

  mlir::Value in(unsigned operand = 0) { return op->getOperand(operand); }
  mlir::Value out(unsigned result = 0) { return op->getResult(result); }
  /// The derivative of y with respect to a result, in the result's type and sizes; null where y does not depend on it.
  mlir::Value gradient(unsigned result = 0) { return gradients.lookup(op->getResult(result)); }
  /// The derivative with respect to any value of the block, as far as it was given; null where nothing was.
  mlir::Value gradientOf(mlir::Value value) const { return gradients.lookup(value); }
  /// Whether the derivative with respect to an operand matters.
  bool wants(unsigned operand) { return wants(in(operand)); }
  bool wants(mlir::Value value) { return varied.contains(value); }

  /// Adds to the derivative with respect to an operand. The value may have any float type and the sizes of anything
  /// that the operand broadcasts to: it is summed along the axes along which the operand was repeated.
  void give(unsigned operand, mlir::Value value) { giveTo(in(operand), value); }
  void giveTo(mlir::Value operand, mlir::Value value);
  /// The same with what was given so far in it already, in the operand's type and sizes.
  void replaceGradient(mlir::Value operand, mlir::Value value) { gradients[operand] = value; }

  /// Says that the op has no derivative as it is; `why` completes "has no derivative".
  void refuse(const llvm::Twine &why);
  /// The same after a diagnostic.
  void fail() { refused = true; }
  bool isRefused() const { return refused; }

  /// Says that a result of the op is another value from here on: its rule made the op anew.
  void moved(mlir::Value from, mlir::Value to);

  // Formulas that rules share.

  /// The value in f32 where it is narrower: sums and differences of narrow floats lose too much.
  mlir::Value wide(mlir::Value value);
  mlir::Value zeros(mlir::Type element, llvm::ArrayRef<SizeExpr> sizes);
  /// A number of elements, in a float type.
  mlir::Value number(mlir::Type element, const SizeExpr &count);
  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> axes) {
    return b.reduce(ds::ReduceKind::sum, value, axes);
  }
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> axes) {
    return b.reduce(ds::ReduceKind::mean, value, axes);
  }
  /// The elements of an axis `step` apart, from `start` on, in an axis of `size` zeros: where a slice came from.
  mlir::Value spread(mlir::Value value, int64_t axis, SizeExpr start, int64_t step, const SizeExpr &size);
  /// The slices of `value` at `axis` added up where `indices` say, in an axis of `size`: where a gather came from. The
  /// axes of `indices` are those of the value from `axis` on.
  mlir::Value scatter(mlir::Value value, int64_t axis, mlir::Value indices, const SizeExpr &size);
  /// Sums along axes until the sizes are `target`, which broadcasts to those of the value.
  mlir::Value sumTo(mlir::Value value, llvm::ArrayRef<SizeExpr> target);

private:
  mlir::Operation *op;
  const llvm::DenseSet<mlir::Value> &varied;
  Gradients &gradients;
  bool refused = false;
};

/// Rules by op. A new one is a function in the file of its family, added to the table there.
class RuleTable {
public:
  using Rule = std::function<void(mlir::Operation *, Derivative &)>;
  static const RuleTable &get();

  template <typename Op> void add(void (*rule)(Op, Derivative &)) {
    rules[Op::getOperationName()] = [rule](mlir::Operation *op, Derivative &d) { rule(mlir::cast<Op>(op), d); };
  }
  const Rule *find(mlir::Operation *op) const;

private:
  llvm::StringMap<Rule> rules;
};

// One function per family, each in the file of that name in rules/.
void addAttentionRules(RuleTable &table);
void addBranchRules(RuleTable &table);
void addElementwiseRules(RuleTable &table);
void addIndexingRules(RuleTable &table);
void addLoopRules(RuleTable &table);
void addMovementRules(RuleTable &table);
void addNormalizationRules(RuleTable &table);
void addProductRules(RuleTable &table);
void addReductionRules(RuleTable &table);
void addWindowRules(RuleTable &table);

} // namespace deepstride

#endif
