// Finds out whether a value of a program under construction depends on constants only, and evaluates it if so.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"

using namespace mlir;

namespace deepstride {

namespace {
/// Subexpressions that steer shapes are short. What is longer, or works on more elements, is computation.
constexpr size_t opLimit = 512;
constexpr int64_t elementLimit = int64_t(1) << 16;

class ConstantEvaluator {
public:
  explicit ConstantEvaluator(SizeAnalysis &analysis) : analysis(analysis) {}
  std::optional<HostTensor> evaluate(Value root);
  /// Whether some op that was evaluated depends on the order of its elements.
  bool meetsOrder() const { return isOrdered; }

private:
  std::optional<HostTensor> leaf(Value value) const;
  std::optional<HostTensor> compute(Operation *op);

  SizeAnalysis &analysis;
  llvm::DenseMap<Value, HostTensor> known;
  bool isOrdered = false;
};
} // namespace

static bool isSmall(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return false;
  int64_t elements = 1;
  for (int64_t size : type.getShape()) // the product of hostile sizes may overflow
    if (size > elementLimit || (elements *= std::max<int64_t>(size, 1)) > elementLimit)
      return false;
  return true;
}

std::optional<HostTensor> ConstantEvaluator::leaf(Value value) const {
  if (auto constant = value.getDefiningOp<ds::ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return HostTensor::fromAttribute(dense);
  const TensorFacts *facts = analysis.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  if (!facts || !facts->contents || !isa<IntegerType>(type.getElementType()) ||
      static_cast<int64_t>(facts->contents->size()) != type.getNumElements())
    return std::nullopt;
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  char *to = result.owned->data();
  for (const SizeExpr &size : *facts->contents) {
    auto number = size.constant();
    if (!number)
      return std::nullopt;
    writeNumber(type.getElementType(), to, {static_cast<double>(*number), *number});
    to += result.elementBytes();
  }
  return result;
}

/// What evaluating an op costs, in elements; a product visits the depth of each of its own.
static int64_t costOf(Operation *op, ArrayRef<HostTensor> operands) {
  constexpr int64_t leastCost = 64;
  int64_t results = cast<RankedTensorType>(op->getResult(0).getType()).getNumElements(), cost = leastCost + results;
  for (const HostTensor &operand : operands)
    cost += operand.count();
  if (isa<ds::MatmulOp>(op))
    cost += results * *std::max_element(operands[0].shape.end() - 2, operands[0].shape.end());
  return cost;
}

std::optional<HostTensor> ConstantEvaluator::compute(Operation *op) {
  SmallVector<HostTensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(known.lookup(operand));
  // Every result that might be a size evaluates what is behind it again.
  analysis.evaluationBudget -= costOf(op, operands);
  if (analysis.evaluationBudget < 0)
    return std::nullopt;
  isOrdered |= dependsOnOrder(op, operands);
  return evaluateOnHost(op, operands);
}

std::optional<HostTensor> ConstantEvaluator::evaluate(Value root) {
  SmallVector<std::pair<Value, bool>> stack = {{root, false}};
  size_t ops = 0;
  while (!stack.empty()) {
    auto [value, areOperandsKnown] = stack.pop_back_val();
    if (known.contains(value))
      continue;
    if (!isSmall(value))
      return std::nullopt;
    if (!areOperandsKnown) {
      if (auto stored = leaf(value)) {
        known[value] = *stored;
        continue;
      }
      Operation *op = value.getDefiningOp();
      if (!op || !isa<ds::ResultInference>(op) || op->getNumResults() != 1 || op->getNumOperands() == 0 ||
          ++ops > opLimit)
        return std::nullopt;
      stack.push_back({value, true});
      for (Value operand : op->getOperands())
        stack.push_back({operand, false});
      continue;
    }
    auto result = compute(value.getDefiningOp());
    if (!result)
      return std::nullopt;
    known[value] = std::move(*result);
  }
  return known.lookup(root);
}

std::optional<HostTensor> evaluateConstant(Value value, SizeAnalysis &analysis, bool *isOrdered) {
  ConstantEvaluator evaluator(analysis);
  auto result = evaluator.evaluate(value);
  if (isOrdered)
    *isOrdered = evaluator.meetsOrder();
  return isOrdered || !evaluator.meetsOrder() ? result : std::nullopt;
}

} // namespace deepstride
