// Translates element types, types and tensors. Unsigned integers stay unsigned and bool is i1, so
// that no ONNX type is lost before the conversion to `ds`.

#include "frontends/onnx/reader/Types.h"

#include "frontends/onnx/dialect/Onnx.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

namespace deepstride::onnx {

Type importElementType(const ElementKind &element, MLIRContext *context) {
  Builder builder(context);
  switch (element.code) {
  case TensorProto::FLOAT: return builder.getF32Type();
  case TensorProto::DOUBLE: return builder.getF64Type();
  case TensorProto::FLOAT16: return builder.getF16Type();
  case TensorProto::BFLOAT16: return builder.getBF16Type();
  case TensorProto::FLOAT8E4M3FN: return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ: return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2: return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E5M2FNUZ: return Float8E5M2FNUZType::get(context);
  case TensorProto::FLOAT8E8M0: return Float8E8M0FNUType::get(context);
  case TensorProto::FLOAT4E2M1: return Float4E2M1FNType::get(context);
  case TensorProto::COMPLEX64: return ComplexType::get(builder.getF32Type());
  case TensorProto::COMPLEX128: return ComplexType::get(builder.getF64Type());
  case TensorProto::STRING: return StringType::get(context);
  case TensorProto::BOOL: return builder.getI1Type();
  case TensorProto::UINT2:
  case TensorProto::UINT4:
  case TensorProto::UINT8:
  case TensorProto::UINT16:
  case TensorProto::UINT32:
  case TensorProto::UINT64: return builder.getIntegerType(element.bits, /*isSigned=*/false);
  default: return builder.getIntegerType(element.bits);
  }
}

static Expected<const ElementKind *> expectElement(int code) {
  if (const ElementKind *element = findElementKind(code))
    return element;
  return refuse("expected an element type from 1 (float) to 26 (int2), found " + Twine(code));
}

bool isStated(const ::onnx::TensorShapeProto::Dimension &dim) { return dim.has_dim_value() && dim.dim_value() != -1; }

static Expected<Type> importTensorType(const TypeProto::Tensor &type, MLIRContext *context,
                                       const ImportLimits &limits) {
  if (type.elem_type() == TensorProto::UNDEFINED)
    return UnknownType::get(context);
  Expected<const ElementKind *> element = expectElement(type.elem_type());
  if (!element)
    return element.takeError();
  Type elementType = importElementType(**element, context);
  if (!type.has_shape())
    return UnrankedTensorType::get(elementType);

  SmallVector<int64_t> dims, known;
  for (const auto &dim : type.shape().dim()) {
    dims.push_back(isStated(dim) ? dim.dim_value() : ShapedType::kDynamic);
    if (isStated(dim))
      known.push_back(dim.dim_value());
  }
  if (dims.size() > limits.rank)
    known = dims;
  if (Error error = countElements(known, limits).takeError())
    return std::move(error);
  return RankedTensorType::get(dims, elementType);
}

/// The spelling of a type in ONNX's own notation, as in `seq(tensor(float))`.
static Expected<std::string> spell(const TypeProto &type);

static Expected<std::string> spellAround(StringRef word, const TypeProto &inner) {
  Expected<std::string> spelling = spell(inner);
  if (!spelling)
    return spelling.takeError();
  return (word + "(" + *spelling + ")").str();
}

static Expected<std::string> spellElement(StringRef word, int code) {
  if (code == TensorProto::UNDEFINED)
    return (word + "(?)").str();
  Expected<const ElementKind *> element = expectElement(code);
  if (!element)
    return element.takeError();
  return (word + "(" + (*element)->name + ")").str();
}

static Expected<std::string> spell(const TypeProto &type) {
  switch (type.value_case()) {
  case TypeProto::kTensorType: return spellElement("tensor", type.tensor_type().elem_type());
  case TypeProto::kSparseTensorType: return spellElement("sparse_tensor", type.sparse_tensor_type().elem_type());
  case TypeProto::kSequenceType: return spellAround("seq", type.sequence_type().elem_type());
  case TypeProto::kOptionalType: return spellAround("optional", type.optional_type().elem_type());
  case TypeProto::kMapType: {
    Expected<const ElementKind *> key = expectElement(type.map_type().key_type());
    if (!key)
      return key.takeError();
    Expected<std::string> value = spell(type.map_type().value_type());
    if (!value)
      return value.takeError();
    return std::string("map(") + (*key)->name + "," + *value + ")";
  }
  case TypeProto::kOpaqueType: return "opaque(" + type.opaque_type().domain() + "," + type.opaque_type().name() + ")";
  case TypeProto::VALUE_NOT_SET: return std::string("?");
  }
  return std::string("?");
}

Expected<Type> importType(const TypeProto &type, MLIRContext *context, const ImportLimits &limits) {
  if (type.value_case() == TypeProto::VALUE_NOT_SET)
    return UnknownType::get(context);
  if (type.has_tensor_type())
    return importTensorType(type.tensor_type(), context, limits);
  Expected<std::string> spelling = spell(type);
  if (!spelling)
    return spelling.takeError();
  return OtherType::get(context, *spelling);
}

/// Elements of less than a byte, each in a byte of its own as DenseElementsAttr wants them.
static std::string unpackElements(StringRef packed, unsigned bits, uint64_t elements) {
  std::string bytes(elements, '\0');
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t bit = i * bits;
    bytes[i] = static_cast<char>((static_cast<uint8_t>(packed[bit / 8]) >> (bit % 8)) & ((1u << bits) - 1));
  }
  return bytes;
}

static DenseElementsAttr makeElements(const TensorData &data, RankedTensorType type) {
  StringRef bytes = data.bytes;
  if (data.element->code == TensorProto::BOOL) {
    SmallVector<bool> values(bytes.size());
    llvm::transform(bytes, values.begin(), [](char c) { return c != 0; });
    return DenseElementsAttr::get(type, values);
  }
  std::string unpacked;
  if (data.element->bits < 8)
    bytes = unpacked = unpackElements(bytes, data.element->bits, data.elements);
  // One repeated element is stored, and printed, once.
  if (data.elements > 1) {
    size_t width = bytes.size() / data.elements;
    if (bytes.drop_front(width) == bytes.drop_back(width))
      bytes = bytes.take_front(width);
  }
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef(bytes.data(), bytes.size()));
}

Expected<TypedAttr> importTensor(const TensorProto &tensor, ModelFile &file, MLIRContext *context) {
  Expected<TensorData> data = file.locate(tensor);
  if (!data)
    return data.takeError();
  auto type = RankedTensorType::get(data->dims, importElementType(*data->element, context));
  if (data->element->code == TensorProto::STRING) {
    SmallVector<StringRef> strings(tensor.string_data().begin(), tensor.string_data().end());
    return cast<TypedAttr>(DenseStringElementsAttr::get(type, strings));
  }
  if (data->inFile)
    return cast<TypedAttr>(RangeAttr::get(context, data->file, data->range.offset, data->range.length, type));
  return cast<TypedAttr>(makeElements(*data, type));
}

} // namespace deepstride::onnx
