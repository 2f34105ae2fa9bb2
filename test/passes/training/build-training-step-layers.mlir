// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false" --canonicalize | FileCheck %s
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" | FileCheck %s --check-prefix=ONCE
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false" --canonicalize --ds-outline-kernels | FileCheck %s --check-prefix=KERNELS
// Blocks that a micro-batch may drop. The numbers are checked by test/integration/layer_drop_cases.py.

// Evaluation has no gates.
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: layer_
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "x"}
// CHECK-SAME: ds.name = "layer_gate/0"
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "first"}
// CHECK-SAME: %[[BOTH:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "both/gradient"
// CHECK-SAME: %[[OWN:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "own/gradient"
// CHECK-SAME: %[[BEGINS:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "layer_first/0"}
// The block hands on what it reads of the stream, beside its result.
// CHECK: %[[STREAM:.*]] = ds.unary tanh %[[X]]
// CHECK: %[[BLOCK:.*]]:3 = scf.if
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[STREAM]]
// CHECK: else
// CHECK: ds.empty [4]
// CHECK: scf.yield %[[STREAM]]
// CHECK: scf.if
// The gradient of what both blocks read is added to in each; one that is dropped hands on the other's.
// CHECK: %[[LAST:.*]]:2 = scf.if
// CHECK: %[[EARLIER:.*]]:2 = scf.if
// CHECK: %[[SUM:.*]] = ds.binary add %[[LAST]]#1
// CHECK: %[[GROWN:.*]] = ds.binary add %[[OWN]], %[[G:.*]] :
// CHECK: %[[NEXT:.*]] = ds.select %[[BEGINS]], %[[G]], %[[GROWN]]
// CHECK: scf.yield %[[SUM]], %[[NEXT]]
// CHECK: else
// CHECK: scf.yield %[[LAST]]#1, %[[OWN]]
// CHECK: ds.select %[[FIRST]]
// CHECK: dist.all_reduce_start sum
// CHECK: return
// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[RAN:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_ran/0"}
// CHECK-SAME: %[[OWN:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "own/gradient"
// CHECK: ds.select %[[RAN]], %{{.*}} : (tensor<i1>, tensor<2xf64>, tensor<f64>)
// CHECK: scf.if
// CHECK: ds.select %[[RAN]], %[[OWN]]

// ONCE-LABEL: func.func @micro(
// ONCE-NOT: layer_first
// ONCE-LABEL: func.func @update(
// ONCE-SAME: layer_ran/0

// Nothing is launched where a block is dropped: its result lies where the stream did. On the way back, only the gradient of
// what both blocks read begins with zeros in the last one.
// KERNELS-LABEL: func.func @micro(
// KERNELS: else
// KERNELS-NOT: ds.launch
// KERNELS: ds.layer = 0
// KERNELS: else
// KERNELS-NOT: ds.launch
// KERNELS: ds.layer = 1
// KERNELS: else
// KERNELS-NEXT: ds.launch
// KERNELS-NEXT: scf.yield
// KERNELS: else
// KERNELS-NEXT: scf.yield
// KERNELS-LABEL: func.func @update(
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%in: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %both: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "both", ds.state = "both"}, %own: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "own", ds.state = "own"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %stream = ds.unary tanh %in : (tensor<4xf32>) -> tensor<4xf32>
  %a0 = ds.binary mul %stream, %both : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b0 = ds.binary mul %a0, %own : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y0 = ds.binary add %stream, %b0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = ds.binary mul %y0, %both : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b1 = ds.binary mul %a1, %in : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y1 = ds.binary add %y0, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = ds.reduce sum %y1 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
