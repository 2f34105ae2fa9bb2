// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot rows=2 columns=16" --convert-ds-to-linalg="lanes=16" | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=2 columns=8" --convert-ds-to-linalg="lanes=8" | FileCheck %s --check-prefixes=CHECK,PAIRS

// Four bytes of a row are one number to broadcast; the unsigned ones come first. What is left of K is read under a mask.
// CHECK-LABEL: func.func @linear
// DOT-SAME: ds.arithmetic = "int8"
// DOT: vector.load {{.*}} : memref<?xi8>, vector<64xi8>
// DOT: vector.load {{.*}} : memref<?xi8>, vector<4xi8>
// DOT: %[[ROW:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[ROW]], %{{.*}}) :
// DOT: vector.maskedload {{.*}} : memref<?xi8>, vector<4xi1>, vector<4xi8> into vector<4xi8>
// Without the instruction, the bytes at even and at odd places are products of pairs of their own: weights keep their
// sign, and those of the row have none. Where there are more rows than two blocks have, rows and panels become words once.
// PAIRS-SAME: ds.arithmetic = "int16"
// PAIRS: %[[MANY:.*]] = arith.cmpi ugt, %{{.*}}, %c4
// PAIRS: scf.if %[[MANY]]
// PAIRS: vector.interleave %{{.*}}, %{{.*}} : vector<8xi32> -> vector<16xi32>
// PAIRS: arith.extui {{.*}} : i8 to i16
// PAIRS: arith.extui {{.*}} : i8 to i16
// PAIRS: scf.if %[[MANY]]
// PAIRS-COUNT-4: vector.store {{.*}} : memref<?xi16>, vector<16xi16>
// PAIRS: vector.load {{.*}} : memref<?xi16>, vector<2xi16>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// PAIRS: else
// PAIRS: %[[ODD:.*]] = vector.bitcast %{{.*}} : vector<32xi8> to vector<16xi16>
// PAIRS: %[[EVEN:.*]] = arith.shli %[[ODD]]
// PAIRS: arith.shrsi %[[EVEN]]
// PAIRS: arith.shrsi %[[ODD]]
// PAIRS: arith.shrui
// PAIRS: arith.shrui
// PAIRS-COUNT-2: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: return
ds.kernel @linear sizes 1 arguments [["d0", 7], [1, 2, 64]] {
^bb0(%x: tensor<?x7xui8>, %w: tensor<1x2x64xi8>):
  %0 = ds.linear %x, %w {columns = 9 : i64, panel = 16 : i64, interleave = 4 : i64, result_sizes = [["d0", 9]]} : (tensor<?x7xui8>, tensor<1x2x64xi8>) -> tensor<?x9xi32>
  ds.yield %0 : tensor<?x9xi32>
}

// -----

// The pixels are gathered, four rows of them side by side, and are the unsigned side. Without the instruction, filters
// become words once, and pixels where they are packed, two rows of them side by side.
// CHECK-LABEL: func.func @conv
// DOT: %[[FIRST:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<16xi8> -> vector<32xi8>
// DOT: %[[SECOND:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<16xi8> -> vector<32xi8>
// DOT: vector.interleave %[[FIRST]], %[[SECOND]] : vector<32xi8> -> vector<64xi8>
// DOT: %[[PIXELS:.*]] = vector.load {{.*}} : memref<?xi8>, vector<64xi8>
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[PIXELS]], %{{.*}}) :
// PAIRS: %[[FILTERS:.*]] = arith.extsi %{{.*}} : vector<16xi8> to vector<16xi16>
// PAIRS: vector.store %[[FILTERS]], %[[WORDS:.*]][%{{.*}}] : memref<?xi16>, vector<16xi16>
// PAIRS: %[[FIRST:.*]] = arith.extui %{{.*}} : vector<8xi8> to vector<8xi16>
// PAIRS: %[[SECOND:.*]] = arith.extui %{{.*}} : vector<8xi8> to vector<8xi16>
// PAIRS: vector.interleave %[[FIRST]], %[[SECOND]] : vector<8xi16> -> vector<16xi16>
// PAIRS: %[[PIXELS:.*]] = vector.load %{{.*}} : memref<?xi16>, vector<16xi16>
// PAIRS: vector.load %[[WORDS]][%{{.*}}] : memref<?xi16>, vector<2xi16>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%{{.*}}, %[[PIXELS]])
// CHECK: return
ds.kernel @conv sizes 0 arguments [[1, 4, 5], [3, 4, 2]] {
^bb0(%x: tensor<1x4x5xui8>, %w: tensor<3x4x2xi8>):
  %0 = ds.conv %x, %w strides [1] pads [0, 0] dilations [1] groups 1 {result_sizes = [[1, 3, 4]]} : (tensor<1x4x5xui8>, tensor<3x4x2xi8>) -> tensor<1x3x4xi32>
  ds.yield %0 : tensor<1x3x4xi32>
}

// -----

// With K in whole steps of eight, panels are fitted for many rows: bytes of either sign are added up, and steps whose
// sums pass 128 become two, those that pass 252 four. What is unsigned comes first. A panel that takes more than 3/2 of
// its steps, or seems to, becomes words, and so do the rows before the first such panel.
// CHECK-LABEL: func.func @fitted
// DOT-SAME: ds.arithmetic = "int8"
// DOT-NOT: pmadd
// PAIRS-SAME: ds.arithmetic = "int8_pairs"
// PAIRS: %[[FITTED:.*]]:2 = scf.if %{{.*}} -> (i1, index)
// PAIRS: %[[LOOP:.*]]:2 = scf.while (%[[STEP:.*]] = %c0{{.*}}, %[[WRITTEN:.*]] = %c0{{.*}}) : (index, index)
// PAIRS: arith.muli %[[WRITTEN]], %c2
// PAIRS: arith.muli %[[STEP]], %c3
// PAIRS: arith.cmpi sle, %{{.*}}, %c32
// PAIRS: scf.condition
// PAIRS: ^bb0(%[[STEP:.*]]: index, %[[WRITTEN:.*]]: index):
// PAIRS: %[[MOST:.*]] = vector.reduction <maxsi>, %{{.*}} : vector<16xi16> into i16
// PAIRS: arith.cmpi sgt, %[[MOST]], %c128_i16
// PAIRS: arith.cmpi sgt, %[[MOST]], %c252_i16
// PAIRS: %[[ALONG:.*]] = arith.muli %[[STEP]], %c8
// PAIRS: arith.index_cast %[[ALONG]] : index to i32
// PAIRS: arith.cmpi eq, %[[LOOP]]#0, %c2
// PAIRS: %[[TIME:.*]] = arith.muli %[[LOOP]]#1, %c2
// PAIRS: arith.subi %[[TIME]], %{{.*}} : index
// PAIRS: scf.yield %{{.*}}, %[[LOOP]]#1 : i1, index
// PAIRS: scf.if %[[FITTED]]#0
// PAIRS: arith.subi %[[FITTED]]#1,
// PAIRS: %[[PLACE:.*]] = memref.load %{{.*}} : memref<?xi32>
// PAIRS: arith.index_cast %[[PLACE]] : i32 to index
// PAIRS: %[[ROW:.*]] = vector.bitcast %{{.*}} : vector<8xi32> to vector<32xi8>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"(%{{.*}}, %{{.*}}) : (vector<32xi8>, vector<32xi8>) -> vector<16xi16>
// PAIRS: %[[FOUR:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<16xi16>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[FOUR]], %{{.*}})
// PAIRS: %[[WRITTEN:.*]] = memref.load %[[FLAG:.*]][] : memref<i1>
// PAIRS: scf.if
// PAIRS: arith.extui {{.*}} : i8 to i16
// PAIRS: memref.store %true{{.*}}, %[[FLAG]][] : memref<i1>
// PAIRS: vector.load {{.*}} : memref<?xi16>, vector<2xi16>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// PAIRS: vector.load {{.*}} : memref<?xi8>, vector<4xi8>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: return
ds.kernel @fitted sizes 1 arguments [["d0", 16], [1, 4, 64]] {
^bb0(%x: tensor<?x16xui8>, %w: tensor<1x4x64xi8>):
  %0 = ds.linear %x, %w {columns = 9 : i64, panel = 16 : i64, interleave = 4 : i64, result_sizes = [["d0", 9]]} : (tensor<?x16xui8>, tensor<1x4x64xi8>) -> tensor<?x9xi32>
  ds.yield %0 : tensor<?x9xi32>
}

// -----

// Signed rows would need sums of their own sign: they become words.
// CHECK-LABEL: func.func @signed_rows
// CHECK-NOT: pmadd.ub.sw
// CHECK: return
ds.kernel @signed_rows sizes 1 arguments [["d0", 16], [1, 4, 64]] {
^bb0(%x: tensor<?x16xi8>, %w: tensor<1x4x64xui8>):
  %0 = ds.linear %x, %w {columns = 9 : i64, panel = 16 : i64, interleave = 4 : i64, result_sizes = [["d0", 9]]} : (tensor<?x16xi8>, tensor<1x4x64xui8>) -> tensor<?x9xi32>
  ds.yield %0 : tensor<?x9xi32>
}
