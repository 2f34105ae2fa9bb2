// RNN, GRU, LSTM and DynamicQuantizeLSTM. The products of all time steps with W are one GEMM before the loop; an
// iteration adds the product of the previous state with R. A sequence that is shorter than the longest keeps its state
// after its end and yields zeros; in reverse it keeps its first state until its last element comes, which is what
// reversing each sequence alone gives. A quantized LSTM multiplies integers: its sequence, and each state, over the
// range of its own elements.
#include "frontends/onnx/convert/Activations.h"
#include "frontends/onnx/convert/LoopBuilder.h"
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Quantized.h"
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
/// One activation with its parameters.
struct Activation {
  std::string name; // in lower case
  double alpha = 0, beta = 0;
};

/// What the operators differ in.
struct Cell {
  StringRef name;
  int64_t gates;
  SmallVector<StringRef, 3> activations; // of one direction, by default
  bool isQuantized = false;              // weights are [directions, inputs, gates * hidden] of bytes, with scales
};

/// The weights of one direction: as the operator has them, or bytes without their zero point, as i32, with their scale.
struct Weights {
  Value matrix, scale;
};

class Recurrence {
public:
  Recurrence(Node &n, const Cell &cell) : n(n), b(n.b), cell(cell) {}
  Values convert();

private:
  bool bind();
  bool bindActivations();
  bool bindScales(const SizeExpr &rows);
  std::optional<LoopResult> run(unsigned direction);
  std::optional<LoopStep> step(unsigned direction, const SizeExpr &iteration, ValueRange carried);
  void stepRnn(ValueRange carried);
  void stepGru(ValueRange carried);
  void stepLstm(ValueRange carried);
  void prepare(unsigned direction);

  Value gateOf(Value x);
  Value apply(const Activation &activation, Value x);
  const Activation &activation(unsigned which) { return activations[current * cell.activations.size() + which]; }
  Value activate(unsigned which, Value x) { return apply(activation(which), clip ? bounded(x, -*clip, *clip) : x); }
  Value bounded(Value value, double low, double high) {
    return b.binary(ds::BinaryKind::min, b.binary(ds::BinaryKind::max, value, low), high);
  }
  /// Part `index` of `count` gates in the last axis.
  Value gate(Value gates, int64_t index, int64_t count = 1) {
    return b.sliceAxis(gates, b.rank(gates) - 1, hidden * SizeExpr(index), hidden * SizeExpr(count));
  }
  /// What a tensor of all steps has for this one.
  Value ofStep(Value tensor) { return b.dropAxis(b.sliceAxis(tensor, 0, time, 1), 0); }
  /// The tensor of one direction, of an input whose axis `axis` counts directions.
  Value ofDirection(Value tensor, unsigned direction, int64_t axis = 0) {
    return b.dropAxis(b.sliceAxis(tensor, axis, direction, 1), axis);
  }
  Value firstState(unsigned input, unsigned direction);
  Weights weightsOf(unsigned input, unsigned direction);
  Value multiply(Value rows, const Weights &weights);
  Value insideSequences();
  Value ofRunning(Value state);
  Value ofNonEmpty(Value state, unsigned input);

  Node &n;
  DsBuilder &b;
  const Cell &cell;
  unsigned directions = 1, current = 0;
  bool isReverse = false, isBatchFirst = false;
  std::optional<double> clip;
  SmallVector<Activation> activations;
  SizeExpr hidden, batch, length;
  Value x, lengths;
  Value running, counting; // [length, batch, 1], where there are lengths: before the end of a sequence, or right at it

  // Of the direction that is being converted.
  Value projected, recurrentBias, peepholes;
  Weights recurrent;
  SizeExpr time; // of the iteration, as are the next
  Value fromInput, state, cellState;
};
} // namespace

static Activation withDefaults(StringRef name) {
  Activation result{name.lower()};
  if (result.name == "affine")
    result.alpha = 1;
  else if (result.name == "leakyrelu")
    result.alpha = 0.01;
  else if (result.name == "hardsigmoid")
    result.alpha = 0.2, result.beta = 0.5;
  else if (result.name == "scaledtanh")
    result.alpha = result.beta = 1;
  else if (result.name == "thresholdedrelu" || result.name == "elu")
    result.alpha = 1;
  return result;
}

static bool takesAlpha(StringRef name) {
  return llvm::is_contained({"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}, name);
}
static bool takesBeta(StringRef name) { return llvm::is_contained({"affine", "scaledtanh", "hardsigmoid"}, name); }

/// The sigmoid of a gate. Gates that are as good as shut are shut: states times two such gates would be subnormal, and
/// each product with a subnormal number takes a hundred cycles. ONNX Runtime has no gate below 1.5e-8.
Value Recurrence::gateOf(Value x) {
  constexpr double farthest = -41.5; // e^-41.5 is 9.5e-19
  if (b.element(x) != b.f32())       // nothing has no type
    return b.unary(ds::UnaryKind::sigmoid, x);
  Value isShut = b.binary(ds::BinaryKind::lt, x, farthest), zero = b.scalar(b.f32(), 0);
  return b.select(isShut, zero, b.unary(ds::UnaryKind::sigmoid, b.select(isShut, zero, x)));
}

Value Recurrence::apply(const Activation &f, Value x) {
  if (f.name == "relu")
    return b.unary(ds::UnaryKind::relu, x);
  if (f.name == "tanh")
    return b.unary(ds::UnaryKind::tanh, x);
  if (f.name == "sigmoid")
    return gateOf(x);
  if (f.name == "affine")
    return b.add(b.mul(x, f.alpha), f.beta);
  if (f.name == "leakyrelu")
    return b.select(b.binary(ds::BinaryKind::lt, x, 0), b.mul(x, f.alpha), x);
  if (f.name == "thresholdedrelu")
    return b.select(b.binary(ds::BinaryKind::gt, x, f.alpha), x, b.scalar(b.element(x), 0));
  if (f.name == "scaledtanh")
    return b.mul(b.unary(ds::UnaryKind::tanh, b.mul(x, f.beta)), f.alpha);
  if (f.name == "hardsigmoid")
    return bounded(b.add(b.mul(x, f.alpha), f.beta), 0, 1);
  if (f.name == "elu")
    return elu(b, x, f.alpha);
  if (f.name == "softsign")
    return b.div(x, b.add(b.unary(ds::UnaryKind::abs, x), 1));
  return softplus(b, x);
}

bool Recurrence::bindActivations() {
  size_t perDirection = cell.activations.size();
  SmallVector<std::string> names;
  if (auto list = dyn_cast_if_present<ArrayAttr>(n.attribute("activations")))
    for (Attribute name : list)
      names.push_back(isa<StringAttr>(name) ? cast<StringAttr>(name).str() : "");
  else
    for (unsigned d = 0; d < directions; ++d)
      names.append(cell.activations.begin(), cell.activations.end());
  if (names.size() != perDirection * directions)
    return n.reject("attribute 'activations': expected " + Twine(perDirection * directions) + " names, found " +
                    Twine(names.size()));
  auto numbersOf = [&](StringRef name) {
    auto list = dyn_cast_if_present<DenseF32ArrayAttr>(n.attribute(name));
    return list ? list.asArrayRef() : ArrayRef<float>();
  };
  ArrayRef<float> alphas = numbersOf("activation_alpha"), betas = numbersOf("activation_beta");
  for (StringRef name : names) {
    Activation activation = withDefaults(name);
    if (!takesAlpha(activation.name) &&
        !llvm::is_contained({"relu", "tanh", "sigmoid", "softsign", "softplus"}, activation.name))
      return n.reject("attribute 'activations': expected Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, "
                      "Sigmoid, Softplus, Softsign, Tanh or ThresholdedRelu, found '" +
                      name + "'");
    // The lists hold the parameters of those that take any, in order.
    if (takesAlpha(activation.name) && !alphas.empty()) {
      activation.alpha = alphas.front();
      alphas = alphas.drop_front();
    }
    if (takesBeta(activation.name) && !betas.empty()) {
      activation.beta = betas.front();
      betas = betas.drop_front();
    }
    activations.push_back(activation);
  }
  return true;
}

/// Weights of bytes, each with a scale and a zero point: one per direction, or one per row of the gates.
bool Recurrence::bindScales(const SizeExpr &rows) {
  for (unsigned input : {1, 2}) {
    unsigned scale = input == 1 ? 8 : 10, zero = scale + 1;
    if (!b.element(n.in(input)).isInteger(8))
      return n.reject("input " + Twine(input) + ": expected i8 or ui8, found " + describe(b.facts(n.in(input))));
    for (unsigned parameter : {scale, zero}) {
      if (!n.has(parameter))
        return n.reject("input " + Twine(parameter) + ": expected the " +
                        (parameter == scale ? "scale" : "zero point") + " of input " + Twine(input) + ", found none");
      SizeVector sizes = b.sizes(n.in(parameter));
      bool fits = !sizes.empty() && sizes[0] == SizeExpr(directions) &&
                  (sizes.size() == 1 || (sizes.size() == 2 && (sizes[1] == rows || sizes[1].isConstant(1))));
      bool isTyped =
          parameter == scale ? isa<FloatType>(b.element(n.in(scale))) : b.element(n.in(zero)) == b.element(n.in(input));
      if (!fits || !isTyped)
        return n.reject("input " + Twine(parameter) + ": expected " +
                        describeElement(parameter == scale ? b.f32() : b.element(n.in(input))) + "[" +
                        Twine(directions) + "] or [" + Twine(directions) + ", " + rows.brief() + "], found " +
                        describe(b.facts(n.in(parameter))));
    }
  }
  return true;
}

bool Recurrence::bind() {
  std::string direction = n.text("direction", "forward", {"forward", "reverse", "bidirectional"});
  directions = direction == "bidirectional" ? 2 : 1;
  isReverse = direction == "reverse";
  isBatchFirst = n.flag("layout", false);
  if (n.attribute("clip"))
    clip = n.real("clip", 0);
  if (!n.requireRank(0, 3, 3) || !n.requireRank(1, 3, 3) || !n.requireRank(2, 3, 3) || !n.requireFloat(0))
    return false;
  x = isBatchFirst ? b.transpose(n.in(0), {1, 0, 2}) : n.in(0);
  if (!x)
    return false;
  length = b.sizes(x)[0];
  batch = b.sizes(x)[1];
  int64_t rowsAxis = cell.isQuantized ? 2 : 1, inputsAxis = 3 - rowsAxis;
  hidden = b.sizes(n.in(2))[inputsAxis];
  int64_t size = n.integer("hidden_size", hidden.constant().value_or(0));
  SizeExpr rows = hidden * SizeExpr(cell.gates);
  if (hidden.constant() && !hidden.isConstant(size))
    return n.reject("attribute 'hidden_size': expected the size of 'R', " + hidden.brief() + ", found " + Twine(size));
  for (unsigned input : {1, 2}) {
    SizeVector sizes = b.sizes(n.in(input));
    if (sizes[0] != SizeExpr(directions) || sizes[rowsAxis] != rows)
      return n.reject("input " + Twine(input) + ": expected [" + Twine(directions) + ", " +
                      (cell.isQuantized ? "" : rows.brief() + ", ") + (input == 1 ? "input size" : hidden.brief()) +
                      (cell.isQuantized ? ", " + rows.brief() : "") + "], found " + describe(b.facts(n.in(input))));
  }
  if (cell.isQuantized && !bindScales(rows))
    return false;
  if (n.has(3) && !requireSizes(n, 3, {directions, rows * SizeExpr(2)}, "two biases of every gate"))
    return false;
  bool isLstm = cell.name == "LSTM";
  SizeVector first = {isBatchFirst ? batch : SizeExpr(directions), isBatchFirst ? SizeExpr(directions) : batch, hidden};
  for (unsigned input : {5u, 6u})
    if (n.has(input) && (input == 5 || isLstm) && !requireSizes(n, input, first, "the first state"))
      return false;
  if (isLstm && n.has(7) && !requireSizes(n, 7, {directions, hidden * SizeExpr(3)}, "the peepholes of three gates"))
    return false;
  if (n.has(4)) {
    if (!n.requireRank(4, 1, 1))
      return false;
    lengths = b.reshape(b.cast(n.in(4), b.i64()), {batch, SizeExpr(1)});
    Value steps = b.iota(0, {length, SizeExpr(1), SizeExpr(1)});
    running = b.binary(ds::BinaryKind::gt, lengths, steps);
    counting = b.binary(ds::BinaryKind::ge, lengths, steps);
  }
  return bindActivations();
}

/// The state before the first iteration: what the input says, else zeros.
Value Recurrence::firstState(unsigned input, unsigned direction) {
  if (!n.has(input))
    return b.broadcast(b.scalar(b.element(x), 0), {batch, hidden});
  return b.reshape(ofDirection(n.in(input), direction, isBatchFirst ? 1 : 0), {batch, hidden});
}

/// Zero points come off before the product, so that it is exact as long as 24 bits hold it: in f32, which is fast.
Weights Recurrence::weightsOf(unsigned input, unsigned direction) {
  Value matrix = ofDirection(n.in(input), direction);
  if (!cell.isQuantized)
    return {matrix, {}};
  unsigned scale = input == 1 ? 8 : 10;
  Value zero = b.cast(ofDirection(n.in(scale + 1), direction), b.i32());
  return {b.sub(b.cast(matrix, b.i32()), zero), ofDirection(n.in(scale), direction)};
}

Value Recurrence::multiply(Value rows, const Weights &weights) {
  if (!cell.isQuantized)
    return b.matmul(rows, weights.matrix, false, true);
  QuantizedTensor quantized = quantizeDynamically(n, rows);
  Value centred = b.sub(b.cast(quantized.value, b.i32()), b.cast(quantized.zero, b.i32()));
  return b.mul(b.cast(b.matmul(centred, weights.matrix), b.f32()), b.mul(quantized.scale, weights.scale));
}

/// The steps behind the end of the longest sequence have no part in the range that is quantized.
Value Recurrence::insideSequences() {
  if (!cell.isQuantized || !lengths)
    return x;
  Value longest = b.reduce(ds::ReduceKind::max, lengths, {0, 1}, /*keep=*/false);
  Value isInside = b.binary(ds::BinaryKind::lt, b.iota(0, {length, SizeExpr(1), SizeExpr(1)}), longest);
  return b.select(isInside, x, b.scalar(b.element(x), 0));
}

/// Nor have the states of sequences that ended before the last step, as ONNX Runtime has it, or that in reverse have
/// not begun; what they give is not taken.
Value Recurrence::ofRunning(Value state) {
  if (!cell.isQuantized || !lengths)
    return state;
  return b.select(ofStep(counting), state, b.scalar(b.element(x), 0));
}

/// Everything that all iterations share. Where both biases are only added, they are added before the loop.
void Recurrence::prepare(unsigned direction) {
  current = direction;
  recurrent = weightsOf(2, direction);
  projected = multiply(insideSequences(), weightsOf(1, direction));
  recurrentBias = peepholes = {};
  if (n.has(3)) {
    Value bias = ofDirection(n.in(3), direction);
    Value ofInput = gate(bias, 0, cell.gates);
    recurrentBias = gate(bias, cell.gates, cell.gates);
    if (!(cell.name == "GRU" && n.flag("linear_before_reset", false))) {
      ofInput = b.add(ofInput, recurrentBias);
      recurrentBias = {};
    }
    projected = b.add(projected, ofInput);
  }
  if (cell.name == "LSTM" && n.has(7))
    peepholes = ofDirection(n.in(7), direction);
}

void Recurrence::stepRnn(ValueRange carried) { state = activate(0, b.add(fromInput, multiply(carried[0], recurrent))); }

void Recurrence::stepGru(ValueRange carried) {
  Value old = carried[0], update, reset, candidate;
  auto rows = [&](int64_t first, int64_t count) {
    return b.sliceAxis(recurrent.matrix, 0, hidden * SizeExpr(first), hidden * SizeExpr(count));
  };
  if (n.flag("linear_before_reset", false)) {
    Value gates = multiply(old, recurrent);
    if (recurrentBias)
      gates = b.add(gates, recurrentBias);
    update = activate(0, b.add(gate(fromInput, 0), gate(gates, 0)));
    reset = activate(0, b.add(gate(fromInput, 1), gate(gates, 1)));
    candidate = b.add(gate(fromInput, 2), b.mul(reset, gate(gates, 2)));
  } else {
    Value both = b.add(gate(fromInput, 0, 2), b.matmul(old, rows(0, 2), false, true));
    update = activate(0, gate(both, 0));
    reset = activate(0, gate(both, 1));
    candidate = b.add(gate(fromInput, 2), b.matmul(b.mul(reset, old), rows(2, 1), false, true));
  }
  candidate = activate(1, candidate);
  Value one = b.scalar(b.element(x), 1);
  state = b.add(b.mul(b.sub(one, update), candidate), b.mul(update, old));
}

void Recurrence::stepLstm(ValueRange carried) {
  Value old = carried[1];
  Value gates = b.add(fromInput, multiply(ofRunning(carried[0]), recurrent));
  auto peep = [&](Value gateInput, int64_t index, Value seen) {
    return peepholes ? b.add(gateInput, b.mul(gate(peepholes, index), seen)) : gateInput;
  };
  Value input = activate(0, peep(gate(gates, 0), 0, old));
  Value forget = n.flag("input_forget", false) ? b.sub(b.scalar(b.element(x), 1), input)
                                               : activate(0, peep(gate(gates, 2), 2, old));
  Value candidate = activate(1, gate(gates, 3));
  cellState = b.add(b.mul(forget, old), b.mul(input, candidate));
  Value output = activate(0, peep(gate(gates, 1), 1, cellState));
  // The clip bounds the gates, not the cell state: as ONNX Runtime reads the standard.
  state = b.mul(output, apply(activation(2), cellState));
}

std::optional<LoopStep> Recurrence::step(unsigned direction, const SizeExpr &iteration, ValueRange carried) {
  time = isReverse || direction == 1 ? length - SizeExpr(1) - iteration : iteration;
  fromInput = ofStep(projected);
  if (cell.name == "RNN")
    stepRnn(carried);
  else if (cell.name == "GRU")
    stepGru(carried);
  else
    stepLstm(carried);
  Value shown = state;
  if (lengths) {
    Value runs = ofStep(running);
    shown = b.select(runs, state, b.scalar(b.element(x), 0));
    state = b.select(runs, state, carried[0]);
    if (cell.name == "LSTM")
      cellState = b.select(runs, cellState, carried[1]);
  }
  LoopStep result;
  result.carried.push_back(state);
  if (cell.name == "LSTM")
    result.carried.push_back(cellState);
  Value row = b.insertAxis(shown, 0);
  if (!row)
    return std::nullopt;
  if (n.yields(0))
    result.rows.push_back({row, 0, time});
  return result;
}

/// The last state of a sequence without elements is 0, as ONNX Runtime has it, whatever it begins with.
Value Recurrence::ofNonEmpty(Value state, unsigned input) {
  if (!n.has(input))
    return state;
  return b.select(b.binary(ds::BinaryKind::gt, lengths, 0), state, b.scalar(b.element(x), 0));
}

std::optional<LoopResult> Recurrence::run(unsigned direction) {
  prepare(direction);
  LoopSpec spec{{firstState(5, direction)}, length, {}, std::nullopt};
  if (cell.name == "LSTM")
    spec.inits.push_back(firstState(6, direction));
  if (!projected || !recurrent.matrix)
    return std::nullopt;
  auto result = buildLoop(
      n, spec, [&](const SizeExpr &iteration, ValueRange carried) { return step(direction, iteration, carried); });
  for (unsigned i = 0; result && lengths && i < result->carried.size(); ++i)
    result->carried[i] = ofNonEmpty(result->carried[i], 5 + i);
  return result;
}

Values Recurrence::convert() {
  if (!bind())
    return {};
  Values sequences, states, cellStates;
  for (unsigned direction = 0; direction < directions; ++direction) {
    auto result = run(direction);
    if (!result)
      return {};
    if (!result->rows.empty())
      sequences.push_back(b.insertAxis(result->rows[0], 1));
    states.push_back(b.insertAxis(result->carried[0], 0));
    if (cell.name == "LSTM")
      cellStates.push_back(b.insertAxis(result->carried[1], 0));
  }
  auto join = [&](const Values &parts, int64_t axis, ArrayRef<int64_t> batchFirst) -> Value {
    if (parts.empty() || llvm::is_contained(parts, Value()))
      return {};
    Value whole = parts.size() == 1 ? parts.front() : b.concat(axis, parts);
    return isBatchFirst ? b.transpose(whole, batchFirst) : whole;
  };
  return {join(sequences, 1, {2, 0, 1, 3}), join(states, 0, {1, 0, 2}), join(cellStates, 0, {1, 0, 2})};
}

void addRecurrent(PatternRegistry &registry) {
  static const Cell rnn{"RNN", 1, {"Tanh"}}, gru{"GRU", 3, {"Sigmoid", "Tanh"}},
      lstm{"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}}, quantized{"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, true};
  for (const Cell *cell : {&rnn, &gru, &lstm})
    registry.add(cell->name, 7, 3, [cell](Node &n) { return Recurrence(n, *cell).convert(); });
  registry.add(
      "DynamicQuantizeLSTM", 1, 3, [](Node &n) { return Recurrence(n, quantized).convert(); }, "com.microsoft");
}

} // namespace deepstride::onnx
