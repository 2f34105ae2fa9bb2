// RUN: ds-opt %s --split-input-file --ds-gate-layers="output=y" --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/layer_drop_cases.py.

// Two blocks of two sums each; what an output alone reads of a block is empty where it is dropped; the weight's transpose is
// needed by the first block alone.
// CHECK: module attributes {ds.layers = ["h.0", "h.1"]}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x4xf32> {ds.dims = ["n", 4], ds.name = "x"}
// CHECK-SAME: %[[RUNS:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_gate/0"}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {ds.dims = [], ds.name = "layer_scale/0"}
// CHECK-SAME: ds.name = "layer_gate/1"
// CHECK-SAME: %[[SCALE1:[a-z0-9]+]]: tensor<f32> {ds.dims = [], ds.name = "layer_scale/1"}
// CHECK-NOT: ds.transpose
// CHECK: %[[GATE:.*]] = tensor.extract %[[RUNS]][]
// CHECK: %[[FIRST:.*]]:2 = scf.if %[[GATE]]
// CHECK: %[[TURNED:.*]] = ds.transpose
// CHECK: %[[P:.*]] = ds.linear %{{.*}}, %[[TURNED]]
// CHECK: %[[SCALED:.*]] = ds.binary mul %[[P]], %[[SCALE]]
// CHECK: %[[SUM:.*]] = ds.binary add %[[X]], %[[SCALED]]
// CHECK: %[[T:.*]] = ds.unary tanh %[[SUM]]
// CHECK: %[[TS:.*]] = ds.binary mul %[[T]], %[[SCALE]]
// CHECK: %[[END:.*]] = ds.binary add %[[SUM]], %[[TS]]
// CHECK: scf.yield %[[END]], %[[P]]
// CHECK: else
// CHECK: %[[NONE:.*]] = ds.empty ["n", 4]
// CHECK: scf.yield %[[X]], %[[NONE]]
// CHECK: {ds.layer = 0 : i64}
// CHECK: scf.if
// CHECK: ds.linear %{{.*}}, %{{.*}}
// CHECK: ds.binary mul %{{.*}}, %[[SCALE1]]
// CHECK: {ds.layer = 1 : i64}
module {
func.func @main(%x: tensor<?x4xf32> {ds.dims = ["n", 4], ds.name = "x"}, %w: tensor<4x4xf32> {ds.dims = [4, 4], ds.initial = @w, ds.name = "h.0.w", ds.state = "h.0.w"}, %v: tensor<4x4xf32> {ds.dims = [4, 4], ds.initial = @w, ds.name = "h.1.w", ds.state = "h.1.w"}) -> (tensor<?x4xf32> {ds.name = "y"}, tensor<?x4xf32> {ds.name = "inner"}) attributes {ds.entry} {
  %turned = ds.transpose %w [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %n0 = ds.unary abs %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %p0 = ds.linear %n0, %turned : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %r0 = ds.binary add %x, %p0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %t0 = ds.unary tanh %r0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %s0 = ds.binary add %r0, %t0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %n1 = ds.unary abs %s0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %p1 = ds.linear %n1, %v : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %r1 = ds.binary add %p1, %s0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %t1 = ds.unary tanh %r1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %s1 = ds.binary add %r1, %t1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %s1, %p0 : tensor<?x4xf32>, tensor<?x4xf32>
}
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 64] : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
}

// -----

// All nodes are of one scope: numbers tell the blocks apart.
// CHECK: module attributes {ds.layers = ["/net, block 0", "/net, block 1"]}
// CHECK-LABEL: func.func @main(
module {
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a0 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32> loc("/net/Tanh")
  %b0 = ds.binary add %x, %a0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("/net/Add")
  %a1 = ds.unary tanh %b0 : (tensor<4xf32>) -> tensor<4xf32> loc("/net/Tanh_1")
  %b1 = ds.binary add %b0, %a1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("/net/Add_1")
  return %b1 : tensor<4xf32>
}
}

// -----

// A sum of three, written from the left: attention and feed-forward network side by side are one sum of the stream.
// CHECK: module attributes {ds.layers = ["block 0", "block 1"]}
// CHECK-LABEL: func.func @main(
// CHECK: scf.if
// CHECK: ds.binary mul
// CHECK: ds.binary add
// CHECK: ds.binary mul
// CHECK: ds.binary add
// CHECK: ds.layer = 0
// CHECK: ds.layer = 1
module {
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a0 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = ds.unary sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = ds.binary add %x, %a0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d0 = ds.binary add %c0, %b0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = ds.unary tanh %d0 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = ds.unary sqrt %d0 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = ds.binary add %d0, %a1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d1 = ds.binary add %c1, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %d1 : tensor<4xf32>
}
}

// -----

// What differs from the others is no block: the first sum runs always.
// CHECK-LABEL: func.func @main(
// CHECK: ds.unary sqrt
// CHECK: ds.binary add
// CHECK: scf.if
// CHECK: ds.unary tanh
// CHECK: scf.if
// CHECK: ds.unary tanh
// CHECK-NOT: ds.layer = 2
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = ds.unary tanh %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = ds.unary tanh %d : (tensor<4xf32>) -> tensor<4xf32>
  %f = ds.binary add %d, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

// expected-error @below {{progressive_layer_drop: expected blocks x + f(x) of a residual stream, found none: nothing is added to what it is computed of}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// One sum, and no attention.
// expected-error @below {{found none: no residual sums repeat along a stream, and none has an attention}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// What the judged output reads of a block's inside keeps it from being dropped.
// expected-error @below {{is read by}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = ds.unary tanh %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = ds.binary mul %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = ds.binary mul %e, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<2x4xf32> {ds.dims = [2, 4], ds.name = "x"}, %g: tensor<4xf32> {ds.dims = [4], ds.name = "g"}) -> (tensor<2x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = ds.binary add %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // expected-error @below {{progressive_layer_drop: expected blocks of pre-norm form (x + f(norm(x))), found a norm of a residual sum that the next block adds to (post-norm)}}
  %n = ds.layer_norm %b, %g axis 1 epsilon 1.0e-05 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %c = ds.unary tanh %n : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = ds.binary add %n, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %r: tensor<4xf32> {ds.dims = [4], ds.name = "r", ds.state = "r"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  // expected-error @below {{this batch normalization in block 'block 0' moves a running statistic}}
  %m:2 = ds.running_statistic %x, %r momentum 9.0e-01 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %a = ds.unary tanh %m#0 : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o:2 = ds.running_statistic %b, %r momentum 9.0e-01 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = ds.unary tanh %o#0 : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// expected-error @below {{expected inputs with other names than those that training adds, found 'layer_first/0'}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "layer_first/0"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %c = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = ds.unary tanh %d : (tensor<4xf32>) -> tensor<4xf32>
  %f = ds.binary add %d, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

// expected-error @below {{--loss or --logits: expected an output of the model, found 'y'; legal are 'z'}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "z"}) attributes {ds.entry} {
  return %x : tensor<4xf32>
}
