// Normalizations, activations and softmax of the domain com.microsoft: a ds op each, with the sums that were fused in
// front of it. SimplifiedLayerNormalization is RMS normalization; ONNX Runtime also writes it in the default domain.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::GeluKind;
using ds::ReduceKind;
using ds::UnaryKind;

constexpr StringLiteral domain = "com.microsoft";
constexpr double skipEpsilon = 1e-12, plainEpsilon = 1e-5; // what the operators' schemas say

/// 1 / sqrt(mean(x^2) + epsilon) over the given axes.
static Value inverseDeviation(DsBuilder &b, Value centred, ArrayRef<int64_t> axes, double epsilon) {
  Value squares = b.reduce(ReduceKind::mean, b.mul(centred, centred), axes);
  return b.unary(UnaryKind::reciprocal, b.unary(UnaryKind::sqrt, b.add(squares, epsilon)));
}

static Value layerNorm(Node &n, Value x, Value scale, Value bias, int64_t axis, double epsilon) {
  SmallVector<Value> operands = {x, scale};
  if (bias)
    operands.push_back(bias);
  return n.b.create<ds::LayerNormOp>(operands, x, scale, bias, axis, llvm::APFloat(epsilon));
}

static Value rmsNorm(Node &n, Value x, Value scale, int64_t axis, double epsilon) {
  return n.b.create<ds::RmsNormOp>({x, scale}, x, scale, axis, llvm::APFloat(epsilon));
}

/// input + skip + bias; the skip may lack the batch, which it then shares. The bias goes to the product that it was
/// taken from, where one of the two is a product.
static Value skipSum(Node &n, unsigned biasInput) {
  if (!n.requireRank(0, 2) || !n.requireRank(1, 2))
    return {};
  if (n.b.rank(n.in(1)) > n.b.rank(n.in(0)))
    return n.refuse("input 1 ('skip'): expected no more axes than input 0, found " + describe(n.b.facts(n.in(1))));
  Value input = n.in(0), skip = n.in(1);
  SizeVector sizes = n.b.sizes(input), own = n.b.sizes(skip), rows(own.begin(), own.end() - 2);
  rows.insert(rows.end(), sizes.end() - 2, sizes.end());
  StringRef what = "the sizes of input 0, of which all but the last two may be 1";
  if (!requireBroadcastTo(n, 1, sizes, what) || !requireSizes(n, 1, rows, what))
    return {};
  for (unsigned vector = 2; vector <= biasInput; ++vector) // scale, shift if there is one, bias
    if (n.has(vector) && !requireVector(n, vector, {sizes.back(), "place of the last axis"}))
      return {};
  if (n.has(biasInput)) {
    Value &product = skip.getDefiningOp<ds::MatmulOp>() ? skip : input;
    product = n.b.add(product, n.in(biasInput));
  }
  return n.b.add(input, skip);
}

static Values convertSkipLayerNorm(Node &n) {
  double epsilon = n.real("epsilon", skipEpsilon);
  Value sum = skipSum(n, 4);
  if (!sum)
    return {};
  int64_t axis = n.b.rank(sum) - 1;
  Value mean, inverse;
  if (n.yields(1) || n.yields(2)) {
    Value wide = n.b.cast(sum, n.b.f32());
    mean = n.b.reduce(ReduceKind::mean, wide, {axis});
    inverse = inverseDeviation(n.b, n.b.sub(wide, mean), {axis}, epsilon);
  }
  return {layerNorm(n, sum, n.in(2), n.in(3), axis, epsilon), mean, inverse, sum};
}

static Values convertSkipRmsNorm(Node &n) {
  double epsilon = n.real("epsilon", skipEpsilon);
  Value sum = skipSum(n, 3);
  if (!sum)
    return {};
  int64_t axis = n.b.rank(sum) - 1;
  if (n.yields(1))
    return n.refuse("output 1 ('mean'): expected to be left out, found it used; this normalization has no mean");
  Value inverse;
  if (n.yields(2))
    inverse = inverseDeviation(n.b, n.b.cast(sum, n.b.f32()), {axis}, epsilon);
  return {rmsNorm(n, sum, n.in(2), axis, epsilon), {}, inverse, sum};
}

static Values convertSimplifiedLayerNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  Type inner = n.elementType(n.integer("stash_type", 1)), type = n.b.element(scale);
  double epsilon = n.real("epsilon", plainEpsilon);
  if (!axis || !inner)
    return {};
  Value inverse;
  if (n.yields(1))
    inverse = inverseDeviation(n.b, n.b.cast(x, inner), axesFrom(*axis, n.b.rank(x)), epsilon);
  // The operand is normalized in the wider of its type and the result's.
  if (n.b.element(x) == type || n.b.element(x) != n.b.f32())
    return {rmsNorm(n, n.b.cast(x, type), scale, *axis, epsilon), inverse};
  return {n.b.cast(rmsNorm(n, x, n.b.cast(scale, n.b.element(x)), *axis, epsilon), type), inverse};
}

/// A table or vector of an embedding; of bytes with their scale and zero point where they are quantized.
struct EmbeddingInput {
  unsigned input;
  std::optional<unsigned> scale, zero;
};

static Value dequantized(Node &n, Value x, const EmbeddingInput &from) {
  if (!from.scale)
    return x;
  Value scale = n.b.reshape(n.in(*from.scale), {}), zero = n.b.cast(n.b.reshape(n.in(*from.zero), {}), n.b.f32());
  return n.b.mul(n.b.sub(n.b.cast(x, n.b.f32()), zero), scale);
}

/// Rows of a table, of which only those that are taken are made floats.
static Value rowsOf(Node &n, const EmbeddingInput &table, Value ids) {
  return dequantized(n, n.b.gather(0, n.in(table.input), ids), table);
}

/// The sum of the words', positions' and, if there are any, segments' rows, normalized. `positions` are input 8, else
/// counted from 0. Inputs 5 and 6 are scale and bias, 7 is the mask.
static Values embedLayerNorm(Node &n, ArrayRef<EmbeddingInput> inputs, Value positions) {
  double epsilon = n.real("epsilon", skipEpsilon);
  if (!n.requireRank(0, 2, 2) || !n.requireRank(2, 2, 2) || !n.requireRank(3, 2, 2) ||
      (n.has(4) && !n.requireRank(4, 2, 2)))
    return {};
  SizeVector ids = n.b.sizes(n.in(0));
  if (n.has(1) != n.has(4))
    return n.refuse("expected both or none of 'segment_ids' and 'segment_embedding', found one");
  Value places =
      positions ? rowsOf(n, inputs[1], positions) : dequantized(n, n.b.sliceAxis(n.in(3), 0, 0, ids[1]), inputs[1]);
  for (unsigned table : {3u, 4u})
    if (n.has(table) &&
        !requireSizes(n, table, {n.b.sizes(n.in(table))[0], n.b.sizes(n.in(2))[1]}, "rows as long as those of input 2"))
      return {};
  Value sum = n.b.add(rowsOf(n, inputs[0], n.in(0)), places);
  if (n.has(1))
    sum = n.b.add(sum, rowsOf(n, inputs[2], n.in(1)));
  Value index;
  if (n.yields(1)) { // the number of words
    Type i32 = n.b.i32();
    Value zero = n.b.scalar(i32, 0);
    index = n.has(7) ? n.b.reduce(ReduceKind::sum, n.b.cast(n.b.binary(ds::BinaryKind::eq, n.in(7), 1.0), i32), {1},
                                  /*keep=*/false)
                     : n.b.broadcast(n.b.reshape(zero, {1}), {ids[0]});
  }
  if (!sum)
    return {};
  for (unsigned vector : {5u, 6u})
    if (!requireVector(n, vector, {n.b.sizes(sum).back(), "place of the last axis"}))
      return {};
  Value scale = dequantized(n, n.in(5), inputs[3]), bias = dequantized(n, n.in(6), inputs[4]);
  return {layerNorm(n, sum, scale, bias, 2, epsilon), index, sum};
}

static Values convertEmbedLayerNorm(Node &n) {
  return embedLayerNorm(n, {{2, {}, {}}, {3, {}, {}}, {4, {}, {}}, {5, {}, {}}, {6, {}, {}}}, n.in(8));
}

/// Each of the five has a scale, from input 8 on, and a zero point, from input 13 on.
static Values convertQEmbedLayerNorm(Node &n) {
  SmallVector<EmbeddingInput> inputs;
  for (unsigned i = 0; i < 5; ++i) {
    inputs.push_back({2 + i, 8 + i, 13 + i});
    if (i == 2 && !n.has(4)) // no segments
      continue;
    for (unsigned parameter : {8 + i, 13 + i})
      if (!n.has(parameter) || !product(n.b.sizes(n.in(parameter))).isConstant(1))
        return n.refuse("input " + Twine(parameter) + ": expected one element, the " +
                        (parameter < 13 ? "scale" : "zero point") + " of input " + Twine(2 + i) + ", found " +
                        (n.has(parameter) ? describe(n.b.facts(n.in(parameter))) : "none"));
    if (!isa_and_present<IntegerType>(n.b.element(n.in(2 + i))))
      return n.refuse("input " + Twine(2 + i) + ": expected bytes, found " +
                      (n.has(2 + i) ? describe(n.b.facts(n.in(2 + i))) : "none"));
  }
  return embedLayerNorm(n, inputs, {});
}

/// Whether input 1 is a bias with one element per place of the last axis of input 0.
static bool hasVectorBias(Node &n) {
  return n.requireRank(0, 1) && requireVector(n, 1, {n.b.sizes(n.in(0)).back(), "place of the last axis"});
}

static Values convertGelu(Node &n, GeluKind kind, bool hasBias) {
  if (hasBias && n.has(1) && !hasVectorBias(n))
    return {};
  return {n.b.gelu(kind, hasBias && n.has(1) ? n.b.add(n.in(0), n.in(1)) : n.in(0))};
}

static Values convertQuickGelu(Node &n) {
  double alpha = n.real("alpha", 1.702);
  if (std::abs(alpha - 1.702) < 1e-6)
    return {n.b.gelu(GeluKind::quick, n.in(0))};
  return {n.b.mul(n.in(0), n.b.unary(UnaryKind::sigmoid, n.b.mul(n.in(0), alpha)))};
}

/// The left half times the GELU of the right one.
static Values convertBiasSplitGelu(Node &n) {
  if (!hasVectorBias(n))
    return {};
  Value x = n.b.add(n.in(0), n.in(1));
  int64_t axis = n.b.rank(n.in(0)) - 1;
  SizeExpr width = n.b.sizes(n.in(0))[axis], half = SizeExpr::floorDiv(width, 2);
  if (auto known = width.constant(); known && *known % 2 != 0)
    return n.refuse("input 0: expected a last axis of even size, found " + describe(n.b.facts(n.in(0))));
  Value left = n.b.sliceAxis(x, axis, 0, half), right = n.b.sliceAxis(x, axis, half, half);
  return {n.b.mul(left, n.b.gelu(GeluKind::erf, right))};
}

/// A softmax over all axes from `axis` on, of a sum.
static Values convertBiasSoftmax(Node &n) {
  if (!n.requiredInteger("is_inner_broadcast"))
    return {};
  int64_t rank = n.b.rank(n.in(0));
  auto axis = n.axis(n.integer("axis", 1), rank);
  Value sum = n.b.add(n.in(0), n.in(1));
  if (!axis || !sum)
    return {};
  if (*axis == rank - 1)
    return {n.b.softmax(sum, *axis)};
  SizeVector sizes = n.b.sizes(sum), flat(sizes.begin(), sizes.begin() + *axis);
  flat.push_back(product(ArrayRef(sizes).drop_front(*axis)));
  return {n.b.reshape(n.b.softmax(n.b.reshape(sum, flat), *axis), sizes)};
}

void addMicrosoftNormalizations(PatternRegistry &registry) {
  registry.add("SimplifiedLayerNormalization", 1, 2, convertSimplifiedLayerNorm);
  registry.add("SimplifiedLayerNormalization", 1, 2, convertSimplifiedLayerNorm, domain);
  registry.add("SkipLayerNormalization", 1, 3, convertSkipLayerNorm, domain);
  registry.add("SkipSimplifiedLayerNormalization", 1, 3, convertSkipRmsNorm, domain);
  registry.add("EmbedLayerNormalization", 1, 1, convertEmbedLayerNorm, domain);
  registry.add("QEmbedLayerNormalization", 1, 1, convertQEmbedLayerNorm, domain);
  registry.add("Gelu", 1, 1, [](Node &n) { return convertGelu(n, GeluKind::erf, false); }, domain);
  registry.add("BiasGelu", 1, 2, [](Node &n) { return convertGelu(n, GeluKind::erf, true); }, domain);
  registry.add("FastGelu", 1, 1, [](Node &n) { return convertGelu(n, GeluKind::tanh, true); }, domain);
  registry.add("QuickGelu", 1, 1, convertQuickGelu, domain).inFloat32 = true;
  registry.add("BiasSplitGelu", 1, 2, convertBiasSplitGelu, domain);
  registry.add("BiasSoftmax", 1, 2, convertBiasSoftmax, domain);
}

} // namespace deepstride::onnx
