// Conditionals: a condition that is known leaves only its branch, any other becomes scf.if.
#include "frontends/onnx/convert/LoopBuilder.h"
#include "frontends/onnx/convert/Registry.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride::onnx {

Region *findGraph(Node &n, StringRef name) {
  NodeOp op = n.operation();
  for (auto [index, graph] : llvm::enumerate(op.getGraphs()))
    if (cast<StringAttr>(graph).getValue() == name)
      return &op.getBodies()[index];
  n.refuse("attribute '" + name + "': expected a graph, found none");
  return nullptr;
}

/// Converts a branch into a block of its own that ends in scf.yield.
static std::optional<Values> convertBranch(Node &n, Region &source, Region &target) {
  OpBuilder &builder = n.b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&target);
  auto outputs = n.context.convertBody(source);
  n.b.setLocation(n.operation().getLoc());
  if (outputs)
    scf::YieldOp::create(builder, n.b.getLocation(), *outputs);
  return outputs;
}

/// What both branches give; their sizes must be the same expressions.
static std::optional<SmallVector<TensorFacts>> commonFacts(Node &n, const Values &yes, const Values &no) {
  SmallVector<TensorFacts> results;
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(yes, no))) {
    auto [a, b] = pair;
    if (!isa<RankedTensorType>(a.getType()) || !isa<RankedTensorType>(b.getType()))
      return n.refuse("output " + Twine(index) +
                      " is a sequence or an optional; legal when the condition is known when the model is compiled");
    TensorFacts left = n.b.facts(a), right = n.b.facts(b);
    if (left.elementType != right.elementType || left.sizes != right.sizes)
      return n.refuse(
          "output " + Twine(index) + ": expected branches of one type and shape, found " + describe(left) + " and " +
          describe(right) +
          "; legal when the condition is known: pin the dimensions or the input that it depends on with --dim");
    left.contents.reset();
    results.push_back(left);
  }
  return results;
}

static Values runTimeIf(Node &n, Region &thenGraph, Region &elseGraph) {
  OpBuilder &builder = n.b.getBuilder();
  Location where = n.b.getLocation();
  Value scalar = n.b.reshape(n.in(0), {});
  if (!scalar)
    return {};
  Value condition = tensor::ExtractOp::create(builder, where, scalar, ValueRange());
  OperationState state(where, scf::IfOp::getOperationName());
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  // The branches are converted first: the types of the results are theirs.
  auto yes = convertBranch(n, thenGraph, *thenRegion), no = convertBranch(n, elseGraph, *elseRegion);
  if (!yes || !no || yes->size() != n.outputCount() || no->size() != n.outputCount())
    return n.refuse("its branches could not be converted to the " + Twine(n.outputCount()) + " outputs of the node");
  auto facts = commonFacts(n, *yes, *no);
  if (!facts)
    return {};
  state.addOperands(condition);
  for (const TensorFacts &result : *facts)
    state.addTypes(result.type());
  Operation *op = builder.create(state);
  for (auto [result, known] : llvm::zip_equal(op->getResults(), *facts))
    n.b.getAnalysis().set(result, known);
  return Values(op->getResults());
}

static Values convertIf(Node &n) {
  Region *thenGraph = findGraph(n, "then_branch"), *elseGraph = findGraph(n, "else_branch");
  if (!thenGraph || !elseGraph)
    return {};
  TensorFacts condition = n.b.facts(n.in(0));
  if (!condition.elementType || !condition.elementType.isInteger(1) || !product(condition.sizes).isConstant(1))
    return n.refuse("input 0 ('cond'): expected one bool, found " + describe(condition));
  auto known = condition.contents ? condition.contents->front().constant() : std::nullopt;
  if (!known)
    return runTimeIf(n, *thenGraph, *elseGraph);
  auto outputs = n.context.convertBody(*known ? *thenGraph : *elseGraph);
  return outputs ? *outputs : n.refuse("its branch could not be converted");
}

void addControlFlow(PatternRegistry &registry) { registry.add("If", 1, 1, convertIf).takesSequences = true; }

} // namespace deepstride::onnx
