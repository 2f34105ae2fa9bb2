#include "passes/training/ResidualSums.h"

#include "dialects/ds/Norms.h"
#include "passes/training/ReverseSweep.h"

using namespace mlir;

namespace deepstride {

static ds::BinaryOp sumOf(Value value) {
  auto sum = value.getDefiningOp<ds::BinaryOp>();
  return sum && sum.getKind() == ds::BinaryKind::add && isa<FloatType>(getElementTypeOrSelf(value)) ? sum
                                                                                                    : ds::BinaryOp();
}

static bool isConstant(Operation *op) { return isa<ds::ConstantOp, ds::WeightOp>(op); }

/// What a value has the elements of, but for some that a dropout leaves out.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ds::ReshapeOp, ds::TransposeOp, ds::CastOp, ds::DropoutOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A norm, as one op or as those that take away one vector and multiply by another, and what it normalizes.
static std::pair<Operation *, Value> normBehind(Value value) {
  Operation *norm = nullptr;
  bool shifts = false, scales = false;
  while (true) {
    value = sourceOf(value);
    Operation *op = value.getDefiningOp();
    if (ds::isNorm(op))
      return {op, sourceOf(op->getOperand(0))};
    auto binary = dyn_cast_if_present<ds::BinaryOp>(op);
    if (!binary || (binary.getLhs().getType() == value.getType()) == (binary.getRhs().getType() == value.getType()))
      return {shifts && scales ? norm : nullptr, value};
    bool isLeft = binary.getLhs().getType() == value.getType();
    Value other = isLeft ? binary.getRhs() : binary.getLhs();
    if (auto type = cast<RankedTensorType>(other.getType()); !type.hasStaticShape() || type.getNumElements() != 1) {
      norm = op;
      shifts |= binary.getKind() == ds::BinaryKind::add || binary.getKind() == ds::BinaryKind::sub;
      scales |= binary.getKind() == ds::BinaryKind::mul || binary.getKind() == ds::BinaryKind::div;
    }
    value = isLeft ? binary.getLhs() : binary.getRhs();
  }
}

/// Whether another sum of the same sizes takes this one in, and nothing else reads it: (x + a) + b is one sum.
bool ResidualSums::isInner(ds::BinaryOp sum) const {
  Operation *reader = nullptr;
  for (Operation *user : sum->getUsers())
    if (live.contains(topLevel(user))) {
      if (reader && reader != user)
        return false;
      reader = user;
    }
  return reader && sumOf(reader->getResults().empty() ? Value() : reader->getResult(0)) &&
         reader->getBlock() == &body && reader->getResult(0).getType() == sum.getType() &&
         reader->getOperand(0) != reader->getOperand(1);
}

/// The ops of the body on the ways from a value to operands of sums, the last of which is `end`.
llvm::SetVector<Operation *> ResidualSums::between(Value from, ArrayRef<OpOperand *> to, Operation *end) const {
  llvm::DenseSet<Operation *> reached;
  SmallVector<Operation *> open;
  auto reach = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (Operation *at = topLevel(user);
          at && live.contains(at) && at->isBeforeInBlock(end) && reached.insert(at).second)
        open.push_back(at);
  };
  reach(from);
  while (!open.empty())
    for (Value result : open.pop_back_val()->getResults())
      reach(result);
  llvm::SetVector<Operation *> way;
  auto enter = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && reached.contains(op) && way.insert(op))
      open.push_back(op);
  };
  for (OpOperand *operand : to)
    enter(operand->get());
  while (!open.empty())
    for (Value operand : valuesUsedBy(open.pop_back_val()))
      enter(operand);
  return way;
}

std::optional<Residual> ResidualSums::residualAt(ds::BinaryOp sum, SmallVectorImpl<Operation *> &sums) const {
  SmallVector<OpOperand *> leaves;
  sums.push_back(sum);
  for (unsigned i = 0; i < sums.size(); ++i)
    for (OpOperand &operand : sums[i]->getOpOperands()) {
      ds::BinaryOp inner = sumOf(operand.get());
      if (inner && inner->getBlock() == &body && inner.getType() == sum.getType() && isInner(inner))
        sums.push_back(inner);
      else
        leaves.push_back(&operand);
    }
  // The stream is what the others are computed of; where there are several, the first one.
  OpOperand *stream = nullptr;
  llvm::SetVector<Operation *> way;
  for (OpOperand *leaf : leaves) {
    if (leaf->get().getType() != sum.getType())
      continue;
    SmallVector<OpOperand *> others;
    llvm::copy_if(leaves, std::back_inserter(others), [&](OpOperand *other) { return other != leaf; });
    llvm::SetVector<Operation *> ops = between(leaf->get(), others, sum);
    if (ops.size() > way.size()) {
      stream = leaf;
      way = std::move(ops);
    }
  }
  if (!stream)
    return std::nullopt;
  Residual residual;
  for (OpOperand *leaf : leaves) {
    Operation *maker = leaf->get().getDefiningOp();
    if (leaf == stream)
      continue;
    // What adds up several places of a stream, as a skip connection does, or a mean of all layers, is none of its
    // blocks.
    if (leaf->get() == stream->get() || isPlaceOfStream(leaf->get()))
      return std::nullopt;
    residual.addsOthers |=
        maker && !isConstant(maker) && !way.contains(maker) && leaf->get().getType() == sum.getType();
  }
  residual.input = stream->get();
  residual.output = sum.getResult();
  way.insert_range(ArrayRef<Operation *>(sums));
  SmallVector<Operation *> sorted = way.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  residual.ops.insert_range(sorted);
  for (OpOperand *leaf : leaves)
    if (leaf != stream)
      residual.added.push_back(leaf);
  llvm::raw_string_ostream text(residual.signature);
  for (Operation *op : sorted) {
    text << op->getName();
    if (Attribute kind = op->getAttr("kind"))
      text << " " << kind;
    for (Type type : op->getResultTypes())
      text << " " << type;
    text << "\n";
  }
  return residual;
}

/// One of this sum, or else those of the sums that it takes in; whether there are any.
bool ResidualSums::add(ds::BinaryOp sum) {
  SmallVector<Operation *> sums;
  auto residual = residualAt(sum, sums);
  bool hasAny = false;
  if (!residual || residual->addsOthers)
    for (Operation *inner : ArrayRef<Operation *>(sums).drop_front())
      if (inner == sum.getLhs().getDefiningOp() || inner == sum.getRhs().getDefiningOp())
        hasAny |= add(cast<ds::BinaryOp>(inner));
  if (hasAny || !residual)
    return hasAny;
  outputs.insert(residual->output);
  residuals.push_back(std::move(*residual));
  return true;
}

bool ResidualSums::isReached(Value value, llvm::function_ref<bool(Value)> isIt) const {
  llvm::SetVector<Value> open;
  open.insert(value);
  for (unsigned i = 0; i < open.size(); ++i) {
    if (isIt(open[i]))
      return true;
    if (ds::BinaryOp sum = outputs.contains(open[i]) ? ds::BinaryOp() : sumOf(open[i])) {
      open.insert(sum.getLhs());
      open.insert(sum.getRhs());
    }
  }
  return false;
}

ResidualSums::ResidualSums(func::FuncOp entry, ValueRange judged) : body(entry.getBody().front()) {
  SmallVector<Value> open(judged);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    Operation *at = op ? topLevel(op) : nullptr;
    if (at && live.insert(at).second)
      llvm::append_range(open, valuesUsedBy(at));
  }
  for (Operation &op : body)
    if (ds::BinaryOp sum = op.getNumResults() == 1 ? sumOf(op.getResult(0)) : ds::BinaryOp();
        sum && live.contains(&op) && !isInner(sum))
      add(sum);
  llvm::sort(residuals, [](const Residual &a, const Residual &b) {
    return a.output.getDefiningOp()->isBeforeInBlock(b.output.getDefiningOp());
  });
}

Operation *ResidualSums::postNorm() const {
  for (const Residual &residual : residuals) {
    auto [norm, normalized] = normBehind(residual.input);
    if (norm && outputs.contains(normalized))
      return norm;
  }
  return nullptr;
}

} // namespace deepstride
