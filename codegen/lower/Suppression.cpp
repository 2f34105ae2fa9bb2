// The greedy choice of boxes of non-maximum suppression. One grid item is one line of scores. Boxes are taken up from
// the greatest score down until enough are kept, each compared with those that are kept: how many overlaps are computed
// goes by what is chosen, not by how many boxes there are, and nothing is sorted that is never looked at. A score and
// its place are one integer, the key, so that comparing and finding are one step. Keys lie in blocks with the greatest
// of each beside them: the next box is the greatest of those, and one block is looked through again.
#include "codegen/lower/Lines.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {

constexpr int64_t blockSize = 64; // keys

/// A box: lower and upper ends along two axes and the area; numbers, or vectors of them.
struct Box {
  Value low[2], high[2], area;
};

class Suppression {
public:
  Suppression(KernelBuilder &k, ds::SuppressOp op);
  void emitLine(Value line);

private:
  Value keysAt(Value line, Value place, int64_t width);
  void fillKeys(Value line);
  Value greatest(Value buffer, Value from, Value to);
  Box boxAt(Value batch, Value item);
  void keep(const Box &box, Value place);
  Value overlapsKept(const Box &box, Value count);
  Value overlaps(const Box &kept, const Box &box);
  Value binary(ds::BinaryKind kind, Value x, Value y) { return emitBinary(b, loc, kind, x, y, element, element); }
  Value number(IntegerType type, const APInt &value, int64_t width = 1);
  Type wide(Type type, int64_t width) { return width == 1 ? type : VectorType::get({width}, type); }
  Value widened(Value x, int64_t width) {
    return width == 1 ? x : vector::BroadcastOp::create(b, loc, wide(x.getType(), width), x).getResult();
  }

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::SuppressOp op;
  Type element, compute;
  unsigned bits;           // of a score
  IntegerType key;         // twice as wide; the least one stands for no box
  int64_t lanes, keyLanes; // in a vector of numbers, and of keys
  SizeExpr classes;
  Value length, blocks, output;
  Value keys, tops, kept[5]; // scratch
  Value overlap, most;
};

} // namespace

Suppression::Suppression(KernelBuilder &k, ds::SuppressOp op)
    : k(k), b(k.b), loc(k.loc), op(op), element(k.elementOf(op.getScores())), compute(computeType(element)),
      bits(compute.getIntOrFloatBitWidth()), key(IntegerType::get(k.b.getContext(), 2 * bits)) {
  SizeVector shape = k.sizesOf(op.getScores());
  classes = shape[1];
  length = k.index(shape[2]);
  blocks = k.ceilDiv(length, blockSize);
  output = k.outputBuffer(0);
  lanes = std::max<int64_t>(1, k.target.lanes * 32 / static_cast<int64_t>(bits));
  keyLanes = bits == 32 ? std::max<int64_t>(1, k.target.lanes / 2) : 1; // vectors hold no 128 bits
  SizeExpr room = shape[2] + SizeExpr(blockSize);
  keys = k.scratchOf(key, room);
  tops = k.scratchOf(key, room);
  for (Value &buffer : kept)
    buffer = k.scratchOf(compute, room);
  k.setGrid(shape[0] * shape[1], 1);
  k.setFlops(product(shape) * SizeExpr(16));
  overlap = k.load(k.bufferOf(op.getOverlap()), k.constant(0), element);
  most = memref::LoadOp::create(b, loc, k.bufferOf(op.getMost()), k.constant(0));
}

Value Suppression::number(IntegerType type, const APInt &value, int64_t width) {
  return widened(arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value)), width);
}

/// The keys of `width` scores from `place` on: greater scores have greater ones, and the first of equal scores.
Value Suppression::keysAt(Value line, Value place, int64_t width) {
  Value at = k.add(k.mul(line, length), place), buffer = k.bufferOf(op.getScores());
  Type stored = wide(storageType(element), width);
  Value raw = width == 1 ? memref::LoadOp::create(b, loc, buffer, at).getResult()
                         : vector::LoadOp::create(b, loc, cast<VectorType>(stored), buffer, at).getResult();
  Value score = fromStorage(b, loc, raw, element);
  auto half = IntegerType::get(b.getContext(), bits);
  // The greatest score comes first, and NaN before it.
  Value ordered = orderedKey(k, score, element, NanPlace::Last);
  Value places = arith::IndexCastOp::create(b, loc, half, place);
  places = widened(places, width);
  if (width > 1) {
    Value step = vector::StepOp::create(b, loc, VectorType::get({width}, b.getIndexType()));
    places = arith::AddIOp::create(b, loc, places, arith::IndexCastOp::create(b, loc, wide(half, width), step));
  }
  Value rest = arith::XOrIOp::create(b, loc, places, number(half, APInt::getAllOnes(bits), width));
  Value upper = arith::ShLIOp::create(b, loc, arith::ExtSIOp::create(b, loc, wide(key, width), ordered),
                                      number(key, APInt(2 * bits, bits), width));
  Value result = arith::OrIOp::create(b, loc, upper, arith::ExtUIOp::create(b, loc, wide(key, width), rest));
  if (!op.getLeast())
    return result;
  Value least = widened(k.load(k.bufferOf(op.getLeast()), k.constant(0), element), width);
  Value isAbove = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, score, least);
  return arith::SelectOp::create(b, loc, isAbove, result, number(key, APInt::getSignedMinValue(2 * bits), width));
}

void Suppression::fillKeys(Value line) {
  Value zero = k.constant(0), one = k.constant(1), split = zero, width = k.constant(keyLanes);
  if (keyLanes > 1) {
    split = k.mul(k.divide(length, width), width);
    k.loop(zero, split, width,
           [&](Value place) { vector::StoreOp::create(b, loc, keysAt(line, place, keyLanes), keys, place); });
  }
  k.loop(split, length, one,
         [&](Value place) { memref::StoreOp::create(b, loc, keysAt(line, place, 1), keys, place); });
  Value none = number(key, APInt::getSignedMinValue(2 * bits)), size = k.constant(blockSize);
  k.loop(length, k.mul(blocks, size), one, [&](Value place) { memref::StoreOp::create(b, loc, none, keys, place); });
  k.loop(zero, blocks, one, [&](Value block) {
    Value from = k.mul(block, size);
    memref::StoreOp::create(b, loc, greatest(keys, from, k.add(from, size)), tops, block);
  });
  k.loop(blocks, k.mul(k.ceilDiv(blocks, keyLanes), width), one,
         [&](Value block) { memref::StoreOp::create(b, loc, none, tops, block); });
}

/// Of whole vectors.
Value Suppression::greatest(Value buffer, Value from, Value to) {
  Value none = number(key, APInt::getSignedMinValue(2 * bits), keyLanes);
  auto loop = scf::ForOp::create(b, loc, from, to, k.constant(keyLanes), ValueRange{none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar();
    Value next = keyLanes == 1
                     ? memref::LoadOp::create(b, loc, buffer, at).getResult()
                     : vector::LoadOp::create(b, loc, VectorType::get({keyLanes}, key), buffer, at).getResult();
    Value more = arith::MaxSIOp::create(b, loc, loop.getRegionIterArg(0), next);
    scf::YieldOp::create(b, loc, more);
  }
  Value best = loop.getResult(0);
  return keyLanes == 1 ? best : vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXSI, best).getResult();
}

Box Suppression::boxAt(Value batch, Value item) {
  Box box;
  for (int64_t axis = 0; axis < 2; ++axis) {
    Value at = k.add(k.mul(k.add(k.mul(batch, k.constant(2)), k.constant(axis)), length), item);
    box.low[axis] = k.load(k.bufferOf(op.getLow()), at, element);
    box.high[axis] = k.load(k.bufferOf(op.getHigh()), at, element);
    Value extent = binary(ds::BinaryKind::sub, box.high[axis], box.low[axis]);
    box.area = axis == 0 ? extent : binary(ds::BinaryKind::mul, box.area, extent);
  }
  return box;
}

void Suppression::keep(const Box &box, Value place) {
  std::array<Value, 5> values = {box.low[0], box.low[1], box.high[0], box.high[1], box.area};
  for (auto [value, buffer] : llvm::zip_equal(values, kept))
    memref::StoreOp::create(b, loc, value, buffer, place);
}

/// Whether what two boxes share is more than its part of what they cover: without a division by empty ones.
Value Suppression::overlaps(const Box &kept, const Box &box) {
  using Kind = ds::BinaryKind;
  Value zero = widened(scalarConstant(b, loc, element, 0.0), lanes), shared;
  for (int64_t axis = 0; axis < 2; ++axis) {
    Value upper = binary(Kind::min, kept.high[axis], box.high[axis]);
    Value lower = binary(Kind::max, kept.low[axis], box.low[axis]);
    Value common = binary(Kind::max, binary(Kind::sub, upper, lower), zero);
    shared = axis == 0 ? common : binary(Kind::mul, shared, common);
  }
  Value both = binary(Kind::sub, binary(Kind::add, kept.area, box.area), shared);
  Value isMore = binary(Kind::gt, shared, binary(Kind::mul, both, widened(overlap, lanes)));
  return arith::AndIOp::create(b, loc, isMore, binary(Kind::gt, shared, zero));
}

/// Whether the box overlaps any of the first `count` that are kept: up to the first vector of them that has one.
Value Suppression::overlapsKept(const Box &box, Value count) {
  Box wideBox;
  for (int64_t axis = 0; axis < 2; ++axis) {
    wideBox.low[axis] = widened(box.low[axis], lanes);
    wideBox.high[axis] = widened(box.high[axis], lanes);
  }
  wideBox.area = widened(box.area, lanes);
  Type i1 = b.getI1Type();
  Value none = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType(), i1}, ValueRange{k.constant(0), none},
      [&](OpBuilder &inner, Location, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, state[0], count);
        Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, exists, state[1]);
        scf::ConditionOp::create(b, loc, goesOn, state);
      },
      [&](OpBuilder &inner, Location, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value at = state[0];
        auto read = [&](Value buffer) -> Value {
          if (lanes == 1)
            return memref::LoadOp::create(b, loc, buffer, at);
          return vector::LoadOp::create(b, loc, VectorType::get({lanes}, compute), buffer, at);
        };
        Box others{{read(kept[0]), read(kept[1])}, {read(kept[2]), read(kept[3])}, read(kept[4])};
        Value found = overlaps(others, wideBox);
        if (lanes > 1) {
          found = arith::AndIOp::create(b, loc, found, lanesBelow(k, lanes, k.sub(count, at)));
          found = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, found);
        }
        scf::YieldOp::create(b, loc, ValueRange{k.add(at, k.constant(lanes)), found});
      });
  return loop.getResult(1);
}

void Suppression::emitLine(Value line) {
  Value zero = k.constant(0), one = k.constant(1), row = k.mul(line, length), batch = k.divide(line, k.index(classes));
  Type i64 = b.getI64Type();
  Value nothing = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(-1));
  k.loop(zero, length, one, [&](Value place) { memref::StoreOp::create(b, loc, nothing, output, k.add(row, place)); });
  fillKeys(line);
  Value none = number(key, APInt::getSignedMinValue(2 * bits));
  Value ends = k.mul(k.ceilDiv(blocks, keyLanes), k.constant(keyLanes));
  scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType(), key}, ValueRange{zero},
      [&](OpBuilder &inner, Location, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value best = greatest(tops, zero, ends), count = arith::IndexCastOp::create(b, loc, i64, state[0]);
        Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, best, none);
        Value hasRoom = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, count, most);
        scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, exists, hasRoom), ValueRange{state[0], best});
      },
      [&](OpBuilder &inner, Location, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        auto half = IntegerType::get(b.getContext(), bits);
        Value rest = arith::TruncIOp::create(b, loc, half, state[1]);
        rest = arith::XOrIOp::create(b, loc, rest, number(half, APInt::getAllOnes(bits)));
        Value item = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), rest), count = state[0];
        memref::StoreOp::create(b, loc, none, keys, item);
        Value block = k.divide(item, k.constant(blockSize)), from = k.mul(block, k.constant(blockSize));
        memref::StoreOp::create(b, loc, greatest(keys, from, k.add(from, k.constant(blockSize))), tops, block);
        Box box = boxAt(batch, item);
        auto branch = scf::IfOp::create(b, loc, b.getIndexType(), overlapsKept(box, count), /*withElseRegion=*/true);
        b.setInsertionPointToStart(branch.thenBlock());
        scf::YieldOp::create(b, loc, count);
        b.setInsertionPointToStart(branch.elseBlock());
        keep(box, count);
        memref::StoreOp::create(b, loc, arith::IndexCastOp::create(b, loc, i64, item), output, k.add(row, count));
        scf::YieldOp::create(b, loc, k.add(count, one));
        b.setInsertionPointAfter(branch);
        scf::YieldOp::create(b, loc, branch.getResult(0));
      });
}

LogicalResult lowerSuppress(KernelBuilder &k, ds::SuppressOp op) {
  Suppression suppression(k, op);
  k.loop(k.begin, k.end, k.constant(1), [&](Value line) { suppression.emitLine(line); });
  return success();
}

} // namespace deepstride
