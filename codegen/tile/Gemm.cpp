// Emits native-width vector code directly: accumulators are loop-carried values, so nothing can keep them in memory
// (upstream's path on memrefs reaches a third of the peak because of possible aliasing).
#include "codegen/tile/Gemm.h"

#include "codegen/tile/RowDigits.h"
#include "codegen/tile/Squares.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Steps of K in one iteration: what a loop costs beside its multiply-adds takes slots that these need.
static constexpr int64_t unroll = 4;

/// So few rows, or multiply-adds with each line of a panel on processors that look far, leave room in the processor's
/// queues for loads of later lines, which reach far enough ahead: prefetches only take the place of some of them, where
/// nothing is converted.
static constexpr int64_t mostRowsAhead = 2, mostPerLine = 6;

static Value equals(KernelBuilder &k, Value a, Value b) {
  return k.b.createOrFold<arith::CmpIOp>(k.loc, arith::CmpIPredicate::eq, a, b);
}

Value loadLanes(KernelBuilder &k, VectorType type, Value buffer, Value position, Value mask) {
  if (!mask)
    return vector::LoadOp::create(k.b, k.loc, type, buffer, position);
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(k.b, k.loc, type, buffer, position, mask, zero);
}

void prefetch(KernelBuilder &k, Value buffer, Value position) {
  memref::PrefetchOp::create(k.b, k.loc, buffer, position, /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

void storeLanes(KernelBuilder &k, Value vector, Value buffer, Value position, Value mask) {
  if (mask)
    vector::MaskedStoreOp::create(k.b, k.loc, buffer, position, mask, vector);
  else
    vector::StoreOp::create(k.b, k.loc, vector, buffer, position);
}

Value lanesBelow(KernelBuilder &k, int64_t lanes, Value count) {
  return vector::CreateMaskOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), count);
}

SizeExpr panelSpace(const MicroKernel &micro, const SizeExpr &depth, int64_t width) {
  return (depth + SizeExpr(micro.interleave - 1)) * SizeExpr(width);
}
Value panelElements(KernelBuilder &k, const MicroKernel &micro, Value depth, int64_t width) {
  Value steps = k.ceilDiv(depth, micro.interleave);
  return k.mul(steps, k.constant(micro.storedPerStep() * width));
}

Value codesAt(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, Value group, int64_t vector) {
  int64_t each = panel.vectorsOfEach();
  Value row = k.add(panel.codes.offset, k.mul(group, k.constant(panelWidth(micro, each))));
  if (vector >= each)
    row = k.add(row, k.mul(panel.codes.apart, k.constant(vector / each)));
  return k.add(row, k.constant(vector % each * micro.lanes()));
}

void fetchScales(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, Value group) {
  constexpr int64_t ahead = 16, line = 16; // floats
  int64_t width = panelWidth(micro, panel.vectorsOfEach());
  Value row = k.add(panel.codes.offset, k.mul(k.add(group, k.constant(ahead)), k.constant(width)));
  for (int64_t number = 0; number < panel.together; ++number) {
    Value place = k.minimum(row, panel.codes.last);
    for (int64_t column = 0; column < width; column += line)
      prefetch(k, panel.codes.scales, k.add(place, k.constant(column)));
    if (number + 1 < panel.together)
      row = k.add(row, panel.codes.apart);
  }
}

SmallVector<Value> zeroPointsOf(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, Value group) {
  SmallVector<Value> result(panel.vectors);
  if (!panel.codes.zeroPoints)
    return result;
  auto bytes = VectorType::get({micro.lanes()}, k.b.getI8Type());
  bool areIntegers = isa<IntegerType>(micro.accumulator.getElementType());
  for (int64_t v = 0; v < panel.vectors; ++v) {
    Value stored = loadLanes(k, bytes, panel.codes.zeroPoints, codesAt(k, micro, panel, group, v), Value());
    if (areIntegers)
      result[v] = arith::ExtSIOp::create(k.b, k.loc, micro.accumulator, stored);
    else
      result[v] = arith::SIToFPOp::create(k.b, k.loc, micro.accumulator, stored);
  }
  return result;
}

namespace {
/// The blocks of rows of one panel product: all heights from `rowBlock` down to 1 are emitted, and at most two of them
/// run, one for `taller` blocks of `height` + 1 rows and one for the other blocks, of `height` rows.
struct RowBlocks {
  RowBlocks(KernelBuilder &k, Value rows, int64_t rowBlock)
      : count(k.ceilDiv(rows, rowBlock)), divisor(k.b.createOrFold<arith::MaxUIOp>(k.loc, count, k.constant(1))),
        height(k.divide(rows, divisor)), taller(k.remainder(rows, divisor)) {}
  Value count, divisor, height, taller;
};

struct Tile {
  KernelBuilder &k;
  const VectorKernel &micro;
  const Matrix &lhs;
  Value depth;
  const Panel &panel;
  SmallVector<Value> numbers; // of the rows
  TileStart first = nullptr;
  SmallVector<Value> rows = {};                                      // places of the first elements, of all digits
  SmallVector<Value> zeroPoints = SmallVector<Value>(panel.vectors); // of the group, where there are some

  SmallVector<Value> step(Value number, int64_t ahead, ValueRange sums, Value count = {}) {
    int64_t each = panel.vectorsOfEach(), width = panelWidth(micro, each) * micro.storedPerStep();
    int64_t stride = micro.lanes() * micro.storedPerStep();
    Value base = k.add(panel.offset, k.mul(number, k.constant(width)));
    Value along = k.mul(alongOf(k.add(number, k.constant(ahead))), lhs.columnStride);
    SmallVector<Value> stored, next(sums);
    for (int64_t v = 0; v < panel.vectors; ++v) {
      Value place = k.add(base, k.constant(ahead * width + v % each * stride));
      if (v >= each)
        place = k.add(place, k.mul(apart(), k.constant(v / each)));
      stored.push_back(micro.loadPanel(k, panel.buffer, place));
    }
    for (int64_t part = 0; part < micro.parts(); ++part) {
      SmallVector<Value> columns;
      for (auto [v, loaded] : llvm::enumerate(stored)) {
        Value ofPart = micro.parts() > 1 ? micro.elementsAt(k, loaded, part) : loaded;
        columns.push_back(zeroPoints[v] ? micro.subtract(k, ofPart, zeroPoints[v]) : ofPart);
      }
      for (auto [row, offset] : llvm::enumerate(rows)) {
        Value wide = micro.loadRow(k, lhs, k.add(offset, along), count, part);
        for (int64_t v = 0; v < panel.vectors; ++v) {
          Value &sum = next[row * panel.vectors + v];
          sum = micro.multiplyAdd(k, wide, columns[v], sum);
        }
      }
    }
    return next;
  }

  /// Where along K the elements of a step begin.
  Value alongOf(Value number) {
    if (!panel.places)
      return k.mul(number, k.constant(micro.interleave));
    Value place = memref::LoadOp::create(k.b, k.loc, panel.places, number);
    return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), place);
  }

  /// Steps [from, to) in groups of `group`, with the sums carried.
  SmallVector<Value> steps(Value from, Value to, int64_t group, ArrayRef<Value> sums,
                           llvm::function_ref<void(Value)> prefetch = nullptr) {
    auto loop = scf::ForOp::create(k.b, k.loc, from, to, k.constant(group), sums,
                                   [&](OpBuilder &, Location, Value number, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(k.b);
                                     k.b.setInsertionPointToEnd(number.getParentBlock());
                                     if (prefetch)
                                       prefetch(number);
                                     SmallVector<Value> now(carried);
                                     for (int64_t ahead = 0; ahead < group; ++ahead)
                                       now = step(number, ahead, now);
                                     scf::YieldOp::create(k.b, k.loc, now);
                                   });
    return SmallVector<Value>(loop.getResults());
  }

  /// Steps [from, to), unrolled, and with `hasRest` the elements of K that fill no step.
  SmallVector<Value> range(Value from, Value to, bool hasRest, ArrayRef<Value> start,
                           llvm::function_ref<void(Value)> prefetch) {
    Value unrolled = k.sub(to, k.remainder(k.sub(to, from), k.constant(unroll)));
    SmallVector<Value> sums = steps(from, unrolled, unroll, start, prefetch);
    sums = steps(unrolled, to, 1, sums);
    return hasRest ? rest(to, sums) : sums;
  }

  /// What is left of K after whole steps.
  SmallVector<Value> rest(Value whole, ArrayRef<Value> sums) {
    Value done = k.mul(whole, k.constant(micro.interleave));
    Value hasRest = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, done, depth);
    SmallVector<Type> types(sums.size(), micro.accumulator);
    auto rest = scf::IfOp::create(k.b, k.loc, types, hasRest, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(rest.thenBlock());
    scf::YieldOp::create(k.b, k.loc, step(whole, 0, SmallVector<Value>(sums), k.sub(depth, done)));
    k.b.setInsertionPointToStart(rest.elseBlock());
    scf::YieldOp::create(k.b, k.loc, sums);
    return SmallVector<Value>(rest.getResults());
  }

  bool hasDigits() const { return micro.digits() > 1; }
  VectorType typeOfSums() const { return VectorType::get({micro.lanes()}, computeType(micro.result)); }
  SmallVector<Value> zeros(VectorType type, size_t count) {
    return SmallVector<Value>(count, arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type)));
  }

  /// What sums begin with: of digits what takes the bias off codes, and their zero points.
  SmallVector<Value> start() {
    if (first) {
      SmallVector<Value> sums;
      for (Value row : numbers)
        for (int64_t v = 0; v < panel.vectors; ++v)
          sums.push_back(first(row, v));
      return sums;
    }
    if (!hasDigits())
      return zeros(micro.accumulator, rows.size() * panel.vectors);
    SmallVector<Value> points = zeroPointsOf(k, micro, panel, k.constant(0)), result;
    Value bias = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(micro.accumulator, micro.codeBias()));
    for (Value &point : points)
      if (point) // what the column is less
        point = arith::AddIOp::create(k.b, k.loc, bias, point);
    for (Value row : numbers)
      for (int64_t digit = 0; digit < micro.digits(); ++digit) {
        Value place = k.add(k.mul(row, k.constant(micro.digits())), k.constant(digit));
        Value start = memref::LoadOp::create(k.b, k.loc, lhs.digits.starts, place);
        Value all = vector::BroadcastOp::create(k.b, k.loc, micro.accumulator, start);
        for (Value point : points)
          result.push_back(point ? arith::MulIOp::create(k.b, k.loc, all, point).getResult() : all);
      }
    return result;
  }

  /// What the sums come to as floats.
  SmallVector<Value> floatsOf(ArrayRef<Value> sums) {
    if (!hasDigits())
      return SmallVector<Value>(sums);
    SmallVector<Value> result;
    Value base = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(typeOfSums(), 256.0F));
    for (auto [place, row] : llvm::enumerate(numbers)) {
      Value unit = vector::BroadcastOp::create(k.b, k.loc, typeOfSums(),
                                               memref::LoadOp::create(k.b, k.loc, lhs.digits.units, row));
      for (int64_t v = 0; v < panel.vectors; ++v) {
        Value value;
        for (int64_t digit = micro.digits(); digit-- > 0;) {
          Value sum = sums[(static_cast<int64_t>(place) * micro.digits() + digit) * panel.vectors + v];
          Value part = arith::SIToFPOp::create(k.b, k.loc, typeOfSums(), sum);
          value = value ? vector::FMAOp::create(k.b, k.loc, value, base, part).getResult() : part;
        }
        result.push_back(arith::MulFOp::create(k.b, k.loc, value, unit));
      }
    }
    return result;
  }

  /// `sums` and what the codes of a group come to.
  SmallVector<Value> scaled(Value group, ArrayRef<Value> codes, ValueRange sums) {
    SmallVector<Value> result;
    for (auto [place, sum] : llvm::enumerate(sums)) {
      Value at = codesAt(k, micro, panel, group, static_cast<int64_t>(place) % panel.vectors);
      Value scale = loadLanes(k, typeOfSums(), panel.codes.scales, at, Value());
      result.push_back(vector::FMAOp::create(k.b, k.loc, codes[place], scale, sum));
    }
    return result;
  }

  /// Elements of a panel, which the next one lies behind.
  Value apart() { return panelElements(k, micro, depth, panelWidth(micro, panel.vectorsOfEach())); }

  Value nextBuffer() const { return panel.nextBuffer ? panel.nextBuffer : panel.buffer; }
  int64_t nextBytes() const { return cast<MemRefType>(nextBuffer().getType()).getElementTypeBitWidth() / 8; }

  /// What is prefetched by each iteration of `unroll` steps: `count` lines from `first` + step * `each` / `fraction`
  /// on, none behind `last`.
  struct Prefetch {
    static constexpr int64_t fraction = 1 << 12, line = 64;
    Value first, each, count, last;
  };

  /// A single block of rows meets each element of its panel once: all lines are prefetched, some pages ahead, as
  /// hardware does not look as far, or none, if few rows do. Of several blocks, the first would wait for the panel:
  /// each prefetches its share of the next.
  Prefetch prefetchOf(Value number, Value blocks, Value whole) {
    int64_t bytes = nextBytes(), perLine = Prefetch::line / bytes;
    int64_t perStep = panelWidth(micro, panel.vectorsOfEach()) * micro.storedPerStep();
    int64_t perIteration = unroll * perStep;
    Value elements = panel.nextElements ? panel.nextElements : apart();
    Value here = k.add(panel.offset, k.constant(prefetchAhead / bytes)), one = k.constant(1);
    Value last = k.sub(k.add(panel.next, elements), one);
    Value lines = k.constant((perIteration + perLine - 1) / perLine);
    if (panel.codes.offset && !panel.nextBuffer) // short panels, and mostly met by few rows
      return {here, k.constant(perStep * Prefetch::fraction), lines, last};
    auto choose = [&](Value ifOnce, Value otherwise) {
      return k.b.createOrFold<arith::SelectOp>(k.loc, equals(k, blocks, one), ifOnce, otherwise);
    };
    Value share = k.divide(elements, blocks), steps = k.b.createOrFold<arith::MaxUIOp>(k.loc, whole, one);
    Value each = k.divide(k.mul(share, k.constant(Prefetch::fraction)), steps);
    if (panel.nextBuffer) { // rows of another product, as many as these
      int64_t bytesOfRows = static_cast<int64_t>(rows.size()) * unroll * micro.interleave * bytes;
      Value all = k.constant((bytesOfRows + Prefetch::line - 1) / Prefetch::line);
      return {k.add(panel.next, k.mul(number, share)), each, all, last};
    }
    Value ofSeveral = k.b.createOrFold<arith::MaxUIOp>(k.loc, k.divide(lines, blocks), one);
    return {choose(here, k.add(panel.next, k.mul(number, share))),
            choose(k.constant(perStep * Prefetch::fraction), each),
            looksAhead() ? choose(k.constant(0), ofSeveral) : ofSeveral, last};
  }

  /// Whether loads reach far enough ahead by themselves. A line has 64 bytes, a lane of a vector 4.
  bool looksAhead() {
    auto count = static_cast<int64_t>(rows.size());
    return count <= mostRowsAhead || (k.target.farLoads && count * Prefetch::line <= mostPerLine * 4 * micro.lanes());
  }

  /// Whether a row of bytes does no more with a line than multiply its digits.
  bool readsLines() { return hasDigits() && k.target.farLoads && micro.parts() * numbers.size() == 1; }

  /// Of panels that are read together, each its own lines some pages ahead, or those of the panel that will take its
  /// place.
  void fetchTogether(const Prefetch &lines, Value step) {
    int64_t bytes = nextBytes(), perLine = Prefetch::line / bytes;
    int64_t perStep = panelWidth(micro, panel.vectorsOfEach()) * micro.storedPerStep();
    Value along = k.add(k.mul(step, k.constant(perStep)), k.constant(prefetchAhead / panel.together / bytes));
    Value passed = k.mul(k.divide(along, apart()), k.constant(panel.together - 1));
    Value from = k.add(panel.offset, k.add(along, k.mul(passed, apart())));
    for (int64_t number = 0; number < panel.together; ++number)
      for (int64_t element = 0; element < unroll * perStep; element += perLine) {
        Value place = k.add(from, k.add(k.mul(apart(), k.constant(number)), k.constant(element)));
        prefetch(k, nextBuffer(), k.minimum(place, lines.last));
      }
  }

  void fetchLines(const Prefetch &lines, Value step) {
    if (panel.together > 1)
      return fetchTogether(lines, step);
    Value from = k.add(lines.first, k.divide(k.mul(step, lines.each), k.constant(Prefetch::fraction)));
    auto fetch = [&](Value line) {
      Value place = k.add(from, k.mul(line, k.constant(Prefetch::line / nextBytes())));
      prefetch(k, nextBuffer(), k.minimum(place, lines.last));
    };
    if (auto count = getConstantIntValue(lines.count))
      for (int64_t line = 0; line < *count; ++line)
        fetch(k.constant(line));
    else
      k.loop(k.constant(0), lines.count, k.constant(1), fetch);
  }

  /// `number` of `blocks`: which block of rows this is.
  SmallVector<Value> run(Value number, Value blocks) {
    Value zero = k.constant(0);
    for (Value row : numbers)
      for (int64_t digit = 0; digit < micro.digits(); ++digit) {
        Value place = k.add(lhs.offset, k.mul(row, lhs.rowStride));
        rows.push_back(digit == 0 ? place : k.add(place, k.constant(digit * lhs.digits.apart)));
      }
    // Digits of what lies behind K are 0.
    Value whole = panel.steps   ? panel.steps
                  : hasDigits() ? k.ceilDiv(depth, micro.interleave)
                                : k.divide(depth, k.constant(micro.interleave));
    Prefetch lines = panel.next ? prefetchOf(number, blocks, whole) : Prefetch();
    auto emitPrefetch = [&](Value step) { fetchLines(lines, step); };
    llvm::function_ref<void(Value)> fetch = nullptr;
    if (panel.next && !readsLines() && (panel.codes.offset || panel.together == 1 || !looksAhead()))
      fetch = emitPrefetch;
    bool hasRest = micro.interleave > 1 && !panel.steps && !hasDigits();
    auto sumsOf = [&](Value group, Value from, Value to, bool hasRest, llvm::function_ref<void(Value)> fetch) {
      if (!hasDigits())
        zeroPoints = zeroPointsOf(k, micro, panel, group);
      return range(from, to, hasRest, start(), fetch);
    };
    if (!panel.codes.group)
      return floatsOf(sumsOf(zero, zero, whole, hasRest, fetch));
    // The sums of a group are added times its scales. The sums of all groups are touched once a group:
    // where registers hold one set of sums only, these are in memory.
    SmallVector<Value> sums = zeros(typeOfSums(), numbers.size() * panel.vectors);
    int64_t perGroup = panel.codes.group / micro.interleave;
    Value groups = k.divide(whole, k.constant(perGroup)), size = k.constant(perGroup);
    auto loop = scf::ForOp::create(k.b, k.loc, zero, groups, k.constant(1), sums,
                                   [&](OpBuilder &, Location, Value group, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(k.b);
                                     k.b.setInsertionPointToEnd(group.getParentBlock());
                                     fetchScales(k, micro, panel, group);
                                     Value from = k.mul(group, size);
                                     SmallVector<Value> codes = sumsOf(group, from, k.add(from, size), false, fetch);
                                     scf::YieldOp::create(k.b, k.loc, scaled(group, codes, carried));
                                   });
    sums = SmallVector<Value>(loop.getResults());
    // A last, shorter group.
    Value inGroups = k.mul(groups, k.constant(panel.codes.group));
    if (getConstantIntValue(depth) && getConstantIntValue(depth) == getConstantIntValue(inGroups))
      return sums;
    SmallVector<Type> types(sums.size(), typeOfSums());
    Value isCut = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, inGroups, depth);
    auto last = scf::IfOp::create(k.b, k.loc, types, isCut, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(last.thenBlock());
    SmallVector<Value> codes = sumsOf(groups, k.mul(groups, size), whole, hasRest, nullptr);
    scf::YieldOp::create(k.b, k.loc, scaled(groups, codes, sums));
    k.b.setInsertionPointToStart(last.elseBlock());
    scf::YieldOp::create(k.b, k.loc, sums);
    return SmallVector<Value>(last.getResults());
  }
};
} // namespace

void emitForMasks(KernelBuilder &k, const MicroKernel &micro, const Panel &panel, Value columns,
                  llvm::function_ref<void(ArrayRef<Value>)> emit) {
  SmallVector<Value> masks(panel.vectors);
  if (!columns)
    return emit(masks);
  Value isFull = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, columns,
                                       k.constant(panelWidth(micro, panel.vectors)));
  auto branch = scf::IfOp::create(k.b, k.loc, isFull, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  emit(masks);
  k.b.setInsertionPointToStart(branch.elseBlock());
  for (auto [v, mask] : llvm::enumerate(masks))
    mask = lanesBelow(k, micro.lanes(), k.sub(columns, k.constant(static_cast<int64_t>(v) * micro.lanes())));
  emit(masks);
}

/// Whether some block of so many rows has that height.
static bool hasBlocks(int64_t rows, int64_t rowBlock, int64_t height) {
  int64_t count = std::max<int64_t>(llvm::divideCeil(rows, rowBlock), 1), least = rows / count;
  return height == least || (height == least + 1 && rows % count != 0);
}

static void emitVectorProduct(KernelBuilder &k, const VectorKernel &micro, const Matrix &lhs, Value rows, Value depth,
                              const Panel &panel, Value columns, int64_t rowBlock, TileSink sink, bool areWhole,
                              TileStart start) {
  Value zero = k.constant(0), one = k.constant(1);
  rowBlock = std::min(rowBlock, micro.tallest(panel.vectors));
  RowBlocks blocks(k, rows, rowBlock);
  auto emitBlock = [&](ArrayRef<Value> numbers, Value block) {
    Tile tile{k, micro, lhs, depth, panel, SmallVector<Value>(numbers), start};
    // Of several blocks, none is shorter than half of the tallest.
    bool isAlone = static_cast<int64_t>(numbers.size()) < (rowBlock + 1) / 2;
    SmallVector<Value> sums = tile.run(block, isAlone ? one : blocks.divisor);
    emitForMasks(k, micro, panel, columns, [&](ArrayRef<Value> masks) {
      for (auto [place, row] : llvm::enumerate(numbers))
        for (int64_t v = 0; v < panel.vectors; ++v)
          sink(row, v, sums[place * panel.vectors + v], masks[v]);
    });
  };
  if (areWhole) { // rows beyond the last are the last one again
    Value last = k.sub(rows, one);
    return k.loop(zero, blocks.count, one, [&](Value block) {
      SmallVector<Value> numbers;
      for (int64_t row = 0; row < rowBlock; ++row)
        numbers.push_back(k.minimum(k.add(k.mul(block, k.constant(rowBlock)), k.constant(row)), last));
      emitBlock(numbers, block);
    });
  }
  auto known = getConstantIntValue(rows);
  for (int64_t height = rowBlock; height > 0; --height) {
    if (known && !hasBlocks(*known, rowBlock, height))
      continue;
    Value size = k.constant(height), rest = k.sub(blocks.count, blocks.taller);
    Value isTaller = equals(k, blocks.height, k.constant(height - 1)), isOther = equals(k, blocks.height, size);
    auto choose = [&](Value condition, Value a, Value b) {
      return k.b.createOrFold<arith::SelectOp>(k.loc, condition, a, b);
    };
    // Blocks of one more row come first.
    Value count = choose(isTaller, blocks.taller, choose(isOther, rest, zero));
    Value firstBlock = choose(isTaller, zero, blocks.taller);
    Value firstRow = choose(isTaller, zero, k.mul(blocks.taller, k.constant(height + 1)));
    k.loop(zero, count, one, [&](Value block) {
      Value from = k.add(firstRow, k.mul(block, size));
      SmallVector<Value> numbers;
      for (int64_t row = 0; row < height; ++row)
        numbers.push_back(k.add(from, k.constant(row)));
      emitBlock(numbers, k.add(firstBlock, block));
    });
  }
}

void emitPanelProduct(KernelBuilder &k, const MicroKernel &micro, const Matrix &lhs, Value rows, Value depth,
                      const Panel &panel, Value columns, int64_t rowBlock, TileSink sink, bool areWhole,
                      TileStart start) {
  if (auto *squares = llvm::dyn_cast<SquareKernel>(&micro))
    return emitSquareProduct(k, *squares, lhs, rows, depth, panel, columns, sink);
  const auto &vectors = llvm::cast<VectorKernel>(micro);
  if (lhs.digits.totals)
    return emitSegmentProduct(k, vectors, lhs, rows, depth, panel, columns, sink);
  emitVectorProduct(k, vectors, lhs, rows, depth, panel, columns, rowBlock, sink, areWhole, start);
}

} // namespace deepstride
