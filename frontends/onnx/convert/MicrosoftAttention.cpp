// Attention, MultiHeadAttention and QAttention of the domain com.microsoft. What they have in common is one attention
// over heads with a mask to add; they differ in how query, key and value come packed, and in the forms of their masks.
#include "frontends/onnx/convert/Heads.h"
#include "frontends/onnx/convert/Quantized.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

constexpr StringLiteral domain = "com.microsoft";

double lowestOf(Type type) {
  APFloat lowest = APFloat::getLargest(cast<FloatType>(type).getFloatSemantics(), /*Negative=*/true);
  bool losesInfo;
  lowest.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return lowest.convertToDouble();
}

/// The weights of a softmax with one more term in its sum.
static Value softmaxWithSink(Node &n, Value scores, Value sink) {
  SizeVector s = n.b.sizes(scores), column = s;
  column[3] = 1;
  Value term = sink ? n.b.reshape(n.b.cast(sink, n.b.element(scores)), {1, s[1], 1, 1})
                    : n.b.reshape(n.b.scalar(n.b.element(scores), 0), {1, 1, 1, 1});
  Value all = n.b.softmax(n.b.concat(3, {scores, n.b.broadcast(term, column)}), 3);
  return n.b.sliceAxis(all, 3, 0, s[3]);
}

/// Where the window of rows [rows, total] holds a place: i1 [1 or batch, 1, rows, total].
static Value holdsPlace(Node &n, const ds::ScoreWindow &window, const SizeExpr &rows, const SizeExpr &total) {
  Value place = window.positions, column = n.b.iota(3, {1, 1, 1, total}), holds;
  if (!place)
    place = n.b.add(n.b.iota(2, {1, 1, rows, 1}), n.b.reshape(n.b.shape({window.past}), {}));
  if (window.right)
    holds = n.b.binary(BinaryKind::le, column, n.b.add(place, static_cast<double>(*window.right)));
  if (!window.left)
    return holds;
  Value late = n.b.binary(BinaryKind::ge, column, n.b.sub(place, static_cast<double>(*window.left)));
  return holds ? n.b.binary(BinaryKind::bit_and, holds, late) : late;
}

/// A step of ds.attention as ops of its own.
static Value applyStep(Node &n, const ds::ScoreStep &step, const ds::ScoreWindow &window, Value scores) {
  using ds::ScoreStepKind;
  SizeVector s = n.b.sizes(scores);
  Type type = n.b.element(scores);
  Value low = n.b.scalar(type, step.low), holds = isWindowed(step.kind) ? holdsPlace(n, window, s[2], s[3]) : Value();
  switch (step.kind) {
  case ScoreStepKind::add: return n.b.add(scores, step.mask);
  case ScoreStepKind::multiply: return n.b.mul(scores, step.mask);
  case ScoreStepKind::keep: return n.b.select(step.mask, scores, low);
  case ScoreStepKind::hide: return n.b.select(step.mask, low, scores);
  case ScoreStepKind::keep_add: return n.b.select(step.mask, scores, n.b.add(scores, low));
  case ScoreStepKind::hide_add: return n.b.select(step.mask, n.b.add(scores, low), scores);
  case ScoreStepKind::window: return n.b.select(holds, scores, low);
  case ScoreStepKind::window_add: return n.b.add(scores, n.b.select(holds, n.b.scalar(type, 0), low));
  case ScoreStepKind::window_mask: return n.b.add(scores, n.b.select(holds, step.mask, low));
  }
  return {};
}

Attended attend(Node &n, Value query, Value key, Value value, const Scoring &scoring) {
  if (!query || !key || !value)
    return {};
  if (!scoring.hasSink && !scoring.yieldsScores) {
    SmallVector<Value> operands = {query, key, value};
    for (const ds::ScoreStep &step : scoring.steps)
      if (takesMask(step.kind))
        operands.push_back(step.mask);
    return {n.b.create<ds::AttentionOp>(operands, query, key, value, scoring.steps, scoring.window, scoring.scale,
                                        scoring.softcap, /*guard=*/false),
            {},
            {}};
  }
  auto heads = n.b.sizes(query)[1].constant(), groups = n.b.sizes(key)[1].constant();
  if (heads && groups && *groups > 0) {
    key = repeatHeads(n, key, *heads / *groups);
    value = repeatHeads(n, value, *heads / *groups);
  }
  Value scores = n.b.mul(n.b.matmul(query, key, false, /*transposeB=*/true), scoring.scale);
  if (scoring.softcap > 0)
    scores = n.b.mul(n.b.unary(UnaryKind::tanh, n.b.div(scores, scoring.softcap)), scoring.softcap);
  for (const ds::ScoreStep &step : scoring.steps)
    scores = scores ? applyStep(n, step, scoring.window, scores) : Value();
  if (!scores)
    return {};
  Value weights = scoring.hasSink ? softmaxWithSink(n, scores, scoring.sink) : n.b.softmax(scores, 3);
  return {n.b.matmul(weights, value), scores, weights};
}

namespace {
/// What a mask spans.
struct Span {
  SizeExpr batch, rows, past, total;
};

/// A past state and what is known of it.
struct Cache {
  Value attended, present;
};
} // namespace

/// Ends, and perhaps starts, of each row of the batch.
static Value keepsByLength(Node &n, Value mask, unsigned input, const Span &span) {
  SizeExpr count = n.b.sizes(mask)[0], batch = span.batch;
  // Which form it is, only the run may know.
  SizeExpr hasEnds = SizeExpr::eq(count, batch), hasStarts = SizeExpr::eq(count, batch * SizeExpr(2)),
           isCumulative = SizeExpr::eq(count, batch * SizeExpr(3) + SizeExpr(2));
  if (hasEnds.isConstant(0) && hasStarts.isConstant(0) && isCumulative.isConstant(0))
    return n.refuse("input " + Twine(input) +
                    ": expected a mask of batch, 2 * batch or 3 * batch + 2 elements (batch " + batch.brief() +
                    "), found " + describe(n.b.facts(mask)));
  if (!hasEnds.isConstant(1) && !hasStarts.isConstant(1) && !isCumulative.isConstant(1))
    requireFor(n, hasEnds + hasStarts + isCumulative, 1, "a mask of batch, 2 * batch or 3 * batch + 2 elements");
  Value place = n.b.iota(3, {1, 1, 1, span.total}), wide = n.b.cast(mask, n.b.i64());
  auto part = [&](const SizeExpr &start) {
    Value numbers = hasEnds.isConstant(1) ? wide : n.b.sliceAxis(wide, 0, start, batch);
    return n.b.reshape(numbers, {batch, 1, 1, 1});
  };
  Value keeps = n.b.binary(BinaryKind::lt, place, part(0));
  if (hasEnds.isConstant(1) || hasStarts.isConstant(0))
    return keeps;
  Value starts = part(SizeExpr::select(hasStarts, batch, 0)), isStart = n.b.reshape(n.b.shape({hasStarts}), {});
  Value isSeen = n.b.binary(BinaryKind::ge, place, n.b.mul(starts, isStart));
  return n.b.binary(BinaryKind::bit_and, keeps, isSeen);
}

/// Where the mask of any documented form lets a query attend to a key: i1, broadcasts to [batch, 1, rows, total].
static Value keepsByMask(Node &n, unsigned input, const Span &span) {
  Value mask = n.in(input);
  if (!isa_and_present<IntegerType>(n.b.element(mask)))
    return n.refuse("input " + Twine(input) + ": expected an integer mask, found " + describe(n.b.facts(mask)));
  switch (n.b.rank(mask)) {
  case 1: return keepsByLength(n, mask, input, span);
  case 2: mask = n.b.reshape(mask, {span.batch, 1, 1, span.total}); break;
  case 3: mask = n.b.reshape(mask, {span.batch, 1, span.rows, span.total}); break;
  case 4: // [batch, 1, longest, longest]
    mask = n.b.sliceAxis(n.b.sliceAxis(mask, 2, span.past, span.rows), 3, 0, span.total);
    break;
  default:
    return n.refuse("input " + Twine(input) + ": expected a mask of 1 to 4 axes, found " + describe(n.b.facts(mask)));
  }
  if (n.b.element(mask).isInteger(1))
    return mask;
  return n.b.binary(BinaryKind::gt, mask, 0.0);
}

/// What is added to the scores: `mask_filter_value` where the mask is 0, the least number at later places, the bias.
static bool addMasks(Node &n, unsigned maskInput, Value bias, const Span &span, Type type, Scoring &scoring) {
  double filter = n.real("mask_filter_value", -10000), lowest = lowestOf(type);
  double low = std::max(filter, lowest);
  Value keeps = n.has(maskInput) ? keepsByMask(n, maskInput, span) : Value();
  if (n.has(maskInput) && !keeps)
    return false;
  // One row has no later places, however many keys there are.
  if (n.flag("unidirectional", false) && !span.rows.isConstant(1)) {
    bool coversAll = span.total == span.past + span.rows;
    scoring.window.past = coversAll ? span.past : SizeExpr::select(SizeExpr::eq(span.rows, 1), span.total, span.past);
    scoring.window.right = 0;
    Value mask = keeps ? n.b.select(keeps, n.b.scalar(type, 0), n.b.scalar(type, low)) : Value();
    scoring.steps.push_back({mask ? ds::ScoreStepKind::window_mask : ds::ScoreStepKind::window_add, mask, lowest});
  } else if (keeps) {
    scoring.steps.push_back({ds::ScoreStepKind::keep_add, keeps, low});
  }
  if (bias)
    scoring.steps.push_back({ds::ScoreStepKind::add, bias});
  return true;
}

/// The past and what is new, along the axis of places. With `used` the past is a buffer of which that many places hold
/// something, and the present is that buffer with the new places written.
static Cache extend(Node &n, Value past, Value fresh, const std::optional<SizeExpr> &used) {
  if (!past || !fresh)
    return {fresh, fresh};
  if (!used) {
    Value all = n.b.concat(2, {past, fresh});
    return {all, all};
  }
  SizeExpr capacity = n.b.sizes(past)[2], total = *used + n.b.sizes(fresh)[2];
  Value all = n.b.concat(2, {n.b.sliceAxis(past, 2, 0, *used), fresh});
  return {all, n.b.concat(2, {all, n.b.sliceAxis(past, 2, total, capacity - total)})};
}

static double scaleFor(Node &n, Value query) {
  if (double scale = n.real("scale", 0); scale != 0)
    return scale;
  auto size = n.b.sizes(query)[3].constant();
  if (size && *size > 0)
    return 1 / std::sqrt(static_cast<double>(*size));
  return n.reject("expected a static head size, found " + describe(n.b.facts(query))), 1;
}

static std::optional<int64_t> readHeads(Node &n) {
  auto heads = n.requiredInteger("num_heads");
  constexpr int64_t limit = int64_t(1) << 31;
  if (heads && (*heads < 1 || *heads >= limit))
    return n.refuse("attribute 'num_heads': expected at least 1, found " + Twine(*heads));
  if (heads && n.flag("do_rotary", false))
    return n.refuse("attribute 'do_rotary': expected 0, found 1; rotate query and key with RotaryEmbedding");
  return heads;
}

namespace {
/// The operands of attention over one projection for query, key and value.
struct Merged {
  unsigned mask, past, bias, pastLength; // which inputs
};
} // namespace

/// Hidden sizes of query, key and value in a projection of `width` columns.
static std::optional<SizeVector> hiddenSizes(Node &n, const SizeExpr &width) {
  auto sizes = n.integers("qkv_hidden_sizes");
  if (n.isRefused())
    return std::nullopt;
  if (!sizes || sizes->empty())
    return SizeVector(3, SizeExpr::floorDiv(width, 3));
  bool isLegal = sizes->size() == 3 && llvm::all_of(*sizes, [](int64_t size) { return size > 0 && size < 1 << 30; });
  if (!isLegal || (*sizes)[0] != (*sizes)[1] || !width.isConstant((*sizes)[0] + (*sizes)[1] + (*sizes)[2]))
    return n.refuse("attribute 'qkv_hidden_sizes': expected three sizes, the first two equal, that add up to " +
                    width.str());
  return SizeVector(sizes->begin(), sizes->end());
}

/// Attention over the columns of `merged` [batch, rows, query + key + value].
static Values attendMerged(Node &n, Value merged, int64_t heads, const Merged &inputs) {
  if (!merged)
    return {};
  SizeVector s = n.b.sizes(merged);
  auto hidden = hiddenSizes(n, s[2]);
  if (!hidden)
    return {};
  auto part = [&](int i) {
    SizeExpr start;
    for (int j = 0; j < i; ++j)
      start = start + (*hidden)[j];
    return splitHeads(n, n.b.sliceAxis(merged, 2, start, (*hidden)[i]), heads);
  };
  Value query = part(0), key = part(1), value = part(2);
  if (!query || !key || !value)
    return {};

  SizeExpr past;
  std::optional<SizeExpr> used;
  Value pastKey, pastValue;
  if (n.has(inputs.past)) {
    if (!n.requireRank(inputs.past, 5, 5))
      return {};
    auto half = [&](int64_t i) { return n.b.dropAxis(n.b.sliceAxis(n.in(inputs.past), 0, i, 1), 0); };
    pastKey = half(0);
    pastValue = half(1);
    past = n.b.sizes(n.in(inputs.past))[3];
    if (n.flag("past_present_share_buffer", false)) {
      used = n.sizeOf(inputs.pastLength, "past_sequence_length");
      if (!used)
        return {};
      past = *used;
    }
  }
  Cache keys = extend(n, pastKey, key, used), values = extend(n, pastValue, value, used);
  Scoring scoring;
  Span span{s[0], s[1], past, past + s[1]};
  if (!addMasks(n, inputs.mask, n.in(inputs.bias), span, n.b.element(merged), scoring))
    return {};
  scoring.scale = scaleFor(n, query);
  Value result = mergeHeads(n, attend(n, query, keys.attended, values.attended, scoring).result);
  Value present;
  if (n.yields(1))
    present = n.b.concat(0, {n.b.insertAxis(keys.present, 0), n.b.insertAxis(values.present, 0)});
  return {result, present};
}

static Values convertAttention(Node &n) {
  auto heads = readHeads(n);
  if (!heads || !n.requireRank(0, 3, 3) || !n.requireRank(1, 2, 2) || !n.requireFloat(0))
    return {};
  Value merged = n.b.matmul(n.in(0), n.in(1));
  if (n.has(2))
    merged = n.b.add(merged, n.in(2));
  return attendMerged(n, merged, *heads, {3, 4, 5, 6});
}

/// The projection is an integer product; everything behind it is attention over numbers.
static Values convertQAttention(Node &n) {
  auto heads = readHeads(n);
  if (!heads || !n.requireRank(0, 3, 3) || !n.requireRank(1, 2, 2) || !n.requireFloat(2))
    return {};
  if (n.flag("past_present_share_buffer", false))
    return n.refuse("attribute 'past_present_share_buffer': expected 0, found 1; the operator has no input for the "
                    "length of the past");
  Value accumulated = n.b.matmul(centre(n, 0, 6, -1), centre(n, 1, 7, -1));
  if (!accumulated || !n.has(3) || !n.has(4))
    return {};
  Value scales = n.b.mul(productScale(n, 3, accumulated, -1), productScale(n, 4, accumulated, -1));
  Value merged = n.b.add(n.b.mul(n.b.cast(accumulated, n.b.f32()), scales), n.b.cast(n.in(2), n.b.f32()));
  constexpr unsigned none = ~0u;
  return attendMerged(n, n.b.cast(merged, n.b.element(n.in(2))), *heads, {5, 8, none, none});
}

/// One of `count` tensors packed along axis 3 of [batch, length, heads, count, size], as [batch, heads, length, size].
static Value unpack(Node &n, Value packed, int64_t index) {
  return n.b.transpose(n.b.dropAxis(n.b.sliceAxis(packed, 3, index, 1), 3), {0, 2, 1, 3});
}

namespace {
struct Operands {
  Value query, key, value; // [batch, heads, length, size]
};
} // namespace

/// Query, key and value of MultiHeadAttention in any of its packings, with their bias.
static std::optional<Operands> bindOperands(Node &n, int64_t heads) {
  Value query = n.in(0), key = n.in(1), value = n.in(2), bias = n.in(3);
  int64_t queryRank = n.b.rank(query), keyRank = n.b.rank(key);
  bool isPackedAll = queryRank == 5 && !key && !value, isPackedPair = queryRank == 3 && keyRank == 5 && !value;
  bool isFlat = queryRank == 3 && keyRank == 3 && n.b.rank(value) == 3;
  bool isCached = queryRank == 3 && keyRank == 4 && n.b.rank(value) == 4;
  if (!isPackedAll && !isPackedPair && !isFlat && !isCached)
    return n.refuse("expected query, key and value of 3 axes, or packed query of 5 axes, or query of 3 and packed key "
                    "of 5 axes, or query of 3 and past key and value of 4 axes, found " +
                    describe(n.b.facts(query)) + ", " + describe(n.b.facts(key)) + " and " +
                    describe(n.b.facts(value)));
  if (bias && (n.b.rank(bias) != 1 || isCached || isPackedPair))
    return n.refuse("input 3 ('bias'): expected one axis, and no bias beside a packed or past key, found " +
                    describe(n.b.facts(bias)));
  SizeExpr packing = isPackedAll ? n.b.sizes(query)[3] : isPackedPair ? n.b.sizes(key)[3] : SizeExpr(0);
  if ((isPackedAll && !packing.isConstant(3)) || (isPackedPair && !packing.isConstant(2)))
    return n.refuse("expected axis 3 of a packed operand to be " + Twine(isPackedAll ? 3 : 2) + ", found " +
                    packing.str());
  SizeExpr hidden = isPackedAll ? n.b.sizes(query)[2] * n.b.sizes(query)[4] : SizeExpr(n.b.sizes(query)[2]);
  auto heads3 = [&](Value x, const SizeExpr &start) {
    if (bias)
      x = n.b.add(x, n.b.sliceAxis(bias, 0, start, n.b.sizes(x)[2]));
    return x ? splitHeads(n, x, heads) : Value();
  };
  auto heads5 = [&](Value x, int64_t index) {
    x = unpack(n, x, index);
    if (!bias || !x)
      return x;
    SizeVector s = n.b.sizes(x);
    Value own = n.b.sliceAxis(bias, 0, SizeExpr(index) * hidden, hidden);
    return n.b.add(x, n.b.reshape(own, {1, s[1], 1, s[3]}));
  };
  if (isPackedAll)
    return Operands{heads5(query, 0), heads5(query, 1), heads5(query, 2)};
  if (isPackedPair)
    return Operands{heads3(query, 0), unpack(n, key, 0), unpack(n, key, 1)};
  if (isCached)
    return Operands{heads3(query, 0), key, value};
  return Operands{heads3(query, 0), heads3(key, hidden), heads3(value, hidden + hidden)};
}

static Values convertMultiHeadAttention(Node &n) {
  auto heads = readHeads(n);
  if (!heads || !n.requireFloat(0))
    return {};
  if (n.has(9))
    return n.refuse("input 9 ('cache_indirection'): expected none, found " + describe(n.b.facts(n.in(9))) +
                    "; reorder the past of beams before the call");
  if (n.has(6) != n.has(7))
    return n.refuse("expected both or none of 'past_key' and 'past_value', found one");
  auto operands = bindOperands(n, *heads);
  if (!operands || !operands->query || !operands->key || !operands->value)
    return {};
  auto [query, key, value] = *operands;
  SizeExpr past;
  std::optional<SizeExpr> used;
  if (n.has(6)) {
    if (!n.requireRank(6, 4, 4) || !n.requireRank(7, 4, 4))
      return {};
    past = n.b.sizes(n.in(6))[2];
    if (n.has(8)) {
      used = n.sizeOf(8, "past_sequence_length");
      if (!used)
        return {};
      past = *used;
    }
  }
  Cache keys = extend(n, n.in(6), key, used), values = extend(n, n.in(7), value, used);
  SizeVector s = n.b.sizes(query);
  Scoring scoring;
  Span span{s[0], s[2], past, past + n.b.sizes(key)[2]};
  if (!addMasks(n, 4, n.in(5), span, n.b.element(query), scoring))
    return {};
  scoring.scale = scaleFor(n, query);
  scoring.yieldsScores = n.yields(3);
  Attended attended = attend(n, query, keys.attended, values.attended, scoring);
  return {mergeHeads(n, attended.result), keys.present, values.present, attended.scores};
}

void addMicrosoftAttention(PatternRegistry &registry) {
  registry.add("Attention", 1, 2, convertAttention, domain);
  registry.add("QAttention", 1, 5, convertQAttention, domain);
  registry.add("MultiHeadAttention", 1, 1, convertMultiHeadAttention, domain);
}

} // namespace deepstride::onnx
