// Kernels of elementwise ops and the views between them: one linalg.generic whose operands are strided windows.
// Transposes, broadcasts, slices and reshapes inside a fused region only change strides and offsets. Works on kernels
// all of whose ops are such; vectorizing the loops is left to codegen/cpu, and so are tiles where an operand is
// transposed.
#include "codegen/kernel/Views.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

namespace {

/// How the loops index a value: per axis `offset + step * loop[axis]`, or a constant offset where no loop moves it.
struct Access {
  struct Axis {
    SizeExpr offset, step;
    int loop = -1;
    std::optional<SizeExpr> guard;
  };
  std::vector<Axis> axes;

  std::string key() const {
    std::string text;
    for (const Axis &axis : axes)
      text += std::to_string(axis.loop) + ":" + axis.offset.str() + ":" + axis.step.str() + ":" +
              (axis.guard ? axis.guard->str() : "") + ";";
    return text;
  }
};

class ElementwiseLowering {
public:
  explicit ElementwiseLowering(KernelBuilder &k) : k(k), loops(k.sizesOf(computedOf(k.yielded().front()))) {}
  LogicalResult run();

private:
  Access broadcast(const Access &access, ArrayRef<SizeExpr> own, ArrayRef<SizeExpr> shape);
  Value emit(OpBuilder *body, Value value, const Access &access);
  Value emitOp(OpBuilder *body, Operation *op, const Access &access);
  unsigned windowFor(Value value, const Access &access);
  void collapse();
  void collapseRepeats(size_t inputCount);
  void guardDivisors();
  Value leastDivisor(Value divisors);
  int64_t leastElements() const;
  void tellElementwise(size_t inputCount);
  bool isTransposed(const View &view, unsigned loop) const;
  std::optional<unsigned> tiledLoop(size_t inputCount) const;

  KernelBuilder &k;
  SizeVector loops;
  std::vector<View> windows; // inputs, one per (argument, access)
  std::map<std::pair<void *, std::string>, unsigned> windowIds;
  std::map<std::pair<void *, std::string>, Value> visited, emitted;
  ValueRange elements;                       // block arguments of the generic, while its body is emitted
  std::vector<std::vector<unsigned>> groups; // original loop axes that one collapsed axis covers
  bool usesLoopIndex = false;
  int64_t repeats = 1; // places of the last loop that read one element of operands
};

Access ElementwiseLowering::broadcast(const Access &access, ArrayRef<SizeExpr> own, ArrayRef<SizeExpr> shape) {
  Access result;
  size_t offset = shape.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i) {
    Access::Axis axis = access.axes[offset + i];
    if (own[i].isConstant(1) && !shape[offset + i].isConstant(1))
      axis = {0, 0, -1, std::nullopt};
    else if (own[i] != shape[offset + i])
      axis.guard = own[i];
    result.axes.push_back(axis);
  }
  return result;
}

/// The window of an argument, or of what reshapes show of one.
unsigned ElementwiseLowering::windowFor(Value value, const Access &access) {
  auto [entry, isNew] =
      windowIds.insert({{value.getAsOpaquePointer(), access.key()}, static_cast<unsigned>(windows.size())});
  if (!isNew)
    return entry->second;
  View source = *operandView(k, value), view{source.buffer, source.offset, {}};
  for (const SizeExpr &size : loops)
    view.axes.push_back({size, 0, false, std::nullopt});
  for (auto [axis, read] : llvm::zip_equal(access.axes, source.axes)) {
    const SizeExpr &stride = read.stride;
    // A guarded axis never carries an offset: slices of broadcast values are not fused.
    view.offset = view.offset + axis.offset * stride;
    if (axis.loop < 0)
      continue;
    Axis &target = view.axes[axis.loop];
    target.present = true;
    target.stride = target.stride + axis.step * stride;
    if (axis.guard)
      target.guard = axis.guard;
  }
  windows.push_back(std::move(view));
  return entry->second;
}

Value ElementwiseLowering::emit(OpBuilder *body, Value value, const Access &access) {
  auto key = std::make_pair(value.getAsOpaquePointer(), access.key());
  // Without a body, only windows are made: once for a value, however often it is read.
  auto [found, isNew] = (body ? emitted : visited).insert({key, Value()});
  if (!isNew)
    return found->second;
  Value result;
  if (isa<BlockArgument>(value) || value.getDefiningOp<ds::ReshapeOp>()) {
    unsigned window = windowFor(value, access);
    if (body)
      result = fromStorage(*body, k.loc, elements[window], k.elementOf(value));
  } else {
    result = emitOp(body, value.getDefiningOp(), access);
  }
  found->second = result;
  return result;
}

Value ElementwiseLowering::emitOp(OpBuilder *body, Operation *op, const Access &access) {
  Location loc = k.loc;
  SizeVector shape = k.sizesOf(op->getResult(0));
  if (auto constant = dyn_cast<ds::ConstantOp>(op))
    return body ? scalarConstant(*body, loc, k.elementOf(constant),
                                 cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>())
                : Value();
  if (cast<ds::PerElement>(op).isPointwise()) {
    SmallVector<Value> values;
    SmallVector<Type> elements;
    for (Value value : op->getOperands()) {
      values.push_back(emit(body, value, broadcast(access, k.sizesOf(value), shape)));
      elements.push_back(k.elementOf(value));
    }
    return body ? emitPointwise(*body, loc, op, values, elements, k.elementOf(op->getResult(0))) : Value();
  }
  if (auto transpose = dyn_cast<ds::TransposeOp>(op)) {
    Access moved;
    moved.axes.resize(access.axes.size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      moved.axes[from] = access.axes[to];
    return emit(body, op->getOperand(0), moved);
  }
  if (auto slice = dyn_cast<ds::SliceOp>(op)) {
    Access moved = access;
    SizeVector starts = *sizesFromAttribute(slice.getStarts());
    for (auto [i, axis] : llvm::enumerate(moved.axes)) {
      axis.offset = starts[i] + SizeExpr(slice.getSteps()[i]) * axis.offset;
      axis.step = SizeExpr(slice.getSteps()[i]) * axis.step;
    }
    return emit(body, op->getOperand(0), moved);
  }
  auto iota = cast<ds::IotaOp>(op);
  usesLoopIndex = true;
  if (!body)
    return {};
  const Access::Axis &axis = access.axes[iota.getAxis()];
  Value position = scalarConstant(*body, loc, body->getI64Type(), 0.0);
  if (axis.loop >= 0) {
    // Loops that an iota follows are not collapsed, so the collapsed axis is the loop itself.
    unsigned collapsed = 0;
    while (groups[collapsed].front() != static_cast<unsigned>(axis.loop))
      ++collapsed;
    Value loopIndex = linalg::IndexOp::create(*body, loc, collapsed);
    position = arith::IndexCastOp::create(*body, loc, body->getI64Type(), loopIndex);
    if (auto step = axis.step.constant(); step && *step != 1)
      position = arith::MulIOp::create(*body, loc, position, scalarConstant(*body, loc, body->getI64Type(), *step));
  }
  if (auto offset = axis.offset.constant(); offset && *offset != 0)
    position = arith::AddIOp::create(*body, loc, position, scalarConstant(*body, loc, body->getI64Type(), *offset));
  return position;
}

/// Merges neighbouring loops that every window walks without a gap: fewer, longer loops.
void ElementwiseLowering::collapse() {
  for (unsigned axis = 0; axis < loops.size(); ++axis)
    groups.push_back({axis});
  if (usesLoopIndex)
    return;
  for (size_t i = groups.size(); i-- > 1;) {
    if (!areOneAxis(windows, i))
      continue;
    joinAxes(windows, i);
    loops[i - 1] = loops[i - 1] * loops[i];
    loops.erase(loops.begin() + static_cast<int64_t>(i));
    groups[i - 1].insert(groups[i - 1].end(), groups[i].begin(), groups[i].end());
    groups.erase(groups.begin() + static_cast<int64_t>(i));
  }
}

static bool isContiguous(const Axis &axis) { return axis.present && !axis.guard && axis.stride.isConstant(1); }

/// Makes one loop of the last two where all operands stay in place along the last one, which is a part of a vector: an
/// operand that moved along the other one is read at the new loop's place, divided.
void ElementwiseLowering::collapseRepeats(size_t inputCount) {
  size_t last = loops.size() - 1;
  int64_t times = loops.size() < 2 ? 1 : loops[last].constant().value_or(1);
  if (usesLoopIndex || times < 2 || k.target.lanes % times != 0)
    return;
  for (const View &view : ArrayRef(windows).take_front(inputCount))
    if (view.axes[last].present || (view.axes[last - 1].present && !isContiguous(view.axes[last - 1])))
      return;
  repeats = times;
  loops[last - 1] = loops[last - 1] * loops[last];
  loops.erase(loops.begin() + static_cast<int64_t>(last));
  for (auto [number, view] : llvm::enumerate(windows)) {
    view.axes.erase(view.axes.begin() + static_cast<int64_t>(last));
    if (number >= inputCount)
      view.axes.back() = {loops.back(), 1, true, std::nullopt};
  }
}

/// A zero divisor must end the call with a diagnosis; the division itself is safe but meaningless then.
void ElementwiseLowering::guardDivisors() {
  for (Operation *op : k.ops()) {
    auto perElement = dyn_cast<ds::PerElement>(op);
    auto scanned = perElement ? perElement.scannedOperand() : std::nullopt;
    if (!scanned)
      continue;
    Value divisors = op->getOperand(*scanned);
    Type element = k.elementOf(divisors);
    if (auto constant = divisors.getDefiningOp<ds::ConstantOp>())
      if (cast<SplatElementsAttr>(constant.getValue()).getSplatValue<APInt>().isZero())
        k.failIf(arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true)), DS_DIVISION_BY_ZERO);
    if (!isa<BlockArgument>(divisors))
      continue;
    Value zero = scalarConstant(k.b, k.loc, element, 0.0), least = leastDivisor(divisors);
    k.failIf(arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, least, zero), DS_DIVISION_BY_ZERO);
  }
}

/// The least of integers as unsigned ones, which is 0 where any is.
Value ElementwiseLowering::leastDivisor(Value divisors) {
  Type element = k.elementOf(divisors), type = computeType(element);
  Value buffer = k.bufferOf(divisors), zero = k.constant(0), count = k.index(product(k.sizesOf(divisors))),
        split = zero;
  auto walk = [&](Value from, Value to, int64_t step, Value initial, llvm::function_ref<Value(Value)> read) {
    auto loop = scf::ForOp::create(k.b, k.loc, from, to, k.constant(step), ValueRange{initial});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value less = arith::MinUIOp::create(k.b, k.loc, loop.getRegionIterArg(0), read(loop.getInductionVar()));
    scf::YieldOp::create(k.b, k.loc, less);
    return loop.getResult(0);
  };
  Value least = arith::ConstantOp::create(k.b, k.loc, k.b.getIntegerAttr(type, -1));
  if (k.target.lanes > 1 && storageType(element) == type) {
    auto vector = VectorType::get({4 * k.target.lanes}, type);
    Value width = k.constant(4 * k.target.lanes);
    split = k.mul(k.divide(count, width), width);
    Value most = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(vector, k.b.getIntegerAttr(type, -1)));
    Value lanes = walk(zero, split, 4 * k.target.lanes, most,
                       [&](Value i) { return vector::LoadOp::create(k.b, k.loc, vector, buffer, i).getResult(); });
    least = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MINUI, lanes);
  }
  return walk(split, count, 1, least, [&](Value i) { return k.load(buffer, i, element); });
}

/// Elements that are worth another thread, which takes about a microsecond to join: functions are some ten times as
/// long as sums, products and copies.
int64_t ElementwiseLowering::leastElements() const {
  bool hasFunctions = llvm::any_of(k.ops(), [](Operation *op) { return isa<ds::UnaryOp, ds::GeluOp>(op); });
  return hasFunctions ? 4096 : 16384;
}

/// Whether a window moves in steps along the last loop and is contiguous along another one.
bool ElementwiseLowering::isTransposed(const View &view, unsigned loop) const {
  const Axis &last = view.axes[loops.size() - 1];
  return last.present && !isContiguous(last) && isContiguous(view.axes[loop]);
}

/// The loop along which all operands are contiguous that the last one walks in steps: squares of both are transposed
/// in registers. Nothing where there are none, or where an axis is known to be shorter than a vector.
std::optional<unsigned> ElementwiseLowering::tiledLoop(size_t inputCount) const {
  unsigned last = static_cast<unsigned>(loops.size()) - 1;
  auto isShort = [&](unsigned loop) { return loops[loop].constant().value_or(k.target.lanes) < k.target.lanes; };
  if (k.target.lanes <= 1 || isShort(last))
    return std::nullopt;
  for (unsigned loop = 0; loop < last; ++loop) {
    bool some = false, others = false;
    for (const View &view : ArrayRef(windows).take_front(inputCount)) {
      bool isIt = isTransposed(view, loop);
      some |= isIt;
      others |= !isIt && view.axes[last].present && !isContiguous(view.axes[last]);
    }
    if (some && !others && !isShort(loop))
      return loop;
  }
  return std::nullopt;
}

/// Of which operands and results one loop visits each element once, in order: who launches the kernel may then go on
/// with a part of them at a time.
void ElementwiseLowering::tellElementwise(size_t inputCount) {
  auto isInOrder = [&](const View &view) { return view.offset.isConstant(0) && isContiguous(view.axes.front()); };
  SmallVector<bool> isElementwise;
  for (Value argument : k.kernel.getBody().getArguments()) {
    bool isRead = false, isApart = true;
    for (const View &view : ArrayRef(windows).take_front(inputCount))
      if (view.buffer == k.bufferOf(argument)) {
        isRead = true;
        isApart &= isInOrder(view);
      }
    isElementwise.push_back(isRead && isApart);
  }
  for (const View &view : ArrayRef(windows).drop_front(inputCount))
    isElementwise.push_back(isInOrder(view));
  // Of operands, then of results.
  k.function->setAttr("ds.elementwise", k.b.getDenseBoolArrayAttr(isElementwise));
}

LogicalResult ElementwiseLowering::run() {
  SmallVector<Value> results = llvm::map_to_vector(k.yielded(), computedOf);
  for (Value value : results)
    if (k.sizesOf(value) != loops)
      return k.kernel.emitOpError("expects results of one size");
  for (Operation *op : k.ops())
    if (isa<ds::ReshapeOp>(op) && !llvm::all_of(op->getUsers(), ds::insertedResult) &&
        !operandView(k, op->getResult(0)))
      return op->emitOpError("shows elements that no strides reach");
  SmallVector<View> stored;
  for (unsigned number = 0; number < results.size(); ++number) {
    auto window = storedWindow(k, number);
    if (!window)
      return k.yielded()[number].getDefiningOp()->emitOpError("inserts elements where no strides reach");
    stored.push_back(viewOf(k.outputBuffer(number), *window));
  }
  guardDivisors();
  Access identity;
  for (unsigned axis = 0; axis < loops.size(); ++axis)
    identity.axes.push_back({0, 1, static_cast<int>(axis), std::nullopt});
  for (Value value : results)
    emit(nullptr, value, identity);
  size_t inputCount = windows.size();
  llvm::append_range(windows, stored);
  collapse();
  collapseRepeats(inputCount);
  if (loops.empty()) { // a scalar is a loop of one
    loops.push_back(1);
    for (View &view : windows)
      view.axes.push_back({1, 1, true, std::nullopt});
  }

  unsigned rank = static_cast<unsigned>(loops.size());
  std::optional<unsigned> tiled = tiledLoop(inputCount);
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> maps;
  for (auto [number, view] : llvm::enumerate(windows)) {
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq(0u, rank));
    if (tiled && isTransposed(view, *tiled)) // what is contiguous comes last
      std::rotate(all.begin() + *tiled, all.begin() + *tiled + 1, all.end());
    SmallVector<AffineExpr> exprs;
    for (unsigned axis : all)
      if (view.axes[axis].present) {
        AffineExpr place = getAffineDimExpr(axis, k.b.getContext());
        exprs.push_back(axis + 1 == rank && number < inputCount ? place.floorDiv(repeats) : place);
      }
    maps.push_back(AffineMap::get(rank, 0, exprs, k.b.getContext()));
    (number < inputCount ? inputs : outputs).push_back(k.memrefOf(view, k.index(view.offset), all));
  }
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      k.b, k.loc, inputs, outputs, maps, iterators, [&](OpBuilder &body, Location loc, ValueRange arguments) {
        elements = arguments;
        SmallVector<Value> values;
        for (Value value : results)
          values.push_back(toStorage(body, loc, emit(&body, value, identity), k.elementOf(value)));
        linalg::YieldOp::create(body, loc, values);
      });
  generic->setAttr("ds.range", k.b.getUnitAttr());
  SizeVector outer(loops.begin(), loops.end() - 1);
  auto inner = loops.back().constant();
  int64_t least = leastElements();
  if (tiled) {
    generic->setAttr("ds.tile", k.b.getDenseI64ArrayAttr({static_cast<int64_t>(*tiled), k.target.lanes}));
    outer[*tiled] = SizeExpr::ceilDiv(outer[*tiled], k.target.lanes);
    least = std::max<int64_t>(1, least / k.target.lanes);
  }
  bool isScanned = llvm::any_of(k.ops(), [](Operation *op) {
    auto perElement = dyn_cast<ds::PerElement>(op);
    return perElement && perElement.scannedOperand();
  });
  if (outer.empty() && !tiled && repeats == 1 && !isScanned)
    tellElementwise(inputCount);
  if (outer.empty())
    k.setGrid(loops.back(), least);
  else
    k.setGrid(product(outer), inner && *inner > 0 ? std::max<int64_t>(1, least / *inner) : 16);
  k.setFlops(product(loops) * SizeExpr(static_cast<int64_t>(k.ops().size())));
  return success();
}

} // namespace

LogicalResult lowerElementwise(KernelBuilder &builder) { return ElementwiseLowering(builder).run(); }

LogicalResult lowerShape(KernelBuilder &k, ds::ShapeOp op) {
  Value output = k.outputBuffer(0);
  Type element = k.elementOf(op);
  SizeVector values = *sizesFromAttribute(op.getValues());
  for (auto [i, size] : llvm::enumerate(values)) {
    Value value = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), k.index(size));
    k.store(emitCast(k.b, k.loc, value, k.b.getI64Type(), element), output, k.constant(static_cast<int64_t>(i)),
            element);
  }
  k.setGrid(1, 1);
  k.setFlops(0);
  return success();
}

} // namespace deepstride
