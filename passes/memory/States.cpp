// Diagnoses pairs of arguments and results that cannot be one state.
#include "passes/memory/States.h"

using namespace mlir;

namespace deepstride {

LogicalResult checkStates(func::FuncOp function, const SizeAnalysis &analysis) {
  llvm::DenseMap<Attribute, Value> states;
  llvm::SmallDenseSet<Attribute> updated;
  auto list = [&](const SizeVector &sizes) { return toAttribute(function.getContext(), sizes); };
  for (BlockArgument argument : function.getArguments())
    if (Attribute state = function.getArgAttr(argument.getArgNumber(), ds::stateAttr)) {
      if (!isa<StringAttr>(state))
        return function.emitOpError("expects a state's name, found ") << state;
      if (!states.try_emplace(state, argument).second)
        return function.emitOpError("has two arguments of state ") << state;
    }
  for (OpOperand &operand : function.getBody().front().getTerminator()->getOpOperands()) {
    Attribute state = function.getResultAttr(operand.getOperandNumber(), ds::stateAttr);
    if (!state)
      continue;
    if (!states.contains(state))
      return function.emitOpError("result ")
             << operand.getOperandNumber() << " is tied to state " << state << ", which no argument has";
    if (!updated.insert(state).second)
      return function.emitOpError("has two results of state ") << state;
    const TensorFacts &before = analysis.facts(states[state]), &after = analysis.facts(operand.get());
    if (before.elementType != after.elementType || before.sizes != after.sizes)
      return function.emitOpError("state ")
             << state << " must keep type and sizes, found " << before.elementType << " " << list(before.sizes)
             << " and " << after.elementType << " " << list(after.sizes);
  }
  return success();
}

} // namespace deepstride
