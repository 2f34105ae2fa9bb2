// The sweep itself; what the derivative of an op is, its rule says.
#include "passes/training/ReverseSweep.h"

#include "dialects/ds/Provenance.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {

llvm::SetVector<Value> valuesUsedBy(Operation *op) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

ReverseSweep::ReverseSweep(Block &block, ValueRange sources) : block(block) {
  varied.insert_range(sources);
  for (Operation &op : block)
    if (llvm::any_of(valuesUsedBy(&op), [&](Value value) { return varied.contains(value); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          varied.insert(result);
}

/// The ops between sources and results, last ones first.
SmallVector<Operation *> ReverseSweep::findPath(ValueRange results) const {
  llvm::DenseSet<Value> needed(llvm::from_range, results);
  SmallVector<Operation *> path;
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(), [&](Value v) { return needed.contains(v) && varied.contains(v); }))
      continue;
    path.push_back(&op);
    needed.insert_range(valuesUsedBy(&op));
  }
  return path;
}

/// Names the first op of each kind that has no rule.
static bool checkRules(ArrayRef<Operation *> path) {
  llvm::StringSet<> missing;
  for (Operation *op : path)
    if (!RuleTable::get().find(op) && missing.insert(op->getName().getStringRef()).second)
      op->emitError() << "'" << op->getName()
                      << "' has no derivative yet, and a value whose gradient is asked for depends on it";
  return missing.empty();
}

LogicalResult ReverseSweep::run(ValueRange results, ValueRange seeds, DsBuilder &b) {
  SmallVector<Operation *> path = findPath(results);
  if (!checkRules(path))
    return failure();
  for (auto [result, seed] : llvm::zip_equal(results, seeds))
    if (seed && varied.contains(result)) {
      Value &total = gradients[result];
      total = total ? b.add(total, seed) : seed;
    }
  for (Operation *op : path) {
    // Behind a step, whose rule gave nothing, the derivative is 0.
    if (llvm::none_of(op->getResults(), [&](Value result) { return gradients.contains(result); }))
      continue;
    b.setLocation(withRole(op->getLoc(), WorkRole::Backward));
    Derivative derivative(op, b, varied, gradients);
    (*RuleTable::get().find(op))(op, derivative);
    if (derivative.isRefused())
      return failure();
    ++count;
  }
  return success();
}

} // namespace deepstride
