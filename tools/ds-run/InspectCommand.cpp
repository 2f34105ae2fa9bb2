// ds-run inspect: what a package holds, on one screen or as JSON. Works on any processor: the code is not opened.
#include "tools/ds-run/Graph.h"
#include "tools/ds-run/Options.h"

#include "frontends/config/Config.h"
#include "runtime/core/Error.h"
#include "runtime/core/Guards.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/MemoryPlan.h"
#include "runtime/core/Plan.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace ds {
namespace {

using Json = nlohmann::ordered_json;

// Flags by symbol: what sizes and constraints depend on, beside guards.
std::vector<bool> symbolsOfSizes(const EntryInfo &entry) {
  std::vector<bool> used(entry.symbols.size(), false);
  auto add = [&](const SizeExpr &expr) {
    for (uint32_t symbol : expr.symbols())
      used[symbol] = true;
  };
  for (const SizeExpr &size : entry.sizes)
    add(size);
  for (const std::vector<TensorInfo> *tensors : {&entry.inputs, &entry.outputs})
    for (const TensorInfo &tensor : *tensors)
      std::for_each(tensor.shape.begin(), tensor.shape.end(), add);
  for (const StateInfo &state : entry.states)
    std::for_each(state.shape.begin(), state.shape.end(), add);
  for (const LaunchInfo &launch : entry.launches)
    add(launch.flops);
  for (const ConstraintInfo &constraint : entry.constraints)
    add(constraint.lhs), add(constraint.rhs);
  return used;
}

// Whether the entry is called with these sizes; null where that is not known.
Json isTaken(const EntryInfo &entry, const std::vector<int64_t> &values, const std::vector<bool> &known) {
  for (const GuardInfo &guard : entry.guards)
    for (uint32_t symbol : guard.condition.symbols())
      if (!known[symbol])
        return nullptr;
  return guardsHold(entry, values);
}

// Sizes when every symbol that they need is given; else why not.
Json describeMemory(const EntryInfo &entry, const VariantInfo &variant, const Pins &pins) {
  Pins mine;
  for (const SymbolInfo &symbol : entry.symbols)
    if (symbol.kind == SymbolKind::Dim && pins.count(symbol.name))
      mine[symbol.name] = pins.at(symbol.name);
  std::vector<bool> known;
  std::vector<int64_t> values = bindPins(entry, mine, known);
  std::set<std::string> missing, expressions;
  size_t buffers = 0;
  for (const BufferInfo &buffer : entry.buffers) {
    if (buffer.role != BufferRole::Workspace)
      continue;
    ++buffers;
    expressions.insert(entry.sizes[buffer.bytes].text());
  }
  std::vector<bool> used = symbolsOfSizes(entry);
  for (size_t i = 0; i < entry.symbols.size(); ++i)
    if (!known[i] && used[i] && entry.symbols[i].kind != SymbolKind::Computed)
      missing.insert(entry.symbols[i].name);
  Json memory = {{"workspace_buffers", buffers}, {"expressions", expressions}, {"depends_on", missing}};
  memory["workspace_bytes"] = memory["peak_live_bytes"] = nullptr;
  memory["flops"] = nullptr;
  memory["is_taken"] = isTaken(entry, values, known);
  if (missing.empty() && memory["is_taken"] != false) {
    ComputedParts computed(entry);
    checkConstraints(entry, values);
    Plan plan = makePlan(entry, variant.constants, computed, values);
    memory["workspace_bytes"] = plan.workspaceBytes;
    memory["peak_live_bytes"] = plan.peakLiveBytes;
    double flops = 0;
    for (const LaunchInfo &launch : entry.launches)
      if (!entry.dependsOnComputed(launch.flops))
        flops += static_cast<double>(launch.flops.evaluate(values));
    memory["flops"] = static_cast<uint64_t>(flops);
  }
  return memory;
}

// Of all entries together, by what it is for.
Json describeMemoryPlan(const VariantInfo &variant, const Pins &pins, int64_t microBatches) {
  std::set<std::string> missing;
  std::optional<MemoryPlan> plan = planMemory(variant, pins, microBatches, missing);
  if (!plan)
    return {{"depends_on", missing}};
  return {{"total_bytes", plan->total()},       {"parameters", plan->parameters}, {"gradients", plan->gradients},
          {"optimizer", plan->optimizer},       {"states", plan->states},         {"weights", plan->weights},
          {"activations", plan->activations},   {"workspace", plan->workspace},   {"data", plan->data},
          {"scratch_per_thread", plan->scratch}};
}

// Adds to an entry of the manifest what follows from it.
void enrich(Json &json, const EntryInfo &entry, const VariantInfo &variant, const Pins &pins) {
  json["group"] = entry.group;
  json["dims"] = Json::array();
  for (const SymbolInfo &symbol : entry.symbols)
    if (symbol.kind == SymbolKind::Dim)
      json["dims"].push_back(symbol.name);
  std::map<std::string, size_t> kernels;
  for (const LaunchInfo &launch : entry.launches)
    ++kernels[launch.kernel];
  json["kernels"] = kernels;
  json["memory"] = describeMemory(entry, variant, pins);
}

// The manifest as it is, and for every variant and entry what follows from it.
Json describe(const Package &package, const Pins &pins) {
  constexpr size_t limit = size_t(1) << 30;
  Json json = Json::parse(readTextFile(package.path() + "/manifest.json", limit));
  const std::vector<VariantInfo> &variants = package.manifest().variants;
  const std::optional<TrainingInfo> &training = package.manifest().training;
  int64_t microBatches = training ? config::fromJson(training->config).accumulation : 1;
  for (size_t v = 0; v < variants.size(); ++v) {
    Json &item = json["variants"][v];
    uint64_t bytes = 0;
    for (const ConstantInfo &constant : variants[v].constants)
      bytes += constant.bytes;
    item["constant_bytes"] = bytes;
    item["memory"] = describeMemoryPlan(variants[v], pins, microBatches);
    item["missing_here"] = CpuFeatures::host().missing(variants[v].features);
    for (size_t e = 0; e < variants[v].entries.size(); ++e)
      enrich(item["entries"][e], variants[v].entries[e], variants[v], pins);
  }
  return json;
}

std::string listOf(const Json &items) {
  std::string text;
  for (const Json &item : items)
    text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  return oneLine(text);
}

void printTensors(const char *title, const Json &items) {
  for (const Json &item : items) {
    bool isBounded = item.contains("bound") && !item["bound"].is_null();
    std::string bound = isBounded ? " below " + item["bound"].dump() : "";
    std::printf("  %s %s: %s [%s]%s\n", title, oneLine(item["name"].get<std::string>()).c_str(),
                item["type"].get<std::string>().c_str(), listOf(item["shape"]).c_str(), bound.c_str());
  }
}

void printEntry(const Json &entry, const std::string &guards) {
  std::printf("entry %s\n", oneLine(entry["name"].get<std::string>()).c_str());
  if (!guards.empty())
    std::printf("  part of %s, called where %s\n", entry["group"].get<std::string>().c_str(), guards.c_str());
  printTensors("input", entry["inputs"]);
  printTensors("output", entry["outputs"]);
  printTensors("state", entry["states"]);
  std::vector<std::pair<size_t, std::string>> kernels;
  for (const auto &[name, count] : entry["kernels"].items())
    kernels.push_back({count.get<size_t>(), name});
  std::sort(kernels.begin(), kernels.end(),
            [](auto &a, auto &b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::printf("  launches: %zu of %zu kernels:", entry["launches"].size(), kernels.size());
  constexpr size_t shown = 8;
  for (size_t i = 0; i < std::min(kernels.size(), shown); ++i)
    std::printf(" %s x%zu", kernels[i].second.c_str(), kernels[i].first);
  std::printf("%s\n", kernels.size() > shown ? " ..." : "");
  const Json &memory = entry["memory"];
  std::printf("  workspace: %zu buffers", memory["workspace_buffers"].get<size_t>());
  if (memory["is_taken"].is_boolean() && !memory["is_taken"].get<bool>())
    std::printf(", not called with these sizes\n");
  else if (memory["workspace_bytes"].is_null())
    std::printf(", bytes depend on %s (give --dim)\n", listOf(memory["depends_on"]).c_str());
  else
    std::printf(", %zu bytes, %zu alive at once; %.6g MFLOP\n", memory["workspace_bytes"].get<size_t>(),
                memory["peak_live_bytes"].get<size_t>(), memory["flops"].get<double>() * 1e-6);
  for (const Json &item : entry["collectives"])
    std::printf("  %s '%s': %s over %s, sends %s bytes, receives %s\n", item["op"].get<std::string>().c_str(),
                item["site"].get<std::string>().c_str(), item["type"].get<std::string>().c_str(),
                item["axis"].get<std::string>().c_str(), item["sent"].get<std::string>().c_str(),
                item["received"].get<std::string>().c_str());
}

void printMemory(const Json &memory) {
  if (memory.contains("depends_on"))
    return std::printf("memory: depends on %s (give --dim)\n", listOf(memory["depends_on"]).c_str()), void();
  std::printf("memory: %.6g MB", memory["total_bytes"].get<double>() * 1e-6);
  const char *before = " (";
  for (const auto &[name, bytes] : memory.items())
    if (name != "total_bytes" && name != "scratch_per_thread" && bytes != 0) {
      std::printf("%s%s %.6g", before, name.c_str(), bytes.get<double>() * 1e-6);
      before = ", ";
    }
  std::printf("%s", *before == ',' ? ")" : "");
  if (memory["scratch_per_thread"] != 0)
    std::printf(", and %.6g for each thread", memory["scratch_per_thread"].get<double>() * 1e-6);
  std::printf("\n");
}

void print(const Json &json, const Manifest &manifest) {
  std::printf("model: %s, by %s\n", oneLine(manifest.model).c_str(), oneLine(manifest.compiler).c_str());
  for (const ConfigValue &value : manifest.config)
    std::printf("config: %s\n", oneLine(concat(value.name, " = ", value.value, " (", value.origin, ")")).c_str());
  for (const Json &variant : json["variants"]) {
    std::string lacks = listOf(variant["missing_here"]);
    std::printf("variant %s: %zu bits, needs %s; %s\n", variant["mcpu"].get<std::string>().c_str(),
                variant.value("vector_bits", size_t(0)), listOf(variant["features"]).c_str(),
                lacks.empty() ? "runs here" : ("this processor lacks " + lacks).c_str());
    std::printf("constants: %zu, %.6g MB\n", variant["constants"].size(),
                variant["constant_bytes"].get<double>() * 1e-6);
    printMemory(variant["memory"]);
  }
  size_t at = 0;
  for (const Json &entry : json["variants"][0]["entries"]) // variants differ in code and layout, not in signature
    printEntry(entry, guardsText(manifest.variants[0].entries[at++]));
}

void writeGraph(const Package &package, const Options &options) {
  auto endsWith = [&](const std::string &ending) {
    return options.graph.size() > ending.size() &&
           options.graph.compare(options.graph.size() - ending.size(), ending.size(), ending) == 0;
  };
  bool isSvg = endsWith(".svg");
  if (!isSvg && !endsWith(".dot"))
    fail(ErrorCode::InvalidArgument, "--graph: found '", options.graph, "', expected a file FILE.svg or FILE.dot");
  const std::vector<EntryInfo> &entries = package.manifest().variants[0].entries;
  const EntryInfo &entry = entries[package.entryIndex(options.entry)];
  std::string guards = guardsText(entry);
  Graph graph =
      buildGraph(entry, concat(package.manifest().model, ": ", entry.name, guards.empty() ? "" : " where ", guards));
  std::string text = isSvg ? graphAsSvg(graph) : graphAsDot(graph);
  AtomicFile file(options.graph);
  file.write(text.data(), text.size());
  file.commit();
}

} // namespace

int inspectCommand(const Options &options) {
  LoadOptions load;
  load.verify = !options.noVerify;
  load.openCode = false;
  std::shared_ptr<const Package> package = Package::load(options.package, load);
  Pins pins = parsePins(options.dims);
  std::set<std::string> legal;
  for (const VariantInfo &variant : package->manifest().variants)
    for (const EntryInfo &entry : variant.entries)
      for (const SymbolInfo &symbol : entry.symbols)
        if (symbol.kind == SymbolKind::Dim)
          legal.insert(symbol.name);
  for (const auto &[name, value] : pins)
    if (!legal.count(name))
      fail(ErrorCode::InvalidArgument, "no dimension '", name, "', expected one of ", listText(legal));
  if (!options.graph.empty())
    writeGraph(*package, options);
  Json json = describe(*package, pins);
  if (options.asJson)
    std::printf("%s\n", json.dump(2).c_str());
  else
    print(json, package->manifest());
  return 0;
}

} // namespace ds
