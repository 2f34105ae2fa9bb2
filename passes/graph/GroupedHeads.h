// Keys and values that several heads of the query share, before an exporter repeated them.
#ifndef DEEPSTRIDE_PASSES_GRAPH_GROUPEDHEADS_H
#define DEEPSTRIDE_PASSES_GRAPH_GROUPEDHEADS_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// Where key and value, [batch, heads, length, size], repeat each of their heads for as many neighbours, replaces both
/// by what was repeated. Leaves them where they do not, or not equally often.
void ungroupHeads(mlir::OpBuilder &builder, SizeAnalysis &sizes, mlir::Value &key, mlir::Value &value);

} // namespace deepstride

#endif
