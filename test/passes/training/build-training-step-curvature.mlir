// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false layer-name=net.layer layers=1" --canonicalize --cse --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-build-training-step="loss=loss optimizer=sgd,momentum=false" --canonicalize --cse -o /dev/null
// The numbers are checked by test/integration/eigenvalue_cases.py.

// Of loss = sum((x w v)^2), with a layer of w alone: what it is told of v is nothing but its value. A direction whose
// norm is taken, the gradient, its derivative along the direction, and what the eigenvalue is of.
// CHECK-LABEL: func.func @curvature(
// CHECK-SAME: ds.state = "net.layer.0.w"
// CHECK-SAME: %[[BLOCK:[a-z0-9]+]]: tensor<i64> {ds.dims = [], ds.name = "curvature_block"}
// CHECK-SAME: tensor<f64> {ds.dims = [], ds.name = "loss_weight"}
// CHECK-SAME: %[[OLD:[a-z0-9]+]]: tensor<4xf32> {ds.dims = [4], ds.name = "net.layer.0.w/direction", ds.state = "net.layer.0.w/direction"}
// CHECK-NOT: head/direction
// CHECK-SAME: -> (tensor<f64> {ds.name = "eigenvalue"}, tensor<4xf32> {ds.state = "net.layer.0.w/direction"})
// CHECK: %[[CHOSEN:.*]] = ds.binary eq %[[BLOCK]]
// CHECK: %[[OFF:.*]] = ds.binary sub %[[OLD]], %[[OLD]]
// CHECK: %[[FINITE:.*]] = ds.binary eq %[[OFF]]
// CHECK: %[[SOUND:.*]] = ds.select %[[FINITE]], %[[OLD]]
// CHECK: %[[V:.*]] = ds.select %[[CHOSEN]], %[[SOUND]]
// CHECK: ds.unary sqrt
// CHECK: %[[U:.*]] = ds.binary div %[[V]]
// CHECK: %[[ALONG:.*]] = ds.binary mul %{{.*}}, %[[U]]
// CHECK: ds.binary mul %[[PRODUCT:.*]], %[[U]]
// CHECK: %[[NEXT:.*]] = ds.select %[[CHOSEN]], %[[PRODUCT]], %[[OLD]]
// CHECK: return %{{.*}}, %[[NEXT]]
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @v {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "net.layer.0.w", ds.state = "net.layer.0.w"}, %v: tensor<4xf32> {ds.dims = [4], ds.initial = @v, ds.name = "head", ds.state = "head"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.binary mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.binary mul %0, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary mul %1, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.reduce sum %2 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A module of the path's name that is no layer, around those that are.
// CHECK-LABEL: func.func @curvature(
// CHECK-SAME: -> (tensor<f64> {ds.name = "eigenvalue"}, tensor<4xf32> {ds.state = "net.layer.outer.net.layer.0.w/direction"})
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "net.layer.outer.net.layer.0.w", ds.state = "net.layer.outer.net.layer.0.w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.binary mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.binary mul %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.reduce sum %1 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// A layer that no name leads to.
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
// expected-error @below {{eigenvalue.layer_name: no parameter, and no node that reads one, has 'net.layer.0' in its name, expected layers 0 to 0; parameters are 'net.layers.0.w'}}
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "net.layers.0.w", ds.state = "net.layers.0.w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.binary mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A name that training needs itself.
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
ds.recipe @v {
  %0 = ds.source "model.onnx" [16, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
// expected-error @below {{'net.layer.0.w/direction' is a parameter, and the name of what training keeps of 'net.layer.0.w'}}
func.func @main(%v: tensor<4xf32> {ds.dims = [4], ds.initial = @v, ds.name = "net.layer.0.w/direction", ds.state = "net.layer.0.w/direction"}, %w: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "net.layer.0.w", ds.state = "net.layer.0.w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.binary mul %v, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
