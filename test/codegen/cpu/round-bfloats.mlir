// RUN: ds-opt %s --ds-round-bfloats=instruction=true | FileCheck %s
// RUN: ds-opt %s --ds-round-bfloats | FileCheck %s --check-prefix=PLAIN --implicit-check-not=intrinsic

// The instruction takes subnormal numbers as 0: a vector that has one is rounded in integers.
// CHECK-LABEL: func.func @doc
// CHECK-SAME: %[[X:.*]]: vector<16xf32>
// CHECK: %[[DENORMAL:.*]] = arith.constant 32 : i32
// CHECK: %[[LANES:.*]] = llvm.call_intrinsic "llvm.x86.avx512.fpclass.ps.512"(%[[X]], %[[DENORMAL]])
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[LANES]] : vector<16xi1> into i1
// CHECK: scf.if %[[ANY]] -> (vector<16xbf16>)
// CHECK: arith.shrui
// CHECK: arith.cmpf uno, %[[X]], %[[X]]
// CHECK: } else {
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%[[X]])
// PLAIN-LABEL: func.func @doc
// PLAIN-NOT: arith.truncf
// PLAIN: arith.trunci {{.*}} : vector<16xi32> to vector<16xi16>
func.func @doc(%x: vector<16xf32>) -> vector<16xbf16> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %0 : vector<16xbf16>
}

// CHECK-LABEL: func.func @half
// CHECK: fpclass.ps.256
// CHECK: cvtneps2bf16.256
func.func @half(%x: vector<8xf32>) -> vector<8xbf16> {
  %0 = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// Scalars, vectors of other sizes and other types have no such instruction.
// CHECK-LABEL: func.func @others
// CHECK-NOT: llvm.call_intrinsic
// CHECK: arith.trunci {{.*}} : i32 to i16
// CHECK-NOT: llvm.call_intrinsic
// CHECK: arith.trunci {{.*}} : vector<4xi32> to vector<4xi16>
// CHECK-NOT: llvm.call_intrinsic
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xf16>
// PLAIN-LABEL: func.func @others
func.func @others(%x: f32, %y: vector<4xf32>, %z: vector<16xf32>) -> (bf16, vector<4xbf16>, vector<16xf16>) {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.truncf %y : vector<4xf32> to vector<4xbf16>
  %2 = arith.truncf %z : vector<16xf32> to vector<16xf16>
  return %0, %1, %2 : bf16, vector<4xbf16>, vector<16xf16>
}
