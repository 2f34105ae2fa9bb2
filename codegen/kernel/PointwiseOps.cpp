// Emits elementwise ops in the body of a loop over rows.
#include "codegen/kernel/PointwiseOps.h"

using namespace mlir;

namespace deepstride {

llvm::DenseMap<Value, Value> emitPointwiseOps(KernelBuilder &k, OpBuilder &b, ArrayRef<Operation *> ops,
                                              ArrayRef<Value> operands, ValueRange elements) {
  llvm::DenseMap<Value, Value> values;
  for (auto [operand, element] : llvm::zip_equal(operands, elements))
    values[operand] = fromStorage(b, k.loc, element, k.elementOf(operand));
  for (Operation *op : ops) {
    SmallVector<Value> read;
    SmallVector<Type> types;
    for (Value operand : op->getOperands()) {
      Type type = k.elementOf(operand);
      if (auto constant = operand.getDefiningOp<ds::ConstantOp>())
        read.push_back(
            scalarConstant(b, k.loc, type, cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>()));
      else
        read.push_back(values.lookup(operand));
      types.push_back(type);
    }
    values[op->getResult(0)] = emitPointwise(b, k.loc, op, read, types, k.elementOf(op->getResult(0)));
  }
  return values;
}

} // namespace deepstride
