// RUN: ds-opt %s --split-input-file --ds-expand-math | FileCheck %s

// CHECK-LABEL: func.func @doc
// CHECK-NOT: math.
// CHECK-COUNT-8: llvm.intr.fma({{.*}} : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// CHECK-NOT: math.
// CHECK: return
func.func @doc(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// -----

// CHECK-LABEL: func.func @scalars_alike
// CHECK-NOT: math.
// CHECK: llvm.intr.fma({{.*}} : (f32, f32, f32) -> f32
// CHECK-NOT: math.
// CHECK: return
func.func @scalars_alike(%x: f32) -> (f32, f32, f32, f32, f32) {
  %0 = math.log %x : f32
  %1 = math.tanh %x : f32
  %2 = math.erf %x : f32
  %3 = math.expm1 %x : f32
  %4 = math.log1p %x : f32
  return %0, %1, %2, %3, %4 : f32, f32, f32, f32, f32
}

// -----

// Instructions are no calls.
// CHECK-LABEL: func.func @instructions
// CHECK-NEXT: llvm.intr.sqrt(%arg0) : (vector<8xf32>)
// CHECK-NEXT: llvm.intr.floor
// CHECK-NEXT: llvm.intr.ceil
// CHECK-NEXT: llvm.intr.roundeven
// CHECK-NEXT: llvm.intr.fabs
// CHECK-NEXT: llvm.intr.fma
func.func @instructions(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.sqrt %x : vector<8xf32>
  %1 = math.floor %0 : vector<8xf32>
  %2 = math.ceil %1 : vector<8xf32>
  %3 = math.roundeven %2 : vector<8xf32>
  %4 = math.absf %3 : vector<8xf32>
  %5 = math.fma %4, %x, %x : vector<8xf32>
  return %5 : vector<8xf32>
}

// -----

// Double precision, and what has no polynomial, is left to libm.
// CHECK-LABEL: func.func @left_to_libm
// CHECK: math.exp %arg0 : f64
// CHECK: math.sinh %arg1 : f32
func.func @left_to_libm(%x: f64, %y: f32) -> (f64, f32) {
  %0 = math.exp %x : f64
  %1 = math.sinh %y : f32
  return %0, %1 : f64, f32
}

// -----

// Beyond 65536 in any lane, libm is called for all lanes and taken for those; inverses have no such arguments.
// CHECK-LABEL: func.func @circular
// CHECK: %[[NEAR:.*]] = arith.cmpf ole, {{.*}} : vector<8xf32>
// CHECK: %[[ALL:.*]] = vector.reduction <and>, %[[NEAR]] : vector<8xi1> into i1
// CHECK: scf.if %[[ALL]]
// CHECK: } else {
// CHECK: %[[CALLED:.*]] = math.sin %arg0 {ds.libm} : vector<8xf32>
// CHECK: arith.select %[[NEAR]], {{.*}}, %[[CALLED]]
// CHECK-NOT: math.
// CHECK: return
func.func @circular(%x: vector<8xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
  %0 = math.sin %x : vector<8xf32>
  %1 = math.atan %x : vector<8xf32>
  %2 = math.asin %x : vector<8xf32>
  %3 = math.acos %x : vector<8xf32>
  return %0, %1, %2, %3 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
}

// -----

// Sines of large numbers are libm's, lane by lane; they are marked, and what is marked is left alone.
// CHECK-LABEL: func.func @circular
// CHECK: arith.cmpf ole, %{{.*}} : vector<8xf32>
// CHECK: scf.if
// CHECK: math.sin %{{.*}} {ds.libm} : vector<8xf32>
// CHECK-NOT: scf.if
// CHECK: %[[KEPT:.*]] = math.cos %arg0 {ds.libm} : vector<8xf32>
// CHECK: return %{{.*}}, %[[KEPT]]
func.func @circular(%x: vector<8xf32>) -> (vector<8xf32>, vector<8xf32>) {
  %0 = math.sin %x : vector<8xf32>
  %1 = math.cos %x {ds.libm} : vector<8xf32>
  return %0, %1 : vector<8xf32>, vector<8xf32>
}

// -----

// Vectors of integers are divided as floats that hold twice their digits; a scalar has an instruction, and a constant
// divisor becomes a product.
// CHECK-LABEL: func.func @quotients
// CHECK: %[[X:.*]] = arith.sitofp %arg0 : vector<16xi32> to vector<16xf64>
// CHECK: %[[Y:.*]] = arith.sitofp %arg1 : vector<16xi32> to vector<16xf64>
// CHECK: %[[Q:.*]] = arith.divf %[[X]], %[[Y]] : vector<16xf64>
// CHECK: arith.fptosi %[[Q]] : vector<16xf64> to vector<16xi32>
// CHECK: arith.divsi %arg0, %cst
// CHECK: arith.divsi {{.*}} : i32
func.func @quotients(%x: vector<16xi32>, %y: vector<16xi32>, %a: i32, %b: i32) -> (vector<16xi32>, vector<16xi32>, i32) {
  %c = arith.constant dense<7> : vector<16xi32>
  %0 = arith.divsi %x, %y : vector<16xi32>
  %1 = arith.divsi %x, %c : vector<16xi32>
  %2 = arith.divsi %a, %b : i32
  return %0, %1, %2 : vector<16xi32>, vector<16xi32>, i32
}

// -----

// CHECK-LABEL: func.func @remainders
// CHECK: arith.uitofp {{.*}} : vector<16xi8> to vector<16xf32>
// CHECK: arith.fptosi {{.*}} : vector<16xf32> to vector<16xi32>
// CHECK: %[[Q:.*]] = arith.trunci {{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: %[[P:.*]] = arith.muli %[[Q]], %arg1
// CHECK: arith.subi %arg0, %[[P]]
// CHECK: arith.fptoui {{.*}} : vector<16xf64> to vector<16xi32>
// CHECK: arith.divui {{.*}} : vector<8xi64>
func.func @remainders(%x: vector<16xi8>, %y: vector<16xi8>, %a: vector<16xi32>, %b: vector<16xi32>, %c: vector<8xi64>)
    -> (vector<16xi8>, vector<16xi32>, vector<8xi64>) {
  %0 = arith.remui %x, %y : vector<16xi8>
  %1 = arith.divui %a, %b : vector<16xi32>
  %2 = arith.divui %c, %c : vector<8xi64>
  return %0, %1, %2 : vector<16xi8>, vector<16xi32>, vector<8xi64>
}
