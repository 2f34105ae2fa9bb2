// Emits rows of heads into buffers: copies of what lies elsewhere, norms and rotations on the way.
#include "codegen/kernel/HeadRows.h"

#include "codegen/lower/Copies.h"
#include "codegen/lower/Rows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

std::optional<RowSource> RowSource::of(KernelBuilder &k, Value value) {
  auto rows = ds::headRows(
      value, [](Value from) { return isa<BlockArgument>(from); }, [&](Value from) { return k.sizesOf(from); },
      [](ArrayAttr starts) { return *sizesFromAttribute(starts); });
  if (!rows || rows->window.strides.empty() || !rows->window.strides.back().isConstant(1))
    return std::nullopt;
  for (const ds::RowStep &step : rows->steps)
    for (Value operand : step.op->getOperands().drop_front())
      if (!isa<BlockArgument>(operand))
        return std::nullopt;
  return RowSource(k, std::move(*rows));
}

void RowSource::reserve() {
  if (llvm::any_of(rows.steps, [](const ds::RowStep &step) { return ds::isNorm(step.op); }))
    line = k->scratchOf(storageType(k->elementOf(rows.source)), rows.window.sizes.back());
}

Value RowSource::offsetOf(const ds::StridedWindow &window, ArrayRef<Value> at) {
  Value offset = k->index(window.offset);
  for (auto [index, stride] : llvm::zip(at, window.strides))
    if (!stride.isConstant(0))
      offset = k->add(offset, k->mul(index, k->index(stride)));
  return offset;
}

Matrix RowSource::matrix(ArrayRef<Value> at) {
  return {k->bufferOf(rows.source), offsetOf(rows.window, at), k->index(rows.window.strides[at.size() - 1]),
          k->constant(1)};
}

void RowSource::emit(ArrayRef<Value> at, Value count, Value target, Value offset, Value isAway) {
  const SizeExpr &width = rows.window.sizes.back();
  bool isOnePiece = isStored() && rows.window.strides[at.size() - 1] == width;
  if (isOnePiece && isAway)
    return emitCopyAway(*k, k->bufferOf(rows.source), offsetOf(rows.window, at), target, offset,
                        k->mul(count, k->index(width)), isAway);
  if (isOnePiece)
    return emitCopy(*k, k->bufferOf(rows.source), offsetOf(rows.window, at), target, offset,
                    k->mul(count, k->index(width)), /*isStreamed=*/true);
  k->loop(k->constant(0), count, k->constant(1), [&](Value row) {
    SmallVector<Value> here(at);
    here.back() = k->add(here.back(), row);
    emitRow(here, target, k->add(offset, k->mul(row, k->index(width))));
  });
}

void RowSource::emitRow(ArrayRef<Value> at, Value target, Value offset) {
  const SizeExpr &width = rows.window.sizes.back();
  Value zero = k->constant(0), from = k->bufferOf(rows.source), place = offsetOf(rows.window, at);
  for (const ds::RowStep &step : rows.steps) {
    if (auto rotary = dyn_cast<ds::RotaryOp>(step.op)) {
      emitRotaryRow(*k, rotary,
                    {from, place, target, offset, offsetOf(step.tables[0], at), offsetOf(step.tables[1], at)});
      from = target;
      place = offset;
      continue;
    }
    // Norms walk over whole buffers.
    emitCopy(*k, from, place, line, zero, k->index(width));
    SizeVector shape = {SizeExpr(1), width};
    RowSpace space(*k, shape, {1});
    View view = k->broadcastView(line, shape, shape);
    emitNormRow(*k, space, step.op, view, view, {zero});
    from = line;
    place = zero;
  }
  if (from != target)
    emitCopy(*k, from, place, target, offset, k->index(width));
}

namespace {
/// Reads and writes of a rotation: pairs lie half a row apart, or beside each other.
struct RotaryPairs {
  KernelBuilder &k;
  Type element;
  int64_t half;
  bool isInterleaved;

  Value read(Value buffer, Value place, int64_t width) {
    if (width == 1)
      return k.load(buffer, place, element);
    auto type = VectorType::get({width}, storageType(element));
    return fromStorage(k.b, k.loc, vector::LoadOp::create(k.b, k.loc, type, buffer, place), element);
  }
  void write(Value value, Value buffer, Value place, int64_t width) {
    if (width == 1)
      k.store(value, buffer, place, element);
    else
      vector::StoreOp::create(k.b, k.loc, toStorage(k.b, k.loc, value, element), buffer, place);
  }
  Value shuffle(Value x, Value y, llvm::function_ref<int64_t(int64_t)> from) {
    int64_t width = cast<VectorType>(x.getType()).getDimSize(0);
    auto mask = llvm::map_to_vector(llvm::seq<int64_t>(0, width), from);
    return vector::ShuffleOp::create(k.b, k.loc, x, y, mask);
  }

  /// The first and the second numbers of `width` pairs from `pair` on.
  std::pair<Value, Value> load(Value buffer, Value offset, Value pair, int64_t width) {
    if (!isInterleaved)
      return {read(buffer, k.add(offset, pair), width),
              read(buffer, k.add(k.add(offset, pair), k.constant(half)), width)};
    Value first = k.add(offset, k.mul(pair, k.constant(2)));
    Value x = read(buffer, first, width), y = read(buffer, k.add(first, k.constant(width)), width);
    if (width == 1)
      return {x, y};
    return {shuffle(x, y, [](int64_t lane) { return 2 * lane; }),
            shuffle(x, y, [](int64_t lane) { return 2 * lane + 1; })};
  }
  void store(Value a, Value b, Value buffer, Value offset, Value pair, int64_t width) {
    if (!isInterleaved) {
      write(a, buffer, k.add(offset, pair), width);
      write(b, buffer, k.add(k.add(offset, pair), k.constant(half)), width);
      return;
    }
    Value first = k.add(offset, k.mul(pair, k.constant(2)));
    if (width > 1) {
      // Every other lane of each: the lower half of the pairs, then the upper one.
      auto lower = [&](int64_t lane) { return lane / 2 + lane % 2 * width; };
      auto upper = [&](int64_t lane) { return width / 2 + lower(lane); };
      std::tie(a, b) = std::pair(shuffle(a, b, lower), shuffle(a, b, upper));
    }
    write(a, buffer, first, width);
    write(b, buffer, k.add(first, k.constant(width)), width);
  }
};
} // namespace

void emitRotaryRow(KernelBuilder &k, ds::RotaryOp op, const RotaryRow &row) {
  Type element = k.elementOf(op.getInput());
  int64_t width = *k.sizesOf(op.getInput()).back().constant(), half = width / 2, lanes = k.target.lanes;
  bool perPair = *k.sizesOf(op.getCosines()).back().constant() == half;
  Value cosines = k.bufferOf(op.getCosines()), sines = k.bufferOf(op.getSines());
  RotaryPairs pairs{k, element, half, op.getInterleaved()};
  auto walk = [&](int64_t begin, int64_t end, int64_t step) {
    k.loop(k.constant(begin), k.constant(end), k.constant(step), [&](Value pair) {
      auto [a, b] = pairs.load(row.from, row.fromOffset, pair, step);
      auto table = [&](Value buffer, Value offset) {
        if (!perPair)
          return pairs.load(buffer, offset, pair, step);
        Value both = pairs.read(buffer, k.add(offset, pair), step);
        return std::pair(both, both);
      };
      auto cosine = table(cosines, row.cosineOffset), sine = table(sines, row.sineOffset);
      auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(k.b, k.loc, x, y); };
      Value real = arith::SubFOp::create(k.b, k.loc, mul(a, cosine.first), mul(b, sine.first));
      Value imaginary = arith::AddFOp::create(k.b, k.loc, mul(b, cosine.second), mul(a, sine.second));
      pairs.store(real, imaginary, row.to, row.toOffset, pair, step);
    });
  };
  int64_t whole = ds::holdsRows(element) && lanes > 1 ? half / lanes * lanes : 0;
  if (whole)
    walk(0, whole, lanes);
  if (whole < half)
    walk(whole, half, 1);
}

std::optional<JoinedHeads> JoinedHeads::of(KernelBuilder &k, Value value) {
  JoinedHeads joined(k, k.elementOf(value), k.sizesOf(value));
  if (joined.shape.size() != 4)
    return std::nullopt;
  const SizeExpr &tokens = joined.shape[2];
  auto concat = value.getDefiningOp<ds::ConcatOp>();
  auto insert = value.getDefiningOp<ds::InsertOp>();
  auto placed = ds::PlacedRows::of(value);
  SmallVector<Value> inputs;
  if (concat && concat.getAxis() == 2)
    inputs.assign(concat.getInputs().begin(), concat.getInputs().end());
  else
    inputs.push_back(insert ? insert.getUpdate() : placed ? placed->scatter.getUpdates() : value);
  joined.values = inputs;
  joined.values.push_back(value);
  SizeExpr start = insert ? (*sizesFromAttribute(insert.getStarts()))[2] : SizeExpr(0);
  for (Value input : inputs) {
    auto rows = RowSource::of(k, input);
    if (!rows)
      return std::nullopt;
    SizeExpr count = k.sizesOf(input)[2];
    joined.added.push_back({*rows, 0, start, count});
    start = start + count;
  }
  if (insert) {
    auto old = RowSource::of(k, insert.getInto());
    if (!old || !old->isStored())
      return std::nullopt;
    joined.kept.push_back({*old, 0, 0, joined.added.front().start});
    joined.kept.push_back({*old, start, start, tokens - start});
  } else if (placed) {
    auto old = RowSource::of(k, placed->cache);
    bool isInMemory = isa<BlockArgument>(placed->lengths) && isa<BlockArgument>(placed->places) &&
                      (!placed->pad || isa<BlockArgument>(placed->pad.getValue()));
    if (!old || !old->isStored() || !isInMemory || !placed->fit([&](Value of) { return k.sizesOf(of); }))
      return std::nullopt;
    joined.kept.push_back({*old, 0, 0, tokens});
    joined.places = Places{k.bufferOf(placed->lengths), k.bufferOf(placed->places),
                           placed->pad ? k.bufferOf(placed->pad.getValue()) : Value(), k.sizesOf(placed->cache)[2]};
    llvm::append_range(joined.values, llvm::map_range(placed->ops, [](Operation *op) { return op->getResult(0); }));
  } else if (!concat && joined.added.front().rows.isStored() && !llvm::is_contained(k.yielded(), value)) {
    return std::nullopt; // it is read in place
  }
  for (auto [number, yielded] : llvm::enumerate(k.yielded())) {
    if (yielded == value)
      joined.output = k.outputBuffer(number);
    for (auto [part, input] : llvm::zip_equal(joined.added, inputs))
      if (yielded == input && yielded != value)
        part.output = k.outputBuffer(number);
  }
  return joined;
}

void JoinedHeads::reserve(bool isShared) {
  for (Part &part : added)
    part.rows.reserve();
  if (!output || isShared)
    scratch = k->scratchOf(storageType(element), shape[2] * shape[3]);
}

void JoinedHeads::write(ArrayRef<Part> parts, ArrayRef<Value> head, bool isOwner, Value target, Value offset) {
  Value width = k->index(shape[3]);
  for (Part part : parts) {
    Value at[] = {head[0], head[1], k->index(part.first)}, count = k->index(part.count);
    Value place = k->add(offset, k->mul(k->index(part.start), width));
    if (!isOwner || !part.output) {
      part.rows.emit(at, count, target, place);
      continue;
    }
    Value elements = k->mul(count, width);
    Value own = k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), elements);
    part.rows.emit(at, count, part.output, own);
    emitCopy(*k, part.output, own, target, place, elements);
  }
}

void JoinedHeads::fill(Value number, Value target, Value from, Value to) {
  k->loop(from, to, k->constant(1), [&](Value place) { k->store(number, target, place, element); });
}

void JoinedHeads::writePlaced(ArrayRef<Value> head, bool isOwner, Value target, Value offset) {
  Value zero = k->constant(0), one = k->constant(1), width = k->index(shape[3]), tokens = k->index(shape[2]);
  Type i64 = k->b.getI64Type();
  auto numberAt = [&](Value buffer, Value place) -> Value {
    return arith::IndexCastOp::create(k->b, k->loc, k->b.getIndexType(), k->load(buffer, place, i64));
  };
  Value length = k->maximum(numberAt(places->lengths, head[0]), zero);
  Value old = k->minimum(length, k->minimum(k->index(places->past), tokens));
  Value from[] = {head[0], head[1], zero};
  kept.front().rows.emit(from, old, target, offset);
  Value begin = k->add(offset, k->mul(old, width)), end = k->add(offset, k->mul(tokens, width));
  if (places->padding) {
    Value padded = k->add(offset, k->mul(k->maximum(k->minimum(length, tokens), old), width));
    fill(k->load(places->padding, zero, element), target, begin, padded);
    begin = padded;
  }
  fill(scalarConstant(k->b, k->loc, element, 0), target, begin, end);
  Part &part = added.front();
  Value count = k->index(part.count), own;
  if (isOwner && part.output) {
    own = k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->mul(count, width));
    part.rows.emit(from, count, part.output, own);
  }
  // An index beyond the cache fails the call, which a cache without places has none for.
  Value isEmpty = arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::eq, tokens, zero);
  Value written = arith::SelectOp::create(k->b, k->loc, isEmpty, zero, count);
  k->failIf(arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::ne, written, count), DS_INDEX_OUT_OF_RANGE);
  k->loop(zero, written, one, [&](Value row) {
    Value place = k->checkedIndex(numberAt(places->rows, k->add(k->mul(head[0], count), row)), tokens);
    Value to = k->add(offset, k->mul(place, width)), at[] = {head[0], head[1], row};
    if (own)
      emitCopy(*k, part.output, k->add(own, k->mul(row, width)), target, to, width);
    else
      part.rows.emit(at, one, target, to);
  });
}

Matrix JoinedHeads::emit(Value batch, Value group, Value isOwner) {
  Value zero = k->constant(0), head[] = {batch, group};
  Value place =
      output ? k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->index(shape[2] * shape[3])) : zero;
  auto toScratch = [&](bool owns) {
    if (places)
      return writePlaced(head, owns, scratch, zero);
    write(kept, head, owns, scratch, zero);
    write(added, head, owns, scratch, zero);
  };
  auto asOwner = [&] {
    if (!output)
      return toScratch(/*owns=*/true);
    places ? writePlaced(head, /*isOwner=*/true, output, place) : write(added, head, /*isOwner=*/true, output, place);
  };
  Matrix matrix{output ? output : scratch, place, k->index(shape[3]), k->constant(1)};
  bool isWritten = output || llvm::any_of(added, [](const Part &part) { return part.output; });
  if (!isOwner || !isWritten) {
    asOwner();
    return matrix;
  }
  auto branch = scf::IfOp::create(k->b, k->loc, isOwner, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(k->b);
    k->b.setInsertionPointToStart(branch.thenBlock());
    asOwner();
    k->b.setInsertionPointToStart(branch.elseBlock());
    toScratch(/*owns=*/false);
  }
  if (output) {
    matrix.buffer = arith::SelectOp::create(k->b, k->loc, isOwner, output, scratch);
    matrix.offset = arith::SelectOp::create(k->b, k->loc, isOwner, place, zero);
  }
  return matrix;
}

/// Results of at least so many bytes are written past the caches, which will not hold them until the next step: layers
/// have one each for keys and values, and weights pass between two of them. Of smaller ones a whole model may stay.
static constexpr int64_t leastAway = 1 << 20;

void JoinedHeads::reservePieces(bool isShared) {
  if (!arePieces())
    return reserve(isShared);
  for (Part &part : added) {
    part.rows.reserve();
    if (!part.rows.isStored())
      part.scratch = k->scratchOf(storageType(element), part.count * shape[3]);
  }
}

SmallVector<JoinedHeads::Piece> JoinedHeads::emitPieces(Value batch, Value group, Value isOwner) {
  if (!arePieces())
    return {{emit(batch, group, isOwner), k->index(shape[2])}};
  SmallVector<Piece> pieces;
  Value zero = k->constant(0), width = k->index(shape[3]), head[] = {batch, group};
  for (Part &part : added) {
    Value at[] = {batch, group, k->index(part.first)}, count = k->index(part.count);
    if (part.output || output) {
      auto branch = isOwner ? scf::IfOp::create(k->b, k->loc, isOwner, /*withElseRegion=*/false) : scf::IfOp();
      OpBuilder::InsertionGuard guard(k->b);
      if (branch)
        k->b.setInsertionPointToStart(branch.thenBlock());
      auto placeOf = [&](const SizeExpr &rows, const SizeExpr &first) {
        return k->mul(
            k->add(k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->index(rows)), k->index(first)), width);
      };
      if (part.output)
        part.rows.emit(at, count, part.output, placeOf(part.count, 0));
      if (output) {
        SizeExpr bytes = shape[0] * shape[1] * shape[2] * shape[3] * SizeExpr(storageBytes(element));
        Value isAway =
            arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::sge, k->index(bytes), k->constant(leastAway));
        part.rows.emit(at, count, output, placeOf(shape[2], part.start), isAway);
      }
    }
    if (part.scratch)
      part.rows.emit(at, count, part.scratch, zero);
    pieces.push_back({part.scratch ? Matrix{part.scratch, zero, width, k->constant(1)} : part.rows.matrix(at), count});
  }
  return pieces;
}

} // namespace deepstride
