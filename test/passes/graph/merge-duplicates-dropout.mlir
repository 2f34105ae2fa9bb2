// RUN: ds-opt %s --ds-merge-duplicates | FileCheck %s

// Each stream drops places of its own; the same stream drops the same ones.
// CHECK-LABEL: func.func @streams
// CHECK-COUNT-2: ds.dropout
// CHECK-NOT: ds.dropout
func.func @streams(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = ds.dropout %a ratio 0.5 stream 1 {ds.values = ["a"]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.dropout %a ratio 0.5 stream 2 {ds.values = ["b"]} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.dropout %a ratio 0.5 stream 1 {ds.values = ["c"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
