// Imports graphs: what they declare, their initializers and their nodes; graphs inside of nodes
// become regions. `@main` itself is MainFunction.cpp.

#include "frontends/onnx/reader/GraphImporter.h"

#include "frontends/onnx/dialect/StatedTypes.h"
#include "frontends/onnx/reader/Types.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;
using ::onnx::GraphProto;
using ::onnx::ValueInfoProto;

namespace deepstride::onnx {

StringRef shortDomain(StringRef domain) { return domain == "ai.onnx" ? "" : domain; }

GraphImporter::GraphImporter(const std::string &path, ModelFile &file, MLIRContext *context, const ImportLimits &limits)
    : file(file), model(file.model()), builder(context), limits(limits),
      fileLocation(FileLineColLoc::get(context, path, 0, 0)) {}

Location GraphImporter::locate(StringRef name) const {
  return NameLoc::get(StringAttr::get(builder.getContext(), name), fileLocation);
}

LogicalResult GraphImporter::refuseAt(Location where, const Twine &what) const { return emitError(where) << what; }

LogicalResult GraphImporter::refuseAt(Location where, StringRef subject, Error error) const {
  return refuseAt(where, subject + ": " + llvm::toString(std::move(error)));
}

/// Of the release of ONNX that the conversions were written for, 1.22.
static constexpr int64_t newestOpset = 27;

LogicalResult GraphImporter::importVersions(const Opsets &opsets, Frame &frame, Location where) {
  for (const auto &opset : opsets) {
    if (opset.version() < 1)
      return refuseAt(where, "expected operator set versions of at least 1, found " + Twine(opset.version()) +
                                 " for domain " + quoted(opset.domain()));
    // A later version may give an operator another meaning.
    if (shortDomain(opset.domain()).empty() && opset.version() > newestOpset)
      return refuseAt(where, "expected version 1 to " + Twine(newestOpset) + " of ONNX's operator set, found " +
                                 Twine(opset.version()) + "; convert the model (onnx.version_converter)");
    auto [known, isNew] = frame.versions.try_emplace(shortDomain(opset.domain()), opset.version());
    if (!isNew && known->second != opset.version())
      return refuseAt(where, "expected one version per operator set, found " + Twine(known->second) + " and " +
                                 Twine(opset.version()) + " for domain " + quoted(opset.domain()));
  }
  return success();
}

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (shortDomain(domain) + Twine('\0') + name + Twine('\0') + overload).str();
}

LogicalResult GraphImporter::indexFunctions() {
  for (const auto &function : model.functions()) {
    std::string key = functionKey(function.domain(), function.name(), function.overload());
    if (!functions.try_emplace(key, &function).second)
      return refuseAt(locate(function.name()), "function: expected each once, found domain " +
                                                   quoted(function.domain()) + " and overload " +
                                                   quoted(function.overload()) + " again");
  }
  return success();
}

const ::onnx::FunctionProto *GraphImporter::findFunction(const ::onnx::NodeProto &node) const {
  return functions.lookup(functionKey(node.domain(), node.op_type(), node.overload()));
}

LogicalResult GraphImporter::importModel(ModuleOp module) {
  constexpr int64_t newest = ::onnx::Version::IR_VERSION;
  if (model.ir_version() < 1 || model.ir_version() > newest)
    return refuseAt(fileLocation, "expected an ONNX model of IR version 1 to " + Twine(newest) + ", found version " +
                                      Twine(model.ir_version()));
  if (!model.has_graph())
    return refuseAt(fileLocation, "expected a model with a graph, found none");

  module->setAttr("onnx.ir_version", builder.getI64IntegerAttr(model.ir_version()));
  module->setAttr("onnx.producer",
                  builder.getStringAttr(model.producer_name() + (model.producer_version().empty() ? "" : " ") +
                                        model.producer_version()));
  SmallVector<Attribute> imports;
  for (const auto &opset : model.opset_import())
    imports.push_back(builder.getArrayAttr(
        {builder.getStringAttr(shortDomain(opset.domain())), builder.getI64IntegerAttr(opset.version())}));
  module->setAttr("onnx.opset_import", builder.getArrayAttr(imports));
  if (failed(indexFunctions()) || failed(importMain(module)))
    return failure();
  for (const auto &training : model.training_info()) {
    const Nodes &nodes =
        training.algorithm().node_size() ? training.algorithm().node() : training.initialization().node();
    std::string first = nodes.empty() ? "" : ", whose first node is '" + labelOf(nodes[0], 0, "") + "'";
    emitWarning(fileLocation) << "the model's training_info" << first
                              << ", is left out: --mode=train makes steps of its own";
  }
  tolerated.emit();
  return success();
}

Expected<Type> GraphImporter::importValueType(const ValueInfoProto &value) {
  for (const auto &dim : value.type().tensor_type().shape().dim())
    if (dim.has_dim_value() && !isStated(dim))
      tolerated.add("such dimensions", locate(value.name()),
                    "type of value: expected sizes of at least 0, found -1; taken as dynamic");
  return importType(value.type(), builder.getContext(), limits);
}

LogicalResult GraphImporter::addArgument(const ValueInfoProto &input, Block &block, Scope &scope) {
  Location where = locate(input.name());
  if (input.name().empty())
    return refuseAt(fileLocation, "expected graph inputs to have names, found one without");
  Expected<Type> type = importValueType(input);
  if (!type)
    return refuseAt(where, "graph input", type.takeError());
  return define(input.name(), block.addArgument(*type, where), scope, where);
}

/// A statement about a value that is known otherwise may have a wrong shape, but no other elements.
LogicalResult GraphImporter::requireAgreement(StringRef name, Type known, Type stated) {
  if (!contradict(known, stated))
    return success();
  if (getElementTypeOrSelf(known) != getElementTypeOrSelf(stated))
    return refuseAt(locate(name), "type of value: expected one type, found " + describeTensor(known) + " and " +
                                      describeTensor(stated));
  tolerated.add("such statements", locate(name),
                "type of value: expected one shape, found " + describeTensor(known) + " and " + describeTensor(stated) +
                    "; statements that contradict each other or the value do not count");
  return success();
}

LogicalResult GraphImporter::collectTypes(const GraphProto &graph, Scope &scope) {
  for (const auto *values : {&graph.value_info(), &graph.output()})
    for (const ValueInfoProto &value : *values) {
      Expected<Type> type = importValueType(value);
      if (!type)
        return refuseAt(locate(value.name()), "type of value", type.takeError());
      // Of an input, whose type is known, or stated before.
      auto argument = scope.values.find(value.name());
      auto [known, isNew] = scope.types.try_emplace(value.name(), *type);
      Type other = argument != scope.values.end() ? argument->second.getType() : known->second;
      if (failed(requireAgreement(value.name(), other, *type)))
        return failure();
      // Two statements about one value: keep the one with a shape, and none where they differ.
      if (!isNew && contradict(known->second, *type))
        known->second = UnrankedTensorType::get(getElementTypeOrSelf(*type));
      else if (!isNew && !isa<RankedTensorType>(known->second))
        known->second = *type;
    }
  return success();
}

LogicalResult GraphImporter::importInitializers(const GraphProto &graph, Scope &scope) {
  for (const auto &tensor : graph.initializer()) {
    Location where = locate(tensor.name());
    if (tensor.name().empty())
      return refuseAt(fileLocation, "expected initializers to have names, found one without");
    Expected<TypedAttr> value = importTensor(tensor, file, builder.getContext());
    if (!value)
      return refuseAt(where, "initializer", value.takeError());
    if (Type stated = scope.types.lookup(tensor.name()); stated && contradict(stated, value->getType())) {
      // As an input it may be given at run time, by what the file states.
      if (scope.defaults.contains(tensor.name()) ||
          getElementTypeOrSelf(stated) != getElementTypeOrSelf(value->getType()))
        return refuseAt(where, "initializer: expected " + describeTensor(stated) + ", as the model states, found " +
                                   describeTensor(value->getType()));
      (void)requireAgreement(tensor.name(), value->getType(), stated);
    }
    Value result = InitializerOp::create(builder, where, value->getType(), tensor.name(), *value);
    if (failed(define(tensor.name(), result, scope, where)))
      return failure();
  }
  for (const auto &tensor : graph.sparse_initializer())
    if (failed(importSparseInitializer(tensor, scope)))
      return failure();
  return success();
}

/// A sparse initializer is what a Constant node with `sparse_value` is.
LogicalResult GraphImporter::importSparseInitializer(const ::onnx::SparseTensorProto &tensor, Scope &scope) {
  const std::string &name = tensor.values().name();
  Location where = locate(name);
  if (name.empty())
    return refuseAt(fileLocation, "expected sparse initializers to have names, found one without");
  Expected<Attribute> value = importSparse(tensor);
  if (!value)
    return refuseAt(where, "sparse initializer", value.takeError());
  ::onnx::NodeProto constant;
  constant.set_op_type("Constant");
  FailureOr<int64_t> version = findVersion(constant, *scope.frame, where);
  if (failed(version))
    return failure();
  auto attrs = builder.getDictionaryAttr(builder.getNamedAttr("sparse_value", *value));
  auto node =
      NodeOp::create(builder, where, TypeRange{UnknownType::get(builder.getContext())}, ValueRange(), "Constant", "",
                     *version, attrs, builder.getStrArrayAttr({name}), builder.getStrArrayAttr({}), 0u);
  return define(name, node.getResult(0), scope, where);
}

LogicalResult GraphImporter::importGraphBody(const GraphProto &graph, Scope &scope, SmallVectorImpl<Value> &outputs) {
  Block *block = builder.getInsertionBlock();
  if (failed(collectTypes(graph, scope)) || failed(importInitializers(graph, scope)))
    return failure();
  SmallVector<Operation *> stored;
  for (Operation &op : *block)
    stored.push_back(&op);
  Location where = graph.name().empty() ? fileLocation : locate(graph.name());
  if (failed(importNodes(graph.node(), scope, where)))
    return failure();
  for (const ValueInfoProto &output : graph.output()) {
    Value value = lookUp(output.name(), scope);
    if (!value)
      return refuseAt(locate(output.name()), "graph output: expected a value that the graph computes, found none");
    outputs.push_back(value);
  }
  llvm::DenseSet<Value> returned(outputs.begin(), outputs.end());
  for (Operation *op : stored)
    if (op->use_empty() && !returned.contains(op->getResult(0)))
      op->erase();
  return success();
}

LogicalResult GraphImporter::importSubgraph(const GraphProto &graph, Region &region, const Scope &around,
                                            const std::string &path, Location where) {
  Scope scope;
  scope.parent = &around;
  scope.frame = around.frame;
  scope.path = path + "/";
  scope.depth = around.depth + 1;
  if (scope.depth > limits.depth)
    return refuseAt(where,
                    "expected at most " + Twine(limits.depth) + " nested subgraphs and function calls, found more");
  OpBuilder::InsertionGuard guard(builder);
  Block &block = region.emplaceBlock();
  for (const ValueInfoProto &input : graph.input())
    if (failed(addArgument(input, block, scope)))
      return failure();
  builder.setInsertionPointToStart(&block);
  SmallVector<Value> outputs;
  if (failed(importGraphBody(graph, scope, outputs)))
    return failure();
  ReturnOp::create(builder, where, outputs);
  return success();
}

} // namespace deepstride::onnx
