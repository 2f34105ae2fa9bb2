// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Each function differs in one thing from an attention: in what stands between the product and the softmax.

// What is near to a place is seen least.
// CHECK-LABEL: func.func @subtracted_scores
// CHECK-NOT: ds.attention
func.func @subtracted_scores(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary sub %arg3, %0 : (tensor<5x7xf32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores are subtracted from a value}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// A mask that multiplies, then a scale.
// CHECK-LABEL: func.func @multiplied_before_scale
// CHECK-NOT: ds.attention
func.func @multiplied_before_scale(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.5> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %arg3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary mul %2, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores are multiplied by more than one number}}
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// -----

// A mask that multiplies, then a cap.
// CHECK-LABEL: func.func @multiplied_before_cap
// CHECK-NOT: ds.attention
func.func @multiplied_before_cap(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<2.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary mul %1, %arg3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary div %2, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.unary tanh %3 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary mul %4, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores are multiplied by more than one number}}
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// A mask that chooses, then a scale.
// CHECK-LABEL: func.func @chosen_before_scale
// CHECK-NOT: ds.attention
func.func @chosen_before_scale(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.5> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-9.0> : tensor<f32>
  %3 = ds.select %arg3, %1, %2 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %3, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is chosen before the scale}}
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// A mask that chooses, then a scale of run time.
// CHECK-LABEL: func.func @chosen_before_scale_of_run_time
// CHECK-NOT: ds.attention
func.func @chosen_before_scale_of_run_time(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>, %arg4: tensor<f32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.5> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-9.0> : tensor<f32>
  %3 = ds.select %arg3, %1, %2 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %3, %arg4 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is chosen before the scale}}
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}

// -----

// A mask that chooses, then a cap.
// CHECK-LABEL: func.func @chosen_before_cap
// CHECK-NOT: ds.attention
func.func @chosen_before_cap(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<2.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.constant dense<-9.0> : tensor<f32>
  %3 = ds.select %arg3, %1, %2 : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary div %3, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.unary tanh %4 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %6 = ds.binary mul %5, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is chosen before the scale}}
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %8 : tensor<2x4x5x8xf32>
}

// -----

// A mask that is added, then a cap.
// CHECK-LABEL: func.func @added_before_cap
// CHECK-NOT: ds.attention
func.func @added_before_cap(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<2.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary add %1, %arg3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary div %2, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.unary tanh %3 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary mul %4, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is added before the scale}}
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// A mask that is subtracted, then a cap.
// CHECK-LABEL: func.func @subtracted_before_cap
// CHECK-NOT: ds.attention
func.func @subtracted_before_cap(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<2.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary sub %1, %arg3 : (tensor<2x4x5x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary div %2, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.unary tanh %3 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.binary mul %4, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %6 = ds.softmax %5 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask is added before the scale}}
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// Four axes before and after.
// CHECK-LABEL: func.func @four_axes_reshaped
// CHECK-NOT: ds.attention
func.func @four_axes_reshaped(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<4x2x7x8xf32>) -> tensor<4x2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.reshape %0 [4, 2, 5, 7] : (tensor<2x4x5x7xf32>) -> tensor<4x2x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<4x2x5x7xf32>) -> tensor<4x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands a reshape that does not split or join batch and heads}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<4x2x5x7xf32>, tensor<4x2x7x8xf32>) -> tensor<4x2x5x8xf32>
  return %3 : tensor<4x2x5x8xf32>
}

// -----

// Columns take the place of rows.
// CHECK-LABEL: func.func @rows_moved
// CHECK-NOT: ds.attention
func.func @rows_moved(%arg0: tensor<8x5x8xf32>, %arg1: tensor<8x7x8xf32>, %arg2: tensor<2x4x5x8xf32>) -> tensor<2x4x7x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<8x5x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x7xf32>
  %1 = ds.reshape %0 [2, 4, 7, 5] : (tensor<8x5x7xf32>) -> tensor<2x4x7x5xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x7x5xf32>) -> tensor<2x4x7x5xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands a reshape that does not split or join batch and heads}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x7x5xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x7x8xf32>
  return %3 : tensor<2x4x7x8xf32>
}

// -----

// Five axes become two.
// CHECK-LABEL: func.func @axes_dropped
// CHECK-NOT: ds.attention
func.func @axes_dropped(%arg0: tensor<1x1x1x5x8xf32>, %arg1: tensor<1x1x1x7x8xf32>, %arg2: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x1x1x5x8xf32>, tensor<1x1x1x7x8xf32>) -> tensor<1x1x1x5x7xf32>
  %1 = ds.reshape %0 [5, 7] : (tensor<1x1x1x5x7xf32>) -> tensor<5x7xf32>
  %2 = ds.softmax %1 axis 1 log false : (tensor<5x7xf32>) -> tensor<5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands a reshape that does not split or join batch and heads}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<5x7xf32>, tensor<7x8xf32>) -> tensor<5x8xf32>
  return %3 : tensor<5x8xf32>
}

// -----

// Two axes become five.
// CHECK-LABEL: func.func @axes_brought
// CHECK-NOT: ds.attention
func.func @axes_brought(%arg0: tensor<5x8xf32>, %arg1: tensor<7x8xf32>, %arg2: tensor<1x1x1x7x8xf32>) -> tensor<1x1x1x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32>
  %1 = ds.reshape %0 [1, 1, 1, 5, 7] : (tensor<5x7xf32>) -> tensor<1x1x1x5x7xf32>
  %2 = ds.softmax %1 axis 4 log false : (tensor<1x1x1x5x7xf32>) -> tensor<1x1x1x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands a reshape that does not split or join batch and heads}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<1x1x1x5x7xf32>, tensor<1x1x1x7x8xf32>) -> tensor<1x1x1x5x8xf32>
  return %3 : tensor<1x1x1x5x8xf32>
}

// -----

// A cast from f16 and one from bf16.
// CHECK-LABEL: func.func @rounded_twice
// CHECK-NOT: ds.attention
func.func @rounded_twice(%arg0: tensor<2x4x5x8xf16>, %arg1: tensor<2x4x7x8xf16>, %arg2: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.cast %1 to bf16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xbf16>
  %3 = ds.cast %2 to f32 : (tensor<2x4x5x7xbf16>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.cast %4 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  // expected-remark @+1 {{attention not recomposed: scale or mask have another type than the product}}
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %6 : tensor<2x4x5x8xf16>
}

// -----

// A number divided by the scores.
// CHECK-LABEL: func.func @divided_number
// CHECK-NOT: ds.attention
func.func @divided_number(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<f32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary div %arg3, %0 : (tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores are divided by more than one number}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// A number that has more axes than the scores.
// CHECK-LABEL: func.func @scale_of_more_axes
// CHECK: ds.attention %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} [multiply %arg3] scale 1.000000e+00
func.func @scale_of_more_axes(%arg0: tensor<2x5x8xf32>, %arg1: tensor<2x7x8xf32>, %arg2: tensor<2x7x8xf32>, %arg3: tensor<1x1x1x1xf32>) -> tensor<2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x5x8xf32>, tensor<2x7x8xf32>) -> tensor<2x5x7xf32>
  %1 = ds.binary mul %0, %arg3 : (tensor<2x5x7xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x5x7xf32>
  %2 = ds.reshape %1 [2, 5, 7] : (tensor<1x2x5x7xf32>) -> tensor<2x5x7xf32>
  %3 = ds.softmax %2 axis 2 log false : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x5x7xf32>, tensor<2x7x8xf32>) -> tensor<2x5x8xf32>
  return %4 : tensor<2x5x8xf32>
}

// -----

// A softmax in a narrower type.
// CHECK-LABEL: func.func @narrowed_to_f32
// CHECK-NOT: ds.attention
func.func @narrowed_to_f32(%arg0: tensor<2x4x5x8xf64>, %arg1: tensor<2x4x7x8xf64>, %arg2: tensor<2x4x7x8xf64>) -> tensor<2x4x5x8xf64> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf64>, tensor<2x4x7x8xf64>) -> tensor<2x4x5x7xf64>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xf64>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.cast %2 to f64 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf64>
  // expected-remark @+1 {{attention not recomposed: scale or mask have another type than the product}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf64>, tensor<2x4x7x8xf64>) -> tensor<2x4x5x8xf64>
  return %4 : tensor<2x4x5x8xf64>
}

// -----

// A softmax in a wider type than f32.
// CHECK-LABEL: func.func @widened_to_f64
// CHECK-NOT: ds.attention
func.func @widened_to_f64(%arg0: tensor<2x4x5x8xf16>, %arg1: tensor<2x4x7x8xf16>, %arg2: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %0 to f64 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf64>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf64>) -> tensor<2x4x5x7xf64>
  %3 = ds.cast %2 to f16 : (tensor<2x4x5x7xf64>) -> tensor<2x4x5x7xf16>
  // expected-remark @+1 {{attention not recomposed: scale or mask have another type than the product}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %4 : tensor<2x4x5x8xf16>
}

// -----

// A cap below zero.
// CHECK-LABEL: func.func @negative_cap
// CHECK-NOT: ds.attention
func.func @negative_cap(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<-2.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.binary div %1, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %3 = ds.unary tanh %2 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %3, %0 : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %5 = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: between the products stands an op that is neither a constant scale nor a mask}}
  %6 = ds.matmul %5, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %6 : tensor<2x4x5x8xf32>
}
