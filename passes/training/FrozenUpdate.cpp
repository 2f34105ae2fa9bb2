#include "passes/training/FrozenUpdate.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

namespace {

/// 0 where the warm-up has seen no gradient: there the update would divide what 1 bit says by epsilon alone.
Value masked(DsBuilder &b, const FrozenParameter &parameter, Value momentum) {
  Value zero = b.scalar(b.element(parameter.square), 0);
  return b.select(b.binary(BinaryKind::eq, parameter.square, zero), zero, momentum);
}

/// 1 - x, in f64.
Value rest(DsBuilder &b, Value x) { return b.sub(b.scalar(b.f64(), 1), x); }

Value norm(DsBuilder &b, Value x) {
  return b.cast(b.reduce(ReduceKind::l2, x, axesFrom(0, b.rank(x)), /*keep=*/false), b.f64());
}

/// Sizes are norms over the root of the number of elements.
SmallVector<Value> momentumScales(DsBuilder &b, ArrayRef<FrozenParameter> parameters) {
  SmallVector<Value> sizes, scales;
  Value sum = b.scalar(b.f64(), 0);
  for (const FrozenParameter &parameter : parameters) {
    auto count = static_cast<double>(product(b.sizes(parameter.momentum)).constant().value_or(1));
    sizes.push_back(b.div(norm(b, parameter.momentum), std::sqrt(std::max(count, 1.0))));
    sum = b.add(sum, sizes.back());
  }
  Value mean = b.div(sum, static_cast<double>(parameters.size()));
  Value one = b.scalar(b.f64(), 1);
  constexpr double most = 0x1p60; // whose products stay finite in f32
  for (Value size : sizes)
    scales.push_back(
        b.select(b.binary(BinaryKind::gt, size, 0), b.binary(BinaryKind::min, b.div(mean, size), most), one));
  return scales;
}

class ScaledUpdate {
public:
  ScaledUpdate(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers, const FrozenParameter &own)
      : b(b), settings(settings), numbers(numbers), own(own), type(b.element(own.value)) {}

  SmallVector<Value> run() {
    Value momentum = masked(b, own, b.div(own.common, b.cast(own.scale, type)));
    // The gradient that would have made this momentum.
    Value before = b.mul(own.momentum, b.cast(numbers.momentum, type));
    Value gradient = b.div(b.sub(momentum, before), b.cast(rest(b, numbers.momentum), type));
    Value fresh = b.add(b.mul(own.fresh, settings.beta2), b.mul(b.mul(gradient, gradient), 1 - settings.beta2));
    Value deviation = root(own.square);
    Value direction = b.div(momentum, deviation), update = direction;
    bool decays = own.decays && settings.weightDecay != 0;
    if (decays)
      update = b.add(direction, b.mul(own.value, settings.weightDecay));
    Value quotient = b.div(deviation, root(fresh));
    Value factor = b.cast(b.reduce(ReduceKind::max, quotient, axesFrom(0, b.rank(quotient)), /*keep=*/false), b.f64());
    factor = bounded(decays ? shared(factor, direction, update) : factor);
    Value rate = b.mul(numbers.rate, b.mul(own.trustAverage, factor));
    return {b.sub(own.value, b.mul(update, b.cast(rate, type))), momentum, fresh, own.scale, factor};
  }

private:
  Value root(Value square) { return b.add(b.unary(UnaryKind::sqrt, square), settings.epsilon); }

  /// The factor is about what momentum does; decay has its own share of the update.
  Value shared(Value factor, Value direction, Value update) {
    Value whole = norm(b, update), one = b.scalar(b.f64(), 1);
    Value share = b.binary(BinaryKind::min, b.div(norm(b, direction), whole), 1);
    share = b.select(b.binary(BinaryKind::gt, whole, 0), share, one);
    return b.add(b.mul(factor, share), rest(b, share));
  }

  Value bounded(Value factor) {
    factor = b.binary(BinaryKind::max, b.binary(BinaryKind::min, factor, settings.mostFactor), settings.leastFactor);
    Value least = b.mul(own.factor, 1 - settings.factorChange), most = b.mul(own.factor, 1 + settings.factorChange);
    return b.binary(BinaryKind::max, b.binary(BinaryKind::min, factor, most), least);
  }

  DsBuilder &b;
  const OptimizerSettings &settings;
  const StepNumbers &numbers;
  const FrozenParameter &own;
  Type type;
};

} // namespace

void beginFrozen(DsBuilder &b, MutableArrayRef<FrozenParameter> parameters) {
  if (parameters.empty())
    return;
  Value isFirst = b.binary(BinaryKind::eq, parameters.front().scale, 0); // as states begin
  OpBuilder &builder = b.getBuilder();
  Location where = b.getLocation();
  Value condition = tensor::ExtractOp::create(builder, where, isFirst, ValueRange{});
  auto scales = llvm::map_to_vector(parameters, [](const FrozenParameter &parameter) { return parameter.scale; });
  auto types = llvm::map_to_vector(scales, [&](Value value) -> Type { return b.facts(value).type(); });
  auto branch = scf::IfOp::create(builder, where, types, condition, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(builder, where, momentumScales(b, parameters));
    builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(builder, where, scales);
  }
  for (auto [parameter, scale] : llvm::zip_equal(parameters, branch.getResults())) {
    b.getAnalysis().set(scale, TensorFacts{b.f64(), {}, std::nullopt});
    parameter.scale = scale;
    parameter.factor = b.select(isFirst, b.scalar(b.f64(), 1), parameter.factor);
    parameter.fresh = b.select(isFirst, parameter.square, parameter.fresh);
  }
}

Value localMomentum(DsBuilder &b, const StepNumbers &numbers, const FrozenParameter &parameter, Value gradient) {
  Type type = b.element(parameter.momentum);
  Value kept = b.mul(parameter.momentum, b.cast(numbers.momentum, type));
  Value momentum = masked(b, parameter, b.add(kept, b.mul(gradient, b.cast(rest(b, numbers.momentum), type))));
  return parameter.scale ? b.mul(momentum, b.cast(parameter.scale, type)) : momentum;
}

SmallVector<Value> updateFrozen(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers,
                                const FrozenParameter &parameter) {
  if (settings.kind == OptimizerKind::Lamb)
    return ScaledUpdate(b, settings, numbers, parameter).run();
  Type type = b.element(parameter.value);
  Value momentum = masked(b, parameter, parameter.common), kept = parameter.value;
  if (parameter.decays && settings.weightDecay != 0)
    kept = b.mul(kept, b.cast(rest(b, b.mul(numbers.rate, settings.weightDecay)), type));
  Value deviation = b.add(b.unary(UnaryKind::sqrt, parameter.square), settings.epsilon);
  return {b.sub(kept, b.mul(b.div(momentum, deviation), b.cast(numbers.rate, type))), momentum};
}

} // namespace deepstride
