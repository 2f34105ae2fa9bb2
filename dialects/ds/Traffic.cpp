// Walks from what a kernel yields back to its operands, with the elements that are asked for: all of a tensor, some
// boxes of it, or a number of elements of which no more is known.
#include "dialects/ds/Traffic.h"
#include "dialects/ds/StridedWindow.h"

#include "dialects/ds/HeadRows.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

int64_t ds::bytesOfElement(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

namespace {

/// Places start, start + step, ... along one axis; the step is positive.
struct Span {
  SizeExpr start, size;
  int64_t step = 1;

  bool operator==(const Span &other) const { return start == other.start && size == other.size && step == other.step; }
  SizeExpr last() const { return start + (size - SizeExpr(1)) * SizeExpr(step); }
  bool isBefore(const Span &other) const { return (other.start - last() - SizeExpr(1)).isKnownNonNegative(); }
  bool isApart(const Span &other) const {
    auto distance = (start - other.start).constant();
    bool areInterleaved = step == other.step && step > 1 && distance && *distance % step != 0;
    return areInterleaved || isBefore(other) || other.isBefore(*this);
  }
};
using Box = SmallVector<Span>;

bool areApart(const Box &a, const Box &b) {
  return llvm::any_of(llvm::zip_equal(a, b), [](const auto &pair) {
    const auto &[left, right] = pair;
    return left.isApart(right);
  });
}

SizeExpr countOf(const Box &box) {
  SizeExpr count = 1;
  for (const Span &span : box)
    count = count * span.size;
  return count;
}

/// What is asked for of one value. Boxes share no element, so that their sizes add up.
struct Demand {
  bool isAll = false;
  SmallVector<Box> boxes;
  SizeExpr some = 0; // elements, wherever they lie

  void add(Box box) {
    if (llvm::is_contained(boxes, box))
      return;
    if (llvm::all_of(boxes, [&](const Box &other) { return areApart(box, other); }))
      boxes.push_back(std::move(box));
    else
      add(countOf(box));
  }
  void add(const SizeExpr &count) { some = some == 0 ? count : SizeExpr::max(some, count); }
  /// None for all of them.
  std::optional<SizeExpr> count(ArrayRef<SizeExpr> sizes) const {
    SizeExpr whole = product(sizes), sum = 0;
    for (const Box &box : boxes)
      sum = sum + countOf(box);
    SizeExpr least = some == 0 || sum == some ? sum : sum == 0 ? some : SizeExpr::max(sum, some);
    if (isAll || least == whole)
      return std::nullopt;
    return some == 0 ? least : SizeExpr::min(least, whole); // boxes lie inside
  }
};

class TrafficAnalysis {
public:
  explicit TrafficAnalysis(llvm::function_ref<SizeVector(Value)> sizesOf) : sizesOf(sizesOf) {}
  Traffic run(ArrayRef<Operation *> body, ArrayRef<Value> operands, ValueRange yielded);

private:
  std::optional<SizeExpr> yield(Value value);
  void visit(Operation *op, const Demand &asked);
  void visitSlice(SliceOp op, const Demand &asked);
  void visitPad(PadOp op);
  void visitWindows(Value input, Value result, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                    ArrayRef<int64_t> pads);
  /// What pointwise ops ask for of an operand that broadcasts to the result.
  void broadcast(Value operand, Value result, const Demand &asked);
  void all(Value value) { demands[value].isAll = true; }
  /// At most as many elements as the value has.
  void some(Value value, const Demand &asked, Value result) {
    if (asked.isAll)
      return demands[value].add(product(sizesOf(result)));
    demands[value].add(asked.count(sizesOf(result)).value_or(product(sizesOf(result))));
  }

  llvm::function_ref<SizeVector(Value)> sizesOf;
  llvm::DenseMap<Value, Demand> demands;
};

/// Asks for what is written of a value that the kernel yields. Insertions and scatters write into the buffer of what
/// they change.
std::optional<SizeExpr> TrafficAnalysis::yield(Value value) {
  Value changed = throughReshapes(value);
  Operation *op = changed.getDefiningOp();
  Value update, into;
  bool isRead = false; // what was there before
  if (auto insert = dyn_cast_or_null<InsertOp>(op)) {
    update = insert.getUpdate();
  } else if (placesRows(op)) { // all of it
    all(value);
    return std::nullopt;
  } else if (auto elements = dyn_cast_or_null<ScatterElementsOp>(op)) {
    update = elements.getUpdates(), into = elements.getInput();
    all(elements.getIndices());
    isRead = elements.getKind() != ScatterKind::assign;
  } else if (auto slices = dyn_cast_or_null<ScatterNdOp>(op)) {
    update = slices.getUpdates(), into = slices.getInput();
    all(slices.getIndices());
    isRead = slices.getKind() != ScatterKind::assign;
  } else {
    all(value);
    return std::nullopt;
  }
  all(update);
  SizeExpr count = product(sizesOf(update)), whole = product(sizesOf(changed));
  if (isRead)
    demands[into].add(count);
  if (count == whole)
    return std::nullopt;
  return into ? SizeExpr::min(count, whole) : count; // indices may repeat, a box lies inside
}

void TrafficAnalysis::visitSlice(SliceOp op, const Demand &asked) {
  SizeVector starts = *sizesFromAttribute(op.getStarts()), sizes = sizesOf(op.getResult());
  auto show = [&](const Box &box) {
    Box shown;
    for (auto [axis, span] : llvm::enumerate(box)) {
      int64_t step = op.getSteps()[axis];
      // Backwards is the same elements from the other end.
      SizeExpr first = step < 0 ? span.last() : span.start;
      shown.push_back({starts[axis] + first * SizeExpr(step), span.size, std::abs(step) * span.step});
    }
    demands[op.getInput()].add(std::move(shown));
  };
  if (asked.isAll) {
    Box whole;
    for (const SizeExpr &size : sizes)
      whole.push_back({0, size});
    return show(whole);
  }
  llvm::for_each(asked.boxes, show);
  if (asked.some != 0)
    demands[op.getInput()].add(asked.some);
}

/// Crops leave elements out.
void TrafficAnalysis::visitPad(PadOp op) {
  SizeVector low = *sizesFromAttribute(op.getLow()), high = *sizesFromAttribute(op.getHigh());
  SizeExpr count = 1;
  for (auto [axis, size] : llvm::enumerate(sizesOf(op.getInput()))) {
    SizeExpr kept = size + SizeExpr::min(low[axis], 0) + SizeExpr::min(high[axis], 0);
    count = count * (kept == size ? size : SizeExpr::max(kept, 0));
  }
  demands[op.getInput()].add(count);
  all(op.getValue());
}

/// Windows that are further apart than they are long leave elements out between them.
void TrafficAnalysis::visitWindows(Value input, Value result, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                   ArrayRef<int64_t> pads) {
  SizeVector sizes = sizesOf(input), places = sizesOf(result);
  size_t spatial = kernel.size(), first = sizes.size() - spatial;
  for (size_t axis = 0; axis < spatial; ++axis) {
    if (strides[axis] <= kernel[axis])
      continue;
    SizeExpr read = places[first + axis] * SizeExpr(kernel[axis]) - SizeExpr(pads[axis] + pads[axis + spatial]);
    sizes[first + axis] = SizeExpr::min(sizes[first + axis], SizeExpr::max(read, 0));
  }
  demands[input].add(product(sizes));
}

void TrafficAnalysis::broadcast(Value operand, Value result, const Demand &asked) {
  if (asked.isAll)
    return all(operand);
  SizeVector own = sizesOf(operand), sizes = sizesOf(result);
  if (own == sizes && asked.some != 0)
    demands[operand].add(asked.some);
  size_t missing = sizes.size() - own.size();
  for (const Box &box : asked.boxes) {
    Box part;
    for (auto [axis, size] : llvm::enumerate(own)) {
      const Span &span = box[axis + missing];
      bool isWhole = span == Span{0, sizes[axis + missing]};
      if (size.isConstant(1) || isWhole)
        part.push_back({0, size});
      else if (size == sizes[axis + missing])
        part.push_back(span);
    }
    if (part.size() == own.size()) // else there may be one element or as many as are asked for
      demands[operand].add(std::move(part));
  }
}

void TrafficAnalysis::visit(Operation *op, const Demand &asked) {
  if (auto slice = dyn_cast<SliceOp>(op))
    return visitSlice(slice, asked);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Demand &demand = demands[transpose.getInput()];
    demand.isAll |= asked.isAll;
    if (asked.some != 0)
      demand.add(asked.some);
    for (const Box &box : asked.boxes) {
      Box moved(box.size());
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        moved[from] = box[to];
      demand.add(std::move(moved));
    }
    return;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return asked.isAll ? all(reshape.getInput()) : some(reshape.getInput(), asked, reshape.getResult());
  if (auto gather = dyn_cast<GatherOp>(op)) {
    all(gather.getIndices());
    if (Value scales = gather.getScales()) // all of a row's, however little of it is asked for
      demands[scales].add(product(sizesOf(gather.getIndices())) * sizesOf(scales)[1]);
    return some(gather.getInput(), asked, gather.getResult());
  }
  if (auto gather = dyn_cast<GatherElementsOp>(op)) {
    all(gather.getIndices());
    return some(gather.getInput(), asked, gather.getResult());
  }
  if (auto gather = dyn_cast<GatherNdOp>(op)) {
    all(gather.getIndices());
    return some(gather.getInput(), asked, gather.getResult());
  }
  if (auto insert = dyn_cast<InsertOp>(op)) {
    SizeExpr replaced = product(sizesOf(insert.getUpdate())), whole = product(sizesOf(insert.getResult()));
    SizeExpr kept = asked.count(sizesOf(insert.getResult())).value_or(whole) - replaced;
    if (asked.isAll)
      all(insert.getUpdate());
    return demands[insert.getInto()].add(SizeExpr::max(kept, 0));
  }
  if (auto pad = dyn_cast<PadOp>(op))
    return visitPad(pad);
  if (auto conv = dyn_cast<ConvOp>(op)) {
    auto weight = cast<RankedTensorType>(conv.getWeight().getType()).getShape().drop_front(2);
    if (!ShapedType::isDynamicShape(weight)) {
      llvm::for_each(conv->getOperands().drop_front(), [&](Value operand) { all(operand); });
      return visitWindows(conv.getInput(), conv.getResult(), weight, conv.getStrides(), conv.getPads());
    }
  }
  if (auto pool = dyn_cast<PoolOp>(op))
    return visitWindows(pool.getInput(), pool.getResult(), pool.getKernel(), pool.getStrides(), pool.getPads());
  auto perElement = dyn_cast<PerElement>(op);
  bool isPointwise = perElement && perElement.isPointwise();
  if (!isPointwise && !isRowOp(op)) {
    llvm::for_each(op->getOperands(), [&](Value operand) { all(operand); });
    return;
  }
  bool isTurned = isa<RotaryOp>(op); // by tables that broadcast
  auto scanned = perElement ? perElement.scannedOperand() : std::nullopt;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isWhole = operand.getOperandNumber() == scanned || (!isPointwise && !isTurned && operand.getOperandNumber());
    if (isWhole)
      all(operand.get());
    else
      broadcast(operand.get(), op->getResult(0), asked);
  }
}

Traffic TrafficAnalysis::run(ArrayRef<Operation *> body, ArrayRef<Value> operands, ValueRange yielded) {
  Traffic traffic;
  for (Value value : yielded)
    traffic.writes.push_back(yield(value));
  for (Operation *op : llvm::reverse(body)) {
    Demand asked; // of all results, which one computation makes
    for (Value result : op->getResults())
      if (auto found = demands.find(result); found != demands.end()) {
        Demand demand = found->second;
        asked = op->getNumResults() == 1 ? std::move(demand) : Demand{true, {}, 0};
      }
    if (asked.isAll || !asked.boxes.empty() || asked.some != 0)
      visit(op, asked);
  }
  for (Value operand : operands) {
    auto found = demands.find(operand);
    traffic.reads.push_back(found == demands.end() ? SizeExpr(0) : found->second.count(sizesOf(operand)));
  }
  return traffic;
}

} // namespace

Traffic ds::trafficOf(ArrayRef<Operation *> body, ArrayRef<Value> operands, ValueRange yielded,
                      llvm::function_ref<SizeVector(Value)> sizesOf) {
  return TrafficAnalysis(sizesOf).run(body, operands, yielded);
}
