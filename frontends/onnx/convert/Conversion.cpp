// Walks the nodes of a model in order and has each converted by the pattern of its operator and opset. A node that
// cannot be converted does not end the walk: what depends on it is skipped, so that one run reports everything.
#include "frontends/onnx/convert/Conversion.h"

#include "frontends/onnx/dialect/StatedTypes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace deepstride::onnx {

Conversion::Conversion(ModuleOp module, func::FuncOp main, const ConversionOptions &options, StoredWeights &weights,
                       Tolerated *toleratedInAll, Assumptions assumptions)
    : module(module), main(main), options(options), builder(OpBuilder(module.getContext()), analysis),
      toleratedInAll(toleratedInAll), weights(weights), assumptions(std::move(assumptions)) {}

LogicalResult Conversion::run() {
  if (failed(applyShapes()))
    return failure();
  nameDims();
  if (failed(checkPins()) || failed(joinDims()))
    return failure();
  if (failed(deduceLengths()) || failed(convertArguments()))
    return failure();
  builder.getBuilder().setInsertionPoint(main.getBody().front().getTerminator());
  pinnedInputs.resize(main.getNumArguments());
  builder.setLocation(main.getLoc());
  boundInputs();
  if (failed(assumeInputs()) || failed(pinInputs()))
    return failure();
  builder.refuse(options.refusedOp);
  trains = options.storesFloats;
  convertOps(main.getBody().front());
  if (split)
    return failure(); // whoever converts the outcomes says what is wrong
  if (toleratedInAll)
    toleratedInAll->merge(tolerated);
  else
    tolerated.emit();
  if (!report.empty())
    report.emit(main.getLoc());
  if (!report.empty() || failedNodes || failed(convertReturn()))
    return failure();
  dropSource();
  recordBounds();
  return success();
}

void Conversion::convertOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (split)
      return;
    if (auto initializer = dyn_cast<InitializerOp>(op)) {
      builder.setLocation(op.getLoc());
      Type type = getElementTypeOrSelf(initializer.getValue().getType());
      if (!isSupportedElement(type))
        refusedTypes[initializer.getResult()] = initializer.getValue().getType();
      else if (Value value = importTensor(initializer.getValue(), initializer.getName(),
                                          options.storesFloats && isLearnedScalar(initializer)))
        converted[initializer.getResult()] = value;
      if (Value value = converted.lookup(initializer.getResult());
          value && options.storesFloats && isa<FloatType>(type))
        if (auto constant = value.getDefiningOp<ds::ConstantOp>())
          constant->setAttr(ds::storedAttr, builder.getBuilder().getUnitAttr());
    } else if (auto node = dyn_cast<NodeOp>(op)) {
      convertNode(node);
    }
  }
}

std::string Conversion::describeOperands(NodeOp node) {
  SmallVector<std::string> texts;
  for (Value input : node.getInputs()) {
    if (isa<NoneType>(input.getType()))
      texts.push_back("-");
    else if (Value value = converted.lookup(input))
      texts.push_back(describe(analysis.facts(value)));
    else
      texts.push_back(describeElement(input.getType()));
  }
  return llvm::join(texts, ", ");
}

/// Finds the ds values of a node's operands; false where one is missing, which is reported unless it already was.
bool Conversion::bindOperands(NodeOp node, const Pattern &pattern, SmallVectorImpl<Value> &operands) {
  for (auto [index, input] : llvm::enumerate(node.getInputs())) {
    if (auto refused = refusedTypes.find(input); refused != refusedTypes.end()) {
      report.add(node, describeOperands(node), "element type " + describeElement(refused->second) + " is not supported",
                 "legal are bool, integers and floats");
      return false;
    }
    if (isa<NoneType>(input.getType())) {
      operands.push_back({});
      continue;
    }
    Value value = converted.lookup(input);
    if (!value)
      return false;
    if (!isa<RankedTensorType>(value.getType()) && !pattern.takesSequences) {
      report.add(node, describeOperands(node), "the operator has no conversion for sequences and optionals",
                 "take an element of the sequence first (SequenceAt, ConcatFromSequence, OptionalGetElement)");
      return false;
    }
    operands.push_back(value);
  }
  for (unsigned i = 0; i < pattern.requiredInputs; ++i)
    if (i >= operands.size() || !operands[i]) {
      emitError(node.getLoc()) << node.getOpType() << ": expected input " << i << " to be present, found "
                               << operands.size() << " inputs; the first " << pattern.requiredInputs << " are required";
      failedNodes = true;
      return false;
    }
  auto most = mostInputs(node.getDomain(), node.getOpType(), node.getVersion());
  for (size_t i = most.value_or(operands.size()); i < operands.size(); ++i)
    if (operands[i]) {
      emitError(node.getLoc()) << node.getOpType() << ": expected at most " << *most << " inputs at opset "
                               << node.getVersion() << ", found " << operands.size();
      failedNodes = true;
      return false;
    }
  return true;
}

/// False after a diagnostic about an attribute that the operator does not have.
bool Conversion::checkAttributeNames(NodeOp node) {
  SmallVector<StringRef> names;
  for (NamedAttribute attribute : node.getAttrs())
    names.push_back(attribute.getName());
  for (Attribute graph : node.getGraphs())
    names.push_back(cast<StringAttr>(graph).getValue());
  if (names.empty())
    return true;
  auto legal = attributeNames(node.getDomain(), node.getOpType(), node.getVersion());
  for (StringRef name : names) {
    if (llvm::is_contained(legal, name) || name.starts_with("__")) // names of an implementation, which no result needs
      continue;
    auto error = emitError(node.getLoc()) << node.getOpType() << ": expected ";
    if (legal.empty())
      error << "no attributes";
    else
      error << "attributes among '" << llvm::join(legal, "', '") << "'";
    error << " at opset " << node.getVersion() << ", found '" << name << "'";
    failedNodes = true;
    return false;
  }
  return true;
}

/// Floats of less than 32 bits as f32; returns the type of the first, if it is one.
Type Conversion::widen(MutableArrayRef<Value> operands) {
  auto isNarrow = [&](Value operand) {
    auto type = operand ? dyn_cast<FloatType>(builder.element(operand)) : FloatType();
    return type && type.getWidth() < 32;
  };
  Type narrow = isNarrow(operands[0]) ? builder.element(operands[0]) : Type();
  for (Value &operand : operands)
    operand = isNarrow(operand) ? builder.cast(operand, builder.f32()) : operand;
  return narrow;
}

void Conversion::convertNode(NodeOp node) {
  const PatternRegistry &patterns = PatternRegistry::get();
  const Pattern *pattern = patterns.lookUp(node.getDomain(), node.getOpType(), node.getVersion());
  if (!pattern) {
    auto oldest = patterns.oldest(node.getDomain(), node.getOpType());
    report.add(node, describeOperands(node),
               oldest ? "this version of the operator has no conversion" : "the operator has no conversion",
               oldest ? "convert the model to opset " + std::to_string(*oldest) + " or later (onnx.version_converter)"
                      : "rewrite it with other operators, or add a pattern in frontends/onnx/convert");
    return;
  }
  SmallVector<Value> operands;
  if (!checkAttributeNames(node) || !bindOperands(node, *pattern, operands))
    return;
  builder.setLocation(node.getLoc());
  unsigned errors = 0;
  ScopedDiagnosticHandler counter(module.getContext(), [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // whoever is next prints it
  });
  Type narrow = pattern->inFloat32 ? widen(operands) : Type();
  Node view(node, operands, builder, *this);
  Values results = pattern->convert(view);
  for (Value &result : results)
    result = narrow ? builder.cast(result, narrow) : result;
  failedNodes |= errors > 0; // even where the results do not depend on what was refused
  for (auto [index, result] : llvm::enumerate(node.getResults())) {
    Value value = index < results.size() ? results[index] : Value();
    if (value && !view.isRefused()) {
      converted[result] = value;
      if (!isElsewhere) // of other values the model states nothing
        checkStatedType(node, index, value);
    } else if (view.isRefused() || view.yields(index)) {
      failedNodes = true;
      if (errors == 0)
        view.refuse("output " + Twine(index) + " ('" + cast<StringAttr>(node.getOutputs()[index]).getValue() +
                    "') has no conversion with these operands");
    }
  }
  if (!isElsewhere)
    nameResults(node, results);
}

/// What the model states of a value against what the node computes. Stated shapes may be wrong, with a warning: files
/// whose head was replaced carry stale ones, and nothing is computed from them. Elements of another type are an error.
void Conversion::checkStatedType(NodeOp node, unsigned index, Value value) {
  OpResult result = node.getResults()[index];
  if (!isa<RankedTensorType>(value.getType()))
    return;
  Type stated = result.getType(), found = analysis.facts(value).type();
  if (!contradict(stated, found))
    return;
  std::string where = (node.getOpType() + ": output " + Twine(index) + " ('" +
                       cast<StringAttr>(node.getOutputs()[index]).getValue() + "')")
                          .str();
  if (getElementTypeOrSelf(stated) == getElementTypeOrSelf(found)) {
    if (contradicted.insert(result).second) // the body of a loop may be converted more than once
      tolerated.add("such shapes", node.getLoc(),
                    where + ": the model states " + describeTensor(stated) + ", it is " + describeTensor(found));
    return;
  }
  failedNodes = true;
  emitError(node.getLoc()) << where << ": expected " << describeTensor(stated) << ", as the model states, found "
                           << describeTensor(found);
}

/// Records the ONNX names of a node's outputs on the ops that yield them; an op keeps the first name it got.
void Conversion::nameResults(NodeOp node, ArrayRef<Value> results) {
  for (auto [index, value] : llvm::enumerate(results)) {
    Operation *op = value ? value.getDefiningOp() : nullptr;
    if (!op || index >= node.getOutputs().size())
      continue;
    SmallVector<Attribute> names(op->getNumResults(), builder.getBuilder().getStringAttr(""));
    if (auto known = op->getAttrOfType<ArrayAttr>(ds::valueNameAttr))
      names = llvm::to_vector(known.getValue());
    Attribute &name = names[cast<OpResult>(value).getResultNumber()];
    if (cast<StringAttr>(name).empty())
      name = node.getOutputs()[index];
    op->setAttr(ds::valueNameAttr, builder.getBuilder().getArrayAttr(names));
  }
}

std::optional<Values> Conversion::convertBody(Region &body) {
  // The body of a loop may be converted more than once; what stood for its values then must not be found now.
  for (Operation &op : body.front())
    for (Value result : op.getResults())
      converted.erase(result);
  convertOps(body.front());
  Values outputs;
  for (Value output : body.front().getTerminator()->getOperands()) {
    Value value = converted.lookup(output);
    if (!value)
      return std::nullopt;
    outputs.push_back(value);
  }
  return outputs;
}

bool Conversion::attempt(llvm::function_ref<bool()> convert) {
  OpBuilder &ops = builder.getBuilder();
  Block *block = ops.getInsertionBlock();
  Block::iterator point = ops.getInsertionPoint();
  Operation *last = point == block->begin() ? nullptr : &*std::prev(point);
  bool failedBefore = failedNodes;
  UnsupportedReport reportedBefore = report;
  Tolerated toleratedBefore = tolerated;
  llvm::DenseSet<Value> contradictedBefore = contradicted;
  {
    bool isSilent = true; // an error of a node fails the model, even where its results could be used
    ScopedDiagnosticHandler silence(module.getContext(), [&](Diagnostic &diagnostic) {
      isSilent &= diagnostic.getSeverity() != DiagnosticSeverity::Error;
      return success();
    });
    if (convert() && isSilent)
      return true;
  }
  failedNodes = failedBefore;
  report = reportedBefore;
  tolerated = toleratedBefore;
  contradicted = contradictedBefore;
  while (point != block->begin() && &*std::prev(point) != last) {
    std::prev(point)->dropAllUses();
    std::prev(point)->erase();
  }
  return false;
}

Value Conversion::convertAgain(ArrayRef<NodeOp> nodes, ArrayRef<std::pair<Value, Value>> bindings, Value result,
                               bool isSame) {
  SmallVector<std::pair<Value, Value>> before;
  auto keep = [&](Value value) { before.push_back({value, converted.lookup(value)}); };
  for (auto [value, other] : bindings)
    keep(value);
  for (NodeOp node : nodes)
    for (Value value : node.getResults())
      keep(value);
  for (auto [value, other] : before)
    converted.erase(value);
  for (auto [value, other] : bindings)
    converted[value] = other;
  llvm::SaveAndRestore elsewhere(isElsewhere, isElsewhere || !isSame);
  for (NodeOp node : nodes)
    convertNode(node);
  Value found = converted.lookup(result);
  for (auto [value, other] : before) {
    converted.erase(value);
    if (other)
      converted[value] = other;
  }
  return found;
}

std::string Conversion::newCountSymbol() {
  std::string name;
  do {
    name = "count_" + std::to_string(countSymbols++);
  } while (!dimNames.insert(name).second);
  return name;
}

} // namespace deepstride::onnx
