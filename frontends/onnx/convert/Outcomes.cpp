// Branches of an If that differ in rank fit into no scf.if. Where the condition is known before a call, from sizes and
// inputs of one integer, the model is converted once for each of its outcomes: the guarded entries of one group, each
// with the conditions under which the runtime calls it. Which conditions there are is found by converting: a conversion
// that meets such a branch ends, and begins again under one assumption more.
#include "dialects/ds/Contents.h"
#include "dialects/ds/Guards.h"
#include "frontends/onnx/convert/Conversion.h"

#include "llvm/ADT/StringExtras.h"

#include <list>
#include <set>

using namespace mlir;

namespace deepstride::onnx {

static constexpr unsigned entryLimit = 4;
static constexpr unsigned conversionLimit = 32; // outcomes that do not work count here only

/// Unsigned numbers of 64 bits do not fit into the numbers of size expressions.
static bool hasElementSymbol(Type type) {
  return isOneInteger(type) && !getElementTypeOrSelf(type).isUnsignedInteger(64);
}

/// Integers that are not negative have a bit for the sign beside those of their type.
static SizeExpr elementOf(StringRef input, Type type) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  return SizeExpr::element(input, 0, element.getWidth() + (isNeverNegative(element) ? 1 : 0));
}

/// What the runtime knows before a call: dimensions, and elements of small inputs within what their type can hold.
void Conversion::boundInputs() {
  auto add = [&](const SizeExpr &size) {
    for (const SizeAtom &symbol : size.symbols())
      callSymbols.insert(symbol.text());
  };
  for (BlockArgument argument : main.getArguments()) {
    const TensorFacts &facts = analysis.facts(argument);
    llvm::for_each(facts.sizes, add);
    if (facts.contents)
      llvm::for_each(*facts.contents, add);
  }
  for (const auto &[name, index] : scalarInputs) {
    Type type = main.getArgument(index).getType();
    if (!hasElementSymbol(type))
      continue;
    auto element = cast<IntegerType>(getElementTypeOrSelf(type));
    unsigned width = element.getWidth();
    add(elementOf(name, type));
    if (width < 64)
      assumptions.bound(elementOf(name, type), isNeverNegative(element) ? 0 : llvm::minIntN(width),
                        isNeverNegative(element) ? static_cast<int64_t>(llvm::maxUIntN(width)) : llvm::maxIntN(width));
  }
}

/// An input that can have one value only is a constant in this outcome.
LogicalResult Conversion::assumeInputs() {
  for (const auto &[name, index] : scalarInputs) {
    Type type = main.getArgument(index).getType();
    auto value = hasElementSymbol(type) ? assumptions.valueOf(elementOf(name, type)) : std::nullopt;
    if (value && failed(replaceInput(index, name, *value)))
      return failure();
  }
  return success();
}

/// The value of a tensor of one integer or bool as an expression that is it in every call: what might have wrapped, or
/// might be refused when it is evaluated, decides nothing. Beyond what the size analysis tracks, this knows inputs of
/// any integer type and bools made of them.
std::optional<SizeExpr> Conversion::valueOf(Value scalar, unsigned depth) {
  constexpr unsigned depthLimit = 8;
  const TensorFacts &facts = analysis.facts(scalar);
  if (isExact(facts) && facts.contents->size() == 1)
    return facts.contents->front();
  if (depth > depthLimit || !facts.elementType || !facts.elementType.isInteger() || !product(facts.sizes).isConstant(1))
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    auto name = argument.getOwner() == &main.getBody().front()
                    ? main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::nameAttr)
                    : StringAttr();
    Type type = argument.getType();
    return name && hasElementSymbol(type) ? std::optional(elementOf(name.getValue(), type)) : std::nullopt;
  }
  Operation *op = scalar.getDefiningOp();
  auto operand = [&](unsigned i) { return valueOf(op->getOperand(i), depth + 1); };
  if (auto constant = dyn_cast<ds::ConstantOp>(op)) {
    auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!elements || facts.elementType.isUnsignedInteger(64))
      return std::nullopt;
    APInt number = *elements.value_begin<APInt>();
    return isNeverNegative(cast<IntegerType>(facts.elementType)) ? static_cast<int64_t>(number.getZExtValue())
                                                                 : number.getSExtValue();
  }
  if (isa<ds::ReshapeOp, ds::BroadcastOp>(op))
    return operand(0);
  if (auto negation = dyn_cast<ds::UnaryOp>(op); negation && negation.getKind() == ds::UnaryKind::logical_not) {
    auto x = operand(0);
    return x ? std::optional(SizeExpr(1) - *x) : std::nullopt;
  }
  if (isa<ds::CastOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    bool isWider = from.isInteger(1) || (from.isSignlessInteger() && facts.elementType.isSignlessInteger() &&
                                         from.getIntOrFloatBitWidth() <= facts.elementType.getIntOrFloatBitWidth());
    auto x = from.isInteger() ? operand(0) : std::nullopt;
    if (!x)
      return std::nullopt;
    if (facts.elementType.isInteger(1))
      return from.isInteger(1) ? *x : SizeExpr(1) - SizeExpr::eq(*x, 0);
    return isWider ? x : std::nullopt;
  }
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || !facts.elementType.isInteger(1) || !getElementTypeOrSelf(binary.getLhs().getType()).isInteger())
    return std::nullopt;
  auto a = operand(0), b = operand(1);
  if (!a || !b)
    return std::nullopt;
  switch (binary.getKind()) {
  case ds::BinaryKind::bit_and: return *a * *b;
  case ds::BinaryKind::bit_or: return SizeExpr::max(*a, *b);
  case ds::BinaryKind::bit_xor: return SizeExpr(1) - SizeExpr::eq(*a, *b);
  case ds::BinaryKind::eq: return SizeExpr::eq(*a, *b);
  case ds::BinaryKind::ne: return SizeExpr(1) - SizeExpr::eq(*a, *b);
  case ds::BinaryKind::lt: return SizeExpr::lt(*a, *b);
  case ds::BinaryKind::gt: return SizeExpr::lt(*b, *a);
  case ds::BinaryKind::le: return SizeExpr(1) - SizeExpr::lt(*b, *a);
  case ds::BinaryKind::ge: return SizeExpr(1) - SizeExpr::lt(*a, *b);
  default: return std::nullopt;
  }
}

std::optional<bool> Conversion::assumed(Value condition) {
  auto value = valueOf(condition);
  return value ? assumptions.implied(*value) : std::nullopt;
}

std::optional<SizeExpr> Conversion::knownBeforeCall(Value condition) {
  auto value = valueOf(condition);
  if (!value || value->constant())
    return std::nullopt;
  bool isKnown = llvm::all_of(value->symbols(), [&](const SizeAtom &s) { return callSymbols.contains(s.text()); });
  return isKnown ? value : std::nullopt;
}

bool Conversion::splitBy(Value condition) {
  auto own = knownBeforeCall(condition);
  if (!own || split)
    return split.has_value();
  // Inside a branch that is not taken the condition may be anything: what encloses it is asked first.
  for (Value outer : enclosing)
    if (!split)
      split = knownBeforeCall(outer);
  if (!split)
    split = own;
  return true;
}

namespace {

/// All outcomes of one model.
class Outcomes {
public:
  Outcomes(ModuleOp module, func::FuncOp main, const ConversionOptions &options)
      : module(module), source(main), place(main->getNextNode()), options(options) {
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (isOneInteger(main.getArgument(i).getType()))
        inputs.insert(nameOf(main, i));
    main->remove();
  }
  ~Outcomes() { source->destroy(); }

  LogicalResult run();

private:
  struct Outcome {
    func::FuncOp function; // null where it cannot be converted
    Assumptions assumptions;
    std::vector<Diagnostic> said;
    bool isUnsupported = false;
  };

  LogicalResult explore();
  void convert(Assumptions assumptions);
  void noteSymbols(const SizeExpr &condition);
  LogicalResult refuseMany();
  LogicalResult refuseFailed();
  LogicalResult checkOutputs();
  void warnOfFailed();
  void nameEntries();
  void say(Diagnostic &&diagnostic);

  ModuleOp module;
  func::FuncOp source; // the nodes, untouched
  Operation *place;    // before which functions go; null for the end
  const ConversionOptions &options;
  StoredWeights weights;
  SmallVector<Assumptions> open;
  std::list<Outcome> compiled, failures; // diagnostics cannot be copied
  unsigned conversions = 0;
  llvm::StringSet<> inputs; // of one integer
  Tolerated tolerated;
  std::set<std::string> steeringDims, steeringInputs, steeringElements;
  std::set<std::pair<const void *, std::string>> saidBefore;
};

} // namespace

void Outcomes::say(Diagnostic &&diagnostic) {
  if (saidBefore.insert({diagnostic.getLocation().getAsOpaquePointer(), diagnostic.str()}).second)
    module.getContext()->getDiagEngine().emit(std::move(diagnostic));
}

void Outcomes::noteSymbols(const SizeExpr &condition) {
  for (const SizeAtom &symbol : condition.symbols())
    if (symbol.kind() == SizeAtom::Kind::Symbol)
      steeringDims.insert(symbol.name().str());
    else if (inputs.contains(symbol.name()))
      steeringInputs.insert(symbol.name().str());
    else
      steeringElements.insert(symbol.text().str());
}

/// Converts one outcome, or asks for two others in its place.
void Outcomes::convert(Assumptions assumptions) {
  Outcome outcome;
  outcome.function = source.clone();
  module.getBody()->getOperations().insert(place ? Block::iterator(place) : module.getBody()->end(), outcome.function);
  Conversion conversion(module, outcome.function, options, weights, &tolerated, assumptions);
  bool isConverted;
  {
    ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &diagnostic) {
      outcome.said.push_back(std::move(diagnostic));
      return success();
    });
    isConverted = succeeded(conversion.run());
  }
  if (!isConverted)
    outcome.function.erase();
  if (const auto &split = conversion.splitCondition()) {
    noteSymbols(*split);
    for (bool holds : {false, true}) {
      open.push_back(assumptions);
      open.back().add(*split, holds);
    }
    return;
  }
  outcome.assumptions = std::move(assumptions);
  outcome.isUnsupported = conversion.isUnsupported();
  (isConverted ? compiled : failures).push_back(std::move(outcome));
}

LogicalResult Outcomes::explore() {
  open.emplace_back();
  while (!open.empty()) {
    if (conversions++ == conversionLimit)
      return refuseMany();
    convert(open.pop_back_val());
    if (compiled.size() > entryLimit)
      return refuseMany();
  }
  return success();
}

LogicalResult Outcomes::refuseMany() {
  SmallVector<std::string> names;
  auto add = [&](StringRef kind, const std::set<std::string> &list) {
    for (const std::string &name : list)
      names.push_back((kind + " '" + name + "'").str());
  };
  add("dimension", steeringDims);
  add("input", steeringInputs);
  auto error = emitError(source.getLoc())
               << "expected at most " << entryLimit << " outcomes of the conditions of If nodes whose branches differ "
               << "in rank, found more; pin with --dim what they depend on: " << llvm::join(names, ", ");
  if (names.empty())
    error << "nothing that can be pinned";
  if (!steeringElements.empty())
    error << "; they also depend on elements of inputs: " << llvm::join(steeringElements, ", ");
  return failure();
}

/// Where no outcome can be converted, or one needs an operator that we do not have.
LogicalResult Outcomes::refuseFailed() {
  auto isEverywhere = [&](const Diagnostic &diagnostic) {
    return llvm::all_of(failures, [&](const Outcome &outcome) {
      return llvm::any_of(outcome.said, [&](const Diagnostic &other) { return other.str() == diagnostic.str(); });
    });
  };
  SmallVector<Diagnostic *> errors;
  for (Outcome &outcome : failures) {
    if (!compiled.empty() && !outcome.isUnsupported)
      continue;
    for (Diagnostic &diagnostic : outcome.said) {
      bool isGeneral = compiled.empty() && isEverywhere(diagnostic);
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !isGeneral && !outcome.assumptions.empty())
        diagnostic.attachNote() << "where " << describe(outcome.assumptions.list())
                                << "; with --dim the model can be compiled for other sizes or inputs";
      errors.push_back(&diagnostic);
    }
  }
  tolerated.emit();
  for (Diagnostic *diagnostic : errors)
    say(std::move(*diagnostic));
  return failure();
}

/// An outcome that the model itself does not allow, such as an operand of the wrong rank, is no mistake as long as
/// nobody calls it.
void Outcomes::warnOfFailed() {
  for (const Outcome &outcome : failures) {
    auto error =
        llvm::find_if(outcome.said, [](const Diagnostic &d) { return d.getSeverity() == DiagnosticSeverity::Error; });
    bool isKnown = error != outcome.said.end();
    emitWarning(isKnown ? error->getLocation() : source.getLoc())
        << "where " << describe(outcome.assumptions.list()) << " the model cannot be compiled, calls are refused"
        << (isKnown ? ": " + error->str() : "");
  }
}

/// To a caller the group is one entry: what that gives has one type, though not one shape.
LogicalResult Outcomes::checkOutputs() {
  func::FuncOp first = compiled.front().function;
  for (Outcome &outcome : compiled)
    for (auto [index, types] : llvm::enumerate(
             llvm::zip_equal(first.getFunctionType().getResults(), outcome.function.getFunctionType().getResults()))) {
      auto [a, b] = types;
      if (getElementTypeOrSelf(a) != getElementTypeOrSelf(b))
        return emitError(source.getLoc())
               << "output " << index << ": expected one element type, found "
               << describeElement(getElementTypeOrSelf(a)) << ", and " << describeElement(getElementTypeOrSelf(b))
               << " where " << describe(outcome.assumptions.list());
    }
  return success();
}

void Outcomes::nameEntries() {
  Builder builder(module.getContext());
  for (auto [index, outcome] : llvm::enumerate(compiled)) {
    func::FuncOp function = outcome.function;
    StringRef name = source.getSymName();
    if (index > 0)
      function.setSymName((name + "." + Twine(index)).str());
    if (outcome.assumptions.empty())
      continue;
    SmallVector<Attribute> guards;
    for (const Assumptions::Item &item : outcome.assumptions.list())
      guards.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr(ds::conditionKey, builder.getStringAttr(item.condition.str())),
           builder.getNamedAttr(ds::holdsKey, builder.getBoolAttr(item.holds))}));
    function->setAttr(ds::guardsAttr, builder.getArrayAttr(guards));
    function->setAttr(ds::groupAttr, builder.getStringAttr(name));
  }
}

LogicalResult Outcomes::run() {
  if (failed(explore()))
    return failure();
  bool isUnsupported = llvm::any_of(failures, [](const Outcome &outcome) { return outcome.isUnsupported; });
  if (compiled.empty() || isUnsupported)
    return refuseFailed();
  if (failed(checkOutputs()))
    return failure();
  tolerated.emit();
  for (Outcome &outcome : compiled)
    for (Diagnostic &diagnostic : outcome.said)
      say(std::move(diagnostic));
  warnOfFailed();
  nameEntries();
  return success();
}

LogicalResult convertOnnxToDs(ModuleOp module, const ConversionOptions &options) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError("expected a function @main with the nodes of a model");
  bool hasBranches =
      main.walk([](NodeOp node) { return node.getOpType() == "If" ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  StoredWeights weights;
  if (failed(hasBranches ? Outcomes(module, main, options).run() : Conversion(module, main, options, weights).run()))
    return failure();
  dropUnusedRecipes(module);
  return success();
}

} // namespace deepstride::onnx
