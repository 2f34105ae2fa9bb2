// Derivatives of attention, of first and second order, and of rotary position embeddings.
#include "passes/training/ReverseSweep.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ScoreStepKind;
using ds::UnaryKind;

namespace {
/// Attention in steps, each with what its derivative needs. Heads lie as [group, head in group], so that keys and
/// values of a group broadcast to its heads.
struct AttentionSteps {
  template <typename Op> AttentionSteps(Op op, Derivative &d) : b(d.b), sizes(b.sizes(op.getQuery())) {
    SizeVector keySizes = b.sizes(op.getKey());
    groups = keySizes[1];
    perGroup = sizes[1] == groups ? SizeExpr(1) : SizeExpr::floorDiv(sizes[1], groups);
    query = split(d.wide(op.getQuery()), perGroup);
    key = split(d.wide(op.getKey()), 1);
    value = split(d.wide(op.getValue()), 1);
    Value raw = b.mul(b.matmul(query, key, false, true), op.getScale().convertToDouble());
    scores = b.reshape(raw, {sizes[0], sizes[1], sizes[2], keySizes[2]});
    if (op.getSoftcap()) {
      double cap = op.getSoftcap()->convertToDouble();
      bounded = b.unary(UnaryKind::tanh, b.div(scores, cap));
      scores = b.mul(bounded, cap);
    }
    if (ds::ScoreWindow bounds = op.getWindow())
      inside = window(bounds, keySizes[2]);
    Value masked = scores;
    for (const ds::ScoreStep &step : op.getScoreSteps()) {
      before.push_back(masked);
      masked = apply(step, masked, d);
    }
    shares = b.softmax(masked, 3);
    if (op.getGuard())
      shares = b.select(b.unary(UnaryKind::is_nan, shares), b.scalar(b.element(shares), 0), shares);
    ratio = op.getDropoutAttr();
    stream = op.getStreamAttr();
  }

  /// The weights, or the derivatives with respect to them, as dropout leaves them. The places are the same for both.
  Value dropped(Value x) { return ratio ? b.create<ds::DropoutOp>({x}, x, ratio, stream) : x; }

  /// Where the window holds a place: i1, broadcasts to the scores.
  Value window(const ds::ScoreWindow &bounds, const SizeExpr &columns) {
    Value place = bounds.positions;
    if (!place) {
      Value past = b.reshape(b.shape({bounds.past}), {});
      place = b.add(b.iota(2, {1, 1, sizes[2], 1}), past);
    }
    Value column = b.iota(3, {1, 1, 1, columns}), holds;
    if (bounds.left)
      holds = b.binary(BinaryKind::ge, column, b.sub(place, static_cast<double>(*bounds.left)));
    if (bounds.right) {
      Value early = b.binary(BinaryKind::le, column, b.add(place, static_cast<double>(*bounds.right)));
      holds = holds ? b.binary(BinaryKind::bit_and, holds, early) : early;
    }
    return holds;
  }

  Value apply(const ds::ScoreStep &step, Value s, Derivative &d) {
    Value low = b.scalar(b.element(s), step.low);
    switch (step.kind) {
    case ScoreStepKind::add: return b.add(s, d.wide(step.mask));
    case ScoreStepKind::multiply: return b.mul(s, d.wide(step.mask));
    case ScoreStepKind::keep: return b.select(step.mask, s, low);
    case ScoreStepKind::hide: return b.select(step.mask, low, s);
    case ScoreStepKind::keep_add: return b.select(step.mask, s, b.add(s, low));
    case ScoreStepKind::hide_add: return b.select(step.mask, b.add(s, low), s);
    case ScoreStepKind::window: return b.select(inside, s, low);
    case ScoreStepKind::window_add: return b.select(inside, s, b.add(s, low));
    case ScoreStepKind::window_mask: return b.add(s, b.select(inside, d.wide(step.mask), low));
    }
    return {};
  }

  /// What a step leaves of the derivative with respect to its result, for the scores before it; `give` takes that of
  /// its mask.
  Value undo(const ds::ScoreStep &step, Value g, Value s, Derivative &d, llvm::function_ref<void(Value, Value)> give) {
    Value zero = b.scalar(b.element(g), 0);
    switch (step.kind) {
    case ScoreStepKind::add: give(step.mask, g); return g;
    case ScoreStepKind::multiply: give(step.mask, b.mul(g, s)); return b.mul(g, d.wide(step.mask));
    case ScoreStepKind::keep: return b.select(step.mask, g, zero);
    case ScoreStepKind::hide: return b.select(step.mask, zero, g);
    case ScoreStepKind::window: return b.select(inside, g, zero);
    case ScoreStepKind::keep_add:
    case ScoreStepKind::hide_add:
    case ScoreStepKind::window_add: return g;
    case ScoreStepKind::window_mask: give(step.mask, b.select(inside, g, zero)); return g;
    }
    return {};
  }

  /// [B, H, ...] as [B, G, H / G, ...].
  Value split(Value x, const SizeExpr &heads) {
    SizeVector shape = b.sizes(x);
    if (!x)
      return {};
    shape[1] = groups;
    shape.insert(shape.begin() + 2, heads);
    return b.reshape(x, shape);
  }
  Value join(Value x, const SizeExpr &heads) {
    SizeVector shape = b.sizes(x);
    if (!x)
      return {};
    shape.erase(shape.begin() + 2);
    shape[1] = heads;
    return b.reshape(x, shape);
  }

  DsBuilder &b;
  SizeVector sizes; // of the query
  SizeExpr groups, perGroup;
  Value query, key, value;   // split
  Value bounded, scores;     // before the steps
  Value inside;              // where the window holds a place
  SmallVector<Value> before; // each step
  Value shares;              // the softmax
  FloatAttr ratio;           // of its dropout, or null
  IntegerAttr stream;
};
} // namespace

/// The derivatives with respect to query, key and value written out, and with respect to masks, which `give` takes.
template <typename Op>
static Values writeOut(Op op, Value gradient, Derivative &d, llvm::function_ref<void(Value, Value)> give) {
  DsBuilder &b = d.b;
  AttentionSteps steps(op, d);
  Value g = steps.split(d.wide(gradient), steps.perGroup);
  Value shares = steps.split(steps.dropped(steps.shares), steps.perGroup);
  auto toGroups = [&](Value x) { return steps.join(d.sum(x, 2), steps.groups); };
  Value ofValue = toGroups(b.matmul(shares, g, true, false));
  Value ofShares = steps.dropped(steps.join(b.matmul(g, steps.value, false, true), steps.sizes[1]));
  Value ofScores = b.mul(steps.shares, b.sub(ofShares, d.sum(b.mul(ofShares, steps.shares), 3)));
  SmallVector<ds::ScoreStep> done = op.getScoreSteps();
  for (size_t i = done.size(); i-- > 0;)
    ofScores = steps.undo(done[i], ofScores, steps.before[i], d, give);
  if (steps.bounded) {
    Value one = b.scalar(b.element(ofScores), 1);
    ofScores = b.mul(ofScores, b.mul(b.sub(one, steps.bounded), b.add(one, steps.bounded)));
  }
  Value raw = steps.split(b.mul(ofScores, op.getScale().convertToDouble()), steps.perGroup);
  Value ofQuery = steps.join(b.matmul(raw, steps.key), steps.sizes[1]);
  return {ofQuery, toGroups(b.matmul(raw, steps.query, true, false)), ofValue};
}

/// The op that computes the scores again, block by block. None where its shape rules refuse.
static Values gradientInBlocks(ds::AttentionOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value query = d.wide(op.getQuery()), key = d.wide(op.getKey()), value = d.wide(op.getValue());
  Value gradient = d.wide(d.gradient());
  SmallVector<Value> masks;
  for (Value mask : op.getMasks())
    masks.push_back(d.wide(mask));
  if (!query || !key || !value || !gradient || llvm::is_contained(masks, Value()))
    return {};
  Type type = b.placeholder();
  return b.finishAll(ds::AttentionGradientOp::create(
      b.getBuilder(), b.getLocation(), TypeRange{type, type, type}, query, key, value, gradient, masks,
      op.getPositions(), op.getRandom(), op.getStepsAttr(), op.getLowsAttr(), op.getPastAttr(), op.getLeftAttr(),
      op.getRightAttr(), op.getCapacityAttr(), op.getScaleAttr(), op.getSoftcapAttr(), op.getGuardAttr(),
      op.getDropoutAttr(), op.getStreamAttr()));
}

/// Ops have no dropout that is drawn by given numbers: ds-build-training-step comes after derivatives.
template <typename Op> static bool canWriteOut(Op op, Derivative &d) {
  if (!op.getDropout() || op.getStream())
    return true;
  d.refuse("where its dropout is drawn already and its scores are written out");
  return false;
}

/// Masks that are learned need the derivatives of all scores: those are written out then.
static void differentiateAttention(ds::AttentionOp op, Derivative &d) {
  bool isWrittenOut = llvm::any_of(op.getMasks(), [&](Value mask) { return d.wants(mask); });
  if (isWrittenOut && !canWriteOut(op, d))
    return;
  Values found = isWrittenOut ? writeOut(op, d.gradient(), d, [&](Value mask, Value g) { d.giveTo(mask, g); })
                              : gradientInBlocks(op, d);
  if (found.empty())
    return d.fail();
  for (auto [operand, gradient] : llvm::zip(op->getOperands(), found))
    d.giveTo(operand, gradient);
}

/// Of second order: the gradients are written out, in a block of their own, so that nothing before them is met, and
/// that is differentiated.
static void differentiateAttentionGradient(ds::AttentionGradientOp op, Derivative &d) {
  OpBuilder &builder = d.b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  Block *target = builder.getInsertionBlock();
  Block::iterator place = builder.getInsertionPoint();
  if (!canWriteOut(op, d))
    return;
  Block block;
  builder.setInsertionPointToEnd(&block);
  Values results = writeOut(op, op.getGradient(), d, [](Value, Value) {});
  SmallVector<Value> seeds, sources;
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    seeds.push_back(d.gradient(number));
  llvm::copy_if(op->getOperands(), std::back_inserter(sources), [&](Value operand) { return d.wants(operand); });
  ReverseSweep sweep(block, sources);
  if (llvm::is_contained(results, Value()) || failed(sweep.run(results, seeds, d.b)))
    d.fail();
  target->getOperations().splice(place, block.getOperations());
  builder.setInsertionPoint(target, place);
  for (Value source : llvm::SetVector<Value>(sources.begin(), sources.end()))
    if (Value gradient = sweep.gradient(source))
      d.giveTo(source, gradient);
}

/// Exchanges the two elements of each pair of the last axis.
static Value exchangePairs(Value x, bool interleaved, DsBuilder &b) {
  SizeVector sizes = b.sizes(x), pairs = sizes;
  int64_t last = b.rank(x) - 1, half = sizes.back().constant().value_or(0) / 2;
  if (interleaved) {
    pairs.back() = half;
    pairs.push_back(2);
    return b.reshape(b.sliceAxis(b.reshape(x, pairs), last + 1, 1, 2, -1), sizes);
  }
  return b.concat(last, {b.sliceAxis(x, last, half, half), b.sliceAxis(x, last, 0, half)});
}

/// The elements of a pair add up where cosines and sines have one element for both.
static Value joinPairs(Value x, const SizeExpr &last, bool interleaved, DsBuilder &b) {
  SizeVector sizes = b.sizes(x);
  if (!x || sizes.back() == last || last.isConstant(1))
    return x;
  int64_t axis = b.rank(x) - 1 + (interleaved ? 1 : 0);
  sizes.back() = interleaved ? last : SizeExpr(2);
  sizes.push_back(interleaved ? SizeExpr(2) : last);
  return b.reduce(ds::ReduceKind::sum, b.reshape(x, sizes), {axis}, /*keep=*/false);
}

/// A rotation is undone by the opposite angle: with (c, s) of each element, (a c - b s, b c' + a s') turns the gradient
/// (g, h) into (g c + h s', h c' - g s).
static void differentiateRotary(ds::RotaryOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.wide(d.gradient()), x = d.wide(d.in(0)), cosines = d.wide(d.in(1)), sines = d.wide(d.in(2));
  bool interleaved = op.getInterleaved();
  IntegerAttr first = op.getFirstAttr(), all;
  SizeExpr last = b.sizes(cosines).back(), size = first ? SizeExpr(first.getInt()) : b.sizes(x).back();
  auto rotary = [&](Value v, Value c, Value s, IntegerAttr part) {
    return b.create<ds::RotaryOp>({v, c, s}, v, c, s, interleaved, part);
  };
  if (d.wants(0)) {
    Value opposite = b.unary(UnaryKind::neg, last == size ? exchangePairs(sines, interleaved, b) : sines);
    d.give(0, rotary(g, cosines, opposite, first));
  }
  if (first) { // no angle meets what stays
    g = b.sliceAxis(g, b.rank(g) - 1, 0, size);
    x = b.sliceAxis(x, b.rank(x) - 1, 0, size);
  }
  if (d.wants(1))
    d.give(1, joinPairs(b.mul(g, x), last, interleaved, b));
  if (d.wants(2)) {
    Value none = d.zeros(b.element(cosines), b.sizes(cosines));
    Value ones = b.broadcast(b.scalar(b.element(sines), 1), b.sizes(sines));
    d.give(2, joinPairs(b.mul(g, rotary(x, none, ones, all)), last, interleaved, b));
  }
}

void addAttentionRules(RuleTable &table) {
  table.add(differentiateAttention);
  table.add(differentiateAttentionGradient);
  table.add(differentiateRotary);
}

} // namespace deepstride
