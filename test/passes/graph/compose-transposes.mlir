// RUN: ds-opt %s --split-input-file --ds-compose-transposes --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-compose-transposes --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[T:.*]] = ds.transpose %arg0 [0, 2, 1, 3] : (tensor<?x?x4x8xf32>) -> tensor<?x4x?x8xf32>
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]] ["4*b", "s", 8] {ds.values = ["y"]} : (tensor<?x4x?x8xf32>) -> tensor<?x?x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @doc(%x: tensor<?x?x4x8xf32> {ds.dims = ["b", "s", 4, 8]}) -> tensor<?x?x8xf32> attributes {ds.entry} {
  %0 = ds.transpose %x [0, 2, 3, 1] {ds.values = ["a"]} : (tensor<?x?x4x8xf32>) -> tensor<?x4x8x?xf32>
  %1 = ds.reshape %0 ["4*b", 8, "s"] : (tensor<?x4x8x?xf32>) -> tensor<?x8x?xf32>
  %2 = ds.transpose %1 [0, 2, 1] {ds.values = ["y"]} : (tensor<?x8x?xf32>) -> tensor<?x?x8xf32>
  return %2 : tensor<?x?x8xf32>
}

// -----

// Without a reshape; three in a row; axes of size 1 between, and behind.
// CHECK-LABEL: func.func @chains
// CHECK: %[[A:.*]] = ds.transpose %arg0 [2, 0, 1]
// CHECK: %[[B:.*]] = ds.transpose %arg1 [1, 3, 4, 0, 2]
// CHECK: %[[C:.*]] = ds.reshape %[[B]] ["n", 6] : (tensor<?x1x1x3x2xf32>) -> tensor<?x6xf32>
// CHECK: return %[[A]], %[[C]]
func.func @chains(%x: tensor<?x3x5xf32> {ds.dims = ["n", 3, 5]}, %y: tensor<3x?x2x1x1xf32> {ds.dims = [3, "n", 2, 1, 1]}) -> (tensor<5x?x3xf32>, tensor<?x6xf32>) attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0, 2] : (tensor<?x3x5xf32>) -> tensor<3x?x5xf32>
  %1 = ds.transpose %0 [2, 1, 0] : (tensor<3x?x5xf32>) -> tensor<5x?x3xf32>
  %2 = ds.transpose %y [0, 2, 1, 3, 4] : (tensor<3x?x2x1x1xf32>) -> tensor<3x2x?x1x1xf32>
  %3 = ds.reshape %2 [6, "n"] : (tensor<3x2x?x1x1xf32>) -> tensor<6x?xf32>
  %4 = ds.transpose %3 [1, 0] : (tensor<6x?xf32>) -> tensor<?x6xf32>
  return %1, %4 : tensor<5x?x3xf32>, tensor<?x6xf32>
}

// -----

// What was moved and moved back is what was there.
// CHECK-LABEL: func.func @back
// CHECK-NEXT: return %arg0
func.func @back(%x: tensor<?x3xf32> {ds.dims = ["n", 3]}) -> tensor<?x3xf32> attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
  %1 = ds.transpose %0 [1, 0] {ds.values = ["y"]} : (tensor<3x?xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// An axis that is split may be moved in part; both stay. So do transposes that others read, and sizes of 0, whose products
// say nothing.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-6: ds.transpose
func.func @stay(%x: tensor<?x8xf32> {ds.dims = ["n", 8]}, %y: tensor<2x3xf32>, %z: tensor<0x3x2xf32>) -> (tensor<2x?x4xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<5x0xf32>) attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
  %1 = ds.reshape %0 [2, 4, "n"] : (tensor<8x?xf32>) -> tensor<2x4x?xf32>
  // expected-remark@+1 {{not composed with the transpose before it: a reshape between them splits axes}}
  %2 = ds.transpose %1 [0, 2, 1] : (tensor<2x4x?xf32>) -> tensor<2x?x4xf32>
  %3 = ds.transpose %y [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %4 = ds.transpose %3 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %5 = ds.transpose %z [2, 1, 0] : (tensor<0x3x2xf32>) -> tensor<2x3x0xf32>
  %6 = ds.reshape %5 [0, 5] : (tensor<2x3x0xf32>) -> tensor<0x5xf32>
  // expected-remark@+1 {{not composed}}
  %7 = ds.transpose %6 [1, 0] : (tensor<0x5xf32>) -> tensor<5x0xf32>
  return %2, %3, %4, %7 : tensor<2x?x4xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<5x0xf32>
}
