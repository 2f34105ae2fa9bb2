// The train dialect in C++.
#ifndef DEEPSTRIDE_DIALECTS_TRAIN_TRAINDIALECT_H
#define DEEPSTRIDE_DIALECTS_TRAIN_TRAINDIALECT_H

#include "dialects/ds/SizeTraits.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/train/TrainDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/train/TrainOps.h.inc"

namespace deepstride::train {
/// Whether derivatives are taken of and with respect to tensors of this element type; narrower floats are storage.
bool isDifferentiable(mlir::Type element);
} // namespace deepstride::train

#endif
