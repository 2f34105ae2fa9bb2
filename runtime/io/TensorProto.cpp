#include "runtime/io/TensorProto.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include "onnx-ml.pb.h"

#include <climits>
#include <cstring>

namespace ds {
namespace {

using Proto = onnx::TensorProto;

struct TypePair {
  int onnx;
  ElementType type;
};

constexpr TypePair pairs[] = {{Proto::FLOAT, ElementType::F32},
                              {Proto::DOUBLE, ElementType::F64},
                              {Proto::FLOAT16, ElementType::F16},
                              {Proto::BFLOAT16, ElementType::BF16},
                              {Proto::INT64, ElementType::I64},
                              {Proto::INT32, ElementType::I32},
                              {Proto::INT16, ElementType::I16},
                              {Proto::INT8, ElementType::I8},
                              {Proto::UINT64, ElementType::U64},
                              {Proto::UINT32, ElementType::U32},
                              {Proto::UINT16, ElementType::U16},
                              {Proto::UINT8, ElementType::U8},
                              {Proto::BOOL, ElementType::I1},
                              {Proto::FLOAT8E4M3FN, ElementType::F8E4M3FN},
                              {Proto::FLOAT8E4M3FNUZ, ElementType::F8E4M3FNUZ},
                              {Proto::FLOAT8E5M2, ElementType::F8E5M2},
                              {Proto::FLOAT8E5M2FNUZ, ElementType::F8E5M2FNUZ},
                              {Proto::FLOAT8E8M0, ElementType::F8E8M0},
                              {Proto::FLOAT4E2M1, ElementType::F4E2M1},
                              {Proto::INT4, ElementType::I4},
                              {Proto::UINT4, ElementType::U4},
                              {Proto::INT2, ElementType::I2},
                              {Proto::UINT2, ElementType::U2}};

ElementType elementType(int onnxType) {
  for (const TypePair &pair : pairs)
    if (pair.onnx == onnxType)
      return pair.type;
  std::string name = Proto::DataType_IsValid(onnxType) ? Proto::DataType_Name(static_cast<Proto::DataType>(onnxType))
                                                       : "number " + std::to_string(onnxType);
  fail(ErrorCode::BadFile, "TensorProto: element type ", name, " is not supported");
}

// Values of a typed field, each cast to the storage type: small integers and the bits of half floats lie in int32_data.
template <typename Storage, typename Field> void copyField(const Field &field, Tensor &tensor) {
  if (field.size() != tensor.count())
    fail(ErrorCode::BadFile, "TensorProto: found ", field.size(), " values, expected ", tensor.count(), " for shape ",
         listText(tensor.getShape()), " (a SequenceProto or OptionalProto is not supported)");
  for (int i = 0; i < field.size(); ++i) {
    Storage value = static_cast<Storage>(field.Get(i));
    std::memcpy(tensor.data() + static_cast<size_t>(i) * sizeof(Storage), &value, sizeof(Storage));
  }
}

// Elements of 4 or 2 bits, the first one in the lowest bits, to a byte each; integers are extended to it.
void unpack(const uint8_t *packed, Tensor &tensor) {
  unsigned bits = packedBits(tensor.getType());
  bool extends = isInteger(tensor.getType()) && isSigned(tensor.getType());
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t bit = static_cast<uint64_t>(i) * bits;
    unsigned element = (packed[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
    if (extends && element >> (bits - 1))
      element |= 0xffu << bits;
    tensor.data()[i] = static_cast<uint8_t>(element);
  }
}

std::string pack(const Tensor &tensor) {
  unsigned bits = packedBits(tensor.getType());
  std::string packed((static_cast<size_t>(tensor.count()) * bits + 7) / 8, '\0');
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t bit = static_cast<uint64_t>(i) * bits;
    unsigned element = tensor.data()[i] & ((1u << bits) - 1);
    packed[bit / 8] = static_cast<char>(static_cast<uint8_t>(packed[bit / 8]) | element << (bit % 8));
  }
  return packed;
}

// Bytes of a tensor in raw_data, where elements may share bytes.
size_t packedBytes(ElementType type, size_t bytes) {
  size_t perByte = packedBits(type) < 8 ? 8 / packedBits(type) : 1;
  return bytes / perByte + (bytes % perByte != 0);
}

void copyPacked(const Proto &proto, Tensor &tensor) {
  size_t expected = packedBytes(tensor.getType(), tensor.bytes());
  if (static_cast<size_t>(proto.int32_data_size()) != expected)
    fail(ErrorCode::BadFile, "TensorProto: found ", proto.int32_data_size(), " packed values, expected ", expected,
         " for shape ", listText(tensor.getShape()));
  std::string packed;
  for (int32_t value : proto.int32_data())
    packed.push_back(static_cast<char>(value));
  unpack(reinterpret_cast<const uint8_t *>(packed.data()), tensor);
}

void copyTyped(const Proto &proto, Tensor &tensor) {
  if (packedBits(tensor.getType()) < 8)
    return copyPacked(proto, tensor);
  switch (tensor.getType()) {
  case ElementType::F32: return copyField<float>(proto.float_data(), tensor);
  case ElementType::F64: return copyField<double>(proto.double_data(), tensor);
  case ElementType::I64: return copyField<int64_t>(proto.int64_data(), tensor);
  case ElementType::U64: return copyField<uint64_t>(proto.uint64_data(), tensor);
  case ElementType::U32: return copyField<uint32_t>(proto.uint64_data(), tensor);
  case ElementType::I32: return copyField<int32_t>(proto.int32_data(), tensor);
  case ElementType::I16:
  case ElementType::U16:
  case ElementType::F16:
  case ElementType::BF16: return copyField<uint16_t>(proto.int32_data(), tensor);
  case ElementType::I1: return copyField<bool>(proto.int32_data(), tensor);
  default: return copyField<uint8_t>(proto.int32_data(), tensor); // one byte each
  }
}

} // namespace

NamedTensor parseTensorProto(const void *data, size_t bytes) {
  Proto proto;
  if (bytes > INT_MAX)
    fail(ErrorCode::BadFile, "TensorProto: found ", bytes, " bytes, expected less than 2 GiB");
  if (!proto.ParseFromArray(data, static_cast<int>(bytes)))
    fail(ErrorCode::BadFile, "not a TensorProto (damaged, truncated, or a SequenceProto or OptionalProto, which are "
                             "not supported)");
  if (proto.has_segment())
    fail(ErrorCode::BadFile, "not a TensorProto with dense data (a SequenceProto or OptionalProto is not supported)");
  if (proto.data_location() == Proto::EXTERNAL)
    fail(ErrorCode::BadFile, "TensorProto: external data is not supported here");
  ElementType type = elementType(proto.data_type());
  Tensor tensor(type, Shape());
  Shape shape(proto.dims().begin(), proto.dims().end());
  // Check the size before memory is asked for: dimensions of a hostile file cost nothing.
  size_t expected = packedBytes(type, byteCount(type, shape));
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() != expected)
      fail(ErrorCode::BadFile, "TensorProto: found ", proto.raw_data().size(), " bytes of raw data, expected ",
           expected, " for shape ", listText(shape));
    tensor.reset(type, shape);
    if (packedBits(type) < 8)
      unpack(reinterpret_cast<const uint8_t *>(proto.raw_data().data()), tensor);
    else if (expected != 0)
      std::memcpy(tensor.data(), proto.raw_data().data(), expected);
    if (type == ElementType::I1)
      for (size_t i = 0; i < expected; ++i)
        tensor.data()[i] = tensor.data()[i] != 0;
  } else {
    if (expected / typeSize(type) > bytes)
      fail(ErrorCode::BadFile, "TensorProto: too few values for shape ", listText(shape));
    tensor.reset(type, shape);
    copyTyped(proto, tensor);
  }
  return {proto.name(), std::move(tensor)};
}

std::string serializeTensorProto(const std::string &name, const Tensor &tensor) {
  Proto proto;
  proto.set_name(name);
  for (const TypePair &pair : pairs)
    if (pair.type == tensor.getType())
      proto.set_data_type(pair.onnx);
  for (int64_t dim : tensor.getShape())
    proto.add_dims(dim);
  if (tensor.bytes() > size_t(INT_MAX) - 4096)
    fail(ErrorCode::InvalidArgument, "TensorProto: tensor of ", tensor.bytes(), " bytes, expected less than 2 GiB");
  if (packedBits(tensor.getType()) < 8)
    proto.set_raw_data(pack(tensor));
  else
    proto.set_raw_data(tensor.data(), tensor.bytes());
  return proto.SerializeAsString();
}

NamedTensor readTensorProto(const std::string &path) {
  MappedFile file(path); // which names the path itself
  return annotated(path, [&] { return parseTensorProto(file.data(), file.size()); });
}

void writeTensorProto(const std::string &path, const std::string &name, const Tensor &tensor) {
  std::string bytes = serializeTensorProto(name, tensor);
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

} // namespace ds
