// The narrowest panel is one: a column after the other.
// RUN: ds-opt %s --ds-optimization-pipeline=panel=1 | FileCheck %s
// RUN: ds-opt %s --ds-optimization-pipeline=panel=0 | FileCheck %s --check-prefix=NONE
// CHECK: ds.linear %{{.*}} {columns = 3 : i64, panel = 1 : i64}
// NONE: ds.linear
// NONE-NOT: panel
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = ds.weight @w : tensor<4x3xf32>
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x3xf32>
  ds.yield %0 : tensor<4x3xf32>
}
