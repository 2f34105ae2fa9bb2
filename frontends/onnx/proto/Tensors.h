// Every tensor of a model, wherever it is stored: in its graph, in graphs inside of nodes and in its functions.
#ifndef FRONTENDS_ONNX_PROTO_TENSORS_H
#define FRONTENDS_ONNX_PROTO_TENSORS_H

#include "onnx-ml.pb.h"

namespace deepstride::onnx {

template <typename Use> void forEachTensorOf(::onnx::GraphProto &graph, Use &use);

template <typename Use> void forEachTensorOf(::onnx::SparseTensorProto &tensor, Use &use) {
  use(*tensor.mutable_values());
  use(*tensor.mutable_indices());
}

template <typename Use> void forEachTensorOf(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes, Use &use) {
  for (::onnx::NodeProto &node : nodes)
    for (::onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_t())
        use(*attribute.mutable_t());
      if (attribute.has_sparse_tensor())
        forEachTensorOf(*attribute.mutable_sparse_tensor(), use);
      for (::onnx::TensorProto &tensor : *attribute.mutable_tensors())
        use(tensor);
      for (::onnx::SparseTensorProto &tensor : *attribute.mutable_sparse_tensors())
        forEachTensorOf(tensor, use);
      if (attribute.has_g())
        forEachTensorOf(*attribute.mutable_g(), use);
      for (::onnx::GraphProto &inner : *attribute.mutable_graphs())
        forEachTensorOf(inner, use);
    }
}

template <typename Use> void forEachTensorOf(::onnx::GraphProto &graph, Use &use) {
  for (::onnx::TensorProto &tensor : *graph.mutable_initializer())
    use(tensor);
  for (::onnx::SparseTensorProto &tensor : *graph.mutable_sparse_initializer())
    forEachTensorOf(tensor, use);
  forEachTensorOf(*graph.mutable_node(), use);
}

/// Calls `use` with each TensorProto.
template <typename Use> void forEachTensor(::onnx::ModelProto &model, Use use) {
  if (model.has_graph())
    forEachTensorOf(*model.mutable_graph(), use);
  for (::onnx::FunctionProto &function : *model.mutable_functions())
    forEachTensorOf(*function.mutable_node(), use);
}

/// The key of an entry of `external_data` that names the parameter whose elements a tensor is to get, in the graph that
/// a package keeps.
inline constexpr char parameterKey[] = "parameter";

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_PROTO_TENSORS_H
