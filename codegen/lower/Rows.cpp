// Kernels that work on one row at a time: reductions, softmax, normalizations. A row is what the reduced axes span; the
// grid is all rows. Inside a row the work is linalg.generic over the row's axes, vectorized by codegen/cpu.
#include "codegen/lower/Rows.h"

#include "codegen/kernel/Views.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace deepstride {

RowSpace::RowSpace(KernelBuilder &k, ArrayRef<SizeExpr> shape, ArrayRef<int64_t> reduced) : shape(shape), k(k) {
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

Value RowSpace::window(const View &view, ArrayRef<Value> row) {
  return k.memrefOf(view, k.offsetAt(view, outer, row), inner);
}

AffineMap RowSpace::mapOf(const View &view) {
  SmallVector<AffineExpr> exprs;
  for (auto [number, axis] : llvm::enumerate(inner))
    if (view.axes[axis].present)
      exprs.push_back(getAffineDimExpr(static_cast<unsigned>(number), k.b.getContext()));
  return AffineMap::get(static_cast<unsigned>(inner.size()), 0, exprs, k.b.getContext());
}

Value RowSpace::reduce(ds::ReduceKind kind, Type element, ArrayRef<const View *> views, ArrayRef<Value> row,
                       llvm::function_ref<Value(OpBuilder &, ValueRange)> map) {
  Type type = computeType(element);
  Value neutral = neutralElement(k.b, k.loc, kind, element);
  if (inner.empty()) { // nothing is reduced: a row is one element
    SmallVector<Value> values;
    for (const View *view : views)
      values.push_back(memref::LoadOp::create(k.b, k.loc, window(*view, row)));
    return map(k.b, values);
  }
  // Booleans have no vector type of their own in memory: they are combined as bytes.
  Type cellType = storageType(element) == type || !type.isInteger(1) ? type : storageType(element);
  Value cell = k.cell(cellType);
  memref::StoreOp::create(k.b, k.loc, type == cellType ? neutral : toStorage(k.b, k.loc, neutral, element), cell);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const View *view : views) {
    inputs.push_back(window(*view, row));
    maps.push_back(mapOf(*view));
  }
  maps.push_back(AffineMap::get(static_cast<unsigned>(inner.size()), 0, k.b.getContext()));
  SmallVector<utils::IteratorType> iterators(inner.size(), utils::IteratorType::reduction);
  linalg::GenericOp::create(k.b, k.loc, inputs, ValueRange{cell}, maps, iterators,
                            [&](OpBuilder &b, Location loc, ValueRange arguments) {
                              Value value = map(b, arguments.drop_back());
                              Value sum = arguments.back();
                              if (type == cellType) {
                                sum = emitCombine(b, loc, kind, sum, value, element);
                              } else {
                                Type byte = b.getIntegerType(8, /*isSigned=*/false);
                                sum = emitCombine(b, loc, kind, sum, toStorage(b, loc, value, element), byte);
                              }
                              linalg::YieldOp::create(b, loc, sum);
                            });
  Value result = memref::LoadOp::create(k.b, k.loc, cell);
  return type == cellType ? result : fromStorage(k.b, k.loc, result, element);
}

void RowSpace::map(const View &output, Type element, ArrayRef<const View *> views, ArrayRef<Value> row,
                   llvm::function_ref<Value(OpBuilder &, ValueRange)> body, ArrayRef<Value> to) {
  Value target = window(output, to.empty() ? row : to);
  if (inner.empty()) {
    SmallVector<Value> values;
    for (const View *view : views)
      values.push_back(memref::LoadOp::create(k.b, k.loc, window(*view, row)));
    memref::StoreOp::create(k.b, k.loc, toStorage(k.b, k.loc, body(k.b, values), element), target);
    return;
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const View *view : views) {
    inputs.push_back(window(*view, row));
    maps.push_back(mapOf(*view));
  }
  maps.push_back(mapOf(output));
  SmallVector<utils::IteratorType> iterators(inner.size(), utils::IteratorType::parallel);
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

LogicalResult lowerReduce(KernelBuilder &k, ds::ReduceOp op) {
  if (lowerReduceColumns(k, op))
    return success();
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, op.getAxes());
  View input = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  Value output = k.outputBuffer(0);
  using Kind = ds::ReduceKind;
  Kind kind = op.getKind();
  auto load = [&](OpBuilder &b, Value raw) { return fromStorage(b, k.loc, raw, element); };
  auto mapped = [&](OpBuilder &b, Value raw) -> Value {
    Value x = load(b, raw);
    if (kind == Kind::l1)
      return emitUnary(b, k.loc, ds::UnaryKind::abs, x, element);
    if (kind == Kind::l2 || kind == Kind::sum_square)
      return emitBinary(b, k.loc, ds::BinaryKind::mul, x, x, element, element);
    return x;
  };
  // Order of the rows is the order of the output's elements, whether or not reduced axes are kept.
  rows.forEachRow([&](ArrayRef<Value> row) {
    Value greatest;
    if (kind == Kind::log_sum_exp && isa<FloatType>(computeType(element))) {
      greatest =
          rows.reduce(Kind::max, element, {&input}, row, [&](OpBuilder &b, ValueRange v) { return load(b, v[0]); });
      // An infinite one is not subtracted: the difference to itself would be NaN.
      Value rest = arith::SubFOp::create(k.b, k.loc, greatest, greatest);
      Value zero = scalarConstant(k.b, k.loc, element, 0.0);
      Value isFinite = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, rest, zero);
      greatest = arith::SelectOp::create(k.b, k.loc, isFinite, greatest, zero);
    }
    Value result = rows.reduce(kind, element, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
      if (!greatest)
        return mapped(b, v[0]);
      return emitWeight(b, k.loc, arith::SubFOp::create(b, k.loc, load(b, v[0]), greatest));
    });
    auto unary = [&](ds::UnaryKind function, Value x) -> Value {
      if (isa<FloatType>(x.getType()))
        return emitUnary(k.b, k.loc, function, x, element);
      Type f64 = k.b.getF64Type(); // integer results of real functions are truncated
      return emitCast(k.b, k.loc, emitUnary(k.b, k.loc, function, emitCast(k.b, k.loc, x, element, f64), f64), f64,
                      element);
    };
    if (kind == Kind::mean)
      result = emitBinary(k.b, k.loc, ds::BinaryKind::div, result, rows.lengthAs(element), element, element);
    if (kind == Kind::l2)
      result = unary(ds::UnaryKind::sqrt, result);
    if (kind == Kind::log_sum || kind == Kind::log_sum_exp)
      result = unary(ds::UnaryKind::log, result);
    if (greatest)
      result = arith::AddFOp::create(k.b, k.loc, result, greatest);
    k.store(result, output, k.linearize(row, rows.outerSizes), element);
  });
  k.setFlops(product(shape));
  return success();
}

LogicalResult lowerSoftmax(KernelBuilder &k, ds::SoftmaxOp op) {
  if (lowerSoftmaxColumns(k, op))
    return success();
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, {static_cast<int64_t>(op.getAxis())});
  View input = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  View output = k.broadcastView(k.outputBuffer(0), shape, shape);
  // f32 and f64 keep the exponentials in the output between the passes; narrower types would round them twice.
  bool keeps = computeType(element) == element && !op.getLog();
  rows.forEachRow([&](ArrayRef<Value> row) {
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
  });
  k.setFlops(product(shape) * SizeExpr(5));
  return success();
}

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon), or without the mean.
void emitNormRow(KernelBuilder &k, RowSpace &rows, Operation *norm, const View &input, const View &output,
                 ArrayRef<Value> row, ArrayRef<Value> to) {
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
  rows.map(
      output, element, operands, row,
      [&](OpBuilder &b, ValueRange v) -> Value {
        Value normal = arith::MulFOp::create(b, k.loc, centre(b, v[0]), inverse);
        Value scaled = arith::MulFOp::create(b, k.loc, normal, load(b, v[1]));
        return hasBias ? arith::AddFOp::create(b, k.loc, scaled, load(b, v[2])).getResult() : scaled;
      },
      to);
}

static LogicalResult lowerNorm(KernelBuilder &k, Operation *norm, int64_t axis) {
  SizeVector shape = k.sizesOf(norm->getOperand(0));
  SmallVector<int64_t> axes;
  for (int64_t i = axis; i < static_cast<int64_t>(shape.size()); ++i)
    axes.push_back(i);
  RowSpace rows(k, shape, axes);
  auto input = operandView(k, norm->getOperand(0));
  if (!input)
    return norm->emitOpError("shares a kernel with more than windows of its operand");
  View output = k.broadcastView(k.outputBuffer(0), shape, shape);
  rows.forEachRow([&](ArrayRef<Value> row) { emitNormRow(k, rows, norm, *input, output, row); });
  k.setFlops(product(shape) * SizeExpr(8));
  return success();
}

LogicalResult lowerLayerNorm(KernelBuilder &k, ds::LayerNormOp op) { return lowerNorm(k, op, op.getAxis()); }

LogicalResult lowerRmsNorm(KernelBuilder &k, ds::RmsNormOp op) { return lowerNorm(k, op, op.getAxis()); }

LogicalResult lowerQuantizeRows(KernelBuilder &k, ds::QuantizeRowsOp op) {
  Type element = k.elementOf(op.getInput()), byte = k.elementOf(op.getCodes());
  SizeVector shape = k.sizesOf(op.getInput());
  RowSpace rows(k, shape, {static_cast<int64_t>(shape.size()) - 1});
  View input = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  View codes = k.broadcastView(k.outputBuffer(0), shape, shape);
  auto number = [&](OpBuilder &b, double value) { return scalarConstant(b, k.loc, element, value); };
  rows.forEachRow([&](ArrayRef<Value> row) {
    Value largest = rows.reduce(ds::ReduceKind::max, element, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
      return emitUnary(b, k.loc, ds::UnaryKind::abs, v[0], element);
    });
    // Infinities become NaN, as their difference to themselves is.
    Value nothing = arith::SubFOp::create(k.b, k.loc, largest, largest);
    Value bounded = emitCombine(k.b, k.loc, ds::ReduceKind::max, largest, number(k.b, 1e-30), element);
    Value scale =
        arith::DivFOp::create(k.b, k.loc, arith::AddFOp::create(k.b, k.loc, bounded, nothing), number(k.b, 127.0));
    Value inverse = arith::DivFOp::create(k.b, k.loc, number(k.b, 127.0), bounded);
    rows.map(codes, byte, {&input}, row, [&](OpBuilder &b, ValueRange v) -> Value {
      Value scaled = arith::MulFOp::create(b, k.loc, v[0], inverse);
      Value nearest = math::RoundEvenOp::create(b, k.loc, scaled);
      // What is no number takes the bound here, so that the conversion is defined.
      nearest = arith::MaxNumFOp::create(b, k.loc, nearest, number(b, -127.0));
      nearest = arith::MinNumFOp::create(b, k.loc, nearest, number(b, 127.0));
      Type i32 = b.getI32Type();
      Value code = arith::FPToSIOp::create(b, k.loc, i32, nearest);
      code = arith::AddIOp::create(b, k.loc, code, arith::ConstantIntOp::create(b, k.loc, i32, 128));
      return arith::TruncIOp::create(b, k.loc, b.getI8Type(), code);
    });
    k.store(scale, k.outputBuffer(1), k.linearize(row, rows.outerSizes), element);
  });
  k.setFlops(product(shape) * SizeExpr(4));
  return success();
}

} // namespace deepstride
