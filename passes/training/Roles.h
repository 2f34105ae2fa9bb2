// What a weight is to the ops that read it.
#ifndef DEEPSTRIDE_PASSES_TRAINING_ROLES_H
#define DEEPSTRIDE_PASSES_TRAINING_ROLES_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// weight, bias, scale, table or token; empty where that is nothing a model learns.
llvm::StringRef roleOf(mlir::Value weight);

/// The uses where it is one of these, seen through what only moves elements.
llvm::SmallVector<mlir::OpOperand *> roleUsesOf(mlir::Value weight);

/// The same to the op that reads it here, without what lies behind that.
llvm::StringRef roleAt(mlir::OpOperand &use);

/// Whether the op shows its first operand's elements, moved.
bool movesElements(mlir::Operation *op);

/// At most one axis of more than one element.
bool isVector(mlir::Value value);

/// What of a rotary embedding it is, as in "is a rotary table"; empty where something else reads it, too.
llvm::StringRef rotaryRoleOf(mlir::Value weight);

/// Whether it is a mean or a variance of a norm as models hold it for inference.
bool isStatistic(mlir::Value weight);

/// Whether each batch moves it: a running statistic.
bool isRunning(ds::WeightOp weight);

} // namespace deepstride

#endif
