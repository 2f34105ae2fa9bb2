// Panels of operands that no package holds: of rows as they lie, of rows side by side in pairs or fours, of transposed
// squares; element by element where nothing else fits.
#include "codegen/tile/Gemm.h"
#include "codegen/tile/Transpose.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class PanelPacker {
public:
  PanelPacker(KernelBuilder &k, const MicroKernel &micro, const Matrix &source, Type element, Value depth,
              Value firstColumn, Value columns, Value panel, Value panelOffset, int64_t width)
      : k(k), micro(micro), source(source), element(element), depth(depth), firstColumn(firstColumn), panel(panel),
        panelOffset(panelOffset), width(width), lanes(micro.lanes()), interleave(micro.interleave), none(k.constant(0)),
        one(k.constant(1)), remaining(k.minimum(k.sub(columns, firstColumn), k.constant(width))) {}

  void run() {
    bool isRounded = element.isF32() && micro.panel.isBF16(), isSame = element == micro.panel;
    bool isWidened = micro.panel.isF32() && (element.isF16() || element.isBF16());
    bool isExtended = element.isInteger(8) && micro.panel.isInteger(16);
    bool hasRows = getConstantIntValue(source.columnStride) == 1,
         hasColumns = getConstantIntValue(source.rowStride) == 1;
    if (hasRows && (isSame || isWidened) && interleave == 1)
      return inCase(isWhole(remaining), [&](bool isFull) { copyRows(isFull); });
    if (hasRows && (isSame || isRounded || isExtended) && (interleave == 2 || interleave == 4))
      return inCase(isWhole(remaining), [&](bool isFull) { packGroups(isFull); });
    if (hasColumns && (isSame || isWidened) && interleave == 1)
      return packTransposed();
    bool fillsWords = interleave > 1 && interleave * storageBytes(micro.panel) == 4;
    if (hasColumns && (isSame || isRounded || isExtended) && fillsWords)
      return packTransposedWords();
    packElements(none, depth, none, k.constant(width));
    fillSteps();
  }

private:
  Value from(Value row, Value column) {
    Value place = k.add(k.mul(row, source.rowStride), k.mul(k.add(firstColumn, column), source.columnStride));
    return k.add(source.offset, place);
  }
  Value to(Value row, Value column) {
    if (interleave == 1)
      return k.add(panelOffset, k.add(k.mul(row, k.constant(width)), column));
    Value group = k.divide(row, k.constant(interleave)), within = k.remainder(row, k.constant(interleave));
    return k.add(groupAt(group, column), within);
  }
  Value groupAt(Value group, Value column) {
    return k.add(panelOffset, k.mul(k.add(k.mul(group, k.constant(width)), column), k.constant(interleave)));
  }
  Value isWhole(Value count) {
    return k.b.createOrFold<arith::CmpIOp>(k.loc, arith::CmpIPredicate::eq, count, k.constant(width));
  }
  void inCase(Value condition, llvm::function_ref<void(bool)> body) {
    auto branch = scf::IfOp::create(k.b, k.loc, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    body(true);
    k.b.setInsertionPointToStart(branch.elseBlock());
    body(false);
  }

  /// What the source stores, one or more elements, as a panel stores it.
  Value asPanel(Value raw) {
    if (element == micro.panel)
      return raw;
    Value value = emitCast(k.b, k.loc, fromStorage(k.b, k.loc, raw, element), element, micro.panel);
    return toStorage(k.b, k.loc, value, micro.panel);
  }
  Value load(Value position, Value mask) {
    return asPanel(loadLanes(k, VectorType::get({lanes}, storageType(element)), source.buffer, position, mask));
  }

  void copyRows(bool isFull) {
    k.loop(none, depth, one, [&](Value row) {
      for (int64_t column = 0; column < width; column += lanes) {
        Value at = k.constant(column), mask = isFull ? Value() : lanesBelow(k, lanes, k.sub(remaining, at));
        storeLanes(k, load(from(row, at), mask), panel, to(row, at), {});
      }
    });
  }

  /// Rows of the source two by two or four by four, their elements of one column side by side; what is missing in a
  /// last group is 0.
  void packGroups(bool isFull) {
    Value size = k.constant(interleave), groups = k.divide(depth, size), rest = k.remainder(depth, size);
    Value zeros =
        arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(VectorType::get({lanes}, storageType(micro.panel))));
    auto pack = [&](Value group, int64_t count) {
      for (int64_t column = 0; column < width; column += lanes) {
        Value at = k.constant(column), mask = isFull ? Value() : lanesBelow(k, lanes, k.sub(remaining, at));
        SmallVector<Value> rows(interleave, zeros);
        for (int64_t i = 0; i < count; ++i)
          rows[i] = load(from(k.add(k.mul(group, size), k.constant(i)), at), mask);
        storeLanes(k, interleaveInRegisters(k.b, k.loc, std::move(rows)), panel, groupAt(group, at), {});
      }
    };
    k.loop(none, groups, one, [&](Value group) { pack(group, interleave); });
    for (int64_t count = 1; count < interleave; ++count) {
      Value isRest = k.b.createOrFold<arith::CmpIOp>(k.loc, arith::CmpIPredicate::eq, rest, k.constant(count));
      auto last = scf::IfOp::create(k.b, k.loc, isRest);
      OpBuilder::InsertionGuard inner(k.b);
      k.b.setInsertionPointToStart(last.thenBlock());
      pack(groups, count);
    }
  }

  /// A matrix whose columns are contiguous: squares are transposed in registers, element by element where either side
  /// cuts them.
  void packTransposed() {
    Value size = k.constant(lanes), whole = k.mul(k.divide(depth, size), size);
    k.loop(none, whole, size, [&](Value row) {
      k.loop(none, k.constant(width), size, [&](Value column) {
        Value end = k.add(column, size);
        inCase(arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, end, remaining), [&](bool isFull) {
          if (!isFull)
            return packElements(row, k.add(row, size), column, end);
          SmallVector<Value> columns;
          for (int64_t i = 0; i < lanes; ++i)
            columns.push_back(load(from(row, k.add(column, k.constant(i))), {}));
          for (auto [i, line] : llvm::enumerate(transposeInRegisters(k.b, k.loc, std::move(columns))))
            storeLanes(k, line, panel, to(k.add(row, k.constant(static_cast<int64_t>(i))), column), {});
        });
      });
    });
    packElements(whole, depth, none, k.constant(width));
  }

  /// The same of pairs or fours along K, which are transposed as words of 32 bits. Where loads can be masked, columns
  /// that do not exist and what is missing of K are 0, else they go element by element.
  void packTransposedWords() {
    bool hasMasks = lanes >= 16;
    Value size = k.constant(lanes), block = k.constant(interleave * lanes);
    Value whole = k.mul(k.divide(depth, block), block), end = k.constant(width);
    auto packBlocks = [&](Value firstRow, Value endRow, Value rows) {
      k.loop(firstRow, endRow, block, [&](Value row) {
        k.loop(none, end, size, [&](Value column) {
          Value behind = k.add(column, size);
          inCase(arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, behind, remaining), [&](bool isFull) {
            if (isFull || hasMasks)
              packSquare(row, column, rows, isFull);
            else
              packElements(row, k.add(row, block), column, behind);
          });
        });
      });
    };
    packBlocks(none, whole, {});
    if (hasMasks)
      return packBlocks(whole, depth, k.sub(depth, whole));
    packElements(whole, depth, none, end);
    fillSteps();
  }

  /// As many columns as a vector has lanes, and as many words of each; `rows`: so many rows exist (null: all).
  void packSquare(Value row, Value column, Value rows, bool isFull) {
    // Numbers are converted in vectors of as many lanes as a native one has.
    bool isWide = element == micro.panel || isa<IntegerType>(element);
    int64_t parts = isWide ? 1 : interleave, each = lanes * interleave / parts;
    auto raw = VectorType::get({each}, storageType(element)), bits = VectorType::get({each}, k.b.getI1Type());
    auto words = VectorType::get({lanes}, k.b.getI32Type());
    SmallVector<Value> columns;
    for (int64_t i = 0; i < lanes; ++i) {
      Value here = k.add(column, k.constant(i)), exists;
      if (!isFull)
        exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, here, remaining);
      SmallVector<Value> loaded;
      for (int64_t part = 0; part < parts; ++part) {
        Value first = k.constant(part * each), mask;
        if (rows)
          mask = lanesBelow(k, each, k.sub(rows, first));
        if (exists) {
          Value all = vector::BroadcastOp::create(k.b, k.loc, bits, exists);
          mask = mask ? arith::AndIOp::create(k.b, k.loc, mask, all).getResult() : all;
        }
        loaded.push_back(asPanel(loadLanes(k, raw, source.buffer, from(k.add(row, first), here), mask)));
      }
      while (loaded.size() > 1) {
        auto inOrder = llvm::to_vector(llvm::seq<int64_t>(0, 2 * cast<VectorType>(loaded[0].getType()).getDimSize(0)));
        for (size_t pair = 0; pair < loaded.size() / 2; ++pair)
          loaded[pair] = vector::ShuffleOp::create(k.b, k.loc, loaded[2 * pair], loaded[2 * pair + 1], inOrder);
        loaded.resize(loaded.size() / 2);
      }
      columns.push_back(vector::BitCastOp::create(k.b, k.loc, words, loaded[0]));
    }
    Value group = k.divide(row, k.constant(interleave));
    Value groups = rows ? k.ceilDiv(rows, interleave) : Value();
    auto line = VectorType::get({lanes * interleave}, storageType(micro.panel));
    auto lineBits = VectorType::get({lanes * interleave}, k.b.getI1Type());
    for (auto [number, square] : llvm::enumerate(transposeInRegisters(k.b, k.loc, std::move(columns)))) {
      Value i = k.constant(static_cast<int64_t>(number)), mask;
      if (groups)
        mask = vector::BroadcastOp::create(
            k.b, k.loc, lineBits, arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, i, groups).getResult());
      storeLanes(k, vector::BitCastOp::create(k.b, k.loc, line, square), panel, groupAt(k.add(group, i), column), mask);
    }
  }

  /// In blocks of rows whose lines of the panel stay in the level-1 cache while column after column is read. Columns
  /// that do not exist become 0.
  void packElements(Value firstRow, Value endRow, Value first, Value end) {
    constexpr int64_t rowsPerBlock = 64;
    Value filled = k.b.createOrFold<arith::MaxSIOp>(k.loc, k.minimum(remaining, end), first);
    k.loop(firstRow, endRow, k.constant(rowsPerBlock), [&](Value block) {
      Value blockEnd = k.minimum(k.add(block, k.constant(rowsPerBlock)), endRow);
      k.loop(first, filled, one, [&](Value column) {
        k.loop(block, blockEnd, one, [&](Value row) {
          Value raw = memref::LoadOp::create(k.b, k.loc, source.buffer, from(row, column));
          memref::StoreOp::create(k.b, k.loc, asPanel(raw), panel, to(row, column));
        });
      });
      fill(block, blockEnd, filled, end);
    });
  }

  /// K in whole steps.
  void fillSteps() {
    if (interleave > 1)
      fill(depth, k.mul(k.ceilDiv(depth, interleave), k.constant(interleave)), none, k.constant(width));
  }

  void fill(Value firstRow, Value endRow, Value first, Value end) {
    Value zero = scalarConstant(k.b, k.loc, micro.panel, 0.0);
    k.loop(first, end, one, [&](Value column) {
      k.loop(firstRow, endRow, one, [&](Value row) { k.store(zero, panel, to(row, column), micro.panel); });
    });
  }

  KernelBuilder &k;
  const MicroKernel &micro;
  const Matrix &source;
  Type element;
  Value depth, firstColumn, panel, panelOffset;
  int64_t width, lanes, interleave;
  Value none, one, remaining; // columns of the panel that exist
};
} // namespace

void emitPackPanel(KernelBuilder &k, const MicroKernel &micro, const Matrix &source, Type element, Value depth,
                   Value firstColumn, Value columns, Value panel, Value panelOffset, int64_t width) {
  PanelPacker(k, micro, source, element, depth, firstColumn, columns, panel, panelOffset, width).run();
}

} // namespace deepstride
