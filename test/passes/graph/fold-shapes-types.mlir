// What is known of a value whose type says less: the simple op has the better type where its readers follow.
// RUN: ds-opt %s --ds-fold-shapes | FileCheck %s

// CHECK-LABEL: func.func @better_type
// CHECK-NEXT: %[[S:.*]] = ds.shape ["n", 12] : tensor<2xi64>
// CHECK-NEXT: return %[[S]] : tensor<2xi64>
func.func @better_type(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> tensor<?xi64> {
  %a = ds.shape ["n"] : tensor<1xi64>
  %b = ds.constant dense<12> : tensor<1xi64>
  %0 = ds.concat 0 %a, %b : (tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}
