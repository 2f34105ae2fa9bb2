// Selection of sizes by axes that are expressions. Everything folds to plain lists where the axes are constants.
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/convert/LoopBuilder.h"

namespace deepstride::onnx {

bool areConstant(const SizeVector &values) {
  return llvm::all_of(values, [](const SizeExpr &value) { return value.constant().has_value(); });
}

void requireFor(Node &n, const SizeExpr &size, const SizeExpr &least, const llvm::Twine &what) {
  mlir::Location where = n.b.getLocation();
  auto node = mlir::dyn_cast<mlir::NameLoc>(where);
  std::string name = node ? node.getName().str() + ": " : std::string();
  n.b.setLocation(mlir::NameLoc::get(n.b.getBuilder().getStringAttr(name + "expected " + what)));
  n.b.require(size, least);
  n.b.setLocation(where);
}

std::optional<SizeVector> normalizedAxes(Node &n, const SizeVector &listed, int64_t rank, bool mayRepeat) {
  SizeVector axes;
  llvm::SmallVector<int64_t> constants;
  for (const SizeExpr &axis : listed) {
    if (auto known = axis.constant())
      constants.push_back(*known);
    axes.push_back(SizeExpr::select(SizeExpr::lt(axis, 0), axis + SizeExpr(rank), axis));
  }
  if (!n.axes(constants, rank))
    return std::nullopt;
  // No op has such an axis to refuse it: what is no axis would select nothing.
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].constant())
      continue;
    std::string legal = "axes from " + std::to_string(-rank) + " to " + std::to_string(rank - 1);
    requireFor(n, listed[i], -rank, legal);
    requireFor(n, rank - 1, listed[i], legal);
    for (size_t other = 0; other < axes.size() && !mayRepeat; ++other)
      if (other < i || axes[other].constant())
        requireFor(n, 0, SizeExpr::eq(axes[i], axes[other]), "every axis at most once");
  }
  return axes;
}

std::optional<SizeVector> listedAxes(Node &n, unsigned input) {
  if (n.has(input))
    return n.sizesOf(input, "axes");
  if (auto numbers = n.integers("axes"))
    return SizeVector(numbers->begin(), numbers->end());
  return std::nullopt;
}

SizeExpr elementAt(const SizeVector &sizes, const SizeExpr &position) {
  SizeExpr result;
  for (size_t i = sizes.size(); i > 0; --i)
    result = SizeExpr::select(SizeExpr::eq(position, static_cast<int64_t>(i) - 1), sizes[i - 1], result);
  return result;
}

SizeVector splitAround(const SizeVector &sizes, const SizeExpr &axis) {
  SizeExpr before = 1, after = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    before = before * SizeExpr::select(SizeExpr::lt(static_cast<int64_t>(i), axis), sizes[i], 1);
    after = after * SizeExpr::select(SizeExpr::lt(axis, static_cast<int64_t>(i)), sizes[i], 1);
  }
  return {before, elementAt(sizes, axis), after};
}

SizeVector withSize(const SizeVector &sizes, const SizeExpr &axis, const SizeExpr &size) {
  SizeVector result;
  for (size_t i = 0; i < sizes.size(); ++i)
    result.push_back(SizeExpr::select(SizeExpr::eq(axis, static_cast<int64_t>(i)), size, sizes[i]));
  return result;
}

SizeVector withoutAxes(SizeVector sizes, SizeVector axes) {
  for (size_t removed = 0; removed < axes.size() && !sizes.empty(); ++removed) {
    SizeVector rest;
    for (size_t i = 0; i + 1 < sizes.size(); ++i)
      rest.push_back(SizeExpr::select(SizeExpr::lt(static_cast<int64_t>(i), axes[removed]), sizes[i], sizes[i + 1]));
    for (size_t later = removed + 1; later < axes.size(); ++later)
      axes[later] = axes[later] - SizeExpr::lt(axes[removed], axes[later]);
    sizes = std::move(rest);
  }
  return sizes;
}

SizeVector withUnitAxes(const SizeVector &sizes, const SizeVector &axes) {
  SizeVector result;
  for (size_t i = 0; i < sizes.size() + axes.size(); ++i) {
    SizeExpr isUnit, unitsBefore;
    for (const SizeExpr &axis : axes) {
      isUnit = isUnit + SizeExpr::eq(axis, static_cast<int64_t>(i));
      unitsBefore = unitsBefore + SizeExpr::lt(axis, static_cast<int64_t>(i));
    }
    result.push_back(SizeExpr::select(isUnit, 1, elementAt(sizes, SizeExpr(static_cast<int64_t>(i)) - unitsBefore)));
  }
  return result;
}

SizeExpr computedSize(Node &n, mlir::Value count) {
  std::string symbol = n.context.newCountSymbol();
  define(n, symbol, n.b.binary(ds::BinaryKind::max, n.b.cast(n.b.reshape(count, {}), n.b.i64()), 0.0));
  return SizeExpr::symbol(symbol);
}

mlir::Value nonZero(Node &n, mlir::Value x) {
  // Of constants the places are constants, too, and their number steers shapes.
  if (auto elements = x ? evaluateConstant(x, n.b.getAnalysis()) : std::nullopt)
    if (HostTensor places = nonZeroOnHost(*elements); places.bytes() <= ds::ConstantOp::byteLimit)
      return n.b.constant(places.toAttribute());
  return n.b.create<ds::NonZeroOp>({x}, x, n.context.newCountSymbol());
}

std::optional<SizeExpr> anySizeOf(Node &n, unsigned input, llvm::StringRef role) {
  TensorFacts facts = n.b.facts(n.in(input));
  if (n.b.sizesIn(n.in(input)))
    return n.sizeOf(input, role);
  if (!product(facts.sizes).isConstant(1))
    return n.refuse("input " + llvm::Twine(input) + " ('" + role + "'): expected one element, found " +
                    describe(facts));
  return computedSize(n, n.in(input));
}

} // namespace deepstride::onnx
