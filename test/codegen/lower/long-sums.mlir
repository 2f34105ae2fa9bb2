// Sums of f32 in blocks, which are added up in f64, and axes of a row that are one loop.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s

// Two axes without a gap are one: a block is 256 steps of four vectors, but 2,048 elements at most.
// CHECK-LABEL: func.func @joined
// CHECK-DAG: %[[TOTAL:.*]] = memref.alloca() : memref<f64>
// CHECK: memref.store %{{.*}}, %[[TOTAL]][]
// CHECK: %[[ALL:.*]] = arith.muli %arg3, %arg4
// CHECK: scf.for %[[FROM:.*]] = %{{.*}} to %[[ALL]] step %c2048
// CHECK: %[[REST:.*]] = arith.subi %[[ALL]], %[[FROM]]
// CHECK: %[[COUNT:.*]] = arith.minsi %c2048{{.*}}, %[[REST]]
// CHECK: memref.reinterpret_cast %arg0 to offset: [{{.*}}], sizes: [%[[COUNT]]], strides: [1]
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction"]
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK-NEXT: arith.addf %{{.*}} : f64
// CHECK-NEXT: memref.store %{{.*}}, %[[TOTAL]][]
// CHECK: arith.truncf %{{.*}} : f64 to f32
ds.kernel @joined sizes 3 arguments [["d0", "d1", "d2"]] {
^bb0(%x: tensor<?x?x?xf32>):
  %0 = ds.reduce sum %x axes [1, 2] keep false {result_sizes = [["d0"]]} : (tensor<?x?x?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// -----

// Axes with one between them are two: a block has as many rows of three as make up a chain.
// CHECK-LABEL: func.func @apart
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c85
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction", "reduction"]
// CHECK: arith.addf %{{.*}} : f64
ds.kernel @apart sizes 2 arguments [["d0", "d1", 3]] {
^bb0(%x: tensor<?x?x3xf32>):
  %0 = ds.reduce mean %x axes [0, 2] keep false {result_sizes = [["d1"]]} : (tensor<?x?x3xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// -----

// Axes of one place are no loops. What is known to be short is one block, and so is what is no sum, or exact enough.
// CHECK-LABEL: func.func @short
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction"]
// CHECK-SAME: memref<768xf32
// CHECK-NOT: f64
// CHECK-LABEL: func.func @product
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction"]
// CHECK-NOT: f64
// CHECK-LABEL: func.func @double
// CHECK-NOT: arith.extf
// CHECK: return
ds.kernel @short sizes 1 arguments [["d0", 1, 768, 1]] {
^bb0(%x: tensor<?x1x768x1xf32>):
  %0 = ds.reduce sum %x axes [1, 2, 3] keep false {result_sizes = [["d0"]]} : (tensor<?x1x768x1xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}
ds.kernel @product sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.reduce prod %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}
ds.kernel @double sizes 2 arguments [["d0", "d1"]] {
^bb0(%x: tensor<?x?xf64>):
  %0 = ds.reduce sum %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x?xf64>) -> tensor<?xf64>
  ds.yield %0 : tensor<?xf64>
}

// -----

// Columns are chains of 256 rows.
// CHECK-LABEL: func.func @columns
// CHECK: arith.muli %arg2, %arg3
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c256
// CHECK: vector.load
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: arith.extf {{.*}} : vector<8xf32> to vector<8xf64>
// CHECK-NEXT: arith.addf {{.*}} : vector<8xf64>
// CHECK: arith.truncf {{.*}} : vector<8xf64> to vector<8xf32>
ds.kernel @columns sizes 2 arguments [["d0", "d1", 8]] {
^bb0(%x: tensor<?x?x8xf32>):
  %0 = ds.reduce sum %x axes [0, 1] keep false {result_sizes = [[8]]} : (tensor<?x?x8xf32>) -> tensor<8xf32>
  ds.yield %0 : tensor<8xf32>
}

// -----

// A norm fits f32 where its squares do not: they are f64.
// CHECK-LABEL: func.func @norm
// CHECK: memref.alloca() : memref<f64>
// CHECK: linalg.generic
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f64
// CHECK: arith.addf %{{.*}}, %[[SQUARE]] : f64
// CHECK: %[[ROOT:.*]] = math.sqrt %{{.*}} : f64
// CHECK: arith.truncf %[[ROOT]] : f64 to f32
ds.kernel @norm sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xf32>):
  %0 = ds.reduce l2 %x axes [0] keep false {result_sizes = [[]]} : (tensor<?xf32>) -> tensor<f32>
  ds.yield %0 : tensor<f32>
}
