// Near misses of repeated heads: each function fails one condition of passes/graph/GroupedHeads.cpp, and key and value keep all heads.
// RUN: ds-opt %s --split-input-file --ds-recompose-attention | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null

// One head of key and value for all of the query: the repeated axis is that of the heads.
// CHECK-LABEL: func.func @one_for_all
// CHECK-NOT: ds.transpose
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>)
func.func @one_for_all(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x1x?x8xf32> {ds.dims = ["b", 1, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k3 = ds.broadcast %k ["b", 4, "t", 8] : (tensor<?x1x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Both heads after both: k0 k1 k0 k1.
// CHECK-LABEL: func.func @heads_beside_themselves
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @heads_beside_themselves(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k3 = ds.concat 1 %k, %k : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v3 = ds.concat 1 %v, %v : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Not copies: two values beside each other where copies would stand.
// CHECK-LABEL: func.func @different_copies
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @different_copies(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %v1 = ds.reshape %v ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %k2 = ds.concat 2 %k1, %v1 : (tensor<?x2x1x?x8xf32>, tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v2 = ds.broadcast %v1 ["b", 2, 2, "t", 8] : (tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %v3 = ds.reshape %v2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// The batch is enlarged together with the copies.
// CHECK-LABEL: func.func @two_axes
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @two_axes(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<1x2x?x8xf32> {ds.dims = [1, 2, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k [1, 2, 1, "t", 8] : (tensor<1x2x?x8xf32>) -> tensor<1x2x1x?x8xf32>
  %k2 = ds.broadcast %k1 ["b", 2, 2, "t", 8] : (tensor<1x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Two copies of the key's heads, four of the value's.
// CHECK-LABEL: func.func @other_groups_for_values
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @other_groups_for_values(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x1x?x8xf32> {ds.dims = ["b", 1, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %k2 = ds.broadcast %k1 ["b", 2, 2, "t", 8] : (tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v3 = ds.broadcast %v ["b", 4, "t", 8] : (tensor<?x1x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Only the key is repeated.
// CHECK-LABEL: func.func @values_of_their_own
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @values_of_their_own(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v3: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %k2 = ds.broadcast %k1 ["b", 2, 2, "t", 8] : (tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// As many copies as would divide the heads, but of the batch.
// CHECK-LABEL: func.func @repeated_batch
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>)
func.func @repeated_batch(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<1x4x?x8xf32> {ds.dims = [1, 4, "t", 8]}) -> tensor<2x4x?x8xf32> {
  %k3 = ds.broadcast %k [2, 4, "t", 8] : (tensor<1x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Of the token.
// CHECK-LABEL: func.func @one_token
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
func.func @one_token(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x4x1x8xf32> {ds.dims = ["b", 4, 1, 8]}) -> tensor<?x4x?x8xf32> {
  %k3 = ds.broadcast %k ["b", 4, 2, 8] : (tensor<?x4x1x8xf32>) -> tensor<?x4x2x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x2x8xf32>) -> tensor<?x4x?x2xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x2xf32>) -> tensor<?x4x?x2xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<?x4x?x2xf32>, tensor<?x4x2x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Of every number of a head, after the heads were joined with the batch and taken apart.
// CHECK-LABEL: func.func @repeated_numbers
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @repeated_numbers(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x?x1x4xf32> {ds.dims = ["4*b", "t", 1, 4]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.broadcast %k ["4*b", "t", 2, 4] : (tensor<?x?x1x4xf32>) -> tensor<?x?x2x4xf32>
  %k3 = ds.reshape %k1 ["b", 4, "t", 8] : (tensor<?x?x2x4xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// How often is known at run time only, and so are the heads.
// CHECK-LABEL: func.func @run_time_groups
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>)
func.func @run_time_groups(%q: tensor<?x?x?x8xf32> {ds.dims = ["b", "2*g", "s", 8]}, %k: tensor<?x2x1x?x8xf32> {ds.dims = ["b", 2, 1, "t", 8]}) -> tensor<?x?x?x8xf32> {
  %k2 = ds.broadcast %k ["b", 2, "g", "t", 8] : (tensor<?x2x1x?x8xf32>) -> tensor<?x2x?x?x8xf32>
  %k3 = ds.reshape %k2 ["b", "2*g", "t", 8] : (tensor<?x2x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>) -> tensor<?x?x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %y = ds.matmul %s, %k3 transpose [false, false] : (tensor<?x?x?x?xf32>, tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  return %y : tensor<?x?x?x8xf32>
}
