#include "runtime/core/MemoryPlan.h"

#include "runtime/core/BufferMemory.h"
#include "runtime/core/Guards.h"
#include "runtime/core/Plan.h"

#include <algorithm>
#include <map>

namespace ds {
namespace {

// The launch that writes the loss of a micro-batch: what is there before and after it, its way back reads.
std::optional<size_t> launchOfLoss(const EntryInfo &entry) {
  if (entry.name != "micro")
    return std::nullopt;
  for (size_t launch = entry.launches.size(); launch-- > 0;)
    for (const LaunchResult &result : entry.launches[launch].results) {
      const BufferInfo &buffer = entry.buffers[result.buffer];
      if (buffer.role == BufferRole::Output && entry.outputs[buffer.index].name == "loss")
        return launch;
    }
  return std::nullopt;
}

uint64_t activationBytes(const EntryInfo &entry, const Plan &plan) {
  std::optional<size_t> loss = launchOfLoss(entry);
  uint64_t bytes = 0;
  for (size_t i = 0; loss && i < entry.buffers.size(); ++i)
    if (const BufferInfo &buffer = entry.buffers[i];
        buffer.role == BufferRole::Workspace && buffer.first <= *loss && *loss < buffer.last)
      bytes += plan.bufferBytes[i];
  return bytes;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

using StateBytes = std::map<std::string, std::pair<const StateInfo *, uint64_t>>;

// Tensors and views of a unit lie in its space, which is there once.
void addState(const VariantInfo &variant, const StateInfo &state, uint64_t bytes, const Pins &pins,
              StateBytes &states) {
  if (state.part != StatePart::Tensor && state.part != StatePart::View) {
    states[state.name] = {&state, grantedBytes(bytes)};
    return;
  }
  const UnitInfo &unit = variant.units[state.unit];
  auto ranks = pins.find("mesh.data");
  int64_t count = ranks == pins.end() ? 1 : ranks->second;
  states["zero/" + unit.name + state.suffix] = {&state,
                                                grantedBytes(byteCount(state.type, {count * unit.shard(count)}))};
}

void addStates(const StateBytes &states, bool trains, MemoryPlan &plan) {
  for (const auto &[name, state] : states) {
    const auto &[info, bytes] = state;
    size_t slash = name.rfind('/');
    auto owner = slash == std::string::npos ? states.end() : states.find(name.substr(0, slash));
    bool isOfStatistic = info->isStatistic || (owner != states.end() && owner->second.first->isStatistic);
    if (!trains || isOfStatistic)
      plan.states += bytes;
    else if (info->part == StatePart::Own ? info->initial && owner == states.end() : info->suffix.empty())
      plan.parameters += bytes;
    else if (endsWith(name, "/gradient"))
      plan.gradients += bytes;
    else
      plan.optimizer += bytes;
  }
}

} // namespace

std::optional<MemoryPlan> planMemory(const VariantInfo &variant, const Pins &pins, int64_t microBatches,
                                     std::set<std::string> &missing) {
  bool trains = std::any_of(variant.entries.begin(), variant.entries.end(),
                            [](const EntryInfo &entry) { return entry.name == "micro"; });
  MemoryPlan result;
  StateBytes states;
  std::set<uint32_t> initial;
  uint64_t most = 0;
  for (const EntryInfo &entry : variant.entries) {
    if (trains && entry.name == "quantize")
      continue;
    Pins mine;
    for (const SymbolInfo &symbol : entry.symbols)
      if (auto pin = pins.find(symbol.name);
          (symbol.kind == SymbolKind::Dim || symbol.kind == SymbolKind::Mesh) && pin != pins.end())
        mine.insert(*pin);
    std::vector<bool> known;
    std::vector<int64_t> values = bindPins(entry, mine, known);
    bool isKnown = true;
    for (size_t i = 0; i < entry.symbols.size(); ++i)
      if (!known[i] && (entry.symbols[i].kind == SymbolKind::Dim || entry.symbols[i].kind == SymbolKind::Element)) {
        missing.insert(entry.symbols[i].name); // perhaps as entries before
        isKnown = false;
      }
    if (!isKnown || !guardsHold(entry, values))
      continue;
    ComputedParts computed(entry);
    Plan plan = makePlan(entry, variant.constants, computed, values);
    uint64_t inputs = 0, outputs = 0;
    for (size_t i = 0; i < entry.buffers.size(); ++i) {
      const BufferInfo &buffer = entry.buffers[i];
      if (buffer.role == BufferRole::Input || buffer.role == BufferRole::Output)
        (buffer.role == BufferRole::Input ? inputs : outputs) += grantedBytes(plan.bufferBytes[i]);
      else if (buffer.role == BufferRole::State)
        addState(variant, entry.states[buffer.index], plan.bufferBytes[i], pins, states);
    }
    for (const StateInfo &state : entry.states)
      if (state.initial)
        initial.insert(static_cast<uint32_t>(*state.initial));
    for (const UnitInfo &unit : variant.units)
      for (const UnitTensor &tensor : unit.tensors)
        if (tensor.initial)
          initial.insert(*tensor.initial);
    if (!trains)
      result.data = std::max(result.data, inputs + outputs);
    else if (entry.name == "micro") // its batches stay while others are evaluated
      result.data += static_cast<uint64_t>(microBatches) * inputs;
    else if (entry.name == "eval")
      result.data += inputs + outputs;
    result.activations = std::max(result.activations, activationBytes(entry, plan));
    most = std::max<uint64_t>(most, grantedBytes(plan.workspaceBytes));
    for (const LaunchInfo &launch : entry.launches)
      if (launch.scratch && !entry.dependsOnComputed(entry.sizes[*launch.scratch]))
        result.scratch = std::max<uint64_t>(
            result.scratch,
            grantedBytes(static_cast<size_t>(std::max<int64_t>(entry.sizes[*launch.scratch].evaluate(values), 0))));
  }
  if (!missing.empty())
    return std::nullopt;
  result.activations = std::min(result.activations, most);
  result.workspace = most - result.activations;
  for (size_t i = 0; i < variant.constants.size(); ++i)
    if (!initial.count(static_cast<uint32_t>(i)))
      result.weights += variant.constants[i].bytes;
  addStates(states, trains, result);
  return result;
}

} // namespace ds
