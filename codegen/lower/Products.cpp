// Kernels of ds.linear and ds.matmul. Products go through micro-kernels over column panels, which are packed when the
// package is written (weights) or into scratch (states, activations); the reference, and types that no micro-kernel
// has, are plain loops. Threads split columns and batches, never the inner dimension.
#include "codegen/kernel/Epilogue.h"
#include "codegen/kernel/Prologue.h"
#include "codegen/kernel/SharedNumbers.h"
#include "codegen/lower/PlainProducts.h"
#include "codegen/tile/RowDigits.h"
#include "codegen/tile/Squares.h"
#include "codegen/tile/Widen.h"

using namespace mlir;

namespace deepstride {

static SizeExpr panelCount(const SizeExpr &columns, int64_t panel) { return SizeExpr::ceilDiv(columns, panel); }

using ds::ProductTypes;

/// The scales and zero points of one panel, as its product needs them; `end` is that of the thread's panels.
static PanelCodes codesOf(KernelBuilder &k, ds::LinearOp op, Value number, Value end) {
  PanelCodes codes;
  if (!op.getScales())
    return codes;
  Value row = k.constant(*op.getPanel()), elements = k.mul(k.index(k.sizesOf(op.getScales())[1]), row);
  codes.offset = k.mul(number, elements);
  codes.apart = elements;
  codes.last = k.sub(k.mul(end, elements), row);
  codes.group = op.getGroup().value_or(0);
  if (codes.group)
    codes.scales = k.bufferOf(op.getScales());
  if (op.getZeroPoints())
    codes.zeroPoints = k.bufferOf(op.getZeroPoints());
  return codes;
}

namespace {
/// A product of a kernel, whose products have their rows in common: how it multiplies them, and its scratch.
class LinearProduct {
public:
  LinearProduct(KernelBuilder &k, ds::LinearOp op)
      : k(k), op(op), epilogue(k, op),
        types{k.elementOf(op.getInput()), k.elementOf(op.getWeight()), k.elementOf(op.getResult())} {
    SizeVector shape = k.sizesOf(op.getInput()), weightShape = k.sizesOf(op.getWeight());
    rowsSize = product(ArrayRef(shape).drop_back());
    depthSize = shape.back();
    columnsSize = op.getColumns()      ? SizeExpr(*op.getColumns())
                  : op.getTransposed() ? weightShape.front()
                                       : weightShape.back();
  }

  LogicalResult verify() { return epilogue.verify(); }
  /// Chooses the micro-kernel; none where the product is one of plain loops.
  LogicalResult choose();
  bool isPlain() const { return !micro; }
  bool isPacked() const { return isPackedWeight; }
  StringRef arithmetic() const { return (wide && isFitted(*wide) ? wide : micro)->arithmetic(); }
  SizeExpr panels() const { return panelCount(columnsSize, schedule.getColumns()); }
  /// Of an element of the rows.
  SizeExpr flops() const { return columnsSize * SizeExpr(epilogue.companion() ? 4 : 2); }
  void readScales(Value scales, Value firstRow) { epilogue.readScales(scales, firstRow); }

  void readNumbers(const SharedNumbers &numbers) { epilogue.readNumbers(numbers); }
  void reserve();
  void lowerPlain() { lowerPlainLinear(k, op, types, weightMatrix(), rowsSize, depth, k.index(columnsSize), epilogue); }
  /// All rows by panels that are packed by the thread that multiplies, one for all rows.
  void multiplyUnpacked(Value input);
  /// All rows by packed panels [begin, end).
  void multiplyRows(Value input, Value begin, Value end) {
    sweep([&](Value firstRow, Value count) { multiplyPanels(rowsOf(input, firstRow), firstRow, count, begin, end); });
  }
  /// Rows [firstRow, firstRow + count), which `given` holds, by packed panels [begin, end).
  void multiplyPanels(const Matrix &given, Value firstRow, Value count, Value begin, Value end);
  bool usesSquares() const { return squares != nullptr; }
  void release() { squares->release(k); }

private:
  using PanelOf = llvm::function_ref<Panel(ds::LinearOp)>; // prepares it, too

  Matrix rowsOf(Value input, Value firstRow) { return {input, k.mul(firstRow, depth), depth, k.constant(1)}; }
  Matrix weightMatrix() {
    Value one = k.constant(1), zero = k.constant(0), weight = k.bufferOf(op.getWeight());
    return op.getTransposed() ? Matrix{weight, zero, one, depth} : Matrix{weight, zero, k.index(columnsSize), one};
  }
  void sweep(llvm::function_ref<void(Value first, Value count)> body) {
    Value rows = k.index(rowsSize), most = k.constant(schedule.getSweep());
    k.loop(k.constant(0), rows, most, [&](Value first) { body(first, k.minimum(most, k.sub(rows, first))); });
  }
  void productOf(ds::LinearOp of, const MicroKernel &by, const Matrix &lhs, Value count, Value first, Value here,
                 const Panel &panel, TileSink sink);
  /// By `together` panels from number `number` on. Where `isMany`, `widened` rows meet a panel that is widened.
  void multiply(const Matrix &lhs, Value firstRow, Value count, Value number, PanelOf panelOf, int64_t together = 1,
                Value isMany = {}, const Matrix &widened = {});
  Panel panelAt(ds::LinearOp of, Value number, Value end, int64_t together = 1);
  Value multiplyTogether(const Matrix &lhs, Value firstRow, Value count, Value begin, Value end);
  bool hasDigits() const {
    auto *vectors = llvm::dyn_cast<VectorKernel>(micro.get());
    return vectors && vectors->digits() > 1;
  }
  int64_t stepsOfPanel() { return cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1); }
  Value flag(bool value) { return arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(value)); }
  /// The rows as words, made for the first panel that asks for them.
  Matrix rowsAsWords(const Matrix &lhs, Value count);

  KernelBuilder &k;
  ds::LinearOp op;
  Epilogue epilogue;
  ProductTypes types;
  SizeExpr rowsSize = 0, depthSize = 0, columnsSize = 0;
  bool isPackedWeight = false;
  std::unique_ptr<MicroKernel> micro, wide, words; // as stored; of many rows; of those whose panels do not fit
  const SquareKernel *squares = nullptr;
  std::optional<RowDigits> digits; // of rows that are multiplied so
  ds::ScheduleAttr schedule;
  Value depth;
  Value packedRows, packedPanel, numbers, places, wideRows, wordNumbers, wordRows; // scratch
  Value areRowsWords;                                                              // whether wordRows are written
};
} // namespace

LogicalResult LinearProduct::choose() {
  isPackedWeight = op.getPanel().has_value();
  depth = k.index(depthSize);
  if (op.holdsHalfBytes())
    types.right = k.b.getIntegerType(4);
  auto kernel = scheduledKernel(k, op, types, isPackedWeight);
  if (failed(kernel))
    return failure();
  micro = std::move(*kernel);
  if (isPackedWeight && (!micro || micro->panel != types.right ||
                         static_cast<int64_t>(*op.getPanel()) != ds::scheduleOf(op).getColumns() ||
                         micro->interleave != static_cast<int64_t>(op.getInterleave())))
    return op.emitOpError("packed weights need a schedule of their layout, found ")
           << types.left << " by " << types.right << " in panels of " << *op.getPanel() << ", interleaved by "
           << static_cast<int64_t>(op.getInterleave());
  if (!micro)
    return success();
  schedule = ds::scheduleOf(op);
  squares = llvm::dyn_cast<SquareKernel>(micro.get());
  if (hasDigits() && (ShapedType::isDynamic(stepsOfPanel()) || op.getGroup().value_or(0) % micro->interleave != 0))
    return op.emitOpError("is scheduled as digits, which meet a known number of steps in groups of whole steps of ")
           << micro->interleave << ", found groups of " << op.getGroup().value_or(0);
  // With many rows, what is stored narrow becomes wide once, in scratch, not once for each block of rows.
  auto few = rowsSize.constant();
  if (!isPackedWeight || schedule.getFew() <= 0 || !(k.target.manyRows || !few || *few > schedule.getFew()))
    return success();
  wide = kernelOfWidened(k.target, schedule.getKernel(), types, depthSize);
  if (wide && isFitted(*wide))
    words = kernelOfWords(k.target, types);
  return success();
}

void LinearProduct::reserve() {
  int64_t width = schedule.getColumns(), rowsPerSweep = schedule.getSweep();
  if (squares)
    packedRows = reserveSquares(k, *squares, depthSize, rowsSize);
  if (!squares || epilogue.companion() || epilogue.takesExtremes())
    epilogue.reserve(rowsPerSweep, width);
  if (hasDigits())
    digits.emplace(k, llvm::cast<VectorKernel>(*micro),
                   DigitShape{static_cast<int64_t>(op.getGroup().value_or(0)), stepsOfPanel(), width, rowsPerSweep,
                              op.getZeroPoints() != nullptr},
                   depthSize);
  if (!isPackedWeight)
    packedPanel = k.scratchOf(storageType(micro->panel), panelSpace(*micro, depthSize, width));
  if (!wide)
    return;
  SizeExpr space = widenedPanelSpace(*micro, *wide, depthSize, width);
  numbers = k.scratchOf(storageType(wide->panel), space);
  SizeExpr rowsSpace = SizeExpr(rowsPerSweep) * widenedSpace(*micro, words ? *words : *wide, depthSize);
  if (words) {
    places = k.scratchOf(k.b.getI32Type(), SizeExpr::floorDiv(space, width * wide->interleave));
    wordNumbers = k.scratchOf(storageType(words->panel), widenedPanelSpace(*micro, *words, depthSize, width));
    wordRows = k.scratchOf(storageType(words->left), rowsSpace);
    areRowsWords = k.cell(k.b.getI1Type());
  }
  if (types.left != wide->left)
    wideRows = k.scratchOf(storageType(wide->left), rowsSpace);
}

/// The product of rows with a panel of `of`: this product, or its companion.
void LinearProduct::productOf(ds::LinearOp of, const MicroKernel &by, const Matrix &lhs, Value count, Value first,
                              Value here, const Panel &panel, TileSink sink) {
  int64_t lanes = by.lanes();
  Value along = widenedDepth(k, *micro, by, depth);
  auto stored = VectorType::get({lanes}, storageType(types.result));
  Value bias = of.getBias() ? k.bufferOf(of.getBias()) : Value();
  int64_t rowBlock = std::min(schedule.getRows(), getConstantIntValue(count).value_or(schedule.getRows()));
  emitPanelProduct(
      k, by, lhs, count, along, panel, here, std::max<int64_t>(rowBlock, 1),
      [&](Value row, int64_t v, Value value, Value mask) {
        Value column = k.add(first, k.constant(v * lanes));
        if (op.getScales() && !op.getGroup()) { // one scale for all of K; panels of scales are whole
          Value scale = loadLanes(k, stored, k.bufferOf(of.getScales()), column, {});
          value = emitBinary(k.b, k.loc, ds::BinaryKind::mul, value, scale, types.result, types.result);
        }
        if (bias) {
          Value added = fromStorage(k.b, k.loc, loadLanes(k, stored, bias, column, mask), types.result);
          value = emitBinary(k.b, k.loc, ds::BinaryKind::add, value, added, types.result, types.result);
        }
        sink(row, v, value, mask);
      },
      k.target.manyRows);
}

void LinearProduct::multiply(const Matrix &lhs, Value firstRow, Value count, Value number, PanelOf panelOf,
                             int64_t together, Value isMany, const Matrix &widened) {
  int64_t width = schedule.getColumns();
  Value first = k.mul(number, k.constant(width));
  // Where the width divides the columns, no panel is cut.
  Value here = SizeExpr::mod(columnsSize, width).isConstant(0) ? Value() : k.sub(k.index(columnsSize), first);
  auto of = [&](ds::LinearOp op) {
    return [&, op](TileSink sink) {
      Panel panel = panelOf(op);
      auto asStored = [&] { productOf(op, *micro, lhs, count, first, here, panel, sink); };
      if (!isMany)
        return asStored();
      emitWidenPanel(k, *micro, *wide, depth, panel, numbers, places, isMany, [&](const Panel *wider) {
        if (wider)
          return productOf(op, *wide, widened, count, first, here, *wider, sink);
        if (!words)
          return asStored();
        emitWidenPanel(k, *micro, *words, depth, panel, wordNumbers, {}, isMany, [&](const Panel *inWords) {
          if (!inWords)
            return asStored();
          productOf(op, *words, rowsAsWords(lhs, count), count, first, here, *inWords, sink);
        });
      });
    };
  };
  epilogue.emit({firstRow, count, first, here, width * together}, micro->lanes(), of(op), of(epilogue.companion()));
}

Matrix LinearProduct::rowsAsWords(const Matrix &lhs, Value count) {
  Matrix rows{wordRows, k.constant(0), widenedDepth(k, *micro, *words, depth), k.constant(1)};
  Value areMissing = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq,
                                           memref::LoadOp::create(k.b, k.loc, areRowsWords), flag(false));
  auto branch = scf::IfOp::create(k.b, k.loc, areMissing);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  emitWidenRows(k, *micro, *words, lhs, count, depth, wordRows);
  memref::StoreOp::create(k.b, k.loc, flag(true), areRowsWords);
  return rows;
}

/// Panels from number `number` on, before `end`.
Panel LinearProduct::panelAt(ds::LinearOp of, Value number, Value end, int64_t together) {
  int64_t width = schedule.getColumns();
  Value one = k.constant(1), elements = panelElements(k, *micro, depth, width);
  Value next = k.minimum(k.add(number, k.constant(together)), k.sub(end, one));
  Panel panel{k.bufferOf(of.getWeight()), k.mul(number, elements), width / micro->lanes() * together,
              k.mul(next, elements), codesOf(k, of, number, end)};
  panel.together = together;
  return panel;
}

/// A row of a panel is as many chains of multiply-adds as the panel has vectors, fewer than the units take. So few rows
/// meet several panels at a time, but with vectors of 512 bits: codes of 4 bits took twice as long there (Zen 5).
/// Yields the first panel of those that are left.
Value LinearProduct::multiplyTogether(const Matrix &lhs, Value firstRow, Value count, Value begin, Value end) {
  // A multiply-add takes four cycles, and what loads and converts a vector of the panel about one. More chains than
  // that would take the registers that conversions need.
  constexpr int64_t vectorsAtOnce = 4, mostRows = 2;
  int64_t vectors = schedule.getColumns() / micro->lanes();
  if (squares || k.target.manyRows || micro->lanes() > 8 || !isa<FloatType>(micro->accumulator.getElementType()))
    return begin;
  auto known = rowsSize.constant();
  Value left = begin;
  int64_t together = llvm::divideCeil(vectorsAtOnce, vectors);
  for (int64_t rows = 1; rows <= mostRows && together > 1; ++rows) {
    if (known && *known % schedule.getSweep() != rows)
      continue;
    Value isHere = k.b.createOrFold<arith::CmpIOp>(k.loc, arith::CmpIPredicate::eq, count, k.constant(rows));
    auto branch = scf::IfOp::create(k.b, k.loc, left.getType(), isHere, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    Value size = k.constant(together), here = k.constant(rows);
    Value whole = k.sub(end, k.remainder(k.maximum(k.sub(end, begin), k.constant(0)), size));
    k.loop(begin, whole, size, [&](Value number) {
      multiply(
          lhs, firstRow, here, number, [&](ds::LinearOp of) { return panelAt(of, number, end, together); }, together);
    });
    scf::YieldOp::create(k.b, k.loc, whole);
    k.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k.b, k.loc, left);
    left = branch.getResult(0);
    k.b.setInsertionPointAfter(branch);
  }
  return left;
}

void LinearProduct::multiplyUnpacked(Value input) {
  int64_t width = schedule.getColumns();
  Value zero = k.constant(0), columns = k.index(columnsSize);
  k.loop(k.begin, k.end, k.constant(1), [&](Value number) {
    emitPackPanel(k, *micro, weightMatrix(), types.right, depth, k.mul(number, k.constant(width)), columns, packedPanel,
                  zero, width);
    sweep([&](Value firstRow, Value count) {
      multiply(rowsOf(input, firstRow), firstRow, count, number,
               [&](ds::LinearOp) { return Panel{packedPanel, zero, width / micro->lanes(), {}}; });
    });
  });
}

void LinearProduct::multiplyPanels(const Matrix &given, Value firstRow, Value count, Value begin, Value end) {
  Value one = k.constant(1), zero = k.constant(0);
  Matrix lhs = squares  ? emitPackSquares(k, *squares, given, types.left, count, depth, packedRows)
               : digits ? digits->emit(given, count, depth)
                        : given;
  Value least = k.constant(k.target.manyRows ? 0 : schedule.getFew());
  Value isMany = wide ? k.b.createOrFold<arith::CmpIOp>(k.loc, arith::CmpIPredicate::ugt, count, least) : Value();
  Matrix widened = lhs;
  if (words)
    memref::StoreOp::create(k.b, k.loc, flag(false), areRowsWords);
  if (wideRows) {
    widened = {wideRows, zero, widenedDepth(k, *micro, *wide, depth), one};
    auto branch = scf::IfOp::create(k.b, k.loc, isMany);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    emitWidenRows(k, *micro, *wide, lhs, count, depth, wideRows);
  }
  k.loop(multiplyTogether(lhs, firstRow, count, begin, end), end, one, [&](Value number) {
    multiply(
        lhs, firstRow, count, number, [&](ds::LinearOp of) { return panelAt(of, number, end); }, 1, isMany, widened);
  });
}

LogicalResult lowerLinear(KernelBuilder &k, ds::LinearOp op) {
  Prologue prologue(k, op);
  std::vector<std::unique_ptr<LinearProduct>> products;
  products.push_back(std::make_unique<LinearProduct>(k, op));
  for (Operation *other : k.ops())
    if (auto beside = dyn_cast<ds::LinearOp>(other); beside && ds::areBeside(op, beside, k.yielded()))
      products.push_back(std::make_unique<LinearProduct>(k, beside));
  LinearProduct &first = *products.front();
  for (auto &product : products)
    if (failed(product->verify()))
      return failure();
  if ((prologue && failed(prologue.verify())) || failed(verifySharedNumbers(k)))
    return failure();
  SizeVector shape = k.sizesOf(op.getInput());
  SizeExpr rowsSize = product(ArrayRef(shape).drop_back()), flops = 0;
  for (auto &product : products)
    flops = flops + product->flops();
  k.setFlops(rowsSize * shape.back() * flops);
  Value input = prologue ? Value() : k.bufferOf(op.getInput()), one = k.constant(1), zero = k.constant(0);
  for (auto &product : products)
    if (failed(product->choose()))
      return failure();
  if (first.isPlain()) {
    first.lowerPlain();
    return success();
  }
  k.setArithmetic(first.arithmetic());
  SizeExpr panels = 0;
  for (auto &product : products)
    panels = panels + product->panels();
  k.setGrid(panels, 1);
  for (auto &product : products)
    product->reserve();
  SharedNumbers numbers = emitSharedNumbers(k);
  prologue.readNumbers(numbers);
  llvm::for_each(products, [&](auto &product) { product->readNumbers(numbers); });
  if (!first.isPacked()) {
    first.multiplyUnpacked(input);
    return success();
  }
  // Each thread has as large a share of one product's panels as of another's, whose panels may take longer.
  Value panelTotal = k.index(panels);
  auto shareOf = [&](LinearProduct &product, Value item) {
    return products.size() > 1 ? k.divide(k.mul(item, k.index(product.panels())), panelTotal) : item;
  };
  auto finish = [&] {
    auto user = llvm::find_if(products, [](auto &product) { return product->usesSquares(); });
    if (user != products.end())
      (*user)->release();
    return success();
  };
  if (!prologue) {
    for (auto &product : products)
      product->multiplyRows(input, shareOf(*product, k.begin), shareOf(*product, k.end));
    return finish();
  }
  // An item is a block of rows and a panel, so that threads share few blocks where there are many.
  prologue.reserve();
  k.setFlops(rowsSize * shape.back() * (flops + SizeExpr(8)));
  Value rows = k.index(rowsSize), rowsPerBlock = k.constant(Prologue::rowsPerBlock);
  k.setGrid(SizeExpr::ceilDiv(rowsSize, Prologue::rowsPerBlock) * panels, 1);
  k.loop(k.divide(k.begin, panelTotal), k.divide(k.add(k.end, k.sub(panelTotal, one)), panelTotal), one,
         [&](Value block) {
           Value firstRow = k.mul(block, rowsPerBlock), firstItem = k.mul(block, panelTotal);
           Value count = k.minimum(rowsPerBlock, k.sub(rows, firstRow));
           Value from = arith::MaxSIOp::create(k.b, k.loc, k.sub(k.begin, firstItem), zero);
           Value to = k.minimum(k.sub(k.end, firstItem), panelTotal);
           Matrix prepared = prologue.emit(firstRow, count, from, to, panelTotal);
           for (auto &product : products) {
             product->readScales(prologue.rowScales(), firstRow);
             product->multiplyPanels(prepared, firstRow, count, shareOf(*product, from), shareOf(*product, to));
           }
         });
  return finish();
}

LogicalResult lowerMatmul(KernelBuilder &k, ds::MatmulOp op) {
  ProductTypes types{k.elementOf(op.getLhs()), k.elementOf(op.getRhs()), k.elementOf(op.getResult())};
  SizeVector left = k.sizesOf(op.getLhs()), right = k.sizesOf(op.getRhs()), shape = k.sizesOf(op.getResult());
  SizeVector batch(shape.begin(), shape.end() - 2);
  SizeExpr rowsSize = shape[shape.size() - 2], columnsSize = shape.back();
  bool transposeLeft = op.getTranspose()[0], transposeRight = op.getTranspose()[1];
  SizeExpr depthSize = transposeLeft ? left[left.size() - 2] : left.back();
  Value rows = k.index(rowsSize), columns = k.index(columnsSize), depth = k.index(depthSize);
  Value one = k.constant(1), zero = k.constant(0);
  Epilogue epilogue(k, op);
  if (failed(epilogue.verify()))
    return failure();

  // Batch axes broadcast; the strides of the whole matrices enter as the innermost batch stride.
  auto batchView = [&](Value value, ArrayRef<SizeExpr> own) {
    View view = k.broadcastView(k.bufferOf(value), own.drop_back(2), batch);
    SizeExpr matrix = own[own.size() - 1] * own[own.size() - 2];
    for (Axis &axis : view.axes)
      axis.stride = axis.stride * matrix;
    return view;
  };
  View leftView = batchView(op.getLhs(), left), rightView = batchView(op.getRhs(), right);
  SmallVector<unsigned> batchAxes;
  for (unsigned axis = 0; axis < batch.size(); ++axis)
    batchAxes.push_back(axis);
  auto matrixOf = [&](const View &view, ArrayRef<Value> at, bool transposed, ArrayRef<SizeExpr> own) {
    Value stride = k.index(own.back());
    return Matrix{view.buffer, k.offsetAt(view, batchAxes, at), transposed ? one : stride, transposed ? stride : one};
  };
  k.setFlops(product(shape) * depthSize * SizeExpr(2));

  auto kernel = scheduledKernel(k, op, types, /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  auto micro = std::move(*kernel);
  if (micro && transposeLeft && !micro->readsStrided())
    return op.emitOpError("16-bit integers are multiplied along rows; the left operand is transposed");
  if (!micro) {
    k.setGrid(product(batch) * rowsSize, 1);
    k.loop(k.begin, k.end, one, [&](Value item) {
      Value row = k.remainder(item, rows);
      SmallVector<Value> at = k.delinearize(k.divide(item, rows), batch);
      Matrix a = matrixOf(leftView, at, transposeLeft, left), c = matrixOf(rightView, at, transposeRight, right);
      k.loop(zero, columns, one, [&](Value column) {
        Value start = scalarConstant(k.b, k.loc, types.result, 0.0);
        Value sum = plainProduct(k, a, c, row, column, depth, types, start);
        epilogue.store(sum, {item, column, {}});
      });
    });
    return success();
  }

  k.setArithmetic(micro->arithmetic());
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  int64_t lanes = micro->lanes(), width = schedule.getColumns(), rowsPerSweep = schedule.getSweep();
  k.setGrid(product(batch) * panelCount(columnsSize, width), 1);
  epilogue.reserve(rowsPerSweep, width);
  Value packed = k.scratchOf(storageType(micro->panel), panelSpace(*micro, depthSize, width));
  Value panels = k.ceilDiv(columns, width);
  k.loop(k.begin, k.end, one, [&](Value item) {
    Value number = k.remainder(item, panels);
    Value matrix = k.divide(item, panels);
    SmallVector<Value> at = k.delinearize(matrix, batch);
    Matrix a = matrixOf(leftView, at, transposeLeft, left), c = matrixOf(rightView, at, transposeRight, right);
    Value first = k.mul(number, k.constant(width));
    emitPackPanel(k, *micro, c, types.right, depth, first, columns, packed, zero, width);
    Value here = k.sub(columns, first);
    k.loop(zero, rows, k.constant(rowsPerSweep), [&](Value sweep) {
      Value count = k.minimum(k.constant(rowsPerSweep), k.sub(rows, sweep));
      Matrix lhs{a.buffer, k.add(a.offset, k.mul(sweep, a.rowStride)), a.rowStride, a.columnStride};
      epilogue.emit({k.add(k.mul(matrix, rows), sweep), count, first, here, width}, lanes, [&](TileSink sink) {
        emitPanelProduct(k, *micro, lhs, count, depth, Panel{packed, zero, width / lanes, {}}, here, schedule.getRows(),
                         sink);
      });
    });
  });
  return success();
}

} // namespace deepstride
