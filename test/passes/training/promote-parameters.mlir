// RUN: ds-opt %s --split-input-file --ds-promote-parameters --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/training_cases.py: a parameter is a weight that may change.

// CHECK: ds.recipe @w
// CHECK: ds.recipe @b
// CHECK-LABEL: func.func @doc
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xf32> {ds.dims = [8, 4], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @b, ds.name = "b", ds.state = "b"}
// CHECK-NEXT: %[[Y:.*]] = ds.matmul %arg0, %[[W]]
// CHECK-NEXT: ds.binary add %[[Y]], %[[B]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [64, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [192, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @doc(%x: tensor<2x8xf32> {ds.dims = [2, 8], ds.name = "x"}) -> (tensor<2x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %w = ds.weight @w : tensor<8x4xf32>
  %b = ds.weight @b : tensor<4xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = ds.binary add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// What one model reads in two places is one parameter; a table is one, a transposed weight is one; what is computed with
// only is none, as are integers, and each says why it stays.
ds.recipe @table {
  %0 = ds.source "model.onnx" [0, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
ds.recipe @mask {
  %0 = ds.source "model.onnx" [128, 64] : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @offsets {
  %0 = ds.source "model.onnx" [192, 64] : tensor<8xi64>
  ds.yield %0 : tensor<8xi64>
}
ds.recipe @scalar {
  %0 = ds.source "model.onnx" [256, 4] : tensor<f32>
  ds.yield %0 : tensor<f32>
}
// CHECK-LABEL: func.func @tells_parameters_from_the_rest
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {ds.dims = [8, 4], ds.initial = @table, ds.name = "table", ds.state = "table"})
// CHECK-DAG: ds.weight @mask
// CHECK-DAG: ds.weight @offsets
// CHECK-DAG: ds.weight @scalar
// CHECK: ds.gather 0 %[[TABLE]]
// CHECK: ds.transpose %[[TABLE]]
func.func @tells_parameters_from_the_rest(%i: tensor<4xi64> {ds.dims = [4], ds.name = "i"}) -> (tensor<4x8xf32> {ds.name = "y"}, tensor<4x4xf32> {ds.name = "p"}, tensor<4xi64> {ds.name = "j"}) attributes {ds.entry} {
  %t = ds.weight @table : tensor<8x4xf32>
  // expected-remark @below {{'mask' is not trained: it acts as no weight, bias, scale or table}}
  %m = ds.weight @mask : tensor<4x4xf32>
  // expected-remark @below {{'offsets' is not trained: it holds no floats of 32 bits or more}}
  %o = ds.weight @offsets : tensor<8xi64>
  // expected-remark @below {{'scalar' is not trained: it is a scalar}}
  %s = ds.weight @scalar : tensor<f32>
  %0 = ds.gather 0 %t, %i : (tensor<8x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %1 = ds.binary mul %0, %s : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %u = ds.weight @table : tensor<8x4xf32>
  %2 = ds.transpose %u [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %3 = ds.matmul %1, %2 transpose [false, false] : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = ds.binary add %1, %m : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = ds.softmax %4 axis 1 log false : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = ds.gather 0 %o, %i : (tensor<8xi64>, tensor<4xi64>) -> tensor<4xi64>
  return %3, %5, %6 : tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xi64>
}

// -----

// expected-error @below {{no parameter to train: no weight of 32 bits or more acts as weight, bias, scale or table}}
module {
  func.func @nothing(%x: tensor<2xf32> {ds.dims = [2], ds.name = "x"}) -> (tensor<2xf32> {ds.name = "y"}) attributes {ds.entry} {
    %0 = ds.unary exp %x : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
