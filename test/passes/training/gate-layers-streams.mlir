// RUN: ds-opt %s --split-input-file --ds-gate-layers="output=y" --verify-diagnostics | FileCheck %s
// Streams within one another, and sums that are no part of any.

// Around all blocks, a skip: it is no block, and those inside are.
// CHECK-LABEL: func.func @main(
// CHECK: scf.if
// CHECK: ds.unary tanh
// CHECK: ds.layer = 0
// CHECK: scf.if
// CHECK: ds.layer = 1
// CHECK-NOT: scf.if
// CHECK: ds.attention
// CHECK: ds.binary add
// CHECK-NOT: ds.layer = 2
func.func @main(%x: tensor<1x1x4x4xf32> {ds.dims = [1, 1, 4, 4], ds.name = "x"}) -> (tensor<1x1x4x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %b = ds.binary add %x, %a : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %c = ds.unary tanh %b : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %d = ds.binary add %b, %c : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %e = ds.attention %d, %d, %d [] scale 0.5 : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %f = ds.binary add %x, %e : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %f : tensor<1x1x4x4xf32>
}

// -----

// A sum of what all layers leave takes the last one's sum in, which is a block all the same.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: ds.layer = 0
// CHECK: %[[SECOND:.*]] = scf.if
// CHECK: ds.layer = 1
// CHECK: %[[SUM:.*]] = ds.binary add %[[X:.*]], %[[FIRST]]
// CHECK: ds.binary add %[[SUM]], %[[SECOND]]
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = ds.unary tanh %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = ds.binary add %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = ds.binary add %e, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

// What comes from elsewhere is added whether or not the block runs.
// CHECK-LABEL: func.func @main(
// CHECK: %[[OTHER:.*]] = ds.unary sqrt
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: ds.layer = 0
// CHECK: ds.binary add %[[FIRST]], %[[OTHER]]
// CHECK: %[[SECOND:.*]] = scf.if
// CHECK: ds.layer = 1
// CHECK: ds.binary add %[[SECOND]], %[[OTHER]]
func.func @main(%x: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %z: tensor<4xf32> {ds.dims = [4], ds.name = "z"}) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %o = ds.unary sqrt %z : (tensor<4xf32>) -> tensor<4xf32>
  %a = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = ds.binary add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b1 = ds.unary exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %b2 = ds.binary add %b, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b3 = ds.binary add %b2, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = ds.unary tanh %b3 : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.binary add %b3, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d1 = ds.unary exp %d : (tensor<4xf32>) -> tensor<4xf32>
  %d2 = ds.binary add %d, %d1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d3 = ds.binary add %d2, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %d3 : tensor<4xf32>
}

// -----

// Behind the norm of a sum, a transpose: post-norm as well.
func.func @main(%x: tensor<2x4xf32> {ds.dims = [2, 4], ds.name = "x"}, %g: tensor<4xf32> {ds.dims = [4], ds.name = "g"}) -> (tensor<4x2xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = ds.binary add %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // expected-error @below {{(post-norm)}}
  %n = ds.layer_norm %b, %g axis 1 epsilon 1.0e-05 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %t = ds.transpose %n [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %c = ds.unary tanh %t : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %d = ds.binary add %t, %c : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// -----

// As is what shifts and scales each channel, as batch norms do.
func.func @main(%x: tensor<2x4xf32> {ds.dims = [2, 4], ds.name = "x"}, %g: tensor<4xf32> {ds.dims = [4], ds.name = "g"}) -> (tensor<2x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = ds.binary add %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // expected-error @below {{(post-norm)}}
  %s = ds.binary sub %b, %g : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %n = ds.binary mul %g, %s : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = ds.unary tanh %n : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = ds.binary add %n, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// -----

// A stream that is scaled alone is not normalized.
// CHECK-LABEL: func.func @main(
// CHECK: ds.layer = 0
// CHECK: ds.layer = 1
func.func @main(%x: tensor<2x4xf32> {ds.dims = [2, 4], ds.name = "x"}, %g: tensor<4xf32> {ds.dims = [4], ds.name = "g"}) -> (tensor<2x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.unary tanh %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = ds.binary add %x, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %b1 = ds.unary tanh %b : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b2 = ds.binary add %b, %b1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %n = ds.binary mul %b2, %g : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %c = ds.unary exp %n : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = ds.binary add %n, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}
