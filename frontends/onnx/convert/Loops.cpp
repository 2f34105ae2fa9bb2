// Loop and Scan. A Loop whose number of iterations depends on data, and that collects what they yield, runs twice: the
// first time only to count. Loops of few iterations, known when the model is compiled, are unrolled where their carried
// values change shape or are sequences.
#include "frontends/onnx/convert/LoopBuilder.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
/// A Loop node with its parts told apart.
struct LoopParts {
  Region *body;
  Values inits;
  unsigned rowCount;
};
} // namespace

static bool isOneElement(const TensorFacts &facts, unsigned width) {
  return facts.elementType && facts.elementType.isSignlessInteger(width) && product(facts.sizes).isConstant(1);
}

/// A scalar as the subgraph declares it: with one axis or none.
static Value asDeclared(Node &n, Value scalar, Value argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getRank() == 1 ? n.b.reshape(scalar, {SizeExpr(1)}) : scalar;
}

static std::optional<LoopParts> partsOfLoop(Node &n) {
  Region *body = findGraph(n, "body");
  if (!body)
    return std::nullopt;
  LoopParts parts{body, {}, 0};
  for (unsigned i = 2; i < n.inputCount(); ++i) {
    if (!n.has(i))
      return n.refuse("input " + Twine(i) + ": expected the first value of a carried value, found none");
    parts.inits.push_back(n.in(i));
  }
  unsigned carried = parts.inits.size(), arguments = body->front().getNumArguments(),
           outputs = body->front().getTerminator()->getNumOperands();
  if (arguments != carried + 2)
    return n.refuse("expected a body of " + Twine(carried + 2) +
                    " inputs (counter, condition, carried values), found " + Twine(arguments));
  if (outputs < carried + 1 || n.outputCount() > outputs - 1)
    return n.refuse("expected a body of at least " + Twine(std::max(carried, n.outputCount()) + 1) +
                    " outputs (condition, carried values, collected values), found " + Twine(outputs));
  parts.rowCount = outputs - 1 - carried;
  return parts;
}

/// Converts the body once; the outputs are condition, carried values, collected values.
static std::optional<Values> iterate(Node &n, const LoopParts &parts, Value counter, ValueRange carried) {
  Block &body = parts.body->front();
  // An iteration that runs has a condition that holds.
  n.context.bind(body.getArgument(0), asDeclared(n, counter, body.getArgument(0)));
  n.context.bind(body.getArgument(1), asDeclared(n, n.b.scalar(n.b.i1(), 1), body.getArgument(1)));
  for (auto [argument, value] : llvm::zip_equal(body.getArguments().drop_front(2), carried))
    n.context.bind(argument, value);
  auto outputs = n.context.convertBody(*parts.body);
  if (!outputs)
    return n.refuse("its body could not be converted");
  for (Value row : ArrayRef(*outputs).drop_front(1 + parts.inits.size()))
    if (!isa<RankedTensorType>(row.getType()))
      return n.refuse("expected collected values that are tensors, found a sequence or an optional");
  TensorFacts condition = n.b.facts(outputs->front());
  if (!isOneElement(condition, 1))
    return n.refuse("expected the body's first output, the condition, to be one bool, found " + describe(condition));
  return outputs;
}

static std::optional<int64_t> knownElement(Node &n, Value value) {
  TensorFacts facts = n.b.facts(value);
  return facts.contents && facts.contents->size() == 1 ? facts.contents->front().constant() : std::nullopt;
}

static Values rolled(Node &n, const LoopParts &parts, std::optional<SizeExpr> trip, Value first) {
  for (Value init : parts.inits)
    if (!isa<RankedTensorType>(init.getType()))
      return n.refuse("a carried value is a sequence or an optional; legal in a loop of few iterations whose number is "
                      "known when the model is compiled");
  LoopSpec spec{parts.inits, trip, first, std::nullopt};
  auto step = [&](const SizeExpr &iteration, ValueRange carried) -> std::optional<LoopStep> {
    auto outputs = iterate(n, parts, n.b.reshape(n.b.shape({iteration}), {}), carried);
    if (!outputs)
      return std::nullopt;
    LoopStep result;
    if (knownElement(n, outputs->front()) != 1)
      result.condition = n.b.reshape(outputs->front(), {});
    result.carried.append(outputs->begin() + 1, outputs->begin() + 1 + parts.inits.size());
    for (Value row : ArrayRef(*outputs).drop_front(1 + parts.inits.size()))
      result.rows.push_back({n.b.insertAxis(row, 0), 0, iteration});
    for (const LoopRow &row : result.rows)
      if (!row.value)
        return n.refuse("a collected value could not be converted");
    return result;
  };
  auto loop = buildLoop(n, spec, step);
  if (loop && loop->isConditional && parts.rowCount > 0) {
    std::string symbol = n.context.newCountSymbol();
    define(n, symbol, loop->count);
    spec.rowCount = SizeExpr::symbol(symbol);
    loop = buildLoop(n, spec, step);
  }
  if (!loop)
    return {};
  Values results = loop->carried;
  results.append(loop->rows);
  return results;
}

static Values unrolled(Node &n, const LoopParts &parts, std::optional<int64_t> trip) {
  constexpr int64_t unrollLimit = 64;
  Values carried = parts.inits;
  SmallVector<Values> rows(parts.rowCount);
  bool goesOn = true;
  for (int64_t i = 0; goesOn && (!trip || i < *trip); ++i) {
    if (i == unrollLimit)
      return n.refuse("expected at most " + Twine(unrollLimit) + " iterations to unroll");
    auto outputs = iterate(n, parts, n.b.reshape(n.b.integers({i}), {}), carried);
    if (!outputs)
      return {};
    auto condition = knownElement(n, outputs->front());
    if (!condition)
      return n.refuse("expected a condition that is known when the model is compiled");
    goesOn = *condition;
    carried.assign(outputs->begin() + 1, outputs->begin() + 1 + carried.size());
    for (auto [list, row] : llvm::zip_equal(rows, ArrayRef(*outputs).drop_front(1 + carried.size())))
      list.push_back(n.b.insertAxis(row, 0));
  }
  Values results = carried;
  for (const Values &list : rows) {
    if (list.empty() || llvm::is_contained(list, Value()))
      return n.refuse("a collected value has no known shape");
    results.push_back(n.b.concat(0, list));
  }
  return results;
}

static Values convertLoop(Node &n) {
  auto parts = partsOfLoop(n);
  if (!parts)
    return {};
  std::optional<SizeExpr> trip;
  if (n.has(0)) {
    TensorFacts count = n.b.facts(n.in(0));
    if (!isOneElement(count, 64))
      return n.refuse("input 0 ('M'): expected one i64, found " + describe(count));
    auto known = n.b.sizesIn(n.in(0));
    trip = known ? SizeExpr::max(known->front(), 0) : computedSize(n, n.in(0));
  }
  Value first;
  if (n.has(1)) {
    TensorFacts condition = n.b.facts(n.in(1));
    if (!isOneElement(condition, 1))
      return n.refuse("input 1 ('cond'): expected one bool, found " + describe(condition));
    auto known = knownElement(n, n.in(1));
    if (!known)
      first = n.b.reshape(n.in(1), {});
    else if (*known == 0)
      trip = SizeExpr(0);
  }
  bool mayUnroll = !first && (!trip || trip->constant()) && n.context.loopDepth < 2;
  if (!mayUnroll)
    return rolled(n, *parts, trip, first);
  Values results;
  auto isDone = [&](Values values) { return results = std::move(values), !results.empty() && !n.isRefused(); };
  auto trial = [&](llvm::function_ref<Values()> convert) {
    bool isOk = n.context.attempt([&] { return isDone(convert()); });
    n.forgive();
    return isOk;
  };
  if (trial([&] { return rolled(n, *parts, trip, first); }) ||
      trial([&] { return unrolled(n, *parts, trip ? trip->constant() : std::nullopt); }))
    return results;
  return rolled(n, *parts, trip, first); // once more for its diagnostics
}

namespace {
/// A Scan with its attributes; lists have one element per scanned input or collected output.
struct ScanParts {
  Region *body;
  unsigned states, inputs, outputs;
  SmallVector<int64_t> inputAxes, inputDirections, outputAxes, outputDirections;
};
} // namespace

static bool listOf(Node &n, StringRef name, unsigned count, SmallVectorImpl<int64_t> &list) {
  auto given = n.integers(name);
  list.assign(given ? *given : SmallVector<int64_t>(count, 0));
  return list.size() == count ||
         n.reject("attribute '" + name + "': expected " + Twine(count) + " elements, found " + Twine(list.size()));
}

static std::optional<ScanParts> partsOfScan(Node &n, unsigned firstInput) {
  auto scanned = n.requiredInteger("num_scan_inputs");
  Region *body = findGraph(n, "body");
  if (!scanned || !body)
    return std::nullopt;
  int64_t given = static_cast<int64_t>(n.inputCount()) - firstInput;
  if (*scanned < 1 || *scanned > given)
    return n.refuse("attribute 'num_scan_inputs': expected 1 to " + Twine(given) + ", found " + Twine(*scanned));
  for (unsigned i = firstInput; i < n.inputCount(); ++i)
    if (!n.has(i))
      return n.refuse("input " + Twine(i) + ": expected a tensor, found none");
  ScanParts parts{body, static_cast<unsigned>(given - *scanned), static_cast<unsigned>(*scanned), 0, {}, {}, {}, {}};
  unsigned arguments = body->front().getNumArguments(), outputs = body->front().getTerminator()->getNumOperands();
  if (arguments != given || outputs < parts.states || outputs < n.outputCount())
    return n.refuse("expected a body of " + Twine(given) + " inputs and at least " +
                    Twine(std::max(parts.states, n.outputCount())) + " outputs, found " + Twine(arguments) + " and " +
                    Twine(outputs));
  parts.outputs = outputs - parts.states;
  StringRef directions = n.version() < 9 ? "directions" : "scan_input_directions";
  if (!listOf(n, directions, parts.inputs, parts.inputDirections) ||
      !listOf(n, "scan_input_axes", parts.inputs, parts.inputAxes) ||
      !listOf(n, "scan_output_axes", parts.outputs, parts.outputAxes) ||
      !listOf(n, "scan_output_directions", parts.outputs, parts.outputDirections))
    return std::nullopt;
  return parts;
}

/// One sequence: `length` steps, results of `rowCount` along their axes.
static std::optional<LoopResult> scan(Node &n, const ScanParts &parts, Values states, ArrayRef<Value> inputs,
                                      const SizeExpr &length, const SizeExpr &rowCount) {
  auto at = [](const SizeExpr &end, const SizeExpr &iteration, int64_t isReverse) {
    return isReverse ? end - SizeExpr(1) - iteration : iteration;
  };
  LoopSpec spec{std::move(states), length, {}, rowCount};
  return buildLoop(n, spec, [&](const SizeExpr &iteration, ValueRange carried) -> std::optional<LoopStep> {
    Block &body = parts.body->front();
    for (auto [argument, value] : llvm::zip(body.getArguments(), carried))
      n.context.bind(argument, value);
    for (unsigned i = 0; i < parts.inputs; ++i) {
      int64_t axis = parts.inputAxes[i];
      Value part = n.b.sliceAxis(inputs[i], axis, at(length, iteration, parts.inputDirections[i]), 1);
      part = n.b.dropAxis(part, axis);
      if (!part)
        return std::nullopt;
      n.context.bind(body.getArgument(parts.states + i), part);
    }
    auto outputs = n.context.convertBody(*parts.body);
    if (!outputs)
      return n.refuse("its body could not be converted");
    LoopStep step;
    step.carried.append(outputs->begin(), outputs->begin() + parts.states);
    for (unsigned k = 0; k < parts.outputs; ++k) {
      Value row = (*outputs)[parts.states + k];
      auto axis = n.axis(parts.outputAxes[k], n.b.rank(row) + 1);
      if (!axis)
        return std::nullopt;
      SizeExpr end = parts.outputDirections[k] ? rowCount : length;
      step.rows.push_back({n.b.insertAxis(row, *axis), *axis, at(end, iteration, parts.outputDirections[k])});
    }
    return step;
  });
}

/// Inputs of one length along their axes, by a check of the run where it is not known.
static std::optional<SizeExpr> commonLength(Node &n, ScanParts &parts, SmallVectorImpl<Value> &inputs) {
  std::optional<SizeExpr> length;
  for (unsigned i = 0; i < parts.inputs; ++i) {
    SizeVector sizes = n.b.sizes(inputs[i]);
    auto axis = n.axis(parts.inputAxes[i], static_cast<int64_t>(sizes.size()));
    if (!axis)
      return std::nullopt;
    parts.inputAxes[i] = *axis;
    if (!length)
      length = sizes[*axis];
    if (sizes[*axis] == *length)
      continue;
    if (sizes[*axis].constant() && length->constant())
      return n.refuse("expected scanned inputs of one length, found " + length->brief() + " and " +
                      sizes[*axis].brief());
    sizes[*axis] = *length;
    inputs[i] = n.b.reshape(inputs[i], sizes);
    if (!inputs[i])
      return std::nullopt;
  }
  return length;
}

static Values convertScan(Node &n) {
  auto parts = partsOfScan(n, 0);
  if (!parts)
    return {};
  Values states;
  SmallVector<Value> inputs;
  for (unsigned i = 0; i < n.inputCount(); ++i)
    i < parts->states ? states.push_back(n.in(i)) : inputs.push_back(n.in(i));
  auto length = commonLength(n, *parts, inputs);
  if (!length)
    return {};
  auto result = scan(n, *parts, states, inputs, *length, *length);
  if (!result)
    return {};
  Values results = result->carried;
  results.append(result->rows);
  return results;
}

// Opset 8: every tensor has a batch axis in front, and the sequences of a batch may have lengths of their own.
static Values convertBatchedScan(Node &n) {
  auto parts = partsOfScan(n, 1);
  if (!parts)
    return {};
  SmallVector<Value> given;
  for (unsigned i = 1; i < n.inputCount(); ++i) {
    if (!n.requireRank(i, i <= parts->states ? 1 : 2))
      return {};
    given.push_back(n.in(i));
  }
  SizeVector sizes = n.b.sizes(given[parts->states]);
  SizeExpr batch = sizes[0], length = sizes[1];
  LoopSpec spec{{}, batch, {}, batch};
  auto result = buildLoop(n, spec, [&](const SizeExpr &item, ValueRange) -> std::optional<LoopStep> {
    Values states;
    SmallVector<Value> inputs;
    for (auto [index, value] : llvm::enumerate(given)) {
      Value part = n.b.dropAxis(n.b.sliceAxis(value, 0, item, 1), 0);
      if (!part)
        return std::nullopt;
      index < parts->states ? states.push_back(part) : inputs.push_back(part);
    }
    auto common = commonLength(n, *parts, inputs);
    if (!common)
      return std::nullopt;
    SizeExpr steps = length;
    if (n.has(0)) {
      Value own = n.b.sliceAxis(n.in(0), 0, item, 1);
      steps = computedSize(n, n.b.binary(ds::BinaryKind::min, own, n.b.shape({length})));
    }
    auto sequence = scan(n, *parts, states, inputs, steps, length);
    if (!sequence)
      return std::nullopt;
    LoopStep step;
    for (const Values *values : {&sequence->carried, &sequence->rows})
      for (Value value : *values)
        step.rows.push_back({n.b.insertAxis(value, 0), 0, item});
    return step;
  });
  return result ? result->rows : Values();
}

void addLoops(PatternRegistry &registry) {
  registry.add("Loop", 1, 0, convertLoop).takesSequences = true;
  registry.add("Scan", 8, 0, convertBatchedScan);
  registry.add("Scan", 9, 0, convertScan);
}

} // namespace deepstride::onnx
