// Finds the repetition of heads in its spellings: Expand or Tile along an axis that a reshape put behind the heads, or
// Concat of a value with itself along that axis, and a reshape that merges the axis with the heads. Sizes decide: the
// repeated axis must lie directly behind batch and heads, so that neighbours share.
#include "passes/graph/GroupedHeads.h"

using namespace mlir;

namespace deepstride {

namespace {
/// `source` repeated `times` along an axis of size 1 that `before` elements lie before.
struct Repetition {
  Value source;
  int64_t times;
  SizeExpr before;
};
} // namespace

static std::optional<Repetition> findRepetition(Value value, const SizeAnalysis &sizes) {
  auto beforeAxis = [](const SizeVector &shape, size_t axis) { return product(ArrayRef(shape).take_front(axis)); };
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
    return Repetition{broadcast.getInput(), *to[*repeated].constant(), beforeAxis(to, *repeated)};
  }
  auto concat = value.getDefiningOp<ds::ConcatOp>();
  if (!concat || !llvm::all_equal(concat.getInputs()))
    return std::nullopt;
  Value source = concat.getInputs().front();
  const SizeVector &shape = sizes.facts(source).sizes;
  if (!shape[concat.getAxis()].isConstant(1))
    return std::nullopt;
  return Repetition{source, static_cast<int64_t>(concat.getInputs().size()), beforeAxis(shape, concat.getAxis())};
}

/// Nothing where each head is not repeated for its neighbours.
static std::optional<Repetition> findGroups(Value value, const SizeAnalysis &sizes) {
  const SizeVector &shape = sizes.facts(value).sizes;
  auto reshape = value.getDefiningOp<ds::ReshapeOp>();
  auto repetition = findRepetition(reshape ? reshape.getInput() : value, sizes);
  auto heads = shape[1].constant();
  if (!repetition || !heads || repetition->times < 2 || *heads % repetition->times != 0)
    return std::nullopt;
  return repetition->before == shape[0] * SizeExpr(*heads / repetition->times) ? repetition : std::nullopt;
}

void ungroupHeads(OpBuilder &builder, SizeAnalysis &sizes, Value &key, Value &value) {
  auto keys = findGroups(key, sizes), values = findGroups(value, sizes);
  if (!keys || !values || keys->times != values->times)
    return;
  auto restore = [&](Value repeated, Value source, int64_t times) -> Value {
    SizeVector shape = sizes.facts(repeated).sizes;
    shape[1] = *shape[1].constant() / times;
    auto element = cast<RankedTensorType>(source.getType()).getElementType();
    TensorFacts facts{element, shape, std::nullopt};
    auto reshape = ds::ReshapeOp::create(builder, repeated.getLoc(), facts.type(), source,
                                         toAttribute(builder.getContext(), shape));
    sizes.set(reshape.getResult(), facts);
    return reshape.getResult();
  };
  key = restore(key, keys->source, keys->times);
  value = restore(value, values->source, values->times);
}

} // namespace deepstride
