// RUN: ds-opt %s --split-input-file --ds-recompose-linear --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-linear --verify-numerics -o /dev/null

// CHECK: ds.recipe @w
// CHECK: ds.transpose %{{.*}} [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[W:.*]] = ds.weight @w{{.*}} : tensor<4x8xf32>
// CHECK-DAG: %[[B:.*]] = ds.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: %[[Y:.*]] = ds.linear %arg0, %[[W]], %[[B]] {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
ds.recipe @stored {
  %0 = ds.source "model.onnx" [64, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
func.func @doc(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %w = ds.weight @stored {ds.values = ["w"]} : tensor<8x4xf32>
  %b = ds.constant dense<1.0> : tensor<8xf32>
  %0 = ds.matmul %x, %w transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %b, %0 {ds.values = ["y"]} : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Without a bias, and where the product has other uses; more axes before the last.
// CHECK-LABEL: func.func @without_bias
// CHECK: %[[Y:.*]] = ds.linear %arg0, %[[W:[a-z0-9_]*]] :
// CHECK: ds.binary add %[[Y]]
// CHECK: ds.unary exp %[[Y]]
func.func @without_bias(%x: tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %b = ds.constant dense<1.0> : tensor<2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x3x4xf32>, tensor<4x2xf32>) -> tensor<2x3x2xf32>
  %1 = ds.binary add %0, %b : (tensor<2x3x2xf32>, tensor<2xf32>) -> tensor<2x3x2xf32>
  %2 = ds.unary exp %0 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %1, %2 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

// -----

// A bias of one row loses its axis of size 1.
// CHECK-LABEL: func.func @bias_row
// CHECK: %[[B:.*]] = ds.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK: ds.linear %arg0, %{{.*}}, %[[B]]
func.func @bias_row(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ds.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = ds.binary add %0, %b : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func @bias_of_another_shape
// CHECK: %[[Y:.*]] = ds.linear
// CHECK: ds.binary add %[[Y]]
func.func @bias_of_another_shape(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ds.constant dense<1.0> : tensor<3x1xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{bias not taken into linear: it has the type 'tensor<3x1xf32>', expected one axis of 2}}
  %1 = ds.binary add %0, %b : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func @weight_of_rank_three
// CHECK-NOT: ds.linear
func.func @weight_of_rank_three(%x: tensor<2x3x4xf32>) -> tensor<2x3x2xf32> {
  %w = ds.constant dense<1.0> : tensor<2x4x2xf32>
  // expected-remark @+1 {{linear not recomposed: the weight has rank 3, expected 2}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x3x4xf32>, tensor<2x4x2xf32>) -> tensor<2x3x2xf32>
  return %0 : tensor<2x3x2xf32>
}

// -----

// A product of two run-time values is no near miss.
// CHECK-LABEL: func.func @run_time_weight
// CHECK-NOT: ds.linear
func.func @run_time_weight(%x: tensor<3x4xf32>, %w: tensor<4x2xf32>) -> tensor<3x2xf32> {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
