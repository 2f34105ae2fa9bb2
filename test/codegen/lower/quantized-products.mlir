// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512 rows=8 columns=16" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefix=WIDE

// Codes become floats as they are loaded; the scale of a column multiplies the sum. With more than 16 rows, a panel is
// converted once, into scratch of K times the panel's columns. One row meets two panels of two vectors at a time, the
// second one 32 * 16 codes behind the first.
// CHECK-LABEL: func.func @column
// CHECK-SAME: ds.scratch = 2048 : i64
// CHECK: %[[MANY:.*]] = arith.cmpi ugt, %{{.*}}, %c16
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: scf.if %[[ONE]] -> (index)
// CHECK-COUNT-2: memref.prefetch
// CHECK-COUNT-4: arith.sitofp
// CHECK-COUNT-4: vector.fma
// CHECK: scf.if %[[MANY]] {
// CHECK: %[[BYTES:.*]] = vector.load {{.*}} : memref<?xi8>, vector<8xi8>
// CHECK: %[[WORDS:.*]] = arith.extsi %[[BYTES]] : vector<8xi8> to vector<8xi32>
// CHECK: %[[NUMBERS:.*]] = arith.sitofp %[[WORDS]] : vector<8xi32> to vector<8xf32>
// CHECK: vector.store %[[NUMBERS]]
// CHECK: vector.fma
// CHECK: } else {
// CHECK: memref.prefetch
// CHECK: arith.sitofp
// CHECK-NOT: arith.mulf
// CHECK: vector.fma
// CHECK: arith.mulf
ds.kernel @column sizes 1 arguments [["d0", 32], [2, 32, 16], [2, 1, 16]] {
^bb0(%x: tensor<?x32xf32>, %w: tensor<2x32x16xi8>, %s: tensor<2x1x16xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 20 : i64, panel = 16 : i64, result_sizes = [["d0", 20]]} : (tensor<?x32xf32>, tensor<2x32x16xi8>, tensor<2x1x16xf32>) -> tensor<?x20xf32>
  ds.yield %0 : tensor<?x20xf32>
}

// -----

// Few rows need no scratch. Groups have zero points, and scales that multiply the sums of a group; two steps of K lie in
// a byte, and where a vector holds sixteen floats, the low one is looked up. All rows meet one half before the other
// half becomes floats, so that registers hold one at a time.
// CHECK-LABEL: func.func @groups
// CHECK-NOT: ds.scratch
// CHECK-NOT: arith.cmpi ugt
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK: scf.for %{{.*}} iter_args(%[[SUM:[^ ]*]] = %[[ZERO]],
// CHECK: arith.sitofp %{{.*}} : vector<8xi8> to vector<8xf32>
// CHECK: %[[CODES:[^:]*]]:6 = scf.for %{{.*}} iter_args({{.*}} = %[[ZERO]],
// CHECK: %[[WORDS:.*]] = arith.extsi %{{.*}} : vector<8xi8> to vector<8xi32>
// CHECK: arith.shli %[[WORDS]]
// CHECK-NOT: arith.shrsi %[[WORDS]]
// CHECK: arith.subf
// CHECK-NOT: arith.mulf
// CHECK-COUNT-6: vector.fma
// CHECK: arith.shrsi %[[WORDS]]
// CHECK: arith.subf
// CHECK-COUNT-6: vector.fma
// CHECK: %[[SCALE:.*]] = vector.load {{.*}} vector<8xf32>
// CHECK: vector.fma %{{.*}}, %[[SCALE]], %[[SUM]]
// WIDE-LABEL: func.func @groups
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
ds.kernel @groups sizes 0 arguments [[3, 33], [2, 17, 16], [2, 9, 16], [2, 9, 16]] {
^bb0(%x: tensor<3x33xf32>, %w: tensor<2x17x16xi8>, %s: tensor<2x9x16xf32>, %z: tensor<2x9x16xi8>):
  %0 = ds.linear %x, %w scales %s zero_points %z {columns = 20 : i64, panel = 16 : i64, interleave = 2 : i64, group = 4 : i64, result_sizes = [[3, 20]]} : (tensor<3x33xf32>, tensor<2x17x16xi8>, tensor<2x9x16xf32>, tensor<2x9x16xi8>) -> tensor<3x20xf32>
  ds.yield %0 : tensor<3x20xf32>
}

// -----

// What is not packed is multiplied one by one.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: vector.
// CHECK: arith.sitofp %{{.*}} : i8 to f32
// CHECK: arith.mulf
// CHECK-NOT: vector.
// CHECK: return
ds.kernel @plain sizes 1 arguments [["d0", 4], [4, 8], [2, 8]] {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x8xi4>, %s: tensor<2x8xf32>):
  %0 = ds.linear %x, %w scales %s {group = 2 : i64, result_sizes = [["d0", 8]]} : (tensor<?x4xf32>, tensor<4x8xi4>, tensor<2x8xf32>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}
