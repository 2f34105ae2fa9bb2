// RUN: ds-opt %s --split-input-file --ds-tie-parameters --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/training_tie_cases.py: one parameter has the sum of both gradients.

// The table of the embedding stays, though the head comes first.
// CHECK: module attributes {ds.tied = {head = {of = "table", transposed = true}}}
// CHECK-NOT: ds.recipe @head
// CHECK-LABEL: func.func @doc
// CHECK: %[[W:.*]] = ds.weight @table : tensor<3x2xf32>
// CHECK: %[[T:.*]] = ds.transpose %[[W]] [1, 0]
// CHECK: ds.matmul %arg1, %[[T]]
// CHECK: ds.gather 0
ds.recipe @table {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @head {
  %0 = ds.constant dense<[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]> : tensor<2x3xf32>
  ds.yield %0 : tensor<2x3xf32>
}
func.func @doc(%i: tensor<4xi64>, %x: tensor<4x2xf32>) -> (tensor<4x3xf32>, tensor<4x2xf32>) {
  // expected-remark @below {{'head' is 'table', transposed: one parameter; --untie trains two}}
  %h = ds.weight @head : tensor<2x3xf32>
  %0 = ds.matmul %x, %h transpose [false, false] : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %t = ds.weight @table : tensor<3x2xf32>
  %1 = ds.gather 0 %t, %i : (tensor<3x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4x2xf32>
}

// -----

// Of three equal ones the first stays; what is equal in a part, or reshaped, is another one.
// CHECK: module attributes {ds.tied = {b = {of = "a", transposed = false}, c = {of = "a", transposed = false}}}
// CHECK-LABEL: func.func @equal
// CHECK-COUNT-3: ds.weight @a
// CHECK: ds.weight @flat
// CHECK: ds.weight @near
ds.recipe @a {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @b {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @c {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @flat {
  %0 = ds.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @near {
  %0 = ds.constant dense<[[1.0, 2.0], [4.0, 3.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
func.func @equal() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<2x2xf32>) {
  %a = ds.weight @a : tensor<2x2xf32>
  // expected-remark @below {{'b' is 'a': one parameter}}
  %b = ds.weight @b : tensor<2x2xf32>
  // expected-remark @below {{'c' is 'a': one parameter}}
  %c = ds.weight @c : tensor<2x2xf32>
  %f = ds.weight @flat : tensor<4xf32>
  %n = ds.weight @near : tensor<2x2xf32>
  return %a, %b, %c, %f, %n : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<2x2xf32>
}

// -----

// Zeros merely start equal, and a type is part of a tensor.
// CHECK-NOT: ds.tied
// CHECK-LABEL: func.func @start_equal
ds.recipe @a {
  %0 = ds.constant dense<0.0> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
ds.recipe @b {
  %0 = ds.constant dense<0.0> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
ds.recipe @i {
  %0 = ds.constant dense<[1, 2]> : tensor<2xi32>
  ds.yield %0 : tensor<2xi32>
}
ds.recipe @j {
  %0 = ds.constant dense<[1, 2]> : tensor<2xi32>
  ds.yield %0 : tensor<2xi32>
}
func.func @start_equal() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xi32>) {
  %a = ds.weight @a : tensor<2xf32>
  %b = ds.weight @b : tensor<2xf32>
  %i = ds.weight @i : tensor<2xi32>
  %j = ds.weight @j : tensor<2xi32>
  return %a, %b, %i, %j : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xi32>
}

// -----

// Each batch moves a running statistic: what merely begins with the same elements is another tensor.
// CHECK-NOT: ds.tied
// CHECK-LABEL: func.func @keeps_statistics_apart
ds.recipe @mean {
  %0 = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
ds.recipe @bias {
  %0 = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
func.func @keeps_statistics_apart(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %m = ds.weight @mean : tensor<2xf32>
  %b = ds.weight @bias : tensor<2xf32>
  %0, %1 = ds.running_statistic %x, %m momentum 0.9 node 7 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0, %b : tensor<2xf32>, tensor<2xf32>
}

// -----

// What merely starts equal and is one tensor of the file is one parameter; of two layers it is worth a warning.
// CHECK-LABEL: func.func @fresh
ds.recipe @zeros {
  %0 = ds.constant dense<0.0> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
ds.recipe @once {
  %0 = ds.constant dense<0.0> : tensor<2xf32>
  ds.yield %0 : tensor<2xf32>
}
func.func @fresh(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-warning @below {{'zeros' holds one number and is a parameter in 2 places: they are trained as one}}
  %z = ds.weight @zeros : tensor<2xf32>
  %o = ds.weight @once : tensor<2xf32>
  %0 = ds.binary add %x, %z : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = ds.binary add %0, %o : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %2 = ds.binary add %1, %z : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}
