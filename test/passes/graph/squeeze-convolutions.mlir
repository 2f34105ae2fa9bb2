// RUN: ds-opt %s --split-input-file --ds-squeeze-convolutions | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-squeeze-convolutions --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[X:.*]] = ds.reshape %arg0 ["b", 4, 9] : (tensor<?x4x9x1xf32>) -> tensor<?x4x9xf32>
// CHECK-DAG: %[[W:.*]] = ds.reshape %arg1 [6, 2, 3] : (tensor<6x2x3x1xf32>) -> tensor<6x2x3xf32>
// CHECK: %[[Y:.*]] = ds.conv %[[X]], %[[W]], %arg2 strides [2] pads [1, 0] dilations [1] groups 2 : (tensor<?x4x9xf32>, tensor<6x2x3xf32>, tensor<6xf32>) -> tensor<?x6x4xf32>
// CHECK: ds.reshape %[[Y]] ["b", 6, 4, 1] {ds.values = ["y"]}
func.func @doc(%x: tensor<?x4x9x1xf32> {ds.dims = ["b", 4, 9, 1]}, %w: tensor<6x2x3x1xf32>, %b: tensor<6xf32>) -> tensor<?x6x4x1xf32> attributes {ds.entry} {
  %y = ds.conv %x, %w, %b strides [2, 3] pads [1, 0, 0, 0] dilations [1, 2] groups 2 {ds.values = ["y"]} : (tensor<?x4x9x1xf32>, tensor<6x2x3x1xf32>, tensor<6xf32>) -> tensor<?x6x4x1xf32>
  return %y : tensor<?x6x4x1xf32>
}

// -----

// Two axes go where two have one pixel; the first stays, whatever it has.
// CHECK-LABEL: func.func @single
// CHECK: ds.conv %{{.*}}, %{{.*}} strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<2x3x1xf32>, tensor<5x3x1xf32>) -> tensor<2x5x1xf32>
func.func @single(%x: tensor<2x3x1x1x1xf32>, %w: tensor<5x3x1x1x1xf32>) -> tensor<2x5x1x1x1xf32> {
  %y = ds.conv %x, %w strides [1, 1, 1] pads [0, 0, 0, 0, 0, 0] dilations [1, 1, 1] groups 1 : (tensor<2x3x1x1x1xf32>, tensor<5x3x1x1x1xf32>) -> tensor<2x5x1x1x1xf32>
  return %y : tensor<2x5x1x1x1xf32>
}

// -----

// Kept: padding on either side, taps that read it, sizes that only the run knows, and axes of one pixel before others.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: ds.reshape
func.func @kept(%x: tensor<2x3x4x1xf32>, %w: tensor<5x3x2x1xf32>, %v: tensor<5x3x2x2xf32>, %d: tensor<2x3x4x?xf32>, %f: tensor<2x3x1x4xf32>, %u: tensor<5x3x1x2xf32>)
    -> (tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32>, tensor<2x5x3x1xf32>, tensor<2x5x3x?xf32>, tensor<2x5x1x3xf32>) {
  %0 = ds.conv %x, %w strides [1, 1] pads [0, 0, 0, 1] dilations [1, 1] groups 1 : (tensor<2x3x4x1xf32>, tensor<5x3x2x1xf32>) -> tensor<2x5x3x2xf32>
  %1 = ds.conv %x, %w strides [1, 1] pads [0, 1, 0, 0] dilations [1, 1] groups 1 : (tensor<2x3x4x1xf32>, tensor<5x3x2x1xf32>) -> tensor<2x5x3x2xf32>
  %2 = ds.conv %x, %v strides [1, 1] pads [0, 1, 0, 0] dilations [1, 1] groups 1 : (tensor<2x3x4x1xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x3x1xf32>
  %3 = ds.conv %d, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<2x3x4x?xf32>, tensor<5x3x2x1xf32>) -> tensor<2x5x3x?xf32>
  %4 = ds.conv %f, %u strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<2x3x1x4xf32>, tensor<5x3x1x2xf32>) -> tensor<2x5x1x3xf32>
  return %0, %1, %2, %3, %4 : tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32>, tensor<2x5x3x1xf32>, tensor<2x5x3x?xf32>, tensor<2x5x1x3xf32>
}
