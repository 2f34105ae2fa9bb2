// Turns the graph of a parsed model into ops of the `onnx` dialect. Used by importOnnx only.

#ifndef FRONTENDS_ONNX_READER_GRAPHIMPORTER_H
#define FRONTENDS_ONNX_READER_GRAPHIMPORTER_H

#include "frontends/onnx/dialect/Onnx.h"
#include "frontends/onnx/dialect/Tolerated.h"
#include "frontends/onnx/reader/ModelFile.h"
#include "frontends/onnx/reader/NodeOrder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride::onnx {

class GraphImporter {
public:
  GraphImporter(const std::string &path, ModelFile &file, mlir::MLIRContext *context, const ImportLimits &limits);

  /// Fills `module` with `@main`.
  mlir::LogicalResult importModel(mlir::ModuleOp module);

private:
  using Attributes = google::protobuf::RepeatedPtrField<::onnx::AttributeProto>;
  using Opsets = google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>;

  /// What the body of a function sees of its call; for the main graph only the versions are set.
  struct Frame {
    llvm::StringMap<int64_t> versions;
    const ::onnx::FunctionProto *function = nullptr;
    const Frame *caller = nullptr;
    /// Values for the body's attribute references.
    llvm::StringMap<const ::onnx::AttributeProto *> attributes;
    /// Makes the names of the call unique: empty, or `call/`.
    std::string prefix;
    /// Names and types that the caller gives to the function's outputs.
    llvm::StringMap<std::pair<std::string, mlir::Type>> outputs;
  };

  /// Values that a graph defines; names that it does not define are looked up around it.
  struct Scope {
    const Scope *parent = nullptr;
    Frame *frame = nullptr;
    llvm::StringMap<mlir::Value> values;
    /// Types that the graph states for its values.
    llvm::StringMap<mlir::Type> types;
    /// Inputs that initializers give values to.
    llvm::StringSet<> defaults;
    /// Prefix for the labels of nodes without a name.
    std::string path;
    unsigned depth = 0;
  };

  // GraphImporter.cpp: graphs and what they declare.
  mlir::LogicalResult importVersions(const Opsets &opsets, Frame &frame, mlir::Location where);
  mlir::LogicalResult indexFunctions();
  mlir::LogicalResult addArgument(const ::onnx::ValueInfoProto &input, mlir::Block &block, Scope &scope);
  mlir::LogicalResult collectTypes(const ::onnx::GraphProto &graph, Scope &scope);
  mlir::LogicalResult importInitializers(const ::onnx::GraphProto &graph, Scope &scope);
  mlir::LogicalResult importSparseInitializer(const ::onnx::SparseTensorProto &tensor, Scope &scope);
  mlir::LogicalResult importGraphBody(const ::onnx::GraphProto &graph, Scope &scope,
                                      llvm::SmallVectorImpl<mlir::Value> &outputs);
  mlir::LogicalResult importSubgraph(const ::onnx::GraphProto &graph, mlir::Region &region, const Scope &around,
                                     const std::string &path, mlir::Location where);

  /// The type of a value that a graph declares; notes sizes of -1.
  llvm::Expected<mlir::Type> importValueType(const ::onnx::ValueInfoProto &value);
  mlir::LogicalResult requireAgreement(llvm::StringRef name, mlir::Type known, mlir::Type stated);

  // MainFunction.cpp: the model's graph.
  mlir::LogicalResult importMain(mlir::ModuleOp module);
  mlir::ArrayAttr describeDims(const ::onnx::TypeProto &type);
  mlir::DictionaryAttr describeValue(const ::onnx::ValueInfoProto &value);

  // NodeImporter.cpp: nodes and calls of functions.
  mlir::LogicalResult importNodes(const Nodes &nodes, Scope &scope, mlir::Location where);
  mlir::LogicalResult importNode(const ::onnx::NodeProto &node, Scope &scope, const std::string &label);
  mlir::LogicalResult createNode(const ::onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<mlir::Value> inputs,
                                 const std::string &label, mlir::Location where);
  mlir::LogicalResult addNamedValues(const ::onnx::NodeProto &node, mlir::DictionaryAttr attributes, const Scope &scope,
                                     mlir::Location where, llvm::SmallVectorImpl<mlir::Value> &inputs);
  mlir::LogicalResult inlineCall(const ::onnx::NodeProto &node, const ::onnx::FunctionProto &function, Scope &scope,
                                 llvm::ArrayRef<mlir::Value> inputs, const std::string &label, mlir::Location where);
  std::pair<std::string, mlir::Type> describeOutput(llvm::StringRef output, const Scope &scope);
  const ::onnx::FunctionProto *findFunction(const ::onnx::NodeProto &node) const;
  mlir::FailureOr<int64_t> findVersion(const ::onnx::NodeProto &node, const Frame &frame, mlir::Location where);
  mlir::LogicalResult define(llvm::StringRef name, mlir::Value value, Scope &scope, mlir::Location where);
  bool isSameConstant(mlir::Value known, mlir::Value again);
  mlir::Value lookUp(llvm::StringRef name, const Scope &scope) const;
  mlir::Value absentValue();

  // Attributes.cpp
  struct Subgraph {
    std::string name;
    const ::onnx::GraphProto *graph;
  };
  /// Follows references to the attribute that a call gives; null where the call leaves it out.
  mlir::FailureOr<const ::onnx::AttributeProto *> resolve(const ::onnx::AttributeProto &attribute, const Frame &frame,
                                                          mlir::Location where);
  mlir::LogicalResult importAttributes(const Attributes &attributes, const Frame &frame, mlir::Location where,
                                       llvm::SmallVectorImpl<mlir::NamedAttribute> &named,
                                       llvm::SmallVectorImpl<Subgraph> &subgraphs);
  llvm::Expected<mlir::Attribute> importAttribute(const ::onnx::AttributeProto &attribute);
  llvm::Expected<mlir::Attribute> importSparse(const ::onnx::SparseTensorProto &tensor);

  mlir::Location locate(llvm::StringRef name) const;
  /// Reports why the model is refused; `what` is one line.
  mlir::LogicalResult refuseAt(mlir::Location where, const llvm::Twine &what) const;
  mlir::LogicalResult refuseAt(mlir::Location where, llvm::StringRef subject, llvm::Error error) const;

  ModelFile &file;
  const ::onnx::ModelProto &model;
  mlir::OpBuilder builder;
  const ImportLimits &limits;
  mlir::Location fileLocation;
  llvm::StringMap<const ::onnx::FunctionProto *> functions;
  llvm::StringMap<unsigned> prefixes;
  mlir::Block *mainBlock = nullptr;
  mlir::Value absent;
  uint64_t nodeCount = 0;
  Tolerated tolerated;
};

/// `ai.onnx` is the long name of the empty domain.
llvm::StringRef shortDomain(llvm::StringRef domain);

/// By what a call finds its function.
std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload);

/// What messages and locations call a node: its name, or its operator and position.
std::string labelOf(const ::onnx::NodeProto &node, int index, llvm::StringRef path);

/// What comes before the names of a call's values; `uses` calls of this label were before it.
std::string callPrefix(llvm::StringRef label, unsigned uses);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_GRAPHIMPORTER_H
