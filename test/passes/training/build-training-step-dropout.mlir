// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" | FileCheck %s
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

// -----

// An attention drops nothing out in an evaluation, either; its kernels and those of its derivative are given what they
// draw by.
// CHECK-LABEL: func.func @eval(
// CHECK: ds.attention %arg0, %arg0, %arg0 scale 5.000000e-01 :
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[SEED:arg[0-9]+]]: tensor<i64> {ds.dims = [], ds.name = "random_seed"}
// CHECK-SAME: %[[STEP:arg[0-9]+]]: tensor<i64> {ds.dims = [], ds.name = "random_step"}
// CHECK-SAME: %[[MICRO:arg[0-9]+]]: tensor<i64> {ds.dims = [], ds.name = "random_micro"}
// CHECK: %[[STREAM:.*]] = ds.constant dense<7> : tensor<i64>
// CHECK: ds.attention {{.*}} dropout 1.000000e-01 random %[[SEED]], %[[STEP]], %[[MICRO]], %[[STREAM]] :
// CHECK: ds.constant dense<7> : tensor<i64>
// CHECK: ds.attention_gradient {{.*}} dropout 1.000000e-01 random %[[SEED]], %[[STEP]], %[[MICRO]], %{{.*}} :
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 384] : tensor<1x2x6x8xf32>
  ds.yield %0 : tensor<1x2x6x8xf32>
}
func.func @main(%w: tensor<1x2x6x8xf32> {ds.dims = [1, 2, 6, 8], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.attention %w, %w, %w scale 0.5 dropout 0.1 stream 7 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %1 = ds.reduce sum %0 axes [0, 1, 2, 3] keep false : (tensor<1x2x6x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
