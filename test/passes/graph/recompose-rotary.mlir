// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.rotary %arg0, %arg1, %arg2 interleaved false {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @doc(%x: tensor<?x2x?x8xf32> {ds.dims = ["batch", 2, "seq", 8]}, %cos: tensor<1x1x?x8xf32> {ds.dims = [1, 1, "seq", 8]},
               %sin: tensor<1x1x?x8xf32> {ds.dims = [1, 1, "seq", 8]}) -> tensor<?x2x?x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<?x2x?x8xf32>, tensor<1x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %low = ds.slice %x starts [0, 0, 0, 0] sizes ["batch", 2, "seq", 4] steps [1, 1, 1, 1] : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x4xf32>
  %high = ds.slice %x starts [0, 0, 0, 4] sizes ["batch", 2, "seq", 4] steps [1, 1, 1, 1] : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x4xf32>
  %minus = ds.unary neg %high : (tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %t = ds.concat 3 %minus, %low : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<?x2x?x8xf32>, tensor<1x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ds.binary add %0, %1 {ds.values = ["y"]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// GPT-J: neighbours are pairs, stacked and flattened; all commutative ops turned around.
// CHECK-LABEL: func.func @interleaved
// CHECK-NEXT: ds.rotary %arg0, %arg1, %arg2 interleaved true
// CHECK-NEXT: return
func.func @interleaved(%x: tensor<2x5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<2x5x8xf32> {
  %a = ds.slice %x starts [0, 0, 0] sizes [2, 5, 4] steps [1, 1, 2] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
  %b = ds.slice %x starts [0, 0, 1] sizes [2, 5, 4] steps [1, 1, 2] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
  %minus = ds.unary neg %b : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %0 = ds.reshape %minus [2, 5, 4, 1] : (tensor<2x5x4xf32>) -> tensor<2x5x4x1xf32>
  %1 = ds.reshape %a [2, 5, 4, 1] : (tensor<2x5x4xf32>) -> tensor<2x5x4x1xf32>
  %2 = ds.concat 3 %0, %1 : (tensor<2x5x4x1xf32>, tensor<2x5x4x1xf32>) -> tensor<2x5x4x2xf32>
  %t = ds.reshape %2 [2, 5, 8] : (tensor<2x5x4x2xf32>) -> tensor<2x5x8xf32>
  %3 = ds.binary mul %sin, %t : (tensor<5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %4 = ds.binary mul %cos, %x : (tensor<5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %y = ds.binary add %3, %4 : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %y : tensor<2x5x8xf32>
}

// -----

// Both sides rotated apart, an angle per pair, on the first 6 of 8 elements: what RotaryEmbedding of ONNX expands to.
// CHECK-LABEL: func.func @split
// CHECK: %[[R:.*]] = ds.rotary %arg0, %arg1, %arg2 interleaved false first 6
// CHECK-NEXT: return %[[R]]
func.func @split(%x: tensor<2x5x8xf32>, %cos: tensor<2x1x3xf32>, %sin: tensor<2x1x3xf32>) -> tensor<2x5x8xf32> {
  %a = ds.slice %x starts [0, 0, 0] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x8xf32>) -> tensor<2x5x3xf32>
  %b = ds.slice %x starts [0, 0, 3] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x8xf32>) -> tensor<2x5x3xf32>
  %rest = ds.slice %x starts [0, 0, 6] sizes [2, 5, 2] steps [1, 1, 1] : (tensor<2x5x8xf32>) -> tensor<2x5x2xf32>
  %0 = ds.binary mul %cos, %a : (tensor<2x1x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %1 = ds.binary mul %sin, %b : (tensor<2x1x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %2 = ds.binary mul %sin, %a : (tensor<2x1x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %3 = ds.binary mul %cos, %b : (tensor<2x1x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %r = ds.concat 2 %real, %imaginary : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x6xf32>
  %y = ds.concat 2 %r, %rest : (tensor<2x5x6xf32>, tensor<2x5x2xf32>) -> tensor<2x5x8xf32>
  return %y : tensor<2x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @split_interleaved
// CHECK-NEXT: ds.rotary %arg0, %arg1, %arg2 interleaved true
// CHECK-NEXT: return
func.func @split_interleaved(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 1] sizes [5, 3] steps [1, 2] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.reshape %real [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %5 = ds.reshape %imaginary [5, 3, 1] : (tensor<5x3xf32>) -> tensor<5x3x1xf32>
  %6 = ds.concat 2 %4, %5 : (tensor<5x3x1xf32>, tensor<5x3x1xf32>) -> tensor<5x3x2xf32>
  %y = ds.reshape %6 [5, 6] : (tensor<5x3x2xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @of_another_value
// CHECK-NOT: ds.rotary
func.func @of_another_value(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %z, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: the turned value is not the one beside it}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Unequal parts change places: no rotation.
// CHECK-LABEL: func.func @unequal_parts
// CHECK-NOT: ds.rotary
func.func @unequal_parts(%x: tensor<5x8xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x3xf32>
  %high = ds.slice %x starts [0, 3] sizes [5, 5] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x5xf32>
  %minus = ds.unary neg %high : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x5xf32>, tensor<5x3xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: what is turned is not all pairs of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK-LABEL: func.func @angles_of_rows
// CHECK-NOT: ds.rotary
func.func @angles_of_rows(%x: tensor<5x8xf32>, %cos: tensor<5x1xf32>, %sin: tensor<5x1xf32>) -> tensor<5x8xf32> {
  %0 = ds.binary mul %x, %cos : (tensor<5x8xf32>, tensor<5x1xf32>) -> tensor<5x8xf32>
  %low = ds.slice %x starts [0, 0] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %high = ds.slice %x starts [0, 4] sizes [5, 4] steps [1, 1] : (tensor<5x8xf32>) -> tensor<5x4xf32>
  %minus = ds.unary neg %high : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %1 = ds.binary mul %t, %sin : (tensor<5x8xf32>, tensor<5x1xf32>) -> tensor<5x8xf32>
  // expected-remark @+1 {{rotary not recomposed: cosines and sines are not one for each element of the last axis}}
  %y = ds.binary add %0, %1 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK-LABEL: func.func @different_angles
// CHECK-NOT: ds.rotary
func.func @different_angles(%x: tensor<5x6xf32>, %cos: tensor<5x3xf32>, %sin: tensor<5x3xf32>, %other: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %a, %other : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  // expected-remark @+1 {{rotary not recomposed: the two sides of the pairs are not rotated by the same angles}}
  %y = ds.concat 1 %real, %imaginary : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// tf2onnx writes an open end of a slice as 10^9: rows of angles for as many places, if there are fewer.
// CHECK-LABEL: func.func @clamped_angles
// CHECK: ds.rotary %arg0, %{{.*}}, %{{.*}} interleaved false
func.func @clamped_angles(%x: tensor<?x8xf32> {ds.dims = ["s", 8]}, %cos: tensor<?x8xf32> {ds.dims = ["s", 8]}, %sin: tensor<?x8xf32> {ds.dims = ["s", 8]}) -> tensor<?x8xf32> {
  %c = ds.slice %cos starts [0, 0] sizes ["min(1000000000, s)", 8] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %n = ds.slice %sin starts [0, 0] sizes ["min(1000000000, s)", 8] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = ds.binary mul %x, %c : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %low = ds.slice %x starts [0, 0] sizes ["s", 4] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %high = ds.slice %x starts [0, 4] sizes ["s", 4] steps [1, 1] : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %minus = ds.unary neg %high : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = ds.concat 1 %minus, %low : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %1 = ds.binary mul %t, %n : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %0, %1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Cosines and sines are the halves of one table, and stand first in their products.
// CHECK-LABEL: func.func @angles_of_one_table
// CHECK: %[[COS:.*]] = ds.slice %arg1 starts [0, 0]
// CHECK: %[[SIN:.*]] = ds.slice %arg1 starts [0, 3]
// CHECK: ds.rotary %arg0, %[[COS]], %[[SIN]] interleaved false
func.func @angles_of_one_table(%x: tensor<2x5x6xf32>, %table: tensor<5x6xf32>) -> tensor<2x5x6xf32> {
  %cos = ds.slice %table starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %sin = ds.slice %table starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %a = ds.slice %x starts [0, 0, 0] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %b = ds.slice %x starts [0, 0, 3] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %0 = ds.binary mul %cos, %a : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %1 = ds.binary mul %sin, %b : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %2 = ds.binary mul %cos, %b : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %3 = ds.binary mul %sin, %a : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = ds.concat 2 %real, %imaginary : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x6xf32>
  return %y : tensor<2x5x6xf32>
}

// -----

// Each side has another factor first.
// CHECK-LABEL: func.func @angles_on_either_side
// CHECK: ds.rotary %arg0, %{{.*}}, %{{.*}} interleaved false
func.func @angles_on_either_side(%x: tensor<2x5x6xf32>, %table: tensor<5x6xf32>) -> tensor<2x5x6xf32> {
  %cos = ds.slice %table starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %sin = ds.slice %table starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %a = ds.slice %x starts [0, 0, 0] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %b = ds.slice %x starts [0, 0, 3] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %0 = ds.binary mul %cos, %a : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %1 = ds.binary mul %b, %sin : (tensor<2x5x3xf32>, tensor<5x3xf32>) -> tensor<2x5x3xf32>
  %real = ds.binary sub %0, %1 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %2 = ds.binary mul %b, %cos : (tensor<2x5x3xf32>, tensor<5x3xf32>) -> tensor<2x5x3xf32>
  %3 = ds.binary mul %sin, %a : (tensor<5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %imaginary = ds.binary add %2, %3 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = ds.concat 2 %real, %imaginary : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x6xf32>
  return %y : tensor<2x5x6xf32>
}

// -----

// Elements behind those that are rotated stay as they are: one op for the whole head.
// CHECK-LABEL: func.func @first_elements
// CHECK: %[[Y:.*]] = ds.rotary %arg0, %arg1, %arg2 interleaved false first 6 : (tensor<2x5x10xf32>, tensor<5x6xf32>, tensor<5x6xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @first_elements(%x: tensor<2x5x10xf32>, %cos: tensor<5x6xf32>, %sin: tensor<5x6xf32>) -> tensor<2x5x10xf32> {
  %r = ds.slice %x starts [0, 0, 0] sizes [2, 5, 6] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x6xf32>
  %p = ds.slice %x starts [0, 0, 6] sizes [2, 5, 4] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x4xf32>
  %a = ds.slice %r starts [0, 0, 0] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %b = ds.slice %r starts [0, 0, 3] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x6xf32>) -> tensor<2x5x3xf32>
  %n = ds.unary neg %b : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %t = ds.concat 2 %n, %a : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x6xf32>
  %0 = ds.binary mul %r, %cos : (tensor<2x5x6xf32>, tensor<5x6xf32>) -> tensor<2x5x6xf32>
  %1 = ds.binary mul %t, %sin : (tensor<2x5x6xf32>, tensor<5x6xf32>) -> tensor<2x5x6xf32>
  %2 = ds.binary add %0, %1 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %y = ds.concat 2 %2, %p : (tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> tensor<2x5x10xf32>
  return %y : tensor<2x5x10xf32>
}

// -----

// Not the others: of the end of a head, of an overlapping part, of another head, or behind a gap.
// CHECK-LABEL: func.func @other_elements
// CHECK-COUNT-2: ds.rotary %{{.*}} interleaved false :
// CHECK-COUNT-4: ds.concat 2
func.func @other_elements(%x: tensor<2x5x10xf32>, %z: tensor<2x5x10xf32>, %cos: tensor<5x6xf32>, %sin: tensor<5x6xf32>)
    -> (tensor<2x5x10xf32>, tensor<2x5x10xf32>, tensor<2x5x10xf32>, tensor<2x5x9xf32>) {
  %r = ds.slice %x starts [0, 0, 0] sizes [2, 5, 6] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x6xf32>
  %e = ds.slice %x starts [0, 0, 4] sizes [2, 5, 6] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x6xf32>
  %first = ds.slice %x starts [0, 0, 0] sizes [2, 5, 4] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x4xf32>
  %overlap = ds.slice %x starts [0, 0, 5] sizes [2, 5, 4] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x4xf32>
  %other = ds.slice %z starts [0, 0, 6] sizes [2, 5, 4] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x4xf32>
  %late = ds.slice %x starts [0, 0, 7] sizes [2, 5, 3] steps [1, 1, 1] : (tensor<2x5x10xf32>) -> tensor<2x5x3xf32>
  %0 = ds.rotary %r, %cos, %sin interleaved false : (tensor<2x5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<2x5x6xf32>
  %1 = ds.rotary %e, %cos, %sin interleaved false : (tensor<2x5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<2x5x6xf32>
  %2 = ds.concat 2 %1, %first : (tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> tensor<2x5x10xf32>
  %3 = ds.concat 2 %0, %overlap : (tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> tensor<2x5x10xf32>
  %4 = ds.concat 2 %0, %other : (tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> tensor<2x5x10xf32>
  %5 = ds.concat 2 %0, %late : (tensor<2x5x6xf32>, tensor<2x5x3xf32>) -> tensor<2x5x9xf32>
  return %2, %3, %4, %5 : tensor<2x5x10xf32>, tensor<2x5x10xf32>, tensor<2x5x10xf32>, tensor<2x5x9xf32>
}
