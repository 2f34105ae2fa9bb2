// Rows that the kernel of an attention computes beside it: normalized, turned and put together with cached ones.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_COMPUTEDROWS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_COMPUTEDROWS_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// An attention, in one op or in parts, whose region is gathered.
struct RowReader {
  mlir::Operation *anchor;                       // names the region
  llvm::SmallVector<mlir::OpOperand *> operands; // read queries, keys and values, in this order
  llvm::SmallVector<mlir::Value> others;         // what it reads in memory
};

/// Takes in what computes the rows of one of the reader's operands, if something does; false where nothing does, or
/// where a remark says why it stays outside. `last` is the region's last op.
bool takeComputedRows(const RowReader &reader, mlir::OpOperand &operand, OpSet &region, mlir::Operation *last,
                      SizeAnalysis &analysis);

} // namespace deepstride

#endif
