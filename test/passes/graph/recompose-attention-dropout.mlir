// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// Dropout between the softmax and its product with the values. The numbers are checked by
// test/integration/attention_dropout_cases.py.

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 dropout 1.000000e-01 stream 7
// CHECK-NEXT: return %[[Y]]
func.func @doc(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Nothing is dropped out.
// CHECK-LABEL: func.func @none
// CHECK-NEXT: %[[Y:.*]] = ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 :
// CHECK-NEXT: return %[[Y]]
func.func @none(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 0.0 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Rows that are not a number are guarded after the dropout: the numbers that are kept are the same.
// CHECK-LABEL: func.func @guarded
// CHECK: ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 guard dropout 1.000000e-01 stream 7
func.func @guarded(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %n = ds.unary is_nan %2 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %3 = ds.select %n, %zero, %2 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Before the weights are narrowed.
// CHECK-LABEL: func.func @narrowed
// CHECK: ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 dropout 1.000000e-01 stream 7 : (tensor<2x4x5x8xf16>
func.func @narrowed(%q: tensor<2x4x5x8xf16>, %k: tensor<2x4x7x8xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %w = ds.cast %0 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %w axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.cast %2 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  %y = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %y : tensor<2x4x5x8xf16>
}

// -----

// Batch and heads joined, the mask beside them split: places are those of the joined axis.
// CHECK-LABEL: func.func @joined
// CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [add %arg3] scale 1.000000e+00 dropout 1.000000e-01 stream 7
func.func @joined(%q: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %k: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}, %v: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}, %m: tensor<?x1x1x?xf32> {ds.dims = ["b", 1, 1, "t"]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 4, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.binary add %1, %m : (tensor<?x4x?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %4 = ds.reshape %3 ["4*b", "s", "t"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  %5 = ds.dropout %4 ratio 1.000000e-01 stream 7 : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %y = ds.matmul %5, %v transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// Queries in groups: their heads join in the order in which the scores lie.
// CHECK-LABEL: func.func @grouped
// CHECK: ds.attention {{.*}} dropout 1.000000e-01 stream 7 : (tensor<2x6x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x8xf32>)
func.func @grouped(%q: tensor<2x2x3x5x8xf32>, %k: tensor<2x2x1x7x8xf32>, %v: tensor<2x2x1x7x8xf32>) -> tensor<2x2x3x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x2x3x5x8xf32>, tensor<2x2x1x7x8xf32>) -> tensor<2x2x3x5x7xf32>
  %1 = ds.softmax %0 axis 4 log false : (tensor<2x2x3x5x7xf32>) -> tensor<2x2x3x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x2x3x5x7xf32>) -> tensor<2x2x3x5x7xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<2x2x3x5x7xf32>, tensor<2x2x1x7x8xf32>) -> tensor<2x2x3x5x8xf32>
  return %y : tensor<2x2x3x5x8xf32>
}

// -----

// Something else reads the weights: they are computed, too, and drop the same places.
// CHECK-LABEL: func.func @read_twice
// CHECK: %[[W:.*]] = ds.dropout {{.*}} stream 7
// CHECK: %[[Y:.*]] = ds.attention {{.*}} dropout 1.000000e-01 stream 7
// CHECK: return %[[Y]], %[[W]]
func.func @read_twice(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5x7xf32>) {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y, %2 : tensor<2x4x5x8xf32>, tensor<2x4x5x7xf32>
}

// -----

// CHECK-LABEL: func.func @twice
// CHECK-NOT: ds.attention
func.func @twice(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.dropout %2 ratio 1.000000e-01 stream 7 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the probabilities are dropped out more than once}}
  %y = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Batches of queries and values may differ when the model runs: one mask would be for all of them.
// CHECK-LABEL: func.func @another_batch
// CHECK-NOT: ds.attention
func.func @another_batch(%q: tensor<?x4x5x8xf32> {ds.dims = ["a", 4, 5, 8]}, %k: tensor<?x4x7x8xf32> {ds.dims = ["a", 4, 7, 8]}, %v: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}) -> tensor<?x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x4x5x8xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %2 = ds.dropout %1 ratio 1.000000e-01 stream 7 : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the probabilities that are dropped out might have another batch than the result}}
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<?x4x5x7xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x8xf32>
  return %y : tensor<?x4x5x8xf32>
}
