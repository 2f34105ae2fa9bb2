// RUN: ds-opt %s --ds-promote-parameters | FileCheck %s
// Exporters that fold no constants join the gates of a recurrence in another order in front of the node.

// CHECK-LABEL: func.func @gates(
// CHECK-SAME: ds.state = "w"
// CHECK-SAME: ds.state = "b"
// CHECK-SAME: ds.state = "c"
// CHECK: return
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 64] : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [64, 8] : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
ds.recipe @c {
  %0 = ds.source "model.onnx" [72, 8] : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
func.func @gates(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}) -> (tensor<3x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x4xf32>
  %b = ds.weight @b : tensor<2xf32>
  %c = ds.weight @c : tensor<2xf32>
  %low = ds.slice %w starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %high = ds.slice %w starts [2, 0] sizes [2, 4] steps [1, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %turned = ds.concat 0 %high, %low : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %bias = ds.concat 0 %b, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %t = ds.transpose %turned [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = ds.matmul %x, %t transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = ds.binary add %0, %bias : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
