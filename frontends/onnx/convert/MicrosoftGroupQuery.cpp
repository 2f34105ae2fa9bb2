// GroupQueryAttention and RotaryEmbedding of the domain com.microsoft. The rows of a batch may be of different length:
// their lengths are data, so the cache is written by index and places are masked by comparison, while the sizes of the
// results follow from those of the operands and the host-known total length.
#include "frontends/onnx/convert/Heads.h"
#include "frontends/onnx/convert/Registry.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;

constexpr StringLiteral domain = "com.microsoft";

namespace {
struct GroupQuery {
  int64_t heads = 0, groups = 0, size = 0;
  Value query, key, value;        // [batch, heads, rows, size]
  SizeExpr batch, rows, capacity; // capacity: places of the present
  Value past;                     // [batch, 1, 1, 1] i64: places before the new ones; null for none
};
} // namespace

static bool checkAttributes(Node &n) {
  if (int64_t windowed = n.integer("sliding_window_cache", 0))
    return n.reject("attribute 'sliding_window_cache': expected 0, found " + Twine(windowed) +
                    "; keep the whole cache");
  for (StringRef name : {"k_quant_type", "v_quant_type"})
    n.text(name, "NONE", {"NONE"});
  for (unsigned scale : {12u, 13u})
    if (n.has(scale))
      return n.reject("input " + Twine(scale) + ": expected no scale of a quantized cache, found " +
                      describe(n.b.facts(n.in(scale))));
  if (n.has(3) != n.has(4) || n.has(14) != n.has(15) || n.has(1) != n.has(2))
    return n.reject("expected both or none of each pair of 'key' and 'value', 'past_key' and 'past_value', "
                    "'q_norm_weight' and 'k_norm_weight', found one");
  return !n.isRefused();
}

/// Query, key and value as heads, from three operands or one.
static std::optional<GroupQuery> bindOperands(Node &n) {
  auto heads = n.requiredInteger("num_heads"), groups = n.requiredInteger("kv_num_heads");
  if (!heads || !groups || !checkAttributes(n) || !n.requireRank(0, 3, 3) || !n.requireFloat(0))
    return std::nullopt;
  constexpr int64_t limit = 1 << 20;
  if (*groups < 1 || *heads < 1 || *heads > limit || *heads % *groups != 0)
    return n.refuse("attributes 'num_heads' and 'kv_num_heads': expected the first to be a multiple of the second, "
                    "found " +
                    Twine(*heads) + " and " + Twine(*groups));
  SizeVector s = n.b.sizes(n.in(0));
  bool isPacked = !n.has(1);
  int64_t parts = isPacked ? *heads + 2 * *groups : *heads;
  auto width = s[2].constant();
  if (!width || *width < 1 || *width % parts != 0)
    return n.refuse("input 0: expected a last axis of a static multiple of " + Twine(parts) + " heads, found " +
                    describe(n.b.facts(n.in(0))));
  GroupQuery g;
  g.heads = *heads;
  g.groups = *groups;
  g.size = *width / parts;
  g.batch = s[0];
  g.rows = s[1];
  if (isPacked) {
    auto part = [&](int64_t first, int64_t count) {
      return splitHeads(n, n.b.sliceAxis(n.in(0), 2, first * g.size, count * g.size), count);
    };
    g.query = part(0, *heads);
    g.key = part(*heads, *groups);
    g.value = part(*heads + *groups, *groups);
    return g;
  }
  if (!n.requireRank(1, 3, 3) || !n.requireRank(2, 3, 3))
    return std::nullopt;
  g.query = splitHeads(n, n.in(0), *heads);
  g.key = splitHeads(n, n.in(1), *groups);
  g.value = splitHeads(n, n.in(2), *groups);
  return g;
}

static Value number(Node &n, const SizeExpr &size) { return n.b.reshape(n.b.shape({size}), {}); }

/// The length of each row of the batch, the new places included: [batch, 1, 1, 1].
static Value totals(Node &n, const GroupQuery &g) {
  return n.b.reshape(n.b.add(n.b.cast(n.in(5), n.b.i64()), 1.0), {g.batch, 1, 1, 1});
}

/// Finds out how many places are in the cache already. A call over as many new places as there are in total is the
/// first: it has no past, whatever the buffer holds.
static bool bindPast(Node &n, GroupQuery &g) {
  if (!n.has(3)) {
    g.capacity = g.rows;
    return true;
  }
  if (!n.requireRank(3, 4, 4) || !n.requireRank(4, 4, 4))
    return false;
  auto total = n.sizeOf(6, "total_sequence_length");
  if (!total)
    return false;
  g.capacity = SizeExpr::max(n.b.sizes(n.in(3))[2], *total);
  SizeExpr isLater = SizeExpr(1) - SizeExpr::eq(g.rows, *total);
  g.past = n.b.sub(totals(n, g), number(n, g.rows));
  if (!isLater.isConstant(1))
    g.past = n.b.mul(g.past, number(n, isLater));
  return g.past != nullptr;
}

/// The cache with the new places written behind those that are in it; zeros behind them.
static Value writeCache(Node &n, const GroupQuery &g, Value past, Value fresh) {
  if (!g.past || !fresh)
    return fresh;
  SizeVector low(4), high(4), sizes = n.b.sizes(fresh);
  high[2] = g.capacity - n.b.sizes(past)[2];
  Value zero = n.b.scalar(n.b.element(past), 0);
  Value padded = n.b.pad(ds::PadKind::constant, past, zero, low, high);
  Value isKept = n.b.binary(BinaryKind::lt, n.b.iota(2, {1, 1, g.capacity, 1}), g.past);
  Value kept = n.b.select(isKept, padded, zero);
  Value places = n.b.broadcast(n.b.add(n.b.iota(2, {1, 1, g.rows, 1}), g.past), sizes);
  return n.b.create<ds::ScatterElementsOp>({kept, places, fresh}, ds::ScatterKind::assign, 2, kept, places, fresh);
}

/// A cache of angles [places, half] as [batch or 1, 1, rows, half], at the given positions or counted from the past.
static Value anglesAt(Node &n, Value cache, Value positions, const SizeExpr &rows) {
  if (!positions)
    return n.b.insertAxis(n.b.insertAxis(n.b.sliceAxis(cache, 0, 0, rows), 0), 0);
  return n.b.insertAxis(n.b.gather(0, cache, positions), 1);
}

/// How many elements of a head the caches turn.
static std::optional<int64_t> rotatedSize(Node &n, unsigned cosines, const SizeExpr &size) {
  if (!n.has(cosines) || !n.has(cosines + 1))
    return n.refuse("expected inputs " + Twine(cosines) + " and " + Twine(cosines + 1) +
                    " ('cos_cache' and 'sin_cache') for a rotation, found none");
  if (!n.requireRank(cosines, 2, 2) || !n.requireRank(cosines + 1, 2, 2))
    return std::nullopt;
  auto half = n.b.sizes(n.in(cosines))[1].constant(), whole = size.constant();
  if (half && whole && *half > 0 && *half <= *whole / 2)
    return 2 * *half;
  return n.refuse("input " + Twine(cosines) + " ('cos_cache'): expected at most half of a static head size (" +
                  size.brief() + ") as last axis, found " + describe(n.b.facts(n.in(cosines))));
}

static bool rotate(Node &n, GroupQuery &g) {
  auto rotated = rotatedSize(n, 7, g.size);
  if (!rotated)
    return false;
  Value positions = n.in(9);
  if (!positions && g.past) {
    Value places = n.b.add(n.b.iota(2, {1, 1, g.rows, 1}), g.past);
    positions = n.b.reshape(places, {g.batch, g.rows});
  }
  Value cosines = anglesAt(n, n.in(7), positions, g.rows), sines = anglesAt(n, n.in(8), positions, g.rows);
  bool isInterleaved = n.flag("rotary_interleaved", false);
  g.query = rotateHeads(n, g.query, cosines, sines, *rotated, isInterleaved);
  g.key = rotateHeads(n, g.key, cosines, sines, *rotated, isInterleaved);
  return g.query && g.key;
}

/// Hides places that a row does not attend to: later ones, those before its window, those past the length of its
/// sequence. What the cache holds there is not read.
static bool hidePlaces(Node &n, const GroupQuery &g, Scoring &scoring) {
  constexpr double low = -std::numeric_limits<double>::infinity();
  int64_t window = n.integer("local_window_size", -1);
  bool isCausal = n.flag("causal", true);
  constexpr int64_t limit = int64_t(1) << 31;
  if ((window > 0 && !isCausal) || window >= limit)
    return n.reject("attribute 'local_window_size': expected -1 where 'causal' is 0, else less than 2^31, found " +
                    Twine(window));
  if (!isCausal) {
    Value place = n.b.iota(3, {1, 1, 1, g.capacity}), keeps = n.b.binary(BinaryKind::lt, place, totals(n, g));
    scoring.steps.push_back({ds::ScoreStepKind::keep, keeps, low});
    return keeps != nullptr;
  }
  scoring.window.right = 0;
  if (window > 0)
    scoring.window.left = window - 1;
  if (g.past)
    scoring.window.positions = n.b.add(n.b.iota(2, {1, 1, g.rows, 1}), g.past);
  scoring.steps.push_back({ds::ScoreStepKind::window, Value(), low});
  return !g.past || scoring.window.positions;
}

static Values convertGroupQuery(Node &n) {
  auto bound = bindOperands(n);
  if (!bound || !bound->query || !bound->key || !bound->value || !bindPast(n, *bound))
    return {};
  GroupQuery &g = *bound;
  if (n.has(14)) {
    llvm::APFloat epsilon(n.real("qk_norm_epsilon", 1e-6));
    g.query = n.b.create<ds::RmsNormOp>({g.query, n.in(14)}, g.query, n.in(14), 3, epsilon);
    g.key = n.b.create<ds::RmsNormOp>({g.key, n.in(15)}, g.key, n.in(15), 3, epsilon);
  }
  if (n.flag("do_rotary", false) && !rotate(n, g))
    return {};
  Value presentKey = writeCache(n, g, n.in(3), g.key), presentValue = writeCache(n, g, n.in(4), g.value);
  Type type = n.b.element(n.in(0));
  Scoring scoring;
  if (n.has(10)) {
    if (!n.requireRank(10, 4, 4))
      return {};
    SizeVector low(4), high(4);
    high[3] = g.capacity - n.b.sizes(n.in(10))[3]; // places of the cache that no row has reached
    Value bias = g.past ? n.b.pad(ds::PadKind::constant, n.in(10), n.b.scalar(type, 0), low, high) : n.in(10);
    if (!bias)
      return {};
    scoring.steps.push_back({ds::ScoreStepKind::add, bias});
  }
  if (!hidePlaces(n, g, scoring))
    return {};
  double scale = n.real("scale", 0);
  scoring.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(g.size));
  scoring.softcap = n.real("softcap", 0);
  scoring.hasSink = n.integer("smooth_softmax", 0) == 1 || n.has(11);
  scoring.sink = n.in(11);
  int64_t stage = n.integer("qk_output", 0);
  if (stage < 0 || stage > 2 || (n.yields(3) && stage == 0))
    return n.refuse("attribute 'qk_output': expected 1 or 2 where output 3 is used, else 0, found " + Twine(stage));
  scoring.yieldsScores = n.yields(3);
  Attended attended = attend(n, g.query, presentKey, presentValue, scoring);
  return {mergeHeads(n, attended.result), presentKey, presentValue, stage == 1 ? attended.scores : attended.weights};
}

/// Pairs of elements rotated by the angle of their place.
static Values convertRotaryEmbedding(Node &n) {
  Value x = n.in(0);
  int64_t heads = n.integer("num_heads", 0), rotated = n.integer("rotary_embedding_dim", 0);
  if (!n.requireRank(0, 3, 4) || !n.requireRank(2, 2, 2) || !n.requireRank(3, 2, 2))
    return {};
  if (n.flag("is_packed_batching", false))
    return n.refuse("attribute 'is_packed_batching': expected 0, found 1; pad the batch");
  // ONNX Runtime reads the scale and does not use it: whoever sets it expects something that nobody computes.
  if (double scale = n.real("scale", 1.0); scale != 1.0)
    return n.refuse("attribute 'scale': expected 1, found " + std::to_string(scale) + "; scale the caches");
  auto half = n.b.sizes(n.in(2))[1].constant();
  if (!half || *half < 1 || *half > 1 << 20 || heads < 0 || (rotated != 0 && rotated != 2 * *half))
    return n.refuse("expected a static last axis of 'cos_cache' that is half of 'rotary_embedding_dim', found " +
                    describe(n.b.facts(n.in(2))) + " and " + Twine(rotated));
  bool isFlat = n.b.rank(x) == 3;
  if (isFlat) {
    // Without a number of heads, the caches hold whole heads.
    auto width = n.b.sizes(x)[2].constant();
    if (heads == 0 || rotated == 0)
      heads = width ? *width / (2 * *half) : 0;
    if (!width || heads < 1 || *width % heads != 0)
      return n.refuse("input 0: expected a last axis of a static number of heads, found " + describe(n.b.facts(x)) +
                      " for 'num_heads' " + Twine(heads));
    x = splitHeads(n, x, heads);
  }
  if (!x)
    return {};
  SizeVector s = n.b.sizes(x);
  auto turned = rotatedSize(n, 2, s[3]);
  if (!turned)
    return {};
  Value positions = n.b.cast(n.in(1), n.b.i64());
  if (n.b.rank(positions) < 2) { // of the first place
    Value offset = n.b.reshape(positions, {1, 1});
    positions = n.b.add(n.b.iota(1, {1, s[2]}), offset);
  }
  Value cosines = anglesAt(n, n.in(2), positions, s[2]), sines = anglesAt(n, n.in(3), positions, s[2]);
  Value result = rotateHeads(n, x, cosines, sines, *turned, n.flag("interleaved", false));
  return {isFlat ? mergeHeads(n, result) : result};
}

void addMicrosoftGroupQuery(PatternRegistry &registry) {
  registry.add("GroupQueryAttention", 1, 1, convertGroupQuery, domain);
  registry.add("RotaryEmbedding", 1, 4, convertRotaryEmbedding, domain);
}

} // namespace deepstride::onnx
