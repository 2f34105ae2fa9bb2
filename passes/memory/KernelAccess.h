// What a kernel reads and writes of its arguments, as far as sharing buffers needs it.
#ifndef DEEPSTRIDE_PASSES_MEMORY_KERNELACCESS_H
#define DEEPSTRIDE_PASSES_MEMORY_KERNELACCESS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// Whether a kernel reads nothing of an argument but the element that it writes: every path from the argument to a
/// result is elementwise and keeps the sizes. What is scanned is read by every thread as a whole.
bool readsOnlyWhatItWrites(ds::KernelOp kernel, unsigned argument);

/// For each result of a kernel the argument that it is, in part rewritten; -1: none.
llvm::SmallVector<int64_t> updatedArguments(ds::KernelOp kernel);

} // namespace deepstride

#endif
