// What the way back of a loop reads of its body: a row per iteration is kept of what was computed; what only moves
// elements of something kept, and constants, are there once more.
#include "passes/training/rules/LoopReversal.h"
#include "passes/training/rules/Repetition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace deepstride {

/// Whether an op may be there once more on the way back: it computes nothing, and its sizes are known from the start.
bool LoopReversal::mayRepeat(Operation *op) {
  if (!op || !(isLeaf(op) || isMovement(op) || isScalar(op)))
    return false;
  for (ds::DefineOp define : body->getOps<ds::DefineOp>())
    for (NamedAttribute named : op->getAttrs())
      if (auto list = dyn_cast<ArrayAttr>(named.getValue()); list && !countsIterations(define.getValue()))
        for (const SizeExpr &size : sizesFromAttribute(list).value_or(SizeVector()))
          if (size.dependsOn(define.getSymbol()))
            return false;
  return true;
}

/// Finds what has to be kept so that a value of the body is there on the way back.
void LoopReversal::findRead(Value value) {
  if (value.getParentBlock() != body || value == body->getArgument(0))
    return;
  Operation *op = value.getDefiningOp();
  if (!mayRepeat(op))
    taped.insert(value);
  else
    for (Value operand : op->getOperands())
      findRead(operand);
}

/// Makes the loop keep a row of each taped value; false after a diagnostic.
bool LoopReversal::keepRows() {
  Location where = loop.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  SmallVector<Value> inits(loop.getInits());
  SmallVector<Type> types(loop->getResultTypes());
  for (Value value : taped) {
    TensorFacts row = b.facts(value);
    if (!row.elementType || llvm::any_of(row.sizes, [&](const SizeExpr &size) {
          return llvm::any_of(namesBack.keys(), [&](StringRef name) { return size.dependsOn(name); });
        }))
      return d.refuse("where the sizes of iterations differ"), false;
    row.sizes.insert(row.sizes.begin(), trip);
    inits.push_back(b.broadcast(b.scalar(row.elementType, 0), row.sizes));
    if (!inits.back())
      return d.refuse("with such sizes yet"), false;
    types.push_back(row.type());
  }
  auto next = scf::WhileOp::create(builder, where, types, inits);
  next->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  next.getBefore().takeBody(loop.getBefore());
  next.getAfter().takeBody(loop.getAfter());
  Block *check = next.getBeforeBody();
  Operation *yield = body->getTerminator();
  builder.setInsertionPoint(yield);
  for (auto [value, init] : llvm::zip_equal(taped, ArrayRef(inits).take_back(taped.size()))) {
    SizeVector sizes = b.sizes(value), starts(sizes.size() + 1, SizeExpr(0));
    sizes.insert(sizes.begin(), 1);
    starts[0] = SizeExpr::symbol(symbol);
    check->getTerminator()->insertOperands(check->getTerminator()->getNumOperands(),
                                           check->addArgument(init.getType(), where));
    Value row = b.reshape(value, sizes), into = body->addArgument(init.getType(), where);
    b.getAnalysis().set(into, b.facts(init));
    Value collected = b.create<ds::InsertOp>({row, into}, row, into, b.list(starts));
    if (!collected)
      return d.refuse("with such sizes yet"), false;
    yield->insertOperands(yield->getNumOperands(), collected);
  }
  for (auto [result, init] : llvm::zip_equal(next.getResults(), inits)) {
    TensorFacts facts = b.facts(init);
    b.getAnalysis().set(result, {facts.elementType, facts.sizes, std::nullopt});
  }
  for (auto [old, result] : llvm::zip(loop.getResults(), next.getResults())) {
    old.replaceAllUsesWith(result);
    d.moved(old, result);
  }
  llvm::append_range(tapes, next.getResults().take_back(taped.size()));
  loop.erase();
  loop = next;
  return true;
}

/// A value of the body at the iteration that the way back is at; new ops come where the builder stands.
Value LoopReversal::onWayBack(Value value) {
  if (value.getParentBlock() != body)
    return value;
  if (Value known = kept.lookupOrNull(value))
    return known;
  Value same;
  if (value == body->getArgument(0)) {
    same = iteration;
  } else if (taped.contains(value)) {
    Value tape = tapes[static_cast<size_t>(llvm::find(taped, value) - taped.begin())];
    SizeVector sizes = b.sizes(value), box = sizes, starts(sizes.size() + 1, SizeExpr(0));
    box.insert(box.begin(), 1);
    starts[0] = SizeExpr::symbol(backSymbol);
    same = b.reshape(b.slice(tape, starts, box, SmallVector<int64_t>(box.size(), 1)), sizes);
  } else {
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      kept.map(operand, onWayBack(operand));
    Operation *copy = builder.clone(*op, kept);
    if (failed(b.getAnalysis().visit(copy)))
      return {};
    same = copy->getResult(cast<OpResult>(value).getResultNumber());
  }
  kept.map(value, same);
  return same;
}

void LoopReversal::useKept() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(iteration);
  auto countsBack = [&](Operation &op) { // what rows are found by
    auto define = dyn_cast<ds::DefineOp>(op);
    return define && (define.getValue() == iteration || define.getValue() == back->getArgument(0));
  };
  while (countsBack(*builder.getInsertionPoint()))
    builder.setInsertionPoint(builder.getInsertionBlock(), std::next(builder.getInsertionPoint()));
  SmallVector<OpOperand *> reads;
  back->walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getParentBlock() == body)
        reads.push_back(&operand);
  });
  for (OpOperand *read : reads)
    if (Value same = onWayBack(read->get()))
      read->set(same);
    else
      return d.refuse("with such sizes yet");
}

} // namespace deepstride
