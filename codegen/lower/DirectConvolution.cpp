// A convolution with so few filters for each group, as a depthwise one has, that gathering panels would cost as much as
// it saves: filters walk over the image.

#include "codegen/lower/DirectConvolution.h"

#include "codegen/kernel/Epilogue.h"
#include "codegen/kernel/FilterRows.h"
#include "codegen/lower/ConvolutionImage.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;

namespace deepstride {

namespace {

struct DirectConvolution {
  DirectConvolution(KernelBuilder &k, ds::ConvOp op)
      : k(k), b(k.b), loc(k.loc), op(op), image(k, op, /*joinsAxes=*/false), sum(k.elementOf(op.getResult())),
        axes(image.pixels.size()), zero(k.constant(0)), one(k.constant(1)), epilogue(k, op) {}

  void emit(const MicroKernel &micro);

private:
  Value sumTaps(VectorType type, Value base, Value weights, ArrayRef<Value> starts, bool isWhole);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::ConvOp op;
  ConvolutionImage image;
  Type sum;
  size_t axes;
  Value zero, one;
  Epilogue epilogue;
};

} // namespace

/// The sums of all taps for a vector of pixels, whose windows start at `starts`. Rows of padding are left out.
Value DirectConvolution::sumTaps(VectorType type, Value base, Value weights, ArrayRef<Value> starts, bool isWhole) {
  SizeVector taps(image.weight.begin() + 1, image.weight.end());
  constexpr int64_t longest = 9; // taps along an axis that are written one by one
  auto over = [&](const SizeExpr &count, Value start, llvm::function_ref<Value(Value, Value)> body) -> Value {
    if (auto fixed = count.constant(); fixed && *fixed <= longest) {
      for (int64_t i = 0; i < *fixed; ++i)
        start = body(k.constant(i), start);
      return start;
    }
    auto loop = scf::ForOp::create(b, loc, zero, k.index(count), one, ValueRange{start},
                                   [&](OpBuilder &, Location, Value at, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(b);
                                     b.setInsertionPointToEnd(at.getParentBlock());
                                     scf::YieldOp::create(b, loc, body(at, carried[0]));
                                   });
    return loop.getResult(0);
  };
  std::function<Value(size_t, Value, Value, Value)> along = [&](size_t axis, Value from, Value number, Value start) {
    return over(taps[axis + 1], start, [&](Value tap, Value carried) -> Value {
      Value place = k.add(starts[axis], k.mul(tap, k.constant(image.dilations[axis])));
      Value at = k.add(from, k.mul(place, image.strides[axis]));
      Value next = k.add(k.mul(number, k.index(taps[axis + 1])), tap);
      if (axis + 1 == axes) {
        Value factor = k.load(k.bufferOf(op.getWeight()), k.add(weights, next), image.element);
        Value wide = vector::BroadcastOp::create(b, loc, type, factor),
              pixels = fromStorage(b, loc, image.loadPixels(type.getDimSize(0), at, place, isWhole), image.element);
        if (isa<FloatType>(type.getElementType()))
          return vector::FMAOp::create(b, loc, wide, pixels, carried);
        return arith::AddIOp::create(b, loc, carried, arith::MulIOp::create(b, loc, wide, pixels));
      }
      auto branch =
          scf::IfOp::create(b, loc, TypeRange{Type(type)}, image.isInside(place, axis), /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, loc, along(axis + 1, at, next, carried));
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, loc, carried);
      return branch.getResult(0);
    });
  };
  Value start = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return over(taps[0], start, [&](Value channel, Value carried) {
    return along(0, k.add(base, k.mul(channel, image.plane)), channel, carried);
  });
}

/// One grid item is one row of pixels of one filter.
void DirectConvolution::emit(const MicroKernel &micro) {
  VectorType type = micro.accumulator;
  int64_t lanes = micro.lanes(), last = static_cast<int64_t>(axes) - 1, stride = image.steps.back();
  SizeVector rows(image.result.begin(), image.result.end() - 1);
  k.setGrid(product(rows), 8);
  Value groups = k.constant(op.getGroups()), channels = k.index(image.weight[1]), pixels = k.index(image.result.back());
  Value filters = k.divide(k.index(image.weight[0]), groups),
        tapCount = k.index(product(ArrayRef(image.weight).drop_front()));
  // From a vector's first element to one beyond its last, over all taps of the axis.
  Value reach = k.add(k.mul(k.sub(k.index(image.weight.back()), one), k.constant(image.dilations[last])),
                      k.constant(stride * lanes));
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, rows);
    Value base =
        k.mul(k.add(k.mul(at[0], k.index(image.input[1])), k.mul(k.divide(at[1], filters), channels)), image.plane);
    Value weights = k.mul(at[1], tapCount), row = k.add(k.mul(at[0], k.index(image.result[1])), at[1]);
    Value target = k.mul(k.linearize(ArrayRef(at).drop_front(2), ArrayRef(rows).drop_front(2)), pixels);
    SmallVector<Value> starts;
    for (size_t i = 0; i + 1 < axes; ++i)
      starts.push_back(image.startOf(at[i + 2], i));
    starts.push_back({});
    k.loop(zero, pixels, k.constant(lanes), [&](Value first) {
      starts.back() = image.startOf(first, axes - 1);
      auto compare = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
        return arith::CmpIOp::create(b, loc, how, x, y);
      };
      Value isWhole =
          arith::AndIOp::create(b, loc, compare(arith::CmpIPredicate::sge, starts.back(), zero),
                                compare(arith::CmpIPredicate::sle, k.add(starts.back(), reach), image.sizes.back()));
      auto branch = scf::IfOp::create(b, loc, TypeRange{Type(type)}, isWhole, /*withElseRegion=*/true);
      {
        OpBuilder::InsertionGuard guard(b);
        for (bool whole : {true, false}) {
          b.setInsertionPointToStart(whole ? branch.thenBlock() : branch.elseBlock());
          scf::YieldOp::create(b, loc, sumTaps(type, base, weights, starts, whole));
        }
      }
      Value value = branch.getResult(0), remaining = k.sub(pixels, first);
      if (op.getBias())
        value = emitBinary(b, loc, ds::BinaryKind::add, value,
                           vector::BroadcastOp::create(b, loc, type, k.load(k.bufferOf(op.getBias()), at[1], sum)), sum,
                           sum);
      Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, remaining, k.constant(lanes));
      auto store = scf::IfOp::create(b, loc, isFull, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(store.thenBlock());
      epilogue.store(value, {row, k.add(target, first), {}});
      b.setInsertionPointToStart(store.elseBlock());
      epilogue.store(value, {row, k.add(target, first), lanesBelow(k, lanes, remaining)});
    });
  });
}

bool isDirect(KernelBuilder &k, ds::ConvOp op, const MicroKernel &micro) {
  return op.hasFewFilters() && op.getStrides().back() <= 2 && micro.interleave == 1 &&
         k.elementOf(op.getInput()) == k.elementOf(op.getResult()) && !FilterRows(k, op);
}

void emitDirectConvolution(KernelBuilder &k, ds::ConvOp op, const MicroKernel &micro) {
  DirectConvolution(k, op).emit(micro);
}

} // namespace deepstride
