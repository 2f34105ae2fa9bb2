// RUN: ds-opt %s --split-input-file --ds-fold-requantization | FileCheck %s

// CHECK-LABEL: func.func @moved
// CHECK: %[[R:.*]] = ds.reshape %arg0
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[R]] [1, 0, 2] {{.*}} tensor<2x?x4xi8>
// CHECK-NEXT: return %[[T]]
func.func @moved(%q: tensor<?x8xi8> {ds.dims = ["n", 8]}) -> tensor<2x?x4xi8> attributes {ds.entry} {
  %s = ds.constant dense<0.01> : tensor<f32>
  %z = ds.constant dense<3.0> : tensor<f32>
  %low = ds.constant dense<-128.0> : tensor<f32>
  %high = ds.constant dense<127.0> : tensor<f32>
  %0 = ds.cast %q to f32 : (tensor<?x8xi8>) -> tensor<?x8xf32>
  %1 = ds.binary sub %0, %z : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = ds.binary mul %1, %s : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %3 = ds.reshape %2 ["n", 2, 4] : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
  %4 = ds.transpose %3 [1, 0, 2] : (tensor<?x2x4xf32>) -> tensor<2x?x4xf32>
  %5 = ds.binary div %4, %s : (tensor<2x?x4xf32>, tensor<f32>) -> tensor<2x?x4xf32>
  %6 = ds.unary round %5 : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %7 = ds.binary add %6, %z : (tensor<2x?x4xf32>, tensor<f32>) -> tensor<2x?x4xf32>
  %8 = ds.binary max %7, %low : (tensor<2x?x4xf32>, tensor<f32>) -> tensor<2x?x4xf32>
  %9 = ds.binary min %8, %high : (tensor<2x?x4xf32>, tensor<f32>) -> tensor<2x?x4xf32>
  %10 = ds.cast %9 to i8 : (tensor<2x?x4xf32>) -> tensor<2x?x4xi8>
  return %10 : tensor<2x?x4xi8>
}

// -----

// Without a zero point, in the other order; numbers that something else reads stay.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: %[[X:.*]] = ds.binary mul
// CHECK-NEXT: return %arg0, %[[X]]
func.func @read_elsewhere(%q: tensor<?xui8> {ds.dims = ["n"]}) -> (tensor<?xui8>, tensor<?xf32>) attributes {ds.entry} {
  %s = ds.constant dense<0.01> : tensor<f32>
  %low = ds.constant dense<0.0> : tensor<f32>
  %high = ds.constant dense<255.0> : tensor<f32>
  %0 = ds.cast %q to f32 : (tensor<?xui8>) -> tensor<?xf32>
  %1 = ds.binary mul %s, %0 : (tensor<f32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = ds.binary div %1, %s : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %3 = ds.unary round %2 : (tensor<?xf32>) -> tensor<?xf32>
  %4 = ds.binary min %3, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %5 = ds.binary max %4, %low : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %6 = ds.cast %5 to ui8 : (tensor<?xf32>) -> tensor<?xui8>
  return %6, %1 : tensor<?xui8>, tensor<?xf32>
}

// -----

// Other scales, zero points, types and bounds are other codes; subnormal products are rounded.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: ds.cast %{{.*}} to {{i8|ui8}}
func.func @others(%q: tensor<?xi8> {ds.dims = ["n"]}) -> (tensor<?xi8>, tensor<?xi8>, tensor<?xui8>, tensor<?xi8>, tensor<?xi8>) attributes {ds.entry} {
  %s = ds.constant dense<0.01> : tensor<f32>
  %t = ds.constant dense<0.02> : tensor<f32>
  %tiny = ds.constant dense<1.0e-40> : tensor<f32>
  %z = ds.constant dense<3.0> : tensor<f32>
  %low = ds.constant dense<-128.0> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %high = ds.constant dense<127.0> : tensor<f32>
  %all = ds.constant dense<255.0> : tensor<f32>
  %0 = ds.cast %q to f32 : (tensor<?xi8>) -> tensor<?xf32>
  %1 = ds.binary mul %0, %s : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %a0 = ds.binary div %1, %t : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %a1 = ds.unary round %a0 : (tensor<?xf32>) -> tensor<?xf32>
  %a2 = ds.binary max %a1, %low : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %a3 = ds.binary min %a2, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %a = ds.cast %a3 to i8 : (tensor<?xf32>) -> tensor<?xi8>
  %b0 = ds.binary div %1, %s : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %b1 = ds.unary round %b0 : (tensor<?xf32>) -> tensor<?xf32>
  %b2 = ds.binary add %b1, %z : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %b3 = ds.binary max %b2, %low : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %b4 = ds.binary min %b3, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %b = ds.cast %b4 to i8 : (tensor<?xf32>) -> tensor<?xi8>
  %c0 = ds.binary max %b1, %zero : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %c1 = ds.binary min %c0, %all : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %c = ds.cast %c1 to ui8 : (tensor<?xf32>) -> tensor<?xui8>
  %d0 = ds.unary round %b0 : (tensor<?xf32>) -> tensor<?xf32>
  %d1 = ds.binary max %d0, %zero : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %d2 = ds.binary min %d1, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %d = ds.cast %d2 to i8 : (tensor<?xf32>) -> tensor<?xi8>
  %e0 = ds.binary mul %0, %tiny : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %e1 = ds.binary div %e0, %tiny : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %e2 = ds.unary round %e1 : (tensor<?xf32>) -> tensor<?xf32>
  %e3 = ds.binary max %e2, %low : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %e4 = ds.binary min %e3, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %e = ds.cast %e4 to i8 : (tensor<?xf32>) -> tensor<?xi8>
  return %a, %b, %c, %d, %e : tensor<?xi8>, tensor<?xi8>, tensor<?xui8>, tensor<?xi8>, tensor<?xi8>
}

// -----

// Differences to a zero point far from all codes are rounded, so that codes do not come back.
// CHECK-LABEL: func.func @far_zero_point
// CHECK: ds.binary sub
// CHECK: ds.cast %{{.*}} to i8
func.func @far_zero_point(%q: tensor<?xi8> {ds.dims = ["n"]}) -> tensor<?xi8> attributes {ds.entry} {
  %s = ds.constant dense<0.5> : tensor<f32>
  %z = ds.constant dense<1073741824.0> : tensor<f32>
  %low = ds.constant dense<-128.0> : tensor<f32>
  %high = ds.constant dense<127.0> : tensor<f32>
  %0 = ds.cast %q to f32 : (tensor<?xi8>) -> tensor<?xf32>
  %1 = ds.binary sub %0, %z : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %2 = ds.binary mul %1, %s : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %3 = ds.binary div %2, %s : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %4 = ds.unary round %3 : (tensor<?xf32>) -> tensor<?xf32>
  %5 = ds.binary add %4, %z : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %6 = ds.binary max %5, %low : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %7 = ds.binary min %6, %high : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %8 = ds.cast %7 to i8 : (tensor<?xf32>) -> tensor<?xi8>
  return %8 : tensor<?xi8>
}

// -----

// Queries stay numbers beside a cached key of the same input, whose product theirs may be merged with; else they are codes.
// CHECK-LABEL: func.func @beside_cache
// CHECK: ds.linear
// CHECK: %[[Q:.*]] = ds.reshape %{{.*}} [1, 2, 1, 4] : (tensor<1x1x8xf32>)
// CHECK-NEXT: ds.binary div %[[Q]]
// CHECK-LABEL: func.func @beside_row
// CHECK: ds.linear
// CHECK: %[[Q:.*]] = ds.reshape %{{.*}} [1, 2, 1, 4] : (tensor<1x1x8xi8>)
// CHECK-NEXT: ds.cast %[[Q]] to f32
func.func @beside_cache(%x: tensor<1x1x8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>, %past: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "p", 4]}) -> tensor<1x2x1x?xf32> attributes {ds.entry} {
  %s = ds.constant dense<0.01> : tensor<f32>
  %low = ds.constant dense<-128.0> : tensor<f32>
  %high = ds.constant dense<127.0> : tensor<f32>
  %q = ds.linear %x, %wq : (tensor<1x1x8xf32>, tensor<8x8xf32>) -> tensor<1x1x8xf32>
  %0 = ds.binary div %q, %s : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %1 = ds.unary round %0 : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %2 = ds.binary max %1, %low : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %3 = ds.binary min %2, %high : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %4 = ds.cast %3 to i8 : (tensor<1x1x8xf32>) -> tensor<1x1x8xi8>
  %5 = ds.cast %4 to f32 : (tensor<1x1x8xi8>) -> tensor<1x1x8xf32>
  %6 = ds.binary mul %5, %s : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %7 = ds.reshape %6 [1, 2, 1, 4] : (tensor<1x1x8xf32>) -> tensor<1x2x1x4xf32>
  %8 = ds.binary div %7, %s : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %9 = ds.unary round %8 : (tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
  %10 = ds.binary max %9, %low : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %11 = ds.binary min %10, %high : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %12 = ds.cast %11 to i8 : (tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xi8>
  %13 = ds.cast %12 to f32 : (tensor<1x2x1x4xi8>) -> tensor<1x2x1x4xf32>
  %14 = ds.binary mul %13, %s : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %k = ds.linear %x, %wk : (tensor<1x1x8xf32>, tensor<8x8xf32>) -> tensor<1x1x8xf32>
  %k0 = ds.reshape %k [1, 2, 1, 4] : (tensor<1x1x8xf32>) -> tensor<1x2x1x4xf32>
  %k1 = ds.concat 2 %past, %k0 : (tensor<1x2x?x4xf32>, tensor<1x2x1x4xf32>) -> tensor<1x2x?x4xf32>
  %k2 = ds.transpose %k1 [0, 1, 3, 2] : (tensor<1x2x?x4xf32>) -> tensor<1x2x4x?xf32>
  %15 = ds.matmul %14, %k2 transpose [false, false] : (tensor<1x2x1x4xf32>, tensor<1x2x4x?xf32>) -> tensor<1x2x1x?xf32>
  return %15 : tensor<1x2x1x?xf32>
}
func.func @beside_row(%x: tensor<1x1x8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>) -> tensor<1x2x1x1xf32> attributes {ds.entry} {
  %s = ds.constant dense<0.01> : tensor<f32>
  %low = ds.constant dense<-128.0> : tensor<f32>
  %high = ds.constant dense<127.0> : tensor<f32>
  %q = ds.linear %x, %wq : (tensor<1x1x8xf32>, tensor<8x8xf32>) -> tensor<1x1x8xf32>
  %0 = ds.binary div %q, %s : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %1 = ds.unary round %0 : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %2 = ds.binary max %1, %low : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %3 = ds.binary min %2, %high : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %4 = ds.cast %3 to i8 : (tensor<1x1x8xf32>) -> tensor<1x1x8xi8>
  %5 = ds.cast %4 to f32 : (tensor<1x1x8xi8>) -> tensor<1x1x8xf32>
  %6 = ds.binary mul %5, %s : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %7 = ds.reshape %6 [1, 2, 1, 4] : (tensor<1x1x8xf32>) -> tensor<1x2x1x4xf32>
  %8 = ds.binary div %7, %s : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %9 = ds.unary round %8 : (tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
  %10 = ds.binary max %9, %low : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %11 = ds.binary min %10, %high : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %12 = ds.cast %11 to i8 : (tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xi8>
  %13 = ds.cast %12 to f32 : (tensor<1x2x1x4xi8>) -> tensor<1x2x1x4xf32>
  %14 = ds.binary mul %13, %s : (tensor<1x2x1x4xf32>, tensor<f32>) -> tensor<1x2x1x4xf32>
  %k = ds.linear %x, %wk : (tensor<1x1x8xf32>, tensor<8x8xf32>) -> tensor<1x1x8xf32>
  %k0 = ds.reshape %k [1, 2, 1, 4] : (tensor<1x1x8xf32>) -> tensor<1x2x1x4xf32>
  %k2 = ds.transpose %k0 [0, 1, 3, 2] : (tensor<1x2x1x4xf32>) -> tensor<1x2x4x1xf32>
  %15 = ds.matmul %14, %k2 transpose [false, false] : (tensor<1x2x1x4xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x1x1xf32>
  return %15 : tensor<1x2x1x1xf32>
}
