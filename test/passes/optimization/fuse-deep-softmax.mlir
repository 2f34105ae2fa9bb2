// Attention in parts, whose scores are sums of integers: bits are compared by
// test/integration/statically_quantized_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// Windows and what makes codes before each operand, all between the products, and what follows.
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: ds.constant
// CHECK-NEXT: ds.constant
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: %[[QT:.*]] = ds.transpose %arg0 [0, 2, 1, 3]
// CHECK-NEXT: %[[Q:.*]] = ds.cast %[[QT]] to i32
// CHECK-NEXT: %[[KT:.*]] = ds.transpose %arg1 [0, 2, 3, 1]
// CHECK-NEXT: %[[K:.*]] = ds.cast %[[KT]] to i32
// CHECK-NEXT: %[[P:.*]] = ds.matmul %[[Q]], %[[K]]
// CHECK-NEXT: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK-NEXT: %[[A:.*]] = ds.binary add %[[F]], %arg3
// CHECK-NEXT: %[[S:.*]] = ds.softmax %[[A]] axis 3
// CHECK-NEXT: %[[D:.*]] = ds.binary div %[[S]]
// CHECK-NEXT: %[[R:.*]] = ds.unary round %[[D]]
// CHECK-NEXT: %[[V:.*]] = ds.transpose %arg2 [0, 2, 1, 3]
// CHECK-NEXT: %[[C:.*]] = ds.matmul %[[R]], %[[V]]
// CHECK-NEXT: %[[E:.*]] = ds.binary mul %[[C]]
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[E]] [0, 2, 1, 3]
// CHECK-NEXT: ds.yield %[[T]]
// CHECK: return %[[Y]]
func.func @doc(%q: tensor<1x?x2x4xi8> {ds.dims = [1, "t", 2, 4]}, %k: tensor<1x?x2x4xi8> {ds.dims = [1, "t", 2, 4]},
               %v: tensor<1x?x2x4xf32> {ds.dims = [1, "t", 2, 4]}, %m: tensor<1x1x1x?xf32> {ds.dims = [1, 1, 1, "t"]})
    -> tensor<1x?x2x4xf32> attributes {ds.entry} {
  %0 = ds.constant dense<0.125> : tensor<f32>
  %1 = ds.constant dense<3.0> : tensor<f32>
  %2 = ds.transpose %v [0, 2, 1, 3] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %3 = ds.transpose %q [0, 2, 1, 3] : (tensor<1x?x2x4xi8>) -> tensor<1x2x?x4xi8>
  %4 = ds.cast %3 to i32 : (tensor<1x2x?x4xi8>) -> tensor<1x2x?x4xi32>
  %5 = ds.transpose %k [0, 2, 3, 1] : (tensor<1x?x2x4xi8>) -> tensor<1x2x4x?xi8>
  %6 = ds.cast %5 to i32 : (tensor<1x2x4x?xi8>) -> tensor<1x2x4x?xi32>
  %7 = ds.matmul %4, %6 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x?x4xi32>, tensor<1x2x4x?xi32>) -> tensor<1x2x?x?xi32>
  %8 = ds.cast %7 to f32 : (tensor<1x2x?x?xi32>) -> tensor<1x2x?x?xf32>
  %9 = ds.binary add %8, %m : (tensor<1x2x?x?xf32>, tensor<1x1x1x?xf32>) -> tensor<1x2x?x?xf32>
  %10 = ds.softmax %9 axis 3 log false : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  %11 = ds.binary div %10, %0 : (tensor<1x2x?x?xf32>, tensor<f32>) -> tensor<1x2x?x?xf32>
  %12 = ds.unary round %11 : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  %13 = ds.matmul %12, %2 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x?x?xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %14 = ds.binary mul %13, %1 : (tensor<1x2x?x4xf32>, tensor<f32>) -> tensor<1x2x?x4xf32>
  %15 = ds.transpose %14 [0, 2, 1, 3] : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32>
  return %15 : tensor<1x?x2x4xf32>
}

// -----

// Not where something else reads the scores, nor what has no heads, nor scores of floats, which ds.attention is for.
// CHECK-LABEL: func.func @apart
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.softmax
// CHECK-NEXT: ds.matmul
// CHECK-NEXT: ds.fused
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.softmax
// CHECK-NEXT: ds.matmul
// CHECK-NEXT: ds.matmul
// CHECK-NEXT: ds.softmax
// CHECK-NEXT: ds.matmul
func.func @apart(%q: tensor<1x2x3x4xi32>, %k: tensor<1x2x4x5xi32>, %v: tensor<1x2x5x4xf32>, %qm: tensor<3x4xi32>,
                 %km: tensor<4x5xi32>, %vm: tensor<5x4xf32>, %qf: tensor<1x2x3x4xf32>, %kf: tensor<1x2x4x5xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x5xi32>, tensor<3x4xf32>, tensor<1x2x3x4xf32>) attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x4xi32>, tensor<1x2x4x5xi32>) -> tensor<1x2x3x5xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x3x5xi32>) -> tensor<1x2x3x5xf32>
  // expected-remark @+2 {{does not join the region of 'ds.matmul': it is not elementwise}}
  // expected-remark @+1 {{does not share a kernel with the products around it: something else reads the scores}}
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %3 = ds.matmul %2, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  %4 = ds.matmul %qm, %km transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<3x4xi32>, tensor<4x5xi32>) -> tensor<3x5xi32>
  %5 = ds.cast %4 to f32 : (tensor<3x5xi32>) -> tensor<3x5xf32>
  // expected-remark @+2 {{does not join the region of 'ds.matmul': it is not elementwise}}
  // expected-remark @+1 {{does not share a kernel with the products around it: there are no heads}}
  %6 = ds.softmax %5 axis 1 log false : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %7 = ds.matmul %6, %vm transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %8 = ds.matmul %qf, %kf transpose [false, false] : (tensor<1x2x3x4xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x3x5xf32>
  // expected-remark @+1 {{does not join the region of 'ds.matmul': it is not elementwise}}
  %9 = ds.softmax %8 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %10 = ds.matmul %9, %v transpose [false, false] : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  return %3, %0, %7, %10 : tensor<1x2x3x4xf32>, tensor<1x2x3x5xi32>, tensor<3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Nor where keys are one head's for all heads of queries, or a product has no schedule.
// CHECK-LABEL: func.func @other_heads
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.softmax
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.softmax
// CHECK-NEXT: ds.matmul
// CHECK-NEXT: return
func.func @other_heads(%q: tensor<1x2x3x4xi32>, %k: tensor<1x1x4x5xi32>, %l: tensor<1x2x4x5xi32>, %v: tensor<1x2x5x4xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x4xi32>, tensor<1x1x4x5xi32>) -> tensor<1x2x3x5xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x3x5xi32>) -> tensor<1x2x3x5xf32>
  // expected-remark @+2 {{does not join the region of 'ds.matmul': it is not elementwise}}
  // expected-remark @+1 {{heads of a product's operands are repeated}}
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %3 = ds.matmul %2, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  %4 = ds.matmul %q, %l transpose [false, false] : (tensor<1x2x3x4xi32>, tensor<1x2x4x5xi32>) -> tensor<1x2x3x5xi32>
  %5 = ds.cast %4 to f32 : (tensor<1x2x3x5xi32>) -> tensor<1x2x3x5xf32>
  // expected-remark @+2 {{does not join the region of 'ds.matmul': it is not elementwise}}
  // expected-remark @+1 {{a product has no schedule, or its left operand is moved}}
  %6 = ds.softmax %5 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %7 = ds.matmul %6, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  return %3, %7 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Values that are a weight are read as they are; floats that something else reads, too, are not scratch.
// CHECK-LABEL: func.func @weight
// CHECK: ds.fused
// CHECK: ds.softmax
// CHECK-NEXT: ds.matmul %{{.*}}, %{{.*}} transpose
// CHECK-NEXT: ds.yield
// CHECK-LABEL: func.func @shown
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.softmax
func.func @weight(%q: tensor<1x2x3x4xi32>, %k: tensor<1x2x4x5xi32>) -> tensor<1x2x3x4xf32> attributes {ds.entry} {
  %v = ds.weight @v : tensor<1x2x5x4xf32>
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x4xi32>, tensor<1x2x4x5xi32>) -> tensor<1x2x3x5xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x3x5xi32>) -> tensor<1x2x3x5xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %3 = ds.matmul %2, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  return %3 : tensor<1x2x3x4xf32>
}
ds.recipe @v {
  %0 = ds.source "m" [0, 160] : tensor<1x2x5x4xf32>
  ds.yield %0 : tensor<1x2x5x4xf32>
}

func.func @shown(%q: tensor<1x2x3x4xi32>, %k: tensor<1x2x4x5xi32>, %v: tensor<1x2x5x4xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x5xf32>) attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x4xi32>, tensor<1x2x4x5xi32>) -> tensor<1x2x3x5xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x3x5xi32>) -> tensor<1x2x3x5xf32>
  // expected-remark @+2 {{does not join the region of 'ds.matmul': it is not elementwise}}
  // expected-remark @+1 {{something else reads the scores}}
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %3 = ds.matmul %2, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  return %3, %1 : tensor<1x2x3x4xf32>, tensor<1x2x3x5xf32>
}
