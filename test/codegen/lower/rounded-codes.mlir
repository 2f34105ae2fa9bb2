// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,bfloat_dot rows=2 columns=16" --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,bfloat_dot=0.5 rows=2 columns=16" --convert-ds-to-linalg="lanes=16" 2>&1 | FileCheck %s --check-prefix=OTHER

// Pairs of bytes along K become pairs of bf16 by f32. With more than 16 rows a panel of them becomes bf16 once, in
// scratch of K times the panel's columns, and of one step more.
// OTHER: error: 'ds.linear' op packed weights need a schedule of their layout
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: ds.arithmetic = "bf16"
// CHECK-SAME: ds.scratch = 1056 : i64
// CHECK: %[[BYTES:.*]] = vector.load %{{.*}} : memref<?xi8>, vector<32xi8>
// CHECK-NEXT: %[[FIRST:.*]] = vector.extract_strided_slice %[[BYTES]] {offsets = [0]
// CHECK-NEXT: arith.extsi %[[FIRST]] : vector<16xi8> to vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<32xbf16> to vector<32xi16>
// CHECK-NEXT: vector.store %[[BITS]]
// CHECK: llvm.x86.avx512bf16.dpbf16ps.512
// CHECK: } else {
// CHECK: llvm.x86.avx512bf16.cvtne2ps2bf16.512
// CHECK: llvm.x86.avx512bf16.dpbf16ps.512
ds.kernel @bytes sizes 1 arguments [["d0", 32], [2, 16, 32], [2, 1, 16]] {
^bb0(%x: tensor<?x32xbf16>, %w: tensor<2x16x32xi8>, %s: tensor<2x1x16xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 20 : i64, panel = 16 : i64, interleave = 2 : i64, wide, result_sizes = [["d0", 20]]} : (tensor<?x32xbf16>, tensor<2x16x32xi8>, tensor<2x1x16xf32>) -> tensor<?x20xf32>
  ds.yield %0 : tensor<?x20xf32>
}

// -----

// Halves of a byte are places in a table of bf16: 0 to 7, then -8 to -1.
// CHECK-LABEL: func.func @halves
// CHECK: %[[TABLE:.*]] = arith.constant dense<[0, 16256, 16384, 16448, 16512, 16544, 16576, 16608, -16128, -16160, -16192, -16224, -16256, -16320, -16384, -16512, 0,
// CHECK: arith.extui %{{.*}} : vector<16xi8> to vector<16xi32>
// CHECK: arith.shli
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.hi.512"(%[[TABLE]],
// CHECK: llvm.x86.avx512bf16.dpbf16ps.512
ds.kernel @halves sizes 0 arguments [[3, 32], [2, 16, 16], [2, 4, 16]] {
^bb0(%x: tensor<3x32xbf16>, %w: tensor<2x16x16xi8>, %s: tensor<2x4x16xf32>):
  %0 = ds.linear %x, %w scales %s {columns = 20 : i64, panel = 16 : i64, interleave = 2 : i64, group = 8 : i64, wide, result_sizes = [[3, 20]]} : (tensor<3x32xbf16>, tensor<2x16x16xi8>, tensor<2x4x16xf32>) -> tensor<3x20xf32>
  ds.yield %0 : tensor<3x20xf32>
}
