// The train dialect: what training says about a program before it becomes ds ops.
#ifndef DEEPSTRIDE_TRAIN_OPS_TD
#define DEEPSTRIDE_TRAIN_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Train_BindsOperands : NativeOpTrait<"BindsOperands"> {
  let cppNamespace = "::deepstride::ds";
}

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::deepstride::train";
  let summary = "training steps before they are spelled out";
  let description = [{
    Ops that say what a training step computes and leave open how. Passes of the training phase turn them into ds ops,
    which the later phases treat like any other: docs/rationale/differentiation.md.
  }];
}

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

def Train_GradientOp : Train_Op<"gradient", [SingleBlock, AttrSizedOperandSegments, RecursiveMemoryEffects,
                                             Train_BindsOperands]> {
  let summary = "derivatives of a function at a point";
  let description = [{
    The region is the function: its arguments stand for xs and zs, it yields y. The results are the derivatives of the
    sum of y's elements with respect to each of xs, taken where the arguments have the operands' values. What the
    region uses from above counts as constant, even where it is one of xs; so the region is not isolated: weights,
    constants and sizes are those of the program around it.

    Created by the importer (Gradient). Consumed by `ds-differentiate`, inner ones first where regions nest. Gone after:
    training.

    Constraints: C1 the region has one argument per operand, of its element type and shape; C2 there is one result per
    x, of its element type and shape; C3 all xs are floats of at least 16 bits; C4 the region ends in `train.yield`.

    Example:
    ```mlir
    %dx = train.gradient (%x) at (%w) {
    ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
      %0 = ds.binary mul %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      train.yield %0 : tensor<?xf32>
    } : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$xs, Variadic<AnyRankedTensor>:$zs);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyRankedTensor>:$gradients);
  let assemblyFormat = [{`(` $xs `)` (`at` `(` $zs^ `)`)? attr-dict-with-keyword $body `:`
                         functional-type(operands, results)}];
  let hasRegionVerifier = 1;
}

def Train_YieldOp : Train_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"GradientOp">]> {
  let summary = "the value of a differentiated function";
  let description = [{
    Created with its `train.gradient`, and gone with it.

    Constraints: C1 the value is a tensor of floats of at least 16 bits.

    Example: `train.yield %0 : tensor<f32>`
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif
