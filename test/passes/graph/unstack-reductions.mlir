// RUN: ds-opt %s --split-input-file --ds-unstack-reductions | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-unstack-reductions --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK: %[[A:.*]] = ds.reshape %arg0 ["n", 8] : (tensor<?x8x1xf32>) -> tensor<?x8xf32>
// CHECK: %[[B:.*]] = ds.reshape %arg1 ["n", 8]
// CHECK: %[[AB:.*]] = ds.binary max %[[A]], %[[B]] : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: ds.binary max %[[AB]], %{{.*}} {ds.values = ["y"]}
func.func @doc(%a: tensor<?x8x1xf32> {ds.dims = ["n", 8, 1]}, %b: tensor<?x8x1xf32> {ds.dims = ["n", 8, 1]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.concat 2 %a, %b, %a : (tensor<?x8x1xf32>, tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x3xf32>
  %1 = ds.reduce max %0 axes [2] keep false {ds.values = ["y"]} : (tensor<?x8x3xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// With the axis kept; sums and products of f32, extremes of every number.
// CHECK-LABEL: func.func @kinds
// CHECK-NOT: ds.reduce
// CHECK: ds.binary min %arg0, %arg1 : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
// CHECK: ds.binary add %arg2, %arg3 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK: ds.binary mul %arg2, %arg3
func.func @kinds(%a: tensor<1x8xi8>, %b: tensor<1x8xi8>, %c: tensor<1x8xf32>, %d: tensor<1x8xf32>) -> (tensor<1x8xi8>, tensor<1x8xf32>, tensor<1x8xf32>) {
  %0 = ds.concat 0 %a, %b : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<2x8xi8>
  %1 = ds.reduce min %0 axes [0] keep true : (tensor<2x8xi8>) -> tensor<1x8xi8>
  %2 = ds.concat 0 %c, %d : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %3 = ds.reduce sum %2 axes [0] keep true : (tensor<2x8xf32>) -> tensor<1x8xf32>
  %4 = ds.reduce prod %2 axes [0] keep true : (tensor<2x8xf32>) -> tensor<1x8xf32>
  return %1, %3, %4 : tensor<1x8xi8>, tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// Kept: parts of more than one element, other axes or more of them, means, and sums that are rounded once.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: ds.binary
func.func @kept(%a: tensor<2x1xf32>, %b: tensor<2x2xf32>, %h: tensor<2x1xf16>) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<2xf16>) {
  %0 = ds.concat 1 %a, %b : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  %1 = ds.reduce max %0 axes [1] keep false : (tensor<2x3xf32>) -> tensor<2xf32>
  %2 = ds.concat 1 %a, %a : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %3 = ds.reduce max %2 axes [0] keep false : (tensor<2x2xf32>) -> tensor<2xf32>
  %4 = ds.reduce max %2 axes [0, 1] keep false : (tensor<2x2xf32>) -> tensor<f32>
  %5 = ds.reduce mean %2 axes [1] keep false : (tensor<2x2xf32>) -> tensor<2xf32>
  %6 = ds.concat 1 %h, %h : (tensor<2x1xf16>, tensor<2x1xf16>) -> tensor<2x2xf16>
  %7 = ds.reduce sum %6 axes [1] keep false : (tensor<2x2xf16>) -> tensor<2xf16>
  return %1, %3, %4, %5, %7 : tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<2xf16>
}
