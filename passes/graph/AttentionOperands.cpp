// What an exporter enlarges, ds.attention broadcasts by itself: masks are cut down to what they hold, heads that joined
// the batch are split, heads in groups are joined. Numbers of run time that scale the scores move to the query, if they
// have its type.
#include "passes/graph/AttentionOperands.h"

using namespace mlir;

namespace deepstride {

AttentionOperands::AttentionOperands(Operation *root, SizeAnalysis &sizes, const SizeVector &shape,
                                     const SizeVector &total)
    : builder(root), location(root->getLoc()), sizes(sizes), shape(shape), total(total) {
  size_t rank = shape.size();
  // One axis in front is one of heads where it is known, as where batch and heads are joined; else it is the batch.
  bool isBatch = rank > 3 || !shape[0].constant();
  batch = isBatch ? shape[0] : SizeExpr(1);
  heads = rank == 5 ? shape[1] * shape[2] : rank == 3 && isBatch ? SizeExpr(1) : shape[rank - 3];
}

Type AttentionOperands::elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

void AttentionOperands::known(Operation *op) {
  LogicalResult visited = sizes.visit(op, /*retype=*/true);
  assert(succeeded(visited) && "operands were checked before");
  (void)visited;
}

Value AttentionOperands::reshape(Value value, const SizeVector &shape) {
  return create<ds::ReshapeOp>(elementOf(value), shape.size(), value, toAttribute(builder.getContext(), shape));
}

/// The one element as a tensor of rank 0.
Value AttentionOperands::scalar(Value number) { return rankOf(number) == 0 ? number : reshape(number, {}); }

Value AttentionOperands::splitHeads(Value value) {
  const SizeVector given = sizes.facts(value).sizes;
  if (given.size() == 5) // shared by the heads of a group where that axis has size 1
    return reshape(value, {given[0], given[1] * given[2], given[3], given[4]});
  return given.size() == 4 ? value : reshape(value, {batch, heads, given[1], given[2]});
}

Value AttentionOperands::enlarge(Value value, const SizeExpr &batches, std::optional<SizeExpr> rows) {
  SizeVector wanted = sizes.facts(value).sizes;
  wanted[0] = batches;
  if (rows)
    wanted[2] = *rows;
  if (wanted == sizes.facts(value).sizes)
    return value;
  return create<ds::BroadcastOp>(elementOf(value), 4, value, toAttribute(builder.getContext(), wanted));
}

/// A mask beside scores of `rank` axes as one beside scores of 4.
Value AttentionOperands::alignMask(Value mask, int64_t rank) {
  // An exporter expands the mask to the scores' shape; attention broadcasts it by itself. Groups and heads, which are
  // joined, must stay as they are.
  if (rank == 4)
    mask = narrow(mask);
  if (auto expand = mask.getDefiningOp<ds::BroadcastOp>(); expand && rank < 5)
    mask = expand.getInput();
  const SizeVector given = sizes.facts(mask).sizes;
  if (rank == 5 && given.size() >= 3) {
    SizeExpr joined = given.size() == 3 ? given[0] : given[given.size() - 4] * given[given.size() - 3];
    SizeVector merged = {joined, given[given.size() - 2], given.back()};
    if (given.size() == 5)
      merged.insert(merged.begin(), given[0]);
    return reshape(mask, merged);
  }
  if (rank != 3 || given.size() != 3 || given[0].isConstant(1))
    return mask;
  // An axis that a run may find to be 1 cannot be split before it is enlarged.
  SizeExpr joined = batch * heads;
  if (given[0] != joined)
    mask = create<ds::BroadcastOp>(elementOf(mask), 3, mask,
                                   toAttribute(builder.getContext(), SizeVector{joined, given[1], given[2]}));
  return splitHeads(mask);
}

/// A value that broadcasts to what `mask` broadcasts to, without copies that were made to give it the scores' sizes.
Value AttentionOperands::narrow(Value mask) {
  auto [known, isNew] = narrowed.try_emplace(mask, mask);
  if (!isNew || !mask.getDefiningOp() || narrowings-- <= 0)
    return known->second;
  Value result = withoutCopies(mask);
  return narrowed[mask] = result;
}

Value AttentionOperands::withoutCopies(Value mask) {
  Operation *op = mask.getDefiningOp();
  if (auto broadcast = dyn_cast<ds::BroadcastOp>(op)) {
    const SizeVector &from = sizes.facts(broadcast.getInput()).sizes, &to = sizes.facts(mask).sizes;
    if (to.size() > shape.size())
      return mask;
    for (size_t back = 1; back <= to.size(); ++back) {
      const SizeExpr &size = to[to.size() - back];
      bool same = back <= from.size() && from[from.size() - back] == size;
      if (!same && !size.isConstant(1) && size != shape[shape.size() - back] && size != total[total.size() - back])
        return mask;
    }
    return narrow(broadcast.getInput());
  }
  if (auto element = dyn_cast<ds::PerElement>(op); !element || !element.isPointwise())
    return mask;
  SmallVector<Value> operands;
  int64_t rank = 0;
  for (Value operand : op->getOperands()) {
    operands.push_back(narrow(operand));
    rank = std::max(rank, rankOf(operands.back()));
  }
  // Nothing is hidden where a constant lets everything pass, or adds nothing.
  bool isFlag = elementOf(mask).isInteger(1);
  if (ds::BinaryOp both = binaryOf(mask, isFlag ? ds::BinaryKind::bit_and : ds::BinaryKind::add))
    for (unsigned i : {0, 1})
      if (scalarOf(operands[i]) == (isFlag ? 1.0 : 0.0) && rankOf(operands[i]) <= rankOf(both->getOperand(1 - i)))
        return operands[1 - i];
  if (llvm::equal(operands, op->getOperands()))
    return mask;
  Operation *copy = builder.clone(*op);
  copy->removeDiscardableAttr(ds::valueNameAttr);
  copy->setOperands(operands);
  copy->getResult(0).setType(RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic), elementOf(mask)));
  known(copy);
  return copy->getResult(0);
}

Value AttentionOperands::number(double value, Type element) {
  auto type = RankedTensorType::get({}, element);
  return create<ds::ConstantOp>(element, 0, DenseElementsAttr::get(type, FloatAttr::get(element, value)));
}

Value AttentionOperands::choose(Value condition, Value yes, Value no) {
  int64_t rank = std::max({rankOf(condition), rankOf(yes), rankOf(no)});
  return create<ds::SelectOp>(elementOf(yes), rank, condition, yes, no);
}

/// Whether the mask changes no score.
bool AttentionOperands::isVoid(const ScoreTerm &term, Value mask) {
  if (term.kind == ds::ScoreStepKind::multiply)
    return false;
  if (term.kind != ds::ScoreStepKind::add)
    return uniformOf(mask) == (term.kind == ds::ScoreStepKind::keep ? 1.0 : 0.0);
  auto select = mask.getDefiningOp<ds::SelectOp>();
  auto holds = select ? uniformOf(select.getCondition()) : std::nullopt;
  return uniformOf(holds ? select->getOperand(*holds ? 1 : 2) : mask) == 0.0;
}

/// Whether all of the conditions hold.
Value AttentionOperands::all(ArrayRef<Literal> conditions, int64_t rank) {
  Value both;
  for (const Literal &literal : conditions) {
    Value value = alignMask(literal.value, rank);
    if (literal.negated)
      value = create<ds::UnaryOp>(builder.getI1Type(), rankOf(value), ds::UnaryKind::logical_not, value);
    both = both ? create<ds::BinaryOp>(builder.getI1Type(), std::max(rankOf(both), rankOf(value)),
                                       ds::BinaryKind::bit_and, both, value)
                : value;
  }
  return both;
}

/// Whether the places are those of the window, the only one that the attention has. Groups and heads of a group are
/// joined in masks that have both, not in parts of them.
bool AttentionOperands::takeWindow(const SeenPlaces &places, const ScoreTerm &term) {
  if (!places.band || (isGrouped() && !places.others.empty()))
    return false;
  auto found = windowOf(places, total[total.size() - 2], shape.back());
  if (!found) {
    missed = "its window has no constant width";
    return false;
  }
  if (found->positions && (total.size() != 4 || term.rank != 4)) // batch and heads are two axes of positions
    return false;
  if (window && (window.positions != found->positions || window.past != found->past || window.left != found->left ||
                 window.right != found->right)) {
    missed = "it has another window than the masks around it";
    return false;
  }
  if (found->capacity)
    found->capacity = std::min(*found->capacity, window.capacity.value_or(*found->capacity));
  else
    found->capacity = window.capacity;
  window = *found;
  return true;
}

bool AttentionOperands::chooseByWindow(const ScoreTerm &term, SmallVectorImpl<ds::ScoreStep> &steps) {
  SeenPlaces places =
      MaskReader(sizes, total[total.size() - 2], shape.back()).seen(term.value, term.kind == ds::ScoreStepKind::hide);
  if (!takeWindow(places, term))
    return false;
  if (Value others = all(places.others, term.rank))
    steps.push_back({ds::ScoreStepKind::keep, others, term.low});
  steps.push_back({ds::ScoreStepKind::window, Value(), term.low});
  return true;
}

bool AttentionOperands::addByWindow(const ScoreTerm &term, SmallVectorImpl<ds::ScoreStep> &steps) {
  if (term.negated)
    return false;
  MaskReader reader(sizes, total[total.size() - 2], shape.back());
  Value value = term.value;
  Type element = elementOf(value);
  auto two = reader.numbers(value);
  // What is seen has 0 added to it.
  if (two && (two->yes == 0 || (two->no == 0 && reader.exchange(*two))) && takeWindow(two->where, term)) {
    Value others = all(two->where.others, term.rank);
    if (others)
      others = choose(others, number(0, element), number(two->no, element));
    steps.push_back({others ? ds::ScoreStepKind::window_mask : ds::ScoreStepKind::window_add, others, two->no});
    return true;
  }
  if (isGrouped())
    return false;
  if (auto select = value.getDefiningOp<ds::SelectOp>())
    for (bool seenWhenTrue : {true, false}) {
      Value mask = seenWhenTrue ? select.getOnTrue() : select.getOnFalse();
      auto low = uniformOf(seenWhenTrue ? select.getOnFalse() : select.getOnTrue());
      SeenPlaces places = low ? reader.seen(select.getCondition(), !seenWhenTrue) : SeenPlaces();
      if (!low || !takeWindow(places, term))
        continue;
      mask = alignMask(mask, term.rank);
      if (Value others = all(places.others, term.rank))
        mask = choose(others, mask, number(*low, element));
      steps.push_back({ds::ScoreStepKind::window_mask, mask, *low});
      return true;
    }
  // The masks of a sum are added one after the other where that makes one a window.
  ds::BinaryOp sum = binaryOf(value, ds::BinaryKind::add);
  if (!sum || sums-- <= 0)
    return false;
  for (unsigned i : {0, 1}) {
    SmallVector<ds::ScoreStep> own;
    ScoreTerm part = term, rest = term;
    part.value = sum->getOperand(i);
    rest.value = sum->getOperand(1 - i);
    if (!addByWindow(part, own))
      continue;
    addStep(rest, steps);
    steps.append(own);
    return true;
  }
  return false;
}

/// A mask of two numbers, of which one is 0: the condition that chooses is read, not a tensor of them.
bool AttentionOperands::addByFlags(const ScoreTerm &term, SmallVectorImpl<ds::ScoreStep> &steps) {
  MaskReader reader(sizes, total[total.size() - 2], shape.back());
  auto two = term.negated || isGrouped() ? std::nullopt : reader.numbers(term.value);
  if (!two || two->where.band || two->where.capacity || two->where.others.empty())
    return false;
  bool isKept = two->yes == 0; // where the conditions hold
  if (!isKept && two->no != 0)
    return false;
  double low = isKept ? two->no : two->yes;
  bool isOne = two->where.others.size() == 1, isOpposite = isOne && two->where.others.front().negated;
  Value flags = isOne ? alignMask(two->where.others.front().value, term.rank) : all(two->where.others, term.rank);
  steps.push_back({isKept != isOpposite ? ds::ScoreStepKind::keep_add : ds::ScoreStepKind::hide_add, flags, low});
  return true;
}

void AttentionOperands::addStep(const ScoreTerm &term, SmallVectorImpl<ds::ScoreStep> &steps) {
  Value value = alignMask(term.value, term.rank);
  if (isVoid(term, value))
    return;
  bool chooses = term.kind == ds::ScoreStepKind::keep || term.kind == ds::ScoreStepKind::hide;
  missed.clear();
  if (chooses ? chooseByWindow(term, steps) : term.kind == ds::ScoreStepKind::add && addByWindow(term, steps))
    return;
  if (!missed.empty())
    unread = missed;
  else if (term.kind == ds::ScoreStepKind::add && addByFlags(term, steps))
    return;
  if (term.negated)
    value = create<ds::UnaryOp>(elementOf(value), rankOf(value), ds::UnaryKind::neg, value);
  steps.push_back({term.kind, value, term.low});
}

SmallVector<ds::ScoreStep> AttentionOperands::steps(const AttentionScores &scores) {
  SmallVector<ds::ScoreStep> steps;
  for (const ScoreScale &number : scores.scales)
    if (!scores.isOfQuery(number)) {
      Value factor = scalar(number.value);
      if (number.divides)
        factor = create<ds::UnaryOp>(elementOf(factor), 0, ds::UnaryKind::reciprocal, factor);
      steps.push_back({ds::ScoreStepKind::multiply, factor, 0});
    }
  for (const ScoreTerm &term : llvm::reverse(scores.terms))
    addStep(term, steps);
  return steps;
}

/// As peelScale, from before reshapes and transposes, too, which then move what was scaled.
Value AttentionOperands::peelMovedScale(Value value, double &scale) {
  value = peelScale(value, scale);
  SmallVector<Operation *> moves;
  Value source = value;
  for (Operation *op = source.getDefiningOp(); isa_and_present<ds::ReshapeOp, ds::TransposeOp>(op);
       op = source.getDefiningOp()) {
    moves.push_back(op);
    source = op->getOperand(0);
  }
  Value unscaled = peelScale(source, scale);
  if (unscaled == source)
    return value;
  for (Operation *op : llvm::reverse(moves)) {
    IRMapping map;
    map.map(op->getOperand(0), unscaled);
    Operation *moved = builder.clone(*op, map);
    moved->removeDiscardableAttr(ds::valueNameAttr); // of the scaled value
    known(moved);
    unscaled = moved->getResult(0);
  }
  return unscaled;
}

/// x where a value is x with its last two axes exchanged, while those before them were one.
Value AttentionOperands::exchangedSource(Value value) {
  auto split = value.getDefiningOp<ds::ReshapeOp>();
  auto transpose = split ? split.getInput().getDefiningOp<ds::TransposeOp>() : ds::TransposeOp();
  auto merge = transpose ? transpose.getInput().getDefiningOp<ds::ReshapeOp>() : ds::ReshapeOp();
  if (!merge || transpose.getPermutation() != ArrayRef<int64_t>{0, 2, 1})
    return {};
  SizeVector source = sizes.facts(merge.getInput()).sizes, merged = sizes.facts(merge).sizes;
  if (source.size() < 3 || !llvm::equal(ArrayRef(source).take_back(2), ArrayRef(merged).take_back(2)))
    return {};
  std::swap(source[source.size() - 2], source.back());
  return source == sizes.facts(value).sizes ? merge.getInput() : Value();
}

Value AttentionOperands::query(Value value, const AttentionScores &scores, double &scale) {
  Value query = splitHeads(peelMovedScale(value, scale));
  for (const ScoreScale &number : scores.scales)
    if (scores.isOfQuery(number))
      query = create<ds::BinaryOp>(elementOf(query), 4, number.divides ? ds::BinaryKind::div : ds::BinaryKind::mul,
                                   query, scalar(number.value));
  return query;
}

Value AttentionOperands::key(ds::MatmulOp product, double &scale) {
  Value key = peelScale(product.getRhs(), scale);
  if (product.getTranspose()[1])
    return splitHeads(peelMovedScale(key, scale));
  if (Value source = exchangedSource(key))
    return splitHeads(peelMovedScale(source, scale));
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(rankOf(key)));
  Value source = key;
  // A permutation of tokens, heads and channels may have swapped the last two axes on its way.
  if (auto transpose = key.getDefiningOp<ds::TransposeOp>()) {
    permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
    source = transpose.getInput();
  }
  std::swap(permutation[permutation.size() - 2], permutation.back());
  source = peelMovedScale(source, scale);
  if (llvm::equal(permutation, llvm::seq<int64_t>(rankOf(key))))
    return splitHeads(source);
  return splitHeads(
      create<ds::TransposeOp>(elementOf(key), rankOf(key), source, builder.getDenseI64ArrayAttr(permutation)));
}

} // namespace deepstride
