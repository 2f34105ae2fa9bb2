// Weights that are called as entries will be: the recipes step aside, the states keep their names.
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" | FileCheck %s
// CHECK: ds.recipe @[[UPDATE:update_[0-9]+]] {
// CHECK: ds.recipe @[[MICRO:micro_[0-9]+]] {
// CHECK: func.func @eval(%{{.*}}ds.initial = @[[UPDATE]], ds.name = "update", ds.state = "update"}
// CHECK: ds.weight @[[MICRO]]
// CHECK: func.func @micro(
// CHECK: func.func @update(
// CHECK-SAME: ds.initial = @[[UPDATE]], ds.name = "update", ds.state = "update"}
ds.recipe @update {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @micro {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {ds.dims = [4], ds.initial = @update, ds.name = "update", ds.state = "update"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %m = ds.weight @micro : tensor<4xf32>
  %0 = ds.binary mul %w, %m : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
