// The machine decides how wide a panel is; without one nothing is packed.
// RUN: ds-opt %s --ds-optimization-pipeline=machine=128 2>/dev/null | FileCheck %s --check-prefix=NARROW
// RUN: ds-opt %s --ds-optimization-pipeline=machine=512 2>/dev/null | FileCheck %s --check-prefix=WIDE
// RUN: ds-opt %s --ds-optimization-pipeline=machine=none 2>/dev/null | FileCheck %s --check-prefix=NONE
// NARROW: ds.linear %{{.*}} {columns = 3 : i64, ds.schedule = #ds.schedule<multiply_add, rows = {{[0-9]+}}, columns = 4, {{.*}}>, panel = 4 : i64}
// WIDE: ds.linear %{{.*}} {columns = 3 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 16, columns = 16, {{.*}}>, panel = 16 : i64}
// NONE: ds.linear
// NONE-NOT: {{panel|schedule}}
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = ds.weight @w : tensor<4x3xf32>
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x3xf32>
  ds.yield %0 : tensor<4x3xf32>
}
