// Passes of the training phase.
#ifndef DEEPSTRIDE_PASSES_TRAINING_TD
#define DEEPSTRIDE_PASSES_TRAINING_TD

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"ds-differentiate", "::mlir::func::FuncOp"> {
  let summary = "replace gradients by the ops that compute them";
  let description = [{
    Reverse mode over the region of each `train.gradient`, inner ones first: the ops of the region stay, behind them
    come the derivatives in the opposite order, by one rule per op (passes/training/rules). What y does not depend on
    gets zeros. An op between xs and y that has no rule is an error. Values of the region that the program computes
    anyway are shared by the common subexpression elimination that follows.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::deepstride::train::TrainDialect"];
}

#endif
