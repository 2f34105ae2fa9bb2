// RUN: ds-opt %s --split-input-file --ds-narrow-integer-products --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-narrow-integer-products --verify-numerics -o /dev/null

// Bytes less their zero points fit 16 bits, a weight of such differences the narrowest type that holds them.
// CHECK-LABEL: func.func @doc
// CHECK: %[[X:.*]] = ds.cast %{{.*}} to i16
// CHECK: %[[W:.*]] = ds.weight @{{.*}} : tensor<3x4xi8>
// CHECK: ds.linear %[[X]], %[[W]] : (tensor<?x3xi16>, tensor<3x4xi8>) -> tensor<?x4xi32>
func.func @doc(%x: tensor<?x3xui8>, %zero: tensor<ui8>) -> tensor<?x4xi32> attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<?x3xui8>) -> tensor<?x3xi32>
  %1 = ds.cast %zero to i32 : (tensor<ui8>) -> tensor<i32>
  %2 = ds.binary sub %0, %1 : (tensor<?x3xi32>, tensor<i32>) -> tensor<?x3xi32>
  %w = ds.weight @w : tensor<3x4xi32>
  %3 = ds.linear %2, %w : (tensor<?x3xi32>, tensor<3x4xi32>) -> tensor<?x4xi32>
  return %3 : tensor<?x4xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[-128, 127, 0, 1], [5, -6, 7, -8], [1, 2, 3, 4]]> : tensor<3x4xi32>
  ds.yield %0 : tensor<3x4xi32>
}

// -----

// From 0 to 255, and beyond a byte.
// CHECK-LABEL: func.func @types_of_weights
// CHECK: ds.linear {{.*}} : (tensor<2x2xi16>, tensor<2x1xui8>) -> tensor<2x1xi32>
// CHECK: ds.linear {{.*}} : (tensor<2x2xi16>, tensor<2x1xi16>) -> tensor<2x1xi32>
func.func @types_of_weights(%x: tensor<2x2xi8>) -> (tensor<2x1xi32>, tensor<2x1xi32>) attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %a = ds.weight @a : tensor<2x1xi32>
  %b = ds.weight @b : tensor<2x1xi32>
  %1 = ds.linear %0, %a : (tensor<2x2xi32>, tensor<2x1xi32>) -> tensor<2x1xi32>
  %2 = ds.linear %0, %b : (tensor<2x2xi32>, tensor<2x1xi32>) -> tensor<2x1xi32>
  return %1, %2 : tensor<2x1xi32>, tensor<2x1xi32>
}
ds.recipe @a {
  %0 = ds.constant dense<[[0], [255]]> : tensor<2x1xi32>
  ds.yield %0 : tensor<2x1xi32>
}
ds.recipe @b {
  %0 = ds.constant dense<[[-1], [255]]> : tensor<2x1xi32>
  ds.yield %0 : tensor<2x1xi32>
}

// -----

// Operands of run time, and the filters of a convolution, which are its left operand.
// CHECK-LABEL: func.func @run_time
// CHECK: ds.matmul {{.*}} : (tensor<2x3xi16>, tensor<3x2xi16>) -> tensor<2x2xi32>
// CHECK: ds.conv {{.*}} : (tensor<1x1x5xi16>, tensor<1x1x2xi16>) -> tensor<1x1x4xi32>
func.func @run_time(%x: tensor<2x3xi8>, %y: tensor<3x2xi16>, %image: tensor<1x1x5xui8>, %filter: tensor<1x1x2xi8>)
    -> (tensor<2x2xi32>, tensor<1x1x4xi32>) attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %1 = ds.cast %y to i32 : (tensor<3x2xi16>) -> tensor<3x2xi32>
  %2 = ds.matmul %0, %1 transpose [false, false] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  %3 = ds.cast %image to i32 : (tensor<1x1x5xui8>) -> tensor<1x1x5xi32>
  %4 = ds.cast %filter to i32 : (tensor<1x1x2xi8>) -> tensor<1x1x2xi32>
  %5 = ds.conv %3, %4 strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x5xi32>, tensor<1x1x2xi32>) -> tensor<1x1x4xi32>
  return %2, %5 : tensor<2x2xi32>, tensor<1x1x4xi32>
}

// -----

// One number too many: 32768 is no 16-bit integer.
// CHECK-LABEL: func.func @just_beyond
// CHECK: ds.matmul {{.*}} : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
func.func @just_beyond(%x: tensor<2x3xi16>, %y: tensor<3x2xi8>) -> tensor<2x2xi32> attributes {ds.entry} {
  %one = ds.constant dense<1> : tensor<i32>
  %0 = ds.cast %x to i32 : (tensor<2x3xi16>) -> tensor<2x3xi32>
  %1 = ds.binary add %0, %one : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %2 = ds.cast %y to i32 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{product not narrowed: the left operand may be anything beyond 16 bits}}
  %3 = ds.matmul %1, %2 transpose [false, false] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %3 : tensor<2x2xi32>
}

// -----

// A sum in 8 bits wraps around; what it is read as afterwards is any byte, not the sum.
// CHECK-LABEL: func.func @wraps
// CHECK: ds.matmul {{.*}} : (tensor<2x3xi16>, tensor<3x2xi16>) -> tensor<2x2xi32>
func.func @wraps(%x: tensor<2x3xi8>, %y: tensor<3x2xi8>) -> tensor<2x2xi32> attributes {ds.entry} {
  %a = ds.binary mul %x, %x : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  %0 = ds.cast %a to i32 : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %1 = ds.cast %y to i32 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %2 = ds.matmul %0, %1 transpose [false, false] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %2 : tensor<2x2xi32>
}

// -----

// Floats hold anything, and so do 32-bit inputs.
// CHECK-LABEL: func.func @unknown
// CHECK-COUNT-2: ds.matmul {{.*}} : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
func.func @unknown(%x: tensor<2x3xf32>, %z: tensor<2x3xi32>, %y: tensor<3x2xi8>) -> (tensor<2x2xi32>, tensor<2x2xi32>) attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<2x3xf32>) -> tensor<2x3xi32>
  %1 = ds.cast %y to i32 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{product not narrowed: the left operand may be anything beyond 16 bits}}
  %2 = ds.matmul %0, %1 transpose [false, false] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  // expected-remark @+1 {{product not narrowed: the left operand may be anything beyond 16 bits}}
  %3 = ds.matmul %z, %1 transpose [false, false] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %2, %3 : tensor<2x2xi32>, tensor<2x2xi32>
}

// -----

// Pairs along K are read from rows.
// CHECK-LABEL: func.func @transposed
// CHECK: ds.matmul {{.*}} transpose [true, false] : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
func.func @transposed(%x: tensor<3x2xi8>, %y: tensor<3x2xi8>) -> tensor<2x2xi32> attributes {ds.entry} {
  %0 = ds.cast %x to i32 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %1 = ds.cast %y to i32 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{product not narrowed: the left operand is transposed}}
  %2 = ds.matmul %0, %1 transpose [true, false] : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %2 : tensor<2x2xi32>
}
