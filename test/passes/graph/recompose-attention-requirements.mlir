// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// What the chain requires of sizes and the attention does not.

// A mask that hides nothing had to fit the scores all the same; the batch grows with it where it is 1.
// CHECK-LABEL: func.func @void_mask
// CHECK: ds.require "b" broadcast with "m"
// CHECK-NOT: ds.require
// CHECK: ds.attention
// CHECK-NOT: ds.require
func.func @void_mask(%q: tensor<?x2x5x8xf32> {ds.dims = ["b", 2, 5, 8]}, %k: tensor<?x2x7x8xf32> {ds.dims = ["b", 2, 7, 8]},
                     %v: tensor<?x2x7x8xf32> {ds.dims = ["b", 2, 7, 8]}, %mask: tensor<?xf32> {ds.dims = ["m"]})
    -> tensor<?x2x5x8xf32> {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %none = ds.broadcast %zero ["m", 1, 5, 7] : (tensor<f32>) -> tensor<?x1x5x7xf32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x2x5x8xf32>, tensor<?x2x7x8xf32>) -> tensor<?x2x5x7xf32>
  %1 = ds.binary add %0, %none : (tensor<?x2x5x7xf32>, tensor<?x1x5x7xf32>) -> tensor<?x2x5x7xf32>
  %s = ds.softmax %1 axis 3 log false : (tensor<?x2x5x7xf32>) -> tensor<?x2x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x2x5x7xf32>, tensor<?x2x7x8xf32>) -> tensor<?x2x5x8xf32>
  return %y : tensor<?x2x5x8xf32>
}

// -----

// Nothing is left to say where the sizes fit by their names, or where the attention asks for the same.
// CHECK-LABEL: func.func @fits
// CHECK-NOT: ds.require
// CHECK: ds.attention
// CHECK-NOT: ds.require
// CHECK: return
func.func @fits(%q: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]},
                %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "u", 8]}, %mask: tensor<?x1x?x?xf32> {ds.dims = ["b", 1, "s", "t"]})
    -> tensor<?x2x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x?xf32>
  %1 = ds.binary add %0, %mask : (tensor<?x2x?x?xf32>, tensor<?x1x?x?xf32>) -> tensor<?x2x?x?xf32>
  %s = ds.softmax %1 axis 3 log false : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// A reshape that split batch and heads for the mask had to have all elements; those of the query have the same batch.
// CHECK-LABEL: func.func @split_scores
// CHECK-NOT: ds.require
// CHECK: ds.reshape %arg0 ["b", 2, 5, 8]
// CHECK: ds.attention
// CHECK-NOT: ds.require
// CHECK: return
func.func @split_scores(%q: tensor<?x5x8xf32> {ds.dims = ["2*n", 5, 8]}, %k: tensor<?x7x8xf32> {ds.dims = ["2*n", 7, 8]},
                        %v: tensor<?x7x8xf32> {ds.dims = ["2*n", 7, 8]}, %mask: tensor<?x1x5x7xf32> {ds.dims = ["b", 1, 5, 7]})
    -> tensor<?x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x5x8xf32>, tensor<?x7x8xf32>) -> tensor<?x5x7xf32>
  %1 = ds.reshape %0 ["b", 2, 5, 7] : (tensor<?x5x7xf32>) -> tensor<?x2x5x7xf32>
  %2 = ds.binary add %1, %mask : (tensor<?x2x5x7xf32>, tensor<?x1x5x7xf32>) -> tensor<?x2x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<?x2x5x7xf32>) -> tensor<?x2x5x7xf32>
  %s = ds.reshape %3 ["2*b", 5, 7] : (tensor<?x2x5x7xf32>) -> tensor<?x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x5x7xf32>, tensor<?x7x8xf32>) -> tensor<?x5x8xf32>
  return %y : tensor<?x5x8xf32>
}
