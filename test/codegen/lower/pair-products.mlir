// RUN: ds-opt %s --ds-schedule-kernels="machine=128 rows=6 columns=8" --convert-ds-to-linalg="lanes=4" | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: ds-opt %s --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s --check-prefixes=CHECK,EIGHT
// RUN: ds-opt %s --ds-schedule-kernels="machine=512 rows=12 columns=32" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefixes=CHECK,SIXTEEN
// RUN: ds-opt %s --ds-schedule-kernels="machine=1024 rows=12 columns=32" --convert-ds-to-linalg="lanes=32" | FileCheck %s --check-prefix=NONE

// Integers of 16 bits are multiplied in pairs, by the instruction of each width. A last single one is loaded alone: behind
// it there may be no memory.
// CHECK-LABEL: func.func @pairs
// CHECK: vector.load {{.*}} vector<2xi16>
// FOUR: llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"({{.*}}) : (vector<8xi16>, vector<8xi16>) -> vector<4xi32>
// EIGHT: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"({{.*}}) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// SIXTEEN: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"({{.*}}) : (vector<32xi16>, vector<32xi16>) -> vector<16xi32>
// CHECK: scf.if
// CHECK: %[[LAST:.*]] = memref.load {{.*}} : memref<?xi16>
// CHECK: arith.extui %[[LAST]] : i16 to i32
// NONE-LABEL: func.func @pairs
// NONE-NOT: llvm.call_intrinsic
ds.kernel @pairs sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xi16>, %w: tensor<5x20xi8>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xi16>, tensor<5x20xi8>) -> tensor<?x20xi32>
  ds.yield %0 : tensor<?x20xi32>
}
