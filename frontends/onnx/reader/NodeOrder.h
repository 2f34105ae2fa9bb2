// Orders the nodes of one graph so that every value is computed before it is used. ONNX asks for
// this order in the file; files that only lack the order are accepted, cycles are not.

#ifndef FRONTENDS_ONNX_READER_NODEORDER_H
#define FRONTENDS_ONNX_READER_NODEORDER_H

#include "onnx-ml.pb.h"

#include <optional>
#include <string>
#include <vector>

namespace deepstride::onnx {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// A Gradient's attributes xs, zs and y name values of the graph, which it needs as it needs its inputs.
bool namesValues(const ::onnx::NodeProto &node);

/// Where a cycle was found.
struct Cycle {
  int node = 0;
  /// A value that the node needs and that itself needs the node.
  std::string value;
};

/// Indices of `nodes` in an order of computation: the order of the file as far as possible. Values
/// that no node computes are taken as available. Empty, and `cycle` set, where there is no order.
std::vector<int> orderNodes(const Nodes &nodes, std::optional<Cycle> &cycle);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_NODEORDER_H
