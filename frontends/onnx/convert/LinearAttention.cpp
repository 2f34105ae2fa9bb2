// Layers with a carried state: LinearAttention and CausalConvWithState.
#include "frontends/onnx/convert/Registry.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {

/// [B, T, heads * D] as [B, heads, T, D].
static Value splitHeads(DsBuilder &b, Value x, int64_t heads) {
  if (!x)
    return {};
  SizeVector sizes = b.sizes(x);
  Value split = b.reshape(x, {sizes[0], sizes[1], heads, SizeExpr::floorDiv(sizes[2], heads)});
  return b.transpose(split, {0, 2, 1, 3});
}

static Values convertLinearAttention(Node &n) {
  DsBuilder &b = n.b;
  auto heads = n.requiredInteger("q_num_heads"), groups = n.requiredInteger("kv_num_heads");
  std::string rule = n.text("update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"});
  if (!heads || !groups || n.isRefused())
    return {};
  if (*heads < 1 || *groups < 1 || *heads % *groups != 0)
    return n.refuse("attribute 'q_num_heads': expected a multiple of 'kv_num_heads' (" + Twine(*groups) + "), found " +
                    Twine(*heads));
  bool decays = rule == "gated" || rule == "gated_delta", isDelta = rule == "delta" || rule == "gated_delta";
  if (decays != n.has(4) || isDelta != n.has(5))
    return n.refuse("attribute 'update_rule': '" + rule + "' takes " + (decays ? "a" : "no") + " decay and " +
                    (isDelta ? "a" : "no") + " beta");
  for (unsigned input : {0u, 1u, 2u, 4u, 5u})
    if (n.has(input) && (!n.requireRank(input, 3, 3) || !n.requireFloat(input)))
      return {};
  auto divides = [&](unsigned input, int64_t count) {
    auto size = b.sizes(n.in(input))[2].constant();
    return (size && *size % count == 0) ||
           n.reject("input " + Twine(input) + ": expected a last axis that " + Twine(count) + " heads divide, found " +
                    describe(b.facts(n.in(input))));
  };
  if (!divides(0, *heads) || !divides(1, *groups) || !divides(2, *groups))
    return {};
  // As the standard says, states and sums are f32, whatever the operands are.
  Type type = b.element(n.in(0)), inner = type.isF64() ? b.f64() : b.f32();
  auto wide = [&](unsigned input) { return b.cast(n.in(input), inner); };
  Value query = splitHeads(b, wide(0), *heads), key = splitHeads(b, wide(1), *groups);
  Value value = splitHeads(b, wide(2), *groups);
  if (!key || !value)
    return {};
  SizeVector keySizes = b.sizes(key), stateSizes = {keySizes[0], *groups, keySizes[3], b.sizes(value)[3]};
  Value decay = b.scalar(inner, 1), beta = decay, zero = b.scalar(inner, 0);
  if (decays) {
    SizeExpr width = b.sizes(n.in(4))[2];
    if (width != SizeExpr(*groups) && width != SizeExpr(*groups) * keySizes[3])
      return n.refuse("input 4 ('decay'): expected one number per key head or per key element, found " +
                      describe(b.facts(n.in(4))));
    decay = b.unary(ds::UnaryKind::exp, splitHeads(b, wide(4), *groups));
  }
  if (isDelta) {
    SizeVector sizes = b.sizes(n.in(5));
    if (!sizes[2].isConstant(1) && sizes[2] != SizeExpr(*groups))
      return n.refuse("input 5 ('beta'): expected one number per key head, or one, found " +
                      describe(b.facts(n.in(5))));
    beta = b.transpose(wide(5), {0, 2, 1});
  }
  Value state = n.has(3) ? wide(3) : zero;
  if (n.has(3) && (!n.requireRank(3, 4, 4) || !n.requireFloat(3)))
    return {};
  decay = b.broadcast(decay, keySizes);
  beta = b.broadcast(beta, {keySizes[0], *groups, keySizes[2]});
  state = b.broadcast(state, stateSizes);
  Value operands[] = {query, key, value, decay, beta, state};
  if (llvm::is_contained(operands, Value()))
    return {};
  double scale = n.real("scale", 0);
  auto depth = b.sizes(query)[3].constant();
  if (scale == 0 && depth && *depth > 0)
    scale = 1 / std::sqrt(static_cast<double>(*depth));
  OpBuilder &builder = b.getBuilder();
  Values results =
      b.finishAll(ds::LinearAttentionOp::create(builder, b.getLocation(), b.placeholder(), b.placeholder(), query, key,
                                                value, decay, beta, state, llvm::APFloat(scale), isDelta));
  if (results.empty())
    return {};
  SizeVector sizes = b.sizes(n.in(0));
  SizeExpr width = b.sizes(results[0])[3] * SizeExpr(*heads);
  Value joined = b.reshape(b.transpose(results[0], {0, 2, 1, 3}), {sizes[0], sizes[1], width});
  return {b.cast(joined, type), b.cast(results[1], n.has(3) ? b.element(n.in(3)) : type)};
}

/// A depthwise convolution over the carried places and the new ones; the last places are carried on.
static Values convertCausalConv(Node &n) {
  DsBuilder &b = n.b;
  std::string activation = n.text("activation", "none", {"none", "silu", "swish"});
  if (n.isRefused() || !n.requireRank(0, 3, 3) || !n.requireRank(1, 3, 3) || !n.requireFloat(0))
    return {};
  Value x = n.in(0), weight = n.in(1);
  SizeVector sizes = b.sizes(x), weightSizes = b.sizes(weight);
  auto kernel = weightSizes[2].constant(), channels = weightSizes[0].constant();
  if (!kernel || !channels || *kernel < 1 || *channels < 1 || !weightSizes[1].isConstant(1))
    return n.refuse("input 1 ('weight'): expected static sizes [channels, 1, kernel], found " +
                    describe(b.facts(weight)));
  SizeExpr carried = *kernel - 1;
  Value zero = b.scalar(b.element(x), 0), padded;
  if (n.has(3) && *kernel > 1)
    padded = b.concat(2, {n.in(3), x});
  else
    padded = b.pad(ds::PadKind::constant, x, zero, SizeVector{0, 0, carried}, SizeVector(3));
  SmallVector<Value> operands = {padded, weight};
  if (n.has(2))
    operands.push_back(n.in(2));
  int64_t one = 1, pads[] = {0, 0};
  Value result =
      b.create<ds::ConvOp>(operands, padded, weight, n.in(2), ArrayRef(one), ArrayRef(pads), ArrayRef(one), *channels);
  if (activation != "none")
    result = b.mul(result, b.unary(ds::UnaryKind::sigmoid, result));
  return {result, padded ? b.sliceAxis(padded, 2, sizes[2], carried) : Value()};
}

void addLinearAttention(PatternRegistry &registry) {
  registry.add("LinearAttention", 27, 3, convertLinearAttention);
  registry.add("CausalConvWithState", 27, 2, convertCausalConv);
}

} // namespace deepstride::onnx
