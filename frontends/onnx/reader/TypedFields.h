// Elements that a tensor stores in a typed field (`float_data`, `int32_data`, ...) instead of
// `raw_data`, turned into the layout of `raw_data`.

#ifndef FRONTENDS_ONNX_READER_TYPEDFIELDS_H
#define FRONTENDS_ONNX_READER_TYPEDFIELDS_H

#include "frontends/onnx/reader/ModelFile.h"

namespace deepstride::onnx {

bool hasTypedFields(const ::onnx::TensorProto &tensor);

llvm::Error decodeTypedFields(const ::onnx::TensorProto &tensor, const ElementKind &element, uint64_t elements,
                              std::string &bytes);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_TYPEDFIELDS_H
