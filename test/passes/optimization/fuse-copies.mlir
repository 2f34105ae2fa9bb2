// RUN: ds-opt %s --split-input-file --ds-fuse-copies | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-copies --verify-numerics -o /dev/null

// What is needed in memory is copied once.
// CHECK-LABEL: func.func @copied
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: ds.slice
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: ds.transpose
// CHECK-NEXT: ds.yield
// CHECK: ds.softmax %[[Y]]
func.func @copied(%x: tensor<?x24xf32> {ds.dims = ["s", 24]}) -> tensor<2x?x4xf32> attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 8] sizes ["s", 8] steps [1, 1] : (tensor<?x24xf32>) -> tensor<?x8xf32>
  %1 = ds.reshape %0 ["s", 2, 4] : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
  %2 = ds.transpose %1 [1, 0, 2] : (tensor<?x2x4xf32>) -> tensor<2x?x4xf32>
  %3 = ds.softmax %2 axis 2 log false : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  return %3 : tensor<2x?x4xf32>
}

// -----

// One op is a copy already, and a reshape of all of it is a view.
// CHECK-LABEL: func.func @single
// CHECK-NOT: ds.fused
func.func @single(%x: tensor<?x24xf32> {ds.dims = ["s", 24]}) -> tensor<?x2x4xf32> attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 8] sizes ["s", 8] steps [1, 1] : (tensor<?x24xf32>) -> tensor<?x8xf32>
  %1 = ds.reshape %0 ["s", 2, 4] : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
  return %1 : tensor<?x2x4xf32>
}

// -----

// What is read elsewhere is in memory; the copy begins there.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT: %[[S:.*]] = ds.slice %arg0
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[S]]
// CHECK-NEXT: return %[[S]], %[[T]]
func.func @shared(%x: tensor<?x24xf32> {ds.dims = ["s", 24]}) -> (tensor<?x8xf32>, tensor<8x?xf32>) attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 8] sizes ["s", 8] steps [1, 1] : (tensor<?x24xf32>) -> tensor<?x8xf32>
  %1 = ds.transpose %0 [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<8x?xf32>
}

// -----

// Nor does a copy take in a reshape whose result no strides reach.
// CHECK-LABEL: func.func @unreachable
// CHECK-NEXT: %[[S:.*]] = ds.slice %arg0
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[S]]
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[R]]
// CHECK-NEXT: return %[[T]]
func.func @unreachable(%x: tensor<3x24xf32> {ds.dims = [3, 24]}) -> tensor<2x12xf32> attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 8] sizes [3, 8] steps [1, 1] : (tensor<3x24xf32>) -> tensor<3x8xf32>
  %1 = ds.reshape %0 [12, 2] : (tensor<3x8xf32>) -> tensor<12x2xf32>
  %2 = ds.transpose %1 [1, 0] : (tensor<12x2xf32>) -> tensor<2x12xf32>
  return %2 : tensor<2x12xf32>
}
