// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: ds.recipe @w
// CHECK: ds.source "model.onnx"{{ ?}}[4096, 64] : tensor<4x4xf32>
// CHECK: ds.yield %{{.*}} : tensor<4x4xf32>
ds.recipe @w {
  %0 = ds.source "model.onnx" [4096, 64] : tensor<4x4xf32>
  %1 = ds.transpose %0 [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  ds.yield %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @leaves
func.func @leaves() {
  // CHECK: ds.constant dense<5.000000e-01> : tensor<f32>
  %0 = ds.constant dense<0.5> : tensor<f32>
  // CHECK: ds.constant {ds.values = ["c"]} dense<[1, 2]> : tensor<2xi64>
  %1 = ds.constant {ds.values = ["c"]} dense<[1, 2]> : tensor<2xi64>
  // CHECK: ds.weight @w : tensor<4x4xf32>
  %2 = ds.weight @w : tensor<4x4xf32>
  // CHECK: ds.shape ["batch", "seq", 384] : tensor<3xi64>
  %3 = ds.shape ["batch", "seq", 384] : tensor<3xi64>
  // CHECK: ds.iota 0 ["seq"] : tensor<?xi64>
  %4 = ds.iota 0 ["seq"] : tensor<?xi64>
  // CHECK: ds.empty ["batch", 4] of f32 : tensor<?x4xf32>
  %5 = ds.empty ["batch", 4] of f32 : tensor<?x4xf32>
  return
}
