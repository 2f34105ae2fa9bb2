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

llvm::Expected<std::string> graphWithout(const std::string &path, const std::vector<std::string> &names) {
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
