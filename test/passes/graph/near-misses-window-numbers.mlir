// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Two numbers that a window nearly chooses between: each function fails one condition.

// Numbers of a type that is not followed.
// CHECK-LABEL: func.func @numbers_of_8_bits
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @numbers_of_8_bits(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<1> : tensor<i8>
  %1 = ds.constant dense<0> : tensor<i8>
  %2 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.binary le %3, %2 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.select %4, %0, %1 : (tensor<7x7xi1>, tensor<i8>, tensor<i8>) -> tensor<7x7xi8>
  %6 = ds.binary ne %5, %1 : (tensor<7x7xi8>, tensor<i8>) -> tensor<7x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// A condition that holds for both of two numbers.
// CHECK-LABEL: func.func @both_numbers
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @both_numbers(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<0> : tensor<i64>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.binary le %2, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %4 = ds.cast %3 to i64 : (tensor<7x7xi1>) -> tensor<7x7xi64>
  %5 = ds.binary ge %4, %0 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// One that holds for neither.
// CHECK-LABEL: func.func @neither_number
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @neither_number(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<2> : tensor<i64>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.binary le %2, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %4 = ds.cast %3 to i64 : (tensor<7x7xi1>) -> tensor<7x7xi64>
  %5 = ds.binary ge %4, %0 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %6 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %7 = ds.constant dense<-1.0e+9> : tensor<f32>
  %8 = ds.select %5, %6, %7 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// What is outside of a band.
// CHECK-LABEL: func.func @opposite_of_two_bounds
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @opposite_of_two_bounds(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<0> : tensor<i64>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.constant dense<2> : tensor<i64>
  %4 = ds.binary add %2, %3 : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x7xi64>
  %5 = ds.binary le %2, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %6 = ds.binary ge %4, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %7 = ds.binary bit_and %5, %6 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %8 = ds.cast %7 to i64 : (tensor<7x7xi1>) -> tensor<7x7xi64>
  %9 = ds.binary eq %8, %0 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %10 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.constant dense<-1.0e+9> : tensor<f32>
  %12 = ds.select %9, %10, %11 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %13 = ds.softmax %12 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %14 = ds.matmul %13, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %14 : tensor<2x4x7x8xf32>
}

// -----

// What a bound and a condition do not hold for together.
// CHECK-LABEL: func.func @opposite_of_bound_and_condition
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @opposite_of_bound_and_condition(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<1x7xi1>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<0> : tensor<i64>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.binary le %2, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %4 = ds.binary bit_and %3, %arg3 : (tensor<7x7xi1>, tensor<1x7xi1>) -> tensor<7x7xi1>
  %5 = ds.cast %4 to i64 : (tensor<7x7xi1>) -> tensor<7x7xi64>
  %6 = ds.binary eq %5, %0 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.constant dense<-1.0e+9> : tensor<f32>
  %9 = ds.select %6, %7, %8 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// What two conditions do not hold for together, beside a window.
// CHECK-LABEL: func.func @opposite_of_two_conditions
// CHECK: %[[P:.*]] = ds.binary eq
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %[[P]] else -1.000000e+09, window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @opposite_of_two_conditions(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<1x7xi1>, %arg4: tensor<7x1xi1>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<0> : tensor<i64>
  %1 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %2 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %3 = ds.binary le %2, %1 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %4 = ds.binary bit_and %arg3, %arg4 : (tensor<1x7xi1>, tensor<7x1xi1>) -> tensor<7x7xi1>
  %5 = ds.cast %4 to i64 : (tensor<7x7xi1>) -> tensor<7x7xi64>
  %6 = ds.binary eq %5, %0 : (tensor<7x7xi64>, tensor<i64>) -> tensor<7x7xi1>
  %7 = ds.binary bit_and %3, %6 : (tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.constant dense<-1.0e+9> : tensor<f32>
  %10 = ds.select %7, %8, %9 : (tensor<7x7xi1>, tensor<2x4x7x7xf32>, tensor<f32>) -> tensor<2x4x7x7xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %12 = ds.matmul %11, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %12 : tensor<2x4x7x8xf32>
}

// -----

// A bound, as numbers, beside another one: a run tells which is lower.
// CHECK-LABEL: func.func @bound_of_numbers
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09, window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @bound_of_numbers(%arg0: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %arg1: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}, %arg2: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + q + s", 8]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %1 = ds.iota 1 [1, "p + q + s"] : tensor<1x?xi64>
  %2 = ds.shape ["p"] : tensor<1xi64>
  %3 = ds.binary add %0, %2 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %4 = ds.shape ["q"] : tensor<1xi64>
  %5 = ds.binary add %0, %4 : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %6 = ds.constant dense<0> : tensor<i64>
  %7 = ds.binary le %1, %3 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %8 = ds.binary le %1, %5 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %9 = ds.cast %8 to i64 : (tensor<?x?xi1>) -> tensor<?x?xi64>
  %10 = ds.binary ne %9, %6 : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
  %11 = ds.binary bit_and %7, %10 : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %12 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %13 = ds.constant dense<-1.0e+9> : tensor<f32>
  %14 = ds.select %11, %12, %13 : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %15 = ds.softmax %14 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %16 = ds.matmul %15, %arg2 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %16 : tensor<2x4x?x8xf32>
}

// -----

// Zeros and ones times minus infinity: zero becomes no number.
// CHECK-LABEL: func.func @zero_times_infinity
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @zero_times_infinity(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.constant dense<1.0> : tensor<f32>
  %1 = ds.constant dense<0.0> : tensor<f32>
  %2 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %3 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %4 = ds.binary le %3, %2 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %5 = ds.select %4, %1, %0 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<0xFF800000> : tensor<f32>
  %7 = ds.binary mul %5, %6 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// Two numbers whose sign changes 64 times, which is more than are looked at.
// CHECK-LABEL: func.func @too_many_signs
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @too_many_signs(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<-1.0e+9> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.unary neg %5 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %7 = ds.unary neg %6 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %8 = ds.unary neg %7 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %9 = ds.unary neg %8 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %10 = ds.unary neg %9 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %11 = ds.unary neg %10 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %12 = ds.unary neg %11 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %13 = ds.unary neg %12 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %14 = ds.unary neg %13 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %15 = ds.unary neg %14 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %16 = ds.unary neg %15 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %17 = ds.unary neg %16 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %18 = ds.unary neg %17 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %19 = ds.unary neg %18 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %20 = ds.unary neg %19 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %21 = ds.unary neg %20 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %22 = ds.unary neg %21 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %23 = ds.unary neg %22 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %24 = ds.unary neg %23 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %25 = ds.unary neg %24 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %26 = ds.unary neg %25 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %27 = ds.unary neg %26 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %28 = ds.unary neg %27 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %29 = ds.unary neg %28 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %30 = ds.unary neg %29 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %31 = ds.unary neg %30 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %32 = ds.unary neg %31 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %33 = ds.unary neg %32 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %34 = ds.unary neg %33 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %35 = ds.unary neg %34 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %36 = ds.unary neg %35 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %37 = ds.unary neg %36 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %38 = ds.unary neg %37 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %39 = ds.unary neg %38 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %40 = ds.unary neg %39 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %41 = ds.unary neg %40 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %42 = ds.unary neg %41 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %43 = ds.unary neg %42 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %44 = ds.unary neg %43 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %45 = ds.unary neg %44 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %46 = ds.unary neg %45 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %47 = ds.unary neg %46 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %48 = ds.unary neg %47 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %49 = ds.unary neg %48 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %50 = ds.unary neg %49 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %51 = ds.unary neg %50 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %52 = ds.unary neg %51 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %53 = ds.unary neg %52 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %54 = ds.unary neg %53 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %55 = ds.unary neg %54 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %56 = ds.unary neg %55 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %57 = ds.unary neg %56 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %58 = ds.unary neg %57 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %59 = ds.unary neg %58 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %60 = ds.unary neg %59 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %61 = ds.unary neg %60 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %62 = ds.unary neg %61 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %63 = ds.unary neg %62 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %64 = ds.unary neg %63 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %65 = ds.unary neg %64 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %66 = ds.unary neg %65 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %67 = ds.unary neg %66 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %68 = ds.unary neg %67 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %69 = ds.unary neg %68 : (tensor<7x7xf32>) -> tensor<7x7xf32>
  %70 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %71 = ds.binary add %70, %69 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %72 = ds.softmax %71 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %73 = ds.matmul %72, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %73 : tensor<2x4x7x8xf32>
}

// -----

// Two numbers times a mask.
// CHECK-LABEL: func.func @times_a_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @times_a_mask(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<7x7xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<1.0> : tensor<f32>
  %4 = ds.constant dense<0.0> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.binary mul %5, %arg3 : (tensor<7x7xf32>, tensor<7x7xf32>) -> tensor<7x7xf32>
  %7 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %8 = ds.binary add %7, %6 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.softmax %8 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.matmul %9, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %10 : tensor<2x4x7x8xf32>
}

// -----

// Two numbers times one that has more axes.
// CHECK-LABEL: func.func @number_of_more_axes
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @number_of_more_axes(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<1.0> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<1x1x1xf32>
  %7 = ds.binary mul %6, %5 : (tensor<1x1x1xf32>, tensor<7x7xf32>) -> tensor<1x7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<1x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// Times one that is repeated for each batch.
// CHECK-LABEL: func.func @number_by_batch
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @number_by_batch(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<1.0> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<-1.0e+9> : tensor<2x1x1x1xf32>
  %7 = ds.binary mul %6, %5 : (tensor<2x1x1x1xf32>, tensor<7x7xf32>) -> tensor<2x1x7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<2x1x7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}

// -----

// A function of two numbers that is not followed.
// CHECK-LABEL: func.func @power_of_numbers
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @power_of_numbers(%arg0: tensor<2x4x7x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.iota 0 [7, 1] : tensor<7x1xi64>
  %1 = ds.iota 1 [1, 7] : tensor<1x7xi64>
  %2 = ds.binary le %1, %0 : (tensor<1x7xi64>, tensor<7x1xi64>) -> tensor<7x7xi1>
  %3 = ds.constant dense<0.0> : tensor<f32>
  %4 = ds.constant dense<1.0> : tensor<f32>
  %5 = ds.select %2, %3, %4 : (tensor<7x7xi1>, tensor<f32>, tensor<f32>) -> tensor<7x7xf32>
  %6 = ds.constant dense<2.0> : tensor<f32>
  %7 = ds.binary pow %5, %6 : (tensor<7x7xf32>, tensor<f32>) -> tensor<7x7xf32>
  %8 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x7xf32>
  %9 = ds.binary add %8, %7 : (tensor<2x4x7x7xf32>, tensor<7x7xf32>) -> tensor<2x4x7x7xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %11 = ds.matmul %10, %arg2 transpose [false, false] : (tensor<2x4x7x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x7x8xf32>
  return %11 : tensor<2x4x7x8xf32>
}
