// Kernels that work on one row at a time: reductions, softmax, normalizations. A row is what the reduced axes span; the
// grid is all rows. Inside a row the work is linalg.generic over the row's axes, vectorized by codegen/cpu.
#include "codegen/lower/Rows.h"

#include "codegen/kernel/RowInput.h"
#include "codegen/kernel/RowOutput.h"
#include "codegen/kernel/Views.h"
#include "dialects/ds/Reductions.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace deepstride {

/// Sums side by side of a reduction along the innermost loop (codegen/cpu), each in a vector where elements are
/// neighbours.
static constexpr int64_t rowChains = 4;

RowSpace::RowSpace(KernelBuilder &k, ArrayRef<SizeExpr> shape, ArrayRef<int64_t> reduced, Value length)
    : shape(shape), k(k), length(length) {
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    (llvm::is_contained(reduced, static_cast<int64_t>(axis)) ? inner : outer).push_back(axis);
  for (unsigned axis : outer)
    outerSizes.push_back(shape[axis]);
  for (unsigned axis : inner)
    innerSizes.push_back(shape[axis]);
}

void RowSpace::forEachRow(llvm::function_ref<void(ArrayRef<Value>)> body) {
  auto length = product(innerSizes).constant();
  k.setGrid(product(outerSizes), length && *length > 0 ? std::max<int64_t>(1, 2048 / *length) : 4);
  k.loop(k.begin, k.end, k.constant(1), [&](Value row) { body(k.delinearize(row, outerSizes)); });
}

RowSpace::Loops RowSpace::loopsOf(ArrayRef<const View *> views, ArrayRef<Value> row) {
  Loops loops{innerSizes, {}, {}};
  for (const View *view : views) {
    loops.starts.push_back(k.offsetAt(*view, outer, row));
    loops.views.push_back({view->buffer, 0, {}});
    for (unsigned axis : inner)
      loops.views.back().axes.push_back(view->axes[axis]);
  }
  auto erase = [](auto &axes, size_t i) { axes.erase(axes.begin() + static_cast<int64_t>(i)); };
  for (size_t i = loops.sizes.size(); i-- > 0;)
    if (loops.sizes[i].isConstant(1) && loops.sizes.size() > 1) {
      erase(loops.sizes, i);
      for (View &view : loops.views)
        erase(view.axes, i);
    }
  for (size_t i = loops.sizes.size(); i-- > 1;)
    if (areOneAxis(loops.views, i)) {
      joinAxes(loops.views, i);
      loops.sizes[i - 1] = loops.sizes[i - 1] * loops.sizes[i];
      erase(loops.sizes, i);
    }
  return loops;
}

Value RowSpace::windowOf(const Loops &loops, size_t number, const LoopBlock *block) {
  const View &view = loops.views[number];
  auto axes = llvm::to_vector(llvm::seq<unsigned>(0, static_cast<unsigned>(loops.sizes.size())));
  if (!block)
    return k.memrefOf(view, loops.starts[number], axes, length ? ArrayRef(length) : ArrayRef<Value>());
  return k.memrefOf(view, k.add(loops.starts[number], k.offsetAt(view, axes, block->from)), axes, block->counts);
}

AffineMap RowSpace::mapOf(const View &view) {
  SmallVector<AffineExpr> exprs;
  for (auto [axis, walked] : llvm::enumerate(view.axes))
    if (walked.present)
      exprs.push_back(getAffineDimExpr(static_cast<unsigned>(axis), k.b.getContext()));
  return AffineMap::get(static_cast<unsigned>(view.axes.size()), 0, exprs, k.b.getContext());
}

int64_t RowSpace::chainsOf(const Loops &loops) {
  if (k.target.lanes <= 1)
    return 1;
  bool isContiguous = llvm::all_of(loops.views, [](const View &view) {
    return !view.axes.back().present || (!view.axes.back().guard && view.axes.back().stride.isConstant(1));
  });
  return rowChains * (isContiguous ? k.target.lanes : 1);
}

Value RowSpace::reduce(ds::ReduceKind kind, Type element, ArrayRef<const View *> views, ArrayRef<Value> row,
                       llvm::function_ref<Value(OpBuilder &, ValueRange)> map) {
  return reduce(ArrayRef(kind), element, views, row,
                [&](OpBuilder &b, ValueRange values) { return SmallVector<Value>{map(b, values)}; })[0];
}

SmallVector<Value> RowSpace::reduce(ArrayRef<ds::ReduceKind> kinds, Type element, ArrayRef<const View *> views,
                                    ArrayRef<Value> row,
                                    llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> map) {
  Type type = computeType(element);
  Loops loops = loopsOf(views, row);
  if (inner.empty()) { // nothing is reduced: a row is one element
    SmallVector<Value> values;
    for (size_t number = 0; number < views.size(); ++number)
      values.push_back(memref::LoadOp::create(k.b, k.loc, windowOf(loops, number)));
    return map(k.b, values);
  }
  // Booleans have no vector type of their own in memory: they are combined as bytes.
  Type cellType = storageType(element) == type || !type.isInteger(1) ? type : storageType(element);
  SmallVector<Value> cells;
  SmallVector<AffineMap> maps = llvm::map_to_vector(loops.views, [&](const View &view) { return mapOf(view); });
  for (ds::ReduceKind kind : kinds) {
    Value neutral = neutralElement(k.b, k.loc, kind, element);
    cells.push_back(k.cell(cellType));
    memref::StoreOp::create(k.b, k.loc, type == cellType ? neutral : toStorage(k.b, k.loc, neutral, element),
                            cells.back());
    maps.push_back(AffineMap::get(static_cast<unsigned>(loops.sizes.size()), 0, k.b.getContext()));
  }
  SmallVector<utils::IteratorType> iterators(loops.sizes.size(), utils::IteratorType::reduction);
  auto combine = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    SmallVector<Value> totals = map(b, arguments.take_front(views.size()));
    for (auto [kind, total, sum] : llvm::zip_equal(kinds, totals, arguments.take_back(kinds.size()))) {
      if (type == cellType) {
        total = emitCombine(b, loc, kind, sum, total, element);
      } else {
        Type byte = b.getIntegerType(8, /*isSigned=*/false);
        total = emitCombine(b, loc, kind, sum, toStorage(b, loc, total, element), byte);
      }
    }
    linalg::YieldOp::create(b, loc, totals);
  };
  reduceBlocks(k, loops.sizes, chainsOf(loops), element, kinds, cells, [&](const LoopBlock *block) {
    SmallVector<Value> inputs;
    for (size_t number = 0; number < views.size(); ++number)
      inputs.push_back(windowOf(loops, number, block));
    linalg::GenericOp::create(k.b, k.loc, inputs, cells, maps, iterators, combine);
  });
  SmallVector<Value> results;
  for (Value cell : cells) {
    Value result = memref::LoadOp::create(k.b, k.loc, cell);
    results.push_back(type == cellType ? result : fromStorage(k.b, k.loc, result, element));
  }
  return results;
}

void RowSpace::map(const View &output, Type element, ArrayRef<const View *> views, ArrayRef<Value> row,
                   llvm::function_ref<Value(OpBuilder &, ValueRange)> body, ArrayRef<Value> to) {
  SmallVector<const View *> all(views);
  all.push_back(&output);
  Loops loops = loopsOf(all, row);
  if (!to.empty())
    loops.starts.back() = k.offsetAt(output, outer, to);
  SmallVector<Value> inputs;
  for (size_t number = 0; number < all.size(); ++number)
    inputs.push_back(windowOf(loops, number));
  Value target = inputs.pop_back_val();
  if (inner.empty()) {
    SmallVector<Value> values;
    for (Value input : inputs)
      values.push_back(memref::LoadOp::create(k.b, k.loc, input));
    memref::StoreOp::create(k.b, k.loc, toStorage(k.b, k.loc, body(k.b, values), element), target);
    return;
  }
  SmallVector<AffineMap> maps = llvm::map_to_vector(loops.views, [&](const View &view) { return mapOf(view); });
  SmallVector<utils::IteratorType> iterators(loops.sizes.size(), utils::IteratorType::parallel);
  linalg::GenericOp::create(k.b, k.loc, inputs, ValueRange{target}, maps, iterators,
                            [&](OpBuilder &b, Location loc, ValueRange arguments) {
                              Value value = body(b, arguments.drop_back());
                              linalg::YieldOp::create(b, loc, toStorage(b, loc, value, element));
                            });
}

Value RowSpace::lengthAs(Type element) {
  Value length = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), k.index(product(innerSizes)));
  return emitCast(k.b, k.loc, length, k.b.getI64Type(), isa<FloatType>(element) ? computeType(element) : element);
}

SmallVector<ds::ReduceKind> reducedKinds(KernelBuilder &k) {
  SmallVector<ds::ReduceKind> kinds;
  for (Operation *op : k.ops())
    if (auto reduce = dyn_cast<ds::ReduceOp>(op))
      kinds.push_back(reduce.getKind());
  return kinds;
}

Value reducedValue(KernelBuilder &k, OpBuilder &b, ds::ReduceKind kind, Value x, Type element) {
  using Kind = ds::ReduceKind;
  if (kind == Kind::l1)
    return emitUnary(b, k.loc, ds::UnaryKind::abs, x, element);
  if (kind == Kind::l2 || kind == Kind::sum_square)
    return emitBinary(b, k.loc, ds::BinaryKind::mul, x, x, element, element);
  return x;
}

Value addLogarithm(OpBuilder &b, Location loc, Value greatest, Value logarithm, Value zero) {
  // The difference of an infinite one to itself, and with it the sum, is NaN.
  Value rest = arith::SubFOp::create(b, loc, greatest, greatest);
  Value isFinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, rest, zero);
  Value sum = arith::AddFOp::create(b, loc, logarithm, greatest);
  return arith::SelectOp::create(b, loc, isFinite, sum, greatest);
}

/// Ops that follow the reductions of a whole tensor.
static LogicalResult verifyFollowers(KernelBuilder &k) {
  for (Operation *op : k.ops()) {
    auto element = dyn_cast<ds::PerElement>(op);
    auto constant = dyn_cast<ds::ConstantOp>(op);
    if (isa<ds::ReduceOp>(op) || (constant && isa<SplatElementsAttr>(constant.getValue())))
      continue;
    if (!element || !element.isPointwise() || element.scannedOperand() ||
        llvm::any_of(op->getOperands(), llvm::IsaPred<BlockArgument>))
      return op->emitOpError("cannot follow a reduction in its kernel");
  }
  return success();
}

/// Stores what the kernel yields of reductions, whose `results` are given in order, and of ops that follow them.
static void storeReduced(KernelBuilder &k, ArrayRef<Value> results, Value place) {
  llvm::DenseMap<Value, Value> values;
  for (Operation *op : k.ops()) {
    Type element = k.elementOf(op->getResult(0));
    Value &value = values[op->getResult(0)];
    if (auto constant = dyn_cast<ds::ConstantOp>(op)) {
      value =
          scalarConstant(k.b, k.loc, element, cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>());
    } else if (isa<ds::ReduceOp>(op)) { // what follows sees what memory would hold
      value = fromStorage(k.b, k.loc, toStorage(k.b, k.loc, results.front(), element), element);
      results = results.drop_front();
    } else {
      SmallVector<Value> operands;
      SmallVector<Type> elements;
      for (Value operand : op->getOperands()) {
        operands.push_back(values.at(operand));
        elements.push_back(k.elementOf(operand));
      }
      value = emitPointwise(k.b, k.loc, op, operands, elements, element);
    }
  }
  for (auto [number, yielded] : llvm::enumerate(k.yielded()))
    k.store(values.at(yielded), k.outputBuffer(static_cast<unsigned>(number)), place, k.elementOf(yielded));
}

LogicalResult lowerReduce(KernelBuilder &k, ds::ReduceOp op) {
  if (failed(verifyFollowers(k)))
    return failure();
  if (lowerReduceColumns(k, op))
    return success();
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, op.getAxes());
  View input = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  using Kind = ds::ReduceKind;
  SmallVector<Kind> kinds = reducedKinds(k);
  // The norm of a whole tensor, and of blocks of a gradient, fits f32 where its squares do not: it adds them up in f64,
  // as fast as memory gives them. Norms of longer rows stay f32, as rows come from a cache.
  constexpr int64_t block = 64; // as of passes/training/GradientNorm.h
  SizeExpr length(1);
  for (int64_t axis : op.getAxes())
    length = length * shape[static_cast<size_t>(axis)];
  bool isWhole = product(rows.outerSizes).isConstant(1), isBlock = length.constant().value_or(block + 1) <= block;
  bool isWide = kinds.size() == 1 && kinds[0] == Kind::l2 && element.isF32() && (isWhole || isBlock);
  Type cell = isWide ? k.b.getF64Type() : element;
  auto load = [&](OpBuilder &b, Value raw) {
    Value x = fromStorage(b, k.loc, raw, element);
    return isWide ? emitCast(b, k.loc, x, element, cell) : x;
  };
  // Order of the rows is the order of the output's elements, whether or not reduced axes are kept.
  rows.forEachRow([&](ArrayRef<Value> row) {
    Value greatest; // of a log_sum_exp, which is alone
    if (kinds[0] == Kind::log_sum_exp && isa<FloatType>(computeType(element))) {
      greatest =
          rows.reduce(Kind::max, element, {&input}, row, [&](OpBuilder &b, ValueRange v) { return load(b, v[0]); });
    }
    SmallVector<Value> results = rows.reduce(kinds, cell, {&input}, row, [&](OpBuilder &b, ValueRange v) {
      SmallVector<Value> values;
      Value x = load(b, v[0]);
      for (Kind kind : kinds)
        values.push_back(greatest ? emitWeight(b, k.loc, arith::SubFOp::create(b, k.loc, x, greatest))
                                  : reducedValue(k, b, kind, x, cell));
      return values;
    });
    auto unary = [&](ds::UnaryKind function, Value x) -> Value {
      if (isa<FloatType>(x.getType()))
        return emitUnary(k.b, k.loc, function, x, cell);
      Type f64 = k.b.getF64Type(); // integer results of real functions are truncated
      return emitCast(k.b, k.loc, emitUnary(k.b, k.loc, function, emitCast(k.b, k.loc, x, element, f64), f64), f64,
                      element);
    };
    for (auto [kind, result] : llvm::zip_equal(kinds, results)) {
      if (kind == Kind::mean)
        result = emitBinary(k.b, k.loc, ds::BinaryKind::div, result, rows.lengthAs(element), element, element);
      if (kind == Kind::l2)
        result = unary(ds::UnaryKind::sqrt, result);
      if (kind == Kind::log_sum || kind == Kind::log_sum_exp)
        result = unary(ds::UnaryKind::log, result);
      if (isWide)
        result = emitCast(k.b, k.loc, result, cell, element);
      if (greatest)
        result = addLogarithm(k.b, k.loc, greatest, result, scalarConstant(k.b, k.loc, element, 0.0));
    }
    storeReduced(k, results, k.linearize(row, rows.outerSizes));
  });
  k.setFlops(product(shape) * SizeExpr(static_cast<int64_t>(kinds.size())));
  return success();
}

void emitSoftmaxRow(KernelBuilder &k, RowSpace &rows, ds::SoftmaxOp op, const View &input, const View &output,
                    ArrayRef<Value> row) {
  Type element = k.elementOf(op.getInput());
  // f32 and f64 keep the exponentials in the output between the passes; narrower types would round them twice.
  bool keeps = computeType(element) == element && !op.getLog();
  auto load = [&](OpBuilder &b, Value raw) { return fromStorage(b, k.loc, raw, element); };
  Value greatest = rows.reduce(ds::ReduceKind::max, element, {&input}, row,
                               [&](OpBuilder &b, ValueRange v) { return load(b, v[0]); });
  auto exponential = [&](OpBuilder &b, Value raw) -> Value {
    return emitWeight(b, k.loc, arith::SubFOp::create(b, k.loc, load(b, raw), greatest));
  };
  if (keeps)
    rows.map(output, element, {&input}, row, [&](OpBuilder &b, ValueRange v) { return exponential(b, v[0]); });
  Value sum = rows.reduce(ds::ReduceKind::sum, element, {keeps ? &output : &input}, row,
                          [&](OpBuilder &b, ValueRange v) { return keeps ? v[0] : exponential(b, v[0]); });
  if (op.getLog()) {
    // The greatest goes first: beside a large one the logarithm would be lost.
    Value logarithm = math::LogOp::create(k.b, k.loc, sum);
    rows.map(output, element, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
      return arith::SubFOp::create(b, k.loc, arith::SubFOp::create(b, k.loc, load(b, v[0]), greatest), logarithm);
    });
    return;
  }
  // The sum is at least 1, or NaN, so that its inverse is as good as any number.
  Value inverse = arith::DivFOp::create(k.b, k.loc, scalarConstant(k.b, k.loc, element, 1.0), sum);
  rows.map(output, element, {keeps ? &output : &input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
    return arith::MulFOp::create(b, k.loc, keeps ? v[0] : exponential(b, v[0]), inverse);
  });
}

LogicalResult lowerSoftmax(KernelBuilder &k, ds::SoftmaxOp op) {
  if (isa<BlockArgument>(op.getInput()) && lowerSoftmaxColumns(k, op))
    return success();
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, {static_cast<int64_t>(op.getAxis())});
  auto number = llvm::find(k.yielded(), op.getResult()) - k.yielded().begin(); // what it reads may be another result
  View output = k.broadcastView(k.outputBuffer(static_cast<unsigned>(number)), shape, shape);
  RowInput source(k, rows, op.getInput(), output);
  if (failed(source.verify()))
    return failure();
  rows.forEachRow([&](ArrayRef<Value> row) {
    source.emit(row);
    emitSoftmaxRow(k, rows, op, source.view(), output, row);
  });
  k.setFlops(product(shape) * SizeExpr(5));
  return success();
}

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon), or without the mean.
void emitNormRow(KernelBuilder &k, RowSpace &rows, Operation *norm, const View &input, const View &output,
                 ArrayRef<Value> row, ArrayRef<Value> to, RowOutput *behind) {
  auto layer = dyn_cast<ds::LayerNormOp>(norm);
  auto rms = dyn_cast<ds::RmsNormOp>(norm);
  Type element = k.elementOf(norm->getResult(0));
  double epsilon = (layer ? layer.getEpsilon() : rms.getEpsilon()).convertToDouble();
  auto viewOf = [&](Value value) { return k.broadcastView(k.bufferOf(value), k.sizesOf(value), rows.shape); };
  View scale = viewOf(layer ? layer.getScale() : rms.getScale()), bias;
  SmallVector<const View *> operands = {&input, &scale};
  bool hasBias = layer && layer.getBias();
  if (hasBias) {
    bias = viewOf(layer.getBias());
    operands.push_back(&bias);
  }
  auto load = [&](OpBuilder &b, Value raw) { return fromStorage(b, k.loc, raw, element); };
  Value length = rows.lengthAs(element), mean;
  if (layer) {
    Value sum = rows.reduce(ds::ReduceKind::sum, element, {&input}, row,
                            [&](OpBuilder &b, ValueRange v) { return load(b, v[0]); });
    mean = arith::DivFOp::create(k.b, k.loc, sum, length);
  }
  auto centre = [&](OpBuilder &b, Value raw) -> Value {
    Value x = load(b, raw);
    return layer ? arith::SubFOp::create(b, k.loc, x, mean).getResult() : x;
  };
  Value squares = rows.reduce(ds::ReduceKind::sum, element, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
    Value x = centre(b, v[0]);
    return arith::MulFOp::create(b, k.loc, x, x);
  });
  Value variance = arith::DivFOp::create(k.b, k.loc, squares, length);
  Value root = math::SqrtOp::create(
      k.b, k.loc, arith::AddFOp::create(k.b, k.loc, variance, scalarConstant(k.b, k.loc, element, epsilon)));
  Value inverse = arith::DivFOp::create(k.b, k.loc, scalarConstant(k.b, k.loc, element, 1.0), root);
  SmallVector<View> beside;
  if (behind)
    beside = behind->views();
  for (const View &view : beside)
    operands.push_back(&view);
  rows.map(
      output, behind ? behind->element() : element, operands, row,
      [&](OpBuilder &b, ValueRange v) -> Value {
        Value normal = arith::MulFOp::create(b, k.loc, centre(b, v[0]), inverse);
        Value made = arith::MulFOp::create(b, k.loc, normal, load(b, v[1]));
        if (hasBias)
          made = arith::AddFOp::create(b, k.loc, made, load(b, v[2]));
        return behind ? behind->apply(b, made, v.take_back(beside.size())) : made;
      },
      to);
}

void emitRowExtremes(KernelBuilder &k, Value made, const View &view, ArrayRef<Value> row) {
  SizeVector shape = k.sizesOf(made);
  RowSpace rows(k, shape, {static_cast<int64_t>(shape.size()) - 1});
  SmallVector<ds::ReduceKind> kinds;
  SmallVector<unsigned> numbers;
  for (auto [number, yielded] : llvm::enumerate(k.yielded()))
    if (Operation *op = yielded.getDefiningOp(); op && ds::extremesOf(op) == made) {
      kinds.push_back(cast<ds::ReduceOp>(op).getKind());
      numbers.push_back(static_cast<unsigned>(number));
    }
  if (kinds.empty())
    return;
  Type element = k.elementOf(made);
  auto values = rows.reduce(kinds, element, {&view}, row, [&](OpBuilder &b, ValueRange v) {
    return SmallVector<Value>(kinds.size(), fromStorage(b, k.loc, v[0], element));
  });
  for (auto [number, value] : llvm::zip_equal(numbers, values))
    k.store(value, k.outputBuffer(number), k.linearize(row, rows.outerSizes), element);
}

static LogicalResult lowerNorm(KernelBuilder &k, Operation *norm, int64_t axis) {
  SizeVector shape = k.sizesOf(norm->getOperand(0));
  SmallVector<int64_t> axes;
  for (int64_t i = axis; i < static_cast<int64_t>(shape.size()); ++i)
    axes.push_back(i);
  RowSpace rows(k, shape, axes);
  RowOutput output(k, rows, norm);
  RowInput input(k, rows, norm->getOperand(0), output.view());
  if (failed(input.verify()) || failed(output.verify()))
    return failure();
  if (output.isComputed() && input.isComputed() && !llvm::is_contained(k.yielded(), norm->getOperand(0)))
    return norm->emitOpError("has no place for the rows that its kernel computes before it");
  if (!llvm::all_of(norm->getOperands().drop_front(), llvm::IsaPred<BlockArgument>))
    return norm->emitOpError("expects scale and bias in memory");
  rows.forEachRow([&](ArrayRef<Value> row) {
    input.emit(row);
    emitNormRow(k, rows, norm, input.view(), output.view(), row, {}, output.isComputed() ? &output : nullptr);
    emitRowExtremes(k, norm->getResult(0), output.view(), row);
  });
  k.setFlops(product(shape) * SizeExpr(8));
  return success();
}

LogicalResult lowerLayerNorm(KernelBuilder &k, ds::LayerNormOp op) { return lowerNorm(k, op, op.getAxis()); }

LogicalResult lowerRmsNorm(KernelBuilder &k, ds::RmsNormOp op) { return lowerNorm(k, op, op.getAxis()); }

Value emitQuantizeRow(KernelBuilder &k, RowSpace &rows, ds::QuantizeRowsOp op, const View &input, const View &codes,
                      ArrayRef<Value> row, ArrayRef<Value> to) {
  Type element = k.elementOf(op.getInput()), byte = k.elementOf(op.getCodes());
  auto number = [&](OpBuilder &b, double value) { return scalarConstant(b, k.loc, element, value); };
  Value largest = rows.reduce(ds::ReduceKind::max, element, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
    return emitUnary(b, k.loc, ds::UnaryKind::abs, v[0], element);
  });
  // Infinities become NaN, as their difference to themselves is.
  Value nothing = arith::SubFOp::create(k.b, k.loc, largest, largest);
  Value bounded = emitCombine(k.b, k.loc, ds::ReduceKind::max, largest, number(k.b, 1e-30), element);
  Value scale =
      arith::DivFOp::create(k.b, k.loc, arith::AddFOp::create(k.b, k.loc, bounded, nothing), number(k.b, 127.0));
  Value inverse = arith::DivFOp::create(k.b, k.loc, number(k.b, 127.0), bounded);
  auto code = [&](OpBuilder &b, ValueRange v) -> Value {
    Value scaled = arith::MulFOp::create(b, k.loc, v[0], inverse);
    Value nearest = math::RoundEvenOp::create(b, k.loc, scaled);
    // What is no number takes the bound here, so that the conversion is defined.
    nearest = arith::MaxNumFOp::create(b, k.loc, nearest, number(b, -127.0));
    nearest = arith::MinNumFOp::create(b, k.loc, nearest, number(b, 127.0));
    Type i32 = b.getI32Type();
    Value code = arith::FPToSIOp::create(b, k.loc, i32, nearest);
    code = arith::AddIOp::create(b, k.loc, code, arith::ConstantIntOp::create(b, k.loc, i32, 128));
    return arith::TruncIOp::create(b, k.loc, b.getI8Type(), code);
  };
  rows.map(codes, byte, {&input}, row, code, to);
  return scale;
}

LogicalResult lowerQuantizeRows(KernelBuilder &k, ds::QuantizeRowsOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, {static_cast<int64_t>(shape.size()) - 1});
  View input = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  View codes = k.broadcastView(k.outputBuffer(0), shape, shape);
  rows.forEachRow([&](ArrayRef<Value> row) {
    Value scale = emitQuantizeRow(k, rows, op, input, codes, row);
    k.store(scale, k.outputBuffer(1), k.linearize(row, rows.outerSizes), k.elementOf(op.getInput()));
  });
  k.setFlops(product(shape) * SizeExpr(4));
  return success();
}

} // namespace deepstride
