// Looks at both sides of a boundary: how the reader's kernel walks over what it reads, and what may follow in the
// kernel of the producer.
#include "passes/optimization/Boundaries.h"

#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"
#include "dialects/ds/TileAccess.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace deepstride {

static std::string nameOf(Operation *op) { return "'" + op->getName().getStringRef().str() + "'"; }

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

static bool isAttention(Operation *op) { return isa_and_present<ds::AttentionOp, ds::AttentionGradientOp>(op); }

/// Ops that take lines of their operand whole.
static bool reduces(Operation *op) {
  return ds::readsRows(op) || isa_and_present<ds::ReduceOp, ds::ArgReduceOp, ds::CumulativeOp, ds::TopKOp,
                                              ds::ArgsortOp, ds::QuantizeRowsOp>(op);
}

KernelRegion KernelRegion::of(Operation *top) {
  KernelRegion kernel{top, {}, {}, {}};
  if (auto fused = dyn_cast<ds::FusedOp>(top)) {
    for (Operation &inner : fused.getBody().front().without_terminator())
      kernel.body.push_back(&inner);
    llvm::append_range(kernel.yielded, fused.getBody().front().getTerminator()->getOperands());
  } else {
    kernel.body.push_back(top);
    llvm::append_range(kernel.yielded, top->getResults());
  }
  llvm::SmallSetVector<Value, 8> operands;
  auto isInside = [&](Value value) { return llvm::is_contained(kernel.body, value.getDefiningOp()); };
  for (Operation *op : kernel.body)
    for (Value operand : op->getOperands())
      if (!isInside(operand) && !(isSplat(operand) && isa<ds::PerElement>(op)))
        operands.insert(operand);
  for (Value value : kernel.yielded)
    if (!isInside(value))
      operands.insert(value);
  llvm::append_range(kernel.operands, operands);
  return kernel;
}

Operation *KernelRegion::readerOf(Value operand) const {
  for (Operation *op : body)
    if (llvm::is_contained(op->getOperands(), operand))
      return op;
  return top;
}

Operation *KernelRegion::anchor() const {
  for (Operation *op : body)
    if (isa<ds::Anchor>(op) || isAttention(op))
      return op;
  for (Operation *op : body)
    if (!isa<ds::PerElement, ds::ReshapeOp>(op))
      return op;
  return nullptr;
}

std::vector<KernelRegion> kernelsOf(Operation *function) {
  std::vector<KernelRegion> kernels;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isFused = isa<ds::FusedOp>(op);
    if (isFused || (isa<ds::ResultInference>(op) && !isa<ds::ConstantOp, ds::ReshapeOp>(op)))
      kernels.push_back(KernelRegion::of(op));
    return isFused ? WalkResult::skip() : WalkResult::advance();
  });
  return kernels;
}

Boundary Boundary::of(const KernelRegion &from, const KernelRegion &to, Value yielded, Value operand, size_t readers) {
  Operation *producer = yielded.getDefiningOp() ? yielded.getDefiningOp() : from.top;
  Operation *reader = to.readerOf(operand);
  while (ds::isWindowOp(reader)) { // which the kernel's other ops read through
    auto next = llvm::find_if(reader->getUsers(), [&](Operation *user) { return llvm::is_contained(to.body, user); });
    if (next == reader->user_end())
      break;
    operand = reader->getResult(0);
    reader = *next;
  }
  return {from, to, producer, reader, operand, readers};
}

std::string Boundary::describe() const {
  auto place = [](Operation *op, const KernelRegion &kernel) {
    Operation *anchor = kernel.anchor();
    return nameOf(op) + (anchor && anchor != op ? " in the kernel of " + nameOf(anchor) : "");
  };
  return place(producer, from) + " to " + place(reader, to);
}

/// Of what a product multiplies.
static std::optional<std::string> reasonOfProduct(const Boundary &b, const SizeAnalysis &analysis) {
  if (!isa<ds::LinearOp, ds::MatmulOp, ds::ConvOp>(b.reader))
    return std::nullopt;
  auto isOperand = [&](unsigned number) {
    return b.reader->getNumOperands() > number && b.reader->getOperand(number) == b.read;
  };
  std::string again = "would be computed again for each ";
  if (isa<ds::ConvOp>(b.reader) && isOperand(0))
    return again + "block of filters, and where windows overlap";
  if (isOperand(0)) {
    auto linear = dyn_cast<ds::LinearOp>(b.reader);
    SizeExpr columns = analysis.facts(b.reader->getResult(0)).sizes.back();
    ds::ScheduleAttr schedule = ds::scheduleOf(b.reader);
    auto known = columns.constant();
    if (!known || !schedule)
      return again + "panel of columns";
    int64_t panels = (*known + schedule.getColumns() - 1) / schedule.getColumns();
    if (linear && (ds::isNorm(b.producer) || (isFusablePointwise(b.producer) && ds::isCheapForRows(b.producer))))
      return nameOf(b.producer) + " is not computed in its kernel, 'ds-fuse-deep' remarks why";
    if (linear && isFusablePointwise(b.producer))
      return "every thread would compute " + nameOf(b.producer) + " of all its rows again, which takes too long";
    if (panels > 1)
      return "would be computed " + std::to_string(panels) + " times, for each panel of columns";
    return "of what it multiplies, a product computes norms and elementwise ops only";
  }
  return isOperand(1) ? std::optional(again + "block of rows") : std::nullopt;
}

/// Of what attention reads.
static std::string reasonOfAttention(const Boundary &b) {
  unsigned matrices = isa<ds::AttentionGradientOp>(b.reader) ? 4 : 3;
  if (!llvm::is_contained(b.reader->getOperands().take_front(matrices), b.read))
    return "masks and positions are read by every head: would be computed again for each";
  if (Operation *anchor = b.from.anchor(); isa_and_present<ds::Anchor>(anchor))
    return "reduction along another axis: a head takes all its rows, of which a tile of " + nameOf(anchor) +
           " has some, beside those of other heads";
  if (isAttention(b.from.anchor()))
    return "reduction along another axis: a head takes all rows of what another attention gives";
  if (ds::isRowOp(b.producer))
    return "something else reads what " + nameOf(b.producer) + " gives, or its rows do not stay together on the way";
  return "attention computes windows, norms and rotations of what it reads, " + nameOf(b.producer) +
         " is none of them, or does not keep rows together";
}

/// Of lines that are read whole.
static std::string reasonOfReduction(const Boundary &b, const SizeAnalysis &analysis) {
  Operation *anchor = b.from.anchor();
  if (isa<ds::ReduceOp>(b.producer) && ds::extremesOf(b.producer))
    return "the extremes of all rows are needed before the first one is read, by more than one product";
  if (isa_and_present<ds::Anchor>(anchor) || isAttention(anchor))
    return "reduction along another axis: " + nameOf(b.reader) + " takes whole lines, of which a tile of " +
           nameOf(anchor) + " has a part";
  if (reduces(anchor))
    return "both reduce: the first line is finished before the second reduction begins";
  if (!isFusablePointwise(b.producer))
    return nameOf(b.producer) + " has a kernel of its own";
  if (Operation *product = b.to.anchor(); isa_and_present<ds::Anchor>(product))
    return "the kernel of " + nameOf(product) + " computes nothing before the norm";
  if (!ds::readsRows(b.reader))
    return "only norms and softmaxes compute what they read";
  if (b.reader->getOperand(0) != b.read)
    return "it is a scale, a bias or a mask, which is read for every row";
  if (analysis.facts(b.read).sizes != analysis.facts(b.producer->getResult(0)).sizes)
    return "it has other sizes than the rows that are read";
  if (b.readers > 1)
    return "read by " + std::to_string(b.readers) + " regions";
  auto softmax = dyn_cast<ds::SoftmaxOp>(b.reader);
  const SizeVector &sizes = analysis.facts(b.read).sizes;
  if (softmax && softmax.getAxis() + 1 != sizes.size())
    return "the softmax is not along the last axis: several rows are computed at once";
  if (auto length = sizes.empty() ? std::nullopt : sizes.back().constant(); length && *length < 16)
    return "rows are shorter than 16: elementwise loops run through several at once";
  return "something between them needs it";
}

/// Of an elementwise op that could have followed a norm.
static std::string reasonOfNormed(const Boundary &b, const SizeAnalysis &analysis) {
  Operation *norm = b.from.anchor();
  const SizeVector &rows = analysis.facts(norm->getOperand(0)).sizes,
                   &sizes = analysis.facts(b.reader->getResult(0)).sizes;
  if (b.readers > 1)
    return "read by " + std::to_string(b.readers) + " regions";
  if (!isFusablePointwise(b.reader))
    return nameOf(b.reader) + " has a kernel of its own";
  if (sizes != rows)
    return "sizes differ: " + brief(rows) + " and " + brief(sizes);
  if (auto length = rows.empty() ? std::nullopt : rows.back().constant(); length && *length < 16)
    return "rows are shorter than 16: elementwise loops run through several at once";
  if (Operation *around = b.to.anchor())
    return "it is in the region of " + nameOf(around);
  if (llvm::is_contained(b.from.body, norm->getOperand(0).getDefiningOp()))
    return "the rows that " + nameOf(norm) + " reads are computed where its result goes";
  if (b.to.body.size() > 1)
    return "it shares a loop with " + std::to_string(b.to.body.size() - 1) + " other ops";
  return "something between them needs it";
}

/// Of an elementwise op that could have followed.
static std::string reasonOfElement(const Boundary &b, const SizeAnalysis &analysis) {
  Operation *before = b.from.anchor(), *around = b.to.anchor();
  auto several = [&] { return "read by " + std::to_string(b.readers) + " regions"; };
  if (ds::isNorm(b.producer) && b.producer != before && before)
    return "read by " + std::to_string(b.readers + 1) + " regions: computed in the kernel of " + nameOf(before) +
           ", stored for the others";
  if (isa_and_present<ds::Anchor>(before)) {
    if (auto reason = tileMismatch(b.reader, before, analysis))
      return "does not follow " + nameOf(before) + ": " + reason->str();
    for (Value operand : b.reader->getOperands())
      if (!isSplat(operand) && !ds::isTileOperand(elementOf(operand), analysis.facts(operand).sizes))
        return "type: " + nameOf(b.reader) + " has an operand that vectors do not load";
    if (around)
      return "it is in the region of " + nameOf(around);
    return b.readers > 1 ? several() : "something between them needs the result of " + nameOf(before);
  }
  if (isAttention(before))
    return "only transposes and casts follow " + nameOf(before) + " in its kernel";
  if (ds::isNorm(before))
    return reasonOfNormed(b, analysis);
  if (before)
    return "nothing follows " + nameOf(before) + " in its kernel";
  if (!isFusablePointwise(b.producer))
    return "elements move: " + nameOf(b.producer) + " would be read at other places";
  if (isa_and_present<ds::Anchor>(around)) {
    if (auto reason = tileMismatch(b.producer, around, analysis))
      return "does not join " + nameOf(around) + ": " + reason->str();
  } else if (analysis.facts(b.producer->getResult(0)).sizes != analysis.facts(b.reader->getResult(0)).sizes) {
    return "sizes differ: " + brief(analysis.facts(b.producer->getResult(0)).sizes) + " and " +
           brief(analysis.facts(b.reader->getResult(0)).sizes);
  }
  if (b.from.body.size() + b.to.body.size() > regionLimit)
    return "too big: together more than " + std::to_string(regionLimit) + " ops";
  return b.readers > 1 ? several() : "something between them needs it";
}

std::string reasonOf(const Boundary &b, const SizeAnalysis &analysis, bool joinsProducts) {
  if (b.from.top->getBlock() != b.to.top->getBlock())
    return "a branch or a loop lies between them";
  for (Operation *anchor : {b.from.anchor(), b.to.anchor()})
    if (!joinsProducts && (isa_and_present<ds::Anchor>(anchor) || isAttention(anchor)))
      return nameOf(anchor) + " stands alone without --fusion=specialized";
  if (auto reason = reasonOfProduct(b, analysis))
    return *reason;
  if (isAttention(b.reader))
    return reasonOfAttention(b);
  if (reduces(b.reader))
    return reasonOfReduction(b, analysis);
  if (isFusablePointwise(b.reader))
    return reasonOfElement(b, analysis);
  if (auto element = dyn_cast<ds::PerElement>(b.reader); element && element.scannedOperand())
    return "its divisor is looked through before the first element is computed";
  if (isa<ds::GatherOp, ds::GatherElementsOp, ds::GatherNdOp>(b.reader))
    return "taken by index: any element may be needed";
  if (isa<ds::InsertOp, ds::ScatterElementsOp, ds::ScatterNdOp>(b.reader))
    return "changed in place: it is in memory before";
  if (ds::isWindowOp(b.reader))
    return "elements move: " + nameOf(b.reader) + " is a copy, which several read or none reads in place";
  return nameOf(b.reader) + " has a kernel of its own";
}

} // namespace deepstride
