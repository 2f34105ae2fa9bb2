// RUN: ds-opt %s --split-input-file --ds-outline-kernels --ds-plan-buffers --verify-diagnostics=only-expected | FileCheck %s

// Values that are returned are written into the output; a workspace lives from its launch to its last use.
// CHECK-LABEL: func.func @doc
// CHECK-SAME: ds.buffers = [{index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"},
// CHECK-SAME: {bytes = "16*n", first = 0 : i64, last = 2 : i64, role = "workspace"},
// CHECK-SAME: {bytes = "16*n", first = 1 : i64, last = 2 : i64, role = "workspace"}]
// CHECK: ds.launch @{{.*}}(%arg0) {{.*}}buffers = array<i64: 0, 2>, {{.*}}index = 0 : i64
// CHECK: ds.launch {{.*}}buffers = array<i64: 2, 3>, {{.*}}index = 1 : i64
// CHECK: ds.launch {{.*}}buffers = array<i64: 2, 3, 1>, {{.*}}index = 2 : i64
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> tensor<?x4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.unary tanh %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %0, %1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// A view has the buffer of what it shows; uses of the view keep that alive.
// CHECK-LABEL: func.func @views_share_a_buffer
// CHECK-SAME: {bytes = 16 : i64, first = 0 : i64, last = 1 : i64, role = "workspace"}]
// CHECK: ds.launch @exp{{.*}}buffers = array<i64: 0, 2>
// CHECK: ds.launch @softmax{{.*}}buffers = array<i64: 2, 1>
func.func @views_share_a_buffer(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<2x2xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reshape %0 [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %2 = ds.softmax %1 axis 1 log false : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// -----

// Booleans take a byte each; a constant is one buffer however often it is used.
// CHECK-LABEL: func.func @bytes_and_constants
// CHECK-SAME: {recipe = @constant, role = "constant"}, {bytes = 2 : i64, first = 0 : i64, last = 1 : i64, role = "workspace"}]
// CHECK: ds.launch {{.*}}buffers = array<i64: 0, 2, 3>
// CHECK: ds.launch {{.*}}buffers = array<i64: 3, 0, 2, 1>
func.func @bytes_and_constants(%x: tensor<2xf32> {ds.dims = [2]}) -> tensor<2xf32> attributes {ds.entry} {
  %c = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = ds.binary lt %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %1 = ds.select %0, %x, %c : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Both branches write the buffer of the result, and the branch reads its condition from a buffer.
// CHECK-LABEL: func.func @branches_share_the_result
// CHECK: tensor.extract %arg0[] {buffer = 0 : i64}
// CHECK: ds.launch @exp{{.*}}buffers = array<i64: 1, 3>
// CHECK: ds.launch @tanh{{.*}}buffers = array<i64: 1, 3>
// CHECK: ds.launch @{{.*}}buffers = array<i64: 3, 2>
func.func @branches_share_the_result(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]})
    -> tensor<4xf32> attributes {ds.entry} {
  %k = tensor.extract %c[] : tensor<i1>
  %0 = scf.if %k -> tensor<4xf32> {
    %1 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = ds.unary neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// The source of a collective stays, and its destination exists, until the wait.
// CHECK-LABEL: func.func @collective_keeps_its_buffers
// CHECK-SAME: {bytes = "4*n", first = 0 : i64, last = 2 : i64, role = "workspace"},
// CHECK-SAME: {bytes = "4*n", first = 1 : i64, last = 2 : i64, role = "workspace"},
// CHECK: dist.all_reduce_start {{.*}}buffers = array<i64: 2, 3>
func.func @collective_keeps_its_buffers(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<?xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?xf32>) -> tensor<?xf32>
  %p = dist.all_reduce_start sum %0 site "g" : tensor<?xf32>
  %1 = ds.unary tanh %x : (tensor<?xf32>) -> tensor<?xf32>
  %2 = dist.wait %p : tensor<?xf32>
  %3 = ds.binary add %1, %2 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

// The blocks that come have a buffer of their own from the start on, beside the source.
// CHECK-LABEL: func.func @blocks_of_all_ranks
// CHECK-SAME: {bytes = "4*n", first = 0 : i64, last = 2 : i64, role = "workspace"},
// CHECK-SAME: {bytes = "4*ceildiv(n, mesh.data)*mesh.data", first = 1 : i64, last = 2 : i64, role = "workspace"}]
// CHECK: dist.all_to_all_start {{.*}}buffers = array<i64: 3, 4>
func.func @blocks_of_all_ranks(%x: tensor<?xf32> {ds.dims = ["n"]}) -> (tensor<?xf32>, tensor<?xf32>) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?xf32>) -> tensor<?xf32>
  %p = dist.all_to_all_start %0 site "g" : tensor<?xf32>
  %1 = ds.unary tanh %x : (tensor<?xf32>) -> tensor<?xf32>
  %2 = dist.wait %p sizes [["ceildiv(n, mesh.data)*mesh.data"]] : tensor<?xf32>
  %3 = ds.unary neg %2 : (tensor<?xf32>) -> tensor<?xf32>
  return %1, %3 : tensor<?xf32>, tensor<?xf32>
}

// -----

// What collectives behind the last launch need counts to that one: there is none after it.
// CHECK-LABEL: func.func @behind_the_last_launch
// CHECK-SAME: {bytes = "4*n", first = 0 : i64, last = 0 : i64, role = "workspace"},
// CHECK-SAME: {bytes = "4*n", first = 0 : i64, last = 0 : i64, role = "workspace"}]
func.func @behind_the_last_launch(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<?xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?xf32>) -> tensor<?xf32>
  %p = dist.send_recv_start %0 by 1 rotate site "once" : tensor<?xf32>
  %1 = dist.wait %p : tensor<?xf32>
  %q = dist.send_recv_start %1 by 1 rotate site "twice" : tensor<?xf32>
  %2 = dist.wait %q : tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// What all are told lies where each rank had its own, which is not read again.
// CHECK-LABEL: func.func @told_in_place
// CHECK: dist.broadcast_start {{.*}}buffers = array<i64: 1, 1>
func.func @told_in_place(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  %p = dist.broadcast_start %s root 0 site "s" : tensor<4xf32>
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.wait %p : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A neighbour's is written into the other operand, and never over what is sent.
// CHECK-LABEL: func.func @neighbours
// CHECK: dist.send_recv_start {{.*}}buffers = array<i64: [[S:[0-9]+]], [[T:[0-9]+]]>
// CHECK: dist.send_recv_start {{.*}}buffers = array<i64: [[T]], [[S]]>
func.func @neighbours(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"}, %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %p = dist.send_recv_start %s by 1 into %t : tensor<4xf32> site "forward" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  %q = dist.send_recv_start %0 by -1 into %s : tensor<4xf32> site "backward" : tensor<4xf32>
  %1 = dist.wait %q : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Old and new value of a state are one buffer.
// CHECK-LABEL: func.func @state_in_place
// CHECK-SAME: ds.buffers = [{index = 0 : i64, role = "input"}, {index = 0 : i64, role = "state"}]
// CHECK: ds.launch {{.*}}buffers = array<i64: 1, 0, 1>
func.func @state_in_place(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  %0 = ds.binary add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 is tied to state "s", which no argument has}}
func.func @state_without_an_argument(%x: tensor<4xf32> {ds.dims = [4]}) -> (tensor<4xf32> {ds.state = "s"})
    attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @value_without_a_kernel(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  // expected-error @+1 {{'tensor.empty' op has no place in the memory phase}}
  %0 = tensor.empty() : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// A carried value has one buffer, here the output where it ends; what an iteration reads from outside (%w, read by the
// first launch of the loop) lives until the loop ends, so that the second launch of the iteration cannot take its place.
// CHECK-LABEL: func.func @loops
// CHECK-SAME: ds.buffers = [{index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"},
// CHECK-SAME: {bytes = 16 : i64, first = 0 : i64, last = 3 : i64, role = "workspace"},
// CHECK-SAME: {bytes = 16 : i64, first = 2 : i64, last = 3 : i64, role = "workspace"}]
// CHECK: ds.launch @exp{{.*}}buffers = array<i64: 0, 2>
// CHECK: ds.launch @copy{{.*}}buffers = array<i64: 0, 1>
// CHECK: ds.launch @add{{.*}}buffers = array<i64: 1, 2, 3>
// CHECK: ds.launch @tanh{{.*}}buffers = array<i64: 3, 1>
func.func @loops(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = ds.size 3
  %w = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.while (%i = %zero, %a = %x) : (i64, tensor<4xf32>) -> (i64, tensor<4xf32>) {
    %go = arith.cmpi slt, %i, %n : i64
    scf.condition(%go) %i, %a : i64, tensor<4xf32>
  } do {
  ^bb0(%i: i64, %a: tensor<4xf32>):
    %0 = ds.binary add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addi %i, %one : i64
    scf.yield %next, %1 : i64, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// -----

func.func @carried_sizes(%x: tensor<?xf32> {ds.dims = ["n"]}, %y: tensor<?xf32> {ds.dims = ["n + 1"]}, %c: tensor<i1> {ds.dims = []})
    -> tensor<?xf32> attributes {ds.entry} {
  // expected-error @+1 {{expects carried value 0 to keep its sizes, found [n] and [n + 1]}}
  %r = scf.while (%a = %x) : (tensor<?xf32>) -> tensor<?xf32> {
    %go = tensor.extract %c[] : tensor<i1>
    scf.condition(%go) %a : tensor<?xf32>
  } do {
  ^bb0(%a: tensor<?xf32>):
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
