// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Stored masks that are nearly cut to a window: each function fails one condition, and the attention reads the mask.

// A stored triangle in another shape.
// CHECK-LABEL: func.func @turned_table
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @turned_table(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false], [true, true, false, false, false], [true, true, true, false, false], [true, true, true, true, false], [true, true, true, true, true], [true, true, true, true, true], [true, true, true, true, true]]> : tensor<7x5xi1>
  %1 = ds.reshape %0 [5, 7] : (tensor<7x5xi1>) -> tensor<5x7xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// Every other column of a table.
// CHECK-LABEL: func.func @every_other_column
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @every_other_column(%arg0: tensor<2x4x4x8xf32>, %arg1: tensor<2x4x4x8xf32>, %arg2: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false], [true, true, true, false, false, false, false, false], [true, true, true, true, false, false, false, false]]> : tensor<4x8xi1>
  %1 = ds.slice %0 starts [0, 0] sizes [4, 4] steps [1, 2] : (tensor<4x8xi1>) -> tensor<4x4xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x4xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<4x4xi1>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x4x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %6 : tensor<2x4x4x8xf32>
}

// -----

// Every other row.
// CHECK-LABEL: func.func @every_other_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @every_other_row(%arg0: tensor<2x4x4x8xf32>, %arg1: tensor<2x4x4x8xf32>, %arg2: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false], [true, true, true, false, false, false, false, false], [true, true, true, true, false, false, false, false], [true, true, true, true, true, false, false, false], [true, true, true, true, true, true, false, false], [true, true, true, true, true, true, true, false], [true, true, true, true, true, true, true, true]]> : tensor<8x8xi1>
  %1 = ds.slice %0 starts [0, 0] sizes [4, 4] steps [2, 1] : (tensor<8x8xi1>) -> tensor<4x4xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x4xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<4x4xi1>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x4x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %6 : tensor<2x4x4x8xf32>
}

// -----

// Columns from the second on.
// CHECK-LABEL: func.func @later_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @later_columns(%arg0: tensor<2x4x4x8xf32>, %arg1: tensor<2x4x4x8xf32>, %arg2: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false], [true, true, false, false, false], [true, true, true, false, false], [true, true, true, true, false], [true, true, true, true, true]]> : tensor<5x5xi1>
  %1 = ds.slice %0 starts [0, 1] sizes [4, 4] steps [1, 1] : (tensor<5x5xi1>) -> tensor<4x4xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x4xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<4x4xi1>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x4x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %6 : tensor<2x4x4x8xf32>
}

// -----

// One column for all.
// CHECK-LABEL: func.func @one_column
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @one_column(%arg0: tensor<2x4x4x8xf32>, %arg1: tensor<2x4x4x8xf32>, %arg2: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = ds.constant dense<[[false, true, true, true], [false, false, true, true], [false, false, false, true], [false, false, false, false]]> : tensor<4x4xi1>
  %1 = ds.slice %0 starts [0, 0] sizes [4, 1] steps [1, 1] : (tensor<4x4xi1>) -> tensor<4x1xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x4xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<4x1xi1>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x4x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %6 : tensor<2x4x4x8xf32>
}

// -----

// One row for all.
// CHECK-LABEL: func.func @one_stored_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @one_stored_row(%arg0: tensor<2x4x4x8xf32>, %arg1: tensor<2x4x4x8xf32>, %arg2: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %1 = ds.slice %0 starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<4x4xi1>) -> tensor<1x4xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x4xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<1x4xi1>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x4x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %6 : tensor<2x4x4x8xf32>
}

// -----

// Rows from anywhere on, which may be behind the last column.
// CHECK-LABEL: func.func @rows_from_anywhere
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @rows_from_anywhere(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg3: tensor<?xf32> {ds.dims = ["p"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false, false], [true, true, true, false, false, false, false, false, false], [true, true, true, true, false, false, false, false, false], [true, true, true, true, true, false, false, false, false], [true, true, true, true, true, true, false, false, false], [true, true, true, true, true, true, true, false, false], [true, true, true, true, true, true, true, true, false], [true, true, true, true, true, true, true, true, true]]> : tensor<9x9xi1>
  %1 = ds.slice %0 starts ["p", 0] sizes ["s", "s"] steps [1, 1] : (tensor<9x9xi1>) -> tensor<?x?xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %6 : tensor<2x4x?x8xf32>
}

// -----

// From a place on that may be before the first one.
// CHECK-LABEL: func.func @rows_from_before_the_table
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @rows_from_before_the_table(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false, false], [true, true, true, false, false, false, false, false, false], [true, true, true, true, false, false, false, false, false], [true, true, true, true, true, false, false, false, false], [true, true, true, true, true, true, false, false, false], [true, true, true, true, true, true, true, false, false], [true, true, true, true, true, true, true, true, false], [true, true, true, true, true, true, true, true, true]]> : tensor<9x9xi1>
  %1 = ds.slice %0 starts ["p - 2", 0] sizes ["s", "p + s"] steps [1, 1] : (tensor<9x9xi1>) -> tensor<?x?xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %6 : tensor<2x4x?x8xf32>
}

// -----

// Fewer rows than columns: how many there are places for is not known.
// CHECK-LABEL: func.func @more_columns_than_rows
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @more_columns_than_rows(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.constant dense<[[true, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false], [true, true, true, false, false, false, false, false], [true, true, true, true, false, false, false, false]]> : tensor<4x8xi1>
  %1 = ds.slice %0 starts [0, 0] sizes ["min(4, s)", "min(8, s)"] steps [1, 1] : (tensor<4x8xi1>) -> tensor<?x?xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %6 : tensor<2x4x?x8xf32>
}

// -----

// Numbers that no double holds.
// CHECK-LABEL: func.func @numbers_past_doubles
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @numbers_past_doubles(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<0> : tensor<i64>
  %1 = ds.constant dense<[[9007199254740993, 0, 0], [9007199254740993, 9007199254740993, 0], [9007199254740993, 9007199254740993, 9007199254740993]]> : tensor<3x3xi64>
  %2 = ds.binary ne %1, %0 : (tensor<3x3xi64>, tensor<i64>) -> tensor<3x3xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %7 : tensor<2x4x3x8xf32>
}

// -----

// Without a sign.
// CHECK-LABEL: func.func @unsigned_numbers_past_doubles
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @unsigned_numbers_past_doubles(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<0> : tensor<ui64>
  %1 = ds.constant dense<[[1152921504606846977, 0, 0], [1152921504606846977, 1152921504606846977, 0], [1152921504606846977, 1152921504606846977, 1152921504606846977]]> : tensor<3x3xui64>
  %2 = ds.binary ne %1, %0 : (tensor<3x3xui64>, tensor<ui64>) -> tensor<3x3xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %7 : tensor<2x4x3x8xf32>
}

// -----

// A number that another type does not hold.
// CHECK-LABEL: func.func @cast_through_8_bits
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @cast_through_8_bits(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<[[256, 0, 0], [256, 256, 0], [256, 256, 256]]> : tensor<3x3xi64>
  %1 = ds.cast %0 to i8 : (tensor<3x3xi64>) -> tensor<3x3xi8>
  %2 = ds.cast %1 to i1 : (tensor<3x3xi8>) -> tensor<3x3xi1>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %7 : tensor<2x4x3x8xf32>
}

// -----

// Two numbers of which a cast makes one.
// CHECK-LABEL: func.func @cast_to_one_number
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @cast_to_one_number(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<[[0.0, 1.0e-60, 1.0e-60], [0.0, 0.0, 1.0e-60], [0.0, 0.0, 0.0]]> : tensor<3x3xf64>
  %1 = ds.cast %0 to f32 : (tensor<3x3xf64>) -> tensor<3x3xf32>
  %2 = ds.slice %1 starts [0, 0] sizes [3, 3] steps [1, 1] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.binary add %3, %2 : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %6 : tensor<2x4x3x8xf32>
}

// -----

// A table of three numbers.
// CHECK-LABEL: func.func @three_numbers
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @three_numbers(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<[[0.0, -9.0, -8.0], [0.0, 0.0, -9.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %2 = ds.binary add %1, %0 : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %4 : tensor<2x4x3x8xf32>
}

// -----

// A table with a hole.
// CHECK-LABEL: func.func @holes
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @holes(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.constant dense<[[0.0, -9.0, -9.0], [-9.0, 0.0, -9.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %2 = ds.binary add %1, %0 : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %4 : tensor<2x4x3x8xf32>
}

// -----

// A stored mask made of a triangle and a condition: no value of the program is that condition.
// CHECK-LABEL: func.func @recipe_with_a_condition
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @recipe_with_a_condition(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = ds.weight @w : tensor<3x3xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %2 = ds.binary add %1, %0 : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %4 : tensor<2x4x3x8xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %1 = ds.constant dense<[[true, false, true]]> : tensor<1x3xi1>
  %2 = ds.binary bit_and %0, %1 : (tensor<3x3xi1>, tensor<1x3xi1>) -> tensor<3x3xi1>
  %3 = ds.cast %2 to f32 : (tensor<3x3xi1>) -> tensor<3x3xf32>
  %4 = ds.constant dense<1.0> : tensor<f32>
  %5 = ds.binary sub %3, %4 : (tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %6 = ds.constant dense<1.0e+9> : tensor<f32>
  %7 = ds.binary mul %5, %6 : (tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  ds.yield %7 : tensor<3x3xf32>
}
