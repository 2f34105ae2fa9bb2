// Walks from a softmax up to the product of query and key. Every op on the way is a scale, a cap, a mask, a cast or a
// reshape between [batch * heads, rows, columns] and [batch, heads, rows, columns]; anything else ends the walk with a
// reason. Nothing is created here: the pass builds the operands of ds.attention from what was found.
#include "passes/graph/AttentionScores.h"

using namespace mlir;

namespace deepstride {

Value peelScale(Value value, double &scale) {
  while (true) {
    if (auto scaled = matchScalar(value, ds::BinaryKind::mul)) {
      scale *= scaled->scalar;
      value = scaled->tensor;
    } else if (auto scaled = matchScalar(value, ds::BinaryKind::div)) {
      scale /= scaled->scalar;
      value = scaled->tensor;
    } else {
      return value;
    }
  }
}

/// Whether the walk may reach a product from here.
static bool leadsToProduct(Value value, int steps = 10) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<ds::MatmulOp>(op))
    return true;
  if (steps == 0 || !isa_and_present<ds::BinaryOp, ds::SelectOp, ds::CastOp, ds::ReshapeOp, ds::UnaryOp>(op))
    return false;
  if (auto unary = dyn_cast<ds::UnaryOp>(op); unary && unary.getKind() != ds::UnaryKind::tanh)
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) { return leadsToProduct(operand, steps - 1); });
}

/// c where the value is c tanh(x / c); then x.
static Value matchCap(Value value, std::optional<double> &cap) {
  auto scaled = matchScalar(value, ds::BinaryKind::mul);
  ds::UnaryOp bounded = scaled ? unaryOf(scaled->tensor, ds::UnaryKind::tanh) : ds::UnaryOp();
  if (!bounded || !(scaled->scalar > 0))
    return {};
  // What else is multiplied belongs to the scale, which peels off below.
  cap = scaled->scalar;
  return bounded.getInput();
}

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

bool AttentionScores::isOfQuery(const ScoreScale &number) const {
  return elementOf(number.value) == elementOf(product->getOperand(0));
}

namespace {
/// One walk: `value` moves toward the product, `scores` collects.
struct Walk {
  const SizeAnalysis &sizes;
  Value value;
  AttentionScores scores;
  std::string mismatch;

  bool fail(StringRef reason) { return mismatch = reason.str(), false; }
  bool run();
  void goInto(Value inner) {
    scores.hasAxisOfMask |= rankOf(inner) != rankOf(value);
    value = inner;
  }
  bool stepBinary(ds::BinaryOp op);
  bool stepSelect(ds::SelectOp op);
  bool stepReshape(ds::ReshapeOp op);
  bool stepCast(ds::CastOp op);

  bool isCapped() const { return scores.cap.has_value(); }
};
} // namespace

bool Walk::stepBinary(ds::BinaryOp op) {
  bool isLeft = leadsToProduct(op.getLhs());
  Value inner = isLeft ? op.getLhs() : op.getRhs(), other = isLeft ? op.getRhs() : op.getLhs();
  auto isOneNumber = [&] {
    const SizeVector &shape = sizes.facts(other).sizes;
    return shape.size() <= sizes.facts(inner).sizes.size() && product(shape).isConstant(1);
  };
  switch (op.getKind()) {
  case ds::BinaryKind::sub:
    if (!isLeft)
      return fail("the scores are subtracted from a value");
    [[fallthrough]];
  case ds::BinaryKind::add:
    if (scores.isScaled() || isCapped())
      return fail("the mask is added before the scale");
    scores.terms.push_back(
        {ds::ScoreStepKind::add, other, op.getKind() == ds::BinaryKind::sub, 0, rankOf(op.getResult())});
    break;
  case ds::BinaryKind::mul:
    if (isOneNumber()) {
      scores.scales.push_back({other, false});
      break;
    }
    if (scores.isScaled() || isCapped())
      return fail("the scores are multiplied by more than one number");
    scores.terms.push_back({ds::ScoreStepKind::multiply, other, false, 0, rankOf(op.getResult())});
    break;
  case ds::BinaryKind::div:
    if (!isLeft || !isOneNumber())
      return fail("the scores are divided by more than one number");
    scores.scales.push_back({other, true});
    break;
  default: return fail("between the products stands an op that is neither a constant scale nor a mask");
  }
  goInto(inner);
  return true;
}

bool Walk::stepSelect(ds::SelectOp op) {
  bool lowWhenTrue = leadsToProduct(op.getOnFalse());
  Value inner = lowWhenTrue ? op.getOnFalse() : op.getOnTrue(),
        fallback = lowWhenTrue ? op.getOnTrue() : op.getOnFalse();
  auto low = scalarOf(fallback);
  if (!low)
    return fail("the masked score is not a constant");
  // Below the scale a hidden score would be scaled, too.
  if (scores.isScaled() || isCapped())
    return fail("the mask is chosen before the scale");
  scores.terms.push_back(
      {lowWhenTrue ? ds::ScoreStepKind::hide : ds::ScoreStepKind::keep, op.getCondition(), false, *low, rankOf(value)});
  goInto(inner);
  return true;
}

bool Walk::stepReshape(ds::ReshapeOp op) {
  const SizeVector &from = sizes.facts(op.getInput()).sizes, &to = sizes.facts(op.getResult()).sizes;
  if (from.size() + to.size() != 7 || from.size() < 3 || to.size() < 3 ||
      ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
    return fail("between the products stands a reshape that does not split or join batch and heads");
  if (to.size() == 4)
    scores.sizes = to;
  value = op.getInput();
  return true;
}

bool Walk::stepCast(ds::CastOp op) {
  Type from = elementOf(op.getInput()), to = elementOf(op.getResult());
  if (scores.widened || !(from.isF16() || from.isBF16()) || !to.isF32())
    return fail("scale or mask have another type than the product");
  scores.widened = true;
  value = op.getInput();
  return true;
}

bool Walk::run() {
  while (!(scores.product = value.getDefiningOp<ds::MatmulOp>())) {
    if (Value inner = isCapped() ? Value() : matchCap(value, scores.cap)) {
      if (scores.isScaled())
        return fail("the capped scores are scaled again");
      double divisor = 1;
      Value bounded = peelScale(inner, divisor);
      // The scale below is that of what the cap sees: c tanh(s / c).
      scores.scale *= divisor * *scores.cap;
      value = bounded;
      continue;
    }
    if (Value inner = peelScale(value, scores.scale); inner != value) {
      value = inner;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || !leadsToProduct(value))
      return false;
    bool goesOn = false;
    if (auto binary = dyn_cast<ds::BinaryOp>(op))
      goesOn = stepBinary(binary);
    else if (auto select = dyn_cast<ds::SelectOp>(op))
      goesOn = stepSelect(select);
    else if (auto reshape = dyn_cast<ds::ReshapeOp>(op))
      goesOn = stepReshape(reshape);
    else if (auto cast = dyn_cast<ds::CastOp>(op))
      goesOn = stepCast(cast);
    else {
      fail("between the products stands an op that is neither a constant scale nor a mask");
    }
    if (!goesOn)
      return false;
  }
  if (isCapped() && !llvm::all_of(scores.scales, [&](const ScoreScale &s) { return scores.isOfQuery(s); }))
    return fail("the scores are scaled in a wider type than the query's, and capped");
  if (scores.sizes.empty())
    scores.sizes = sizes.facts(value).sizes;
  return true;
}

std::optional<AttentionScores> matchScores(Value value, const SizeAnalysis &sizes, std::string &mismatch) {
  Walk walk{sizes, value, {}, ""};
  bool found = walk.run();
  mismatch = walk.mismatch;
  return found ? std::optional(walk.scores) : std::nullopt;
}

} // namespace deepstride
