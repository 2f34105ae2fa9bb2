// RUN: ds-opt %s --split-input-file --ds-differentiate --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/gradient_cases.py: what a gradient is is known to this pass only.

// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[Y:.*]] = ds.unary exp %arg0
// CHECK-DAG: %[[ONE:.*]] = ds.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DX:.*]] = ds.binary mul %[[ONE]], %[[Y]]
// CHECK: return %[[DX]]
func.func @doc(%x: tensor<f32>) -> tensor<f32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<f32>):
    %0 = ds.unary exp %a : (tensor<f32>) -> tensor<f32>
    train.yield %0 : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %dx : tensor<f32>
}

// -----

// What is used twice gets the sum of two derivatives.
// CHECK-LABEL: func.func @adds_up_over_uses
// CHECK: %[[LAST:.*]] = ds.unary neg %{{.*}} : (tensor<4xf32>)
// CHECK: %[[FIRST:.*]] = ds.binary mul %{{.*}}, %{{.*}}
// CHECK: ds.binary add %[[LAST]], %[[FIRST]]
func.func @adds_up_over_uses(%x: tensor<4xf32>) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.binary sub %0, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @sums_over_repeated_axes
// CHECK: ds.reduce sum %{{.*}} axes [0] keep true : (tensor<?x4xf32>) -> tensor<1x4xf32>
// CHECK: ds.reshape %{{.*}} [4]
func.func @sums_over_repeated_axes(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %dw = train.gradient (%w) at (%x) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<?x4xf32>):
    %0 = ds.binary mul %a, %b : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    train.yield %0 : tensor<?x4xf32>
  } : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<4xf32>
  return %dw : tensor<4xf32>
}

// -----

// Whether the axis was repeated is known when the program runs: rows of the operand's size, as many as there are.
// CHECK-LABEL: func.func @sums_over_axes_of_unknown_size
// CHECK: ds.reshape %{{.*}} ["floordiv(4, max(1, arg1_d0))", "arg1_d0"]
// CHECK-NEXT: ds.reduce sum %{{.*}} axes [0]
func.func @sums_over_axes_of_unknown_size(%x: tensor<4xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %dw = train.gradient (%w) at (%x) {
  ^bb0(%a: tensor<?xf32>, %b: tensor<4xf32>):
    %0 = ds.binary mul %a, %b : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %0 : tensor<4xf32>
  } : (tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  return %dw : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @zeros_where_nothing_depends
// CHECK-DAG: %[[ZERO:.*]] = ds.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[DZ:.*]] = ds.broadcast %[[ZERO]] [3]
// CHECK: return %{{.*}}, %[[DZ]]
func.func @zeros_where_nothing_depends(%x: tensor<2xf32>, %u: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  // expected-remark @+1 {{the value does not depend on x 1: its gradient is 0 everywhere}}
  %dx, %du = train.gradient (%x, %u) {
  ^bb0(%a: tensor<2xf32>, %b: tensor<3xf32>):
    %0 = ds.unary tanh %a : (tensor<2xf32>) -> tensor<2xf32>
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return %dx, %du : tensor<2xf32>, tensor<3xf32>
}

// -----

// The same value from above is no argument: it is held constant.
// CHECK-LABEL: func.func @holds_what_is_above_constant
// CHECK: %[[ONES:.*]] = ds.broadcast
// CHECK: %[[DX:.*]] = ds.binary mul %[[ONES]], %arg0
// CHECK-NEXT: return %[[DX]]
func.func @holds_what_is_above_constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    %0 = ds.binary mul %a, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

// Steps and integers end the way: no derivative goes through them.
// CHECK-LABEL: func.func @nothing_through_integers
// CHECK-NOT: ds.cast
// CHECK: ds.broadcast %{{.*}} [2]
func.func @nothing_through_integers(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-remark @+1 {{the value does not depend on x 0}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    %0 = ds.cast %a to i64 : (tensor<2xf32>) -> tensor<2xi64>
    %1 = ds.cast %0 to f32 : (tensor<2xi64>) -> tensor<2xf32>
    train.yield %1 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

// The inner gradient becomes ops of the outer region first.
// CHECK-LABEL: func.func @second_order
// CHECK-NOT: train.
// CHECK: %[[SIN:.*]] = ds.unary sin %arg0
// CHECK: %[[SLOPE:.*]] = ds.unary neg %[[SIN]]
// CHECK: ds.binary mul %{{.*}}, %[[SLOPE]]
func.func @second_order(%x: tensor<f32>) -> tensor<f32> {
  %d = train.gradient (%x) {
  ^bb0(%a: tensor<f32>):
    %di = train.gradient (%a) {
    ^bb0(%b: tensor<f32>):
      %0 = ds.unary sin %b : (tensor<f32>) -> tensor<f32>
      train.yield %0 : tensor<f32>
    } : (tensor<f32>) -> tensor<f32>
    train.yield %di : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}

// -----

// One error for each kind of op, the last one in the program.
func.func @no_rule(%x: tensor<1x2x?x8xf32>, %d: tensor<1x2x?x8xf32>, %b: tensor<1x2x?xf32>, %s: tensor<1x2x8x8xf32>)
    -> tensor<1x2x?x8xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<1x2x?x8xf32>):
    %c = ds.bitcast %a to f32 : (tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
    // expected-error @+1 {{'ds.bitcast' has no derivative yet, and a value whose gradient is asked for depends on it}}
    %e = ds.bitcast %c to f32 : (tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
    // expected-error @+1 {{'ds.linear_attention' has no derivative yet, and a value whose gradient is asked for depends on it}}
    %o, %n = ds.linear_attention %e, %a, %a, %a, %b, %s scale 0.5 delta false : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<1x2x8x8xf32>)
    train.yield %o : tensor<1x2x?x8xf32>
  } : (tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
  return %dx : tensor<1x2x?x8xf32>
}

// -----

func.func @no_rule_for_a_kind(%x: tensor<4xf32>, %i: tensor<1x1xi64>, %u: tensor<1xf32>) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{'ds.scatter_nd' has no derivative yet for products, maxima and minima, and a value}}
    %0 = ds.scatter_nd mul %a, %i, %u : (tensor<4xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<4xf32>
    train.yield %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

// By its scales a table of codes could be learned, but quantization comes later.
func.func @no_rule_for_codes(%q: tensor<4x2xi8>, %i: tensor<3xi64>, %s: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %ds = train.gradient (%s) {
  ^bb0(%a: tensor<4x1xf32>):
    // expected-error @+1 {{'ds.gather' has no derivative once its table is quantized, and a value}}
    %0 = ds.gather 0 %q, %i scales %a : (tensor<4x2xi8>, tensor<3xi64>, tensor<4x1xf32>) -> tensor<3x2xf32>
    train.yield %0 : tensor<3x2xf32>
  } : (tensor<4x1xf32>) -> tensor<4x1xf32>
  return %ds : tensor<4x1xf32>
}

// -----

func.func @narrow_floats(%x: tensor<4xf32>) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.cast %a to f8E4M3FN : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
    // expected-error @+1 {{'ds.cast' has no derivative between floats of which one has 8 bits or less}}
    %1 = ds.cast %0 to f32 : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

// Ops that the value does not depend on need no rule.
// CHECK-LABEL: func.func @rules_only_on_the_way
// CHECK-NOT: ds.cast
// CHECK: return
func.func @rules_only_on_the_way(%x: tensor<4xf32>) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.cast %a to f8E4M3FN : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
    %1 = ds.cast %0 to f32 : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    %2 = ds.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
    train.yield %2 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

// Each side of a branch becomes a side that yields derivatives with respect to what the branch uses. What it reads of the way
// there is not computed again: the branch hands it on.
// CHECK-LABEL: func.func @through_a_branch
// CHECK: %[[F:.*]]:2 = scf.if %arg1 -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK: %[[Y:.*]] = ds.unary exp %arg0
// CHECK: scf.yield %[[Y]], %[[Y]]
// CHECK: } else {
// CHECK: %[[N:.*]] = ds.unary neg %arg0
// CHECK: %[[E:.*]] = ds.empty [2] of f32
// CHECK: scf.yield %[[N]], %[[E]]
// CHECK: %[[D:.*]] = scf.if %arg1 -> (tensor<2xf32>) {
// CHECK-NOT: exp
// CHECK: %[[G:.*]] = ds.binary mul %{{.*}}, %[[F]]#1
// CHECK: scf.yield %[[G]]
// CHECK: } else {
// CHECK: %[[N:.*]] = ds.binary mul
// CHECK: scf.yield %[[N]]
// CHECK: return %[[D]]
func.func @through_a_branch(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    %0 = scf.if %c -> tensor<2xf32> {
      %1 = ds.unary exp %a : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %1 : tensor<2xf32>
    } else {
      %2 = ds.unary neg %a : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %2 : tensor<2xf32>
    }
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

// Values of both sides that have the same sizes share a result; what moves elements is there twice.
// CHECK-LABEL: func.func @sides_share
// CHECK: scf.if %arg1 -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK-NOT: ds.empty
// CHECK: } else {
// CHECK-NOT: ds.empty
// CHECK: scf.if
// CHECK: ds.reshape
// CHECK: } else {
func.func @sides_share(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    %0 = scf.if %c -> tensor<2xf32> {
      %1 = ds.unary exp %a : (tensor<2xf32>) -> tensor<2xf32>
      %2 = ds.reshape %1 [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
      %3 = ds.unary sin %2 : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %4 = ds.reshape %3 [2] : (tensor<1x2xf32>) -> tensor<2xf32>
      scf.yield %4 : tensor<2xf32>
    } else {
      %5 = ds.unary tanh %a : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %5 : tensor<2xf32>
    }
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

// What neighbouring slices give back is one concatenation, whichever came first; what lies apart or overlaps is added up.
// CHECK-LABEL: func.func @parts_of_a_split
// CHECK: ds.unary sin
// CHECK: %[[C:.*]] = ds.concat 1 %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x9xf32>
// CHECK-NOT: ds.binary add
// CHECK: return %[[C]]
func.func @parts_of_a_split(%x: tensor<2x9xf32>) -> tensor<2x9xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2x9xf32>):
    %0 = ds.slice %a starts [0, 3] sizes [2, 2] steps [1, 1] : (tensor<2x9xf32>) -> tensor<2x2xf32>
    %1 = ds.slice %a starts [0, 0] sizes [2, 3] steps [1, 1] : (tensor<2x9xf32>) -> tensor<2x3xf32>
    %2 = ds.slice %a starts [0, 5] sizes [2, 4] steps [1, 1] : (tensor<2x9xf32>) -> tensor<2x4xf32>
    %3 = ds.unary sin %0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %4 = ds.unary cos %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = ds.unary exp %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %6 = ds.concat 1 %3, %4, %5 : (tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x9xf32>
    train.yield %6 : tensor<2x9xf32>
  } : (tensor<2x9xf32>) -> tensor<2x9xf32>
  return %dx : tensor<2x9xf32>
}

// -----

// What a side only transposes is handed on transposed, so that one kernel may compute and write it: the way back turns it.
// CHECK-LABEL: func.func @side_that_transposes
// CHECK: %[[F:.*]]:2 = scf.if %arg1 -> (tensor<3x2xf32>, tensor<3x2xf32>) {
// CHECK: ds.unary exp
// CHECK: %[[T:.*]] = ds.transpose
// CHECK: scf.yield %{{.*}}, %[[T]]
// CHECK: scf.if
// CHECK: %[[E:.*]] = ds.transpose %[[F]]#1 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
// CHECK: ds.binary mul %{{.*}}, %[[E]]
func.func @side_that_transposes(%x: tensor<2x3xf32>, %c: i1) -> tensor<2x3xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2x3xf32>):
    %0 = scf.if %c -> tensor<3x2xf32> {
      %1 = ds.unary exp %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = ds.transpose %1 [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %3 = ds.unary sin %2 : (tensor<3x2xf32>) -> tensor<3x2xf32>
      scf.yield %3 : tensor<3x2xf32>
    } else {
      %4 = ds.transpose %a [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
      scf.yield %4 : tensor<3x2xf32>
    }
    train.yield %0 : tensor<3x2xf32>
  } : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %dx : tensor<2x3xf32>
}

// -----

// How many elements are chosen is known in the side alone: it runs once more.
// CHECK-LABEL: func.func @side_with_sizes
// CHECK: scf.if %arg1 -> (tensor<2xf32>) {
// CHECK: ds.define "cond_1"
// CHECK: ds.unary exp
func.func @side_with_sizes(%x: tensor<2xf32>, %c: i1, %d: tensor<i1>) -> tensor<2xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    %0 = scf.if %c -> tensor<2xf32> {
      ds.define "cond_1" = %d : tensor<i1>
      %1 = ds.unary exp %a : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %1 : tensor<2xf32>
    } else {
      scf.yield %a : tensor<2xf32>
    }
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

// What the function requires of sizes is required, too, where only its gradient is left.
// CHECK-LABEL: func.func @keeps_requirements
// CHECK-NEXT: ds.require "s[0]" at least 0
// CHECK-NEXT: ds.require 4 : i64 broadcast with "s[0]"
// CHECK-NOT: ds.require
// CHECK: return
func.func @keeps_requirements(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]}) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.broadcast %a ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
    train.yield %1 : tensor<f32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}
