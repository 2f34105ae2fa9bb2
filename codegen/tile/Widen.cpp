// What is stored narrow becomes wide: floats of codes and halves, words of bytes.
#include "codegen/tile/Widen.h"

#include "codegen/tile/FitPanel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

std::unique_ptr<MicroKernel> kernelOfWidened(const LoweringTarget &target, ds::ProductKernel stored,
                                             const ds::ProductTypes &types, const SizeExpr &depth) {
  auto make = [&](ds::ProductKernel kernel, Type element) {
    return makeMicroKernel(target, kernel, {element, element, types.result}, /*isPacked=*/true);
  };
  switch (stored) {
  case ds::ProductKernel::codes:
  case ds::ProductKernel::bfloat_halves: return make(ds::ProductKernel::multiply_add, types.result);
  case ds::ProductKernel::bfloat_dot: return make(stored, types.left);
  case ds::ProductKernel::byte_pairs:
    if (auto fitted = makeMicroKernel(target, ds::ProductKernel::byte_quads, types, /*isPacked=*/true))
      if (SizeExpr::mod(depth, fitted->interleave).isConstant(0))
        return fitted;
    return kernelOfWords(target, types);
  default: return nullptr;
  }
}

std::unique_ptr<MicroKernel> kernelOfWords(const LoweringTarget &target, const ds::ProductTypes &types) {
  auto word = IntegerType::get(types.left.getContext(), 16);
  return makeMicroKernel(target, ds::ProductKernel::pair_dot, {word, word, types.result}, /*isPacked=*/true);
}

static bool isBytes(const MicroKernel &stored, const MicroKernel &wide) {
  return stored.left.isInteger(8) && wide.left.isInteger(16);
}

Value widenedDepth(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, Value depth) {
  return isBytes(stored, wide) ? k.mul(k.ceilDiv(depth, stored.interleave), k.constant(stored.interleave)) : depth;
}
SizeExpr widenedSpace(const MicroKernel &stored, const MicroKernel &wide, const SizeExpr &depth) {
  return isBytes(stored, wide) ? depth + SizeExpr(stored.interleave - 1) : depth;
}

std::pair<Value, Value> bytesAsWords(KernelBuilder &k, Value bytes, bool isUnsigned) {
  int64_t count = cast<VectorType>(bytes.getType()).getDimSize(0) / 2;
  auto words = VectorType::get({count}, k.b.getI16Type());
  Value byte = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words, k.b.getI16IntegerAttr(8)));
  Value odd = vector::BitCastOp::create(k.b, k.loc, words, bytes), even = arith::ShLIOp::create(k.b, k.loc, odd, byte);
  auto extended = [&](Value high) -> Value {
    if (isUnsigned)
      return arith::ShRUIOp::create(k.b, k.loc, high, byte);
    return arith::ShRSIOp::create(k.b, k.loc, high, byte);
  };
  return {extended(even), extended(odd)};
}

/// Rows of narrow floats, as f32.
static void emitWidenFloats(KernelBuilder &k, const Matrix &rows, Type element, Value count, Value depth, int64_t lanes,
                            Value target) {
  auto stored = VectorType::get({lanes}, storageType(element));
  Value elements = k.mul(count, depth), size = k.constant(lanes);
  Value whole = k.mul(k.divide(elements, size), size);
  auto copy = [&](Value from, Value mask) {
    Value raw = loadLanes(k, stored, rows.buffer, k.add(rows.offset, from), mask);
    storeLanes(k, fromStorage(k.b, k.loc, raw, element), target, from, mask);
  };
  k.loop(k.constant(0), whole, size, [&](Value from) { copy(from, {}); });
  k.loop(whole, elements, size, [&](Value from) { copy(from, lanesBelow(k, lanes, k.sub(elements, from))); });
}

/// Rows of bytes as words: of four bytes those at even places come before those at odd places, as in widened panels.
static void emitWidenBytes(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, const Matrix &rows,
                           Value count, Value depth, Value target) {
  int64_t lanes = stored.lanes(), perVector = 4 * lanes;
  Type i8 = k.b.getI8Type(), i16 = k.b.getI16Type();
  auto pairs = VectorType::get({lanes}, k.b.getI32Type());
  bool isUnsigned = stored.left.isUnsignedInteger();
  Value one = k.constant(1), zero = k.constant(0), size = k.constant(perVector);
  Value whole = k.mul(k.divide(depth, size), size), padded = widenedDepth(k, stored, wide, depth);
  k.loop(zero, count, one, [&](Value row) {
    Value from = k.add(rows.offset, k.mul(row, rows.rowStride)), to = k.mul(row, padded);
    k.loop(zero, whole, size, [&](Value place) {
      Value bytes = loadLanes(k, VectorType::get({perVector}, i8), rows.buffer, k.add(from, place), {});
      auto [even, odd] = bytesAsWords(k, bytes, isUnsigned);
      Value both = vector::InterleaveOp::create(k.b, k.loc, vector::BitCastOp::create(k.b, k.loc, pairs, even),
                                                vector::BitCastOp::create(k.b, k.loc, pairs, odd));
      Value words = vector::BitCastOp::create(k.b, k.loc, VectorType::get({perVector}, i16), both);
      storeLanes(k, words, target, k.add(to, place), {});
    });
    k.loop(whole, padded, k.constant(4), [&](Value group) {
      for (int64_t i = 0; i < 4; ++i) {
        Value place = k.add(group, k.constant(i));
        Value exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, place, depth);
        Value at = k.add(from, k.minimum(place, k.sub(depth, one)));
        Value byte = memref::LoadOp::create(k.b, k.loc, rows.buffer, at);
        Value word = emitCast(k.b, k.loc, byte, stored.left, i16);
        Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getI16IntegerAttr(0));
        memref::StoreOp::create(k.b, k.loc, arith::SelectOp::create(k.b, k.loc, exists, word, none), target,
                                k.add(to, k.add(group, k.constant(i / 2 + i % 2 * 2))));
      }
    });
  });
}

void emitWidenRows(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, const Matrix &rows,
                   Value count, Value depth, Value target) {
  if (isBytes(stored, wide))
    return emitWidenBytes(k, stored, wide, rows, count, depth, target);
  emitWidenFloats(k, rows, stored.left, count, depth, stored.lanes(), target);
}

SizeExpr widenedPanelSpace(const MicroKernel &stored, const MicroKernel &wide, const SizeExpr &depth, int64_t width) {
  SizeExpr space = panelSpace(stored, depth, width);
  return isFitted(wide) ? space * SizeExpr(mostFittedSteps) : space;
}

/// Writes the numbers of a panel as `wide` reads them.
static void writeWide(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, Value depth,
                      const Panel &panel, Value target) {
  const auto &micro = llvm::cast<VectorKernel>(stored);
  int64_t lanes = micro.lanes(), width = panelWidth(micro, panel.vectors), perStep = micro.storedPerStep();
  int64_t parts = micro.interleave / wide.interleave, perPart = wide.interleave;
  auto kept = VectorType::get({lanes * perPart}, storageType(wide.panel));
  Value one = k.constant(1), zero = k.constant(0), whole = k.ceilDiv(depth, micro.interleave);
  int64_t perGroup = panel.codes.group / micro.interleave;
  Value groups = perGroup ? k.ceilDiv(whole, perGroup) : one;
  k.loop(zero, groups, one, [&](Value group) {
    SmallVector<Value> zeroPoints = zeroPointsOf(k, micro, panel, group);
    Value from = perGroup ? k.mul(group, k.constant(perGroup)) : zero;
    Value to = perGroup ? k.minimum(k.add(from, k.constant(perGroup)), whole) : whole;
    k.loop(from, to, one, [&](Value step) {
      for (int64_t v = 0; v < panel.vectors; ++v) {
        Value place = k.add(k.mul(step, k.constant(width * perStep)), k.constant(v * lanes * perStep));
        Value numbers = micro.loadPanel(k, panel.buffer, k.add(panel.offset, place));
        for (int64_t part = 0; part < parts; ++part) {
          Value first = k.add(k.mul(step, k.constant(parts)), k.constant(part));
          Value at = k.mul(k.add(k.mul(first, k.constant(width)), k.constant(v * lanes)), k.constant(perPart));
          Value ofPart = parts == 1 ? numbers : micro.elementsAt(k, numbers, part);
          if (zeroPoints[v])
            ofPart = micro.subtract(k, ofPart, zeroPoints[v]);
          if (ofPart.getType() != kept) // bf16 is kept as the bits of it
            ofPart = vector::BitCastOp::create(k.b, k.loc, kept, ofPart);
          storeLanes(k, ofPart, target, at, Value());
        }
      }
    });
  });
}

/// Fits a panel where `isMany`. Yields whether it is worth it, and how many steps there are.
static std::pair<Value, Value> fitPanel(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide,
                                        Value depth, const Panel &panel, Value target, Value places, Value isMany) {
  Type results[] = {k.b.getI1Type(), k.b.getIndexType()};
  auto branch = scf::IfOp::create(k.b, k.loc, results, isMany, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  auto [isShort, steps] = emitFitPanel(k, llvm::cast<VectorKernel>(stored), wide, depth, panel, target, places);
  scf::YieldOp::create(k.b, k.loc, ValueRange{isShort, steps});
  k.b.setInsertionPointToStart(branch.elseBlock());
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false));
  scf::YieldOp::create(k.b, k.loc, ValueRange{none, k.constant(0)});
  return {branch.getResult(0), branch.getResult(1)};
}

void emitWidenPanel(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, Value depth,
                    const Panel &panel, Value target, Value places, Value isMany,
                    llvm::function_ref<void(const Panel *widened)> multiply) {
  Value elements = panelElements(k, stored, depth, panelWidth(stored, panel.vectors));
  Panel widened{target, k.constant(0), panel.vectors, panel.next, panel.codes, panel.buffer, elements};
  widened.codes.zeroPoints = {}; // taken off already
  Value isWide = isMany;
  if (isFitted(wide)) {
    widened.places = places;
    std::tie(isWide, widened.steps) = fitPanel(k, stored, wide, depth, panel, target, places, isMany);
  }
  auto branch = scf::IfOp::create(k.b, k.loc, isWide, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  if (!isFitted(wide))
    writeWide(k, stored, wide, depth, panel, target);
  multiply(&widened);
  k.b.setInsertionPointToStart(branch.elseBlock());
  multiply(nullptr);
}

} // namespace deepstride
