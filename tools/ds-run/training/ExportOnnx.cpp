#include "tools/ds-run/training/ExportOnnx.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include "frontends/onnx/proto/Tensors.h"

#include <filesystem>
#include <optional>
#include <vector>

namespace ds {
namespace {

using Proto = onnx::TensorProto;

// The elements as the graph's type has them, in its order.
std::string bytesFor(const Proto &tensor, const NamedView &given, bool isTransposed) {
  ElementType type = tensor.data_type() == Proto::DOUBLE ? ElementType::F64 : ElementType::F32;
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  if (isTransposed && shape.size() == 2)
    std::swap(shape[0], shape[1]);
  if (shape != given.view.shape)
    fail(ErrorCode::ShapeMismatch, "'", given.name, "': found shape ", listText(given.view.shape),
         ", expected that of the graph, ", listText(shape));
  if (given.view.type == type && !isTransposed)
    return {static_cast<const char *>(given.view.data), given.view.bytes()};
  int64_t count = elementCount(shape);
  std::string bytes(byteCount(type, shape), '\0');
  int64_t rows = isTransposed ? shape[0] : 1, columns = isTransposed ? shape[1] : 1;
  for (int64_t i = 0; i < count; ++i) {
    int64_t to = isTransposed ? i % columns * rows + i / columns : i;
    storeDouble(type, bytes.data(), static_cast<size_t>(to),
                loadDouble(given.view.type, given.view.data, static_cast<size_t>(i)));
  }
  return bytes;
}

std::string graphPath(const Package &package) { return package.path() + "/graph-without-parameters.onnx"; }

onnx::ModelProto readGraph(const Package &package) {
  std::string path = graphPath(package);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    fail(ErrorCode::InvalidArgument, package.path(),
         ": keeps no graph of its model: ds-opt writes one with --mode=train");
  MappedFile file(path);
  onnx::ModelProto model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size())))
    fail(ErrorCode::BadFile, path, ": expected a ModelProto");
  return model;
}

std::string operatorIn(const onnx::GraphProto &graph, const std::string &name) {
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.name().empty() ? node.output_size() && node.output(0) == name : node.name() == name)
      return node.op_type();
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (std::string found = attribute.has_g() ? operatorIn(attribute.g(), name) : ""; !found.empty())
        return found;
  }
  return "";
}

} // namespace

void exportOnnx(const Package &package, const std::vector<NamedView> &tensors, const std::string &path,
                const std::map<std::string, Codes> &quantized) {
  onnx::ModelProto model = readGraph(package);
  std::map<std::string, std::pair<const NamedView *, bool>> left; // by name: the tensor, and whether it is transposed
  std::map<const Proto *, CodedTensor> coded;
  uint64_t bytes = model.ByteSizeLong();
  for (const NamedView &tensor : tensors) {
    left[tensor.name] = {&tensor, false};
    bytes += tensor.view.bytes();
  }
  if (const std::optional<TrainingInfo> &training = package.manifest().training)
    for (const TiedWeight &tied : training->tied)
      if (auto kept = left.find(tied.of); kept != left.end()) {
        bytes += kept->second.first->view.bytes();
        left[tied.name] = {kept->second.first, tied.isTransposed};
      }
  constexpr uint64_t largest = 0x7fff0000; // of a protobuf message
  std::optional<AtomicFile> outside;
  std::string outsideName = std::filesystem::path(path).filename().string() + ".data";
  if (bytes > largest)
    outside.emplace(path + ".data");
  uint64_t offset = 0;
  auto fill = [&](const std::string &name, Proto &tensor) {
    auto found = left.find(name);
    if (found == left.end())
      return;
    const auto &[given, isTransposed] = found->second;
    auto codes = quantized.find(given->name);
    std::string data = codes == quantized.end() ? bytesFor(tensor, *given, isTransposed) : codeBytes(codes->second);
    if (codes != quantized.end()) {
      coded[&tensor] = {&codes->second, isTransposed};
      describeCodes(tensor, codes->second);
    }
    if (!outside)
      return tensor.set_raw_data(std::move(data));
    tensor.set_data_location(Proto::EXTERNAL);
    for (auto [key, value] : {std::pair("location", outsideName), std::pair("offset", std::to_string(offset)),
                              std::pair("length", std::to_string(data.size()))}) {
      onnx::StringStringEntryProto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    outside->write(data.data(), data.size());
    offset += data.size();
  };
  deepstride::onnx::forEachTensor(model, [&](Proto &tensor) {
    // Of several names, of the calls of one function, all have the same value.
    std::vector<std::string> names;
    for (const onnx::StringStringEntryProto &entry : tensor.external_data())
      if (entry.key() == deepstride::onnx::parameterKey)
        names.push_back(entry.value());
    if (names.empty())
      return;
    tensor.clear_external_data();
    fill(names.front(), tensor);
    for (const std::string &name : names)
      left.erase(name);
  });
  if (!left.empty())
    fail(ErrorCode::InvalidArgument, "the graph of ", package.path(), " has no tensor '", left.begin()->first, "'");
  addDequantization(model, coded);
  std::string text;
  if (!model.SerializeToString(&text))
    fail(ErrorCode::Internal, "the model could not be serialized");
  AtomicFile file(path);
  file.write(text.data(), text.size());
  if (outside)
    outside->commit();
  file.commit();
}

std::string operatorOf(const Package &package, const std::string &node) {
  std::error_code error;
  return std::filesystem::exists(graphPath(package), error) ? operatorIn(readGraph(package).graph(), node) : "";
}

} // namespace ds
