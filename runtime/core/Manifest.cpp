#include "runtime/core/Manifest.h"

#include "runtime/abi/ds_abi.h"
#include "runtime/core/JsonReader.h"

#include <algorithm>
#include <map>
#include <set>

namespace ds {
namespace {

constexpr int64_t formatVersion = 1, guardedVersion = 2; // the second has guards

template <typename Enum>
Enum readEnum(const JsonReader &json, std::initializer_list<std::pair<const char *, Enum>> values) {
  std::string text = json.string();
  std::string legal;
  for (const auto &[name, value] : values) {
    if (text == name)
      return value;
    legal += (legal.empty() ? "" : ", ") + std::string(name);
  }
  json.refuse("found '", text, "', expected one of ", legal);
}

ElementType readType(const JsonReader &json) {
  std::string name = json.string();
  if (auto type = typeFromName(name))
    return *type;
  json.refuse("unknown element type '", name,
              "', expected one of f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, "
              "u8, i1, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1, i4, u4, i2, u2");
}

bool isPlainFileName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Reads one entry. The order of the parts is that of their references: symbols first, then what is written in them.
class EntryReader {
public:
  EntryReader(const JsonReader &json, size_t constantCount) : json(json), constantCount(constantCount) {}

  EntryInfo run() {
    entry.name = json["name"].string();
    entry.group = json.has("group") ? json["group"].string() : entry.name;
    readSymbols();
    json["sizes"].forEach([&](const JsonReader &item) { entry.sizes.push_back(readExpr(item)); });
    json["inputs"].forEach([&](const JsonReader &item) { entry.inputs.push_back(readTensor(item, true)); });
    json["outputs"].forEach([&](const JsonReader &item) { entry.outputs.push_back(readTensor(item, false)); });
    checkElementSymbols();
    if (json.has("guards"))
      json["guards"].forEach([&](const JsonReader &item) {
        entry.guards.push_back({readExpr(item["condition"], false), item["holds"].boolean()});
      });
    json["constraints"].forEach([&](const JsonReader &item) { readConstraint(item); });
    json["states"].forEach([&](const JsonReader &item) { readState(item); });
    size_t launchCount = 0;
    json["launches"].forEach([&](const JsonReader &) { ++launchCount; });
    json["buffers"].forEach([&](const JsonReader &item) { readBuffer(item, launchCount); });
    json["launches"].forEach([&](const JsonReader &item) { readLaunch(item); });
    json["collectives"].forEach([&](const JsonReader &item) { readCollective(item); });
    checkBuffersOfSignature();
    return std::move(entry);
  }

private:
  SizeExpr readExpr(const JsonReader &item, bool mayUseComputed = true) {
    SizeExpr expr;
    if (item.isString()) {
      try {
        expr = SizeExpr::parse(item.string(), table);
      } catch (const Error &error) {
        item.refuse(error.what());
      }
    } else {
      expr = SizeExpr::constant(item.integer(0));
    }
    if (!mayUseComputed && entry.dependsOnComputed(expr))
      item.refuse("'", expr.text(), "' uses a computed symbol, expected what is known before the call");
    return expr;
  }

  SymbolicShape readShape(const JsonReader &item, bool mayUseComputed = true) {
    SymbolicShape shape;
    item.forEach([&](const JsonReader &dim) { shape.push_back(readExpr(dim, mayUseComputed)); });
    return shape;
  }

  void readSymbols() {
    json["symbols"].forEach([&](const JsonReader &item) {
      SymbolInfo symbol;
      symbol.name = item["name"].string();
      symbol.kind = readEnum<SymbolKind>(
          item["kind"],
          {{"dim", SymbolKind::Dim}, {"element", SymbolKind::Element}, {"computed", SymbolKind::Computed}});
      if (symbol.kind == SymbolKind::Element) {
        symbol.input = static_cast<uint32_t>(item["input"].integer(0, UINT32_MAX));
        symbol.index = static_cast<uint64_t>(item["index"].integer(0));
      }
      if (!addSymbol(item, symbol))
        item["name"].refuse("symbol '", symbol.name, "' is defined twice");
      entry.symbols.push_back(std::move(symbol));
    });
  }

  // An element is named after its input and its place there.
  bool addSymbol(const JsonReader &item, const SymbolInfo &symbol) {
    auto index = static_cast<uint32_t>(entry.symbols.size());
    if (symbol.kind != SymbolKind::Element)
      return table.named.emplace(symbol.name, index).second;
    std::string place = "[" + std::to_string(symbol.index) + "]";
    size_t length = symbol.name.size() - std::min(symbol.name.size(), place.size());
    if (symbol.name.substr(length) != place)
      item["name"].refuse("found '", symbol.name, "', expected the name of an input and '", place, "'");
    return table.elements.emplace(std::pair(symbol.name.substr(0, length), symbol.index), index).second;
  }

  void checkElementSymbols() {
    size_t at = 0;
    json["symbols"].forEach([&](const JsonReader &item) {
      const SymbolInfo &symbol = entry.symbols[at++];
      if (symbol.kind != SymbolKind::Element)
        return;
      item["input"].index(entry.inputs.size(), "inputs");
      if (!isInteger(entry.inputs[symbol.input].type))
        item["input"].refuse("input '", entry.inputs[symbol.input].name, "' is of type ",
                             typeName(entry.inputs[symbol.input].type), ", expected an integer type");
    });
  }

  TensorInfo readTensor(const JsonReader &item, bool isInput) {
    TensorInfo tensor;
    tensor.name = item["name"].string();
    tensor.type = readType(item["type"]);
    tensor.shape = readShape(item["shape"], !isInput);
    if (item.has("bound") && !item["bound"].isNull())
      tensor.bound = item["bound"].integer(1);
    for (const TensorInfo &other : isInput ? entry.inputs : entry.outputs)
      if (other.name == tensor.name)
        item["name"].refuse("'", tensor.name, "' is listed twice");
    return tensor;
  }

  void readConstraint(const JsonReader &item) {
    ConstraintInfo constraint;
    constraint.relation = readEnum<Relation>(
        item["relation"],
        {{"equal", Relation::Equal}, {"broadcast", Relation::Broadcast}, {"at-least", Relation::AtLeast}});
    constraint.lhs = readExpr(item["lhs"]);
    constraint.rhs = readExpr(item["rhs"]);
    constraint.where = item["where"].string();
    entry.constraints.push_back(std::move(constraint));
  }

  void readState(const JsonReader &item) {
    StateInfo state;
    state.name = item["name"].string();
    state.type = readType(item["type"]);
    state.shape = readShape(item["shape"], false);
    if (item.has("initial") && !item["initial"].isNull())
      state.initial = item["initial"].index(constantCount, "constants");
    if (item.has("statistic"))
      state.isStatistic = item["statistic"].boolean();
    for (const StateInfo &other : entry.states)
      if (other.name == state.name)
        item["name"].refuse("'", state.name, "' is listed twice");
    entry.states.push_back(std::move(state));
  }

  void readBuffer(const JsonReader &item, size_t launchCount) {
    BufferInfo buffer;
    buffer.role = readEnum<BufferRole>(item["role"], {{"constant", BufferRole::Constant},
                                                      {"input", BufferRole::Input},
                                                      {"output", BufferRole::Output},
                                                      {"state", BufferRole::State},
                                                      {"workspace", BufferRole::Workspace}});
    switch (buffer.role) {
    case BufferRole::Constant: buffer.index = item["index"].index(constantCount, "constants"); break;
    case BufferRole::Input: buffer.index = item["index"].index(entry.inputs.size(), "inputs"); break;
    case BufferRole::Output: buffer.index = item["index"].index(entry.outputs.size(), "outputs"); break;
    case BufferRole::State: buffer.index = item["index"].index(entry.states.size(), "states"); break;
    case BufferRole::Workspace:
      buffer.bytes = item["bytes"].index(entry.sizes.size(), "sizes");
      // An entry without launches may still pass workspace to collectives.
      buffer.first = item["first"].index(std::max<size_t>(launchCount, 1), "launches");
      buffer.last = item["last"].index(std::max<size_t>(launchCount, 1), "launches");
      if (buffer.last < buffer.first)
        item["last"].refuse("interval ends before it starts, found ", buffer.last, ", expected at least ",
                            buffer.first);
    }
    entry.buffers.push_back(buffer);
  }

  NodeWork readWork(const JsonReader &item) {
    NodeWork work;
    for (auto [key, text] :
         {std::pair("node", &work.node), std::pair("parameter", &work.parameter), std::pair("part", &work.part)})
      if (item.has(key))
        *text = item[key].string();
    work.op = item["op"].string();
    work.role = readEnum<WorkRole>(item["role"], {{"forward", WorkRole::Forward},
                                                  {"backward", WorkRole::Backward},
                                                  {"recompute", WorkRole::Recompute},
                                                  {"update", WorkRole::Update}});
    for (auto [key, size] :
         {std::pair("macs", &work.macs), std::pair("flops", &work.flops), std::pair("bytes", &work.bytes)})
      *size = item.has(key) ? readExpr(item[key]) : SizeExpr::constant(0);
    if (item.has("may_be_less"))
      work.mayBeLess = item["may_be_less"].boolean();
    return work;
  }

  void readLaunch(const JsonReader &item) {
    LaunchInfo launch;
    launch.kernel = item["kernel"].string();
    launch.site = item["site"].string();
    launch.flops = item.has("flops") ? readExpr(item["flops"]) : SizeExpr::constant(0);
    launch.arithmetic = item.has("arithmetic") ? item["arithmetic"].string() : "f32";
    item["operands"].forEach(
        [&](const JsonReader &operand) { launch.operands.push_back(operand.index(entry.buffers.size(), "buffers")); });
    if (item.has("reads")) {
      item["reads"].forEach([&](const JsonReader &bytes) {
        launch.reads.push_back(bytes.isNull() ? std::nullopt : std::optional(readExpr(bytes)));
      });
      if (launch.reads.size() != launch.operands.size())
        item["reads"].refuse("found ", launch.reads.size(), ", expected one for each of ", launch.operands.size(),
                             " operands");
    }
    if (item.has("results"))
      item["results"].forEach([&](const JsonReader &value) {
        LaunchResult result;
        result.buffer = value["buffer"].index(entry.buffers.size(), "buffers");
        result.value = value["value"].string();
        result.type = readType(value["type"]);
        result.shape = readShape(value["shape"]);
        if (value.has("writes"))
          result.writes = readExpr(value["writes"]);
        if (const BufferInfo &buffer = entry.buffers[result.buffer]; buffer.role == BufferRole::State)
          launch.writtenStates.push_back(buffer.index);
        launch.results.push_back(std::move(result));
      });
    if (item.has("scratch"))
      launch.scratch = item["scratch"].index(entry.sizes.size(), "sizes");
    if (item.has("work"))
      item["work"].forEach([&](const JsonReader &work) { launch.work.push_back(readWork(work)); });
    entry.launches.push_back(std::move(launch));
  }

  void readCollective(const JsonReader &item) {
    CollectiveInfo collective;
    collective.op = readEnum<const char *>(item["op"], {{"all_reduce", "all_reduce"}});
    collective.value = item["value"].string();
    collective.site = item["site"].string();
    collective.type = readType(item["type"]);
    collective.bytes = item.has("bytes") ? readExpr(item["bytes"]) : SizeExpr::constant(0);
    entry.collectives.push_back(std::move(collective));
  }

  // The code can only reach what has a buffer: an output or state without one would never be written.
  void checkBuffersOfSignature() {
    auto require = [&](BufferRole role, size_t index, const char *list, const std::string &name) {
      for (const BufferInfo &buffer : entry.buffers)
        if (buffer.role == role && buffer.index == index)
          return;
      json[list].refuse("'", name, "' has no buffer");
    };
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      require(BufferRole::Output, i, "outputs", entry.outputs[i].name);
    for (size_t i = 0; i < entry.states.size(); ++i)
      require(BufferRole::State, i, "states", entry.states[i].name);
  }

  const JsonReader json;
  size_t constantCount;
  SymbolTable table;
  EntryInfo entry;
};

ConstantInfo readConstant(const JsonReader &item) {
  ConstantInfo constant;
  constant.name = item["name"].string();
  constant.offset = static_cast<uint64_t>(item["offset"].integer(0));
  constant.bytes = static_cast<uint64_t>(item["bytes"].integer(0));
  constant.type = readType(item["type"]);
  item["shape"].forEach([&](const JsonReader &dim) { constant.shape.push_back(dim.integer(0)); });
  constant.layout = item.has("layout") ? item["layout"].string() : "dense";
  if (constant.offset % 64 != 0)
    item["offset"].refuse("found ", constant.offset, ", expected a multiple of 64");
  uint64_t dense = 0;
  try {
    dense = byteCount(constant.type, constant.shape);
  } catch (const Error &error) {
    item["shape"].refuse(error.what());
  }
  if (constant.layout == "dense" && dense != constant.bytes)
    item["bytes"].refuse("found ", constant.bytes, ", expected ", dense, " for a dense ", typeName(constant.type), " ",
                         listText(constant.shape));
  return constant;
}

// A caller gives the same inputs to all entries of a group, and takes the same outputs from them.
void checkSameSignature(const JsonReader &json, const EntryInfo &first, const EntryInfo &entry) {
  auto check = [&](const char *key, const std::vector<TensorInfo> &expected, const std::vector<TensorInfo> &found,
                   bool isInput) {
    if (found.size() != expected.size())
      json[key].refuse("found ", found.size(), ", expected ", expected.size(), " as in entry '", first.name,
                       "' of the same group");
    for (size_t i = 0; i < found.size(); ++i) {
      bool isSame = found[i].name == expected[i].name && found[i].type == expected[i].type;
      if (isInput && isSame && found[i].shape.size() == expected[i].shape.size())
        for (size_t axis = 0; axis < found[i].shape.size(); ++axis)
          isSame &= found[i].shape[axis].text() == expected[i].shape[axis].text();
      else
        isSame &= !isInput;
      if (!isSame)
        json[key].refuse("'", found[i].name, "' differs from '", expected[i].name, "' of entry '", first.name,
                         "' of the same group");
    }
  };
  check("inputs", first.inputs, entry.inputs, true);
  check("outputs", first.outputs, entry.outputs, false);
}

// Groups in the order of their first entries. Names of groups and of entries are asked for alike.
void makeGroups(const JsonReader &json, VariantInfo &variant) {
  std::map<std::string, size_t> numbers;
  size_t at = 0;
  json["entries"].forEach([&](const JsonReader &item) {
    EntryInfo &entry = variant.entries[at];
    auto [known, isNew] = numbers.emplace(entry.group, variant.groups.size());
    entry.groupIndex = known->second;
    if (isNew)
      variant.groups.push_back({entry.group, {}});
    else
      checkSameSignature(item, variant.entries[variant.groups[known->second].entries[0]], entry);
    variant.groups[known->second].entries.push_back(at++);
  });
  at = 0;
  json["entries"].forEach([&](const JsonReader &item) {
    const EntryInfo &entry = variant.entries[at++];
    if (entry.name != entry.group && numbers.count(entry.name))
      item["name"].refuse("'", entry.name, "' is the name of a group, which this entry is not in");
  });
}

VariantInfo readVariant(const JsonReader &json) {
  VariantInfo variant;
  variant.mcpu = json["mcpu"].string();
  variant.code = json["code"].string();
  if (!isPlainFileName(variant.code))
    json["code"].refuse("found '", variant.code, "', expected the name of a file in the package");
  json["features"].forEach([&](const JsonReader &item) { variant.features.push_back(item.string()); });
  variant.vectorBits = json.has("vector_bits") ? json["vector_bits"].integer(0, 1 << 20) : 0;
  json["constants"].forEach([&](const JsonReader &item) { variant.constants.push_back(readConstant(item)); });
  std::set<std::string> names;
  json["entries"].forEach([&](const JsonReader &item) {
    variant.entries.push_back(EntryReader(item, variant.constants.size()).run());
    if (!names.insert(variant.entries.back().name).second)
      item["name"].refuse("entry '", variant.entries.back().name, "' is listed twice");
  });
  makeGroups(json, variant);
  if (variant.entries.empty())
    json["entries"].refuse("found none, expected at least one entry");
  return variant;
}

} // namespace

bool EntryInfo::dependsOnComputed(const SizeExpr &expr) const {
  return std::any_of(expr.symbols().begin(), expr.symbols().end(),
                     [&](uint32_t symbol) { return symbols[symbol].kind == SymbolKind::Computed; });
}

Manifest readManifest(const std::string &text) {
  return annotated("manifest.json", [&] {
    nlohmann::json document;
    try {
      document = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception &error) {
      fail(ErrorCode::BadPackage, "not valid JSON: ", error.what());
    }
    JsonReader json(document, "");
    int64_t format = json["format"].integer();
    if (format != formatVersion && format != guardedVersion)
      json["format"].refuse("unsupported version, found ", format, ", expected ", formatVersion, " or ",
                            guardedVersion);
    int64_t abi = json["abi"].integer();
    if (abi != DS_ABI_VERSION)
      json["abi"].refuse("unsupported version, found ", abi, ", expected ", DS_ABI_VERSION);
    Manifest manifest;
    manifest.compiler = json["compiler"].string();
    manifest.model = json["model"].string();
    if (json.has("config"))
      json["config"].forEachMember([&](const std::string &name, const JsonReader &item) {
        manifest.config.push_back(
            {name, item["value"].isString() ? item["value"].string() : item["value"].shown(), item["origin"].string()});
      });
    if (json.has("parameters"))
      json["parameters"].forEach([&](const JsonReader &item) {
        manifest.parameters.push_back({item["name"].string(), item["node"].string(), item["elements"].integer(0)});
      });
    if (json.has("training")) {
      JsonReader training = json["training"];
      TrainingInfo info;
      info.config = training["config"].text();
      if (training.has("labels")) {
        info.labels = training["labels"].string();
        info.ignoredLabel = training["ignored_label"].integer();
        info.shiftsLabels = training["shifts_labels"].boolean();
      }
      if (training.has("classes"))
        info.classes = training["classes"].integer(1);
      if (training.has("tied"))
        training["tied"].forEach([&](const JsonReader &item) {
          info.tied.push_back({item["name"].string(), item["of"].string(), item["transposed"].boolean()});
        });
      if (training.has("layers"))
        training["layers"].forEach([&](const JsonReader &item) { info.layers.push_back(item.string()); });
      if (training.has("quantized"))
        training["quantized"].forEach([&](const JsonReader &item) {
          info.quantized.push_back({item["name"].string(), item["block"].integer(0, 1'000'000)});
        });
      manifest.training = std::move(info);
    }
    json["variants"].forEach([&](const JsonReader &item) { manifest.variants.push_back(readVariant(item)); });
    if (manifest.variants.empty())
      json["variants"].refuse("found none, expected at least one variant");
    return manifest;
  });
}

} // namespace ds
