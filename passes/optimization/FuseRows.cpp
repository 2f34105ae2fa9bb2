// ds-fuse-rows: the elementwise ops before a norm or a softmax join its kernel, which computes a row while it is about
// to read it, and so do the elementwise ops behind a norm, or the extremes of what it gives, row by row. Works per
// block on values of equal symbolic sizes, on what no product has taken. Which loops that becomes is left to codegen.
//
//   %1 = ds.binary add %x, %y                %1, %2 = ds.fused { %1 = ds.binary add %x, %y
//   %2 = ds.layer_norm %1, %s axis 1    =>                       %2 = ds.layer_norm %1, %s axis 1 ; ds.yield %1, %2 }
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/RegionPass.h"
#include "passes/optimization/WindowChains.h"

namespace deepstride {
#define GEN_PASS_DEF_FUSEROWS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct FuseRows : RegionPass<deepstride::impl::FuseRowsBase<FuseRows>> {
  // Elements of a row: a loop of elementwise ops alone fills its vectors from several shorter ones.
  static constexpr int64_t leastLength = 16;

  void fuseAll() override {
    SmallVector<Operation *> anchors;
    getOperation().walk([&](Operation *op) {
      if (ds::readsRows(op) && !isa<ds::FusedOp>(op->getParentOp()) && !op->use_empty())
        anchors.push_back(op);
    });
    for (Operation *anchor : anchors)
      fuse(anchor);
  }

  void fuse(Operation *anchor) {
    OpSet region;
    region.insert(anchor);
    takeInput(anchor, region);
    Operation *last = takeOutput(anchor, region);
    if (last == anchor)
      last = takeExtremes(anchor, region);
    wrap(region, last);
  }

  /// Takes in what computes the rows that the anchor reads.
  void takeInput(Operation *anchor, OpSet &region) {
    if (auto softmax = dyn_cast<ds::SoftmaxOp>(anchor)) // elsewhere several rows are computed at once
      if (static_cast<int64_t>(softmax.getAxis()) + 1 != cast<RankedTensorType>(softmax.getType()).getRank())
        return;
    Operation *first = anchor->getOperand(0).getDefiningOp();
    if (!joins(first, anchor) || isBeside(first, anchor) ||
        lengthOf(anchor).constant().value_or(leastLength) < leastLength)
      return;
    OpSet larger(region);
    larger.insert(first);
    for (size_t i = 1; i < larger.size() && larger.size() < regionLimit; ++i)
      for (Value operand : larger[i]->getOperands()) {
        Operation *op = operand.getDefiningOp();
        if (larger.size() < regionLimit && joins(op, anchor) && !isRegionResult(op, larger) && !isBeside(op, anchor))
          larger.insert(op);
      }
    if (dependentsOf(larger, anchor))
      region = std::move(larger);
  }

  /// Takes in what changes the rows that a norm gives, one op after the other; the last op of the region. What they
  /// read else is in memory. What shares a loop with other elementwise ops is left to that.
  Operation *takeOutput(Operation *anchor, OpSet &region) {
    Operation *last = anchor;
    Operation *input = anchor->getOperand(0).getDefiningOp();
    bool hasPlace = !input || !region.contains(input) || isRegionResult(input, region); // for rows computed before
    if (!ds::isNorm(anchor) || !hasPlace || lengthOf(anchor).constant().value_or(leastLength) < leastLength)
      return last;
    while (last->hasOneUse() && region.size() < regionLimit) {
      Operation *user = *last->user_begin();
      bool readsOthers = llvm::any_of(user->getOperands(), [&](Value operand) {
        Operation *op = operand.getDefiningOp();
        return op && region.contains(op) && op != last;
      });
      if (!joins(user, anchor) || readsOthers || sharesLoop(user, last, anchor) || !takeBehind(region, user, last))
        break;
    }
    return last;
  }

  /// Whether elementwise ops would lose the loop that an op behind a norm has in common with them: one that computes
  /// what it reads beside `changed`, or several that read its result; or one that stores it in a larger tensor, too.
  bool sharesLoop(Operation *op, Operation *changed, Operation *anchor) {
    auto isFree = [&](Operation *other) { return joins(other, anchor) && !isa<ds::ConstantOp>(other); };
    bool computes = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      if (made == changed || !isFree(made))
        return false;
      OpSet both;
      both.insert(made);
      both.insert(op);
      return dependentsOf(both, op).has_value(); // else the norm depends on it
    });
    llvm::SmallPtrSet<Operation *, 4> readers(op->user_begin(), op->user_end());
    bool isInserted = llvm::any_of(op->getUses(), [](OpOperand &use) { return !insertionOf(use).empty(); });
    return computes || isInserted || llvm::count_if(readers, isFree) > 1;
  }

  /// Takes in the extremes of the rows that a norm gives; the last op of the region.
  Operation *takeExtremes(Operation *anchor, OpSet &region) {
    Operation *last = anchor;
    if (!ds::isNorm(anchor) || lengthOf(anchor) != analysis.facts(anchor->getResult(0)).sizes.back())
      return last;
    for (Operation *user : anchor->getUsers())
      if (user->getBlock() == anchor->getBlock() && ds::isRowExtreme(user) && !user->use_empty())
        takeBehind(region, user, last);
    bool isStored = llvm::any_of(anchor->getUsers(), [&](Operation *user) { return !region.contains(user); });
    if (last != anchor && !isStored) { // its kernel normalizes to memory
      region.remove_if([](Operation *op) { return isa<ds::ReduceOp>(op); });
      last = anchor;
    }
    return last;
  }

  /// Of the rows that the op reads.
  SizeExpr lengthOf(Operation *anchor) {
    ArrayRef<SizeExpr> sizes = analysis.facts(anchor->getOperand(0)).sizes;
    auto layer = dyn_cast<ds::LayerNormOp>(anchor);
    auto rms = dyn_cast<ds::RmsNormOp>(anchor);
    return product(sizes.drop_front(layer ? layer.getAxis() : rms ? rms.getAxis() : sizes.size() - 1));
  }

  /// Whether the anchor reads the op beside its rows, as a scale or a bias: from memory, before the rows are computed.
  static bool isBeside(Operation *op, Operation *anchor) {
    return llvm::is_contained(anchor->getOperands().drop_front(), op->getResult(0));
  }

  bool joins(Operation *op, Operation *anchor) {
    return op && op->getBlock() == anchor->getBlock() && isFusablePointwise(op) &&
           analysis.facts(op->getResult(0)).sizes == analysis.facts(anchor->getOperand(0)).sizes;
  }
};

} // namespace
