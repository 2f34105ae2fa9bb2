// RUN: ds-opt %s --ds-schedule-kernels="machine=512,bfloat_dot rows=2 columns=16" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: ds-opt %s --ds-schedule-kernels="machine=256 rows=2 columns=8" --convert-ds-to-linalg="lanes=8" | FileCheck %s --check-prefixes=CHECK,HALVES

// Two numbers of a row are one to broadcast. Without the instruction, halves are widened: their bits are those of f32.
// What is left of K is one number beside 0.
// CHECK-LABEL: func.func @linear
// DOT-SAME: ds.arithmetic = "bf16"
// DOT: %[[PANEL:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// DOT: %[[ROW:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// DOT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}, %[[ROW]], %[[PANEL]]) :
// DOT: arith.extui %{{.*}} : i16 to i32
// HALVES: arith.shli %{{.*}} : vector<8xi32>
// HALVES: arith.andi %{{.*}} : vector<8xi32>
// HALVES-NOT: llvm.call_intrinsic
// HALVES-COUNT-2: vector.fma %{{.*}} : vector<8xf32>
// CHECK: return
ds.kernel @linear sizes 1 arguments [["d0", 5], [1, 3, 32], [9]] {
^bb0(%x: tensor<?x5xbf16>, %w: tensor<1x3x32xbf16>, %b: tensor<9xf32>):
  %0 = ds.linear %x, %w, %b {columns = 9 : i64, panel = 16 : i64, interleave = 2 : i64, wide, result_sizes = [["d0", 9]]} : (tensor<?x5xbf16>, tensor<1x3x32xbf16>, tensor<9xf32>) -> tensor<?x9xf32>
  ds.yield %0 : tensor<?x9xf32>
}

// What is no weight is packed by the thread that multiplies, in pairs: columns that lie apart and columns side by side.
// CHECK-LABEL: func.func @computed
// DOT-SAME: ds.arithmetic = "bf16"
// DOT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// HALVES-NOT: llvm.call_intrinsic
// HALVES: vector.fma %{{.*}} : vector<8xf32>
// CHECK: return
ds.kernel @computed sizes 1 arguments [["d0", 5], [5, 16]] {
^bb0(%x: tensor<?x5xbf16>, %y: tensor<5x16xbf16>):
  %0 = ds.matmul %x, %y transpose [false, false] {wide, result_sizes = [["d0", 16]]} : (tensor<?x5xbf16>, tensor<5x16xbf16>) -> tensor<?x16xf32>
  ds.yield %0 : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @by_columns
// DOT-SAME: ds.arithmetic = "bf16"
// DOT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: return
ds.kernel @by_columns sizes 1 arguments [["d0", 5], [16, 5]] {
^bb0(%x: tensor<?x5xbf16>, %y: tensor<16x5xbf16>):
  %0 = ds.matmul %x, %y transpose [false, true] {wide, result_sizes = [["d0", 16]]} : (tensor<?x5xbf16>, tensor<16x5xbf16>) -> tensor<?x16xf32>
  ds.yield %0 : tensor<?x16xf32>
}

// Rows of pixels are gathered as they are, and packed two side by side.
// CHECK-LABEL: func.func @conv
// DOT-SAME: ds.arithmetic = "bf16"
// DOT: vector.interleave %{{.*}}, %{{.*}} : vector<16xi16> -> vector<32xi16>
// DOT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// HALVES-NOT: llvm.call_intrinsic
// HALVES: vector.fma %{{.*}} : vector<8xf32>
// CHECK: return
ds.kernel @conv sizes 0 arguments [[1, 4, 5], [3, 4, 2], [3]] {
^bb0(%x: tensor<1x4x5xbf16>, %w: tensor<3x4x2xbf16>, %b: tensor<3xf32>):
  %0 = ds.conv %x, %w, %b strides [1] pads [0, 0] dilations [1] groups 1 {wide, result_sizes = [[1, 3, 4]]} : (tensor<1x4x5xbf16>, tensor<3x4x2xbf16>, tensor<3xf32>) -> tensor<1x3x4xf32>
  ds.yield %0 : tensor<1x3x4xf32>
}
