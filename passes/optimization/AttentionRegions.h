// What the kernel of an attention computes beside it: rows of its operands, which it normalizes, turns and puts
// together with cached ones on the way.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_ATTENTIONREGIONS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_ATTENTIONREGIONS_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// Gathers the region of an attention, and its last op. Ops are moved or copied to where they can be wrapped; remarks
/// say what stays outside. Without `computesRows` the attention stands alone, and only reads and stores through
/// windows.
std::pair<OpSet, mlir::Operation *> attentionRegion(ds::AttentionOp attention, bool computesRows,
                                                    SizeAnalysis &analysis);

/// The product whose result an operand of attention is, seen through what moves, turns, repeats or rounds heads, or
/// appends them to those of earlier steps, and through what makes numbers of sums of integers. Null where something
/// else makes it.
ds::LinearOp projectionOf(mlir::Value value);

} // namespace deepstride

#endif
