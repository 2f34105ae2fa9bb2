// Emits elementwise ops on vectors of an anchor's result. Operands are read where the vector lies: as vectors, or as
// one number for all of its lanes.
#include "codegen/kernel/Epilogue.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

Epilogue::Epilogue(KernelBuilder &k, Operation *anchor)
    : k(k), anchor(anchor), shape(k.sizesOf(anchor->getResult(0))), rowAxes(cast<ds::Anchor>(anchor).rowAxes()),
      element(k.elementOf(anchor->getResult(0))), columns(k.index(product(ArrayRef(shape).drop_front(rowAxes)))) {
  for (Operation *op : k.ops())
    if (auto linear = dyn_cast<ds::LinearOp>(op); linear && op != anchor)
      (isStoredByOther(linear.getResult()) ? beside : other) = linear;
    else if (auto reduce = dyn_cast<ds::ReduceOp>(op); reduce && ds::extremesOf(op))
      extremes.push_back(reduce);
    else if (op != anchor && !isa<ds::ConstantOp>(op) && !isPrologue(op) && !isSharedNumber(op->getResult(0)) &&
             !ds::isWindowOp(op) && !ds::insertedResult(op))
      ops.push_back(op);
}

LogicalResult Epilogue::verify() {
  for (Operation *op : {anchor, other.getOperation()})
    for (Value value : op ? op->getOperands() : ValueRange())
      if (!isa<BlockArgument>(value) && !isPrologue(value.getDefiningOp()))
        return op->emitOpError("expects operands in memory, found what its kernel computes");
  if (other && (!isa<ds::LinearOp>(anchor) || !ds::arePair(other, cast<ds::LinearOp>(anchor)) ||
                k.sizesOf(other.getResult()) != shape))
    return other.emitOpError("shares a kernel with what is no product of the same input and layout");
  if (beside && (other || !ops.empty() || !extremes.empty()))
    return beside.emitOpError("shares a kernel with a product that ops follow");
  for (ds::ReduceOp op : extremes)
    if (failed(verifyExtreme(op)))
      return failure();
  auto isHeld = [&](Value value) { return ds::isTileElement(k.elementOf(value)); };
  for (auto [number, value] : llvm::enumerate(k.yielded())) {
    bool isStep = isa<ds::LinearOp>(anchor) && isa_and_present<ds::PerElement>(value.getDefiningOp()) && isHeld(value);
    bool areRows = isPrologue(value.getDefiningOp()) && (isStep || value == anchor->getOperand(0)) &&
                   !value.getDefiningOp<ds::QuantizeRowsOp>();
    if (ds::isNorm(value.getDefiningOp()) || areRows || isStoredByOther(value) ||
        llvm::is_contained(extremes, value.getDefiningOp()))
      continue;
    if (isPrologue(value.getDefiningOp()))
      return k.kernel.emitOpError("yields what its product's rows become");
    if (other && value == other.getResult())
      return k.kernel.emitOpError("yields the product that its ops combine with another one");
    Value stored = computedOf(value);
    bool isComputed = stored == anchor->getResult(0) || llvm::is_contained(ops, stored.getDefiningOp());
    if (!isComputed || k.sizesOf(stored) != shape)
      return k.kernel.emitOpError("expects results of the sizes of its anchor");
    if (stored != value && !storedRows(static_cast<unsigned>(number)))
      return value.getDefiningOp()->emitOpError("inserts what the tiles of its kernel do not meet in whole rows");
    if (!isHeld(value))
      return k.kernel.emitOpError("expects results that vectors store, found ") << k.elementOf(value);
  }
  for (Operation *op : ops) {
    auto element = dyn_cast<ds::PerElement>(op);
    // Divisors of integers are looked through for zeros first.
    if (!element || !element.isPointwise() || element.scannedOperand() || isa<ds::BitcastOp>(op))
      return op->emitOpError("cannot be in the kernel of a product");
    Type result = k.elementOf(op->getResult(0));
    if (!ds::isTileElement(result) && !result.isInteger(1))
      return op->emitOpError("expects results that vectors hold, found ") << result;
    for (Value value : op->getOperands()) {
      if (value.getDefiningOp<ds::ConstantOp>())
        continue;
      if (isPrologue(value.getDefiningOp()) && !areScales(value))
        return op->emitOpError("reads what is computed before its kernel's product");
      if (isSharedNumber(value))
        continue;
      if (!ds::tileAccess(k.sizesOf(value), shape, rowAxes) ||
          (ds::isWindowOp(value.getDefiningOp()) && !shownRows(value)))
        return op->emitOpError("has an operand that the tiles of its kernel do not meet in whole rows or columns");
      if (isa<BlockArgument>(value) && !ds::isTileOperand(k.elementOf(value), k.sizesOf(value)))
        return op->emitOpError("expects operands that vectors load, found ") << k.elementOf(value);
    }
  }
  return success();
}

/// Where rows of an operand lie that window ops show.
std::optional<ds::RowWindow> Epilogue::shownRows(Value value) {
  auto shown = k.sizesOf(value) == shape ? operandWindow(k, value) : std::nullopt;
  return shown ? ds::RowWindow::of(shown->window, static_cast<size_t>(rowAxes)) : std::nullopt;
}

/// Where rows of a result are stored.
std::optional<ds::RowWindow> Epilogue::storedRows(unsigned number) {
  auto window = storedWindow(k, number);
  return window ? ds::RowWindow::of(*window, static_cast<size_t>(rowAxes)) : std::nullopt;
}

Value Epilogue::placeIn(const ds::RowWindow &rows, const TilePlace &place) {
  return k.add(k.index(rows.offset), k.add(k.mul(place.row, k.index(rows.stride)), place.column));
}

/// Parts of rows are panels, so that a vector belongs to one.
LogicalResult Epilogue::verifyExtreme(ds::ReduceOp op) {
  auto product = dyn_cast<ds::LinearOp>(anchor);
  Value made = ds::extremesOf(op);
  bool isOfTile = made == anchor->getResult(0) || llvm::is_contained(ops, made.getDefiningOp());
  bool showsPanels = product && product.getPanel() && isa<ds::ReshapeOp>(op.getInput().getDefiningOp()) &&
                     k.sizesOf(op.getInput()).back().isConstant(static_cast<int64_t>(*product.getPanel())) &&
                     k.sizesOf(made) == shape && llvm::is_contained(k.yielded(), op.getResult());
  if (isOfTile && showsPanels)
    return success();
  return op.emitOpError("expects the parts of rows that are panels of its kernel's product");
}

void Epilogue::storeExtremes(const TileArea &area, Value row, int64_t lanes,
                             ArrayRef<llvm::DenseMap<Value, Value>> vectors) {
  if (extremes.empty())
    return;
  int64_t panel = static_cast<int64_t>(*cast<ds::LinearOp>(anchor).getPanel()), ofPanel = panel / lanes;
  Value panels = k.divide(columns, k.constant(panel)), first = k.divide(area.firstColumn, k.constant(panel));
  Value places = k.add(k.mul(k.add(area.firstRow, row), panels), first);
  for (ds::ReduceOp op : extremes) {
    auto combine = [&](Value x, Value y) { return emitCombine(k.b, k.loc, op.getKind(), x, y, k.b.getF32Type()); };
    auto number = llvm::find(k.yielded(), op.getResult()) - k.yielded().begin();
    for (size_t begin = 0; begin < vectors.size(); begin += static_cast<size_t>(ofPanel)) {
      Value extreme;
      for (const auto &values : vectors.slice(begin, static_cast<size_t>(ofPanel))) {
        Value value = values.at(ds::extremesOf(op));
        extreme = extreme ? combine(extreme, value) : value;
      }
      for (int64_t width = lanes / 2; width >= 1; width /= 2) {
        Value low = vector::ExtractStridedSliceOp::create(k.b, k.loc, extreme, {0}, {width}, {1});
        Value high = vector::ExtractStridedSliceOp::create(k.b, k.loc, extreme, {width}, {width}, {1});
        extreme = combine(low, high);
      }
      Value place = k.add(places, k.constant(static_cast<int64_t>(begin) / ofPanel));
      k.store(vector::ExtractOp::create(k.b, k.loc, extreme, 0), k.outputBuffer(static_cast<unsigned>(number)), place,
              k.b.getF32Type());
    }
  }
}

void Epilogue::reserve(int64_t rows, int64_t width, bool inPieces) {
  // A piece is read in whole vectors, which go beyond the last row.
  if (!ops.empty() || takesExtremes() || inPieces)
    staging = k.scratchOf(storageType(element), SizeExpr(rows * width + (inPieces ? width : 0)));
  if (other)
    otherStaging = k.scratchOf(storageType(element), SizeExpr(rows * width));
}

std::function<void(Value, int64_t, Value, Value)> Epilogue::stageIn(Value buffer, int64_t width) {
  return [this, buffer, width](Value row, int64_t v, Value value, Value) {
    int64_t lanes = cast<VectorType>(value.getType()).getDimSize(0);
    Value position = k.add(k.mul(row, k.constant(width)), k.constant(v * lanes));
    storeLanes(k, toStorage(k.b, k.loc, value, element), buffer, position, {});
  };
}

Value Epilogue::staged(Value buffer, Value position, int64_t lanes) {
  Value raw = loadLanes(k, VectorType::get({lanes}, storageType(element)), buffer, position, {});
  return fromStorage(k.b, k.loc, raw, element);
}

void Epilogue::emit(const TileArea &area, int64_t lanes, llvm::function_ref<void(TileSink)> product,
                    llvm::function_ref<void(TileSink)> companion) {
  auto at = [&](Value row, int64_t v, Value mask) {
    return TilePlace{k.add(area.firstRow, row), k.add(area.firstColumn, k.constant(v * lanes)), mask};
  };
  if (!staging)
    return product([&](Value row, int64_t v, Value value, Value mask) { store(value, at(row, v, mask)); });
  product(stageIn(staging, area.width));
  if (other)
    companion(stageIn(otherStaging, area.width));
  k.loop(k.constant(0), area.rows, k.constant(1), [&](Value row) {
    auto drain = [&](bool isFull) {
      SmallVector<llvm::DenseMap<Value, Value>> vectors;
      for (int64_t v = 0; v < area.width / lanes; ++v) {
        Value position = k.add(k.mul(row, k.constant(area.width)), k.constant(v * lanes));
        Value value = staged(staging, position, lanes);
        Value mask = isFull ? Value() : lanesBelow(k, lanes, k.sub(area.columns, k.constant(v * lanes)));
        vectors.push_back(apply(value, at(row, v, mask), other ? staged(otherStaging, position, lanes) : Value()));
      }
      storeExtremes(area, row, lanes, vectors);
    };
    if (!area.columns)
      return drain(true);
    Value isFull = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, area.columns, k.constant(area.width));
    auto branch = scf::IfOp::create(k.b, k.loc, isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    drain(true);
    k.b.setInsertionPointToStart(branch.elseBlock());
    drain(false);
  });
}

void Epilogue::emitPieces(const TileArea &area, int64_t lanes, llvm::function_ref<void(TileSink)> product,
                          TilePieces pieces) {
  assert(staging && !other && extremes.empty() && "room is made for areas in pieces");
  product(stageIn(staging, area.width));
  Value zero = k.constant(0), one = k.constant(1), size = k.constant(lanes);
  pieces([&](const TilePiece &piece) {
    k.loop(zero, area.rows, one, [&](Value row) {
      Value target = k.add(k.add(area.firstRow, row), piece.rowOffset);
      Value from = k.add(k.mul(row, k.constant(area.width)), piece.staged);
      k.loop(zero, piece.columns, size, [&](Value at) {
        Value column = k.add(piece.firstColumn, at), mask = lanesBelow(k, lanes, k.sub(piece.columns, at));
        apply(staged(staging, k.add(from, at), lanes), {target, column, mask});
      });
    });
  });
}

/// What an op reads from memory, of the shape of `like`.
Value Epilogue::operand(Value value, const TilePlace &place, Value like) {
  auto vector = dyn_cast<VectorType>(like.getType());
  Type type = k.elementOf(value);
  auto spread = [&](Value scalar) -> Value {
    return vector ? vector::BroadcastOp::create(k.b, k.loc, vector.clone(scalar.getType()), scalar) : scalar;
  };
  if (auto constant = value.getDefiningOp<ds::ConstantOp>())
    return spread(
        scalarConstant(k.b, k.loc, type, cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>()));
  if (areScales(value))
    return spread(k.load(scales.first, k.sub(place.row, scales.second), type));
  Value position = k.constant(0), buffer;
  ds::TileAccess access = accessOf(value);
  switch (access) {
  case ds::TileAccess::whole:
    if (auto shown = ds::isWindowOp(value.getDefiningOp()) ? operandWindow(k, value) : std::nullopt) {
      buffer = k.bufferOf(shown->argument);
      position = placeIn(*shownRows(value), place);
    } else {
      position = k.add(k.mul(place.row, columns), place.column);
    }
    break;
  case ds::TileAccess::scalar: break;
  case ds::TileAccess::columns: position = place.column; break;
  case ds::TileAccess::rows: position = place.row; break;
  case ds::TileAccess::lastRows: position = k.remainder(place.row, k.index(shape[rowAxes - 1])); break;
  }
  if (!buffer)
    buffer = isSharedNumber(value) ? numbers->at(value) : k.bufferOf(value);
  bool isVector = vector && (access == ds::TileAccess::whole || access == ds::TileAccess::columns);
  if (!isVector)
    return spread(k.load(buffer, position, type));
  Value raw = loadLanes(k, vector.clone(storageType(type)), buffer, position, place.mask);
  return fromStorage(k.b, k.loc, raw, type);
}

void Epilogue::store(Value value, const TilePlace &place) {
  if (!ops.empty() && computeType(element) != storageType(element)) // what follows sees what memory would hold
    value = fromStorage(k.b, k.loc, toStorage(k.b, k.loc, value, element), element);
  apply(value, place);
}

llvm::DenseMap<Value, Value> Epilogue::apply(Value value, const TilePlace &place, Value companion) {
  llvm::DenseMap<Value, Value> values = {{anchor->getResult(0), value}};
  if (other)
    values[other.getResult()] = companion;
  auto of = [&](Value wanted) {
    Value &found = values[wanted];
    if (!found)
      found = operand(wanted, place, value);
    return found;
  };
  for (Operation *op : ops) {
    SmallVector<Value> operands;
    SmallVector<Type> elements;
    for (Value wanted : op->getOperands()) {
      operands.push_back(of(wanted));
      elements.push_back(k.elementOf(wanted));
    }
    values[op->getResult(0)] = emitPointwise(k.b, k.loc, op, operands, elements, k.elementOf(op->getResult(0)));
  }
  // All is computed before anything is stored: a result may lie where an operand did.
  for (auto [number, yielded] : llvm::enumerate(k.yielded())) {
    if (isPrologue(yielded.getDefiningOp()) || isStoredByOther(yielded) ||
        llvm::is_contained(extremes, yielded.getDefiningOp()))
      continue;
    Type type = k.elementOf(yielded);
    Value computed = values[computedOf(yielded)];
    Value position = ds::insertedResult(yielded.getDefiningOp())
                         ? placeIn(*storedRows(static_cast<unsigned>(number)), place)
                         : k.add(k.mul(place.row, columns), place.column);
    if (isa<VectorType>(value.getType()))
      storeLanes(k, toStorage(k.b, k.loc, computed, type), k.outputBuffer(number), position, place.mask);
    else
      k.store(computed, k.outputBuffer(number), position, type);
  }
  return values;
}

} // namespace deepstride
