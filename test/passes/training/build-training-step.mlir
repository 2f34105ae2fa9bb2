// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false" --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false accumulates=false" --verify-diagnostics | FileCheck %s --check-prefix=ONCE
// The numbers are checked by test/integration/training_cases.py.

// CHECK-LABEL: func.func @eval(
// CHECK-SAME: -> (tensor<f32> {ds.name = "loss"}, tensor<f32> {ds.name = "model/loss"}) attributes {ds.entry}
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "x"}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: %[[WEIGHT:[a-z0-9]+]]: tensor<f64> {ds.dims = [], ds.name = "loss_weight"}
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "first"}
// CHECK-SAME: %[[LAST:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "last"}
// CHECK-SAME: %[[BEFORE:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "w/gradient", ds.state = "w/gradient"}
// CHECK-SAME: -> (tensor<f32> {ds.name = "loss"}, tensor<4xf32> {ds.state = "w/gradient"})
// CHECK: %[[LOSS:.*]] = ds.reduce sum
// CHECK: %[[SEED:.*]] = ds.cast %[[WEIGHT]] to f32
// CHECK: %[[G:.*]] = ds.binary mul %{{.*}}, %[[X]]
// CHECK: %[[SUM:.*]] = ds.binary add %[[BEFORE]], %[[G]]
// CHECK: %[[NEXT:.*]] = ds.select %[[FIRST]], %[[G]], %[[SUM]]
// Ranks add up their gradients in the last micro-batch of a step.
// CHECK: %[[PENDING:.*]] = dist.all_reduce_start sum %[[NEXT]] when %[[LAST]] layouts [#dist.layout<[0] of 4 by 1>] site "gradients/embeddings"
// CHECK: %[[ALL:.*]] = dist.wait %[[PENDING]]
// CHECK: return %[[LOSS]], %[[ALL]]
// CHECK-LABEL: func.func @update(
// CHECK-SAME: ds.name = "learning_rate"
// CHECK-SAME: ds.name = "momentum"
// CHECK-SAME: ds.name = "step"
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {dist.uniform, ds.dims = [], ds.name = "loss_scale"}
// CHECK-SAME: %[[OLD:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: %[[GRADIENT:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: -> (tensor<f64> {ds.name = "grad_norm"}, tensor<i1> {ds.name = "finite"}, tensor<4xf32> {ds.state = "w"})
// The norm is that of blocks of 64 elements, two at least.
// CHECK: %[[PADDED:.*]] = ds.pad constant %[[GRADIENT]], %{{.*}} low [0] high [124]
// CHECK: %[[ROWS:.*]] = ds.reshape %[[PADDED]] [2, 64]
// CHECK: %[[LENGTHS:.*]] = ds.reduce l2 %[[ROWS]] axes [1]
// CHECK: %[[WIDE:.*]] = ds.cast %[[LENGTHS]] to f64
// CHECK: ds.reduce max %[[WIDE]]
// CHECK: %[[IF:.*]] = scf.if
// CHECK: %[[NEW:.*]] = ds.binary sub %[[OLD]]
// CHECK: scf.yield %[[NEW]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[OLD]]
// ONCE-LABEL: func.func @micro(
// ONCE-NOT: "{{first|last}}"
// ONCE: dist.all_reduce_start sum %{{[0-9]+}} layouts
// ONCE: return
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.binary mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// What the loss does not depend on has the gradient 0.
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[BEFORE:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "w/gradient", ds.state = "w/gradient"}
// CHECK: %[[ZERO:.*]] = ds.broadcast
// CHECK: ds.select %{{.*}}, %[[ZERO]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
// expected-remark @below {{the loss does not depend on 'w': its gradient is 0}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}, tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %1 = ds.reduce sum %x axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %1, %w : tensor<f32>, tensor<4xf32>
}

// -----

// expected-error @below {{--loss: expected an output of the model, found 'loss'; legal are 'y'}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{--loss: expected an output of one float, found 'loss' of 'tensor<4xf32>'}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected a model, found no entry}}
module {
}

// -----

func.func @first(%x: tensor<f32> {ds.dims = [], ds.name = "x"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<f32>
}
// expected-error @below {{expected a model of one entry, found several}}
func.func @second(%x: tensor<f32> {ds.dims = [], ds.name = "x"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{expected inputs and labels with other names than those that training adds, found 'last'}}
func.func @taken(%x: tensor<f32> {ds.dims = [], ds.name = "last"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{expected inputs and labels with other names than those that training adds, found 'first'}}
func.func @taken(%x: tensor<f32> {ds.dims = [], ds.name = "first"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<f32>
}

// -----

ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 4] : tensor<1xf32>
  ds.yield %0 : tensor<1xf32>
}
// expected-error @below {{'w/gradient' is a parameter, and the name of what training keeps of 'w'}}
func.func @collides(%x: tensor<f32> {ds.dims = [], ds.name = "x"}, %w: tensor<1xf32> {ds.dims = [1], ds.initial = @w, ds.name = "w", ds.state = "w"}, %g: tensor<1xf32> {ds.dims = [1], ds.initial = @w, ds.name = "w/gradient", ds.state = "w/gradient"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  return %x : tensor<f32>
}
