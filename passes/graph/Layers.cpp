// Reads the features of attention and activations off the ops around them. Walks go up from an operand through ops that
// move or rotate elements, and end at products: what lies behind a projection belongs to something else.
#include "passes/graph/Layers.h"

#include "passes/graph/Parameters.h"
#include "passes/graph/Positions.h"

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
      Value input = op->getOperand(0);
      // One projection works on [batch, length, size], another one on [batch * length, size].
      while (auto reshape = input.getDefiningOp<ds::ReshapeOp>())
        input = reshape.getInput();
      return input;
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

/// Whether the value counts along an axis; `shifted` where a constant is added or subtracted on the way.
static bool isPosition(Value value, int64_t axisFromBack, const SizeAnalysis &sizes, bool &shifted) {
  auto path = walkUp(value, [](Operation *op) {
    return !isa<ds::ReshapeOp, ds::BroadcastOp, ds::CastOp, ds::BinaryOp, ds::TransposeOp>(op);
  });
  const SizeVector &shape = sizes.facts(value).sizes;
  int64_t rank = static_cast<int64_t>(shape.size());
  if (rank < axisFromBack || shape[rank - axisFromBack].isConstant(1))
    return false;
  bool counts = false;
  for (Value found : path) {
    counts |= found.getDefiningOp<ds::IotaOp>() != nullptr;
    auto op = found.getDefiningOp<ds::BinaryOp>();
    shifted |= op && (op.getKind() == ds::BinaryKind::add || op.getKind() == ds::BinaryKind::sub) &&
               (scalarOf(op.getLhs()).value_or(0) != 0 || scalarOf(op.getRhs()).value_or(0) != 0);
  }
  return counts;
}

static bool comparesPlaces(Value column, Value row, const SizeAnalysis &sizes, bool &shifted) {
  return isPosition(column, 1, sizes, shifted) && isPosition(row, 2, sizes, shifted);
}

namespace {
/// What a mask compares or stores.
struct MaskShape {
  bool causal = false, windowed = false;
};
} // namespace

/// A stored square of which each row i has its true (or not zero) places up to i, and all of them or the last ones.
static void readTriangle(DenseElementsAttr elements, MaskShape &shape) {
  ArrayRef<int64_t> sizes = elements.getType().getShape();
  if (sizes.size() < 2 || sizes.back() < 2 || sizes[sizes.size() - 2] != sizes.back() ||
      elements.getNumElements() != sizes.back() * sizes.back() || elements.isSplat())
    return;
  SmallVector<bool> kept;
  if (isa<FloatType>(elements.getElementType())) {
    for (const APFloat &value : elements.getValues<APFloat>())
      kept.push_back(!value.isZero());
  } else {
    for (const APInt &value : elements.getValues<APInt>())
      kept.push_back(!value.isZero());
  }
  int64_t size = sizes.back();
  bool whole = true;
  for (int64_t row = 0; row < size; ++row)
    for (int64_t column = 0; column < size; ++column) {
      if (kept[row * size + column] && column > row)
        return;
      whole &= column > row || kept[row * size + column];
    }
  shape.causal = true;
  shape.windowed |= !whole;
}

/// Positions find places in a table of biases, too, as in encoders; only comparisons that reach the mask itself hide.
static bool endsMask(Operation *op) {
  return isProduct(op) || isa<ds::GatherOp, ds::GatherElementsOp, ds::GatherNdOp>(op);
}

static MaskShape readMask(Value mask, const SizeAnalysis &sizes) {
  MaskShape shape;
  SmallVector<SizeExpr> boundaries;
  int comparisons = 0; // whose boundary is not seen
  bool shifted = false;
  for (Value found : walkUp(mask, endsMask)) {
    if (auto constant = found.getDefiningOp<ds::ConstantOp>())
      if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
        readTriangle(elements, shape);
    auto op = found.getDefiningOp<ds::BinaryOp>();
    if (!op || !isa<RankedTensorType>(found.getType()) || rankOf(found) < 2)
      continue;
    // What all rows share says nothing of what lies ahead of one.
    const SizeVector &places = sizes.facts(found).sizes;
    if (places[places.size() - 2].isConstant(1))
      continue;
    switch (op.getKind()) {
    case ds::BinaryKind::le:
    case ds::BinaryKind::lt:
    case ds::BinaryKind::ge:
    case ds::BinaryKind::gt:
      if (auto band = bandOf(op, /*negated=*/false, sizes))
        // Of the places on one side, those on the other one.
        boundaries.push_back(band->upper ? *band->upper : *band->lower - SizeExpr(1));
      else
        comparisons += comparesPlaces(op.getLhs(), op.getRhs(), sizes, shifted) ||
                       comparesPlaces(op.getRhs(), op.getLhs(), sizes, shifted);
      break;
    default: break;
    }
  }
  // One comparison of rows with columns hides what is later. A second one, so many places away, hides what is too far
  // back; one that is a run's length away is the first one again, for a cache.
  for (const SizeExpr &one : boundaries)
    for (const SizeExpr &other : boundaries)
      shape.windowed |= (one - other).constant().value_or(0) != 0;
  shape.causal |= comparisons > 0;
  for (const SizeExpr &boundary : boundaries) {
    // A number of places ahead, or back, is the edge of a window.
    auto distance = boundary.constant();
    bool isEdge = distance && *distance != 0 && *distance != -1;
    (isEdge ? shape.windowed : shape.causal) = true;
  }
  shape.windowed |= comparisons > 0 && comparisons + boundaries.size() > 1 && shifted;
  return shape;
}

/// Whether the keys are joined from a cache, an input of the program, and new ones.
static bool readsPast(ds::AttentionOp op) {
  for (Value found : headPath(op.getKey()))
    if (auto concat = found.getDefiningOp<ds::ConcatOp>())
      if (llvm::any_of(concat.getInputs(), [](Value input) { return isa<BlockArgument>(input); }))
        return true;
  return false;
}

std::string describeAttention(ds::AttentionOp op, const SizeAnalysis &sizes) {
  SmallVector<std::string> features;
  auto headsOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(1); };
  if (int64_t heads = headsOf(op.getQuery()), groups = headsOf(op.getKey()); heads > groups && groups > 0)
    features.push_back("grouped " + std::to_string(heads) + ":" + std::to_string(groups));
  bool isMasked = !op.getSteps().empty(), isBiased = false;
  ds::ScoreWindow window = op.getWindow();
  MaskShape shape{window.right.value_or(1) <= 0, window.left || window.right.value_or(0) > 0};
  for (const ds::ScoreStep &step : op.getScoreSteps()) {
    MaskShape mask = step.mask ? readMask(step.mask, sizes) : MaskShape();
    shape.causal |= mask.causal;
    shape.windowed |= mask.windowed;
    isBiased |= (step.kind == ds::ScoreStepKind::add || step.kind == ds::ScoreStepKind::window_mask) &&
                rankOf(step.mask) == 4 && headsOf(step.mask) > 1;
  }
  if (shape.causal)
    features.push_back("causal");
  if (shape.windowed)
    features.push_back("window");
  if (isMasked && !shape.causal && !shape.windowed)
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
