// Scalar code of elementwise functions. Values are held in a compute type: i1 for booleans (stored as bytes), f32 for
// f16 and bf16 (rounded when stored), signless integers for signed and unsigned ones.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_SCALAR_H
#define DEEPSTRIDE_CODEGEN_LOWER_SCALAR_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// The type that memory holds for an element type: i8 for i1, i16 for bf16, signless for unsigned.
mlir::Type storageType(mlir::Type element);
/// The type that arithmetic is done in.
mlir::Type computeType(mlir::Type element);
int64_t storageBytes(mlir::Type element);

/// Between memory and arithmetic: scalars, and vectors of f16, bf16 and of types that both hold in one form.
mlir::Value fromStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value raw, mlir::Type element);
mlir::Value toStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type element);

/// A constant in the compute type of `element`.
mlir::Value scalarConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, double value);
mlir::Value scalarConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, mlir::Attribute value);

/// One element of the result of a pointwise op, from those of its operands and their element types.
mlir::Value emitPointwise(mlir::OpBuilder &b, mlir::Location loc, mlir::Operation *op,
                          llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Type> elements, mlir::Type result);
mlir::Value emitUnary(mlir::OpBuilder &b, mlir::Location loc, ds::UnaryKind kind, mlir::Value x, mlir::Type element);
/// `exponent` is the element type of the right operand, which only pow may choose freely.
mlir::Value emitBinary(mlir::OpBuilder &b, mlir::Location loc, ds::BinaryKind kind, mlir::Value x, mlir::Value y,
                       mlir::Type element, mlir::Type exponent);
mlir::Value emitCast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Type from, mlir::Type to);
/// e^difference, what a softmax sums, for a difference to the greatest. In f32 it is 0 instead of subnormal: where
/// masks hide many scores, processors that assist in making subnormal numbers would take most of the kernel's time.
mlir::Value emitWeight(mlir::OpBuilder &b, mlir::Location loc, mlir::Value difference);
/// Whether the reduction is a sum of what it maps elements to.
bool addsUp(ds::ReduceKind kind);
/// The combining function of a reduction and its neutral element.
mlir::Value emitCombine(mlir::OpBuilder &b, mlir::Location loc, ds::ReduceKind kind, mlir::Value x, mlir::Value y,
                        mlir::Type element);
mlir::Value neutralElement(mlir::OpBuilder &b, mlir::Location loc, ds::ReduceKind kind, mlir::Type element);

} // namespace deepstride

#endif
