// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Each function differs in one thing from an attention: in what the probabilities are, in ranks, axes or types.

// Batch and heads joined, split by the number that guards, joined again.
// CHECK-LABEL: func.func @joined_twice
// CHECK-NOT: ds.attention
func.func @joined_twice(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.constant dense<0.0> : tensor<1x1x1x1xf32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %2 = ds.reshape %1 [1, 4, 5, 7] : (tensor<4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %4 = ds.reshape %3 [4, 5, 7] : (tensor<1x4x5x7xf32>) -> tensor<4x5x7xf32>
  %5 = ds.unary is_nan %4 : (tensor<4x5x7xf32>) -> tensor<4x5x7xi1>
  %6 = ds.select %5, %0, %4 : (tensor<4x5x7xi1>, tensor<1x1x1x1xf32>, tensor<4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %7 = ds.reshape %6 [4, 5, 7] : (tensor<1x4x5x7xf32>) -> tensor<4x5x7xf32>
  %8 = ds.matmul %7, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %8 : tensor<4x5x8xf32>
}

// -----

// Three axes before and after.
// CHECK-LABEL: func.func @reshaped_to_itself
// CHECK-NOT: ds.attention
func.func @reshaped_to_itself(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %2 = ds.reshape %1 [4, 5, 7] : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %3 : tensor<4x5x8xf32>
}

// -----

// Four axes before and after.
// CHECK-LABEL: func.func @four_axes_to_themselves
// CHECK-NOT: ds.attention
func.func @four_axes_to_themselves(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.reshape %1 [2, 4, 5, 7] : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// Rows that are not a number become zeros twice.
// CHECK-LABEL: func.func @guarded_twice
// CHECK-NOT: ds.attention
func.func @guarded_twice(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.unary is_nan %2 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %4 = ds.select %3, %0, %2 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.unary is_nan %4 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %6 = ds.select %5, %0, %4 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// Whole numbers on the way from the softmax to the product.
// CHECK-LABEL: func.func @cast_twice
// CHECK-NOT: ds.attention
func.func @cast_twice(%arg0: tensor<2x4x5x8xf16>, %arg1: tensor<2x4x7x8xf16>, %arg2: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.cast %2 to i32 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi32>
  %4 = ds.cast %3 to f16 : (tensor<2x4x5x7xi32>) -> tensor<2x4x5x7xf16>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %5 : tensor<2x4x5x8xf16>
}

// -----

// Zeros where another value is not a number.
// CHECK-LABEL: func.func @guarded_by_another
// CHECK-NOT: ds.attention
func.func @guarded_by_another(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<2x4x5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.unary is_nan %arg3 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %4 = ds.select %3, %0, %2 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.matmul %4, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// -----

// Rows that are not a number become ones.
// CHECK-LABEL: func.func @guarded_with_ones
// CHECK-NOT: ds.attention
func.func @guarded_with_ones(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<1.0> : tensor<f32>
  %1 = ds.constant dense<[[0.0], [0xFF800000], [0.0], [0.0], [0.0]]> : tensor<5x1xf32>
  %2 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary add %2, %1 : (tensor<2x4x5x7xf32>, tensor<5x1xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.softmax %3 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = ds.unary is_nan %4 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %6 = ds.select %5, %0, %4 : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = ds.matmul %6, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %7 : tensor<2x4x5x8xf32>
}

// -----

// Zeros where a run says so.
// CHECK-LABEL: func.func @dropped_out
// CHECK-NOT: ds.attention
func.func @dropped_out(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xi1>) -> tensor<2x4x5x8xf32> {
  %0 = ds.constant dense<0.0> : tensor<f32>
  %1 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.select %arg3, %0, %2 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %4 : tensor<2x4x5x8xf32>
}

// -----

// Logarithms of probabilities.
// CHECK-LABEL: func.func @logarithms
// CHECK-NOT: ds.attention
func.func @logarithms(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log true : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the softmax is not along the last axis}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %2 : tensor<2x4x5x8xf32>
}

// -----

// Neither batch nor heads.
// CHECK-LABEL: func.func @two_axes
// CHECK-NOT: ds.attention
func.func @two_axes(%arg0: tensor<5x8xf32>, %arg1: tensor<7x8xf32>, %arg2: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32>
  %1 = ds.softmax %0 axis 1 log false : (tensor<5x7xf32>) -> tensor<5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<5x7xf32>, tensor<7x8xf32>) -> tensor<5x8xf32>
  return %2 : tensor<5x8xf32>
}

// -----

// One query for all keys; its rows are as many as heads, and its numbers as many as columns.
// CHECK-LABEL: func.func @one_query
// CHECK-NOT: ds.attention
func.func @one_query(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8x8xf32>, %arg2: tensor<4x8x6xf32>) -> tensor<4x4x6xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x8xf32>, tensor<4x8x8xf32>) -> tensor<4x4x8xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x4x8xf32>, tensor<4x8x6xf32>) -> tensor<4x4x6xf32>
  return %2 : tensor<4x4x6xf32>
}

// -----

// One key for all queries; its columns are as many as heads.
// CHECK-LABEL: func.func @one_key
// CHECK-NOT: ds.attention
func.func @one_key(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x4x6xf32>) -> tensor<4x5x6xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x8xf32>) -> tensor<4x5x4xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x4xf32>) -> tensor<4x5x4xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x5x4xf32>, tensor<4x4x6xf32>) -> tensor<4x5x6xf32>
  return %2 : tensor<4x5x6xf32>
}

// -----

// A query of three axes beside a key of four: heads of the product could be either.
// CHECK-LABEL: func.func @query_without_batch
// CHECK-NOT: ds.attention
func.func @query_without_batch(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x4x7x8xf32>, %arg2: tensor<4x4x7x8xf32>) -> tensor<4x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x4x7x8xf32>) -> tensor<4x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<4x4x5x7xf32>) -> tensor<4x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x4x5x7xf32>, tensor<4x4x7x8xf32>) -> tensor<4x4x5x8xf32>
  return %2 : tensor<4x4x5x8xf32>
}

// -----

// A value of three axes.
// CHECK-LABEL: func.func @value_without_batch
// CHECK-NOT: ds.attention
func.func @value_without_batch(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query, key and value do not all have one rank from 3 to 5}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %2 : tensor<2x4x5x8xf32>
}

// -----

// The numbers of the query run along its rows.
// CHECK-LABEL: func.func @transposed_query
// CHECK-NOT: ds.attention
func.func @transposed_query(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<2x4x8x8xf32>, %arg2: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [true, true] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-remark @+1 {{attention not recomposed: query, probabilities or value are transposed by the product}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %2 : tensor<2x4x8x8xf32>
}

// -----

// Columns take the place of rows.
// CHECK-LABEL: func.func @transposed_probabilities
// CHECK-NOT: ds.attention
func.func @transposed_probabilities(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<2x4x8x8xf32>, %arg2: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-remark @+1 {{attention not recomposed: query, probabilities or value are transposed by the product}}
  %2 = ds.matmul %1, %arg2 transpose [true, false] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %2 : tensor<2x4x8x8xf32>
}

// -----

// The value runs along its numbers.
// CHECK-LABEL: func.func @transposed_value
// CHECK-NOT: ds.attention
func.func @transposed_value(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<2x4x8x8xf32>, %arg2: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-remark @+1 {{attention not recomposed: query, probabilities or value are transposed by the product}}
  %2 = ds.matmul %1, %arg2 transpose [false, true] : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %2 : tensor<2x4x8x8xf32>
}

// -----

// A cast behind the softmax, none before it.
// CHECK-LABEL: func.func @cast_to_itself
// CHECK-NOT: ds.attention
func.func @cast_to_itself(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.cast %1 to f32 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query and value have different types}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// Query and value round in two ways.
// CHECK-LABEL: func.func @two_narrow_types
// CHECK-NOT: ds.attention
func.func @two_narrow_types(%arg0: tensor<2x4x5x8xbf16>, %arg1: tensor<2x4x7x8xbf16>, %arg2: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xbf16>, tensor<2x4x7x8xbf16>) -> tensor<2x4x5x7xbf16>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xbf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.cast %2 to f16 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  // expected-remark @+1 {{attention not recomposed: query and value have different types}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16>
  return %4 : tensor<2x4x5x8xf16>
}

// -----

// A value in f32 beside a query in f16.
// CHECK-LABEL: func.func @wide_value
// CHECK-NOT: ds.attention
func.func @wide_value(%arg0: tensor<2x4x5x8xf16>, %arg1: tensor<2x4x7x8xf16>, %arg2: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x7xf16>
  %1 = ds.cast %0 to f32 : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: query and value have different types}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// The mask brings an axis that query and key do not have.
// CHECK-LABEL: func.func @mask_of_more_axes
// CHECK-NOT: ds.attention
func.func @mask_of_more_axes(%arg0: tensor<1x1x8xf32>, %arg1: tensor<1x1x8xf32>, %arg2: tensor<1x1x8xf32>, %arg3: tensor<1x1x1x1xf32>) -> tensor<1x1x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x1x8xf32>, tensor<1x1x8xf32>) -> tensor<1x1x1xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %3 = ds.reshape %2 [1, 1, 1] : (tensor<1x1x1x1xf32>) -> tensor<1x1x1xf32>
  // expected-remark @+1 {{attention not recomposed: the softmax does not have the scores' axes}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<1x1x1xf32>, tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  return %4 : tensor<1x1x8xf32>
}

// -----

// Behind the softmax columns join rows.
// CHECK-LABEL: func.func @rows_joined
// CHECK-NOT: ds.attention
func.func @rows_joined(%arg0: tensor<8x5x8xf32>, %arg1: tensor<8x7x8xf32>, %arg2: tensor<8x5x8xf32>) -> tensor<8x7x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<8x5x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x7xf32>
  %1 = ds.reshape %0 [2, 4, 5, 7] : (tensor<8x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.reshape %2 [8, 7, 5] : (tensor<2x4x5x7xf32>) -> tensor<8x7x5xf32>
  // expected-remark @+1 {{attention not recomposed: behind the softmax stands a reshape that does not join batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<8x7x5xf32>, tensor<8x5x8xf32>) -> tensor<8x7x8xf32>
  return %4 : tensor<8x7x8xf32>
}

// -----

// A mask gives the scores an axis in front, and the batch becomes the heads' place.
// CHECK-LABEL: func.func @batch_as_an_axis
// CHECK-NOT: ds.attention
func.func @batch_as_an_axis(%arg0: tensor<?x?x8xf32> {ds.dims = ["b", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["b", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["b", "t", 8]}, %arg3: tensor<1x?x?x?xf32> {ds.dims = [1, "b", "s", "t"]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<?x?x?xf32>, tensor<1x?x?x?xf32>) -> tensor<1x?x?x?xf32>
  %2 = ds.reshape %1 ["b", "s", "t"] : (tensor<1x?x?x?xf32>) -> tensor<?x?x?xf32>
  %3 = ds.softmax %2 axis 2 log false : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{a mask has its batch where the scores have no axis}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}
