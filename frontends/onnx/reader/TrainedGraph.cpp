#include "frontends/onnx/reader/TrainedGraph.h"

#include "frontends/onnx/reader/FileAccess.h"

#include "onnx-ml.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

namespace deepstride::onnx {
namespace proto = ::onnx;

static void removeData(proto::TensorProto &tensor) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
}

/// Reads the data of a tensor in an external file into the model.
static llvm::Error embed(proto::TensorProto &tensor, const std::string &folder) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool hasLength = false;
  for (const proto::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      (void)llvm::to_integer(entry.value(), offset);
    else if (entry.key() == "length")
      hasLength = llvm::to_integer(entry.value(), length);
  }
  llvm::Expected<OpenFile> file = openBelow(folder, location);
  if (!file)
    return file.takeError();
  if (!hasLength) {
    llvm::Expected<uint64_t> size = file->size();
    if (!size)
      return size.takeError();
    length = *size > offset ? *size - offset : 0;
  }
  llvm::Expected<std::string> bytes = file->read(offset, length);
  if (!bytes)
    return bytes.takeError();
  removeData(tensor);
  tensor.set_raw_data(std::move(*bytes));
  return llvm::Error::success();
}

static void addHead(proto::GraphProto &graph, const AddedHead &head) {
  auto addTensor = [&](const char *name, std::initializer_list<int64_t> dims) {
    proto::TensorProto *tensor = graph.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(proto::TensorProto::FLOAT);
    for (int64_t dim : dims)
      tensor->add_dims(dim);
  };
  auto addNode = [&](const char *kind, const std::string &a, const char *b, const char *result) {
    proto::NodeProto *node = graph.add_node();
    node->set_op_type(kind);
    node->set_name(std::string("head/") + kind);
    node->add_input(a);
    node->add_input(b);
    node->add_output(result);
  };
  addTensor("head.weight", {head.features, head.classes});
  addTensor("head.bias", {head.classes});
  addNode("MatMul", head.output, "head.weight", "head.product");
  addNode("Add", "head.product", "head.bias", "head");
  proto::ValueInfoProto *value = graph.add_output();
  value->set_name("head");
  value->mutable_type()->mutable_tensor_type()->set_elem_type(proto::TensorProto::FLOAT);
}

llvm::Expected<std::string> graphWithout(const std::string &path, const std::vector<std::string> &names,
                                         const AddedHead &head) {
  llvm::Expected<OpenFile> file = openNamedFile(path);
  if (!file)
    return file.takeError();
  llvm::Expected<MappedFile> mapped = MappedFile::map(*file);
  if (!mapped)
    return mapped.takeError();
  proto::ModelProto model;
  if (mapped->bytes().size() > INT32_MAX ||
      !model.ParseFromArray(mapped->bytes().data(), static_cast<int>(mapped->bytes().size())))
    return refuse("expected a ModelProto of at most 2 GiB");
  if (!head.output.empty() && head.features == 0)
    return refuse("the layer of --head is not trained");
  if (!head.output.empty())
    addHead(*model.mutable_graph(), head);
  llvm::StringSet<> left;
  for (const std::string &name : names)
    left.insert(name);
  std::string folder = llvm::sys::path::parent_path(path).str();
  uint64_t bytes = 0;
  for (proto::TensorProto &tensor : *model.mutable_graph()->mutable_initializer()) {
    if (left.erase(tensor.name()))
      removeData(tensor);
    else if (tensor.data_location() == proto::TensorProto::EXTERNAL)
      if (llvm::Error error = embed(tensor, folder))
        return error;
    bytes += tensor.ByteSizeLong();
    if (bytes > INT32_MAX)
      return refuse("tensors that are not trained exceed 2 GiB");
  }
  for (proto::NodeProto &node : *model.mutable_graph()->mutable_node())
    if (node.op_type() == "Constant" && node.output_size() == 1 && left.erase(node.output(0)))
      for (proto::AttributeProto &attribute : *node.mutable_attribute())
        if (attribute.has_t())
          removeData(*attribute.mutable_t());
  if (!left.empty())
    return refuse("'" + left.begin()->getKey() + "' is no initializer of the main graph");
  std::string text;
  if (!model.SerializeToString(&text))
    return refuse("what is not trained exceeds 2 GiB");
  return text;
}

} // namespace deepstride::onnx
