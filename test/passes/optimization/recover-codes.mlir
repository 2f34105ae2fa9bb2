// RUN: ds-opt %s --split-input-file --ds-recover-codes --verify-diagnostics | FileCheck %s

// Codes of 4 bits in blocks of 4, transposed as MatMulNBits has them: unsigned ones move down by 8, zero points with them.
// CHECK-LABEL: func.func @doc
// CHECK: ds.linear %arg0, %{{.*}} scales %{{.*}} zero_points %{{.*}} {group = 4 : i64} : (tensor<?x8xf32>, tensor<8x6xi4>, tensor<2x6xf32>, tensor<2x6xi8>)
// CHECK-LABEL: ds.recipe @w.codes
// CHECK: %[[U:.*]] = ds.binary bit_and
// CHECK: %[[S:.*]] = ds.binary sub %{{.*}}, %{{.*}} : (tensor<6x2x4xi16>, tensor<i16>)
// CHECK: %[[C:.*]] = ds.cast %[[S]] to i4
// CHECK: ds.reshape %[[C]] [6, 8]
// CHECK: ds.transpose
// CHECK: ds.yield {{.*}} : tensor<8x6xi4>
// CHECK-LABEL: ds.recipe @w.scales
// CHECK: ds.slice %{{.*}} starts [0, 0] sizes [2, 6] steps [4, 1] : (tensor<8x6xf32>) -> tensor<2x6xf32>
// CHECK-LABEL: ds.recipe @w.zero_points
// CHECK: ds.yield {{.*}} : tensor<2x6xi8>
// CHECK-NOT: ds.recipe
func.func @doc(%x: tensor<?x8xf32>) -> tensor<?x6xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<8x6xf32>
  %0 = ds.linear %x, %w : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 48] : tensor<6x2x4xui8>
  %1 = ds.constant dense<15> : tensor<ui8>
  %2 = ds.binary bit_and %0, %1 : (tensor<6x2x4xui8>, tensor<ui8>) -> tensor<6x2x4xui8>
  %3 = ds.cast %2 to f32 : (tensor<6x2x4xui8>) -> tensor<6x2x4xf32>
  %4 = ds.source "m" [48, 12] : tensor<6x2x1xui8>
  %5 = ds.binary bit_and %4, %1 : (tensor<6x2x1xui8>, tensor<ui8>) -> tensor<6x2x1xui8>
  %6 = ds.cast %5 to f32 : (tensor<6x2x1xui8>) -> tensor<6x2x1xf32>
  %7 = ds.binary sub %3, %6 : (tensor<6x2x4xf32>, tensor<6x2x1xf32>) -> tensor<6x2x4xf32>
  %8 = ds.constant dense<0.5> : tensor<6x2x1xf32>
  %9 = ds.binary mul %7, %8 : (tensor<6x2x4xf32>, tensor<6x2x1xf32>) -> tensor<6x2x4xf32>
  %10 = ds.reshape %9 [6, 8] : (tensor<6x2x4xf32>) -> tensor<6x8xf32>
  %11 = ds.transpose %10 [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  ds.yield %11 : tensor<8x6xf32>
}

// -----

// One scale for a column, on either side of the product; zero points in the middle of unsigned bytes need none. Two
// products share what one weight became.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-2: ds.linear %arg0, %{{.*}} scales %{{.*}} : (tensor<?x4xf32>, tensor<4x6xi8>, tensor<1x6xf32>)
// CHECK: ds.recipe @w.codes
// CHECK: ds.recipe @w.scales
// CHECK-NOT: ds.recipe
func.func @columns(%x: tensor<?x4xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x6xf32>
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  %1 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  return %0, %1 : tensor<?x6xf32>, tensor<?x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 24] : tensor<4x6xui8>
  %1 = ds.cast %0 to f32 : (tensor<4x6xui8>) -> tensor<4x6xf32>
  %2 = ds.constant dense<128.0> : tensor<1x6xf32>
  %3 = ds.binary sub %1, %2 : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
  %4 = ds.constant dense<0.5> : tensor<6xf32>
  %5 = ds.binary mul %4, %3 : (tensor<6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  ds.yield %5 : tensor<4x6xf32>
}

// -----

// A cut leaves a last group that is shorter.
// CHECK-LABEL: func.func @cut
// CHECK: ds.linear {{.*}} {group = 4 : i64} : (tensor<?x7xf32>, tensor<7x6xi8>, tensor<2x6xf32>)
func.func @cut(%x: tensor<?x7xf32>) -> tensor<?x6xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<7x6xf32>
  %0 = ds.linear %x, %w : (tensor<?x7xf32>, tensor<7x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 48] : tensor<2x4x6xi8>
  %1 = ds.cast %0 to f32 : (tensor<2x4x6xi8>) -> tensor<2x4x6xf32>
  %2 = ds.constant dense<0.5> : tensor<2x1x6xf32>
  %3 = ds.binary mul %1, %2 : (tensor<2x4x6xf32>, tensor<2x1x6xf32>) -> tensor<2x4x6xf32>
  %4 = ds.reshape %3 [8, 6] : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %5 = ds.slice %4 starts [0, 0] sizes [7, 6] steps [1, 1] : (tensor<8x6xf32>) -> tensor<7x6xf32>
  ds.yield %5 : tensor<7x6xf32>
}

// -----

// Ranges of the flat weight: four of [K, N] that hold two rows each, two of [N, K] that hold three columns each.
// CHECK-LABEL: func.func @ranges
// CHECK: ds.linear {{.*}} {group = 2 : i64} : (tensor<?x8xf32>, tensor<8x6xi8>, tensor<4x6xf32>)
// CHECK: ds.linear {{.*}} : (tensor<?x8xf32>, tensor<8x6xi8>, tensor<1x6xf32>)
func.func @ranges(%x: tensor<?x8xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<8x6xf32>
  %v = ds.weight @v : tensor<8x6xf32>
  %0 = ds.linear %x, %w : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %1 = ds.linear %x, %v : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  return %0, %1 : tensor<?x6xf32>, tensor<?x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 48] : tensor<4x12xi8>
  %1 = ds.cast %0 to f32 : (tensor<4x12xi8>) -> tensor<4x12xf32>
  %2 = ds.constant dense<0.5> : tensor<4x1xf32>
  %3 = ds.binary mul %1, %2 : (tensor<4x12xf32>, tensor<4x1xf32>) -> tensor<4x12xf32>
  %4 = ds.reshape %3 [8, 6] : (tensor<4x12xf32>) -> tensor<8x6xf32>
  ds.yield %4 : tensor<8x6xf32>
}
ds.recipe @v {
  %0 = ds.source "m" [64, 48] : tensor<2x24xi8>
  %1 = ds.cast %0 to f32 : (tensor<2x24xi8>) -> tensor<2x24xf32>
  %2 = ds.constant dense<0.5> : tensor<2x1xf32>
  %3 = ds.binary mul %1, %2 : (tensor<2x24xf32>, tensor<2x1xf32>) -> tensor<2x24xf32>
  %4 = ds.reshape %3 [6, 8] : (tensor<2x24xf32>) -> tensor<6x8xf32>
  %5 = ds.transpose %4 [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  ds.yield %5 : tensor<8x6xf32>
}

// -----

// What stays floats: scales of rows, groups of 3, codes of 16 bits, zero points with fractions; weights without codes
// are not worth a word.
func.func @kept(%x: tensor<?x6xf32>) attributes {ds.entry} {
  %rows = ds.weight @rows : tensor<6x4xf32>
  // expected-remark @+1 {{weight 'rows' stays floats: its scales are not one for each column or for each group along K}}
  %0 = ds.linear %x, %rows : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
  %odd = ds.weight @odd : tensor<6x4xf32>
  // expected-remark @+1 {{weight 'odd' stays floats: its scales are not one for each column or for each group along K}}
  %1 = ds.linear %x, %odd : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
  %wide = ds.weight @wide : tensor<6x4xf32>
  // expected-remark @+1 {{weight 'wide' stays floats: its codes have more than 8 bits}}
  %2 = ds.linear %x, %wide : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
  %half = ds.weight @half : tensor<6x4xf32>
  // expected-remark @+1 {{weight 'half' stays floats: its zero points are no integers of 8 bits}}
  %3 = ds.linear %x, %half : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
  %plain = ds.weight @plain : tensor<6x4xf32>
  %4 = ds.linear %x, %plain : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
  return
}
ds.recipe @rows {
  %0 = ds.source "m" [0, 24] : tensor<6x4xi8>
  %1 = ds.cast %0 to f32 : (tensor<6x4xi8>) -> tensor<6x4xf32>
  %2 = ds.source "m" [24, 24] : tensor<6x1xf32>
  %3 = ds.binary mul %1, %2 : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
  ds.yield %3 : tensor<6x4xf32>
}
ds.recipe @odd {
  %0 = ds.source "m" [0, 24] : tensor<2x3x4xi8>
  %1 = ds.cast %0 to f32 : (tensor<2x3x4xi8>) -> tensor<2x3x4xf32>
  %2 = ds.source "m" [24, 8] : tensor<2x1x1xf32>
  %3 = ds.binary mul %1, %2 : (tensor<2x3x4xf32>, tensor<2x1x1xf32>) -> tensor<2x3x4xf32>
  %4 = ds.reshape %3 [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  ds.yield %4 : tensor<6x4xf32>
}
ds.recipe @wide {
  %0 = ds.source "m" [0, 48] : tensor<6x4xi16>
  %1 = ds.cast %0 to f32 : (tensor<6x4xi16>) -> tensor<6x4xf32>
  %2 = ds.source "m" [48, 16] : tensor<4xf32>
  %3 = ds.binary mul %1, %2 : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  ds.yield %3 : tensor<6x4xf32>
}
ds.recipe @half {
  %0 = ds.source "m" [0, 24] : tensor<6x4xi8>
  %1 = ds.cast %0 to f32 : (tensor<6x4xi8>) -> tensor<6x4xf32>
  %2 = ds.constant dense<0.5> : tensor<f32>
  %3 = ds.binary sub %1, %2 : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  %4 = ds.source "m" [48, 16] : tensor<4xf32>
  %5 = ds.binary mul %3, %4 : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  ds.yield %5 : tensor<6x4xf32>
}
ds.recipe @plain {
  %0 = ds.source "m" [0, 96] : tensor<6x4xf32>
  ds.yield %0 : tensor<6x4xf32>
}

// -----

// Scales of groups that sums could not meet before the row's: of 2^-60 and 2^41 in one column; 2^-60 and 2^20 can be met.
// Infinity times a code of 0 is no number, which is no part of a sum of integers.
// CHECK-LABEL: func.func @apart
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<?x8xf32>, tensor<8x6xf32>)
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<?x8xf32>, tensor<8x6xf32>)
// CHECK: ds.linear %arg0, %{{.*}} scales
// CHECK: ds.linear %arg0, %{{.*}} : (tensor<?x8xf32>, tensor<8x6xf32>)
func.func @apart(%x: tensor<?x8xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<8x6xf32>
  %v = ds.weight @v : tensor<8x6xf32>
  // expected-remark @+1 {{weight 'w' stays floats: the scales of its groups are not finite, or too far apart to be summed in f32}}
  %0 = ds.linear %x, %w : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  // expected-remark @+1 {{weight 'w' stays floats: the scales of its groups are not finite, or too far apart to be summed in f32}}
  %1 = ds.linear %x, %w : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %2 = ds.linear %x, %v : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %u = ds.weight @u : tensor<8x6xf32>
  // expected-remark @+1 {{weight 'u' stays floats: the scales of its groups are not finite, or too far apart to be summed in f32}}
  %3 = ds.linear %x, %u : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  return %0, %1, %2, %3 : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>
}
ds.recipe @u {
  %0 = ds.source "m" [0, 48] : tensor<8x6xi8>
  %1 = ds.cast %0 to f32 : (tensor<8x6xi8>) -> tensor<8x6xf32>
  %2 = ds.constant dense<[1.0, 1.0, 0x7F800000, 1.0, 1.0, 1.0]> : tensor<6xf32>
  %3 = ds.binary mul %1, %2 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  ds.yield %3 : tensor<8x6xf32>
}
ds.recipe @w {
  %0 = ds.source "m" [0, 48] : tensor<2x4x6xi8>
  %1 = ds.cast %0 to f32 : (tensor<2x4x6xi8>) -> tensor<2x4x6xf32>
  %2 = ds.constant dense<[[[8.67361738e-19, 1.0, 1.0, 1.0, 1.0, 1.0]], [[2.19902326e12, 1.0, 1.0, 1.0, 1.0, 1.0]]]> : tensor<2x1x6xf32>
  %3 = ds.binary mul %1, %2 : (tensor<2x4x6xf32>, tensor<2x1x6xf32>) -> tensor<2x4x6xf32>
  %4 = ds.reshape %3 [8, 6] : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  ds.yield %4 : tensor<8x6xf32>
}
ds.recipe @v {
  %0 = ds.source "m" [0, 48] : tensor<2x4x6xi8>
  %1 = ds.cast %0 to f32 : (tensor<2x4x6xi8>) -> tensor<2x4x6xf32>
  %2 = ds.constant dense<[[[8.67361738e-19, 1.0, 1.0, 1.0, 1.0, 1.0]], [[1.04857600e6, 1.0, 1.0, 1.0, 1.0, 1.0]]]> : tensor<2x1x6xf32>
  %3 = ds.binary mul %1, %2 : (tensor<2x4x6xf32>, tensor<2x1x6xf32>) -> tensor<2x4x6xf32>
  %4 = ds.reshape %3 [8, 6] : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  ds.yield %4 : tensor<8x6xf32>
}
