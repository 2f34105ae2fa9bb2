// ONNX TensorProto files (.pb), as in the test_data_set_* folders of ONNX models.
#ifndef DEEPSTRIDE_RUNTIME_IO_TENSORPROTO_H
#define DEEPSTRIDE_RUNTIME_IO_TENSORPROTO_H

#include "runtime/core/Tensor.h"

#include <string>

namespace ds {

// Throws Error(BadFile) for anything but one dense tensor of a type that packages know; sequences, optionals, strings,
// complex, float8 and 4-bit types are named.
NamedTensor parseTensorProto(const void *data, size_t bytes);
std::string serializeTensorProto(const std::string &name, const Tensor &tensor);

NamedTensor readTensorProto(const std::string &path);
void writeTensorProto(const std::string &path, const std::string &name, const Tensor &tensor); // atomic

} // namespace ds
#endif
