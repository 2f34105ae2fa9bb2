// What the kernel of an attention computes beside it: rows of its operands, which it normalizes, turns and puts
// together with cached ones on the way.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_ATTENTIONREGIONS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_ATTENTIONREGIONS_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// Gathers the region of an attention, and its last op. Ops are moved or copied to where they can be wrapped; remarks
/// say what stays outside.
std::pair<OpSet, mlir::Operation *> attentionRegion(ds::AttentionOp attention, SizeAnalysis &analysis);

} // namespace deepstride

#endif
