// Loads a model and finds the elements of its tensors: in the protobuf, in a range of the model
// file that was kept out of the protobuf, or in external data (ExternalData.cpp). Every length is
// checked against dims x element size and against the file.

#include "frontends/onnx/reader/ModelFile.h"

#include "frontends/onnx/reader/TypedFields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

#include <google/protobuf/io/coded_stream.h>

using namespace llvm;
using ::onnx::TensorProto;

namespace deepstride::onnx {

static const ElementKind elementKinds[] = {
    {TensorProto::FLOAT, "float", 32},
    {TensorProto::UINT8, "uint8", 8},
    {TensorProto::INT8, "int8", 8},
    {TensorProto::UINT16, "uint16", 16},
    {TensorProto::INT16, "int16", 16},
    {TensorProto::INT32, "int32", 32},
    {TensorProto::INT64, "int64", 64},
    {TensorProto::STRING, "string", 0},
    {TensorProto::BOOL, "bool", 8},
    {TensorProto::FLOAT16, "float16", 16},
    {TensorProto::DOUBLE, "double", 64},
    {TensorProto::UINT32, "uint32", 32},
    {TensorProto::UINT64, "uint64", 64},
    {TensorProto::COMPLEX64, "complex64", 64},
    {TensorProto::COMPLEX128, "complex128", 128},
    {TensorProto::BFLOAT16, "bfloat16", 16},
    {TensorProto::FLOAT8E4M3FN, "float8e4m3fn", 8},
    {TensorProto::FLOAT8E4M3FNUZ, "float8e4m3fnuz", 8},
    {TensorProto::FLOAT8E5M2, "float8e5m2", 8},
    {TensorProto::FLOAT8E5M2FNUZ, "float8e5m2fnuz", 8},
    {TensorProto::UINT4, "uint4", 4},
    {TensorProto::INT4, "int4", 4},
    {TensorProto::FLOAT4E2M1, "float4e2m1", 4},
    {TensorProto::FLOAT8E8M0, "float8e8m0", 8},
    {TensorProto::UINT2, "uint2", 2},
    {TensorProto::INT2, "int2", 2},
};

const ElementKind *findElementKind(int code) {
  const ElementKind *found = llvm::find_if(elementKinds, [&](const ElementKind &kind) { return kind.code == code; });
  return found == std::end(elementKinds) ? nullptr : found;
}

Expected<uint64_t> countElements(ArrayRef<int64_t> dims, const ImportLimits &limits) {
  // So that bits, bytes and signed indices of any tensor fit into 64 bits.
  constexpr uint64_t most = uint64_t{1} << 55;
  if (dims.size() > limits.rank)
    return refuse("expected at most " + Twine(limits.rank) + " dimensions, found " + Twine(dims.size()));
  uint64_t product = 1;
  for (int64_t dim : dims) {
    if (dim < 0)
      return refuse("expected dimensions of at least 0, found " + Twine(dim));
    // Zero-sized tensors may have huge other dimensions: those count too, as strides.
    uint64_t factor = std::max<int64_t>(dim, 1);
    if (factor > most / product)
      return refuse("expected at most 2^55 elements, found dimensions whose product is larger");
    product *= factor;
  }
  return is_contained(dims, 0) ? 0 : product;
}

Expected<std::unique_ptr<ModelFile>> ModelFile::load(const std::string &path, const ImportLimits &limits) {
  std::unique_ptr<ModelFile> file(new ModelFile(path, limits));
  Expected<OpenFile> opened = openNamedFile(path);
  if (!opened)
    return opened.takeError();
  Expected<MappedFile> mapped = MappedFile::map(*opened);
  if (!mapped)
    return mapped.takeError();
  Expected<Skeleton> skeleton = splitPayloads(mapped->bytes(), limits);
  if (!skeleton)
    return skeleton.takeError();

  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(skeleton->bytes.data()),
                                                static_cast<int>(skeleton->bytes.size()));
  stream.SetRecursionLimit(static_cast<int>(messageDepth(limits)) + 8);
  if (!file->proto.ParseFromCodedStream(&stream))
    return refuse("expected an ONNX model (protobuf), found a file that does not parse as one");
  file->mapped = std::move(*mapped);
  file->payloads = std::move(skeleton->payloads);
  return file;
}

Expected<TensorData> ModelFile::locate(const TensorProto &tensor) {
  TensorData data;
  data.element = findElementKind(tensor.data_type());
  if (!data.element)
    return refuse("expected an element type from 1 (float) to 26 (int2), found " + Twine(tensor.data_type()));
  if (tensor.has_segment())
    return refuse("expected a whole tensor, found a segment of one");
  data.dims.assign(tensor.dims().begin(), tensor.dims().end());
  Expected<uint64_t> elements = countElements(data.dims, limits);
  if (!elements)
    return elements.takeError();
  data.elements = *elements;

  bool isExternal = tensor.data_location() == TensorProto::EXTERNAL;
  if (data.element->code == TensorProto::STRING) {
    if (isExternal || tensor.has_raw_data())
      return refuse("expected strings in string_data, found raw or external data");
    if (static_cast<uint64_t>(tensor.string_data_size()) != data.elements)
      return refuse("expected " + Twine(data.elements) + " strings, found " + Twine(tensor.string_data_size()));
    return data;
  }
  uint64_t size = (data.elements * data.element->bits + 7) / 8;
  Error error = isExternal ? locateExternal(tensor, size, data) : locateStored(tensor, size, data);
  if (error)
    return std::move(error);
  return data;
}

bool ModelFile::holdsSame(const FileRange &a, const FileRange &b) const {
  auto bytesOf = [&](const FileRange &range) { return mapped.bytes().slice(range.range.offset, range.range.length); };
  return a.file == path && b.file == path && bytesOf(a) == bytesOf(b);
}

Error expectSize(uint64_t size, uint64_t found) {
  if (size == found)
    return Error::success();
  return refuse("expected " + Twine(size) + " bytes of data for its dimensions, found " + Twine(found));
}

/// A payload that came from a typed field is only right for the types that use this field.
static Error expectKind(const ElementKind &element, PayloadKind kind) {
  int code = element.code;
  bool fits = kind == PayloadKind::Raw ||
              (kind == PayloadKind::Floats && (code == TensorProto::FLOAT || code == TensorProto::COMPLEX64)) ||
              (kind == PayloadKind::Doubles && (code == TensorProto::DOUBLE || code == TensorProto::COMPLEX128));
  if (fits)
    return Error::success();
  return refuse(Twine("expected the data of element type ") + element.name + ", found " +
                (kind == PayloadKind::Floats ? "float_data" : "double_data"));
}

Error ModelFile::locateStored(const TensorProto &tensor, uint64_t size, TensorData &data) {
  if (!tensor.has_raw_data())
    return decodeTypedFields(tensor, *data.element, data.elements, data.bytes);
  if (hasTypedFields(tensor))
    return refuse("expected one field with data, found raw_data and another");

  StringRef raw = tensor.raw_data();
  auto kind = static_cast<PayloadKind>(raw.front());
  raw = raw.drop_front();
  if (kind == PayloadKind::Inline) {
    if (Error error = expectSize(size, raw.size()))
      return error;
    data.bytes = raw.str();
    return Error::success();
  }
  const ByteRange &range = payloads[support::endian::read64le(raw.data())];
  if (Error error = expectKind(*data.element, kind))
    return error;
  if (Error error = expectSize(size, range.length))
    return error;
  if (size <= limits.elementBytes) {
    auto *begin = reinterpret_cast<const char *>(mapped.bytes().data()) + range.offset;
    data.bytes.assign(begin, size);
    return Error::success();
  }
  data.inFile = true;
  data.file = path;
  data.range = range;
  return Error::success();
}

} // namespace deepstride::onnx
