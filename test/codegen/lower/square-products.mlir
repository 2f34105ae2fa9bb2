// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot,bfloat_dot,byte_tiles,bfloat_tiles columns=48" --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot,bfloat_dot rows=8 columns=48" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefix=DOT

// Rows are packed in lines of 64 bytes, filled with 0; a last step of K has a copy of the panel's lines of its own. Two
// rows of squares go there and back along the panel; pieces of the rows that are left are configured by their number.
// Sums are taken from memory, and the epilogue is applied to them there.
// CHECK-LABEL: func.func @bfloat
// CHECK-SAME: ds.arithmetic = "amx_bf16"
// CHECK-DAG: %[[SUMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<24576xf32>
// CHECK-DAG: %[[TAIL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1536xi16>
// CHECK: vector.load %{{.*}} : memref<?xi16>, vector<32xi16>
// CHECK: vector.maskedload %{{.*}} : memref<?xi16>, vector<32xi1>, vector<32xi16> into vector<32xi16>
// CHECK: vector.store %{{.*}}, %[[TAIL]]
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: scf.if
// CHECK-COUNT-6: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: else
// CHECK-COUNT-6: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: scf.for
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-NEXT: {{.*}}llvm.mlir.constant(5 : i8)
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-12: memref.prefetch %{{.*}}, read, locality<2>, data
// CHECK-COUNT-6: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: vector.load %[[SUMS]]
// CHECK: arith.maximumf
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK: return
// DOT-LABEL: func.func @bfloat
// DOT-SAME: ds.arithmetic = "bf16"
// DOT-NOT: tile
// DOT: return
ds.kernel @bfloat sizes 1 arguments [["d0", 70], [2, 35, 96], ["d0", 96]] {
^bb0(%x: tensor<?x70xbf16>, %w: tensor<2x35x96xbf16>, %z: tensor<?x96xf32>):
  %0 = ds.linear %x, %w {columns = 96 : i64, panel = 48 : i64, interleave = 2 : i64, wide, result_sizes = [["d0", 96]]} : (tensor<?x70xbf16>, tensor<2x35x96xbf16>) -> tensor<?x96xf32>
  %1 = ds.binary max %0, %z {result_sizes = [["d0", 96]]} : (tensor<?x96xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>
  ds.yield %1 : tensor<?x96xf32>
}

// -----

// Normalized rows are rounded, then packed like those that are read, from where the norm left them.
// CHECK-LABEL: func.func @normalized
// CHECK-DAG: %[[TAIL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1536xi16>
// CHECK: math.sqrt
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: vector.load %{{.*}} : memref<?xi16>, vector<32xi16>
// CHECK: vector.store %{{.*}} : memref<?xi16>, vector<32xi16>
// CHECK: vector.maskedload %{{.*}} : memref<?xi16>, vector<32xi1>, vector<32xi16> into vector<32xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK: return
ds.kernel @normalized sizes 1 arguments [["d0", 70], [70], [2, 35, 96]] {
^bb0(%x: tensor<?x70xf32>, %scale: tensor<70xf32>, %w: tensor<2x35x96xbf16>):
  %0 = ds.rms_norm %x, %scale axis 1 epsilon 1.0e-5 {result_sizes = [["d0", 70]]} : (tensor<?x70xf32>, tensor<70xf32>) -> tensor<?x70xf32>
  %1 = ds.cast %0 to bf16 {result_sizes = [["d0", 70]]} : (tensor<?x70xf32>) -> tensor<?x70xbf16>
  %2 = ds.linear %1, %w {columns = 96 : i64, panel = 48 : i64, interleave = 2 : i64, wide, result_sizes = [["d0", 96]]} : (tensor<?x70xbf16>, tensor<2x35x96xbf16>) -> tensor<?x96xf32>
  ds.yield %2 : tensor<?x96xf32>
}

// -----

// K is whole squares: nothing is masked or copied. The unsigned bytes are those of the rows. A single row is multiplied
// by vectors: sums of bytes are the same.
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: ds.arithmetic = "amx_int8"
// CHECK-NOT: vector.maskedload
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK-NOT: vector.maskedload
// CHECK: return
ds.kernel @bytes sizes 1 arguments [["d0", 128], [1, 32, 192]] {
^bb0(%x: tensor<?x128xui8>, %w: tensor<1x32x192xi8>):
  %0 = ds.linear %x, %w {columns = 48 : i64, panel = 48 : i64, interleave = 4 : i64, result_sizes = [["d0", 48]]} : (tensor<?x128xui8>, tensor<1x32x192xi8>) -> tensor<?x48xi32>
  ds.yield %0 : tensor<?x48xi32>
}

// -----

// CHECK-LABEL: func.func @unsigned_weight
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK: return
ds.kernel @unsigned_weight sizes 1 arguments [["d0", 128], [1, 32, 192]] {
^bb0(%x: tensor<?x128xi8>, %w: tensor<1x32x192xui8>):
  %0 = ds.linear %x, %w {columns = 48 : i64, panel = 48 : i64, interleave = 4 : i64, result_sizes = [["d0", 48]]} : (tensor<?x128xi8>, tensor<1x32x192xui8>) -> tensor<?x48xi32>
  ds.yield %0 : tensor<?x48xi32>
}

// -----

// Two operands of run time are multiplied by vectors.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: ds.arithmetic = "int8"
// CHECK-NOT: tile
// CHECK: return
ds.kernel @matmul sizes 0 arguments [[8, 64], [64, 48]] {
^bb0(%x: tensor<8x64xui8>, %y: tensor<64x48xi8>):
  %0 = ds.matmul %x, %y transpose [false, false] {result_sizes = [[8, 48]]} : (tensor<8x64xui8>, tensor<64x48xi8>) -> tensor<8x48xi32>
  ds.yield %0 : tensor<8x48xi32>
}
