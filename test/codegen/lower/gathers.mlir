// Gathers of single elements from rows, and padding by rows.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.

// Rows that are known to be short have places of 32 bits; a place outside is found by its vector.
// CHECK-LABEL: func.func @elements
// CHECK-SAME: ds.grid = "d0"
// CHECK: arith.cmpi uge, {{.*}} : vector<8xi64>
// CHECK: vector.reduction <or>
// CHECK: arith.trunci {{.*}} : vector<8xi64> to vector<8xi32>
// CHECK: vector.gather {{.*}} vector<8xf32>
// CHECK: memref.load
// PLAIN-LABEL: func.func @elements
ds.kernel @elements sizes 2 arguments [["d0", "40"], ["d1"]] {
^bb0(%x: tensor<?x40xf32>, %i: tensor<?xi64>):
  %0 = ds.gather 1 %x, %i {result_sizes = [["d0", "d1"]]} : (tensor<?x40xf32>, tensor<?xi64>) -> tensor<?x?xf32>
  ds.yield %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @bytes
// CHECK-NOT: vector.gather
// PLAIN-LABEL: func.func @bytes
ds.kernel @bytes sizes 1 arguments [["d0", "40"], ["8"]] {
^bb0(%x: tensor<?x40xi8>, %i: tensor<8xi32>):
  %0 = ds.gather 1 %x, %i {result_sizes = [["d0", "8"]]} : (tensor<?x40xi8>, tensor<8xi32>) -> tensor<?x8xi8>
  ds.yield %0 : tensor<?x8xi8>
}

// -----

// Codes meet the scale of their group as they are read: of 20, whole vectors, then the rest.
// CHECK-LABEL: func.func @codes
// CHECK-SAME: ds.flops = "40*d0"
// CHECK: %[[SCALE:.*]] = memref.load %{{.*}} : memref<?xf32
// CHECK: %[[ALL:.*]] = vector.broadcast %[[SCALE]] : f32 to vector<8xf32>
// CHECK: %[[CODES:.*]] = vector.load {{.*}} vector<8xi8>
// CHECK: %[[WIDE:.*]] = arith.extsi %[[CODES]] : vector<8xi8> to vector<8xi32>
// CHECK: %[[NUMBERS:.*]] = arith.sitofp %[[WIDE]] : vector<8xi32> to vector<8xf32>
// CHECK: arith.mulf %[[NUMBERS]], %[[ALL]] : vector<8xf32>
// CHECK: arith.mulf %{{.*}}, %[[SCALE]] : f32
// PLAIN-LABEL: func.func @codes
// PLAIN: arith.mulf {{.*}} : f32
ds.kernel @codes sizes 1 arguments [["50", "40"], ["d0"], ["50", "2"]] {
^bb0(%x: tensor<50x40xi8>, %i: tensor<?xi64>, %s: tensor<50x2xf32>):
  %0 = ds.gather 0 %x, %i scales %s {result_sizes = [["d0", "40"]]} : (tensor<50x40xi8>, tensor<?xi64>, tensor<50x2xf32>) -> tensor<?x40xf32>
  ds.yield %0 : tensor<?x40xf32>
}

// -----

// One item is a row; what lies between its ends is a copy in vectors.
// CHECK-LABEL: func.func @mirrored
// CHECK-SAME: ds.grid = "d0 + 3"
// CHECK: vector.load {{.*}} vector<8xf32>
// PLAIN-LABEL: func.func @mirrored
ds.kernel @mirrored sizes 1 arguments [["d0", "40"], []] {
^bb0(%x: tensor<?x40xf32>, %v: tensor<f32>):
  %0 = ds.pad reflect %x, %v low [1, 2] high [2, 3] {result_sizes = [["d0 + 3", "45"]]} : (tensor<?x40xf32>, tensor<f32>) -> tensor<?x45xf32>
  ds.yield %0 : tensor<?x45xf32>
}
