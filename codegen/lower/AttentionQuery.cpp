// Attention of one query a head, as a decoder's step has: keys and values are read once, where they lie, as fast as
// memory gives them. Nothing is packed or copied. A score is a dot product of rows in vectors, whose lanes are summed
// in the same order whether or not keys come in groups; the result is a chain over all values. So bits depend neither
// on where the cache ends nor on threads.
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
  auto hasRows = [](const std::optional<JoinedHeads> &joined, const View &view) {
    return joined || view.axes[3].stride.isConstant(1);
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
  Value scores = k.scratchOf(element, key[2] + SizeExpr(lanes)), queries;
  for (auto *joined : {&joinedKeys, &joinedValues})
    if (*joined)
      (*joined)->reservePieces(isShared());
  if (queryRows) {
    queryRows->reserve();
    queries = k.scratchOf(storageType(stored), q[3]);
  }
  using Pieces = SmallVector<JoinedHeads::Piece>;
  auto piecesOf = [&](std::optional<JoinedHeads> &joined, const View &view, const HeadGroup &group) {
    return joined ? joined->emitPieces(group.at[0], group.at[1], group.isOwner)
                  : Pieces{{headOf(view, group.at[0], group.at[1]), k.index(key[2])}};
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
  auto emitScores = [&](const Pieces &keys, ArrayRef<Value> query) {
    Value place = zero;
    for (const auto &[rows, count] : keys) {
      Value whole = k.mul(k.divide(count, step), step);
      k.loop(zero, whole, step, [&, &rows = rows](Value first) {
        vector::StoreOp::create(b, loc, emitDots(rows, first, lanes, query), scores, k.add(place, first));
      });
      k.loop(whole, count, one,
             [&, &rows = rows](Value first) { // what is stored beyond it is written over, or not read
               vector::StoreOp::create(b, loc, emitDots(rows, first, 1, query), scores, k.add(place, first));
             });
      place = k.add(place, count);
    }
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
  auto emitWeighted = [&](const Pieces &values) {
    SmallVector<Value> sums(vectors, arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
    Value place = zero;
    for (const auto &[rows, count] : values) {
      auto loop = scf::ForOp::create(b, loc, zero, count, one, sums,
                                     [&, &rows = rows](OpBuilder &body, Location, Value row, ValueRange before) {
                                       OpBuilder::InsertionGuard guard(b);
                                       b.restoreInsertionPoint(body.saveInsertionPoint());
                                       scf::YieldOp::create(b, loc, addWeighted(rows, row, k.add(place, row), before));
                                     });
      sums.assign(loop.getResults().begin(), loop.getResults().end());
      place = k.add(place, count);
    }
    return sums;
  };
  forEachGroup([&](const HeadGroup &group) {
    Pieces keys = piecesOf(joinedKeys, keyView, group), values = piecesOf(joinedValues, valueView, group);
    forEachHead(group, [&](ArrayRef<Value> at) {
      emitScores(keys, emitQuery(at));
      Value cell = k.cell(element), places[] = {at[0], at[1], zero};
      softmaxRow(View{scores, 0, {Axis{key[2], 1, true, std::nullopt}}}, zero, places, cell);
      Matrix results = headOf(resultView, at[0], at[1]);
      Value scale = vector::BroadcastOp::create(b, loc, type, loadCell(cell));
      for (auto [i, sum] : llvm::enumerate(emitWeighted(values))) {
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
