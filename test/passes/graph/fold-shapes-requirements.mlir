// RUN: ds-opt %s --split-input-file --ds-fold-shapes --mlir-print-local-scope | FileCheck %s
// What an op that is folded away requires of sizes stays, where only a run can tell and no other op requires it. Which
// runs are refused is checked by test/integration/requirement_cases.py.

// CHECK-LABEL: func.func @expand
// CHECK-NEXT: ds.require "s[0]" at least 0
// CHECK-NEXT: ds.require 4 : i64 broadcast with "s[0]"
// CHECK-NEXT: return %arg0
func.func @expand(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}) -> tensor<4xf32> {
  %0 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Twice the same is required once.
// CHECK-LABEL: func.func @twice
// CHECK-NEXT: ds.require "s[0]" at least 0
// CHECK-NEXT: ds.require 4 : i64 broadcast with "s[0]"
// CHECK-NEXT: ds.unary neg
// CHECK-NEXT: return
func.func @twice(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.broadcast %1 ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The iota and the sum require it, too.
// CHECK-LABEL: func.func @stated_by_others
// CHECK-NOT: ds.require
// CHECK: return %arg0, %{{.*}}
func.func @stated_by_others(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]})
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.iota 0 ["s[0]"] : tensor<?xi64>
  %2 = ds.cast %1 to f32 : (tensor<?xi64>) -> tensor<?xf32>
  %3 = ds.binary add %2, %x : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A reshape of a reshape reads what that one reads; the one between had to fit.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: ds.require "s[0]" at least 0
// CHECK-NEXT: ds.require "s[1]" at least 0
// CHECK-NEXT: ds.require "n" equal to "s[0]*s[1]"
// CHECK-NEXT: ds.reshape %arg0 ["n", 1]
// CHECK-NEXT: ds.reshape %arg0 ["n", 1]
// CHECK-NEXT: return
func.func @reshapes(%x: tensor<?xf32> {ds.dims = ["n"]}, %s: tensor<2xi64> {ds.name = "s", ds.dims = [2]})
    -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0 = ds.reshape %x ["s[0]", "s[1]"] : (tensor<?xf32>) -> tensor<?x?xf32>
  %1 = ds.reshape %0 ["n", 1] : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %2 = ds.reshape %x [1, "n"] : (tensor<?xf32>) -> tensor<1x?xf32>
  %3 = ds.reshape %2 ["n", 1] : (tensor<1x?xf32>) -> tensor<?x1xf32>
  return %1, %3 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// What the program never reads is pruned with what it requires.
// CHECK-LABEL: func.func @unread
// CHECK-NEXT: return %arg0
func.func @unread(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}) -> tensor<4xf32> {
  %0 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// What only a folded op read is no such thing.
// CHECK-LABEL: func.func @behind_what_folds
// CHECK-NEXT: ds.require "s[0]" at least 0
// CHECK-NEXT: ds.require 4 : i64 broadcast with "s[0]"
// CHECK-NEXT: %[[SUM:.*]] = ds.constant dense<10>
// CHECK-NEXT: return %[[SUM]]
func.func @behind_what_folds(%s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}) -> tensor<1xi64> {
  %0 = ds.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %1 = ds.broadcast %0 ["s[0]"] : (tensor<4xi64>) -> tensor<4xi64>
  %2 = ds.reduce sum %1 axes [0] keep true : (tensor<4xi64>) -> tensor<1xi64>
  return %2 : tensor<1xi64>
}

// -----

// Inside of a branch, only where that is taken; what stands before the branch need not be said again.
// CHECK-LABEL: func.func @branch
// CHECK: ds.broadcast %arg3 [5, "s[0]"]
// CHECK: scf.if
// CHECK-NEXT: ds.require 4 : i64 broadcast with "s[0]"
// CHECK-NEXT: scf.yield %arg0
// CHECK: return
func.func @branch(%x: tensor<4xf32>, %c: tensor<i1> {ds.name = "c", ds.dims = []},
                  %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}, %w: tensor<5x1xf32>) -> (tensor<4xf32>, tensor<5x?xf32>) {
  %3 = ds.broadcast %w [5, "s[0]"] : (tensor<5x1xf32>) -> tensor<5x?xf32>
  %0 = tensor.extract %c[] : tensor<i1>
  %1 = scf.if %0 -> (tensor<4xf32>) {
    %2 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    %2 = ds.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %1, %3 : tensor<4xf32>, tensor<5x?xf32>
}
