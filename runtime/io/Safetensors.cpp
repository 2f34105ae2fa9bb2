#include "runtime/io/Safetensors.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/io/StrictJson.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace ds {
namespace {

using nlohmann::json;

constexpr uint64_t maxHeader = 100'000'000; // as in the format's own library
constexpr size_t lengthBytes = 8, alignment = 64;
constexpr const char *metadataName = "__metadata__";

struct TypeName {
  ElementType type;
  const char *name;
};

constexpr TypeName typeNames[] = {{ElementType::F64, "F64"},        {ElementType::F32, "F32"},
                                  {ElementType::F16, "F16"},        {ElementType::BF16, "BF16"},
                                  {ElementType::I64, "I64"},        {ElementType::I32, "I32"},
                                  {ElementType::I16, "I16"},        {ElementType::I8, "I8"},
                                  {ElementType::U64, "U64"},        {ElementType::U32, "U32"},
                                  {ElementType::U16, "U16"},        {ElementType::U8, "U8"},
                                  {ElementType::I1, "BOOL"},        {ElementType::F8E4M3FN, "F8_E4M3"},
                                  {ElementType::F8E5M2, "F8_E5M2"}, {ElementType::F8E4M3FNUZ, "F8_E4M3FNUZ"},
                                  {ElementType::F8E8M0, "F8_E8M0"}, {ElementType::F8E5M2FNUZ, "F8_E5M2FNUZ"}};

const char *nameOf(ElementType type) {
  for (const TypeName &known : typeNames)
    if (known.type == type)
      return known.name;
  return nullptr;
}

template <typename... Parts> [[noreturn]] void refuse(const Parts &...what) { fail(ErrorCode::BadFile, what...); }

std::string shown(const json &value) {
  std::string text = value.dump();
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

ElementType parseType(const json &value) {
  if (value.is_string())
    for (const TypeName &known : typeNames)
      if (value.get_ref<const std::string &>() == known.name)
        return known.type;
  std::string legal;
  for (const TypeName &known : typeNames)
    legal += std::string(legal.empty() ? "" : " ") + known.name;
  refuse("dtype ", shown(value), " is not supported, expected one of ", legal);
}

// A list of integers of 0 to 2^63 - 1.
std::vector<int64_t> parseSizes(const json &value, const char *what) {
  std::vector<int64_t> sizes;
  if (!value.is_array())
    refuse(what, ": found ", shown(value), ", expected a list");
  for (const json &size : value) {
    // Read as signed wherever it fits, so that a number that is only unsigned does not.
    if (!size.is_number_integer() || size.is_number_unsigned() || size.get<int64_t>() < 0)
      refuse(what, ": found ", shown(size), ", expected an integer of 0 to 2^63 - 1");
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

struct Entry {
  TensorSource::Item item;
  uint64_t begin, end;
};

Entry parseEntry(const std::string &name, const json &value) {
  if (!value.is_object())
    refuse("found ", shown(value), ", expected an object");
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key))
      refuse("has no ", key);
  if (value.size() != 3)
    refuse("has other members than dtype, shape and data_offsets");
  ElementType type = parseType(value["dtype"]);
  Shape shape = parseSizes(value["shape"], "shape");
  std::vector<int64_t> range = parseSizes(value["data_offsets"], "data_offsets");
  if (range.size() != 2 || range[0] > range[1])
    refuse("data_offsets: found ", shown(value["data_offsets"]), ", expected [begin, end]");
  size_t bytes = byteCount(type, shape);
  if (static_cast<uint64_t>(range[1] - range[0]) != bytes)
    refuse("data_offsets cover ", range[1] - range[0], " bytes, expected ", bytes, " for ", typeName(type), " ",
           listText(shape));
  return {{name, type, std::move(shape)}, static_cast<uint64_t>(range[0]), static_cast<uint64_t>(range[1])};
}

SafetensorsMetadata parseMetadata(const json &value) {
  if (!value.is_object())
    refuse("found ", shown(value), ", expected an object");
  SafetensorsMetadata metadata;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!it.value().is_string())
      refuse(inQuotes(it.key()), ": found ", shown(it.value()), ", expected a string");
    metadata[it.key()] = it.value().get<std::string>();
  }
  return metadata;
}

uint64_t readLength(const uint8_t *data) {
  uint64_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<uint64_t>(data[i]) << (8 * i);
  return length;
}

} // namespace

SafetensorsReader::SafetensorsReader(const std::string &path) : path(path), file(path) {
  annotated(path, [&] { readHeader(); });
}

void SafetensorsReader::readHeader() {
  if (file.size() < lengthBytes)
    refuse("not a safetensors file, found ", file.size(), " bytes, expected at least ", lengthBytes, " (truncated?)");
  uint64_t length = readLength(file.data());
  if (length > maxHeader)
    refuse("header too long, found ", length, " bytes, expected at most ", maxHeader);
  if (length > file.size() - lengthBytes)
    refuse("header of ", length, " bytes, found only ", file.size() - lengthBytes, " (truncated?)");
  header = lengthBytes + static_cast<size_t>(length);
  std::string_view text(reinterpret_cast<const char *>(file.data()) + lengthBytes, static_cast<size_t>(length));
  if (text.empty() || text[0] != '{')
    refuse("header does not begin with '{'");
  json document = annotated("header", [&] { return parseStrictJson(text); });
  std::vector<Entry> entries;
  for (auto it = document.begin(); it != document.end(); ++it) {
    if (it.key() == metadataName)
      extra = annotated(metadataName, [&] { return parseMetadata(it.value()); });
    else
      entries.push_back(annotated(inQuotes(it.key()), [&] { return parseEntry(it.key(), it.value()); }));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t at = 0, available = file.size() - header;
  for (Entry &entry : entries) {
    if (entry.begin != at)
      refuse(inQuotes(entry.item.name), ": ",
             entry.begin < at ? "overlaps the tensor before it" : "leaves a hole before it", ", found offset ",
             entry.begin, ", expected ", at);
    at = entry.end;
    if (at > available)
      refuse(inQuotes(entry.item.name), ": ends at byte ", at, " of the data, found only ", available, " (truncated?)");
    offsets.push_back(header + entry.begin);
    list.push_back(std::move(entry.item));
  }
  if (at != available)
    refuse("found ", available - at, " bytes after the last tensor, expected none");
}

void SafetensorsReader::check(size_t item, ElementType as) const {
  if (as == list[item].type)
    return;
  Tensor scratch(as, list[item].shape);
  read(item, as, scratch.data());
}

void SafetensorsReader::read(size_t item, ElementType as, void *data) const {
  const auto &[name, type, shape] = list[item];
  const uint8_t *from = file.data() + offsets[item];
  if (as == type)
    std::memcpy(data, from, byteCount(type, shape));
  else
    annotated(path + ": " + inQuotes(name),
              [&, type = type, &shape = shape] { convertElements(type, from, as, data, elementCount(shape)); });
}

ElementType safetensorsType(ElementType type) {
  if (nameOf(type))
    return type;
  return isFloat(type) || !isSigned(type) ? ElementType::U8 : ElementType::I8;
}

void writeSafetensors(const std::string &path, const std::vector<NamedView> &tensors,
                      const SafetensorsMetadata &metadata) {
  writeSafetensors(path, tensors, metadata, std::numeric_limits<int64_t>::max(), [](size_t, uint64_t, uint64_t) {});
}

void writeSafetensors(const std::string &path, const std::vector<NamedView> &tensors,
                      const SafetensorsMetadata &metadata, uint64_t pieceBytes, const PieceWritten &written) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    size_t sizeA = typeSize(tensors[a].view.type), sizeB = typeSize(tensors[b].view.type);
    return sizeA != sizeB ? sizeA > sizeB : tensors[a].name < tensors[b].name;
  });
  json document = json::object();
  if (!metadata.empty())
    document[metadataName] = metadata;
  uint64_t at = 0;
  for (size_t i : order) {
    const auto &[name, view] = tensors[i];
    if (name == metadataName || document.contains(name))
      fail(ErrorCode::InvalidArgument, path, ": tensor ", inQuotes(name), ": ",
           name == metadataName ? "the format keeps this name for itself" : "occurs twice");
    uint64_t end = at + view.bytes();
    document[name] = {
        {"dtype", nameOf(safetensorsType(view.type))}, {"shape", view.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = annotated(path, [&] { return writeStrictJson(document); });
  text += std::string((alignment - (lengthBytes + text.size()) % alignment) % alignment, ' ');
  if (text.size() > maxHeader)
    fail(ErrorCode::InvalidArgument, path, ": the header needs ", text.size(), " bytes, the format has at most ",
         maxHeader);
  uint8_t length[lengthBytes];
  for (size_t i = 0; i < lengthBytes; ++i)
    length[i] = static_cast<uint8_t>(uint64_t(text.size()) >> (8 * i));
  AtomicFile file(path);
  file.write(length, lengthBytes);
  file.write(text.data(), text.size());
  for (size_t i : order) {
    const TensorView &view = tensors[i].view;
    for (uint64_t begin = 0, end = 0; begin < view.bytes(); begin = end) {
      end = begin + std::min<uint64_t>(pieceBytes, view.bytes() - begin);
      file.write(static_cast<const uint8_t *>(view.data) + begin, end - begin);
      written(i, begin, end);
    }
  }
  file.commit();
}

} // namespace ds
