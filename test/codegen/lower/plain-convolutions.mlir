// The reference computes a convolution element by element, in the order of its definition: nothing is packed for it.
// RUN: ds-opt %s --convert-ds-to-linalg="reference=true" | FileCheck %s --implicit-check-not=vector. --implicit-check-not=scratch
// RUN: ds-opt %s --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s --check-prefix=FAST

// CHECK-LABEL: func.func @conv(
// CHECK-SAME: ds.grid = 60
// CHECK: arith.mulf
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.addf
// FAST-LABEL: func.func @conv(
// FAST: vector.fma
ds.kernel @conv sizes 0 arguments [[1, 2, 4, 5], [3, 2, 3, 3]] {
^bb0(%x: tensor<1x2x4x5xf32>, %w: tensor<3x2x3x3xf32>):
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {result_sizes = [[1, 3, 4, 5]]} : (tensor<1x2x4x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x5xf32>
  ds.yield %0 : tensor<1x3x4x5xf32>
}
