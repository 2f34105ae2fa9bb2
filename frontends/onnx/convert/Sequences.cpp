// Sequences and optionals exist while a model is converted only: a sequence is the list of its tensors, which must have
// a length that is known then, and an optional is its value or nothing. Both travel as casts, a sequence as one from
// its tensors to a tuple, an empty optional as one from nothing to `none`; Conversion::dropSource removes the casts.
#include "frontends/onnx/convert/LoopBuilder.h"
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {

static Value markerOf(Node &n, ValueRange parts, Type type) {
  Value marker = UnrealizedConversionCastOp::create(n.b.getBuilder(), n.b.getLocation(), type, parts).getResult(0);
  n.b.getAnalysis().set(marker, {});
  return marker;
}

static Value sequenceOf(Node &n, const Values &elements) {
  for (Value element : elements)
    if (!element || !isa<RankedTensorType>(element.getType()))
      return n.refuse("expected elements that are tensors");
  return markerOf(n, elements, TupleType::get(n.b.getContext(), TypeRange(ValueRange(elements))));
}

static bool isSequence(Value value) { return value && isa<TupleType>(value.getType()); }
static bool isTensor(Value value) { return value && isa<RankedTensorType>(value.getType()); }

static std::optional<Values> elementsOf(Node &n, unsigned input) {
  if (!isSequence(n.in(input)))
    return n.refuse("input " + Twine(input) + ": expected a sequence, found " +
                    (isTensor(n.in(input)) ? describe(n.b.facts(n.in(input))) : "an empty optional"));
  return Values(n.in(input).getDefiningOp()->getOperands());
}

/// A position in a sequence, counted from the front; `end` may be one past the last element.
static std::optional<int64_t> positionOf(Node &n, unsigned input, int64_t count, int64_t end) {
  auto position = isTensor(n.in(input)) ? n.numberOf(input, "position") : std::optional<int64_t>();
  if (!position)
    return std::nullopt;
  if (*position < -count || *position >= end)
    return n.refuse("input " + Twine(input) + " ('position'): expected " + Twine(-count) + " to " + Twine(end - 1) +
                    ", found " + Twine(*position));
  return *position < 0 ? *position + count : *position;
}

static Values convertConstruct(Node &n) {
  Values elements;
  for (unsigned i = 0; i < n.inputCount(); ++i)
    elements.push_back(n.in(i));
  return {sequenceOf(n, elements)};
}

static Values convertEmpty(Node &n) { return {sequenceOf(n, {})}; }

static Values convertLength(Node &n) {
  auto elements = elementsOf(n, 0);
  return elements ? Values{n.b.reshape(n.b.integers({static_cast<int64_t>(elements->size())}), {})} : Values();
}

static Values convertInsert(Node &n) {
  auto elements = elementsOf(n, 0);
  if (!elements)
    return {};
  int64_t count = static_cast<int64_t>(elements->size());
  auto position = n.has(2) ? positionOf(n, 2, count, count + 1) : std::optional(count);
  if (!position)
    return {};
  elements->insert(elements->begin() + *position, n.in(1));
  return {sequenceOf(n, *elements)};
}

static Values convertErase(Node &n) {
  auto elements = elementsOf(n, 0);
  if (!elements)
    return {};
  int64_t count = static_cast<int64_t>(elements->size());
  auto position = n.has(1) ? positionOf(n, 1, count, count) : std::optional(count - 1);
  if (!position)
    return {};
  if (*position < 0)
    return n.refuse("expected a sequence with elements, found an empty one");
  elements->erase(elements->begin() + *position);
  return {sequenceOf(n, *elements)};
}

static Values convertAt(Node &n) {
  auto elements = elementsOf(n, 0);
  if (!elements || !isTensor(n.in(1)))
    return n.isRefused() ? Values() : Values(n.refuse("input 1 ('position'): expected a number"));
  TensorFacts position = n.b.facts(n.in(1));
  if (position.contents && position.contents->size() == 1 && position.contents->front().constant()) {
    auto known = positionOf(n, 1, static_cast<int64_t>(elements->size()), static_cast<int64_t>(elements->size()));
    return known ? Values{(*elements)[*known]} : Values();
  }
  // Elements of one shape can be chosen while the model runs.
  Values rows;
  for (Value element : *elements) {
    TensorFacts facts = n.b.facts(element), first = n.b.facts(elements->front());
    if (facts.elementType != first.elementType || facts.sizes != first.sizes)
      return n.refuse("input 1 ('position') is computed while the model runs: expected elements of one shape, found " +
                      describe(first) + " and " + describe(facts));
    rows.push_back(n.b.insertAxis(element, 0));
  }
  if (rows.empty() || llvm::is_contained(rows, Value()))
    return n.refuse("expected a sequence with elements, found an empty one");
  return {n.b.gather(0, n.b.concat(0, rows), n.b.reshape(n.in(1), {}))};
}

static Values convertConcatFromSequence(Node &n) {
  auto elements = elementsOf(n, 0);
  auto axis = n.requiredInteger("axis");
  if (!elements || !axis)
    return {};
  if (elements->empty())
    return n.refuse("expected a sequence with elements, found an empty one");
  bool isNew = n.flag("new_axis", false);
  auto known = n.axis(*axis, n.b.rank(elements->front()) + isNew);
  if (!known)
    return {};
  if (isNew)
    for (Value &element : *elements)
      element = n.b.insertAxis(element, *known);
  return llvm::is_contained(*elements, Value()) ? Values() : Values{n.b.concat(*known, *elements)};
}

/// The sizes of the parts along the axis; nothing after a diagnostic.
static std::optional<SizeVector> partSizes(Node &n, const SizeExpr &whole) {
  constexpr int64_t partLimit = 1024;
  TensorFacts split = n.has(1) ? n.b.facts(n.in(1)) : TensorFacts();
  if (n.has(1) && split.rank() == 1)
    return n.sizesOf(1, "split");
  auto part = n.has(1) ? n.numberOf(1, "split") : std::optional<int64_t>(1);
  if (!part)
    return std::nullopt;
  auto known = whole.constant();
  if (!known || *part < 1 || *known / *part > partLimit)
    return n.refuse("expected an axis of a size that is known when the model is compiled, of at most " +
                    Twine(partLimit) + " parts, found size " + whole.brief() + " in parts of " + Twine(*part));
  SizeVector sizes;
  for (int64_t left = *known; left > 0; left -= *part)
    sizes.push_back(std::min(left, *part));
  return sizes;
}

static Values convertSplitToSequence(Node &n) {
  if (!isTensor(n.in(0)) || (n.has(1) && !isTensor(n.in(1))))
    return n.refuse("expected tensors");
  auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
  if (!axis)
    return {};
  SizeExpr whole = n.b.sizes(n.in(0))[*axis], start;
  auto sizes = partSizes(n, whole);
  if (!sizes)
    return {};
  bool keep = n.has(1) || n.flag("keepdims", true);
  Values parts;
  for (const SizeExpr &size : *sizes) {
    Value part = n.b.sliceAxis(n.in(0), *axis, start, size);
    parts.push_back(keep ? part : n.b.dropAxis(part, *axis));
    start = start + size;
  }
  if (whole.constant() && start.constant() && whole != start)
    return n.refuse("input 1 ('split'): expected sizes whose sum is " + whole.brief() + ", found " + start.brief());
  return {sequenceOf(n, parts)};
}

static Values convertMap(Node &n) {
  Region *body = findGraph(n, "body");
  auto first = elementsOf(n, 0);
  if (!body || !first)
    return {};
  Block &block = body->front();
  if (block.getNumArguments() != n.inputCount() || block.getTerminator()->getNumOperands() < n.outputCount())
    return n.refuse("expected a body of " + Twine(n.inputCount()) + " inputs and " + Twine(n.outputCount()) +
                    " outputs, found " + Twine(block.getNumArguments()) + " and " +
                    Twine(block.getTerminator()->getNumOperands()));
  SmallVector<Values> results(n.outputCount());
  for (size_t i = 0; i < first->size(); ++i) {
    for (unsigned input = 0; input < n.inputCount(); ++input) {
      Value value = n.in(input);
      if (isSequence(value)) {
        auto elements = elementsOf(n, input);
        if (elements->size() != first->size())
          return n.refuse("expected sequences of one length, found " + Twine(first->size()) + " and " +
                          Twine(elements->size()));
        value = (*elements)[i];
      }
      n.context.bind(block.getArgument(input), value);
    }
    auto outputs = n.context.convertBody(*body);
    if (!outputs)
      return n.refuse("its body could not be converted");
    for (auto [list, value] : llvm::zip(results, *outputs))
      list.push_back(value);
  }
  Values sequences;
  for (const Values &list : results)
    sequences.push_back(sequenceOf(n, list));
  return sequences;
}

static Values convertOptional(Node &n) {
  return {n.has(0) ? n.in(0) : markerOf(n, {}, NoneType::get(n.b.getContext()))};
}

static Values convertHasElement(Node &n) {
  return {n.b.scalar(n.b.i1(), n.has(0) && !isa<NoneType>(n.in(0).getType()))};
}

static Values convertGetElement(Node &n) {
  if (isa<NoneType>(n.in(0).getType()))
    return n.refuse("input 0: expected an optional with an element, found an empty one");
  return {n.in(0)};
}

void addSequences(PatternRegistry &registry) {
  auto add = [&](StringRef name, int64_t since, unsigned required, Values (*convert)(Node &)) {
    registry.add(name, since, required, convert).takesSequences = true;
  };
  add("SequenceConstruct", 11, 1, convertConstruct);
  add("SequenceEmpty", 11, 0, convertEmpty);
  add("SequenceLength", 11, 1, convertLength);
  add("SequenceInsert", 11, 2, convertInsert);
  add("SequenceErase", 11, 1, convertErase);
  add("SequenceAt", 11, 2, convertAt);
  add("ConcatFromSequence", 11, 1, convertConcatFromSequence);
  add("SplitToSequence", 11, 1, convertSplitToSequence);
  add("SequenceMap", 17, 1, convertMap);
  add("Optional", 15, 0, convertOptional);
  add("OptionalHasElement", 15, 0, convertHasElement);
  add("OptionalGetElement", 15, 1, convertGetElement);
}

} // namespace deepstride::onnx
