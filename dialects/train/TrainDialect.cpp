// Registration and verifiers of the train dialect.
#include "dialects/train/TrainDialect.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace deepstride;

#include "dialects/train/TrainDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/train/TrainOps.cpp.inc"

void train::TrainDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/train/TrainOps.cpp.inc"
      >();
}

bool train::isDifferentiable(Type element) {
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}

/// Sizes may be known in one of the types only.
static bool haveOneShape(Type a, Type b) {
  return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) && succeeded(verifyCompatibleShape(a, b));
}

LogicalResult train::GradientOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.getNumArguments() != getNumOperands())
    return emitOpError("C1: expects one argument of the region per operand, found ")
           << body.getNumArguments() << " for " << getNumOperands();
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(body.getArgumentTypes(), getOperandTypes())))
    if (auto [argument, operand] = pair; !haveOneShape(argument, operand))
      return emitOpError("C1: expects argument ") << index << " of type " << operand << ", found " << argument;
  if (getNumResults() != getXs().size())
    return emitOpError("C2: expects one result per x, found ") << getNumResults() << " for " << getXs().size();
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(getXs().getTypes(), getResultTypes()))) {
    auto [x, result] = pair;
    if (!haveOneShape(x, result))
      return emitOpError("C2: expects result ") << index << " of type " << x << ", found " << result;
    if (!isDifferentiable(getElementTypeOrSelf(x)))
      return emitOpError("C3: expects x ") << index << " of f16, bf16, f32 or f64, found " << x;
  }
  if (!body.mightHaveTerminator() || !isa<YieldOp>(body.getTerminator()))
    return emitOpError("C4: expects a region that ends in train.yield");
  return success();
}

LogicalResult train::YieldOp::verify() {
  if (!isDifferentiable(getElementTypeOrSelf(getValue())))
    return emitOpError("C1: expects a tensor of f16, bf16, f32 or f64, found ") << getValue().getType();
  return success();
}
