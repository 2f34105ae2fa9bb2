// Normalizations: ds ops where there is one, else the formulas of the specification.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

namespace {
struct Normalized {
  Value value, mean, inverseDeviation;
};
} // namespace

static Value variance(DsBuilder &b, Value centred, ArrayRef<int64_t> axes) {
  return b.reduce(ReduceKind::mean, b.mul(centred, centred), axes);
}

static Value inverseDeviation(DsBuilder &b, Value variance, double epsilon) {
  return b.unary(UnaryKind::reciprocal, b.unary(UnaryKind::sqrt, b.add(variance, epsilon)));
}

/// (x - mean) / sqrt(variance + epsilon) over the given axes.
static Normalized normalize(DsBuilder &b, Value x, ArrayRef<int64_t> axes, double epsilon) {
  Value mean = b.reduce(ReduceKind::mean, x, axes);
  Value centred = b.sub(x, mean);
  Value inverse = inverseDeviation(b, variance(b, centred, axes), epsilon);
  return {b.mul(centred, inverse), mean, inverse};
}

/// An input with one element per place of axis 1, cast to the type of x.
static Value perChannel(Node &n, unsigned input, Value x, StringRef each = "channel") {
  SizeVector sizes = n.b.sizes(x);
  return x ? vectorAlong(n, input, n.b.cast(n.in(input), n.b.element(x)), 1, n.b.rank(x), {sizes[1], each}) : Value();
}

/// scale * x + bias, inputs 1 and 2, with one element of each per channel.
static Value scaleAndShift(Node &n, Value x, StringRef each = "channel") {
  Value scale = perChannel(n, 1, x, each), bias = scale ? perChannel(n, 2, x, each) : Value();
  return bias ? n.b.add(n.b.mul(x, scale), bias) : Value();
}

/// The scaled value in the sizes of the operand: scale and bias broadcast to it, but do not enlarge it. What only a run
/// tells is checked there, by the reshape.
static Value inSizesOf(Node &n, Value x, Value scaled) {
  if (!scaled)
    return {};
  SizeVector expected = n.b.sizes(x), found = n.b.sizes(scaled);
  if (expected == found)
    return scaled;
  bool isLegal = expected.size() == found.size();
  for (size_t i = 0; isLegal && i < expected.size(); ++i)
    isLegal = !(expected[i] - found[i]).constant() || expected[i] == found[i];
  return isLegal ? n.b.reshape(scaled, expected)
                 : n.refuse("expected scale and bias that broadcast to input 0, " + describe(n.b.facts(x)) +
                            ", found a result " + brief(found));
}

static Values convertLayerNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  double epsilon = n.real("epsilon", 1e-5);
  if (!axis)
    return {};
  if (!n.yields(1) && !n.yields(2)) {
    SmallVector<Value> operands = {x, scale};
    if (bias)
      operands.push_back(bias);
    return {n.b.create<ds::LayerNormOp>(operands, x, scale, bias, *axis, llvm::APFloat(epsilon))};
  }
  // The statistics are outputs, too, in the type that the node computes with.
  Type type = n.b.element(x), inner = n.elementType(n.integer("stash_type", 1));
  if (!inner)
    return {};
  Normalized norm = normalize(n.b, n.b.cast(x, inner), axesFrom(*axis, n.b.rank(x)), epsilon);
  Value result = n.b.mul(n.b.cast(norm.value, type), scale);
  result = inSizesOf(n, x, bias ? n.b.add(result, bias) : result);
  return {result, norm.mean, norm.inverseDeviation};
}

static Values convertRmsNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  if (!axis)
    return {};
  Type type = n.b.element(scale); // the type of the result
  Value result =
      n.b.create<ds::RmsNormOp>({x, scale}, n.b.cast(x, type), scale, *axis, llvm::APFloat(n.real("epsilon", 1e-5)));
  return {result};
}

static Values convertInstanceNorm(Node &n) {
  if (!n.requireRank(0, 3))
    return {};
  Normalized norm = normalize(n.b, n.in(0), axesFrom(2, n.b.rank(n.in(0))), n.real("epsilon", 1e-5));
  return {scaleAndShift(n, norm.value)};
}

/// The channels in groups: [batch, groups, everything else of the group].
static Values convertGroupNorm(Node &n) {
  auto groups = n.requiredInteger("num_groups");
  if (!groups || !n.requireRank(0, 3))
    return {};
  if (*groups < 1)
    return n.refuse("attribute 'num_groups': expected at least 1, found " + Twine(*groups));
  Value x = n.in(0);
  SizeVector sizes = n.b.sizes(x);
  auto channels = sizes[1].constant();
  if (channels && *channels % *groups != 0)
    return n.refuse("attribute 'num_groups': expected a divisor of " + Twine(*channels) + " channels, found " +
                    Twine(*groups));
  n.b.requireEqual(SizeExpr::mod(sizes[1], *groups), 0);
  SizeExpr rest = SizeExpr::floorDiv(product(ArrayRef(sizes).drop_front(1)), *groups);
  Value grouped = n.b.reshape(x, {sizes[0], *groups, rest});
  Value normal = normalize(n.b, grouped, {2}, n.real("epsilon", 1e-5)).value;
  constexpr int64_t perChannelParameters = 21; // before, one per group
  if (n.version() < perChannelParameters)
    return {n.b.reshape(scaleAndShift(n, normal, "group"), sizes)};
  return {scaleAndShift(n, n.b.reshape(normal, sizes))};
}

/// What a batch normalization computes in, whose operands may have several types.
static Type innerType(DsBuilder &b, Type type) { return type.isF16() || type.isBF16() ? b.f32() : type; }

/// A running statistic that a package which trains can move: floats of 32 bits or more that the model's file holds.
/// Null for what is computed or given.
static Value storedStatistic(Node &n, unsigned input) {
  Value running = n.in(input);
  if (n.context.gradientDepth > 0 || !running || n.b.element(running).getIntOrFloatBitWidth() < 32)
    return {}; // the function of a Gradient computes nodes once more
  if (running.getDefiningOp<ds::WeightOp>())
    return running;
  // What one channel has is a constant, unless it is asked for.
  Operation *source = n.operation().getInputs()[input].getDefiningOp();
  auto node = dyn_cast_or_null<NodeOp>(source);
  while (node && node.getOpType() == "Identity" && node->getNumOperands() == 1) {
    source = node->getOperand(0).getDefiningOp();
    node = dyn_cast_or_null<NodeOp>(source);
  }
  auto constant = running.getDefiningOp<ds::ConstantOp>();
  if (!constant || !(isa_and_nonnull<InitializerOp>(source) || (node && node.getOpType() == "Constant")))
    return {};
  auto name = cast<StringAttr>(cast<ArrayAttr>(constant->getAttr(ds::valueNameAttr))[0]);
  return n.context.importTensor(constant.getValue(), name, /*isWeight=*/true);
}

namespace {
/// A mean or variance of the batch: what is normalized by, in the sizes of the reduction and as a vector, and what the
/// running one becomes.
struct BatchStatistic {
  Value kept, vector, moved;
};
} // namespace

static BatchStatistic moveStatistic(Node &n, unsigned input, Value batch, Value stored) {
  DsBuilder &b = n.b;
  SizeVector sizes = b.sizes(batch);
  Value running = n.in(input), vector = b.reshape(batch, b.sizes(running)); // a vector of all channels
  Type inner = b.element(batch), own = b.element(running);
  double momentum = n.real("momentum", 0.9);
  if (stored) {
    // Of a node: 31 bits of its result's name.
    StringRef name = cast<StringAttr>(n.operation().getOutputs()[0]).getValue();
    auto node = static_cast<int64_t>(llvm::xxh3_64bits(name) & 0x7fffffff);
    OpBuilder &builder = b.getBuilder();
    Values both = b.finishAll(ds::RunningStatisticOp::create(
        builder, n.operation().getLoc(), b.placeholder(), b.placeholder(), b.cast(vector, own), stored,
        builder.getF64FloatAttr(momentum), builder.getI64IntegerAttr(node)));
    if (both.empty())
      return {};
    Value used = b.cast(both[0], inner);
    return {b.reshape(used, sizes), used, both[1]};
  }
  if (n.context.trains) // it stays; an average with what is computed would read like a bias that is learned
    return {batch, vector, running};
  Type wide = innerType(b, own);
  Value part = b.mul(b.cast(running, wide), momentum);
  return {batch, vector, b.cast(b.add(part, b.mul(b.cast(vector, wide), 1 - momentum)), own)};
}

/// With the statistics of the batch, which also move the running ones.
static Values trainBatchNorm(Node &n) {
  Value x = n.in(0);
  if (!n.requireRank(0, 2))
    return {};
  SmallVector<int64_t> axes = axesFrom(2, n.b.rank(x));
  axes.insert(axes.begin(), 0);
  Type type = n.b.element(x), inner = innerType(n.b, type);
  x = n.b.cast(x, inner);
  VectorRule channels = {n.b.sizes(x)[1], "channel"};
  if (!requireVector(n, 3, channels) || !requireVector(n, 4, channels))
    return {};
  Value storedMean, storedVariance;
  if (n.context.trains) {
    storedMean = storedStatistic(n, 3);
    storedVariance = storedStatistic(n, 4);
    double momentum = n.real("momentum", 0.9);
    if (storedMean && storedVariance && !(momentum >= 0 && momentum <= 1))
      return n.refuse("attribute 'momentum': expected 0 to 1 where the model is trained, found " +
                      std::to_string(momentum));
    if (!storedMean || !storedVariance) {
      storedMean = storedVariance = {};
      if (n.context.gradientDepth == 0)
        n.operation().emitWarning()
            << "was exported for training, and its running mean and variance are no floats of 32 "
               "bits or more that the model holds: they stay as they are, and evaluation "
               "normalizes by the statistics of its own batch";
    }
  }
  Value mean = n.b.reduce(ReduceKind::mean, x, axes), centred = n.b.sub(x, mean);
  BatchStatistic means = moveStatistic(n, 3, mean, storedMean);
  BatchStatistic variances = moveStatistic(n, 4, variance(n.b, centred, axes), storedVariance);
  if (means.kept != mean) // the running one, where the model is evaluated
    centred = n.b.sub(x, means.kept);
  Value inverse = inverseDeviation(n.b, variances.kept, n.real("epsilon", 1e-5));
  Value result = scaleAndShift(n, n.b.mul(centred, inverse));
  if (!result)
    return {};
  auto narrow = [&](Value value) { return n.b.cast(value, type); };
  return {narrow(result), means.moved, variances.moved, narrow(means.vector), narrow(variances.vector)}; // two until 14
}

static Values convertBatchNorm(Node &n) {
  constexpr int64_t trainingMode = 14, byOutputs = 7; // how versions ask for training; before 7, unless 'is_test'
  if (n.version() < 9 && !n.flag("spatial", true))
    return n.refuse("attribute 'spatial': expected 1, found 0; statistics per activation are not supported");
  if (n.version() >= trainingMode ? n.flag("training_mode", false)
      : n.version() >= byOutputs  ? n.yields(1) || n.yields(2) || n.yields(3) || n.yields(4)
                                  : !n.flag("is_test", false))
    return trainBatchNorm(n);
  if (!n.requireRank(0, 2))
    return {};
  Value x = n.in(0);
  Type type = n.b.element(x), inner = innerType(n.b, type);
  Value wide = n.b.cast(x, inner);
  SmallVector<Value> parameters;
  for (unsigned input : {1, 2, 3, 4}) {
    parameters.push_back(perChannel(n, input, wide));
    if (!parameters.back())
      return {};
  }
  Value scale = parameters[0], bias = parameters[1], mean = parameters[2], variance = parameters[3];
  Value deviation = n.b.unary(UnaryKind::sqrt, n.b.add(variance, n.real("epsilon", 1e-5)));
  Value factor = n.b.div(scale, deviation), centred = n.b.sub(wide, mean);
  return {n.b.cast(n.b.add(n.b.mul(centred, factor), bias), type)};
}

static Values convertLpNorm(Node &n) {
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(n.in(0)));
  int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2)
    return n.refuse("attribute 'p': expected 1 or 2, found " + Twine(p));
  if (!axis)
    return {};
  Value norm = n.b.reduce(p == 1 ? ReduceKind::l1 : ReduceKind::l2, n.in(0), {*axis});
  // A row of zeros stays zero.
  Value isZero = n.b.binary(BinaryKind::eq, norm, 0.0);
  return {n.b.div(n.in(0), n.b.select(isZero, n.b.scalar(n.b.element(n.in(0)), 1), norm))};
}

static Values convertMeanVariance(Node &n) {
  auto axes = n.axes(n.integers("axes").value_or(SmallVector<int64_t>{0, 2, 3}), n.b.rank(n.in(0)));
  if (!axes)
    return {};
  llvm::sort(*axes);
  // The standard's E[x^2] - E[x]^2 loses all digits, or its sign, where numbers are close to each other.
  Value x = n.in(0), centred = n.b.sub(x, n.b.reduce(ReduceKind::mean, x, *axes));
  Value deviation = n.b.unary(UnaryKind::sqrt, n.b.reduce(ReduceKind::mean, n.b.mul(centred, centred), *axes));
  return {n.b.div(centred, n.b.add(deviation, 1e-9))};
}

/// x / (bias + alpha / size * sum of squares over a window of channels) ^ beta.
static Values convertLrn(Node &n) {
  auto size = n.requiredInteger("size");
  if (!size || !n.requireRank(0, 2))
    return {};
  constexpr int64_t sizeLimit = 1024;
  if (*size < 1 || *size > sizeLimit)
    return n.refuse("attribute 'size': expected 1 to 1024, found " + Twine(*size));
  Value x = n.in(0), squares = n.b.mul(x, x), zero = n.b.scalar(n.b.element(x), 0);
  SizeVector low(n.b.rank(x)), high = low;
  SizeExpr channels = n.b.sizes(x)[1];
  low[1] = (*size - 1) / 2;
  high[1] = *size / 2;
  Value padded = n.b.pad(ds::PadKind::constant, squares, zero, low, high), sum;
  for (int64_t i = 0; padded && i < *size; ++i) {
    Value shifted = n.b.sliceAxis(padded, 1, i, channels);
    sum = sum ? n.b.add(sum, shifted) : shifted;
  }
  double alpha = n.real("alpha", 1e-4) / static_cast<double>(*size);
  Value base = n.b.add(n.b.mul(sum, alpha), n.real("bias", 1));
  return {n.b.div(x, n.b.binary(BinaryKind::pow, base, n.real("beta", 0.75)))};
}

void addNormalizations(PatternRegistry &registry) {
  // Standard since opset 17; ONNX Runtime's optimizer writes it into models of any opset.
  registry.add("LayerNormalization", 1, 2, convertLayerNorm);
  registry.add("RMSNormalization", 23, 2, convertRmsNorm);
  registry.add("InstanceNormalization", 1, 3, convertInstanceNorm).inFloat32 = true;
  registry.add("GroupNormalization", 18, 3, convertGroupNorm).inFloat32 = true;
  registry.add("BatchNormalization", 1, 5, convertBatchNorm);
  registry.add("LpNormalization", 1, 1, convertLpNorm).inFloat32 = true;
  registry.add("MeanVarianceNormalization", 9, 1, convertMeanVariance).inFloat32 = true;
  registry.add("LRN", 1, 1, convertLrn).inFloat32 = true;
}

} // namespace deepstride::onnx
