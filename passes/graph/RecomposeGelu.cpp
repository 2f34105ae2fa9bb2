// ds-recompose-gelu: finds GELU in its spellings. It takes products apart into a constant factor and leaves, so that
// the order in which an exporter multiplied does not matter, and recognizes the flavour by the leaf that is not x.
// Gated units (GELU times something else) are found by their inner product.
//
//   %e = ds.unary erf (%x / 1.4142)                       %y = ds.gelu erf %x
//   %y = %x * (%e + 1.0) * 0.5                        =>
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSEGELU
#include "passes/graph/Passes.h.inc"

namespace {
/// A leaf of a product that only a GELU has, and what it says about the rest.
struct Gate {
  ds::GeluKind kind;
  Value argument; // of erf, tanh or sigmoid
  double factor;  // that the product must have beside this leaf
};
} // namespace

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

static std::optional<Gate> matchGate(Value leaf) {
  if (ds::UnaryOp sigmoid = unaryOf(leaf, ds::UnaryKind::sigmoid))
    return Gate{ds::GeluKind::quick, sigmoid.getInput(), 1};
  auto shifted = matchScalar(leaf, ds::BinaryKind::add);
  if (!shifted || shifted->scalar != 1)
    return std::nullopt;
  if (ds::UnaryOp erf = unaryOf(shifted->tensor, ds::UnaryKind::erf))
    return Gate{ds::GeluKind::erf, erf.getInput(), 0.5};
  if (ds::UnaryOp tanh = unaryOf(shifted->tensor, ds::UnaryKind::tanh))
    return Gate{ds::GeluKind::tanh, tanh.getInput(), 0.5};
  return std::nullopt;
}

/// x + 0.044715 x^3, or x (1 + 0.044715 x^2) as two leaves.
static bool isCubic(ArrayRef<Value> leaves, Value x) {
  auto isTerm = [&](Value term, bool squared) {
    Product product = takeApart(term);
    if (!isNear(product.factor, 0.044715, elementOf(x)))
      return false;
    if (product.leaves.size() == 1)
      return (squared ? matchSquare(product.leaves[0]) : matchCube(product.leaves[0])) == x;
    // x * (x * x), whose square other ops may share.
    if (product.leaves.size() == 2 && !squared)
      return (product.leaves[0] == x && matchSquare(product.leaves[1]) == x) ||
             (product.leaves[1] == x && matchSquare(product.leaves[0]) == x);
    return product.leaves.size() == (squared ? 2u : 3u) &&
           llvm::all_of(product.leaves, [&](Value v) { return v == x; });
  };
  if (leaves.size() == 1) {
    ds::BinaryOp sum = binaryOf(leaves[0], ds::BinaryKind::add);
    return sum &&
           ((sum.getLhs() == x && isTerm(sum.getRhs(), false)) || (sum.getRhs() == x && isTerm(sum.getLhs(), false)));
  }
  if (leaves.size() != 2)
    return false;
  Value other = leaves[0] == x ? leaves[1] : leaves[1] == x ? leaves[0] : Value();
  auto shifted = other ? matchScalar(other, ds::BinaryKind::add) : std::nullopt;
  return shifted && shifted->scalar == 1 && isTerm(shifted->tensor, true);
}

/// The reason why x and the gate do not make a GELU; empty where they do.
static std::string findMismatch(const Gate &gate, Value x) {
  Product argument = takeApart(gate.argument);
  double ideal = gate.kind == ds::GeluKind::erf    ? std::sqrt(0.5)
                 : gate.kind == ds::GeluKind::tanh ? std::sqrt(2 / M_PI)
                                                   : 1.702;
  bool isOfX = gate.kind == ds::GeluKind::tanh ? isCubic(argument.leaves, x)
                                               : ArrayRef<Value>(argument.leaves) == ArrayRef<Value>(x);
  if (!isOfX)
    return gate.kind == ds::GeluKind::tanh ? "the argument of tanh is not x + 0.044715 x^3"
                                           : "the argument is not a multiple of x";
  if (!isNear(argument.factor, ideal, elementOf(x)))
    return "the argument is scaled by " + std::to_string(argument.factor) + ", expected " + std::to_string(ideal);
  return "";
}

namespace {
struct RecomposeGelu : impl::RecomposeGeluBase<RecomposeGelu>, PassReport {
  void runOnOperation() override {
    // Whole products before their parts.
    SmallVector<ds::BinaryOp> ops;
    getOperation().walk([&](ds::BinaryOp op) { ops.push_back(op); });
    count("recomposed", 0);
    for (ds::BinaryOp op : llvm::reverse(ops))
      if (!erased.contains(op) && (op.getKind() == ds::BinaryKind::mul || op.getKind() == ds::BinaryKind::div))
        match(op);
    erased.clear();
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  void match(ds::BinaryOp root) {
    Product product = takeApart(root.getResult());
    if (product.leaves.size() != 2)
      return;
    for (unsigned i : {0, 1}) {
      auto gate = matchGate(product.leaves[i]);
      Value x = product.leaves[1 - i];
      if (!gate || x.getType() != root.getType())
        continue;
      // SiLU (x sigmoid(x)) is a block of its own, not a GELU that failed.
      if (gate->kind == ds::GeluKind::quick && gate->argument == x)
        return;
      std::string mismatch = findMismatch(*gate, x);
      if (mismatch.empty() && !isNear(product.factor, gate->factor, elementOf(x)))
        mismatch = "the product has the factor " + std::to_string(product.factor) + ", expected " +
                   std::to_string(gate->factor);
      if (!mismatch.empty()) {
        if (gate->kind != ds::GeluKind::quick)
          remarkLeft(root, "gelu", mismatch);
        return;
      }
      OpBuilder builder(root);
      auto gelu = ds::GeluOp::create(builder, root.getLoc(), root.getType(), gate->kind, x);
      keepNames(root, gelu);
      root.getResult().replaceAllUsesWith(gelu.getResult());
      eraseProduct(root);
      count("recomposed");
      return;
    }
  }

  /// At once, so that the parts of a product that was recognized are not looked at again.
  void eraseProduct(ds::BinaryOp op) {
    SmallVector<Value> operands(op->getOperands());
    erased.insert(op);
    op->erase();
    for (Value operand : operands)
      if (auto inner = operand.getDefiningOp<ds::BinaryOp>(); inner && inner->use_empty())
        eraseProduct(inner);
  }

  llvm::DenseSet<Operation *> erased;
};
} // namespace

} // namespace deepstride
