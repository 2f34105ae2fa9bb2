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
  explicit ConstantEvaluator(const SizeAnalysis &analysis) : analysis(analysis) {}
  std::optional<HostTensor> evaluate(Value root);

private:
  std::optional<HostTensor> leaf(Value value) const;

  const SizeAnalysis &analysis;
  llvm::DenseMap<Value, HostTensor> known;
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
    SmallVector<HostTensor> operands;
    for (Value operand : value.getDefiningOp()->getOperands())
      operands.push_back(known.lookup(operand));
    auto result = evaluateOnHost(value.getDefiningOp(), operands);
    if (!result)
      return std::nullopt;
    known[value] = std::move(*result);
  }
  return known.lookup(root);
}

std::optional<HostTensor> evaluateConstant(Value value, const SizeAnalysis &analysis) {
  return ConstantEvaluator(analysis).evaluate(value);
}

} // namespace deepstride
