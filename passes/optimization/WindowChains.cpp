// Follows window ops from their reader to memory. Whether strides reach the elements is asked of sizes as the kernel
// will know them: every size that is no number is a symbol of its own there.
#include "passes/optimization/WindowChains.h"

#include "dialects/ds/HeadRows.h"
#include "dialects/ds/StridedWindow.h"
#include "passes/graph/Matching.h"

#include <variant>

using namespace mlir;

namespace deepstride {

bool keepsLastAxis(ds::TransposeOp transpose) {
  auto permutation = transpose.getPermutation();
  return !permutation.empty() && permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

bool readsWindows(OpOperand &use) {
  if (auto attention = dyn_cast<ds::AttentionOp>(use.getOwner()))
    return use.getOperandNumber() <= attention.getValueMutable().getOperandNumber(); // masks are read from memory
  if (auto gradient = dyn_cast<ds::AttentionGradientOp>(use.getOwner()))
    return use.getOperandNumber() <= gradient.getGradientMutable().getOperandNumber();
  if (ds::readsWindows(use.getOwner())) // what is inserted, normalized or turned; all of what is joined
    return use.getOperandNumber() == 0 || isa<ds::ConcatOp>(use.getOwner());
  if (auto scatter = dyn_cast<ds::ScatterElementsOp>(use.getOwner())) // new rows of a cache
    return &use == &scatter.getUpdatesMutable() && ds::placesRows(scatter);
  return ds::isWindowOp(use.getOwner());
}

SizeVector asSymbols(ArrayRef<SizeExpr> sizes) {
  SizeVector renamed;
  for (const SizeExpr &size : sizes)
    renamed.push_back(size.constant() ? size : SizeExpr::symbol(size.str()));
  return renamed;
}

void sliceGathers(func::FuncOp function, SizeAnalysis &analysis) {
  SmallVector<ds::GatherOp> gathers;
  function.walk([&](ds::GatherOp gather) { gathers.push_back(gather); });
  for (ds::GatherOp gather : gathers) {
    if (gather.getScales()) // a slice has none
      continue;
    const TensorFacts &input = analysis.facts(gather.getInput()), &indices = analysis.facts(gather.getIndices());
    auto axis = static_cast<size_t>(gather.getAxis());
    auto length = input.sizes[axis].constant();
    auto index =
        indices.contents && indices.contents->size() == 1 ? indices.contents->front().constant() : std::nullopt;
    if (!length || !index || *index < -*length || *index >= *length)
      continue;
    SizeVector starts(input.sizes.size()), sizes = input.sizes;
    starts[axis] = *index < 0 ? *index + *length : *index;
    sizes[axis] = 1;
    OpBuilder builder(gather);
    MLIRContext *context = builder.getContext();
    TensorFacts facts{input.elementType, sizes, std::nullopt};
    auto slice = ds::SliceOp::create(builder, gather.getLoc(), facts.type(), gather.getInput(),
                                     toAttribute(context, starts), toAttribute(context, sizes),
                                     builder.getDenseI64ArrayAttr(SmallVector<int64_t>(sizes.size(), 1)));
    analysis.set(slice, facts);
    const TensorFacts result = analysis.facts(gather.getResult());
    auto reshape = ds::ReshapeOp::create(builder, gather.getLoc(), gather.getResult().getType(), slice,
                                         toAttribute(context, result.sizes));
    analysis.set(reshape, result);
    keepNames(gather, reshape);
    gather.getResult().replaceAllUsesWith(reshape.getResult());
    gather.erase();
  }
}

/// What the chain shows; where no strides reach that, the number of the reshape that is in the way.
static std::variant<ds::StridedWindow, size_t> shownBy(ArrayRef<Operation *> chain, SizeAnalysis &analysis) {
  auto sizesOf = [&](Value value) { return asSymbols(analysis.facts(value).sizes); };
  ds::StridedWindow window = ds::StridedWindow::whole(sizesOf(chain.back()->getOperand(0)));
  for (size_t number = chain.size(); number-- > 0;) {
    Operation *op = chain[number];
    auto slice = dyn_cast<ds::SliceOp>(op);
    SizeVector starts = slice ? asSymbols(*sizesFromAttribute(slice.getStarts())) : SizeVector();
    auto next = ds::windowThrough(op, window, sizesOf(op->getResult(0)), starts);
    if (!next)
      return number;
    window = std::move(*next);
  }
  return window;
}

bool showsRows(ArrayRef<Operation *> chain, size_t rowAxes, SizeAnalysis &analysis) {
  auto shown = shownBy(chain, analysis);
  auto *window = std::get_if<ds::StridedWindow>(&shown);
  return window && ds::RowWindow::of(*window, rowAxes);
}

SmallVector<Operation *> windowChain(OpOperand &operand, SizeAnalysis &analysis, bool keepsRows) {
  Operation *reader = operand.getOwner();
  SmallVector<Operation *> chain;
  auto outside = [&](Operation *op, StringRef why) {
    if (isa<ds::AttentionOp, ds::AttentionGradientOp>(reader)) // copies are what remains
      op->emitRemark() << "does not join the region of '" << reader->getName().getStringRef() << "': " << why;
  };
  for (Operation *op = operand.get().getDefiningOp(); ds::isWindowOp(op) && op->getBlock() == reader->getBlock();
       op = op->getOperand(0).getDefiningOp()) {
    if (auto transpose = dyn_cast<ds::TransposeOp>(op); transpose && keepsRows && !keepsLastAxis(transpose)) {
      outside(op, "it moves the last axis");
      break;
    }
    if (!llvm::all_of(op->getUses(), [&](OpOperand &use) {
          bool follows = readsWindows(use) || (isFusablePointwise(reader) && isFusablePointwise(use.getOwner()));
          return &use == &operand || (use.getOwner()->getBlock() == op->getBlock() && follows);
        })) {
      if (!isa<ds::ReshapeOp>(op))
        outside(op, "something else reads it");
      break;
    }
    chain.push_back(op);
  }
  // A reshape of a whole buffer is a view of it already.
  auto dropReshapes = [&] {
    while (!chain.empty() && isa<ds::ReshapeOp>(chain.back()))
      chain.pop_back();
  };
  dropReshapes();
  while (!chain.empty()) {
    auto shown = shownBy(chain, analysis);
    auto *number = std::get_if<size_t>(&shown);
    if (!number)
      break;
    outside(chain[*number], "it joins axes between which elements are left out");
    chain.truncate(*number);
    dropReshapes();
  }
  return chain;
}

void takeIn(ArrayRef<Operation *> chain, OpOperand &operand, OpSet &region, SizeAnalysis &analysis) {
  OpOperand *read = &operand;
  Operation *before = operand.getOwner();
  for (Operation *op : chain) {
    if (op->hasOneUse()) {
      op->moveBefore(before);
    } else {
      OpBuilder builder(before);
      Operation *copy = builder.clone(*op);
      analysis.set(copy->getResult(0), analysis.facts(op->getResult(0)));
      read->set(copy->getResult(0));
      op = copy;
    }
    region.insert(op);
    before = op;
    read = &op->getOpOperand(0);
  }
}

/// Whether a use changes what it reads in place.
static bool isChange(OpOperand &use) {
  auto insert = dyn_cast<ds::InsertOp>(use.getOwner());
  return (insert && use.getOperandNumber() == insert.getIntoMutable().getOperandNumber()) ||
         (isa<ds::ScatterElementsOp, ds::ScatterNdOp>(use.getOwner()) && use.getOperandNumber() == 0);
}

bool isChangedBefore(Value value, const OpSet &region, Operation *last) {
  SmallVector<Value> shown = {ds::throughReshapes(value)};
  while (!shown.empty())
    for (OpOperand &use : shown.pop_back_val().getUses()) {
      Operation *at = last->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (auto reshape = dyn_cast<ds::ReshapeOp>(use.getOwner()))
        shown.push_back(reshape.getResult());
      else if (at && isChange(use) && (region.contains(at) || at->isBeforeInBlock(last)))
        return true;
    }
  return false;
}

SizeExpr neighboursShown(ArrayRef<Operation *> chain, SizeAnalysis &analysis) {
  auto shown = shownBy(chain, analysis);
  auto *window = std::get_if<ds::StridedWindow>(&shown);
  SizeExpr count = 1;
  for (size_t axis = window ? window->sizes.size() : 0; axis-- > 0; count = count * window->sizes[axis])
    if (!window->sizes[axis].isConstant(1) && window->strides[axis] != count)
      break;
  return count;
}

SmallVector<Operation *> insertionOf(OpOperand &use) {
  SmallVector<Operation *> ops;
  OpOperand *read = &use;
  while (auto reshape = dyn_cast<ds::ReshapeOp>(read->getOwner())) {
    ops.push_back(reshape);
    if (!reshape->hasOneUse())
      return {};
    read = &*reshape->use_begin();
  }
  auto insert = dyn_cast<ds::InsertOp>(read->getOwner());
  if (!insert || read != &insert.getUpdateMutable())
    return {};
  ops.push_back(insert);
  return ops;
}

/// Whether the region makes or reads what the insertion changes, which would then be copied as a whole, or reads what
/// it has changed, which is not there before the kernel's end.
static bool meetsRegion(ds::InsertOp insert, const OpSet &region) {
  Value into = ds::throughReshapes(insert.getInto());
  return region.contains(into.getDefiningOp()) || llvm::any_of(region, [&](Operation *op) {
           return llvm::any_of(op->getOperands(), [&](Value operand) {
             Value read = ds::throughReshapes(operand);
             return read == into || read == insert.getResult();
           });
         });
}

static bool holdsBox(ds::InsertOp insert, Value stored, std::optional<size_t> rowAxes, SizeAnalysis &analysis) {
  auto sizesOf = [&](Value value) { return asSymbols(analysis.facts(value).sizes); };
  SizeVector starts = asSymbols(*sizesFromAttribute(insert.getStarts()));
  auto box = ds::reshapedWindow(ds::insertedBox(sizesOf(insert.getInto()), sizesOf(insert.getUpdate()), starts),
                                sizesOf(stored));
  return box && (!rowAxes || ds::RowWindow::of(*box, *rowAxes));
}

void takeInsertions(OpSet &region, Operation *&last, std::optional<size_t> rowAxes, SizeAnalysis &analysis) {
  SizeVector sizes = analysis.facts(region.front()->getResult(0)).sizes;
  for (Operation *op : llvm::to_vector(region)) {
    auto element = dyn_cast<ds::PerElement>(op);
    bool isComputed = (element && element.isPointwise()) || isa<ds::Anchor>(op);
    if (!isComputed || analysis.facts(op->getResult(0)).sizes != sizes)
      continue;
    SmallVector<SmallVector<Operation *>> found;
    for (OpOperand &use : op->getUses())
      found.push_back(insertionOf(use));
    for (ArrayRef<Operation *> ops : found) {
      if (ops.empty() || llvm::any_of(ops, [&](Operation *other) { return other->getBlock() != op->getBlock(); }))
        continue;
      auto insert = cast<ds::InsertOp>(ops.back());
      auto stays = [&](StringRef why) {
        if (rowAxes) // else many are alone
          insert.emitRemark() << "does not join the region of '" << op->getName().getStringRef() << "': " << why;
      };
      OpSet larger(region);
      larger.insert(ops.begin(), ops.end());
      Operation *end = last->isBeforeInBlock(insert) ? insert : last;
      if (!holdsBox(insert, op->getResult(0), rowAxes, analysis)) {
        stays("rows would be stored in parts");
      } else if (meetsRegion(insert, region)) {
        stays("the region makes or reads what it changes");
      } else if (!dependentsOf(larger, end)) {
        stays("something between them needs it");
      } else {
        region = std::move(larger);
        last = end;
      }
    }
  }
}

} // namespace deepstride
