// Integer tensors that count rows and columns, as masks compare them.
#ifndef DEEPSTRIDE_PASSES_GRAPH_POSITIONS_H
#define DEEPSTRIDE_PASSES_GRAPH_POSITIONS_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// Places of the last two axes by column - row: at least `lower`, at most `upper`; open where a bound is not given.
struct Band {
  std::optional<SizeExpr> lower, upper;
  mlir::Value
      positions; // where given, the places of the rows: column - positions is bounded, positions end in an axis of 1

  explicit operator bool() const { return lower || upper; }
};

/// The places where a comparison of columns with rows holds, or where it does not, in an array of its sizes.
std::optional<Band> bandOf(ds::BinaryOp comparison, bool negated, const SizeAnalysis &sizes);

} // namespace deepstride

#endif
