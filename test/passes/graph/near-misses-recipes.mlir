// What is stored beside the program and what is not: sizes and starts of run time keep an op in the program, though its
// types and operands are constant.
// RUN: ds-opt %s --ds-fold-constants | FileCheck %s
// RUN: ds-opt %s --ds-fold-constants --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @rows_of_run_time
// CHECK: %[[W:.*]] = ds.weight @w :
// CHECK: ds.slice %[[W]] starts ["min(n, 6)", 0]
func.func @rows_of_run_time(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<2x4xf32> {
  %w = ds.weight @w : tensor<8x4xf32>
  %0 = ds.slice %w starts ["min(n, 6)", 0] sizes [2, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @rows_of_compile_time
// CHECK-NOT: ds.slice
func.func @rows_of_compile_time(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<2x4xf32> {
  %w = ds.weight @w : tensor<8x4xf32>
  %0 = ds.slice %w starts [3, 0] sizes [2, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
ds.recipe @w {
  %0 = ds.source "w.bin" [0, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
