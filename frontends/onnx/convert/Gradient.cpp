// Gradient of ai.onnx.preview.training: the nodes between the values that it names are converted once more, into the
// region of a train.gradient, where the node's inputs stand for xs and zs. What ds-differentiate makes of the region is
// none of the importer's business.
#include "dialects/train/TrainDialect.h"
#include "frontends/onnx/convert/Registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace deepstride::onnx {

static constexpr StringLiteral trainingDomain = "ai.onnx.preview.training";

/// How many names a Gradient has in an attribute.
static unsigned countNames(NodeOp node, StringRef attribute) {
  auto names = dyn_cast_if_present<ArrayAttr>(node.getAttrs().get(attribute));
  return names ? names.size() : 0;
}

/// Operands that a node computes with. The values that a Gradient names are none: it computes with its inputs.
static ValueRange computedWith(NodeOp node) {
  ValueRange operands = node.getInputs();
  if (node.getOpType() != "Gradient" || node.getDomain() != trainingDomain)
    return operands;
  size_t named = countNames(node, "xs") + countNames(node, "zs") + 1;
  return operands.drop_back(std::min(named, operands.size()));
}

/// Everything outside of a node that it is computed from, the values that its subgraphs use included.
static SmallVector<Value> sourcesOf(NodeOp node) {
  SmallVector<Value> sources(computedWith(node));
  auto addOuter = [&](ValueRange values) {
    for (Value value : values)
      if (!node->isProperAncestor(value.getParentBlock()->getParentOp()) &&
          value.getParentBlock()->getParentOp() != node)
        sources.push_back(value);
  };
  for (Region &body : node.getBodies())
    body.walk([&](Operation *op) {
      auto inner = dyn_cast<NodeOp>(op);
      addOuter(inner ? computedWith(inner) : ValueRange(op->getOperands()));
    });
  return sources;
}

namespace {
/// The nodes between given values and what is computed from them.
class Slice {
public:
  explicit Slice(ValueRange ends) : ends(llvm::from_range, ends) {}

  /// Collects what `value` is computed from, up to the ends.
  void collect(Value value) {
    SmallVector<std::pair<NodeOp, bool>> stack;
    auto visit = [&](Value source) {
      if (ends.contains(source))
        return met.insert(source), void();
      if (isa<BlockArgument>(source))
        return strays.insert(source), void();
      if (auto node = source.getDefiningOp<NodeOp>(); node && !visited.contains(node))
        stack.push_back({node, false});
    };
    visit(value);
    while (!stack.empty()) {
      auto [node, isDone] = stack.back();
      if (isDone || !visited.insert(node).second) { // done, or met again before it was reached
        stack.pop_back();
        if (isDone)
          order.push_back(node);
        continue;
      }
      stack.back().second = true;
      for (Value source : sourcesOf(node))
        visit(source);
    }
  }

  /// Of the nodes, those that depend on an end; the others are constants. Operands come before users.
  SmallVector<NodeOp> dependentNodes() const {
    llvm::DenseSet<Operation *> dependent;
    SmallVector<NodeOp> nodes;
    for (NodeOp node : order)
      if (llvm::any_of(sourcesOf(node), [&](Value source) {
            return ends.contains(source) || dependent.contains(source.getDefiningOp());
          })) {
        dependent.insert(node);
        nodes.push_back(node);
      }
    return nodes;
  }

  llvm::SetVector<Value> met, strays; // ends that were reached, and arguments that are no ends

private:
  llvm::DenseSet<Value> ends;
  llvm::DenseSet<Operation *> visited;
  std::vector<NodeOp> order;
};

/// What the attributes and operands of one Gradient say.
struct Request {
  explicit Request(Node &n) : xCount(countNames(n.operation(), "xs")), zCount(countNames(n.operation(), "zs")) {
    ValueRange operands = n.operation().getInputs();
    inputCount = operands.size() - (xCount + zCount + 1); // the reader adds what the attributes name
    named = operands.slice(inputCount, xCount + zCount);
    y = operands.back();
  }
  std::string nameOf(Node &n, unsigned index) const {
    bool isX = index < xCount;
    auto names = cast<ArrayAttr>(n.attribute(isX ? "xs" : "zs"));
    return cast<StringAttr>(names[isX ? index : index - xCount]).str();
  }

  unsigned xCount, zCount, inputCount;
  ValueRange named;
  Value y;
};
} // namespace

/// The name of an argument of the graph or of a subgraph.
static std::string nameOf(BlockArgument argument) {
  auto main = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = main ? main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), sourceName) : StringAttr();
  return name ? "graph input '" + name.str() + "'"
              : "input " + std::to_string(argument.getArgNumber()) + " of the subgraph around it";
}

/// Whether one given value per name is there, of the type that the named one has; shapes may differ.
static bool checkInputs(Node &n, const Request &request) {
  unsigned count = request.xCount + request.zCount;
  if (request.inputCount != count)
    return n.reject("expected one input for each of the " + Twine(count) + " names in 'xs' and 'zs', found " +
                    Twine(request.inputCount));
  if (request.xCount == 0)
    return n.reject("attribute 'xs': expected at least one name, found none");
  if (n.outputCount() > request.xCount)
    return n.reject("expected at most " + Twine(request.xCount) + " outputs, one for each name in 'xs', found " +
                    Twine(n.outputCount()));
  for (unsigned i = 0; i < count; ++i) {
    std::string name = request.nameOf(n, i);
    if (llvm::is_contained(request.named.take_front(i), request.named[i]))
      return n.reject("attributes 'xs' and 'zs': expected different values, found '" + name + "' twice");
    if (!n.has(i))
      return n.reject("expected input " + Twine(i) + ", the value of '" + name + "', to be present");
    Type given = n.b.element(n.in(i)), named = n.b.element(n.in(request.inputCount + i));
    if (given != named)
      return n.reject("input " + Twine(i) + ": expected " + describeElement(named) + ", the type of '" + name +
                      "', found " + describe(n.b.facts(n.in(i))));
    if (i < request.xCount && !train::isDifferentiable(given))
      return n.reject("input " + Twine(i) + ": expected float16, bfloat16, float or double for '" + name +
                      "', which 'xs' names, found " + describe(n.b.facts(n.in(i))));
  }
  TensorFacts y = n.b.facts(n.in(n.inputCount() - 1));
  if (!y.elementType || !train::isDifferentiable(y.elementType))
    return n.reject("attribute 'y': expected a value of float16, bfloat16, float or double, found " + describe(y));
  return true;
}

/// The standard asks for independent values: one that others determine could not be chosen freely.
static bool checkIndependence(Node &n, const Request &request) {
  Slice above(request.named);
  for (Value value : request.named)
    if (auto node = value.getDefiningOp<NodeOp>())
      for (Value source : sourcesOf(node))
        above.collect(source);
  if (above.met.empty())
    return true;
  unsigned index = llvm::find(request.named, above.met.front()) - request.named.begin();
  return n.reject("attributes 'xs' and 'zs': expected values that do not determine one another, found '" +
                  request.nameOf(n, index) + "', from which another one is computed");
}

/// The nodes between the named values and y.
static std::optional<SmallVector<NodeOp>> findFunction(Node &n, const Request &request) {
  // Functions of Gradients hold Gradients again: each level multiplies what must be converted and differentiated.
  constexpr unsigned depthLimit = 4;
  constexpr int64_t nodeLimit = 100'000;
  Slice slice(request.named);
  slice.collect(request.y);
  if (!slice.strays.empty())
    return n.refuse(
        "attribute 'y': expected a value that those in 'xs' and 'zs' determine, found one that depends on " +
        nameOf(cast<BlockArgument>(slice.strays.front())) + ", too; name it in 'zs'");
  SmallVector<NodeOp> nodes = slice.dependentNodes();
  n.context.convertedAgain += static_cast<int64_t>(nodes.size());
  if (n.context.gradientDepth >= depthLimit || n.context.convertedAgain > nodeLimit)
    return n.refuse("expected derivatives up to order " + Twine(depthLimit) + " of at most " + Twine(nodeLimit) +
                    " nodes together, found more");
  return nodes;
}

/// What the reader makes sure of, and a hand-written onnx.node may lack.
static bool hasNamedOperands(Node &n) {
  for (StringRef attribute : {"xs", "zs"})
    if (auto names = n.attribute(attribute))
      if (!isa<ArrayAttr>(names) || !llvm::all_of(cast<ArrayAttr>(names), llvm::IsaPred<StringAttr>))
        return n.reject("attribute '" + attribute + "': expected names of values");
  size_t named = countNames(n.operation(), "xs") + countNames(n.operation(), "zs") + 1;
  return n.inputCount() >= named ||
         n.reject("expected the " + Twine(named) + " named values behind the inputs, found " + Twine(n.inputCount()) +
                  " operands");
}

static Values convertGradient(Node &n) {
  if (!hasNamedOperands(n))
    return {};
  Request request(n);
  if (!checkInputs(n, request) || !checkIndependence(n, request))
    return {};
  auto nodes = findFunction(n, request);
  if (!nodes)
    return {};
  OpBuilder &builder = n.b.getBuilder();
  Location where = n.b.getLocation();
  SmallVector<Value> inputs;
  bool isSame = true;
  for (unsigned i = 0; i < request.inputCount; ++i) {
    inputs.push_back(n.in(i));
    isSame &= n.in(i) == n.in(request.inputCount + i);
  }
  ArrayRef<Value> xs = ArrayRef(inputs).take_front(request.xCount);
  auto op = train::GradientOp::create(builder, where, TypeRange(ValueRange(xs)), xs,
                                      ArrayRef(inputs).drop_front(request.xCount));
  SmallVector<std::pair<Value, Value>> bindings;
  Value y;
  {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Location> locations(inputs.size(), where);
    Block *body = builder.createBlock(&op.getBody(), {}, TypeRange(ValueRange(inputs)), locations);
    for (auto [argument, input, value] : llvm::zip_equal(body->getArguments(), inputs, request.named)) {
      TensorFacts facts = n.b.facts(input);
      if (argument.getArgNumber() < request.xCount)
        facts.contents.reset(); // it varies: nothing may be folded for the elements that it has now
      n.b.getAnalysis().set(argument, facts);
      bindings.push_back({value, argument});
    }
    llvm::SaveAndRestore depth(n.context.gradientDepth, n.context.gradientDepth + 1);
    y = n.context.convertAgain(*nodes, bindings, request.y, isSame);
    n.b.setLocation(where);
    if (y && isa<RankedTensorType>(y.getType()))
      train::YieldOp::create(builder, where, y);
  }
  if (!y || !isa<RankedTensorType>(y.getType())) {
    op.erase(); // what is wrong with the nodes, at these inputs, was said
    return {};
  }
  for (auto [result, x] : llvm::zip_equal(op.getResults(), xs)) {
    TensorFacts facts = n.b.facts(x);
    facts.contents.reset();
    n.b.getAnalysis().set(result, facts);
  }
  return Values(op.getResults());
}

void addGradient(PatternRegistry &registry) { registry.add("Gradient", 1, 0, convertGradient, trainingDomain); }

} // namespace deepstride::onnx
