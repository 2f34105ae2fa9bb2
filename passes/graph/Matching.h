// What the patterns of the graph phase share: constants in chains of primitive ops, and the manners of replacing ops.
#ifndef DEEPSTRIDE_PASSES_GRAPH_MATCHING_H
#define DEEPSTRIDE_PASSES_GRAPH_MATCHING_H

#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Gives the op that replaces `from` the ONNX names of its values.
void keepNames(mlir::Operation *from, mlir::Operation *to);

/// Removes pure ops without uses, users before what they use.
void eraseDeadOps(mlir::Operation *root);

/// Why a block was not recomposed, on its last op; `ds-recognize-layers` reads and removes it.
inline constexpr llvm::StringLiteral leftAttr = "ds.left";
/// Remarks that the op is nearly the end of a block and why it is not, and marks it with the reason.
void remarkLeft(mlir::Operation *op, llvm::StringRef block, const llvm::Twine &reason);

int64_t rankOf(mlir::Value value);

/// The value of a constant of one element, where a double holds it.
std::optional<double> scalarOf(mlir::Value value);
/// The one number that all elements of a value are, which may be repeated and reshaped.
std::optional<double> uniformOf(mlir::Value value);
/// Whether a constant that an exporter rounded is meant to be `ideal`: to its element type, or to five digits.
bool isNear(double value, double ideal, mlir::Type element);

/// The op that makes the value, if it is this one.
ds::BinaryOp binaryOf(mlir::Value value, ds::BinaryKind kind);
ds::UnaryOp unaryOf(mlir::Value value, ds::UnaryKind kind);

/// `tensor kind scalar`, for commutative kinds in either order; the scalar does not change the shape.
struct ScaledValue {
  mlir::Value tensor;
  double scalar;
};
std::optional<ScaledValue> matchScalar(mlir::Value value, ds::BinaryKind kind);

/// A product taken apart: constants multiplied into one factor, everything else a leaf.
struct Product {
  double factor = 1;
  llvm::SmallVector<mlir::Value> leaves;
};
/// Follows multiplications and divisions by constants through values that have no other use.
Product takeApart(mlir::Value value);

/// x when the value is x^2, or x^3, as Pow or as a product.
mlir::Value matchSquare(mlir::Value value);
mlir::Value matchCube(mlir::Value value);

/// Whether `size` is min(n, whole) of a table of n places: 1 only where `whole` is, so nothing is broadcast to it.
bool isClamped(const SizeExpr &size, const SizeExpr &whole);

/// The mean that a reduction over the last axes keeps in place.
ds::ReduceOp meanOf(mlir::Value value);
bool areLastAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

/// A value divided by a square root: `n / sqrt(r)`, `n * reciprocal(sqrt(r))`, `n * (1 / sqrt(r))`, `n * r^-0.5`.
struct RootQuotient {
  mlir::Value numerator, radicand;
};
/// r where the value is 1 / sqrt(r) in one of these spellings, else null.
mlir::Value inverseRootOf(mlir::Value value);
/// Every reading of the op as such a quotient; both factors of a product may be roots.
llvm::SmallVector<RootQuotient, 2> rootQuotients(ds::BinaryOp op);

/// The only user of the value if it is an op of this kind that keeps the value's type; `other` is its other operand.
ds::BinaryOp onlyUser(mlir::Value value, ds::BinaryKind kind, mlir::Value &other);
/// Whether the value has exactly this static shape, as parameters of a norm have.
bool hasShape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
/// Whether it has that shape, or that shape behind axes of size 1, as tf2onnx writes it.
bool isParameter(mlir::Value value, llvm::ArrayRef<int64_t> shape);
/// Such a parameter without the axes in front.
mlir::Value parameterOf(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> shape);
/// A constant of ones; one element where the shape is not static.
mlir::Value createOnes(mlir::OpBuilder &builder, mlir::Location location, llvm::ArrayRef<int64_t> shape,
                       mlir::Type element);

} // namespace deepstride

#endif
