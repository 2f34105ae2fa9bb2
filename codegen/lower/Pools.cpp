// Pooling in vectors. One grid item is one row of results. The rows of the operand that its windows meet are first
// combined element by element, which is contiguous whatever the stride, into a line of scratch between margins that no
// combination notices; windows then walk along that line. So a window of 3 x 3 costs 6 combinations, not 9, the line
// needs no masks, and padding is a matter of which rows there are.
#include "codegen/lower/KernelBuilder.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;

namespace deepstride {

namespace {

class RowPooling {
public:
  RowPooling(KernelBuilder &k, ds::PoolOp op)
      : k(k), b(k.b), loc(k.loc), op(op), element(k.elementOf(op.getInput())), input(k.sizesOf(op.getInput())),
        result(k.sizesOf(op.getResult())), last(op.getKernel().size() - 1),
        combine(op.getKind() == ds::PoolKind::max ? ds::ReduceKind::max : ds::ReduceKind::sum),
        source(k.bufferOf(op.getInput())), zero(k.constant(0)), one(k.constant(1)) {
    size = k.index(input.back());
    lanes = k.target.lanes * 32 / static_cast<int64_t>(computeType(element).getIntOrFloatBitWidth());
    type = VectorType::get({lanes}, computeType(element));
    stored = VectorType::get({lanes}, storageType(element));
    stride = op.getStrides()[last];
    SizeVector steps = KernelBuilder::strides(ArrayRef(input).drop_front(2));
    for (const SizeExpr &step : steps)
      rowStrides.push_back(k.index(step));
  }
  void emit();

private:
  /// Taps [from, to) of the window along an axis that lie in the operand.
  struct Taps {
    Value start, from, to, isWhole;
  };

  Value atLeast(Value x, Value low) { return arith::MaxSIOp::create(b, loc, x, low); }
  Value isEqual(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y); }
  /// In all lanes.
  Value splat(Value number) {
    auto value = cast<arith::ConstantOp>(number.getDefiningOp()).getValue();
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, value));
  }
  Value number(double value) { return splat(scalarConstant(b, loc, element, value)); }
  Value neutral() { return splat(neutralElement(b, loc, combine, element)); }
  Value combined(Value x, Value y) { return emitCombine(b, loc, combine, x, y, element); }
  Value asElement(Value count) {
    Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
    return emitCast(b, loc, integer, b.getI64Type(), type.getElementType());
  }
  Value fold(Value from, Value to, Value start, llvm::function_ref<Value(Value, Value)> body);
  Taps tapsOf(Value place, size_t axis);
  Value countOf(const Taps &taps, size_t axis);
  Value mapped(Value x);
  Value finished(Value total, Value rows, Value first);
  void prepare();
  void combineRows(Value plane, ArrayRef<Taps> taps, bool isWhole);
  Value combineTaps(Value first);
  Value loadLine(Value at);
  void emitRow(Value item);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::PoolOp op;
  Type element;
  SizeVector input, result;
  size_t last;
  ds::ReduceKind combine;
  Value source, zero, one;
  Value scratch;         // of each window, how many places of the last axis count; behind them the line
  Value lineStart, size; // where the line starts, its left margin first; elements of a row of the operand
  VectorType type, stored;
  int64_t lanes, stride;
  SmallVector<Value> rowStrides;
};

/// Combinations of rows, or of places in a row, that are written one by one.
constexpr int64_t longest = 9;

} // namespace

/// body(i, what is carried) for i in [from, to), written out where both are known and near.
Value RowPooling::fold(Value from, Value to, Value start, llvm::function_ref<Value(Value, Value)> body) {
  auto first = getConstantIntValue(from), end = getConstantIntValue(to);
  if (first && end && *end - *first <= longest) {
    for (int64_t i = *first; i < *end; ++i)
      start = body(k.constant(i), start);
    return start;
  }
  auto loop =
      scf::ForOp::create(b, loc, from, to, one, ValueRange{start}, [&](OpBuilder &, Location, Value i, ValueRange now) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(i.getParentBlock());
        scf::YieldOp::create(b, loc, body(i, now[0]));
      });
  return loop.getResult(0);
}

RowPooling::Taps RowPooling::tapsOf(Value place, size_t axis) {
  int64_t dilation = op.getDilations()[axis];
  Value start = k.sub(k.mul(place, k.constant(op.getStrides()[axis])), k.constant(op.getPads()[axis]));
  Value kernel = k.constant(op.getKernel()[axis]);
  auto tapsBelow = [&](Value end) { return k.minimum(k.ceilDiv(atLeast(end, zero), dilation), kernel); };
  Value from = tapsBelow(k.sub(zero, start)), to = atLeast(tapsBelow(k.sub(k.index(input[axis + 2]), start)), from);
  Value whole = isEqual(k.sub(to, from), kernel);
  return {start, from, to, whole};
}

/// How many places an average divides by along an axis: those in the operand, or also those in its padding, beyond
/// which lies what `ceil` added.
Value RowPooling::countOf(const Taps &taps, size_t axis) {
  if (!op.getIncludePad())
    return k.sub(taps.to, taps.from);
  Value end = k.constant(op.getPads()[last + 1 + axis]), room = k.sub(k.add(k.index(input[axis + 2]), end), taps.start);
  return k.minimum(k.ceilDiv(room, op.getDilations()[axis]), k.constant(op.getKernel()[axis]));
}

Value RowPooling::mapped(Value x) {
  if (op.getKind() != ds::PoolKind::lp)
    return x;
  return emitBinary(b, loc, ds::BinaryKind::pow, emitUnary(b, loc, ds::UnaryKind::abs, x, element),
                    number(static_cast<double>(op.getExponent())), element, element);
}

/// Results of windows `first` and after, from what all their elements combine to; `rows` of them count.
Value RowPooling::finished(Value total, Value rows, Value first) {
  if (op.getKind() == ds::PoolKind::average) {
    Value counts = vector::LoadOp::create(b, loc, type, scratch, first);
    Value all = vector::BroadcastOp::create(b, loc, type, asElement(rows));
    counts = emitBinary(b, loc, ds::BinaryKind::mul, counts, all, element, element);
    return emitBinary(b, loc, ds::BinaryKind::div, total, counts, element, element);
  }
  if (op.getKind() == ds::PoolKind::lp)
    return emitBinary(b, loc, ds::BinaryKind::pow, total, number(1.0 / static_cast<double>(op.getExponent())), element,
                      element);
  return total;
}

/// Scratch as every row finds it: margins, and what windows count along the last axis.
void RowPooling::prepare() {
  // Windows are walked in whole vectors, of which the last may start at the last window.
  SizeExpr windows = result.back() + SizeExpr(lanes);
  // As far as the windows of the last vector reach. The row ends before: its windows leave less than a stride of it
  // out.
  SizeExpr length = windows * SizeExpr(stride) + SizeExpr((op.getKernel()[last] - 1) * op.getDilations()[last]);
  scratch = k.scratchOf(type.getElementType(), windows + length);
  lineStart = k.index(windows);
  Value none = neutral(), end = k.index(windows + length - SizeExpr(lanes));
  k.loop(lineStart, end, k.constant(lanes), [&](Value at) { vector::StoreOp::create(b, loc, none, scratch, at); });
  if (op.getKind() == ds::PoolKind::average)
    k.loop(zero, k.index(result.back()), one, [&](Value window) {
      memref::StoreOp::create(b, loc, asElement(countOf(tapsOf(window, last), last)), scratch, window);
    });
}

/// Combines the rows of the operand that a row of windows meets, and puts them between the line's margins. Lanes behind
/// a row are neutral.
void RowPooling::combineRows(Value plane, ArrayRef<Taps> taps, bool isWhole) {
  Value rest = toStorage(b, loc, neutral(), element), to = k.add(lineStart, k.constant(op.getPads()[last]));
  auto combineAt = [&](Value x, Value mask) {
    std::function<Value(size_t, Value, Value)> along = [&](size_t axis, Value from, Value start) -> Value {
      if (axis == last) {
        Value raw = mask ? vector::MaskedLoadOp::create(b, loc, stored, source, from, mask, rest).getResult()
                         : vector::LoadOp::create(b, loc, stored, source, from).getResult();
        return combined(start, mapped(fromStorage(b, loc, raw, element)));
      }
      Value low = isWhole ? zero : taps[axis].from;
      Value high = isWhole ? k.constant(op.getKernel()[axis]) : taps[axis].to;
      return fold(low, high, start, [&](Value tap, Value carried) {
        Value place = k.add(taps[axis].start, k.mul(tap, k.constant(op.getDilations()[axis])));
        return along(axis + 1, k.add(from, k.mul(place, rowStrides[axis])), carried);
      });
    };
    vector::StoreOp::create(b, loc, along(0, k.add(plane, x), neutral()), scratch, k.add(to, x));
  };
  Value width = k.constant(lanes), whole = k.mul(k.divide(size, width), width);
  k.loop(zero, whole, width, [&](Value x) { combineAt(x, {}); });
  if (auto known = input.back().constant(); known && *known % lanes == 0)
    return;
  k.loop(whole, size, width, [&](Value x) { combineAt(x, lanesBelow(k, lanes, k.sub(size, x))); });
}

/// Every stride-th element of the line.
Value RowPooling::loadLine(Value at) {
  if (stride == 1)
    return vector::LoadOp::create(b, loc, type, scratch, at);
  if (stride == 2) {
    auto both = VectorType::get({2 * lanes}, type.getElementType());
    return vector::DeinterleaveOp::create(b, loc, vector::LoadOp::create(b, loc, both, scratch, at)).getRes1();
  }
  SmallVector<int32_t> places;
  for (int64_t lane = 0; lane < lanes; ++lane)
    places.push_back(static_cast<int32_t>(lane * stride));
  Value indices = arith::ConstantOp::create(b, loc, b.getI32VectorAttr(places));
  Value all = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), b.getBoolAttr(true)));
  return vector::GatherOp::create(b, loc, type, scratch, ValueRange{at}, indices, all, neutral());
}

Value RowPooling::combineTaps(Value first) {
  Value from = k.add(lineStart, k.mul(first, k.constant(stride)));
  return fold(zero, k.constant(op.getKernel()[last]), neutral(), [&](Value tap, Value carried) {
    return combined(carried, loadLine(k.add(from, k.mul(tap, k.constant(op.getDilations()[last])))));
  });
}

void RowPooling::emitRow(Value item) {
  SmallVector<Value> at = k.delinearize(item, ArrayRef(result).drop_back());
  SmallVector<Taps> taps;
  Value isWhole, rows = one;
  for (size_t axis = 0; axis < last; ++axis) {
    taps.push_back(tapsOf(at[axis + 2], axis));
    isWhole = isWhole ? arith::AndIOp::create(b, loc, isWhole, taps[axis].isWhole).getResult() : taps[axis].isWhole;
    rows = k.mul(rows, countOf(taps[axis], axis));
  }
  Value plane = k.mul(k.add(k.mul(at[0], k.index(input[1])), at[1]), k.index(product(ArrayRef(input).drop_front(2))));
  if (isWhole) {
    auto branch = scf::IfOp::create(b, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool whole : {true, false}) {
      b.setInsertionPointToStart(whole ? branch.thenBlock() : branch.elseBlock());
      combineRows(plane, taps, whole);
    }
  } else {
    combineRows(plane, taps, /*isWhole=*/true);
  }
  Value windows = k.index(result.back()), width = k.constant(lanes), target = k.mul(item, windows);
  Value whole = k.mul(k.divide(windows, width), width);
  auto put = [&](Value first, Value mask) {
    Value value = toStorage(b, loc, finished(combineTaps(first), rows, first), element);
    storeLanes(k, value, k.outputBuffer(0), k.add(target, first), mask);
  };
  k.loop(zero, whole, width, [&](Value first) { put(first, {}); });
  if (auto known = result.back().constant(); known && *known % lanes == 0)
    return;
  k.loop(whole, windows, width, [&](Value first) { put(first, lanesBelow(k, lanes, k.sub(windows, first))); });
}

void RowPooling::emit() {
  auto known = input.back().constant();
  k.setGrid(product(ArrayRef(result).drop_back()), known && *known > 0 ? std::max<int64_t>(8, 4096 / *known) : 16);
  prepare();
  k.loop(k.begin, k.end, one, [&](Value item) { emitRow(item); });
}

bool lowerPoolRows(KernelBuilder &k, ds::PoolOp op) {
  Type element = k.elementOf(op.getInput());
  bool isFloat = element.isF16() || element.isBF16() || element.isF32() || element.isF64();
  auto integer = dyn_cast<IntegerType>(element);
  if (k.target.lanes <= 1 || !(isFloat || (integer && integer.getWidth() >= 8)))
    return false;
  RowPooling(k, op).emit();
  return true;
}

} // namespace deepstride
