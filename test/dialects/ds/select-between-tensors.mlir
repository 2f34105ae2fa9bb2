// What arith.select chooses between tensors by one element without axes is an op of ours; by an element of more it is not.
// RUN: ds-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @by_a_scalar
// CHECK: ds.select %arg0, %arg1, %arg2
func.func @by_a_scalar(%c: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %k = tensor.extract %c[] : tensor<i1>
  %0 = arith.select %k, %x, %y : tensor<4xf32>
  %1 = ds.unary neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @by_one_of_four
// CHECK: %[[K:.*]] = tensor.extract %arg0
// CHECK: arith.select %[[K]], %arg1, %arg2
func.func @by_one_of_four(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %two = arith.constant 2 : index
  %k = tensor.extract %c[%two] : tensor<4xi1>
  %0 = arith.select %k, %x, %y : tensor<4xf32>
  %1 = ds.unary neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
