// Pooling and convolution in plain loops: one output element per grid item walks its window with bounds checks.
#include "codegen/kernel/Epilogue.h"

using namespace mlir;

namespace deepstride {

namespace {

/// The walk over a window: positions of the operand that the output element at `at` sees.
class Window {
public:
  Window(KernelBuilder &k, ArrayRef<SizeExpr> input, ArrayRef<SizeExpr> kernel, ArrayRef<int64_t> strides,
         ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations)
      : k(k), input(input), kernel(kernel), strides(strides), pads(pads), dilations(dilations) {}

  /// Calls body(kernel indices, operand's spatial indices) for positions inside the operand.
  void forEach(ArrayRef<Value> at, llvm::function_ref<void(ArrayRef<Value>, ArrayRef<Value>)> body) {
    k.loopNest(kernel, [&](ArrayRef<Value> tap) {
      SmallVector<Value> position;
      Value inside;
      for (size_t i = 0; i < kernel.size(); ++i) {
        Value base = k.sub(k.mul(at[i], k.constant(strides[i])), k.constant(pads[i]));
        Value here = k.add(base, k.mul(tap[i], k.constant(dilations[i])));
        Value legal = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, here, k.index(input[i]));
        inside = inside ? arith::AndIOp::create(k.b, k.loc, inside, legal).getResult() : legal;
        position.push_back(here);
      }
      auto branch = scf::IfOp::create(k.b, k.loc, inside, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      body(tap, position);
    });
  }

private:
  KernelBuilder &k;
  ArrayRef<SizeExpr> input, kernel;
  ArrayRef<int64_t> strides, pads, dilations;
};

} // namespace

static Value read(KernelBuilder &k, Value cell) { return memref::LoadOp::create(k.b, k.loc, cell); }
static void write(KernelBuilder &k, Value value, Value cell) { memref::StoreOp::create(k.b, k.loc, value, cell); }

LogicalResult lowerPlainConv(KernelBuilder &k, ds::ConvOp op) {
  Epilogue epilogue(k, op);
  if (failed(epilogue.verify()))
    return failure();
  SizeVector input = k.sizesOf(op.getInput()), weight = k.sizesOf(op.getWeight()), result = k.sizesOf(op.getResult());
  Type inputElement = k.elementOf(op.getInput()), weightElement = k.elementOf(op.getWeight()),
       element = k.elementOf(op.getResult());
  auto as = [&](Value value, Type from) {
    return from == element ? value : emitCast(k.b, k.loc, value, from, element);
  };
  k.setGrid(product(result), 64);
  Window window(k, ArrayRef(input).drop_front(2), ArrayRef(weight).drop_front(2), op.getStrides(), op.getPads(),
                op.getDilations());
  Value cell = k.cell(computeType(element));
  Value groups = k.constant(op.getGroups()), channels = k.index(weight[1]);
  Value filtersPerGroup = k.divide(k.index(weight[0]), groups);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, result);
    write(k, op.getBias() ? k.load(k.bufferOf(op.getBias()), at[1], element) : scalarConstant(k.b, k.loc, element, 0.0),
          cell);
    Value group = k.divide(at[1], filtersPerGroup);
    k.loop(k.constant(0), channels, k.constant(1), [&](Value channel) {
      window.forEach(ArrayRef(at).drop_front(2), [&](ArrayRef<Value> tap, ArrayRef<Value> position) {
        SmallVector<Value> from = {at[0], k.add(k.mul(group, channels), channel)}, with = {at[1], channel};
        llvm::append_range(from, position);
        llvm::append_range(with, tap);
        Value x = as(k.load(k.bufferOf(op.getInput()), k.linearize(from, input), inputElement), inputElement);
        Value w = as(k.load(k.bufferOf(op.getWeight()), k.linearize(with, weight), weightElement), weightElement);
        Value product = emitBinary(k.b, k.loc, ds::BinaryKind::mul, x, w, element, element);
        write(k, emitBinary(k.b, k.loc, ds::BinaryKind::add, read(k, cell), product, element, element), cell);
      });
    });
    Value row = k.add(k.mul(at[0], k.index(result[1])), at[1]);
    epilogue.store(read(k, cell), {row, k.linearize(ArrayRef(at).drop_front(2), ArrayRef(result).drop_front(2)), {}});
  });
  return success();
}

// Elements that an average divides by: those inside the operand, or also those inside its padding.
static Value averageCount(KernelBuilder &k, ds::PoolOp op, ArrayRef<Value> at, ArrayRef<SizeExpr> input, Type element,
                          Value counted) {
  if (!op.getIncludePad())
    return counted;
  Value count = k.constant(1);
  size_t spatial = op.getKernel().size();
  for (size_t i = 0; i < spatial; ++i) {
    // Taps t with start + t * dilation < size + end padding; beyond that lies what `ceil` added.
    Value start = k.sub(k.mul(at[i], k.constant(op.getStrides()[i])), k.constant(op.getPads()[i]));
    Value room = k.sub(k.add(k.index(input[i]), k.constant(op.getPads()[spatial + i])), start);
    Value dilation = k.constant(op.getDilations()[i]);
    Value taps = k.divide(k.add(room, k.sub(dilation, k.constant(1))), dilation);
    count = k.mul(count, k.minimum(taps, k.constant(op.getKernel()[i])));
  }
  Value wide = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), count);
  return emitCast(k.b, k.loc, wide, k.b.getI64Type(), element);
}

LogicalResult lowerPool(KernelBuilder &k, ds::PoolOp op) {
  SizeVector input = k.sizesOf(op.getInput()), result = k.sizesOf(op.getResult());
  Type element = k.elementOf(op.getInput());
  SizeVector kernel;
  for (int64_t size : op.getKernel())
    kernel.push_back(size);
  k.setFlops(product(result) * product(kernel));
  if (lowerPoolRows(k, op))
    return success();
  k.setGrid(product(result), 64);
  Window window(k, ArrayRef(input).drop_front(2), kernel, op.getStrides(), op.getPads(), op.getDilations());
  ds::ReduceKind combine = op.getKind() == ds::PoolKind::max ? ds::ReduceKind::max : ds::ReduceKind::sum;
  Value cell = k.cell(computeType(element)), counter = k.cell(computeType(element));
  Value one = scalarConstant(k.b, k.loc, element, 1.0);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, result);
    write(k, neutralElement(k.b, k.loc, combine, element), cell);
    write(k, scalarConstant(k.b, k.loc, element, 0.0), counter);
    window.forEach(ArrayRef(at).drop_front(2), [&](ArrayRef<Value>, ArrayRef<Value> position) {
      SmallVector<Value> from = {at[0], at[1]};
      llvm::append_range(from, position);
      Value x = k.load(k.bufferOf(op.getInput()), k.linearize(from, input), element);
      if (op.getKind() == ds::PoolKind::lp) {
        Value exponent = scalarConstant(k.b, k.loc, element, static_cast<double>(op.getExponent()));
        x = emitBinary(k.b, k.loc, ds::BinaryKind::pow, emitUnary(k.b, k.loc, ds::UnaryKind::abs, x, element), exponent,
                       element, element);
      }
      write(k, emitCombine(k.b, k.loc, combine, read(k, cell), x, element), cell);
      write(k, emitBinary(k.b, k.loc, ds::BinaryKind::add, read(k, counter), one, element, element), counter);
    });
    Value value = read(k, cell);
    if (op.getKind() == ds::PoolKind::average) {
      Value count =
          averageCount(k, op, ArrayRef(at).drop_front(2), ArrayRef(input).drop_front(2), element, read(k, counter));
      value = emitBinary(k.b, k.loc, ds::BinaryKind::div, value, count, element, element);
    }
    if (op.getKind() == ds::PoolKind::lp) {
      Value root = scalarConstant(k.b, k.loc, element, 1.0 / static_cast<double>(op.getExponent()));
      value = emitBinary(k.b, k.loc, ds::BinaryKind::pow, value, root, element, element);
    }
    k.store(value, k.outputBuffer(0), item, element);
  });
  return success();
}

} // namespace deepstride
