// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Rows and columns of a flat index: each function fails one condition of reading them, and the attention reads the mask.

// Row and column of a flat index.
// CHECK-LABEL: func.func @flat_index
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @flat_index(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<7> : tensor<i64>
  %3 = ds.binary mod %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.binary div %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %5 = ds.binary le %3, %4 : (tensor<5x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %10 : tensor<2x4x5x8xf32>
}

// -----

// Columns of another name, reshaped to as many as the key has.
// CHECK-LABEL: func.func @columns_reshaped
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @columns_reshaped(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?xf32> {ds.dims = ["t"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.iota 0 ["t"] : tensor<?xi64>
  %3 = ds.reshape %2 [1, "p + s"] : (tensor<?xi64>) -> tensor<1x?xi64>
  %4 = ds.binary le %3, %0 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// Rows that lose an axis, as a run allows with one column: places that a run gives.
// CHECK-LABEL: func.func @rows_left_over
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %{{[0-9a-z]+}} right 0 scale 1.000000e+00
func.func @rows_left_over(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?xf32> {ds.dims = ["t"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.iota 0 ["s", "t"] : tensor<?x?xi64>
  %3 = ds.reshape %2 ["s", 1] : (tensor<?x?xi64>) -> tensor<?x1xi64>
  %4 = ds.binary le %1, %3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// Columns that count from 0 twice.
// CHECK-LABEL: func.func @axes_joined
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @axes_joined(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<2x4x8x8xf32>, %arg2: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ds.iota 0 [8, 1] : tensor<8x1xi64>
  %1 = ds.iota 1 [1, 8] : tensor<1x8xi64>
  %2 = ds.iota 1 [2, 4] : tensor<2x4xi64>
  %3 = ds.reshape %2 [1, 8] : (tensor<2x4xi64>) -> tensor<1x8xi64>
  %4 = ds.binary le %3, %0 : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %9 : tensor<2x4x8x8xf32>
}

// -----

// A flat index from 1 on, divided.
// CHECK-LABEL: func.func @shifted_index
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @shifted_index(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.binary add %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.constant dense<7> : tensor<i64>
  %5 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %6 = ds.binary div %3, %4 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %7 = ds.binary le %5, %6 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %12 : tensor<2x4x5x8xf32>
}

// -----

// What remains of it.
// CHECK-LABEL: func.func @shifted_remainder
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @shifted_remainder(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<1> : tensor<i64>
  %3 = ds.binary add %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.constant dense<7> : tensor<i64>
  %5 = ds.binary mod %3, %4 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %6 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %7 = ds.binary le %5, %6 : (tensor<5x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %12 : tensor<2x4x5x8xf32>
}

// -----

// A quotient that is not whole.
// CHECK-LABEL: func.func @quotient_of_floats
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @quotient_of_floats(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.cast %1 to f64 : (tensor<5x7xi64>) -> tensor<5x7xf64>
  %3 = ds.constant dense<7.0> : tensor<f64>
  %4 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %5 = ds.cast %4 to f64 : (tensor<1x7xi64>) -> tensor<1x7xf64>
  %6 = ds.binary div %2, %3 : (tensor<5x7xf64>, tensor<f64>) -> tensor<5x7xf64>
  %7 = ds.binary lt %5, %6 : (tensor<1x7xf64>, tensor<5x7xf64>) -> tensor<5x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %12 : tensor<2x4x5x8xf32>
}

// -----

// Another divisor for each row.
// CHECK-LABEL: func.func @divisor_by_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @divisor_by_row(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %3 = ds.constant dense<7> : tensor<i64>
  %4 = ds.binary add %2, %3 : (tensor<5x1xi64>, tensor<i64>) -> tensor<5x1xi64>
  %5 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %6 = ds.binary div %1, %4 : (tensor<5x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi64>
  %7 = ds.binary le %5, %6 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %12 : tensor<2x4x5x8xf32>
}

// -----

// A divisor that a run gives.
// CHECK-LABEL: func.func @divisor_of_a_run
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @divisor_of_a_run(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<i64>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<1> : tensor<i64>
  %1 = ds.binary max %arg3, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = ds.iota 0 [35] : tensor<35xi64>
  %3 = ds.reshape %2 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %4 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %5 = ds.binary div %3, %1 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %6 = ds.binary le %4, %5 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %11 : tensor<2x4x5x8xf32>
}

// -----

// Rows that count down: a quotient is rounded toward zero.
// CHECK-LABEL: func.func @negative_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @negative_rows(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<-7> : tensor<i64>
  %3 = ds.binary mul %0, %2 : (tensor<5x1xi64>, tensor<i64>) -> tensor<5x1xi64>
  %4 = ds.binary add %3, %1 : (tensor<5x1xi64>, tensor<1x7xi64>) -> tensor<5x7xi64>
  %5 = ds.constant dense<7> : tensor<i64>
  %6 = ds.binary div %4, %5 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %7 = ds.binary add %1, %6 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi64>
  %8 = ds.constant dense<0> : tensor<i64>
  %9 = ds.binary le %7, %8 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.constant dense<-1.0e+9> : tensor<f32>
  %12 = ds.select %9, %10, %11 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %13 = ds.softmax %12 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %14 = ds.matmul %13, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %14 : tensor<2x4x5x8xf32>
}

// -----

// Rows that are longer than the divisor.
// CHECK-LABEL: func.func @uneven_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @uneven_rows(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [40] : tensor<40xi64>
  %1 = ds.reshape %0 [5, 8] : (tensor<40xi64>) -> tensor<5x8xi64>
  %2 = ds.slice %1 starts [0, 0] sizes [5, 7] steps [1, 1] : (tensor<5x8xi64>) -> tensor<5x7xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.constant dense<7> : tensor<i64>
  %5 = ds.binary div %2, %4 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %6 = ds.binary le %3, %5 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %11 : tensor<2x4x5x8xf32>
}

// -----

// Two rows for each quotient.
// CHECK-LABEL: func.func @every_other_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @every_other_row(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<14> : tensor<i64>
  %3 = ds.binary div %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %5 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %6 = ds.binary add %5, %3 : (tensor<5x1xi64>, tensor<5x7xi64>) -> tensor<5x7xi64>
  %7 = ds.binary le %4, %6 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %12 : tensor<2x4x5x8xf32>
}

// -----

// Rows that are cut, so that numbers are left out between them.
// CHECK-LABEL: func.func @rows_with_gaps
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @rows_with_gaps(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [45] : tensor<45xi64>
  %1 = ds.reshape %0 [5, 9] : (tensor<45xi64>) -> tensor<5x9xi64>
  %2 = ds.slice %1 starts [0, 0] sizes [5, 7] steps [1, 1] : (tensor<5x9xi64>) -> tensor<5x7xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.constant dense<9> : tensor<i64>
  %5 = ds.binary div %2, %4 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %6 = ds.binary le %3, %5 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %11 : tensor<2x4x5x8xf32>
}

// -----

// What remains of two rows.
// CHECK-LABEL: func.func @remainder_of_two_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @remainder_of_two_rows(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<14> : tensor<i64>
  %3 = ds.binary mod %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %5 = ds.binary le %3, %4 : (tensor<5x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %10 : tensor<2x4x5x8xf32>
}

// -----

// What remains, computed by the quotient.
// CHECK-LABEL: func.func @remainder_by_hand
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @remainder_by_hand(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.constant dense<7> : tensor<i64>
  %3 = ds.binary div %1, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %4 = ds.binary mul %3, %2 : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi64>
  %5 = ds.binary sub %1, %4 : (tensor<5x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi64>
  %6 = ds.binary le %5, %3 : (tensor<5x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %11 : tensor<2x4x5x8xf32>
}

// -----

// The larger one of two places.
// CHECK-LABEL: func.func @larger_of_two
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @larger_of_two(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.iota 0 [35] : tensor<35xi64>
  %1 = ds.reshape %0 [5, 7] : (tensor<35xi64>) -> tensor<5x7xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %4 = ds.binary max %1, %3 : (tensor<5x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi64>
  %5 = ds.binary le %2, %4 : (tensor<1x7xi64>, tensor<5x7xi64>) -> tensor<5x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %10 : tensor<2x4x5x8xf32>
}
