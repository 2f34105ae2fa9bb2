// Which norms a layer has: a layer that begins without one ends with its own, though nothing follows.
// RUN: ds-opt %s -o %t.dsp --report | FileCheck %s

// CHECK: recognize-layers: 2 layers, 2 recomposed
// CHECK-NEXT: layer 0: attention (past), layer norm, relu
// CHECK-NEXT: layer 1: attention, layer norm x2, relu
func.func @norms(%x: tensor<?x?x16xf32> {ds.name = "x", ds.dims = ["b", "s", 16]},
    %past: tensor<?x4x?x4xf32> {ds.name = "past", ds.dims = ["b", 4, "p", 4]},
    %w: tensor<16x16xf32> {ds.name = "w", ds.dims = [16, 16]},
    %g: tensor<16xf32> {ds.name = "g", ds.dims = [16]}) -> (tensor<?x?x16xf32> {ds.name = "y"}) attributes {ds.entry} {
  %n = ds.layer_norm %x, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %p = ds.linear %n, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %h = ds.reshape %p ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %q = ds.transpose %h [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %k = ds.concat 2 %past, %q : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a = ds.attention %q, %k, %k scale 0.5 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %t = ds.transpose %a [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %j = ds.reshape %t ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %sum = ds.binary add %x, %j : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %up = ds.linear %sum, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %r = ds.unary relu %up : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %p1 = ds.linear %r, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %h1 = ds.reshape %p1 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %q1 = ds.transpose %h1 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %a1 = ds.attention %q1, %q1, %q1 scale 0.5 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %t1 = ds.transpose %a1 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %j1 = ds.reshape %t1 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %s1 = ds.binary add %r, %j1 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %n1 = ds.layer_norm %s1, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %up1 = ds.linear %n1, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %r1 = ds.unary relu %up1 : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %s2 = ds.binary add %n1, %r1 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %y = ds.layer_norm %s2, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}
