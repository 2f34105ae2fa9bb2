// What launches say of the nodes that they compute.
// RUN: ds-opt %s --split-input-file --ds-outline-kernels | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --canonicalize --cse --ds-outline-kernels | FileCheck %s --check-prefix=BACK

// A kernel of several nodes has work for each; what lies between them is not in memory.
// CHECK-LABEL: func.func @is_for_each_node
// CHECK: work = [{bytes = "8*n + 32", flops = "16*n", macs = "8*n", node = "/MatMul", op = "matmul", role = "forward"}, {bytes = "16*n", flops = "4*n", macs = 0 : i64, node = "/Exp", op = "exp", role = "forward"}]
func.func @is_for_each_node(%x: tensor<?x2xf32> {ds.dims = ["n", 2]}, %w: tensor<2x4xf32> {ds.dims = [2, 4]}) -> tensor<?x4xf32> attributes {ds.entry} {
  %1 = ds.fused {
    %2 = ds.matmul %x, %w transpose [false, false] : (tensor<?x2xf32>, tensor<2x4xf32>) -> tensor<?x4xf32> loc("/MatMul")
    %3 = ds.unary exp %2 : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("/Exp")
    ds.yield %3 : tensor<?x4xf32>
  } : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// One op for two nodes: by their columns.
// CHECK-LABEL: func.func @is_shared
// CHECK: flops = "48*n", macs = "24*n", node = "/q", op = "linear"{{.*}}flops = "16*n", macs = "8*n", node = "/k", op = "linear"
func.func @is_shared(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<4x8xf32> {ds.dims = [4, 8]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> loc(fused<{shares = array<i64: 6, 2>}>["/q", "/k"])
  return %0 : tensor<?x8xf32>
}

// -----

// Parameters and parts of a step in the place of nodes; the outermost role counts.
// CHECK-LABEL: func.func @is_of_parameters
// CHECK: op = "exp", parameter = "w", role = "update"
// CHECK: op = "neg", part = "loss", role = "backward"
func.func @is_of_parameters(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32> loc(fused<{parameter = "w", role = "update"}>["/node"])
  %1 = ds.unary neg %0 : (tensor<4xf32>) -> tensor<4xf32> loc(fused<{role = "backward"}>[fused<{part = "loss", role = "forward"}>["/node"]])
  return %1 : tensor<4xf32>
}

// -----

// What a window hides is counted, and marked. No op of a table's rows multiplies.
// CHECK-LABEL: func.func @counts_by_hand
// CHECK: flops = 0 : i64, macs = 0 : i64, node = "/Gather"
// CHECK: flops = "130*s*s", macs = "64*s*s", may_be_less, node = "/Attention", op = "attention"
// CHECK: flops = 216 : i64, macs = 108 : i64, node = "/Conv", op = "conv"
func.func @counts_by_hand(%i: tensor<?xi64> {ds.dims = ["s"]}, %t: tensor<9x16xf32> {ds.dims = [9, 16]}, %q: tensor<1x2x?x16xf32> {ds.dims = [1, 2, "s", 16]},
    %c: tensor<1x2x4xf32> {ds.dims = [1, 2, 4]}, %k: tensor<9x2x3xf32> {ds.dims = [9, 2, 3]}) -> (tensor<?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x9x2xf32>) attributes {ds.entry} {
  %0 = ds.gather 0 %t, %i : (tensor<9x16xf32>, tensor<?xi64>) -> tensor<?x16xf32> loc("/Gather")
  %1 = ds.attention %q, %q, %q [window else -1.0e9] right 0 scale 0.25 : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> loc("/Attention")
  %2 = ds.conv %c, %k strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x2x4xf32>, tensor<9x2x3xf32>) -> tensor<1x9x2xf32> loc("/Conv")
  return %0, %1, %2 : tensor<?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x9x2xf32>
}

// -----

// The way back is of the nodes whose derivatives it computes; an attention's has its scores once more.
// BACK-LABEL: func.func @goes_back
// BACK: node = "/Attention", op = "attention", role = "forward"
// BACK: macs = "64*s*s", node = "/Attention", op = "attention_gradient", role = "backward"
// BACK-SAME: macs = "16*s*s", node = "/Attention", op = "attention_gradient", role = "recompute"
func.func @goes_back(%q: tensor<1x1x?x16xf32> {ds.dims = [1, 1, "s", 16]}, %k: tensor<1x1x?x16xf32> {ds.dims = [1, 1, "s", 16]}) -> (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>) attributes {ds.entry} {
  %y = ds.attention %q, %k, %k [] scale 0.25 : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> loc("/Attention")
  %g = train.gradient (%q) at (%k) {
  ^bb0(%a: tensor<1x1x?x16xf32>, %b: tensor<1x1x?x16xf32>):
    %0 = ds.attention %a, %b, %b [] scale 0.25 : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> loc("/Attention")
    %1 = ds.reduce sum %0 axes [0, 1, 2, 3] keep false : (tensor<1x1x?x16xf32>) -> tensor<f32> loc("/Sum")
    train.yield %1 : tensor<f32>
  } : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32>
  return %y, %g : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>
}

// -----

// What is forward work by its location, but done inside of the way back, is done again: a side of a branch, for one.
// CHECK-LABEL: func.func @repeats_a_side
// CHECK: op = "exp", role = "recompute"
// CHECK: op = "neg", role = "backward"
// CHECK: op = "abs", role = "forward"
func.func @repeats_a_side(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %take = tensor.extract %c[] : tensor<i1>
  %0 = scf.if %take -> tensor<4xf32> {
    %1 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("/Exp")
    %2 = ds.unary neg %1 : (tensor<4xf32>) -> tensor<4xf32> loc(fused<{role = "backward"}>["/If"])
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  } loc(fused<{role = "backward"}>["/If"])
  %3 = ds.unary abs %0 : (tensor<4xf32>) -> tensor<4xf32> loc("/Abs")
  return %3 : tensor<4xf32>
}
