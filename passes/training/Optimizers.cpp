// One pass over a parameter, its gradient and its states each; LAMB needs two norms before. Numbers that are the same
// for all elements are computed in f64, as a host would, and rounded once.
#include "passes/training/Optimizers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

std::optional<OptimizerSettings> OptimizerSettings::parse(StringRef text, std::string &error) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  OptimizerSettings settings;
  auto kind = llvm::StringSwitch<std::optional<OptimizerKind>>(parts[0])
                  .Case("sgd", OptimizerKind::Sgd)
                  .Case("adagrad", OptimizerKind::Adagrad)
                  .Cases({"adam", "adamw", "one_bit_adam"}, OptimizerKind::Adam)
                  .Cases({"lamb", "one_bit_lamb"}, OptimizerKind::Lamb)
                  .Default(std::nullopt);
  if (!kind) {
    error =
        ("expected optimizer sgd, adagrad, adam, adamw, one_bit_adam, lamb or one_bit_lamb, found '" + parts[0] + "'")
            .str();
    return std::nullopt;
  }
  settings.kind = *kind;
  settings.compresses = parts[0].starts_with("one_bit");
  settings.correctsBias = !settings.compresses;
  settings.isDecoupled = parts[0] != "adam" && parts[0] != "sgd" && parts[0] != "adagrad";
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [key, value] = part.split('=');
    double number = 0;
    auto flag = llvm::StringSwitch<bool *>(key)
                    .Case("bias_correction", &settings.correctsBias)
                    .Case("nesterov", &settings.isNesterov)
                    .Case("momentum", &settings.hasMomentum)
                    .Case("epsilon_inside", &settings.hasEpsilonInside)
                    .Default(nullptr);
    auto field = llvm::StringSwitch<double *>(key)
                     .Case("beta2", &settings.beta2)
                     .Case("epsilon", &settings.epsilon)
                     .Case("weight_decay", &settings.weightDecay)
                     .Case("dampening", &settings.dampening)
                     .Case("min_coeff", &settings.leastTrust)
                     .Case("max_coeff", &settings.mostTrust)
                     .Case("coeff_beta", &settings.trustDecay)
                     .Case("factor_min", &settings.leastFactor)
                     .Case("factor_max", &settings.mostFactor)
                     .Case("factor_threshold", &settings.factorChange)
                     .Case("initial", &settings.initialSum)
                     .Case("lr_decay", &settings.rateDecay)
                     .Default(nullptr);
    if ((!flag && !field) || (field && value.getAsDouble(number)) || (flag && value != "true" && value != "false")) {
      error = ("expected KEY=NUMBER or KEY=true|false of an optimizer, found '" + part + "'").str();
      return std::nullopt;
    }
    if (flag)
      *flag = value == "true";
    else
      *field = number;
  }
  return settings;
}

SmallVector<StringRef> OptimizerSettings::states() const {
  switch (kind) {
  case OptimizerKind::Sgd: return hasMomentum ? SmallVector<StringRef>{"momentum"} : SmallVector<StringRef>{};
  case OptimizerKind::Adagrad: return {"sum"};
  case OptimizerKind::Adam: return {"exp_avg", "exp_avg_sq"};
  case OptimizerKind::Lamb:
    return compresses ? SmallVector<StringRef>{"exp_avg", "exp_avg_sq", "trust_average"}
                      : SmallVector<StringRef>{"exp_avg", "exp_avg_sq"};
  }
  llvm_unreachable("all optimizers handled");
}

SmallVector<StringRef> OptimizerSettings::frozenStates() const {
  bool isScaled = compresses && kind == OptimizerKind::Lamb;
  return isScaled ? SmallVector<StringRef>{"exp_avg_sq_fresh", "momentum_scale", "trust_factor"}
                  : SmallVector<StringRef>{};
}

bool OptimizerSettings::isNumber(StringRef state) {
  return state == "trust_average" || state == "momentum_scale" || state == "trust_factor";
}

namespace {
class Update {
public:
  Update(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers, Value parameter, Value gradient,
         bool decays)
      : b(b), settings(settings), numbers(numbers), x(parameter), g(gradient), type(b.element(parameter)),
        decay(decays ? settings.weightDecay : 0) {}

  SmallVector<Value> run(ValueRange states) {
    if (decay != 0 && !settings.isDecoupled)
      g = b.add(g, b.mul(x, decay));
    switch (settings.kind) {
    case OptimizerKind::Sgd: return sgd(states);
    case OptimizerKind::Adagrad: return adagrad(states[0]);
    case OptimizerKind::Adam:
    case OptimizerKind::Lamb: return adam(states);
    }
    llvm_unreachable("all optimizers handled");
  }

private:
  Value own(Value number) { return b.cast(number, type); }
  /// 1 - x
  Value rest(Value number) { return b.sub(b.scalar(b.f64(), 1), number); }
  Value power(double base) { return b.binary(BinaryKind::pow, b.scalar(b.f64(), base), numbers.step); }

  SmallVector<Value> sgd(ValueRange states) {
    if (states.empty())
      return {b.sub(x, b.mul(g, own(numbers.rate)))};
    // The first step has no momentum yet, and is not damped.
    Value isFirst = b.binary(BinaryKind::eq, numbers.step, 1);
    Value share = b.select(isFirst, b.scalar(b.f64(), 1), b.scalar(b.f64(), 1 - settings.dampening));
    Value momentum = b.add(b.mul(states[0], own(numbers.momentum)), b.mul(g, own(share)));
    Value direction = settings.isNesterov ? b.add(g, b.mul(momentum, own(numbers.momentum))) : momentum;
    return {b.sub(x, b.mul(direction, own(numbers.rate))), momentum};
  }

  SmallVector<Value> adagrad(Value sum) {
    if (settings.initialSum != 0) { // states begin with 0
      Value isFirst = b.binary(BinaryKind::eq, numbers.step, 1);
      sum = b.add(sum, own(b.select(isFirst, b.scalar(b.f64(), settings.initialSum), b.scalar(b.f64(), 0))));
    }
    Value next = b.add(sum, b.mul(g, g));
    Value slowed = b.add(b.mul(b.sub(numbers.step, 1), settings.rateDecay), 1);
    Value rate = own(b.div(numbers.rate, slowed));
    return {b.sub(x, b.mul(b.div(g, b.add(b.unary(UnaryKind::sqrt, next), settings.epsilon)), rate)), next};
  }

  SmallVector<Value> adam(ValueRange states) {
    Value average = states[0], square = states[1];
    Value m = b.add(b.mul(average, own(numbers.momentum)), b.mul(g, own(rest(numbers.momentum))));
    Value v = b.add(b.mul(square, settings.beta2), b.mul(b.mul(g, g), 1 - settings.beta2));
    Value first = b.scalar(b.f64(), 1), second = first; // bias corrections
    if (settings.correctsBias) {
      first = rest(b.binary(BinaryKind::pow, numbers.momentum, numbers.step));
      second = b.unary(UnaryKind::sqrt, rest(power(settings.beta2)));
    }
    if (settings.kind == OptimizerKind::Lamb)
      return lamb(m, v, b.div(b.mul(numbers.rate, second), first), states.drop_front(2));
    Value root = b.unary(UnaryKind::sqrt, v);
    Value deviation = b.add(settings.correctsBias ? b.div(root, own(second)) : root, settings.epsilon);
    Value kept = x;
    if (decay != 0 && settings.isDecoupled)
      kept = b.mul(x, own(rest(b.mul(numbers.rate, decay))));
    return {b.sub(kept, b.mul(b.div(m, deviation), own(b.div(numbers.rate, first)))), m, v};
  }

  /// The correction multiplies the whole update, decay included, and the trust ratio is that of the uncorrected one.
  SmallVector<Value> lamb(Value m, Value v, Value rate, ValueRange trustAverage) {
    Value deviation = settings.hasEpsilonInside ? b.unary(UnaryKind::sqrt, b.add(v, settings.epsilon))
                                                : b.add(b.unary(UnaryKind::sqrt, v), settings.epsilon);
    Value update = b.div(m, deviation);
    if (decay != 0)
      update = b.add(update, b.mul(x, decay));
    auto norm = [&](Value value) {
      return b.cast(b.reduce(ReduceKind::l2, value, axesFrom(0, b.rank(value)), /*keep=*/false), b.f64());
    };
    Value size = norm(x), other = norm(update), zero = b.scalar(b.f64(), 0);
    Value some =
        b.binary(BinaryKind::bit_and, b.binary(BinaryKind::gt, size, zero), b.binary(BinaryKind::gt, other, zero));
    Value ratio = b.binary(BinaryKind::min, b.binary(BinaryKind::max, b.div(size, other), settings.leastTrust),
                           settings.mostTrust);
    Value trust = b.select(some, ratio, b.scalar(b.f64(), 1));
    SmallVector<Value> next = {b.sub(x, b.mul(update, own(b.mul(rate, trust)))), m, v};
    for (Value average : trustAverage) { // 1 says nothing: a norm was 0
      Value moved = b.add(b.mul(average, settings.trustDecay), b.mul(trust, 1 - settings.trustDecay));
      next.push_back(b.select(b.binary(BinaryKind::eq, trust, 1), average, moved));
    }
    return next;
  }

  DsBuilder &b;
  const OptimizerSettings &settings;
  const StepNumbers &numbers;
  Value x, g;
  Type type;
  double decay;
};
} // namespace

SmallVector<Value> updateParameter(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers,
                                   Value parameter, Value gradient, ValueRange states, bool decays) {
  SmallVector<Value> next = Update(b, settings, numbers, parameter, gradient, decays).run(states);
  return llvm::is_contained(next, Value()) ? SmallVector<Value>() : next;
}

} // namespace deepstride
