// Which ops normalize rows: what a product may do to the rows that it reads.
#ifndef DEEPSTRIDE_DIALECTS_DS_NORMS_H
#define DEEPSTRIDE_DIALECTS_DS_NORMS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether rows are normalized by the op: each is read as a whole before its first element is written.
inline bool isNorm(mlir::Operation *op) { return llvm::isa_and_present<LayerNormOp, RmsNormOp>(op); }

} // namespace deepstride::ds

#endif
