// RUN: ds-opt %s --ds-promote-parameters=freeze=^a --verify-diagnostics=only-expected 2>&1 | FileCheck %s --check-prefix=FREEZE
// RUN: ds-opt %s --ds-promote-parameters="train=^a freeze=2$" 2>&1 | FileCheck %s --check-prefix=TRAIN
// RUN: not ds-opt %s --ds-promote-parameters=freeze=. 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ds-opt %s "--ds-promote-parameters=train=(" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not ds-opt %s --ds-promote-parameters=freeze=zzz 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ds-opt %s --ds-promote-parameters="train=^a freeze=b" 2>&1 | FileCheck %s --check-prefix=OTHER
// Names choose: of --train, whatever a weight acts as; --freeze goes before it.

// FREEZE: func.func @main
// FREEZE-SAME: ds.state = "b"
// FREEZE-NOT: ds.state
// FREEZE: ds.weight @a1
// FREEZE: ds.weight @a2
// TRAIN: remark: 'a2' is not trained: it is named by --freeze
// TRAIN: remark: 'b' is not trained: it is not named by --train
// TRAIN: func.func @main
// TRAIN-SAME: ds.state = "a1"
// TRAIN-NOT: ds.state
// TRAIN: ds.weight @a2
// NONE: error: no parameter to train: train and freeze leave none
// NOTHING: error: --freeze: 'zzz' matches nothing that training changes; that is 'a1', 'a2', 'b'
// OTHER: error: --freeze: 'b' matches nothing that training changes; that is 'a1', 'a2'
// WRONG: error: train: expected a regular expression, found '('
ds.recipe @a1 {
  %0 = ds.source "model.onnx" [0, 16] : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @a2 {
  %0 = ds.source "model.onnx" [16, 16] : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [32, 16] : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
func.func @main(%x: tensor<2x2xf32> {ds.dims = [2, 2], ds.name = "x"}) -> (tensor<2x2xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a1 = ds.weight @a1 : tensor<2x2xf32>
  %a2 = ds.weight @a2 : tensor<2x2xf32>
  %b = ds.weight @b : tensor<2x2xf32>
  %0 = ds.matmul %x, %a1 transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = ds.matmul %0, %a2 transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = ds.matmul %1, %b transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}
