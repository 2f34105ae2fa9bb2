// RUN: ds-opt %s --ds-widen-floats | FileCheck %s
// RUN: ds-opt %s --ds-widen-floats --verify-numerics -o /dev/null

// CHECK: ds.recipe @w
// CHECK: ds.source {{.*}} : tensor<4xf32>
// CHECK-LABEL: func.func @doc
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>)
// CHECK-DAG: %[[XD:.*]] = ds.cast %[[X]] to f64 : (tensor<4xf32>) -> tensor<4xf64>
// CHECK-DAG: %[[W:.*]] = ds.weight @w : tensor<4xf32>
// CHECK-DAG: %[[WD:.*]] = ds.cast %[[W]] to f64
// CHECK-DAG: %[[C:.*]] = ds.constant dense<5.000000e-01> : tensor<f64>
// CHECK: %[[A:.*]] = ds.binary mul %[[XD]], %[[C]] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
// CHECK: %[[I1:.*]] = ds.cast %[[I]] to f64 : (tensor<4xi64>) -> tensor<4xf64>
// CHECK: %[[B:.*]] = ds.binary add %[[A]], %[[WD]]
// CHECK: %[[Y:.*]] = ds.binary add %[[B]], %[[I1]]
// CHECK: %[[R:.*]] = ds.cast %[[Y]] to f32 : (tensor<4xf64>) -> tensor<4xf32>
// CHECK: return %[[R]], %[[I]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [64, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @doc(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  %w = ds.weight @w : tensor<4xf32>
  %c = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.cast %i to f32 : (tensor<4xi64>) -> tensor<4xf32>
  %2 = ds.binary add %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.binary add %2, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3, %i : tensor<4xf32>, tensor<4xi64>
}

// Floats of eight bits are storage, and bits are those of the type that was written.
//
// CHECK-LABEL: func.func @keeps_narrow_types_and_bits
// CHECK: %[[Q:.*]] = ds.cast %{{.*}} to f8E4M3FN : (tensor<4xf64>) -> tensor<4xf8E4M3FN>
// CHECK: ds.cast %[[Q]] to f64 : (tensor<4xf8E4M3FN>) -> tensor<4xf64>
// CHECK: %[[BACK:.*]] = ds.cast %{{.*}} to f32 : (tensor<4xf64>) -> tensor<4xf32>
// CHECK: ds.bitcast %[[BACK]] to i32 : (tensor<4xf32>) -> tensor<4xi32>
func.func @keeps_narrow_types_and_bits(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = ds.cast %x to f8E4M3FN : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  %1 = ds.cast %0 to f32 : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
  %2 = ds.bitcast %x to i32 : (tensor<4xf32>) -> tensor<4xi32>
  return %1, %2 : tensor<4xf32>, tensor<4xi32>
}
