#include "runtime/training/DataFields.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ds {

std::string quotedNames(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + inQuotes(names[i]);
  return text.empty() ? "none" : text;
}

FieldChecker::FieldChecker(const std::vector<TensorInfo> &inputs) : wanted(inputs) {
  if (inputs.empty())
    fail(ErrorCode::InvalidArgument, "the package has no inputs that data could be for");
  for (const TensorInfo &input : inputs)
    if (input.shape.empty())
      fail(ErrorCode::InvalidArgument, "input '", input.name, "' is a single number, expected a first axis of samples");
}

std::optional<int64_t> FieldChecker::fixedAxis(size_t input, size_t axis) const {
  const SymbolicShape &shape = wanted[input].shape;
  if (axis >= shape.size() || !shape[axis].isConstant())
    return std::nullopt;
  return shape[axis].evaluate({});
}

void FieldChecker::checkNames(const std::vector<std::string> &found, const char *what) const {
  std::vector<std::string> names, missing, unknown;
  for (const TensorInfo &input : wanted) {
    names.push_back(input.name);
    if (std::find(found.begin(), found.end(), input.name) == found.end())
      missing.push_back(input.name);
  }
  for (const std::string &name : found)
    if (std::find(names.begin(), names.end(), name) == names.end())
      unknown.push_back(name);
  if (!missing.empty())
    fail(ErrorCode::InvalidArgument, "has no ", what, " ", quotedNames(missing), ", found ", quotedNames(found));
  if (!unknown.empty())
    fail(ErrorCode::InvalidArgument, what, " ", quotedNames(unknown), " is for no input, expected ",
         quotedNames(names));
}

size_t FieldChecker::indexOf(const std::string &name) const {
  auto found = std::find_if(wanted.begin(), wanted.end(), [&](const TensorInfo &input) { return input.name == name; });
  return static_cast<size_t>(found - wanted.begin());
}

DataField FieldChecker::accept(size_t index, ElementType type, const Shape &row) {
  const TensorInfo &input = wanted[index];
  if (!mayHold(input.type, type)) {
    std::string legal;
    for (unsigned i = 0; i < numElementTypes; ++i)
      if (mayHold(input.type, static_cast<ElementType>(i)) && packedBits(static_cast<ElementType>(i)) >= 8)
        legal += std::string(legal.empty() ? "" : " ") + typeName(static_cast<ElementType>(i));
    fail(ErrorCode::ShapeMismatch, "'", input.name, "': found elements of ", typeName(type), ", expected ",
         typeName(input.type), ", or what it holds without loss: ", legal);
  }
  std::vector<std::string> expected; // all axes, as the package has them
  for (const SizeExpr &size : input.shape)
    expected.push_back(size.text());
  if (row.size() + 1 != input.shape.size())
    fail(ErrorCode::ShapeMismatch, "'", input.name, "': found samples of shape ", listText(row), ", expected ",
         input.shape.size() - 1, " axes after the first of ", listText(expected));
  for (size_t axis = 0; axis < row.size(); ++axis) {
    const SizeExpr &size = input.shape[axis + 1];
    std::optional<int64_t> fixed = fixedAxis(index, axis + 1);
    uint32_t symbol = 0;
    if (fixed && *fixed != row[axis])
      fail(ErrorCode::ShapeMismatch, "'", input.name, "': axis ", axis + 1, " has size ", row[axis], ", expected ",
           *fixed, " of ", listText(expected));
    if (!size.isSymbol(symbol))
      continue;
    auto [known, isNew] = symbols.emplace(size.text(), Known{row[axis], input.name});
    if (!isNew && known->second.size != row[axis])
      fail(ErrorCode::ShapeMismatch, "'", input.name, "': axis ", axis + 1, " has size ", row[axis], ", expected ",
           known->second.size, ": it is '", size.text(), "', as in '", known->second.input, "'");
  }
  return {input.name, input.type, row, input.bound, fixedAxis(index, 0)};
}

// The bits of integers that a float type has all of.
static int exactBits(ElementType type) {
  switch (type) {
  case ElementType::F64: return 53;
  case ElementType::F32: return 24;
  case ElementType::F16: return 11;
  case ElementType::BF16: return 8;
  default: return 0;
  }
}

bool mayHold(ElementType to, ElementType from) {
  if (to == from)
    return true;
  if (isInteger(to))
    return isInteger(from);
  if (isInteger(from))
    return exactBits(to) > 0;
  // Of f16 and bf16 neither has all values of the other.
  return exactBits(to) > exactBits(from) && exactBits(from) > 0 &&
         !(to == ElementType::F16 && from == ElementType::BF16);
}

static void convertInteger(ElementType from, const void *source, ElementType to, void *data, size_t index) {
  int64_t value = loadInteger(from, source, index);
  // loadInteger has no way to say what only unsigned numbers of 64 bits are, and doubles end at 53.
  uint64_t bits = 0;
  if (from == ElementType::U64)
    std::memcpy(&bits, static_cast<const char *>(source) + index * sizeof(bits), sizeof(bits));
  bool isWide = bits >> 63 != 0;
  bool isRefused = isWide || (to == ElementType::U64 && value < 0);
  if (to == ElementType::I64 || to == ElementType::U64) {
    std::memcpy(static_cast<char *>(data) + index * sizeof(value), &value, sizeof(value));
  } else {
    storeDouble(to, data, index, static_cast<double>(value));
    isRefused |= loadInteger(to, data, index) != value;
  }
  if (isRefused)
    fail(ErrorCode::ShapeMismatch, "element ", index, ": found ", isWide ? "2^63 or more" : std::to_string(value),
         ", which ", typeName(to), " cannot hold");
}

void convertExactly(ElementType from, const void *source, ElementType to, void *data, int64_t count) {
  if (from == to) {
    std::memcpy(data, source, static_cast<size_t>(count) * typeSize(from));
    return;
  }
  if (from == ElementType::U8 && to == ElementType::F32) { // images: most of the time of a step of a small model
    for (int64_t i = 0; i < count; ++i)
      static_cast<float *>(data)[i] = static_cast<const uint8_t *>(source)[i];
    return;
  }
  if (!isInteger(from)) {
    convertElements(from, source, to, data, count);
    return;
  }
  if (isInteger(to)) {
    for (int64_t i = 0; i < count; ++i)
      convertInteger(from, source, to, data, static_cast<size_t>(i));
    return;
  }
  int64_t limit = int64_t(1) << exactBits(to);
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i);
    int64_t value = loadInteger(from, source, at);
    if (value < -limit || value > limit)
      fail(ErrorCode::ShapeMismatch, "element ", i, ": found ", value, ", expected -", limit, " to ", limit, ", which ",
           typeName(to), " holds exactly");
    storeDouble(to, data, at, static_cast<double>(value));
  }
}

} // namespace ds
