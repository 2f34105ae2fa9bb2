// Transposes whose last axis has two or four elements, which lie apart in rows: rows are read in vectors, and interleaved
// in registers.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=1" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.interleave

// Windows of a transposed convolution that do not overlap become lines of an image.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: ds.grid = "48*d0"
// CHECK: %[[FIRST:.*]] = vector.load %{{.*}} : memref<?xf32>, vector<16xf32>
// CHECK: %[[SECOND:.*]] = vector.load %{{.*}} : memref<?xf32>, vector<16xf32>
// CHECK: %[[BOTH:.*]] = vector.interleave %[[FIRST]], %[[SECOND]] : vector<16xf32> -> vector<32xf32>
// CHECK: vector.store %[[BOTH]]
// PLAIN-LABEL: func.func @pairs
// PLAIN: linalg.generic
ds.kernel @pairs sizes 1 arguments [["d0", 3, 2, 2, 8, 40]] {
^bb0(%x: tensor<?x3x2x2x8x40xf32>):
  %0 = ds.transpose %x [0, 1, 4, 2, 5, 3] {result_sizes = [["d0", 3, 8, 2, 40, 2]]} : (tensor<?x3x2x2x8x40xf32>) -> tensor<?x3x8x2x40x2xf32>
  ds.yield %0 : tensor<?x3x8x2x40x2xf32>
}

// -----

// Four bytes; threads share a long row.
// CHECK-LABEL: func.func @fours
// CHECK-SAME: ds.grid = 3 : i64
// CHECK-COUNT-4: vector.load %{{.*}} : memref<?xi8>, vector<64xi8>
// CHECK-COUNT-2: vector.interleave %{{.*}} : vector<64xi8> -> vector<128xi8>
// CHECK: vector.interleave %{{.*}} : vector<128xi8> -> vector<256xi8>
ds.kernel @fours sizes 0 arguments [[4, 3000]] {
^bb0(%x: tensor<4x3000xi8>):
  %0 = ds.transpose %x [1, 0] {result_sizes = [[3000, 4]]} : (tensor<4x3000xi8>) -> tensor<3000x4xi8>
  ds.yield %0 : tensor<3000x4xi8>
}

// -----

// Three rows, and rows whose elements lie apart, are transposed as any others.
// CHECK-LABEL: func.func @threes
// CHECK-NOT: vector.interleave
// CHECK: return
ds.kernel @threes sizes 0 arguments [[3, 100]] {
^bb0(%x: tensor<3x100xf32>):
  %0 = ds.transpose %x [1, 0] {result_sizes = [[100, 3]]} : (tensor<3x100xf32>) -> tensor<100x3xf32>
  ds.yield %0 : tensor<100x3xf32>
}

// -----

// CHECK-LABEL: func.func @apart
// CHECK-NOT: vector.interleave
// CHECK: return
ds.kernel @apart sizes 0 arguments [[2, 50, 100]] {
^bb0(%x: tensor<2x50x100xf32>):
  %0 = ds.transpose %x [2, 1, 0] {result_sizes = [[100, 50, 2]]} : (tensor<2x50x100xf32>) -> tensor<100x50x2xf32>
  ds.yield %0 : tensor<100x50x2xf32>
}
