// Long sums in blocks. The error of a chain of f32 grows with its length, so that chains are short: each sums a block,
// and the sums of blocks are added up in f64. Which elements a block has depends on the sizes of what is reduced only.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_BLOCKS_H
#define DEEPSTRIDE_CODEGEN_LOWER_BLOCKS_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// Elements of a block at most: as many as it has where vectors of neighbours are added up.
constexpr int64_t mostPerBlock = 2048;

/// Neighbouring places of some loops: where they begin along each, and how many there are.
struct LoopBlock {
  llvm::SmallVector<mlir::Value> from, counts;
};

/// Has `body` combine the elements of loops of these sizes into cells, of which each has a kind and holds its neutral
/// element, in scalars or vectors: of all at once (null), or block by block, where it may be given the cells again.
/// `chains` of elements run side by side along the last loop.
void reduceBlocks(KernelBuilder &k, llvm::ArrayRef<SizeExpr> sizes, int64_t chains, mlir::Type element,
                  llvm::ArrayRef<ds::ReduceKind> kinds, llvm::ArrayRef<mlir::Value> cells,
                  llvm::function_ref<void(const LoopBlock *)> body);

} // namespace deepstride

#endif
