#include "frontends/onnx/reader/TrainedGraph.h"

#include "frontends/onnx/proto/Tensors.h"
#include "frontends/onnx/reader/FileAccess.h"
#include "frontends/onnx/reader/StoredTensors.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>

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
  proto::ValueInfoProto value;
  for (const proto::ValueInfoProto &output : graph.output())
    if (output.name() == head.output)
      value = output;
  value.set_name("head");
  proto::TypeProto_Tensor &type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(proto::TensorProto::FLOAT);
  if (int axes = type.shape().dim_size(); axes > 0)
    type.mutable_shape()->mutable_dim(axes - 1)->set_dim_value(head.classes);
  *graph.add_output() = std::move(value);
}

/// The names that addHead gives must be free.
static llvm::Error checkNames(const proto::GraphProto &graph) {
  auto check = [](const std::string &name) -> llvm::Error {
    if (llvm::is_contained({"head", "head.product", "head.weight", "head.bias"}, name))
      return refuse("--head: the model has a tensor " + quoted(name) + " already; rename it");
    return llvm::Error::success();
  };
  for (const proto::TensorProto &tensor : graph.initializer())
    if (llvm::Error error = check(tensor.name()))
      return error;
  for (const proto::ValueInfoProto &input : graph.input())
    if (llvm::Error error = check(input.name()))
      return error;
  for (const proto::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      if (llvm::Error error = check(output))
        return error;
  return llvm::Error::success();
}

/// A Constant node's numbers as a tensor.
static proto::TensorProto &makeTensor(proto::AttributeProto &attribute) {
  proto::TensorProto &tensor = *attribute.mutable_t();
  tensor.set_data_type(proto::TensorProto::FLOAT);
  if (attribute.name() == "value_floats")
    tensor.add_dims(attribute.floats_size());
  attribute.set_name("value");
  attribute.set_type(proto::AttributeProto::TENSOR);
  attribute.clear_f();
  attribute.clear_floats();
  return tensor;
}

static void nameParameter(proto::TensorProto &tensor, const std::string &name) {
  proto::StringStringEntryProto *entry = tensor.add_external_data();
  entry->set_key(parameterKey);
  entry->set_value(name);
}

namespace {
/// Finds the tensor of each learned name.
class Places {
public:
  Places(proto::ModelProto &model, const std::vector<LearnedTensor> &learned) : stored(storedTensors(model)) {
    for (const LearnedTensor &tensor : learned)
      byName[tensor.name] = &tensor;
  }

  llvm::Error check() {
    llvm::StringMap<const void *> placeOf;
    llvm::StringSet<> shared; // names of several tensors
    for (const StoredTensor &tensor : stored)
      if (auto [known, isNew] = placeOf.try_emplace(tensor.name, tensor.place());
          !isNew && known->second != tensor.place())
        shared.insert(tensor.name);
    for (const auto &[name, tensor] : byName) {
      // The import tells tensors of one name apart by numbers at the end.
      llvm::StringRef base = name;
      for (; !shared.contains(base) && base.contains('_'); base = base.rsplit('_').first)
        if (!llvm::all_of(base.rsplit('_').second, llvm::isDigit))
          break;
      if (shared.contains(base))
        return refuse("expected one tensor of the file to be called " + quoted(base) + ", found several; rename them");
      if (!placeOf.count(name))
        return refuse(quoted(name) + " is no initializer and no value of a Constant node");
    }
    return checkShared();
  }

  void clear() {
    for (StoredTensor &stored : stored) {
      if (!byName.count(stored.name))
        continue;
      if (cleared.insert(stored.place()).second && stored.tensor)
        removeData(*stored.tensor);
      nameParameter(stored.tensor ? *stored.tensor : made(*stored.attribute), stored.name);
    }
  }

private:
  /// A tensor of a function is one value in the file, whatever its calls have learned.
  llvm::Error checkShared() {
    llvm::DenseMap<const void *, const StoredTensor *> first;
    for (const StoredTensor &tensor : stored) {
      auto [known, isNew] = first.try_emplace(tensor.place(), &tensor);
      if (isNew)
        continue;
      auto one = byName.find(known->second->name), other = byName.find(tensor.name);
      bool isSame =
          one == byName.end() || other == byName.end()
              ? one == other
              : one->second->of == other->second->of && one->second->isTransposed == other->second->isTransposed;
      if (!isSame)
        return refuse(quoted(known->second->name) + " and " + quoted(tensor.name) +
                      " are one tensor of a function that is called twice, but are not trained as one");
    }
    return llvm::Error::success();
  }

  static proto::TensorProto &made(proto::AttributeProto &attribute) {
    return attribute.has_t() ? *attribute.mutable_t() : makeTensor(attribute);
  }

  std::vector<StoredTensor> stored;
  std::map<std::string, const LearnedTensor *> byName;
  llvm::DenseSet<const void *> cleared;
};
} // namespace

llvm::Expected<KeptGraph> graphWithout(const std::string &path, const std::vector<LearnedTensor> &learned,
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
  if (llvm::Error error = head.output.empty() ? llvm::Error::success() : checkNames(model.graph()))
    return error;
  if (!head.output.empty())
    addHead(*model.mutable_graph(), head);
  Places places(model, learned);
  if (llvm::Error error = places.check())
    return error;
  places.clear();
  std::string folder = folderOf(path);
  llvm::Error failure = llvm::Error::success();
  uint64_t bytes = 0;
  forEachTensor(model, [&](proto::TensorProto &tensor) {
    if (failure || bytes > INT32_MAX)
      return;
    if (tensor.data_location() == proto::TensorProto::EXTERNAL)
      failure = embed(tensor, folder);
    bytes += tensor.ByteSizeLong();
  });
  if (failure)
    return failure;
  if (bytes > INT32_MAX)
    return KeptGraph{"", "tensors that are not trained exceed 2 GiB"};
  std::string text;
  if (!model.SerializeToString(&text))
    return KeptGraph{"", "what is not trained exceeds 2 GiB"};
  return KeptGraph{std::move(text), ""};
}

} // namespace deepstride::onnx
