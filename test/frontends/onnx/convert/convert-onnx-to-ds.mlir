// The pass on its own: a module of onnx.node goes in, ds ops over named sizes come out.
// RUN: ds-opt %s --convert-onnx-to-ds | FileCheck %s
// RUN: ds-opt %s --convert-onnx-to-ds="dim=N=3" | FileCheck %s --check-prefix=PINNED
// RUN: not ds-opt %s --convert-onnx-to-ds="refuse-op=1" 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: refused for a test

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x4xf32> {ds.dims = ["N", 4], ds.name = "x"}
// CHECK-NOT: onnx.node
// CHECK: %[[BIAS:.*]] = ds.constant {{.*}}dense<[1.500000e+00, -2.000000e+00, 0.000000e+00, 4.000000e+00]>
// CHECK: ds.binary add %{{.*}}, %[[BIAS]] {ds.values = ["y"]} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// PINNED: ds.binary add {{.*}} -> tensor<3x4xf32>
module attributes {onnx.ir_version = 10 : i64, onnx.opset_import = [["", 21]], onnx.producer = "test"} {
  func.func @main(%x: tensor<?x4xf32> {onnx.dims = ["N", 4], onnx.name = "x"}) -> (!onnx.unknown {onnx.name = "y"}) {
    %b = onnx.initializer "b" dense<[1.5, -2.0, 0.0, 4.0]> : tensor<4xf32>
    %y = onnx.node "Add" version 21(%x, %b) outputs ["y"] : (tensor<?x4xf32>, tensor<4xf32>) -> !onnx.unknown
    return %y : !onnx.unknown
  }
}
