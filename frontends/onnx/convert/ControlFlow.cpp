// Conditionals: a condition that is known leaves only its branch, any other becomes scf.if. Where the branches do not
// fit into one scf.if, each outcome of the condition becomes an entry of its own (Outcomes.cpp).
#include "dialects/ds/Contents.h"
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

/// Converts a branch into a block of its own, still without a terminator.
static std::optional<Values> convertBranch(Node &n, Region &source, Region &target) {
  OpBuilder &builder = n.b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&target);
  auto outputs = n.context.convertBody(source);
  n.b.setLocation(n.operation().getLoc());
  return outputs;
}

/// A size of an output: that of the branch which is taken.
static std::optional<SizeExpr> mergeSizes(const SizeExpr &condition, const SizeExpr &yes, const SizeExpr &no,
                                          const llvm::StringSet<> &inner) {
  if (isOver(yes, inner) || isOver(no, inner))
    return std::nullopt;
  return yes == no ? yes : SizeExpr::select(condition, yes, no);
}

/// What only a condition that is known can choose between: the model is converted once for each outcome of the
/// condition, where that is known before a call, else refused.
static Refused refuseOpen(Node &n, const Twine &message) {
  (void)n.context.splitBy(n.in(0)); // if it is split, nobody hears the message
  return n.refuse(message);
}

/// What both branches give, of one type and rank; sizes that differ depend on the condition.
static std::optional<SmallVector<TensorFacts>> commonFacts(Node &n, const SizeExpr &condition, const Values &yes,
                                                           const Values &no, const llvm::StringSet<> &inner) {
  SmallVector<TensorFacts> results;
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(yes, no))) {
    auto [a, b] = pair;
    if (!isa<RankedTensorType>(a.getType()) || !isa<RankedTensorType>(b.getType()))
      return refuseOpen(
          n, "output " + Twine(index) +
                 " is a sequence or an optional; legal when the condition is known when the model is compiled");
    TensorFacts left = n.b.facts(a), right = n.b.facts(b);
    const char *known = "; legal when the condition is known: pin the dimensions or the input that it depends on with "
                        "--dim";
    if (left.elementType != right.elementType || left.rank() != right.rank())
      return refuseOpen(n, "output " + Twine(index) + ": expected branches of one type and rank, found " +
                               describe(left) + " and " + describe(right) + known);
    for (auto [size, other] : llvm::zip_equal(left.sizes, right.sizes)) {
      auto merged = mergeSizes(condition, size, other, inner);
      if (!merged)
        return refuseOpen(n, "output " + Twine(index) +
                                 ": expected sizes that are known before a branch computes them, "
                                 "found " +
                                 describe(left) + " and " + describe(right) + known);
      size = *merged;
    }
    left.contents.reset();
    results.push_back(left);
  }
  return results;
}

/// Ends a branch; views state that what it gives has the sizes of the results, as it has where the branch is taken.
static bool endBranch(Node &n, Block &block, Values outputs, ArrayRef<TensorFacts> results) {
  OpBuilder &builder = n.b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&block);
  for (auto [output, result] : llvm::zip_equal(outputs, results))
    if (n.b.sizes(output) != result.sizes && !(output = n.b.reshape(output, result.sizes)))
      return false;
  scf::YieldOp::create(builder, n.b.getLocation(), outputs);
  return true;
}

/// Conditions of nested branches that come from outside of this one get their names outside: its sizes may depend on
/// them.
static void hoistDefines(OpBuilder &builder, Block &branch) {
  for (ds::DefineOp define : llvm::make_early_inc_range(branch.getOps<ds::DefineOp>()))
    if (define.getValue().getParentBlock() != &branch)
      define->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
}

static Values runTimeIf(Node &n, Region &thenGraph, Region &elseGraph) {
  OpBuilder &builder = n.b.getBuilder();
  Location where = n.b.getLocation();
  Value scalar = n.b.reshape(n.in(0), {});
  if (!scalar)
    return {};
  if (!isExact(n.b.facts(scalar)))
    define(n, n.context.newCountSymbol(), scalar);
  Value condition = tensor::ExtractOp::create(builder, where, scalar, ValueRange());
  OperationState state(where, scf::IfOp::getOperationName());
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  // The branches are converted first: the types of the results are theirs.
  n.context.enclosing.push_back(n.in(0));
  auto yes = convertBranch(n, thenGraph, *thenRegion), no = convertBranch(n, elseGraph, *elseRegion);
  n.context.enclosing.pop_back();
  if (!yes || !no || yes->size() != n.outputCount() || no->size() != n.outputCount())
    return n.refuse("its branches could not be converted to the " + Twine(n.outputCount()) + " outputs of the node");
  hoistDefines(builder, thenRegion->front());
  hoistDefines(builder, elseRegion->front());
  llvm::StringSet<> inner = symbolsOf(thenRegion->front());
  inner.insert_range(symbolsOf(elseRegion->front()).keys());
  auto facts = commonFacts(n, *n.b.getAnalysis().conditionOf(condition), *yes, *no, inner);
  if (!facts || !endBranch(n, thenRegion->front(), *yes, *facts) || !endBranch(n, elseRegion->front(), *no, *facts))
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
  auto taken = known ? std::optional<bool>(*known != 0) : n.context.assumed(n.in(0));
  if (!taken)
    return runTimeIf(n, *thenGraph, *elseGraph);
  auto outputs = n.context.convertBody(*taken ? *thenGraph : *elseGraph);
  return outputs ? *outputs : n.refuse("its branch could not be converted");
}

void addControlFlow(PatternRegistry &registry) { registry.add("If", 1, 1, convertIf).takesSequences = true; }

} // namespace deepstride::onnx
