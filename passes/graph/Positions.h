// Integer tensors that count rows and columns, as masks compare them.
#ifndef DEEPSTRIDE_PASSES_GRAPH_POSITIONS_H
#define DEEPSTRIDE_PASSES_GRAPH_POSITIONS_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// An element as offset + the sum of coefficient * index over the axes.
struct Positions {
  SizeVector coefficients;
  SizeExpr offset;
};

/// Nothing where the elements are not such sums, or not seen to be.
std::optional<Positions> positionsOf(mlir::Value value, const SizeAnalysis &sizes);

/// c where a comparison holds for column - row <= c, or for all other places, of the last two axes.
std::optional<SizeExpr> boundaryOf(ds::BinaryOp comparison, const SizeAnalysis &sizes);

} // namespace deepstride

#endif
