// RUN: ds-opt %s --split-input-file --ds-promote-parameters --verify-diagnostics=only-expected | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-promote-parameters="train=[bmn]" 2>&1 | FileCheck %s --check-prefix=TRAIN
// RUN: ds-opt %s --split-input-file --ds-promote-parameters=freeze=[mn] 2>&1 | FileCheck %s --check-prefix=FREEZE
// The numbers are checked by test/integration/training_statistics_cases.py.

// What batches move is a state that no gradient moves, also where it is a bias, too, or is named by --train; --freeze
// keeps it.
// CHECK-LABEL: func.func @running(
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @m, ds.name = "m", ds.state = "m", ds.statistic}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.initial = @b, ds.name = "b", ds.state = "b"}
// CHECK: ds.running_statistic %{{.*}}, %[[M]]
// CHECK: ds.binary add %{{.*}}, %[[M]]
// TRAIN: warning: 'm' is a running statistic, which moves with every step, and a bias, too: it is not trained
// TRAIN: remark: 'n' is not trained: it is a running statistic, which moves with every step
// FREEZE: remark: 'm' is not trained: it is named by --freeze
// FREEZE-LABEL: func.func @running(
// FREEZE-NOT: ds.statistic
// FREEZE: %[[M:.*]] = ds.weight @m
// FREEZE: ds.running_statistic %{{.*}}, %[[M]]
ds.recipe @m {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @n {
  %0 = ds.source "model.onnx" [32, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @running(%x: tensor<4x4xf32> {ds.dims = [4, 4], ds.name = "x"}) -> (tensor<4x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  // expected-warning @below {{'m' is a running statistic, which moves with every step, and a bias, too: it is not trained}}
  %m = ds.weight @m : tensor<4xf32>
  %b = ds.weight @b : tensor<4xf32>
  %n = ds.weight @n : tensor<4xf32>
  %0 = ds.reduce mean %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %1, %2 = ds.running_statistic %0, %m momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %6, %7 = ds.running_statistic %1, %n momentum 0.9 node 8 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3 = ds.binary sub %x, %6 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %4 = ds.binary add %3, %m : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %5 = ds.binary add %4, %b : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %5 : tensor<4x4xf32>
}

// -----

// A norm as it is written for inference: its mean and variance stay, also where something adds them; what is only taken
// away from activations is no statistic.
// CHECK-LABEL: func.func @inference(
// CHECK-SAME: ds.state = "b"
// CHECK-SAME: ds.state = "both"
// CHECK-NOT: ds.state
// CHECK: ds.weight @m
// CHECK: ds.weight @v
// TRAIN-LABEL: func.func @inference(
// TRAIN-SAME: ds.state = "m"
// TRAIN-SAME: ds.state = "b"
ds.recipe @m {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @v {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [32, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @both {
  %0 = ds.source "model.onnx" [48, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @inference(%x: tensor<4x4xf32> {ds.dims = [4, 4], ds.name = "x"}) -> (tensor<4x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  // expected-warning @below {{'m' is not trained: it acts as a bias and as a statistic of a norm; --train names what is trained even so}}
  %m = ds.weight @m : tensor<4xf32>
  // expected-warning @below {{'v' is not trained: it acts as a scale and as a statistic of a norm; --train names what is trained even so}}
  %v = ds.weight @v : tensor<4xf32>
  %b = ds.weight @b : tensor<4xf32>
  %both = ds.weight @both : tensor<4xf32>
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %0 = ds.binary add %v, %e : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary div %b, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.binary sub %x, %m : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %4 = ds.binary mul %3, %2 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %5 = ds.binary add %4, %m : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %6 = ds.binary mul %5, %v : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %7 = ds.binary sub %6, %both : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %8 = ds.binary mul %7, %both : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %8 : tensor<4x4xf32>
}
