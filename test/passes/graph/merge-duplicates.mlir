// RUN: ds-opt %s --split-input-file --ds-merge-duplicates | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-merge-duplicates --verify-numerics -o /dev/null

// What follows is the same, too, when its operands are.
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[A:.*]] = ds.binary mul %arg0, %arg1 {ds.values = ["mask_1"]}
// CHECK-NEXT: %[[B:.*]] = ds.unary exp %[[A]] {ds.values = ["e_1"]}
// CHECK-NEXT: return %[[B]], %[[B]]
func.func @doc(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) attributes {ds.entry} {
  %0 = ds.binary mul %a, %b {ds.values = ["mask_1"]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.binary mul %a, %b {ds.values = ["mask_2"]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.unary exp %0 {ds.values = ["e_1"]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = ds.unary exp %1 {ds.values = ["e_2"]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2, %3 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Other operands or another order of them, another attribute of the op, another mark, other sizes.
// CHECK-LABEL: func.func @differ
// CHECK: ds.binary sub %arg0, %arg1
// CHECK: ds.binary sub %arg1, %arg0
// CHECK: ds.binary add %arg0, %arg1
// CHECK: ds.binary add %arg0, %arg1 {ds.left = "why"}
// CHECK: ds.reshape %arg0 [2, 8]
// CHECK: ds.reshape %arg0 [8, 2]
func.func @differ(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x8xf32>, tensor<8x2xf32>) attributes {ds.entry} {
  %0 = ds.binary sub %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ds.binary sub %b, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = ds.binary add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = ds.binary add %a, %b {ds.left = "why"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = ds.reshape %a [2, 8] : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %5 = ds.reshape %a [8, 2] : (tensor<4x4xf32>) -> tensor<8x2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x8xf32>, tensor<8x2xf32>
}

// -----

// A branch is looked into; what it has is not computed for those outside.
// CHECK-LABEL: func.func @branches
// CHECK: scf.if
// CHECK-NEXT: %[[E:.*]] = ds.unary exp %arg0
// CHECK-NEXT: %[[S:.*]] = ds.binary add %[[E]], %[[E]]
// CHECK: else
// CHECK: ds.unary exp %arg0
// CHECK: ds.unary exp %arg0
func.func @branches(%a: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = ds.unary exp %a {ds.values = ["x"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = ds.unary exp %a {ds.values = ["y"]} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = ds.binary add %1, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    %1 = ds.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %4 = ds.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %4 : tensor<4xf32>, tensor<4xf32>
}
