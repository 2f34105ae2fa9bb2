// Elements in the model file: large ones stay there as exact ranges, small ones and those in typed
// fields arrive in the layout of raw data.

#include "test/unit/frontends/onnx/TemporaryFolder.h"

#include "frontends/onnx/dialect/Onnx.h"

using namespace deepstride::onnx;
using ::onnx::TensorProto;

namespace {

std::string countingBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 7 + i / 256);
  return bytes;
}

std::string fileRange(const std::string &path, ByteRange range) {
  std::string bytes(range.length, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(range.offset));
  file.read(bytes.data(), static_cast<std::streamsize>(range.length));
  return bytes;
}

class Payload : public testing::Test {
protected:
  Located write(const ::onnx::ModelProto &model) { return locate(folder.write("m.onnx", model)); }

  TemporaryFolder folder;
};

TEST_F(Payload, raw_data_is_a_range_of_the_file) {
  std::string bytes = countingBytes(8000);
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, {20, 100});
  initializerOf(model).set_raw_data(bytes);
  Located found = write(model);
  ASSERT_EQ(found.error, "");
  EXPECT_TRUE(found.data.inFile);
  EXPECT_EQ(found.data.file, folder / "m.onnx");
  EXPECT_EQ(fileRange(folder / "m.onnx", found.data.range), bytes);
}

TEST_F(Payload, packed_floats_and_doubles_are_ranges_as_well) {
  for (int type : {TensorProto::FLOAT, TensorProto::DOUBLE}) {
    ::onnx::ModelProto model = modelWithInitializer(type, {2000});
    for (int i = 0; i < 2000; ++i) {
      if (type == TensorProto::FLOAT)
        initializerOf(model).add_float_data(0.5f * i);
      else
        initializerOf(model).add_double_data(0.5 * i);
    }
    Located found = write(model);
    ASSERT_EQ(found.error, "");
    ASSERT_TRUE(found.data.inFile);
    std::string bytes = fileRange(folder / "m.onnx", found.data.range);
    double last = type == TensorProto::FLOAT ? reinterpret_cast<const float *>(bytes.data())[1999]
                                             : reinterpret_cast<const double *>(bytes.data())[1999];
    EXPECT_EQ(last, 999.5);
  }
}

TEST_F(Payload, elements_up_to_4096_bytes_are_read) {
  for (size_t size : {4, 1024, 1028, 4096}) {
    std::string bytes = countingBytes(size);
    ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, {static_cast<int64_t>(size / 4)});
    initializerOf(model).set_raw_data(bytes);
    Located found = write(model);
    EXPECT_FALSE(found.data.inFile);
    EXPECT_EQ(found.data.bytes, bytes);
  }
}

TEST_F(Payload, tensors_in_attributes_of_nested_graphs_are_ranges) {
  std::string bytes = countingBytes(6000);
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, {1});
  initializerOf(model).add_float_data(1);
  ::onnx::NodeProto &node = *model.mutable_graph()->add_node();
  node.set_op_type("If");
  node.add_input("w");
  node.add_output("z");
  ::onnx::AttributeProto &branch = *node.add_attribute();
  branch.set_name("then_branch");
  branch.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::NodeProto &constant = *branch.mutable_g()->add_node();
  constant.set_op_type("Constant");
  constant.add_output("c");
  branch.mutable_g()->add_output()->set_name("c");
  ::onnx::AttributeProto &value = *constant.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(TensorProto::INT8);
  value.mutable_t()->add_dims(6000);
  value.mutable_t()->set_raw_data(bytes);
  std::string path = folder.write("m.onnx", model);

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importOnnx(path, context);
  ASSERT_TRUE(mlir::succeeded(module));
  int found = 0;
  (*module)->walk([&](NodeOp op) {
    auto range = op.getAttrs().getAs<RangeAttr>("value");
    if (!range)
      return;
    ++found;
    EXPECT_EQ(fileRange(range.getFile().str(), {range.getOffset(), range.getLength()}), bytes);
  });
  EXPECT_EQ(found, 1);
}

TEST_F(Payload, typed_fields_are_decoded) {
  struct Case {
    int type;
    std::vector<int32_t> entries;
    int64_t elements;
    std::string bytes;
  };
  for (const Case &c : std::vector<Case>{
           {TensorProto::INT8, {-1, 127}, 2, "\xff\x7f"},
           {TensorProto::UINT8, {255, 1}, 2, "\xff\x01"},
           {TensorProto::INT16, {-2}, 1, "\xfe\xff"},
           {TensorProto::UINT16, {65535}, 1, "\xff\xff"},
           {TensorProto::FLOAT16, {0x3c01}, 1, "\x01\x3c"},
           {TensorProto::BFLOAT16, {0x3f81}, 1, "\x81\x3f"},
           {TensorProto::INT4, {0x21, 0x03}, 3, "\x21\x03"},
           {TensorProto::UINT2, {0x1b}, 4, "\x1b"},
           {TensorProto::FLOAT8E5M2, {0x40}, 1, "\x40"},
       }) {
    ::onnx::ModelProto model = modelWithInitializer(c.type, {c.elements});
    for (int32_t entry : c.entries)
      initializerOf(model).add_int32_data(entry);
    Located found = write(model);
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(found.data.bytes, c.bytes) << "element type " << c.type;
  }
}

TEST_F(Payload, refuses_data_that_does_not_fit_its_type) {
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::INT8, {2});
  initializerOf(model).add_int32_data(1);
  expectContains(write(model).error, "expected 2 entries in int32_data for its dimensions, found 1");
  initializerOf(model).add_int32_data(256);
  expectContains(write(model).error, "expected entries of 8 bits in int32_data, found 256");
  initializerOf(model).set_raw_data("ab");
  expectContains(write(model).error, "found raw_data and another");

  model = modelWithInitializer(TensorProto::FLOAT, {2});
  initializerOf(model).set_raw_data("1234567");
  expectContains(write(model).error, "expected 8 bytes of data for its dimensions, found 7");
  initializerOf(model).set_data_type(99);
  expectContains(write(model).error, "expected an element type from 1 (float) to 26 (int2), found 99");

  model = modelWithInitializer(TensorProto::INT32, {500});
  for (int i = 0; i < 500; ++i)
    initializerOf(model).add_float_data(1);
  expectContains(write(model).error, "expected the data of element type int32, found float_data");
}

} // namespace
