// The mechanics that all lowerings share: arguments, index arithmetic, loops, strided views, launch attributes.
#include "codegen/lower/KernelBuilder.h"

#include "dialects/ds/Traffic.h"
#include "runtime/abi/ds_abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace deepstride {

static ds::YieldOp yieldOf(ds::KernelOp kernel) { return cast<ds::YieldOp>(kernel.getBody().front().getTerminator()); }

KernelBuilder::KernelBuilder(ds::KernelOp kernel, const LoweringTarget &target, OpBuilder &moduleBuilder)
    : kernel(kernel), target(target), b(moduleBuilder), loc(kernel.getLoc()), entry(moduleBuilder) {
  Block &source = kernel.getBody().front();
  for (Operation &op : source.without_terminator())
    body.push_back(&op);
  results = llvm::to_vector(yieldOf(kernel).getValues());

  SmallVector<Type> types;
  auto flat = [](Type element) { return MemRefType::get({ShapedType::kDynamic}, storageType(element)); };
  for (Value argument : source.getArguments())
    types.push_back(flat(elementOf(argument)));
  for (Value result : results)
    types.push_back(flat(elementOf(result)));
  types.append(kernel.getSizeCount() + 2, b.getIndexType());
  types.push_back(MemRefType::get({ShapedType::kDynamic}, b.getI8Type()));
  function = func::FuncOp::create(b, loc, kernel.getSymName(), b.getFunctionType(types, b.getI32Type()));
  Block *block = function.addEntryBlock();
  auto arguments = block->getArguments();
  unsigned next = 0;
  for (Value argument : source.getArguments())
    buffers[argument] = arguments[next++];
  for (Value result : results) {
    outputs.push_back(arguments[next]);
    if (!isa<BlockArgument>(result))
      buffers[result] = arguments[next];
    ++next;
  }
  for (int64_t i = 0; i < static_cast<int64_t>(kernel.getSizeCount()); ++i)
    sizes.push_back(arguments[next++]);
  begin = arguments[next++];
  end = arguments[next++];
  scratch = arguments[next++];
  b.setInsertionPointToStart(block);
  entry = b;
  function->setAttr("ds.buffer_count",
                    b.getI64IntegerAttr(static_cast<int64_t>(source.getNumArguments() + results.size())));
}

SizeVector KernelBuilder::sizesOf(Value value) const {
  ArrayAttr lists;
  unsigned number;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    lists = ds::KernelOp(kernel).getArgumentSizes();
    number = argument.getArgNumber();
  } else {
    Operation *op = value.getDefiningOp();
    lists = op->getAttrOfType<ArrayAttr>("result_sizes");
    number = cast<OpResult>(value).getResultNumber();
    if (!lists) // embedded constants are splats of static shape
      return factsOfType(value.getType(), 0u).sizes;
  }
  return *sizesFromAttribute(cast<ArrayAttr>(lists[number]));
}

Value KernelBuilder::bufferOf(Value value) const {
  auto found = buffers.find(value);
  assert(found != buffers.end() && "only arguments and yielded values have buffers");
  return found->second;
}

Value KernelBuilder::constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

static std::optional<int64_t> known(Value value) { return getConstantIntValue(value); }

Value KernelBuilder::add(Value x, Value y) {
  if (known(x) == 0)
    return y;
  if (known(y) == 0)
    return x;
  return arith::AddIOp::create(b, loc, x, y);
}

Value KernelBuilder::sub(Value x, Value y) { return known(y) == 0 ? x : arith::SubIOp::create(b, loc, x, y); }

Value KernelBuilder::mul(Value x, Value y) {
  if (known(x) == 1)
    return y;
  if (known(y) == 1)
    return x;
  if (known(x) == 0 || known(y) == 0)
    return constant(0);
  return arith::MulIOp::create(b, loc, x, y);
}

Value KernelBuilder::minimum(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value KernelBuilder::maximum(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
Value KernelBuilder::divide(Value x, Value y) { return b.createOrFold<arith::DivUIOp>(loc, x, y); }
Value KernelBuilder::remainder(Value x, Value y) { return b.createOrFold<arith::RemUIOp>(loc, x, y); }
Value KernelBuilder::ceilDiv(Value x, int64_t y) { return divide(add(x, constant(y - 1)), constant(y)); }

Value KernelBuilder::index(const SizeExpr &size) {
  Value sum;
  for (const auto &[monomial, coefficient] : size.polynomial()) {
    Value term = constant(coefficient);
    for (const SizeAtom &atom : monomial) {
      unsigned number = 0;
      bool isSymbol = atom.kind() == SizeAtom::Kind::Symbol && atom.name().starts_with("d") &&
                      !atom.name().drop_front().getAsInteger(10, number);
      assert(isSymbol && number < sizes.size() && "kernel sizes are polynomials over the kernel's own symbols");
      (void)isSymbol;
      term = mul(term, sizes[number]);
    }
    sum = sum ? add(sum, term) : term;
  }
  return sum ? sum : constant(0);
}

void KernelBuilder::loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> emit) {
  auto loop = scf::ForOp::create(b, loc, from, to, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emit(loop.getInductionVar());
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> emit) {
  if (!condition)
    return emit();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit();
}

void KernelBuilder::loopNest(ArrayRef<SizeExpr> nest, llvm::function_ref<void(ArrayRef<Value>)> emit) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> indices;
  Value zero = constant(0), one = constant(1);
  for (const SizeExpr &size : nest) {
    if (size.isConstant(1)) {
      indices.push_back(zero);
      continue;
    }
    auto loop = scf::ForOp::create(b, loc, zero, index(size), one);
    b.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
  }
  emit(indices);
}

SmallVector<Value> KernelBuilder::delinearize(Value linear, ArrayRef<SizeExpr> shape) {
  SmallVector<Value> indices(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    if (i == 0) {
      indices[i] = linear;
    } else if (shape[i].isConstant(1)) {
      indices[i] = constant(0);
    } else {
      Value size = index(shape[i]);
      indices[i] = remainder(linear, size);
      linear = divide(linear, size);
    }
  }
  return indices;
}

Value KernelBuilder::linearize(ArrayRef<Value> indices, ArrayRef<SizeExpr> shape) {
  Value result = constant(0);
  for (auto [position, size] : llvm::zip_equal(indices, shape))
    result = add(mul(result, index(size)), position);
  return result;
}

Value KernelBuilder::load(Value buffer, Value position, Type element) {
  return fromStorage(b, loc, memref::LoadOp::create(b, loc, buffer, position), element);
}

void KernelBuilder::store(Value value, Value buffer, Value position, Type element) {
  memref::StoreOp::create(b, loc, toStorage(b, loc, value, element), buffer, position);
}

Value KernelBuilder::addressOf(Value buffer, Value position) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  Value place = add(start, mul(position, constant(static_cast<int64_t>(element.getIntOrFloatBitWidth() / 8))));
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), place);
  return LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), ValueRange{number});
}

Value KernelBuilder::cell(Type type) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.front());
  return memref::AllocaOp::create(b, loc, MemRefType::get({}, type));
}

void KernelBuilder::failIf(Value condition, int32_t code) {
  if (!status) {
    status = cell(b.getI32Type());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(status.getDefiningOp());
    memref::StoreOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(DS_OK)), status);
  }
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  memref::StoreOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(code)), status);
}

Value KernelBuilder::checkedIndex(Value raw, Value size) {
  Value zero = constant(0);
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, raw, zero);
  Value wrapped = arith::SelectOp::create(b, loc, isNegative, arith::AddIOp::create(b, loc, raw, size), raw);
  Value outside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, wrapped, size);
  failIf(outside, DS_INDEX_OUT_OF_RANGE);
  return arith::SelectOp::create(b, loc, outside, zero, wrapped);
}

Value KernelBuilder::scratchOf(Type type, const SizeExpr &elements) {
  SizeExpr bytes = elements * SizeExpr(static_cast<int64_t>(type.getIntOrFloatBitWidth() / 8)), taken = scratchSize;
  scratchSize = taken + bytes;
  function->setAttr("ds.scratch", toAttribute(b.getContext(), scratchSize));
  return memref::ViewOp::create(b, loc, MemRefType::get({ShapedType::kDynamic}, type), scratch, index(taken),
                                ValueRange{index(elements)});
}

void KernelBuilder::setGrid(const SizeExpr &items, int64_t grain) {
  function->setAttr("ds.grid", toAttribute(b.getContext(), items));
  function->setAttr("ds.grain", b.getI64IntegerAttr(grain));
}

void KernelBuilder::setArithmetic(StringRef arithmetic) {
  if (!arithmetic.empty())
    function->setAttr("ds.arithmetic", b.getStringAttr(arithmetic));
}

void KernelBuilder::setFlops(const SizeExpr &flops) {
  function->setAttr("ds.flops", toAttribute(b.getContext(), flops));
}

/// Bytes of each operand and each result, where some are touched in part.
void KernelBuilder::recordTraffic() {
  SmallVector<Value> arguments(kernel.getBody().getArguments());
  ds::Traffic traffic = ds::trafficOf(body, arguments, results, [&](Value value) { return sizesOf(value); });
  auto record = [&](StringRef name, ArrayRef<Value> values, ArrayRef<std::optional<SizeExpr>> counts) {
    if (llvm::none_of(counts, [](const auto &count) { return count.has_value(); }))
      return;
    SmallVector<Attribute> bytes;
    for (auto [value, count] : llvm::zip_equal(values, counts)) {
      SizeExpr width = ds::bytesOfElement(elementOf(value));
      bytes.push_back(count ? toAttribute(b.getContext(), *count * width) : b.getUnitAttr());
    }
    function->setAttr(name, b.getArrayAttr(bytes));
  };
  record("ds.reads", arguments, traffic.reads);
  record("ds.writes", results, traffic.writes);
}

void KernelBuilder::finish() {
  recordTraffic();
  Value result = status ? memref::LoadOp::create(b, loc, status).getResult()
                        : arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(DS_OK)).getResult();
  func::ReturnOp::create(b, loc, result);
}

SizeVector KernelBuilder::strides(ArrayRef<SizeExpr> shape) {
  SizeVector result(shape.size());
  SizeExpr stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    result[i] = stride;
    stride = stride * shape[i];
  }
  return result;
}

View KernelBuilder::broadcastView(Value buffer, ArrayRef<SizeExpr> own, ArrayRef<SizeExpr> shape) {
  View view{buffer, 0, {}};
  SizeVector ownStrides = strides(own);
  size_t offset = shape.size() - own.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    Axis axis{shape[i], 0, false, std::nullopt};
    if (i >= offset) {
      const SizeExpr &size = own[i - offset];
      axis.stride = ownStrides[i - offset];
      axis.present = !size.isConstant(1) || shape[i].isConstant(1);
      if (axis.present && size != shape[i])
        axis.guard = size;
    }
    view.axes.push_back(axis);
  }
  return view;
}

Value KernelBuilder::strideOf(const Axis &axis) {
  Value stride = index(axis.stride);
  if (!axis.guard)
    return stride;
  Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index(*axis.guard), constant(1));
  return arith::SelectOp::create(b, loc, isOne, constant(0), stride);
}

Value KernelBuilder::offsetAt(const View &view, ArrayRef<unsigned> which, ArrayRef<Value> indices) {
  Value offset = index(view.offset);
  for (auto [axis, position] : llvm::zip_equal(which, indices))
    if (view.axes[axis].present)
      offset = add(offset, mul(position, strideOf(view.axes[axis])));
  return offset;
}

Value KernelBuilder::memrefOf(const View &view, Value offset, ArrayRef<unsigned> which, ArrayRef<Value> lengths) {
  SmallVector<OpFoldResult> shape, steps;
  SmallVector<int64_t> staticShape, staticSteps;
  for (auto [position, number] : llvm::enumerate(which)) {
    const Axis &axis = view.axes[number];
    if (!axis.present)
      continue;
    auto fold = [&](const SizeExpr &size) -> OpFoldResult {
      if (auto constant = size.constant())
        return b.getIndexAttr(*constant);
      return index(size);
    };
    shape.push_back(lengths.empty() ? fold(axis.size) : getAsOpFoldResult(lengths[position]));
    // Strides of 0 are not allowed as static layout; dynamic ones may be anything.
    steps.push_back(axis.guard ? OpFoldResult(strideOf(axis)) : fold(axis.stride));
    staticShape.push_back(getConstantIntValue(shape.back()).value_or(ShapedType::kDynamic));
    staticSteps.push_back(axis.guard ? ShapedType::kDynamic : axis.stride.constant().value_or(ShapedType::kDynamic));
  }
  auto flat = cast<MemRefType>(view.buffer.getType());
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, staticSteps);
  auto type = MemRefType::get(staticShape, flat.getElementType(), layout);
  return memref::ReinterpretCastOp::create(b, loc, type, view.buffer, OpFoldResult(offset), shape, steps);
}

} // namespace deepstride
