// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null
// A value times cosines and the turned value times sines: each function fails one condition of a rotation.

// Rows that begin where a run says.
// CHECK-LABEL: func.func @later_rows
// CHECK-NOT: ds.rotary
func.func @later_rows(%arg0: tensor<?x8xf32> {ds.dims = ["s", 8]}, %arg1: tensor<?x8xf32> {ds.dims = ["s", 8]}, %arg2: tensor<?x8xf32> {ds.dims = ["s", 8]}, %arg3: tensor<?xf32> {ds.dims = ["p"]}) -> tensor<?x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = ds.slice %arg0 starts ["p", 0] sizes ["s", 4] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes ["s", 4] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %3 = ds.unary neg %2 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = ds.binary add %0, %5 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// One row, of which every other one is taken.
// CHECK-LABEL: func.func @strides_of_one_row
// CHECK-NOT: ds.rotary
func.func @strides_of_one_row(%arg0: tensor<1x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [1, 4] steps [2, 1] : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes [1, 4] steps [1, 1] : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %3 = ds.unary neg %2 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %6 = ds.binary add %0, %5 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return %6 : tensor<1x8xf32>
}

// -----

// The halves of the first row, turned for all rows.
// CHECK-LABEL: func.func @first_row_for_all
// CHECK-NOT: ds.rotary
func.func @first_row_for_all(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<1x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes [1, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<1x4xf32>
  %3 = ds.unary neg %2 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<1x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}

// -----

// The second half begins where a run says.
// CHECK-LABEL: func.func @start_of_run_time
// CHECK-NOT: ds.rotary
func.func @start_of_run_time(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>, %arg3: tensor<?xf32> {ds.dims = ["h"]}) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.slice %arg0 starts [0, "h"] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %3 = ds.unary neg %2 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}

// -----

// How wide the halves are is known at run time only.
// CHECK-LABEL: func.func @halves_of_run_time
// CHECK-NOT: ds.rotary
func.func @halves_of_run_time(%arg0: tensor<5x?xf32> {ds.dims = [5, "2*h"]}, %arg1: tensor<5x?xf32> {ds.dims = [5, "2*h"]}, %arg2: tensor<5x?xf32> {ds.dims = [5, "2*h"]}) -> tensor<5x?xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x?xf32>, tensor<5x?xf32>) -> tensor<5x?xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, "h"] steps [1, 1] : (tensor<5x?xf32>) -> tensor<5x?xf32>
  %2 = ds.slice %arg0 starts [0, "h"] sizes [5, "h"] steps [1, 1] : (tensor<5x?xf32>) -> tensor<5x?xf32>
  %3 = ds.unary neg %2 : (tensor<5x?xf32>) -> tensor<5x?xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x?xf32>, tensor<5x?xf32>) -> tensor<5x?xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x?xf32>, tensor<5x?xf32>) -> tensor<5x?xf32>
  %6 = ds.binary add %0, %5 : (tensor<5x?xf32>, tensor<5x?xf32>) -> tensor<5x?xf32>
  return %6 : tensor<5x?xf32>
}

// -----

// Three parts are joined, one without elements.
// CHECK-LABEL: func.func @three_parts
// CHECK-NOT: ds.rotary
func.func @three_parts(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.slice %arg0 starts [0, 0] sizes [5, 0] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x0xf32>
  %5 = ds.concat 1 %2, %3, %4 : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x0xf32>) -> tensor<5x8xf32>
  %6 = ds.binary mul %5, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %7 = ds.binary add %0, %6 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %7 : tensor<5x8xf32>
}

// -----

// The second half of another value.
// CHECK-LABEL: func.func @halves_of_two_values
// CHECK-NOT: ds.rotary
func.func @halves_of_two_values(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>, %arg3: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.slice %arg3 starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %3 = ds.unary neg %2 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}

// -----

// The other side of the pairs is no part.
// CHECK-LABEL: func.func @second_side_from_elsewhere
// CHECK-NOT: ds.rotary
func.func @second_side_from_elsewhere(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>, %arg3: tensor<5x4x1xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %4 = ds.concat 2 %3, %arg3 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x4x2xf32>
  %5 = ds.reshape %4 [5, 8] : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
  %6 = ds.binary mul %5, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %7 = ds.binary add %0, %6 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %7 : tensor<5x8xf32>
}

// -----

// Rows and pairs change their sizes before they are joined.
// CHECK-LABEL: func.func @sides_reshaped
// CHECK-NOT: ds.rotary
func.func @sides_reshaped(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [4, 5, 1] : (tensor<5x4xf32>) -> tensor<4x5x1xf32>
  %5 = ds.reshape %3 [4, 5, 1] : (tensor<5x4xf32>) -> tensor<4x5x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<4x5x1xf32>, tensor<4x5x1xf32>) -> tensor<4x5x2xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<4x5x2xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// The sides of the pairs are joined as halves, by a reshape.
// CHECK-LABEL: func.func @sides_joined_as_halves
// CHECK-NOT: ds.rotary
func.func @sides_joined_as_halves(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %5 = ds.reshape %3 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %6 = ds.concat 1 %4, %5 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x8x1xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<5x8x1xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// What is next to each other in pairs overlaps.
// CHECK-LABEL: func.func @sides_side_by_side
// CHECK-NOT: ds.rotary
func.func @sides_side_by_side(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %5 = ds.reshape %3 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x4x2xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// One side of the pairs twice.
// CHECK-LABEL: func.func @one_side_twice
// CHECK-NOT: ds.rotary
func.func @one_side_twice(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %5 = ds.reshape %3 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x4x2xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// One side is every other element, the other side is not.
// CHECK-LABEL: func.func @side_of_another_step
// CHECK-NOT: ds.rotary
func.func @side_of_another_step(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %5 = ds.reshape %3 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x4x2xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// The sides do not change places.
// CHECK-LABEL: func.func @sides_in_place
// CHECK-NOT: ds.rotary
func.func @sides_in_place(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.unary neg %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ds.slice %arg0 starts [0, 1] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %4 = ds.reshape %2 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %5 = ds.reshape %3 [5, 4, 1] : (tensor<5x4xf32>) -> tensor<5x4x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<5x4x1xf32>, tensor<5x4x1xf32>) -> tensor<5x4x2xf32>
  %7 = ds.reshape %6 [5, 8] : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
  %8 = ds.binary mul %7, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %9 = ds.binary add %0, %8 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %9 : tensor<5x8xf32>
}

// -----

// One cosine for all.
// CHECK-LABEL: func.func @one_cosine
// CHECK-NOT: ds.rotary
func.func @one_cosine(%arg0: tensor<5x8xf32>, %arg1: tensor<f32>, %arg2: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<f32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %3 = ds.unary neg %2 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}

// -----

// One sine for all.
// CHECK-LABEL: func.func @one_sine
// CHECK-NOT: ds.rotary
func.func @one_sine(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<f32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %3 = ds.unary neg %2 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x8xf32>, tensor<f32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}

// -----

// One sine for each row.
// CHECK-LABEL: func.func @sine_by_row
// CHECK-NOT: ds.rotary
func.func @sine_by_row(%arg0: tensor<5x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x1xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %arg0, %arg1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = ds.slice %arg0 starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %2 = ds.slice %arg0 starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %3 = ds.unary neg %2 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %4 = ds.concat 1 %3, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %5 = ds.binary mul %4, %arg2 : (tensor<5x8xf32>, tensor<5x1xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %6 = ds.binary add %0, %5 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %6 : tensor<5x8xf32>
}
