// RUN: ds-opt %s --split-input-file --ds-fold-shapes --verify-diagnostics | FileCheck %s
// Ops that no rule of the size analysis knows: their types say what their values are.

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: ds.reshape %{{.*}} ["n"]
func.func @loop(%x: tensor<?xf32> {ds.dims = ["n"]}, %first: index, %last: index, %step: index) -> tensor<?xf32> {
  %0 = scf.for %i = %first to %last step %step iter_args(%a = %x) -> (tensor<?xf32>) {
    %1 = ds.unary neg %a : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  %2 = ds.reshape %0 ["n"] : (tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// expected-error @+1 {{'func.func' op expects one block, as branches and loops are ops of scf; found 2}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next(%x : tensor<4xf32>)
^next(%y: tensor<4xf32>):
  return %y : tensor<4xf32>
}
