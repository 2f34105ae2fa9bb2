// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Columns that are nearly counted, and places that a run nearly gives: each function fails one condition.

// A running sum of ones.
// CHECK-LABEL: func.func @counted_from_one
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right -1 scale 1.000000e+00
func.func @counted_from_one(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.broadcast %2 [1, 7] : (tensor<i64>) -> tensor<1x7xi64>
  %4 = ds.cumulative sum %3 axis 1 exclusive false reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary le %4, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// Of the ones before.
// CHECK-LABEL: func.func @counted_from_zero
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @counted_from_zero(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.broadcast %2 [1, 7] : (tensor<i64>) -> tensor<1x7xi64>
  %4 = ds.cumulative sum %3 axis 1 exclusive true reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary le %4, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// From the last column on.
// CHECK-LABEL: func.func @counted_backward
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @counted_backward(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.broadcast %2 [1, 7] : (tensor<i64>) -> tensor<1x7xi64>
  %4 = ds.cumulative sum %3 axis 1 exclusive false reverse true : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary le %4, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// A running product.
// CHECK-LABEL: func.func @running_product
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @running_product(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.broadcast %2 [1, 7] : (tensor<i64>) -> tensor<1x7xi64>
  %4 = ds.cumulative prod %3 axis 1 exclusive false reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary le %4, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// A running sum of twos.
// CHECK-LABEL: func.func @counted_by_two
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @counted_by_two(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<2> : tensor<i64>
  %3 = ds.broadcast %2 [1, 7] : (tensor<i64>) -> tensor<1x7xi64>
  %4 = ds.cumulative sum %3 axis 1 exclusive false reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary le %4, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// Of columns and one.
// CHECK-LABEL: func.func @sum_of_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @sum_of_columns(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.constant dense<1> : tensor<i64>
  %4 = ds.binary add %2, %3 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %5 = ds.cumulative sum %4 axis 1 exclusive false reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %6 = ds.binary le %5, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// Of what a run gives.
// CHECK-LABEL: func.func @ones_of_a_run
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @ones_of_a_run(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<1x7xi64>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cumulative sum %arg3 axis 1 exclusive false reverse false : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %3 = ds.binary le %2, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %8 : tensor<2x4x7x8xf32>
}

// -----

// Places that a run gives, in 32 bits.
// CHECK-LABEL: func.func @positions_of_32_bits
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @positions_of_32_bits(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi32> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.cast %1 to i32 : (tensor<1x?xi64>) -> tensor<1x?xi32>
  %3 = ds.binary le %2, %arg3 : (tensor<1x?xi32>, tensor<?x1xi32>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// A bound for each place.
// CHECK-LABEL: func.func @positions_by_column
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @positions_by_column(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x?xi64> {ds.dims = ["s", "p + s"], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %7 : tensor<2x4x?x8xf32>
}

// -----

// One length for all rows, beside columns that are repeated for them.
// CHECK-LABEL: func.func @one_length
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @one_length(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<1xi64> {ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.broadcast %1 ["s", "p + s"] : (tensor<1x?xi64>) -> tensor<?x?xi64>
  %3 = ds.binary le %2, %arg3 : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// Of two axes.
// CHECK-LABEL: func.func @one_length_of_two_axes
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @one_length_of_two_axes(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<1x1xi64> {ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.broadcast %1 ["s", "p + s"] : (tensor<1x?xi64>) -> tensor<?x?xi64>
  %3 = ds.binary le %2, %arg3 : (tensor<?x?xi64>, tensor<1x1xi64>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// The place of one row.
// CHECK-LABEL: func.func @position_of_one_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @position_of_one_row(%arg0: tensor<2x4x1x8xf32>, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "t", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "t", 8]}, %arg3: tensor<1x1xi64> {ds.bound = 9}) -> tensor<2x4x1x8xf32> {
  %0 = ds.iota 0 [1, 1] : tensor<1x1xi64>
  %1 = ds.iota 1 [1, "t"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<1x1xi64>) -> tensor<1x?xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x1x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x1x?xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<1x?xi1>, tensor<2x4x1x?xf32>, tensor<f32>) -> tensor<2x4x1x?xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x1x?xf32>) -> tensor<2x4x1x?xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x1x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x1x8xf32>
  return %7 : tensor<2x4x1x8xf32>
}

// -----

// Columns and rows together, beside places that a run gives.
// CHECK-LABEL: func.func @positions_beside_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @positions_beside_rows(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.binary add %1, %0 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
  %3 = ds.binary le %2, %arg3 : (tensor<?x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// Twice the columns.
// CHECK-LABEL: func.func @positions_beside_twice_the_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @positions_beside_twice_the_columns(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.binary add %1, %1 : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  %3 = ds.binary le %2, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// Columns of each head.
// CHECK-LABEL: func.func @positions_beside_heads
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @positions_beside_heads(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.iota 0 [4, 1, 1] : tensor<4x1x1xi64>
  %3 = ds.binary add %1, %2 : (tensor<1x?xi64>, tensor<4x1x1xi64>) -> tensor<4x1x?xi64>
  %4 = ds.binary le %3, %arg3 : (tensor<4x1x?xi64>, tensor<?x1xi64>) -> tensor<4x?x?xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<4x?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// A length that a run gives and one more, which may wrap: places that a run gives.
// CHECK-LABEL: func.func @length_of_a_run
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %{{[0-9a-z]+}} right 0 scale 1.000000e+00
func.func @length_of_a_run(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<1xi64> {ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.binary add %arg3, %2 : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %4 = ds.binary add %0, %3 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %5 = ds.binary le %1, %4 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %10 : tensor<2x4x?x8xf32>
}

// -----

// In 32 bits.
// CHECK-LABEL: func.func @length_of_32_bits
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @length_of_32_bits(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<1xi32> {ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.cast %1 to i32 : (tensor<1x?xi64>) -> tensor<1x?xi32>
  %3 = ds.cast %0 to i32 : (tensor<?x1xi64>) -> tensor<?x1xi32>
  %4 = ds.constant dense<1> : tensor<i32>
  %5 = ds.binary add %arg3, %4 : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
  %6 = ds.binary add %3, %5 : (tensor<?x1xi32>, tensor<1xi32>) -> tensor<?x1xi32>
  %7 = ds.binary le %2, %6 : (tensor<1x?xi32>, tensor<?x1xi32>) -> tensor<?x?xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %12 : tensor<2x4x?x8xf32>
}
