// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Masks that are nearly cut down, or nearly hide nothing: each function fails one condition, and the attention reads
// the mask as it stands.

// A mask enlarged to more axes than the product has.
// CHECK-LABEL: func.func @more_axes_than_scores
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [add %{{[0-9a-z]+}}] scale 1.000000e+00 : ({{.*}}, tensor<1x4x5x7xf32>) ->
func.func @more_axes_than_scores(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.broadcast %arg3 [1, 4, 5, 7] : (tensor<5x7xf32>) -> tensor<1x4x5x7xf32>
  %1 = ds.unary neg %0 : (tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %3 = ds.binary add %2, %1 : (tensor<4x5x7xf32>, tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %4 = ds.reshape %3 [4, 5, 7] : (tensor<1x4x5x7xf32>) -> tensor<4x5x7xf32>
  %5 = ds.softmax %4 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %6 : tensor<4x5x8xf32>
}

// -----

// A mask enlarged to as many batches as a run may find to be others.
// CHECK-LABEL: func.func @enlarged_to_another_batch
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [add %{{[0-9a-z]+}}] scale 1.000000e+00 : ({{.*}}, tensor<?x1x1x7xf32>) ->
func.func @enlarged_to_another_batch(%arg0: tensor<?x4x5x8xf32> {ds.dims = ["b", 4, 5, 8]}, %arg1: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}, %arg2: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}, %arg3: tensor<?xf32> {ds.dims = ["m"]}, %arg4: tensor<1x7xf32>) -> tensor<?x4x5x8xf32> {
  %0 = ds.broadcast %arg4 ["m", 1, 1, 7] : (tensor<1x7xf32>) -> tensor<?x1x1x7xf32>
  %1 = ds.unary neg %0 : (tensor<?x1x1x7xf32>) -> tensor<?x1x1x7xf32>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x4x5x8xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x7xf32>
  %3 = ds.binary add %2, %1 : (tensor<?x4x5x7xf32>, tensor<?x1x1x7xf32>) -> tensor<?x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<?x4x5x7xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x8xf32>
  return %5 : tensor<?x4x5x8xf32>
}

// -----

// A constant that lets nothing pass.
// CHECK-LABEL: func.func @nothing_passes
// CHECK: ds.binary bit_and
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @nothing_passes(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<false> : tensor<1x1xi1>
  %1 = ds.binary bit_and %0, %arg3 : (tensor<1x1xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// A constant that lets everything pass, of several elements.
// CHECK-LABEL: func.func @all_pass_by_column
// CHECK: ds.binary bit_and
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @all_pass_by_column(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<7xi1>
  %1 = ds.binary bit_and %arg3, %0 : (tensor<5x7xi1>, tensor<7xi1>) -> tensor<5x7xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// Of more axes than what it stands beside.
// CHECK-LABEL: func.func @all_pass_on_more_axes
// CHECK: ds.binary bit_and
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00 : ({{.*}}, tensor<1x1x5x7xi1>) ->
func.func @all_pass_on_more_axes(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<1x1x1x1xi1>
  %1 = ds.binary bit_and %0, %arg3 : (tensor<1x1x1x1xi1>, tensor<5x7xi1>) -> tensor<1x1x5x7xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<1x1x5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// One of two suffices, and one lets everything pass.
// CHECK-LABEL: func.func @either_passes
// CHECK: ds.binary bit_or
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @either_passes(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<1x1xi1>
  %1 = ds.binary bit_or %arg3, %0 : (tensor<5x7xi1>, tensor<1x1xi1>) -> tensor<5x7xi1>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.constant dense<-1.0e+9> : tensor<f32>
  %4 = ds.select %1, %2, %3 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// Bits of numbers.
// CHECK-LABEL: func.func @last_bit
// CHECK: ds.binary bit_and
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @last_bit(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<1> : tensor<1x1xi32>
  %1 = ds.binary bit_and %arg3, %0 : (tensor<5x7xi32>, tensor<1x1xi32>) -> tensor<5x7xi32>
  %2 = ds.cast %1 to f32 : (tensor<5x7xi32>) -> tensor<5x7xf32>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary add %3, %2 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// Zeros that multiply.
// CHECK-LABEL: func.func @multiplied_with_zeros
// CHECK: ds.attention %arg0, %arg1, %arg2 [multiply %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @multiplied_with_zeros(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.0> : tensor<5x7xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %0 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
}

// -----

// All places have one half added.
// CHECK-LABEL: func.func @all_half
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @all_half(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<5x7xi1>
  %1 = ds.constant dense<0.5> : tensor<f32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary add %4, %3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// No place has a zero.
// CHECK-LABEL: func.func @none_zero
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep_add %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @none_zero(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<false> : tensor<5x7xi1>
  %1 = ds.constant dense<0.0> : tensor<f32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary add %4, %3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// All have the other number.
// CHECK-LABEL: func.func @all_other
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @all_other(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<false> : tensor<5x7xi1>
  %1 = ds.constant dense<-1.0e+9> : tensor<f32>
  %2 = ds.constant dense<0.5> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary add %4, %3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// Where all places have the first of two, it is not one number.
// CHECK-LABEL: func.func @some_zero
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @some_zero(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<5x7xi1>
  %1 = ds.constant dense<[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]> : tensor<7xf32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<5x7xi1>, tensor<7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary add %4, %3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// Nothing is kept.
// CHECK-LABEL: func.func @nothing_kept
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @nothing_kept(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<false> : tensor<1x7xi1>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<1x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// -----

// Everything is hidden.
// CHECK-LABEL: func.func @everything_hidden
// CHECK: ds.attention %arg0, %arg1, %arg2 [hide %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @everything_hidden(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<true> : tensor<1x7xi1>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %2, %1 : (tensor<1x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// -----

// All but the last place are kept.
// CHECK-LABEL: func.func @nearly_all_kept
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{[0-9a-z]+}} else -1.000000e+09] scale 1.000000e+00
func.func @nearly_all_kept(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<[[true, true, true, true, true, true, false]]> : tensor<1x7xi1>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-1.0e+9> : tensor<f32>
  %3 = ds.select %0, %1, %2 : (tensor<1x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// -----

// All but one number are zero.
// CHECK-LABEL: func.func @nearly_none_added
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{[0-9a-z]+}}] scale 1.000000e+00
func.func @nearly_none_added(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]]> : tensor<1x7xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary add %1, %0 : (tensor<2x4x5x7xf32>, tensor<1x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
}

// -----

// A zero where a run chooses it.
// CHECK-LABEL: func.func @zero_where_not_chosen
// CHECK: ds.attention %arg0, %arg1, %arg2 [hide_add %arg3 else -9.000000e+00] scale 1.000000e+00
func.func @zero_where_not_chosen(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<-9.0> : tensor<f32>
  %1 = ds.constant dense<0.0> : tensor<f32>
  %2 = ds.select %arg3, %0, %1 : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %3 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary add %3, %2 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// Beside heads that stand in front alone, a mask for all of them.
// CHECK-LABEL: func.func @mask_for_all_heads
// CHECK: ds.attention %{{[0-9a-z]+}}, %{{[0-9a-z]+}}, %{{[0-9a-z]+}} [add %arg3] scale
func.func @mask_for_all_heads(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>, %arg3: tensor<1x5x7xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<4x5x7xf32>, tensor<1x5x7xf32>) -> tensor<4x5x7xf32>
  %2 = ds.softmax %1 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %3 : tensor<4x5x8xf32>
}
