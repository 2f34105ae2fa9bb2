#include "passes/UniformValues.h"

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace deepstride {

/// Whether an op's sizes or other attributes depend on a rank's own place in the mesh.
static bool asksForRank(Operation *op) {
  bool isFound = false;
  op->getAttrDictionary().walk([&](StringAttr text) {
    StringRef value = text.getValue();
    isFound |= value.contains(SizeExpr::meshPrefix) && value.contains(".index");
  });
  return isFound;
}

bool UniformValues::prove(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto entry = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return entry && entry.getArgAttr(argument.getArgNumber(), dist::uniformAttr);
  }
  Operation *op = value.getDefiningOp();
  if (auto wait = dyn_cast<dist::WaitOp>(op))
    return isa<dist::AllReduceStartOp, dist::AllGatherStartOp, dist::BroadcastStartOp>(wait.getStart().getOperation());
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return contains(branch.getCondition()) && contains(branch.thenYield().getOperand(number)) &&
           contains(branch.elseYield().getOperand(number));
  }
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && !asksForRank(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return contains(operand); });
}

bool UniformValues::contains(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  bool isUniform = prove(value);
  known[value] = isUniform;
  return isUniform;
}

} // namespace deepstride
