// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Comparisons of places that are nearly a window: each function fails one condition, and the attention reads the mask.

// Columns of another name, repeated to as many as the key has: only a run tells whether they count.
// CHECK-LABEL: func.func @columns_by_another_name
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @columns_by_another_name(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?xf32> {ds.dims = ["t"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.iota 1 [1, "t"] : tensor<1x?xi64>
  %3 = ds.broadcast %2 [1, "p + s"] : (tensor<1x?xi64>) -> tensor<1x?xi64>
  %4 = ds.slice %3 starts [0, 0] sizes [1, "p + s"] steps [1, 1] : (tensor<1x?xi64>) -> tensor<1x?xi64>
  %5 = ds.binary add %1, %4 : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  %6 = ds.binary le %5, %0 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %11 : tensor<2x4x?x8xf32>
}

// -----

// Columns times more than an f32 holds for all of them.
// CHECK-LABEL: func.func @steep_in_f32
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @steep_in_f32(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %1 to f32 : (tensor<1x7xi64>) -> tensor<1x7xf32>
  %3 = ds.cast %0 to f32 : (tensor<7x1xi64>) -> tensor<7x1xf32>
  %4 = ds.constant dense<9.0> : tensor<f32>
  %5 = ds.binary mul %2, %4 : (tensor<1x7xf32>, tensor<f32>) -> tensor<1x7xf32>
  %6 = ds.constant dense<8.0> : tensor<f32>
  %7 = ds.binary mul %2, %6 : (tensor<1x7xf32>, tensor<f32>) -> tensor<1x7xf32>
  %8 = ds.binary sub %5, %7 : (tensor<1x7xf32>, tensor<1x7xf32>) -> tensor<1x7xf32>
  %9 = ds.binary le %8, %3 : (tensor<1x7xf32>, tensor<7x1xf32>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.constant dense<-1.0e+9> : tensor<f32>
  %12 = ds.select %9, %10, %11 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %13 = ds.softmax %12 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %14 = ds.matmul %13, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %14 : tensor<2x4x7x8xf32>
}

// -----

// Than an i32.
// CHECK-LABEL: func.func @steep_in_i32
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @steep_in_i32(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %1 to i32 : (tensor<1x7xi64>) -> tensor<1x7xi32>
  %3 = ds.cast %0 to i32 : (tensor<7x1xi64>) -> tensor<7x1xi32>
  %4 = ds.constant dense<1000> : tensor<i32>
  %5 = ds.binary mul %2, %4 : (tensor<1x7xi32>, tensor<i32>) -> tensor<1x7xi32>
  %6 = ds.constant dense<999> : tensor<i32>
  %7 = ds.binary mul %2, %6 : (tensor<1x7xi32>, tensor<i32>) -> tensor<1x7xi32>
  %8 = ds.binary sub %5, %7 : (tensor<1x7xi32>, tensor<1x7xi32>) -> tensor<1x7xi32>
  %9 = ds.binary le %8, %3 : (tensor<1x7xi32>, tensor<7x1xi32>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.constant dense<-1.0e+9> : tensor<f32>
  %12 = ds.select %9, %10, %11 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %13 = ds.softmax %12 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %14 = ds.matmul %13, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %14 : tensor<2x4x7x8xf32>
}

// -----

// Than an i64.
// CHECK-LABEL: func.func @steep_in_i64
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @steep_in_i64(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %1 to i64 : (tensor<1x7xi64>) -> tensor<1x7xi64>
  %3 = ds.cast %0 to i64 : (tensor<7x1xi64>) -> tensor<7x1xi64>
  %4 = ds.constant dense<1048578> : tensor<i64>
  %5 = ds.binary mul %2, %4 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %6 = ds.constant dense<1048577> : tensor<i64>
  %7 = ds.binary mul %2, %6 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %8 = ds.binary sub %5, %7 : (tensor<1x7xi64>, tensor<1x7xi64>) -> tensor<1x7xi64>
  %9 = ds.binary le %8, %3 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.constant dense<-1.0e+9> : tensor<f32>
  %12 = ds.select %9, %10, %11 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %13 = ds.softmax %12 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %14 = ds.matmul %13, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %14 : tensor<2x4x7x8xf32>
}

// -----

// Rows that are moved as far as an f32 rounds, and back.
// CHECK-LABEL: func.func @far_in_f32
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_in_f32(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %0 to f32 : (tensor<7x1xi64>) -> tensor<7x1xf32>
  %3 = ds.cast %1 to f32 : (tensor<1x7xi64>) -> tensor<1x7xf32>
  %4 = ds.constant dense<16777216.0> : tensor<f32>
  %5 = ds.binary add %2, %4 : (tensor<7x1xf32>, tensor<f32>) -> tensor<7x1xf32>
  %6 = ds.binary sub %5, %4 : (tensor<7x1xf32>, tensor<f32>) -> tensor<7x1xf32>
  %7 = ds.binary le %3, %6 : (tensor<1x7xf32>, tensor<7x1xf32>) -> tensor<7x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %12 : tensor<2x4x7x8xf32>
}

// -----

// As far as an i32 wraps.
// CHECK-LABEL: func.func @far_in_i32
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_in_i32(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %0 to i32 : (tensor<7x1xi64>) -> tensor<7x1xi32>
  %3 = ds.cast %1 to i32 : (tensor<1x7xi64>) -> tensor<1x7xi32>
  %4 = ds.constant dense<2147483646> : tensor<i32>
  %5 = ds.binary add %2, %4 : (tensor<7x1xi32>, tensor<i32>) -> tensor<7x1xi32>
  %6 = ds.binary sub %5, %4 : (tensor<7x1xi32>, tensor<i32>) -> tensor<7x1xi32>
  %7 = ds.binary le %3, %6 : (tensor<1x7xi32>, tensor<7x1xi32>) -> tensor<7x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %12 : tensor<2x4x7x8xf32>
}

// -----

// Further than an i64 may be: places that a run gives.
// CHECK-LABEL: func.func @far_in_i64
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %{{[0-9a-z]+}} right 0 scale 1.000000e+00
func.func @far_in_i64(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<2251799813685248> : tensor<i64>
  %3 = ds.binary add %0, %2 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %4 = ds.binary sub %3, %2 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %5 = ds.binary le %1, %4 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// Further than an f64 may be.
// CHECK-LABEL: func.func @far_in_f64
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_in_f64(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %0 to f64 : (tensor<7x1xi64>) -> tensor<7x1xf64>
  %3 = ds.cast %1 to f64 : (tensor<1x7xi64>) -> tensor<1x7xf64>
  %4 = ds.constant dense<2251799813685248.0> : tensor<f64>
  %5 = ds.binary add %2, %4 : (tensor<7x1xf64>, tensor<f64>) -> tensor<7x1xf64>
  %6 = ds.binary sub %5, %4 : (tensor<7x1xf64>, tensor<f64>) -> tensor<7x1xf64>
  %7 = ds.binary le %3, %6 : (tensor<1x7xf64>, tensor<7x1xf64>) -> tensor<7x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %12 : tensor<2x4x7x8xf32>
}

// -----

// Zeros added 64 times, which is more than are looked at: places that a run gives.
// CHECK-LABEL: func.func @too_many_sums
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %{{[0-9a-z]+}} right 0 scale 1.000000e+00
func.func @too_many_sums(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary sub %0, %0 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %3 = ds.binary add %2, %2 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %4 = ds.binary add %3, %3 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %5 = ds.binary add %4, %4 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %6 = ds.binary add %5, %5 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %7 = ds.binary add %6, %6 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %8 = ds.binary add %7, %7 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %9 = ds.binary add %0, %8 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %10 = ds.binary le %1, %9 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %11 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.constant dense<-1.0e+9> : tensor<f32>
  %13 = ds.select %10, %11, %12 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %14 = ds.softmax %13 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %15 = ds.matmul %14, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %15 : tensor<2x4x7x8xf32>
}

// -----

// Half a place.
// CHECK-LABEL: func.func @half_a_place
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @half_a_place(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.cast %1 to f64 : (tensor<1x7xi64>) -> tensor<1x7xf64>
  %3 = ds.cast %0 to f64 : (tensor<7x1xi64>) -> tensor<7x1xf64>
  %4 = ds.constant dense<0.5> : tensor<f64>
  %5 = ds.binary add %3, %4 : (tensor<7x1xf64>, tensor<f64>) -> tensor<7x1xf64>
  %6 = ds.binary lt %2, %5 : (tensor<1x7xf64>, tensor<7x1xf64>) -> tensor<7x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// A product of rows and columns.
// CHECK-LABEL: func.func @rows_times_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @rows_times_columns(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary mul %0, %1 : (tensor<7x1xi64>, tensor<1x7xi64>) -> tensor<7x7xi64>
  %3 = ds.binary add %1, %2 : (tensor<1x7xi64>, tensor<7x7xi64>) -> tensor<7x7xi64>
  %4 = ds.binary le %3, %0 : (tensor<7x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// Another distance for each head.
// CHECK-LABEL: func.func @places_by_head
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @places_by_head(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.iota 0 [4, 1, 1] : tensor<4x1x1xi64>
  %3 = ds.binary add %0, %2 : (tensor<7x1xi64>, tensor<4x1x1xi64>) -> tensor<4x7x1xi64>
  %4 = ds.binary le %1, %3 : (tensor<1x7xi64>, tensor<4x7x1xi64>) -> tensor<4x7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<4x7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// A distance that is bounded by the row.
// CHECK-LABEL: func.func @distance_from_the_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @distance_from_the_row(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary sub %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi64>
  %3 = ds.unary abs %2 : (tensor<7x7xi64>) -> tensor<7x7xi64>
  %4 = ds.binary le %3, %0 : (tensor<7x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// A bound of row and column together.
// CHECK-LABEL: func.func @sum_of_places
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @sum_of_places(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary add %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi64>
  %3 = ds.unary abs %2 : (tensor<7x7xi64>) -> tensor<7x7xi64>
  %4 = ds.constant dense<3> : tensor<i64>
  %5 = ds.binary le %3, %4 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// A distance that a run bounds.
// CHECK-LABEL: func.func @bound_of_a_run
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @bound_of_a_run(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<i64>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary sub %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi64>
  %3 = ds.unary abs %2 : (tensor<7x7xi64>) -> tensor<7x7xi64>
  %4 = ds.binary le %3, %arg3 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// A distance that is at least so much.
// CHECK-LABEL: func.func @far_from_the_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_from_the_row(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary sub %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi64>
  %3 = ds.unary abs %2 : (tensor<7x7xi64>) -> tensor<7x7xi64>
  %4 = ds.constant dense<3> : tensor<i64>
  %5 = ds.binary ge %3, %4 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}
