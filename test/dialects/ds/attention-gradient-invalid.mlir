// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @c1_rank(%x: tensor<2x3x4xf32>, %g: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C1: query, key and value must have rank 4 and one float type}}
  %0:3 = ds.attention_gradient %x, %x, %x, %g scale 1.0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @c1_gradient(%q: tensor<2x3x4x5xf32>, %g: tensor<2x3x4x5xf64>) {
  // expected-error @+1 {{'ds.attention_gradient' op C1: query, key, value and gradient must have rank 4 and one type, f32 or f64}}
  %0:3 = ds.attention_gradient %q, %q, %q, %g scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf64>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c1_narrow(%q: tensor<2x3x4x5xf16>) {
  // expected-error @+1 {{'ds.attention_gradient' op C1: query, key, value and gradient must have rank 4 and one type, f32 or f64}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 1.0 : (tensor<2x3x4x5xf16>, tensor<2x3x4x5xf16>, tensor<2x3x4x5xf16>, tensor<2x3x4x5xf16>) -> (tensor<2x3x4x5xf16>, tensor<2x3x4x5xf16>, tensor<2x3x4x5xf16>)
  return
}

// -----

func.func @c2_sizes(%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x4x6xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C2: head size: expected equal sizes, found 5 and 6}}
  %0:3 = ds.attention_gradient %q, %k, %k, %k scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>)
  return
}

// -----

func.func @c2_gradient(%q: tensor<2x3x4x5xf32>, %v: tensor<2x3x4x6xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C2: axis 3 of the gradient: expected equal sizes, found 6 and 5}}
  %0:3 = ds.attention_gradient %q, %q, %v, %q scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>)
  return
}

// -----

func.func @c3_mask(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xi1>) {
  // expected-error @+1 {{'ds.attention_gradient' op C3: masks must have at most rank 4}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q [add %m] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xi1>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c4_heads(%q: tensor<2x3x4x5xf32>, %k: tensor<2x2x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C4: the heads of the query must be a multiple of those of the key, found 3 and 2}}
  %0:3 = ds.attention_gradient %q, %k, %k, %q scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x2x4x5xf32>, tensor<2x2x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x2x4x5xf32>, tensor<2x2x4x5xf32>)
  return
}

// -----

func.func @c5_softcap(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C5: the softcap must be positive}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q scale 1.0 softcap 0.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c6_masks(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C6: expected one mask for each step that takes one and one low for each step, found 0 and 1}}
  %0:3 = "ds.attention_gradient"(%q, %q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>, steps = [#ds<score_step add>], lows = array<f64: 0.0>, scale = 1.0}>
      : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c7_bounds(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q [window else -1.0] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c8_positions(%q: tensor<2x3x4x5xf32>, %p: tensor<4x1xi32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C8: positions must be i64 and have at most rank 4}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q [window else -1.0] positions %p right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x1xi32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}

// -----

func.func @c9_capacity(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention_gradient' op C9: capacity}}
  %0:3 = ds.attention_gradient %q, %q, %q, %q [window else -1.0] right 0 capacity 3 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
  return
}
