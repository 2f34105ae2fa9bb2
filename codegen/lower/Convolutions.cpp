// Convolution as a product of tiles: filters times panels of pixels, whose columns are gathered from the image into
// scratch (implicit GEMM). A panel is gathered once for all filters of a group. Pixels that follow each other in a row
// of the result are a run; a tap of the filter reads a run's elements from one row of the image, so that they are
// copied in vectors. Where a group has a single filter, as in a depthwise convolution, gathering would cost as much as
// it saves, and the filter walks over the image itself.
#include "codegen/kernel/Epilogue.h"
#include "codegen/kernel/FilterRows.h"
#include "codegen/tile/Widen.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;

namespace deepstride {

namespace {

struct Convolution {
  Convolution(KernelBuilder &k, ds::ConvOp op)
      : k(k), b(k.b), loc(k.loc), op(op), input(k.sizesOf(op.getInput())), weight(k.sizesOf(op.getWeight())),
        result(k.sizesOf(op.getResult())), element(k.elementOf(op.getInput())), sum(k.elementOf(op.getResult())),
        spatial(input.size() - 2), source(k.bufferOf(op.getInput())), zero(k.constant(0)), one(k.constant(1)),
        filterRows(k, op), epilogue(k, op) {
    SizeVector imageStrides = KernelBuilder::strides(ArrayRef(input).drop_front(2));
    for (size_t i = 0; i < spatial; ++i) {
      sizes.push_back(k.index(input[i + 2]));
      strides.push_back(k.index(imageStrides[i]));
    }
    plane = k.index(product(ArrayRef(input).drop_front(2)));
  }

  LogicalResult verify() { return success(!filterRows || succeeded(filterRows.verify())); }
  /// With `areWords`, filters of bytes are multiplied as words.
  void emitProduct(const MicroKernel &micro, bool areWords);
  /// Whether all filters of bytes can become words in scratch once, not in registers for each panel.
  bool canBecomeWords();
  /// Whether emitDirect can and should be taken: few filters share what they would gather.
  bool isDirect(const MicroKernel &micro);
  void emitDirect(const MicroKernel &micro);

private:
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }
  Value atLeast(Value x, Value low) { return arith::MaxSIOp::create(b, loc, x, low); }
  Value atMost(Value x, Value high) { return arith::MinSIOp::create(b, loc, x, high); }
  Value isInside(Value place, size_t axis) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, sizes[axis]);
  }
  /// Where the window of a pixel starts along an axis; below 0 in the padding.
  Value startOf(Value pixel, size_t axis) {
    return k.sub(k.mul(pixel, k.constant(op.getStrides()[axis])), k.constant(op.getPads()[axis]));
  }
  bool isPointwise() {
    auto isOne = [](int64_t x) { return x == 1; };
    return llvm::all_of(ArrayRef(weight).drop_front(2), [](const SizeExpr &size) { return size.isConstant(1); }) &&
           llvm::all_of(op.getStrides(), isOne) && llvm::all_of(op.getPads(), [](int64_t x) { return x == 0; });
  }
  /// Strides whose elements a vector's worth of pixels picks out of whole vectors.
  bool isVectorStride() { return op.getStrides().back() <= 2; }
  Value biasOf(Value filter) { return k.load(k.bufferOf(op.getBias()), filter, sum); }

  Matrix emitWords(Value depth);
  Value loadPixels(int64_t lanes, Value at, Value place, bool isWhole);
  Value isRowOf(Value place, Value reach);
  void clear(Value to, Value count);
  Value sumTaps(VectorType type, Value base, Value weights, ArrayRef<Value> starts, bool isWhole);
  void findRuns(Value first, Value count);
  void gather(Value base, Value to, int64_t width, int64_t lanes);
  void copyRun(Value from, Value place, Value to, Value count, int64_t lanes);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::ConvOp op;
  SizeVector input, weight, result;
  Type element, sum;
  size_t spatial;
  Value source, zero, one, plane;
  SmallVector<Value> sizes, strides; // of the image's spatial axes
  Value staging;                     // gathered rows, one for each tap
  Value runs, runCount;              // records of runs, and how many there are
  FilterRows filterRows;
  Epilogue epilogue;
};

/// What is known of a run: the column of its first pixel, how many pixels it has, where its windows start along each
/// axis.
constexpr int64_t runColumn = 0, runLength = 1, runStart = 2;

} // namespace

/// Fills the table of runs with those of pixels [first, first + count).
void Convolution::findRuns(Value first, Value count) {
  Value record = k.constant(runStart + static_cast<int64_t>(spatial)), pixels = k.index(result.back());
  memref::StoreOp::create(b, loc, zero, runCount);
  scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType()}, ValueRange{zero},
      [&](OpBuilder &, Location, ValueRange at) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(at[0].getParentBlock());
        Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at[0], count);
        scf::ConditionOp::create(b, loc, goesOn, at);
      },
      [&](OpBuilder &, Location, ValueRange at) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(at[0].getParentBlock());
        SmallVector<Value> place = k.delinearize(k.add(first, at[0]), ArrayRef(result).drop_front(2));
        Value length = atMost(k.sub(pixels, place.back()), k.sub(count, at[0]));
        Value number = memref::LoadOp::create(b, loc, runCount), base = k.mul(number, record);
        auto put = [&](int64_t field, Value value) {
          memref::StoreOp::create(b, loc, value, runs, k.add(base, k.constant(field)));
        };
        put(runColumn, at[0]);
        put(runLength, length);
        for (size_t i = 0; i < spatial; ++i)
          put(runStart + static_cast<int64_t>(i), startOf(place[i], i));
        memref::StoreOp::create(b, loc, k.add(number, one), runCount);
        scf::YieldOp::create(b, loc, k.add(at[0], length));
      });
}

/// Consecutive pixels' elements as they are stored, the first at `place` of a row of the image. Unless `isWhole`, some
/// may lie in the padding and are 0.
Value Convolution::loadPixels(int64_t lanes, Value at, Value place, bool isWhole) {
  int64_t count = lanes * op.getStrides().back();
  Value mask;
  if (!isWhole) {
    Value low = atLeast(k.sub(zero, place), zero), high = atLeast(k.sub(sizes.back(), place), low);
    mask = arith::XOrIOp::create(b, loc, lanesBelow(k, count, high), lanesBelow(k, count, low));
  }
  Value raw = loadLanes(k, VectorType::get({count}, storageType(element)), source, at, mask);
  return count > lanes ? vector::DeinterleaveOp::create(b, loc, raw).getRes1() : raw;
}

/// Whether `reach` elements from `place` on lie in a row of the image.
Value Convolution::isRowOf(Value place, Value reach) {
  Value begins = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, place, zero);
  Value ends = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, k.add(place, reach), sizes.back());
  return arith::AndIOp::create(b, loc, begins, ends);
}

/// Copies what a tap reads of a run, whose first pixel's is `from`, at `place` of its row of the image; 0 in the
/// padding. Whole vectors are written, up to `lanes` - 1 elements beyond the run: what comes there is written later.
void Convolution::copyRun(Value from, Value place, Value to, Value count, int64_t lanes) {
  int64_t stride = op.getStrides().back();
  if (isVectorStride()) {
    k.loop(zero, count, k.constant(lanes), [&](Value at) {
      Value ahead = k.mul(at, k.constant(stride)), here = k.add(place, ahead);
      auto branch = scf::IfOp::create(b, loc, isRowOf(here, k.constant(stride * lanes)), /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      for (bool isWhole : {true, false}) {
        b.setInsertionPointToStart(isWhole ? branch.thenBlock() : branch.elseBlock());
        storeLanes(k, loadPixels(lanes, k.add(from, ahead), here, isWhole), staging, k.add(to, at), {});
      }
    });
    return;
  }
  // Pixels whose tap is in the image: place + pixel * stride from 0 to the size.
  Value round = k.constant(stride - 1), step = k.constant(stride);
  auto pixelsBelow = [&](Value end) { return atMost(k.divide(k.add(atLeast(end, zero), round), step), count); };
  Value low = pixelsBelow(k.sub(zero, place)), high = atLeast(pixelsBelow(k.sub(sizes.back(), place)), low);
  clear(to, low);
  k.loop(low, high, one, [&](Value at) {
    Value value = memref::LoadOp::create(b, loc, source, k.add(from, k.mul(at, step)));
    memref::StoreOp::create(b, loc, value, staging, k.add(to, at));
  });
  clear(k.add(to, high), k.sub(count, high));
}

void Convolution::clear(Value to, Value count) {
  Value none = toStorage(b, loc, scalarConstant(b, loc, element, 0.0), element);
  k.loop(zero, count, one, [&](Value at) { memref::StoreOp::create(b, loc, none, staging, k.add(to, at)); });
}

/// One row of `width` pixels for each tap; `base` is the first element of the group's first channel.
void Convolution::gather(Value base, Value to, int64_t width, int64_t lanes) {
  SizeVector taps(weight.begin() + 1, weight.end());
  Value record = k.constant(runStart + static_cast<int64_t>(spatial)),
        number = memref::LoadOp::create(b, loc, runCount);
  k.loopNest(taps, [&](ArrayRef<Value> tap) {
    Value row = k.add(to, k.mul(k.linearize(tap, taps), k.constant(width)));
    Value channel = k.add(base, k.mul(tap[0], plane));
    k.loop(zero, number, one, [&](Value run) {
      Value at = k.mul(run, record);
      auto get = [&](int64_t field) -> Value {
        return memref::LoadOp::create(b, loc, runs, k.add(at, k.constant(field)));
      };
      Value column = get(runColumn), count = get(runLength), from = channel, inside;
      Value place;
      for (size_t i = 0; i < spatial; ++i) {
        place = k.add(get(runStart + static_cast<int64_t>(i)), k.mul(tap[i + 1], k.constant(op.getDilations()[i])));
        from = k.add(from, k.mul(place, strides[i]));
        if (i + 1 < spatial)
          inside = inside ? arith::AndIOp::create(b, loc, inside, isInside(place, i)).getResult() : isInside(place, i);
      }
      Value target = k.add(row, column);
      if (!inside)
        return copyRun(from, place, target, count, lanes);
      auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      copyRun(from, place, target, count, lanes);
      b.setInsertionPointToStart(branch.elseBlock()); // a row of padding
      clear(target, count);
    });
  });
}

bool Convolution::canBecomeWords() {
  constexpr int64_t mostBytes = 2 << 20; // they are read once for each panel: no more than a thread's share of a cache
  SizeExpr elements = product(weight);
  return !filterRows && elements.constant() && 2 * *elements.constant() <= mostBytes;
}

/// All filters as words, one behind the other.
Matrix Convolution::emitWords(Value depth) {
  constexpr int64_t count = 16; // words of a vector of 256 bits
  SizeExpr elements = product(weight);
  Value words = k.scratchOf(b.getI16Type(), elements), bytes = k.bufferOf(op.getWeight());
  auto raw = VectorType::get({count}, b.getI8Type());
  Value all = k.index(elements), size = k.constant(count), whole = k.sub(all, k.remainder(all, size));
  auto widen = [&](Value at, Value mask) {
    Value loaded = loadLanes(k, raw, bytes, at, mask);
    storeLanes(k, emitCast(b, loc, loaded, k.elementOf(op.getWeight()), b.getI16Type()), words, at, mask);
  };
  k.loop(zero, whole, size, [&](Value at) { widen(at, {}); });
  k.loop(whole, all, size, [&](Value at) { widen(at, lanesBelow(k, count, k.sub(all, at))); });
  return {words, zero, depth, one};
}

/// How many filters of a group a thread multiplies before another may take over: half of a hundred and more, and no
/// fewer than give what is done for each part little weight.
static int64_t partOfFilters(const SizeExpr &filters, int64_t most) {
  constexpr int64_t fewest = 32;
  auto known = filters.constant();
  return known ? std::min(std::max((*known + 1) / 2, fewest), most) : most;
}

void Convolution::emitProduct(const MicroKernel &micro, bool areWords) {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  int64_t lanes = micro.lanes(), width = schedule.getColumns(), groupCount = op.getGroups();
  SizeExpr depthSize = product(ArrayRef(weight).drop_front()), columnsSize = product(ArrayRef(result).drop_front(2));
  // An item is a panel and a part of the filters, so that threads share the few panels of a small image. What a panel
  // gathers, each thread gathers once.
  SizeExpr filtersSize = SizeExpr::floorDiv(weight[0], groupCount);
  int64_t filtersPerSweep = partOfFilters(filtersSize, schedule.getSweep());
  k.setGrid(result[0] * SizeExpr(groupCount) * SizeExpr::ceilDiv(columnsSize, width) *
                SizeExpr::ceilDiv(filtersSize, filtersPerSweep),
            1);
  Value depth = k.index(depthSize), columns = k.index(columnsSize), channels = k.index(weight[1]);
  Value panels = k.ceilDiv(columns, width);
  Value filters = k.divide(k.index(weight[0]), k.constant(groupCount));
  // What is gathered is the panel itself where that holds rows of the same elements.
  bool isPanel = micro.interleave == 1 && micro.panel == element, isMatrix = isPointwise();
  SizeExpr packedSize = panelSpace(micro, depthSize, width) + SizeExpr(lanes);
  SizeExpr stagingSize = isPanel || isMatrix ? SizeExpr(0) : depthSize * SizeExpr(width) + SizeExpr(lanes);
  epilogue.reserve(filtersPerSweep, width);
  if (filterRows)
    filterRows.reserve(filtersPerSweep);
  int64_t packedBytes = storageBytes(micro.panel), stagingBytes = storageBytes(element);
  Value bytes = k.scratchOf(b.getI8Type(), packedSize * SizeExpr(packedBytes) + stagingSize * SizeExpr(stagingBytes));
  auto view = [&](Type type, const SizeExpr &size, const SizeExpr &offset) -> Value {
    return memref::ViewOp::create(b, loc, MemRefType::get({ShapedType::kDynamic}, storageType(type)), bytes,
                                  k.index(offset), ValueRange{k.index(size)});
  };
  Value packed = view(micro.panel, packedSize, 0);
  staging = isPanel ? packed : view(element, stagingSize, packedSize * SizeExpr(packedBytes));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&k.function.front());
    int64_t records = width * (runStart + static_cast<int64_t>(spatial));
    runs = memref::AllocaOp::create(b, loc, MemRefType::get({records}, b.getIndexType()));
  }
  Matrix given;
  if (areWords)
    given = emitWords(depth);
  else if (!filterRows)
    given = {k.bufferOf(op.getWeight()), zero, depth, one};
  runCount = k.cell(b.getIndexType());
  Value parts = k.ceilDiv(filters, filtersPerSweep);
  // Filters of parts [from, to).
  auto panel = [&](Value number, Value image, Value group, Value from, Value to, int64_t width, int64_t rows) {
    Value first = k.mul(number, k.constant(width));
    Value base = k.mul(k.add(k.mul(image, k.index(input[1])), k.mul(group, channels)), plane);
    if (isMatrix) { // the channels' planes are the matrix
      Matrix pixels{source, base, plane, one};
      emitPackPanel(k, micro, pixels, element, depth, first, columns, packed, zero, width);
    } else {
      findRuns(first, k.minimum(k.constant(width), k.sub(columns, first)));
      gather(base, zero, width, lanes);
      if (!isPanel)
        emitPackPanel(k, micro, Matrix{staging, zero, k.constant(width), one}, element, depth, zero, k.constant(width),
                      packed, zero, width);
    }
    Value firstFilter = k.mul(group, filters);
    Value target = k.add(k.mul(image, k.index(weight[0])), firstFilter), here = k.sub(columns, first);
    k.loop(from, to, one, [&](Value part) {
      Value sweep = k.mul(part, k.constant(filtersPerSweep));
      Value count = atMost(k.constant(filtersPerSweep), k.sub(filters, sweep)), filter = k.add(firstFilter, sweep);
      Matrix lhs = filterRows ? filterRows.emit(filter, count) : Matrix{given.buffer, k.mul(filter, depth), depth, one};
      epilogue.emit({k.add(target, sweep), count, first, here, width}, lanes, [&](TileSink sink) {
        emitPanelProduct(k, micro, lhs, count, depth, Panel{packed, zero, width / lanes, {}}, here, rows,
                         [&](Value row, int64_t v, Value value, Value mask) {
                           if (!op.getBias())
                             return sink(row, v, value, mask);
                           Value added =
                               vector::BroadcastOp::create(b, loc, value.getType(), biasOf(k.add(filter, row)));
                           sink(row, v, emitBinary(b, loc, ds::BinaryKind::add, value, added, sum, sum), mask);
                         });
      });
    });
  };
  // Images of a few pixels, which only the run may know, fill one vector: with the same steps in the same order.
  bool mayBeSmall = width > lanes && !columnsSize.constant();
  int64_t rowsOfSmall = schedule.getRows() * width / lanes * 2 / 3;
  k.loop(k.divide(k.begin, parts), k.divide(k.add(k.end, k.sub(parts, one)), parts), one, [&](Value item) {
    Value firstPart = k.mul(item, parts);
    Value from = atLeast(k.sub(k.begin, firstPart), zero), to = atMost(k.sub(k.end, firstPart), parts);
    Value number = k.remainder(item, panels), outer = k.divide(item, panels);
    Value group = k.remainder(outer, k.constant(groupCount)), image = k.divide(outer, k.constant(groupCount));
    if (!mayBeSmall)
      return panel(number, image, group, from, to, width, schedule.getRows());
    Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, columns, k.constant(lanes));
    auto branch = scf::IfOp::create(b, loc, isSmall, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    panel(number, image, group, from, to, lanes, rowsOfSmall);
    b.setInsertionPointToStart(branch.elseBlock());
    panel(number, image, group, from, to, width, schedule.getRows());
  });
}

bool Convolution::isDirect(const MicroKernel &micro) {
  return op.hasFewFilters() && isVectorStride() && micro.interleave == 1 && element == sum && !filterRows;
}

/// The sums of all taps for a vector of pixels, whose windows start at `starts`. Rows of padding are left out.
Value Convolution::sumTaps(VectorType type, Value base, Value weights, ArrayRef<Value> starts, bool isWhole) {
  SizeVector taps(weight.begin() + 1, weight.end());
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
      Value place = k.add(starts[axis], k.mul(tap, k.constant(op.getDilations()[axis])));
      Value at = k.add(from, k.mul(place, strides[axis]));
      Value next = k.add(k.mul(number, k.index(taps[axis + 1])), tap);
      if (axis + 1 == spatial) {
        Value factor = k.load(k.bufferOf(op.getWeight()), k.add(weights, next), element);
        Value wide = vector::BroadcastOp::create(b, loc, type, factor),
              pixels = fromStorage(b, loc, loadPixels(type.getDimSize(0), at, place, isWhole), element);
        if (isa<FloatType>(type.getElementType()))
          return vector::FMAOp::create(b, loc, wide, pixels, carried);
        return arith::AddIOp::create(b, loc, carried, arith::MulIOp::create(b, loc, wide, pixels));
      }
      auto branch = scf::IfOp::create(b, loc, TypeRange{Type(type)}, isInside(place, axis), /*withElseRegion=*/true);
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
    return along(0, k.add(base, k.mul(channel, plane)), channel, carried);
  });
}

/// One grid item is one row of pixels of one filter.
void Convolution::emitDirect(const MicroKernel &micro) {
  VectorType type = micro.accumulator;
  int64_t lanes = micro.lanes(), last = static_cast<int64_t>(spatial) - 1, stride = op.getStrides()[last];
  SizeVector rows(result.begin(), result.end() - 1);
  k.setGrid(product(rows), 8);
  Value groups = k.constant(op.getGroups()), channels = k.index(weight[1]), pixels = k.index(result.back());
  Value filters = k.divide(k.index(weight[0]), groups), tapCount = k.index(product(ArrayRef(weight).drop_front()));
  // From a vector's first element to one beyond its last, over all taps of the axis.
  Value reach =
      k.add(k.mul(k.sub(k.index(weight.back()), one), k.constant(op.getDilations()[last])), k.constant(stride * lanes));
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, rows);
    Value base = k.mul(k.add(k.mul(at[0], k.index(input[1])), k.mul(k.divide(at[1], filters), channels)), plane);
    Value weights = k.mul(at[1], tapCount), row = k.add(k.mul(at[0], k.index(result[1])), at[1]);
    Value target = k.mul(k.linearize(ArrayRef(at).drop_front(2), ArrayRef(rows).drop_front(2)), pixels);
    SmallVector<Value> starts;
    for (size_t i = 0; i + 1 < spatial; ++i)
      starts.push_back(startOf(at[i + 2], i));
    starts.push_back({});
    k.loop(zero, pixels, k.constant(lanes), [&](Value first) {
      starts.back() = startOf(first, spatial - 1);
      auto compare = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
        return arith::CmpIOp::create(b, loc, how, x, y);
      };
      Value isWhole =
          arith::AndIOp::create(b, loc, compare(arith::CmpIPredicate::sge, starts.back(), zero),
                                compare(arith::CmpIPredicate::sle, k.add(starts.back(), reach), sizes.back()));
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
        value = emitBinary(b, loc, ds::BinaryKind::add, value, vector::BroadcastOp::create(b, loc, type, biasOf(at[1])),
                           sum, sum);
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

static ds::ProductTypes typesOf(KernelBuilder &k, ds::ConvOp op) {
  return {k.elementOf(op.getWeight()), k.elementOf(op.getInput()), k.elementOf(op.getResult())};
}

LogicalResult lowerConv(KernelBuilder &k, ds::ConvOp op) {
  SizeVector weight = k.sizesOf(op.getWeight()), result = k.sizesOf(op.getResult());
  k.setFlops(product(result) * product(ArrayRef(weight).drop_front(1)) * SizeExpr(2));
  auto kernel = scheduledKernel(k, op, typesOf(k, op), /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  auto micro = std::move(*kernel);
  if (failed(Epilogue(k, op).verify()))
    return failure();
  if (!micro && !isa<BlockArgument>(op.getWeight()))
    return op.emitOpError("without a schedule has filters that its kernel computes");
  if (!micro)
    return lowerPlainConv(k, op);
  k.setArithmetic(micro->arithmetic());
  Convolution convolution(k, op);
  if (failed(convolution.verify()))
    return failure();
  if (convolution.isDirect(*micro))
    convolution.emitDirect(*micro);
  else if (ds::scheduleOf(op).getKernel() == ds::ProductKernel::byte_pairs && convolution.canBecomeWords())
    convolution.emitProduct(*kernelOfWords(k.target, typesOf(k, op)), /*areWords=*/true);
  else
    convolution.emitProduct(*micro, /*areWords=*/false);
  return success();
}

} // namespace deepstride
