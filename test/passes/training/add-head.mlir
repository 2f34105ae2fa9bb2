// RUN: ds-opt %s --split-input-file --ds-add-head="output=pooled classes=2 seed=1" --verify-diagnostics | FileCheck %s
// The numbers are checked by test/integration/training_head_cases.py.

// CHECK: ds.recipe @head.weight
// CHECK-NEXT: ds.constant dense<{{.*}}> : tensor<4x2xf32>
// CHECK: ds.recipe @head.bias
// CHECK-NEXT: ds.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK-LABEL: func.func @doc
// CHECK-SAME: -> (tensor<?x4xf32> {ds.name = "pooled"}, tensor<?x2xf32> {ds.name = "head"})
// CHECK: %[[W:.*]] = ds.weight @head.weight
// CHECK: %[[B:.*]] = ds.weight @head.bias
// CHECK: %[[P:.*]] = ds.matmul %arg0, %[[W]]
// CHECK: %[[H:.*]] = ds.binary {{ ?}}add %[[P]], %[[B]]
// CHECK: return %arg0, %[[H]]
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4], ds.name = "x"}) -> (tensor<?x4xf32> {ds.name = "pooled"}) attributes {ds.entry} {
  return %x : tensor<?x4xf32>
}

// -----

// expected-error @below {{--head: expected an output of the model, found 'pooled'; legal are 'y'}}
func.func @other(%x: tensor<?x4xf32> {ds.dims = ["n", 4], ds.name = "x"}) -> (tensor<?x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  return %x : tensor<?x4xf32>
}

// -----

// expected-error @below {{--head: expected an output of f32 [..., features], found 'pooled' of [n]}}
func.func @vector(%x: tensor<?xf32> {ds.dims = ["n"], ds.name = "x"}) -> (tensor<?xf32> {ds.name = "pooled"}) attributes {ds.entry} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{--head: the model has an output 'head' already}}
func.func @taken(%x: tensor<?x4xf32> {ds.dims = ["n", 4], ds.name = "x"}) -> (tensor<?x4xf32> {ds.name = "head"}) attributes {ds.entry} {
  return %x : tensor<?x4xf32>
}
