// Which values of a program lie in the buffer of another: views, and what an insertion or a scatter changes in part.
#include "passes/memory/BufferCopies.h"

#include "dialects/dist/DistDialect.h"

using namespace mlir;

namespace deepstride {

bool isElementwise(Operation *op) {
  auto element = dyn_cast<ds::PerElement>(op);
  return element && element.isPointwise();
}

OpOperand *updateTarget(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto wait = dyn_cast_if_present<dist::WaitOp>(op)) {
    dist::StartInterface start = wait.getStart();
    unsigned number = cast<OpResult>(value).getResultNumber();
    return start.isInPlace() ? &start->getOpOperand(start.sourceValues().getBeginOperandIndex() + number)
                             : start.intoOf(number);
  }
  if (auto fused = dyn_cast_if_present<ds::FusedOp>(op)) {
    Block &body = fused.getBody().front();
    Value yielded = body.getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
    OpOperand *target = yielded.getParentBlock() == &body ? updateTarget(yielded) : nullptr;
    return target && target->get().getParentBlock() != &body ? target : nullptr; // else its kernel writes all of it
  }
  if (auto insert = dyn_cast_if_present<ds::InsertOp>(op))
    return &insert.getIntoMutable();
  if (auto scatter = dyn_cast_if_present<ds::ScatterElementsOp>(op))
    return &scatter.getInputMutable();
  if (auto scatter = dyn_cast_if_present<ds::ScatterNdOp>(op))
    return &scatter.getInputMutable();
  return nullptr;
}

bool isInserted(OpResult result) {
  auto fused = dyn_cast<ds::FusedOp>(result.getOwner());
  Value yielded = fused ? fused.getBody().front().getTerminator()->getOperand(result.getResultNumber()) : Value(result);
  return ds::insertedResult(yielded.getDefiningOp()) != nullptr;
}

} // namespace deepstride
