// RUN: ds-opt %s --ds-recompute-activations="values=1" | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s --ds-recompute-activations --cse | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s --ds-recompute-activations --ds-outline-kernels 2>/dev/null | FileCheck %s --check-prefix=KERNELS
// RUN: not ds-opt %s --ds-recompute-activations="dims=n" 2>&1 | FileCheck %s --check-prefix=DIMS
// RUN: ds-opt %s --ds-recompute-activations="values=0" | FileCheck %s --check-prefix=NONE
// The numbers are checked by test/integration/recompute_cases.py.

// DIMS: error: dims: expected name=value, found 'n'
// NONE: module attributes {ds.activations = 3 : i64}
// NONE-NOT: ds.recomputed

// What costs least for the memory that it saves comes first: the tanh, whose operand is kept anyway.
// ONE: module attributes {ds.activations = 3 : i64}
// ONE-LABEL: func.func @micro(
// ONE: %[[P:.*]] = ds.linear
// ONE: ds.unary tanh %[[P]]
// ONE: ds.reduce sum
// ONE: %[[AGAIN:.*]] = ds.unary tanh %[[P]] {ds.recomputed}
// ONE: ds.binary mul %{{.*}}, %[[AGAIN]]
// ONE-NOT: ds.recomputed

// Once each, where they are read first; the mark keeps them apart from the first ones. The gathered rows that a branch makes are kept.
// ALL-LABEL: func.func @micro(
// ALL: %[[ROWS:.*]] = scf.if
// ALL: ds.linear %[[ROWS]]
// ALL: %[[SUM:.*]] = ds.reduce sum
// ALL-DAG: %[[P:.*]] = ds.linear %[[ROWS]], %{{.*}} {ds.recomputed}
// ALL-DAG: %[[T:.*]] = ds.unary tanh %[[P]] {ds.recomputed}
// ALL: return %[[SUM]]
// ALL-NOT: ds.recomputed

// Kernels are shared by both.
// KERNELS: ds.launch @[[LINEAR:linear_[0-9]+]](
// KERNELS: ds.launch @[[LINEAR]](
// KERNELS: ds.kernel @[[LINEAR]]
// KERNELS-NOT: ds.kernel @linear
// KERNELS-NOT: ds.recomputed
module {
func.func @micro(%x: tensor<?x256xf32> {ds.dims = ["n", 256], ds.name = "x"}, %c: tensor<i1> {ds.dims = [], ds.name = "c"}, %w: tensor<256x64xf32> {ds.dims = [256, 64], ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}, tensor<256x64xf32> {ds.name = "g"}) attributes {ds.entry} {
  %condition = tensor.extract %c[] : tensor<i1>
  %rows = scf.if %condition -> tensor<?x256xf32> {
    %0 = ds.unary abs %x : (tensor<?x256xf32>) -> tensor<?x256xf32>
    scf.yield %0 : tensor<?x256xf32>
  } else {
    scf.yield %x : tensor<?x256xf32>
  }
  %p = ds.linear %rows, %w : (tensor<?x256xf32>, tensor<256x64xf32>) -> tensor<?x64xf32>
  %t = ds.unary tanh %p : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = ds.binary mul %p, %t : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %loss = ds.reduce sum %q axes [0, 1] keep false : (tensor<?x64xf32>) -> tensor<f32>
  %back = ds.binary mul %p, %t : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %again = ds.binary add %back, %q : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %g = ds.matmul %rows, %again transpose [true, false] : (tensor<?x256xf32>, tensor<?x64xf32>) -> tensor<256x64xf32>
  return %loss, %g : tensor<f32>, tensor<256x64xf32>
}
}
