// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot,bfloat_dot" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot,bfloat_dot" -o /dev/null 2>%t.remarks
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,bfloat_dot=0.5" 2>%t.slow | FileCheck %s --check-prefix=SLOW
// RUN: FileCheck %s --check-prefix=SLOWER --input-file=%t.slow
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,bfloat_dot,bfloat_tiles,byte_tiles" 2>/dev/null | FileCheck %s --check-prefix=SQUARES
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256" 2>/dev/null | FileCheck %s --check-prefix=NARROW
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=300" 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,vnni" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot=-1" 2>&1 | FileCheck %s --check-prefix=RATE
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=512 columns=8" 2>&1 | FileCheck %s --check-prefix=TILE
// BITS: error: ds-schedule-kernels: machine '300': expected 128, 256, 512 or 1024 bits of a vector, found '300'
// NAME: error: ds-schedule-kernels: machine '512,vnni': expected one of byte_dot, byte_tiles, bfloat_dot, bfloat_tiles, found 'vnni'
// RATE: error: ds-schedule-kernels: machine '512,byte_dot=-1': expected a positive rate, found '-1'
// TILE: cannot be scheduled: a tile has at least one row, and whole vectors of 16 columns, found {{[0-9]+}} rows and 8 columns

// As many columns as are known decide how wide a tile is: 768 fill panels of three vectors, 64 fill one of four, two
// are one vector.
// CHECK-LABEL: func.func @columns
// CHECK: ds.linear %arg0, %arg1 {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>}
// CHECK: ds.linear %arg0, %arg2 {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 64, sweep = 128>}
// CHECK: ds.linear %arg0, %arg3 {ds.schedule = #ds.schedule<multiply_add, rows = 16, columns = 16, sweep = 128>}
// NARROW-LABEL: func.func @columns
// NARROW: rows = 6, columns = 16
// NARROW: rows = 6, columns = 16
// NARROW: rows = 14, columns = 8
func.func @columns(%x: tensor<?x32xf32>, %a: tensor<32x768xf32>, %b: tensor<32x64xf32>, %c: tensor<32x2xf32>)
    -> (tensor<?x768xf32>, tensor<?x64xf32>, tensor<?x2xf32>) {
  %0 = ds.linear %x, %a : (tensor<?x32xf32>, tensor<32x768xf32>) -> tensor<?x768xf32>
  %1 = ds.linear %x, %b : (tensor<?x32xf32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  %2 = ds.linear %x, %c : (tensor<?x32xf32>, tensor<32x2xf32>) -> tensor<?x2xf32>
  return %0, %1, %2 : tensor<?x768xf32>, tensor<?x64xf32>, tensor<?x2xf32>
}

// -----

// The instruction is taken where it is faster than two multiply-adds of halves, and only there.
// CHECK-LABEL: func.func @bfloat
// CHECK: #ds.schedule<bfloat_dot, rows = 8, columns = 48, sweep = 128>
// REMARK: remark: scheduled: bfloat_dot, 8 x 48; bfloat_halves takes 2.2 times as long
// SLOW-LABEL: func.func @bfloat
// SLOW: #ds.schedule<bfloat_halves, rows = 8, columns = 48, sweep = 128, few = 16>
// SLOWER: remark: scheduled: bfloat_halves, 8 x 48; bfloat_dot takes 1.8 times as long
// SQUARES-LABEL: func.func @bfloat
// As many rows at a time as stay in a level-2 cache beside panels.
// SQUARES: #ds.schedule<bfloat_tiles, rows = 32, columns = 48, sweep = 512>
func.func @bfloat(%x: tensor<?x32xbf16>) -> tensor<?x48xf32> {
  %w = ds.weight @w : tensor<32x48xbf16>
  %0 = ds.linear %x, %w {wide} : (tensor<?x32xbf16>, tensor<32x48xbf16>) -> tensor<?x48xf32>
  return %0 : tensor<?x48xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<32x48xbf16>
  ds.yield %0 : tensor<32x48xbf16>
}

// -----

// CHECK-LABEL: func.func @bytes
// CHECK: #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>
// CHECK: #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>
// CHECK: #ds.schedule<pair_dot, rows = 8, columns = 48, sweep = 128>
// CHECK: #ds.schedule<multiply_add, rows = 8, columns = 24, sweep = 128>
// SLOW-LABEL: func.func @bytes
// SLOW: #ds.schedule<byte_pairs, rows = 8, columns = 48, sweep = 128>
// Squares need a packed left operand, which products of two operands of run time have not.
// SQUARES-LABEL: func.func @bytes
// SQUARES: #ds.schedule<byte_pairs, rows = 8, columns = 48, sweep = 128>
func.func @bytes(%x: tensor<?x32xui8>, %w: tensor<32x?xi8>, %p: tensor<?x32xi16>, %d: tensor<?x32xf64>, %e: tensor<32x?xf64>)
    -> (tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xf64>) {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x32xui8>, tensor<32x?xi8>) -> tensor<?x?xi32>
  %1 = ds.matmul %x, %x transpose [false, true] : (tensor<?x32xui8>, tensor<?x32xui8>) -> tensor<?x?xi32>
  %2 = ds.matmul %p, %w transpose [false, false] : (tensor<?x32xi16>, tensor<32x?xi8>) -> tensor<?x?xi32>
  %3 = ds.matmul %d, %e transpose [false, false] : (tensor<?x32xf64>, tensor<32x?xf64>) -> tensor<?x?xf64>
  return %0, %1, %2, %3 : tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xf64>
}

// -----

// Attention and convolutions multiply, too; pixels are the columns of a convolution: of one image or, where one fills
// no vectors, of as many as there are. 14 x 14 pixels are 13 vectors, which four panels share with less loss than five.
// CHECK-LABEL: func.func @others
// CHECK: ds.attention {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>}
// CHECK: ds.attention_gradient {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>}
// CHECK: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>}
// CHECK: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 16, columns = 16, sweep = 128>}
// CHECK: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 64, sweep = 128>}
// CHECK: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 64, sweep = 128>}
// NARROW-LABEL: func.func @others
// NARROW: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
// NARROW: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
// NARROW: ds.conv {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
func.func @others(%q: tensor<?x2x?x8xf32>, %i: tensor<?x4x4x4xf32>, %f: tensor<8x4x1x1xf32>, %j: tensor<1x4x4x4xf32>, %l: tensor<1x4x14x14xf32>,
    %n: tensor<1x4x8x8xf32>) -> (tensor<?x2x?x8xf32>, tensor<?x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x14x14xf32>, tensor<1x8x8x8xf32>) {
  %0 = ds.attention %q, %q, %q scale 0.5 : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %d:3 = ds.attention_gradient %q, %q, %q, %q scale 0.5 : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
  %1 = ds.conv %i, %f strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<?x4x4x4xf32>, tensor<8x4x1x1xf32>) -> tensor<?x8x4x4xf32>
  %2 = ds.conv %j, %f strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x4x4x4xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x4x4xf32>
  %3 = ds.conv %l, %f strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x4x14x14xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x14x14xf32>
  %4 = ds.conv %n, %f strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x4x8x8xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x8x8xf32>
  return %0, %1, %2, %3, %4 : tensor<?x2x?x8xf32>, tensor<?x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x14x14xf32>, tensor<1x8x8x8xf32>
}

// -----

// Attention of narrow floats is multiplied in f32, that of f64 in f64.
// CHECK-LABEL: func.func @attention_types
// CHECK: ds.attention {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>} : (tensor<?x2x?x8xf16>
// CHECK: ds.attention {{.*}} {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 24, sweep = 128>} : (tensor<?x2x?x8xf64>
func.func @attention_types(%h: tensor<?x2x?x8xf16>, %d: tensor<?x2x?x8xf64>) -> (tensor<?x2x?x8xf16>, tensor<?x2x?x8xf64>) {
  %0 = ds.attention %h, %h, %h scale 0.5 : (tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>) -> tensor<?x2x?x8xf16>
  %1 = ds.attention %d, %d, %d scale 0.5 : (tensor<?x2x?x8xf64>, tensor<?x2x?x8xf64>, tensor<?x2x?x8xf64>) -> tensor<?x2x?x8xf64>
  return %0, %1 : tensor<?x2x?x8xf16>, tensor<?x2x?x8xf64>
}

// -----

// No vector holds codes whose scales are known at run time only, nor booleans: plain loops, with the reason.
// CHECK-LABEL: func.func @plain
// CHECK: ds.linear %arg0, %{{.*}} scales %arg1 :
// REMARK: remark: not scheduled, plain loops: no vector kernel multiplies 'f32' by 'i8' into 'f32'
func.func @plain(%x: tensor<?x4xf32>, %s: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %w = ds.weight @codes : tensor<4x8xi8>
  %0 = ds.linear %x, %w scales %s : (tensor<?x4xf32>, tensor<4x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
ds.recipe @codes {
  %0 = ds.constant dense<3> : tensor<4x8xi8>
  ds.yield %0 : tensor<4x8xi8>
}

// -----

// Codes by rows of bf16 are multiplied as bf16 where that is faster; less zero points, in f32. Squares read panels of
// bf16 only.
// CHECK-LABEL: func.func @by_bfloat
// CHECK: zero_points {{.*}} {ds.schedule = #ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>
// CHECK: #ds.schedule<bfloat_dot, rows = 8, columns = 48, sweep = 128, few = 16>
// SLOW-LABEL: func.func @by_bfloat
// SLOW-COUNT-2: #ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>
// SQUARES-LABEL: func.func @by_bfloat
// SQUARES: #ds.schedule<bfloat_dot, rows = 8, columns = 48, sweep = 128, few = 16>
func.func @by_bfloat(%x: tensor<?x4xbf16>) -> (tensor<?x48xf32>, tensor<?x48xf32>) {
  %w = ds.weight @codes : tensor<4x48xi8>
  %z = ds.weight @zeros : tensor<1x48xi8>
  %s = ds.weight @scales : tensor<1x48xf32>
  %0 = ds.linear %x, %w scales %s zero_points %z {wide} : (tensor<?x4xbf16>, tensor<4x48xi8>, tensor<1x48xf32>, tensor<1x48xi8>) -> tensor<?x48xf32>
  %1 = ds.linear %x, %w scales %s {wide} : (tensor<?x4xbf16>, tensor<4x48xi8>, tensor<1x48xf32>) -> tensor<?x48xf32>
  return %0, %1 : tensor<?x48xf32>, tensor<?x48xf32>
}
ds.recipe @codes {
  %0 = ds.constant dense<3> : tensor<4x48xi8>
  ds.yield %0 : tensor<4x48xi8>
}
ds.recipe @zeros {
  %0 = ds.constant dense<1> : tensor<1x48xi8>
  ds.yield %0 : tensor<1x48xi8>
}
ds.recipe @scales {
  %0 = ds.constant dense<0.5> : tensor<1x48xf32>
  ds.yield %0 : tensor<1x48xf32>
}

// -----

// Codes by rows of f32 meet digits of these, where bytes are multiplied four times as fast as floats: with groups in
// whole steps that registers hold at once, or in parts that are not too short (104 is 13 steps), such a K that sums of
// bytes fit 32 bits, and columns enough to pay for taking rows apart. A sweep has as many rows as a level-2 cache holds
// digits of.
// CHECK-LABEL: func.func @by_digits
// CHECK: ds.schedule<code_digits, rows = 4, columns = 32, sweep = 128>, group = 8 : i64
// CHECK: ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>, group = 6 : i64
// CHECK: ds.schedule<code_digits, rows = 8, columns = 16, sweep = 16>
// CHECK: ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>
// CHECK: ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>, group = 104 : i64
// CHECK: ds.schedule<codes, rows = 8, columns = 48, sweep = 128, few = 16>
// REMARK: remark: scheduled: code_digits, 4 x 32; codes takes 1.6 times as long
// SLOW-LABEL: func.func @by_digits
// SLOW-NOT: code_digits
// NARROW-LABEL: func.func @by_digits
// NARROW-NOT: code_digits
func.func @by_digits(%x: tensor<?x24xf32>, %y: tensor<?x32768xf32>, %z: tensor<?x32772xf32>, %u: tensor<?x104xf32>)
    -> (tensor<?x192xf32>, tensor<?x192xf32>, tensor<?x48xf32>, tensor<?x48xf32>, tensor<?x192xf32>, tensor<?x47xf32>) {
  %half = ds.weight @half : tensor<24x192xi4>
  %three = ds.weight @three : tensor<3x192xf32>
  %four = ds.weight @four : tensor<4x192xf32>
  %long = ds.weight @long : tensor<32768x48xi8>
  %one = ds.weight @one : tensor<1x48xf32>
  %longer = ds.weight @longer : tensor<32772x48xi8>
  %odd = ds.weight @odd : tensor<104x192xi4>
  %odder = ds.weight @odder : tensor<1x192xf32>
  %thin = ds.weight @thin : tensor<32768x47xi8>
  %thinner = ds.weight @thinner : tensor<1x47xf32>
  %0 = ds.linear %x, %half scales %three {group = 8 : i64} : (tensor<?x24xf32>, tensor<24x192xi4>, tensor<3x192xf32>) -> tensor<?x192xf32>
  %1 = ds.linear %x, %half scales %four {group = 6 : i64} : (tensor<?x24xf32>, tensor<24x192xi4>, tensor<4x192xf32>) -> tensor<?x192xf32>
  %2 = ds.linear %y, %long scales %one : (tensor<?x32768xf32>, tensor<32768x48xi8>, tensor<1x48xf32>) -> tensor<?x48xf32>
  %3 = ds.linear %z, %longer scales %one : (tensor<?x32772xf32>, tensor<32772x48xi8>, tensor<1x48xf32>) -> tensor<?x48xf32>
  %4 = ds.linear %u, %odd scales %odder {group = 104 : i64} : (tensor<?x104xf32>, tensor<104x192xi4>, tensor<1x192xf32>) -> tensor<?x192xf32>
  %5 = ds.linear %y, %thin scales %thinner : (tensor<?x32768xf32>, tensor<32768x47xi8>, tensor<1x47xf32>) -> tensor<?x47xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<?x192xf32>, tensor<?x192xf32>, tensor<?x48xf32>, tensor<?x48xf32>, tensor<?x192xf32>, tensor<?x47xf32>
}
ds.recipe @half {
  %0 = ds.constant dense<3> : tensor<24x192xi4>
  ds.yield %0 : tensor<24x192xi4>
}
ds.recipe @three {
  %0 = ds.constant dense<0.5> : tensor<3x192xf32>
  ds.yield %0 : tensor<3x192xf32>
}
ds.recipe @four {
  %0 = ds.constant dense<0.5> : tensor<4x192xf32>
  ds.yield %0 : tensor<4x192xf32>
}
ds.recipe @long {
  %0 = ds.constant dense<3> : tensor<32768x48xi8>
  ds.yield %0 : tensor<32768x48xi8>
}
ds.recipe @one {
  %0 = ds.constant dense<0.5> : tensor<1x48xf32>
  ds.yield %0 : tensor<1x48xf32>
}
ds.recipe @longer {
  %0 = ds.constant dense<3> : tensor<32772x48xi8>
  ds.yield %0 : tensor<32772x48xi8>
}
ds.recipe @odd {
  %0 = ds.constant dense<3> : tensor<104x192xi4>
  ds.yield %0 : tensor<104x192xi4>
}
ds.recipe @odder {
  %0 = ds.constant dense<0.5> : tensor<1x192xf32>
  ds.yield %0 : tensor<1x192xf32>
}
ds.recipe @thin {
  %0 = ds.constant dense<3> : tensor<32768x47xi8>
  ds.yield %0 : tensor<32768x47xi8>
}
ds.recipe @thinner {
  %0 = ds.constant dense<0.5> : tensor<1x47xf32>
  ds.yield %0 : tensor<1x47xf32>
}
