// RUN: ds-opt %s --split-input-file --ds-factor-zero-points --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-factor-zero-points --verify-numerics -o /dev/null

// A zero point of run time: the bytes are multiplied, and its product with the sums of the columns is subtracted.
// CHECK-LABEL: ds.recipe @folded
// CHECK: ds.cast %{{.*}} to i8
// CHECK-LABEL: ds.recipe @folded_0
// CHECK: ds.reduce sum %{{.*}} axes [0] keep false : (tensor<3x40xi32>) -> tensor<40xi32>
// CHECK-LABEL: func.func @doc
// CHECK: %[[Z:.*]] = ds.cast %arg1 to i32
// CHECK: %[[ZERO:.*]] = ds.reshape %[[Z]]
// CHECK: %[[W:.*]] = ds.weight @folded : tensor<3x40xi8>
// CHECK: %[[SUMS:.*]] = ds.weight @folded_0 : tensor<40xi32>
// CHECK: %[[TERM:.*]] = ds.binary mul %[[ZERO]], %[[SUMS]]
// CHECK: %[[P:.*]] = ds.linear %arg0, %[[W]], %arg2 : (tensor<?x3xui8>, tensor<3x40xi8>, tensor<40xi32>) -> tensor<?x40xi32>
// CHECK: %[[Y:.*]] = ds.binary sub %[[P]], %[[TERM]]
// CHECK: return %[[Y]]
func.func @doc(%x: tensor<?x3xui8>, %z: tensor<1xui8>, %bias: tensor<40xi32>) -> tensor<?x40xi32> attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<?x3xui8>) -> tensor<?x3xi32>
  %1 = ds.cast %z to i32 : (tensor<1xui8>) -> tensor<1xi32>
  %2 = ds.binary sub %0, %1 : (tensor<?x3xi32>, tensor<1xi32>) -> tensor<?x3xi32>
  %w = ds.weight @w : tensor<3x40xi32>
  %3 = ds.linear %2, %w, %bias : (tensor<?x3xi32>, tensor<3x40xi32>, tensor<40xi32>) -> tensor<?x40xi32>
  return %3 : tensor<?x40xi32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 120] : tensor<3x40xi8>
  %1 = ds.cast %0 to i32 : (tensor<3x40xi8>) -> tensor<3x40xi32>
  ds.yield %1 : tensor<3x40xi32>
}

// -----

// Constants join the bias. Signed bytes move up by 128, and their zero point with them.
// CHECK-LABEL: ds.recipe @folded_1
// CHECK: %[[MUL:.*]] = ds.binary mul
// CHECK: %[[NEG:.*]] = ds.unary neg %[[MUL]]
// CHECK: ds.binary add %{{.*}}, %[[NEG]]
// CHECK-LABEL: func.func @constants
// CHECK: %[[B:.*]] = ds.weight @folded_1
// CHECK: ds.linear %arg0, %{{.*}}, %[[B]] : (tensor<?x2xui8>
// CHECK: %[[UP:.*]] = ds.binary add %{{.*}}, %{{.*}} : (tensor<?x2xi16>, tensor<i16>)
// CHECK: %[[U:.*]] = ds.cast %[[UP]] to ui8
// CHECK: ds.linear %[[U]], %{{.*}}, %{{.*}} : (tensor<?x2xui8>
func.func @constants(%x: tensor<?x2xui8>, %s: tensor<?x2xi8>) -> (tensor<?x2xi32>, tensor<?x2xi32>) attributes {ds.entry} {
  %z = ds.constant dense<3> : tensor<i32>
  %bias = ds.constant dense<[9, 0]> : tensor<2xi32>
  %w = ds.weight @w : tensor<2x2xi32>
  %0 = ds.cast %x to i32 : (tensor<?x2xui8>) -> tensor<?x2xi32>
  %1 = ds.binary sub %0, %z : (tensor<?x2xi32>, tensor<i32>) -> tensor<?x2xi32>
  %2 = ds.linear %1, %w, %bias : (tensor<?x2xi32>, tensor<2x2xi32>, tensor<2xi32>) -> tensor<?x2xi32>
  %3 = ds.cast %s to i32 : (tensor<?x2xi8>) -> tensor<?x2xi32>
  %4 = ds.linear %3, %w : (tensor<?x2xi32>, tensor<2x2xi32>) -> tensor<?x2xi32>
  return %2, %4 : tensor<?x2xi32>, tensor<?x2xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[1, 3], [2, 4]]> : tensor<2x2xi32>
  ds.yield %0 : tensor<2x2xi32>
}

// -----

// Unsigned weights less their zero point span a byte: they move into a signed one, here by 2, and what that adds is
// taken from the sums of the rows.
// CHECK-LABEL: func.func @moved
// CHECK: %[[X:.*]] = ds.cast %arg0 to i32
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<?x2xui8>, tensor<2x1xi8>) -> tensor<?x1xi32>
// CHECK: %[[R:.*]] = ds.reduce sum %[[X]] axes [1] keep true
// CHECK: %[[M:.*]] = ds.binary mul %[[R]], %{{.*}} : (tensor<?x1xi32>, tensor<i32>)
// CHECK: ds.binary sub %{{.*}}, %[[M]]
func.func @moved(%x: tensor<?x2xui8>) -> tensor<?x1xi32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<2x1xi32>
  %0 = ds.cast %x to i32 : (tensor<?x2xui8>) -> tensor<?x2xi32>
  %1 = ds.linear %0, %w : (tensor<?x2xi32>, tensor<2x1xi32>) -> tensor<?x1xi32>
  return %1 : tensor<?x1xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[-130], [125]]> : tensor<2x1xi32>
  ds.yield %0 : tensor<2x1xi32>
}

// -----

// The padding of a convolution is the zero point; one of 0 needs none of that.
// CHECK-LABEL: func.func @padding
// CHECK: %[[S:.*]] = ds.reshape %{{.*}} [1, 2, 1] : (tensor<2xi32>) -> tensor<1x2x1xi32>
// CHECK: %[[T:.*]] = ds.binary mul %{{.*}}, %[[S]]
// CHECK: %[[Z:.*]] = ds.cast %{{.*}} to ui8 : (tensor<i32>) -> tensor<ui8>
// CHECK: %[[P:.*]] = ds.pad constant %arg0, %[[Z]] low [0, 0, 1] high [0, 0, 2]
// CHECK: %[[C:.*]] = ds.conv %[[P]], %{{.*}} strides [1] pads [0, 0] {{.*}} : (tensor<?x1x8xui8>, tensor<2x1x2xi8>) -> tensor<?x2x7xi32>
// CHECK: ds.binary sub %[[C]], %[[T]]
// CHECK: ds.conv %arg0, %{{.*}} strides [1] pads [1, 2]
func.func @padding(%x: tensor<?x1x5xui8>, %z: tensor<ui8>) -> (tensor<?x2x7xi32>, tensor<?x2x7xi32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<2x1x2xi32>
  %0 = ds.cast %x to i32 : (tensor<?x1x5xui8>) -> tensor<?x1x5xi32>
  %1 = ds.cast %z to i32 : (tensor<ui8>) -> tensor<i32>
  %2 = ds.binary sub %0, %1 : (tensor<?x1x5xi32>, tensor<i32>) -> tensor<?x1x5xi32>
  %3 = ds.conv %2, %w strides [1] pads [1, 2] dilations [1] groups 1 : (tensor<?x1x5xi32>, tensor<2x1x2xi32>) -> tensor<?x2x7xi32>
  %4 = ds.conv %0, %w strides [1] pads [1, 2] dilations [1] groups 1 : (tensor<?x1x5xi32>, tensor<2x1x2xi32>) -> tensor<?x2x7xi32>
  return %3, %4 : tensor<?x2x7xi32>, tensor<?x2x7xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[[1, 2]], [[-128, 127]]]> : tensor<2x1x2xi32>
  ds.yield %0 : tensor<2x1x2xi32>
}

// -----

func.func @left(%x: tensor<2x2xui8>, %i: tensor<2x2xi32>, %z: tensor<2x1xui8>, %v: tensor<2x2xui8>, %c: tensor<1x1x3xui8>)
    attributes {ds.entry} {
  %wide = ds.weight @wide : tensor<2x2xi32>
  %w = ds.weight @w : tensor<2x2xi32>
  %f = ds.weight @f : tensor<1x1x2xi32>
  %big = ds.constant dense<256> : tensor<i32>
  %0 = ds.cast %x to i32 : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %1 = ds.cast %z to i32 : (tensor<2x1xui8>) -> tensor<2x1xi32>
  %2 = ds.cast %v to i32 : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %3 = ds.cast %c to i32 : (tensor<1x1x3xui8>) -> tensor<1x1x3xi32>
  %4 = ds.binary sub %0, %1 : (tensor<2x2xi32>, tensor<2x1xi32>) -> tensor<2x2xi32>
  %5 = ds.binary sub %0, %big : (tensor<2x2xi32>, tensor<i32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: the operand is not a tensor of bytes less one number}}
  %6 = ds.linear %4, %w : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: the operand is not a tensor of bytes less one number}}
  %7 = ds.linear %5, %w : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: the operand is not a tensor of bytes less one number}}
  %8 = ds.linear %i, %w : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: the weight is no constant}}
  %9 = ds.linear %0, %2 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: the weight's range does not fit a byte}}
  %10 = ds.linear %0, %wide : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{zero point not factored out: filters beyond signed bytes need the sum of every window}}
  %11 = ds.conv %3, %f strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x3xi32>, tensor<1x1x2xi32>) -> tensor<1x1x2xi32>
  return
}
ds.recipe @wide {
  %0 = ds.constant dense<[[-128, 128], [0, 1]]> : tensor<2x2xi32>
  ds.yield %0 : tensor<2x2xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[-128, 127], [0, 1]]> : tensor<2x2xi32>
  ds.yield %0 : tensor<2x2xi32>
}
ds.recipe @f {
  %0 = ds.constant dense<[[[0, 255]]]> : tensor<1x1x2xi32>
  ds.yield %0 : tensor<1x1x2xi32>
}

// -----

// Signed bytes that two products read are moved up once.
// CHECK-LABEL: func.func @shared
// CHECK: %[[W:.*]] = ds.cast %arg0 to i16
// CHECK: %[[M:.*]] = ds.binary add %[[W]]
// CHECK: %[[U:.*]] = ds.cast %[[M]] to ui8
// CHECK-NOT: to ui8
// CHECK: ds.linear %[[U]]
// CHECK-NOT: to ui8
// CHECK: ds.linear %[[U]]
func.func @shared(%x: tensor<?x3xi8> {ds.dims = ["n", 3]}) -> (tensor<?x2xi32>, tensor<?x2xi32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<3x2xi32>
  %0 = ds.cast %x to i32 : (tensor<?x3xi8>) -> tensor<?x3xi32>
  %1 = ds.linear %0, %w : (tensor<?x3xi32>, tensor<3x2xi32>) -> tensor<?x2xi32>
  %2 = ds.cast %x to i32 : (tensor<?x3xi8>) -> tensor<?x3xi32>
  %3 = ds.linear %2, %w : (tensor<?x3xi32>, tensor<3x2xi32>) -> tensor<?x2xi32>
  return %1, %3 : tensor<?x2xi32>, tensor<?x2xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[1, -2], [3, 4], [-5, 6]]> : tensor<3x2xi32>
  ds.yield %0 : tensor<3x2xi32>
}
