// RUN: ds-opt %s --split-input-file --ds-round-products --verify-diagnostics | FileCheck %s

// Rows that two products read are rounded once; a weight of a few numbers is a constant.
// CHECK-LABEL: ds.recipe @folded
// CHECK: ds.cast %{{.*}} to bf16
// CHECK-LABEL: func.func @doc
// CHECK: %[[X:.*]] = ds.cast %arg0 to bf16 : (tensor<?x4xf32>) -> tensor<?x4xbf16>
// CHECK: %[[W:.*]] = ds.weight @folded : tensor<4x8xbf16>
// CHECK: ds.linear %[[X]], %[[W]], %arg1 {wide} : (tensor<?x4xbf16>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x8xf32>
// CHECK-NOT: to bf16
// CHECK: %[[C:.*]] = ds.constant dense<5.000000e-01> : tensor<4x1xbf16>
// CHECK: ds.linear %[[X]], %[[C]] {wide} : (tensor<?x4xbf16>, tensor<4x1xbf16>) -> tensor<?x1xf32>
func.func @doc(%x: tensor<?x4xf32>, %bias: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x1xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x8xf32>
  %c = ds.constant dense<0.5> : tensor<4x1xf32>
  %0 = ds.linear %x, %w, %bias : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = ds.linear %x, %c : (tensor<?x4xf32>, tensor<4x1xf32>) -> tensor<?x1xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x1xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 128] : tensor<4x8xf32>
  ds.yield %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @kept
// CHECK: ds.linear %{{.*}} {wide} :
// CHECK-NOT: ds.linear {{.*}} {wide} :
func.func @kept(%x: tensor<2x4xf32>, %v: tensor<4x8xf32>, %d: tensor<2x4xf64>, %p: tensor<1x4x16xf32>) -> tensor<2x8xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x8xf32>
  %c = ds.constant dense<0.5> : tensor<4x8xf64>
  %0 = ds.linear %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{product not rounded: its weight is packed}}
  %1 = ds.linear %x, %p {panel = 16 : i64, columns = 8 : i64} : (tensor<2x4xf32>, tensor<1x4x16xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{product not rounded: its weight is computed while the program runs}}
  %2 = ds.linear %x, %v : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // expected-remark @+1 {{product not rounded: its operands are not f32}}
  %3 = ds.linear %d, %c : (tensor<2x4xf64>, tensor<4x8xf64>) -> tensor<2x8xf64>
  return %0 : tensor<2x8xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 128] : tensor<4x8xf32>
  ds.yield %0 : tensor<4x8xf32>
}

// -----

// Codes stay what they are, only rows are rounded; scales and the sum are f32.
// CHECK-LABEL: func.func @codes
// CHECK: %[[X:.*]] = ds.cast %arg0 to bf16 : (tensor<?x4xf32>) -> tensor<?x4xbf16>
// CHECK: ds.linear %[[X]], %{{.*}} scales %{{.*}} {wide} : (tensor<?x4xbf16>, tensor<4x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
func.func @codes(%x: tensor<?x4xf32>) -> tensor<?x8xf32> attributes {ds.entry} {
  %q = ds.weight @q : tensor<4x8xi8>
  %s = ds.constant dense<0.5> : tensor<1x8xf32>
  %0 = ds.linear %x, %q scales %s : (tensor<?x4xf32>, tensor<4x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
ds.recipe @q {
  %0 = ds.source "m" [128, 32] : tensor<4x8xi8>
  ds.yield %0 : tensor<4x8xi8>
}

// -----

// expected-error @+1 {{ds-round-products: no product was rounded: there is no product with a weight; --precision=bf16 would change nothing}}
module {
  func.func @none(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {ds.entry} {
    return %x : tensor<2x4xf32>
  }
}

// -----

// f16 that stands for a weight already stays.
// CHECK-LABEL: func.func @halves
// CHECK: ds.linear %{{.*}} {wide} : (tensor<?x4xf32>, tensor<4x8xf16>) -> tensor<?x8xf32>
// CHECK: ds.linear %{{.*}} {wide} : (tensor<?x8xbf16>, tensor<8x2xbf16>) -> tensor<?x2xf32>
func.func @halves(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %w = ds.weight @w.f16 : tensor<4x8xf16>
  // expected-remark @+1 {{product not rounded: its operands are not f32}}
  %0 = ds.linear %x, %w {wide} : (tensor<?x4xf32>, tensor<4x8xf16>) -> tensor<?x8xf32>
  %v = ds.weight @v : tensor<8x2xf32>
  %1 = ds.linear %0, %v : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.3> : tensor<8x2xf32>
  ds.yield %0 : tensor<8x2xf32>
}
ds.recipe @w.f16 {
  %0 = ds.constant dense<0.3> : tensor<4x8xf32>
  %1 = ds.cast %0 to f16 : (tensor<4x8xf32>) -> tensor<4x8xf16>
  ds.yield %1 : tensor<4x8xf16>
}
