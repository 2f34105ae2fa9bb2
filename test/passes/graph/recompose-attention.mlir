// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-SAME: (%[[Q:.*]]: tensor<2x12x5x64xf32>, %[[K:.*]]: tensor<2x12x7x64xf32>, %[[V:.*]]: tensor<2x12x7x64xf32>, %[[MASK:.*]]: tensor<2x1x1x7xf32>)
// CHECK-NEXT: %[[Y:.*]] = ds.attention %[[Q]], %[[K]], %[[V]] [add %[[MASK]]] scale 1.250000e-01 {ds.values = ["y"]}
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

// Masked scores replaced instead of added to, as DistilBERT does it: what is hidden may be NaN.
// CHECK-LABEL: func.func @chosen_mask
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [hide %arg3 else -3.40282346{{.*}}E+38] scale 1.000000e+00
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

// A scale of run time, as 1 / sqrt of a size that the model computes: the query takes it.
// CHECK-LABEL: func.func @scale_of_run_time
// CHECK: %[[Q:.*]] = ds.binary mul %arg0, %arg3
// CHECK: ds.attention %[[Q]], %arg1, %arg2 [add %arg4] scale 5.000000e-01
func.func @scale_of_run_time(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                             %s: tensor<f32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %h = ds.binary mul %0, %half : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary mul %h, %s : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %m = ds.binary add %1, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %m axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @divided_at_run_time
// CHECK: %[[S:.*]] = ds.reshape %arg3 [] : (tensor<1x1xf32>) -> tensor<f32>
// CHECK: %[[Q:.*]] = ds.binary div %arg0, %[[S]]
// CHECK: ds.attention %[[Q]], %arg1, %arg2 scale 1.000000e+00
func.func @divided_at_run_time(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                               %s: tensor<1x1xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary div %0, %s : (tensor<2x4x5x7xf32>, tensor<1x1xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @divided_by_rows
// CHECK-NOT: ds.attention
func.func @divided_by_rows(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                           %s: tensor<5x1xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary div %0, %s : (tensor<2x4x5x7xf32>, tensor<5x1xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores are divided by more than one number}}
  %3 = ds.matmul %2, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @mask_before_scale_of_run_time
// CHECK-NOT: ds.attention
func.func @mask_before_scale_of_run_time(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                                         %s: tensor<f32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %s : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is added before the scale}}
  %4 = ds.matmul %3, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
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

// GPT-Neo's first mask: a constant that scores do not vanish in.
// CHECK-LABEL: func.func @weak_mask
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [hide %arg3 else -1.000000e+01] scale 1.000000e+00
func.func @weak_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %masked: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-10.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.select %masked, %low, %0 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// GPT-2's first exports: scores * mask - 1e4 * (1 - mask), the mask cut from a triangle.
// CHECK-LABEL: func.func @multiplied_mask
// CHECK: %[[LOW:.*]] = ds.unary neg %{{.*}} : (tensor<5x7xf32>)
// CHECK: ds.attention %arg0, %arg1, %arg2 [multiply %arg3, add %[[LOW]]] scale 5.000000e-01
func.func @multiplied_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %c = ds.constant dense<2.0> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %ten = ds.constant dense<10.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary div %0, %c : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary sub %one, %mask : (tensor<f32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %4 = ds.binary mul %3, %ten : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %5 = ds.binary sub %2, %4 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// T5: no scale, a bias by head, then a mask by place; their sum would be larger than both.
// CHECK-LABEL: func.func @bias_and_mask
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [add %arg3, add %arg4] scale 1.000000e+00
func.func @bias_and_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %bias: tensor<1x4x5x7xf32>, %mask: tensor<2x1x1x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary add %0, %bias : (tensor<2x4x5x7xf32>, tensor<1x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary add %1, %mask : (tensor<2x4x5x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Gemma: scores bounded by tanh before the mask.
// CHECK-LABEL: func.func @softcap
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %arg3] scale 2.500000e-01 softcap 5.000000e+00
func.func @softcap(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %c = ds.constant dense<0.25> : tensor<f32>
  %cap = ds.constant dense<5.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary mul %0, %c : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary div %1, %cap : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %3 = ds.unary tanh %2 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %3, %cap : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary add %4, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Rows that are masked as a whole give zeros, as PyTorch's scaled_dot_product_attention has it.
// CHECK-LABEL: func.func @guarded
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %arg3] scale 1.000000e+00 guard
func.func @guarded(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %zero = ds.constant dense<0.0> : tensor<1xf32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.unary is_nan %2 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %4 = ds.select %3, %zero, %2 : (tensor<2x4x5x7xi1>, tensor<1xf32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %4, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// f16 with the softmax in f32, and a key that comes transposed, as a cache may store it.
// CHECK-LABEL: func.func @widened_softmax
// CHECK: %[[K:.*]] = ds.transpose %arg1 [0, 1, 3, 2]
// CHECK: ds.attention %arg0, %[[K]], %arg2 [add %arg3] scale 5.000000e-01 {{.*}} -> tensor<2x4x5x8xf16>
func.func @widened_softmax(%q: tensor<2x4x5x8xf16>, %k: tensor<2x4x8x7xf16>, %v: tensor<2x4x7x8xf16>, %mask: tensor<5x7xf16>) -> tensor<2x4x5x8xf16> {
  %c = ds.constant dense<0.5> : tensor<f16>
  %0 = ds.matmul %q, %k transpose [false, false] : (tensor<2x4x5x8xf16>, tensor<2x4x8x7xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.binary mul %0, %c : (tensor<2x4x5x7xf16>, tensor<f16>) -> tensor<2x4x5x7xf16>
  %2 = ds.binary add %1, %mask : (tensor<2x4x5x7xf16>, tensor<5x7xf16>) -> tensor<2x4x5x7xf16>
  %3 = ds.cast %2 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.cast %4 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  %y = ds.matmul %5, %v transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %y : tensor<2x4x5x8xf16>
}

// -----

// The mask added in f32 around products in f16.
// CHECK-LABEL: func.func @wide_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %arg3] scale 1.000000e+00 : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>, tensor<2x4x7x8xf16>, tensor<5x7xf32>) -> tensor<2x4x5x8xf16>
func.func @wide_mask(%q: tensor<2x4x5x8xf16>, %k: tensor<2x4x7x8xf16>, %v: tensor<2x4x7x8xf16>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary add %1, %mask : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.cast %3 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  %y = ds.matmul %4, %v transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %y : tensor<2x4x5x8xf16>
}

// -----

// A choice in f32: its number would be minus infinity in f16. A bias in f16 joins before the cast.
// CHECK-LABEL: func.func @wide_choice
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [add %arg4, hide %arg3 else -3.40282346{{.*}}E+38] scale 5.000000e-01
func.func @wide_choice(%q: tensor<2x4x5x8xf16>, %k: tensor<2x4x7x8xf16>, %v: tensor<2x4x7x8xf16>, %masked: tensor<5x7xi1>, %bias: tensor<4x5x7xf16>) -> tensor<2x4x5x8xf16> {
  %half = ds.constant dense<0.5> : tensor<f16>
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %h = ds.binary mul %0, %half : (tensor<2x4x5x7xf16>, tensor<f16>) -> tensor<2x4x5x7xf16>
  %b = ds.binary add %h, %bias : (tensor<2x4x5x7xf16>, tensor<4x5x7xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %b to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.select %masked, %low, %1 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.cast %3 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  %y = ds.matmul %4, %v transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %y : tensor<2x4x5x8xf16>
}

// -----

// CHECK-LABEL: func.func @double_mask
// CHECK-NOT: ds.attention
func.func @double_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %mask: tensor<5x7xf64>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.cast %0 to f64 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf64>
  %2 = ds.binary add %1, %mask : (tensor<2x4x5x7xf64>, tensor<5x7xf64>) -> tensor<2x4x5x7xf64>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf64>) -> tensor<2x4x5x7xf64>
  %4 = ds.cast %3 to f32 : (tensor<2x4x5x7xf64>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: scale or mask have another type than the product}}
  %y = ds.matmul %4, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @relu_of_scores
// CHECK-NOT: ds.attention
func.func @relu_of_scores(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary max %0, %low : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands an op that is neither a constant scale nor a mask}}
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @chosen_at_run_time
// CHECK-NOT: ds.attention
func.func @chosen_at_run_time(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %masked: tensor<5x7xi1>, %low: tensor<f32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.select %masked, %low, %0 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the masked score is not a constant}}
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Rows and columns cut to the places of a stored mask, beside a mask that is not cut: never more than those.
// CHECK-LABEL: func.func @clamped
// CHECK: ds.attention
func.func @clamped(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %mask: tensor<?x?xf32> {ds.dims = ["s", "s"]}) -> tensor<2x4x?x8xf32> {
  %0 = ds.slice %q starts [0, 0, 0, 0] sizes [2, 4, "min(64, s)", 8] steps [1, 1, 1, 1] : (tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  %1 = ds.matmul %0, %0 transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %2 = ds.binary add %1, %mask : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %3, %0 transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Two masks that have nothing to do with each other: one multiplies, one is added.
// CHECK-LABEL: func.func @no_choice
// CHECK: ds.attention %arg0, %arg1, %arg2 [multiply %{{.*}}, hide_add %arg4 else -1.000000e+03] scale 1.000000e+00
func.func @no_choice(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %seen: tensor<5x7xi1>, %other: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-1.0E+3> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.cast %seen to f32 : (tensor<5x7xi1>) -> tensor<5x7xf32>
  %2 = ds.cast %other to f32 : (tensor<5x7xi1>) -> tensor<5x7xf32>
  %3 = ds.binary mul %1, %0 : (tensor<5x7xf32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %2, %low : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %5 = ds.binary add %3, %4 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// A mask that hides nothing, of a constant: the dynamo exporter writes one for ViT.
// CHECK-LABEL: func.func @void_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 :
func.func @void_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %seen = ds.constant dense<true> : tensor<1x1x5x1xi1>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %none = ds.constant dense<0.0> : tensor<5x7xf32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.broadcast %seen [2, 1, 5, 7] : (tensor<1x1x5x1xi1>) -> tensor<2x1x5x7xi1>
  %2 = ds.select %1, %0, %low : (tensor<2x1x5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary add %2, %none : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %chosen = ds.select %seen, %zero, %low : (tensor<1x1x5x1xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x5x1xf32>
  %4 = ds.binary add %3, %chosen : (tensor<2x4x5x7xf32>, tensor<1x1x5x1xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// All but one place pass: a mask.
// CHECK-LABEL: func.func @nearly_void_mask
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -3.40282346{{.*}}E+38] right 0 scale 1.000000e+00 :
func.func @nearly_void_mask(%q: tensor<2x4x2x8xf32>, %k: tensor<2x4x2x8xf32>, %v: tensor<2x4x2x8xf32>) -> tensor<2x4x2x8xf32> {
  %seen = ds.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>) -> tensor<2x4x2x2xf32>
  %2 = ds.select %seen, %0, %low : (tensor<2x2xi1>, tensor<2x4x2x2xf32>, tensor<f32>) -> tensor<2x4x2x2xf32>
  %s = ds.softmax %2 axis 3 log false : (tensor<2x4x2x2xf32>) -> tensor<2x4x2x2xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x2x2xf32>, tensor<2x4x2x8xf32>) -> tensor<2x4x2x8xf32>
  return %y : tensor<2x4x2x8xf32>
}

// -----

// Where a mask has a number in one place and 0 in the others, the flags that choose are read, whichever way around and
// through arithmetic; a second condition joins them. Two other numbers are added as they are.
// CHECK-LABEL: func.func @flags
// CHECK: %[[BOTH:.*]] = ds.binary bit_and %arg1, %{{.*}} : (tensor<5x7xi1>, tensor<5x7xi1>)
// CHECK: ds.attention %{{.*}}, %arg0, %arg0 [keep_add %arg1 else -1.000000e+03, hide_add %arg2 else 0xFFF0000000000000, keep_add %[[BOTH]] else -1.000000e+04, add %{{.*}}] scale 1.000000e+00
func.func @flags(%x: tensor<2x4x7x8xf32>, %seen: tensor<5x7xi1>, %late: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %low = ds.constant dense<-1.0E+3> : tensor<f32>
  %lower = ds.constant dense<-1.0E+4> : tensor<f32>
  %none = ds.constant dense<0xFF800000> : tensor<f32>
  %q = ds.slice %x starts [0, 0, 0, 0] sizes [2, 4, 5, 8] steps [1, 1, 1, 1] : (tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  %0 = ds.matmul %q, %x transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.cast %seen to f32 : (tensor<5x7xi1>) -> tensor<5x7xf32>
  %2 = ds.binary sub %one, %1 : (tensor<f32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %3 = ds.binary mul %2, %low : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = ds.binary add %0, %3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.select %late, %none, %zero : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %6 = ds.binary add %4, %5 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.unary logical_not %late : (tensor<5x7xi1>) -> tensor<5x7xi1>
  %8 = ds.binary bit_and %seen, %7 : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
  %9 = ds.select %8, %zero, %lower : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %10 = ds.binary add %6, %9 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %11 = ds.select %late, %one, %low : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
  %12 = ds.binary add %10, %11 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %12 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %x transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}
