// Passes of the training phase.
#ifndef DEEPSTRIDE_PASSES_TRAINING_PASSES_H
#define DEEPSTRIDE_PASSES_TRAINING_PASSES_H

#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace deepstride {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/training/Passes.h.inc"
} // namespace deepstride

#endif
