// Weights in files are told apart by where they lie: the file is not there, and nobody asks.
// RUN: ds-opt %s --split-input-file --ds-tie-parameters=places --verify-diagnostics | FileCheck %s

// CHECK: module attributes {ds.tied = {head = {of = "table", transposed = false}}}
// CHECK-LABEL: func.func @same_place
// CHECK-COUNT-2: ds.weight @table
// CHECK: ds.weight @behind
// CHECK: ds.weight @short
ds.recipe @table {
  %0 = ds.source "none.data" [64, 24] : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @head {
  %0 = ds.source "none.data" [64, 24] : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @behind {
  %0 = ds.source "none.data" [88, 24] : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @short {
  %0 = ds.source "none.data" [64, 16] : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
func.func @same_place() -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>) {
  %a = ds.weight @table : tensor<3x2xf32>
  // expected-remark @below {{'head' is 'table': one parameter; --untie trains two}}
  %b = ds.weight @head : tensor<3x2xf32>
  %c = ds.weight @behind : tensor<3x2xf32>
  %d = ds.weight @short : tensor<2x2xf32>
  return %a, %b, %c, %d : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>
}

// -----

// What is in the program is compared as always, and numbers of the same kind merely start equal.
// CHECK: module attributes {ds.tied = {b = {of = "a", transposed = true}}}
// CHECK-LABEL: func.func @in_the_program
// CHECK: ds.weight @zero
// CHECK: ds.weight @other
ds.recipe @a {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @b {
  %0 = ds.constant dense<[[1.0, 3.0], [2.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @zero {
  %0 = ds.constant dense<0.0> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @other {
  %0 = ds.constant dense<0.0> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
func.func @in_the_program() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = ds.weight @a : tensor<2x2xf32>
  // expected-remark @below {{'b' is 'a', transposed: one parameter; --untie trains two}}
  %b = ds.weight @b : tensor<2x2xf32>
  %c = ds.weight @zero : tensor<2x2xf32>
  %d = ds.weight @other : tensor<2x2xf32>
  return %a, %b, %c, %d : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
