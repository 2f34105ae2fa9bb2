// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @linear_c1_widths(%x: tensor<2x4xi16>, %w: tensor<4x8xi32>) {
  // expected-error @+1 {{'ds.linear' op C1: operand and weight have different element types}}
  %0 = ds.linear %x, %w : (tensor<2x4xi16>, tensor<4x8xi32>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c3_narrow_bias(%x: tensor<2x4xi16>, %w: tensor<4x8xi8>, %b: tensor<8xi16>) {
  // expected-error @+1 {{'ds.linear' op C3: the bias must be one axis of the result's element type}}
  %0 = ds.linear %x, %w, %b : (tensor<2x4xi16>, tensor<4x8xi8>, tensor<8xi16>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c4_interleaved(%x: tensor<2x4xi16>, %w: tensor<1x2x8xi8>) {
  // expected-error @+1 {{'ds.linear' op C4: the weight's last size must be the panel, times what is interleaved}}
  %0 = ds.linear %x, %w {panel = 8 : i64, interleave = 2 : i64, columns = 8 : i64} : (tensor<2x4xi16>, tensor<1x2x8xi8>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c2_interleaved(%x: tensor<2x5xi16>, %w: tensor<1x2x16xi8>) {
  // expected-error @+1 {{'ds.linear' op C2: inner sizes: expected equal sizes, found 3 and 2}}
  %0 = ds.linear %x, %w {panel = 8 : i64, interleave = 2 : i64, columns = 8 : i64} : (tensor<2x5xi16>, tensor<1x2x16xi8>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c5_without_panel(%x: tensor<2x4xi16>, %w: tensor<4x8xi8>) {
  // expected-error @+1 {{'ds.linear' op C5: only packed weights are interleaved, by a positive number}}
  %0 = ds.linear %x, %w {interleave = 2 : i64} : (tensor<2x4xi16>, tensor<4x8xi8>) -> tensor<2x8xi32>
  return
}

// -----

func.func @pack_c2_interleave(%x: tensor<4x4xi8>) {
  // expected-error @+1 {{'ds.pack' op C2: panel and interleave must be positive, and at most 2^20}}
  %0 = ds.pack %x panel 4 interleave 0 : (tensor<4x4xi8>) -> tensor<1x4x4xi8>
  return
}

// -----

func.func @linear_c9_wide(%x: tensor<2x4xf16>, %w: tensor<4x8xf16>) {
  // expected-error @+1 {{'ds.linear' op C9: wide products have operands of bf16, rows of bf16 and codes, or rows of f32 and a weight of f16}}
  %0 = ds.linear %x, %w {wide} : (tensor<2x4xf16>, tensor<4x8xf16>) -> tensor<2x8xf32>
  return
}
