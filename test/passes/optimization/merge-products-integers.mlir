// RUN: ds-opt %s --split-input-file --ds-merge-products | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-merge-products --verify-diagnostics -o /dev/null
// RUN: ds-opt %s --split-input-file --ds-merge-products --verify-numerics -o /dev/null 2>/dev/null

// Products of integers take along what makes numbers of their sums: constants stand side by side, and what they share
// is multiplied by them for each column.
// CHECK-LABEL: func.func @steps
// CHECK: %[[P:.*]] = ds.linear %arg0, %{{.*}} : (tensor<1x?x3xui8>, tensor<3x4xi8>) -> tensor<1x?x4xi32>
// CHECK-NOT: ds.linear
// CHECK: %[[Z:.*]] = ds.binary mul %arg1, %{{.*}} : (tensor<i32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK: %[[D:.*]] = ds.binary sub %[[P]], %[[Z]]
// CHECK: %[[N:.*]] = ds.cast %[[D]] to f32
// CHECK: %[[C:.*]] = ds.constant {{.*}}dense<[5.000000e-01, 5.000000e-01, 2.500000e-01, 2.500000e-01]>
// CHECK: %[[S:.*]] = ds.binary mul %arg2, %[[C]]
// CHECK: %[[M:.*]] = ds.binary mul %[[N]], %[[S]]
// CHECK: %[[Y:.*]] = ds.binary add %{{.*}}, %[[M]] : (tensor<4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
// CHECK: ds.slice %[[Y]] starts [0, 0, 0]
// CHECK: ds.slice %[[Y]] starts [0, 0, 2]
func.func @steps(%x: tensor<1x?x3xui8> {ds.dims = [1, "t", 3]}, %z: tensor<i32>, %s: tensor<f32>, %w: tensor<1x1x?x2xf32> {ds.dims = [1, 1, "t", 2]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xi8>
  %wk = ds.weight @k : tensor<3x2xi8>
  %nq = ds.constant dense<[6, 6]> : tensor<2xi32>
  %nk = ds.constant dense<[9, 9]> : tensor<2xi32>
  %cq = ds.constant dense<0.5> : tensor<f32>
  %ck = ds.constant dense<0.25> : tensor<f32>
  %bq = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %bk = ds.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xui8>, tensor<3x2xi8>) -> tensor<1x?x2xi32>
  %1 = ds.linear %x, %wk : (tensor<1x?x3xui8>, tensor<3x2xi8>) -> tensor<1x?x2xi32>
  %2 = ds.binary mul %z, %nq : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  %3 = ds.binary sub %0, %2 : (tensor<1x?x2xi32>, tensor<2xi32>) -> tensor<1x?x2xi32>
  %4 = ds.cast %3 to f32 : (tensor<1x?x2xi32>) -> tensor<1x?x2xf32>
  %5 = ds.binary mul %s, %cq : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %6 = ds.binary mul %4, %5 : (tensor<1x?x2xf32>, tensor<f32>) -> tensor<1x?x2xf32>
  %7 = ds.binary add %bq, %6 : (tensor<2xf32>, tensor<1x?x2xf32>) -> tensor<1x?x2xf32>
  %8 = ds.binary mul %z, %nk : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  %9 = ds.binary sub %1, %8 : (tensor<1x?x2xi32>, tensor<2xi32>) -> tensor<1x?x2xi32>
  %10 = ds.cast %9 to f32 : (tensor<1x?x2xi32>) -> tensor<1x?x2xf32>
  %11 = ds.binary mul %s, %ck : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %12 = ds.binary mul %10, %11 : (tensor<1x?x2xf32>, tensor<f32>) -> tensor<1x?x2xf32>
  %13 = ds.binary add %bk, %12 : (tensor<2xf32>, tensor<1x?x2xf32>) -> tensor<1x?x2xf32>
  %14 = ds.reshape %7 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %15 = ds.reshape %13 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %16 = ds.attention %14, %15, %w scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %16 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<2> : tensor<3x2xi8>
  ds.yield %0 : tensor<3x2xi8>
}
ds.recipe @k {
  %0 = ds.constant dense<3> : tensor<3x2xi8>
  ds.yield %0 : tensor<3x2xi8>
}

// -----

// Not where they differ.
// CHECK-LABEL: func.func @other_steps
// CHECK-COUNT-2: ds.linear
func.func @other_steps(%x: tensor<1x?x3xui8> {ds.dims = [1, "t", 3]}, %z: tensor<i32>, %s: tensor<f32>, %w: tensor<1x1x?x2xf32> {ds.dims = [1, 1, "t", 2]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xi8>
  %wk = ds.weight @k : tensor<3x2xi8>
  %nq = ds.constant dense<[6, 6]> : tensor<2xi32>
  %nk = ds.constant dense<[9, 9]> : tensor<2xi32>
  %cq = ds.constant dense<0.5> : tensor<f32>
  %ck = ds.constant dense<0.25> : tensor<f32>
  %bq = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %bk = ds.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xui8>, tensor<3x2xi8>) -> tensor<1x?x2xi32>
  // expected-remark @+1 {{its sums become numbers in another way}}
  %1 = ds.linear %x, %wk : (tensor<1x?x3xui8>, tensor<3x2xi8>) -> tensor<1x?x2xi32>
  %2 = ds.binary mul %z, %nq : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  %3 = ds.binary sub %0, %2 : (tensor<1x?x2xi32>, tensor<2xi32>) -> tensor<1x?x2xi32>
  %4 = ds.cast %3 to f32 : (tensor<1x?x2xi32>) -> tensor<1x?x2xf32>
  %5 = ds.binary mul %s, %cq : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %6 = ds.binary mul %4, %5 : (tensor<1x?x2xf32>, tensor<f32>) -> tensor<1x?x2xf32>
  %7 = ds.binary add %bq, %6 : (tensor<2xf32>, tensor<1x?x2xf32>) -> tensor<1x?x2xf32>
  %8 = ds.binary mul %z, %nk : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  %9 = ds.binary sub %1, %8 : (tensor<1x?x2xi32>, tensor<2xi32>) -> tensor<1x?x2xi32>
  %10 = ds.cast %9 to f32 : (tensor<1x?x2xi32>) -> tensor<1x?x2xf32>
  %11 = ds.binary mul %s, %ck : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %12 = ds.binary mul %10, %11 : (tensor<1x?x2xf32>, tensor<f32>) -> tensor<1x?x2xf32>
  %13 = ds.binary sub %bk, %12 : (tensor<2xf32>, tensor<1x?x2xf32>) -> tensor<1x?x2xf32>
  %14 = ds.reshape %7 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %15 = ds.reshape %13 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %16 = ds.attention %14, %15, %w scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %16 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<2> : tensor<3x2xi8>
  ds.yield %0 : tensor<3x2xi8>
}
ds.recipe @k {
  %0 = ds.constant dense<3> : tensor<3x2xi8>
  ds.yield %0 : tensor<3x2xi8>
}

// -----

// So do products whose results are quantized one by one: a scale each becomes one for each column. What says which
// belong together is attention in parts, whose steps read the windows in its kernel.
// CHECK-LABEL: func.func @codes
// CHECK: %[[P:.*]] = ds.linear %arg0, %{{.*}} -> tensor<1x?x8xi32>
// CHECK-NEXT: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK: %[[S:.*]] = ds.constant {{.*}}dense<[5.000000e-01, 5.000000e-01, 5.000000e-01, 5.000000e-01, 2.500000e-01, 2.500000e-01, 2.500000e-01, 2.500000e-01]>
// CHECK: %[[D:.*]] = ds.binary div %[[F]], %[[S]]
// CHECK: %[[R:.*]] = ds.unary round %[[D]]
// CHECK: %[[C:.*]] = ds.cast %[[R]] to i8
// CHECK: ds.slice %[[C]] starts [0, 0, 0]
// CHECK: ds.slice %[[C]] starts [0, 0, 4]
// CHECK-NOT: ds.linear
// CHECK: return
func.func @codes(%x: tensor<1x?x3xui8> {ds.dims = [1, "t", 3]}, %v: tensor<1x2x?x2xf32> {ds.dims = [1, 2, "t", 2]})
    -> tensor<1x2x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x4xi8>
  %wk = ds.weight @k : tensor<3x4xi8>
  %sq = ds.constant dense<0.5> : tensor<f32>
  %sk = ds.constant dense<0.25> : tensor<f32>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xui8>, tensor<3x4xi8>) -> tensor<1x?x4xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x?x4xi32>) -> tensor<1x?x4xf32>
  %2 = ds.binary div %1, %sq : (tensor<1x?x4xf32>, tensor<f32>) -> tensor<1x?x4xf32>
  %3 = ds.unary round %2 : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %4 = ds.cast %3 to i8 : (tensor<1x?x4xf32>) -> tensor<1x?x4xi8>
  %5 = ds.linear %x, %wk : (tensor<1x?x3xui8>, tensor<3x4xi8>) -> tensor<1x?x4xi32>
  %6 = ds.cast %5 to f32 : (tensor<1x?x4xi32>) -> tensor<1x?x4xf32>
  %7 = ds.binary div %6, %sk : (tensor<1x?x4xf32>, tensor<f32>) -> tensor<1x?x4xf32>
  %8 = ds.unary round %7 : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %9 = ds.cast %8 to i8 : (tensor<1x?x4xf32>) -> tensor<1x?x4xi8>
  %10 = ds.reshape %4 [1, "t", 2, 2] : (tensor<1x?x4xi8>) -> tensor<1x?x2x2xi8>
  %11 = ds.transpose %10 [0, 2, 1, 3] : (tensor<1x?x2x2xi8>) -> tensor<1x2x?x2xi8>
  %12 = ds.cast %11 to i32 : (tensor<1x2x?x2xi8>) -> tensor<1x2x?x2xi32>
  %13 = ds.reshape %9 [1, "t", 2, 2] : (tensor<1x?x4xi8>) -> tensor<1x?x2x2xi8>
  %14 = ds.transpose %13 [0, 2, 3, 1] : (tensor<1x?x2x2xi8>) -> tensor<1x2x2x?xi8>
  %15 = ds.cast %14 to i32 : (tensor<1x2x2x?xi8>) -> tensor<1x2x2x?xi32>
  %16 = ds.matmul %12, %15 transpose [false, false] : (tensor<1x2x?x2xi32>, tensor<1x2x2x?xi32>) -> tensor<1x2x?x?xi32>
  %17 = ds.cast %16 to f32 : (tensor<1x2x?x?xi32>) -> tensor<1x2x?x?xf32>
  %18 = ds.softmax %17 axis 3 log false : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  %19 = ds.matmul %18, %v transpose [false, false] : (tensor<1x2x?x?xf32>, tensor<1x2x?x2xf32>) -> tensor<1x2x?x2xf32>
  return %19 : tensor<1x2x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<2> : tensor<3x4xi8>
  ds.yield %0 : tensor<3x4xi8>
}
ds.recipe @k {
  %0 = ds.constant dense<3> : tensor<3x4xi8>
  ds.yield %0 : tensor<3x4xi8>
}

// -----

// Not where one is cut off and the other is rounded.
// CHECK-LABEL: func.func @other_codes
// CHECK-COUNT-2: ds.linear
func.func @other_codes(%x: tensor<1x?x3xui8> {ds.dims = [1, "t", 3]}, %v: tensor<1x2x?x2xf32> {ds.dims = [1, 2, "t", 2]})
    -> tensor<1x2x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x4xi8>
  %wk = ds.weight @k : tensor<3x4xi8>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xui8>, tensor<3x4xi8>) -> tensor<1x?x4xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x?x4xi32>) -> tensor<1x?x4xf32>
  %2 = ds.unary round %1 : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %3 = ds.cast %2 to i8 : (tensor<1x?x4xf32>) -> tensor<1x?x4xi8>
  // expected-remark @+1 {{its sums become numbers in another way}}
  %4 = ds.linear %x, %wk : (tensor<1x?x3xui8>, tensor<3x4xi8>) -> tensor<1x?x4xi32>
  %5 = ds.cast %4 to f32 : (tensor<1x?x4xi32>) -> tensor<1x?x4xf32>
  %6 = ds.unary floor %5 : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %7 = ds.cast %6 to i8 : (tensor<1x?x4xf32>) -> tensor<1x?x4xi8>
  %8 = ds.reshape %3 [1, "t", 2, 2] : (tensor<1x?x4xi8>) -> tensor<1x?x2x2xi8>
  %9 = ds.transpose %8 [0, 2, 1, 3] : (tensor<1x?x2x2xi8>) -> tensor<1x2x?x2xi8>
  %10 = ds.cast %9 to i32 : (tensor<1x2x?x2xi8>) -> tensor<1x2x?x2xi32>
  %11 = ds.reshape %7 [1, "t", 2, 2] : (tensor<1x?x4xi8>) -> tensor<1x?x2x2xi8>
  %12 = ds.transpose %11 [0, 2, 3, 1] : (tensor<1x?x2x2xi8>) -> tensor<1x2x2x?xi8>
  %13 = ds.cast %12 to i32 : (tensor<1x2x2x?xi8>) -> tensor<1x2x2x?xi32>
  %14 = ds.matmul %10, %13 transpose [false, false] : (tensor<1x2x?x2xi32>, tensor<1x2x2x?xi32>) -> tensor<1x2x?x?xi32>
  %15 = ds.cast %14 to f32 : (tensor<1x2x?x?xi32>) -> tensor<1x2x?x?xf32>
  %16 = ds.softmax %15 axis 3 log false : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  %17 = ds.matmul %16, %v transpose [false, false] : (tensor<1x2x?x?xf32>, tensor<1x2x?x2xf32>) -> tensor<1x2x?x2xf32>
  return %17 : tensor<1x2x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<2> : tensor<3x4xi8>
  ds.yield %0 : tensor<3x4xi8>
}
ds.recipe @k {
  %0 = ds.constant dense<3> : tensor<3x4xi8>
  ds.yield %0 : tensor<3x4xi8>
}
