// Products of the domain com.microsoft: with operands transposed, scaled and activated, and with weights of 2, 4 or 8
// bits, which become recipes: packaging unpacks them, not the program.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

constexpr StringLiteral domain = "com.microsoft";

/// The standard's conversion of an operator with the same operands and attributes.
static Values convertAs(Node &n, StringRef name) {
  constexpr int64_t latest = 22;
  return PatternRegistry::get().lookUp("", name, latest)->convert(n);
}

/// The first axis moved behind the axes of the batch: [M, batch..., K] as [batch..., M, K].
static Value batchFirst(Node &n, Value x) {
  int64_t rank = n.b.rank(x);
  SmallVector<int64_t> permutation = axesFrom(1, rank - 1);
  permutation.append({0, rank - 1});
  return n.b.transpose(x, permutation);
}

static Values convertFusedMatMul(Node &n) {
  Value a = n.in(0), b = n.in(1);
  bool transA = n.flag("transA", false), transB = n.flag("transB", false);
  bool batchA = n.flag("transBatchA", false), batchB = n.flag("transBatchB", false);
  if (!n.requireRank(0, 1) || !n.requireRank(1, 1))
    return {};
  bool isRow = n.b.rank(a) == 1, isColumn = n.b.rank(b) == 1;
  if ((isRow && batchA) || (isColumn && batchB))
    return n.refuse("attributes 'transBatchA' and 'transBatchB': expected 0 for an operand of one axis, found 1");
  // A vector has nothing to transpose.
  if (isRow)
    a = n.b.insertAxis(a, 0);
  if (isColumn)
    b = n.b.insertAxis(b, 1);
  a = batchA ? batchFirst(n, a) : a;
  b = batchB ? batchFirst(n, b) : b;
  Value result = n.b.matmul(a, b, transA && !isRow, transB && !isColumn);
  if (!result)
    return {};
  if (isColumn)
    result = n.b.dropAxis(result, n.b.rank(result) - 1);
  if (isRow)
    result = n.b.dropAxis(result, n.b.rank(result) - (isColumn ? 1 : 2));
  double alpha = n.real("alpha", 1);
  return {alpha == 1 ? result : n.b.mul(result, alpha)};
}

/// The activations that ONNX Runtime fuses; `alpha` and `beta` are absent where the node leaves them to the operator.
static Value activate(Node &n, Value x, StringRef name, std::optional<double> alpha, std::optional<double> beta) {
  auto limit = [&](Value y, double low, double high) {
    return n.b.binary(BinaryKind::min, n.b.binary(BinaryKind::max, y, low), high);
  };
  if (name.empty())
    return x;
  if (name == "Relu")
    return n.b.unary(UnaryKind::relu, x);
  if (name == "Tanh")
    return n.b.unary(UnaryKind::tanh, x);
  if (name == "Sigmoid")
    return n.b.unary(UnaryKind::sigmoid, x);
  if (name == "LeakyRelu")
    return n.b.select(n.b.binary(BinaryKind::ge, x, 0.0), x, n.b.mul(x, alpha.value_or(0.01)));
  if (name == "HardSigmoid")
    return limit(n.b.add(n.b.mul(x, alpha.value_or(0.2)), beta.value_or(0.5)), 0, 1);
  if (name == "Clip" && alpha && beta)
    return limit(x, *alpha, *beta);
  return n.refuse("attribute 'activation': expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip with both "
                  "parameters, found " +
                  name);
}

static Values convertFusedGemm(Node &n) {
  std::string activation = n.text("activation", "");
  auto parameter = [&](StringRef name) {
    return n.attribute(name) ? std::optional<double>(n.real(name, 0)) : std::nullopt;
  };
  auto alpha = parameter("activation_alpha"), beta = parameter("activation_beta");
  Values result = convertAs(n, "Gemm");
  if (result.empty() || !result[0])
    return {};
  return {activate(n, result[0], activation, alpha, beta)};
}

static Values convertFusedConv(Node &n) {
  std::string activation = n.text("activation", "");
  auto parameters = dyn_cast_if_present<DenseF32ArrayAttr>(n.attribute("activation_params"));
  auto parameter = [&](int64_t i) {
    return parameters && i < parameters.size() ? std::optional<double>(parameters[i]) : std::nullopt;
  };
  Values result = convertAs(n, "Conv");
  if (result.empty() || !result[0])
    return {};
  if (n.has(3) && !requireSizes(n, 3, n.b.sizes(result[0]), "the sizes of the convolution"))
    return {};
  Value sum = n.has(3) ? n.b.add(result[0], n.in(3)) : result[0];
  return {activate(n, sum, activation, parameter(0), parameter(1))};
}

/// Bytes [..., count] as their elements of `bits` bits, lowest first: u8 [..., count * 8 / bits].
static Value unpackBits(DsBuilder &b, Value bytes, int64_t bits) {
  if (!bytes || bits == 8)
    return bytes;
  int64_t rank = b.rank(bytes), perByte = 8 / bits;
  SizeVector sizes = b.sizes(bytes), parts = sizes;
  parts.push_back(1);
  Type type = b.element(bytes);
  Value split = b.reshape(bytes, parts);
  SmallVector<Value> fields;
  for (int64_t i = 0; i < perByte; ++i) {
    Value shifted = i ? b.binary(BinaryKind::shift_right, split, b.scalar(type, static_cast<double>(i * bits))) : split;
    fields.push_back(b.binary(BinaryKind::bit_and, shifted, b.scalar(type, static_cast<double>((1 << bits) - 1))));
  }
  sizes.back() = sizes.back() * SizeExpr(perByte);
  return b.reshape(b.concat(rank, fields), sizes);
}

namespace {
struct BlockLayout {
  int64_t rows, columns, block, bits; // rows: N; columns: K
  int64_t blocks() const { return (columns + block - 1) / block; }
};
} // namespace

static bool hasSizes(Node &n, unsigned input, ArrayRef<SizeExpr> expected) {
  // Some writers flatten the operand: what counts is the number of elements.
  if (product(n.b.sizes(n.in(input))) == product(expected))
    return true;
  SizeVector sizes(expected.begin(), expected.end());
  return n.reject("input " + Twine(input) + ": expected " + describe({n.b.element(n.in(input)), sizes, {}}) +
                  ", found " + describe(n.b.facts(n.in(input))));
}

/// The zero points as f32 [N, blocks]: half of the range where the node has none.
static Value zeroPoints(Node &n, const BlockLayout &layout) {
  SizeVector whole = {layout.rows, layout.blocks()};
  Value points = n.in(3);
  if (!points)
    return n.b.scalar(n.b.f32(), static_cast<double>(1 << (layout.bits - 1)));
  if (!n.b.element(points).isUnsignedInteger(8))
    return hasSizes(n, 3, whole) ? n.b.reshape(n.b.cast(points, n.b.f32()), whole) : Value();
  int64_t bytes = (layout.blocks() * layout.bits + 7) / 8, padded = bytes * 8 / layout.bits;
  if (!hasSizes(n, 3, {layout.rows, bytes}))
    return {};
  Value fields = unpackBits(n.b, n.b.reshape(points, {layout.rows, bytes}), layout.bits);
  if (padded != layout.blocks())
    fields = n.b.sliceAxis(fields, 1, 0, layout.blocks());
  return n.b.cast(fields, n.b.f32());
}

/// Fields u8 [N, blocks, block] as numbers f32 [N, K], with the parameters of their block, or of the group of their
/// column where the node lists one for each.
static Value dequantizeBlocks(Node &n, const BlockLayout &layout, Value fields) {
  SizeVector whole = {layout.rows, layout.blocks() * layout.block};
  Value points = zeroPoints(n, layout);
  Value scales = n.b.reshape(n.b.cast(n.in(2), n.b.f32()), {layout.rows, layout.blocks()});
  auto columns = [&](Value x) {
    return layout.columns == layout.blocks() * layout.block ? x : n.b.sliceAxis(x, 1, 0, layout.columns);
  };
  if (!points || !scales)
    return {};
  Value real = n.b.cast(fields, n.b.f32());
  if (!n.has(4)) {
    auto perBlock = [&](Value x) { return n.b.rank(x) == 0 ? x : n.b.insertAxis(x, 2); };
    return columns(n.b.reshape(n.b.mul(n.b.sub(real, perBlock(points)), perBlock(scales)), whole));
  }
  if (!n.requireRank(4, 1, 1))
    return {};
  Value groups = n.b.sliceAxis(n.in(4), 0, 0, layout.columns);
  auto perColumn = [&](Value x) { return n.b.rank(x) == 0 ? x : n.b.gather(1, x, groups); };
  return n.b.mul(n.b.sub(columns(n.b.reshape(real, whole)), perColumn(points)), perColumn(scales));
}

static std::optional<BlockLayout> readLayout(Node &n) {
  auto columns = n.requiredInteger("K"), rows = n.requiredInteger("N"), block = n.requiredInteger("block_size");
  int64_t bits = n.integer("bits", 4);
  if (!columns || !rows || !block)
    return std::nullopt;
  if (bits != 2 && bits != 4 && bits != 8)
    return n.refuse("attribute 'bits': expected 2, 4 or 8, found " + Twine(bits));
  constexpr int64_t limit = int64_t(1) << 31;
  if (*block < 16 || *block >= limit || !llvm::isPowerOf2_64(*block))
    return n.refuse("attribute 'block_size': expected a power of two of at least 16, found " + Twine(*block));
  if (*columns < 1 || *rows < 1 || *columns >= limit || *rows >= limit)
    return n.refuse("attributes 'K' and 'N': expected sizes of 1 to " + Twine(limit - 1) + ", found " +
                    Twine(*columns) + " and " + Twine(*rows));
  if (int64_t packed = n.integer("weight_prepacked", 0))
    return n.refuse("attribute 'weight_prepacked': expected 0, found " + Twine(packed) +
                    "; the layouts that are packed for one accelerator cannot be read");
  return BlockLayout{*rows, *columns, *block, bits};
}

/// A times the transpose of the weight [N, K] that blocks of K, each with a scale and a zero point, stand for.
static Values convertMatMulNBits(Node &n) {
  auto layout = readLayout(n);
  if (!layout || !n.requireRank(0, 1) || !n.requireFloat(0))
    return {};
  int64_t blocks = layout->blocks(), bytes = layout->block * layout->bits / 8;
  if (auto length = n.b.sizes(n.in(0)).back().constant(); length && *length != layout->columns)
    return n.refuse("input 0: expected rows of " + Twine(layout->columns) + " elements, attribute 'K', found " +
                    describe(n.b.facts(n.in(0))));
  if (!n.b.element(n.in(1)).isUnsignedInteger(8))
    return n.refuse("input 1: expected uint8, found " + describe(n.b.facts(n.in(1))));
  for (unsigned like : {2U, 5U})
    if (n.has(like) && n.b.element(n.in(like)) != n.b.element(n.in(0)))
      return n.refuse("input " + Twine(like) + ": expected elements of the type of input 0, " +
                      describe(n.b.facts(n.in(0))) + ", found " + describe(n.b.facts(n.in(like))));
  if (!hasSizes(n, 1, {layout->rows, blocks, bytes}) || !hasSizes(n, 2, {layout->rows, blocks}))
    return {};
  Value fields = unpackBits(n.b, n.b.reshape(n.in(1), {layout->rows, blocks, bytes}), layout->bits);
  Value weight = dequantizeBlocks(n, *layout, fields);
  Value x = n.in(0);
  Type type = n.b.element(x); // blocks are numbers in f32, rounded to the operand's type once
  bool isRow = n.b.rank(x) == 1;
  if (isRow)
    x = n.b.insertAxis(x, 0);
  Value result = n.b.matmul(x, n.b.transpose(n.b.cast(weight, type), {1, 0}));
  if (result && isRow)
    result = n.b.dropAxis(result, 0);
  if (!n.has(5) || !result)
    return {result};
  return {requireVector(n, 5, {layout->rows, "column"}) ? n.b.add(result, n.in(5)) : Value()};
}

void addMicrosoftProducts(PatternRegistry &registry) {
  registry.add("FusedMatMul", 1, 2, convertFusedMatMul, domain);
  registry.add("TransposeMatMul", 1, 2, convertFusedMatMul, domain);
  registry.add("FusedGemm", 1, 2, convertFusedGemm, domain);
  registry.add("FusedConv", 1, 2, convertFusedConv, domain);
  registry.add("MatMulNBits", 1, 3, convertMatMulNBits, domain);
}

} // namespace deepstride::onnx
