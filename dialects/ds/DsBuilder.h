// Creates ds ops for the importer's patterns and the rules of derivatives. Every op is inferred as it is created, so
// that a pattern can ask for the symbolic sizes of what it has just built; integer results that are known completely
// become constants at once.
#ifndef DEEPSTRIDE_DIALECTS_DS_DSBUILDER_H
#define DEEPSTRIDE_DIALECTS_DS_DSBUILDER_H

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"

namespace deepstride {

using Values = llvm::SmallVector<mlir::Value, 2>;

/// Each method returns null where an operand is null or the op's shape rules refuse (they have said why), so that
/// patterns read as formulas and only the end result is checked.
class DsBuilder {
public:
  DsBuilder(mlir::OpBuilder builder, SizeAnalysis &analysis)
      : builder(builder), analysis(analysis), location(builder.getUnknownLoc()) {}

  /// Refuses the n-th op from here, constants not counted (they always exist); 0 refuses none.
  void refuse(unsigned nth) { opsToRefusal = nth; }
  void setLocation(mlir::Location where) { location = where; }
  mlir::Location getLocation() const { return location; }
  mlir::OpBuilder &getBuilder() { return builder; }
  SizeAnalysis &getAnalysis() { return analysis; }
  mlir::MLIRContext *getContext() const { return builder.getContext(); }

  /// Null has the facts of no tensor: no element type, rank 0. By value: the analysis moves its facts as it grows.
  TensorFacts facts(mlir::Value value) const;
  SizeVector sizes(mlir::Value value) const { return facts(value).sizes; }
  mlir::Type element(mlir::Value value) const { return facts(value).elementType; }
  int64_t rank(mlir::Value value) const { return facts(value).rank(); }

  mlir::Type i1() { return builder.getI1Type(); }
  mlir::Type i32() { return builder.getI32Type(); }
  mlir::Type i64() { return builder.getI64Type(); }
  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type f64() { return builder.getF64Type(); }

  // Leaves
  mlir::Value constant(mlir::ElementsAttr value);
  /// A constant without axes; the value is rounded to the type.
  mlir::Value scalar(mlir::Type type, double value);
  mlir::Value integers(llvm::ArrayRef<int64_t> values);
  mlir::Value shape(llvm::ArrayRef<SizeExpr> values);
  mlir::Value iota(int64_t axis, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value empty(mlir::Type element, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value weight(mlir::FlatSymbolRefAttr recipe, mlir::RankedTensorType type);

  // Contents that steer sizes
  /// Requires of the run that a size is at least another, where that is not known.
  void require(const SizeExpr &size, const SizeExpr &least);
  /// Requires that two sizes are equal, where that is not known; whoever asks refuses those that never are.
  void requireEqual(const SizeExpr &a, const SizeExpr &b);
  /// The size without what evaluation might refuse, which is required of the run instead.
  SizeExpr requireEvaluation(const SizeExpr &size);
  /// The elements of a tensor as sizes, where they are known; that none of them wrapped is required of the run.
  std::optional<SizeVector> sizesIn(const TensorFacts &facts);
  /// The same for whoever reads sizes there: what constants decide is evaluated for it, if it was not yet.
  std::optional<SizeVector> sizesIn(mlir::Value value);
  /// The elements of what constants decide, for whoever reads sizes there.
  std::optional<HostTensor> elementsIn(mlir::Value value);

  // Elementwise
  mlir::Value unary(ds::UnaryKind kind, mlir::Value x);
  mlir::Value binary(ds::BinaryKind kind, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value cast(mlir::Value x, mlir::Type to);
  mlir::Value gelu(ds::GeluKind kind, mlir::Value x);
  mlir::Value add(mlir::Value a, mlir::Value b) { return binary(ds::BinaryKind::add, a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return binary(ds::BinaryKind::sub, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary(ds::BinaryKind::mul, a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return binary(ds::BinaryKind::div, a, b); }
  /// With a number of a's element type on the right.
  mlir::Value binary(ds::BinaryKind kind, mlir::Value a, double b) { return binary(kind, a, scalar(element(a), b)); }
  mlir::Value add(mlir::Value a, double b) { return binary(ds::BinaryKind::add, a, b); }
  mlir::Value sub(mlir::Value a, double b) { return binary(ds::BinaryKind::sub, a, b); }
  mlir::Value mul(mlir::Value a, double b) { return binary(ds::BinaryKind::mul, a, b); }
  mlir::Value div(mlir::Value a, double b) { return binary(ds::BinaryKind::div, a, b); }

  // Movement; axes are counted from the front
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<SizeExpr> starts, llvm::ArrayRef<SizeExpr> sizes,
                    llvm::ArrayRef<int64_t> steps);
  /// A box that is whole along every axis but one.
  mlir::Value sliceAxis(mlir::Value x, int64_t axis, SizeExpr start, SizeExpr size, int64_t step = 1);
  mlir::Value pad(ds::PadKind kind, mlir::Value x, mlir::Value value, llvm::ArrayRef<SizeExpr> low,
                  llvm::ArrayRef<SizeExpr> high);
  mlir::Value concat(int64_t axis, mlir::ValueRange values);
  mlir::Value gather(int64_t axis, mlir::Value x, mlir::Value indices);
  /// Rows of codes [rows, L] times their scales [rows, G], as f32.
  mlir::Value gatherCodes(mlir::Value codes, mlir::Value indices, mlir::Value scales);
  mlir::Value insertAxis(mlir::Value x, int64_t axis);
  mlir::Value dropAxis(mlir::Value x, int64_t axis);
  /// A vector along `axis` of a tensor of `rank` axes: [n] becomes [1, n, 1, 1].
  mlir::Value alignVector(mlir::Value x, int64_t axis, int64_t rank);

  // Reductions and products
  mlir::Value reduce(ds::ReduceKind kind, mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keep = true);
  mlir::Value argReduce(ds::ReduceKind kind, mlir::Value x, int64_t axis, bool keep, bool last);
  mlir::Value softmax(mlir::Value x, int64_t axis, bool log = false);
  /// The k elements that are largest (or smallest) along the axis, in that order, and where they were; empty where it
  /// is refused.
  Values topK(mlir::Value x, int64_t axis, const SizeExpr &k, bool largest);
  mlir::Value matmul(mlir::Value a, mlir::Value b, bool transposeA = false, bool transposeB = false);

  /// For ops without a method of their own: `Op::create` with the given arguments after a placeholder for each result
  /// type, then inference.
  template <typename Op, typename... Arguments>
  mlir::Value create(llvm::ArrayRef<mlir::Value> operands, Arguments &&...arguments) {
    if (llvm::is_contained(operands, mlir::Value()))
      return {};
    return finish(Op::create(builder, location, placeholder(), std::forward<Arguments>(arguments)...));
  }

  /// Infers an op of any number of results; empty (and the op is gone) where its shape rules refuse.
  Values finishAll(mlir::Operation *op);
  mlir::Type placeholder();
  mlir::ArrayAttr list(llvm::ArrayRef<SizeExpr> sizes) { return toAttribute(getContext(), sizes); }

private:
  mlir::Value finish(mlir::Operation *op);
  mlir::Value foldToConstant(mlir::Operation *op);
  void findContents(mlir::Value root);

  bool isToBeRefused(mlir::Operation *op);

  mlir::OpBuilder builder;
  SizeAnalysis &analysis;
  unsigned opsToRefusal = 0;
  int64_t readerBudget = int64_t(1) << 24; // what evaluating sizes for their readers may still cost, in elements
  mlir::Location location;
};

/// 0, 1, ..., count - 1.
llvm::SmallVector<int64_t> axesFrom(int64_t first, int64_t end);

/// One number of the given type, rounded to it.
mlir::Attribute numberAttr(mlir::Type type, double value);

} // namespace deepstride

#endif
