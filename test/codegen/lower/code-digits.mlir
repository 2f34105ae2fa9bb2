// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot" --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256,byte_dot" --convert-ds-to-linalg="lanes=8" | FileCheck %s --check-prefix=NARROW
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot" --convert-ds-to-linalg="lanes=16 far-loads" | FileCheck %s --check-prefix=FAR

// Rows become digits once, by each thread: the exponent of the greatest magnitude gives the unit, each digit leaves what
// the next one takes, and all columns are to be 128 less, since signed codes become unsigned bytes. However many rows
// there are, panels are read as they are stored. One unit for all of K: three sums of 2^15 products become floats one
// by one.
// CHECK-LABEL: func.func @column
// CHECK-SAME: ds.arithmetic = "int8_digits"
// CHECK: arith.maxsi %{{.*}} : vector<16xi32>
// CHECK: %[[MOST:.*]] = vector.reduction <maxsi>
// CHECK: %[[FINITE:.*]] = arith.cmpi slt, %[[MOST]], %c2139095040_i32
// CHECK: arith.select %[[FINITE]], %{{.*}} : f32
// CHECK: arith.select %[[FINITE]], %{{.*}} : vector<16xf32>
// CHECK: math.roundeven
// CHECK: arith.fptosi %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-3: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: %[[LESS:.*]] = arith.constant -128 : i32
// CHECK-NEXT: arith.muli %{{.*}}, %[[LESS]] : i32
// CHECK-NOT: arith.cmpi ugt
// CHECK: %[[CODES:.*]] = vector.load {{.*}} vector<64xi8>
// CHECK: %[[SIGNS:.*]] = arith.constant dense<-128> : vector<64xi8>
// CHECK: arith.xori %[[CODES]], %[[SIGNS]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>)
// CHECK-NOT: arith.shli %{{.*}} : vector<16xi32>
// CHECK-COUNT-2: vector.fma
// CHECK: arith.mulf
// One row only loads lines and multiplies them: processors that look far need no prefetches for it, others do.
// CHECK: :6 = scf.for {{.*}} step %c4
// CHECK: memref.prefetch
// CHECK: return
// FAR-LABEL: func.func @column
// FAR: :12 = scf.for {{.*}} step %c4
// FAR: memref.prefetch
// FAR: :6 = scf.for {{.*}} step %c4
// FAR-NOT: memref.prefetch
// FAR: return
// NARROW-LABEL: func.func @column
// NARROW: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"
ds.kernel @column sizes 1 arguments [["d0", 32], [2, 8, 128], [2, 1, 32]] {
^bb0(%x: tensor<?x32xf32>, %w: tensor<2x8x128xi8>, %s: tensor<2x1x32xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 50 : i64, panel = 32 : i64, interleave = 4 : i64, result_sizes = [["d0", 50]]} : (tensor<?x32xf32>, tensor<2x8x128xi8>, tensor<2x1x32xf32>) -> tensor<?x50xf32>
  ds.yield %0 : tensor<?x50xf32>
}

// -----

// Codes of 4 bits in groups: eight steps of K lie in four bytes of a column, those at even places in low halves, so that
// rows are in that order, too. Zero points are taken off with the bias, column by column. Registers hold the codes of a
// group, here one of 8 and so one step of each vector, and all rows meet them. Three digits of so short a group become
// one integer, and sums of columns lie in memory, less by a power of two near the column's first scale.
// CHECK-LABEL: func.func @groups
// CHECK: vector.shuffle %{{.*}} [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
// CHECK: %[[LESS:.*]] = arith.constant -1 : i32
// CHECK-NEXT: arith.muli %{{.*}}, %[[LESS]] : i32
// CHECK: dense<2139095040> : vector<16xi32>
// CHECK: arith.maxsi
// CHECK: %[[POWER:.*]] = arith.minsi
// CHECK: dense<2130706432> : vector<16xi32>
// CHECK: %[[RECIPROCAL:.*]] = arith.subi %{{.*}}, %[[POWER]]
// CHECK: %[[INVERSE:.*]] = vector.bitcast %[[RECIPROCAL]] : vector<16xi32> to vector<16xf32>
// CHECK: arith.extsi %{{.*}} : vector<16xi8> to vector<16xi32>
// CHECK: %[[BIAS:.*]] = arith.constant dense<8> : vector<16xi32>
// CHECK: %[[STORED:.*]] = vector.load {{.*}} vector<16xf32>
// CHECK-NEXT: %[[SCALE:.*]] = arith.mulf %[[STORED]], %[[INVERSE]]
// CHECK: arith.addi %[[BIAS]]
// CHECK: arith.xori
// CHECK: arith.andi
// CHECK: arith.shrui
// CHECK: scf.for
// CHECK: arith.muli %{{.*}} : vector<16xi32>
// CHECK-COUNT-12: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: %[[HIGH:.*]] = arith.shli %{{.*}} : vector<16xi32>
// CHECK: %[[TWO:.*]] = arith.addi %[[HIGH]]
// CHECK: %[[ABOVE:.*]] = arith.shli %[[TWO]]
// CHECK: %[[ALL:.*]] = arith.addi %[[ABOVE]]
// CHECK: %[[SUM:.*]] = arith.sitofp %[[ALL]]
// CHECK: vector.fma %[[SUM]], %[[SCALE]]
// CHECK: vector.store {{.*}} vector<16xf32>
ds.kernel @groups sizes 0 arguments [[3, 33], [7, 5, 128], [7, 5, 32], [7, 5, 32]] {
^bb0(%x: tensor<3x33xf32>, %w: tensor<7x5x128xi8>, %s: tensor<7x5x32xf32>, %z: tensor<7x5x32xi8>):
  %0 = ds.linear %x, %w scales %s zero_points %z {columns = 200 : i64, panel = 32 : i64, interleave = 8 : i64, group = 8 : i64, result_sizes = [[3, 200]]} : (tensor<3x33xf32>, tensor<7x5x128xi8>, tensor<7x5x32xf32>, tensor<7x5x32xi8>) -> tensor<3x200xf32>
  ds.yield %0 : tensor<3x200xf32>
}

// -----

// A single row keeps its sums in registers, and takes codes apart as it meets them. Groups of 128 are segments of 64,
// which share their scales; so many products of bytes leave room for two digits in one integer. The last segment has
// three steps. Where loads look far, a loop meets four steps at a time of each vector, at short distances.
// CHECK-LABEL: func.func @one_row
// CHECK: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c2{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK: arith.div{{[a-z]*}} %{{.*}}, %c2{{[_0-9]*}} : index
// CHECK-NOT: scf.for
// CHECK-COUNT-96: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: dense<6.553600e+04>
// CHECK: scf.yield
// CHECK-COUNT-18: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: } else {
// CHECK: return
// FAR-LABEL: func.func @one_row
// FAR: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c2{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// FAR-NOT: memref.prefetch {{.*}}xi8
// FAR: %[[FIRST:.*]] = arith.muli %{{.*}}, %c16{{[_0-9]*}} : index
// FAR: %[[END:.*]] = arith.addi %[[FIRST]], %c16{{[_0-9]*}} : index
// FAR: :3 = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c4{{[_0-9]*}} iter_args
// FAR-COUNT-12: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// FAR: scf.yield
// FAR: :3 = scf.for
// FAR-COUNT-12: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// FAR: scf.yield
// FAR-NOT: scf.for
// FAR-COUNT-18: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// FAR: return
ds.kernel @one_row sizes 0 arguments [[1, 140], [2, 35, 128], [2, 2, 32]] {
^bb0(%x: tensor<1x140xf32>, %w: tensor<2x35x128xi8>, %s: tensor<2x2x32xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 64 : i64, panel = 32 : i64, interleave = 4 : i64, group = 128 : i64, result_sizes = [[1, 64]]} : (tensor<1x140xf32>, tensor<2x35x128xi8>, tensor<2x2x32xf32>) -> tensor<1x64xf32>
  ds.yield %0 : tensor<1x64xf32>
}
