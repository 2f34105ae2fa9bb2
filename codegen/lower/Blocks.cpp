// Loops over blocks, and what adds up their sums.
#include "codegen/lower/Blocks.h"

using namespace mlir;

namespace deepstride {

/// Elements of a chain.
static constexpr int64_t chainLength = 256;

static int64_t elementsPerBlock(int64_t chains) { return std::min(chainLength * chains, mostPerBlock); }

// Blocks lie along the last loop, and along the one before it where the last is short.
static void forEachBlock(KernelBuilder &k, ArrayRef<SizeExpr> sizes, int64_t chains,
                         llvm::function_ref<void(const LoopBlock &)> body) {
  OpBuilder::InsertionGuard guard(k.b);
  LoopBlock block;
  Value zero = k.constant(0), one = k.constant(1);
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    Value end = k.index(size), step = one;
    if (axis + 1 == sizes.size())
      step = k.constant(elementsPerBlock(chains));
    else if (axis + 2 == sizes.size())
      step = k.maximum(k.divide(k.constant(chainLength), k.maximum(k.index(sizes.back()), one)), one);
    auto all = getConstantIntValue(end), most = getConstantIntValue(step);
    if (all && most && *all <= *most) {
      block.from.push_back(zero);
      block.counts.push_back(end);
      continue;
    }
    auto loop = scf::ForOp::create(k.b, k.loc, zero, end, step);
    k.b.setInsertionPointToStart(loop.getBody());
    block.from.push_back(loop.getInductionVar());
    block.counts.push_back(most == 1 ? one : k.minimum(step, k.sub(end, block.from.back())));
  }
  body(block);
}

void reduceBlocks(KernelBuilder &k, ArrayRef<SizeExpr> sizes, int64_t chains, Type element,
                  ArrayRef<ds::ReduceKind> kinds, ArrayRef<Value> cells,
                  llvm::function_ref<void(const LoopBlock *)> body) {
  int64_t most = elementsPerBlock(sizes.size() == 1 ? chains : 1);
  auto count = product(sizes).constant();
  if ((count && *count <= most) || !computeType(element).isF32() || llvm::none_of(kinds, addsUp))
    return body(nullptr);
  OpBuilder::InsertionGuard guard(k.b);
  if (!count) { // a single block needs no other sum
    Value isShort =
        arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, k.index(product(sizes)), k.constant(most));
    auto branch = scf::IfOp::create(k.b, k.loc, isShort, /*withElseRegion=*/true);
    k.b.setInsertionPointToStart(branch.thenBlock());
    body(nullptr);
    k.b.setInsertionPointToStart(branch.elseBlock());
  }
  auto load = [&](Value cell) { return memref::LoadOp::create(k.b, k.loc, cell).getResult(); };
  auto store = [&](Value value, Value cell) { memref::StoreOp::create(k.b, k.loc, value, cell); };
  SmallVector<Value> neutral = llvm::map_to_vector(cells, load), totals;
  auto wide = [&](Value value) -> Value {
    auto vector = dyn_cast<VectorType>(value.getType());
    Type type = k.b.getF64Type();
    return arith::ExtFOp::create(k.b, k.loc, vector ? VectorType::get(vector.getShape(), type) : type, value);
  };
  for (Value start : neutral) {
    Value value = wide(start);
    totals.push_back(k.cell(value.getType()));
    store(value, totals.back());
  }
  forEachBlock(k, sizes, chains, [&](const LoopBlock &block) {
    for (auto [cell, start] : llvm::zip_equal(cells, neutral))
      store(start, cell);
    body(&block);
    for (auto [kind, cell, total] : llvm::zip_equal(kinds, cells, totals))
      store(emitCombine(k.b, k.loc, kind, load(total), wide(load(cell)), element), total);
  });
  for (auto [cell, start, total] : llvm::zip_equal(cells, neutral, totals))
    store(arith::TruncFOp::create(k.b, k.loc, start.getType(), load(total)), cell);
}

} // namespace deepstride
