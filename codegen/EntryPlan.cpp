// Reads the attributes that the memory phase left on an entry function and gives everything a number.
#include "codegen/EntryPlan.h"

#include "codegen/CollectivePlan.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/Guards.h"
#include "dialects/ds/UnitAttrs.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {

uint32_t EntryPlan::sizeId(const SizeExpr &size) {
  auto [entry, isNew] = sizeIds.insert({size.str(), static_cast<uint32_t>(sizes.size())});
  if (isNew)
    sizes.push_back(size.str());
  return entry->second;
}

int64_t EntryPlan::symbolId(StringRef symbolName) const {
  for (auto [number, symbol] : llvm::enumerate(symbols))
    if (symbol.kind == "computed" && symbol.name == symbolName)
      return static_cast<int64_t>(number);
  return -1;
}

std::string siteOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string site = siteOf(part); !site.empty())
        return site;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return siteOf(call.getCallee());
  return {};
}

std::string manifestType(Type element) {
  if (element.isInteger(1))
    return "i1";
  if (auto integer = dyn_cast<IntegerType>(element))
    return (integer.isUnsigned() ? "u" : "i") + std::to_string(integer.getWidth());
  if (isa<Float8E8M0FNUType>(element))
    return "f8e8m0";
  if (isa<Float4E2M1FNType>(element))
    return "f4e2m1";
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return StringRef(text).lower();
}

static std::string text(DictionaryAttr dictionary, StringRef key) {
  auto attribute = dictionary.getAs<StringAttr>(key);
  return attribute ? attribute.str() : std::string();
}

static EntryPlan::Tensor tensorOf(Type type, DictionaryAttr attributes, const SizeVector &shape, StringRef fallback) {
  EntryPlan::Tensor tensor;
  tensor.name = attributes ? text(attributes, ds::nameAttr) : "";
  if (tensor.name.empty())
    tensor.name = fallback.str();
  tensor.type = manifestType(cast<RankedTensorType>(type).getElementType());
  tensor.shape = shape;
  if (attributes)
    if (auto bound = attributes.getAs<IntegerAttr>(ds::boundAttr))
      tensor.bound = bound.getInt();
  return tensor;
}

namespace {

class EntryPlanner {
public:
  EntryPlanner(func::FuncOp function, const KernelTable &kernels) : function(function), kernels(kernels) {}
  FailureOr<EntryPlan> run();

private:
  LogicalResult guards();
  LogicalResult signature();
  LogicalResult firstValue(Attribute initial, Type type, EntryPlan::Tensor &state);
  LogicalResult visit(Operation *op);
  bool isBetweenStates(const EntryPlan::Collective &collective) const;
  LogicalResult addLaunch(ds::LaunchOp launch);
  SmallVector<uint32_t> elementwiseStates(ArrayRef<uint32_t> buffers, const std::vector<bool> &isElementwise) const;
  LogicalResult collectSymbols();
  LogicalResult addSymbol(const SizeAtom &symbol, bool isDimension, const llvm::StringSet<> &computed);

  func::FuncOp function;
  const KernelTable &kernels;
  SizeAnalysis analysis;
  EntryPlan plan;
};

LogicalResult EntryPlanner::guards() {
  if (auto entry = function->getAttrOfType<StringAttr>(ds::groupAttr))
    plan.group = entry.str();
  Attribute attribute = function->getAttr(ds::guardsAttr);
  if (!attribute)
    return success();
  auto refuse = [&](Attribute found) {
    return function.emitOpError("expects '")
           << ds::guardsAttr << "' to hold guards such as {condition = \"eq(n, 1)\", holds = true}, found " << found;
  };
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list)
    return refuse(attribute);
  for (Attribute item : list) {
    auto guard = dyn_cast<DictionaryAttr>(item);
    auto holds = guard ? guard.getAs<BoolAttr>(ds::holdsKey) : BoolAttr();
    Attribute text = guard ? guard.get(ds::conditionKey) : Attribute();
    auto condition = text ? sizeFromAttribute(text) : std::nullopt;
    if (!holds || !condition)
      return refuse(item);
    plan.guards.push_back({*condition, holds.getValue()});
  }
  return success();
}

/// A state begins with what a recipe makes: of its type, and of its sizes where those are known. In a unit it may be
/// what that is rounded to.
LogicalResult EntryPlanner::firstValue(Attribute initial, Type type, EntryPlan::Tensor &state) {
  auto name = dyn_cast<FlatSymbolRefAttr>(initial);
  auto module = function->getParentOfType<ModuleOp>();
  auto recipe = name ? module.lookupSymbol<ds::RecipeOp>(name.getAttr()) : ds::RecipeOp();
  if (!recipe)
    return function.emitOpError("state '")
           << state.name << "': expected '" << ds::initialAttr << "' to name a recipe, found " << initial;
  Type found = recipe.getYielded().getType(), element = getElementTypeOrSelf(type);
  bool isRounded = !state.unit.empty() && (element.isBF16() || element.isF16()) && getElementTypeOrSelf(found).isF32();
  if ((getElementTypeOrSelf(found) != element && !isRounded) || failed(verifyCompatibleShape(found, type)))
    return function.emitOpError("state '")
           << state.name << "': expected a first value of " << type << ", found recipe " << name << " of " << found;
  state.initial = name.getValue().str();
  return success();
}

LogicalResult EntryPlanner::signature() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    DictionaryAttr attributes = function.getArgAttrDict(number);
    const SizeVector &shape = analysis.facts(argument).sizes;
    if (auto state = function.getArgAttrOfType<StringAttr>(number, ds::stateAttr)) {
      EntryPlan::Tensor tensor = tensorOf(argument.getType(), attributes, shape, "");
      tensor.name = state.str();
      for (auto [key, field] : {std::pair(ds::unitAttr, &tensor.unit), std::pair(ds::partAttr, &tensor.part),
                                std::pair(ds::suffixAttr, &tensor.suffix)})
        *field = text(attributes, key);
      if (Attribute initial = function.getArgAttr(number, ds::initialAttr))
        if (failed(firstValue(initial, argument.getType(), tensor)))
          return failure();
      tensor.isStatistic = static_cast<bool>(function.getArgAttr(number, ds::statisticAttr));
      plan.states.push_back(tensor);
    } else {
      plan.inputs.push_back(
          tensorOf(argument.getType(), attributes, shape, "input" + std::to_string(plan.inputs.size())));
    }
  }
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (function.getResultAttr(number, ds::stateAttr))
      continue;
    plan.outputs.push_back(tensorOf(operand.get().getType(), function.getResultAttrDict(number),
                                    analysis.facts(operand.get()).sizes,
                                    "output" + std::to_string(plan.outputs.size())));
  }
  auto buffers = function->getAttrOfType<ArrayAttr>("ds.buffers");
  if (!buffers)
    return function.emitOpError("has no buffer plan: run the memory phase first");
  for (auto fields : buffers.getAsRange<DictionaryAttr>()) {
    EntryPlan::Buffer buffer;
    buffer.role = text(fields, "role");
    if (auto index = fields.getAs<IntegerAttr>("index"))
      buffer.index = index.getInt();
    if (auto recipe = fields.getAs<FlatSymbolRefAttr>("recipe"))
      buffer.recipe = recipe.getValue().str();
    if (Attribute bytes = fields.get("bytes")) {
      buffer.bytes = plan.sizeId(*sizeFromAttribute(bytes));
      buffer.first = fields.getAs<IntegerAttr>("first").getInt();
      buffer.last = fields.getAs<IntegerAttr>("last").getInt();
    }
    plan.buffers.push_back(buffer);
  }
  if (auto constraints = function->getAttrOfType<ArrayAttr>("ds.constraints"))
    for (auto fields : constraints.getAsRange<DictionaryAttr>())
      plan.constraints.push_back(
          {text(fields, "relation"), text(fields, "lhs"), text(fields, "rhs"), text(fields, "where")});
  return success();
}

SmallVector<uint32_t> EntryPlanner::elementwiseStates(ArrayRef<uint32_t> buffers,
                                                      const std::vector<bool> &isElementwise) const {
  SmallVector<uint32_t> found = elementwiseBuffers(buffers, isElementwise);
  llvm::erase_if(found, [&](uint32_t buffer) { return plan.buffers[buffer].role != "state"; });
  return found;
}

LogicalResult EntryPlanner::addLaunch(ds::LaunchOp launch) {
  auto kernel = kernels.find(launch.getKernel());
  auto index = launch->getAttrOfType<IntegerAttr>("index");
  auto buffers = launch->getAttrOfType<DenseI64ArrayAttr>("buffers");
  if (kernel == kernels.end() || !index || !buffers)
    return launch.emitOpError("has no kernel or no buffers: run the memory phase first");
  EntryPlan::Launch entry;
  entry.kernel = launch.getKernel().str();
  entry.site = siteOf(launch.getLoc());
  llvm::StringMap<SizeExpr> bindings;
  SizeVector sizes = *sizesFromAttribute(launch.getSizes());
  for (auto [number, size] : llvm::enumerate(sizes)) {
    bindings["d" + std::to_string(number)] = size;
    entry.sizes.push_back(plan.sizeId(size));
  }
  auto bind = [&](const SizeExpr &size) { return *SizeExpr::parse(size.str(), &bindings); };
  entry.grid = plan.sizeId(bind(kernel->second.grid));
  if (kernel->second.scratch)
    entry.scratch = plan.sizeId(bind(*kernel->second.scratch));
  entry.grain = static_cast<uint32_t>(kernel->second.grain);
  entry.flops = bind(kernel->second.flops);
  entry.arithmetic = kernel->second.arithmetic;
  auto bindBytes = [&](const std::optional<SizeExpr> &bytes) {
    return bytes ? std::optional(bind(*bytes)) : std::nullopt;
  };
  llvm::append_range(entry.reads, llvm::map_range(kernel->second.reads, bindBytes));
  for (int64_t buffer : buffers.asArrayRef())
    entry.buffers.push_back(static_cast<uint32_t>(buffer));
  entry.elementwise = elementwiseStates(entry.buffers, kernel->second.isElementwise);
  auto names = launch->getAttrOfType<ArrayAttr>(ds::valueNameAttr);
  for (OpResult result : launch->getResults()) {
    const TensorFacts &facts = analysis.facts(result);
    std::string name;
    if (names && result.getResultNumber() < names.size())
      name = cast<StringAttr>(names[result.getResultNumber()]).str();
    entry.results.push_back({buffers[static_cast<int64_t>(launch.getInputs().size()) + result.getResultNumber()], name,
                             manifestType(facts.elementType), facts.sizes, std::nullopt});
    if (!kernel->second.writes.empty())
      entry.results.back().writes = bindBytes(kernel->second.writes[result.getResultNumber()]);
  }
  if (auto work = launch->getAttrOfType<ArrayAttr>("work"))
    for (auto fields : work.getAsRange<DictionaryAttr>())
      entry.work.push_back({text(fields, "node"), text(fields, "parameter"), text(fields, "part"), text(fields, "op"),
                            text(fields, "role"), *sizeFromAttribute(fields.get("macs")),
                            *sizeFromAttribute(fields.get("flops")), *sizeFromAttribute(fields.get("bytes")),
                            fields.contains("may_be_less")});
  size_t number = static_cast<size_t>(index.getInt());
  if (plan.launches.size() <= number)
    plan.launches.resize(number + 1);
  plan.launches[number] = std::move(entry);
  return success();
}

/// A gather whose memory outlives the call.
bool EntryPlanner::isBetweenStates(const EntryPlan::Collective &collective) const {
  auto isState = [&](int64_t buffer) { return plan.buffers[static_cast<size_t>(buffer)].role == "state"; };
  return llvm::all_of(collective.parts, [&](const EntryPlan::CollectivePart &part) {
    return part.own >= 0 && isState(part.own) &&
           llvm::all_of(part.whole, [&](const EntryPlan::Piece &piece) { return isState(piece.buffer); });
  });
}

LogicalResult EntryPlanner::visit(Operation *op) {
  if (auto launch = dyn_cast<ds::LaunchOp>(op))
    return addLaunch(launch);
  if (auto bound = dyn_cast<ds::SizeOp>(op))
    (void)plan.sizeId(*sizeFromAttribute(bound.getValue()));
  if (auto start = dyn_cast<dist::StartInterface>(op)) {
    auto number = static_cast<uint32_t>(plan.collectives.size());
    EntryPlan::Collective &collective = plan.collectives.emplace_back(planCollective(start, analysis));
    collective.isDeferred = cast<dist::WaitOp>(start.waitOp()).getDeferred() && isBetweenStates(collective);
    plan.collectiveIds[start] = number;
  }
  return success();
}

LogicalResult EntryPlanner::collectSymbols() {
  std::vector<SizeAtom> symbols;
  llvm::StringSet<> seen;
  auto add = [&](const SizeExpr &size) {
    for (const SizeAtom &symbol : size.symbols())
      if (seen.insert(symbol.text()).second)
        symbols.push_back(symbol);
  };
  auto addText = [&](const std::string &expression) {
    if (auto size = SizeExpr::parse(expression))
      add(*size);
  };
  // Inputs first: their dimensions in order of appearance are what a user thinks of.
  for (const auto *tensors : {&plan.inputs, &plan.states})
    for (const EntryPlan::Tensor &tensor : *tensors)
      llvm::for_each(tensor.shape, add);
  size_t dimensions = symbols.size();
  for (const EntryPlan::Tensor &tensor : plan.outputs)
    llvm::for_each(tensor.shape, add);
  llvm::for_each(plan.sizes, addText);
  for (const EntryPlan::Launch &launch : plan.launches) {
    add(launch.flops);
    for (const EntryPlan::Work &work : launch.work)
      llvm::for_each(std::array{work.macs, work.flops, work.bytes}, add);
  }
  for (const EntryPlan::Collective &collective : plan.collectives) {
    add(collective.sent);
    add(collective.received);
    for (const EntryPlan::CollectivePart &part : collective.parts) {
      llvm::for_each(std::array{part.shard, part.begin, part.end}, add);
      for (const EntryPlan::Piece &piece : part.whole)
        llvm::for_each(std::array{piece.offset, piece.count}, add);
    }
  }
  for (const EntryPlan::Guard &guard : plan.guards)
    add(guard.condition);
  for (const EntryPlan::Constraint &constraint : plan.constraints) {
    addText(constraint.lhs);
    addText(constraint.rhs);
  }
  llvm::StringSet<> computed;
  function.walk([&](ds::DefineOp op) { computed.insert(op.getSymbol()); });
  for (auto [number, symbol] : llvm::enumerate(symbols))
    if (failed(addSymbol(symbol, number < dimensions, computed)))
      return failure();
  return success();
}

LogicalResult EntryPlanner::addSymbol(const SizeAtom &symbol, bool isDimension, const llvm::StringSet<> &computed) {
  bool isComputed = symbol.kind() == SizeAtom::Kind::Symbol && computed.contains(symbol.name());
  if (symbol.kind() == SizeAtom::Kind::Unknown)
    return function.emitOpError("has a size that nothing gives: a value of dynamic size comes out of a region");
  if (isComputed && isDimension)
    return function.emitOpError("computes the size '") << symbol.name() << "', which is a dimension of its arguments";
  if (symbol.kind() == SizeAtom::Kind::Symbol && symbol.name().starts_with(SizeExpr::meshPrefix)) {
    plan.symbols.push_back({symbol.name().str(), "mesh"});
    return success();
  }
  if (symbol.kind() == SizeAtom::Kind::Symbol) {
    plan.symbols.push_back({symbol.name().str(), isComputed ? "computed" : "dim"});
    return success();
  }
  for (auto [number, input] : llvm::enumerate(plan.inputs))
    if (input.name == symbol.name()) {
      std::string name = input.name + "[" + std::to_string(symbol.index()) + "]";
      plan.symbols.push_back({name, "element", static_cast<int64_t>(number), symbol.index()});
      return success();
    }
  return function.emitOpError("has a size over element ")
         << symbol.index() << " of '" << symbol.name() << "', which is no input";
}

FailureOr<EntryPlan> EntryPlanner::run() {
  auto result = SizeAnalysis::run(function);
  if (failed(result))
    return failure();
  analysis = std::move(*result);
  plan.name = function.getSymName().str();
  if (failed(guards()) || failed(signature()))
    return failure();
  if (function.walk([&](Operation *op) { return WalkResult(visit(op)); }).wasInterrupted())
    return failure();
  if (failed(collectSymbols()))
    return failure();
  for (const EntryPlan::Guard &guard : plan.guards)
    for (const SizeAtom &symbol : guard.condition.symbols())
      if (symbol.kind() == SizeAtom::Kind::Symbol && plan.symbolId(symbol.name()) >= 0) // a computed one
        return function.emitOpError("expects guards over what is known before a call, found '")
               << guard.condition.str() << "'";
  return std::move(plan);
}

} // namespace

SmallVector<uint32_t> elementwiseBuffers(ArrayRef<uint32_t> buffers, const std::vector<bool> &isElementwise) {
  SmallVector<uint32_t> found;
  for (uint32_t buffer : buffers) {
    bool isKept = !isElementwise.empty() && !llvm::is_contained(found, buffer);
    for (size_t i = 0; isKept && i < buffers.size(); ++i)
      isKept = buffers[i] != buffer || isElementwise[i];
    if (isKept)
      found.push_back(buffer);
  }
  return found;
}

FailureOr<EntryPlan> planEntry(func::FuncOp function, const KernelTable &kernels) {
  return EntryPlanner(function, kernels).run();
}

} // namespace deepstride
