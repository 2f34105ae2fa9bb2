// Turns typed fields into little-endian bytes. Which field a type uses, and how narrow types share
// `int32_data`, is defined by the comments of TensorProto: a 4-bit or 2-bit tensor stores one packed
// byte per entry, float16 and float8 their bit patterns.

#include "frontends/onnx/reader/TypedFields.h"

#include <cstring>

using namespace llvm;
using ::onnx::TensorProto;

namespace deepstride::onnx {

bool hasTypedFields(const TensorProto &tensor) {
  return tensor.float_data_size() || tensor.int32_data_size() || tensor.string_data_size() ||
         tensor.int64_data_size() || tensor.double_data_size() || tensor.uint64_data_size();
}

static Error expectEntries(const char *field, uint64_t expected, uint64_t found) {
  if (expected == found)
    return Error::success();
  return refuse(Twine("expected ") + Twine(expected) + " entries in " + field + " for its dimensions, found " +
                Twine(found));
}

/// Entries that are stored with their full width.
template <typename Entries>
static Error copyEntries(const char *field, const Entries &entries, uint64_t expected, std::string &bytes) {
  if (Error error = expectEntries(field, expected, entries.size()))
    return error;
  if (expected)
    bytes.assign(reinterpret_cast<const char *>(entries.data()), expected * sizeof(*entries.data()));
  return Error::success();
}

/// Entries wider than the `width` bytes that they stand for.
template <typename Entries>
static Error narrowEntries(const char *field, const Entries &entries, uint64_t expected, unsigned width,
                           std::string &bytes) {
  if (Error error = expectEntries(field, expected, entries.size()))
    return error;
  bytes.reserve(expected * width);
  for (auto entry : entries) {
    auto value = static_cast<int64_t>(entry);
    int64_t span = int64_t{1} << (8 * width);
    if (value < -span / 2 || value >= span)
      return refuse(Twine("expected entries of ") + Twine(8 * width) + " bits in " + field + ", found " + Twine(value));
    for (unsigned byte = 0; byte < width; ++byte)
      bytes.push_back(static_cast<char>(value >> (8 * byte)));
  }
  return Error::success();
}

Error decodeTypedFields(const TensorProto &tensor, const ElementKind &element, uint64_t elements, std::string &bytes) {
  switch (element.code) {
  case TensorProto::FLOAT: return copyEntries("float_data", tensor.float_data(), elements, bytes);
  case TensorProto::COMPLEX64: return copyEntries("float_data", tensor.float_data(), 2 * elements, bytes);
  case TensorProto::DOUBLE: return copyEntries("double_data", tensor.double_data(), elements, bytes);
  case TensorProto::COMPLEX128: return copyEntries("double_data", tensor.double_data(), 2 * elements, bytes);
  case TensorProto::INT64: return copyEntries("int64_data", tensor.int64_data(), elements, bytes);
  case TensorProto::UINT64: return copyEntries("uint64_data", tensor.uint64_data(), elements, bytes);
  case TensorProto::UINT32: return narrowEntries("uint64_data", tensor.uint64_data(), elements, 4, bytes);
  case TensorProto::INT32: return copyEntries("int32_data", tensor.int32_data(), elements, bytes);
  default: break;
  }
  if (element.bits < 8)
    return narrowEntries("int32_data", tensor.int32_data(), (elements * element.bits + 7) / 8, 1, bytes);
  return narrowEntries("int32_data", tensor.int32_data(), elements, element.bits / 8, bytes);
}

} // namespace deepstride::onnx
