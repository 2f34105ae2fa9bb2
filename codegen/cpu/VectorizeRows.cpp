// Turns linalg.generic on strided memrefs into loops whose innermost axis is walked in native vectors, with a tail that
// computes the same function in the same order of operations per element: one vector under a mask where registers of
// masks make that as fast as any other, else element by element.
// Works on generics with elementwise bodies; a body with other ops, or an operand that is not contiguous along the
// innermost axis, keeps scalar loops. A generic marked ds.range covers items [begin, end) of the kernel only.
// Upstream's vectorizer makes n-D masked vectors, which LLVM scalarizes when they are not of native width.
// ds.tile [loop, lanes] says that operands whose map ends with `loop` are contiguous along it: an item is then a block
// of `lanes` values of that loop, and squares of those operands are transposed in registers before the body reads them.
// An operand whose map ends with a loop divided by a part of the lanes is read in shorter vectors, whose elements
// repeat; one whose elements lie a few places apart is read with what lies between (codegen/cpu/RowLoads.cpp).
//
//   linalg.generic ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) { math.exp }
// becomes
//   scf.for %i = %begin to %vectorEnd step 16 { vector.load; math.exp : vector<16xf32>; vector.store }
//   scf.for %i = %vectorEnd to %end step 1    { memref.load; math.exp : f32; memref.store }
#include "codegen/Passes.h"
#include "codegen/cpu/Extremes.h"
#include "codegen/cpu/RowVectorizer.h"
#include "codegen/tile/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

namespace deepstride {
#define GEN_PASS_DEF_VECTORIZEROWS
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

bool RowVectorizer::isVectorizable() {
  if (lanes <= 1)
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    Reach reach = reachOf(operand);
    bool isOutput = op.isDpsInit(&operand);
    if (isTransposed(operand))
      continue;
    if (reach == Reach::Strided || (isOutput && reach != (reduces ? Reach::Broadcast : Reach::Contiguous)))
      return false;
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa<linalg::IndexOp, arith::ConstantOp>(inner))
      continue;
    if (!OpTrait::hasElementwiseMappableTraits(&inner))
      return false;
  }
  return !reduces || folds();
}

/// A reduction body is "combine(accumulator, f(inputs))" so that lanes can be combined at the end by the same op.
bool RowVectorizer::folds() {
  Operation *terminator = op.getBody()->getTerminator();
  for (auto [number, value] : llvm::enumerate(terminator->getOperands())) {
    Operation *combine = value.getDefiningOp();
    BlockArgument accumulator = op.getBody()->getArgument(op.getNumDpsInputs() + number);
    if (!combine || combine->getNumOperands() != 2 || combine->getOperand(0) != accumulator || !accumulator.hasOneUse())
      return false;
  }
  return true;
}

// Emits one step of the innermost loop: `width` elements at once. Returns the new accumulators of a reduction.
SmallVector<Value> RowVectorizer::emitBody(ArrayRef<Value> indices, int64_t width, ArrayRef<Value> carried) {
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (op.isDpsInit(&operand)) {
      if (reduces)
        mapping.map(argument, carried[operand.getOperandNumber() - op.getNumDpsInputs()]);
      continue;
    }
    if (argument.use_empty())
      continue;
    mapping.map(argument, load(operand, indices, width));
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Value value = indices[index.getDim()];
      if (width > 1 && index.getDim() == rank - 1)
        value = arith::AddIOp::create(b, loc, widen(value, width),
                                      vector::StepOp::create(b, loc, VectorType::get({width}, b.getIndexType())));
      else
        value = widen(value, width);
      mapping.map(index.getResult(), value);
      continue;
    }
    if (width == 1) {
      b.clone(inner, mapping);
      continue;
    }
    if (compares && isExtreme(&inner) && llvm::is_contained(op.getRegionOutputArgs(), inner.getOperand(0))) {
      Value x = mapping.lookupOrDefault(inner.getOperand(1));
      x = isa<VectorType>(x.getType()) ? x : widen(x, width);
      compared.push_back(x);
      mapping.map(inner.getResult(0), compareExtreme(b, &inner, mapping.lookup(inner.getOperand(0)), x));
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      auto type = VectorType::get({width}, constant.getType());
      mapping.map(constant.getResult(),
                  arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, constant.getValue())));
      continue;
    }
    OperationState state(loc, inner.getName());
    for (Value operand : inner.getOperands()) {
      Value mapped = mapping.lookupOrDefault(operand);
      state.operands.push_back(isa<VectorType>(mapped.getType()) ? mapped : widen(mapped, width));
    }
    for (Type type : inner.getResultTypes())
      state.types.push_back(VectorType::get({width}, type));
    state.attributes = llvm::to_vector(inner.getAttrs());
    Operation *wide = b.create(state);
    for (auto [from, to] : llvm::zip_equal(inner.getResults(), wide->getResults()))
      mapping.map(from, to);
  }
  SmallVector<Value> results;
  for (Value value : op.getBody()->getTerminator()->getOperands()) {
    Value mapped = mapping.lookupOrDefault(value);
    results.push_back(width > 1 && !isa<VectorType>(mapped.getType()) ? widen(mapped, width) : mapped);
  }
  if (reduces)
    return results;
  for (auto [output, value] : llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    SmallVector<Value> at = position(output, indices);
    if (width == 1)
      memref::StoreOp::create(b, loc, value, output.get(), at);
    else if (mask)
      vector::MaskedStoreOp::create(b, loc, output.get(), at, mask, value);
    else
      vector::StoreOp::create(b, loc, value, output.get(), at);
  }
  return {};
}

/// The innermost loop over [from, to) in steps of `chains` times `width`; accumulators go in and out through `carried`,
/// those of one chain after those of another, and flags at the end.
void RowVectorizer::emitSpan(ArrayRef<Value> outer, Value from, Value to, int64_t width, MutableArrayRef<Value> carried,
                             int64_t chains) {
  Value step = arith::ConstantIndexOp::create(b, loc, width * chains);
  SmallVector<Value> initial(carried.begin(), carried.end());
  auto loop = scf::ForOp::create(b, loc, from, to, step, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> indices(outer), accumulators(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end()),
      next;
  indices.push_back({});
  size_t count = (carried.size() - (compares ? 1 : 0)) / static_cast<size_t>(chains);
  if (compares)
    flags = accumulators.back();
  for (int64_t chain = 0; chain < chains; ++chain) {
    indices.back() = loop.getInductionVar();
    if (chain > 0)
      indices.back() =
          arith::AddIOp::create(b, loc, indices.back(), arith::ConstantIndexOp::create(b, loc, chain * width));
    SmallVector<Value> before = std::exchange(compared, {});
    llvm::append_range(next, emitBody(indices, width, ArrayRef(accumulators).slice(chain * count, count)));
    if (chain % 2 == 1) // one comparison for two chains
      for (auto [number, x, y] : llvm::enumerate(before, compared))
        if (!llvm::is_contained(ArrayRef(compared).take_front(number), y))
          flags = flagNaN(b, loc, flags, x, y);
  }
  if (compares)
    next.push_back(flags);
  if (!carried.empty()) // without iteration arguments the loop already has its terminator
    scf::YieldOp::create(b, loc, next);
  for (auto [slot, result] : llvm::zip_equal(carried, loop.getResults()))
    slot = result;
}

/// How many elements of the widest type that the body meets fill the vector that `lanes` floats fill.
int64_t RowVectorizer::lanesOfWidest() {
  unsigned widest = 1;
  auto meet = [&](Type type) {
    widest = std::max(widest, type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : IndexType::kInternalStorageBitWidth);
  };
  for (Value argument : op.getBody()->getArguments())
    meet(argument.getType());
  for (Operation &inner : op.getBody()->without_terminator())
    llvm::for_each(inner.getResultTypes(), meet);
  return lanes * std::max<int64_t>(1, 32 / std::max(8U, widest));
}

/// Past the places of [from, to) that vectors of `width` cover.
Value RowVectorizer::endOfVectors(Value from, Value to, int64_t width) {
  Value step = arith::ConstantIndexOp::create(b, loc, width);
  Value whole = arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, to, from), step);
  return arith::AddIOp::create(b, loc, from, arith::MulIOp::create(b, loc, whole, step));
}

void RowVectorizer::emitInner(ArrayRef<Value> outer, Value from, Value to) {
  bool vectorizable = isVectorizable();
  int64_t times = 1;
  for (OpOperand *operand : op.getDpsInputOperands())
    times = std::max(times, repeatsOf(*operand));
  if (vectorizable && times > 1) { // a thread may begin between two places of an element, a vector may not
    Value repeats = arith::ConstantIndexOp::create(b, loc, times),
          rest = arith::ConstantIndexOp::create(b, loc, times - 1);
    Value whole = arith::DivUIOp::create(b, loc, arith::AddIOp::create(b, loc, from, rest), repeats);
    Value start = arith::MinSIOp::create(b, loc, arith::MulIOp::create(b, loc, whole, repeats), to);
    emitSpan(outer, from, start, 1, {});
    from = start;
  }
  if (reduces) {
    emitReduction(outer, from, vectorizable ? endOfVectors(from, to, lanes) : from, to, vectorizable);
    return;
  }
  auto span = [&](int64_t width) {
    Value split = endOfVectors(from, to, width);
    emitSpan(outer, from, split, width, {});
    from = split;
  };
  int64_t most = lanesOfWidest();
  if (vectorizable)
    span(most);
  if (vectorizable && most > lanes) // what is left of narrow elements
    span(lanes);
  if (vectorizable && mayMask())
    emitMasked(outer, from, to);
  else
    emitSpan(outer, from, to, 1, {});
}

/// Whether what is left of a row may be one vector: AVX-512 loads and stores parts of vectors as it does whole ones, a
/// processor with less takes tens of cycles. Lanes behind the end hold zeros, by which no integer may be divided.
bool RowVectorizer::mayMask() {
  constexpr int64_t leastLanes = 16;
  auto isPlain = [&](OpOperand &operand) {
    Reach reach = reachOf(operand);
    return !isTransposed(operand) && (reach == Reach::Broadcast || reach == Reach::Contiguous);
  };
  return lanes >= leastLanes && llvm::all_of(op->getOpOperands(), isPlain) &&
         llvm::none_of(op.getBody()->without_terminator(), [](Operation &inner) {
           return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
                      arith::CeilDivUIOp, arith::FloorDivSIOp>(inner);
         });
}

/// The last places of a row, [from, to), which are fewer than there are lanes.
void RowVectorizer::emitMasked(ArrayRef<Value> outer, Value from, Value to) {
  Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, from, to);
  auto branch = scf::IfOp::create(b, loc, isLeft, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value count = arith::SubIOp::create(b, loc, to, from);
  mask = vector::CreateMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()), ValueRange{count});
  SmallVector<Value> indices(outer);
  indices.push_back(from);
  emitBody(indices, lanes, {});
  mask = {};
}

/// Whether squares of the operand are transposed: it is contiguous along the tiled loop and walked in steps along the
/// innermost one.
bool RowVectorizer::isTransposed(OpOperand &operand) {
  if (!tiled || op.isDpsInit(&operand))
    return false;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (map.getNumResults() < 2 || map.getResults().back() != getAffineDimExpr(*tiled, map.getContext()) ||
      !map.isFunctionOfDim(rank - 1))
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(cast<MemRefType>(operand.get().getType()).getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

/// The transposed square of an operand at a corner.
void RowVectorizer::transposeSquare(OpOperand &operand, ArrayRef<Value> corner) {
  auto type = VectorType::get({lanes}, cast<MemRefType>(operand.get().getType()).getElementType());
  SmallVector<Value> rows, at(corner);
  for (int64_t row = 0; row < lanes; ++row) {
    at.back() = arith::AddIOp::create(b, loc, corner.back(), arith::ConstantIndexOp::create(b, loc, row));
    rows.push_back(vector::LoadOp::create(b, loc, type, operand.get(), position(operand, at)));
  }
  rows = transposeInRegisters(b, loc, std::move(rows));
  Value &square = squares[operand.getOperandNumber()];
  if (!square) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&op->getParentOfType<func::FuncOp>().front());
    square = memref::AllocaOp::create(b, loc, MemRefType::get({lanes, lanes}, type.getElementType()));
  }
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [number, row] : llvm::enumerate(rows)) {
    Value place = arith::ConstantIndexOp::create(b, loc, static_cast<int64_t>(number));
    vector::StoreOp::create(b, loc, row, square, ValueRange{place, zero});
  }
}

/// One block of the tiled loop, over all of the innermost one: squares first, then what they leave, element by element.
void RowVectorizer::emitTile(ArrayRef<Value> outer) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  Value size = bounds[*tiled], width = arith::ConstantIndexOp::create(b, loc, block);
  Value first = arith::MulIOp::create(b, loc, outer[*tiled], width), length = bounds[rank - 1];
  Value end = arith::MinSIOp::create(b, loc, arith::AddIOp::create(b, loc, first, width), size);
  Value split = zero;
  if (block == lanes && isVectorizable()) {
    Value count = arith::SubIOp::create(b, loc, end, first);
    Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, width);
    Value whole = arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, length, width), width);
    split = arith::SelectOp::create(b, loc, isWhole, whole, zero);
    auto columns = scf::ForOp::create(b, loc, zero, split, width);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(columns.getBody());
    SmallVector<Value> corner(outer);
    corner[*tiled] = first;
    corner.push_back(columns.getInductionVar());
    for (OpOperand *operand : op.getDpsInputOperands())
      if (isTransposed(*operand))
        transposeSquare(*operand, corner);
    auto rows = scf::ForOp::create(b, loc, zero, width, one);
    b.setInsertionPointToStart(rows.getBody());
    squareRow = rows.getInductionVar();
    corner[*tiled] = arith::AddIOp::create(b, loc, first, squareRow);
    emitBody(corner, lanes, {});
  }
  auto rows = scf::ForOp::create(b, loc, first, end, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rows.getBody());
  SmallVector<Value> row(outer);
  row[*tiled] = rows.getInductionVar();
  emitSpan(row, split, length, 1, {});
}

void RowVectorizer::run() {
  rank = op.getNumLoops();
  reduces = op.getIteratorTypesArray().back() == utils::IteratorType::reduction;
  for (Range range : cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(b, loc))
    bounds.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);

  if (op->hasAttr("ds.range")) {
    auto function = op->getParentOfType<func::FuncOp>();
    unsigned count = function.getNumArguments();
    Value begin = function.getArgument(count - 3), end = function.getArgument(count - 2);
    if (rank == 1) {
      emitInner({}, begin, end);
    } else {
      auto rows = scf::ForOp::create(b, loc, begin, end, one);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(rows.getBody());
      SmallVector<Value> outer(rank - 1), sizes(bounds);
      if (auto tile = op->getAttrOfType<DenseI64ArrayAttr>("ds.tile")) { // items of this loop are blocks
        tiled = static_cast<unsigned>(tile[0]);
        block = tile[1];
        Value width = arith::ConstantIndexOp::create(b, loc, block),
              round = arith::ConstantIndexOp::create(b, loc, block - 1);
        sizes[*tiled] = arith::DivUIOp::create(b, loc, arith::AddIOp::create(b, loc, sizes[*tiled], round), width);
      }
      Value rest = rows.getInductionVar();
      for (unsigned i = rank - 1; i-- > 1;) {
        outer[i] = arith::RemUIOp::create(b, loc, rest, sizes[i]);
        rest = arith::DivUIOp::create(b, loc, rest, sizes[i]);
      }
      outer[0] = rest;
      if (tiled)
        emitTile(outer);
      else
        emitInner(outer, zero, bounds[rank - 1]);
    }
  } else {
    SmallVector<Value> outer;
    OpBuilder::InsertionGuard guard(b);
    for (unsigned i = 0; i + 1 < rank; ++i) {
      auto loop = scf::ForOp::create(b, loc, zero, bounds[i], one);
      b.setInsertionPointToStart(loop.getBody());
      outer.push_back(loop.getInductionVar());
    }
    emitInner(outer, zero, bounds[rank - 1]);
  }
  op.erase();
}

namespace {
struct VectorizeRows : deepstride::impl::VectorizeRowsBase<VectorizeRows> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](linalg::GenericOp op) { RowVectorizer(op, lanes).run(); });
  }
};

} // namespace
