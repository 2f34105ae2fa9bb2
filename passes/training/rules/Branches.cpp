// The derivative of a branch: a branch of derivatives. What the way back reads of a side, the branch hands on, and the
// other side something empty in its place; what only moves elements of something kept, and constants, are there once
// more. Sizes that a side itself computes have no name outside of it: such a side runs once more on the way back.
//
// Where a value's derivative has been given by what comes later, a side adds to that, and one that has nothing to add
// hands it on: a block that training drops writes no zeros.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/training/Layers.h"
#include "passes/training/ReverseSweep.h"
#include "passes/training/rules/Repetition.h"

using namespace mlir;

namespace deepstride {

namespace {

class BranchReversal {
public:
  BranchReversal(scf::IfOp branch, Derivative &d) : branch(branch), d(d), b(d.b), builder(d.b.getBuilder()) {}
  void run();

private:
  bool reverseSide(unsigned side, scf::IfOp back, ArrayRef<Value> seeds);
  void findRead(Value value, unsigned side);
  void keep(Value value, unsigned side);
  bool keepRead();
  Value onWayBack(Value value, unsigned side);
  bool useKept(unsigned side, scf::IfOp back);
  bool isFrom(Value value, unsigned side) const {
    return value.getParentBlock() == &branch->getRegion(side).front() || value == stream;
  }

  scf::IfOp branch;
  Derivative &d;
  DsBuilder &b;
  OpBuilder &builder;
  SmallVector<Value> used;                          // from around, and a derivative with respect to it is asked for
  SmallVector<std::array<Value, 2>> kept;           // what a result hands on, from either side; null: nothing
  std::array<llvm::DenseMap<Value, Value>, 2> same; // values of sides as the way back has them
  // What a side reads only to transpose it is kept transposed: the kernel that computes it may write it so.
  std::array<llvm::DenseMap<Value, ds::TransposeOp>, 2> transposed;
  // What a block reads and hands on when it is dropped: kept as if the block had computed it, so that nothing reads it
  // behind the block, whose result may lie in its place.
  Value stream;
};

} // namespace

/// Fills one side of the new branch; false after a diagnostic.
bool BranchReversal::reverseSide(unsigned side, scf::IfOp back, ArrayRef<Value> seeds) {
  Region &target = back->getRegion(side);
  Block *source = &branch->getRegion(side).front();
  OpBuilder::InsertionGuard guard(builder);
  Location where = b.getLocation();
  if (target.empty())
    builder.createBlock(&target);
  builder.setInsertionPointToEnd(&target.front());
  SmallVector<Value> results(source->getTerminator()->getOperands());
  if (!source->getOps<ds::DefineOp>().empty()) {
    IRMapping copies;
    for (Operation &op : source->without_terminator())
      if (failed(b.getAnalysis().visit(builder.clone(op, copies))))
        return false;
    for (Value &value : results)
      value = copies.lookupOrDefault(value);
    source = &target.front();
  }
  ReverseSweep sweep(*source, used);
  if (failed(sweep.run(results, seeds, b)))
    return false;
  b.setLocation(where);
  SmallVector<Value> gradients;
  for (Value value : used) {
    Value found = sweep.gradient(value), before = d.gradientOf(value);
    if (before)
      found = found ? b.add(before, found) : before;
    gradients.push_back(found ? found : d.zeros(b.element(value), b.sizes(value)));
  }
  scf::YieldOp::create(builder, where, gradients);
  return true;
}

/// The transpose that is all that a side does with a value.
static ds::TransposeOp onlyTransposed(Value value) {
  Operation *reader = nullptr;
  for (Operation *user : value.getUsers())
    if (Operation *inside = value.getParentBlock()->findAncestorOpInBlock(*user)) {
      if (reader && reader != inside)
        return {};
      reader = inside;
    }
  return dyn_cast_or_null<ds::TransposeOp>(reader);
}

/// Finds what has to be kept so that a value of a side is there on the way back.
void BranchReversal::findRead(Value value, unsigned side) {
  auto isKept = [&](Value value) {
    return llvm::any_of(kept, [&](const auto &values) { return values[side] == value; });
  };
  if (!isFrom(value, side) || isKept(value) || transposed[side].contains(value))
    return;
  Operation *op = value.getDefiningOp();
  if (value == stream) {
    keep(value, side);
  } else if (isMovement(op) || isLeaf(op) || isScalar(op)) {
    for (Value operand : op->getOperands())
      findRead(operand, side);
  } else if (ds::TransposeOp transpose = onlyTransposed(value)) {
    transposed[side][value] = transpose;
    keep(transpose.getResult(), side);
  } else {
    keep(value, side);
  }
}

/// Only one side runs: values of the same sizes share a result.
void BranchReversal::keep(Value value, unsigned side) {
  for (auto &values : kept)
    if (Value other = values[1 - side];
        other && !values[side] && b.element(other) == b.element(value) && b.sizes(other) == b.sizes(value)) {
      values[side] = value;
      return;
    }
  kept.emplace_back()[side] = value;
}

/// Makes the branch hand on what is kept; false where sizes are refused.
bool BranchReversal::keepRead() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch);
  Location wayBack = b.getLocation();
  b.setLocation(branch.getLoc()); // what is handed on is of the way there
  // A loop keeps rows of it, which the search for the first NaN reads.
  bool isRead = static_cast<bool>(branch->getParentOfType<scf::WhileOp>());
  auto nothing = [&](Value like) {
    return isRead ? d.zeros(b.element(like), b.sizes(like)) : b.empty(b.element(like), b.sizes(like));
  };
  SmallVector<Type> types(branch->getResultTypes());
  auto anyOf = [](const std::array<Value, 2> &values) { return values[0] ? values[0] : values[1]; };
  for (const auto &values : kept)
    types.push_back(b.facts(anyOf(values)).type());
  auto next = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(), /*withElseRegion=*/true);
  next->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (unsigned side : {0, 1}) {
    next->getRegion(side).takeBody(branch->getRegion(side));
    Operation *yield = next->getRegion(side).front().getTerminator();
    builder.setInsertionPoint(yield);
    for (const auto &values : kept) {
      Value handed = values[side] ? values[side] : nothing(anyOf(values));
      if (!handed)
        return false;
      yield->insertOperands(yield->getNumOperands(), handed);
    }
  }
  for (auto [old, result] : llvm::zip(branch.getResults(), next.getResults())) {
    b.getAnalysis().set(result, b.facts(old));
    old.replaceAllUsesWith(result);
    d.moved(old, result);
  }
  for (const auto &[values, result] : llvm::zip_equal(kept, next.getResults().take_back(kept.size()))) {
    Value any = anyOf(values);
    b.getAnalysis().set(result, {b.element(any), b.sizes(any), std::nullopt});
    for (unsigned side : {0, 1})
      if (values[side])
        same[side][values[side]] = result;
  }
  branch.erase();
  branch = next;
  b.setLocation(wayBack);
  return true;
}

/// A value of a side outside of it; new ops come where the builder stands. Null where sizes are refused.
Value BranchReversal::onWayBack(Value value, unsigned side) {
  if (!isFrom(value, side))
    return value;
  if (Value known = same[side].lookup(value))
    return known;
  if (ds::TransposeOp transpose = transposed[side].lookup(value))
    return same[side][value] =
               b.transpose(onWayBack(transpose.getResult(), side), invertPermutationVector(transpose.getPermutation()));
  Operation *op = value.getDefiningOp();
  IRMapping operands;
  for (Value operand : op->getOperands())
    if (Value there = onWayBack(operand, side))
      operands.map(operand, there);
    else
      return {};
  Operation *copy = builder.clone(*op, operands);
  if (failed(b.getAnalysis().visit(copy)))
    return {};
  return same[side][value] = copy->getResult(cast<OpResult>(value).getResultNumber());
}

bool BranchReversal::useKept(unsigned side, scf::IfOp back) {
  SmallVector<OpOperand *> reads;
  back->getRegion(side).walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isFrom(operand.get(), side))
        reads.push_back(&operand);
  });
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&back->getRegion(side).front());
  for (OpOperand *read : reads)
    if (Value there = onWayBack(read->get(), side))
      read->set(there);
    else
      return false;
  return true;
}

void BranchReversal::run() {
  SmallVector<Value> seeds;
  SmallVector<Type> types;
  for (Value value : valuesUsedBy(branch))
    if (d.wants(value)) {
      used.push_back(value);
      types.push_back(b.facts(value).type());
    }
  for (unsigned i = 0; i < branch.getNumResults(); ++i)
    seeds.push_back(d.gradient(i));
  if (branch->hasAttr(layerAttr))
    stream = branch.elseBlock()->getTerminator()->getOperand(0);
  auto back = scf::IfOp::create(builder, b.getLocation(), types, branch.getCondition(), /*withElseRegion=*/true);
  for (unsigned side : {0, 1})
    if (!reverseSide(side, back, seeds))
      return d.fail();
  for (unsigned side : {0, 1})
    back->getRegion(side).walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        findRead(operand, side);
    });
  if (!kept.empty() && !keepRead())
    return d.refuse("with such sizes yet");
  for (unsigned side : {0, 1})
    if (!useKept(side, back))
      return d.refuse("with such sizes yet");
  for (auto [result, value] : llvm::zip_equal(back.getResults(), used)) {
    TensorFacts facts = b.facts(value);
    facts.contents.reset();
    b.getAnalysis().set(result, facts);
    d.replaceGradient(value, result);
  }
}

static void differentiateIf(scf::IfOp op, Derivative &d) { BranchReversal(op, d).run(); }

void addBranchRules(RuleTable &table) { table.add(differentiateIf); }

} // namespace deepstride
