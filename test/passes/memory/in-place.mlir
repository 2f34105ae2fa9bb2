// RUN: ds-opt %s --split-input-file --ds-fuse-elementwise --ds-outline-kernels --ds-plan-buffers \
// RUN:   --ds-verify-contract=phase=memory --verify-diagnostics | FileCheck %s
// Every copy has a remark, and a remark that is not expected here fails: a copy that comes back does not go unseen.

// One pass over memory: reads p, m and g, writes p and m where they are.
// CHECK-LABEL: func.func @momentum
// CHECK-SAME: ds.buffers = [{index = 0 : i64, role = "input"}, {index = 0 : i64, role = "state"}, {index = 1 : i64, role = "state"}]
// CHECK-COUNT-1: ds.launch
// CHECK-SAME: buffers = array<i64: 1, 0, 2, 1, 2>
// CHECK-NOT: ds.launch
func.func @momentum(%g: tensor<?xf32> {ds.dims = ["n"]}, %m: tensor<?xf32> {ds.dims = ["n"], ds.state = "m"},
                    %p: tensor<?xf32> {ds.dims = ["n"], ds.state = "p"})
    -> (tensor<?xf32> {ds.state = "p"}, tensor<?xf32> {ds.state = "m"}) attributes {ds.entry} {
  %beta = ds.constant dense<0.9> : tensor<f32>
  %rate = ds.constant dense<0.01> : tensor<f32>
  %0 = ds.binary mul %m, %beta : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %1 = ds.binary add %0, %g : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = ds.binary mul %1, %rate : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %3 = ds.binary sub %p, %2 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %3, %1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @adam
// CHECK-COUNT-1: ds.launch
// CHECK-SAME: buffers = array<i64: 1, 0, 2, 3, 1, 2, 3>
// CHECK-NOT: ds.launch
func.func @adam(%g: tensor<?xf32> {ds.dims = ["n"]}, %m: tensor<?xf32> {ds.dims = ["n"], ds.state = "m"},
                %v: tensor<?xf32> {ds.dims = ["n"], ds.state = "v"}, %p: tensor<?xf32> {ds.dims = ["n"], ds.state = "p"})
    -> (tensor<?xf32> {ds.state = "m"}, tensor<?xf32> {ds.state = "v"}, tensor<?xf32> {ds.state = "p"})
    attributes {ds.entry} {
  %b1 = ds.constant dense<0.9> : tensor<f32>
  %c1 = ds.constant dense<0.1> : tensor<f32>
  %b2 = ds.constant dense<0.999> : tensor<f32>
  %c2 = ds.constant dense<0.001> : tensor<f32>
  %0 = ds.binary mul %m, %b1 : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %1 = ds.binary mul %g, %c1 : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %2 = ds.binary add %0, %1 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %3 = ds.binary mul %v, %b2 : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %4 = ds.binary mul %g, %g : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %5 = ds.binary mul %4, %c2 : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %6 = ds.binary add %3, %5 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %7 = ds.unary sqrt %6 : (tensor<?xf32>) -> tensor<?xf32>
  %8 = ds.binary add %7, %c2 : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %9 = ds.binary div %2, %8 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %10 = ds.binary sub %p, %9 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %2, %6, %10 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// A cache gets its row, and what reads it afterwards reads the state.
// CHECK-LABEL: func.func @cache_insert
// CHECK: ds.launch @insert{{.*}}buffers = array<i64: 0, 1, 1>, in_place = array<i64: 1>
// CHECK-NEXT: ds.launch @reduce{{.*}}buffers = array<i64: 1, 2>
// CHECK-NOT: ds.launch
func.func @cache_insert(%row: tensor<1x4xf32> {ds.dims = [1, 4]},
                        %k: tensor<8x4xf32> {ds.dims = [8, 4], ds.state = "k"})
    -> (tensor<4xf32>, tensor<8x4xf32> {ds.state = "k"}) attributes {ds.entry} {
  %0 = ds.insert %row into %k starts [3, 0] : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<8x4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<8x4xf32>
}

// -----

// Both scatters, one after the other, through a view between them.
// CHECK-LABEL: func.func @scatter_into_a_state
// CHECK: ds.launch @scatter_nd{{.*}}buffers = array<i64: 2, 0, 1, 2>, in_place = array<i64: 0>
// CHECK: ds.launch @scatter_elements{{.*}}buffers = array<i64: 2, 0, 1, 2>, in_place = array<i64: 0>
// CHECK-NOT: ds.launch
func.func @scatter_into_a_state(%i: tensor<1x1xi64> {ds.dims = [1, 1]}, %u: tensor<1x1xf32> {ds.dims = [1, 1]},
                                %s: tensor<4x1xf32> {ds.dims = [4, 1], ds.state = "s"})
    -> (tensor<4x1xf32> {ds.state = "s"}) attributes {ds.entry} {
  %0 = ds.scatter_nd add %s, %i, %u : (tensor<4x1xf32>, tensor<1x1xi64>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %1 = ds.reshape %0 [1, 4] : (tensor<4x1xf32>) -> tensor<1x4xf32>
  %2 = ds.scatter_elements assign 1 %1, %i, %u : (tensor<1x4xf32>, tensor<1x1xi64>, tensor<1x1xf32>) -> tensor<1x4xf32>
  %3 = ds.reshape %2 [4, 1] : (tensor<1x4xf32>) -> tensor<4x1xf32>
  return %3 : tensor<4x1xf32>
}

// -----

// What a loop carries begins in the state or output where it ends.
// CHECK-LABEL: func.func @loop_into_a_state
// CHECK: ds.launch @exp{{.*}}buffers = array<i64: 0, 2>
// CHECK: scf.while
// CHECK: ds.launch @tanh{{.*}}buffers = array<i64: 1, 1>
// CHECK: ds.launch @neg{{.*}}buffers = array<i64: 2, 2>
// CHECK-NOT: ds.launch
func.func @loop_into_a_state(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32>) attributes {ds.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = ds.size 3
  %first = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %r:3 = scf.while (%i = %zero, %a = %s, %b = %first)
      : (i64, tensor<4xf32>, tensor<4xf32>) -> (i64, tensor<4xf32>, tensor<4xf32>) {
    %go = arith.cmpi slt, %i, %n : i64
    scf.condition(%go) %i, %a, %b : i64, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: i64, %a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = ds.unary tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.unary neg %b : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addi %i, %one : i64
    scf.yield %next, %0, %1 : i64, tensor<4xf32>, tensor<4xf32>
  }
  return %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The mean over ranks of a state's new value is the state; source and destination of a collective may be one buffer.
// CHECK-LABEL: func.func @wait_into_states
// CHECK: dist.all_reduce_start mean %{{.*}} site "a" {buffers = array<i64: 3, 1>}
// CHECK: dist.all_reduce_start mean %{{.*}} site "b" {buffers = array<i64: 2, 2>}
func.func @wait_into_states(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                            %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.binary add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = dist.all_reduce_start mean %0 site "a" : tensor<4xf32>
  %q = dist.all_reduce_start mean %t site "b" : tensor<4xf32>
  %1 = dist.wait %p : tensor<4xf32>
  %2 = dist.wait %q : tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A state that stays as it is costs nothing, on one side of a branch or on both.
// CHECK-LABEL: func.func @unchanged_states
// CHECK: scf.if
// CHECK-NEXT: ds.launch @exp{{.*}}buffers = array<i64: 1, 1>
// CHECK-NOT: ds.launch
func.func @unchanged_states(%c: tensor<i1> {ds.dims = []}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                            %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %k = tensor.extract %c[] : tensor<i1>
  %r:2 = scf.if %k -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = ds.unary exp %s : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0, %t : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %s, %t : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// An update that nothing else waits for moves behind the last reader of the old value.
// CHECK-LABEL: func.func @update_moves_behind_a_reader
// CHECK: ds.launch @reduce
// CHECK-NEXT: ds.launch @add
func.func @update_moves_behind_a_reader(%x: tensor<4xf32> {ds.dims = [4]},
                                        %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<f32>) attributes {ds.entry} {
  %0 = ds.binary add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %s axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}

// -----

// From here on copies that must stay. A reader of both values keeps the new one out of the state until the end.
// CHECK-LABEL: func.func @read_after_its_update
// CHECK: ds.launch @exp
// CHECK: ds.launch @matmul
// CHECK: ds.launch @copy
func.func @read_after_its_update(%s: tensor<4x4xf32> {ds.dims = [4, 4], ds.state = "s"})
    -> (tensor<4x4xf32> {ds.state = "s"}, tensor<4x4xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{copy: state 's' is read after its update}}
  %0 = ds.unary exp %s : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ds.matmul %s, %0 transpose [false, false] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

func.func @reads_elsewhere(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<2x2xf32> {ds.dims = [2, 2], ds.state = "s"},
                           %t: tensor<2x2xi32> {ds.dims = [2, 2], ds.state = "t"},
                           %u: tensor<2x1xf32> {ds.dims = [2, 1], ds.state = "u"})
    -> (tensor<2x2xf32> {ds.state = "s"}, tensor<2x2xi32> {ds.state = "t"}, tensor<2x1xf32> {ds.state = "u"})
    attributes {ds.entry} {
  %0 = ds.fused {
    %a = ds.transpose %s [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %b = ds.unary exp %a : (tensor<2x2xf32>) -> tensor<2x2xf32>
    ds.yield %b : tensor<2x2xf32>
  // expected-remark @-4 {{copy: state 's' is read at other places by its update}}
  } : tensor<2x2xf32>
  // Every thread looks through the whole divisor for zeros.
  // expected-remark @+1 {{copy: state 't' is read at other places by its update}}
  %1 = ds.binary div %t, %t : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{copy: state 'u' is read at other places by its update}}
  %2 = ds.matmul %s, %u transpose [false, false] : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x1xf32>
}

// -----

// A wait reads the source of its start: what lies there must not change in between, seen through a view or not.
// CHECK-LABEL: func.func @collective_reads_until_its_wait
// CHECK: dist.all_reduce_start
// CHECK-NEXT: %[[NEXT:.*]] = ds.launch @neg
// CHECK-NEXT: ds.launch @reduce{{.*}}(%[[NEXT]])
// CHECK-NEXT: dist.wait
// CHECK: ds.launch @copy{{.*}}(%[[NEXT]])
func.func @collective_reads_until_its_wait(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<2x2xf32>, tensor<f32>) attributes {ds.entry} {
  %view = ds.reshape %s [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %p = dist.all_reduce_start sum %view site "a" : tensor<2x2xf32>
  // expected-remark @+1 {{copy: state 's' is read after its update}}
  %0 = ds.unary neg %s : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  %2 = dist.wait %p : tensor<2x2xf32>
  return %0, %2, %1 : tensor<4xf32>, tensor<2x2xf32>, tensor<f32>
}

// -----

// A wait's destination is the collective's from the start on, so it is no state that is read in between.
func.func @destination_is_owned_from_the_start(%x: tensor<4xf32> {ds.dims = [4]},
                                               %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<f32>) attributes {ds.entry} {
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xf32>
  %0 = ds.reduce sum %s axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  // expected-remark @+1 {{copy: state 's' is read after its update}}
  %1 = dist.wait %p : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<f32>
}

// -----

// Old values that move are saved before they are written over; one of two that change places goes round by a workspace.
// expected-remark @+3 {{copy: state 't' takes the old value of state 's'}}
// expected-remark @+3 {{copy: state 's' takes the old value of state 't'}}
// expected-remark @+2 {{copy: state 's' is read after its update}}
func.func @states_change_places(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                                %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  return %t, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// A history shifts with one copy for each step back, the new value lands where it belongs.
// CHECK-LABEL: func.func @history
// CHECK: ds.launch @copy{{.*}}buffers = array<i64: 2, 1>
// CHECK-NEXT: ds.launch @copy{{.*}}buffers = array<i64: 3, 2>
// CHECK-NEXT: ds.launch @add{{.*}}buffers = array<i64: 3, 0, 3>
// CHECK-NOT: ds.launch
// expected-remark @+4 {{copy: state 'a' takes the old value of state 'b'}}
// expected-remark @+4 {{copy: state 'b' takes the old value of state 'c'}}
func.func @history(%x: tensor<4xf32> {ds.dims = [4]},
                   %a: tensor<4xf32> {ds.dims = [4], ds.state = "a"},
                   %b: tensor<4xf32> {ds.dims = [4], ds.state = "b"},
                   %c: tensor<4xf32> {ds.dims = [4], ds.state = "c"})
    -> (tensor<4xf32> {ds.state = "a"}, tensor<4xf32> {ds.state = "b"}, tensor<4xf32> {ds.state = "c"})
    attributes {ds.entry} {
  %0 = ds.binary add %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b, %c, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The old value of a state as an output is copied before the update, which then lands in the state.
// CHECK-LABEL: func.func @old_value_is_an_output
// CHECK: ds.launch @copy{{.*}}buffers = array<i64: 1, 2>
// CHECK-NEXT: ds.launch @insert{{.*}}buffers = array<i64: 0, 1, 1>
// CHECK-NEXT: return
func.func @old_value_is_an_output(%row: tensor<1x4xf32> {ds.dims = [1, 4]},
                                  // expected-remark @+1 {{copy: output 'old' takes the old value of state 'k'}}
                                  %k: tensor<8x4xf32> {ds.dims = [8, 4], ds.state = "k"})
    -> (tensor<8x4xf32> {ds.state = "k"}, tensor<8x4xf32> {ds.name = "old"}) attributes {ds.entry} {
  %0 = ds.insert %row into %k starts [3, 0] : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %k : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Other reasons, one each.
func.func @other_reasons(%x: tensor<2x4xf32> {ds.dims = [2, 4]}, %row: tensor<1x4xf32> {ds.dims = [1, 4]})
    -> (tensor<2x4xf32> {ds.name = "same"}, tensor<2x4xf32> {ds.name = "twice"}, tensor<2x4xf32> {ds.name = "again"},
        tensor<2x4xf32> {ds.name = "constant"}, tensor<2x4xf32> {ds.name = "inserted"}, tensor<f32>) attributes {ds.entry} {
  // expected-remark @-3 {{copy: output 'same' takes a value that something else owns}}
  // expected-remark @+1 {{copy: output 'constant' takes a constant}}
  %c = ds.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  // expected-remark @+1 {{copy: output 'again' takes what lies in output 'twice'}}
  %0 = ds.unary exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // expected-remark @+1 {{copy: a value that is updated is read after its update}}
  %1 = ds.unary tanh %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = ds.insert %row into %1 starts [1, 0] : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = ds.reduce sum %1 axes [0, 1] keep false : (tensor<2x4xf32>) -> tensor<f32>
  return %x, %0, %0, %c, %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op has two results of state "s"}}
func.func @two_results(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  return %s, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op has two arguments of state "s"}}
func.func @two_arguments(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                         %t: tensor<4xf32> {ds.dims = [4], ds.state = "s"}) attributes {ds.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op state "s" must keep type and sizes, found 'f32' ["n"] and 'f32' [4]}}
func.func @another_size(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<?xf32> {ds.dims = ["n"], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Zeros that are added to are made where they are needed: stored, they would be copied first.
// CHECK-LABEL: func.func @into_zeros
// CHECK-NOT: ds.weight
// CHECK: %[[Z:.*]] = ds.launch @{{broadcast_[0-9]+}}
// CHECK: ds.launch @{{scatter_nd_[0-9]+}}(%[[Z]]
// CHECK-SAME: in_place = array<i64: 0>
func.func @into_zeros(%i: tensor<?x1xi64> {ds.dims = ["n", 1]}, %u: tensor<?x32xf32> {ds.dims = ["n", 32]}) -> tensor<61x32xf32>
    attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<61x32xf32>
  %0 = ds.scatter_nd add %zero, %i, %u : (tensor<61x32xf32>, tensor<?x1xi64>, tensor<?x32xf32>) -> tensor<61x32xf32>
  return %0 : tensor<61x32xf32>
}

// -----

// What is empty costs nothing: no kernel writes it, and each has the buffer of the result that it is handed on as.
// CHECK-LABEL: func.func @empty_sides
// CHECK: scf.if
// CHECK: ds.launch @exp
// CHECK: ds.launch @tanh
// CHECK: } else {
// CHECK: ds.empty [4] of f32 {buffer = [[FIRST:[0-9]+]] : i64}
// CHECK: ds.empty [4] of f32 {buffer =
// CHECK-NOT: buffer = [[FIRST]] :
// CHECK: scf.yield
// CHECK: ds.launch @add
// CHECK-NOT: ds.launch
func.func @empty_sides(%x: tensor<4xf32> {ds.dims = [4]}, %c: tensor<i1> {ds.dims = []}) -> tensor<4xf32>
    attributes {ds.entry} {
  %0 = tensor.extract %c[] : tensor<i1>
  %none = ds.empty [4] of f32 : tensor<4xf32>
  %1:2 = scf.if %0 -> (tensor<4xf32>, tensor<4xf32>) {
    %2 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %3 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2, %3 : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %none, %none : tensor<4xf32>, tensor<4xf32>
  }
  %4 = ds.binary add %1#0, %1#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// A step of a recurrence writes its new state where the old one is, and what it keeps of the step into its place.
// CHECK-LABEL: func.func @cell
// CHECK: ds.launch @fused{{.*}}buffers = array<i64: 0, 2, 1, 2, 1>, in_place = array<i64: -1, 2>
// CHECK-NOT: ds.launch
func.func @cell(%g: tensor<4x8xf32> {ds.dims = [4, 8]}, %y: tensor<3x4x4xf32> {ds.dims = [3, 4, 4], ds.state = "y"},
                %c: tensor<4x4xf32> {ds.dims = [4, 4], ds.state = "c"})
    -> (tensor<3x4x4xf32> {ds.state = "y"}, tensor<4x4xf32> {ds.state = "c"}) attributes {ds.entry} {
  %0 = ds.slice %g starts [0, 4] sizes [4, 4] steps [1, 1] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %1 = ds.binary mul %c, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = ds.reshape %1 [1, 4, 4] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  %3 = ds.insert %2 into %y starts [1, 0, 0] : (tensor<1x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  return %3, %1 : tensor<3x4x4xf32>, tensor<4x4xf32>
}

// -----

// What is read of what the kernel changes in part is copied before, not all of what it changes. A state that is read at
// other places has its new value elsewhere first.
// CHECK-LABEL: func.func @moved_cell
// CHECK: ds.launch @slice{{.*}}buffers = array<i64: 0, 2>
// CHECK: ds.launch @fused{{.*}}buffers = array<i64: 1, 2, 0, 3, 0>, in_place = array<i64: -1, 2>
// CHECK: ds.launch @copy{{.*}}buffers = array<i64: 3, 1>
// CHECK-NOT: ds.launch
func.func @moved_cell(%y: tensor<3x4x4xf32> {ds.dims = [3, 4, 4], ds.state = "y"},
                      %c: tensor<4x4xf32> {ds.dims = [4, 4], ds.state = "c"})
    -> (tensor<3x4x4xf32> {ds.state = "y"}, tensor<4x4xf32> {ds.state = "c"}) attributes {ds.entry} {
  %0 = ds.slice %c starts [3, 0] sizes [4, 4] steps [-1, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ds.slice %y starts [0, 0, 0] sizes [1, 4, 4] steps [1, 1, 1] : (tensor<3x4x4xf32>) -> tensor<1x4x4xf32>
  %2 = ds.reshape %1 [4, 4] : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
  %3 = ds.binary mul %0, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = ds.reshape %3 [1, 4, 4] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  // expected-remark @+1 {{copy: state 'c' is read at other places by its update}}
  %5 = ds.insert %4 into %y starts [1, 0, 0] : (tensor<1x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  return %5, %3 : tensor<3x4x4xf32>, tensor<4x4xf32>
}

// -----

// Nor does a read move behind a change of what it reads.
// CHECK-LABEL: func.func @read_before
// CHECK: ds.launch @slice{{.*}}buffers = array<i64: 1, 3>
// CHECK-NEXT: ds.launch @insert{{.*}}buffers = array<i64: 0, 1, 1>, in_place = array<i64: 1>
// CHECK-NEXT: ds.launch @reduce
// CHECK-NEXT: ds.launch @mul
// CHECK-NOT: ds.launch
func.func @read_before(%x: tensor<1x4xf32> {ds.dims = [1, 4]}, %y: tensor<3x4xf32> {ds.dims = [3, 4], ds.state = "y"})
    -> (tensor<1x4xf32>, tensor<3x4xf32> {ds.state = "y"}) attributes {ds.entry} {
  %0 = ds.slice %y starts [1, 0] sizes [1, 4] steps [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %1 = ds.insert %x into %y starts [2, 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = ds.reduce sum %1 axes [0] keep true : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %3 = ds.binary mul %0, %2 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %3, %1 : tensor<1x4xf32>, tensor<3x4xf32>
}
