// RUN: ds-opt %s --ds-promote-parameters 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: ds-opt %s --ds-promote-parameters=train=^f 2>&1 | FileCheck %s --check-prefix=NAMED
// Numbers that the file stores are constants, unless --train names them; a bias of one element is no number of a formula.
// The gradients are checked by test/integration/training_scalar_cases.py.

// NONE: remark: 'factor' is not trained: it is a scalar
// NONE-NOT: remark: 'unused'
// NONE: func.func @main
// NONE-SAME: {ds.dims = [1], ds.initial = @b, ds.name = "b", ds.state = "b"})
// NONE-NOT: ds.stored
// NONE: ds.constant {ds.values = ["factor"]} dense<2.0
// NAMED: remark: 'b' is not trained: it is not named by --train
// NAMED: ds.recipe @factor
// NAMED-NEXT: %[[V:.*]] = ds.constant dense<2.000000e+00> : tensor<f32>
// NAMED-NEXT: ds.yield %[[V]]
// NAMED: func.func @main
// NAMED-SAME: %[[F:[a-z0-9]+]]: tensor<f32> {ds.dims = [], ds.initial = @factor, ds.name = "factor", ds.state = "factor"})
// NAMED: ds.binary mul %{{.*}}, %[[F]]
ds.recipe @b {
  %0 = ds.constant dense<1.0> : tensor<1xf32>
  ds.yield %0 : tensor<1xf32>
}
func.func @main(%x: tensor<4x1xf32> {ds.dims = [4, 1], ds.name = "x"}) -> (tensor<4x1xf32> {ds.name = "y"}) attributes {ds.entry} {
  %b = ds.weight @b : tensor<1xf32>
  %f = ds.constant {ds.stored, ds.values = ["factor"]} dense<2.0> : tensor<f32>
  %u = ds.constant {ds.stored, ds.values = ["unused"]} dense<3.0> : tensor<f32>
  %c = ds.constant {ds.values = ["constant"]} dense<4.0> : tensor<f32>
  %0 = ds.binary add %x, %b : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %1 = ds.binary mul %0, %f : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %2 = ds.binary mul %1, %c : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  return %2 : tensor<4x1xf32>
}
