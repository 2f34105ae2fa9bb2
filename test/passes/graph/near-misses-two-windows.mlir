// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Windows that differ in one thing from the one beside them, and distances that differ in one thing from a window.

// Two windows that end in one place and begin in two.
// CHECK-LABEL: func.func @another_left
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, keep %{{[0-9a-z]+}} else -1.000000e+09] left 2 right 1 scale 1.000000e+00
func.func @another_left(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.constant dense<1> : tensor<i64>
  %4 = ds.binary add %1, %3 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %5 = ds.binary le %2, %4 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.constant dense<2> : tensor<i64>
  %7 = ds.binary add %2, %6 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %8 = ds.binary ge %7, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %9 = ds.binary bit_and %5, %8 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.select %9, %10, %0 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %12 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %13 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %14 = ds.constant dense<1> : tensor<i64>
  %15 = ds.binary add %12, %14 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %16 = ds.binary le %13, %15 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %17 = ds.constant dense<3> : tensor<i64>
  %18 = ds.binary add %13, %17 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %19 = ds.binary ge %18, %12 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %20 = ds.binary bit_and %16, %19 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %21 = ds.select %20, %11, %0 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %22 = ds.softmax %21 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: it has another window than the masks around it}}
  %23 = ds.matmul %22, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %23 : tensor<2x4x7x8xf32>
}

// -----

// Two windows that begin in one place and end in two.
// CHECK-LABEL: func.func @another_right
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, keep %{{[0-9a-z]+}} else -1.000000e+09] left 2 right 1 scale 1.000000e+00
func.func @another_right(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.constant dense<1> : tensor<i64>
  %4 = ds.binary add %1, %3 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %5 = ds.binary le %2, %4 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.constant dense<2> : tensor<i64>
  %7 = ds.binary add %2, %6 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %8 = ds.binary ge %7, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %9 = ds.binary bit_and %5, %8 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.select %9, %10, %0 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %12 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %13 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %14 = ds.constant dense<3> : tensor<i64>
  %15 = ds.binary add %12, %14 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %16 = ds.binary le %13, %15 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %17 = ds.constant dense<2> : tensor<i64>
  %18 = ds.binary add %13, %17 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %19 = ds.binary ge %18, %12 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %20 = ds.binary bit_and %16, %19 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %21 = ds.select %20, %11, %0 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %22 = ds.softmax %21 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: it has another window than the masks around it}}
  %23 = ds.matmul %22, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %23 : tensor<2x4x7x8xf32>
}

// -----

// From the first place on, and behind the past.
// CHECK-LABEL: func.func @another_past
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, keep %{{[0-9a-z]+}} else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @another_past(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %2 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %3 = ds.shape ["p"] : tensor<1xi64>
  %4 = ds.binary add %1, %3 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %5 = ds.binary le %2, %4 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %7 = ds.select %5, %6, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %9 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %10 = ds.binary le %9, %8 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %11 = ds.select %10, %7, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %12 = ds.softmax %11 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: it has another window than the masks around it}}
  %13 = ds.matmul %12, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %13 : tensor<2x4x?x8xf32>
}

// -----

// Places of two values.
// CHECK-LABEL: func.func @other_positions
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, keep %{{[0-9a-z]+}} else -1.000000e+09] positions %arg3 right 0 scale 1.000000e+00
func.func @other_positions(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}, %arg4: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %4 = ds.select %2, %3, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %6 = ds.binary le %5, %arg4 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %7 = ds.select %6, %4, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: it has another window than the masks around it}}
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// A quotient of columns that count by two.
// CHECK-LABEL: func.func @quotient_of_wide_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @quotient_of_wide_columns(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<7> : tensor<i64>
  %3 = ds.binary mul %0, %2 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %4 = ds.binary add %1, %1 : (tensor<1x7xi64>, tensor<1x7xi64>) -> tensor<1x7xi64>
  %5 = ds.binary add %3, %4 : (tensor<7x1xi64>, tensor<1x7xi64>) -> tensor<7x7xi64>
  %6 = ds.constant dense<7> : tensor<i64>
  %7 = ds.binary div %5, %6 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi64>
  %8 = ds.binary le %1, %7 : (tensor<1x7xi64>, tensor<7x7xi64>) -> tensor<7x7xi1>
  %9 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.constant dense<-1.0e+9> : tensor<f32>
  %11 = ds.select %8, %9, %10 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %12 = ds.softmax %11 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %13 = ds.matmul %12, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %13 : tensor<2x4x7x8xf32>
}

// -----

// Twice the distance.
// CHECK-LABEL: func.func @twice_the_distance
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @twice_the_distance(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary add %1, %1 : (tensor<1x7xi64>, tensor<1x7xi64>) -> tensor<1x7xi64>
  %3 = ds.binary add %0, %0 : (tensor<7x1xi64>, tensor<7x1xi64>) -> tensor<7x1xi64>
  %4 = ds.constant dense<1> : tensor<i64>
  %5 = ds.binary add %3, %4 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %6 = ds.binary le %2, %5 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// One row, whatever its index is multiplied with.
// CHECK-LABEL: func.func @one_row_of_any_step
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past [6] right -4 scale 1.000000e+00
func.func @one_row_of_any_step(%arg0: tensor<2x4x1x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x1x8xf32> {
  %0 = ds.iota 0 [1, 1] : tensor<1x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<3> : tensor<i64>
  %3 = ds.binary mul %0, %2 : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
  %4 = ds.constant dense<2> : tensor<i64>
  %5 = ds.binary add %3, %4 : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
  %6 = ds.binary le %1, %5 : (tensor<1x7xi64>, tensor<1x1xi64>) -> tensor<1x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x1x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x1x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<1x7xi1>, tensor<2x4x1x7xf32>, tensor<f32>) -> tensor<2x4x1x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x1x7xf32>) -> tensor<2x4x1x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x1x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x1x8xf32>
  return %11 : tensor<2x4x1x8xf32>
}
