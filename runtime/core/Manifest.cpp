#include "runtime/core/Manifest.h"

#include "runtime/abi/ds_abi.h"
#include "runtime/core/ManifestEntry.h"

#include <algorithm>
#include <map>
#include <set>

namespace ds {
namespace {

constexpr int64_t formatVersion = 1, guardedVersion = 2; // the second has guards

bool isPlainFileName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

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

UnitInfo readUnit(const JsonReader &item, const std::vector<ConstantInfo> &constants) {
  UnitInfo unit;
  unit.name = item["name"].string();
  unit.block = item["block"].integer(1, 1 << 20);
  unit.elements = item["elements"].integer(0, int64_t(1) << 48);
  if (item.has("rounded"))
    unit.rounded = readEnum<ElementType>(item["rounded"], {{"bf16", ElementType::BF16}, {"f16", ElementType::F16}});
  int64_t end = 0;
  item["tensors"].forEach([&](const JsonReader &place) {
    UnitTensor tensor;
    tensor.name = place["name"].string();
    tensor.offset = place["offset"].integer(0, int64_t(1) << 48);
    place["shape"].forEach([&](const JsonReader &dim) { tensor.shape.push_back(dim.integer(0)); });
    if (place.has("initial")) {
      tensor.initial = place["initial"].index(constants.size(), "constants");
      if (constants[*tensor.initial].shape != tensor.shape)
        place["shape"].refuse("found ", listText(tensor.shape), ", expected ",
                              listText(constants[*tensor.initial].shape), ", that of its first value");
    }
    if (tensor.offset < end || tensor.offset % unit.block != 0)
      place["offset"].refuse("found ", tensor.offset, ", expected a multiple of ", unit.block, " from ", end, " on");
    try {
      end = tensor.offset + elementCount(tensor.shape);
    } catch (const Error &error) {
      place["shape"].refuse(error.what());
    }
    unit.tensors.push_back(std::move(tensor));
  });
  if (unit.elements < end || unit.elements % unit.block != 0)
    item["elements"].refuse("found ", unit.elements, ", expected a multiple of ", unit.block, " from ", end, " on");
  return unit;
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

bool isSameTensor(const StateInfo &a, const StateInfo &b) {
  bool isSame = a.type == b.type && a.shape.size() == b.shape.size();
  for (size_t axis = 0; isSame && axis < a.shape.size(); ++axis)
    isSame = a.shape[axis].isConstant() && a.shape[axis].evaluate({}) == b.shape[axis].evaluate({}); // of a unit's
  return isSame;
}

// An entry that is compiled without units has tensors that lie in one as states of its own: whichever entry meets such
// a state first, it has one memory.
void shareParts(VariantInfo &variant) {
  std::map<std::string, StateInfo> inUnits;
  for (const EntryInfo &entry : variant.entries)
    for (const StateInfo &state : entry.states)
      if (state.part == StatePart::Tensor)
        inUnits.emplace(state.name, state);
  for (EntryInfo &entry : variant.entries)
    for (StateInfo &state : entry.states)
      if (auto known = inUnits.find(state.name);
          known != inUnits.end() && state.part == StatePart::Own && isSameTensor(state, known->second)) {
        state.part = StatePart::Tensor;
        state.unit = known->second.unit;
        state.suffix = known->second.suffix;
      }
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
  if (json.has("units"))
    json["units"].forEach([&](const JsonReader &item) { variant.units.push_back(readUnit(item, variant.constants)); });
  std::set<std::string> names;
  json["entries"].forEach([&](const JsonReader &item) {
    variant.entries.push_back(readEntry(item, variant.constants.size(), variant.units));
    if (!names.insert(variant.entries.back().name).second)
      item["name"].refuse("entry '", variant.entries.back().name, "' is listed twice");
  });
  shareParts(variant);
  makeGroups(json, variant);
  if (variant.entries.empty())
    json["entries"].refuse("found none, expected at least one entry");
  return variant;
}

} // namespace

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
