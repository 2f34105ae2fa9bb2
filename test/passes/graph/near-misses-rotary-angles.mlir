// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null
// The two sides of pairs, rotated by angles that do not fit: each function fails one condition of a rotation.

// The second half of another value on the other side.
// CHECK-LABEL: func.func @other_value_across
// CHECK-NOT: ds.rotary
func.func @other_value_across(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>, %arg3: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.slice %arg3 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %5, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.binary add %6, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %9 = ds.concat 1 %4, %8 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %9 : tensor<5x6xf32>
}

// -----

// Every other element on the other side.
// CHECK-LABEL: func.func @other_step_across
// CHECK-NOT: ds.rotary
func.func @other_step_across(%arg0: tensor<5x9xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 2] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %5, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.binary add %6, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %9 = ds.concat 1 %4, %8 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %9 : tensor<5x6xf32>
}

// -----

// A side without sines.
// CHECK-LABEL: func.func @no_product_across
// CHECK-NOT: ds.rotary
func.func @no_product_across(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary add %5, %0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %7 = ds.concat 1 %4, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %7 : tensor<5x6xf32>
}

// -----

// Other sines on the other side.
// CHECK-LABEL: func.func @other_sines_across
// CHECK-NOT: ds.rotary
func.func @other_sines_across(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>, %arg3: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// Other cosines.
// CHECK-LABEL: func.func @other_cosines_across
// CHECK-NOT: ds.rotary
func.func @other_cosines_across(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>, %arg3: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// One cosine for all pairs.
// CHECK-LABEL: func.func @one_cosine_of_pairs
// CHECK-NOT: ds.rotary
func.func @one_cosine_of_pairs(%arg0: tensor<5x6xf32>, %arg1: tensor<f32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each pair of the last axis}}
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// One sine.
// CHECK-LABEL: func.func @one_sine_of_pairs
// CHECK-NOT: ds.rotary
func.func @one_sine_of_pairs(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<f32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each pair of the last axis}}
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}
