// Tensors of one element that a model learns, such as the bias of a layer with one output. What reads them tells them
// from the numbers of formulas.
#include "frontends/onnx/convert/Conversion.h"

using namespace mlir;

namespace deepstride::onnx {

/// Whether the input of the operator is a weight, scale or bias of a layer.
static bool isParameter(StringRef operation, unsigned input) {
  if (operation == "MatMul")
    return input == 1;
  if (operation == "LSTM" || operation == "GRU" || operation == "RNN")
    return input >= 1 && input <= 3;
  bool hasBias = llvm::is_contained({"Conv", "ConvTranspose", "Gemm", "BatchNormalization", "GroupNormalization",
                                     "InstanceNormalization", "LayerNormalization"},
                                    operation);
  return hasBias ? input == 1 || input == 2 : operation == "RMSNormalization" && input == 1;
}

/// Whether an Add puts a bias on the product of a layer with one output.
static bool addsBias(NodeOp add, Value bias) {
  for (Value other : add.getInputs()) {
    auto product = other == bias ? NodeOp() : other.getDefiningOp<NodeOp>();
    if (!product || !product.getDomain().empty() || product.getOpType() != "MatMul" || product.getInputs().size() != 2)
      continue;
    auto weight = product.getInputs()[1].getDefiningOp<InitializerOp>();
    auto type = weight ? dyn_cast<RankedTensorType>(weight.getValue().getType()) : RankedTensorType();
    return !type || type.getRank() == 0 || type.getShape().back() == 1;
  }
  return false;
}

bool isLearnedScalar(InitializerOp initializer) {
  auto type = dyn_cast<RankedTensorType>(initializer.getValue().getType());
  if (!type || type.getRank() == 0 || type.getNumElements() != 1 || !isa<FloatType>(type.getElementType()))
    return false;
  SmallVector<Value> open = {initializer.getResult()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      auto node = dyn_cast<NodeOp>(use.getOwner());
      if (!node || !node.getDomain().empty())
        continue;
      if (isParameter(node.getOpType(), use.getOperandNumber()) || (node.getOpType() == "Add" && addsBias(node, value)))
        return true;
      if (llvm::is_contained({"Identity", "Cast", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}, node.getOpType()) &&
          use.getOperandNumber() == 0 && node->getNumResults() == 1)
        open.push_back(node->getResult(0));
    }
  }
  return false;
}

} // namespace deepstride::onnx
