// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Numbers that a window nearly chooses, added: each function fails one condition.

// Zero times infinity outside of a window: no number.
// CHECK-LABEL: func.func @infinity_times_zero
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @infinity_times_zero(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<1.0> : tensor<f32>
  %4 = ds.constant dense<0x7F800000> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<0.0> : tensor<f32>
  %7 = ds.binary mul %5, %6 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// Inside.
// CHECK-LABEL: func.func @infinity_inside
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @infinity_inside(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0x7F800000> : tensor<f32>
  %4 = ds.constant dense<1.0> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<0.0> : tensor<f32>
  %7 = ds.binary mul %5, %6 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// Numbers of a type that is not followed, cast to one that is.
// CHECK-LABEL: func.func @added_through_8_bits
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @added_through_8_bits(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.cast %2 to i8 : (tensor<7x7xi1>) -> tensor<7x7xi8>
  %4 = ds.cast %3 to f32 : (tensor<7x7xi8>) -> tensor<7x7xf32>
  %5 = ds.constant dense<1.0> : tensor<f32>
  %6 = ds.binary sub %4, %5 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %7 = ds.constant dense<1.0e+9> : tensor<f32>
  %8 = ds.binary mul %6, %7 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %9 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.binary add %9, %8 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %12 : tensor<2x4x7x8xf32>
}

// -----

// Numbers for each head of two batches, joined.
// CHECK-LABEL: func.func @added_by_joined_heads
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @added_by_joined_heads(%arg0: tensor<1x4x7x8xf32>, %arg1: tensor<1x4x7x8xf32>, %arg2: tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.broadcast %5 [2, 2, 7, 7] : (tensor<7x7xf32>) -> tensor<2x2x7x7xf32>
  %7 = ds.reshape %6 [4, 7, 7] : (tensor<2x2x7x7xf32>) -> tensor<4x7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x4x7x8xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<1x4x7x7xf32>, tensor<4x7x7xf32>) -> tensor<1x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<1x4x7x7xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32>
  return %11 : tensor<1x4x7x8xf32>
}

// -----

// A stored triangle of numbers in another shape.
// CHECK-LABEL: func.func @turned_numbers
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @turned_numbers(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<[[0.0, -1.0e+9, -1.0e+9, -1.0e+9, -1.0e+9], [0.0, 0.0, -1.0e+9, -1.0e+9, -1.0e+9], [0.0, 0.0, 0.0, -1.0e+9, -1.0e+9], [0.0, 0.0, 0.0, 0.0, -1.0e+9], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<7x5xf32>
  %1 = ds.reshape %0 [5, 7] : (tensor<7x5xf32>) -> tensor<5x7xf32>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary add %2, %1 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}
