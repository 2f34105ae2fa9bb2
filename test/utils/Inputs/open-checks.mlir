// RUN: ds-opt %s --split-input-file --ds-recompose-softmax | FileCheck %s

// CHECK: FIXME
func.func @open(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = ds.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = ds.reduce sum %e axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %y = ds.binary div %e, %s : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// CHECK-NOT: ds.softmax
func.func @closed(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = ds.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %e : tensor<?x8xf32>
}
