// RUN: ds-opt %s --split-input-file --ds-differentiate --canonicalize --cse | FileCheck %s
// The numbers are checked by test/integration/attention_gradient_cases.py and gradient_mask_cases.py.

// Scores are computed again, in blocks: none are in memory.
// CHECK-LABEL: func.func @in_blocks
// CHECK: %[[Q:[^,]*]], %[[K:[^,]*]], %[[V:[^,]*]] = ds.attention_gradient %arg0, %arg1, %arg1, %{{.*}} [add %arg2, window else 0xFFF0000000000000] left 3 right 0 scale 5.000000e-01 softcap 2.000000e+00 guard
// CHECK-NOT: ds.matmul
// CHECK: %[[BOTH:.*]] = ds.binary add %[[K]], %[[V]]
// CHECK: return %[[Q]], %[[BOTH]]
func.func @in_blocks(%q: tensor<1x4x6x8xf32>, %k: tensor<1x2x6x8xf32>, %m: tensor<6x6xf32>) -> (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>) {
  %d:2 = train.gradient (%q, %k) at (%m) {
  ^bb0(%a: tensor<1x4x6x8xf32>, %b: tensor<1x2x6x8xf32>, %c: tensor<6x6xf32>):
    %0 = ds.attention %a, %b, %b [add %c, window else 0xFFF0000000000000] left 3 right 0 scale 0.5 softcap 2.0 guard : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<6x6xf32>) -> tensor<1x4x6x8xf32>
    train.yield %0 : tensor<1x4x6x8xf32>
  } : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<6x6xf32>) -> (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>)
  return %d#0, %d#1 : tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>
}

// -----

// Narrow floats are widened before, and what comes of them is narrowed.
// CHECK-LABEL: func.func @narrow
// CHECK: ds.attention_gradient {{.*}} : (tensor<1x2x6x8xf32>,
// CHECK: ds.cast %{{.*}} to f16
func.func @narrow(%q: tensor<1x2x6x8xf16>) -> tensor<1x2x6x8xf16> {
  %d = train.gradient (%q) {
  ^bb0(%a: tensor<1x2x6x8xf16>):
    %0 = ds.attention %a, %a, %a scale 0.5 : (tensor<1x2x6x8xf16>, tensor<1x2x6x8xf16>, tensor<1x2x6x8xf16>) -> tensor<1x2x6x8xf16>
    train.yield %0 : tensor<1x2x6x8xf16>
  } : (tensor<1x2x6x8xf16>) -> tensor<1x2x6x8xf16>
  return %d : tensor<1x2x6x8xf16>
}

// -----

// A mask that is learned needs the derivatives of all scores.
// CHECK-LABEL: func.func @learned_mask
// CHECK-NOT: ds.attention_gradient
// CHECK: ds.softmax
// CHECK: return
func.func @learned_mask(%q: tensor<1x2x6x8xf32>, %m: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %d = train.gradient (%m) at (%q) {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<1x2x6x8xf32>):
    %0 = ds.attention %b, %b, %b [add %a] scale 0.5 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<6x6xf32>) -> tensor<1x2x6x8xf32>
    train.yield %0 : tensor<1x2x6x8xf32>
  } : (tensor<6x6xf32>, tensor<1x2x6x8xf32>) -> tensor<6x6xf32>
  return %d : tensor<6x6xf32>
}

// -----

// Of second order: what is differentiated is written out.
// CHECK-LABEL: func.func @second_order
// CHECK: ds.softmax
// CHECK: ds.attention_gradient
// CHECK: return
func.func @second_order(%q: tensor<1x2x6x8xf32>, %k: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %s = train.gradient (%q) at (%k) {
  ^bb0(%x: tensor<1x2x6x8xf32>, %y: tensor<1x2x6x8xf32>):
    %d = train.gradient (%x) at (%y) {
    ^bb0(%a: tensor<1x2x6x8xf32>, %b: tensor<1x2x6x8xf32>):
      %0 = ds.attention %a, %b, %b scale 0.5 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
      %1 = ds.binary mul %0, %a : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
      train.yield %1 : tensor<1x2x6x8xf32>
    } : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
    train.yield %d : tensor<1x2x6x8xf32>
  } : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %s : tensor<1x2x6x8xf32>
}

// -----

// The dropout of the weights goes with them, and is drawn again.
// CHECK-LABEL: func.func @dropout
// CHECK: ds.attention_gradient %arg0, %arg0, %arg0, %{{.*}} scale 5.000000e-01 dropout 1.000000e-01 stream 7 :
// CHECK-NOT: ds.dropout
func.func @dropout(%q: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %d = train.gradient (%q) {
  ^bb0(%a: tensor<1x2x6x8xf32>):
    %0 = ds.attention %a, %a, %a scale 0.5 dropout 0.1 stream 7 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
    train.yield %0 : tensor<1x2x6x8xf32>
  } : (tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %d : tensor<1x2x6x8xf32>
}

// -----

// Written out, the weights and what comes back to them are dropped in the same places.
// CHECK-LABEL: func.func @dropout_written_out
// CHECK: %[[W:.*]] = ds.matmul %{{.*}}, %{{.*}} transpose [false, true]
// CHECK: ds.dropout %{{.*}} ratio 1.000000e-01 stream 7 : (tensor<1x2x6x6xf32>)
// CHECK: return
func.func @dropout_written_out(%q: tensor<1x2x6x8xf32>, %m: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %d = train.gradient (%m) at (%q) {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<1x2x6x8xf32>):
    %0 = ds.attention %b, %b, %b [add %a] scale 0.5 dropout 0.1 stream 7 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<6x6xf32>) -> tensor<1x2x6x8xf32>
    train.yield %0 : tensor<1x2x6x8xf32>
  } : (tensor<6x6xf32>, tensor<1x2x6x8xf32>) -> tensor<6x6xf32>
  return %d : tensor<6x6xf32>
}
