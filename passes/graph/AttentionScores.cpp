// Walks from a softmax up to the product of query and key. Every op on the way is a scale, a cap, a mask, a cast or a
// reshape between [batch * heads, rows, columns] and [batch, heads, rows, columns]; anything else ends the walk with a
// reason. Nothing is created here: the pass builds the operands of ds.attention from what was found.
#include "passes/graph/AttentionScores.h"

using namespace mlir;

namespace deepstride {

/// Adding a number this low to a score gives that number, so that choosing it is adding it.
static constexpr double absorbing = -1e30;

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

/// Whether `size` is min(n, whole) of a table of n places: 1 only where `whole` is, so nothing is broadcast to it.
static bool isClamped(const SizeExpr &size, const SizeExpr &whole) {
  std::string written = size.str();
  StringRef text(written);
  int64_t places;
  return text.consume_front("min(") && !text.consumeInteger(10, places) && places > 1 &&
         size == SizeExpr::min(SizeExpr(places), whole);
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
  bool stepBinary(ds::BinaryOp op);
  bool stepSelect(ds::SelectOp op);
  bool stepReshape(ds::ReshapeOp op);
  bool stepCast(ds::CastOp op);

  /// Whether the op, which leaves the scores' sizes alone, may be taken in: a broadcast would enlarge them.
  bool keepsSizes(Operation *op, Value inner) {
    const SizeVector &after = sizes.facts(op->getResult(0)).sizes, &before = sizes.facts(inner).sizes;
    bool keeps = after.size() == before.size();
    for (size_t axis = 0; keeps && axis < after.size(); ++axis)
      keeps = after[axis] == before[axis] || isClamped(before[axis], after[axis]);
    return keeps || fail("the mask might enlarge the scores");
  }
  bool isCapped() const { return scores.cap.has_value(); }
  bool hasFactor() const { return scores.factor || scores.takesOut; }
};
} // namespace

bool Walk::stepBinary(ds::BinaryOp op) {
  bool isLeft = leadsToProduct(op.getLhs());
  Value inner = isLeft ? op.getLhs() : op.getRhs(), other = isLeft ? op.getRhs() : op.getLhs();
  switch (op.getKind()) {
  case ds::BinaryKind::sub:
    if (!isLeft)
      return fail("the scores are subtracted from a value");
    [[fallthrough]];
  case ds::BinaryKind::add:
    if (scores.scale != 1 || isCapped() || hasFactor())
      return fail("the mask is added before the scale");
    scores.terms.push_back({other, op.getKind() == ds::BinaryKind::sub, {}, 0, true, rankOf(op.getResult())});
    break;
  case ds::BinaryKind::mul:
    if (scores.scale != 1 || isCapped() || hasFactor() || rankOf(other) == 0)
      return fail("the scale is not a constant");
    scores.factor = other;
    scores.factorRank = rankOf(op.getResult());
    break;
  case ds::BinaryKind::div: return fail("the scale is not a constant");
  default: return fail("between the products stands an op that is neither a constant scale nor a mask");
  }
  value = inner;
  return keepsSizes(op, inner);
}

bool Walk::stepSelect(ds::SelectOp op) {
  bool lowWhenTrue = leadsToProduct(op.getOnFalse());
  Value inner = lowWhenTrue ? op.getOnFalse() : op.getOnTrue(),
        fallback = lowWhenTrue ? op.getOnTrue() : op.getOnFalse();
  auto low = scalarOf(fallback);
  if (!low)
    return fail("the masked score is not a constant");
  if (scores.scale != 1 || isCapped() || hasFactor())
    return fail("the mask is chosen before the scale");
  scores.terms.push_back({{}, false, op.getCondition(), *low, lowWhenTrue, rankOf(op.getResult())});
  // A score that the constant does not absorb is taken out by a factor of 0.
  scores.takesOut = !(*low <= absorbing);
  value = inner;
  return keepsSizes(op, inner);
}

bool Walk::stepReshape(ds::ReshapeOp op) {
  const SizeVector &from = sizes.facts(op.getInput()).sizes, &to = sizes.facts(op.getResult()).sizes;
  if (from.size() + to.size() != 7 || ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
    return fail("between the products stands a reshape that does not split or join batch and heads");
  value = op.getInput();
  return true;
}

bool Walk::stepCast(ds::CastOp op) {
  if (scores.widened || scores.scale != 1 || isCapped() || hasFactor() || !scores.terms.empty())
    return fail("scale or mask have another type than the product");
  scores.widened = true;
  value = op.getInput();
  return true;
}

bool Walk::run() {
  while (!(scores.product = value.getDefiningOp<ds::MatmulOp>())) {
    if (Value inner = isCapped() ? Value() : matchCap(value, scores.cap)) {
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
  return true;
}

std::optional<AttentionScores> matchScores(Value value, const SizeAnalysis &sizes, std::string &mismatch) {
  Walk walk{sizes, value, {}, ""};
  bool found = walk.run();
  mismatch = walk.mismatch;
  return found ? std::optional(walk.scores) : std::nullopt;
}

} // namespace deepstride
