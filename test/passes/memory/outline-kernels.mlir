// RUN: ds-opt %s --split-input-file --ds-outline-kernels | FileCheck %s

// Equal kernels are one, constants that elementwise code can embed stay in it.
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[A:.*]] = ds.launch @[[EXP:.*]](%arg0) sizes ["n"] {result_sizes = {{\[\[}}"n", 4]], work = [{bytes = "32*n", flops = "4*n", macs = 0 : i64, op = "exp", role = "forward"}]}
// CHECK-NEXT: %[[B:.*]] = ds.launch @[[MUL:.*]](%[[A]]) sizes ["n"]
// CHECK-NEXT: ds.launch @[[EXP]](%[[B]]) sizes ["n"]
// CHECK: ds.kernel @[[EXP]] sizes 1 arguments {{\[\[}}"d0", 4]] {
// CHECK: ds.kernel @[[MUL]] sizes 1
// CHECK: ds.constant dense<5.000000e-01>
// CHECK-NOT: ds.kernel
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> tensor<?x4xf32> attributes {ds.entry} {
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.unary exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.binary mul %0, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %2 = ds.unary exp %1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// Sizes have the kernel's own names: the same work on other dimensions is the same kernel, other work is not.
// CHECK-LABEL: func.func @sizes_of_their_own
// CHECK: ds.launch @[[K:.*]](%arg0, %arg1) sizes ["n", "2*n"]
// CHECK: ds.launch @[[K]](%arg2, %arg3) sizes ["m", "2*m"]
// CHECK: ds.launch @[[OTHER:.*]](%arg0, %arg2) sizes ["n", "m", "m + n"]
// CHECK: ds.kernel @[[K]] sizes 2 arguments {{\[\[}}"d0"], ["d0"]]
// CHECK: ds.kernel @[[OTHER]] sizes 3 arguments {{\[\[}}"d0"], ["d1"]]
func.func @sizes_of_their_own(%a: tensor<?xf32> {ds.dims = ["n"]}, %b: tensor<?xf32> {ds.dims = ["n"]},
                              %c: tensor<?xf32> {ds.dims = ["m"]}, %d: tensor<?xf32> {ds.dims = ["m"]})
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) attributes {ds.entry} {
  %0 = ds.concat 0 %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = ds.concat 0 %c, %d : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = ds.concat 0 %a, %c : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @fused_region_is_one_kernel
// CHECK-NEXT: ds.launch @[[K:fused.*]](%arg0)
// CHECK-NEXT: return
// CHECK: ds.kernel @[[K]]
// CHECK: ds.unary exp
// CHECK-NEXT: ds.unary tanh
func.func @fused_region_is_one_kernel(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.fused {
    %1 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = ds.unary tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
    ds.yield %2 : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A constant that is no splat is stored in the package, once.
// CHECK: ds.recipe @[[$C:.*]] {
// CHECK-NEXT: ds.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-NOT: ds.recipe
// CHECK-LABEL: func.func @stores_constants
// CHECK: %[[W:.*]] = ds.weight @[[$C]]
// CHECK: ds.launch @{{.*}}(%arg0, %[[W]])
func.func @stores_constants(%x: tensor<?x2xf32> {ds.dims = ["n", 2]}) -> (tensor<?x2xf32>, tensor<?x2xf32>)
    attributes {ds.entry} {
  %c = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %d = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = ds.binary add %x, %c : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %1 = ds.binary mul %x, %d : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?x2xf32>
}

// -----

// Results have buffers of their own: an argument and a value that is returned twice are copied, a view is not.
// CHECK-LABEL: func.func @copies_what_is_returned
// CHECK: %[[EXP:.*]] = ds.launch @exp
// CHECK: %[[TANH:.*]] = ds.launch @tanh
// CHECK: %[[VIEW:.*]] = ds.reshape %[[TANH]]
// CHECK: %[[X:.*]] = ds.launch @[[COPY:copy.*]](%arg0)
// CHECK: %[[AGAIN:.*]] = ds.launch @[[COPY]](%[[EXP]])
// CHECK: return %[[X]], %[[EXP]], %[[VIEW]], %[[AGAIN]]
func.func @copies_what_is_returned(%x: tensor<4xf32> {ds.dims = [4]})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.reshape %1 [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  return %x, %0, %2, %0 : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @copies_at_the_end_of_a_branch
// CHECK: scf.if
// CHECK-NEXT: %[[EXP:.*]] = ds.launch @exp
// CHECK-NEXT: scf.yield %[[EXP]]
// CHECK: %[[X:.*]] = ds.launch @copy{{.*}}(%arg1)
// CHECK-NEXT: scf.yield %[[X]]
func.func @copies_at_the_end_of_a_branch(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]})
    -> tensor<4xf32> attributes {ds.entry} {
  %k = tensor.extract %c[] : tensor<i1>
  %0 = scf.if %k -> tensor<4xf32> {
    %1 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A state is written in place where nothing reads its old value later; an update moves behind a reader that it can wait
// for.
// CHECK-LABEL: func.func @states
// CHECK: %[[S:.*]] = ds.launch @add{{.*}}(%arg1, %arg0)
// CHECK-NEXT: %[[Y:.*]] = ds.launch @exp{{.*}}(%arg2)
// CHECK-NEXT: %[[T:.*]] = ds.launch @mul{{.*}}(%arg2, %arg0)
// CHECK-NEXT: return %[[S]], %[[T]], %[[Y]]
func.func @states(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                  %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}, tensor<4xf32>) attributes {ds.entry} {
  %0 = ds.binary add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.binary mul %t, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.unary exp %t : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The old value of a state that is returned is copied out before the new one is computed in its place.
// CHECK-LABEL: func.func @old_state_is_an_output
// CHECK-NEXT: %[[OLD:.*]] = ds.launch @[[COPY:copy.*]](%arg1)
// CHECK-NEXT: %[[NEW:.*]] = ds.launch @add
// CHECK-NEXT: return %[[NEW]], %[[OLD]]
func.func @old_state_is_an_output(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32>) attributes {ds.entry} {
  %0 = ds.binary add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @states_change_places
// CHECK: %[[T:.*]] = ds.launch @[[COPY:copy.*]](%arg1)
// CHECK-NEXT: %[[NEWT:.*]] = ds.launch @[[COPY]](%arg0)
// CHECK-NEXT: %[[NEWS:.*]] = ds.launch @[[COPY]](%[[T]])
// CHECK-NEXT: return %[[NEWS]], %[[NEWT]]
func.func @states_change_places(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
                                %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  return %t, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// What decides the size of a result is computed and defined before the launch that needs the buffer.
// CHECK-LABEL: func.func @counts_before_allocating
// CHECK: %[[COUNT:.*]] = ds.launch @reduce
// CHECK-NEXT: ds.define "count" = %[[COUNT]] : tensor<i64>
// CHECK-NEXT: ds.launch @nonzero{{.*}}(%arg0) sizes ["n", "count"]
func.func @counts_before_allocating(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<1x?xi64> attributes {ds.entry} {
  %0 = ds.nonzero %x count "count" : (tensor<?xf32>) -> tensor<1x?xi64>
  return %0 : tensor<1x?xi64>
}

// -----

// What ops require of sizes is left to the runtime.
// CHECK-LABEL: func.func @records_constraints
// CHECK-SAME: ds.constraints = [{lhs = "n", relation = "equal", rhs = "m", where = "joined"}]
func.func @records_constraints(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %y: tensor<?x4xf32> {ds.dims = ["m", 4]})
    -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.concat 1 %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32> loc("joined")
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func.func @leaves_other_functions_alone
// CHECK: ds.unary exp
func.func @leaves_other_functions_alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A loop owns the buffers of what it carries: an argument is copied before it. Of two values that change
// places one is saved before the other takes its buffer. A kernel that is the last to read the old value writes over it.
// CHECK-LABEL: func.func @loops_own_what_they_carry
// CHECK: %[[X:.*]] = ds.launch @[[COPY:.*]](%arg0)
// CHECK: %[[Y:.*]] = ds.launch @[[COPY]](%arg1)
// CHECK: %[[Z:.*]] = ds.launch @[[COPY]](%arg1)
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %[[X]], %{{.*}} = %[[Y]], %{{.*}} = %[[Z]])
// CHECK: ^bb0(%{{.*}}: i64, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[C:.*]]: tensor<4xf32>):
// CHECK: %[[D:.*]] = ds.launch @tanh_{{.*}}(%[[C]])
// CHECK: %[[SAVEDB:.*]] = ds.launch @[[COPY]](%[[B]])
// CHECK: %[[SAVEDA:.*]] = ds.launch @[[COPY]](%[[A]])
// CHECK: %[[NEWA:.*]] = ds.launch @[[COPY]](%[[SAVEDB]])
// CHECK: scf.yield %{{.*}}, %[[NEWA]], %[[SAVEDA]], %[[D]]
func.func @loops_own_what_they_carry(%x: tensor<4xf32> {ds.dims = [4]}, %y: tensor<4xf32> {ds.dims = [4]})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {ds.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = ds.size 3
  %r:4 = scf.while (%i = %zero, %a = %x, %b = %y, %c = %y)
      : (i64, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (i64, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %go = arith.cmpi slt, %i, %n : i64
    scf.condition(%go) %i, %a, %b, %c : i64, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: i64, %a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
    %d = ds.unary tanh %c : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addi %i, %one : i64
    scf.yield %next, %b, %a, %d : i64, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#1, %r#2, %r#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What a loop collects is inserted in place; a tensor that something else reads is copied first.
// CHECK-LABEL: func.func @inserts_in_place
// CHECK: ds.launch @insert_{{.*}} {in_place = array<i64: 1>
// CHECK: %[[COPIED:.*]] = ds.launch @copy_{{.*}}(%arg1)
// CHECK: ds.launch @insert_{{.*}}(%arg0, %[[COPIED]]) {{.*}} {in_place = array<i64: 1>
func.func @inserts_in_place(%x: tensor<1x4xf32> {ds.dims = [1, 4]}, %y: tensor<3x4xf32> {ds.dims = [3, 4]})
    -> (tensor<3x4xf32>, tensor<3x4xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %y : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = ds.insert %x into %0 starts [1, 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = ds.insert %x into %y starts [2, 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// A region is named after its anchor.
// CHECK-LABEL: func.func @anchored
// CHECK: ds.launch @linear_fused_0
func.func @anchored(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<4x8xf32> {ds.dims = [4, 8]}) -> tensor<?x8xf32>
    attributes {ds.entry} {
  %0 = ds.fused {
    %1 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
    %2 = ds.unary relu %1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ds.yield %2 : tensor<?x8xf32>
  } : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
