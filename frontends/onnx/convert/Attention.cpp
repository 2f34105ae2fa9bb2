// Attention and rotary embeddings of the default domain, as the products, masks and softmax they stand for;
// `ds-recompose-attention` finds the block again where a kernel for it pays.
#include "frontends/onnx/convert/Heads.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

Value splitHeads(Node &n, Value x, int64_t heads) {
  if (!x)
    return {};
  SizeVector s = n.b.sizes(x);
  Value split = n.b.reshape(x, {s[0], s[1], heads, SizeExpr::floorDiv(s[2], heads)});
  return n.b.transpose(split, {0, 2, 1, 3});
}

Value mergeHeads(Node &n, Value x) {
  if (!x)
    return {};
  SizeVector s = n.b.sizes(x);
  return n.b.reshape(n.b.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Value repeatHeads(Node &n, Value x, int64_t repeats) {
  if (!x || repeats == 1)
    return x;
  SizeVector s = n.b.sizes(x);
  Value split = n.b.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  return n.b.reshape(n.b.broadcast(split, {s[0], s[1], repeats, s[2], s[3]}),
                     {s[0], s[1] * SizeExpr(repeats), s[2], s[3]});
}

/// 0 where the condition holds, else minus infinity.
static Value bias(Node &n, Value keeps, Type type) {
  return n.b.select(keeps, n.b.scalar(type, 0), n.b.scalar(type, minusInfinity));
}

/// The given mask as numbers to add, padded to the length of the keys with places that are never attended to.
static Value givenBias(Node &n, const SizeExpr &total, Type type) {
  Value mask = n.in(3);
  bool areFlags = n.b.element(mask).isInteger(1);
  auto numbers = [&](Value padded) { return areFlags ? bias(n, padded, type) : padded; };
  if (!mask || n.b.rank(mask) == 0)
    return numbers(mask);
  SizeExpr length = n.b.sizes(mask).back(), missing = total - length;
  if (missing.isConstant(0))
    return numbers(mask);
  if (auto known = missing.constant(); known && *known < 0)
    return n.refuse("input 3 ('attn_mask'): expected at most as many columns as there are keys (" + total.brief() +
                    "), found " + describe(n.b.facts(mask)));
  requireFor(n, total, length, "at most as many columns of the mask as there are keys");
  SizeVector low(n.b.rank(mask)), high = low;
  high.back() = SizeExpr::max(missing, 0);
  Value never = areFlags ? n.b.scalar(n.b.element(mask), 0) : n.b.scalar(type, minusInfinity);
  Value padded = n.b.pad(ds::PadKind::constant, mask, never, low, high);
  // All of it: its length is that of the keys by name, too.
  return numbers(n.b.sliceAxis(padded, n.b.rank(mask) - 1, 0, total));
}

/// Adds what masks a place: the given mask, later places, places past the length of a sequence.
static Value addBiases(Node &n, Value scores, const SizeExpr &past) {
  Type type = n.b.element(scores);
  SizeVector s = n.b.sizes(scores);
  if (n.has(3))
    scores = n.b.add(scores, givenBias(n, s[3], type));
  if (n.flag("is_causal", false)) {
    Value row = n.b.add(n.b.iota(0, {s[2], 1}), n.b.reshape(n.b.shape({past}), {}));
    scores = n.b.add(scores, bias(n, n.b.binary(BinaryKind::le, n.b.iota(1, {1, s[3]}), row), type));
  }
  if (n.has(6)) {
    Value length = n.b.reshape(n.in(6), {s[0], 1, 1, 1});
    scores = n.b.add(scores, bias(n, n.b.binary(BinaryKind::lt, n.b.iota(3, {1, 1, 1, s[3]}), length), type));
  }
  return scores;
}

static bool bindHeads(Node &n, Value &query, Value &key, Value &value) {
  int64_t rank = n.b.rank(query), queryHeads = n.integer("q_num_heads", 0), keyHeads = n.integer("kv_num_heads", 0);
  if ((rank != 3 && rank != 4) || n.b.rank(key) != rank || n.b.rank(value) != rank)
    return n.reject("expected query, key and value of 3 or 4 axes, found " + describe(n.b.facts(query)) + ", " +
                    describe(n.b.facts(key)) + " and " + describe(n.b.facts(value)));
  if (rank == 4)
    return true;
  if (queryHeads < 1 || keyHeads < 1)
    return n.reject("attributes 'q_num_heads' and 'kv_num_heads': expected at least 1 for operands of 3 axes");
  query = splitHeads(n, query, queryHeads);
  key = splitHeads(n, key, keyHeads);
  value = splitHeads(n, value, keyHeads);
  return query && key && value;
}

/// How many heads of the query share one of the key; their number may be dynamic where it is the same.
static std::optional<int64_t> headsPerGroup(const SizeExpr &heads, const SizeExpr &groups) {
  if (heads == groups)
    return 1;
  auto many = heads.constant(), few = groups.constant();
  return many && few && *few > 0 && *many % *few == 0 ? std::optional(*many / *few) : std::nullopt;
}

static Values convertAttention(Node &n) {
  Value query = n.in(0), key = n.in(1), value = n.in(2);
  bool isFlat = n.b.rank(query) == 3;
  if (!bindHeads(n, query, key, value))
    return {};
  SizeExpr past;
  if (n.has(4) && n.has(5) && n.requireRank(4, 4, 4)) {
    past = n.b.sizes(n.in(4))[2];
    key = n.b.concat(2, {n.in(4), key});
    value = n.b.concat(2, {n.in(5), value});
  }
  if (!key || !value)
    return {};
  Value presentKey = key, presentValue = value;
  auto repeats = headsPerGroup(n.b.sizes(query)[1], n.b.sizes(key)[1]);
  auto size = n.b.sizes(query)[3].constant();
  if (!repeats || !size || *size < 1)
    return n.refuse(
        "expected a static head size, and heads of the query that are a static multiple of those of the key, "
        "found " +
        describe(n.b.facts(query)) + " and " + describe(n.b.facts(key)));
  key = repeatHeads(n, key, *repeats);
  value = repeatHeads(n, value, *repeats);
  // Both factors of the product are scaled by the root: that keeps f16 in range.
  double root = std::sqrt(n.real("scale", 1 / std::sqrt(static_cast<double>(*size))));
  Value product = n.b.matmul(n.b.mul(query, root), n.b.mul(key, root), false, /*transposeB=*/true), capped = product;
  if (double cap = n.real("softcap", 0); cap > 0)
    capped = n.b.mul(n.b.unary(UnaryKind::tanh, n.b.div(product, cap)), cap);
  Value biased = capped ? addBiases(n, capped, past) : Value();
  Type type = n.b.element(query);
  Type precision = n.attribute("softmax_precision") ? n.elementType(n.integer("softmax_precision", 1)) : type;
  if (!biased || !precision)
    return {};
  Value weights = n.b.cast(n.b.softmax(n.b.cast(biased, precision), 3), type);
  Value result = n.b.matmul(weights, value);
  Value stages[] = {product, capped, biased, weights};
  int64_t stage = n.integer("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3)
    return n.refuse("attribute 'qk_matmul_output_mode': expected 0 to 3, found " + Twine(stage));
  return {isFlat ? mergeHeads(n, result) : result, presentKey, presentValue, stages[stage]};
}

/// One of the two caches of angles as [batch, 1, length, half].
static Value angles(Node &n, Value cache) {
  return n.b.insertAxis(n.has(3) ? n.b.gather(0, cache, n.in(3)) : cache, 1);
}

Value rotateHeads(Node &n, Value x, Value cosine, Value sine, int64_t rotated, bool isInterleaved) {
  int64_t half = rotated / 2, step = isInterleaved ? 2 : 1;
  Value first = n.b.sliceAxis(x, 3, 0, half, step), second = n.b.sliceAxis(x, 3, isInterleaved ? 1 : half, half, step);
  Value real = n.b.sub(n.b.mul(cosine, first), n.b.mul(sine, second));
  Value imaginary = n.b.add(n.b.mul(sine, first), n.b.mul(cosine, second));
  if (!real || !imaginary)
    return {};
  SizeVector s = n.b.sizes(x);
  SizeExpr size = s[3];
  Value turned;
  if (isInterleaved) {
    s[3] = rotated;
    turned = n.b.reshape(n.b.concat(4, {n.b.insertAxis(real, 4), n.b.insertAxis(imaginary, 4)}), s);
  } else {
    turned = n.b.concat(3, {real, imaginary});
  }
  if (size.isConstant(rotated))
    return turned;
  return n.b.concat(3, {turned, n.b.sliceAxis(x, 3, rotated, size - SizeExpr(rotated))});
}

/// Pairs of elements rotated by the angle of their place; elements from `rotary_embedding_dim` on stay.
static Values convertRotaryEmbedding(Node &n) {
  Value x = n.in(0);
  bool isFlat = n.b.rank(x) == 3, isInterleaved = n.flag("interleaved", false);
  int64_t heads = n.integer("num_heads", 0), rotated = n.integer("rotary_embedding_dim", 0);
  if (!n.requireRank(0, 3, 4) || (isFlat && heads < 1))
    return n.isRefused() ? Values() : n.refuse("attribute 'num_heads': expected at least 1, found " + Twine(heads));
  if (isFlat)
    x = splitHeads(n, x, heads);
  auto size = x ? n.b.sizes(x)[3].constant() : std::nullopt;
  if (!size || rotated < 0 || rotated > *size || rotated % 2 != 0)
    return n.refuse("expected a static head size and an even 'rotary_embedding_dim' inside it, found " +
                    describe(n.b.facts(x)) + " and " + Twine(rotated));
  if (rotated == 0)
    rotated = *size;
  Value turned = rotateHeads(n, x, angles(n, n.in(1)), angles(n, n.in(2)), rotated, isInterleaved);
  return {isFlat ? mergeHeads(n, turned) : turned};
}

void addAttention(PatternRegistry &registry) {
  registry.add("Attention", 23, 3, convertAttention);
  registry.add("RotaryEmbedding", 23, 3, convertRotaryEmbedding);
}

} // namespace deepstride::onnx
