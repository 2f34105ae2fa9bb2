// Imports the attributes of a node 1:1. Inside a function an attribute may refer to one of the call;
// graphs are handed back, they become regions.

#include "frontends/onnx/reader/GraphImporter.h"
#include "frontends/onnx/reader/Types.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;
using ::onnx::AttributeProto;

namespace deepstride::onnx {

/// Files of IR version 1 need not state the type of an attribute.
static AttributeProto::AttributeType typeOf(const AttributeProto &attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED)
    return attribute.type();
  if (attribute.has_f())
    return AttributeProto::FLOAT;
  if (attribute.has_i())
    return AttributeProto::INT;
  if (attribute.has_s())
    return AttributeProto::STRING;
  if (attribute.has_t())
    return AttributeProto::TENSOR;
  if (attribute.has_g())
    return AttributeProto::GRAPH;
  if (attribute.floats_size())
    return AttributeProto::FLOATS;
  if (attribute.ints_size())
    return AttributeProto::INTS;
  if (attribute.strings_size())
    return AttributeProto::STRINGS;
  if (attribute.tensors_size())
    return AttributeProto::TENSORS;
  if (attribute.graphs_size())
    return AttributeProto::GRAPHS;
  return AttributeProto::UNDEFINED;
}

FailureOr<const AttributeProto *> GraphImporter::resolve(const AttributeProto &attribute, const Frame &frame,
                                                         Location where) {
  if (attribute.ref_attr_name().empty())
    return &attribute;
  std::string subject = "attribute " + quoted(attribute.name());
  if (!frame.function)
    return refuseAt(where, subject + ": expected a value, found a reference outside of a function");
  auto found = frame.attributes.find(attribute.ref_attr_name());
  if (found == frame.attributes.end())
    return static_cast<const AttributeProto *>(nullptr);
  const AttributeProto *value = found->second;
  if (attribute.type() != AttributeProto::UNDEFINED && attribute.type() != typeOf(*value))
    return refuseAt(where, subject + ": expected type " + AttributeProto::AttributeType_Name(attribute.type()) +
                               ", found type " + AttributeProto::AttributeType_Name(typeOf(*value)) +
                               " in the call of " + quoted(frame.function->name()));
  if (typeOf(*value) == AttributeProto::GRAPH || typeOf(*value) == AttributeProto::GRAPHS)
    return refuseAt(where, subject + ": expected a value, found a graph given to function " +
                               quoted(frame.function->name()) + ", which is not supported");
  return value;
}

LogicalResult GraphImporter::importAttributes(const Attributes &attributes, const Frame &frame, Location where,
                                              SmallVectorImpl<NamedAttribute> &named,
                                              SmallVectorImpl<Subgraph> &subgraphs) {
  llvm::StringSet<> seen;
  for (const AttributeProto &attribute : attributes) {
    std::string subject = "attribute " + quoted(attribute.name());
    if (attribute.name().empty())
      return refuseAt(where, "expected attributes to have names, found one without");
    if (!seen.insert(attribute.name()).second)
      return refuseAt(where, subject + ": expected it once, found it again");
    FailureOr<const AttributeProto *> value = resolve(attribute, frame, where);
    if (failed(value))
      return failure();
    if (!*value)
      continue;
    AttributeProto::AttributeType type = typeOf(**value);
    if (type == AttributeProto::GRAPH) {
      subgraphs.push_back({attribute.name(), &(*value)->g()});
      continue;
    }
    if (type == AttributeProto::GRAPHS) {
      for (const auto &[index, graph] : llvm::enumerate((*value)->graphs()))
        subgraphs.push_back({attribute.name() + "[" + std::to_string(index) + "]", &graph});
      continue;
    }
    Expected<Attribute> imported = importAttribute(**value);
    if (!imported)
      return refuseAt(where, subject, imported.takeError());
    named.push_back(builder.getNamedAttr(attribute.name(), *imported));
  }
  return success();
}

Expected<Attribute> GraphImporter::importSparse(const ::onnx::SparseTensorProto &tensor) {
  Expected<TypedAttr> values = importTensor(tensor.values(), file, builder.getContext());
  if (!values)
    return values.takeError();
  Expected<TypedAttr> indices = importTensor(tensor.indices(), file, builder.getContext());
  if (!indices)
    return indices.takeError();
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (Error error = countElements(dims, limits).takeError())
    return std::move(error);
  return builder.getDictionaryAttr({
      builder.getNamedAttr("values", *values),
      builder.getNamedAttr("indices", *indices),
      builder.getNamedAttr("dims", builder.getDenseI64ArrayAttr(dims)),
  });
}

/// An ArrayAttr of what `import` makes of each element.
template <typename List, typename Import>
static Expected<Attribute> importList(OpBuilder &builder, const List &list, Import import) {
  SmallVector<Attribute> elements;
  for (const auto &element : list) {
    Expected<Attribute> imported = import(element);
    if (!imported)
      return imported.takeError();
    elements.push_back(*imported);
  }
  return builder.getArrayAttr(elements);
}

Expected<Attribute> GraphImporter::importAttribute(const AttributeProto &attribute) {
  auto tensor = [&](const ::onnx::TensorProto &value) -> Expected<Attribute> {
    return importTensor(value, file, builder.getContext());
  };
  auto sparse = [&](const ::onnx::SparseTensorProto &value) { return importSparse(value); };
  auto string = [&](const std::string &value) -> Expected<Attribute> { return builder.getStringAttr(value); };
  auto type = [&](const ::onnx::TypeProto &value) -> Expected<Attribute> {
    Expected<Type> imported = importType(value, builder.getContext(), limits);
    if (!imported)
      return imported.takeError();
    return TypeAttr::get(*imported);
  };
  switch (typeOf(attribute)) {
  case AttributeProto::FLOAT: return builder.getF32FloatAttr(attribute.f());
  case AttributeProto::INT: return builder.getI64IntegerAttr(attribute.i());
  case AttributeProto::STRING: return string(attribute.s());
  case AttributeProto::TENSOR: return tensor(attribute.t());
  case AttributeProto::SPARSE_TENSOR: return sparse(attribute.sparse_tensor());
  case AttributeProto::TYPE_PROTO: return type(attribute.tp());
  case AttributeProto::FLOATS:
    return builder.getDenseF32ArrayAttr(SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
  case AttributeProto::INTS:
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
  case AttributeProto::STRINGS: return importList(builder, attribute.strings(), string);
  case AttributeProto::TENSORS: return importList(builder, attribute.tensors(), tensor);
  case AttributeProto::SPARSE_TENSORS: return importList(builder, attribute.sparse_tensors(), sparse);
  case AttributeProto::TYPE_PROTOS: return importList(builder, attribute.type_protos(), type);
  case AttributeProto::GRAPH:
  case AttributeProto::GRAPHS:
  case AttributeProto::UNDEFINED: break;
  }
  return refuse("expected a type and a value, found neither");
}

} // namespace deepstride::onnx
