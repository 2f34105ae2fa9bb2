// RUN: ds-opt %s --split-input-file --ds-multiply-codes | FileCheck %s

// Bytes with a zero point of run time, moved by a reshape, by a weight of codes: the bias comes last, in floats.
// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[U:.*]] = ds.reshape %arg0
// CHECK-DAG: %[[Z:.*]] = ds.cast %arg1 to i32
// CHECK: %[[X:.*]] = ds.binary sub %{{.*}}, %[[Z]] : (tensor<?x4xi32>, tensor<i32>)
// CHECK: %[[P:.*]] = ds.linear %[[X]], %{{.*}} : (tensor<?x4xi32>, tensor<4x6xi32>) -> tensor<?x6xi32>
// CHECK: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK: %[[S:.*]] = ds.binary mul %{{.*}}, %{{.*}} : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK: %[[M:.*]] = ds.binary mul %[[F]], %[[S]]
// CHECK: %[[Y:.*]] = ds.binary add %[[M]], %arg2
// CHECK: return %[[Y]]
func.func @doc(%q: tensor<?x2x2xi8>, %z: tensor<i8>, %bias: tensor<6xf32>, %s: tensor<f32>) -> tensor<?x6xf32> attributes {ds.entry} {
  %0 = ds.cast %q to f32 : (tensor<?x2x2xi8>) -> tensor<?x2x2xf32>
  %1 = ds.cast %z to f32 : (tensor<i8>) -> tensor<f32>
  %2 = ds.binary sub %0, %1 : (tensor<?x2x2xf32>, tensor<f32>) -> tensor<?x2x2xf32>
  %3 = ds.binary mul %2, %s : (tensor<?x2x2xf32>, tensor<f32>) -> tensor<?x2x2xf32>
  %4 = ds.reshape %3 ["d0", 4] : (tensor<?x2x2xf32>) -> tensor<?x4xf32>
  %w = ds.weight @w : tensor<4x6xi8>
  %t = ds.weight @t : tensor<1x6xf32>
  %5 = ds.linear %4, %w, %bias scales %t : (tensor<?x4xf32>, tensor<4x6xi8>, tensor<6xf32>, tensor<1x6xf32>) -> tensor<?x6xf32>
  return %5 : tensor<?x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 24] : tensor<4x6xi8>
  ds.yield %0 : tensor<4x6xi8>
}
ds.recipe @t {
  %0 = ds.source "m" [24, 24] : tensor<1x6xf32>
  ds.yield %0 : tensor<1x6xf32>
}

// -----

// Filters of unsigned codes around 128.
// CHECK-LABEL: func.func @conv
// CHECK: %[[X:.*]] = ds.binary sub %{{.*}}, %{{.*}} : (tensor<1x2x5xi32>, tensor<i32>)
// CHECK: %[[W:.*]] = ds.weight @w.integers : tensor<3x2x2xi32>
// CHECK: %[[P:.*]] = ds.conv %[[X]], %[[W]] strides [1] pads [1, 0] dilations [1] groups 1
// CHECK: ds.reshape %{{.*}} [1, 3, 1] : (tensor<3xf32>)
// CHECK: ds.cast %[[P]] to f32
// CHECK: ds.recipe @w.integers
// CHECK: ds.binary sub %{{.*}}, %{{.*}} : (tensor<3x2x2xi32>, tensor<i32>)
// CHECK: ds.recipe @w.scales
func.func @conv(%q: tensor<1x2x5xui8>) -> tensor<1x3x5xf32> attributes {ds.entry} {
  %z = ds.constant dense<3.0> : tensor<f32>
  %s = ds.constant dense<0.5> : tensor<1x1x1xf32>
  %0 = ds.cast %q to f32 : (tensor<1x2x5xui8>) -> tensor<1x2x5xf32>
  %1 = ds.binary sub %0, %z : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  %2 = ds.binary mul %s, %1 : (tensor<1x1x1xf32>, tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  %w = ds.weight @w : tensor<3x2x2xf32>
  %3 = ds.conv %2, %w strides [1] pads [1, 0] dilations [1] groups 1 : (tensor<1x2x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x5xf32>
  return %3 : tensor<1x3x5xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 12] : tensor<3x2x2xui8>
  %1 = ds.cast %0 to f32 : (tensor<3x2x2xui8>) -> tensor<3x2x2xf32>
  %2 = ds.constant dense<128.0> : tensor<f32>
  %3 = ds.binary sub %1, %2 : (tensor<3x2x2xf32>, tensor<f32>) -> tensor<3x2x2xf32>
  %4 = ds.source "m" [12, 12] : tensor<3x1x1xf32>
  %5 = ds.binary mul %3, %4 : (tensor<3x2x2xf32>, tensor<3x1x1xf32>) -> tensor<3x2x2xf32>
  ds.yield %5 : tensor<3x2x2xf32>
}

// -----

// A zero point for each column; two operands of run time, one of them transposed.
// CHECK-LABEL: func.func @zero_points
// CHECK: ds.linear %{{.*}}, %{{.*}} : (tensor<?x4xi32>, tensor<4x6xi32>) -> tensor<?x6xi32>
// CHECK: ds.matmul %{{.*}}, %{{.*}} transpose [false, true] : (tensor<?x4xi32>, tensor<?x4xi32>) -> tensor<?x?xi32>
// An inner size that is not known could be too large for sums of 32 bits.
// CHECK: ds.matmul %{{.*}}, %{{.*}} transpose [true, false] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<4x4xf32>
func.func @zero_points(%q: tensor<?x4xui8>, %s: tensor<f32>) -> (tensor<?x6xf32>, tensor<?x?xf32>, tensor<4x4xf32>) attributes {ds.entry} {
  %0 = ds.cast %q to f32 : (tensor<?x4xui8>) -> tensor<?x4xf32>
  %1 = ds.binary mul %0, %s : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %w = ds.weight @w : tensor<4x6xi8>
  %t = ds.weight @t : tensor<1x6xf32>
  %z = ds.weight @z : tensor<1x6xi8>
  %2 = ds.linear %1, %w scales %t zero_points %z : (tensor<?x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>, tensor<1x6xi8>) -> tensor<?x6xf32>
  %3 = ds.matmul %1, %1 transpose [false, true] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>
  %4 = ds.matmul %1, %1 transpose [true, false] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<4x4xf32>
  return %2, %3, %4 : tensor<?x6xf32>, tensor<?x?xf32>, tensor<4x4xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 24] : tensor<4x6xi8>
  ds.yield %0 : tensor<4x6xi8>
}
ds.recipe @t {
  %0 = ds.source "m" [24, 24] : tensor<1x6xf32>
  ds.yield %0 : tensor<1x6xf32>
}
ds.recipe @z {
  %0 = ds.source "m" [48, 6] : tensor<1x6xi8>
  ds.yield %0 : tensor<1x6xi8>
}

// -----

// Floats, a zero point with a fraction, one beyond its type, scales of rows, filters with scales of channels.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: xi32>
func.func @kept(%x: tensor<2x4xf32>, %q: tensor<2x4xui8>, %rows: tensor<2x1xf32>, %i: tensor<1x2x5xui8>) -> (
    tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<1x3x4xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x6xi8>
  %t = ds.weight @t : tensor<1x6xf32>
  %f = ds.weight @f : tensor<3x2x2xf32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %big = ds.constant dense<256.0> : tensor<f32>
  %0 = ds.linear %x, %w scales %t : (tensor<2x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %1 = ds.cast %q to f32 : (tensor<2x4xui8>) -> tensor<2x4xf32>
  %2 = ds.binary sub %1, %half : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %3 = ds.binary mul %2, %half : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %4 = ds.linear %3, %w scales %t : (tensor<2x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %5 = ds.binary sub %1, %big : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %6 = ds.binary mul %5, %half : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %7 = ds.linear %6, %w scales %t : (tensor<2x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %8 = ds.binary mul %1, %rows : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %9 = ds.linear %8, %w scales %t : (tensor<2x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %10 = ds.cast %i to f32 : (tensor<1x2x5xui8>) -> tensor<1x2x5xf32>
  %11 = ds.binary mul %10, %half : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  %12 = ds.conv %11, %f strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x2x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x4xf32>
  return %0, %4, %7, %9, %12 : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<1x3x4xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 24] : tensor<4x6xi8>
  ds.yield %0 : tensor<4x6xi8>
}
ds.recipe @t {
  %0 = ds.source "m" [24, 24] : tensor<1x6xf32>
  ds.yield %0 : tensor<1x6xf32>
}
ds.recipe @f {
  %0 = ds.source "m" [0, 12] : tensor<3x2x2xi8>
  %1 = ds.cast %0 to f32 : (tensor<3x2x2xi8>) -> tensor<3x2x2xf32>
  %2 = ds.source "m" [12, 8] : tensor<2x1xf32>
  %3 = ds.binary mul %1, %2 : (tensor<3x2x2xf32>, tensor<2x1xf32>) -> tensor<3x2x2xf32>
  ds.yield %3 : tensor<3x2x2xf32>
}

// -----

// Two scales that are constants become one number.
// CHECK-LABEL: func.func @numbers
// CHECK: %[[P:.*]] = ds.matmul
// CHECK-NEXT: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK-NEXT: %[[S:.*]] = ds.constant dense<1.250000e-01> : tensor<f32>
// CHECK-NEXT: %[[Y:.*]] = ds.binary mul %[[F]], %[[S]]
// CHECK-NEXT: return %[[Y]]
func.func @numbers(%q: tensor<?x4xui8>, %k: tensor<4x?xui8>) -> tensor<?x?xf32> attributes {ds.entry} {
  %s = ds.constant dense<0.5> : tensor<f32>
  %t = ds.constant dense<0.25> : tensor<f32>
  %0 = ds.cast %q to f32 : (tensor<?x4xui8>) -> tensor<?x4xf32>
  %1 = ds.binary mul %0, %s : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %2 = ds.cast %k to f32 : (tensor<4x?xui8>) -> tensor<4x?xf32>
  %3 = ds.binary mul %2, %t : (tensor<4x?xf32>, tensor<f32>) -> tensor<4x?xf32>
  %4 = ds.matmul %1, %3 transpose [false, false] : (tensor<?x4xf32>, tensor<4x?xf32>) -> tensor<?x?xf32>
  return %4 : tensor<?x?xf32>
}

// -----

// Of two numbers whose product no float holds, one is multiplied after the other: sums of 0 stay 0.
// CHECK-LABEL: func.func @beyond
// CHECK-DAG: %[[A:.*]] = ds.constant dense<1.000000e+35>
// CHECK-DAG: %[[B:.*]] = ds.constant dense<1.000000e+10>
// CHECK: %[[F:.*]] = ds.cast %{{.*}} to f32
// CHECK: %[[M:.*]] = ds.binary mul %[[F]], %[[B]]
// CHECK: ds.binary mul %[[M]], %[[A]]
func.func @beyond(%p: tensor<3x4xi8>, %q: tensor<4x5xi8>) -> tensor<3x5xf32> attributes {ds.entry} {
  %s = ds.constant dense<1.0e+35> : tensor<f32>
  %t = ds.constant dense<1.0e+10> : tensor<f32>
  %0 = ds.cast %p to f32 : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %1 = ds.binary mul %0, %s : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %2 = ds.cast %q to f32 : (tensor<4x5xi8>) -> tensor<4x5xf32>
  %3 = ds.binary mul %2, %t : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
  %4 = ds.matmul %1, %3 transpose [false, false] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %4 : tensor<3x5xf32>
}
