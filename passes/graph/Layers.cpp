// Reads the features of attention and activations off the ops around them. Walks go up from an operand through ops that
// move or rotate elements, and end at products: what lies behind a projection belongs to something else.
#include "passes/graph/Layers.h"

#include "dialects/ds/StridedWindow.h"
#include "passes/graph/Parameters.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace deepstride {

/// Walks are short in real models; this bounds what a hostile one costs.
static constexpr size_t walkLimit = 200;

static bool isProduct(Operation *op) { return isa_and_present<ds::LinearOp, ds::MatmulOp>(op); }

/// The values that `value` is made of, itself first, up to products and whatever `ends` says.
static llvm::SetVector<Value> walkUp(Value value, llvm::function_ref<bool(Operation *)> ends) {
  llvm::SetVector<Value> seen;
  if (value)
    seen.insert(value);
  for (size_t i = 0; i < seen.size() && i < walkLimit; ++i)
    if (Operation *op = seen[i].getDefiningOp(); op && !ends(op))
      seen.insert(op->operand_begin(), op->operand_end());
  return seen;
}

/// What a query or key is made of on the way from its projection.
static llvm::SetVector<Value> headPath(Value value) {
  return walkUp(value, [](Operation *op) {
    return isProduct(op) || !isa<ds::TransposeOp, ds::ReshapeOp, ds::SliceOp, ds::ConcatOp, ds::BinaryOp, ds::RotaryOp,
                                 ds::CastOp, ds::RmsNormOp, ds::LayerNormOp, ds::BroadcastOp, ds::UnaryOp>(op);
  });
}

/// The operand of the projection that a query or key comes from.
static Value projected(Value value) {
  for (Value found : headPath(value))
    if (Operation *op = found.getDefiningOp(); isProduct(op)) {
      // One projection works on [batch, length, size], another one on [batch * length, size].
      return ds::throughReshapes(op->getOperand(0));
    }
  return {};
}

bool isSelfAttention(ds::AttentionOp op) {
  Value query = projected(op.getQuery()), key = projected(op.getKey());
  // Keys without a projection are given: another program projected them, from what it encoded.
  return key ? !query || query == key : !query;
}

SmallVector<Operation *> findHeadNorms(ds::AttentionOp op) {
  SmallVector<Operation *> norms;
  for (Value value : {op.getQuery(), op.getKey()})
    for (Value found : headPath(value)) {
      Operation *norm = found.getDefiningOp();
      // A norm before the projection is not on the path; one of a value that is no projection's result is not meant.
      if (isa_and_present<ds::RmsNormOp, ds::LayerNormOp>(norm) && projected(norm->getOperand(0)))
        norms.push_back(norm);
    }
  return norms;
}

/// Whether the keys are joined from a cache, an input of the program, and new ones.
static bool readsPast(ds::AttentionOp op) {
  for (Value found : headPath(op.getKey()))
    if (auto concat = found.getDefiningOp<ds::ConcatOp>())
      if (llvm::any_of(concat.getInputs(), [](Value input) { return isa<BlockArgument>(input); }))
        return true;
  return false;
}

std::string describeAttention(ds::AttentionOp op) {
  SmallVector<std::string> features;
  auto headsOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(1); };
  if (int64_t heads = headsOf(op.getQuery()), groups = headsOf(op.getKey()); heads > groups && groups > 0)
    features.push_back("grouped " + std::to_string(heads) + ":" + std::to_string(groups));
  bool isMasked = !op.getSteps().empty(), isBiased = false;
  ds::ScoreWindow window = op.getWindow();
  for (const ds::ScoreStep &step : op.getScoreSteps())
    isBiased |= (step.kind == ds::ScoreStepKind::add || step.kind == ds::ScoreStepKind::window_mask) &&
                rankOf(step.mask) == 4 && headsOf(step.mask) > 1;
  // What a mask in memory hides, only a run tells; what is certain became the op's window.
  bool isCausal = window.right && *window.right <= 0, isWindowed = window.left || window.right.value_or(0) > 0;
  if (isCausal)
    features.push_back("causal");
  if (isWindowed)
    features.push_back("window");
  if (isMasked && !isCausal && !isWindowed)
    features.push_back("masked");
  if (isBiased)
    features.push_back("bias by head");
  if (llvm::any_of(headPath(op.getQuery()), [](Value v) { return v.getDefiningOp<ds::RotaryOp>() != nullptr; }))
    features.push_back("rope");
  if (!findHeadNorms(op).empty())
    features.push_back("q/k norms");
  if (op.getSoftcap())
    features.push_back("softcap");
  if (readsPast(op))
    features.push_back("past");
  return llvm::join(features, ", ");
}

/// Whether all that reads the value is one product with a value that is no parameter.
static bool isGate(Value value) {
  Value other;
  return onlyUser(value, ds::BinaryKind::mul, other) && parameterSourceOf(other) == ParameterSource::None;
}

std::string describeActivation(Operation *op) {
  if (auto gelu = dyn_cast<ds::GeluOp>(op))
    return isGate(gelu.getResult()) ? "geglu" : "gelu " + stringifyGeluKind(gelu.getKind()).str();
  if (auto unary = dyn_cast<ds::UnaryOp>(op); unary && unary.getKind() == ds::UnaryKind::relu)
    return isGate(unary.getResult()) ? "reglu" : "relu";
  auto product = dyn_cast<ds::BinaryOp>(op);
  if (!product || product.getKind() != ds::BinaryKind::mul)
    return "";
  for (auto [x, gate] : {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())})
    if (ds::UnaryOp sigmoid = unaryOf(gate, ds::UnaryKind::sigmoid); sigmoid && sigmoid.getInput() == x)
      return isGate(product.getResult()) ? "swiglu" : "silu";
  return "";
}

} // namespace deepstride
