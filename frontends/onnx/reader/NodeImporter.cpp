// Imports nodes. A node becomes one `onnx.node`; the call of a model-local function becomes the
// nodes of its body, with attribute references replaced and names made unique by the call's name.

#include "frontends/onnx/dialect/ConstantNodes.h"
#include "frontends/onnx/reader/GraphImporter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using ::onnx::FunctionProto;
using ::onnx::NodeProto;

namespace deepstride::onnx {

/// What an initializer or a Constant node holds; nothing where it is neither.
static Attribute storedContents(Value value) {
  if (auto initializer = value.getDefiningOp<InitializerOp>())
    return initializer.getValue();
  auto node = value.getDefiningOp<NodeOp>();
  bool isConstant = node && node.getOpType() == "Constant" && node.getDomain().empty() && node.getAttrs().size() == 1 &&
                    node.getNumResults() == 1;
  if (!isConstant)
    return {};
  NamedAttribute held = *node.getAttrs().begin();
  if (TypedAttr tensor = heldTensor(held))
    return tensor;
  return held.getValue();
}

bool GraphImporter::isSameConstant(Value known, Value again) {
  Attribute left = storedContents(known), right = storedContents(again);
  if (!left || !right)
    return false;
  if (left == right)
    return true;
  auto one = dyn_cast<RangeAttr>(left), other = dyn_cast<RangeAttr>(right);
  return one && other && one.getType() == other.getType() &&
         file.holdsSame({one.getFile().str(), {one.getOffset(), one.getLength()}},
                        {other.getFile().str(), {other.getOffset(), other.getLength()}});
}

LogicalResult GraphImporter::define(StringRef name, Value value, Scope &scope, Location where) {
  auto [known, isNew] = scope.values.try_emplace(name, value);
  if (isNew)
    return success();
  if (isSameConstant(known->second, value)) {
    tolerated.add("such values", where,
                  "expected values with different names, found " + quoted(name) +
                      " defined twice in one graph, with equal contents");
    return success(); // the second one stays without users
  }
  return refuseAt(where, "expected values with different names, found " + quoted(name) + " defined twice in one graph");
}

Value GraphImporter::lookUp(StringRef name, const Scope &scope) const {
  for (const Scope *around = &scope; around; around = around->parent)
    if (Value value = around->values.lookup(name))
      return value;
  return {};
}

Value GraphImporter::absentValue() {
  if (!absent) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(mainBlock);
    absent = NoneOp::create(builder, fileLocation, builder.getNoneType());
  }
  return absent;
}

std::string labelOf(const NodeProto &node, int index, StringRef path) {
  if (!node.name().empty())
    return node.name();
  return (path + node.op_type() + "#" + Twine(index)).str();
}

std::string callPrefix(StringRef label, unsigned uses) {
  return (label + (uses ? "." + Twine(uses) : Twine()) + "/").str();
}

LogicalResult GraphImporter::importNodes(const Nodes &nodes, Scope &scope, Location where) {
  std::optional<Cycle> cycle;
  std::vector<int> order = orderNodes(nodes, cycle);
  const std::string &prefix = scope.frame->prefix;
  if (cycle)
    return refuseAt(locate(prefix + labelOf(nodes[cycle->node], cycle->node, scope.path)),
                    "expected a graph without cycles, found one through value " + quoted(cycle->value));
  for (int index : order) {
    if (++nodeCount > limits.nodes)
      return refuseAt(where, "expected at most " + Twine(limits.nodes) + " nodes with functions inlined, found more");
    if (failed(importNode(nodes[index], scope, prefix + labelOf(nodes[index], index, scope.path))))
      return failure();
  }
  return success();
}

LogicalResult GraphImporter::importNode(const NodeProto &node, Scope &scope, const std::string &label) {
  Location where = locate(label);
  if (node.output().empty())
    return refuseAt(where, node.op_type() + ": expected at least one output, found none");
  // Messages show the operator as it is.
  if (node.op_type().empty() || !llvm::all_of(node.op_type(), llvm::isPrint))
    return refuseAt(where, "expected a node with the name of an operator, found " + quoted(node.op_type()));
  SmallVector<Value> inputs;
  for (const std::string &name : node.input()) {
    Value value = name.empty() ? absentValue() : lookUp(name, scope);
    if (!value)
      return refuseAt(where, node.op_type() + ": expected its inputs to be defined, found " + quoted(name) +
                                 ", which no input, initializer or node defines");
    inputs.push_back(value);
  }
  if (const FunctionProto *function = findFunction(node))
    return inlineCall(node, *function, scope, inputs, label, where);
  return createNode(node, scope, inputs, label, where);
}

FailureOr<int64_t> GraphImporter::findVersion(const NodeProto &node, const Frame &frame, Location where) {
  StringRef domain = shortDomain(node.domain());
  auto found = frame.versions.find(domain);
  if (found != frame.versions.end())
    return found->second;
  // Domains that only ever had one version.
  if (domain == "com.microsoft" || domain == "ai.onnx.preview.training") {
    tolerated.add("such nodes", where,
                  node.op_type() + ": expected an imported operator set, found domain " + quoted(domain) +
                      ", whose only version is 1, without an import");
    return 1;
  }
  std::vector<std::string> imported;
  for (const auto &version : frame.versions)
    imported.push_back(quoted(version.getKey()));
  llvm::sort(imported);
  return refuseAt(where, node.op_type() + ": expected an imported operator set, found domain " + quoted(domain) +
                             "; imported: " + (imported.empty() ? "none" : llvm::join(imported, ", ")));
}

/// An output of an inlined function is known by the name and type that the caller gives it.
std::pair<std::string, Type> GraphImporter::describeOutput(StringRef output, const Scope &scope) {
  if (output.empty())
    return {"", builder.getNoneType()};
  const Frame &frame = *scope.frame;
  auto renamed = frame.outputs.find(output);
  // A subgraph of the function may use the same name for a value of its own.
  if (!scope.parent && renamed != frame.outputs.end())
    return renamed->second;
  Type stated = scope.types.lookup(output);
  return {frame.prefix + output.str(), stated ? stated : UnknownType::get(builder.getContext())};
}

/// The values that a Gradient names follow its inputs: xs, zs, then y.
LogicalResult GraphImporter::addNamedValues(const NodeProto &node, DictionaryAttr attributes, const Scope &scope,
                                            Location where, SmallVectorImpl<Value> &inputs) {
  auto add = [&](StringRef attribute, Attribute name) -> LogicalResult {
    auto text = dyn_cast_if_present<StringAttr>(name);
    Value value = text && !text.empty() ? lookUp(text.getValue(), scope) : Value();
    if (!value)
      return refuseAt(where, node.op_type() + ": attribute '" + attribute + "': expected the name of a value, found " +
                                 (text ? quoted(text.getValue()) + ", which no input, initializer or node defines"
                                       : Twine(name ? "no name" : "none")));
    inputs.push_back(value);
    return success();
  };
  for (StringRef attribute : {"xs", "zs"}) {
    Attribute names = attributes.get(attribute);
    if (!names && attribute == "zs")
      continue;
    auto list = dyn_cast_if_present<ArrayAttr>(names);
    if (!list)
      return refuseAt(where, node.op_type() + ": attribute '" + attribute + "': expected names of values, found " +
                                 (names ? "no list of names" : "none"));
    for (Attribute name : list)
      if (failed(add(attribute, name)))
        return failure();
  }
  return add("y", attributes.get("y"));
}

LogicalResult GraphImporter::createNode(const NodeProto &node, Scope &scope, ArrayRef<Value> inputs,
                                        const std::string &label, Location where) {
  Frame &frame = *scope.frame;
  FailureOr<int64_t> version = findVersion(node, frame, where);
  if (failed(version))
    return failure();
  SmallVector<NamedAttribute> attributes;
  SmallVector<Subgraph> subgraphs;
  if (failed(importAttributes(node.attribute(), frame, where, attributes, subgraphs)))
    return failure();

  SmallVector<Value> operands(inputs);
  if (namesValues(node) && failed(addNamedValues(node, builder.getDictionaryAttr(attributes), scope, where, operands)))
    return failure();

  SmallVector<Type> types;
  SmallVector<StringRef> graphs;
  SmallVector<std::string> names;
  for (const std::string &output : node.output()) {
    auto [name, type] = describeOutput(output, scope);
    names.push_back(name);
    types.push_back(type);
  }
  SmallVector<StringRef> outputs(names.begin(), names.end());
  for (const Subgraph &subgraph : subgraphs)
    graphs.push_back(subgraph.name);

  auto op = NodeOp::create(builder, where, types, operands, node.op_type(), shortDomain(node.domain()), *version,
                           builder.getDictionaryAttr(attributes), builder.getStrArrayAttr(outputs),
                           builder.getStrArrayAttr(graphs), subgraphs.size());
  for (auto [subgraph, region] : llvm::zip_equal(subgraphs, op.getBodies()))
    if (failed(importSubgraph(*subgraph.graph, region, scope, label + "/" + subgraph.name, where)))
      return failure();
  for (auto [name, result] : llvm::zip_equal(node.output(), op.getResults()))
    if (!name.empty() && failed(define(name, result, scope, where)))
      return failure();
  return success();
}

LogicalResult GraphImporter::inlineCall(const NodeProto &node, const FunctionProto &function, Scope &scope,
                                        ArrayRef<Value> inputs, const std::string &label, Location where) {
  std::string subject = "call of function " + quoted(function.name());
  for (const Frame *frame = scope.frame; frame; frame = frame->caller)
    if (frame->function == &function)
      return refuseAt(where, subject + ": expected functions that end, found recursion");
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return refuseAt(where, subject + ": expected at most " + Twine(function.input_size()) + " inputs and " +
                               Twine(function.output_size()) + " outputs, found " + Twine(node.input_size()) + " and " +
                               Twine(node.output_size()));

  Frame frame;
  frame.function = &function;
  frame.caller = scope.frame;
  // Calls of the same name get different prefixes.
  frame.prefix = callPrefix(label, prefixes[label]++);
  if (failed(importVersions(function.opset_import(), frame, where)))
    return failure();
  for (const auto &attribute : function.attribute_proto())
    frame.attributes.try_emplace(attribute.name(), &attribute);
  for (const auto &attribute : node.attribute()) {
    FailureOr<const ::onnx::AttributeProto *> value = resolve(attribute, *scope.frame, where);
    if (failed(value))
      return failure();
    if (*value)
      frame.attributes[attribute.name()] = *value;
  }

  Scope body;
  body.frame = &frame;
  body.depth = scope.depth + 1;
  if (body.depth > limits.depth)
    return refuseAt(where,
                    "expected at most " + Twine(limits.depth) + " nested subgraphs and function calls, found more");
  for (int i = 0; i < function.input_size(); ++i) {
    Value value = i < static_cast<int>(inputs.size()) ? inputs[i] : absentValue();
    if (failed(define(function.input(i), value, body, where)))
      return failure();
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      frame.outputs.try_emplace(function.output(i), describeOutput(node.output(i), scope));
  if (failed(importNodes(function.node(), body, where)))
    return failure();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    Value value = lookUp(function.output(i), body);
    if (!value)
      return refuseAt(where, subject + ": expected its output " + quoted(function.output(i)) +
                                 " to be computed, found no node that does");
    if (failed(define(node.output(i), value, scope, where)))
      return failure();
  }
  return success();
}

} // namespace deepstride::onnx
