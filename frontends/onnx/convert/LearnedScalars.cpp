// Which small tensors a model learns, where what reads them must tell: the bias of a layer with one output from the
// numbers of formulas, and the scales and biases of norms from what exporters put in their place where there are none.
#include "frontends/onnx/convert/Conversion.h"
#include "frontends/onnx/dialect/ConstantNodes.h"

using namespace mlir;

namespace deepstride::onnx {

static bool isNode(NodeOp node, ArrayRef<StringRef> operations) {
  return node && node.getDomain().empty() && llvm::is_contained(operations, node.getOpType());
}

static bool movesElements(NodeOp node) {
  return isNode(node, {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}) &&
         !node.getInputs().empty() && node->getNumResults() == 1;
}

static bool isNorm(NodeOp node) {
  return isNode(node, {"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"});
}

/// Whether the input of the operator is a weight, scale or bias of a layer, or a statistic, of which its readers
/// share one copy.
static bool isParameter(NodeOp node, unsigned input) {
  if (isNode(node, {"MatMul", "PRelu", "RMSNormalization"}))
    return input == 1;
  if (isNode(node, {"LSTM", "GRU", "RNN"}))
    return input >= 1 && input <= 3;
  if (isNode(node, {"BatchNormalization"}))
    return input >= 1;
  return (isNode(node, {"Conv", "ConvTranspose", "Gemm"}) || isNorm(node)) && (input == 1 || input == 2);
}

/// The type of the initializer behind what only moves elements; null for anything else.
static RankedTensorType storedType(Value value) {
  for (auto node = value.getDefiningOp<NodeOp>(); movesElements(node); node = value.getDefiningOp<NodeOp>())
    value = node.getInputs()[0];
  auto initializer = value.getDefiningOp<InitializerOp>();
  return initializer ? dyn_cast<RankedTensorType>(initializer.getValue().getType()) : RankedTensorType();
}

/// Whether an Add puts a bias on what a layer with one output gives, which has none yet.
static bool addsBias(NodeOp add, Value bias) {
  for (Value other : add.getInputs()) {
    auto product = other == bias ? NodeOp() : other.getDefiningOp<NodeOp>();
    while (movesElements(product))
      product = product.getInputs()[0].getDefiningOp<NodeOp>();
    if (!isNode(product, {"MatMul", "Gemm", "Conv", "ConvTranspose"}) || product.getInputs().size() != 2)
      continue;
    RankedTensorType weight = storedType(product.getInputs()[1]);
    if (weight && llvm::is_contained(weight.getShape(), 1))
      return true;
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
      if (isParameter(node, use.getOperandNumber()) || (isNode(node, {"Add"}) && addsBias(node, value)))
        return true;
      if (movesElements(node) && use.getOperandNumber() == 0)
        open.push_back(node->getResult(0));
    }
  }
  return false;
}

bool isPlaceholder(NodeOp constant) {
  DenseFPElementsAttr elements;
  for (NamedAttribute attribute : constant.getAttrs())
    if (auto held = dyn_cast_or_null<DenseFPElementsAttr>(heldTensor(attribute)))
      elements = held;
  if (!elements || constant->getNumResults() != 1 || constant->use_empty())
    return false;
  bool isOnes = llvm::all_of(elements.getValues<APFloat>(), [](const APFloat &x) { return x.isExactlyValue(1.0); });
  bool isZeros = llvm::all_of(elements.getValues<APFloat>(), [](const APFloat &x) { return x.isZero(); });
  return llvm::all_of(constant->getUses(), [&](OpOperand &use) {
    bool isScale = use.getOperandNumber() == 1 && isOnes, isBias = use.getOperandNumber() == 2 && isZeros;
    return isNorm(dyn_cast<NodeOp>(use.getOwner())) && (isScale || isBias);
  });
}

} // namespace deepstride::onnx
