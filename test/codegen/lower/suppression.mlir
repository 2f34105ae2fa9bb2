// The greedy choice of boxes: keys are made in vectors and found in blocks; a box is compared with vectors of kept ones.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.

// CHECK-LABEL: func.func @boxes
// CHECK-SAME: ds.grid = 2
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: arith.cmpf ogt, {{.*}} : vector<4xf32>
// CHECK: vector.store {{.*}} vector<4xi64>
// CHECK: scf.while
// CHECK: arith.maxsi {{.*}} : vector<4xi64>
// CHECK: scf.condition
// CHECK: scf.while
// CHECK-COUNT-5: vector.load {{.*}} vector<8xf32>
// CHECK: vector.create_mask
// CHECK: vector.reduction <or>, {{.*}} : vector<8xi1> into i1
// CHECK: scf.if
// PLAIN-LABEL: func.func @boxes
ds.kernel @boxes sizes 1 arguments [[1, 2, "d0"], [1, 2, "d0"], [1, 2, "d0"], [], []] {
^bb0(%s: tensor<1x2x?xf32>, %l: tensor<1x2x?xf32>, %h: tensor<1x2x?xf32>, %m: tensor<i64>, %o: tensor<f32>):
  %0 = ds.suppress %s, %l, %h most %m overlap %o least %o {result_sizes = [[1, 2, "d0"]]} : (tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x2x?xi64>
  ds.yield %0 : tensor<1x2x?xi64>
}

// -----

// A key of an f64 has 128 bits, which no vectors hold; pairs are compared in vectors.
// CHECK-LABEL: func.func @wide
// CHECK: arith.shli {{.*}} : i128
// CHECK: vector.load {{.*}} vector<4xf64>
ds.kernel @wide sizes 1 arguments [[1, 2, "d0"], [1, 2, "d0"], [1, 2, "d0"], [], []] {
^bb0(%s: tensor<1x2x?xf64>, %l: tensor<1x2x?xf64>, %h: tensor<1x2x?xf64>, %m: tensor<i64>, %o: tensor<f64>):
  %0 = ds.suppress %s, %l, %h most %m overlap %o {result_sizes = [[1, 2, "d0"]]} : (tensor<1x2x?xf64>, tensor<1x2x?xf64>, tensor<1x2x?xf64>, tensor<i64>, tensor<f64>) -> tensor<1x2x?xi64>
  ds.yield %0 : tensor<1x2x?xi64>
}
