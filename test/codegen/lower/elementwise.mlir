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

// -----

// A step of a recurrence: rows of one tensor are read from column 3 on, those of another from a row that is known at run
// time, and the result is stored twice: as it is, and as a row of a third tensor.
// CHECK-LABEL: func.func @boxes
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[R:[a-z0-9]+]]: memref<?xf32>, %[[Z:[a-z0-9]+]]: memref<?xf32>, %[[N:[a-z0-9]+]]: index, %[[S:[a-z0-9]+]]: index, %[[T:[a-z0-9]+]]: index
// CHECK-SAME: ds.writes = [unit, "8*d0"]
// CHECK: memref.reinterpret_cast %[[X]] to offset: [%c3], sizes: [%[[N]], 2], strides: [8, 1]
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[N]]
// CHECK-NEXT: %[[FROM:.*]] = arith.muli %[[ROW]], %[[T]]
// CHECK: memref.reinterpret_cast %[[Y]] to offset: [%[[FROM]]], sizes: [%[[N]], 2], strides: [2, 1]
// CHECK: memref.reinterpret_cast %[[R]] to offset: [%c0], sizes: [%[[N]], 2], strides: [2, 1]
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[N]]
// CHECK-NEXT: %[[TO:.*]] = arith.muli %[[ROW]], %[[T]]
// CHECK: memref.reinterpret_cast %[[Z]] to offset: [%[[TO]]], sizes: [%[[N]], 2], strides: [2, 1]
// CHECK: linalg.generic
// CHECK: %[[V:.*]] = arith.addf
// CHECK-NEXT: linalg.yield %[[V]], %[[V]]
ds.kernel @boxes sizes 3 arguments [["d0", 8], ["d1", "d0", 2], ["d1", "d0", 2]] {
^bb0(%x: tensor<?x8xf32>, %y: tensor<?x?x2xf32>, %z: tensor<?x?x2xf32>):
  %0 = ds.slice %x starts [0, 3] sizes ["d0", 2] steps [1, 1] {result_sizes = [["d0", 2]]} : (tensor<?x8xf32>) -> tensor<?x2xf32>
  %1 = ds.slice %y starts ["d2", 0, 0] sizes [1, "d0", 2] steps [1, 1, 1] {result_sizes = [[1, "d0", 2]]} : (tensor<?x?x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.reshape %1 ["d0", 2] {result_sizes = [["d0", 2]]} : (tensor<1x?x2xf32>) -> tensor<?x2xf32>
  %3 = ds.binary add %0, %2 {result_sizes = [["d0", 2]]} : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %4 = ds.reshape %3 [1, "d0", 2] {result_sizes = [[1, "d0", 2]]} : (tensor<?x2xf32>) -> tensor<1x?x2xf32>
  %5 = ds.insert %4 into %z starts ["d2", 0, 0] {result_sizes = [["d1", "d0", 2]]} : (tensor<1x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
  ds.yield %3, %5 : tensor<?x2xf32>, tensor<?x?x2xf32>
}
