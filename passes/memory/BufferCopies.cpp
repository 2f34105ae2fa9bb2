// Finds, for every place where buffers meet, whether the value there may be written in place. Works on functions before
// outlining. The rules of a loop: what it carries has one buffer, from its first value through all iterations to its
// result; the first value must own its buffer, and an iteration may write the buffer only when the old value has been
// read for the last time.
#include "passes/memory/BufferCopies.h"

#include "dialects/dist/DistDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace deepstride {

Value throughViews(Value value) {
  while (auto reshape = value.getDefiningOp<ds::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

bool isElementwise(Operation *op) {
  auto element = dyn_cast<ds::PerElement>(op);
  return element && element.isPointwise();
}

/// Whether the op's kernel can write its result into any buffer.
static bool isWrittenByKernel(Operation *op) {
  return op && !isa<ds::WeightOp, ds::ConstantOp, ds::InsertOp, scf::IfOp, scf::WhileOp, dist::WaitOp>(op);
}

namespace {
class CopyInserter {
public:
  CopyInserter(func::FuncOp function, SizeAnalysis &analysis) : function(function), analysis(analysis) {}

  void run();

private:
  void ownInsertedInto(ds::InsertOp insert);
  void ownInits(scf::WhileOp loop);
  void endLoop(scf::WhileOp loop);
  void endBranch(scf::YieldOp yield);
  void endFunction(func::ReturnOp ret);

  Value copyOf(OpBuilder &builder, Value value);
  void copyInto(OpOperand &operand) {
    OpBuilder builder(operand.getOwner());
    operand.set(copyOf(builder, operand.get()));
  }
  /// Whether the operand's value has a kernel in the operand's block that can write it where the block ends.
  bool isDirect(OpOperand &operand, llvm::SmallPtrSetImpl<Operation *> &taken);
  bool isLastReader(Operation *writer, Value result, ArrayRef<Value> old);
  static SmallVector<Value> valuesIn(scf::WhileOp loop, unsigned carried);

  func::FuncOp function;
  SizeAnalysis &analysis;
};
} // namespace

Value CopyInserter::copyOf(OpBuilder &builder, Value value) {
  auto copy = ds::FusedOp::create(builder, value.getLoc(), value.getType());
  OpBuilder inner = OpBuilder::atBlockEnd(&copy.getBody().emplaceBlock());
  ds::YieldOp::create(inner, value.getLoc(), value);
  analysis.set(copy.getResult(0), analysis.facts(value));
  return copy.getResult(0);
}

/// A buffer that nobody else reads or writes: a kernel's result, seen only through views that lead to one use.
static bool isOwned(OpOperand &operand) {
  Value value = operand.get();
  for (; value.hasOneUse(); value = value.getDefiningOp<ds::ReshapeOp>().getInput())
    if (!value.getDefiningOp<ds::ReshapeOp>()) {
      Operation *writer = value.getDefiningOp();
      return writer && (isWrittenByKernel(writer) || isa<ds::InsertOp>(writer)) &&
             writer->getBlock() == operand.getOwner()->getBlock() && writer->getNumResults() == 1;
    }
  return false;
}

void CopyInserter::ownInsertedInto(ds::InsertOp insert) {
  OpOperand &into = insert.getIntoMutable();
  auto argument = dyn_cast<BlockArgument>(into.get());
  bool isCarried = argument && argument.hasOneUse() && isa<scf::WhileOp>(argument.getOwner()->getParentOp()) &&
                   argument.getOwner() == insert->getBlock();
  if (isCarried) {
    // The buffer is the loop's own only where the argument is a carried value, handed over once.
    auto loop = cast<scf::WhileOp>(argument.getOwner()->getParentOp());
    auto handed = isa<BlockArgument>(argument) && argument.getOwner() == loop.getAfterBody()
                      ? dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[argument.getArgNumber()])
                      : BlockArgument();
    isCarried = handed && handed.getOwner() == loop.getBeforeBody() && handed.hasOneUse();
  }
  if (!isCarried && !isOwned(into))
    copyInto(into);
}

void CopyInserter::ownInits(scf::WhileOp loop) {
  for (OpOperand &init : loop.getInitsMutable())
    if (isa<RankedTensorType>(init.get().getType()) && !isOwned(init))
      copyInto(init);
}

/// All values that lie in the buffer of a carried value while an iteration runs.
SmallVector<Value> CopyInserter::valuesIn(scf::WhileOp loop, unsigned carried) {
  SmallVector<Value> values = {loop.getBeforeArguments()[carried]};
  for (auto [handed, argument] : llvm::zip_equal(loop.getConditionOp().getArgs(), loop.getAfterArguments()))
    if (throughViews(handed) == values.front())
      values.push_back(argument);
  return values;
}

/// Whether the op's kernel may overwrite the old values while it runs, and nothing reads them after it.
bool CopyInserter::isLastReader(Operation *writer, Value result, ArrayRef<Value> old) {
  for (Value value : old) {
    if (isa<scf::WhileOp>(value.getParentBlock()->getParentOp()) && value.getParentBlock() != writer->getBlock())
      continue; // what a loop's condition reads is over when its iteration begins
    for (Operation *user : value.getUsers()) {
      Operation *reader = writer->getBlock()->findAncestorOpInBlock(*user);
      if (!reader || isa<ds::ReshapeOp>(reader))
        return false;
      if (reader != writer) {
        if (!reader->isBeforeInBlock(writer))
          return false;
        continue;
      }
      bool sameIndex = isElementwise(writer);
      if (auto fused = dyn_cast<ds::FusedOp>(writer))
        sameIndex = llvm::none_of(fused.getBody().front(), [](Operation &op) { return isa<ds::TransposeOp>(op); });
      if (!sameIndex || analysis.facts(value).sizes != analysis.facts(result).sizes)
        return false;
    }
  }
  return true;
}

bool CopyInserter::isDirect(OpOperand &operand, llvm::SmallPtrSetImpl<Operation *> &taken) {
  Operation *writer = throughViews(operand.get()).getDefiningOp();
  return isWrittenByKernel(writer) && writer->getBlock() == operand.getOwner()->getBlock() &&
         writer->getNumResults() == 1 && taken.insert(writer).second;
}

void CopyInserter::endLoop(scf::WhileOp loop) {
  scf::YieldOp yield = loop.getYieldOp();
  SmallVector<SmallVector<Value>> old;
  for (unsigned i = 0; i < yield.getNumOperands(); ++i)
    old.push_back(valuesIn(loop, i));
  // First what moves to another carried value is saved, before anything is overwritten.
  for (OpOperand &operand : yield->getOpOperands())
    for (unsigned i = 0; i < old.size(); ++i)
      if (i != operand.getOperandNumber() && llvm::is_contained(old[i], throughViews(operand.get()))) {
        copyInto(operand);
        break;
      }
  llvm::SmallPtrSet<Operation *, 8> taken;
  for (OpOperand &operand : yield->getOpOperands()) {
    ArrayRef<Value> mine = old[operand.getOperandNumber()];
    Value root = throughViews(operand.get());
    if (!isa<RankedTensorType>(operand.get().getType()) || llvm::is_contained(mine, root))
      continue;
    if (auto insert = root.getDefiningOp<ds::InsertOp>();
        insert && llvm::is_contained(mine, insert.getInto()) && taken.insert(insert).second)
      continue;
    if (!isDirect(operand, taken) || !isLastReader(root.getDefiningOp(), root, mine))
      copyInto(operand);
  }
}

void CopyInserter::endBranch(scf::YieldOp yield) {
  llvm::SmallPtrSet<Operation *, 8> taken;
  for (OpOperand &operand : yield->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) && !isDirect(operand, taken))
      copyInto(operand);
}

void CopyInserter::endFunction(func::ReturnOp ret) {
  auto stateOf = [&](OpOperand &operand) { return function.getResultAttr(operand.getOperandNumber(), ds::stateAttr); };
  // Copies into states end their old values: they come last, and an old value that moves to another state is saved.
  SmallVector<OpOperand *> ordered, states;
  for (OpOperand &operand : ret->getOpOperands())
    (stateOf(operand) ? states : ordered).push_back(&operand);
  ordered.append(states);
  for (OpOperand *operand : ordered)
    if (auto argument = dyn_cast<BlockArgument>(throughViews(operand->get())); argument && stateOf(*operand))
      if (Attribute old = function.getArgAttr(argument.getArgNumber(), ds::stateAttr); old && old != stateOf(*operand))
        copyInto(*operand);
  llvm::SmallPtrSet<Operation *, 8> taken;
  for (OpOperand *operand : ordered) {
    bool direct = isDirect(*operand, taken);
    if (Attribute state = stateOf(*operand); state && direct) {
      SmallVector<Value> old;
      for (BlockArgument argument : function.getArguments())
        if (function.getArgAttr(argument.getArgNumber(), ds::stateAttr) == state)
          old.push_back(argument);
      Operation *writer = operand->get().getDefiningOp();
      direct = writer && isElementwise(writer) && !old.empty() &&
               analysis.facts(old.front()).sizes == analysis.facts(operand->get()).sizes &&
               isLastReader(writer, operand->get(), old);
    }
    if (!direct)
      copyInto(*operand);
  }
}

void CopyInserter::run() {
  function.walk([&](ds::InsertOp insert) { ownInsertedInto(insert); });
  function.walk([&](scf::WhileOp loop) { ownInits(loop); });
  function.walk([&](Operation *terminator) {
    if (auto ret = dyn_cast<func::ReturnOp>(terminator))
      return endFunction(ret);
    auto yield = dyn_cast<scf::YieldOp>(terminator);
    if (!yield)
      return;
    if (auto loop = dyn_cast<scf::WhileOp>(yield->getParentOp()))
      endLoop(loop);
    else
      endBranch(yield);
  });
}

void insertCopies(func::FuncOp function, SizeAnalysis &analysis) { CopyInserter(function, analysis).run(); }

} // namespace deepstride
