// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @matmul_c1_rank(%x: tensor<4xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.matmul' op C1: both operands must have rank 2 or more, found 1 and 2}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<4xf32>, tensor<4x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @matmul_c2_types(%x: tensor<2x4xf64>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.matmul' op C2: operands have different element types}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x4xf64>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @matmul_c3_inner(%x: tensor<2x4xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.matmul' op C3: inner sizes: expected equal sizes, found 4 and 2}}
  %0 = ds.matmul %x, %w transpose [false, true] : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c4_batch(%x: tensor<2x1x4xf32>, %w: tensor<3x4x2xf32>) {
  // expected-error @+1 {{'ds.matmul' op shapes do not broadcast: axis 0 has sizes 2 and 3}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x1x4xf32>, tensor<3x4x2xf32>) -> tensor<2x1x2xf32>
  return
}

// -----

func.func @matmul_c5_wide(%x: tensor<2x4xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.matmul' op C5: wide products have operands of bf16}}
  %0 = ds.matmul %x, %w transpose [false, false] {wide} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @linear_c1_types(%x: tensor<2x4xf64>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.linear' op C1: operand and weight have different element types}}
  %0 = ds.linear %x, %w : (tensor<2x4xf64>, tensor<4x2xf32>) -> tensor<2x2xf64>
  return
}

// -----

func.func @linear_c2_depth(%x: tensor<2x5xi16>, %w: tensor<1x3x32xi8>) {
  // expected-error @+1 {{'ds.linear' op C2: inner sizes: expected equal sizes, found 5 and 6}}
  %0 = ds.linear %x, %w {columns = 4 : i64, depth = 6 : i64, interleave = 2 : i64, panel = 16 : i64} : (tensor<2x5xi16>, tensor<1x3x32xi8>) -> tensor<2x4xi32>
  return
}

// -----

func.func @linear_c2_inner(%x: tensor<2x3xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.linear' op C2: inner sizes: expected equal sizes, found 3 and 4}}
  %0 = ds.linear %x, %w : (tensor<2x3xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @linear_c3_bias(%x: tensor<2x4xf32>, %w: tensor<4x2xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'ds.linear' op C3: bias size: expected equal sizes, found 3 and 2}}
  %0 = ds.linear %x, %w, %b : (tensor<2x4xf32>, tensor<4x2xf32>, tensor<3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @linear_c2_transposed(%x: tensor<2x4xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{'ds.linear' op C2: inner sizes: expected equal sizes, found 4 and 2}}
  %0 = ds.linear %x, %w {transposed} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @linear_c4_packed_and_transposed(%x: tensor<2x4xf32>, %w: tensor<1x4x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C4: a packed weight cannot be transposed}}
  %0 = ds.linear %x, %w {panel = 8 : i64, columns = 8 : i64, transposed} : (tensor<2x4xf32>, tensor<1x4x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c4_panel(%x: tensor<2x4xf32>, %w: tensor<1x4x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C4: the weight must have rank 2, or 3 with a panel and columns}}
  %0 = ds.linear %x, %w : (tensor<2x4xf32>, tensor<1x4x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @pack_c1_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.pack' op C1: the operand must have rank 2}}
  %0 = ds.pack %x panel 4 : (tensor<4xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @pack_c2_panel(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{'ds.pack' op C2: panel and interleave must be positive, and at most 2^20}}
  %0 = ds.pack %x panel 0 : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_c1_rank(%x: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C1: query, key and value must have rank 4 and one float type}}
  %0 = ds.attention %x, %x, %x scale 1.0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @attention_c2_sizes(%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x4x6xf32>) {
  // expected-error @+1 {{'ds.attention' op C2: head size: expected equal sizes, found 5 and 6}}
  %0 = ds.attention %q, %k, %k scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
  return
}

// -----

func.func @attention_c3_mask(%q: tensor<2x3x4x5xf32>, %mask: tensor<4x7xf32>) {
  // expected-error @+1 {{'ds.attention' op shapes do not broadcast: axis 3 has sizes 4 and 7}}
  %0 = ds.attention %q, %q, %q [add %mask] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x7xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c4_heads(%q: tensor<2x3x4x5xf32>, %k: tensor<2x2x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C4: the heads of the query must be a multiple of those of the key, found 3 and 2}}
  %0 = ds.attention %q, %k, %k scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x2x4x5xf32>, tensor<2x2x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c3_factor(%q: tensor<2x3x4x5xf32>, %factor: tensor<4x4xf64>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must have at most rank 4 and the query's element type, or f32 beside a float of 16 bits; those that choose i1}}
  %0 = ds.attention %q, %q, %q [multiply %factor] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xf64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c5_softcap(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C5: the softcap must be positive}}
  %0 = ds.attention %q, %q, %q scale 1.0 softcap 0.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c3_grows(%q: tensor<1x3x4x5xf32>, %mask: tensor<2x1x4x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must broadcast to the operand, found size 2 for 1}}
  %0 = ds.attention %q, %q, %q [add %mask] scale 1.0 : (tensor<1x3x4x5xf32>, tensor<1x3x4x5xf32>, tensor<1x3x4x5xf32>, tensor<2x1x4x4xf32>) -> tensor<1x3x4x5xf32>
  return
}

// -----

func.func @conv_c1_rank(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.conv' op C1: operand and weight must have one rank of at least 3}}
  %0 = ds.conv %x, %x strides [] pads [] dilations [] groups 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @conv_c2_types(%x: tensor<1x1x5xf32>, %w: tensor<1x1x3xf64>) {
  // expected-error @+1 {{'ds.conv' op C2: operand and weight have different element types}}
  %0 = ds.conv %x, %w strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x3xf64>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @conv_c3_strides(%x: tensor<1x1x5xf32>, %w: tensor<1x1x3xf32>) {
  // expected-error @+1 {{'ds.conv' op C3: strides, dilations, pads and groups must be legal and match 1 spatial axes}}
  %0 = ds.conv %x, %w strides [0] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @conv_c4_channels(%x: tensor<1x2x5xf32>, %w: tensor<1x1x3xf32>) {
  // expected-error @+1 {{'ds.conv' op C4: channels: expected equal sizes, found 2 and 1}}
  %0 = ds.conv %x, %w strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x2x5xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @conv_c5_bias(%x: tensor<1x1x5xf32>, %w: tensor<1x1x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'ds.conv' op C5: bias size: expected equal sizes, found 2 and 1}}
  %0 = ds.conv %x, %w, %b strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x3xf32>, tensor<2xf32>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @conv_c6_wide(%x: tensor<1x1x5xf32>, %w: tensor<1x1x3xf32>) {
  // expected-error @+1 {{'ds.conv' op C6: wide convolutions have operands of bf16}}
  %0 = ds.conv %x, %w strides [1] pads [0, 0] dilations [1] groups 1 {wide} : (tensor<1x1x5xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @conv_c5_bias_of_wide(%x: tensor<1x1x5xbf16>, %w: tensor<1x1x3xbf16>, %b: tensor<1xbf16>) {
  // expected-error @+1 {{'ds.conv' op C5: the bias must be one axis of the result's element type}}
  %0 = ds.conv %x, %w, %b strides [1] pads [0, 0] dilations [1] groups 1 {wide} : (tensor<1x1x5xbf16>, tensor<1x1x3xbf16>, tensor<1xbf16>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @pool_c1_rank(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{'ds.pool' op C1: the operand must have rank 3 or more}}
  %0 = ds.pool max %x kernel [] strides [] pads [] dilations [] {ceil = false, include_pad = false, exponent = 2 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @pool_c2_kernel(%x: tensor<1x1x4xf32>) {
  // expected-error @+1 {{'ds.pool' op C2: kernel, strides, dilations and pads must be legal and match 1 spatial axes}}
  %0 = ds.pool max %x kernel [2, 2] strides [1] pads [0, 0] dilations [1] {ceil = false, include_pad = false, exponent = 2 : i64} : (tensor<1x1x4xf32>) -> tensor<1x1x3xf32>
  return
}

// -----

func.func @linear_attention_c1_rank(%q: tensor<1x4x3x8xf32>, %s: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'ds.linear_attention' op C1: all operands must have one float type and rank 4, beta rank 3}}
  %0, %1 = ds.linear_attention %q, %q, %q, %q, %q, %s scale 0.5 delta true : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x8x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x8x8xf32>)
  return
}

// -----

func.func @linear_attention_c2_state(%q: tensor<1x4x3x8xf32>, %b: tensor<1x4x3xf32>, %s: tensor<1x4x8x7xf32>) {
  // expected-error @+1 {{'ds.linear_attention' op C2: state against key and value}}
  %0, %1 = ds.linear_attention %q, %q, %q, %q, %b, %s scale 0.5 delta true : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x8x7xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x8x7xf32>)
  return
}

// -----

func.func @linear_attention_c3_heads(%q: tensor<1x3x3x8xf32>, %k: tensor<1x2x3x8xf32>, %b: tensor<1x2x3xf32>, %s: tensor<1x2x8x8xf32>) {
  // expected-error @+1 {{'ds.linear_attention' op C3: the heads of the query must be a multiple of those of the key, found 3 and 2}}
  %0, %1 = ds.linear_attention %q, %k, %k, %k, %b, %s scale 0.5 delta true : (tensor<1x3x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x3x3x8xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @attention_c3_choice(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must have at most rank 4}}
  %0 = ds.attention %q, %q, %q [hide_add %m else 0.0] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c3_added_condition(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xi1>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must have at most rank 4}}
  %0 = ds.attention %q, %q, %q [add %m] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xi1>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c3_rank(%q: tensor<2x3x4x5xf32>, %m: tensor<1x1x1x4x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must have at most rank 4}}
  %0 = ds.attention %q, %q, %q [add %m] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<1x1x1x4x4xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c3_wide(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xf16>) {
  // expected-error @+1 {{'ds.attention' op C3: masks must have at most rank 4}}
  %0 = ds.attention %q, %q, %q [add %m] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xf16>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_no_bound(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0 = ds.attention %q, %q, %q [window else 0.0] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_no_step(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0 = ds.attention %q, %q, %q right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_past(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0 = ds.attention %q, %q, %q past [1] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_capacity(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0 = ds.attention %q, %q, %q capacity 9 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_both(%q: tensor<2x3x4x5xf32>, %p: tensor<4x1xi64>) {
  // expected-error @+1 {{'ds.attention' op C7: expected bounds of the window beside steps by it, and past or positions only there}}
  %0 = ds.attention %q, %q, %q [window else 0.0] positions %p past [1] right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x1xi64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_pasts(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected one size as past}}
  %0 = ds.attention %q, %q, %q [window else 0.0] past [1, 2] right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_text(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: expected one size as past}}
  %0 = ds.attention %q, %q, %q [window else 0.0] past ["1 +"] right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_far(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: the bounds of the window must be less than 2^40}}
  %0 = ds.attention %q, %q, %q [window else 0.0] right 1099511627776 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_far_left(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: the bounds of the window must be less than 2^40}}
  %0 = ds.attention %q, %q, %q [window else 0.0] left -1099511627776 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c7_farthest_left(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C7: the bounds of the window must be less than 2^40}}
  %0 = ds.attention %q, %q, %q [window else 0.0] left -9223372036854775808 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c8_type(%q: tensor<2x3x4x5xf32>, %p: tensor<4x1xi32>) {
  // expected-error @+1 {{'ds.attention' op C8: positions must be i64 and have at most rank 4}}
  %0 = ds.attention %q, %q, %q [window else 0.0] positions %p right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x1xi32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c8_rank(%q: tensor<2x3x4x5xf32>, %p: tensor<1x1x1x4x1xi64>) {
  // expected-error @+1 {{'ds.attention' op C8: positions must be i64 and have at most rank 4}}
  %0 = ds.attention %q, %q, %q [window else 0.0] positions %p right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<1x1x1x4x1xi64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c8_columns(%q: tensor<2x3x4x5xf32>, %p: tensor<4x4xi64>) {
  // expected-error @+1 {{'ds.attention' op C8: positions must broadcast to the operand, found size 4 for 1}}
  %0 = ds.attention %q, %q, %q [window else 0.0] positions %p right 0 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xi64>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c9_capacity(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C9: capacity: expected at least 4, found 3}}
  %0 = ds.attention %q, %q, %q [window else 0.0] right 0 capacity 3 scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_unknown_step(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{expected a step of the scores, found 'divide'}}
  %0 = ds.attention %q, %q, %q [divide %q] scale 1.0 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c6_masks(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C6: expected one mask for each step that takes one and one low for each step, found 0 and 1}}
  %0 = "ds.attention"(%q, %q, %q) <{steps = [#ds<score_step add>], lows = array<f64: 0.0>, scale = 1.0, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @attention_c6_lows(%q: tensor<2x3x4x5xf32>, %m: tensor<4x4xf32>) {
  // expected-error @+1 {{'ds.attention' op C6: expected one mask for each step that takes one and one low for each step, found 1 and 2}}
  %0 = "ds.attention"(%q, %q, %q, %m) <{steps = [#ds<score_step add>], lows = array<f64: 0.0, 1.0>, scale = 1.0, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<4x4xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

func.func @conv_c5_bias_rank(%x: tensor<1x1x4xf32>, %w: tensor<2x1x2xf32>, %b: tensor<2x0xf32>) {
  // expected-error @+1 {{'ds.conv' op C5: the bias must be one axis of the result's element type}}
  %0 = ds.conv %x, %w, %b strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x4xf32>, tensor<2x1x2xf32>, tensor<2x0xf32>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @conv_c5_bias_type(%x: tensor<1x1x4xf32>, %w: tensor<2x1x2xf32>, %b: tensor<2xf64>) {
  // expected-error @+1 {{'ds.conv' op C5: the bias must be one axis of the result's element type}}
  %0 = ds.conv %x, %w, %b strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x4xf32>, tensor<2x1x2xf32>, tensor<2xf64>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @attention_c10_rounds(%q: tensor<2x3x4x5xf32>) {
  // expected-error @+1 {{'ds.attention' op C10: operands may be rounded to bf16, beside an element type of f32}}
  %0 = ds.attention %q, %q, %q scale 1.0 rounds f16 : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}
