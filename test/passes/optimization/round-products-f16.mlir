// RUN: ds-opt %s --split-input-file --ds-round-products=type=f16 --verify-diagnostics | FileCheck %s
// RUN: not ds-opt %s --split-input-file --ds-round-products=type=f64 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: ds-round-products: type: expected bf16 or f16, found 'f64'

// Rows that are rounded to f16 lie in memory as f32.
// CHECK-LABEL: func.func @doc
// CHECK: %[[H:.*]] = ds.cast %arg0 to f16 : (tensor<?x4xf32>) -> tensor<?x4xf16>
// CHECK: %[[X:.*]] = ds.cast %[[H]] to f32 : (tensor<?x4xf16>) -> tensor<?x4xf32>
// CHECK: %[[W:.*]] = ds.weight @{{.*}} : tensor<4x300xf16>
// CHECK: ds.linear %[[X]], %[[W]], %arg1 {wide} : (tensor<?x4xf32>, tensor<4x300xf16>, tensor<300xf32>) -> tensor<?x300xf32>
func.func @doc(%x: tensor<?x4xf32>, %bias: tensor<300xf32>) -> tensor<?x300xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x300xf32>
  %0 = ds.linear %x, %w, %bias : (tensor<?x4xf32>, tensor<4x300xf32>, tensor<300xf32>) -> tensor<?x300xf32>
  return %0 : tensor<?x300xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<-65519.0> : tensor<4x300xf32>
  ds.yield %0 : tensor<4x300xf32>
}

// -----

// What would become infinite stays; what is infinite does not become anything else.
// CHECK-LABEL: func.func @kept
// CHECK: ds.linear %{{.*}} : (tensor<2x4xf32>, tensor<4x300xf32>) -> tensor<2x300xf32>
// CHECK: ds.linear %{{.*}} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
// CHECK: ds.linear %{{.*}} {wide} : (tensor<2x4xf32>, tensor<4x8xf16>) -> tensor<2x8xf32>
func.func @kept(%x: tensor<2x4xf32>) -> (tensor<2x300xf32>, tensor<2x8xf32>, tensor<2x8xf32>) attributes {ds.entry} {
  %w = ds.weight @large : tensor<4x300xf32>
  %c = ds.constant dense<65520.0> : tensor<4x8xf32>
  %i = ds.constant dense<0x7F800000> : tensor<4x8xf32>
  // expected-remark @+1 {{product not rounded: its weight 'large' has an element of magnitude 1.000e+09; f16 ends at 65504}}
  %0 = ds.linear %x, %w : (tensor<2x4xf32>, tensor<4x300xf32>) -> tensor<2x300xf32>
  // expected-remark @+1 {{product not rounded: its weight has an element of magnitude 6.552e+04; f16 ends at 65504}}
  %1 = ds.linear %x, %c : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %2 = ds.linear %x, %i : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %0, %1, %2 : tensor<2x300xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
ds.recipe @large {
  %0 = ds.constant dense<1.0e+09> : tensor<4x300xf32>
  ds.yield %0 : tensor<4x300xf32>
}

// -----

// Halves that stand for a weight already stay, whatever they are.
// CHECK-LABEL: func.func @halves
// CHECK: %[[H:.*]] = ds.cast %arg0 to f16
// CHECK: %[[X:.*]] = ds.cast %[[H]] to f32
// CHECK: ds.linear %[[X]], %{{.*}} {wide} : (tensor<?x4xf32>, tensor<4x8xf16>) -> tensor<?x8xf32>
func.func @halves(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %w = ds.weight @w.f16 : tensor<4x8xf16>
  %0 = ds.linear %x, %w {wide} : (tensor<?x4xf32>, tensor<4x8xf16>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
ds.recipe @w.f16 {
  %0 = ds.constant dense<0.3> : tensor<4x8xf32>
  %1 = ds.cast %0 to f16 : (tensor<4x8xf32>) -> tensor<4x8xf16>
  ds.yield %1 : tensor<4x8xf16>
}
