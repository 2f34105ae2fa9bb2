// Halves that a run cuts: where they begin and how long they are is known to nobody before.
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rotary --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @split_first
// CHECK-NOT: ds.rotary
func.func @split_first(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x9xf32>, %c: tensor<5x3xf32>, %s: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %b, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary mul %a, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary add %3, %4 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.concat 1 %2, %5 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %6 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @split_second
// CHECK-NOT: ds.rotary
func.func @split_second(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x9xf32>, %c: tensor<5x3xf32>, %s: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %b, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary mul %a, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary add %3, %4 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.concat 1 %2, %5 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %6 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @split_both
// CHECK-NOT: ds.rotary
func.func @split_both(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x9xf32>, %c: tensor<5x3xf32>, %s: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, "3 - min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x9xf32>) -> tensor<5x3xf32>
  %0 = ds.binary mul %a, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.binary mul %b, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = ds.binary sub %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = ds.binary mul %b, %c : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %4 = ds.binary mul %a, %s : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %5 = ds.binary add %3, %4 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %6 = ds.concat 1 %2, %5 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %6 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @turned_first
// CHECK-NOT: ds.rotary
func.func @turned_first(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x6xf32>, %c: tensor<5x6xf32>, %s: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, 3] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.unary neg %b : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.concat 1 %0, %a : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %2 = ds.binary mul %x, %c : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %3 = ds.binary mul %1, %s : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %4 = ds.binary add %2, %3 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @turned_second
// CHECK-NOT: ds.rotary
func.func @turned_second(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x6xf32>, %c: tensor<5x6xf32>, %s: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, 0] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.unary neg %b : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.concat 1 %0, %a : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %2 = ds.binary mul %x, %c : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %3 = ds.binary mul %1, %s : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %4 = ds.binary add %2, %3 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: func.func @turned_both
// CHECK-NOT: ds.rotary
func.func @turned_both(%n: tensor<?xf32> {ds.dims = ["n"]}, %x: tensor<5x6xf32>, %c: tensor<5x6xf32>, %s: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %a = ds.slice %x starts [0, "min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %b = ds.slice %x starts [0, "3 - min(n, 3)"] sizes [5, 3] steps [1, 1] : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %0 = ds.unary neg %b : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = ds.concat 1 %0, %a : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  %2 = ds.binary mul %x, %c : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %3 = ds.binary mul %1, %s : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %4 = ds.binary add %2, %3 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}
