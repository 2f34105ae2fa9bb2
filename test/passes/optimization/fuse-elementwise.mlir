// RUN: ds-opt %s --split-input-file --ds-fuse-elementwise | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-elementwise --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: %[[A:.*]] = ds.binary add %arg0, %arg1
// CHECK-NEXT: %[[B:.*]] = ds.unary tanh %[[A]]
// CHECK-NEXT: ds.yield %[[B]]
// CHECK: return %[[Y]]
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %b: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x4xf32>
    attributes {ds.entry} {
  %0 = ds.binary add %x, %b : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.unary tanh %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// The region keeps the names of the value that it yields.
// CHECK-LABEL: func.func @keeps_names
// CHECK: ds.fused attributes {ds.values = ["y"]}
func.func @keeps_names(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary tanh %0 {ds.values = ["y"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A value with uses outside is a result, so that it is written once and not read again.
// CHECK-LABEL: func.func @multiple_uses
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused attributes {ds.values = ["", "y"]} {
// CHECK-NEXT: %[[A:.*]] = ds.unary exp %arg0
// CHECK-NEXT: %[[B:.*]] = ds.unary tanh %[[A]]
// CHECK-NEXT: ds.yield %[[A]], %[[B]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @multiple_uses(%x: tensor<4xf32> {ds.dims = [4]}) -> (tensor<4xf32>, tensor<4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary tanh %0 {ds.values = ["y"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Several uses inside the region are no obstacle.
// CHECK-LABEL: func.func @uses_inside
// CHECK: ds.fused
// CHECK-NEXT: ds.unary exp
// CHECK-NEXT: ds.unary tanh
// CHECK-NEXT: ds.binary mul
func.func @uses_inside(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Integer division scans its divisor for zeros, which must be in memory.
// CHECK-LABEL: func.func @integer_division
// CHECK-NOT: ds.fused
func.func @integer_division(%x: tensor<100xi32> {ds.dims = [100]}, %y: tensor<100xi32> {ds.dims = [100]})
    -> tensor<100xi32> attributes {ds.entry} {
  %one = ds.constant dense<1> : tensor<i32>
  %0 = ds.binary bit_or %y, %one : (tensor<100xi32>, tensor<i32>) -> tensor<100xi32>
  %1 = ds.binary div %x, %0 : (tensor<100xi32>, tensor<100xi32>) -> tensor<100xi32>
  %2 = ds.unary abs %1 : (tensor<100xi32>) -> tensor<100xi32>
  return %2 : tensor<100xi32>
}

// -----

// A smaller value is computed once, not once per element that it is broadcast to.
// CHECK-LABEL: func.func @different_sizes
// CHECK-NOT: ds.fused
func.func @different_sizes(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %b: tensor<4xf32> {ds.dims = [4]})
    -> tensor<?x4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.binary add %x, %0 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @transpose_of_outer_axes
// CHECK: ds.fused
// CHECK-NEXT: ds.transpose
// CHECK-NEXT: ds.unary exp
func.func @transpose_of_outer_axes(%x: tensor<2x3x4xf32> {ds.dims = [2, 3, 4]}) -> tensor<3x2x4xf32>
    attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = ds.unary exp %0 : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// -----

// Reads along a column would keep the whole region from vectors.
// CHECK-LABEL: func.func @transpose_of_the_innermost_axis
// CHECK-NOT: ds.fused
func.func @transpose_of_the_innermost_axis(%x: tensor<3x4xf32> {ds.dims = [3, 4]}) -> tensor<4x3xf32>
    attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = ds.unary exp %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// Nothing moves into or out of a branch.
// CHECK-LABEL: func.func @branches
// CHECK: ds.unary exp
// CHECK: scf.if
// CHECK-NEXT: ds.unary tanh
// CHECK-NOT: ds.fused
func.func @branches(%c: i1, %x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    %2 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

// So do two readers of one value, whatever their results are, and what reads a result without being in its way.
// CHECK-LABEL: func.func @results_of_other_types
// CHECK-NEXT: %[[R:.*]]:3 = ds.fused {
// CHECK: ds.yield
// CHECK-NEXT: } : tensor<?xf32>, tensor<?xi1>, tensor<?xf64>
// CHECK-NEXT: ds.reduce sum %[[R]]#0
func.func @results_of_other_types(%x: tensor<?xf32> {ds.dims = ["n"]}, %y: tensor<?xf32> {ds.dims = ["n"]})
    -> (tensor<?xf32>, tensor<f32>, tensor<?xi1>, tensor<?xf64>) attributes {ds.entry} {
  %0 = ds.binary add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<?xf32>) -> tensor<f32>
  %2 = ds.binary lt %0, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
  %3 = ds.cast %0 to f64 : (tensor<?xf32>) -> tensor<?xf64>
  return %0, %1, %2, %3 : tensor<?xf32>, tensor<f32>, tensor<?xi1>, tensor<?xf64>
}

// -----

// Nothing outside may stand between two ops of a region: the sum needs the first and is needed by the last.
// CHECK-LABEL: func.func @no_cycle
// CHECK-NOT: ds.fused
func.func @no_cycle(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep true : (tensor<4xf32>) -> tensor<1xf32>
  %2 = ds.binary div %0, %1 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Nor may a branch or loop that needs a result be in the way: it does not move.
// CHECK-LABEL: func.func @branches_stay
// CHECK-NEXT: ds.unary exp
// CHECK: scf.if
// CHECK: ds.unary tanh
// CHECK-NOT: ds.fused
func.func @branches_stay(%c: i1, %x: tensor<4xf32> {ds.dims = [4]}) -> (tensor<4xf32>, tensor<4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    %2 = ds.reduce sum %0 axes [0] keep true : (tensor<4xf32>) -> tensor<1xf32>
    %3 = ds.broadcast %2 [4] : (tensor<1xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %4 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}
