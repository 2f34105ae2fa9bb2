// Builds ds.fused regions around anchors: ops whose kernels compute tiles. Elementwise ops that follow an anchor become
// its epilogue, which is applied to a tile before it is stored, so that the anchor's own result never reaches memory.
// The norm before a product with a parameter becomes its prologue, or that of several projections of one attention.
// What transposes, slices and reshapes show is read in place. Of a tensor whose least and greatest number are taken,
// the kernel that makes it takes those of rows, and that of the product which reads the codes computes their scale.
// Works per block; where a region ends, a remark says why. What code a region becomes is left to codegen.
//
//   %1 = ds.linear %x, %w ; %2 = ds.gelu %1 ; %3 = ds.binary add %2, %r
// becomes
//   %3 = ds.fused { %1 = ds.linear %x, %w ; %2 = ds.gelu %1 ; %3 = ds.binary add %2, %r ; ds.yield %3 }
#include "passes/optimization/AttentionRegions.h"
#include "passes/optimization/Extremes.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/RegionPass.h"
#include "passes/optimization/RowSteps.h"
#include "passes/optimization/SoftmaxRegions.h"
#include "passes/optimization/WindowChains.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/TileAccess.h"

namespace deepstride {
#define GEN_PASS_DEF_FUSEDEEP
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

struct FuseDeep : RegionPass<deepstride::impl::FuseDeepBase<FuseDeep>> {
  using RegionPass::RegionPass;

  // What merging leaves of what it has joined would count as a reader.
  void prepare() override { eraseUnused(); }

  void fuseAll() override {
    sliceGathers(getOperation(), analysis);
    findProjections();
    if (products) {
      splitNorms(/*all=*/false);
      wrapSoftmaxes();
    }
    SmallVector<Operation *> anchors;
    getOperation().walk([&](Operation *op) {
      bool isAnchor = isa<ds::AttentionOp, ds::AttentionGradientOp>(op) || (products && isa<ds::Anchor>(op));
      if (isAnchor && !isa<ds::FusedOp>(op->getParentOp()))
        anchors.push_back(op);
    });
    for (Operation *anchor : anchors)
      if (auto attention = dyn_cast<ds::AttentionOp>(anchor))
        wrapAttention(attention);
      else if (auto gradient = dyn_cast<ds::AttentionGradientOp>(anchor))
        wrapAttentionGradient(gradient);
      else if (!isa<ds::FusedOp>(anchor->getParentOp())) // as another product's companion
        fuse(anchor);
    if (products)
      splitNorms(/*all=*/true);
    fuseReaders();
  }

  void eraseUnused() {
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : llvm::reverse(ops))
      if (op != getOperation() && isOpTriviallyDead(op))
        op->erase();
  }

  void wrapAttention(ds::AttentionOp attention) {
    auto [region, last] = attentionRegion(attention, /*computesRows=*/products, analysis);
    if (!products)
      return wrap(region, last);
    if (last == attention || isa<ds::TransposeOp>(last)) // else what is stored is rounded
      if (auto extremes = wholeExtremes(last->getResult(0)); !extremes.empty()) {
        Operation *end = takeRowExtremes(extremes, attention->getResult(0), region, analysis, partial);
        last = last == attention ? end : last;
      }
    wrap(region, last);
  }

  /// Attention of quantized scores and weights, before its products become anchors.
  void wrapSoftmaxes() {
    SmallVector<ds::SoftmaxProducts> found;
    getOperation().walk([&](ds::SoftmaxOp softmax) {
      if (auto products = productsAround(softmax); products && !isa<ds::FusedOp>(softmax->getParentOp()))
        found.push_back(*products);
    });
    for (ds::SoftmaxProducts products : found) {
      auto [region, last] = softmaxRegion(products, analysis);
      if (last)
        wrap(region, last);
    }
  }

  /// What takes the extremes of norms reads those of their rows, which ds-fuse-rows puts into their kernels. Norms that
  /// a product may take are left to it, or else to the last call.
  void splitNorms(bool all) {
    SmallVector<Operation *> norms;
    OpSet before; // products
    getOperation().walk([&](Operation *op) {
      if (ds::isNorm(op) && !isa<ds::FusedOp>(op->getParentOp()) && !normObstacle(op, analysis))
        norms.push_back(op);
      if (auto product = dyn_cast<ds::LinearOp>(op); product && !all)
        before.insert(normBefore(rowSteps(product, analysis)));
    });
    for (Operation *norm : norms)
      if (!before.contains(norm))
        splitNorm(norm);
  }

  void splitNorm(Operation *norm) {
    OpSet rows;
    if (auto extremes = wholeExtremes(norm->getResult(0)); !extremes.empty())
      takeRowExtremes(extremes, norm->getResult(0), rows, analysis, partial);
  }

  /// Which of what prepares a product's rows is the norm, the last one; null where none is.
  static Operation *normBefore(ArrayRef<Operation *> steps) {
    return !steps.empty() && ds::isNorm(steps.back()) ? steps.back() : nullptr;
  }

  /// Its operands are read through windows, and each result is stored as the transpose behind it has it.
  void wrapAttentionGradient(ds::AttentionGradientOp gradient) {
    if (llvm::any_of(gradient->getResults(), [](Value result) { return result.use_empty(); }))
      return; // a region would not yield it
    OpSet region;
    region.insert(gradient);
    Operation *last = gradient;
    for (Value result : gradient->getResults()) {
      auto transpose = result.hasOneUse() ? dyn_cast<ds::TransposeOp>(*result.user_begin()) : ds::TransposeOp();
      if (!transpose || transpose->getBlock() != gradient->getBlock() || !keepsLastAxis(transpose))
        continue;
      if (!takeBehind(region, transpose, last))
        transpose.emitRemark()
            << "does not join the region of 'ds.attention_gradient': something between them needs it";
    }
    for (OpOperand &operand : gradient->getOpOperands().take_front(4)) {
      bool isKey = operand.getOperandNumber() == 1; // packed before it is multiplied, whichever axis is the last
      takeIn(windowChain(operand, analysis, /*keepsRows=*/!isKey), operand, region, analysis);
    }
    wrap(region, last);
  }

  /// What moves, turns or normalizes rows on its own reads through windows, too.
  void fuseReaders() {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (ds::readsWindows(op) && !isa<ds::FusedOp>(op->getParentOp()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpSet region;
      region.insert(op);
      for (OpOperand &operand : op->getOpOperands())
        if (readsWindows(operand))
          takeIn(windowChain(operand, analysis, /*keepsRows=*/isa<ds::RotaryOp>(op)), operand, region, analysis);
      wrap(region, op);
    }
  }

  void fuse(Operation *anchor) {
    if (!ds::isTileElement(elementOf(anchor->getResult(0))))
      return;
    OpSet region;
    region.insert(anchor);
    Operation *last = anchor;
    for (size_t i = 0; i < region.size(); ++i)
      for (OpOperand &use : region[i]->getUses()) {
        Operation *user = use.getOwner();
        bool isLater = llvm::is_contained(wholeExtremes(region[i]->getResult(0)), user) || !insertionOf(use).empty();
        if (region.contains(user) || user->hasTrait<OpTrait::IsTerminator>() || isLater)
          continue;
        if (auto reason = obstacle(user, anchor, region, last))
          user->emitRemark() << "does not join the region of '" << anchor->getName().getStringRef() << "': " << *reason;
      }
    takeInsertions(region, last, static_cast<size_t>(cast<ds::Anchor>(anchor).rowAxes()), analysis);
    takeShownRows(anchor, region, last);
    if (auto product = dyn_cast<ds::LinearOp>(anchor)) {
      takeCompanion(product, region, last);
      takeExtremes(product, region, last);
      takeBeside(product, region, last);
      if (!takeNorm(product, region, last)) {
        takeRowSteps(product, region, last);
        takeNumbers(product, region, last);
      }
    }
    if (auto convolution = dyn_cast<ds::ConvOp>(anchor))
      takeFilters(convolution, region, last);
    wrap(region, last);
  }

  /// Has what follows the anchor read in place what slices show of memory, where a tile finds whole rows there.
  void takeShownRows(Operation *anchor, OpSet &region, Operation *last) {
    const SizeVector sizes = analysis.facts(anchor->getResult(0)).sizes; // a copy: facts of other values come
    auto rowAxes = static_cast<size_t>(cast<ds::Anchor>(anchor).rowAxes());
    for (Operation *op : llvm::to_vector(region))
      for (OpOperand &operand : op->getOpOperands()) {
        if (op == anchor || region.contains(operand.get().getDefiningOp()) ||
            analysis.facts(operand.get()).sizes != sizes)
          continue;
        auto chain = windowChain(operand, analysis, /*keepsRows=*/true);
        if (llvm::any_of(chain, llvm::IsaPred<ds::SliceOp>) && showsRows(chain, rowAxes, analysis) &&
            !isChangedBefore(chain.back()->getOperand(0), region, last))
          takeIn(chain, operand, region, analysis);
      }
  }

  /// Takes in what makes filters of constants, filter by filter: those that a package holds as codes.
  void takeFilters(ds::ConvOp convolution, OpSet &region, Operation *last) {
    OpSet larger(region);
    Value numbers = convolution.getWeight();
    auto isOnlyFor = [&](Operation *op) {
      return op && op->getBlock() == convolution->getBlock() && !isRegionResult(op, larger);
    };
    if (auto reshape = numbers.getDefiningOp<ds::ReshapeOp>(); reshape && isOnlyFor(reshape)) {
      larger.insert(reshape);
      numbers = reshape.getInput();
    }
    SmallVector<Value> open = {numbers};
    size_t before = larger.size();
    while (!open.empty()) {
      Operation *op = open.pop_back_val().getDefiningOp();
      if (isa_and_present<ds::WeightOp, ds::ConstantOp>(op))
        continue;
      if (!isOnlyFor(op) || !isFusablePointwise(op) || !ds::isCheapForRows(op))
        return;
      larger.insert(op);
      llvm::append_range(open, op->getOperands());
    }
    if (larger.size() > before && ds::scheduleOf(convolution) && dependentsOf(larger, last))
      region = std::move(larger);
  }

  /// Takes in another product of the same input that only the region's ops read: the other half of a gate.
  void takeCompanion(ds::LinearOp product, OpSet &region, Operation *last) {
    for (Operation *op : llvm::to_vector(region))
      for (Value operand : op->getOperands()) {
        auto other = operand.getDefiningOp<ds::LinearOp>();
        if (!other || region.contains(other) || other.getInput() != product.getInput() ||
            other->getBlock() != product->getBlock())
          continue;
        OpSet larger(region);
        larger.insert(other);
        auto stays = [&](StringRef why) { other.emitRemark() << "does not join the region of 'ds.linear': " << why; };
        if (!ds::arePair(product, other))
          stays("its weight is not packed, or has another layout");
        else if (isRegionResult(other, larger))
          stays("something else reads it");
        else if (!dependentsOf(larger, last))
          stays("something between them needs it");
        else
          return void(region = std::move(larger));
      }
  }

  /// Has the kernel take the extremes of each panel's part of a row, where something takes those of a whole result.
  void takeExtremes(ds::LinearOp product, OpSet &region, Operation *&last) {
    ds::ScheduleAttr schedule = ds::scheduleOf(product);
    if (!product.getPanel() || !schedule)
      return;
    for (Operation *op : llvm::to_vector(region)) {
      const SizeVector &sizes = analysis.facts(op->getResult(0)).sizes;
      auto columns = sizes.empty() ? std::nullopt : sizes.back().constant();
      auto extremes = wholeExtremes(op->getResult(0));
      if (extremes.empty() || sizes != analysis.facts(product.getResult()).sizes)
        continue;
      if (!columns || *columns % schedule.getColumns() != 0) {
        extremes.front().emitRemark() << "does not join the region of 'ds.linear': panels of " << schedule.getColumns()
                                      << " columns do not divide its rows";
        continue;
      }
      SizeVector parts(sizes);
      parts.back() = SizeExpr(*columns / schedule.getColumns());
      parts.push_back(SizeExpr(schedule.getColumns()));
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(op);
      DsBuilder b(builder, analysis);
      b.setLocation(op->getLoc());
      Value shown = b.reshape(op->getResult(0), parts);
      region.insert(shown.getDefiningOp());
      Operation *end = takeRowExtremes(extremes, shown, region, analysis, partial);
      last = op == last ? end : last;
    }
  }

  /// Takes in what computes numbers of extremes for this product alone, as the scale and the zero point of its rows.
  void takeNumbers(ds::LinearOp product, OpSet &region, Operation *last) {
    if (!product.getPanel())
      return;
    auto stays = [](Operation *op, StringRef why) {
      op->emitRemark() << "does not join the region of 'ds.linear': " << why;
    };
    OpSet larger(region), numbers = sharedNumbers(product, region, partial, stays);
    larger.insert(numbers.begin(), numbers.end());
    if (numbers.empty())
      return;
    if (dependentsOf(larger, last))
      region = std::move(larger);
    else
      stays(numbers.front(), "something between them needs it");
  }

  /// Takes in a norm, all that makes the product's rows of it, and what that needs of the extremes of all its rows:
  /// each thread normalizes all of them once more, before the first one becomes codes. Otherwise the extremes of the
  /// norm's rows are taken where it is computed.
  bool takeNorm(ds::LinearOp product, OpSet &region, Operation *last) {
    SmallVector<Operation *> steps = rowSteps(product, analysis);
    Operation *norm = normBefore(steps);
    auto extremes = norm ? wholeExtremes(norm->getResult(0)) : SmallVector<ds::ReduceOp>();
    if (extremes.empty())
      return false;
    OpSet larger(region);
    larger.insert(steps.begin(), steps.end());
    llvm::SmallPtrSet<Operation *, 16> reducing(partial);
    reducing.insert(extremes.begin(), extremes.end());
    OpSet numbers =
        sharedNumbers(product, larger, reducing, [](Operation *, StringRef) {}); // said when it is asked again
    larger.insert(numbers.begin(), numbers.end());
    if (auto reason = costOfNorm(product); !reason.empty())
      norm->emitRemark() << "does not join the region of 'ds.linear': " << reason;
    else if (!rowStepsObstacle(steps, product, region, analysis) &&
             llvm::all_of(extremes,
                          [&](ds::ReduceOp extreme) {
                            return extreme.getInput() == norm->getResult(0) && numbers.contains(extreme);
                          }) &&
             dependentsOf(larger, last))
      return region = std::move(larger), true;
    splitNorm(norm);
    return false;
  }

  /// Why a launch should take the extremes of the norm before a product, where that is known; each thread would take
  /// all of them again. An element costs as much as its products with 14 columns, on one thread of a CPU without dot
  /// products of bytes, 16,000 to 32,000 of them as much as a launch.
  std::string costOfNorm(ds::LinearOp product) {
    constexpr int64_t mostElements = 32768, fewColumns = 512;
    SizeExpr elements = deepstride::product(analysis.facts(product.getInput()).sizes);
    SizeExpr columns = analysis.facts(product.getResult()).sizes.back();
    if (elements.constant().value_or(0) <= mostElements || columns.constant().value_or(fewColumns) >= fewColumns)
      return {};
    return "each thread would normalize " + elements.str() + " elements again, for " + columns.str() + " columns";
  }

  void findProjections() {
    getOperation().walk([&](ds::AttentionOp attention) {
      for (Value operand : {attention.getQuery(), attention.getKey(), attention.getValue()})
        if (ds::LinearOp op = projectionOf(operand))
          attentions.try_emplace(op, attention);
    });
  }

  /// Takes in other projections of one attention and one input that merging has left: their weights are of other types.
  void takeBeside(ds::LinearOp product, OpSet &region, Operation *&last) {
    Operation *attention = attentions.lookup(product);
    if (!attention || region.size() > 1)
      return;
    for (Operation *user : llvm::to_vector(product.getInput().getUsers())) {
      auto other = dyn_cast<ds::LinearOp>(user);
      if (!other || region.contains(other) || attentions.lookup(other) != attention || !product.getPanel() ||
          !other.getPanel() || other.getInput() != product.getInput() || other->getBlock() != product->getBlock())
        continue;
      auto stays = [&](StringRef why) { other.emitRemark() << "does not join the region of 'ds.linear': " << why; };
      if (llvm::any_of(other->getUsers(), [&](Operation *reader) { return !mismatch(reader, other); }))
        stays("ops that may follow it read it");
      else if (!takeBehind(region, other, last))
        stays("something between them needs it");
    }
  }

  /// Takes in what prepares the product's rows: all of it, or as much of the end of it as can be.
  void takeRowSteps(ds::LinearOp product, OpSet &region, Operation *last) {
    SmallVector<Operation *> steps = rowSteps(product, analysis);
    bool isFirst = true;
    for (; !steps.empty(); steps.pop_back()) {
      auto obstacle = rowStepsObstacle(steps, product, region, analysis);
      OpSet larger(region);
      larger.insert(steps.begin(), steps.end());
      if (!obstacle && dependentsOf(larger, last))
        return void(region = std::move(larger));
      auto [op, reason] = obstacle.value_or(std::pair(steps.back(), StringRef("something between them needs it")));
      if (std::exchange(isFirst, false))
        op->emitRemark() << "does not join the region of 'ds.linear': " << reason;
    }
  }

  /// Takes an op into the region, together with what only it needs; what is against it otherwise.
  std::optional<StringRef> obstacle(Operation *user, Operation *anchor, OpSet &region, Operation *&last) {
    if (user->getBlock() != anchor->getBlock())
      return isa<ds::FusedOp>(user->getParentOp()) ? "it is in another region" : "it is in another block";
    OpSet larger(region);
    SmallVector<Operation *> open = {user};
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      if (larger.contains(op))
        continue;
      if (auto reason = mismatch(op, anchor))
        return reason;
      larger.insert(op);
      if (larger.size() > 2 * regionLimit) // both halves of a gate, whose results are quantized one by one
        return "the region would be too large";
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (producer && producer->getBlock() == anchor->getBlock() && !larger.contains(producer) &&
            !mismatch(producer, anchor) &&
            llvm::all_of(producer->getUsers(), // the anchor reads memory
                         [&](Operation *reader) { return reader != anchor && larger.contains(reader); }))
          open.push_back(producer);
      }
    }
    Operation *end = last->isBeforeInBlock(user) ? user : last;
    if (!dependentsOf(larger, end))
      return "something between them needs the anchor's result";
    for (Operation *op : larger) {
      if (op->getResult(0).use_empty())
        return "nothing reads it";
      if (isRegionResult(op, larger) && !ds::isTileElement(elementOf(op->getResult(0))))
        return "a result is not what vectors store";
      for (Value operand : op->getOperands())
        if (op != anchor && !larger.contains(operand.getDefiningOp()) && !isSplat(operand) &&
            !ds::isTileOperand(elementOf(operand), analysis.facts(operand).sizes))
          return "an operand is not what vectors load";
    }
    region = std::move(larger);
    last = end;
    return std::nullopt;
  }

  std::optional<StringRef> mismatch(Operation *op, Operation *anchor) { return tileMismatch(op, anchor, analysis); }

  llvm::DenseMap<Operation *, Operation *> attentions; // by the products that are their projections
  llvm::SmallPtrSet<Operation *, 16> partial;          // what reduces the extremes of rows
};

} // namespace
