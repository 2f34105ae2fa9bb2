// Loads from the level-1 cache keep up with the products of squares, loads from the level-2 cache do not: rows are
// packed so that squares are contiguous, and a panel is met by all rows in blocks of K, between which the sums lie in
// memory.
#include "codegen/tile/Squares.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Squares along K of a block: those of two rows of squares and of a panel fill the level-1 cache.
static constexpr int64_t squaresPerBlock = 6;
/// Rows of a step, in two rows of squares.
static constexpr int64_t rowsPerStep = 2 * SquareKernel::lines;

static Value paddedDepth(KernelBuilder &k, const SquareKernel &micro, Value depth) {
  return k.mul(k.ceilDiv(depth, micro.depth()), k.constant(micro.depth()));
}

Value reserveSquares(KernelBuilder &k, const SquareKernel &micro, const SizeExpr &depth, const SizeExpr &rows) {
  int64_t most = std::min(mostRowsPerSweep, rows.constant().value_or(mostRowsPerSweep));
  return k.scratchOf(storageType(micro.left), (depth + SizeExpr(micro.depth() - 1)) * SizeExpr(most));
}

Matrix emitPackSquares(KernelBuilder &k, const SquareKernel &micro, const Matrix &lhs, Type element, Value rows,
                       Value depth, Value scratch) {
  Value zero = k.constant(0), one = k.constant(1), lines = k.constant(SquareKernel::lines);
  Value line = k.constant(micro.depth()), padded = paddedDepth(k, micro, depth);
  Value whole = k.divide(depth, line), rest = k.remainder(depth, line);
  auto type = VectorType::get({micro.depth()}, storageType(element));
  k.loop(zero, rows, lines, [&](Value first) {
    Value count = k.minimum(lines, k.sub(rows, first)), square = k.mul(count, line);
    k.loop(zero, count, one, [&](Value row) {
      Value from = k.add(lhs.offset, k.mul(k.add(first, row), lhs.rowStride));
      Value to = k.add(k.mul(first, padded), k.mul(row, line));
      auto copy = [&](Value step, Value mask) {
        Value elements = loadLanes(k, type, lhs.buffer, k.add(from, k.mul(step, line)), mask);
        if (element != micro.left)
          elements = toStorage(k.b, k.loc, elements, micro.left);
        storeLanes(k, elements, scratch, k.add(to, k.mul(step, square)), {});
      };
      k.loop(zero, whole, one, [&](Value step) { copy(step, {}); });
      if (getConstantIntValue(rest) == 0)
        return;
      // Whatever is multiplied by 0 must not be NaN, and nothing behind the operand may be read.
      Value hasRest = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne, rest, zero);
      auto branch = scf::IfOp::create(k.b, k.loc, hasRest);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      copy(whole, lanesBelow(k, micro.depth(), rest));
    });
  });
  return {scratch, zero, line, one};
}

namespace {
struct SquareProduct {
  SquareProduct(KernelBuilder &k, const SquareKernel &micro, const Matrix &lhs, Value rows, Value depth,
                const Panel &panel)
      : k(k), micro(micro), lhs(lhs), depth(depth), panel(panel), width(panelWidth(micro, panel.vectors)),
        zero(k.constant(0)), rows(rows), padded(paddedDepth(k, micro, depth)),
        whole(k.divide(depth, k.constant(micro.depth()))), rest(k.remainder(depth, k.constant(micro.depth()))) {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(&k.function.front());
    auto local = [&](int64_t elements, Type type) -> Value {
      auto aligned = k.b.getI64IntegerAttr(SquareKernel::lineBytes);
      return memref::AllocaOp::create(k.b, k.loc, MemRefType::get({elements}, type), aligned);
    };
    sums = local(mostRowsPerSweep * width, micro.accumulator.getElementType());
    if (getConstantIntValue(rest) != 0)
      tail = local(micro.depth() * width, storageType(micro.panel));
  }

  /// `finish` is given rows whose sums are in memory.
  void emit(llvm::function_ref<void(Value firstRow, Value count)> finish) {
    if (tail)
      fillTail();
    // Steps of two rows of squares, and pieces of one for the rows that are left. Steps meet the panel by blocks of K;
    // where none meets it again, there is one block.
    Value one = k.constant(1), lines = k.constant(SquareKernel::lines), perStep = k.constant(rowsPerStep);
    Value steps = k.divide(rows, perStep), done = k.mul(steps, perStep);
    Value pieces = k.ceilDiv(k.sub(rows, done), SquareKernel::lines);
    inCase(arith::CmpIPredicate::ne, steps, zero, [&] { micro.configure(k, lines); });
    Value isOnce = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ule, steps, one);
    Value size = arith::SelectOp::create(k.b, k.loc, isOnce, atLeastOne(whole), k.constant(squaresPerBlock));
    k.loop(zero, atLeastOne(whole), size, [&](Value from) {
      Value to = k.minimum(k.add(from, size), whole);
      Value isLast = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, to, whole);
      Value count = arith::SelectOp::create(k.b, k.loc, isLast, k.add(steps, pieces), steps);
      k.loop(zero, count, one, [&](Value number) {
        Value behind = k.add(done, k.mul(k.sub(number, steps), lines));
        Value left = k.minimum(lines, k.sub(rows, behind));
        Value isStep = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, number, steps);
        Value first = arith::SelectOp::create(k.b, k.loc, isStep, k.mul(number, perStep), behind);
        inCase(
            arith::CmpIPredicate::ult, number, steps,
            [&] { emitStep({first, lines, 2}, from, to, isLast, panel.next ? number : Value()); },
            [&] { emitPiece({first, left, 1}); });
        auto branch = scf::IfOp::create(k.b, k.loc, isLast);
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(branch.thenBlock());
        finish(first, arith::SelectOp::create(k.b, k.loc, isStep, perStep, left));
      });
    });
  }

  Value sums;

private:
  /// One row of squares with `lines` lines each, or two with 16.
  struct Place {
    Value firstRow, lines;
    int64_t height;
  };

  void inCase(arith::CmpIPredicate how, Value x, Value y, llvm::function_ref<void()> body,
              llvm::function_ref<void()> otherwise = nullptr) {
    Value condition = arith::CmpIOp::create(k.b, k.loc, how, x, y);
    auto branch = scf::IfOp::create(k.b, k.loc, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    body();
    if (!otherwise)
      return;
    k.b.setInsertionPointToStart(branch.elseBlock());
    otherwise();
  }

  void forSums(const Place &place, llvm::function_ref<void(int64_t number, Value position)> body) {
    for (int64_t h = 0; h < place.height; ++h)
      for (int64_t v = 0; v < panel.vectors; ++v) {
        Value row = k.add(place.firstRow, k.constant(h * SquareKernel::lines));
        body(h * SquareKernel::squaresPerRow + v, k.add(k.mul(row, k.constant(width)), k.constant(v * micro.lanes())));
      }
  }
  void store(const Place &place) {
    forSums(place, [&](int64_t number, Value position) { micro.store(k, number, sums, position, width); });
  }

  void emitStep(const Place &place, Value from, Value to, Value isLast, Value share) {
    inCase(
        arith::CmpIPredicate::eq, from, zero,
        [&] { forSums(place, [&](int64_t number, Value) { micro.clear(k, number); }); },
        [&] { forSums(place, [&](int64_t number, Value position) { micro.load(k, number, sums, position, width); }); });
    multiply(place, from, to, share);
    if (tail) {
      auto branch = scf::IfOp::create(k.b, k.loc, isLast);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      multiplyTail(place);
    }
    store(place);
  }

  void emitPiece(const Place &place) {
    const VectorKernel *single = k.target.manyRows ? nullptr : micro.singleRow();
    if (!single)
      return emitSquares(place);
    inCase(arith::CmpIPredicate::eq, rows, k.constant(1), [&] { emitRow(*single); }, [&] { emitSquares(place); });
  }

  /// One row lies as contiguous in scratch as it did before it was packed.
  void emitRow(const VectorKernel &single) {
    emitPanelProduct(
        k, single, lhs, k.constant(1), depth, panel, /*columns=*/{}, /*rowBlock=*/1,
        [&](Value, int64_t v, Value value, Value) { storeLanes(k, value, sums, k.constant(v * micro.lanes()), {}); });
  }

  void emitSquares(const Place &place) {
    micro.configure(k, place.lines);
    forSums(place, [&](int64_t number, Value) { micro.clear(k, number); });
    multiply(place, zero, whole, nullptr);
    if (tail)
      multiplyTail(place);
    store(place);
  }

  Value atLeastOne(Value count) { return k.b.createOrFold<arith::MaxUIOp>(k.loc, count, k.constant(1)); }

  /// Squares [from, to) along K. `share` is which of four shares of the next panel's lines is prefetched, none if null.
  void multiply(const Place &place, Value from, Value to, Value share) {
    k.loop(from, to, k.constant(1), [&](Value number) {
      Value columns = k.add(panel.offset, k.mul(number, k.constant(micro.depth() * width)));
      multiplySquare(place, number, panel.buffer, columns);
      if (!share)
        return;
      int64_t line = SquareKernel::lineBytes / storageBytes(micro.panel);
      int64_t lines = micro.depth() * width / line / 4;
      Value next = k.add(panel.next, k.mul(number, k.constant(micro.depth() * width)));
      next = k.add(next, k.mul(share, k.constant(lines * line)));
      for (int64_t i = 0; i < lines; ++i)
        memref::PrefetchOp::create(k.b, k.loc, panel.buffer, k.add(next, k.constant(i * line)), /*isWrite=*/false,
                                   /*localityHint=*/2, /*isDataCache=*/true);
    });
  }
  void multiplyTail(const Place &place) {
    inCase(arith::CmpIPredicate::ne, rest, zero, [&] { multiplySquare(place, whole, tail, zero); });
  }

  /// There and back along the panel, so that two rows of squares share its last one.
  void multiplySquare(const Place &place, Value number, Value buffer, Value columns) {
    auto loadRows = [&](int64_t h) {
      Value row = k.add(place.firstRow, k.constant(h * SquareKernel::lines));
      Value at = k.add(k.mul(row, padded), k.mul(number, k.mul(place.lines, k.constant(micro.depth()))));
      micro.load(k, SquareKernel::ofRows, lhs.buffer, k.add(lhs.offset, at), micro.depth());
    };
    auto loadColumns = [&](int64_t v) {
      micro.load(k, SquareKernel::ofPanel, buffer, k.add(columns, k.constant(v * micro.depth())),
                 width * micro.interleave);
    };
    loadRows(0);
    for (int64_t v = 0; v < panel.vectors; ++v) {
      loadColumns(v);
      micro.multiplyAdd(k, v);
    }
    if (place.height == 1)
      return;
    loadRows(1);
    for (int64_t v = panel.vectors - 1; v >= 0; --v) {
      if (v + 1 < panel.vectors)
        loadColumns(v);
      micro.multiplyAdd(k, SquareKernel::squaresPerRow + v);
    }
  }

  /// What is left of K in the panel, beside lines of 0.
  void fillTail() {
    int64_t line = width * micro.interleave, part = micro.depth();
    auto type = VectorType::get({part}, storageType(micro.panel));
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
    Value given = k.ceilDiv(rest, micro.interleave);
    Value from = k.add(panel.offset, k.mul(whole, k.constant(micro.depth() * width)));
    auto fill = [&](Value first, Value end, bool isCopy) {
      k.loop(first, end, k.constant(1), [&](Value row) {
        for (int64_t i = 0; i < line; i += part) {
          Value at = k.add(k.mul(row, k.constant(line)), k.constant(i));
          storeLanes(k, isCopy ? loadLanes(k, type, panel.buffer, k.add(from, at), {}) : none, tail, at, {});
        }
      });
    };
    fill(zero, given, true);
    fill(given, k.constant(SquareKernel::lines), false);
  }

  KernelBuilder &k;
  const SquareKernel &micro;
  const Matrix &lhs;
  Value depth;
  const Panel &panel;
  int64_t width;
  Value zero, rows, padded, whole, rest; // squares along K that are whole, and elements that are left
  Value tail;                            // null where K is known to be whole squares
};
} // namespace

void emitSquareProduct(KernelBuilder &k, const SquareKernel &micro, const Matrix &lhs, Value rows, Value depth,
                       const Panel &panel, Value columns, TileSink sink) {
  SquareProduct product(k, micro, lhs, rows, depth, panel);
  int64_t width = panelWidth(micro, panel.vectors);
  product.emit([&](Value first, Value count) {
    emitForMasks(k, micro, panel, columns, [&](ArrayRef<Value> masks) {
      k.loop(first, k.add(first, count), k.constant(1), [&](Value row) {
        for (int64_t v = 0; v < panel.vectors; ++v) {
          Value at = k.add(k.mul(row, k.constant(width)), k.constant(v * micro.lanes()));
          sink(row, v, loadLanes(k, micro.accumulator, product.sums, at, {}), masks[v]);
        }
      });
    });
  });
}

} // namespace deepstride
