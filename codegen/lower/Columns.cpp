// Reductions and softmax over axes before the last one: vectors hold neighbouring results, and every row is read once
// a pass.
#include "codegen/lower/Columns.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Two lines of memory or more: what is read of a row.
static constexpr int64_t mostVectors = 4;

bool ColumnSpace::exists(KernelBuilder &k, Type element, ArrayRef<SizeExpr> shape, ArrayRef<int64_t> walked) {
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  bool isFloat = element.isF16() || element.isBF16() || element.isF32() || element.isF64();
  auto integer = dyn_cast<IntegerType>(element);
  if (k.target.lanes <= 1 || last < 1 || walked.empty() || llvm::is_contained(walked, last) ||
      !(isFloat || (integer && integer.getWidth() >= 8)))
    return false;
  return !product(shape.drop_front(*llvm::max_element(walked) + 1)).isConstant(1);
}

ColumnSpace::ColumnSpace(KernelBuilder &k, Type element, ArrayRef<SizeExpr> shape, ArrayRef<int64_t> walked)
    : k(k), element(element) {
  SizeVector strides = KernelBuilder::strides(shape);
  int64_t inner = *llvm::max_element(walked) + 1; // axes from here on are contiguous
  for (int64_t axis = 0; axis < inner; ++axis) {
    bool isWalked = llvm::is_contained(walked, axis);
    (isWalked ? walkedSizes : outerSizes).push_back(shape[axis]);
    (isWalked ? walkedStrides : outerStrides).push_back(strides[axis]);
  }
  for (size_t i = walkedSizes.size(); i-- > 1;)
    if (walkedStrides[i - 1] == walkedStrides[i] * walkedSizes[i]) { // one loop without a gap
      walkedSizes[i - 1] = walkedSizes[i - 1] * walkedSizes[i];
      walkedStrides[i - 1] = walkedStrides[i];
      walkedSizes.erase(walkedSizes.begin() + i);
      walkedStrides.erase(walkedStrides.begin() + i);
    }
  columns = product(shape.drop_front(inner));
  lanes = k.target.lanes * 32 / static_cast<int64_t>(computeType(element).getIntOrFloatBitWidth());
  type = VectorType::get({lanes}, computeType(element));
  int64_t known = columns.constant().value_or(mostVectors * lanes);
  vectors = std::clamp<int64_t>((known + lanes - 1) / lanes, 1, mostVectors);
}

Value ColumnSpace::wide(Value scalar) {
  return vector::BroadcastOp::create(k.b, k.loc, VectorType::get({lanes}, scalar.getType()), scalar);
}

SmallVector<Value> ColumnSpace::cells(Value initial) {
  SmallVector<Value> result;
  for (int64_t v = 0; v < vectors; ++v) {
    result.push_back(k.cell(initial.getType()));
    memref::StoreOp::create(k.b, k.loc, initial, result.back());
  }
  return result;
}

Value ColumnSpace::load(const Strip &strip, Value buffer, Value at, int64_t v) {
  auto stored = VectorType::get({lanes}, storageType(element));
  return fromStorage(k.b, k.loc, loadLanes(k, stored, buffer, k.add(at, k.constant(v * lanes)), strip.masks[v]),
                     element);
}

void ColumnSpace::store(const Strip &strip, Value value, Value buffer, Value at, int64_t v) {
  storeLanes(k, toStorage(k.b, k.loc, value, element), buffer, k.add(at, k.constant(v * lanes)), strip.masks[v]);
}

void ColumnSpace::forEachStrip(llvm::function_ref<void(const Strip &)> body) {
  Value count = k.index(columns), width = k.constant(vectors * lanes);
  k.setGrid(product(outerSizes) * SizeExpr::ceilDiv(columns, vectors * lanes), 1);
  Value strips = k.ceilDiv(count, vectors * lanes);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value first = k.mul(k.remainder(item, strips), width), line = k.divide(item, strips);
    Strip strip{first, k.add(k.mul(line, count), first), SmallVector<Value>(vectors)};
    for (auto [place, stride] : llvm::zip(k.delinearize(line, outerSizes), outerStrides))
      strip.from = k.add(strip.from, k.mul(place, k.index(stride)));
    Value remaining = k.sub(count, first);
    Value isWhole = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, remaining, width);
    auto branch = scf::IfOp::create(k.b, k.loc, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    body(strip);
    k.b.setInsertionPointToStart(branch.elseBlock());
    for (int64_t v = 0; v < vectors; ++v)
      strip.masks[v] = lanesBelow(k, lanes, k.sub(remaining, k.constant(v * lanes)));
    body(strip);
  });
}

void ColumnSpace::forEachRow(const Strip &strip, llvm::function_ref<void(Value)> body) {
  k.loopNest(walkedSizes, [&](ArrayRef<Value> at) {
    Value row = strip.from;
    for (auto [place, stride] : llvm::zip_equal(at, walkedStrides))
      row = k.add(row, k.mul(place, k.index(stride)));
    body(row);
  });
}

SmallVector<SmallVector<Value>>
ColumnSpace::combine(ArrayRef<ds::ReduceKind> kinds, const Strip &strip,
                     llvm::function_ref<void(Value, ArrayRef<SmallVector<Value>>)> body) {
  SmallVector<SmallVector<Value>> totals;
  SmallVector<Value> flat;
  SmallVector<ds::ReduceKind> flatKinds;
  for (ds::ReduceKind kind : kinds) {
    totals.push_back(cells(wide(neutralElement(k.b, k.loc, kind, element))));
    llvm::append_range(flat, totals.back());
    flatKinds.append(totals.back().size(), kind);
  }
  reduceBlocks(k, walkedSizes, 1, element, flatKinds, flat, [&](const LoopBlock *block) {
    auto step = [&](Value at) { body(at, totals); };
    if (!block)
      return forEachRow(strip, step);
    OpBuilder::InsertionGuard guard(k.b);
    Value at = strip.from;
    for (auto [first, count, stride] : llvm::zip_equal(block->from, block->counts, walkedStrides)) {
      auto loop = scf::ForOp::create(k.b, k.loc, first, k.add(first, count), k.constant(1));
      k.b.setInsertionPointToStart(loop.getBody());
      at = k.add(at, k.mul(loop.getInductionVar(), k.index(stride)));
    }
    step(at);
  });
  for (SmallVector<Value> &cells : totals)
    for (Value &total : cells)
      total = memref::LoadOp::create(k.b, k.loc, total);
  return totals;
}

SmallVector<Value> ColumnSpace::reduce(ds::ReduceKind kind, const Strip &strip, Value buffer,
                                       llvm::function_ref<Value(Value, int64_t)> map) {
  return reduce(ArrayRef(kind), strip, buffer, [&](ds::ReduceKind, Value x, int64_t v) { return map(x, v); })[0];
}

SmallVector<SmallVector<Value>> ColumnSpace::reduce(ArrayRef<ds::ReduceKind> kinds, const Strip &strip, Value buffer,
                                                    llvm::function_ref<Value(ds::ReduceKind, Value, int64_t)> map) {
  return combine(kinds, strip, [&](Value row, ArrayRef<SmallVector<Value>> totals) {
    for (int64_t v = 0; v < vectors; ++v) {
      Value x = load(strip, buffer, row, v);
      for (auto [kind, cells] : llvm::zip_equal(kinds, totals)) {
        Value total = memref::LoadOp::create(k.b, k.loc, cells[v]);
        total = emitCombine(k.b, k.loc, kind, total, map(kind, x, v), element);
        memref::StoreOp::create(k.b, k.loc, total, cells[v]);
      }
    }
  });
}

namespace {

struct ColumnReduction {
  ColumnReduction(KernelBuilder &k, ds::ReduceOp op)
      : k(k), b(k.b), loc(k.loc), kinds(reducedKinds(k)), element(k.elementOf(op.getInput())),
        input(k.bufferOf(op.getInput())), columns(k, element, k.sizesOf(op.getInput()), op.getAxes()) {}

  void emit(const Strip &strip);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  SmallVector<ds::ReduceKind> kinds;
  Type element;
  Value input;
  ColumnSpace columns;

private:
  Value finished(ds::ReduceKind kind, Value total, Value greatest);
};

} // namespace

Value ColumnReduction::finished(ds::ReduceKind kind, Value total, Value greatest) {
  using Kind = ds::ReduceKind;
  if (kind == Kind::mean) {
    Value count = arith::IndexCastOp::create(b, loc, b.getI64Type(), k.index(product(columns.walkedSizes)));
    Value divisor = emitCast(b, loc, count, b.getI64Type(), columns.type.getElementType());
    return emitBinary(b, loc, ds::BinaryKind::div, total, columns.wide(divisor), element, element);
  }
  if (kind == Kind::l2)
    return emitUnary(b, loc, ds::UnaryKind::sqrt, total, element);
  if (kind != Kind::log_sum && kind != Kind::log_sum_exp)
    return total;
  total = emitUnary(b, loc, ds::UnaryKind::log, total, element);
  Value zero = columns.wide(scalarConstant(b, loc, element, 0.0));
  return greatest ? addLogarithm(b, loc, greatest, total, zero) : total;
}

void ColumnReduction::emit(const Strip &strip) {
  SmallVector<Value> greatest(columns.vectors);
  if (kinds[0] == ds::ReduceKind::log_sum_exp) // which is alone
    greatest = columns.reduce(ds::ReduceKind::max, strip, input, [](Value x, int64_t) { return x; });
  auto totals = columns.reduce(kinds, strip, input, [&](ds::ReduceKind kind, Value x, int64_t v) -> Value {
    if (!greatest[v])
      return reducedValue(k, b, kind, x, element);
    return emitWeight(b, loc, arith::SubFOp::create(b, loc, x, greatest[v]));
  });
  for (int64_t v = 0; v < columns.vectors; ++v)
    for (auto [number, kind] : llvm::enumerate(kinds))
      columns.store(strip, finished(kind, totals[number][v], greatest[v]),
                    k.outputBuffer(static_cast<unsigned>(number)), strip.to, v);
}

bool lowerReduceColumns(KernelBuilder &k, ds::ReduceOp op) {
  using Kind = ds::ReduceKind;
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  // Integer results of real functions are truncated, which the rows do.
  SmallVector<Kind> kinds = reducedKinds(k);
  bool isExact = llvm::all_of(kinds, [](Kind kind) {
    return llvm::is_contained({Kind::sum, Kind::prod, Kind::max, Kind::min, Kind::sum_square, Kind::l1}, kind);
  });
  if (!ColumnSpace::exists(k, element, shape, op.getAxes()) || !(isa<FloatType>(element) || isExact))
    return false;
  ColumnReduction reduction(k, op);
  reduction.columns.forEachStrip([&](const Strip &strip) { reduction.emit(strip); });
  k.setFlops(product(shape) * SizeExpr(static_cast<int64_t>(kinds.size())));
  return true;
}

bool lowerSoftmaxColumns(KernelBuilder &k, ds::SoftmaxOp op) {
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  int64_t axis = static_cast<int64_t>(op.getAxis());
  if (!ColumnSpace::exists(k, element, shape, axis))
    return false;
  ColumnSpace columns(k, element, shape, axis);
  Value input = k.bufferOf(op.getInput()), output = k.outputBuffer(0);
  // As in rows: what is not rounded waits in the output for the sum.
  bool keeps = computeType(element) == element && !op.getLog();
  columns.forEachStrip([&](const Strip &strip) {
    SmallVector<Value> greatest = columns.reduce(ds::ReduceKind::max, strip, input, [](Value x, int64_t) { return x; });
    auto below = [&](Value x, int64_t v) -> Value { return arith::SubFOp::create(k.b, k.loc, x, greatest[v]); };
    auto power = [&](Value x, int64_t v) -> Value { return emitWeight(k.b, k.loc, below(x, v)); };
    auto add = [&](Value row, ArrayRef<SmallVector<Value>> totals) {
      for (int64_t v = 0; v < columns.vectors; ++v) {
        Value x = power(columns.load(strip, input, row, v), v);
        if (keeps)
          columns.store(strip, x, output, row, v);
        Value sum = memref::LoadOp::create(k.b, k.loc, totals[0][v]);
        memref::StoreOp::create(k.b, k.loc, arith::AddFOp::create(k.b, k.loc, sum, x), totals[0][v]);
      }
    };
    SmallVector<Value> sums = columns.combine(ds::ReduceKind::sum, strip, add)[0];
    Value one = columns.wide(scalarConstant(k.b, k.loc, element, 1.0));
    for (Value &sum : sums)
      sum = op.getLog() ? math::LogOp::create(k.b, k.loc, sum).getResult()
                        : arith::DivFOp::create(k.b, k.loc, one, sum).getResult();
    columns.forEachRow(strip, [&](Value row) {
      for (int64_t v = 0; v < columns.vectors; ++v) {
        Value x = columns.load(strip, keeps ? output : input, row, v);
        if (op.getLog()) // the greatest goes first: beside a large one the logarithm would be lost
          x = arith::SubFOp::create(k.b, k.loc, below(x, v), sums[v]);
        else
          x = arith::MulFOp::create(k.b, k.loc, keeps ? x : power(x, v), sums[v]);
        columns.store(strip, x, output, row, v);
      }
    });
  });
  k.setFlops(product(shape) * SizeExpr(5));
  return true;
}

} // namespace deepstride
