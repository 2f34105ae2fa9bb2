// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-SAME: (%[[Q:.*]]: tensor<2x12x5x64xf32>, %[[K:.*]]: tensor<2x12x7x64xf32>, %[[V:.*]]: tensor<2x12x7x64xf32>, %[[MASK:.*]]: tensor<2x1x1x7xf32>)
// CHECK-NEXT: %[[Y:.*]] = ds.attention %[[Q]], %[[K]], %[[V]], %[[MASK]] scale 1.250000e-01 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @doc(%q: tensor<2x12x5x64xf32>, %k: tensor<2x12x7x64xf32>, %v: tensor<2x12x7x64xf32>,
               %mask: tensor<2x1x1x7xf32>) -> tensor<2x12x5x64xf32> {
  %eight = ds.constant dense<8.0> : tensor<f32>
  %t = ds.transpose %k [0, 1, 3, 2] : (tensor<2x12x7x64xf32>) -> tensor<2x12x64x7xf32>
  %0 = ds.matmul %q, %t transpose [false, false] : (tensor<2x12x5x64xf32>, tensor<2x12x64x7xf32>) -> tensor<2x12x5x7xf32>
  %1 = ds.binary div %0, %eight : (tensor<2x12x5x7xf32>, tensor<f32>) -> tensor<2x12x5x7xf32>
  %2 = ds.binary add %1, %mask : (tensor<2x12x5x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x12x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x12x5x7xf32>) -> tensor<2x12x5x7xf32>
  %y = ds.matmul %3, %v transpose [false, false] {ds.values = ["y"]} : (tensor<2x12x5x7xf32>, tensor<2x12x7x64xf32>) -> tensor<2x12x5x64xf32>
  return %y : tensor<2x12x5x64xf32>
}

// -----

// The scale half on Q, half on K; K turned from tokens, heads, channels in one go; sizes of run time; no mask.
// CHECK-LABEL: func.func @scaled_operands
// CHECK: %[[K:.*]] = ds.transpose %arg1 [0, 2, 1, 3] : (tensor<?x?x12x64xf32>) -> tensor<?x12x?x64xf32>
// CHECK: ds.attention %arg0, %[[K]], %arg2 scale 2.500000e-01
func.func @scaled_operands(%q: tensor<?x12x?x64xf32> {ds.dims = ["batch", 12, "seq", 64]},
                           %k: tensor<?x?x12x64xf32> {ds.dims = ["batch", "seq", 12, 64]},
                           %v: tensor<?x12x?x64xf32> {ds.dims = ["batch", 12, "seq", 64]}) -> tensor<?x12x?x64xf32> {
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary mul %half, %q : (tensor<f32>, tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32>
  %t = ds.transpose %k [0, 2, 3, 1] : (tensor<?x?x12x64xf32>) -> tensor<?x12x64x?xf32>
  %1 = ds.binary mul %t, %half : (tensor<?x12x64x?xf32>, tensor<f32>) -> tensor<?x12x64x?xf32>
  %2 = ds.matmul %0, %1 transpose [false, false] : (tensor<?x12x?x64xf32>, tensor<?x12x64x?xf32>) -> tensor<?x12x?x?xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
  %4 = ds.matmul %3, %v transpose [false, false] : (tensor<?x12x?x?xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32>
  return %4 : tensor<?x12x?x64xf32>
}

// -----

// Masked scores replaced instead of added to, as DistilBERT does it: the choice becomes a small additive mask.
// CHECK-LABEL: func.func @chosen_mask
// CHECK-DAG: %[[LOW:.*]] = ds.constant dense<-3.40282347E+38> : tensor<f32>
// CHECK-DAG: %[[ZERO:.*]] = ds.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[MASK:.*]] = ds.select %arg3, %[[LOW]], %[[ZERO]] : {{.*}} -> tensor<2x1x1x7xf32>
// CHECK: ds.attention %arg0, %arg1, %arg2, %[[MASK]] scale 1.000000e+00
func.func @chosen_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                       %masked: tensor<2x1x1x7xi1>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.broadcast %masked [2, 4, 5, 7] : (tensor<2x1x1x7xi1>) -> tensor<2x4x5x7xi1>
  %2 = ds.select %1, %low, %0 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @scale_of_run_time
// CHECK-NOT: ds.attention
func.func @scale_of_run_time(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                             %s: tensor<f32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary mul %0, %s : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scale is not a constant}}
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @mask_before_scale
// CHECK-NOT: ds.attention
func.func @mask_before_scale(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                             %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %c = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %c : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is added before the scale}}
  %4 = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
}

// -----

// One sequence, masks for many: the sum is larger than the product.
// CHECK-LABEL: func.func @mask_enlarges
// CHECK-NOT: ds.attention
func.func @mask_enlarges(%q: tensor<1x4x5x8xf32>, %k: tensor<1x4x7x8xf32>, %v: tensor<1x4x7x8xf32>,
                         %mask: tensor<3x1x1x7xf32>) -> tensor<3x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<1x4x5x8xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<1x4x5x7xf32>, tensor<3x1x1x7xf32>) -> tensor<3x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<3x4x5x7xf32>) -> tensor<3x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask might enlarge the scores}}
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<3x4x5x7xf32>, tensor<1x4x7x8xf32>) -> tensor<3x4x5x8xf32>
  return %3 : tensor<3x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @weak_mask
// CHECK-NOT: ds.attention
func.func @weak_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                     %masked: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-10000.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.select %masked, %low, %0 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the masked score is not a constant below -1e30}}
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @softmax_over_queries
// CHECK-NOT: ds.attention
func.func @softmax_over_queries(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the softmax is not along the last axis}}
  %2 = ds.matmul %1, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %2 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @three_axes
// CHECK-NOT: ds.attention
func.func @three_axes(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have rank 4}}
  %2 = ds.matmul %1, %v transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %2 : tensor<4x5x8xf32>
}

// -----

// GPT-2's first exports multiply scores by a mask before they subtract.
// CHECK-LABEL: func.func @multiplied_mask
// CHECK-NOT: ds.attention
func.func @multiplied_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                           %mask: tensor<5x7xf32>, %low: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %c = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary mul %0, %c : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary sub %2, %low : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands an op that is neither a constant scale nor an added mask}}
  %5 = ds.matmul %4, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}
