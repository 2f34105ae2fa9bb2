// Copies of stored elements between flat buffers.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_COPIES_H
#define DEEPSTRIDE_CODEGEN_LOWER_COPIES_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// Copies `count` stored elements between flat buffers, whole vectors first. What is `isStreamed` comes from far away,
/// with its neighbours behind it: it is prefetched beyond the end, which hardware does not do across pages.
void emitCopy(KernelBuilder &k, mlir::Value from, mlir::Value fromOffset, mlir::Value to, mlir::Value toOffset,
              mlir::Value count, bool isStreamed = false);

/// As emitCopy of what is streamed, to where nothing reads it soon: where `isAway` (i1) holds and the target is
/// aligned, past the caches, which would read each line of the target before it is written over.
void emitCopyAway(KernelBuilder &k, mlir::Value from, mlir::Value fromOffset, mlir::Value to, mlir::Value toOffset,
                  mlir::Value count, mlir::Value isAway);

/// Copies what a view shows at the indices `at` of its first axes, over all others in their order.
void emitCopyRest(KernelBuilder &k, const View &from, llvm::ArrayRef<mlir::Value> at, mlir::Value to,
                  mlir::Value toOffset);

} // namespace deepstride

#endif
