// Follows a value back to constants, weights and states. Which ops may lie between is said by isStorable: those by
// which recipes change weights.
#include "passes/graph/Parameters.h"

#include "dialects/ds/SizeTraits.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/graph/Recipes.h"

using namespace mlir;

namespace deepstride {

/// A recipe of more ops is refused, too.
static constexpr unsigned opLimit = 64;

static Value boundTo(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  return owner->hasTrait<ds::BindsOperands>() && argument.getArgNumber() < owner->getNumOperands()
             ? owner->getOperand(argument.getArgNumber())
             : Value();
}

ParameterSource parameterSourceOf(Value value) {
  ParameterSource source = ParameterSource::Constant;
  SmallVector<Value> open = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (Value bound = boundTo(argument)) {
        source = ParameterSource::State; // what is differentiated varies, a constant as well
        open.push_back(bound);
        continue;
      }
      auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
      if (!function || !argument.getOwner()->isEntryBlock() ||
          !function.getArgAttr(argument.getArgNumber(), ds::stateAttr))
        return ParameterSource::None;
      source = ParameterSource::State;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!seen.insert(op).second || isa<ds::ConstantOp>(op))
      continue;
    if (isa<ds::WeightOp>(op)) {
      source = std::max(source, ParameterSource::Weight);
      continue;
    }
    if (!isStorable(op) || seen.size() > opLimit)
      return ParameterSource::None;
    open.append(op->operand_begin(), op->operand_end());
  }
  return source;
}

} // namespace deepstride
