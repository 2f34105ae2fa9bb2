// The op of a derivative has the ONNX name of the gradient that it is.
// RUN: ds-opt %s --ds-differentiate | FileCheck %s

// CHECK-LABEL: func.func @named
// CHECK-DAG: %[[DX:.*]] = ds.binary mul {{.*}} {ds.values = ["dx"]}
// CHECK-DAG: %[[DY:.*]] = ds.unary neg {{.*}} {ds.values = ["dy"]}
// CHECK: return %[[DX]], %[[DY]]
func.func @named(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %dx, %dy = train.gradient (%x, %y) attributes {ds.values = ["dx", "dy"]} {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = ds.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.binary sub %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx, %dy : tensor<4xf32>, tensor<4xf32>
}
