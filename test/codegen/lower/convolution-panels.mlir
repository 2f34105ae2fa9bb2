// Pixels are shared out among panels that are as wide as each other, give or take a vector; where an image does not
// nearly fill its vectors, panels go on in the next one.
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512" --convert-ds-to-linalg="lanes=16" | FileCheck %s

// 196 pixels of one image are 13 vectors: four panels, one of four vectors and three of three. Two parts of 32 filters.
// CHECK-LABEL: func.func @image
// CHECK-SAME: ds.grid = 8 : i64
// Widths are asked for once each, the widest first; no panel has one or two vectors.
// CHECK: %[[IS_FOUR:.*]] = arith.cmpi eq, %[[COUNT:.*]], %c4{{.*}} : index
// CHECK: scf.if %[[IS_FOUR]]
// CHECK: vector<16xf32>
// CHECK: arith.cmpi eq, %[[COUNT]], %c3{{.*}} : index
// CHECK-NOT: arith.cmpi eq, %[[COUNT]],
// CHECK: return
ds.kernel @image sizes 0 arguments [[1, 4, 14, 14], [64, 4, 3, 3]] {
^bb0(%x: tensor<1x4x14x14xf32>, %w: tensor<64x4x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [[1, 64, 14, 14]]} : (tensor<1x4x14x14xf32>, tensor<64x4x3x3xf32>) -> tensor<1x64x14x14xf32>
  ds.yield %0 : tensor<1x64x14x14xf32>
}

// -----

// 49 pixels leave 15 lanes of 64 empty: all images are one row of pixels, in panels of 48.
// CHECK-LABEL: func.func @joined
// CHECK-SAME: ds.grid = "2*floordiv(49*d0 + 47, 48)"
ds.kernel @joined sizes 1 arguments [["d0", 4, 7, 7], [64, 4, 3, 3]] {
^bb0(%x: tensor<?x4x7x7xf32>, %w: tensor<64x4x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [["d0", 64, 7, 7]]} : (tensor<?x4x7x7xf32>, tensor<64x4x3x3xf32>) -> tensor<?x64x7x7xf32>
  ds.yield %0 : tensor<?x64x7x7xf32>
}

// -----

// 784 pixels are whole vectors: panels end with their image.
// CHECK-LABEL: func.func @apart
// CHECK-SAME: ds.grid = "34*d0"
ds.kernel @apart sizes 1 arguments [["d0", 4, 28, 28], [64, 4, 3, 3]] {
^bb0(%x: tensor<?x4x28x28xf32>, %w: tensor<64x4x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [["d0", 64, 28, 28]]} : (tensor<?x4x28x28xf32>, tensor<64x4x3x3xf32>) -> tensor<?x64x28x28xf32>
  ds.yield %0 : tensor<?x64x28x28xf32>
}
