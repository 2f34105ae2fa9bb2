// An item of the grid is a panel of pixels and a part of the filters: a panel is gathered once by each thread that has
// some of its parts, and only these are multiplied.
// RUN: ds-opt %s --ds-schedule-kernels="machine=512 rows=6 columns=64" --convert-ds-to-linalg="lanes=16" | FileCheck %s

// 49 pixels are one panel, 300 filters three parts of 128 or less.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: %[[BEGIN:arg[0-9]+]]: index, %[[END:arg[0-9]+]]: index, %{{arg[0-9]+}}: memref<?xi8>) -> i32
// CHECK-SAME: ds.grid = 3 : i64
// CHECK: scf.for %[[ITEM:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[FIRST:.*]] = arith.muli %[[ITEM]], %[[PARTS:.*]] : index
// CHECK: %[[BEHIND:.*]] = arith.subi %[[BEGIN]], %[[FIRST]]
// CHECK: %[[FROM:.*]] = arith.maxsi %[[BEHIND]], %{{.*}}
// CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK: %[[TO:.*]] = arith.minsi %[[LEFT]], %[[PARTS]]
// CHECK: scf.for %[[PART:.*]] = %[[FROM]] to %[[TO]] step
// CHECK: arith.muli %[[PART]], %{{.*}}
ds.kernel @parts sizes 0 arguments [[1, 4, 7, 7], [300, 4, 3, 3]] {
^bb0(%x: tensor<1x4x7x7xf32>, %w: tensor<300x4x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [[1, 300, 7, 7]]} : (tensor<1x4x7x7xf32>, tensor<300x4x3x3xf32>) -> tensor<1x300x7x7xf32>
  ds.yield %0 : tensor<1x300x7x7xf32>
}

// Half of few filters is a part, no less than 32: of 64 two.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: ds.grid = 2 : i64
ds.kernel @halves sizes 0 arguments [[1, 4, 7, 7], [64, 4, 3, 3]] {
^bb0(%x: tensor<1x4x7x7xf32>, %w: tensor<64x4x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [[1, 64, 7, 7]]} : (tensor<1x4x7x7xf32>, tensor<64x4x3x3xf32>) -> tensor<1x64x7x7xf32>
  ds.yield %0 : tensor<1x64x7x7xf32>
}
