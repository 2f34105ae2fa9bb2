// RUN: ds-opt %s --split-input-file --ds-differentiate --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/gradient_loop_cases.py and training_cases.py.

// The loop keeps what the way back reads, a row per iteration; a loop from the last row on hands the gradient back. What
// each iteration reads a row of gets rows, what all read gets a sum, what each yields is read by rows.
// CHECK-LABEL: func.func @counted
// CHECK-SAME: %[[H:[a-z0-9]+]]: tensor<2xf32>, %[[ROWS:[a-z0-9]+]]: tensor<?x2xf32>
// CHECK: %[[THERE:.*]]:4 = scf.while
// CHECK: ds.define "i" =
// CHECK: ds.insert {{.*}} starts ["i", 0]
// CHECK: ds.insert {{.*}} starts ["i", 0]
// CHECK: scf.yield
// CHECK: %[[BACK:.*]]:4 = scf.while
// CHECK: ds.size "n"
// CHECK: ds.size "n - 1"
// CHECK: %[[AT:.*]] = arith.subi
// CHECK: ds.define "i_back" = %[[AT]]
// CHECK-NOT: "i"
// CHECK: ds.slice %[[THERE]]#3 starts ["i_back", 0]
// CHECK: ds.insert {{.*}} starts ["i_back", 0]
// CHECK: return %[[BACK]]#1, %[[BACK]]#2, %[[BACK]]#3
func.func @counted(%x: tensor<2xf32>, %rows: tensor<?x2xf32> {ds.dims = ["n", 2]}, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>) {
  %d:3 = train.gradient (%x, %rows, %w) {
  ^bb0(%h0: tensor<2xf32>, %r: tensor<?x2xf32>, %s: tensor<2xf32>):
    %zero = arith.constant 0 : i64
    %0 = ds.constant dense<0.0> : tensor<f32>
    %into = ds.broadcast %0 ["n", 2] : (tensor<f32>) -> tensor<?x2xf32>
    %loop:3 = scf.while (%i = %zero, %h = %h0, %all = %into) : (i64, tensor<2xf32>, tensor<?x2xf32>) -> (i64, tensor<2xf32>, tensor<?x2xf32>) {
      %n = ds.size "n"
      %more = arith.cmpi slt, %i, %n : i64
      scf.condition(%more) %i, %h, %all : i64, tensor<2xf32>, tensor<?x2xf32>
    } do {
    ^bb0(%i: i64, %h: tensor<2xf32>, %all: tensor<?x2xf32>):
      ds.define "i" = %i : i64
      %box = ds.slice %r starts ["i", 0] sizes [1, 2] steps [1, 1] : (tensor<?x2xf32>) -> tensor<1x2xf32>
      %row = ds.reshape %box [2] : (tensor<1x2xf32>) -> tensor<2xf32>
      %sum = ds.binary add %h, %row : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %next = ds.binary mul %sum, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %out = ds.reshape %next [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
      %collected = ds.insert %out into %all starts ["i", 0] : (tensor<1x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
      %one = arith.constant 1 : i64
      %j = arith.addi %i, %one : i64
      scf.yield %j, %next, %collected : i64, tensor<2xf32>, tensor<?x2xf32>
    }
    %y = ds.reduce sum %loop#2 axes [0] keep false : (tensor<?x2xf32>) -> tensor<2xf32>
    train.yield %y : tensor<2xf32>
  } : (tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>)
  return %d#0, %d#1, %d#2 : tensor<2xf32>, tensor<?x2xf32>, tensor<2xf32>
}

// -----

// How often a condition lets it run is known when it has run only.
func.func @ended_by_a_condition(%x: tensor<f32>) -> tensor<f32> {
  %d = train.gradient (%x) {
  ^bb0(%h0: tensor<f32>):
    %zero = arith.constant 0 : i64
    // expected-error @+1 {{'scf.while' has no derivative where a condition may end it, and a value whose gradient}}
    %loop:2 = scf.while (%i = %zero, %h = %h0) : (i64, tensor<f32>) -> (i64, tensor<f32>) {
      %limit = ds.constant dense<9.0> : tensor<f32>
      %small = ds.binary lt %h, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %more = tensor.extract %small[] : tensor<i1>
      scf.condition(%more) %i, %h : i64, tensor<f32>
    } do {
    ^bb0(%i: i64, %h: tensor<f32>):
      %next = ds.binary mul %h, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %one = arith.constant 1 : i64
      %j = arith.addi %i, %one : i64
      scf.yield %j, %next : i64, tensor<f32>
    }
    train.yield %loop#1 : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}
