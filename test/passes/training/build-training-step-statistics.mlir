// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false" --canonicalize --cse --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" --canonicalize --cse --verify-diagnostics | FileCheck %s --check-prefix=ONCE
// The numbers are checked by test/integration/training_statistics_cases.py.

// An evaluation uses the running statistic; a micro-batch uses its own and moves the running one; the update keeps that
// if the step is finite. No gradient and no state of the optimizer belongs to it.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}
// CHECK-NOT: ds.reduce mean
// CHECK: ds.binary sub %[[X]], %[[M]]
// CHECK: return %{{.*}}, %{{.*}}, %[[M]]
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "first"}
// CHECK-SAME: %[[MOVED:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "m/moved", ds.state = "m/moved"}
// CHECK-SAME: tensor<4xf32> {ds.state = "w/gradient"}, tensor<4xf32> {ds.state = "m/moved"})
// CHECK-DAG: %[[KEPT:.*]] = ds.constant dense<0.899999976>
// CHECK-DAG: %[[SHARE:.*]] = ds.constant dense<1.000000e-01>
// CHECK: %[[BATCH:.*]] = ds.reduce mean
// CHECK: %[[BEFORE:.*]] = ds.select %[[FIRST]], %[[M]], %[[MOVED]]
// CHECK: %[[OLD:.*]] = ds.binary mul %[[BEFORE]], %[[KEPT]]
// CHECK: %[[NEW:.*]] = ds.binary mul %[[BATCH]], %[[SHARE]]
// CHECK: %[[NEXT:.*]] = ds.binary add %[[OLD]], %[[NEW]]
// CHECK: ds.binary sub %{{.*}}, %[[BATCH]]
// CHECK: return %{{.*}}, %[[NEXT]]
// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {dist.uniform, ds.dims = [], ds.name = "loss_scale"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}
// CHECK-SAME: %[[MOVED:[a-z0-9]+]]: tensor<4xf32> {dist.uniform, ds.dims = [4], ds.name = "m/moved", ds.state = "m/moved"}
// CHECK-SAME: tensor<4xf32> {ds.state = "w"}, tensor<4xf32> {ds.state = "m"})
// CHECK-NOT: %[[M]]
// CHECK: %[[NORM:.*]] = ds.binary div %{{.*}}, %[[SCALE]]
// CHECK: %[[NONE:.*]] = ds.binary sub %[[NORM]], %[[NORM]]
// CHECK: %[[SOUND:.*]] = ds.binary eq %[[NONE]]
// CHECK: %[[OFF:.*]] = ds.binary sub %[[MOVED]], %[[MOVED]]
// CHECK: %[[ALL:.*]] = ds.reduce sum %[[OFF]]
// CHECK: %[[ZERO:.*]] = ds.binary eq %[[ALL]]
// CHECK: %[[FINITE:.*]] = ds.binary bit_and %[[SOUND]], %[[ZERO]]
// CHECK: %[[BOTH:.*]] = tensor.extract %[[FINITE]]
// CHECK: scf.if %[[BOTH]]
// CHECK: %[[NEXT:.*]] = ds.select %[[FINITE]], %[[MOVED]], %[[M]]
// CHECK: return {{.*}}, %[[NEXT]]
// ONCE-LABEL: func.func @micro(
// ONCE-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}
// ONCE-NOT: ds.select
// ONCE: %[[OLD:.*]] = ds.binary mul %[[M]]
// ONCE: %[[NEXT:.*]] = ds.binary add %[[OLD]]
// ONCE: return %{{.*}}, %[[NEXT]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @m {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<8x4xf32> {ds.dims = [8, 4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}, %m: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}) -> (tensor<f32> {ds.name = "loss"}, tensor<4xf32> {ds.name = "mean"}) attributes {ds.entry} {
  %0 = ds.reduce mean %x axes [0] keep false : (tensor<8x4xf32>) -> tensor<4xf32>
  %1, %2 = ds.running_statistic %0, %m momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3 = ds.binary sub %x, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %4 = ds.binary mul %3, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %5 = ds.reduce sum_square %4 axes [0, 1] keep false : (tensor<8x4xf32>) -> tensor<f32>
  return %5, %2 : tensor<f32>, tensor<4xf32>
}

// -----

// Nodes that share a running statistic move it one after the other; a frozen one stays, and a micro-batch uses its own
// statistic even so.
// CHECK-LABEL: func.func @eval(
// CHECK: ds.weight @frozen
// CHECK-LABEL: func.func @micro(
// CHECK-NOT: ds.weight @frozen
// CHECK: %[[FIRST:.*]] = ds.select
// CHECK: %[[KEPT:.*]] = ds.binary mul %[[FIRST]]
// CHECK: %[[SECOND:.*]] = ds.binary add %[[KEPT]]
// CHECK: %[[AGAIN:.*]] = ds.binary mul %[[SECOND]]
// CHECK: %[[NEXT:.*]] = ds.binary add %[[AGAIN]]
// CHECK: return %{{.*}}, %{{.*}}, %[[NEXT]] :
// CHECK-LABEL: func.func @update(
// CHECK-NOT: "frozen
// CHECK: return
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @m {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @frozen {
  %0 = ds.source "model.onnx" [32, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @shared(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}, %m: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %f = ds.weight @frozen : tensor<4xf32>
  %0 = ds.binary mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1, %2 = ds.running_statistic %0, %m momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3, %4 = ds.running_statistic %0, %m momentum 0.9 node 8 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %5, %6 = ds.running_statistic %0, %f momentum 0.9 node 9 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %7 = ds.binary add %1, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = ds.binary mul %7, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = ds.reduce sum %8 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %9 : tensor<f32>
}

// -----

// How often a branch is taken only a run tells.
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @m {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @branch(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %c: tensor<i1> {ds.dims = [], ds.name = "c"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}, %m: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = tensor.extract %c[] : tensor<i1>
  %1 = scf.if %0 -> tensor<4xf32> {
    // expected-error @below {{a batch normalization in a branch or a loop cannot move its running statistic 'm'; --freeze keeps it as it is}}
    %4, %5 = ds.running_statistic %x, %m momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    scf.yield %4 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %2 = ds.binary mul %1, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.reduce sum %2 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// The name of what training adds is another tensor's.
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @m {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
// expected-error @below {{'m/moved' is a parameter, and the name of what training keeps of 'm'}}
func.func @names(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "m/moved", ds.state = "m/moved"}, %m: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0, %1 = ds.running_statistic %x, %m momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = ds.binary mul %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.reduce sum %2 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
