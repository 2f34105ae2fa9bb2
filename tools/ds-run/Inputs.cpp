#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Messages.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/TensorProto.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

namespace ds {
namespace {

// A counter-based generator (splitmix64): element i depends on seed and i only.
uint64_t randomBits(uint64_t seed, uint64_t counter) {
  uint64_t z = seed * 0xd1342543de82ef95u + counter * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; } // in (0, 1)

bool endsWith(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

Tensor readTensorFile(const std::string &path) {
  if (endsWith(path, ".npy"))
    return readNpy(path);
  if (endsWith(path, ".pb"))
    return readTensorProto(path).tensor;
  fail(ErrorCode::InvalidArgument, path, ": unknown kind of file, expected .npy or .pb");
}

// Files of wider elements stand for types that numpy lacks: f32 for the narrow floats, 8-bit integers for narrower
// ones, whose numbers must fit.
Tensor adapt(Tensor tensor, const TensorInfo &info) {
  if (npyType(info.type) == info.type || tensor.getType() != npyType(info.type))
    return tensor;
  return annotated("input '" + info.name + "'", [&] { return tensor.converted(info.type); });
}

size_t inputIndex(const EntryInfo &entry, const std::string &name, const std::string &from, ErrorCode code) {
  std::vector<std::string> legal;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    if (entry.inputs[i].name == name)
      return i;
    legal.push_back(entry.inputs[i].name);
  }
  fail(code, from, ": no input '", name, "', expected one of ", listText(legal));
}

using Slots = std::vector<std::optional<Tensor>>;

void readFolder(const EntryInfo &entry, const std::string &folder, Slots &slots) {
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    std::string name = entry.inputs[i].name;
    std::replace(name.begin(), name.end(), '/', '_');
    for (const std::string &file : {name + ".npy", name + ".pb", "input_" + std::to_string(i) + ".pb"})
      if (!slots[i] && isThere(folder + "/" + file))
        slots[i] = adapt(readTensorFile(folder + "/" + file), entry.inputs[i]);
  }
}

void readNpzInputs(const EntryInfo &entry, const std::string &path, Slots &slots) {
  for (NamedTensor &item : readNpz(path)) {
    size_t index = inputIndex(entry, item.name, path, ErrorCode::BadFile);
    slots[index] = adapt(std::move(item.tensor), entry.inputs[index]);
  }
}

Shape shapeOf(const SymbolicShape &shape, const std::vector<int64_t> &values, const std::vector<bool> &known,
              const EntryInfo &entry) {
  for (const SizeExpr &dim : shape)
    for (uint32_t symbol : dim.symbols())
      if (!known[symbol] && entry.symbols[symbol].kind == SymbolKind::Dim)
        fail(ErrorCode::UnboundDimension, "dimension '", entry.symbols[symbol].name,
             "' has no value, give it with --dim ", entry.symbols[symbol].name, "=VALUE");
  return evaluateShape(shape, values);
}

// A number given for an input of higher rank fills it.
Tensor fill(const Tensor &scalar, const Shape &shape) {
  Tensor tensor(scalar.getType(), shape);
  size_t width = typeSize(scalar.getType());
  for (int64_t i = 0; i < tensor.count(); ++i)
    std::memcpy(tensor.data() + static_cast<size_t>(i) * width, scalar.data(), width);
  return tensor;
}

// Completes what is missing. Dimensions follow from pins and from the inputs that are there; element symbols from
// integer inputs, which are therefore made first.
void completeInputs(const EntryInfo &entry, const Pins &pins, uint64_t seed, const std::map<size_t, Tensor> &scalars,
                    Slots &slots) {
  std::vector<bool> known;
  std::vector<int64_t> values = bindPins(entry, pins, known);
  for (size_t i = 0; i < slots.size(); ++i)
    for (size_t axis = 0; slots[i] && axis < std::min(slots[i]->getShape().size(), entry.inputs[i].shape.size());
         ++axis) {
      uint32_t symbol = 0;
      if (entry.inputs[i].shape[axis].isSymbol(symbol) && !known[symbol]) {
        values[symbol] = slots[i]->getShape()[axis];
        known[symbol] = true;
      }
    }
  auto usesElements = [&](const TensorInfo &info) {
    for (const SizeExpr &dim : info.shape)
      for (uint32_t symbol : dim.symbols())
        if (entry.symbols[symbol].kind == SymbolKind::Element)
          return true;
    return false;
  };
  for (bool second : {false, true}) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] || usesElements(entry.inputs[i]) != second)
        continue;
      Shape shape = shapeOf(entry.inputs[i].shape, values, known, entry);
      auto scalar = scalars.find(i);
      slots[i] = scalar != scalars.end() ? fill(scalar->second, shape)
                                         : randomTensor(entry.inputs[i], shape, seed * 1000003 + i);
    }
    for (size_t s = 0; s < values.size(); ++s) {
      const SymbolInfo &symbol = entry.symbols[s];
      if (symbol.kind != SymbolKind::Element || !slots[symbol.input] ||
          slots[symbol.input]->count() <= static_cast<int64_t>(symbol.index))
        continue;
      values[s] = loadInteger(slots[symbol.input]->getType(), slots[symbol.input]->data(), symbol.index);
    }
  }
}

void collectJson(const nlohmann::json &value, size_t depth, Shape &shape, std::vector<const nlohmann::json *> &numbers,
                 const std::string &text) {
  if (!value.is_array()) {
    if (depth != shape.size() || (!value.is_number() && !value.is_boolean()))
      fail(ErrorCode::InvalidArgument, "'", text, "' is not a number or a regular list of numbers");
    numbers.push_back(&value);
    return;
  }
  if (depth == shape.size() && numbers.empty())
    shape.push_back(static_cast<int64_t>(value.size()));
  if (depth >= shape.size() || shape[depth] != static_cast<int64_t>(value.size()))
    fail(ErrorCode::InvalidArgument, "'", text, "' is not a regular list of numbers");
  for (const nlohmann::json &item : value)
    collectJson(item, depth + 1, shape, numbers, text);
}

/// Whether a type of 64 bits holds the integer; beyond it is clamped.
bool holdsExactly(ElementType type, const nlohmann::json &number) {
  if (type == ElementType::U64)
    return number.is_number_unsigned();
  bool isBeyond = number.is_number_unsigned() && number.get<uint64_t>() > INT64_MAX;
  return type == ElementType::I64 && number.is_number_integer() && !isBeyond;
}

} // namespace

Tensor randomTensor(const TensorInfo &info, const Shape &shape, uint64_t seed) {
  Tensor tensor(info.type, shape);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t counter = static_cast<uint64_t>(i);
    if (isFloat(info.type)) {
      double radius = std::sqrt(-2 * std::log(uniform(randomBits(seed, 2 * counter))));
      double angle = 6.283185307179586 * uniform(randomBits(seed, 2 * counter + 1));
      storeDouble(info.type, tensor.data(), static_cast<size_t>(i), radius * std::cos(angle));
      continue;
    }
    uint64_t limit = info.bound && info.type != ElementType::I1 ? static_cast<uint64_t>(*info.bound) : 2;
    storeDouble(info.type, tensor.data(), static_cast<size_t>(i),
                static_cast<double>(randomBits(seed, counter) % limit));
  }
  return tensor;
}

Tensor parseValue(const std::string &text, ElementType type) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded())
    fail(ErrorCode::InvalidArgument, "'", text, "' is not a number or a list such as [[1, 2], [3, 4]]");
  Shape shape;
  std::vector<const nlohmann::json *> numbers;
  collectJson(json, 0, shape, numbers, text);
  Tensor tensor(type, shape);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const nlohmann::json &given = *numbers[i];
    double number = given.is_boolean() ? given.get<bool>() : given.get<double>();
    if (isInteger(type) && number != std::floor(number))
      fail(ErrorCode::InvalidArgument, "'", text, "' holds ", number, ", expected integers (", typeName(type), ")");
    storeDouble(type, tensor.data(), i, number);
    // Integers of more than 53 bits do not survive a double.
    if (holdsExactly(type, given)) {
      auto exact = given.get<uint64_t>(); // in two's complement
      std::memcpy(tensor.data() + i * sizeof(exact), &exact, sizeof(exact));
    }
  }
  return tensor;
}

std::string forRank(const std::string &text, unsigned rank) {
  const std::string key = "{rank}";
  std::string result = text;
  for (size_t at = result.find(key); at != std::string::npos; at = result.find(key, at))
    result.replace(at, key.size(), std::to_string(rank));
  return result;
}

std::vector<TensorView> viewsOf(const std::vector<Tensor> &tensors) {
  std::vector<TensorView> views;
  for (const Tensor &tensor : tensors)
    views.push_back(tensor.view());
  return views;
}

std::vector<Tensor> readTestData(const std::string &folder, const char *prefix, size_t expected) {
  auto file = [&](size_t i) { return folder + "/" + prefix + "_" + std::to_string(i) + ".pb"; };
  size_t found = 0;
  while (isThere(file(found)))
    ++found;
  if (found != expected)
    fail(ErrorCode::BadFile, folder, ": found ", found, " files ", prefix, "_*.pb, expected ", expected);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < found; ++i)
    tensors.push_back(readTensorProto(file(i)).tensor);
  return tensors;
}

std::vector<Tensor> gatherInputs(const EntryInfo &entry, const Options &options, const Pins &pins, unsigned rank,
                                 std::vector<std::string> *madeUp) {
  Slots slots(entry.inputs.size());
  std::map<size_t, Tensor> scalars;
  if (!options.inputsFrom.empty()) {
    std::string from = forRank(options.inputsFrom, rank);
    if (isFolder(from))
      readFolder(entry, from, slots);
    else
      readNpzInputs(entry, from, slots);
  }
  for (const std::string &item : options.inputs) {
    size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
      fail(ErrorCode::InvalidArgument, "--input: found '", item, "', expected NAME=VALUE or NAME=@FILE");
    size_t index = inputIndex(entry, item.substr(0, equals), "--input", ErrorCode::InvalidArgument);
    std::string value = forRank(item.substr(equals + 1), rank);
    const TensorInfo &info = entry.inputs[index];
    if (value[0] == '@') {
      slots[index] = adapt(readTensorFile(value.substr(1)), info);
      continue;
    }
    Tensor parsed = annotated("--input " + info.name, [&] { return parseValue(value, info.type); });
    if (parsed.getShape().empty() && !info.shape.empty())
      scalars[index] = std::move(parsed);
    else
      slots[index] = std::move(parsed);
  }
  bool isAnyGiven = !options.inputs.empty() || !options.inputsFrom.empty();
  for (size_t i = 0; i < slots.size(); ++i)
    if (!slots[i] && !scalars.count(i) && isAnyGiven && !options.seed)
      fail(ErrorCode::InvalidArgument, "input '", entry.inputs[i].name, "' is not given (--seed=N makes it random)");
  for (size_t i = 0; madeUp && i < slots.size(); ++i)
    if (!slots[i] && !scalars.count(i))
      madeUp->push_back(entry.inputs[i].name);
  completeInputs(entry, pins, options.seed.value_or(0) + (uint64_t(rank) << 32), scalars, slots);
  std::vector<Tensor> tensors;
  for (auto &slot : slots)
    tensors.push_back(std::move(*slot));
  return tensors;
}

void restoreStates(Session &session, const Options &options, unsigned rank) {
  if (options.stateIn.empty())
    return;
  annotated("--state-in", [&] {
    NpzReader file(forRank(options.stateIn, rank));
    session.withStates([&](StateStore &states) { states.restore(file); });
  });
}

void noteRandomInputs(const std::vector<std::string> &madeUp, const Options &options) {
  bool isAskedFor = options.seed && options.inputs.empty() && options.inputsFrom.empty();
  if (madeUp.empty() || isAskedFor)
    return;
  std::string names;
  for (const std::string &name : madeUp)
    names += (names.empty() ? "'" : ", '") + name + "'";
  printMessage(madeUp.size() == 1 ? "input " : "inputs ", names, ": random numbers (seed ", options.seed.value_or(0),
               "); give ", madeUp.size() == 1 ? "" : "--inputs or ", "--input ", madeUp.front(), "=...");
}

} // namespace ds
