// The option that leaves out paths for few rows: one height of blocks, whole tiles, and codes become floats in scratch.
// RUN: ds-opt %s --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --convert-ds-to-linalg="lanes=8 many-rows=true" | FileCheck %s --check-prefix=MANY

// One row and two rows meet four panels at a time, so that there are chains enough: 5 steps, four unrolled and one by
// itself, times 4 and 8 multiply-adds. Then a panel at a time: tiles of 3 rows, of 2 and of 1, 5 times 6. Whole tiles
// alone are 5 times 3; the last row stands for those that are missing.
// CHECK-LABEL: func.func @rows
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: scf.if %[[ONE]] -> (index)
// CHECK-COUNT-20: vector.fma
// CHECK: %[[TWO:.*]] = arith.cmpi eq, %{{.*}}, %c2
// CHECK: scf.if %[[TWO]] -> (index)
// CHECK-COUNT-40: vector.fma
// CHECK-COUNT-30: vector.fma
// CHECK-NOT: vector.fma
// MANY-LABEL: func.func @rows
// MANY: %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// MANY: arith.minsi %{{.*}}, %[[LAST]]
// MANY-COUNT-15: vector.fma
// MANY-NOT: vector.fma
ds.kernel @rows sizes 1 arguments [["d0", "4"], ["1", "4", "8"]] {
^bb0(%x: tensor<?x4xf32>, %w: tensor<1x4x8xf32>):
  %0 = ds.linear %x, %w {panel = 8 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 3, columns = 8, sweep = 128>, result_sizes = [["d0", "8"]]} : (tensor<?x4xf32>, tensor<1x4x8xf32>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}
