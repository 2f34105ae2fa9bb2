// Requirements of ops that go away. A constraint is kept where it is not known to hold and no remaining op states it;
// its place in the block does not matter, since a run checks it as soon as its symbols are known.
#include "dialects/ds/Requirements.h"

#include "dialects/ds/DsDialect.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace deepstride {

bool mayRequire(Operation *op) {
  auto inference = dyn_cast<ds::ResultInference>(op);
  if (!inference)
    return op->getNumRegions() > 0;
  SmallVector<TensorFacts> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    operands.push_back(factsOfType(operand.getType(), index));
  Inference turn(op, operands, /*quiet=*/true);
  return failed(inference.inferResults(turn)) || !turn.constraints.empty();
}

static ds::SizeRelation relationOf(const SizeConstraint &constraint) {
  switch (constraint.relation) {
  case SizeConstraint::Relation::Equal: return ds::SizeRelation::equal;
  case SizeConstraint::Relation::Broadcast: return ds::SizeRelation::broadcast;
  case SizeConstraint::Relation::AtLeast: return ds::SizeRelation::at_least;
  }
  llvm_unreachable("all relations handled");
}

void createRequirement(OpBuilder &builder, const SizeConstraint &constraint) {
  Attribute lhs = toAttribute(builder.getContext(), constraint.lhs),
            rhs = toAttribute(builder.getContext(), constraint.rhs);
  ds::SizeRelation relation = relationOf(constraint);
  Block *block = builder.getInsertionBlock();
  for (Block::iterator place = builder.getInsertionPoint(); place != block->begin();) {
    auto before = dyn_cast<ds::RequireOp>(*--place);
    if (!before)
      break;
    if (before.getRelation() == relation && before.getLhs() == lhs && before.getRhs() == rhs)
      return;
  }
  ds::RequireOp::create(builder, constraint.where, lhs, relation, rhs);
}

/// Whether the size can be written in a program: one of a value that no symbol names cannot.
static bool isWritable(const SizeExpr &size) {
  return llvm::none_of(size.symbols(), [](const SizeAtom &atom) { return atom.kind() == SizeAtom::Kind::Unknown; }) &&
         SizeExpr::parse(size.str());
}

/// What the op, with the ops inside of it, requires of sizes and only a run can tell.
static SmallVector<SizeConstraint> requirementsOf(Operation *op, SizeAnalysis &analysis) {
  size_t others = analysis.constraints.size();
  SmallVector<SizeConstraint> own;
  if (succeeded(analysis.visit(op)))
    for (const SizeConstraint &constraint : ArrayRef(analysis.constraints).drop_front(others))
      if (isWritable(constraint.lhs) && isWritable(constraint.rhs) && constraint.lhs != constraint.rhs)
        own.push_back(constraint);
  analysis.constraints.resize(others, {SizeConstraint::Relation::Equal, {}, {}, op->getLoc()});
  return own;
}

void keepRequirements(Operation *op, SizeAnalysis &analysis) {
  OpBuilder builder(op);
  for (const SizeConstraint &constraint : requirementsOf(op, analysis))
    createRequirement(builder, constraint);
}

namespace {
/// What is required at one place, and what follows from that at once.
class Requirements {
public:
  void add(const SizeConstraint &constraint) {
    switch (constraint.relation) {
    case SizeConstraint::Relation::Equal:
      equal.insert(differenceOf(constraint.lhs, constraint.rhs));
      equal.insert(differenceOf(constraint.rhs, constraint.lhs));
      break;
    case SizeConstraint::Relation::Broadcast: broadcast.insert(pairOf(constraint.lhs, constraint.rhs)); break;
    case SizeConstraint::Relation::AtLeast: atLeast.insert(differenceOf(constraint.lhs, constraint.rhs)); break;
    }
  }

  bool imply(const SizeConstraint &constraint) const {
    std::string difference = differenceOf(constraint.lhs, constraint.rhs);
    if (equal.contains(difference))
      return true;
    if (constraint.relation == SizeConstraint::Relation::Broadcast)
      return broadcast.contains(pairOf(constraint.lhs, constraint.rhs));
    return constraint.relation == SizeConstraint::Relation::AtLeast && atLeast.contains(difference);
  }

private:
  /// The difference up to a positive factor: 70*n equals 70*b where n equals b.
  static std::string differenceOf(const SizeExpr &a, const SizeExpr &b) {
    SizeExpr difference = a - b;
    uint64_t factor = 0;
    for (const auto &[monomial, coefficient] : difference.polynomial())
      factor = std::gcd(factor, llvm::AbsoluteValue(coefficient));
    if (factor > INT64_MAX)
      return difference.str();
    std::string text;
    for (const auto &[monomial, coefficient] : difference.polynomial()) {
      text += "+" + std::to_string(coefficient / static_cast<int64_t>(factor));
      for (const SizeAtom &atom : monomial)
        text += ("*" + atom.text()).str();
    }
    return text;
  }

  static std::string pairOf(const SizeExpr &a, const SizeExpr &b) {
    std::string first = a.str(), second = b.str();
    return first < second ? first + "|" + second : second + "|" + first;
  }

  llvm::StringSet<> equal, atLeast; // differences
  llvm::StringSet<> broadcast;
};

/// The ops of a function that nothing reads, users before what they use.
class Unread {
public:
  explicit Unread(Operation *function) : function(function) {
    function->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (op == function || !wouldOpBeTriviallyDead(op) ||
          !llvm::all_of(op->getUsers(), [&](Operation *user) { return contains(user); }))
        return;
      set.insert(op);
      ops.push_back(op);
    });
  }

  /// Whether the op, or one around it, is among them.
  bool contains(Operation *op) const {
    for (; op && op != function; op = op->getParentOp())
      if (set.contains(op))
        return true;
    return false;
  }

  SmallVector<Operation *> ops;

private:
  Operation *function;
  llvm::DenseSet<Operation *> set;
};
} // namespace

LogicalResult eraseReplacedOps(Operation *function) {
  Unread unread(function);
  auto erase = [&] {
    for (Operation *op : unread.ops)
      op->erase();
    return success();
  };
  if (llvm::none_of(unread.ops, mayRequire))
    return erase();
  auto analysis = SizeAnalysis::run(function);
  if (failed(analysis))
    return failure();
  SmallVector<std::pair<Operation *, SizeConstraint>> lost; // in the order of the program
  for (Operation *op : llvm::reverse(unread.ops))
    if (!unread.contains(op->getParentOp()))
      for (SizeConstraint &constraint : requirementsOf(op, *analysis))
        lost.emplace_back(op, std::move(constraint));
  if (lost.empty())
    return erase();
  llvm::DenseMap<Block *, Requirements> stated;
  function->walk([&](Operation *op) {
    if (isa<ds::ResultInference, ds::RequireOp>(op) && !unread.contains(op))
      for (const SizeConstraint &constraint : requirementsOf(op, *analysis))
        stated[op->getBlock()].add(constraint);
  });
  for (const auto &[op, constraint] : lost) {
    bool isStated = false;
    for (Operation *place = op; place != function && !isStated; place = place->getParentOp())
      isStated = stated[place->getBlock()].imply(constraint);
    if (isStated)
      continue;
    Operation *place = op;
    while (isa<ds::FusedOp>(place->getParentOp())) // holds pure ops only
      place = place->getParentOp();
    OpBuilder builder(place);
    createRequirement(builder, constraint);
    stated[place->getBlock()].add(constraint);
  }
  return erase();
}

} // namespace deepstride
