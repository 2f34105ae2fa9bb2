// RUN: ds-opt %s --ds-quantize-weights --verify-diagnostics | FileCheck %s

// Codes are rounded against the triangle that calibration has left for the weight; scales are not. What it left nothing
// for is rounded to nearest, and says so.
// CHECK-LABEL: func.func @calibrated
// CHECK: ds.recipe @w.int8 {
// CHECK-NEXT: %[[W:.*]] = ds.constant
// CHECK-NEXT: %[[T:.*]] = ds.constant
// CHECK-NEXT: ds.quantize_weight codes %[[W]] against %[[T]] bits 8 group 0 : (tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x2xi8>
// CHECK: ds.recipe @w.scales {
// CHECK: ds.quantize_weight scales %{{.*}} bits 8 group 0 : (tensor<4x2xf32>) -> tensor<1x2xf32>
// CHECK: ds.recipe @v.int8 {
// CHECK: ds.quantize_weight codes %{{.*}} bits 8 group 0 : (tensor<4x20xf32>) -> tensor<4x20xi8>
// CHECK-NOT: ds.recipe @triangle
module attributes {ds.triangles = {w = @triangle}} {
  func.func @calibrated(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x20xf32>) {
    %w = ds.weight @w : tensor<4x2xf32>
    %v = ds.weight @v : tensor<4x20xf32>
    // expected-remark @+1 {{weight 'w' in 8 bits: 32 bytes become 16, relative error 1.79e-03, largest 1.57e-03, of results 1.81e-03}}
    %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
    // expected-remark @+2 {{weight 'v' in 8 bits: 320 bytes become 160, relative error 0.00e+00, largest 0.00e+00}}
    // expected-remark @+1 {{weight 'v' is rounded to nearest: calibration met no rows of its products, as of those inside branches and loops}}
    %1 = ds.linear %x, %v : (tensor<?x4xf32>, tensor<4x20xf32>) -> tensor<?x20xf32>
    return %0, %1 : tensor<?x2xf32>, tensor<?x20xf32>
  }
  ds.recipe @w {
    %0 = ds.constant dense<[[0.5, 1.0], [0.25, 0.3], [0.1, 0.7], [0.2, -0.4]]> : tensor<4x2xf32>
    ds.yield %0 : tensor<4x2xf32>
  }
  ds.recipe @v {
    %0 = ds.constant dense<0.5> : tensor<4x20xf32>
    ds.yield %0 : tensor<4x20xf32>
  }
  ds.recipe @triangle {
    %0 = ds.constant dense<[[1.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0.25, 0.5, 1.0, 0.0], [0.5, 0.5, 0.5, 2.0]]> : tensor<4x4xf32>
    ds.yield %0 : tensor<4x4xf32>
  }
}
