// Goes through a file as GraphImporter does: calls are entered, and names are made unique by the same rule.
#include "frontends/onnx/reader/StoredTensors.h"

#include "frontends/onnx/reader/GraphImporter.h"

#include "llvm/ADT/StringMap.h"

using llvm::StringRef;

namespace deepstride::onnx {
namespace proto = ::onnx;

namespace {
class Walk {
public:
  explicit Walk(proto::ModelProto &model) {
    for (proto::FunctionProto &function : *model.mutable_functions())
      functions.try_emplace(functionKey(function.domain(), function.name(), function.overload()), &function);
    graph(*model.mutable_graph(), Frame(), "", /*isInner=*/false);
  }

  std::vector<StoredTensor> found;

private:
  struct Frame {
    const proto::FunctionProto *function = nullptr;
    const Frame *caller = nullptr;
    std::string prefix = {};
    llvm::StringMap<std::string> outputs = {}; // what the caller calls the function's outputs
  };

  void graph(proto::GraphProto &graph, const Frame &frame, const std::string &path, bool isInner) {
    for (proto::TensorProto &tensor : *graph.mutable_initializer())
      found.push_back({tensor.name(), &tensor, nullptr});
    nodes(*graph.mutable_node(), frame, path, isInner);
  }

  void nodes(Nodes &nodes, const Frame &frame, const std::string &path, bool isInner) {
    std::optional<Cycle> cycle;
    for (int index : orderNodes(nodes, cycle))
      node(nodes[index], frame, frame.prefix + labelOf(nodes[index], index, path), isInner);
  }

  static std::string nameOf(const std::string &output, const Frame &frame, bool isInner) {
    auto renamed = frame.outputs.find(output);
    return !isInner && renamed != frame.outputs.end() ? renamed->second : frame.prefix + output;
  }

  void node(proto::NodeProto &node, const Frame &frame, const std::string &label, bool isInner) {
    if (auto *function = functions.lookup(functionKey(node.domain(), node.op_type(), node.overload())))
      return call(node, *function, frame, label, isInner);
    bool isConstant = node.op_type() == "Constant" && shortDomain(node.domain()).empty() && node.output_size() == 1;
    for (proto::AttributeProto &attribute : *node.mutable_attribute()) {
      bool holdsNumbers = attribute.name() == "value_float" || attribute.name() == "value_floats";
      if (isConstant && attribute.ref_attr_name().empty() && (attribute.has_t() || holdsNumbers))
        found.push_back(
            {nameOf(node.output(0), frame, isInner), attribute.has_t() ? attribute.mutable_t() : nullptr, &attribute});
      if (attribute.has_g())
        graph(*attribute.mutable_g(), frame, label + "/" + attribute.name() + "/", /*isInner=*/true);
      for (int i = 0; i < attribute.graphs_size(); ++i)
        graph(*attribute.mutable_graphs(i), frame, label + "/" + attribute.name() + "[" + std::to_string(i) + "]/",
              /*isInner=*/true);
    }
  }

  void call(const proto::NodeProto &node, proto::FunctionProto &function, const Frame &around, const std::string &label,
            bool isInner) {
    for (const Frame *frame = &around; frame; frame = frame->caller)
      if (frame->function == &function)
        return; // the import refuses recursion
    Frame frame{&function, &around, callPrefix(label, prefixes[label]++)};
    for (int i = 0; i < node.output_size() && i < function.output_size(); ++i)
      if (!node.output(i).empty())
        frame.outputs.try_emplace(function.output(i), nameOf(node.output(i), around, isInner));
    nodes(*function.mutable_node(), frame, "", /*isInner=*/false);
  }

  llvm::StringMap<proto::FunctionProto *> functions;
  llvm::StringMap<unsigned> prefixes; // how many calls have had a label
};
} // namespace

std::vector<StoredTensor> storedTensors(proto::ModelProto &model) { return std::move(Walk(model).found); }

} // namespace deepstride::onnx
