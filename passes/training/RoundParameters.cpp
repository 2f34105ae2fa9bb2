// What only moves elements, such as the rows of a table, comes before they are widened: of a table, few are read.
//
//   %y = ds.gather 0 %w, %i : f32  =>  %r = ds.gather 0 %w, %i : bf16
//                                      %y = ds.cast %r to f32
#include "passes/training/RoundParameters.h"

#include "passes/training/Parameters.h"

#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace deepstride {
namespace {

class ParameterRounder {
public:
  ParameterRounder(func::FuncOp entry, FloatType type, bool areStored)
      : body(entry.getBody().front()), type(type), wide(Float32Type::get(type.getContext())), areStored(areStored) {}

  /// `value` is f32, or, where it is stored so, about to be of the type.
  void round(Value value);

private:
  Operation *placeOf(Operation *reader) const;
  static Value as(OpBuilder &builder, Location where, Value value, Type element) {
    auto tensor = cast<RankedTensorType>(value.getType());
    return ds::CastOp::create(builder, where, tensor.clone(element), value, TypeAttr::get(element));
  }
  Value widened(OpBuilder &builder, Location where, Value value) const {
    return as(builder, where, areStored ? value : as(builder, where, value, type), wide);
  }

  Block &body;
  FloatType type;
  Type wide;
  bool areStored;
};

/// Whether the op hands on elements of the operand as they are.
bool onlyMoves(OpOperand &use) {
  return use.getOperandNumber() == 0 && isa<ds::GatherOp, ds::TransposeOp, ds::ReshapeOp>(use.getOwner());
}

/// In front of loops, which would round once more in each round, and inside of branches: of a layer that is dropped
/// nothing is rounded, so that nothing reads its parameters.
Operation *ParameterRounder::placeOf(Operation *reader) const {
  Operation *place = reader;
  for (Operation *around = reader; around->getBlock() != &body; around = around->getParentOp())
    if (!isa<scf::IfOp>(around->getParentOp()))
      place = around->getParentOp();
  return place;
}

void ParameterRounder::round(Value value) {
  SmallVector<Operation *> movers;
  llvm::SmallMapVector<Operation *, SmallVector<OpOperand *>, 8> readers; // by where they are rounded for
  bool isInside = value.getParentBlock() != &body;                        // what a branch has gathered is there alone
  for (OpOperand &use : value.getUses()) {
    if (onlyMoves(use))
      movers.push_back(use.getOwner());
    else
      readers[isInside ? body.findAncestorOpInBlock(*use.getOwner()) : placeOf(use.getOwner())].push_back(&use);
  }
  if (areStored)
    value.setType(cast<RankedTensorType>(value.getType()).clone(type));
  for (auto &[place, uses] : readers) {
    OpBuilder builder(place);
    if (isInside)
      builder.setInsertionPointAfterValue(value);
    Value read = widened(builder, uses.front()->getOwner()->getLoc(), value);
    for (OpOperand *use : uses)
      use->set(read);
  }
  for (Operation *mover : movers)
    round(mover->getResult(0));
}

} // namespace

void roundParameters(func::FuncOp entry, FloatType type, bool areStored) {
  ParameterRounder rounder(entry, type, areStored);
  for (const Parameter &parameter : parametersOf(entry))
    if (getElementTypeOrSelf(parameter.value).isF32())
      rounder.round(parameter.value);
  entry.setFunctionType(FunctionType::get(entry.getContext(), entry.getBody().front().getArgumentTypes(),
                                          entry.getFunctionType().getResults()));
}

} // namespace deepstride
