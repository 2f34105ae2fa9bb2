// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" | FileCheck %s
// The numbers are checked by test/integration/training_dropout_cases.py.

// An evaluation drops nothing; a micro-batch is given what the places are drawn by, and draws them again on the way back.
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: ds.dropout
// CHECK-NOT: bit_xor
// CHECK: ds.unary exp %arg1
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: ds.name = "random_seed"
// CHECK-SAME: ds.name = "random_step"
// CHECK-SAME: ds.name = "random_micro"
// CHECK-NOT: ds.dropout
// CHECK: ds.binary {{ ?}}bit_xor {{.*}}ds.draw = 0
// CHECK: ds.select
// CHECK: ds.unary exp
// CHECK: ds.binary {{ ?}}bit_xor {{.*}}ds.draw = 1
// CHECK: ds.select
// CHECK: return
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.dropout %w ratio 2.500000e-01 stream 7 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.reduce sum %1 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
