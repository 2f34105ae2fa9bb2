// Steps of training as the standard writes them: the optimizers of ai.onnx.preview.training, and Dropout.
#include "frontends/onnx/convert/Random.h"
#include "frontends/onnx/convert/Registry.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

namespace {
/// The operands of an optimizer: rate, step, then `groups` lists of one tensor per parameter.
class Optimizer {
public:
  Optimizer(Node &n, unsigned groups) : n(n), groups(groups), parameters((n.inputCount() - 2) / groups) {}

  /// Whether the operands come in whole lists of one type and shape, and rate and step are single numbers.
  bool isLegal() {
    if ((n.inputCount() - 2) % groups != 0 || parameters == 0)
      return n.reject("expected a rate, a step and " + Twine(groups) + " tensors per parameter, found " +
                      Twine(n.inputCount()) + " inputs");
    for (unsigned input = 0; input < n.inputCount(); ++input) {
      if (!n.has(input))
        return n.reject("expected input " + Twine(input) + " to be present");
      TensorFacts facts = n.b.facts(n.in(input));
      if (input < 2 && !product(facts.sizes).isConstant(1))
        return n.reject("input " + Twine(input) + ": expected one number, found " + describe(facts));
      TensorFacts first = n.b.facts(n.in(2 + (input - 2) % parameters));
      if (input >= 2 && (facts.sizes != first.sizes || facts.elementType != first.elementType))
        return n.reject("input " + Twine(input) + ": expected the type and shape of its parameter, " + describe(first) +
                        ", found " + describe(facts));
    }
    return n.requireFloat(0) && (isa<FloatType>(n.b.element(n.in(2))) || n.requireFloat(2));
  }
  unsigned count() const { return parameters; }
  Value operand(unsigned group, unsigned parameter) { return n.in(2 + group * parameters + parameter); }
  Value rate() { return n.b.reshape(n.in(0), {}); }
  Value step() { return n.b.reshape(n.in(1), {}); }
  Value isFirstStep() { return n.b.binary(BinaryKind::le, step(), 0.0); }
  /// The gradient with that of the L2 penalty on the parameter.
  Value gradient(unsigned parameter) {
    double penalty = n.real("norm_coefficient", 0);
    Value given = operand(1, parameter);
    return penalty == 0 ? given : n.b.add(n.b.mul(operand(0, parameter), penalty), given);
  }
  /// A number of the rate's type in that of a parameter.
  Value fitted(Value scalar, unsigned parameter) { return n.b.cast(scalar, n.b.element(operand(0, parameter))); }

private:
  Node &n;
  unsigned groups, parameters;
};
} // namespace

/// Results in the order of the standard: every parameter, then every state of the first kind, and so on.
static Values inOrder(ArrayRef<Values> perParameter) {
  Values results;
  for (size_t kind = 0; kind < perParameter.front().size(); ++kind)
    for (const Values &values : perParameter)
      results.push_back(values[kind]);
  return results;
}

static Values convertAdagrad(Node &n) {
  Optimizer o(n, 3);
  if (!o.isLegal())
    return {};
  DsBuilder &b = n.b;
  Value steps = b.cast(o.step(), b.element(o.rate()));
  Value rate = b.div(o.rate(), b.add(b.mul(steps, n.real("decay_factor", 0)), 1.0));
  SmallVector<Values> results;
  for (unsigned i = 0; i < o.count(); ++i) {
    Value gradient = o.gradient(i), squares = b.add(o.operand(2, i), b.mul(gradient, gradient));
    Value deviation = b.add(b.unary(UnaryKind::sqrt, squares), n.real("epsilon", 1e-6));
    Value moved = b.div(b.mul(o.fitted(rate, i), gradient), deviation);
    results.push_back({b.sub(o.operand(0, i), moved), squares});
  }
  return inOrder(results);
}

static Values convertAdam(Node &n) {
  Optimizer o(n, 4);
  if (!o.isLegal())
    return {};
  DsBuilder &b = n.b;
  double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999), after = n.real("norm_coefficient_post", 0);
  Type type = b.element(o.rate());
  auto bias = [&](double share) {
    Value power = b.binary(BinaryKind::pow, b.scalar(type, share), b.cast(o.step(), type));
    return b.sub(b.scalar(type, 1), power);
  };
  Value corrected = b.div(b.mul(o.rate(), b.unary(UnaryKind::sqrt, bias(beta))), bias(alpha));
  Value rate = b.select(o.isFirstStep(), o.rate(), corrected);
  SmallVector<Values> results;
  for (unsigned i = 0; i < o.count(); ++i) {
    Value gradient = o.gradient(i), squared = b.mul(gradient, gradient);
    Value mean = b.add(b.mul(o.operand(2, i), alpha), b.mul(gradient, 1 - alpha));
    Value squares = b.add(b.mul(o.operand(3, i), beta), b.mul(squared, 1 - beta));
    Value deviation = b.add(b.unary(UnaryKind::sqrt, squares), n.real("epsilon", 1e-6));
    Value moved = b.sub(o.operand(0, i), b.div(b.mul(o.fitted(rate, i), mean), deviation));
    results.push_back({after == 0 ? moved : b.mul(moved, 1 - after), mean, squares});
  }
  return inOrder(results);
}

static Values convertMomentum(Node &n) {
  Optimizer o(n, 3);
  std::string mode = n.text("mode", "standard", {"standard", "nesterov"});
  if (!o.isLegal() || n.isRefused())
    return {};
  DsBuilder &b = n.b;
  double alpha = n.real("alpha", 0);
  Type type = b.element(o.rate());
  Value beta = b.select(o.isFirstStep(), b.scalar(type, 1), b.scalar(type, n.real("beta", 0)));
  SmallVector<Values> results;
  for (unsigned i = 0; i < o.count(); ++i) {
    Value gradient = o.gradient(i);
    Value velocity = b.add(b.mul(o.operand(2, i), alpha), b.mul(gradient, o.fitted(beta, i)));
    Value direction = mode == "standard" ? velocity : b.add(gradient, b.mul(velocity, alpha));
    results.push_back({b.sub(o.operand(0, i), b.mul(direction, o.fitted(o.rate(), i))), velocity});
  }
  return inOrder(results);
}

/// True, false, or nothing where the mode is decided while the model runs.
static std::optional<bool> knownTrainingMode(Node &n) {
  if (!n.has(2))
    return false;
  if (auto mode = n.realsOf(2); mode && mode->size() == 1)
    return mode->front() != 0;
  return std::nullopt;
}

/// In a package that trains, whatever the file says of the mode: it was exported to be run. Exporters name a mask that
/// nothing reads; `all`, one of all elements, stands for it.
static Values trainedDropout(Node &n, double ratio, Value all) {
  if (n.yields(1) && !n.operation()->getResult(1).use_empty())
    return n.refuse("output 1 ('mask'): expected none that is read where the model is trained");
  if (!n.requireFloat(0))
    return {};
  Value x = n.in(0);
  if (!(ratio >= 0 && ratio < 1))
    return n.refuse("ratio: expected at least 0 and below 1, found " + std::to_string(ratio));
  if (ratio == 0)
    return {x, all};
  // Of a node: 31 bits of its result's name. Those of bodies side by side may be the same: the nodes around tell them
  // apart.
  auto firstOutput = [](NodeOp node) { return cast<StringAttr>(node.getOutputs()[0]).getValue(); };
  std::string name = firstOutput(n.operation()).str();
  Operation *inner = n.operation();
  while (auto outer = dyn_cast_or_null<NodeOp>(inner->getParentOp())) {
    name += (Twine("\n") + firstOutput(outer) + " " + Twine(inner->getParentRegion()->getRegionNumber())).str();
    inner = outer;
  }
  auto stream = static_cast<int64_t>(llvm::xxh3_64bits(name) & 0x7fffffff);
  OpBuilder &builder = n.b.getBuilder();
  return {n.b.create<ds::DropoutOp>({x}, x, builder.getF64FloatAttr(ratio), builder.getI64IntegerAttr(stream)), all};
}

static Values convertDropout(Node &n) {
  DsBuilder &b = n.b;
  Value x = n.in(0), all = n.yields(1) ? b.broadcast(b.scalar(b.i1(), 1), b.sizes(x)) : Value();
  if (n.context.trains) {
    auto given = n.has(1) ? n.realsOf(1) : SmallVector<double>{0.5};
    if (!given || given->size() != 1)
      return n.refuse("input 1 ('ratio'): expected a constant where the model is trained");
    return trainedDropout(n, given->front(), all);
  }
  auto isTraining = knownTrainingMode(n);
  if (isTraining && !*isTraining)
    return {x, all};
  if (!n.requireFloat(0))
    return {};
  Type inner = b.element(x).isF64() ? b.f64() : b.f32();
  Value ratio = n.has(1) ? b.cast(b.reshape(n.in(1), {}), inner) : b.scalar(inner, 0.5);
  Value kept = b.binary(BinaryKind::ge, uniformNumbers(n, b.sizes(x), inner), ratio);
  Value scale = b.cast(b.div(b.scalar(inner, 1), b.sub(b.scalar(inner, 1), ratio)), b.element(x));
  Value dropped = b.select(kept, b.mul(x, scale), b.scalar(b.element(x), 0));
  if (isTraining)
    return {dropped, kept};
  Value mode = b.cast(b.reshape(n.in(2), {}), b.i1());
  return {b.select(mode, dropped, x), n.yields(1) ? b.select(mode, kept, all) : Value()};
}

static Values convertInferenceDropout(Node &n) {
  constexpr int64_t boolMask = 10; // before, the mask had the type of the data
  Type type = n.version() < boolMask ? n.b.element(n.in(0)) : n.b.i1();
  Value all = n.yields(1) ? n.b.broadcast(n.b.scalar(type, 1), n.b.sizes(n.in(0))) : Value();
  if (n.context.trains)
    return trainedDropout(n, n.real("ratio", 0.5), all);
  return {n.in(0), all};
}

void addTraining(PatternRegistry &registry) {
  constexpr StringRef domain = "ai.onnx.preview.training";
  registry.add("Adagrad", 1, 5, convertAdagrad, domain);
  registry.add("Adam", 1, 6, convertAdam, domain);
  registry.add("Momentum", 1, 5, convertMomentum, domain);
  registry.add("Dropout", 7, 1, convertInferenceDropout);
  registry.add("Dropout", 12, 1, convertDropout);
}

} // namespace deepstride::onnx
