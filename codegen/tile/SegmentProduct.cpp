// Rows of digits by codes that have scales for each group of K. What ends a group's sums costs as much as a fifth of
// its multiply-adds in groups of 32, and what is taken apart of a panel is met by no more rows than a block of sums
// has: here registers hold the codes of a segment for some vectors of columns, and all rows meet them, one after the
// other. The sums of a row and a vector are three chains, which end as one float that is added to those of earlier
// segments.
#include "codegen/tile/RowDigits.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class SegmentProduct {
public:
  SegmentProduct(KernelBuilder &k, const VectorKernel &micro, const Matrix &lhs, Value rows, Value depth,
                 const Panel &panel)
      : k(k), micro(micro), lhs(lhs), digits(lhs.digits), rows(rows), panel(panel),
        sums(VectorType::get({micro.lanes()}, computeType(micro.result))),
        perVector(micro.lanes() * micro.storedPerStep()),
        end(k.add(panel.next, panelElements(k, micro, depth, panelWidth(micro, panel.vectors)))) {}

  /// Sums of all rows, in memory. A single row keeps them in registers meanwhile.
  void emit() {
    for (int64_t v = 0; v < panel.vectors; ++v)
      powers.push_back(powerOf(loadLanes(k, sums, panel.codes.scales, codesAt(k, micro, panel, k.constant(0), v), {})));
    auto known = getConstantIntValue(rows);
    if (known)
      return *known == 1 ? emitRow() : emitRows();
    Value isOne = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, rows, k.constant(1));
    auto branch = scf::IfOp::create(k.b, k.loc, isOne, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    emitRow();
    k.b.setInsertionPointToStart(branch.elseBlock());
    emitRows();
  }

  /// The sum of a row for a vector of columns.
  Value totalOf(Value row, int64_t v) {
    Value unit = vector::BroadcastOp::create(k.b, k.loc, sums, memref::LoadOp::create(k.b, k.loc, digits.units, row));
    // The unit times the power may leave f32 to either side though the result does not, and so may the sum times one of
    // them: it is multiplied by two powers that are alike.
    Value both = arith::AddIOp::create(k.b, k.loc, biasedExponent(unit), biasedExponent(powers[v].power));
    Value half = arith::ShRSIOp::create(k.b, k.loc, both, integer(1));
    Value total = loadLanes(k, sums, digits.totals, placeOf(row, v), {});
    total = arith::MulFOp::create(k.b, k.loc, total, powerOfTwo(half));
    total = arith::MulFOp::create(k.b, k.loc, total, powerOfTwo(arith::SubIOp::create(k.b, k.loc, both, half)));
    Value isNone = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, unit, unit); // the row is not finite
    return arith::SelectOp::create(k.b, k.loc, isNone, unit, total);
  }

private:
  static constexpr int32_t mantissa = 23, bias = 127; // of f32

  Value integer(int32_t number) {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(micro.accumulator, number));
  }
  Value biasedExponent(Value power) {
    return arith::ShRSIOp::create(k.b, k.loc, vector::BitCastOp::create(k.b, k.loc, micro.accumulator, power),
                                  integer(mantissa));
  }
  Value powerOfTwo(Value biasedExponent) {
    Value bits = arith::ShLIOp::create(k.b, k.loc, biasedExponent, integer(mantissa));
    return vector::BitCastOp::create(k.b, k.loc, sums, bits);
  }

  /// Sums wait for the unit of their row, which may be as small as scales are great: while they do, columns are taken
  /// less by a power of two near their first scale, or as they are where that is 0. Which scales may stand behind it is
  /// checked where weights become codes (areScalesApart).
  struct Power {
    Value power, inverse;
  };
  Power powerOf(Value scale) {
    constexpr int32_t farthest = 60; // areScalesApart has it, too
    Value bits = vector::BitCastOp::create(k.b, k.loc, micro.accumulator, scale);
    bits = arith::AndIOp::create(k.b, k.loc, bits, integer(0x7f800000));
    Value isZero = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, bits, integer(0));
    bits = arith::SelectOp::create(k.b, k.loc, isZero, integer(bias << mantissa), bits);
    bits = arith::MaxSIOp::create(k.b, k.loc, bits, integer((bias - farthest) << mantissa));
    bits = arith::MinSIOp::create(k.b, k.loc, bits, integer((bias + farthest) << mantissa));
    Value inverse = arith::SubIOp::create(k.b, k.loc, integer(2 * bias << mantissa), bits);
    return {vector::BitCastOp::create(k.b, k.loc, sums, bits), vector::BitCastOp::create(k.b, k.loc, sums, inverse)};
  }

  /// A segment of `steps` steps under some vectors of columns.
  struct Codes {
    SmallVector<SmallVector<Value>> columns; // of each vector, as multiply-adds take them
    SmallVector<Value> scales, less;         // of each vector; what columns are less, where each has a zero point
    int64_t first;                           // vector
  };
  int64_t vectorsAtOnce() const { return digits.steps * micro.parts() <= 8 && micro.lanes() >= 16 ? 2 : 1; }
  /// Lines that are multiplied as they are loaded are few instructions: loads reach ahead by themselves.
  bool isRowFetched() const { return micro.parts() > 1 || !k.target.farLoads; }
  int64_t wholeSegments() const { return digits.allSteps / digits.steps; }

  /// Calls `body` for the last, shorter segment, if there is one.
  void forRest(llvm::function_ref<void(Value segment, int64_t steps)> body) {
    if (int64_t rest = digits.allSteps % digits.steps)
      body(k.constant(wholeSegments()), rest);
  }

  void emitRows() {
    Value zero = k.constant(0), one = k.constant(1);
    Value zeros = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(sums));
    k.loop(zero, k.mul(rows, k.constant(panel.vectors)), one,
           [&](Value number) { storeLanes(k, zeros, digits.totals, k.mul(number, k.constant(micro.lanes())), {}); });
    auto emitSegment = [&](Value segment, int64_t steps) {
      Value group = groupOf(segment);
      fetchScales(k, micro, panel, group);
      fetchCodes(segment, steps);
      for (int64_t first = 0; first < panel.vectors; first += vectorsAtOnce()) {
        Codes codes = codesOf(group, first);
        for (int64_t step = 0; step < steps; ++step)
          loadStep(codes, firstOf(segment), step);
        k.loop(zero, rows, one, [&](Value row) {
          SmallVector<Value> totals;
          for (size_t v = 0; v < codes.columns.size(); ++v)
            totals.push_back(loadLanes(k, sums, digits.totals, placeOf(row, first + static_cast<int64_t>(v)), {}));
          for (auto [v, total] : llvm::enumerate(addRow(segment, row, codes, steps, totals)))
            storeLanes(k, total, digits.totals, placeOf(row, first + static_cast<int64_t>(v)), {});
        });
      }
    };
    k.loop(zero, k.constant(wholeSegments()), one, [&](Value segment) { emitSegment(segment, digits.steps); });
    forRest(emitSegment);
  }

  void emitRow() {
    Value zero = k.constant(0), one = k.constant(1);
    auto emitSegment = [&](Value segment, int64_t steps, ValueRange totals) {
      Value group = groupOf(segment);
      fetchScales(k, micro, panel, group);
      if (isRowFetched())
        fetchCodes(segment, steps);
      SmallVector<Value> next;
      for (int64_t first = 0; first < panel.vectors; first += vectorsAtOnce()) {
        Codes codes = codesOf(group, first);
        next.append(addRow(segment, zero, codes, steps, totals.slice(first, codes.columns.size())));
      }
      return next;
    };
    SmallVector<Value> zeros(panel.vectors, arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(sums)));
    auto loop = scf::ForOp::create(k.b, k.loc, zero, k.constant(wholeSegments()), one, zeros,
                                   [&](OpBuilder &, Location, Value segment, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(k.b);
                                     k.b.setInsertionPointToEnd(segment.getParentBlock());
                                     scf::YieldOp::create(k.b, k.loc, emitSegment(segment, digits.steps, carried));
                                   });
    SmallVector<Value> totals(loop.getResults());
    forRest([&](Value segment, int64_t steps) { totals = emitSegment(segment, steps, totals); });
    for (auto [v, total] : llvm::enumerate(totals))
      storeLanes(k, total, digits.totals, placeOf(zero, static_cast<int64_t>(v)), {});
  }

  Value groupOf(Value segment) {
    return digits.perGroup > 1 ? k.divide(segment, k.constant(digits.perGroup)) : segment;
  }
  Value firstOf(Value segment) { return k.mul(segment, k.constant(digits.steps)); }
  Value bytesOf(Value steps) { return k.mul(steps, k.constant(panel.vectors * perVector)); }

  /// Asks for as many codes as a segment has, some pages ahead, of this panel or the next one.
  void fetchCodes(Value segment, int64_t steps) {
    constexpr int64_t line = 64;
    int64_t count = steps * panel.vectors * perVector;
    Value ahead = k.add(k.add(panel.offset, bytesOf(firstOf(segment))), k.constant(prefetchAhead));
    Value from = k.minimum(ahead, k.sub(end, k.constant(count)));
    for (int64_t byte = 0; byte < count; byte += line)
      prefetch(k, panel.buffer, k.add(from, k.constant(byte)));
  }

  /// Of a step, counted from step `from` of the panel on: what multiply-adds take.
  void loadStep(Codes &codes, Value from, int64_t step) {
    for (auto [v, columns] : llvm::enumerate(codes.columns)) {
      int64_t vector = step * panel.vectors + codes.first + static_cast<int64_t>(v);
      Value place = k.add(k.add(panel.offset, bytesOf(from)), k.constant(vector * perVector));
      Value stored = micro.loadPanel(k, panel.buffer, place);
      for (int64_t part = 0; part < micro.parts(); ++part)
        columns.push_back(micro.parts() > 1 ? micro.elementsAt(k, stored, part) : stored);
    }
  }

  Codes codesOf(Value group, int64_t first) {
    int64_t count = std::min(vectorsAtOnce(), panel.vectors - first);
    Codes codes;
    codes.first = first;
    codes.columns.resize(count);
    SmallVector<Value> points = zeroPointsOf(k, micro, panel, group);
    Value bias = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(micro.accumulator, micro.codeBias()));
    for (int64_t v = first; v < first + count; ++v) {
      Value scale = loadLanes(k, sums, panel.codes.scales, codesAt(k, micro, panel, group, v), {});
      codes.scales.push_back(arith::MulFOp::create(k.b, k.loc, scale, powers[v].inverse));
      codes.less.push_back(points[v] ? arith::AddIOp::create(k.b, k.loc, bias, points[v]).getResult() : Value());
    }
    return codes;
  }

  /// `totals` and the products of a row with the codes of a segment.
  SmallVector<Value> addRow(Value segment, Value row, const Codes &codes, int64_t steps, ValueRange totals) {
    Value number = k.add(k.mul(segment, digits.rows), row);
    Value at = k.add(lhs.offset, k.mul(number, lhs.rowStride));
    Value start = k.mul(number, k.constant(digits.starting()));
    SmallVector<Value> chains; // of each vector, digit by digit
    for (Value less : codes.less)
      for (int64_t digit = 0; digit < micro.digits(); ++digit)
        chains.push_back(startOf(start, digit, less));
    if (codes.columns.front().empty())
      chains = addLoading(firstOf(segment), at, codes, steps, chains);
    else
      for (int64_t step = 0; step < steps; ++step)
        addStep(at, step, codes, step, chains);
    SmallVector<Value> result;
    for (auto [v, total] : llvm::enumerate(totals)) {
      ArrayRef<Value> ofVector = ArrayRef(chains).slice(v * micro.digits(), micro.digits());
      result.push_back(vector::FMAOp::create(k.b, k.loc, asFloat(ofVector), codes.scales[v], total));
    }
    return result;
  }

  /// Adds the products of a step of the row at `at` with the codes that are the step `loaded` of those in registers.
  void addStep(Value at, int64_t step, const Codes &codes, int64_t loaded, MutableArrayRef<Value> chains) {
    for (int64_t part = 0; part < micro.parts(); ++part)
      for (int64_t digit = 0; digit < micro.digits(); ++digit) {
        Value along = k.add(at, k.constant(digit * digits.apart + step * micro.interleave));
        Value wide = micro.loadRow(k, lhs, along, {}, part);
        for (auto [v, columns] : llvm::enumerate(codes.columns)) {
          Value &sum = chains[static_cast<int64_t>(v) * micro.digits() + digit];
          sum = micro.multiplyAdd(k, wide, columns[loaded * micro.parts() + part], sum);
        }
      }
  }

  /// Adds the products of `steps` steps, whose codes are loaded as they are needed: loads that come all at once wait
  /// for memory together (Zen 4, one row of 8 bits: 0.85 of the speed). Without prefetches they are in a loop that LLVM
  /// does not unroll, as it does not see how often it runs: lines come early where an instruction loads again soon
  /// after what it loaded before (the same row: 1.2 times the speed at distances of 512 bytes that it has at 1 KiB).
  SmallVector<Value> addLoading(Value first, Value at, const Codes &codes, int64_t steps, ArrayRef<Value> start) {
    constexpr int64_t unroll = 4;
    auto add = [&](Value from, int64_t count, SmallVector<Value> chains) {
      Value along = k.add(at, k.mul(k.sub(from, first), k.constant(micro.interleave)));
      for (int64_t step = 0; step < count; ++step) {
        Codes loaded = codes;
        loadStep(loaded, from, step);
        addStep(along, step, loaded, 0, chains);
      }
      return chains;
    };
    if (steps <= unroll || isRowFetched())
      return add(first, steps, SmallVector<Value>(start));
    Value whole = k.add(first, k.constant(steps - steps % unroll));
    auto loop = scf::ForOp::create(k.b, k.loc, first, whole, k.constant(unroll), start,
                                   [&](OpBuilder &, Location, Value from, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(k.b);
                                     k.b.setInsertionPointToEnd(from.getParentBlock());
                                     scf::YieldOp::create(k.b, k.loc, add(from, unroll, SmallVector<Value>(carried)));
                                   });
    return add(whole, steps % unroll, SmallVector<Value>(loop.getResults()));
  }

  /// What the sums of a digit start from. Of digits that become one number, those of the lowest start for all.
  Value startOf(Value start, int64_t digit, Value less) {
    if (digit > 0 && digit < digits.atOnce)
      return arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(micro.accumulator));
    Value place = k.add(start, k.constant(digit == 0 ? 0 : digit - digits.atOnce + 1));
    Value all = vector::BroadcastOp::create(k.b, k.loc, micro.accumulator,
                                            memref::LoadOp::create(k.b, k.loc, digits.starts, place));
    return less ? arith::MulIOp::create(k.b, k.loc, all, less).getResult() : all;
  }

  Value asFloat(ArrayRef<Value> chains) {
    Value byte = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(micro.accumulator, int32_t(8)));
    Value low = chains[digits.atOnce - 1];
    for (int64_t digit = digits.atOnce - 1; digit-- > 0;)
      low = arith::AddIOp::create(k.b, k.loc, arith::ShLIOp::create(k.b, k.loc, low, byte), chains[digit]);
    Value value;
    auto add = [&](Value number, int64_t count) {
      Value part = arith::SIToFPOp::create(k.b, k.loc, sums, number);
      Value base = splat(std::ldexp(1.0F, static_cast<int>(8 * count)));
      value = value ? vector::FMAOp::create(k.b, k.loc, value, base, part).getResult() : part;
    };
    for (int64_t digit = micro.digits(); digit-- > digits.atOnce;)
      add(chains[digit], 1);
    add(low, digits.atOnce);
    return value;
  }

  Value placeOf(Value row, int64_t v) {
    return k.mul(k.add(k.mul(row, k.constant(panel.vectors)), k.constant(v)), k.constant(micro.lanes()));
  }
  Value splat(float value) { return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(sums, value)); }

  KernelBuilder &k;
  const VectorKernel &micro;
  const Matrix &lhs;
  const DigitSums &digits;
  Value rows;
  const Panel &panel;
  VectorType sums;
  SmallVector<Power> powers; // of the columns of each vector
  int64_t perVector;         // bytes of a step
  Value end;                 // of the panels that may be asked for
};
} // namespace

void emitSegmentProduct(KernelBuilder &k, const VectorKernel &micro, const Matrix &lhs, Value rows, Value depth,
                        const Panel &panel, Value columns, TileSink sink) {
  SegmentProduct product(k, micro, lhs, rows, depth, panel);
  product.emit();
  emitForMasks(k, micro, panel, columns, [&](ArrayRef<Value> masks) {
    k.loop(k.constant(0), rows, k.constant(1), [&](Value row) {
      for (int64_t v = 0; v < panel.vectors; ++v)
        sink(row, v, product.totalOf(row, v), masks[v]);
    });
  });
}

} // namespace deepstride
