// Forward and backward part are told apart by the loss: the sweep writes behind it.
#include "passes/training/Activations.h"

#include "dialects/ds/Provenance.h"
#include "dialects/ds/Recomputation.h"
#include "dialects/ds/StridedWindow.h"
#include "passes/training/Layers.h"
#include "passes/training/ReverseSweep.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace deepstride {

static bool isLeaf(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isa<ds::ConstantOp, ds::WeightOp>(op);
}

bool ActivationScope::isForward(Operation *op) const {
  return op->getBlock() == forward && (!last || op == last || op->isBeforeInBlock(last));
}

void ActivationScope::findRead() {
  llvm::DenseMap<Value, Value> from; // what the way back sees, as the forward part has it
  for (auto [inside, outside] : handed)
    from[outside] = inside;
  llvm::DenseSet<Value> found;
  for (Operation &op : backward->without_terminator()) // what the entry yields is no activation
    if (!last || last->isBeforeInBlock(&op))
      for (Value value : valuesUsedBy(&op)) {
        if (Value inside = from.lookup(value))
          value = inside;
        value = ds::throughReshapes(value);
        if (Operation *maker = value.getDefiningOp(); maker && isForward(maker) && !isLeaf(value))
          found.insert(value);
      }
  for (Operation &op : *forward)
    for (Value result : op.getResults())
      if (found.contains(result))
        read.insert(result);
}

/// Whether the way back may read it wherever it stands: what it is given, and what lives as long as the program.
bool ActivationScope::isAvailable(Value value) const {
  return isLeaf(value) || handed.count(value) || !isForward(value.getDefiningOp());
}

/// A kept value on the way back; where a view of it was handed on, as it was.
Value ActivationScope::seenFrom(Value value, OpBuilder &builder, SizeAnalysis &analysis) const {
  auto found = handed.find(value);
  if (found != handed.end())
    return found->second;
  if (Operation *op = value.getDefiningOp(); op && op->getBlock() == forward && forward != backward)
    for (auto [inside, outside] : handed)
      if (ds::throughReshapes(inside) == value) {
        TensorFacts facts = analysis.facts(value);
        Value root = ds::ReshapeOp::create(builder, value.getLoc(), value.getType(), outside,
                                           toAttribute(builder.getContext(), facts.sizes));
        analysis.set(root, std::move(facts));
        return root;
      }
  return value;
}

std::optional<llvm::SetVector<Operation *>> ActivationScope::needed(Value value, const llvm::DenseSet<Value> &dropped,
                                                                    const llvm::DenseSet<Operation *> &again) const {
  llvm::SetVector<Operation *> order;
  std::function<bool(Value)> add = [&](Value wanted) {
    wanted = ds::throughReshapes(wanted);
    if (wanted != value && isKept(wanted, dropped))
      return true;
    Operation *op = wanted.getDefiningOp();
    if (!op || !isForward(op) || op->getNumRegions() > 0 || !isMemoryEffectFree(op) ||
        !llvm::all_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); }))
      return false;
    if (order.contains(op) || again.contains(op))
      return true;
    if (!llvm::all_of(op->getOperands(), add))
      return false;
    order.insert(op);
    return true;
  };
  if (!add(value))
    return std::nullopt;
  return order;
}

int64_t ActivationScope::recompute(const llvm::DenseSet<Value> &dropped, SizeAnalysis &analysis) {
  llvm::DenseMap<Value, Value> copies, from; // from: what the way back sees, as the forward part has it
  for (auto [inside, outside] : handed)
    from[outside] = inside;
  int64_t made = 0;
  std::function<Value(Value, OpBuilder &)> copy = [&](Value value, OpBuilder &builder) -> Value {
    if (Value known = copies.lookup(value))
      return known;
    if (isKept(value, dropped) && ds::throughReshapes(value) == value)
      return copies[value] = seenFrom(value, builder, analysis);
    Operation *op = value.getDefiningOp();
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, copy(operand, builder));
    Operation *clone = builder.clone(*op, operands);
    clone->setAttr(ds::recomputedAttr, builder.getUnitAttr());
    clone->setLoc(withRole(clone->getLoc(), WorkRole::Recompute));
    made += isa<ds::ReshapeOp>(op) ? 0 : 1;
    for (auto [before, after] : llvm::zip_equal(op->getResults(), clone->getResults())) {
      analysis.set(after, analysis.facts(before));
      copies[before] = after;
    }
    return copies.lookup(value);
  };
  for (Operation &op : llvm::make_early_inc_range(backward->without_terminator())) {
    if (last && !last->isBeforeInBlock(&op))
      continue;
    OpBuilder builder(&op);
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        Value inside = from.lookup(operand.get());
        Value value = inside ? inside : operand.get();
        if (dropped.contains(ds::throughReshapes(value)))
          operand.set(copy(value, builder));
      }
    });
  }
  return made;
}

std::vector<ActivationScope> activationScopes(func::FuncOp micro) {
  std::vector<ActivationScope> scopes;
  Block *body = &micro.getBody().front();
  Operation *loss = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!loss || loss->getBlock() != body)
    return scopes;
  for (scf::IfOp branch : gatedLayers(micro)) {
    scf::IfOp back;
    for (auto other : body->getOps<scf::IfOp>())
      if (other != branch && other.getCondition() == branch.getCondition())
        back = other;
    if (!back)
      continue;
    ActivationScope &scope = scopes.emplace_back(branch.thenBlock(), back.thenBlock(), nullptr);
    for (auto [yielded, result] : llvm::zip_equal(branch.thenYield().getOperands(), branch.getResults()))
      scope.hand(yielded, result);
  }
  scopes.emplace_back(body, body, loss);
  return scopes;
}

/// A size where the dimensions are these; a hundred where others decide.
static double valueOf(const SizeExpr &size, const std::map<std::string, int64_t> &dims) {
  if (auto known = size.constant())
    return static_cast<double>(*known);
  constexpr int64_t usual = 100;
  llvm::StringMap<SizeExpr> bindings;
  for (const SizeAtom &atom : size.symbols()) {
    std::string name = atom.name().str();
    auto found = dims.find(name);
    bindings[name] = SizeExpr(found == dims.end() ? usual : found->second);
  }
  auto bound = SizeExpr::parse(size.str(), &bindings);
  return static_cast<double>(bound ? bound->constant().value_or(usual) : usual);
}

double bytesOf(Value value, const SizeAnalysis &analysis, const std::map<std::string, int64_t> &dims) {
  const TensorFacts &facts = analysis.facts(value);
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  return valueOf(product(facts.sizes), dims) * std::max(bits / 8, 1U);
}

double costOf(Operation *op, const SizeAnalysis &analysis, const std::map<std::string, int64_t> &dims) {
  constexpr double flopsPerByte = 8; // of two cores with 512-bit vectors, about
  auto elements = [&](Value value) { return valueOf(product(analysis.facts(value).sizes), dims); };
  auto length = [&](Value value, size_t fromEnd) {
    const SizeVector &sizes = analysis.facts(value).sizes;
    return sizes.size() > fromEnd ? valueOf(sizes[sizes.size() - 1 - fromEnd], dims) : 1.0;
  };
  double flops = 0;
  if (isa<ds::LinearOp>(op))
    flops = 2 * elements(op->getResult(0)) * length(op->getOperand(0), 0);
  else if (auto product = dyn_cast<ds::MatmulOp>(op))
    flops = 2 * elements(op->getResult(0)) * length(op->getOperand(0), product.getTranspose()[0] ? 1 : 0);
  else if (isa<ds::ConvOp>(op))
    flops = 2 * elements(op->getResult(0)) * elements(op->getOperand(1)) /
            std::max(valueOf(analysis.facts(op->getOperand(1)).sizes.front(), dims), 1.0);
  else if (isa<ds::AttentionOp>(op))
    flops = 4 * elements(op->getOperand(0)) * length(op->getOperand(1), 1);
  else if (!isa<ds::ReshapeOp>(op))
    flops = 4 * elements(op->getResult(0));
  double bytes = 0;
  if (!isa<ds::ReshapeOp>(op)) {
    for (Value operand : op->getOperands())
      bytes += bytesOf(operand, analysis, dims);
    for (Value result : op->getResults())
      bytes += bytesOf(result, analysis, dims);
  }
  return flops + flopsPerByte * bytes;
}

} // namespace deepstride
