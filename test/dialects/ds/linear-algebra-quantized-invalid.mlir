// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @linear_c1_codes_of_integers(%x: tensor<2x4xi16>, %w: tensor<4x8xi8>, %s: tensor<1x8xi16>) {
  // expected-error @+1 {{'ds.linear' op C1: with scales, the operand must be a float and the weight i8 or i4}}
  %0 = ds.linear %x, %w scales %s : (tensor<2x4xi16>, tensor<4x8xi8>, tensor<1x8xi16>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c1_no_codes(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>, %s: tensor<1x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C1: with scales, the operand must be a float and the weight i8 or i4}}
  %0 = ds.linear %x, %w scales %s : (tensor<2x4xf32>, tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c1_unsigned_codes(%x: tensor<2x4xf32>, %w: tensor<4x8xui8>, %s: tensor<1x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C1: with scales, the operand must be a float and the weight i8 or i4}}
  %0 = ds.linear %x, %w scales %s : (tensor<2x4xf32>, tensor<4x8xui8>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c4_half_bytes(%x: tensor<2x4xf32>, %w: tensor<1x2x16xi8>, %s: tensor<1x1x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C4: the weight's last size must be the panel, times what is interleaved}}
  %0 = ds.linear %x, %w scales %s {panel = 8 : i64, interleave = 2 : i64, columns = 8 : i64} : (tensor<2x4xf32>, tensor<1x2x16xi8>, tensor<1x1x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c6_groups(%x: tensor<2x5xf32>, %w: tensor<5x8xi8>, %s: tensor<2x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C6: scales: expected equal sizes, found 2 and 3}}
  %0 = ds.linear %x, %w scales %s {group = 2 : i64} : (tensor<2x5xf32>, tensor<5x8xi8>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c6_columns(%x: tensor<2x5xf32>, %w: tensor<5x8xi8>, %s: tensor<1x7xf32>) {
  // expected-error @+1 {{'ds.linear' op C6: scales: expected equal sizes, found 7 and 8}}
  %0 = ds.linear %x, %w scales %s : (tensor<2x5xf32>, tensor<5x8xi8>, tensor<1x7xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c6_type(%x: tensor<2x5xf32>, %w: tensor<5x8xi8>, %s: tensor<1x8xf64>) {
  // expected-error @+1 {{'ds.linear' op C6: scales must be one for each group and column, as the weight is packed}}
  %0 = ds.linear %x, %w scales %s : (tensor<2x5xf32>, tensor<5x8xi8>, tensor<1x8xf64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c6_packed(%x: tensor<2x5xf32>, %w: tensor<1x5x8xi8>, %s: tensor<1x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C6: scales must be one for each group and column, as the weight is packed}}
  %0 = ds.linear %x, %w scales %s {panel = 8 : i64, columns = 8 : i64} : (tensor<2x5xf32>, tensor<1x5x8xi8>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c7_type(%x: tensor<2x5xf32>, %w: tensor<5x8xi8>, %s: tensor<1x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C7: zero points must be one for each group and column, as the weight is packed}}
  %0 = ds.linear %x, %w scales %s zero_points %s : (tensor<2x5xf32>, tensor<5x8xi8>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c7_alone(%x: tensor<2x5xi16>, %w: tensor<5x8xi8>, %z: tensor<1x8xi8>) {
  // expected-error @+1 {{'ds.linear' op C7: zero points need scales}}
  %0 = ds.linear %x, %w zero_points %z : (tensor<2x5xi16>, tensor<5x8xi8>, tensor<1x8xi8>) -> tensor<2x8xi32>
  return
}

// -----

func.func @linear_c8_odd(%x: tensor<2x5xf32>, %w: tensor<5x8xi8>, %s: tensor<2x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C8: the group must be a positive, even number beside scales}}
  %0 = ds.linear %x, %w scales %s {group = 3 : i64} : (tensor<2x5xf32>, tensor<5x8xi8>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @linear_c8_alone(%x: tensor<2x5xf32>, %w: tensor<5x8xf32>) {
  // expected-error @+1 {{'ds.linear' op C8: the group must be a positive, even number beside scales}}
  %0 = ds.linear %x, %w {group = 2 : i64} : (tensor<2x5xf32>, tensor<5x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @pack_c3_half_bytes(%w: tensor<5x8xi4>) {
  // expected-error @+1 {{'ds.pack' op C3: integers of 4 bits must be interleaved by an even number, found 1}}
  %0 = ds.pack %w panel 8 : (tensor<5x8xi4>) -> tensor<1x5x8xi8>
  return
}

// -----

func.func @quantize_weight_c1_type(%w: tensor<5x8xf64>) {
  // expected-error @+1 {{'ds.quantize_weight' op C1: the operand must be f32 and have rank 2}}
  %0 = ds.quantize_weight codes %w bits 8 group 0 : (tensor<5x8xf64>) -> tensor<5x8xi8>
  return
}

// -----

func.func @quantize_weight_c1_rank(%w: tensor<8xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C1: the operand must be f32 and have rank 2}}
  %0 = ds.quantize_weight codes %w bits 8 group 0 : (tensor<8xf32>) -> tensor<8xi8>
  return
}

// -----

func.func @quantize_weight_c2(%w: tensor<5x8xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C2: expected 4 or 8 bits, found 3}}
  %0 = ds.quantize_weight codes %w bits 3 group 0 : (tensor<5x8xf32>) -> tensor<5x8xi3>
  return
}

// -----

func.func @quantize_weight_c3(%w: tensor<5x8xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C3: the group must not be negative, found -2}}
  %0 = ds.quantize_weight scales %w bits 8 group -2 : (tensor<5x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @quantize_weight_c4(%w: tensor<5x8xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C4: only the asymmetric scheme has zero points}}
  %0 = ds.quantize_weight zero_points %w bits 8 group 0 : (tensor<5x8xf32>) -> tensor<1x8xi8>
  return
}

// -----

func.func @quantize_weight_c5_size(%w: tensor<5x8xf32>, %t: tensor<8x8xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C5: the triangle must be f32, have as many rows and columns as the weight has rows, and stand beside codes}}
  %0 = ds.quantize_weight codes %w against %t bits 8 group 0 : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xi8>
  return
}

// -----

func.func @quantize_weight_c5_part(%w: tensor<5x8xf32>, %t: tensor<5x5xf32>) {
  // expected-error @+1 {{'ds.quantize_weight' op C5: the triangle must be f32}}
  %0 = ds.quantize_weight scales %w against %t bits 8 group 0 : (tensor<5x8xf32>, tensor<5x5xf32>) -> tensor<1x8xf32>
  return
}
