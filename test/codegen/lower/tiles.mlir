// A transposed operand makes the grid one of blocks, where both axes may hold a vector.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=ds.tile

// CHECK-LABEL: func.func @turned
// CHECK-SAME: ds.grid = "floordiv(d0 + 7, 8)"
// CHECK: ds.tile = array<i64: 0, 8>
// PLAIN-LABEL: func.func @turned
// PLAIN-SAME: ds.grid = "d0"
ds.kernel @turned sizes 1 arguments [["40", "d0"]] {
^bb0(%x: tensor<40x?xf32>):
  %0 = ds.transpose %x [1, 0] {result_sizes = [["d0", "40"]]} : (tensor<40x?xf32>) -> tensor<?x40xf32>
  ds.yield %0 : tensor<?x40xf32>
}

// -----

// Rows that stay together are copied, and three columns are no vector.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: ds.tile
// CHECK-LABEL: func.func @short
// CHECK-NOT: ds.tile
ds.kernel @heads sizes 1 arguments [["16", "d0", "64"]] {
^bb0(%x: tensor<16x?x64xf32>):
  %0 = ds.transpose %x [1, 0, 2] {result_sizes = [["d0", "16", "64"]]} : (tensor<16x?x64xf32>) -> tensor<?x16x64xf32>
  ds.yield %0 : tensor<?x16x64xf32>
}
ds.kernel @short sizes 1 arguments [["3", "d0"]] {
^bb0(%x: tensor<3x?xf32>):
  %0 = ds.transpose %x [1, 0] {result_sizes = [["d0", "3"]]} : (tensor<3x?xf32>) -> tensor<?x3xf32>
  ds.yield %0 : tensor<?x3xf32>
}

// -----

// Repeated elements are one loop; a vector holds no whole number of threes.
// CHECK: affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-LABEL: func.func @twice
// CHECK-SAME: ds.grid = "10*d0"
// PLAIN-LABEL: func.func @twice
ds.kernel @twice sizes 1 arguments [["d0", 5, 1]] {
^bb0(%x: tensor<?x5x1xf32>):
  %0 = ds.broadcast %x ["d0", 5, 2] {result_sizes = [["d0", 5, 2]]} : (tensor<?x5x1xf32>) -> tensor<?x5x2xf32>
  ds.yield %0 : tensor<?x5x2xf32>
}

// -----

// CHECK-NOT: floordiv
// CHECK-LABEL: func.func @thrice
ds.kernel @thrice sizes 1 arguments [["d0", 5, 1]] {
^bb0(%x: tensor<?x5x1xf32>):
  %0 = ds.broadcast %x ["d0", 5, 3] {result_sizes = [["d0", 5, 3]]} : (tensor<?x5x1xf32>) -> tensor<?x5x3xf32>
  ds.yield %0 : tensor<?x5x3xf32>
}
