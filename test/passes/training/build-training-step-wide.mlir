// RUN: ds-opt %s --ds-build-training-step="loss=mse logits=y labels=goal optimizer=sgd,momentum=false" | FileCheck %s
// The numbers are checked by test/integration/training_curve_cases.py: a reference in f64 against PyTorch in double.

// A parameter that is read in f64 only is kept in f64, and what is judged is not what the output was rounded to.
// CHECK: ds.recipe @w
// CHECK: ds.cast %{{.*}} to f64
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: tensor<4xf64> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: -> (tensor<f64> {ds.name = "loss"}, tensor<4xf32> {ds.name = "y"})
// CHECK: %[[Y:.*]] = ds.binary {{ ?}}mul
// CHECK: ds.binary {{ ?}}sub %[[Y]]
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: tensor<4xf64> {ds.state = "w/gradient"}
// CHECK-LABEL: func.func @update(
// CHECK-SAME: tensor<4xf64> {ds.state = "w"}
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.cast %x to f64 : (tensor<4xf32>) -> tensor<4xf64>
  %1 = ds.cast %w to f64 : (tensor<4xf32>) -> tensor<4xf64>
  %2 = ds.binary mul %0, %1 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %3 = ds.cast %2 to f32 : (tensor<4xf64>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
