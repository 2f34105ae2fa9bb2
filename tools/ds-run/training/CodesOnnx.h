// Tensors of a model that become codes of 4 or 8 bits, with the nodes that make floats of them.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_CODESONNX_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_CODESONNX_H

#include "runtime/training/Codes.h"

#include "onnx-ml.pb.h"

#include <map>

namespace ds {

// A tensor that stands for codes, or for their transpose.
struct CodedTensor {
  const Codes *codes = nullptr;
  bool isTransposed = false;
};

// The bytes of codes, two of 4 bits in each.
std::string codeBytes(const Codes &codes);
// Makes a tensor's type and dimensions those of codes, [groups, elements of each].
void describeCodes(onnx::TensorProto &tensor, const Codes &codes);

// Puts nodes behind tensors that hold codes: DequantizeLinear by groups and Reshape, and Transpose where that is
// needed. What they yield has the tensor's name.
void addDequantization(onnx::ModelProto &model, const std::map<const onnx::TensorProto *, CodedTensor> &coded);

} // namespace ds
#endif
