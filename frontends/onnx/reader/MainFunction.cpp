// Imports the model's graph as `@main`: its arguments and results with their ONNX names and the names
// of their dimensions.

#include "frontends/onnx/reader/GraphImporter.h"
#include "frontends/onnx/reader/Types.h"

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::TypeProto;
using ::onnx::ValueInfoProto;

namespace deepstride::onnx {

/// Exporters write "?" for a dimension without a name: it says nothing about other dimensions.
static bool isNamed(const ::onnx::TensorShapeProto::Dimension &dim) {
  return dim.has_dim_param() && !dim.dim_param().empty() && dim.dim_param() != "?";
}

ArrayAttr GraphImporter::describeDims(const TypeProto &type) {
  SmallVector<Attribute> dims;
  for (const auto &dim : type.tensor_type().shape().dim())
    if (isStated(dim))
      dims.push_back(builder.getI64IntegerAttr(dim.dim_value()));
    else
      dims.push_back(builder.getStringAttr(isNamed(dim) ? dim.dim_param() : ""));
  return builder.getArrayAttr(dims);
}

DictionaryAttr GraphImporter::describeValue(const ValueInfoProto &value) {
  SmallVector<NamedAttribute> attributes;
  attributes.push_back(builder.getNamedAttr(sourceName, builder.getStringAttr(value.name())));
  if (value.type().tensor_type().has_shape())
    attributes.push_back(builder.getNamedAttr(sourceDims, describeDims(value.type())));
  return builder.getDictionaryAttr(attributes);
}

LogicalResult GraphImporter::importMain(ModuleOp module) {
  const GraphProto &graph = model.graph();
  Frame frame;
  if (failed(importVersions(model.opset_import(), frame, fileLocation)))
    return failure();
  if (model.ir_version() < 3)
    frame.versions.try_emplace("", 1);

  builder.setInsertionPointToEnd(module.getBody());
  auto main = func::FuncOp::create(builder, fileLocation, "main", builder.getFunctionType({}, {}));
  mainBlock = main.addEntryBlock();
  builder.setInsertionPointToStart(mainBlock);

  Scope scope;
  scope.frame = &frame;
  llvm::StringSet<> stored;
  for (const auto &tensor : graph.initializer())
    stored.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    stored.insert(tensor.values().name());
  SmallVector<Attribute> arguments, results;
  for (const ValueInfoProto &input : graph.input()) {
    // Up to IR version 3 initializers must be listed as inputs; later, that makes them defaults.
    if (stored.contains(input.name())) {
      llvm::Expected<Type> type = importValueType(input);
      if (!type)
        return refuseAt(locate(input.name()), "graph input", type.takeError());
      scope.types.try_emplace(input.name(), *type);
      scope.defaults.insert(input.name());
      continue;
    }
    if (failed(addArgument(input, *mainBlock, scope)))
      return failure();
    if (isa<UnknownType>(mainBlock->getArguments().back().getType()))
      return refuseAt(locate(input.name()), "graph input: expected a type, found none");
    arguments.push_back(describeValue(input));
  }

  SmallVector<Value> outputs;
  if (failed(importGraphBody(graph, scope, outputs)))
    return failure();
  func::ReturnOp::create(builder, fileLocation, outputs);
  llvm::StringSet<> names;
  for (const ValueInfoProto &output : graph.output()) {
    if (!names.insert(output.name()).second)
      return refuseAt(locate(output.name()), "graph output: expected outputs with different names, found it twice");
    results.push_back(describeValue(output));
  }
  main.setFunctionType(builder.getFunctionType(mainBlock->getArgumentTypes(), TypeRange(ValueRange(outputs))));
  main.setAllArgAttrs(arguments);
  main.setAllResultAttrs(results);
  return success();
}

} // namespace deepstride::onnx
