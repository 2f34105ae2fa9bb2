// RUN: ds-opt %s --split-input-file --ds-merge-products | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-merge-products --verify-diagnostics -o /dev/null
// RUN: ds-opt %s --split-input-file --ds-merge-products --verify-numerics -o /dev/null 2>/dev/null

// CHECK: ds.recipe @k.merged {
// CHECK-NEXT: %[[A:.*]] = ds.constant
// CHECK-NEXT: %[[B:.*]] = ds.constant
// CHECK-NEXT: ds.concat 1 %[[A]], %[[B]] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[W:.*]] = ds.weight @k.merged
// CHECK-SAME: tensor<4x16xf32>
// CHECK-NEXT: %[[Y:.*]] = ds.linear %arg1, %[[W]] : (tensor<1x?x4xf32>, tensor<4x16xf32>) -> tensor<1x?x16xf32>
// CHECK-NEXT: %[[K:.*]] = ds.slice %[[Y]] starts [0, 0, 0] sizes [1, "t", 8] steps [1, 1, 1]
// CHECK-NEXT: %[[V:.*]] = ds.slice %[[Y]] starts [0, 0, 8] sizes [1, "t", 8] steps [1, 1, 1]
// CHECK: ds.reshape %[[K]] [1, "t", 2, 4]
// CHECK: ds.reshape %[[V]] [1, "t", 2, 4]
// CHECK-NOT: ds.recipe @k {
// CHECK-NOT: ds.recipe @v {
func.func @doc(%q: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "s", 4]}, %x: tensor<1x?x4xf32> {ds.dims = [1, "t", 4]})
    -> tensor<1x2x?x4xf32> attributes {ds.entry} {
  %wk = ds.weight @k : tensor<4x8xf32>
  %wv = ds.weight @v : tensor<4x8xf32>
  %0 = ds.linear %x, %wk : (tensor<1x?x4xf32>, tensor<4x8xf32>) -> tensor<1x?x8xf32>
  %1 = ds.linear %x, %wv : (tensor<1x?x4xf32>, tensor<4x8xf32>) -> tensor<1x?x8xf32>
  %2 = ds.reshape %0 [1, "t", 2, 4] : (tensor<1x?x8xf32>) -> tensor<1x?x2x4xf32>
  %3 = ds.reshape %1 [1, "t", 2, 4] : (tensor<1x?x8xf32>) -> tensor<1x?x2x4xf32>
  %4 = ds.transpose %2 [0, 2, 1, 3] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %5 = ds.transpose %3 [0, 2, 1, 3] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %6 = ds.attention %q, %4, %5 scale 0.5
      : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %6 : tensor<1x2x?x4xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<4x8xf32>
  ds.yield %0 : tensor<4x8xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.25> : tensor<4x8xf32>
  ds.yield %0 : tensor<4x8xf32>
}

// -----

// One bias of two: the other product adds -0, which changes nothing.
// CHECK-LABEL: func.func @bias
// CHECK-DAG: %[[B:.*]] = ds.constant {{.*}}dense<[1.000000e+00, 1.000000e+00, -0.000000e+00, -0.000000e+00]> : tensor<4xf32>
// CHECK: ds.linear %arg1, %{{.*}}, %[[B]] :
func.func @bias(%q: tensor<1x1x?x2xf32> {ds.dims = [1, 1, "s", 2]}, %x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  %b = ds.constant dense<1.0> : tensor<2xf32>
  %0 = ds.linear %x, %wk, %b : (tensor<1x?x3xf32>, tensor<3x2xf32>, tensor<2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %3 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.attention %q, %2, %3 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %4 : tensor<1x1x?x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.25> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// What is read as it is needs its own buffer; two others still join.
// CHECK-LABEL: func.func @in_memory
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<1x?x3xf32>, tensor<3x4xf32>) -> tensor<1x?x4xf32>
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
// CHECK-NOT: ds.linear
func.func @in_memory(%x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]}) -> (tensor<1x1x?x2xf32>, tensor<1x?x2xf32>)
    attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xf32>
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{is not merged with products of the same input: something needs its result in memory}}
  %1 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6, %1 : tensor<1x1x?x2xf32>, tensor<1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.125> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.25> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// Batches and heads in one axis: in a merged result there would be elements of others between them.
// CHECK-LABEL: func.func @joined_axes
// CHECK-COUNT-2: ds.linear
func.func @joined_axes(%q: tensor<1x?x5x2xf32> {ds.dims = [1, "n", 5, 2]}, %x: tensor<5x?x3xf32> {ds.dims = [5, "b", 3]})
    -> tensor<1x?x5x2xf32> attributes {ds.entry} {
  %wk = ds.weight @k : tensor<3x4xf32>
  %wv = ds.weight @v : tensor<3x4xf32>
  // expected-remark @+1 {{its rows are joined with its columns}}
  %0 = ds.linear %x, %wk : (tensor<5x?x3xf32>, tensor<3x4xf32>) -> tensor<5x?x4xf32>
  // expected-remark @+1 {{its rows are joined with its columns}}
  %1 = ds.linear %x, %wv : (tensor<5x?x3xf32>, tensor<3x4xf32>) -> tensor<5x?x4xf32>
  %2 = ds.reshape %0 [1, 5, "2*b", 2] : (tensor<5x?x4xf32>) -> tensor<1x5x?x2xf32>
  %3 = ds.reshape %1 [1, 5, "2*b", 2] : (tensor<5x?x4xf32>) -> tensor<1x5x?x2xf32>
  %4 = ds.transpose %2 [0, 2, 1, 3] : (tensor<1x5x?x2xf32>) -> tensor<1x?x5x2xf32>
  %5 = ds.transpose %3 [0, 2, 1, 3] : (tensor<1x5x?x2xf32>) -> tensor<1x?x5x2xf32>
  %6 = ds.attention %q, %4, %5 scale 0.5
      : (tensor<1x?x5x2xf32>, tensor<1x?x5x2xf32>, tensor<1x?x5x2xf32>) -> tensor<1x?x5x2xf32>
  return %6 : tensor<1x?x5x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x4xf32>
  ds.yield %0 : tensor<3x4xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.25> : tensor<3x4xf32>
  ds.yield %0 : tensor<3x4xf32>
}

// -----

// A weight with another use would be stored twice, and one of an input has no recipe.
// CHECK-LABEL: func.func @weights
// CHECK-COUNT-3: ds.linear
func.func @weights(%x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]}, %wv: tensor<3x2xf32> {ds.dims = [3, 2]})
    -> (tensor<1x1x?x2xf32>, tensor<3x2xf32>) attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xf32>
  %wk = ds.weight @k : tensor<3x2xf32>
  // expected-remark @+1 {{something else reads its weight, which would be stored twice}}
  %0 = ds.linear %x, %wq : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{its weight is no constant that is stored in the package}}
  %2 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6, %wq : tensor<1x1x?x2xf32>, tensor<3x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// Nor do codes join floats, or what is not packed what is.
// CHECK-LABEL: func.func @types
// CHECK-COUNT-3: ds.linear
func.func @types(%x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]}) -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xf32>
  %wk = ds.weight @k : tensor<3x2xi8>
  %sk = ds.weight @s : tensor<1x2xf32>
  %wv = ds.weight @v : tensor<2x3xf32>
  %0 = ds.linear %x, %wq : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{its types are others}}
  %1 = ds.linear %x, %wk scales %sk : (tensor<1x?x3xf32>, tensor<3x2xi8>, tensor<1x2xf32>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{its weight is packed or transposed}}
  %2 = ds.linear %x, %wv {transposed} : (tensor<1x?x3xf32>, tensor<2x3xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<5> : tensor<3x2xi8>
  ds.yield %0 : tensor<3x2xi8>
}
ds.recipe @s {
  %0 = ds.constant dense<0.5> : tensor<1x2xf32>
  ds.yield %0 : tensor<1x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.5> : tensor<2x3xf32>
  ds.yield %0 : tensor<2x3xf32>
}

// -----

// Codes join codes of the same groups, with their scales and zero points.
// CHECK-LABEL: func.func @codes
// CHECK: ds.linear %arg0, %{{.*}} scales %{{.*}} zero_points %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi8>, tensor<2x4xf32>, tensor<2x4xi8>)
// CHECK: ds.linear %arg0, %{{.*}} scales %{{.*}} : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>)
// CHECK-NOT: ds.linear
func.func @codes(%x: tensor<1x?x4xf32> {ds.dims = [1, "t", 4]}) -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<4x2xi8>
  %sq = ds.weight @sq : tensor<2x2xf32>
  %zq = ds.weight @zq : tensor<2x2xi8>
  %wk = ds.weight @k : tensor<4x2xi8>
  %sk = ds.weight @sk : tensor<1x2xf32>
  %wv = ds.weight @v : tensor<4x2xi8>
  %0 = ds.linear %x, %wq scales %sq zero_points %zq {group = 2 : i64}
      : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>, tensor<2x2xi8>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{its weight is quantized in another way}}
  %1 = ds.linear %x, %wk scales %sk : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.linear %x, %wv scales %sq zero_points %zq {group = 2 : i64}
      : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>, tensor<2x2xi8>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<5> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}
ds.recipe @sq {
  %0 = ds.constant dense<0.5> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @zq {
  %0 = ds.constant dense<1> : tensor<2x2xi8>
  ds.yield %0 : tensor<2x2xi8>
}
ds.recipe @k {
  %0 = ds.constant dense<5> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}
ds.recipe @sk {
  %0 = ds.constant dense<0.5> : tensor<1x2xf32>
  ds.yield %0 : tensor<1x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<6> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}

// -----

// Inputs differ, and what an elementwise op reads transposed would be copied first.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-3: ds.linear
func.func @apart(%x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]}, %z: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<3x2xf32>
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  %0 = ds.linear %z, %wq : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  // expected-remark @+1 {{elementwise ops move what they read of it}}
  %2 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %7 = ds.transpose %2 [1, 0, 2] : (tensor<1x?x2xf32>) -> tensor<?x1x2xf32>
  %8 = ds.unary exp %7 : (tensor<?x1x2xf32>) -> tensor<?x1x2xf32>
  %9 = ds.reshape %8 [1, 1, "t", 2] : (tensor<?x1x2xf32>) -> tensor<1x1x?x2xf32>
  %10 = ds.binary add %6, %9 : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %10 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// Entries for different conditions have equal recipes, of which a package stores one.
// CHECK-LABEL: func.func @first
// CHECK: ds.weight @k.merged {
// CHECK-LABEL: func.func @second
// CHECK: ds.weight @k.merged_0 {
// CHECK-NOT: ds.recipe @k {
func.func @first(%q: tensor<1x1x?x2xf32> {ds.dims = [1, 1, "s", 2]}, %x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  %0 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %3 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.attention %q, %2, %3 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %4 : tensor<1x1x?x2xf32>
}
func.func @second(%q: tensor<1x1x?x2xf32> {ds.dims = [1, 1, "s", 2]}, %x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]})
    -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  %0 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %3 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.attention %q, %2, %3 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %4 : tensor<1x1x?x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// Where the first is the odd one, the others are merged all the same.
// CHECK-LABEL: func.func @odd
// CHECK-COUNT-2: ds.linear
// CHECK-NOT: ds.linear
// CHECK: return
func.func @odd(%x: tensor<1x?x3xf32> {ds.dims = [1, "t", 3]}) -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<2x3xf32>
  %wk = ds.weight @k : tensor<3x2xf32>
  %wv = ds.weight @v : tensor<3x2xf32>
  // expected-remark @+1 {{its weight is packed or transposed}}
  %0 = ds.linear %x, %wq {transposed} : (tensor<1x?x3xf32>, tensor<2x3xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wk : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.linear %x, %wv : (tensor<1x?x3xf32>, tensor<3x2xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.25> : tensor<2x3xf32>
  ds.yield %0 : tensor<2x3xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.75> : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}

// -----

// Codes of the first stored otherwise: the others are codes of the same groups.
// CHECK-LABEL: func.func @odd_codes
// CHECK: ds.linear %arg0, %{{.*}} scales %{{.*}} : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>)
// CHECK: ds.linear %arg0, %{{.*}} scales %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi8>, tensor<2x4xf32>)
// CHECK-NOT: ds.linear
func.func @odd_codes(%x: tensor<1x?x4xf32> {ds.dims = [1, "t", 4]}) -> tensor<1x1x?x2xf32> attributes {ds.entry} {
  %wq = ds.weight @q : tensor<4x2xi8>
  %sq = ds.weight @sq : tensor<1x2xf32>
  %wk = ds.weight @k : tensor<4x2xi8>
  %sk = ds.weight @sk : tensor<2x2xf32>
  %wv = ds.weight @v : tensor<4x2xi8>
  // expected-remark @+1 {{its weight is quantized in another way}}
  %0 = ds.linear %x, %wq scales %sq : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<1x?x2xf32>
  %1 = ds.linear %x, %wk scales %sk {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>) -> tensor<1x?x2xf32>
  %2 = ds.linear %x, %wv scales %sk {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>) -> tensor<1x?x2xf32>
  %3 = ds.reshape %0 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %4 = ds.reshape %1 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %5 = ds.reshape %2 [1, 1, "t", 2] : (tensor<1x?x2xf32>) -> tensor<1x1x?x2xf32>
  %6 = ds.attention %3, %4, %5 scale 0.5
      : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %6 : tensor<1x1x?x2xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<5> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}
ds.recipe @sq {
  %0 = ds.constant dense<0.5> : tensor<1x2xf32>
  ds.yield %0 : tensor<1x2xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<3> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}
ds.recipe @sk {
  %0 = ds.constant dense<0.5> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<7> : tensor<4x2xi8>
  ds.yield %0 : tensor<4x2xi8>
}
