// Models written by an attacker: damaged files, nesting, and inputs that grow when they are read.
// Each is diagnosed in one line; nothing crashes or takes memory or time without bound.

#include "test/unit/frontends/onnx/TemporaryFolder.h"

using namespace deepstride::onnx;
using ::onnx::TensorProto;

namespace {

class HostileModel : public testing::Test {
protected:
  std::string refusal(const ::onnx::ModelProto &model, const ImportLimits &limits = {}) {
    return importError(folder.write("m.onnx", model), limits);
  }

  TemporaryFolder folder;
};

::onnx::ModelProto smallModel() {
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, {2});
  initializerOf(model).set_raw_data("12345678");
  return model;
}

::onnx::FunctionProto &addFunction(::onnx::ModelProto &model, const std::string &name) {
  ::onnx::FunctionProto &function = *model.add_functions();
  function.set_name(name);
  function.set_domain("local");
  function.add_input("x");
  function.add_output("y");
  function.add_opset_import()->set_version(21);
  return function;
}

void addNode(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes, const std::string &op,
             const std::string &domain, const std::string &input, const std::string &output) {
  ::onnx::NodeProto &node = *nodes.Add();
  node.set_op_type(op);
  node.set_domain(domain);
  node.add_input(input);
  node.add_output(output);
}

TEST_F(HostileModel, every_truncation_is_diagnosed) {
  std::string bytes = smallModel().SerializeAsString();
  ASSERT_EQ(importError(folder.write("m.onnx", bytes)), "");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(importError(folder.write("m.onnx", bytes.substr(0, size))), "") << size;
}

TEST_F(HostileModel, every_flipped_bit_imports_or_is_diagnosed) {
  std::string bytes = smallModel().SerializeAsString();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    importError(folder.write("m.onnx", flipped));
  }
}

TEST_F(HostileModel, files_that_are_no_models_are_diagnosed) {
  expectContains(importError(folder / "missing.onnx"), "cannot open the file: No such file");
  expectContains(importError(folder.folder.string()), "expected a regular file, found a folder");
  expectContains(importError(folder.write("t", "this is a text file\n")), "expected an ONNX model");
  expectContains(importError(folder.write("l", "version https://git-lfs.github.com/spec/v1\n")), "git lfs pull");
  expectContains(importError(folder.write("e", "")), "expected an ONNX model of IR version 1 to 13");
}

TEST_F(HostileModel, a_protobuf_of_2_gib_is_diagnosed_with_what_to_do) {
  std::string path = folder.write("m.onnx", smallModel());
  std::filesystem::resize_file(path, uint64_t{1} << 31);
  expectContains(importError(path), "expected a protobuf below 2 GiB, found 2147483648 bytes; "
                                    "save the weights as external data");
}

TEST_F(HostileModel, nested_subgraphs_are_limited) {
  auto nested = [](unsigned depth) {
    ::onnx::ModelProto model = smallModel();
    ::onnx::GraphProto *graph = model.mutable_graph();
    for (unsigned i = 0; i < depth; ++i) {
      std::string name = "v" + std::to_string(i);
      addNode(*graph->mutable_node(), "If", "", "w", name);
      ::onnx::AttributeProto *branch = graph->mutable_node()->rbegin()->add_attribute();
      branch->set_name("then_branch");
      branch->set_type(::onnx::AttributeProto::GRAPH);
      graph = branch->mutable_g();
      graph->add_output()->set_name("w");
    }
    return model;
  };
  EXPECT_EQ(refusal(nested(64)), "");
  expectContains(refusal(nested(65)), "nested subgraphs");
  expectContains(refusal(nested(5000)), "expected at most 64 nested subgraphs, found more");
}

TEST_F(HostileModel, nested_types_are_limited) {
  ::onnx::ModelProto model = smallModel();
  ::onnx::ValueInfoProto &input = *model.mutable_graph()->add_input();
  input.set_name("x");
  ::onnx::TypeProto *type = input.mutable_type();
  for (int i = 0; i < 10000; ++i)
    type = type->mutable_sequence_type()->mutable_elem_type();
  expectContains(refusal(model), "found more");
}

TEST_F(HostileModel, functions_that_multiply_are_limited) {
  ::onnx::ModelProto model = smallModel();
  addNode(*model.mutable_graph()->mutable_node(), "f0", "local", "w", "z");
  for (int i = 0; i < 30; ++i) {
    ::onnx::FunctionProto &function = addFunction(model, "f" + std::to_string(i));
    for (int call = 0; call < 10; ++call)
      addNode(*function.mutable_node(), "f" + std::to_string(i + 1), "local",
              call ? "t" + std::to_string(call - 1) : "x", call == 9 ? "y" : "t" + std::to_string(call));
  }
  addNode(*addFunction(model, "f30").mutable_node(), "Neg", "", "x", "y");
  ImportLimits limits;
  limits.nodes = 10000;
  expectContains(refusal(model, limits), "expected at most 10000 nodes with functions inlined");
}

TEST_F(HostileModel, function_calls_are_limited_in_depth) {
  ::onnx::ModelProto model = smallModel();
  addNode(*model.mutable_graph()->mutable_node(), "f0", "local", "w", "z");
  for (int i = 0; i < 5000; ++i)
    addNode(*addFunction(model, "f" + std::to_string(i)).mutable_node(), "f" + std::to_string(i + 1), "local", "x",
            "y");
  expectContains(refusal(model), "expected at most 64 nested subgraphs and function calls");
}

TEST_F(HostileModel, fields_that_cost_memory_are_counted) {
  ::onnx::ModelProto model = smallModel();
  for (int i = 0; i < 2000; ++i)
    model.mutable_graph()->add_node();
  ImportLimits limits;
  limits.fields = 1000;
  expectContains(refusal(model, limits), "expected at most 1000 fields, found more");
  limits = {};
  limits.structureBytes = 1000;
  expectContains(refusal(model, limits), "expected at most 1000 bytes besides");
}

TEST_F(HostileModel, overloads_select_functions_and_doubles_are_refused) {
  ::onnx::ModelProto model = smallModel();
  addNode(*model.mutable_graph()->mutable_node(), "f", "local", "w", "z");
  model.mutable_graph()->mutable_node(1)->set_overload("b");
  addFunction(model, "f").set_overload("a");
  ::onnx::FunctionProto &second = addFunction(model, "f");
  second.set_overload("b");
  addNode(*second.mutable_node(), "Neg", "", "x", "y");
  EXPECT_EQ(refusal(model), "");
  second.set_overload("a");
  expectContains(refusal(model), "'f': function: expected each once, found domain 'local' and "
                                 "overload 'a' again");
}

TEST_F(HostileModel, attributes_are_checked) {
  ::onnx::ModelProto model = smallModel();
  ::onnx::AttributeProto &attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
  expectContains(refusal(model), "'Identity#0': expected attributes to have names");
  attribute.set_name("a\nb");
  expectContains(refusal(model), "attribute 'a\\0Ab': expected a type and a value, found neither");
  attribute.set_type(::onnx::AttributeProto::INT);
  EXPECT_EQ(refusal(model), "");
  attribute.set_ref_attr_name("other");
  expectContains(refusal(model), "found a reference outside of a function");
  attribute.clear_ref_attr_name();
  *model.mutable_graph()->mutable_node(0)->add_attribute() = attribute;
  expectContains(refusal(model), "expected it once, found it again");
}

TEST_F(HostileModel, names_are_utf8) {
  ::onnx::ModelProto good = smallModel();
  good.mutable_graph()->mutable_node(0)->set_name("Größe");
  EXPECT_EQ(refusal(good), "");
  const std::string bad = "caf\xe9";
  ::onnx::ModelProto model = good;
  model.mutable_graph()->mutable_node(0)->set_name(bad);
  expectContains(refusal(model), "expected text in UTF-8 in NodeProto.name, found 'caf\\E9' at byte ");
  model = good;
  model.mutable_graph()->mutable_output(0)->set_name(bad);
  model.mutable_graph()->mutable_node(0)->set_output(0, bad);
  expectContains(refusal(model), "expected text in UTF-8 in NodeProto.output");
  model = good;
  ::onnx::ValueInfoProto &input = *model.mutable_graph()->add_input();
  input.set_name("x");
  input.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(bad);
  expectContains(refusal(model), "expected text in UTF-8 in TensorShapeProto.Dimension.dim_param");
  model = good;
  addFunction(model, bad);
  expectContains(refusal(model), "expected text in UTF-8 in FunctionProto.name");
  // Strings that are data are bytes.
  model = good;
  ::onnx::AttributeProto &attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("data");
  attribute.set_type(::onnx::AttributeProto::STRING);
  attribute.set_s(bad);
  EXPECT_EQ(refusal(model), "");
}

} // namespace
