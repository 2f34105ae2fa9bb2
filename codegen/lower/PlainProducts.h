// Products in plain loops: those of the reference, and of types that no micro-kernel multiplies.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_PLAINPRODUCTS_H
#define DEEPSTRIDE_CODEGEN_LOWER_PLAINPRODUCTS_H

#include "codegen/kernel/Epilogue.h"

namespace deepstride {

/// Changes the right operand's element at a step of K, which is in the type of the result.
using Conversion = llvm::function_ref<mlir::Value(mlir::Value element, mlir::Value step)>;

/// Row `row` of a by column `column` of b, started with `start`, which has the result's element type.
mlir::Value plainProduct(KernelBuilder &k, const Matrix &a, const Matrix &b, mlir::Value row, mlir::Value column,
                         mlir::Value depth, const ds::ProductTypes &types, mlir::Value start,
                         Conversion convert = nullptr);

/// ds.linear, with its scales, bias and epilogue; threads split the rows.
void lowerPlainLinear(KernelBuilder &k, ds::LinearOp op, const ds::ProductTypes &types, const Matrix &weight,
                      const SizeExpr &rows, mlir::Value depth, mlir::Value columns, Epilogue &epilogue);

} // namespace deepstride

#endif
