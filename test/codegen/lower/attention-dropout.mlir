// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=16" --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference" --verify-diagnostics | FileCheck %s --check-prefix=PLAIN
// The numbers are checked by test/integration/attention_dropout_cases.py.

// Weights are drawn in a loop of their own before they are multiplied with values: no mask is in memory.
// CHECK-LABEL: func.func @doc
// CHECK: math.exp
// CHECK: linalg.index 0
// CHECK-COUNT-18: arith.muli {{.*}} : i64
// CHECK-NOT: arith.muli {{.*}} : i64
// CHECK: arith.cmpi uge, %{{.*}}, %{{.*}} : i64
// CHECK: arith.select {{.*}} : f32
// CHECK: vector.fma
// PLAIN-LABEL: func.func @doc
// PLAIN-NOT: linalg.generic
// PLAIN: arith.cmpi uge, %{{.*}}, %{{.*}} : i64
// PLAIN: return
ds.kernel @doc sizes 0 arguments [[1, 2, 6, 8], [], [], [], []] {
^bb0(%q: tensor<1x2x6x8xf32>, %seed: tensor<i64>, %step: tensor<i64>, %micro: tensor<i64>, %stream: tensor<i64>):
  %0 = ds.attention %q, %q, %q scale 0.125 dropout 0.1 random %seed, %step, %micro, %stream
      {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>, result_sizes = [[1, 2, 6, 8]]}
      : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x2x6x8xf32>
  ds.yield %0 : tensor<1x2x6x8xf32>
}

// -----

// Neither trained nor evaluated.
ds.kernel @nothing_to_draw_by sizes 0 arguments [[1, 2, 6, 8]] {
^bb0(%q: tensor<1x2x6x8xf32>):
  // expected-error @+1 {{'ds.attention' op expects what its dropout is drawn by, as 'ds-build-training-step' gives it}}
  %0 = ds.attention %q, %q, %q scale 0.125 dropout 0.1 stream 7 {result_sizes = [[1, 2, 6, 8]]} : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  ds.yield %0 : tensor<1x2x6x8xf32>
}
