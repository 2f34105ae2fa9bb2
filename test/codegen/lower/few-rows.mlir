// A few rows of floats meet panels without prefetches: loads of later steps reach far enough ahead. Taller blocks, and
// codes that are converted, do not leave them room. Where there are several blocks, each prefetches a share of the next
// panel, whatever its height.
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8 far-loads" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512 rows=8 columns=16" --convert-ds-to-linalg="lanes=16 far-loads" | FileCheck %s --check-prefix=WIDE
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512 rows=8 columns=16" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefix=NEAR

// One and two rows by two panels at a time, then blocks of six rows down to one. Two rows or fewer are alone.
// CHECK-LABEL: func.func @floats
// CHECK-NOT: memref.prefetch
// CHECK: :4 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :8 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :12 = scf.for {{.*}} step %c4
// CHECK: memref.prefetch
// CHECK: :8 = scf.for {{.*}} step %c4
// CHECK: memref.prefetch
// CHECK: %[[SHARE:.*]] = arith.maxui
// CHECK: %[[FEW:.*]] = arith.select {{.*}}, %c0{{.*}}, %[[SHARE]]
// CHECK: :6 = scf.for {{.*}} step %c4
// CHECK: scf.for {{.*}} to %[[FEW]] step
// CHECK-NEXT: arith
// CHECK: memref.prefetch
// CHECK: :4 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :2 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: return

// A line of a panel fills a vector of 512 bits: six rows are few. Three or fewer are alone.
// WIDE-LABEL: func.func @floats
// WIDE: :8 = scf.for {{.*}} step %c4
// WIDE: memref.prefetch
// WIDE: :7 = scf.for {{.*}} step %c4
// WIDE: memref.prefetch
// WIDE: vector.store
// WIDE: %[[SHARE:.*]] = arith.maxui {{.*}}, %c1{{.*}}
// WIDE-NEXT: arith
// WIDE: %[[FEW:.*]] = arith.select {{.*}}, %c0{{.*}}, %[[SHARE]]
// WIDE: :6 = scf.for {{.*}} step %c4
// WIDE: scf.for {{.*}} to %[[FEW]] step
// WIDE: memref.prefetch
// WIDE: :4 = scf.for {{.*}} step %c4
// WIDE: memref.prefetch
// WIDE: :3 = scf.for {{.*}} step %c4
// WIDE-NOT: memref.prefetch
// WIDE: return

// Unless the processor is known to look far, only two rows are few.
// NEAR-LABEL: func.func @floats
// NEAR: :3 = scf.for {{.*}} step %c4
// NEAR: memref.prefetch
// NEAR: :2 = scf.for {{.*}} step %c4
// NEAR-NOT: memref.prefetch
// NEAR: return
ds.kernel @floats sizes 1 arguments [["d0", 64], [4, 64, 16]] {
^bb0(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>):
  %0 = ds.linear %x, %w {columns = 64 : i64, panel = 16 : i64, result_sizes = [["d0", 64]]} : (tensor<?x64xf32>, tensor<4x64x16xf32>) -> tensor<?x64xf32>
  ds.yield %0 : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: func.func @codes
// CHECK: :4 = scf.for {{.*}} step %c4
// CHECK-COUNT-2: memref.prefetch
// CHECK: :2 = scf.for {{.*}} step %c4
// CHECK-NOT: vector.fma
// CHECK: memref.prefetch
// CHECK: return
ds.kernel @codes sizes 1 arguments [["d0", 64], [4, 64, 16], [4, 1, 16]] {
^bb0(%x: tensor<?x64xf32>, %w: tensor<4x64x16xi8>, %s: tensor<4x1x16xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 64 : i64, panel = 16 : i64, result_sizes = [["d0", 64]]} : (tensor<?x64xf32>, tensor<4x64x16xi8>, tensor<4x1x16xf32>) -> tensor<?x64xf32>
  ds.yield %0 : tensor<?x64xf32>
}
