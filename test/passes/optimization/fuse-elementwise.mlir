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

// -----

// Slices are read where they lie, by each region that reads them, with the reshapes behind them.
// CHECK-LABEL: func.func @slices
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK: ds.slice %arg0 starts [1, 0, 0]
// CHECK: ds.unary sigmoid
// CHECK: ds.slice %arg0 starts [0, 0, 16]
// CHECK-NEXT: ds.reshape
// CHECK: ds.unary tanh
// CHECK: ds.yield
// CHECK: %[[S:.*]] = ds.reduce sum %[[Y]]
// CHECK-NEXT: %[[Z:.*]] = ds.fused {
// CHECK-NEXT: ds.slice %arg0 starts [1, 0, 0]
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: ds.binary mul
// CHECK: return %[[Y]], %[[Z]]
func.func @slices(%x: tensor<2x?x32xf32> {ds.dims = [2, "n", 32]}) -> (tensor<?x16xf32>, tensor<?x16xf32>)
    attributes {ds.entry} {
  %0 = ds.slice %x starts [1, 0, 0] sizes [1, "n", 16] steps [1, 1, 1] : (tensor<2x?x32xf32>) -> tensor<1x?x16xf32>
  %1 = ds.slice %x starts [0, 0, 16] sizes [1, "n", 16] steps [1, 1, 1] : (tensor<2x?x32xf32>) -> tensor<1x?x16xf32>
  %2 = ds.reshape %0 ["n", 16] : (tensor<1x?x16xf32>) -> tensor<?x16xf32>
  %3 = ds.reshape %1 ["n", 16] : (tensor<1x?x16xf32>) -> tensor<?x16xf32>
  %4 = ds.unary sigmoid %2 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %5 = ds.unary tanh %3 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %6 = ds.binary mul %4, %5 : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %7 = ds.reduce sum %6 axes [0] keep false : (tensor<?x16xf32>) -> tensor<16xf32>
  %8 = ds.binary mul %2, %7 : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  return %6, %8 : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Short rows are copied first, so that loops over what is copied fill their vectors: of many, or nobody knows how many.
// Every second element is a row of one. Few elements take less time than a launch, and one number for each row none.
// CHECK-LABEL: func.func @rows
// CHECK: %[[A:.*]] = ds.slice %arg0 starts [0, 0] sizes ["n", 2]
// CHECK: %[[E:.*]] = ds.unary exp %[[A]]
// CHECK: %[[B:.*]] = ds.slice %arg0 starts [0, 0] sizes ["n", 20] steps [1, 2]
// CHECK: %[[F:.*]] = ds.unary exp %[[B]]
// CHECK: ds.fused {
// CHECK-NEXT: ds.slice %arg1 starts [1, 0]
// CHECK: ds.fused {
// CHECK: ds.slice %arg0 starts [0, 3] sizes ["n", 1]
// CHECK: ds.binary mul
func.func @rows(%x: tensor<?x40xf32> {ds.dims = ["n", 40]}, %y: tensor<4x40xf32> {ds.dims = [4, 40]})
    -> (tensor<?x2xf32>, tensor<?x20xf32>, tensor<2x2xf32>, tensor<?x40xf32>) attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 0] sizes ["n", 2] steps [1, 1] : (tensor<?x40xf32>) -> tensor<?x2xf32>
  %1 = ds.unary exp %0 : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = ds.slice %x starts [0, 0] sizes ["n", 20] steps [1, 2] : (tensor<?x40xf32>) -> tensor<?x20xf32>
  %3 = ds.unary exp %2 : (tensor<?x20xf32>) -> tensor<?x20xf32>
  %4 = ds.slice %y starts [1, 0] sizes [2, 2] steps [1, 1] : (tensor<4x40xf32>) -> tensor<2x2xf32>
  %5 = ds.unary exp %4 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %6 = ds.slice %x starts [0, 3] sizes ["n", 1] steps [1, 1] : (tensor<?x40xf32>) -> tensor<?x1xf32>
  %7 = ds.binary mul %x, %6 : (tensor<?x40xf32>, tensor<?x1xf32>) -> tensor<?x40xf32>
  return %1, %3, %5, %7 : tensor<?x2xf32>, tensor<?x20xf32>, tensor<2x2xf32>, tensor<?x40xf32>
}

// -----

// A slice that a reduction reads, too, is in memory, and is read there.
// CHECK-LABEL: func.func @slice_in_memory
// CHECK-NEXT: %[[S:.*]] = ds.slice
// CHECK-NEXT: ds.unary exp %[[S]]
// CHECK-NEXT: ds.reduce sum %[[S]]
func.func @slice_in_memory(%x: tensor<?x40xf32> {ds.dims = ["n", 40]}) -> (tensor<?x20xf32>, tensor<20xf32>)
    attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 0] sizes ["n", 20] steps [1, 1] : (tensor<?x40xf32>) -> tensor<?x20xf32>
  %1 = ds.unary exp %0 : (tensor<?x20xf32>) -> tensor<?x20xf32>
  %2 = ds.reduce sum %0 axes [0] keep false : (tensor<?x20xf32>) -> tensor<20xf32>
  return %1, %2 : tensor<?x20xf32>, tensor<20xf32>
}

// -----

// What a loop keeps of its steps is stored there, also by an op alone.
// CHECK-LABEL: func.func @insertions
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: ds.unary exp
// CHECK-NEXT: %[[T:.*]] = ds.unary tanh
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]] [1, "n", 4]
// CHECK-NEXT: %[[I:.*]] = ds.insert %[[R]] into %arg1 starts [2, 0, 0]
// CHECK-NEXT: ds.yield %[[T]], %[[I]]
// CHECK: %[[Z:.*]] = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.unary neg %arg2
// CHECK-NEXT: %[[J:.*]] = ds.insert %[[N]] into %{{.*}} starts [0, 1]
// CHECK-NEXT: ds.yield %[[J]]
// CHECK: return %[[Y]]#0, %[[Y]]#1, %[[Z]]
func.func @insertions(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %y: tensor<3x?x4xf32> {ds.dims = [3, "n", 4]},
                      %u: tensor<2x2xf32> {ds.dims = [2, 2]}, %z: tensor<2x4xf32> {ds.dims = [2, 4]})
    -> (tensor<?x4xf32>, tensor<3x?x4xf32>, tensor<2x4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.unary tanh %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.reshape %1 [1, "n", 4] : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %3 = ds.insert %2 into %y starts [2, 0, 0] : (tensor<1x?x4xf32>, tensor<3x?x4xf32>) -> tensor<3x?x4xf32>
  %4 = ds.reduce sum %z axes [0, 1] keep false : (tensor<2x4xf32>) -> tensor<f32>
  %5 = ds.binary add %z, %4 : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %6 = ds.unary neg %u : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = ds.insert %6 into %5 starts [0, 1] : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1, %3, %7 : tensor<?x4xf32>, tensor<3x?x4xf32>, tensor<2x4xf32>
}

// -----

// Not what something else reads with other axes, nor the transpose of what is computed, nor what is changed there.
// CHECK-LABEL: func.func @no_insertions
// CHECK-NOT: ds.fused
func.func @no_insertions(%x: tensor<2x4xf32> {ds.dims = [2, 4]}, %y: tensor<3x2x4xf32> {ds.dims = [3, 2, 4]},
                         %z: tensor<8x2xf32> {ds.dims = [8, 2]}, %u: tensor<1x4xf32> {ds.dims = [1, 4]})
    -> (tensor<1x2x4xf32>, tensor<3x2x4xf32>, tensor<8x2xf32>, tensor<2x4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = ds.reshape %0 [1, 2, 4] : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %2 = ds.insert %1 into %y starts [2, 0, 0] : (tensor<1x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %3 = ds.transpose %0 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %4 = ds.insert %3 into %z starts [4, 0] : (tensor<4x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = ds.insert %u into %0 starts [1, 0] : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1, %2, %4, %5 : tensor<1x2x4xf32>, tensor<3x2x4xf32>, tensor<8x2xf32>, tensor<2x4xf32>
}

// -----

// Of two insertions into one tensor, one after the other, one is stored by the kernel: it has no third result there. Nor
// is one, of which the region reads what it has changed.
// CHECK-LABEL: func.func @one_insertion
// CHECK: %[[Y:.*]]:2 = ds.fused {
// CHECK: ds.insert %{{.*}} into %arg1 starts [0, 0]
// CHECK-NOT: ds.insert
// CHECK: ds.yield
// CHECK: ds.insert %[[Y]]#0 into %[[Y]]#1 starts [4, 0]
func.func @one_insertion(%x: tensor<3x20xf32> {ds.dims = [3, 20]}, %s: tensor<9x20xf32> {ds.dims = [9, 20]})
    -> tensor<9x20xf32> attributes {ds.entry} {
  %0 = ds.unary neg %x : (tensor<3x20xf32>) -> tensor<3x20xf32>
  %1 = ds.unary exp %0 : (tensor<3x20xf32>) -> tensor<3x20xf32>
  %2 = ds.insert %1 into %s starts [0, 0] : (tensor<3x20xf32>, tensor<9x20xf32>) -> tensor<9x20xf32>
  %3 = ds.insert %0 into %2 starts [4, 0] : (tensor<3x20xf32>, tensor<9x20xf32>) -> tensor<9x20xf32>
  return %3 : tensor<9x20xf32>
}

// -----

// CHECK-LABEL: func.func @read_after_insertion
// CHECK: ds.insert %{{.*}} into %arg1
// CHECK: ds.fused
// CHECK-NOT: ds.insert
func.func @read_after_insertion(%x: tensor<3x20xf32> {ds.dims = [3, 20]}, %s: tensor<3x20xf32> {ds.dims = [3, 20]})
    -> (tensor<3x20xf32>, tensor<3x20xf32>) attributes {ds.entry} {
  %0 = ds.unary neg %x : (tensor<3x20xf32>) -> tensor<3x20xf32>
  %1 = ds.insert %0 into %s starts [0, 0] : (tensor<3x20xf32>, tensor<3x20xf32>) -> tensor<3x20xf32>
  %2 = ds.binary add %0, %1 : (tensor<3x20xf32>, tensor<3x20xf32>) -> tensor<3x20xf32>
  %3 = ds.unary exp %2 : (tensor<3x20xf32>) -> tensor<3x20xf32>
  return %1, %3 : tensor<3x20xf32>, tensor<3x20xf32>
}
