// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @rotary_c1_type(%x: tensor<2x4xf32>, %c: tensor<4xf64>) {
  // expected-error @+1 {{'ds.rotary' op C1: operand, cosines and sines must have one float type}}
  %0 = ds.rotary %x, %c, %c interleaved false : (tensor<2x4xf32>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c2_odd(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.rotary' op C2: the operand's last size must be static and even}}
  %0 = ds.rotary %x, %x, %x interleaved false : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @rotary_c2_first(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'ds.rotary' op C2: expected an even number of elements to rotate, 2 to 4, found 6}}
  %0 = ds.rotary %x, %x, %x interleaved false first 6 : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c2_odd_first(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'ds.rotary' op C2: expected an even number of elements to rotate, 2 to 4, found 3}}
  %0 = ds.rotary %x, %x, %x interleaved false first 3 : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c2_negative(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'ds.rotary' op C2: expected an even number of elements to rotate, 2 to 4, found -2}}
  %0 = ds.rotary %x, %x, %x interleaved false first -2 : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c2_none(%x: tensor<2x4xf32>, %c: tensor<4x0xf32>) {
  // expected-error @+1 {{'ds.rotary' op C2: expected an even number of elements to rotate, 2 to 4, found 0}}
  %0 = ds.rotary %x, %c, %c interleaved false first 0 : (tensor<2x4xf32>, tensor<4x0xf32>, tensor<4x0xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c3_first(%x: tensor<2x6xf32>) {
  // expected-error @+1 {{'ds.rotary' op C3: cosines and sines must end in 4 or both in 2}}
  %0 = ds.rotary %x, %x, %x interleaved false first 4 : (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @rotary_c3_angles(%x: tensor<2x4xf32>, %c: tensor<4xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{'ds.rotary' op C3: cosines and sines must end in 4 or both in 2}}
  %0 = ds.rotary %x, %c, %s interleaved false : (tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_c4_grows(%x: tensor<1x4xf32>, %c: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.rotary' op C4: cosines and sines must broadcast to the operand, found size 3 for 1}}
  %0 = ds.rotary %x, %c, %c interleaved false : (tensor<1x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @rotary_c4_rank(%x: tensor<2x4xf32>, %c: tensor<1x2x4xf32>) {
  // expected-error @+1 {{'ds.rotary' op C4: cosines and sines must have at most the operand's rank}}
  %0 = ds.rotary %x, %c, %c interleaved false : (tensor<2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<2x4xf32>
  return
}
