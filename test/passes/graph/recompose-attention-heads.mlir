// Heads that exporters keep in groups, join with the batch, or repeat: what the products look like then.
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null

// Two heads of the query share one of key and value: repeated by Expand, the value by Concat.
// CHECK-LABEL: func.func @grouped
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
func.func @grouped(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %k2 = ds.broadcast %k1 ["b", 2, 2, "t", 8] : (tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v1 = ds.reshape %v ["b", 2, 1, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x2x1x?x8xf32>
  %v2 = ds.concat 2 %v1, %v1 : (tensor<?x2x1x?x8xf32>, tensor<?x2x1x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %v3 = ds.reshape %v2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// The heads repeated in turn, not each for its neighbours: an attention without groups.
// CHECK-LABEL: func.func @heads_in_turn
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
func.func @heads_in_turn(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 1, 2, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x1x2x?x8xf32>
  %k2 = ds.broadcast %k1 ["b", 2, 2, "t", 8] : (tensor<?x1x2x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %k3 = ds.reshape %k2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v1 = ds.reshape %v ["b", 1, 2, "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x1x2x?x8xf32>
  %v2 = ds.broadcast %v1 ["b", 2, 2, "t", 8] : (tensor<?x1x2x?x8xf32>) -> tensor<?x2x2x?x8xf32>
  %v3 = ds.reshape %v2 ["b", 4, "t", 8] : (tensor<?x2x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k3 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v3 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// DeBERTa: batch and heads joined for the products and split for the mask; a bias beside the joined scores; the key
// scaled after its transposition.
// CHECK-LABEL: func.func @joined_heads
// CHECK-DAG: %[[Q:.*]] = ds.reshape %arg0 ["b", 4, "s", 8]
// CHECK-DAG: %[[K:.*]] = ds.reshape %arg1 ["b", 4, "s", 8]
// CHECK-DAG: %[[V:.*]] = ds.reshape %arg2 ["b", 4, "s", 8]
// CHECK-DAG: %[[BIAS:.*]] = ds.reshape %arg3 ["b", 4, "s", "s"]
// CHECK: %[[Y:.*]] = ds.attention %[[Q]], %[[K]], %[[V]] [add %[[BIAS]], hide %arg4 else -3.40282346{{.*}}E+38] scale 5.000000e-01
// CHECK: ds.reshape %[[Y]] ["4*b", "s", 8]
func.func @joined_heads(%q: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %k: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]},
                        %v: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %bias: tensor<?x?x?xf32> {ds.dims = ["4*b", "s", "s"]},
                        %masked: tensor<?x1x?x?xi1> {ds.dims = ["b", 1, "s", "s"]}) -> tensor<?x?x8xf32> {
  %c = ds.constant dense<2.0> : tensor<f32>
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %t = ds.transpose %k [0, 2, 1] : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %t2 = ds.binary div %t, %c : (tensor<?x8x?xf32>, tensor<f32>) -> tensor<?x8x?xf32>
  %0 = ds.matmul %q, %t2 transpose [false, false] : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
  %1 = ds.binary add %0, %bias : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %2 = ds.reshape %1 ["b", 4, "s", "s"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = ds.select %masked, %low, %2 : (tensor<?x1x?x?xi1>, tensor<f32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %5 = ds.reshape %4 ["4*b", "s", "s"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  %y = ds.matmul %5, %v transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @three_axes
// CHECK: %[[Y:.*]] = ds.attention {{.*}} : (tensor<1x4x5x8xf32>, tensor<1x4x7x8xf32>, tensor<1x4x7x8xf32>, tensor<5x7xf32>) -> tensor<1x4x5x8xf32>
// CHECK: ds.reshape %[[Y]] [4, 5, 8]
func.func @three_axes(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %mask: tensor<5x7xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.binary add %mask, %0 : (tensor<5x7xf32>, tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %2 = ds.softmax %1 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %3 : tensor<4x5x8xf32>
}

// -----

// Queries in groups, [batch, groups, heads, rows, size]; a bias for every head, a mask for none.
// CHECK-LABEL: func.func @five_axes
// CHECK-DAG: %[[Q:.*]] = ds.reshape %arg0 [1, 4, "s", 8]
// CHECK-DAG: %[[K:.*]] = ds.reshape %arg1 [1, 2, 7, 8]
// CHECK-DAG: %[[V:.*]] = ds.reshape %arg2 [1, 2, 7, 8]
// CHECK-DAG: %[[BIAS:.*]] = ds.reshape %arg3 [4, "s", 7]
// CHECK-DAG: %[[PAD:.*]] = ds.reshape %arg4 [1, 1, 1, 7]
// CHECK: %[[Y:.*]] = ds.attention %[[Q]], %[[K]], %[[V]] [add %[[BIAS]], add %[[PAD]]] scale 1.000000e+00
// CHECK: ds.reshape %[[Y]] [1, 2, 2, "s", 8]
func.func @five_axes(%q: tensor<1x2x2x?x8xf32> {ds.dims = [1, 2, 2, "s", 8]}, %k: tensor<1x2x1x7x8xf32>, %v: tensor<1x2x1x7x8xf32>,
                     %bias: tensor<2x2x?x7xf32> {ds.dims = [2, 2, "s", 7]}, %pad: tensor<1x1x1x1x7xf32>) -> tensor<1x2x2x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x2x2x?x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x?x7xf32>
  %1 = ds.binary add %0, %bias : (tensor<1x2x2x?x7xf32>, tensor<2x2x?x7xf32>) -> tensor<1x2x2x?x7xf32>
  %2 = ds.binary add %1, %pad : (tensor<1x2x2x?x7xf32>, tensor<1x1x1x1x7xf32>) -> tensor<1x2x2x?x7xf32>
  %3 = ds.softmax %2 axis 4 log false : (tensor<1x2x2x?x7xf32>) -> tensor<1x2x2x?x7xf32>
  %4 = ds.matmul %3, %v transpose [false, false] : (tensor<1x2x2x?x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x?x8xf32>
  return %4 : tensor<1x2x2x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @five_axes_with_own_keys
// CHECK-NOT: ds.attention
func.func @five_axes_with_own_keys(%q: tensor<1x2x2x5x8xf32>, %k: tensor<1x2x2x7x8xf32>, %v: tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x2x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %1 = ds.softmax %0 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value}}
  %2 = ds.matmul %1, %v transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %2 : tensor<1x2x2x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @five_axes_with_masks_by_group
// CHECK-NOT: ds.attention
func.func @five_axes_with_masks_by_group(%q: tensor<1x2x2x5x8xf32>, %k: tensor<1x2x1x7x8xf32>, %v: tensor<1x2x1x7x8xf32>, %mask: tensor<2x1x5x7xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<1x2x2x5x7xf32>, tensor<2x1x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  %2 = ds.softmax %1 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %3 : tensor<1x2x2x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @six_axes
// CHECK-NOT: ds.attention
func.func @six_axes(%q: tensor<1x1x2x2x5x8xf32>, %k: tensor<1x1x2x2x7x8xf32>, %v: tensor<1x1x2x2x7x8xf32>) -> tensor<1x1x2x2x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x1x2x2x5x8xf32>, tensor<1x1x2x2x7x8xf32>) -> tensor<1x1x2x2x5x7xf32>
  %1 = ds.softmax %0 axis 5 log false : (tensor<1x1x2x2x5x7xf32>) -> tensor<1x1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %v transpose [false, false] : (tensor<1x1x2x2x5x7xf32>, tensor<1x1x2x2x7x8xf32>) -> tensor<1x1x2x2x5x8xf32>
  return %2 : tensor<1x1x2x2x5x8xf32>
}

// -----

// TensorFlow names every dimension apart: whether the mask enlarges batches is known at run time, and allowed for.
// CHECK-LABEL: func.func @mask_of_other_names
// CHECK-DAG: %[[Q:.*]] = ds.broadcast %arg0 ["select(eq(1, b), m, b)", 4, "s", 8]
// CHECK-DAG: %[[K:.*]] = ds.broadcast %arg1 ["select(eq(1, b), m, b)", 4, "s", 8]
// CHECK-DAG: %[[V:.*]] = ds.broadcast %arg2 ["select(eq(1, b), m, b)", 4, "s", 8]
// CHECK: ds.attention %[[Q]], %[[K]], %[[V]] [add %arg3] scale 1.000000e+00
func.func @mask_of_other_names(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %v: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %mask: tensor<?x1x1x?xf32> {ds.dims = ["m", 1, 1, "n"]}) -> tensor<?x4x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x?xf32>
  %1 = ds.binary add %0, %mask : (tensor<?x4x?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// tf2onnx writes Einsum with joined heads. Products of four heads and more never broadcast: the batches are equal.
// The mask is chosen by arithmetic, which hides no NaN, and by a condition that lets everything pass, given the scores'
// shape.
// CHECK-LABEL: func.func @joined_by_einsum
// CHECK-DAG: %[[Q:.*]] = ds.reshape %arg0 ["b", 4, "s", 8]
// CHECK-DAG: %[[K:.*]] = ds.reshape %arg1 ["b", 4, "t", 8]
// CHECK-DAG: %[[V:.*]] = ds.reshape %arg2 ["b", 4, "t", 8]
// CHECK: ds.attention %[[Q]], %[[K]], %[[V]] [multiply %{{.*}}, keep_add %arg3 else -2.3726{{.*}}E+38] scale 5.000000e-01 {{.*}}, tensor<?x1x1x?xf32>, tensor<?x1x1x?xi1>)
func.func @joined_by_einsum(%q: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %k: tensor<?x?x8xf32> {ds.dims = ["4*c", "t", 8]}, %v: tensor<?x?x8xf32> {ds.dims = ["4*c", "t", 8]}, %seen: tensor<?x1x1x?xi1> {ds.dims = ["b", 1, 1, "t"]}) -> tensor<?x?x8xf32> {
  %half = ds.constant dense<0.5> : tensor<f32>
  %low = ds.constant dense<-2.37267096E+38> : tensor<f32>
  %true = ds.constant dense<true> : tensor<i1>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 4, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.binary mul %1, %half : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %3 = ds.broadcast %true ["b", 4, "s", "t"] : (tensor<i1>) -> tensor<?x4x?x?xi1>
  %4 = ds.binary bit_and %3, %seen : (tensor<?x4x?x?xi1>, tensor<?x1x1x?xi1>) -> tensor<?x4x?x?xi1>
  %5 = ds.unary logical_not %4 : (tensor<?x4x?x?xi1>) -> tensor<?x4x?x?xi1>
  %6 = ds.cast %5 to f32 : (tensor<?x4x?x?xi1>) -> tensor<?x4x?x?xf32>
  %7 = ds.binary mul %low, %6 : (tensor<f32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %8 = ds.cast %4 to f32 : (tensor<?x4x?x?xi1>) -> tensor<?x4x?x?xf32>
  %9 = ds.binary mul %8, %2 : (tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %10 = ds.binary add %9, %7 : (tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %12 = ds.reshape %11 ["4*b", "s", "t"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  %y = ds.matmul %12, %v transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// Heads repeated by Tile while they stand behind the tokens, and carried to their place afterwards: Keras, Einsum.
// CHECK-LABEL: func.func @grouped_by_tile
// CHECK: %[[K:.*]] = ds.transpose %{{.*}} [0, 2, 1, 3] : (tensor<?x?x2x8xf32>) -> tensor<?x2x?x8xf32>
// CHECK: %[[V:.*]] = ds.transpose %{{.*}} [0, 2, 1, 3] : (tensor<?x?x2x8xf32>) -> tensor<?x2x?x8xf32>
// CHECK: ds.attention %arg0, %[[K]], %[[V]] scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
func.func @grouped_by_tile(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x?x2x8xf32> {ds.dims = ["b", "t", 2, 8]}, %v: tensor<?x?x2x8xf32> {ds.dims = ["b", "t", 2, 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", "t", 2, 1, 1, 8] : (tensor<?x?x2x8xf32>) -> tensor<?x?x2x1x1x8xf32>
  %k2 = ds.broadcast %k1 ["b", "t", 2, 2, 1, 8] : (tensor<?x?x2x1x1x8xf32>) -> tensor<?x?x2x2x1x8xf32>
  %k3 = ds.reshape %k2 ["b", "t", 4, 8] : (tensor<?x?x2x2x1x8xf32>) -> tensor<?x?x4x8xf32>
  %k4 = ds.transpose %k3 [0, 2, 3, 1] : (tensor<?x?x4x8xf32>) -> tensor<?x4x8x?xf32>
  %v1 = ds.reshape %v ["b", "t", 2, 1, 1, 8] : (tensor<?x?x2x8xf32>) -> tensor<?x?x2x1x1x8xf32>
  %v2 = ds.broadcast %v1 ["b", "t", 2, 2, 1, 8] : (tensor<?x?x2x1x1x8xf32>) -> tensor<?x?x2x2x1x8xf32>
  %v3 = ds.reshape %v2 ["b", 1, "t", 4, 8] : (tensor<?x?x2x2x1x8xf32>) -> tensor<?x1x?x4x8xf32>
  %v4 = ds.transpose %v3 [0, 3, 1, 4, 2] : (tensor<?x1x?x4x8xf32>) -> tensor<?x4x1x8x?xf32>
  %v5 = ds.reshape %v4 ["4*b", 8, "t"] : (tensor<?x4x1x8x?xf32>) -> tensor<?x8x?xf32>
  %v6 = ds.transpose %v5 [0, 2, 1] : (tensor<?x8x?xf32>) -> tensor<?x?x8xf32>
  %v7 = ds.reshape %v6 ["b", 4, "t", 8] : (tensor<?x?x8xf32>) -> tensor<?x4x?x8xf32>
  %sc = ds.matmul %q, %k4 transpose [false, false] : (tensor<?x4x?x8xf32>, tensor<?x4x8x?xf32>) -> tensor<?x4x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %y = ds.matmul %s, %v7 transpose [false, false] : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Tokens repeated instead of heads.
// CHECK-LABEL: func.func @repeated_tokens
// CHECK: ds.attention %arg0, %{{.*}}, %{{.*}} scale 1.000000e+00 : (tensor<?x4x?x8xf32>, tensor<?x4x6x8xf32>, tensor<?x4x6x8xf32>)
func.func @repeated_tokens(%q: tensor<?x4x?x8xf32> {ds.dims = ["b", 4, "s", 8]}, %k: tensor<?x3x4x8xf32> {ds.dims = ["b", 3, 4, 8]}) -> tensor<?x4x?x8xf32> {
  %k1 = ds.reshape %k ["b", 3, 1, 4, 8] : (tensor<?x3x4x8xf32>) -> tensor<?x3x1x4x8xf32>
  %k2 = ds.broadcast %k1 ["b", 3, 2, 4, 8] : (tensor<?x3x1x4x8xf32>) -> tensor<?x3x2x4x8xf32>
  %k3 = ds.reshape %k2 ["b", 6, 4, 8] : (tensor<?x3x2x4x8xf32>) -> tensor<?x6x4x8xf32>
  %k4 = ds.transpose %k3 [0, 2, 1, 3] : (tensor<?x6x4x8xf32>) -> tensor<?x4x6x8xf32>
  %sc = ds.matmul %q, %k4 transpose [false, true] : (tensor<?x4x?x8xf32>, tensor<?x4x6x8xf32>) -> tensor<?x4x?x6xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x4x?x6xf32>) -> tensor<?x4x?x6xf32>
  %y = ds.matmul %s, %k4 transpose [false, false] : (tensor<?x4x?x6xf32>, tensor<?x4x6x8xf32>) -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// Groups and heads join as the mask has them, not as what it was expanded from.
// CHECK-LABEL: func.func @five_axes_with_expanded_mask
// CHECK: %[[WIDE:.*]] = ds.broadcast %arg3 [2, 2, 5, 7]
// CHECK: %[[MASK:.*]] = ds.reshape %[[WIDE]] [4, 5, 7]
// CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [add %[[MASK]]] scale 1.000000e+00
func.func @five_axes_with_expanded_mask(%q: tensor<1x2x2x5x8xf32>, %k: tensor<1x2x1x7x8xf32>, %v: tensor<1x2x1x7x8xf32>, %mask: tensor<2x1x5x7xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %m = ds.broadcast %mask [2, 2, 5, 7] : (tensor<2x1x5x7xf32>) -> tensor<2x2x5x7xf32>
  %1 = ds.binary add %0, %m : (tensor<1x2x2x5x7xf32>, tensor<2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  %2 = ds.softmax %1 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %3 : tensor<1x2x2x5x8xf32>
}

// -----

// A query that was scaled before it was split into heads, as Whisper's: the product that gives it is as it was.
// CHECK-LABEL: func.func @scaled_before_heads
// CHECK: %[[R:.*]] = ds.reshape %arg0 ["b", "s", 2, 8] : (tensor<?x?x16xf32>) -> tensor<?x?x2x8xf32>
// CHECK: %[[Q:.*]] = ds.transpose %[[R]] [0, 2, 1, 3] : (tensor<?x?x2x8xf32>) -> tensor<?x2x?x8xf32>
// CHECK: %[[K:.*]] = ds.transpose %arg1 [0, 2, 1, 3]
// CHECK: ds.attention %[[Q]], %[[K]], %arg2 scale 1.250000e-01 :
func.func @scaled_before_heads(%x: tensor<?x?x16xf32> {ds.dims = ["b", "s", 16]}, %k: tensor<?x?x2x8xf32> {ds.dims = ["b", "t", 2, 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x2x?x8xf32> {
  %c = ds.constant dense<0.25> : tensor<f32>
  %d = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary mul %x, %c : (tensor<?x?x16xf32>, tensor<f32>) -> tensor<?x?x16xf32>
  %1 = ds.reshape %0 ["b", "s", 2, 8] : (tensor<?x?x16xf32>) -> tensor<?x?x2x8xf32>
  %q = ds.transpose %1 [0, 2, 1, 3] : (tensor<?x?x2x8xf32>) -> tensor<?x2x?x8xf32>
  %2 = ds.binary mul %k, %d : (tensor<?x?x2x8xf32>, tensor<f32>) -> tensor<?x?x2x8xf32>
  %3 = ds.transpose %2 [0, 2, 3, 1] : (tensor<?x?x2x8xf32>) -> tensor<?x2x8x?xf32>
  %sc = ds.matmul %q, %3 transpose [false, false] : (tensor<?x2x?x8xf32>, tensor<?x2x8x?xf32>) -> tensor<?x2x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// A key whose last axes are exchanged while batch and heads are one axis.
// CHECK-LABEL: func.func @exchanged
// CHECK: ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 :
func.func @exchanged(%q: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}) -> tensor<?x2x?x8xf32> {
  %0 = ds.reshape %k ["2*b", "t", 8] : (tensor<?x2x?x8xf32>) -> tensor<?x?x8xf32>
  %1 = ds.transpose %0 [0, 2, 1] : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %2 = ds.reshape %1 ["b", 2, 8, "t"] : (tensor<?x8x?xf32>) -> tensor<?x2x8x?xf32>
  %sc = ds.matmul %q, %2 transpose [false, false] : (tensor<?x2x?x8xf32>, tensor<?x2x8x?xf32>) -> tensor<?x2x?x?xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}

// -----

// One that was cut otherwise in between is copied, though it ends with the same sizes.
// CHECK-LABEL: func.func @cut_otherwise
// CHECK: %[[R:.*]] = ds.reshape %arg1 [4, 8, 8]
// CHECK: ds.transpose %[[R]] [0, 2, 1]
// CHECK: ds.attention
func.func @cut_otherwise(%q: tensor<2x4x3x8xf32> {ds.dims = [2, 4, 3, 8]}, %k: tensor<2x4x4x8xf32> {ds.dims = [2, 4, 4, 8]}, %v: tensor<2x4x4x8xf32> {ds.dims = [2, 4, 4, 8]}) -> tensor<2x4x3x8xf32> {
  %0 = ds.reshape %k [4, 8, 8] : (tensor<2x4x4x8xf32>) -> tensor<4x8x8xf32>
  %1 = ds.transpose %0 [0, 2, 1] : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %2 = ds.reshape %1 [2, 4, 8, 4] : (tensor<4x8x8xf32>) -> tensor<2x4x8x4xf32>
  %sc = ds.matmul %q, %2 transpose [false, false] : (tensor<2x4x3x8xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x3x4xf32>
  %s = ds.softmax %sc axis 3 log false : (tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x3x4xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Zeros that an exporter adds to a mask, repeated for all heads, as T5's where a layer has no bias of places.
// CHECK-LABEL: func.func @zeros_beside_a_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %arg3] scale 1.000000e+00 :
func.func @zeros_beside_a_mask(%q: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "s", 8]}, %k: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %v: tensor<?x2x?x8xf32> {ds.dims = ["b", 2, "t", 8]}, %m: tensor<?x1x1x?xf32> {ds.dims = ["b", 1, 1, "t"]}) -> tensor<?x2x?x8xf32> {
  %c = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.broadcast %c [1, 2, "s", "t"] : (tensor<f32>) -> tensor<1x2x?x?xf32>
  %1 = ds.binary add %0, %m : (tensor<1x2x?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x2x?x?xf32>
  %sc = ds.matmul %q, %k transpose [false, true] : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x?xf32>
  %2 = ds.binary add %sc, %1 : (tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %s = ds.softmax %2 axis 3 log false : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %y : tensor<?x2x?x8xf32>
}
