// Gathers attention in parts. All that lies between an operand in memory and the result in memory is one head's, or of
// what all heads share, so that a kernel computes a head after the other.
#include "passes/optimization/SoftmaxRegions.h"

#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Schedule.h"
#include "passes/optimization/ComputedRows.h"
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
    takeResult();
    takeYieldedValues();
    OpOperand *queries = takeSteps(products.scores.getLhsMutable());
    OpOperand *keys = takeSteps(products.scores.getRhsMutable()),
              *values = takeSteps(products.weighted.getRhsMutable());
    takeShown(keys, values);
    takeRows({queries, keys, values}, {true, products.scores.getTranspose()[1] != areKeysTurned,
                                       products.weighted.getTranspose()[1] == areValuesTurned});
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
      if (!haveScoresOf(sizesOf(step->getResult(0))))
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
    if (!haveScoresOf(sizesOf(softmax.getResult())))
      return "scores are repeated before it";
    // Threads share heads, as in attention: a single matrix is left to kernels that share its columns.
    if (sizesOf(softmax.getResult()).size() < 4)
      return "there are no heads";
    return std::nullopt;
  }

  /// Whether a step has as many elements as there are scores, in every run: a mask whose size may be another one would
  /// repeat scores of a single key, of which there are no more values then, which a run refuses.
  bool haveScoresOf(const SizeVector &sizes) {
    const SizeVector &scores = sizesOf(products.scores.getResult()), &values = sizesOf(products.weighted.getRhs());
    const SizeExpr &count = values[values.size() - (products.weighted.getTranspose()[1] ? 1 : 2)];
    return sizes == scores || (sizes == sizesOf(products.softmax.getResult()) && count == scores.back() &&
                               ArrayRef(sizes).drop_back() == ArrayRef(scores).drop_back());
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

  void takeBefore(OpOperand *reader, Operation *op) {
    op->moveBefore(reader->getOwner()); // what depends on inputs only may stand far before
    region.insert(op);
  }

  /// The last step of values may be a result of the kernel, too, as of a cache that is quantized where it is shown.
  void takeYieldedValues() {
    Operation *op = products.weighted.getRhs().getDefiningOp();
    Value changed = op && !op->hasOneUse() && op->getBlock() == last->getBlock() ? changedOperand(op) : Value();
    if (!changed || sizesOf(changed) != sizesOf(op->getResult(0)) || llvm::count(op->getOperands(), changed) > 1)
      return;
    OpSet larger(region);
    larger.insert(op);
    yieldsValues = dependentsOf(larger, last).has_value();
    if (yieldsValues)
      region.insert(op);
    else
      op->emitRemark() << "does not join the region of 'ds.softmax': something between them needs it";
  }

  /// What changes an operand element by element. Returns the use behind that.
  OpOperand *takeSteps(OpOperand &operand) {
    OpOperand *read = &operand;
    if (Operation *taken = read->get().getDefiningOp(); taken && region.contains(taken))
      for (OpOperand &input : taken->getOpOperands())
        if (input.get() == changedOperand(taken))
          read = &input;
    while (region.size() < 3 * regionLimit) {
      Operation *op = read->get().getDefiningOp();
      Value changed = op && op->hasOneUse() && op->getBlock() == last->getBlock() ? changedOperand(op) : Value();
      if (!changed || sizesOf(changed) != sizesOf(op->getResult(0)))
        break;
      takeBefore(read, op);
      for (OpOperand &input : op->getOpOperands())
        if (input.get() == changed)
          read = &input;
    }
    return read;
  }

  /// What shows keys and values in another order, and as often as heads of queries share them. Moves the uses behind
  /// that.
  void takeShown(OpOperand *&keys, OpOperand *&values) {
    auto shownBy = [&](OpOperand *read) -> ds::ShownHeads {
      auto shown = ds::ShownHeads::of(read->get(), [&](Value value) { return sizesOf(value); });
      auto isOwn = [&](Operation *op) { return op->hasOneUse() && op->getBlock() == last->getBlock(); };
      if (!isRead(read) || !llvm::all_of(shown.ops, isOwn))
        return {read->get(), 1, false, {}};
      return shown;
    };
    ds::ShownHeads ofKeys = shownBy(keys), ofValues;
    if (!yieldsValues) // else they lie as they are yielded
      ofValues = shownBy(values);
    auto take = [&](OpOperand *&read, const ds::ShownHeads &shown, bool &isTurned) {
      for (Operation *op : shown.ops) {
        auto transpose = dyn_cast<ds::TransposeOp>(op);
        if (ofKeys.repeat != ofValues.repeat && !transpose)
          return;
        isTurned ^= transpose && !keepsLastAxis(transpose);
        takeBefore(read, op);
        read = &op->getOpOperand(0);
      }
    };
    take(keys, ofKeys, areKeysTurned);
    take(values, ofValues, areValuesTurned);
  }

  /// Whether the op that has the use reads nothing else: windows have one reader.
  static bool isRead(OpOperand *use) { return llvm::count(use->getOwner()->getOperands(), use->get()) == 1; }

  /// Rows that are computed or put together, where those are tokens, and windows of what is in memory.
  void takeRows(ArrayRef<OpOperand *> operands, ArrayRef<bool> areTokens) {
    RowReader reader{products.softmax, SmallVector<OpOperand *>(operands), {}};
    for (Operation *op : region)
      for (OpOperand &operand : op->getOpOperands())
        if (!llvm::is_contained(operands, &operand) && !region.contains(operand.get().getDefiningOp()))
          reader.others.push_back(operand.get());
    SmallVector<OpOperand *> inPlace;
    bool haveHeads = sizesOf(products.softmax.getResult()).size() == 4; // of rows: [batch, head, token, feature]
    for (auto [operand, haveTokens] : llvm::zip_equal(operands, areTokens))
      if (isRead(operand) && !(haveHeads && haveTokens && takeComputedRows(reader, *operand, region, last, analysis)))
        inPlace.push_back(operand);
    for (OpOperand *operand : inPlace)
      takeIn(windowChain(*operand, analysis, /*keepsRows=*/false), *operand, region, analysis);
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
  bool yieldsValues = false, areKeysTurned = false, areValuesTurned = false;
};

} // namespace

std::pair<OpSet, Operation *> softmaxRegion(ds::SoftmaxProducts products, SizeAnalysis &analysis) {
  return SoftmaxGatherer(products, analysis).run();
}

} // namespace deepstride
