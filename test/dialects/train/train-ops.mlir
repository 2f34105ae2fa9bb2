// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @gradient
func.func @gradient(%x: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %{{.*}} = train.gradient(%arg0) at(%arg1) {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<?xf32>, %[[B:.*]]: tensor<?xf32>):
  // CHECK: train.yield %{{.*}} : tensor<?xf32>
  // CHECK-NEXT: } : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %dx = train.gradient (%x) at (%w) {
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    %0 = ds.binary mul %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    train.yield %0 : tensor<?xf32>
  } : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %dx : tensor<?xf32>
}

// Sizes may be known in one of the types only; there may be no zs.
// CHECK-LABEL: func.func @refined
func.func @refined(%x: tensor<4xf16>) -> tensor<?xf16> {
  // CHECK: train.gradient(%arg0) {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<?xf16>):
    train.yield %a : tensor<?xf16>
  } : (tensor<4xf16>) -> tensor<?xf16>
  return %dx : tensor<?xf16>
}
