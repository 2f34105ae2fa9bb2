// Attention of one query a head, as a decoder's step has: keys and values are read once, where they lie, as fast as
// memory gives them. Nothing is packed or copied. A score is a dot product of rows in vectors, whose lanes are summed
// in the same order whether or not keys come in groups; the result is a chain over all values, which shrinks where a
// block of keys ends (AttentionKeys.cpp). So bits depend neither on where the cache ends nor on threads.
#include "codegen/lower/AttentionLowering.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Vectors of a row that are held at once beside a vector for each of a group's keys.
static constexpr int64_t mostVectors = 8;

bool AttentionLowering::hasOneQuery() const {
  auto divides = [&](const SizeExpr &size, int64_t most) {
    return size.constant().value_or(0) > 0 && *size.constant() % micro->lanes() == 0 &&
           *size.constant() / micro->lanes() <= most;
  };
  auto hasRows = [&](const std::optional<JoinedHeads> &joined, const View &view) {
    return joined ? joined->fitPieces(isShared(), keysAtOnce(micro->lanes())) : view.axes[3].stride.isConstant(1);
  };
  return !k.target.manyRows && q[2].isConstant(1) && !bounds && !dropout && micro->left == element &&
         divides(q[3], 2 * mostVectors) && divides(value[3], mostVectors) && hasRows(joinedKeys, keyView) &&
         hasRows(joinedValues, valueView) && (queryRows || queryView.axes[3].stride.isConstant(1));
}

namespace {
/// Sums of lanes in pairs of halves: lane i of the result is the sum over vector i.
class LaneSums {
public:
  LaneSums(KernelBuilder &k, int64_t lanes) : k(k), lanes(lanes) {}

  Value ofAll(SmallVector<Value> vectors) {
    for (int64_t half = lanes / 2; half >= 1; half /= 2) {
      SmallVector<Value> sums;
      for (int64_t i = 0; i < half; ++i)
        sums.push_back(add(vectors[i], vectors[i + half], half));
      vectors = sums;
    }
    return vectors[0];
  }
  /// The sum over one vector, in every lane.
  Value ofOne(Value vector) {
    for (int64_t half = lanes / 2; half >= 1; half /= 2)
      vector = add(vector, vector, half);
    return vector;
  }

private:
  /// Of lanes that are `half` apart: those of x in lower halves, those of y in upper ones.
  Value add(Value x, Value y, int64_t half) {
    SmallVector<int64_t> own, other;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t base = lane & half ? lanes : 0;
      own.push_back(base + lane);
      other.push_back(base + (lane ^ half));
    }
    Value first = x == y ? x : vector::ShuffleOp::create(k.b, k.loc, x, y, own).getResult();
    return arith::AddFOp::create(k.b, k.loc, first, vector::ShuffleOp::create(k.b, k.loc, x, y, other));
  }

  KernelBuilder &k;
  int64_t lanes;
};
} // namespace

void AttentionLowering::prefetchRow(const Matrix &rows, Value offset, int64_t vectors) {
  constexpr int64_t twoPages = 8192, line = 64;
  int64_t bytes = storageBytes(stored);
  for (int64_t byte = 0; byte < vectors * micro->lanes() * bytes; byte += line)
    memref::PrefetchOp::create(k.b, k.loc, rows.buffer, k.add(offset, k.constant((twoPages + byte) / bytes)),
                               /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

Value AttentionLowering::loadStored(Value buffer, Value place) {
  auto type = VectorType::get({micro->lanes()}, storageType(stored));
  return fromStorage(k.b, k.loc, vector::LoadOp::create(k.b, k.loc, type, buffer, place), stored);
}

/// The dot products of the query with keys [first, first + count): one, in all lanes, or as many as there are lanes.
Value AttentionLowering::emitDots(const Matrix &keys, Value first, int64_t count, ArrayRef<Value> query) {
  auto type = VectorType::get({micro->lanes()}, element);
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
  SmallVector<Value> sums(count, none), offsets;
  for (int64_t key = 0; key < count; ++key) {
    offsets.push_back(k.add(keys.offset, k.mul(k.add(first, k.constant(key)), keys.rowStride)));
    prefetchRow(keys, offsets.back(), static_cast<int64_t>(query.size()));
  }
  for (auto [number, part] : llvm::enumerate(query))
    for (auto [sum, offset] : llvm::zip_equal(sums, offsets)) {
      Value place = k.add(offset, k.constant(static_cast<int64_t>(number) * micro->lanes()));
      sum = vector::FMAOp::create(k.b, k.loc, part, loadStored(keys.buffer, place), sum);
    }
  LaneSums lanes(k, micro->lanes());
  return count == 1 ? lanes.ofOne(sums[0]) : lanes.ofAll(sums);
}

void AttentionLowering::emitOneQuery() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  int64_t lanes = micro->lanes(), queryVectors = *q[3].constant() / lanes, vectors = *value[3].constant() / lanes;
  Value one = k.constant(1), zero = k.constant(0), step = k.constant(lanes);
  auto type = VectorType::get({lanes}, element);
  SizeExpr atOnce = keysAtOnce(lanes);
  Value scores = k.scratchOf(element, atOnce + SizeExpr(lanes)), queries;
  for (auto *joined : {&joinedKeys, &joinedValues})
    if (*joined)
      (*joined)->reservePieces(isShared());
  if (queryRows) {
    queryRows->reserve();
    queries = k.scratchOf(storageType(stored), q[3]);
  }
  using Pieces = SmallVector<JoinedHeads::Piece>;
  auto piecesOf = [&](std::optional<JoinedHeads> &joined, const View &view, const HeadGroup &group) {
    if (!joined)
      return Pieces{{headOf(view, group.at[0], group.at[1]), k.index(key[2])}};
    joined->beginPieces(group.at[0], group.at[1], group.isOwner);
    return joined->pieces(group.at[0], group.at[1], group.isOwner);
  };
  auto emitQuery = [&](ArrayRef<Value> at) {
    Matrix row{queries, zero, zero, one};
    if (queryRows)
      queryRows->emit({at[0], at[1], zero}, one, queries, zero);
    else
      row = headOf(queryView, at[0], at[1]);
    SmallVector<Value> query;
    for (int64_t i = 0; i < queryVectors; ++i)
      query.push_back(loadStored(row.buffer, k.add(row.offset, k.constant(i * lanes))));
    return query;
  };
  // Rows [from, to) of each piece are those of a block of keys; the first has its score at `place`.
  auto forEachPiece = [&](const Pieces &pieces, const KeyBlock &keys, auto body) {
    Value start = zero;
    for (const auto &[rows, count] : pieces) {
      Value end = k.add(start, count), from = within(keys, start);
      if (keys.isOnly)
        body(rows, zero, count, start);
      else
        body(rows, k.sub(from, start), k.sub(within(keys, end), start), k.sub(from, keys.begin));
      start = end;
    }
  };
  auto emitScores = [&](const Pieces &pieces, const KeyBlock &keys, ArrayRef<Value> query) {
    forEachPiece(pieces, keys, [&](const Matrix &rows, Value from, Value to, Value place) {
      Value behind = k.sub(place, from), whole = k.add(from, k.mul(k.divide(k.sub(to, from), step), step));
      k.loop(from, whole, step, [&](Value first) {
        vector::StoreOp::create(b, loc, emitDots(rows, first, lanes, query), scores, k.add(behind, first));
      });
      k.loop(whole, to, one, [&](Value first) { // what is stored beyond it is written over, or not read
        vector::StoreOp::create(b, loc, emitDots(rows, first, 1, query), scores, k.add(behind, first));
      });
    });
  };
  auto addWeighted = [&](const Matrix &rows, Value row, Value place, ValueRange sums) {
    Value offset = k.add(rows.offset, k.mul(row, rows.rowStride));
    Value weight = vector::BroadcastOp::create(b, loc, type, memref::LoadOp::create(b, loc, scores, place));
    prefetchRow(rows, offset, vectors);
    SmallVector<Value> next;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      Value at = k.add(offset, k.constant(static_cast<int64_t>(number) * lanes));
      next.push_back(vector::FMAOp::create(b, loc, weight, loadStored(rows.buffer, at), sum));
    }
    return next;
  };
  auto emitWeighted = [&](const Pieces &pieces, const KeyBlock &keys, SmallVector<Value> sums) {
    forEachPiece(pieces, keys, [&](const Matrix &rows, Value from, Value to, Value place) {
      Value behind = k.sub(place, from);
      auto loop =
          scf::ForOp::create(b, loc, from, to, one, sums, [&](OpBuilder &body, Location, Value row, ValueRange before) {
            OpBuilder::InsertionGuard guard(b);
            b.restoreInsertionPoint(body.saveInsertionPoint());
            scf::YieldOp::create(b, loc, addWeighted(rows, row, k.add(behind, row), before));
          });
      sums.assign(loop.getResults().begin(), loop.getResults().end());
    });
    return sums;
  };
  // Between two blocks of keys the sums are in memory.
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type)), greatest = k.cell(element),
        total = k.cell(element);
  Value kept = atOnce == key[2] ? Value() : cells(vectors * lanes, element);
  auto keptBefore = [&](const KeyBlock &keys, Value factor) {
    SmallVector<Value> sums(vectors, none);
    if (keys.isOnly)
      return sums;
    Value isNothing = isGone(factor);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      Value old = vector::LoadOp::create(b, loc, type, kept, k.constant(static_cast<int64_t>(i) * lanes));
      sum = arith::SelectOp::create(b, loc, isNothing, none, shrunk(old, factor));
    }
    return sums;
  };
  forEachGroup([&](const HeadGroup &group) {
    Pieces ofKeys = piecesOf(joinedKeys, keyView, group), ofValues = piecesOf(joinedValues, valueView, group);
    forEachHead(group, [&](ArrayRef<Value> at) {
      SmallVector<Value> query = emitQuery(at), sums;
      Value places[] = {at[0], at[1], zero};
      RunningSoftmax start = noSoftmax();
      storeCell(start.greatest, greatest);
      storeCell(start.sum, total);
      forEachKeyBlock(atOnce, [&](const KeyBlock &keys) {
        emitScores(ofKeys, keys, query);
        RunningSoftmax before = keys.isOnly ? start : RunningSoftmax{loadCell(greatest), loadCell(total)};
        RunningSoftmax softmax = softmaxRow(View{scores, 0, {Axis{key[2], 1, true, std::nullopt}}},
                                            k.sub(zero, keys.begin), places, keys, before);
        storeCell(softmax.greatest, greatest);
        storeCell(softmax.sum, total);
        sums = emitWeighted(ofValues, keys, keptBefore(keys, softmax.factor));
        if (kept)
          for (auto [i, sum] : llvm::enumerate(sums))
            vector::StoreOp::create(b, loc, sum, kept, k.constant(static_cast<int64_t>(i) * lanes));
      });
      if (kept)
        for (auto [i, sum] : llvm::enumerate(sums))
          sum = vector::LoadOp::create(b, loc, type, kept, k.constant(static_cast<int64_t>(i) * lanes));
      Matrix results = headOf(resultView, at[0], at[1]);
      Value inverse = inverseOf({loadCell(greatest), loadCell(total)}, /*isOnly=*/!kept);
      Value scale = vector::BroadcastOp::create(b, loc, type, inverse);
      for (auto [i, sum] : llvm::enumerate(sums)) {
        Value result = orZero(arith::MulFOp::create(b, loc, sum, scale), scale);
        storeLanes(k, toStorage(b, loc, rounded(result), resultElement), results.buffer,
                   k.add(results.offset, k.constant(static_cast<int64_t>(i) * lanes)), {});
      }
      if (takesExtremes)
        emitRowExtremes(k, op->getResult(0), resultView, {at[0], at[1], zero});
    });
  });
}

} // namespace deepstride
