// Finds the repetition of heads in its spellings: Expand or Tile along an axis beside the heads, or Concat of a value
// with itself along that axis, and reshapes and transposes that carry the copies to where heads stand. Axes are
// followed by their sizes up to the repetition, so that its place and the order of what it repeats are known.
#include "passes/graph/GroupedHeads.h"

#include <list>

using namespace mlir;

namespace deepstride {

namespace {
/// `source` repeated `times` along an axis of size 1.
struct Repetition {
  Value source;
  int64_t times;
  size_t axis;
};

/// What an axis of a value is made of: an axis of the result, or a part of its heads.
enum class Kind { Batch, Heads, Groups, Copies, Length, Size };
struct Part {
  Kind kind;
  SizeExpr size;
};
/// The parts of each axis, outermost first.
using Axes = SmallVector<SmallVector<Part, 2>, 6>;
} // namespace

static std::optional<Repetition> findRepetition(Value value, const SizeAnalysis &sizes) {
  if (auto broadcast = value.getDefiningOp<ds::BroadcastOp>()) {
    const SizeVector &from = sizes.facts(broadcast.getInput()).sizes, &to = sizes.facts(value).sizes;
    if (from.size() != to.size())
      return std::nullopt;
    std::optional<size_t> repeated;
    for (size_t axis = 0; axis < to.size(); ++axis) {
      if (from[axis] == to[axis])
        continue;
      if (repeated || !from[axis].isConstant(1) || !to[axis].constant())
        return std::nullopt;
      repeated = axis;
    }
    if (!repeated)
      return std::nullopt;
    return Repetition{broadcast.getInput(), *to[*repeated].constant(), *repeated};
  }
  auto concat = value.getDefiningOp<ds::ConcatOp>();
  if (!concat || !llvm::all_equal(concat.getInputs()))
    return std::nullopt;
  Value source = concat.getInputs().front();
  if (!sizes.facts(source).sizes[concat.getAxis()].isConstant(1))
    return std::nullopt;
  return Repetition{source, static_cast<int64_t>(concat.getInputs().size()), static_cast<size_t>(concat.getAxis())};
}

/// The parts of `axes` in the axes of sizes `shape`, which holds the same elements. Heads may be taken apart once.
static std::optional<Axes> regroup(const Axes &axes, const SizeVector &shape) {
  std::list<Part> parts;
  for (const auto &axis : axes)
    llvm::copy_if(axis, std::back_inserter(parts), [](const Part &part) { return !part.size.isConstant(1); });
  Axes result;
  for (const SizeExpr &size : shape) {
    SizeExpr taken = 1;
    auto &group = result.emplace_back();
    while (taken != size) {
      if (parts.empty())
        return std::nullopt;
      Part &next = parts.front();
      auto heads = next.size.constant(), wanted = size.constant();
      if (next.kind == Kind::Heads && taken.isConstant(1) && heads && wanted && *wanted > 0 && *heads % *wanted == 0 &&
          *heads != *wanted) {
        group.push_back({Kind::Groups, size});
        next = {Kind::Copies, SizeExpr(*heads / *wanted)};
        break;
      }
      taken = taken * next.size;
      group.push_back(next);
      parts.pop_front();
    }
  }
  return parts.empty() ? std::optional(result) : std::nullopt;
}

namespace {
/// Heads that are repeated for their neighbours, and how the parts of what is repeated lie.
struct Groups {
  Repetition repetition;
  SmallVector<Part> parts; // of the source
};
} // namespace

/// Nothing where each head is not repeated for its neighbours.
static std::optional<Groups> findGroups(Value value, const SizeAnalysis &sizes) {
  const SizeVector &shape = sizes.facts(value).sizes;
  Axes axes = {
      {{Kind::Batch, shape[0]}}, {{Kind::Heads, shape[1]}}, {{Kind::Length, shape[2]}}, {{Kind::Size, shape[3]}}};
  auto repetition = findRepetition(value, sizes);
  for (int steps = 0; !repetition && steps < 8; ++steps) {
    if (auto reshape = value.getDefiningOp<ds::ReshapeOp>()) {
      value = reshape.getInput();
      auto regrouped = regroup(axes, sizes.facts(value).sizes);
      if (!regrouped)
        return std::nullopt;
      axes = std::move(*regrouped);
    } else if (auto transpose = value.getDefiningOp<ds::TransposeOp>()) {
      value = transpose.getInput();
      Axes before(axes.size());
      for (auto [axis, source] : llvm::enumerate(transpose.getPermutation()))
        before[source] = axes[axis];
      axes = std::move(before);
    } else {
      return std::nullopt;
    }
    repetition = findRepetition(value, sizes);
  }
  if (!repetition || repetition->times < 2)
    return std::nullopt;
  Groups groups{*repetition, {}};
  for (auto [number, axis] : llvm::enumerate(axes))
    if (number != repetition->axis)
      groups.parts.append(axis.begin(), axis.end());
    else if (axis.size() != 1 || (axis[0].kind != Kind::Copies && axis[0].kind != Kind::Heads)) // or one for all heads
      return std::nullopt;
  return groups;
}

void ungroupHeads(OpBuilder &builder, SizeAnalysis &sizes, Value &key, Value &value) {
  auto keys = findGroups(key, sizes), values = findGroups(value, sizes);
  if (!keys || !values || keys->repetition.times != values->repetition.times)
    return;
  auto finish = [&](Operation *op) {
    LogicalResult known = sizes.visit(op, /*retype=*/true);
    assert(succeeded(known) && "the elements are those that were repeated");
    (void)known;
    return op->getResult(0);
  };
  auto restore = [&](Value repeated, const Groups &groups) -> Value {
    SizeVector wanted = sizes.facts(repeated).sizes;
    wanted[1] = *wanted[1].constant() / groups.repetition.times;
    Value source = groups.repetition.source;
    auto element = cast<RankedTensorType>(source.getType()).getElementType();
    auto unknown = RankedTensorType::get(SmallVector<int64_t>(4, ShapedType::kDynamic), element);
    // The four axes in the order in which they lie in the source; one that is missing there has size 1.
    SmallVector<int64_t> order; // for each axis of the source, which of the result it is
    for (const Part &part : groups.parts)
      order.push_back(part.kind == Kind::Batch ? 0 : part.kind == Kind::Length ? 2 : part.kind == Kind::Size ? 3 : 1);
    for (int64_t axis = 0; axis < 4; ++axis)
      if (!llvm::is_contained(order, axis))
        order.insert(llvm::find_if(order, [&](int64_t other) { return other > axis; }), axis);
    SizeVector laid;
    SmallVector<int64_t> permutation(4);
    for (auto [place, axis] : llvm::enumerate(order)) {
      laid.push_back(wanted[axis]);
      permutation[axis] = place;
    }
    Value result = finish(
        ds::ReshapeOp::create(builder, repeated.getLoc(), unknown, source, toAttribute(builder.getContext(), laid)));
    if (llvm::equal(permutation, llvm::seq<int64_t>(4)))
      return result;
    return finish(ds::TransposeOp::create(builder, repeated.getLoc(), unknown, result,
                                          builder.getDenseI64ArrayAttr(permutation)));
  };
  key = restore(key, *keys);
  value = restore(value, *values);
}

} // namespace deepstride
