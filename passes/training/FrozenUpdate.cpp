#include "passes/training/FrozenUpdate.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::UnaryKind;

/// 0 where the warm-up has seen no gradient: there the update would divide what 1 bit says by epsilon alone.
static Value masked(DsBuilder &b, const FrozenParameter &parameter, Value momentum) {
  Value zero = b.scalar(b.element(parameter.square), 0);
  return b.select(b.binary(BinaryKind::eq, parameter.square, zero), zero, momentum);
}

/// 1 - x, in f64.
static Value rest(DsBuilder &b, Value x) { return b.sub(b.scalar(b.f64(), 1), x); }

Value localMomentum(DsBuilder &b, const StepNumbers &numbers, const FrozenParameter &parameter, Value gradient) {
  Type type = b.element(parameter.momentum);
  Value kept = b.mul(parameter.momentum, b.cast(numbers.momentum, type));
  return masked(b, parameter, b.add(kept, b.mul(gradient, b.cast(rest(b, numbers.momentum), type))));
}

std::pair<Value, Value> updateFrozen(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers,
                                     const FrozenParameter &parameter) {
  Type type = b.element(parameter.value);
  Value momentum = masked(b, parameter, parameter.common), kept = parameter.value;
  if (parameter.decays && settings.weightDecay != 0)
    kept = b.mul(kept, b.cast(rest(b, b.mul(numbers.rate, settings.weightDecay)), type));
  Value deviation = b.add(b.unary(UnaryKind::sqrt, parameter.square), settings.epsilon);
  return {b.sub(kept, b.mul(b.div(momentum, deviation), b.cast(numbers.rate, type))), momentum};
}

} // namespace deepstride
