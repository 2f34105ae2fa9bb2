// One and two rows of floats meet panels without prefetches: loads of later steps reach far enough ahead. Blocks of three
// to six rows, and codes that are converted, do not leave them room.
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s

// One and two rows by two panels at a time, then blocks of six rows down to one.
// CHECK-LABEL: func.func @floats
// CHECK-NOT: memref.prefetch
// CHECK: :4 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :8 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :12 = scf.for {{.*}} step %c4
// CHECK-COUNT-4: memref.prefetch
// CHECK: :4 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: :2 = scf.for {{.*}} step %c4
// CHECK-NOT: memref.prefetch
// CHECK: return
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
