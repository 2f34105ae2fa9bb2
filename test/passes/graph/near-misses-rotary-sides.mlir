// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null
// The two sides of pairs, rotated apart and joined: each function fails one condition of a rotation.

// Halves of two values.
// CHECK-LABEL: func.func @parts_of_two_values
// CHECK-NOT: ds.rotary
func.func @parts_of_two_values(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>, %arg3: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg3 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// Every other element of the second half.
// CHECK-LABEL: func.func @second_part_spread
// CHECK-NOT: ds.rotary
func.func @second_part_spread(%arg0: tensor<5x9xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 2] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// Of both.
// CHECK-LABEL: func.func @both_parts_spread
// CHECK-NOT: ds.rotary
func.func @both_parts_spread(%arg0: tensor<5x9xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 2] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 2] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// One element of the second half, for all of the first one.
// CHECK-LABEL: func.func @one_element_beside_many
// CHECK-NOT: ds.rotary
func.func @one_element_beside_many(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 1] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x1xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x1xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x1xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// An element between the halves.
// CHECK-LABEL: func.func @parts_apart
// CHECK-NOT: ds.rotary
func.func @parts_apart(%arg0: tensor<5x7xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x7xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 4] sizes [5, 3] steps [1, 1] : (tensor<5x7xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// Pairs of every third element.
// CHECK-LABEL: func.func @pairs_apart
// CHECK-NOT: ds.rotary
func.func @pairs_apart(%arg0: tensor<5x9xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 3] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 3] steps [1, 3] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.reshape %4 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %9 = ds.reshape %7 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %10 = ds.concat 2 %8, %9 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %11 = ds.reshape %10 [5, 6] : (tensor<5x3x2xf32>) -> tensor<5x6xf32>
  return %11 : tensor<5x6xf32>
}

// -----

// Pairs of overlapping parts.
// CHECK-LABEL: func.func @pairs_of_neighbours
// CHECK-NOT: ds.rotary
func.func @pairs_of_neighbours(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.reshape %4 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %9 = ds.reshape %7 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %10 = ds.concat 2 %8, %9 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %11 = ds.reshape %10 [5, 6] : (tensor<5x3x2xf32>) -> tensor<5x6xf32>
  return %11 : tensor<5x6xf32>
}

// -----

// The second of a pair is the first of the next one.
// CHECK-LABEL: func.func @pairs_of_next_pairs
// CHECK-NOT: ds.rotary
func.func @pairs_of_next_pairs(%arg0: tensor<5x8xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 2] sizes [5, 3] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.reshape %4 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %9 = ds.reshape %7 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %10 = ds.concat 2 %8, %9 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %11 = ds.reshape %10 [5, 6] : (tensor<5x3x2xf32>) -> tensor<5x6xf32>
  return %11 : tensor<5x6xf32>
}

// -----

// Pairs that are joined to longer rows.
// CHECK-LABEL: func.func @pairs_reshaped
// CHECK-NOT: ds.rotary
func.func @pairs_reshaped(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<3x10xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.reshape %4 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %9 = ds.reshape %7 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %10 = ds.concat 2 %8, %9 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %11 = ds.reshape %10 [3, 10] : (tensor<5x3x2xf32>) -> tensor<3x10xf32>
  return %11 : tensor<3x10xf32>
}

// -----

// Halves that are joined as pairs.
// CHECK-LABEL: func.func @halves_as_pairs
// CHECK-NOT: ds.rotary
func.func @halves_as_pairs(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.reshape %4 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %9 = ds.reshape %7 [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %10 = ds.concat 2 %8, %9 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %11 = ds.reshape %10 [5, 6] : (tensor<5x3x2xf32>) -> tensor<5x6xf32>
  return %11 : tensor<5x6xf32>
}

// -----

// Pairs that are joined as halves.
// CHECK-LABEL: func.func @pairs_as_halves
// CHECK-NOT: ds.rotary
func.func @pairs_as_halves(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 1] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}

// -----

// Another value where the second half should be.
// CHECK-LABEL: func.func @one_part
// CHECK-NOT: ds.rotary
func.func @one_part(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>, %arg3: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %arg3, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary sub %1, %2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary mul %arg3, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary add %4, %5 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.concat 1 %3, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %7 : tensor<5x6xf32>
}

// -----

// The second half as it is.
// CHECK-LABEL: func.func @no_product
// CHECK-NOT: ds.rotary
func.func @no_product(%arg0: tensor<5x6xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %1 = ds.slice %arg0 starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %0, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary sub %2, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary mul %1, %arg1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %0, %arg2 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary add %4, %5 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.concat 1 %3, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %7 : tensor<5x6xf32>
}

// -----

// Parts of a value without axes.
// CHECK-LABEL: func.func @parts_without_axes
// CHECK-NOT: ds.rotary
func.func @parts_without_axes(%arg0: tensor<f32>, %arg1: tensor<5x3xf32>, %arg2: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = ds.slice %arg0 starts [] sizes [] steps [] : (tensor<f32>) -> tensor<f32>
  %1 = ds.slice %arg0 starts [] sizes [] steps [] : (tensor<f32>) -> tensor<f32>
  %2 = ds.binary mul %0, %arg1 : (tensor<f32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %1, %arg2 : (tensor<f32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary mul %1, %arg1 : (tensor<f32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.binary mul %0, %arg2 : (tensor<f32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %7 = ds.binary add %5, %6 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %8 = ds.concat 1 %4, %7 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %8 : tensor<5x6xf32>
}
