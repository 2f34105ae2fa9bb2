// RUN: ds-opt %s --split-input-file --ds-fold-constants --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fold-constants --verify-numerics -o /dev/null

// CHECK: ds.recipe @w_t {
// CHECK-NEXT: %[[SOURCE:.*]] = ds.source "model.onnx"{{ ?}}[64, 128] : tensor<8x4xf32>
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[SOURCE]] [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: ds.yield %[[T]] : tensor<4x8xf32>
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[W:.*]] = ds.weight @w_t {ds.values = ["w_t"]} : tensor<4x8xf32>
// CHECK-NEXT: return %[[W]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [64, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
func.func @doc() -> tensor<4x8xf32> {
  %0 = ds.weight @w : tensor<8x4xf32>
  %1 = ds.transpose %0 [1, 0] {ds.values = ["w_t"]} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Of a region of constant ops, only what the program reads becomes a weight; a dequantization, here.
// CHECK: ds.recipe @folded {
// CHECK-NEXT: %[[SOURCE:.*]] = ds.source
// CHECK-NEXT: %[[CAST:.*]] = ds.cast %[[SOURCE]] to f32
// CHECK-NEXT: %[[SCALE:.*]] = ds.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NEXT: %[[SCALED:.*]] = ds.binary mul %[[CAST]], %[[SCALE]]
// CHECK-NEXT: ds.yield %[[SCALED]]
// CHECK-NOT: ds.recipe
// CHECK-LABEL: func.func @stores_only_what_is_read
// CHECK-NEXT: ds.weight @folded
// CHECK-NEXT: return
ds.recipe @q {
  %0 = ds.source "model.onnx" [0, 8192] : tensor<8192xi8>
  ds.yield %0 : tensor<8192xi8>
}
func.func @stores_only_what_is_read() -> tensor<8192xf32> {
  %0 = ds.weight @q : tensor<8192xi8>
  %1 = ds.constant dense<0.5> : tensor<f32>
  %2 = ds.cast %0 to f32 : (tensor<8192xi8>) -> tensor<8192xf32>
  %3 = ds.binary mul %2, %1 : (tensor<8192xf32>, tensor<f32>) -> tensor<8192xf32>
  return %3 : tensor<8192xf32>
}

// -----

// Rows of codes are not stored as floats.
// CHECK-LABEL: func.func @codes_stay
// CHECK: ds.gather 0 %{{.*}}, %{{.*}} scales %{{.*}}
func.func @codes_stay() -> tensor<2x4xf32> {
  %0 = ds.constant dense<7> : tensor<3x4xi8>
  %1 = ds.constant dense<0.5> : tensor<3x1xf32>
  %2 = ds.constant dense<[1, 0]> : tensor<2xi64>
  %3 = ds.gather 0 %0, %2 scales %1 : (tensor<3x4xi8>, tensor<2xi64>, tensor<3x1xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// Small constants are evaluated at once, so that patterns can read the square root of the head size.
// CHECK-LABEL: func.func @evaluates_small_constants
// CHECK-DAG: ds.constant dense<5.65685415> : tensor<f32>
// CHECK-DAG: ds.constant dense<{{\[\[}}1, 3], [2, 4]]> : tensor<2x2xi64>
// CHECK-DAG: ds.constant dense<[true, false]> : tensor<2xi1>
// CHECK-NOT: ds.unary
func.func @evaluates_small_constants() -> (tensor<f32>, tensor<2x2xi64>, tensor<2xi1>) {
  %0 = ds.constant dense<32.0> : tensor<f32>
  %1 = ds.unary sqrt %0 : (tensor<f32>) -> tensor<f32>
  %2 = ds.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %3 = ds.transpose %2 [1, 0] : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %4 = ds.constant dense<[7, 0]> : tensor<2xi64>
  %5 = ds.cast %4 to i1 : (tensor<2xi64>) -> tensor<2xi1>
  return %1, %3, %5 : tensor<f32>, tensor<2x2xi64>, tensor<2xi1>
}

// -----

// What would take more space than its operands is computed at run time.
// CHECK-LABEL: func.func @does_not_enlarge
// CHECK: ds.broadcast
func.func @does_not_enlarge() -> tensor<1024x1024xf32> {
  %0 = ds.constant dense<0.5> : tensor<1024xf32>
  // expected-remark @+1 {{stays in the program: storing its result would take more than its operands}}
  %1 = ds.broadcast %0 [1024, 1024] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}

// -----

// Run-time values are no constants, nor are constants cut at a run-time size.
// CHECK-LABEL: func.func @does_not_fold_run_time
// CHECK: ds.slice
// CHECK: ds.binary add
func.func @does_not_fold_run_time(%x: tensor<4xf32>, %y: tensor<?xf32> {ds.dims = ["n"]}) -> (tensor<4xf32>, tensor<?xf32>) {
  %0 = ds.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = ds.slice %0 starts [0] sizes ["n"] steps [1] : (tensor<4xf32>) -> tensor<?xf32>
  %2 = ds.binary add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<?xf32>
}

// -----

// What a state holds changes between calls: nothing of it is folded, beside a constant either.
// CHECK-LABEL: func.func @state
// CHECK: %[[T:.*]] = ds.transpose %arg0
// CHECK: %[[M:.*]] = ds.binary mul %[[T]]
// CHECK: return %[[M]], %arg0
func.func @state(%w: tensor<8x4xf32> {ds.state = "w"}) -> (tensor<4x8xf32>, tensor<8x4xf32> {ds.state = "w"}) {
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.transpose %w [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = ds.binary mul %0, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %1, %w : tensor<4x8xf32>, tensor<8x4xf32>
}

// -----

// Every function of elements is evaluated: choices, GELU, bits.
// CHECK-LABEL: func.func @every_function
// CHECK-DAG: %[[S:.*]] = ds.constant dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[G:.*]] = ds.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[B:.*]] = ds.constant dense<1065353216> : tensor<i32>
// CHECK: return %[[S]], %[[G]], %[[B]]
func.func @every_function() -> (tensor<2xf32>, tensor<f32>, tensor<i32>) {
  %c = ds.constant dense<[true, false]> : tensor<2xi1>
  %one = ds.constant dense<1.0> : tensor<f32>
  %two = ds.constant dense<-2.0> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.select %c, %one, %two : (tensor<2xi1>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
  %1 = ds.gelu erf %zero : (tensor<f32>) -> tensor<f32>
  %2 = ds.bitcast %one to i32 : (tensor<f32>) -> tensor<i32>
  return %0, %1, %2 : tensor<2xf32>, tensor<f32>, tensor<i32>
}
