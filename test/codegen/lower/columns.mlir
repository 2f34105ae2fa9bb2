// Reductions over axes before the last one: vectors hold neighbouring results, a strip is four of them.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.

// CHECK-LABEL: func.func @sum
// CHECK-SAME: ds.grid = "floordiv(d1 + 31, 32)"
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-4: vector.load {{.*}} vector<8xf32>
// CHECK-COUNT-4: vector.store
// CHECK: } else {
// CHECK-COUNT-4: vector.maskedload
// CHECK-COUNT-4: vector.maskedstore
// PLAIN-LABEL: func.func @sum
ds.kernel @sum sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.reduce sum %x axes [0] keep false {result_sizes = [["d1"]]} : (tensor<?x?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// -----

// Results that lie apart, and integers whose mean is truncated, are rows.
// CHECK-LABEL: func.func @last
// CHECK: linalg.generic
ds.kernel @last sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.reduce sum %x axes [0, 1] keep false {result_sizes = [[]]} : (tensor<?x?xf32>) -> tensor<f32>
  ds.yield %0 : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @truncated
// CHECK: linalg.generic
ds.kernel @truncated sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xi32>):
  %0 = ds.reduce mean %x axes [0] keep false {result_sizes = [["d1"]]} : (tensor<?x?xi32>) -> tensor<?xi32>
  ds.yield %0 : tensor<?xi32>
}

// -----

// Reductions of one input are one pass, as columns and as rows.
// CHECK-LABEL: func.func @several
// CHECK: scf.if
// CHECK: scf.for
// CHECK: vector.load
// CHECK: arith.maximumf {{.*}} : vector<8xf32>
// CHECK-NEXT: memref.store
// CHECK: arith.minimumf {{.*}} : vector<8xf32>
// CHECK: vector.store {{.*}}, %arg1
// CHECK: vector.store {{.*}}, %arg2
ds.kernel @several sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.reduce max %x axes [0] keep false {result_sizes = [["d1"]]} : (tensor<?x?xf32>) -> tensor<?xf32>
  %1 = ds.reduce min %x axes [0] keep true {result_sizes = [[1, "d1"]]} : (tensor<?x?xf32>) -> tensor<1x?xf32>
  ds.yield %0, %1 : tensor<?xf32>, tensor<1x?xf32>
}

// -----

// CHECK-LABEL: func.func @several_rows
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: arith.maximumf
// CHECK: arith.addf
// CHECK: linalg.yield
// CHECK: math.sqrt
// CHECK-NOT: linalg.generic
ds.kernel @several_rows sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.reduce l2 %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x?xf32>) -> tensor<?xf32>
  %1 = ds.reduce max %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x?xf32>) -> tensor<?xf32>
  ds.yield %1, %0 : tensor<?xf32>, tensor<?xf32>
}
