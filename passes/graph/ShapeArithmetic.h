// Which ops are shape arithmetic whose value the size analysis knows, shared by the pass that folds it and by the
// contract that none is left.
#ifndef DEEPSTRIDE_PASSES_GRAPH_SHAPEARITHMETIC_H
#define DEEPSTRIDE_PASSES_GRAPH_SHAPEARITHMETIC_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// The value of an op's only result: elements, or size expressions where they depend on dimensions.
struct KnownValue {
  mlir::DenseElementsAttr elements;
  mlir::ArrayAttr sizes;
};

/// Nothing where the op is already in its simplest form, the value is unknown, or it is too large to be an attribute.
std::optional<KnownValue> findKnownValue(mlir::Operation *op, const SizeAnalysis &analysis);

/// The elements of the op's result if all its operands are constants; null where they are not or it cannot be
/// evaluated.
mlir::DenseElementsAttr evaluateConstants(mlir::Operation *op);

/// Names of the op's attributes that hold size lists.
llvm::ArrayRef<llvm::StringLiteral> sizeAttributes(mlir::Operation *op);

/// Rewrites the op's size lists with symbols bound, in canonical form. Fails on a text that is no size expression.
llvm::LogicalResult rewriteSizes(mlir::Operation *op, const llvm::StringMap<SizeExpr> &bindings);

} // namespace deepstride

#endif
