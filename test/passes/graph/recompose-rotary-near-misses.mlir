// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null
// What differs from a rotation in one thing stays as it is.

// The second half begins one element early.
// CHECK-LABEL: func.func @overlapping
// CHECK-NOT: ds.rotary
func.func @overlapping(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 3] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// One half is every other element.
// CHECK-LABEL: func.func @spread
// CHECK-NOT: ds.rotary
func.func @spread(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Both are.
// CHECK-LABEL: func.func @both_spread
// CHECK-NOT: ds.rotary
func.func @both_spread(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 1] sizes [5, 4] steps [1, 2] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The rows of one half come in reverse.
// CHECK-LABEL: func.func @rows_turned
// CHECK-NOT: ds.rotary
func.func @rows_turned(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [4, 0] sizes [5, 4] steps [-1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The other half is negated: a rotation backwards.
// CHECK-LABEL: func.func @other_sign
// CHECK-NOT: ds.rotary
func.func @other_sign(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %low : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %high, %minus : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Turned the other way around.
// CHECK-LABEL: func.func @subtracted
// CHECK-NOT: ds.rotary
func.func @subtracted(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = ds.binary sub %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The halves do not change places.
// CHECK-LABEL: func.func @halves_in_place
// CHECK-NOT: ds.rotary
func.func @halves_in_place(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %low : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %high : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Of whole numbers.
// CHECK-LABEL: func.func @whole_numbers
// CHECK-NOT: ds.rotary
func.func @whole_numbers(%x: tensor<5x8xi32>, %cos: tensor<5x8xi32>, %sin: tensor<5x8xi32>) -> tensor<5x8xi32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xi32>, tensor<5x8xi32>) -> tensor<5x8xi32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xi32>) -> tensor<5x4xi32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xi32>) -> tensor<5x4xi32>
  %minus = ds.unary neg %high : (tensor<5x4xi32>) -> tensor<5x4xi32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x8xi32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xi32>, tensor<5x8xi32>) -> tensor<5x8xi32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xi32>, tensor<5x8xi32>) -> tensor<5x8xi32>
  return %y : tensor<5x8xi32>
}

// -----

// The cosines of four sequences, one value.
// CHECK-LABEL: func.func @enlarged_by_cosines
// CHECK-NOT: ds.rotary
func.func @enlarged_by_cosines(%x: tensor<1x5x8xf32>, %cos: tensor<4x5x8xf32>, %sin: tensor<1x5x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<1x5x8xf32>, tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  %low = ds.slice %x starts [0, 0, 0] sizes [1, 5, 4] steps [1, 1, 1] : (tensor<1x5x8xf32>) -> tensor<1x5x4xf32>
  %high = ds.slice %x starts [0, 0, 4] sizes [1, 5, 4] steps [1, 1, 1] : (tensor<1x5x8xf32>) -> tensor<1x5x4xf32>
  %minus = ds.unary neg %high : (tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %t = ds.concat 2 %minus, %low : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<1x5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<4x5x8xf32>, tensor<1x5x8xf32>) -> tensor<4x5x8xf32>
  return %y : tensor<4x5x8xf32>
}

// -----

// The sines of four sequences, one value.
// CHECK-LABEL: func.func @enlarged_by_sines
// CHECK-NOT: ds.rotary
func.func @enlarged_by_sines(%x: tensor<1x5x8xf32>, %cos: tensor<1x5x8xf32>, %sin: tensor<4x5x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %low = ds.slice %x starts [0, 0, 0] sizes [1, 5, 4] steps [1, 1, 1] : (tensor<1x5x8xf32>) -> tensor<1x5x4xf32>
  %high = ds.slice %x starts [0, 0, 4] sizes [1, 5, 4] steps [1, 1, 1] : (tensor<1x5x8xf32>) -> tensor<1x5x4xf32>
  %minus = ds.unary neg %high : (tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %t = ds.concat 2 %minus, %low : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<1x5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<1x5x8xf32>, tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<1x5x8xf32>, tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  return %y : tensor<4x5x8xf32>
}

// -----

// One element of the second half, repeated.
// CHECK-LABEL: func.func @one_element
// CHECK-NOT: ds.rotary
func.func @one_element(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %c = ds.slice %x starts [0, 3] sizes [5, 1] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x1xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %c, %cos : (tensor<5x1xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// A half that begins elsewhere.
// CHECK-LABEL: func.func @shifted
// CHECK-NOT: ds.rotary
func.func @shifted(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %c = ds.slice %x starts [0, 2] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %c, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// Cosines and sines change places.
// CHECK-LABEL: func.func @exchanged
// CHECK-NOT: ds.rotary
func.func @exchanged(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// A difference where the sum should be.
// CHECK-LABEL: func.func @difference
// CHECK-NOT: ds.rotary
func.func @difference(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary sub %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// A sum where the difference should be.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: ds.rotary
func.func @sum(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary add %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// The second half comes first.
// CHECK-LABEL: func.func @backward
// CHECK-NOT: ds.rotary
func.func @backward(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// The sides are joined the other way around.
// CHECK-LABEL: func.func @joined_backward
// CHECK-NOT: ds.rotary
func.func @joined_backward(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = ds.concat 1 %imaginary, %real : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// The cosines of four sequences, one value.
// CHECK-LABEL: func.func @enlarged_split_by_cosines
// CHECK-NOT: ds.rotary
func.func @enlarged_split_by_cosines(%x: tensor<1x5x6xf32>, %cos: tensor<4x5x3xf32>, %sin: tensor<1x5x3xf32>) -> tensor<4x5x6xf32> {
  %a = ds.slice %x starts [0, 0, 0] sizes [1, 5, 3] steps [1, 1, 1] : (tensor<1x5x6xf32>) -> tensor<1x5x3xf32>
  %b = ds.slice %x starts [0, 0, 3] sizes [1, 5, 3] steps [1, 1, 1] : (tensor<1x5x6xf32>) -> tensor<1x5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<1x5x3xf32>, tensor<1x5x3xf32>) -> tensor<1x5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<4x5x3xf32>, tensor<1x5x3xf32>) -> tensor<4x5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<1x5x3xf32>, tensor<1x5x3xf32>) -> tensor<1x5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<4x5x3xf32>, tensor<1x5x3xf32>) -> tensor<4x5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each pair of the last axis}}
  %y = ds.concat 2 %real, %imaginary : (tensor<4x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x6xf32>
  return %y : tensor<4x5x6xf32>
}

// -----

// The sines of four sequences, one value.
// CHECK-LABEL: func.func @enlarged_split_by_sines
// CHECK-NOT: ds.rotary
func.func @enlarged_split_by_sines(%x: tensor<1x5x6xf32>, %cos: tensor<1x5x3xf32>, %sin: tensor<4x5x3xf32>) -> tensor<4x5x6xf32> {
  %a = ds.slice %x starts [0, 0, 0] sizes [1, 5, 3] steps [1, 1, 1] : (tensor<1x5x6xf32>) -> tensor<1x5x3xf32>
  %b = ds.slice %x starts [0, 0, 3] sizes [1, 5, 3] steps [1, 1, 1] : (tensor<1x5x6xf32>) -> tensor<1x5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<1x5x3xf32>, tensor<1x5x3xf32>) -> tensor<1x5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<1x5x3xf32>, tensor<1x5x3xf32>) -> tensor<1x5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<1x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each pair of the last axis}}
  %y = ds.concat 2 %real, %imaginary : (tensor<4x5x3xf32>, tensor<4x5x3xf32>) -> tensor<4x5x6xf32>
  return %y : tensor<4x5x6xf32>
}

// -----

// One angle for all pairs.
// CHECK-LABEL: func.func @one_angle
// CHECK-NOT: ds.rotary
func.func @one_angle(%x: tensor<5x6xf32>, %cos: tensor<5x1xf32>, %sin: tensor<5x1xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each pair of the last axis}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}
