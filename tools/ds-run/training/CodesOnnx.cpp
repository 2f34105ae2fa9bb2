// Initializers and the values of Constant nodes alike, in graphs, graphs inside of nodes and functions.
#include "tools/ds-run/training/CodesOnnx.h"

#include <set>
#include <vector>

namespace ds {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using onnx::TensorProto;

void collectNames(const Nodes &nodes, std::set<std::string> &names);

void collectNames(const onnx::GraphProto &graph, std::set<std::string> &names) {
  for (const onnx::ValueInfoProto &input : graph.input())
    names.insert(input.name());
  for (const TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  collectNames(graph.node(), names);
}

void collectNames(const Nodes &nodes, std::set<std::string> &names) {
  for (const onnx::NodeProto &node : nodes) {
    names.insert(node.name());
    names.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        collectNames(attribute.g(), names);
  }
}

class Dequantizer {
public:
  Dequantizer(onnx::ModelProto &model, const std::map<const TensorProto *, CodedTensor> &coded)
      : model(model), coded(coded) {}

  void run() {
    collectNames(model.graph(), names);
    for (const onnx::FunctionProto &function : model.functions())
      collectNames(function.node(), names);
    // Types of 4 bits came with opset 21, scales of an axis with 13; the operator of Microsoft has both in any.
    bool hasHalves = false;
    for (const auto &[tensor, own] : coded)
      hasHalves |= own.codes->bits == 4;
    for (const auto &opset : model.opset_import())
      if (opset.domain().empty())
        domain = opset.version() >= (hasHalves ? 21 : 13) ? "" : "com.microsoft";
    rewrite(*model.mutable_graph());
    declare(model);
    for (onnx::FunctionProto &function : *model.mutable_functions()) {
      size_t before = count;
      rewrite(*function.mutable_node());
      if (count > before)
        declare(function);
    }
    // Versions of the format: 10 has types of 4 bits, before 4 every initializer was an input.
    int64_t version = hasHalves ? 10 : 4;
    if (model.ir_version() < version)
      model.set_ir_version(version);
  }

private:
  template <typename Proto> void declare(Proto &proto) {
    for (const auto &opset : proto.opset_import())
      if (opset.domain() == domain)
        return;
    auto *opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(1);
  }

  std::string fresh(const std::string &name) {
    std::string result = name;
    while (!names.insert(result).second)
      result += "_";
    return result;
  }

  void rewrite(onnx::GraphProto &graph) {
    Nodes made;
    std::vector<TensorProto> added;
    std::set<std::string> replaced;
    for (TensorProto &tensor : *graph.mutable_initializer()) {
      auto found = coded.find(&tensor);
      if (found == coded.end())
        continue;
      std::string name = tensor.name();
      replaced.insert(name);
      tensor.set_name(fresh(name + "/codes"));
      auto store = [&](TensorProto constant) {
        added.push_back(constant);
        return constant.name();
      };
      expand(found->second, tensor.name(), name, store, made);
    }
    // Inputs of the same name, as older models have them, would be values twice.
    for (int i = graph.input_size(); i-- > 0;)
      if (replaced.count(graph.input(i).name()))
        graph.mutable_input()->DeleteSubrange(i, 1);
    for (TensorProto &tensor : added)
      graph.add_initializer()->Swap(&tensor);
    rewrite(*graph.mutable_node());
    for (onnx::NodeProto &node : *graph.mutable_node())
      made.Add()->Swap(&node);
    graph.mutable_node()->Swap(&made);
  }

  void rewrite(Nodes &nodes) {
    Nodes made;
    for (onnx::NodeProto &node : nodes) {
      TensorProto *value = nullptr;
      for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
        if (attribute.has_g())
          rewrite(*attribute.mutable_g());
        if (attribute.has_t() && coded.count(&attribute.t()))
          value = attribute.mutable_t();
      }
      if (!value) {
        made.Add()->Swap(&node);
        continue;
      }
      std::string name = node.output(0);
      node.set_output(0, fresh(name + "/codes"));
      std::string codes = node.output(0);
      CodedTensor own = coded.at(value);
      Codes bytes;
      if (own.codes->bits == 4 && !domain.empty() && value->has_raw_data()) {
        // A Constant has no types of 4 bits before opset 21.
        bytes = *own.codes;
        bytes.bits = 8;
        describeCodes(*value, bytes);
        value->set_raw_data(codeBytes(bytes));
        own.codes = &bytes;
      }
      made.Add()->Swap(&node);
      auto store = [&](const TensorProto &constant) {
        onnx::NodeProto *other = made.Add();
        other->set_op_type("Constant");
        other->set_name(constant.name());
        other->add_output(constant.name());
        onnx::AttributeProto *attribute = other->add_attribute();
        attribute->set_name("value");
        attribute->set_type(onnx::AttributeProto::TENSOR);
        *attribute->mutable_t() = constant;
        return constant.name();
      };
      expand(own, codes, name, store, made);
    }
    nodes.Swap(&made);
  }

  onnx::NodeProto *add(Nodes &nodes, const char *op, const std::vector<std::string> &inputs,
                       const std::string &output) {
    onnx::NodeProto *node = nodes.Add();
    node->set_op_type(op);
    node->set_name(output);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }

  template <typename Store>
  void expand(const CodedTensor &own, const std::string &codes, const std::string &name, Store store, Nodes &nodes) {
    ++count;
    const Codes &c = *own.codes;
    TensorProto scales, shape;
    scales.set_name(fresh(name + "/scales"));
    scales.set_data_type(TensorProto::FLOAT);
    scales.add_dims(static_cast<int64_t>(c.scales.size()));
    scales.set_raw_data(c.scales.data(), c.scales.size() * sizeof(float));
    shape.set_name(fresh(name + "/shape"));
    shape.set_data_type(TensorProto::INT64);
    shape.add_dims(static_cast<int64_t>(c.shape.size()));
    shape.set_raw_data(c.shape.data(), c.shape.size() * sizeof(int64_t));
    std::vector<std::string> inputs = {codes, store(scales)};
    if (!c.zeroPoints.empty()) {
      Codes zeros = c;
      zeros.codes = c.zeroPoints;
      TensorProto zeroPoints;
      describeCodes(zeroPoints, c);
      zeroPoints.clear_dims();
      zeroPoints.add_dims(static_cast<int64_t>(c.zeroPoints.size()));
      zeroPoints.set_name(fresh(name + "/zero_points"));
      zeroPoints.set_raw_data(codeBytes(zeros));
      inputs.push_back(store(zeroPoints));
    }
    onnx::NodeProto *floats = add(nodes, "DequantizeLinear", inputs, fresh(name + "/groups"));
    floats->set_domain(domain);
    onnx::AttributeProto *axis = floats->add_attribute();
    axis->set_name("axis");
    axis->set_type(onnx::AttributeProto::INT);
    axis->set_i(0);
    std::string groups = floats->output(0), whole = own.isTransposed ? fresh(name + "/stored") : name;
    std::string target = store(shape);
    add(nodes, "Reshape", {groups, target}, whole);
    if (!own.isTransposed)
      return;
    onnx::AttributeProto *order = add(nodes, "Transpose", {whole}, name)->add_attribute();
    order->set_name("perm");
    order->set_type(onnx::AttributeProto::INTS);
    order->add_ints(1);
    order->add_ints(0);
  }

  onnx::ModelProto &model;
  const std::map<const TensorProto *, CodedTensor> &coded;
  std::set<std::string> names;
  std::string domain;
  size_t count = 0;
};

} // namespace

std::string codeBytes(const Codes &codes) {
  std::string bytes;
  if (codes.bits == 8) {
    for (int16_t code : codes.codes)
      bytes.push_back(static_cast<char>(code));
    return bytes;
  }
  for (size_t i = 0; i < codes.codes.size(); i += 2) {
    int high = i + 1 < codes.codes.size() ? codes.codes[i + 1] : 0;
    bytes.push_back(static_cast<char>((codes.codes[i] & 15) | (high & 15) << 4));
  }
  return bytes;
}

void describeCodes(TensorProto &tensor, const Codes &codes) {
  tensor.set_data_type(codes.bits == 8 ? (codes.isSigned ? TensorProto::INT8 : TensorProto::UINT8)
                                       : (codes.isSigned ? TensorProto::INT4 : TensorProto::UINT4));
  tensor.clear_dims();
  auto groups = static_cast<int64_t>(codes.scales.size());
  tensor.add_dims(groups);
  tensor.add_dims(static_cast<int64_t>(codes.codes.size()) / groups);
}

void addDequantization(onnx::ModelProto &model, const std::map<const TensorProto *, CodedTensor> &coded) {
  if (!coded.empty())
    Dequantizer(model, coded).run();
}

} // namespace ds
