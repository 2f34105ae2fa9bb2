// Operators that give the same elements another shape or order.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

#include <numeric>

using namespace mlir;

namespace deepstride::onnx {

/// What is left for an axis: exact where it is known to be, as then it also is where both are 0.
static SizeExpr quotient(const SizeExpr &count, const SizeExpr &known) {
  auto exact = SizeExpr::exactQuotient(count, known);
  return exact ? *exact : SizeExpr::floorDiv(count, known);
}

/// What ONNX Reshape asks for: 0 copies an axis (unless `allowZero`), -1 takes what is left. Elements that are known
/// only at run time may be either, which the size expressions then decide.
static std::optional<SizeVector> reshapeTarget(Node &n, Value x, SizeVector requested, bool allowZero) {
  SizeVector input = n.b.sizes(x), sizes = requested;
  SizeExpr known = 1, openAxes;
  bool hasOpen = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    SizeExpr copied = i < input.size() ? input[i] : SizeExpr(0);
    bool mayBeZero =
        !allowZero && (requested[i].constant() ? requested[i].isConstant(0) : !requested[i].isKnownNonNegative());
    if (mayBeZero && requested[i].isConstant(0) && i >= input.size())
      return n.refuse("shape element " + Twine(i) + ": 0 copies an axis of the operand, which has " +
                      Twine(input.size()));
    if (mayBeZero)
      sizes[i] = SizeExpr::select(SizeExpr::eq(requested[i], 0), copied, requested[i]);
    if (requested[i].isConstant(-1) && std::exchange(hasOpen, true))
      return n.refuse("expected at most one -1 in the shape, found more");
    if (auto value = requested[i].constant(); value && *value < -1)
      return n.refuse("shape element " + Twine(i) + ": expected at least -1, found " + Twine(*value));
    bool mayBeOpen = requested[i].isConstant(-1) || !requested[i].isKnownNonNegative();
    if (mayBeOpen)
      openAxes = openAxes + SizeExpr::eq(requested[i], -1);
    known = known * (mayBeOpen ? SizeExpr::select(SizeExpr::eq(requested[i], -1), 1, sizes[i]) : sizes[i]);
  }
  if (hasOpen && known.isConstant(0))
    return n.refuse("the -1 in the shape is ambiguous: the other sizes multiply to 0");
  n.b.require(1, openAxes); // at most one of them, whatever the run brings
  for (size_t i = 0; i < sizes.size(); ++i)
    if (requested[i].isConstant(-1) || !requested[i].isKnownNonNegative())
      sizes[i] = SizeExpr::select(SizeExpr::eq(requested[i], -1), quotient(product(input), known), sizes[i]);
  return sizes;
}

static Values reshapeTo(Node &n, SizeVector requested) {
  auto target = reshapeTarget(n, n.in(0), std::move(requested), n.flag("allowzero", false));
  return {target ? n.b.reshape(n.in(0), *target) : Value()};
}

static Values convertReshapeAttribute(Node &n) {
  auto shape = n.requiredIntegers("shape");
  return shape ? reshapeTo(n, SizeVector(shape->begin(), shape->end())) : Values();
}

static Values convertReshape(Node &n) {
  auto shape = n.sizesOf(1, "shape");
  return shape ? reshapeTo(n, *shape) : Values();
}

static Values convertFlatten(Node &n) {
  SizeVector sizes = n.b.sizes(n.in(0));
  int64_t rank = n.b.rank(n.in(0)), axis = n.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return n.refuse("attribute 'axis': expected -" + Twine(rank) + " to " + Twine(rank) + ", found " + Twine(axis));
  axis += axis < 0 ? rank : 0;
  ArrayRef<SizeExpr> all(sizes);
  return {n.b.reshape(n.in(0), {product(all.take_front(axis)), product(all.drop_front(axis))})};
}

static Values convertSqueeze(Node &n) {
  SizeVector sizes = n.b.sizes(n.in(0));
  auto listed = listedAxes(n, 1);
  if (n.isRefused())
    return {};
  std::optional<SizeVector> axes = SizeVector();
  if (listed) {
    axes = normalizedAxes(n, *listed, n.b.rank(n.in(0)));
    if (!axes)
      return {};
  } else {
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      if (!size.constant())
        return n.refuse("the rank of the result depends on whether axis " + Twine(axis) + " (" + size.brief() +
                        ") has size 1; list the axes in the model or pin the dimension with --dim");
      if (size.isConstant(1))
        axes->push_back(static_cast<int64_t>(axis));
    }
  }
  for (const SizeExpr &axis : *axes)
    if (SizeExpr size = elementAt(sizes, axis); size.constant() && !size.isConstant(1))
      return n.refuse("expected axis " + axis.brief() + " to have size 1, found " + size.brief());
  if (axes->size() > sizes.size())
    return n.refuse("expected at most " + Twine(sizes.size()) + " axes, found " + Twine(axes->size()));
  return {n.b.reshape(n.in(0), withoutAxes(sizes, *axes))};
}

static Values convertUnsqueeze(Node &n) {
  auto listed = listedAxes(n, 1);
  if (!listed)
    return n.isRefused() ? Values() : n.refuse("expected the axes to insert, found none");
  auto axes = normalizedAxes(n, *listed, n.b.rank(n.in(0)) + static_cast<int64_t>(listed->size()));
  if (!axes)
    return {};
  return {n.b.reshape(n.in(0), withUnitAxes(n.b.sizes(n.in(0)), *axes))};
}

static Values convertTranspose(Node &n) {
  SmallVector<int64_t> reversed = axesFrom(0, n.b.rank(n.in(0)));
  std::reverse(reversed.begin(), reversed.end());
  return {n.b.transpose(n.in(0), n.integers("perm").value_or(reversed))};
}

static Values convertExpand(Node &n) {
  auto shape = n.sizesOf(1, "shape");
  return {shape ? n.b.broadcast(n.in(0), *shape) : Value()};
}

/// A new axis before each repeated one, broadcast and merged again.
static Values convertTile(Node &n) {
  auto repeats = n.sizesOf(1, "repeats");
  SizeVector sizes = n.b.sizes(n.in(0)), split, repeated, merged;
  if (!repeats)
    return {};
  if (repeats->size() != sizes.size())
    return n.refuse("input 1 ('repeats'): expected " + Twine(sizes.size()) + " elements, found " +
                    Twine(repeats->size()));
  for (auto [size, repeat] : llvm::zip_equal(sizes, *repeats)) {
    if (!repeat.isConstant(1)) {
      split.push_back(1);
      repeated.push_back(repeat);
    }
    split.push_back(size);
    repeated.push_back(size);
    merged.push_back(size * repeat);
  }
  return {n.b.reshape(n.b.broadcast(n.b.reshape(n.in(0), split), repeated), merged)};
}

static Values convertConcat(Node &n) {
  SmallVector<Value> inputs;
  for (unsigned i = 0; i < n.inputCount(); ++i)
    if (n.has(i))
      inputs.push_back(n.in(i));
  constexpr int64_t axisRequired = 4;
  auto listed = n.version() < axisRequired ? n.integer("axis", 1) : n.requiredInteger("axis");
  auto axis = listed ? n.axis(*listed, n.b.rank(n.in(0))) : std::nullopt;
  return {axis ? n.b.concat(*axis, inputs) : Value()};
}

/// [b, c, h, w] with c = block * block * rest becomes [b, rest, h * block, w * block].
static Values convertDepthToSpace(Node &n) {
  auto block = n.requiredInteger("blocksize");
  std::string mode = n.text("mode", "DCR", {"DCR", "CRD"});
  if (!block || !n.requireRank(0, 4, 4))
    return {};
  if (*block < 1)
    return n.refuse("attribute 'blocksize': expected at least 1, found " + Twine(*block));
  SizeVector s = n.b.sizes(n.in(0));
  SizeExpr rest = SizeExpr::floorDiv(SizeExpr::floorDiv(s[1], *block), *block);
  bool depthFirst = mode == "DCR";
  Value split = depthFirst ? n.b.reshape(n.in(0), {s[0], *block, *block, rest, s[2], s[3]})
                           : n.b.reshape(n.in(0), {s[0], rest, *block, *block, s[2], s[3]});
  Value moved =
      n.b.transpose(split, depthFirst ? ArrayRef<int64_t>({0, 3, 4, 1, 5, 2}) : ArrayRef<int64_t>({0, 1, 4, 2, 5, 3}));
  return {n.b.reshape(moved, {s[0], rest, s[2] * SizeExpr(*block), s[3] * SizeExpr(*block)})};
}

static Values convertSpaceToDepth(Node &n) {
  auto block = n.requiredInteger("blocksize");
  if (!block || !n.requireRank(0, 4, 4))
    return {};
  if (*block < 1)
    return n.refuse("attribute 'blocksize': expected at least 1, found " + Twine(*block));
  SizeVector s = n.b.sizes(n.in(0));
  SizeExpr height = SizeExpr::floorDiv(s[2], *block), width = SizeExpr::floorDiv(s[3], *block);
  Value split = n.b.reshape(n.in(0), {s[0], s[1], height, *block, width, *block});
  Value moved = n.b.transpose(split, {0, 3, 5, 1, 2, 4});
  return {n.b.reshape(moved, {s[0], s[1] * SizeExpr(*block) * SizeExpr(*block), height, width})};
}

void addLayouts(PatternRegistry &registry) {
  registry.add("Reshape", 1, 1, convertReshapeAttribute);
  registry.add("Reshape", 5, 2, convertReshape);
  registry.add("Flatten", 1, 1, convertFlatten);
  registry.add("Squeeze", 1, 1, convertSqueeze);
  registry.add("Unsqueeze", 1, 1, convertUnsqueeze);
  registry.add("Transpose", 1, 1, convertTranspose);
  registry.add("Expand", 8, 2, convertExpand);
  registry.add("Tile", 6, 2, convertTile);
  registry.add("Concat", 1, 1, convertConcat);
  registry.add("DepthToSpace", 1, 1, convertDepthToSpace);
  registry.add("SpaceToDepth", 1, 1, convertSpaceToDepth);
}

} // namespace deepstride::onnx
