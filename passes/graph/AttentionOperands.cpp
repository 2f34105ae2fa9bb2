// What an exporter enlarges, ds.attention broadcasts by itself: masks are cut down to what they hold, heads that joined
// the batch are split, heads in groups are joined. Numbers of run time that scale the scores move to the query.
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

Value AttentionOperands::castTo(Value value, Type element) {
  return elementOf(value) == element ? value
                                     : create<ds::CastOp>(element, rankOf(value), value, TypeAttr::get(element));
}

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
  bool joinsHeads = rank == 3 && given.size() == 3 && !given[0].isConstant(1);
  return joinsHeads ? splitHeads(mask) : mask;
}

/// A value that broadcasts to what `mask` broadcasts to, without copies that were made to give it the scores' sizes.
Value AttentionOperands::narrow(Value mask, int depth) {
  constexpr int depthLimit = 8;
  Operation *op = mask.getDefiningOp();
  if (!op || depth == depthLimit)
    return mask;
  if (auto broadcast = dyn_cast<ds::BroadcastOp>(op)) {
    const SizeVector &from = sizes.facts(broadcast.getInput()).sizes, &to = sizes.facts(mask).sizes;
    if (to.size() > shape.size())
      return mask;
    for (size_t back = 1; back <= to.size(); ++back) {
      const SizeExpr &size = to[to.size() - back];
      bool same = back <= from.size() && from[from.size() - back] == size;
      if (!same && size != shape[shape.size() - back] && size != total[total.size() - back])
        return mask;
    }
    return narrow(broadcast.getInput(), depth + 1);
  }
  if (auto element = dyn_cast<ds::PerElement>(op); !element || !element.isPointwise())
    return mask;
  // Nothing is hidden where a constant lets everything pass.
  if (auto both = dyn_cast<ds::BinaryOp>(op);
      both && both.getKind() == ds::BinaryKind::bit_and && elementOf(mask).isInteger(1))
    for (unsigned i : {0, 1}) {
      Value all = narrow(both->getOperand(i), depth + 1);
      auto constant = all.getDefiningOp<ds::ConstantOp>();
      auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
      if (dense && dense.getNumElements() == 1 && dense.getSplatValue<bool>() &&
          rankOf(all) <= rankOf(both->getOperand(1 - i)))
        return narrow(both->getOperand(1 - i), depth + 1);
    }
  SmallVector<Value> operands;
  int64_t rank = 0;
  for (Value operand : op->getOperands()) {
    operands.push_back(narrow(operand, depth + 1));
    rank = std::max(rank, rankOf(operands.back()));
  }
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

/// A mask with one more term around the scores; `inner` holds what was added before, or is null.
Value AttentionOperands::addTerm(const ScoreTerm &term, Value inner, Type element) {
  if (term.condition) {
    // What was added before is not added to the low number, where both together would overflow.
    Value condition = alignMask(term.condition, term.rank), low = number(term.low, element);
    Value rest = inner ? inner : number(0, element);
    return term.lowWhenTrue ? choose(condition, low, rest) : choose(condition, rest, low);
  }
  Value value = castTo(alignMask(term.value, term.rank), element);
  if (term.negated)
    value = create<ds::UnaryOp>(element, rankOf(value), ds::UnaryKind::neg, value);
  return inner
             ? create<ds::BinaryOp>(element, std::max(rankOf(inner), rankOf(value)), ds::BinaryKind::add, inner, value)
             : value;
}

/// Whether all elements of a constant are zero, or false; with `inverted`, true.
static bool isUniform(Value value, bool inverted) {
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || dense.empty())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return !inverted && llvm::all_of(dense.getValues<APFloat>(), [](const APFloat &x) { return x.isZero(); });
  return dense.getElementType().isInteger(1) &&
         llvm::all_of(dense.getValues<bool>(), [&](bool holds) { return holds == inverted; });
}

void AttentionOperands::dropVoid(AttentionScores &scores) {
  auto isVoid = [&](const ScoreTerm &term) {
    if (term.condition)
      return isUniform(alignMask(term.condition, term.rank), !term.lowWhenTrue);
    Value value = alignMask(term.value, term.rank);
    if (auto select = value.getDefiningOp<ds::SelectOp>())
      return (isUniform(select.getCondition(), true) && scalarOf(select.getOnTrue()) == 0.0) ||
             (isUniform(select.getCondition(), false) && scalarOf(select.getOnFalse()) == 0.0);
    return isUniform(value, false);
  };
  if (!scores.terms.empty() && isVoid(scores.terms.back()))
    scores.takesOut = false;
  llvm::erase_if(scores.terms, isVoid);
}

Value AttentionOperands::mask(const AttentionScores &scores, Type element) {
  Value mask;
  for (const ScoreTerm &term : llvm::reverse(scores.terms))
    mask = addTerm(term, mask, element);
  return mask;
}

Value AttentionOperands::factor(const AttentionScores &scores, Type element) {
  if (scores.factor)
    return castTo(alignMask(scores.factor, scores.factorRank), element);
  if (!scores.takesOut)
    return {};
  const ScoreTerm &term = scores.terms.back();
  Value none = number(0, element), whole = number(1, element), condition = alignMask(term.condition, term.rank);
  return term.lowWhenTrue ? choose(condition, none, whole) : choose(condition, whole, none);
}

Value AttentionOperands::query(Value value, const AttentionScores &scores, double &scale) {
  Value query = splitHeads(peelScale(value, scale));
  for (const ScoreScale &number : scores.scales) {
    Value one = castTo(rankOf(number.value) == 0 ? number.value : reshape(number.value, {}), elementOf(query));
    query = create<ds::BinaryOp>(elementOf(query), 4, number.divides ? ds::BinaryKind::div : ds::BinaryKind::mul, query,
                                 one);
  }
  return query;
}

Value AttentionOperands::key(ds::MatmulOp product, double &scale) {
  Value key = peelScale(product.getRhs(), scale);
  if (product.getTranspose()[1])
    return splitHeads(key);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(rankOf(key)));
  Value source = key;
  // A permutation of tokens, heads and channels may have swapped the last two axes on its way.
  if (auto transpose = key.getDefiningOp<ds::TransposeOp>()) {
    permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
    source = transpose.getInput();
  }
  std::swap(permutation[permutation.size() - 2], permutation.back());
  if (llvm::equal(permutation, llvm::seq<int64_t>(rankOf(key))))
    return splitHeads(peelScale(source, scale));
  return splitHeads(
      create<ds::TransposeOp>(elementOf(key), rankOf(key), source, builder.getDenseI64ArrayAttr(permutation)));
}

} // namespace deepstride
