// How many elements a kernel reads of each operand and writes of each result: what its traffic is at the least, for
// reports and profiles.
#ifndef DEEPSTRIDE_DIALECTS_DS_TRAFFIC_H
#define DEEPSTRIDE_DIALECTS_DS_TRAFFIC_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Elements of each operand and of each result; none stands for all of them.
struct Traffic {
  llvm::SmallVector<std::optional<SizeExpr>> reads, writes;
};

/// The traffic of a kernel of these ops, in their order, that reads `operands` and yields `yielded`. Elements that
/// slices, gathers and insertions leave out are not counted, and elements that several ops read count once; where it is
/// not known whether they are the same, as if they were.
Traffic trafficOf(llvm::ArrayRef<mlir::Operation *> body, llvm::ArrayRef<mlir::Value> operands,
                  mlir::ValueRange yielded, llvm::function_ref<SizeVector(mlir::Value)> sizesOf);

/// Bytes of an element in memory: a byte holds one, however narrow it is.
int64_t bytesOfElement(mlir::Type element);

} // namespace deepstride::ds

#endif
