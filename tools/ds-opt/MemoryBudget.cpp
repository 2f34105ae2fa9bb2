#include "tools/ds-opt/MemoryBudget.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/UnitAttrs.h"
#include "runtime/core/BufferMemory.h"
#include "runtime/core/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

using namespace mlir;

namespace deepstride {

namespace {

/// Adds up what entries take.
class PlannedProgram {
public:
  PlannedProgram(ModuleOp program, const std::map<std::string, int64_t> &dims, int64_t microBatches,
                 std::string &missing)
      : dims(dims), microBatches(microBatches), missing(missing) {
    auto update = program.lookupSymbol<func::FuncOp>("update");
    if (auto list = update ? update->getAttrOfType<ArrayAttr>(ds::unitsAttr) : ArrayAttr())
      for (auto unit : list.getAsRange<DictionaryAttr>())
        units[unit.getAs<StringAttr>("name").getValue()] = {unit.getAs<IntegerAttr>("elements").getInt(),
                                                            unit.getAs<IntegerAttr>("block").getInt()};
  }

  bool add(func::FuncOp entry);
  uint64_t total(ModuleOp program) const { return states + weightsOf(program) + workspace + data; }

private:
  std::optional<uint64_t> valueOf(const SizeExpr &size);
  std::optional<uint64_t> bytesOf(Type type, ArrayRef<SizeExpr> sizes) {
    auto bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    return valueOf(product(sizes) * SizeExpr(std::max(bits / 8, 1U)));
  }
  bool addArguments(func::FuncOp entry, uint64_t &bytes);
  std::pair<std::string, uint64_t> memoryOf(func::FuncOp entry, unsigned number, uint64_t own) const;
  uint64_t weightsOf(ModuleOp program) const;

  const std::map<std::string, int64_t> &dims;
  int64_t microBatches;
  std::string &missing;
  llvm::StringSet<> knownStates;
  llvm::SetVector<Attribute> recipes;
  llvm::DenseSet<Attribute> initial;
  llvm::StringMap<std::pair<uint64_t, uint64_t>> units; // elements and block, by name
  uint64_t states = 0, workspace = 0, data = 0;
};

std::optional<uint64_t> PlannedProgram::valueOf(const SizeExpr &size) {
  llvm::StringMap<SizeExpr> bindings;
  for (const SizeAtom &atom : size.symbols()) {
    auto found = dims.find(atom.name().str());
    if (found == dims.end() && atom.name().starts_with(SizeExpr::meshPrefix)) { // one rank, which needs most
      bindings[atom.name()] = SizeExpr(atom.name().ends_with(".index") ? 0 : 1);
      continue;
    }
    if (found == dims.end()) {
      missing = atom.name().str();
      return std::nullopt;
    }
    bindings[found->first] = SizeExpr(found->second);
  }
  auto value = bindings.empty() ? size : SizeExpr::parse(size.str(), &bindings);
  auto number = value ? value->constant() : std::nullopt;
  return number ? std::optional<uint64_t>(std::max<int64_t>(*number, 0)) : std::nullopt;
}

/// The memory that a state lies in, and its bytes: its own, or the space of its unit, which is one buffer.
std::pair<std::string, uint64_t> PlannedProgram::memoryOf(func::FuncOp entry, unsigned number, uint64_t own) const {
  auto text = [&](StringRef key) {
    auto value = entry.getArgAttrOfType<StringAttr>(number, key);
    return value ? value.getValue() : StringRef();
  };
  StringRef part = text(ds::partAttr);
  auto unit = units.find(text(ds::unitAttr));
  if (part.empty() || part == "shard" || unit == units.end())
    return {text(ds::stateAttr).str(), own};
  auto given = dims.find((SizeExpr::meshPrefix + "data").str());
  uint64_t ranks = given == dims.end() ? 1 : static_cast<uint64_t>(given->second);
  auto [elements, block] = unit->second;
  auto width = std::max(getElementTypeOrSelf(entry.getArgument(number).getType()).getIntOrFloatBitWidth() / 8, 1U);
  return {("zero/" + unit->first() + text(ds::suffixAttr)).str(),
          llvm::divideCeil(elements, ranks * block) * block * ranks * width};
}

bool PlannedProgram::addArguments(func::FuncOp entry, uint64_t &bytes) {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto sizes = sizesFromAttribute(entry.getArgAttrOfType<ArrayAttr>(number, ds::dimsAttr));
    auto own = sizes ? bytesOf(argument.getType(), *sizes) : std::nullopt;
    if (!own)
      return false;
    if (auto state = entry.getArgAttrOfType<StringAttr>(number, ds::stateAttr)) {
      if (Attribute first = entry.getArgAttr(number, ds::initialAttr))
        initial.insert(first);
      auto [name, size] = memoryOf(entry, number, *own);
      states += knownStates.insert(name).second ? ::ds::grantedBytes(size) : 0;
    } else {
      bytes += ::ds::grantedBytes(*own);
    }
  }
  return true;
}

/// First values of states are given back once they are copied.
uint64_t PlannedProgram::weightsOf(ModuleOp program) const {
  uint64_t bytes = 0;
  for (Attribute name : recipes)
    if (auto recipe = initial.contains(name) ? ds::RecipeOp()
                                             : program.lookupSymbol<ds::RecipeOp>(cast<FlatSymbolRefAttr>(name))) {
      auto type = cast<RankedTensorType>(recipe.getBody().front().getTerminator()->getOperand(0).getType());
      bytes += static_cast<uint64_t>(type.getNumElements()) * std::max(type.getElementTypeBitWidth() / 8, 1U);
    }
  return bytes;
}

bool PlannedProgram::add(func::FuncOp entry) {
  uint64_t inputs = 0, outputs = 0;
  if (!addArguments(entry, inputs))
    return false;
  auto analysis = SizeAnalysis::run(entry);
  if (failed(analysis))
    return false;
  for (OpOperand &operand : entry.getBody().front().getTerminator()->getOpOperands())
    if (!entry.getResultAttr(operand.getOperandNumber(), ds::stateAttr)) {
      auto bytes = bytesOf(operand.get().getType(), analysis->facts(operand.get()).sizes);
      if (!bytes)
        return false;
      outputs += ::ds::grantedBytes(*bytes);
    }
  if (entry.getSymName() == "micro")
    data += static_cast<uint64_t>(microBatches) * inputs;
  else if (entry.getSymName() == "eval")
    data += inputs + outputs;
  if (auto units = entry->getAttrOfType<ArrayAttr>(ds::unitsAttr))
    for (auto unit : units.getAsRange<DictionaryAttr>())
      for (auto tensor : unit.getAs<ArrayAttr>("tensors").getAsRange<DictionaryAttr>())
        initial.insert(tensor.get("initial"));
  std::vector<::ds::LiveRange> ranges;
  for (auto buffer : entry->getAttrOfType<ArrayAttr>("ds.buffers").getAsRange<DictionaryAttr>()) {
    if (Attribute recipe = buffer.get("recipe"))
      recipes.insert(recipe);
    auto size = buffer.get("bytes") ? sizeFromAttribute(buffer.get("bytes")) : std::nullopt;
    if (!size)
      continue;
    auto bytes = valueOf(*size);
    if (!bytes)
      return false;
    auto at = [&](StringRef key) { return static_cast<uint32_t>(buffer.getAs<IntegerAttr>(key).getInt()); };
    ranges.push_back({*bytes, at("first"), at("last")});
  }
  workspace = std::max<uint64_t>(workspace, ::ds::grantedBytes(::ds::placeBuffers(ranges).total));
  return true;
}

} // namespace

std::optional<uint64_t> plannedBytes(ModuleOp program, const std::map<std::string, int64_t> &dims, int64_t microBatches,
                                     std::string &missing) {
  PlannedProgram planned(program, dims, microBatches, missing);
  for (auto entry : program.getOps<func::FuncOp>())
    if (entry->hasAttr(ds::entryAttr) && entry.getSymName() != "quantize" && !planned.add(entry))
      return std::nullopt;
  return planned.total(program);
}

std::optional<MemoryChoice> chooseRecomputation(int64_t count, std::optional<uint64_t> budget,
                                                const std::function<std::optional<uint64_t>(int64_t)> &bytesOf) {
  std::map<int64_t, uint64_t> planned;
  auto plan = [&](int64_t values) -> std::optional<uint64_t> {
    auto found = planned.find(values);
    if (found != planned.end())
      return found->second;
    auto bytes = bytesOf(values);
    if (bytes)
      planned[values] = *bytes;
    return bytes;
  };
  auto none = plan(0);
  if (!none)
    return std::nullopt;
  MemoryChoice choice;
  choice.bytes = choice.mostBytes = *none;
  if (budget && *none <= *budget) {
    choice.leastBytes = *none; // not looked for
    return choice;
  }
  constexpr int64_t spread = 8;
  for (int64_t part = 1; part <= spread; ++part)
    if (!plan(count * part / spread))
      return std::nullopt;
  auto least = [&] {
    return std::min_element(planned.begin(), planned.end(), [](auto &a, auto &b) { return a.second < b.second; })
        ->first;
  };
  for (int64_t step = std::max<int64_t>(count / spread / 2, 1), best = least();; step /= 2) {
    for (int64_t values : {best - step, best + step})
      if (values > 0 && values <= count && !plan(values))
        return std::nullopt;
    best = least();
    if (step <= 1)
      break;
  }
  choice.values = least();
  choice.bytes = choice.leastBytes = planned[choice.values];
  if (!budget || choice.leastBytes > *budget)
    return choice;
  // Between the last number that does not fit and the first that does.
  int64_t low = 0, high = choice.values;
  for (const auto &[values, bytes] : planned)
    if (bytes <= *budget && values < high)
      high = values;
  for (const auto &[values, bytes] : planned)
    if (bytes > *budget && values < high)
      low = std::max(low, values);
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    auto bytes = plan(middle);
    if (!bytes)
      return std::nullopt;
    (*bytes <= *budget ? high : low) = middle;
  }
  choice.values = high;
  choice.bytes = planned[high];
  return choice;
}

std::map<std::string, int64_t> batchDims(ModuleOp program, int64_t batch) {
  auto micro = program.lookupSymbol<func::FuncOp>("micro");
  std::map<std::string, int64_t> dims;
  for (unsigned i = 0; i < micro.getNumArguments(); ++i)
    if (auto sizes = sizesFromAttribute(micro.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr));
        sizes && !sizes->empty() && !micro.getArgAttr(i, ds::stateAttr))
      if (const SizeAtom *atom = sizes->front().asAtom())
        dims[atom->name().str()] = batch;
  return dims;
}

SmallVector<std::string> textOf(const std::map<std::string, int64_t> &dims) {
  SmallVector<std::string> text;
  for (const auto &[name, size] : dims)
    text.push_back(name + "=" + std::to_string(size));
  return text;
}

std::optional<uint64_t> parseBytes(StringRef text) {
  size_t digits = text.find_if([](char c) { return c < '0' || c > '9'; });
  unsigned shift = llvm::StringSwitch<unsigned>(text.substr(digits))
                       .Case("", 0)
                       .Case("KiB", 10)
                       .Case("MiB", 20)
                       .Case("GiB", 30)
                       .Default(64);
  uint64_t number = 0;
  if (shift == 64 || text.substr(0, digits).getAsInteger(10, number) || number == 0 ||
      number > (uint64_t(1) << 62) >> shift)
    return std::nullopt;
  return number << shift;
}

} // namespace deepstride
