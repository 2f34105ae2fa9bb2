// Gates are inputs, never sizes: plans do not depend on which blocks run.
#include "passes/training/Layers.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride {

std::string nameOfLayer(StringRef kind, int64_t layer) { return kind.str() + std::to_string(layer); }

SmallVector<scf::IfOp> gatedLayers(func::FuncOp function) {
  SmallVector<scf::IfOp> layers;
  for (auto branch : function.getOps<scf::IfOp>())
    if (auto number = branch->getAttrOfType<IntegerAttr>(layerAttr)) {
      layers.resize(std::max<size_t>(layers.size(), number.getInt() + 1));
      layers[number.getInt()] = branch;
    }
  return layers;
}

void removeGates(func::FuncOp eval) {
  SmallVector<scf::IfOp> layers = gatedLayers(eval);
  if (layers.empty())
    return;
  for (scf::IfOp branch : layers) {
    Block &taken = *branch.thenBlock();
    Operation *yield = taken.getTerminator();
    branch.replaceAllUsesWith(yield->getOperands());
    yield->erase();
    branch->getBlock()->getOperations().splice(branch->getIterator(), taken.getOperations());
    branch.erase();
  }
  llvm::BitVector gone(eval.getNumArguments());
  for (BlockArgument argument : eval.getArguments()) {
    auto name = eval.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::nameAttr);
    bool isScale = name && name.getValue().starts_with(layerScale);
    if (!isScale && !(name && name.getValue().starts_with(layerGate)))
      continue;
    gone.set(argument.getArgNumber());
    for (Operation *user : llvm::to_vector(argument.getUsers())) {
      if (isScale)
        user->getResult(0).replaceAllUsesWith(user->getOperand(0)); // what is added, times the scale
      user->erase();
    }
  }
  (void)eval.eraseArguments(gone);
}

LayerGradients::LayerGradients(func::FuncOp micro, ArrayRef<Parameter> parameters) {
  SmallVector<scf::IfOp> layers = gatedLayers(micro);
  for (auto [number, branch] : llvm::enumerate(layers))
    conditions[static_cast<int64_t>(number)] = branch.getCondition();
  for (const Parameter &parameter : parameters) {
    std::optional<int64_t> owner;
    for (Operation *user : parameter.value.getUsers()) {
      Operation *at = micro.getBody().front().findAncestorOpInBlock(*user);
      auto number = at->getAttrOfType<IntegerAttr>(layerAttr);
      int64_t layer = number ? number.getInt() : -1;
      if (owner.value_or(layer) != layer)
        layer = -1;
      owner = layer;
      if (layer < 0)
        break;
    }
    if (owner.value_or(-1) >= 0)
      owners[parameter.value] = *owner;
  }
}

bool LayerGradients::addUp(const Parameter &parameter, Value gradient, Value before, bool accumulates,
                           Signature &signature, DsBuilder &b) {
  auto owner = owners.find(parameter.value);
  auto back = gradient.getDefiningOp<scf::IfOp>();
  if (owner == owners.end() || !back || back.getCondition() != conditions.lookup(owner->second) ||
      !gradient.use_empty())
    return false;
  unsigned number = cast<OpResult>(gradient).getResultNumber();
  Operation *ran = back.thenBlock()->getTerminator(), *dropped = back.elseBlock()->getTerminator();
  OpBuilder::InsertionGuard guard(b.getBuilder());
  b.getBuilder().setInsertionPoint(ran);
  Value sum = ran->getOperand(number);
  b.setLocation(sum.getLoc());
  if (accumulates) {
    Value &isFirst = firsts[owner->second];
    if (!isFirst) {
      isFirst = signature.input(nameOfLayer(layerFirst, owner->second), b.i1(), {});
      b.getAnalysis().set(isFirst, TensorFacts{b.i1(), {}, std::nullopt});
    }
    sum = b.select(isFirst, sum, b.add(b.cast(before, b.element(sum)), sum));
  }
  sum = sum ? b.cast(sum, b.element(before)) : sum;
  if (!sum)
    return false;
  ran->setOperand(number, sum);
  dropped->setOperand(number, before);
  TensorFacts facts = b.facts(gradient);
  facts.elementType = b.element(before);
  gradient.setType(facts.type());
  b.getAnalysis().set(gradient, facts);
  added[parameter.name.getValue()] = owner->second;
  return true;
}

} // namespace deepstride
