// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Windows that an attention takes only in part, or not at all, for what stands around them; and keys in other orders.

// Heads in groups: a window beside another condition stays a mask.
// CHECK-LABEL: func.func @grouped_with_padding
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [keep %{{[0-9a-z]+}} else -1.000000e+09] scale
func.func @grouped_with_padding(%arg0: tensor<2x2x2x5x8xf32>, %arg1: tensor<2x2x1x5x8xf32>, %arg2: tensor<2x2x1x5x8xf32>, %arg3: tensor<1x5xi1>) -> tensor<2x2x2x5x8xf32> {
  %0 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %1 = ds.iota 1 [1, 5] : tensor<1x5xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x5xi64>, tensor<5x1xi64>) -> tensor<5x5xi1>
  %3 = ds.binary bit_and %2, %arg3 : (tensor<5x5xi1>, tensor<1x5xi1>) -> tensor<5x5xi1>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x2x2x5x8xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x5xf32>
  %5 = ds.constant dense<-1.0e+9> : tensor<f32>
  %6 = ds.select %3, %4, %5 : (tensor<5x5xi1>, tensor<2x2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x2x5x5xf32>
  %7 = ds.softmax %6 axis 4 log false : (tensor<2x2x2x5x5xf32>) -> tensor<2x2x2x5x5xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x2x2x5x5xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x8xf32>
  return %8 : tensor<2x2x2x5x8xf32>
}

// -----

// A bias chosen by a window.
// CHECK-LABEL: func.func @grouped_with_bias
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [add %{{[0-9a-z]+}}] scale
func.func @grouped_with_bias(%arg0: tensor<2x2x2x5x8xf32>, %arg1: tensor<2x2x1x5x8xf32>, %arg2: tensor<2x2x1x5x8xf32>, %arg3: tensor<2x2x5x5xf32>) -> tensor<2x2x2x5x8xf32> {
  %0 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %1 = ds.iota 1 [1, 5] : tensor<1x5xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x5xi64>, tensor<5x1xi64>) -> tensor<5x5xi1>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %2, %arg3, %3 : (tensor<5x5xi1>, tensor<2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x5x5xf32>
  %5 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x2x2x5x8xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x5xf32>
  %6 = ds.binary add %5, %4 : (tensor<2x2x2x5x5xf32>, tensor<2x2x5x5xf32>) -> tensor<2x2x2x5x5xf32>
  %7 = ds.softmax %6 axis 4 log false : (tensor<2x2x2x5x5xf32>) -> tensor<2x2x2x5x5xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x2x2x5x5xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x8xf32>
  return %8 : tensor<2x2x2x5x8xf32>
}

// -----

// A sum of a window and a mask.
// CHECK-LABEL: func.func @grouped_sum
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [add %{{[0-9a-z]+}}] scale
func.func @grouped_sum(%arg0: tensor<2x2x2x5x8xf32>, %arg1: tensor<2x2x1x5x8xf32>, %arg2: tensor<2x2x1x5x8xf32>, %arg3: tensor<5x5xf32>) -> tensor<2x2x2x5x8xf32> {
  %0 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %1 = ds.iota 1 [1, 5] : tensor<1x5xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x5xi64>, tensor<5x1xi64>) -> tensor<5x5xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<5x5xi1>, tensor<f32>, tensor<f32>) -> tensor<5x5xf32>
  %6 = ds.binary add %5, %arg3 : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x2x2x5x8xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x5xf32>
  %8 = ds.binary add %7, %6 : (tensor<2x2x2x5x5xf32>, tensor<5x5xf32>) -> tensor<2x2x2x5x5xf32>
  %9 = ds.softmax %8 axis 4 log false : (tensor<2x2x2x5x5xf32>) -> tensor<2x2x2x5x5xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x2x2x5x5xf32>, tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x8xf32>
  return %10 : tensor<2x2x2x5x8xf32>
}

// -----

// Places that a run gives, beside scores of three axes.
// CHECK-LABEL: func.func @three_axes
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [keep %{{[0-9a-z]+}} else -1.000000e+09] scale
func.func @three_axes(%arg0: tensor<4x?x8xf32> {ds.dims = [4, "s", 8]}, %arg1: tensor<4x?x8xf32> {ds.dims = [4, "s", 8]}, %arg2: tensor<4x?x8xf32> {ds.dims = [4, "s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<4x?x?xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<?x?xi1>, tensor<4x?x?xf32>, tensor<f32>) -> tensor<4x?x?xf32>
  %6 = ds.softmax %5 axis 2 log false : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<4x?x?xf32>, tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  return %7 : tensor<4x?x8xf32>
}

// -----

// Beside scores of five.
// CHECK-LABEL: func.func @five_axes
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [keep %{{[0-9a-z]+}} else -1.000000e+09] scale
func.func @five_axes(%arg0: tensor<2x2x2x?x8xf32> {ds.dims = [2, 2, 2, "s", 8]}, %arg1: tensor<2x2x1x?x8xf32> {ds.dims = [2, 2, 1, "s", 8]}, %arg2: tensor<2x2x1x?x8xf32> {ds.dims = [2, 2, 1, "s", 8]}, %arg3: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x2x2x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %arg3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x2x2x?x8xf32>, tensor<2x2x1x?x8xf32>) -> tensor<2x2x2x?x?xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<?x?xi1>, tensor<2x2x2x?x?xf32>, tensor<f32>) -> tensor<2x2x2x?x?xf32>
  %6 = ds.softmax %5 axis 4 log false : (tensor<2x2x2x?x?xf32>) -> tensor<2x2x2x?x?xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x2x2x?x?xf32>, tensor<2x2x1x?x8xf32>) -> tensor<2x2x2x?x8xf32>
  return %7 : tensor<2x2x2x?x8xf32>
}

// -----

// Two stored triangles: the smaller one says how many places there are.
// CHECK-LABEL: func.func @two_capacities
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, window else -1.000000e+09] right 0 capacity 4 scale 1.000000e+00
func.func @two_capacities(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %2 = ds.constant dense<[[true, false, false, false, false, false], [true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false], [true, true, true, true, true, true]]> : tensor<6x6xi1>
  %3 = ds.slice %2 starts [0, 0] sizes ["min(6, s)", "min(6, s)"] steps [1, 1] : (tensor<6x6xi1>) -> tensor<?x?xi1>
  %4 = ds.select %3, %1, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %6 = ds.slice %5 starts [0, 0] sizes ["min(4, s)", "min(4, s)"] steps [1, 1] : (tensor<4x4xi1>) -> tensor<?x?xi1>
  %7 = ds.select %6, %4, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// The smaller one last.
// CHECK-LABEL: func.func @two_capacities_the_other_way
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, window else -1.000000e+09] right 0 capacity 4 scale 1.000000e+00
func.func @two_capacities_the_other_way(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %2 = ds.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %3 = ds.slice %2 starts [0, 0] sizes ["min(4, s)", "min(4, s)"] steps [1, 1] : (tensor<4x4xi1>) -> tensor<?x?xi1>
  %4 = ds.select %3, %1, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.constant dense<[[true, false, false, false, false, false], [true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false], [true, true, true, true, true, true]]> : tensor<6x6xi1>
  %6 = ds.slice %5 starts [0, 0] sizes ["min(6, s)", "min(6, s)"] steps [1, 1] : (tensor<6x6xi1>) -> tensor<?x?xi1>
  %7 = ds.select %6, %4, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// Of one mask.
// CHECK-LABEL: func.func @two_capacities_of_one_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right 0 capacity 4 scale 1.000000e+00
func.func @two_capacities_of_one_mask(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %2 = ds.constant dense<[[true, false, false, false, false, false], [true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false], [true, true, true, true, true, true]]> : tensor<6x6xi1>
  %3 = ds.slice %2 starts [0, 0] sizes ["s", "s"] steps [1, 1] : (tensor<6x6xi1>) -> tensor<?x?xi1>
  %4 = ds.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %5 = ds.slice %4 starts [0, 0] sizes ["s", "s"] steps [1, 1] : (tensor<4x4xi1>) -> tensor<?x?xi1>
  %6 = ds.binary bit_and %3, %5 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %7 = ds.select %6, %1, %0 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %9 : tensor<2x4x?x8xf32>
}

// -----

// A window chooses between two masks.
// CHECK-LABEL: func.func @two_masks
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @two_masks(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg3: tensor<?x?xf32> {ds.dims = ["s", "s"]}, %arg4: tensor<?x?xf32> {ds.dims = ["s", "s"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "s"] : tensor<1x?xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %3 = ds.select %2, %arg3, %arg4 : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %5 = ds.binary add %4, %3 : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %7 : tensor<2x4x?x8xf32>
}

// -----

// A window chooses between numbers that differ by column.
// CHECK-LABEL: func.func @numbers_by_column
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @numbers_by_column(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<[0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0]> : tensor<7xf32>
  %1 = ds.constant dense<[-9.0, -8.0, -9.0, -8.0, -9.0, -8.0, -9.0]> : tensor<7xf32>
  %2 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.binary le %3, %2 : (tensor<1x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi1>
  %5 = ds.select %4, %0, %1 : (tensor<5x7xi1>, tensor<7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.binary add %6, %5 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %9 : tensor<2x4x5x8xf32>
}

// -----

// Between numbers that differ by column, though not much, and one number.
// CHECK-LABEL: func.func @zeros_by_column
// CHECK: ds.attention %arg0, %arg1, %arg2 [window_mask %{{[0-9a-z]+}} else -1.000000e+09] right 0 scale 1.000000e+00
func.func @zeros_by_column(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<-1.0e+9> : tensor<f32>
  %1 = ds.constant dense<[0.0, -0.5, 0.0, -0.5, 0.0, -0.5, 0.0]> : tensor<7xf32>
  %2 = ds.iota 0 [5, 1] : tensor<5x1xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.binary le %3, %2 : (tensor<1x7xi64>, tensor<5x1xi64>) -> tensor<5x7xi1>
  %5 = ds.select %4, %1, %0 : (tensor<5x7xi1>, tensor<7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.binary add %6, %5 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %8 = ds.softmax %7 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %9 = ds.matmul %8, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %9 : tensor<2x4x5x8xf32>
}

// -----

// A key whose batch and heads change places together with rows and numbers.
// CHECK-LABEL: func.func @batch_and_heads_exchanged
// CHECK: %[[K:.*]] = ds.transpose %arg1 [1, 0, 2, 3]
// CHECK: ds.attention %arg0, %[[K]], %arg2 scale 1.000000e+00
func.func @batch_and_heads_exchanged(%arg0: tensor<2x2x5x8xf32>, %arg1: tensor<2x2x7x8xf32>, %arg2: tensor<2x2x7x8xf32>) -> tensor<2x2x5x8xf32> {
  %0 = ds.transpose %arg1 [1, 0, 3, 2] : (tensor<2x2x7x8xf32>) -> tensor<2x2x8x7xf32>
  %1 = ds.matmul %arg0, %0 transpose [false, false] : (tensor<2x2x5x8xf32>, tensor<2x2x8x7xf32>) -> tensor<2x2x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x2x5x7xf32>) -> tensor<2x2x5x7xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x2x5x7xf32>, tensor<2x2x7x8xf32>) -> tensor<2x2x5x8xf32>
  return %3 : tensor<2x2x5x8xf32>
}

// -----

// A key whose rows are its heads.
// CHECK-LABEL: func.func @rows_and_heads_exchanged
// CHECK: %[[K:.*]] = ds.transpose %arg1 [0, 2, 1, 3]
// CHECK: ds.attention %arg0, %[[K]], %arg2 scale 1.000000e+00
func.func @rows_and_heads_exchanged(%arg0: tensor<2x5x5x8xf32>, %arg1: tensor<2x5x5x8xf32>, %arg2: tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32> {
  %0 = ds.transpose %arg1 [0, 2, 3, 1] : (tensor<2x5x5x8xf32>) -> tensor<2x5x8x5xf32>
  %1 = ds.matmul %arg0, %0 transpose [false, false] : (tensor<2x5x5x8xf32>, tensor<2x5x8x5xf32>) -> tensor<2x5x5x5xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x5x5x5xf32>) -> tensor<2x5x5x5xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x5x5x5xf32>, tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32>
  return %3 : tensor<2x5x5x8xf32>
}

// -----

// A key whose rows are its heads, which its product transposes.
// CHECK-LABEL: func.func @rows_and_heads_exchanged_beside_numbers
// CHECK: %[[K:.*]] = ds.transpose %arg1 [0, 2, 1, 3]
// CHECK: ds.attention %arg0, %[[K]], %arg2 scale 1.000000e+00
func.func @rows_and_heads_exchanged_beside_numbers(%arg0: tensor<2x5x5x8xf32>, %arg1: tensor<2x5x5x8xf32>, %arg2: tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32> {
  %0 = ds.transpose %arg1 [0, 2, 1, 3] : (tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32>
  %1 = ds.matmul %arg0, %0 transpose [false, true] : (tensor<2x5x5x8xf32>, tensor<2x5x5x8xf32>) -> tensor<2x5x5x5xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x5x5x5xf32>) -> tensor<2x5x5x5xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x5x5x5xf32>, tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32>
  return %3 : tensor<2x5x5x8xf32>
}
