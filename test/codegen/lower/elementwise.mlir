// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s

// One loop over all elements: item i of the grid touches element i of @doc's first operand and of its result alone, and its
// scalar each time. Whoever launches the kernel may go on with parts of them.
// CHECK-LABEL: func.func @doc(
// CHECK-SAME: ds.elementwise = array<i1: true, false, true>
// CHECK-SAME: ds.grid = "4*d0"
ds.kernel @doc sizes 1 arguments [["d0", 4], []] {
^bb0(%x: tensor<?x4xf32>, %s: tensor<f32>):
  %0 = ds.binary mul %x, %s {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  ds.yield %0 : tensor<?x4xf32>
}

// -----

// Not of an operand that is also read elsewhere, nor of one that is read from its second element on.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: ds.elementwise = array<i1: false, false, true>
ds.kernel @moved sizes 0 arguments [[9], [9]] {
^bb0(%x: tensor<9xf32>, %y: tensor<9xf32>):
  %0 = ds.slice %x starts [0] sizes [8] steps [1] : (tensor<9xf32>) -> tensor<8xf32>
  %1 = ds.slice %x starts [1] sizes [8] steps [1] : (tensor<9xf32>) -> tensor<8xf32>
  %2 = ds.slice %y starts [1] sizes [8] steps [1] : (tensor<9xf32>) -> tensor<8xf32>
  %3 = ds.binary add %0, %1 {result_sizes = [[8]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = ds.binary add %3, %2 {result_sizes = [[8]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  ds.yield %4 : tensor<8xf32>
}

// -----

// Rows of a broadcast are items of their own.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: ds.elementwise
// CHECK-SAME: ds.grid = "d0"
ds.kernel @rows sizes 1 arguments [["d0", 4], [4]] {
^bb0(%x: tensor<?x4xf32>, %b: tensor<4xf32>):
  %0 = ds.binary add %x, %b {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  ds.yield %0 : tensor<?x4xf32>
}
