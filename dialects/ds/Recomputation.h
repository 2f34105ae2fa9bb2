// What says of an op that it computes an activation again.
#ifndef DEEPSTRIDE_DIALECTS_DS_RECOMPUTATION_H
#define DEEPSTRIDE_DIALECTS_DS_RECOMPUTATION_H

#include "llvm/ADT/StringRef.h"

namespace deepstride::ds {

/// On an op of a way back: it is no duplicate of the first one, whose result would have to be kept. Kernels do not have
/// it.
inline constexpr llvm::StringLiteral recomputedAttr = "ds.recomputed";
/// On a module: how many activations could be computed again (ds-recompute-activations).
inline constexpr llvm::StringLiteral activationsAttr = "ds.activations";

} // namespace deepstride::ds

#endif
