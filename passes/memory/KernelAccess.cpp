#include "passes/memory/KernelAccess.h"

#include "dialects/ds/Norms.h"
#include "dialects/ds/StridedWindow.h"
#include "passes/memory/BufferCopies.h"

using namespace mlir;

namespace deepstride {

bool readsOnlyWhatItWrites(ds::KernelOp kernel, unsigned argument) {
  auto sizesOf = [&](Value value) -> Attribute {
    if (auto block = dyn_cast<BlockArgument>(value))
      return kernel.getArgumentSizes()[block.getArgNumber()];
    auto lists = value.getDefiningOp()->getAttrOfType<ArrayAttr>("result_sizes");
    return lists ? lists[cast<OpResult>(value).getResultNumber()] : Attribute();
  };
  Block &body = kernel.getBody().front();
  Attribute sizes = sizesOf(body.getArgument(argument));
  for (Value result : body.getTerminator()->getOperands())
    if (!ds::insertedResult(result.getDefiningOp()) && // into a buffer of its own
        (sizesOf(result) != sizes || ds::preparesRows(result.getDefiningOp())))
      return false;
  SmallVector<Value> work = {body.getArgument(argument)};
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      Operation *op = use.getOwner();
      bool isStored = isa<ds::ReshapeOp>(op) && llvm::all_of(op->getUsers(), ds::insertedResult);
      if (isa<ds::YieldOp>(op) || isStored || (ds::insertedResult(op) && use.getOperandNumber() == 0))
        continue;
      auto element = dyn_cast<ds::PerElement>(op);
      if (!element || !element.isPointwise() || element.scannedOperand() == use.getOperandNumber() ||
          sizesOf(op->getResult(0)) != sizes)
        return false;
      work.push_back(op->getResult(0));
    }
  return true;
}

SmallVector<int64_t> updatedArguments(ds::KernelOp kernel) {
  OperandRange results = kernel.getBody().front().getTerminator()->getOperands();
  SmallVector<int64_t> updated(results.size(), -1);
  for (auto [result, number] : llvm::zip_equal(results, updated))
    if (OpOperand *target = updateTarget(result))
      if (auto argument = dyn_cast<BlockArgument>(target->get()))
        number = argument.getArgNumber();
  return updated;
}

} // namespace deepstride
