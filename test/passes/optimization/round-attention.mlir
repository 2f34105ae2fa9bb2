// RUN: ds-opt %s --split-input-file --ds-round-attention="machine=512,bfloat_dot=0.5,bfloat_tiles=14" --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-round-attention="machine=512,bfloat_dot=0.5" 2>&1 | FileCheck %s --check-prefix=SLOW
// RUN: not ds-opt %s --split-input-file --ds-round-attention="machine=500" 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: ds-round-attention: machine '500': expected 128, 256, 512 or 1024 bits of a vector, found '500'
// SLOW: remark: attention not rounded: products of bf16 run at 0.9 times the rate of f32 here, less than 1.5
// CHECK-LABEL: func.func @doc
// CHECK: ds.attention %arg0, %arg0, %arg0 scale 1.250000e-01 rounds bf16
// SLOW-LABEL: func.func @doc
// SLOW: ds.attention %arg0, %arg0, %arg0 scale 1.250000e-01 :
func.func @doc(%q: tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32> attributes {ds.entry} {
  %0 = ds.attention %q, %q, %q scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32>
  return %0 : tensor<?x12x?x64xf32>
}

// -----

// CHECK-LABEL: func.func @kept
// CHECK: ds.attention %arg0, %arg0, %arg0 scale 1.250000e-01 :
// CHECK: ds.attention %arg1, %arg1, %arg1 scale 1.250000e-01 rounds bf16 :
func.func @kept(%half: tensor<2x3x4x8xf16>, %q: tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf16>, tensor<2x3x4x8xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{attention not rounded: its operands are not f32}}
  %0 = ds.attention %half, %half, %half scale 0.125 : (tensor<2x3x4x8xf16>, tensor<2x3x4x8xf16>, tensor<2x3x4x8xf16>) -> tensor<2x3x4x8xf16>
  // expected-remark @+1 {{attention not rounded: its operands are rounded already}}
  %1 = ds.attention %q, %q, %q scale 0.125 rounds bf16 : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %0, %1 : tensor<2x3x4x8xf16>, tensor<2x3x4x8xf32>
}

// -----

// A decoder's step: one query, and two, which share what is packed.
// CHECK-LABEL: func.func @step
// CHECK: ds.attention %arg0, %arg2, %arg2 scale 1.250000e-01 :
// CHECK: ds.attention %arg1, %arg2, %arg2 scale 1.250000e-01 rounds bf16 :
func.func @step(%one: tensor<?x12x1x64xf32>, %two: tensor<?x12x2x64xf32>, %past: tensor<?x12x?x64xf32>) -> (tensor<?x12x1x64xf32>, tensor<?x12x2x64xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{attention not rounded: one query a head reads keys and values once, where they lie}}
  %0 = ds.attention %one, %past, %past scale 0.125 : (tensor<?x12x1x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x1x64xf32>
  %1 = ds.attention %two, %past, %past scale 0.125 : (tensor<?x12x2x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x2x64xf32>
  return %0, %1 : tensor<?x12x1x64xf32>, tensor<?x12x2x64xf32>
}
