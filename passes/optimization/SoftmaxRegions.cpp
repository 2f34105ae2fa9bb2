// Gathers attention in parts. All that lies between an operand in memory and the result in memory is one head's, or of
// what all heads share, so that a kernel computes a head after the other.
#include "passes/optimization/SoftmaxRegions.h"

#include "dialects/ds/Schedule.h"
#include "passes/optimization/WindowChains.h"

using namespace mlir;

namespace deepstride {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The only operand of an elementwise op that is no number; null where there are several, or the op is another.
static Value changedOperand(Operation *op) {
  if (!op || !isFusablePointwise(op) || isa<ds::BroadcastOp, ds::BitcastOp>(op))
    return {};
  Value changed;
  for (Value operand : op->getOperands())
    if (!isSplat(operand)) {
      if (changed && changed != operand)
        return {};
      changed = operand;
    }
  return changed && typeOf(changed).getRank() == typeOf(op->getResult(0)).getRank() ? changed : Value();
}

/// The elementwise ops on the way from a product to `value`, each read by the next one only, the last first. Others of
/// their operands are in memory.
static ds::MatmulOp scoresBehind(Value value, SmallVectorImpl<Operation *> &steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps.size() >= regionLimit)
    return {};
  if (auto product = dyn_cast<ds::MatmulOp>(op))
    return product;
  if (!isFusablePointwise(op) || isa<ds::BroadcastOp, ds::BitcastOp>(op))
    return {};
  steps.push_back(op);
  for (Value operand : op->getOperands())
    if (typeOf(operand).getRank() == typeOf(value).getRank() &&
        (operand.hasOneUse() || operand.getDefiningOp<ds::MatmulOp>()))
      if (auto product = scoresBehind(operand, steps))
        return product;
  steps.pop_back();
  return {};
}

std::optional<ds::SoftmaxProducts> productsAround(ds::SoftmaxOp softmax) {
  SmallVector<Operation *> steps;
  auto scores = scoresBehind(softmax.getInput(), steps);
  if (!scores || !typeOf(scores.getResult()).getElementType().isSignlessInteger(32))
    return std::nullopt;
  Value weights = softmax.getResult();
  while (weights.hasOneUse() && changedOperand(*weights.user_begin()) == weights)
    weights = (*weights.user_begin())->getResult(0);
  auto weighted = weights.hasOneUse() ? dyn_cast<ds::MatmulOp>(*weights.user_begin()) : ds::MatmulOp();
  if (!weighted || weighted.getLhs() != weights || weighted.getRhs() == weights)
    return std::nullopt;
  return ds::SoftmaxProducts{scores, softmax, weighted};
}

SmallVector<Operation *> stepsBefore(ds::SoftmaxProducts products) {
  SmallVector<Operation *> steps;
  Value operands[] = {products.scores.getLhs(), products.scores.getRhs(), products.weighted.getRhs()};
  for (Value value : operands) {
    steps.push_back(*value.user_begin());
    for (Operation *op = value.getDefiningOp(); op && op->hasOneUse() && op->getNumOperands() > 0;
         op = op->getOperand(0).getDefiningOp())
      if (changedOperand(op) == op->getOperand(0))
        steps.push_back(op);
      else
        break;
  }
  return steps;
}

namespace {

class SoftmaxGatherer {
public:
  SoftmaxGatherer(ds::SoftmaxProducts products, SizeAnalysis &analysis) : products(products), analysis(analysis) {}

  std::pair<OpSet, Operation *> run() {
    if (auto reason = obstacle()) {
      products.softmax.emitRemark() << "does not share a kernel with the products around it: " << *reason;
      return {};
    }
    takeBetween();
    for (OpOperand *operand :
         {&products.scores.getLhsMutable(), &products.scores.getRhsMutable(), &products.weighted.getRhsMutable()})
      takeOperand(*operand);
    takeResult();
    return {region, last};
  }

private:
  const SizeVector &sizesOf(Value value) { return analysis.facts(value).sizes; }

  std::optional<StringRef> obstacle() {
    ds::SoftmaxOp softmax = products.softmax;
    SmallVector<Operation *> steps;
    scoresBehind(softmax.getInput(), steps);
    for (Operation *op : {products.scores.getOperation(), products.weighted.getOperation()})
      if (op->getBlock() != softmax->getBlock())
        return "they are in another block";
    if (static_cast<int64_t>(softmax.getAxis()) + 1 != typeOf(softmax.getResult()).getRank() || softmax.getLog() ||
        !typeOf(softmax.getResult()).getElementType().isF32())
      return "it is a logarithm, over another axis or not in f32";
    if (!products.scores->hasOneUse() || !softmax.getInput().hasOneUse())
      return "something else reads the scores";
    for (Operation *step : steps)
      if (sizesOf(step->getResult(0)) != sizesOf(softmax.getResult()))
        return "scores are repeated before it";
    SmallVector<ds::MatmulOp> both = {products.scores, products.weighted};
    for (ds::MatmulOp product : both) {
      ds::ScheduleAttr schedule = ds::scheduleOf(product);
      if (!schedule || product.getTranspose()[0])
        return "a product has no schedule, or its left operand is moved";
      ArrayRef<SizeExpr> batch = ArrayRef(sizesOf(product.getResult())).drop_back(2);
      for (Value operand : product->getOperands())
        if (ArrayRef(sizesOf(operand)).drop_back(2) != batch)
          return "heads of a product's operands are repeated";
    }
    // Threads share heads, as in attention: a single matrix is left to kernels that share its columns.
    if (sizesOf(softmax.getResult()).size() < 4)
      return "there are no heads";
    return std::nullopt;
  }

  /// Both products, and all on the way between them.
  void takeBetween() {
    SmallVector<Operation *> steps;
    scoresBehind(products.softmax.getInput(), steps);
    region.insert(products.scores);
    region.insert(steps.begin(), steps.end());
    region.insert(products.softmax);
    for (Operation *op = *products.softmax->user_begin(); op != products.weighted; op = *op->user_begin())
      region.insert(op);
    region.insert(products.weighted);
    last = products.weighted;
  }

  /// What changes an operand element by element, and the windows before that.
  void takeOperand(OpOperand &operand) {
    OpOperand *read = &operand;
    while (region.size() < 3 * regionLimit) {
      Operation *op = read->get().getDefiningOp();
      Value changed = op && op->hasOneUse() && op->getBlock() == last->getBlock() ? changedOperand(op) : Value();
      if (!changed || sizesOf(changed) != sizesOf(op->getResult(0)))
        break;
      op->moveBefore(read->getOwner()); // what depends on inputs only may stand far before
      region.insert(op);
      for (OpOperand &input : op->getOpOperands())
        if (input.get() == changed)
          read = &input;
      if (llvm::count(op->getOperands(), changed) > 1)
        return; // windows have one reader
    }
    takeIn(windowChain(*read, analysis, /*keepsRows=*/false), *read, region, analysis);
  }

  /// Elementwise ops behind the result, and the transpose that joins heads.
  void takeResult() {
    auto next = [&]() -> Operation * {
      Operation *user = last->hasOneUse() ? *last->user_begin() : nullptr;
      return user && user->getBlock() == last->getBlock() ? user : nullptr;
    };
    while (Operation *op = next()) {
      Value changed = changedOperand(op);
      if (changed != last->getResult(0) || sizesOf(changed) != sizesOf(op->getResult(0)))
        break;
      region.insert(op);
      last = op;
    }
    if (auto transpose = dyn_cast_or_null<ds::TransposeOp>(next()); transpose && keepsLastAxis(transpose)) {
      region.insert(transpose);
      last = transpose;
    }
  }

  ds::SoftmaxProducts products;
  SizeAnalysis &analysis;
  OpSet region;
  Operation *last = nullptr;
};

} // namespace

std::pair<OpSet, Operation *> softmaxRegion(ds::SoftmaxProducts products, SizeAnalysis &analysis) {
  return SoftmaxGatherer(products, analysis).run();
}

} // namespace deepstride
