// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Each function fails one condition of a window: the attention has none, or reads the condition beside it.

// A condition by column becomes one by row.
// CHECK-LABEL: func.func @column_as_rows
// CHECK: %[[P:.*]] = ds.reshape
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %[[P]] else -1.000000e+09, window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @column_as_rows(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<7xi1>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.reshape %arg3 [7, 1] : (tensor<7xi1>) -> tensor<7x1xi1>
  %4 = ds.binary bit_and %2, %3 : (tensor<7x7xi1>, tensor<7x1xi1>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// Of two axes.
// CHECK-LABEL: func.func @row_turned
// CHECK: %[[P:.*]] = ds.reshape
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %[[P]] else -1.000000e+09, window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @row_turned(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<1x7xi1>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.reshape %arg3 [7, 1] : (tensor<1x7xi1>) -> tensor<7x1xi1>
  %4 = ds.binary bit_and %2, %3 : (tensor<7x7xi1>, tensor<7x1xi1>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// Conditions by head become conditions by batch.
// CHECK-LABEL: func.func @heads_as_batches
// CHECK: %[[P:.*]] = ds.reshape
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %[[P]] else -1.000000e+09, window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @heads_as_batches(%arg0: tensor<2x2x7x8xf32>, %arg1: tensor<2x2x7x8xf32>, %arg2: tensor<2x2x7x8xf32>, %arg3: tensor<2x7x7xi1>) -> tensor<2x2x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.reshape %arg3 [2, 1, 7, 7] : (tensor<2x7x7xi1>) -> tensor<2x1x7x7xi1>
  %4 = ds.binary bit_and %2, %3 : (tensor<7x7xi1>, tensor<2x1x7x7xi1>) -> tensor<2x1x7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x2x7x8xf32>, tensor<2x2x7x8xf32>) -> tensor<2x2x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<2x1x7x7xi1>, tensor<2x2x7x7xf32>, tensor<f32>) -> tensor<2x2x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x2x7x7xf32>) -> tensor<2x2x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x2x7x7xf32>, tensor<2x2x7x8xf32>) -> tensor<2x2x7x8xf32>
  return %9 : tensor<2x2x7x8xf32>
}

// -----

// A window for each head, joined with batches of size 1.
// CHECK-LABEL: func.func @batch_and_heads_joined
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @batch_and_heads_joined(%arg0: tensor<1x4x7x8xf32>, %arg1: tensor<1x4x7x8xf32>, %arg2: tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.broadcast %2 [2, 2, 7, 7] : (tensor<7x7xi1>) -> tensor<2x2x7x7xi1>
  %4 = ds.reshape %3 [4, 7, 7] : (tensor<2x2x7x7xi1>) -> tensor<4x7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x4x7x8xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<4x7x7xi1>, tensor<1x4x7x7xf32>, tensor<f32>) -> tensor<1x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<1x4x7x7xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x7x8xf32>
  return %9 : tensor<1x4x7x8xf32>
}

// -----

// Places from one value on, up to another.
// CHECK-LABEL: func.func @two_positions
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] positions %arg3 right 0 scale 1.000000e+00
func.func @two_positions(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}, %arg4: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %1 = ds.binary le %0, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %2 = ds.binary ge %0, %arg4 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.binary bit_and %1, %2 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %8 : tensor<2x4x?x8xf32>
}

// -----

// From the row on, up to a place that a run gives.
// CHECK-LABEL: func.func @positions_and_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] positions %arg3 right 0 scale 1.000000e+00
func.func @positions_and_rows(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.binary ge %1, %0 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %4 = ds.binary bit_and %2, %3 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// Which of two upper bounds is the lower one, a run tells.
// CHECK-LABEL: func.func @two_upper_bounds
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @two_upper_bounds(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + q + s"] : tensor<1x?xi64>
  %2 = ds.shape ["p"] : tensor<1xi64>
  %3 = ds.binary add %0, %2 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %4 = ds.shape ["q"] : tensor<1xi64>
  %5 = ds.binary add %0, %4 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %6 = ds.binary le %1, %3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %7 = ds.binary le %1, %5 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %8 = ds.binary bit_and %6, %7 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %9 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %10 = ds.constant dense<-1.0e+9> : tensor<f32>
  %11 = ds.select %8, %9, %10 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %12 = ds.softmax %11 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %13 = ds.matmul %12, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %13 : tensor<2x4x?x8xf32>
}

// -----

// Which of two lower bounds is the higher one.
// CHECK-LABEL: func.func @two_lower_bounds
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] past ["p"] left 0 scale 1.000000e+00
func.func @two_lower_bounds(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + q + s"] : tensor<1x?xi64>
  %2 = ds.shape ["p"] : tensor<1xi64>
  %3 = ds.binary add %0, %2 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %4 = ds.shape ["q"] : tensor<1xi64>
  %5 = ds.binary add %0, %4 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %6 = ds.binary ge %1, %3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %7 = ds.binary ge %1, %5 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %8 = ds.binary bit_and %6, %7 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %9 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %10 = ds.constant dense<-1.0e+9> : tensor<f32>
  %11 = ds.select %8, %9, %10 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %12 = ds.softmax %11 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %13 = ds.matmul %12, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %13 : tensor<2x4x?x8xf32>
}

// -----

// One condition 64 times, which is more than are looked at.
// CHECK-LABEL: func.func @too_many_conditions
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @too_many_conditions(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.binary bit_and %2, %2 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %4 = ds.binary bit_and %3, %3 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %5 = ds.binary bit_and %4, %4 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %6 = ds.binary bit_and %5, %5 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %7 = ds.binary bit_and %6, %6 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %8 = ds.binary bit_and %7, %7 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %9 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.constant dense<-1.0e+9> : tensor<f32>
  %11 = ds.select %8, %9, %10 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %12 = ds.softmax %11 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %13 = ds.matmul %12, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %13 : tensor<2x4x7x8xf32>
}

// -----

// A window as far to the right as no attention has it.
// CHECK-LABEL: func.func @far_right
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_right(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<1099511627776> : tensor<i64>
  %3 = ds.binary add %0, %2 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %4 = ds.binary le %1, %3 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: its window has no constant width}}
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}

// -----

// As far to the left.
// CHECK-LABEL: func.func @far_left
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @far_left(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.constant dense<-1099511627776> : tensor<i64>
  %3 = ds.binary add %0, %2 : (tensor<7x1xi64>, tensor<i64>) -> tensor<7x1xi64>
  %4 = ds.binary ge %1, %3 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<f32>
  %7 = ds.select %4, %5, %6 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: its window has no constant width}}
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %9 : tensor<2x4x7x8xf32>
}
