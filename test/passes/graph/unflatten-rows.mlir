// RUN: ds-opt %s --split-input-file --ds-unflatten-rows | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-unflatten-rows --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK: %[[L:.*]] = ds.linear %arg0, %arg1, %arg2 : (tensor<?x?x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<?x?x6xf32>
// CHECK: %[[G:.*]] = ds.gelu erf %[[L]] {ds.values = ["y"]} : (tensor<?x?x6xf32>) -> tensor<?x?x6xf32>
// CHECK: return %[[G]]
func.func @doc(%x: tensor<?x?x4xf32> {ds.dims = ["b", "s", 4]}, %w: tensor<4x6xf32>, %c: tensor<6xf32>) -> tensor<?x?x6xf32> attributes {ds.entry} {
  %0 = ds.reshape %x ["b*s", 4] : (tensor<?x?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w, %c : (tensor<?x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<?x6xf32>
  %2 = ds.gelu erf %1 : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %3 = ds.reshape %2 ["b", "s", 6] {ds.values = ["y"]} : (tensor<?x6xf32>) -> tensor<?x?x6xf32>
  return %3 : tensor<?x?x6xf32>
}

// -----

// Heads are merged before the product: the reshape behind it says to what. A residual that was flattened, too, and numbers
// for all rows go along; a residual that was not is where it ends.
// CHECK-LABEL: func.func @heads
// CHECK: %[[X:.*]] = ds.reshape %arg0 ["b", "s", 8] : (tensor<?x?x2x4xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[L:.*]] = ds.linear %[[X]], %arg1 {ds.values = ["y"]} : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[M:.*]] = ds.linear %[[L]], %arg1
// CHECK: %[[N:.*]] = ds.binary mul %[[M]], %arg3 : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[A:.*]] = ds.binary add %[[N]], %[[L]] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[F:.*]] = ds.reshape %[[A]] ["b*s", 8] {ds.values = ["a"]}
// CHECK: ds.binary add %[[F]], %arg2
func.func @heads(%x: tensor<?x?x2x4xf32> {ds.dims = ["b", "s", 2, 4]}, %w: tensor<8x8xf32>, %r: tensor<?x8xf32> {ds.dims = ["b*s", 8]}, %c: tensor<8xf32>) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.reshape %x ["b*s", 8] : (tensor<?x?x2x4xf32>) -> tensor<?x8xf32>
  %1 = ds.linear %0, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %2 = ds.reshape %1 ["b", "s", 8] {ds.values = ["y"]} : (tensor<?x8xf32>) -> tensor<?x?x8xf32>
  %3 = ds.reshape %2 ["b*s", 8] : (tensor<?x?x8xf32>) -> tensor<?x8xf32>
  %4 = ds.linear %3, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %5 = ds.binary mul %4, %c : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %6 = ds.binary add %5, %3 {ds.values = ["a"]} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %7 = ds.binary add %6, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %7 : tensor<?x8xf32>
}

// -----

// Kept: rows that are cut otherwise on both sides, a product that two read, one whose rows were never flattened.
// CHECK-LABEL: func.func @kept
// CHECK: %[[X:.*]] = ds.reshape %arg0 [6, 8]
// CHECK: %[[Y:.*]] = ds.linear %[[X]], %arg1 : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
// CHECK: ds.reshape %[[Y]] [6, 2, 4]
// CHECK: %[[Z:.*]] = ds.linear %[[X]], %arg1 : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
// CHECK: ds.reshape %[[Z]] [2, 3, 8]
// CHECK: ds.unary exp %[[Z]]
// CHECK: %[[V:.*]] = ds.linear %arg2, %arg1 : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
// CHECK: ds.reshape %[[V]] [2, 3, 8]
func.func @kept(%x: tensor<6x2x4xf32>, %w: tensor<8x8xf32>, %v: tensor<6x8xf32>) -> (tensor<6x2x4xf32>, tensor<2x3x8xf32>, tensor<6x8xf32>, tensor<2x3x8xf32>) attributes {ds.entry} {
  %0 = ds.reshape %x [6, 8] : (tensor<6x2x4xf32>) -> tensor<6x8xf32>
  %1 = ds.linear %0, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %2 = ds.reshape %1 [6, 2, 4] : (tensor<6x8xf32>) -> tensor<6x2x4xf32>
  %3 = ds.linear %0, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %4 = ds.reshape %3 [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %5 = ds.unary exp %3 : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %6 = ds.linear %v, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %7 = ds.reshape %6 [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  return %2, %4, %5, %7 : tensor<6x2x4xf32>, tensor<2x3x8xf32>, tensor<6x8xf32>, tensor<2x3x8xf32>
}

// -----

// Where something reads the flat rows, a reshape gives them.
// CHECK-LABEL: func.func @flat
// CHECK: %[[L:.*]] = ds.linear %arg0, %arg1 : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[F:.*]] = ds.reshape %[[L]] [6, 4] {ds.values = ["flat"]}
// CHECK: ds.transpose %[[F]] [1, 0]
// CHECK: return %{{.*}}, %[[L]]
func.func @flat(%x: tensor<2x3x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x6xf32>, tensor<2x3x4xf32>) attributes {ds.entry} {
  %0 = ds.reshape %x [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = ds.linear %0, %w {ds.values = ["flat"]} : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %2 = ds.transpose %1 [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %3 = ds.reshape %1 [2, 3, 4] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  return %2, %3 : tensor<4x6xf32>, tensor<2x3x4xf32>
}

// -----

// Rows that were cut otherwise before they were flattened are others.
// CHECK-LABEL: func.func @other_rows
// CHECK: %[[R:.*]] = ds.reshape %arg2 [6, 4]
// CHECK: %[[L:.*]] = ds.linear %arg0, %arg1 : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[F:.*]] = ds.reshape %[[L]] [6, 4]
// CHECK: ds.binary add %[[F]], %[[R]] : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
func.func @other_rows(%x: tensor<2x3x4xf32>, %w: tensor<4x4xf32>, %r: tensor<3x2x4xf32>) -> tensor<6x4xf32> attributes {ds.entry} {
  %0 = ds.reshape %x [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = ds.reshape %r [6, 4] : (tensor<3x2x4xf32>) -> tensor<6x4xf32>
  %2 = ds.linear %0, %w : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %3 = ds.binary add %2, %1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %3 : tensor<6x4xf32>
}
