// RUN: ds-opt %s --split-input-file --verify-diagnostics
// What attention and its derivative require of a dropout.

func.func @attention_c11_ratio(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C11: the dropout must be at least 0 and below 1, found 1.000000}}
  %0 = ds.attention %q, %q, %q scale 1.0 dropout 1.0 stream 3 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_stream(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C11: dropout must stand beside a stream, or beside what is random, and these beside it}}
  %0 = ds.attention %q, %q, %q scale 1.0 stream 3 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_nothing_to_draw(%q: tensor<2x3x4x5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ds.attention' op C11: dropout must stand beside a stream, or beside what is random, and these beside it}}
  %0 = ds.attention %q, %q, %q scale 1.0 random %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_three_numbers(%q: tensor<2x3x4x5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ds.attention' op C11: what is random must be seed, step, micro-batch and stream, i64 without axes}}
  %0 = ds.attention %q, %q, %q scale 1.0 dropout 0.5 random %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_type(%q: tensor<2x3x4x5xf32>, %s: tensor<i32>) {
  // expected-error @+1 {{'ds.attention' op C11: what is random must be seed, step, micro-batch and stream, i64 without axes}}
  %0 = ds.attention %q, %q, %q scale 1.0 dropout 0.5 random %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_axis(%q: tensor<2x3x4x5xf32>, %s: tensor<1xi64>) {
  // expected-error @+1 {{'ds.attention' op C11: what is random must be seed, step, micro-batch and stream, i64 without axes}}
  %0 = ds.attention %q, %q, %q scale 1.0 dropout 0.5 random %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c11_both(%q: tensor<2x3x4x5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ds.attention' op C11: dropout must stand beside a stream, or beside what is random, and these beside it}}
  %0 = ds.attention %q, %q, %q scale 1.0 dropout 0.5 stream 3 random %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_gradient_c11_ratio(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C11: the dropout must be at least 0 and below 1, found 1.000000}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 1.0 dropout 1.0 stream 3 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @attention_gradient_c11_nothing_to_draw(%q: tensor<2x3x4x5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ds.attention_gradient' op C11: dropout must stand beside a stream, or beside what is random, and these beside it}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 1.0 random %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @attention_gradient_c11_three_numbers(%q: tensor<2x3x4x5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ds.attention_gradient' op C11: what is random must be seed, step, micro-batch and stream, i64 without axes}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 1.0 dropout 0.5 random %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}
