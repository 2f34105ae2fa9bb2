// Which tensor of a file each weight of the imported program is.
#ifndef FRONTENDS_ONNX_READER_STOREDTENSORS_H
#define FRONTENDS_ONNX_READER_STOREDTENSORS_H

#include "onnx-ml.pb.h"

#include <string>
#include <vector>

namespace deepstride::onnx {

/// An initializer, or what a Constant node holds, by the name that the importer gives it. A tensor of a function has a
/// name for each call.
struct StoredTensor {
  std::string name;
  ::onnx::TensorProto *tensor = nullptr;       // null where a Constant node has numbers instead
  ::onnx::AttributeProto *attribute = nullptr; // of a Constant node

  const void *place() const { return tensor ? static_cast<const void *>(tensor) : attribute; }
};

/// In the order of the import. The model is one that can be imported.
std::vector<StoredTensor> storedTensors(::onnx::ModelProto &model);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_STOREDTENSORS_H
