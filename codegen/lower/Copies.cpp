// Emits copies: of neighbours in vectors, of what lies apart along the axes that it lies on.
#include "codegen/lower/Copies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Vectors of [0, count), and what fills none. `alignment` of the target in bytes: then stores pass the caches; or 0.
static void emitCopyLoops(KernelBuilder &k, Value from, Value fromOffset, Value to, Value toOffset, Value count,
                          bool isStreamed, int64_t alignment) {
  Value zero = k.constant(0), one = k.constant(1), tail = zero;
  if (k.target.lanes > 1) {
    Value width = k.constant(k.target.lanes);
    tail = k.mul(k.divide(count, width), width);
    auto type = VectorType::get({k.target.lanes}, cast<MemRefType>(from.getType()).getElementType());
    k.loop(zero, tail, width, [&](Value i) {
      if (isStreamed) {
        int64_t twoPages = 8192 * 8 / type.getElementTypeBitWidth();
        memref::PrefetchOp::create(k.b, k.loc, from, k.add(k.add(fromOffset, i), k.constant(twoPages)),
                                   /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
      }
      Value vector = vector::LoadOp::create(k.b, k.loc, type, from, k.add(fromOffset, i));
      vector::StoreOp::create(k.b, k.loc, vector, to, k.add(toOffset, i), /*nontemporal=*/alignment > 0,
                              llvm::MaybeAlign(static_cast<uint64_t>(alignment)));
    });
  }
  k.loop(tail, count, one, [&](Value i) {
    Value element = memref::LoadOp::create(k.b, k.loc, from, k.add(fromOffset, i));
    memref::StoreOp::create(k.b, k.loc, element, to, k.add(toOffset, i));
  });
}

void emitCopy(KernelBuilder &k, Value from, Value fromOffset, Value to, Value toOffset, Value count, bool isStreamed) {
  emitCopyLoops(k, from, fromOffset, to, toOffset, count, isStreamed, /*alignment=*/0);
}

void emitCopyAway(KernelBuilder &k, Value from, Value fromOffset, Value to, Value toOffset, Value count, Value isAway) {
  int64_t elementBytes = cast<MemRefType>(to.getType()).getElementTypeBitWidth() / 8;
  int64_t bytes = k.target.lanes * elementBytes;
  if (bytes < 16) // no such stores
    return emitCopy(k, from, fromOffset, to, toOffset, count, /*isStreamed=*/true);
  Value start =
      k.add(memref::ExtractAlignedPointerAsIndexOp::create(k.b, k.loc, to), k.mul(toOffset, k.constant(elementBytes)));
  Value over = arith::AndIOp::create(k.b, k.loc, start, k.constant(bytes - 1));
  Value isAligned = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, over, k.constant(0));
  auto branch = scf::IfOp::create(k.b, k.loc, arith::AndIOp::create(k.b, k.loc, isAway, isAligned),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  emitCopyLoops(k, from, fromOffset, to, toOffset, count, /*isStreamed=*/true, bytes);
  // Such stores may pass others, also those that tell other threads that the kernel is done.
  LLVM::FenceOp::create(k.b, k.loc, LLVM::AtomicOrdering::seq_cst, StringRef());
  k.b.setInsertionPointToStart(branch.elseBlock());
  emitCopyLoops(k, from, fromOffset, to, toOffset, count, /*isStreamed=*/true, /*alignment=*/0);
}

void emitCopyRest(KernelBuilder &k, const View &from, ArrayRef<Value> at, Value to, Value toOffset) {
  SmallVector<unsigned> axes;
  for (unsigned axis = 0; axis < at.size(); ++axis)
    axes.push_back(axis);
  // The axes behind `end` lie together, and so does their last neighbour.
  size_t end = from.axes.size();
  SizeExpr run = 1;
  while (end > at.size() && (from.axes[end - 1].stride == run || from.axes[end - 1].size.isConstant(1)))
    run = run * from.axes[--end].size;
  SizeVector apart;
  for (size_t axis = at.size(); axis < end; ++axis)
    apart.push_back(from.axes[axis].size);
  Value start = k.offsetAt(from, axes, at), length = k.index(run);
  k.loopNest(apart, [&](ArrayRef<Value> indices) {
    Value place = start;
    for (auto [index, axis] : llvm::zip_equal(indices, ArrayRef(from.axes).slice(at.size(), apart.size())))
      place = k.add(place, k.mul(index, k.strideOf(axis)));
    Value target = apart.empty() ? toOffset : k.add(toOffset, k.mul(k.linearize(indices, apart), length));
    emitCopy(k, from.buffer, place, to, target, length);
  });
}

} // namespace deepstride
