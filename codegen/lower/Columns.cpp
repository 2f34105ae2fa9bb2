// Reductions over axes before the last one: what is contiguous are results, so that vectors hold neighbouring results
// and every row is read once. One grid item is a strip of a few vectors; a result is the same chain of combinations in
// whatever lane it lies.
#include "codegen/lower/Rows.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {

struct ColumnReduction {
  ColumnReduction(KernelBuilder &k, ds::ReduceOp op)
      : k(k), b(k.b), loc(k.loc), kind(op.getKind()), element(k.elementOf(op.getInput())),
        shape(k.sizesOf(op.getInput())), input(k.bufferOf(op.getInput())), output(k.outputBuffer(0)) {
    SizeVector strides = KernelBuilder::strides(shape);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      bool isReduced = llvm::is_contained(op.getAxes(), static_cast<int64_t>(axis));
      (isReduced ? reduced : kept).push_back(shape[axis]);
      (isReduced ? reducedStrides : keptStrides).push_back(strides[axis]);
    }
    int64_t bits = computeType(element).getIntOrFloatBitWidth();
    lanes = k.target.lanes * 32 / bits;
    type = VectorType::get({lanes}, computeType(element));
  }

  void emit();

private:
  static constexpr int64_t vectors = 4; // two lines of memory or more: what is read of a row

  Value mapped(Value x);
  Value finished(Value total, Value greatest);
  SmallVector<Value> reduce(ds::ReduceKind how, Value from, ArrayRef<Value> masks,
                            llvm::function_ref<Value(Value, int64_t)> map);
  void strip(Value from, Value to, ArrayRef<Value> masks);
  Value wide(Value scalar) { return vector::BroadcastOp::create(b, loc, type, scalar); }
  Value constant(double number) { return wide(scalarConstant(b, loc, element, number)); }

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::ReduceKind kind;
  Type element;
  SizeVector shape, kept, reduced, keptStrides, reducedStrides;
  Value input, output;
  int64_t lanes;
  VectorType type;
};

} // namespace

Value ColumnReduction::mapped(Value x) {
  if (kind == ds::ReduceKind::l1)
    return emitUnary(b, loc, ds::UnaryKind::abs, x, element);
  if (kind == ds::ReduceKind::l2 || kind == ds::ReduceKind::sum_square)
    return emitBinary(b, loc, ds::BinaryKind::mul, x, x, element, element);
  return x;
}

/// The totals of a strip's vectors. Lanes without a column hold anything.
SmallVector<Value> ColumnReduction::reduce(ds::ReduceKind how, Value from, ArrayRef<Value> masks,
                                           llvm::function_ref<Value(Value, int64_t)> map) {
  SmallVector<Value> cells;
  Value neutral = wide(neutralElement(b, loc, how, element));
  for (int64_t v = 0; v < vectors; ++v) {
    cells.push_back(k.cell(type));
    memref::StoreOp::create(b, loc, neutral, cells.back());
  }
  k.loopNest(reduced, [&](ArrayRef<Value> at) {
    Value row = from;
    for (auto [place, stride] : llvm::zip_equal(at, reducedStrides))
      row = k.add(row, k.mul(place, k.index(stride)));
    for (int64_t v = 0; v < vectors; ++v) {
      Value raw = loadLanes(k, VectorType::get({lanes}, storageType(element)), input, k.add(row, k.constant(v * lanes)),
                            masks[v]);
      Value total = emitCombine(b, loc, how, memref::LoadOp::create(b, loc, cells[v]),
                                map(fromStorage(b, loc, raw, element), v), element);
      memref::StoreOp::create(b, loc, total, cells[v]);
    }
  });
  SmallVector<Value> totals;
  for (Value cell : cells)
    totals.push_back(memref::LoadOp::create(b, loc, cell));
  return totals;
}

Value ColumnReduction::finished(Value total, Value greatest) {
  using Kind = ds::ReduceKind;
  if (kind == Kind::mean) {
    Value count = arith::IndexCastOp::create(b, loc, b.getI64Type(), k.index(product(reduced)));
    Value divisor = emitCast(b, loc, count, b.getI64Type(), type.getElementType());
    return emitBinary(b, loc, ds::BinaryKind::div, total, wide(divisor), element, element);
  }
  if (kind == Kind::l2)
    return emitUnary(b, loc, ds::UnaryKind::sqrt, total, element);
  if (kind != Kind::log_sum && kind != Kind::log_sum_exp)
    return total;
  total = emitUnary(b, loc, ds::UnaryKind::log, total, element);
  return greatest ? arith::AddFOp::create(b, loc, total, greatest).getResult() : total;
}

void ColumnReduction::strip(Value from, Value to, ArrayRef<Value> masks) {
  SmallVector<Value> greatest(vectors);
  if (kind == ds::ReduceKind::log_sum_exp) {
    greatest = reduce(ds::ReduceKind::max, from, masks, [](Value x, int64_t) { return x; });
    for (Value &most : greatest) { // an infinite one is not subtracted: the difference to itself would be NaN
      Value rest = arith::SubFOp::create(b, loc, most, most);
      Value isFinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, rest, constant(0));
      most = arith::SelectOp::create(b, loc, isFinite, most, constant(0));
    }
  }
  SmallVector<Value> totals = reduce(kind, from, masks, [&](Value x, int64_t v) -> Value {
    if (!greatest[v])
      return mapped(x);
    return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, x, greatest[v]));
  });
  for (int64_t v = 0; v < vectors; ++v)
    storeLanes(k, toStorage(b, loc, finished(totals[v], greatest[v]), element), output,
               k.add(to, k.constant(v * lanes)), masks[v]);
}

void ColumnReduction::emit() {
  Value columns = k.index(kept.back()), width = k.constant(vectors * lanes);
  ArrayRef<SizeExpr> outer = ArrayRef(kept).drop_back();
  k.setGrid(product(outer) * SizeExpr::ceilDiv(kept.back(), vectors * lanes), 1);
  Value strips = k.ceilDiv(columns, vectors * lanes);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value first = k.mul(k.remainder(item, strips), width);
    Value line = k.divide(item, strips), from = first;
    for (auto [place, stride] : llvm::zip(k.delinearize(line, outer), keptStrides))
      from = k.add(from, k.mul(place, k.index(stride)));
    Value to = k.add(k.mul(line, columns), first), remaining = k.sub(columns, first);
    Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, remaining, width);
    auto branch = scf::IfOp::create(b, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    strip(from, to, SmallVector<Value>(vectors));
    b.setInsertionPointToStart(branch.elseBlock());
    SmallVector<Value> masks;
    for (int64_t v = 0; v < vectors; ++v)
      masks.push_back(lanesBelow(k, lanes, k.sub(remaining, k.constant(v * lanes))));
    strip(from, to, masks);
  });
}

bool lowerReduceColumns(KernelBuilder &k, ds::ReduceOp op) {
  using Kind = ds::ReduceKind;
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  bool isFloat = element.isF16() || element.isBF16() || element.isF32() || element.isF64();
  auto integer = dyn_cast<IntegerType>(element);
  // Integer results of real functions are truncated, which the rows do.
  bool isExact =
      llvm::is_contained({Kind::sum, Kind::prod, Kind::max, Kind::min, Kind::sum_square, Kind::l1}, op.getKind());
  if (k.target.lanes <= 1 || last < 1 || op.getAxes().empty() || llvm::is_contained(op.getAxes(), last) ||
      shape[last].isConstant(1) || !(isFloat || (integer && integer.getWidth() >= 8 && isExact)))
    return false;
  ColumnReduction(k, op).emit();
  k.setFlops(product(shape));
  return true;
}

} // namespace deepstride
