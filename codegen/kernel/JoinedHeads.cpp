// Puts keys or values of attention together: cached rows and new ones, those that are yielded beside those that are
// read.
#include "codegen/kernel/JoinedHeads.h"

#include "codegen/lower/Copies.h"
#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

void forEachHeadGroup(KernelBuilder &k, ArrayRef<SizeExpr> groups, Value repeat,
                      llvm::function_ref<void(const HeadGroup &)> body) {
  Value one = k.constant(1), zero = k.constant(0), heads = repeat ? repeat : one;
  k.loop(k.divide(k.begin, heads), k.divide(k.add(k.end, k.sub(heads, one)), heads), one, [&](Value item) {
    Value firstHead = k.mul(item, heads);
    HeadGroup group{k.delinearize(item, groups),
                    arith::MaxSIOp::create(k.b, k.loc, k.sub(k.begin, firstHead), zero),
                    k.minimum(k.sub(k.end, firstHead), heads),
                    {}};
    // The first head of a group writes what is yielded of its keys and values; threads that have others only read.
    if (repeat)
      group.isOwner = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, group.from, zero);
    body(group);
  });
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

void JoinedHeads::reserve(bool isShared, std::optional<SizeExpr> atOnce) {
  for (Part &part : added)
    part.rows.reserve();
  if (!output || isShared)
    scratch = k->scratchOf(storageType(element), atOnce.value_or(shape[2]) * shape[3]);
}

Value JoinedHeads::within(RowRange range, Value row) {
  return range.to ? k->minimum(k->maximum(row, range.from), range.to) : row;
}

Value JoinedHeads::ownPlace(const Part &part, ArrayRef<Value> head) {
  return k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->index(part.count * shape[3]));
}

/// `offset`: where the first row of the range is written.
void JoinedHeads::writeParts(ArrayRef<Part> parts, ArrayRef<Value> head, bool isOwner, Value target, Value offset,
                             RowRange range) {
  Value width = k->index(shape[3]);
  for (Part part : parts) {
    Value first = k->index(part.first), start = k->index(part.start), count = k->index(part.count), place = start;
    if (range.to) {
      Value from = within(range, start), to = within(range, k->index(part.start + part.count));
      first = k->add(first, k->sub(from, start));
      count = k->sub(to, from);
      place = k->sub(from, range.from);
    }
    Value at[] = {head[0], head[1], first};
    place = k->add(offset, k->mul(place, width));
    if (!isOwner || !part.output) {
      part.rows.emit(at, count, target, place);
      continue;
    }
    Value own = ownPlace(part, head);
    part.rows.emit(at, count, part.output, own);
    emitCopy(*k, part.output, own, target, place, k->mul(count, width));
  }
}

void JoinedHeads::fill(Value number, Value target, Value from, Value to) {
  k->loop(from, to, k->constant(1), [&](Value place) { k->store(number, target, place, element); });
}

void JoinedHeads::writePlaced(ArrayRef<Value> head, bool isOwner, Value target, Value offset, RowRange range) {
  Value zero = k->constant(0), one = k->constant(1), width = k->index(shape[3]), tokens = k->index(shape[2]);
  Value from = range.to ? range.from : zero, to = range.to ? range.to : tokens;
  Type i64 = k->b.getI64Type();
  auto numberAt = [&](Value buffer, Value place) -> Value {
    return arith::IndexCastOp::create(k->b, k->loc, k->b.getIndexType(), k->load(buffer, place, i64));
  };
  auto placeOf = [&](Value row) { return k->add(offset, k->mul(k->sub(row, from), width)); };
  Value length = k->maximum(numberAt(places->lengths, head[0]), zero);
  Value old = k->minimum(length, k->minimum(k->index(places->past), tokens)), kept = within(range, old);
  Value first[] = {head[0], head[1], from};
  this->kept.front().rows.emit(first, k->sub(kept, from), target, offset);
  if (places->padding) {
    Value padded = within(range, k->maximum(k->minimum(length, tokens), old));
    fill(k->load(places->padding, zero, element), target, placeOf(kept), placeOf(padded));
    kept = padded;
  }
  fill(scalarConstant(k->b, k->loc, element, 0), target, placeOf(kept), placeOf(to));
  Part &part = added.front();
  Value count = k->index(part.count), own;
  if (isOwner && part.output) {
    own = ownPlace(part, head);
    Value all[] = {head[0], head[1], zero};
    part.rows.emit(all, count, part.output, own);
  }
  // An index beyond the cache fails the call, which a cache without places has none for.
  Value isEmpty = arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::eq, tokens, zero);
  Value written = arith::SelectOp::create(k->b, k->loc, isEmpty, zero, count);
  k->failIf(arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::ne, written, count), DS_INDEX_OUT_OF_RANGE);
  k->loop(zero, written, one, [&](Value row) {
    Value place = k->checkedIndex(numberAt(places->rows, k->add(k->mul(head[0], count), row)), tokens);
    OpBuilder::InsertionGuard guard(k->b);
    if (range.to) {
      Value isBehind = arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::sge, place, from);
      Value isBefore = arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::slt, place, to);
      auto branch = scf::IfOp::create(k->b, k->loc, arith::AndIOp::create(k->b, k->loc, isBehind, isBefore),
                                      /*withElseRegion=*/false);
      k->b.setInsertionPointToStart(branch.thenBlock());
    }
    Value at[] = {head[0], head[1], row};
    if (own)
      emitCopy(*k, part.output, k->add(own, k->mul(row, width)), target, placeOf(place), width);
    else
      part.rows.emit(at, one, target, placeOf(place));
  });
}

void JoinedHeads::begin(Value batch, Value group, Value isOwner) {
  bool isYielded = output || llvm::any_of(added, [](const Part &part) { return part.output; });
  if (!isYielded)
    return;
  OpBuilder::InsertionGuard guard(k->b);
  if (isOwner) {
    auto branch = scf::IfOp::create(k->b, k->loc, isOwner, /*withElseRegion=*/false);
    k->b.setInsertionPointToStart(branch.thenBlock());
  }
  Value head[] = {batch, group};
  if (output) {
    Value place = rows(batch, group, /*isOwner=*/{}).offset;
    return places ? writePlaced(head, /*isOwner=*/true, output, place, {})
                  : writeParts(added, head, /*isOwner=*/true, output, place, {});
  }
  for (Part &part : added) {
    Value at[] = {batch, group, k->index(part.first)};
    if (part.output)
      part.rows.emit(at, k->index(part.count), part.output, ownPlace(part, head));
  }
}

Matrix JoinedHeads::rows(Value batch, Value group, Value isOwner, RowRange range) {
  Value zero = k->constant(0), width = k->index(shape[3]), head[] = {batch, group};
  Matrix matrix{scratch, zero, width, k->constant(1)};
  if (!output)
    return matrix;
  Value place = k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->index(shape[2] * shape[3]));
  if (range.to)
    place = k->add(place, k->mul(range.from, width));
  matrix.buffer = isOwner ? arith::SelectOp::create(k->b, k->loc, isOwner, output, scratch).getResult() : output;
  matrix.offset = isOwner ? arith::SelectOp::create(k->b, k->loc, isOwner, place, zero).getResult() : place;
  return matrix;
}

void JoinedHeads::write(Value batch, Value group, Value isOwner, RowRange range) {
  if (output && !isOwner)
    return;
  OpBuilder::InsertionGuard guard(k->b);
  if (output) {
    auto branch = scf::IfOp::create(k->b, k->loc, isOwner, /*withElseRegion=*/true);
    k->b.setInsertionPointToStart(branch.elseBlock());
  }
  Value zero = k->constant(0), head[] = {batch, group};
  if (places)
    return writePlaced(head, /*isOwner=*/false, scratch, zero, range);
  writeParts(kept, head, /*isOwner=*/false, scratch, zero, range);
  writeParts(added, head, /*isOwner=*/false, scratch, zero, range);
}

/// Results of at least so many bytes are written past the caches, which will not hold them until the next step: layers
/// have one each for keys and values, and weights pass between two of them. Of smaller ones a whole model may stay.
static constexpr int64_t leastAway = 1 << 20;

SmallVector<JoinedHeads::Part *> JoinedHeads::parts() {
  SmallVector<Part *> all = llvm::map_to_vector(added, [](Part &part) { return &part; });
  if (!kept.empty()) {
    all.insert(all.begin(), &kept.front());
    all.push_back(&kept.back());
  }
  return all;
}

bool JoinedHeads::fitPieces(bool isShared, const SizeExpr &atOnce) const {
  auto tokens = shape[2].constant();
  if (places)
    return (tokens && *tokens <= *atOnce.constant()) || (output && !isShared);
  return llvm::all_of(added, [&](const Part &part) {
    return part.rows.isStored() || (part.count.constant() && *part.count.constant() <= *atOnce.constant());
  });
}

void JoinedHeads::reservePieces(bool isShared, std::optional<SizeExpr> atOnce) {
  if (places)
    return reserve(isShared, atOnce);
  for (Part &part : added) {
    part.rows.reserve();
    if (!part.rows.isStored()) {
      auto fixed = part.count.constant();
      bool isLess = !atOnce || (fixed && *fixed <= atOnce->constant().value_or(0));
      part.scratch = k->scratchOf(storageType(element), (isLess ? part.count : *atOnce) * shape[3]);
    }
  }
}

void JoinedHeads::beginPieces(Value batch, Value group, Value isOwner) {
  if (!kept.empty())
    return begin(batch, group, isOwner);
  Value head[] = {batch, group}, width = k->index(shape[3]);
  auto placeOf = [&](const SizeExpr &first) {
    Value row = k->mul(k->linearize(head, ArrayRef(shape).take_front(2)), k->index(shape[2]));
    return k->mul(k->add(row, k->index(first)), width);
  };
  for (Part &part : added) {
    if (!part.output && !output)
      continue;
    Value at[] = {batch, group, k->index(part.first)}, count = k->index(part.count);
    auto branch = isOwner ? scf::IfOp::create(k->b, k->loc, isOwner, /*withElseRegion=*/false) : scf::IfOp();
    OpBuilder::InsertionGuard guard(k->b);
    if (branch)
      k->b.setInsertionPointToStart(branch.thenBlock());
    if (part.output)
      part.rows.emit(at, count, part.output, ownPlace(part, head));
    if (output) {
      SizeExpr bytes = product(shape) * SizeExpr(storageBytes(element));
      Value isAway =
          arith::CmpIOp::create(k->b, k->loc, arith::CmpIPredicate::sge, k->index(bytes), k->constant(leastAway));
      part.rows.emit(at, count, output, placeOf(part.start), isAway);
    }
  }
}

SmallVector<JoinedHeads::Piece> JoinedHeads::pieces(Value batch, Value group, Value isOwner, RowRange range) {
  if (places) {
    write(batch, group, isOwner, range);
    return {{rows(batch, group, isOwner, range), range.to ? k->sub(range.to, range.from) : k->index(shape[2])}};
  }
  SmallVector<Piece> pieces;
  for (Part *part : parts()) {
    Value first = k->index(part->first), count = k->index(part->count), zero = k->constant(0);
    if (range.to) {
      Value start = k->index(part->start), from = within(range, start), to = within(range, k->add(start, count));
      first = k->add(first, k->sub(from, start));
      count = k->sub(to, from);
    }
    Value at[] = {batch, group, first};
    if (part->scratch)
      part->rows.emit(at, count, part->scratch, zero);
    pieces.push_back(
        {part->scratch ? Matrix{part->scratch, zero, k->index(shape[3]), k->constant(1)} : part->rows.matrix(at),
         count});
  }
  return pieces;
}

} // namespace deepstride
