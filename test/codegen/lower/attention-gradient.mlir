// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=16" --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference" --verify-diagnostics | FileCheck %s --check-prefix=PLAIN

// One item is one head of keys: it adds up what the heads of queries give. Scratch holds keys twice, values, and rows of
// a block: it grows with the keys, not with queries times keys.
// CHECK-LABEL: func.func @panels
// CHECK-SAME: ds.grid = 6 : i64
// CHECK: vector.fma
// CHECK: linalg.generic
// PLAIN-LABEL: func.func @panels
// PLAIN-SAME: ds.grid = 6 : i64
// PLAIN-NOT: vector.
// PLAIN: return
ds.kernel @panels sizes 1 arguments [[3, 4, "d0", 64], [3, 2, 96, 64], [3, 2, 96, 64], [3, 4, "d0", 64]] {
^bb0(%q: tensor<3x4x?x64xf32>, %k: tensor<3x2x96x64xf32>, %v: tensor<3x2x96x64xf32>, %g: tensor<3x4x?x64xf32>):
  %0:3 = ds.attention_gradient %q, %k, %v, %g [window else 0xFFF0000000000000] right 0 scale 0.5
      {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>,
       result_sizes = [[3, 4, "d0", 64], [3, 2, 96, 64], [3, 2, 96, 64]]}
      : (tensor<3x4x?x64xf32>, tensor<3x2x96x64xf32>, tensor<3x2x96x64xf32>, tensor<3x4x?x64xf32>)
      -> (tensor<3x4x?x64xf32>, tensor<3x2x96x64xf32>, tensor<3x2x96x64xf32>)
  ds.yield %0#0, %0#1, %0#2 : tensor<3x4x?x64xf32>, tensor<3x2x96x64xf32>, tensor<3x2x96x64xf32>
}

// -----

// Kernels yield all results.
ds.kernel @unused sizes 0 arguments [[1, 2, 3, 4]] {
^bb0(%q: tensor<1x2x3x4xf32>):
  // expected-error @+1 {{'ds.attention_gradient' op expects a kernel that yields its results, and does not move their features}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 0.5 {result_sizes = [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]}
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>)
      -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>)
  ds.yield %0#0 : tensor<1x2x3x4xf32>
}
