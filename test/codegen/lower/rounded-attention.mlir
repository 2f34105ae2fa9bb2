// RUN: ds-opt %s --ds-schedule-kernels="machine=512,bfloat_dot=0.5,bfloat_tiles=14" --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: ds-opt %s --ds-schedule-kernels="machine=512,bfloat_dot=2" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefix=DOT
// RUN: ds-opt %s --convert-ds-to-linalg="lanes=1" | FileCheck %s --check-prefix=PLAIN

// Keys are rounded and transposed as pairs in 32 bits, values zipped in pairs of tokens; queries and weights are packed
// in squares. 64 features are two panels of two squares.
// CHECK-LABEL: func.func @doc
// CHECK-SAME: ds.arithmetic = "amx_bf16"
// CHECK: vector.shuffle {{.*}} : vector<16xi16>, vector<16xi16>
// CHECK: vector.bitcast %{{.*}} : vector<32xi16> to vector<16xi32>
// CHECK: vector.interleave %{{.*}} : vector<16xi16>
// CHECK: vector.load %{{.*}} : memref<?xf32>, vector<32xf32>
// CHECK-COUNT-6: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: math.exp
// CHECK: vector.load %{{.*}} : memref<?xf32>, vector<32xf32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK-NEXT: arith.constant
// DOT-LABEL: func.func @doc
// DOT-SAME: ds.arithmetic = "bf16"
// DOT: llvm.x86.avx512bf16.dpbf16ps.512
// DOT-NOT: tile
// PLAIN-LABEL: func.func @doc
// PLAIN-NOT: vector
// PLAIN: arith.truncf
// PLAIN: return
ds.kernel @doc sizes 1 arguments [["d0", 12, 48, 64], ["d0", 12, 48, 64]] {
^bb0(%q: tensor<?x12x48x64xf32>, %z: tensor<?x12x48x64xf32>):
  %0 = ds.attention %q, %q, %q scale 0.125 rounds bf16 {result_sizes = [["d0", 12, 48, 64]]} : (tensor<?x12x48x64xf32>, tensor<?x12x48x64xf32>, tensor<?x12x48x64xf32>) -> tensor<?x12x48x64xf32>
  ds.yield %0 : tensor<?x12x48x64xf32>
}
