// RUN: ds-opt %s --split-input-file --ds-quantize-activations --verify-diagnostics | FileCheck %s

// Rows that two products read are quantized once. The bias is added last, to floats.
// CHECK-LABEL: ds.recipe @folded
// CHECK: %[[SUM:.*]] = ds.reduce sum %{{.*}} axes [0] keep false : (tensor<4x8xi32>) -> tensor<8xi32>
// CHECK: ds.binary mul %[[SUM]], %{{.*}} : (tensor<8xi32>, tensor<i32>)
// CHECK-LABEL: func.func @doc
// CHECK: %[[Q:.*]], %[[R:.*]] = ds.quantize_rows %arg0 : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
// CHECK: %[[W:.*]] = ds.weight @w : tensor<4x8xi8>
// CHECK-DAG: %[[M:.*]] = ds.weight @folded : tensor<8xi32>
// CHECK-DAG: %[[S:.*]] = ds.weight @folded_0 : tensor<8xf32>
// CHECK: %[[P:.*]] = ds.linear %[[Q]], %[[W]], %[[M]] : (tensor<?x4xui8>, tensor<4x8xi8>, tensor<8xi32>) -> tensor<?x8xi32>
// CHECK: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK: %[[A:.*]] = ds.binary mul %[[F]], %[[S]]
// CHECK: %[[B:.*]] = ds.binary mul %[[A]], %[[R]]
// CHECK: %[[Y:.*]] = ds.binary add %[[B]], %arg1
// CHECK-NOT: ds.quantize_rows
// CHECK: ds.linear %[[Q]]
// CHECK: return %[[Y]]
func.func @doc(%x: tensor<?x4xf32>, %bias: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x8xi8>
  %s = ds.weight @s : tensor<1x8xf32>
  %0 = ds.linear %x, %w, %bias scales %s : (tensor<?x4xf32>, tensor<4x8xi8>, tensor<8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %1 = ds.linear %x, %w scales %s : (tensor<?x4xf32>, tensor<4x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 32] : tensor<4x8xi8>
  ds.yield %0 : tensor<4x8xi8>
}
ds.recipe @s {
  %0 = ds.source "m" [32, 32] : tensor<1x8xf32>
  ds.yield %0 : tensor<1x8xf32>
}

// -----

// CHECK-LABEL: func.func @kept
// CHECK-NOT: ds.quantize_rows
func.func @kept(%x: tensor<2x4xf32>, %v: tensor<4x8xf32>, %c: tensor<4x8xi8>, %d: tensor<4x8xi4>, %s: tensor<1x8xf32>,
                %t: tensor<2x8xf32>, %z: tensor<1x8xi8>) attributes {ds.entry} {
  // expected-remark @+1 {{rows stay floats: the weight is not quantized}}
  %0 = ds.linear %x, %v : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{rows stay floats: the weight has groups, zero points or fewer than 8 bits, or is packed}}
  %1 = ds.linear %x, %c scales %t {group = 2 : i64} : (tensor<2x4xf32>, tensor<4x8xi8>, tensor<2x8xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{rows stay floats: the weight has groups, zero points or fewer than 8 bits, or is packed}}
  %2 = ds.linear %x, %c scales %s zero_points %z : (tensor<2x4xf32>, tensor<4x8xi8>, tensor<1x8xf32>, tensor<1x8xi8>) -> tensor<2x8xf32>
  // expected-remark @+1 {{rows stay floats: the weight has groups, zero points or fewer than 8 bits, or is packed}}
  %3 = ds.linear %x, %d scales %s : (tensor<2x4xf32>, tensor<4x8xi4>, tensor<1x8xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{rows stay floats: its weight is no constant}}
  %4 = ds.linear %x, %c scales %s : (tensor<2x4xf32>, tensor<4x8xi8>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return
}
