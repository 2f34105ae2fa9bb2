// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @products
func.func @products(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %v: tensor<4x8xf32>, %b: tensor<8xf32>,
                    %packed: tensor<1x4x16xf32>) {
  // CHECK: ds.matmul %{{.*}}, %{{.*}} transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  %0 = ds.matmul %x, %w transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  // CHECK: ds.linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = ds.linear %x, %v, %b : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: ds.linear %{{.*}}, %{{.*}} {columns = 8 : i64, panel = 16 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.linear %x, %packed {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  // CHECK: ds.pack %{{.*}} panel 16 : (tensor<4x8xf32>) -> tensor<1x4x16xf32>
  %3 = ds.pack %v panel 16 : (tensor<4x8xf32>) -> tensor<1x4x16xf32>
  return
}

// Integers of 8 and 16 bits are summed in i32.
// CHECK-LABEL: func.func @narrow_products
func.func @narrow_products(%x: tensor<?x5xi16>, %w: tensor<5x8xi8>, %b: tensor<8xi32>, %packed: tensor<1x3x32xui8>,
                           %image: tensor<1x2x4x4xi16>, %filters: tensor<3x2x1x1xi16>) {
  // CHECK: ds.matmul %{{.*}}, %{{.*}} transpose [false, false] : (tensor<?x5xi16>, tensor<5x8xi8>) -> tensor<?x8xi32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x5xi16>, tensor<5x8xi8>) -> tensor<?x8xi32>
  // CHECK: ds.linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x5xi16>, tensor<5x8xi8>, tensor<8xi32>) -> tensor<?x8xi32>
  %1 = ds.linear %x, %w, %b : (tensor<?x5xi16>, tensor<5x8xi8>, tensor<8xi32>) -> tensor<?x8xi32>
  // CHECK: ds.linear %{{.*}}, %{{.*}} {wide} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  %h = ds.constant dense<0.0> : tensor<2x3xbf16>
  %j = ds.constant dense<0.0> : tensor<3x4xbf16>
  %wide = ds.linear %h, %j {wide} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  // CHECK: ds.matmul %{{.*}}, %{{.*}} transpose [false, false] {wide} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  %wider = ds.matmul %h, %j transpose [false, false] {wide} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  // CHECK: ds.linear %{{.*}}, %{{.*}} {columns = 8 : i64, interleave = 2 : i64, panel = 16 : i64} : (tensor<?x5xi16>, tensor<1x3x32xui8>) -> tensor<?x8xi32>
  %2 = ds.linear %x, %packed {panel = 16 : i64, interleave = 2 : i64, columns = 8 : i64} : (tensor<?x5xi16>, tensor<1x3x32xui8>) -> tensor<?x8xi32>
  // CHECK: ds.pack %{{.*}} panel 16 interleave 2 : (tensor<5x8xi8>) -> tensor<1x3x32xi8>
  %3 = ds.pack %w panel 16 interleave 2 : (tensor<5x8xi8>) -> tensor<1x3x32xi8>
  // CHECK: ds.conv {{.*}} : (tensor<1x2x4x4xi16>, tensor<3x2x1x1xi16>) -> tensor<1x3x4x4xi32>
  %4 = ds.conv %image, %filters strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x2x4x4xi16>, tensor<3x2x1x1xi16>) -> tensor<1x3x4x4xi32>
  return
}

// Codes of 8 and 4 bits stand for floats.
// CHECK-LABEL: func.func @quantized_products
func.func @quantized_products(%x: tensor<?x5xf32>, %w: tensor<5x8xi8>, %b: tensor<8xf32>, %one: tensor<1x8xf32>,
                              %s: tensor<3x8xf32>, %z: tensor<3x8xi8>, %half: tensor<5x8xi4>,
                              %packed: tensor<1x3x16xi8>, %scales: tensor<1x3x16xf32>, %zeros: tensor<1x3x16xi8>,
                              %v: tensor<5x8xf32>, %tri: tensor<5x5xf32>) {
  // CHECK: ds.linear %{{.*}}, %{{.*}} scales %{{.*}} : (tensor<?x5xf32>, tensor<5x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %0 = ds.linear %x, %w scales %one : (tensor<?x5xf32>, tensor<5x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  // CHECK: ds.linear %{{.*}}, %{{.*}}, %{{.*}} scales %{{.*}} zero_points %{{.*}} {group = 2 : i64} : (tensor<?x5xf32>, tensor<5x8xi4>, tensor<8xf32>, tensor<3x8xf32>, tensor<3x8xi8>) -> tensor<?x8xf32>
  %1 = ds.linear %x, %half, %b scales %s zero_points %z {group = 2 : i64} : (tensor<?x5xf32>, tensor<5x8xi4>, tensor<8xf32>, tensor<3x8xf32>, tensor<3x8xi8>) -> tensor<?x8xf32>
  // CHECK: ds.linear %{{.*}}, %{{.*}} scales %{{.*}} zero_points %{{.*}} {columns = 8 : i64, group = 2 : i64, interleave = 2 : i64, panel = 16 : i64} :
  %2 = ds.linear %x, %packed scales %scales zero_points %zeros {panel = 16 : i64, interleave = 2 : i64, columns = 8 : i64, group = 2 : i64} : (tensor<?x5xf32>, tensor<1x3x16xi8>, tensor<1x3x16xf32>, tensor<1x3x16xi8>) -> tensor<?x8xf32>
  // CHECK: ds.pack %{{.*}} panel 16 interleave 2 : (tensor<5x8xi4>) -> tensor<1x3x16xi8>
  %3 = ds.pack %half panel 16 interleave 2 : (tensor<5x8xi4>) -> tensor<1x3x16xi8>
  // CHECK: ds.pack %{{.*}} panel 16 interleave 8 : (tensor<5x8xi4>) -> tensor<1x1x64xi8>
  %eights = ds.pack %half panel 16 interleave 8 : (tensor<5x8xi4>) -> tensor<1x1x64xi8>
  // CHECK: ds.quantize_weight codes %{{.*}} bits 4 group 2 asymmetric : (tensor<5x8xf32>) -> tensor<5x8xi4>
  %4 = ds.quantize_weight codes %v bits 4 group 2 asymmetric : (tensor<5x8xf32>) -> tensor<5x8xi4>
  // CHECK: ds.quantize_weight codes %{{.*}} against %{{.*}} bits 4 group 2 : (tensor<5x8xf32>, tensor<5x5xf32>) -> tensor<5x8xi4>
  %10 = ds.quantize_weight codes %v against %tri bits 4 group 2 : (tensor<5x8xf32>, tensor<5x5xf32>) -> tensor<5x8xi4>
  // CHECK: ds.quantize_weight scales %{{.*}} bits 8 group 0 : (tensor<5x8xf32>) -> tensor<1x8xf32>
  %5 = ds.quantize_weight scales %v bits 8 group 0 : (tensor<5x8xf32>) -> tensor<1x8xf32>
  // CHECK: ds.quantize_weight zero_points %{{.*}} bits 8 group 4 asymmetric : (tensor<5x8xf32>) -> tensor<2x8xi8>
  %6 = ds.quantize_weight zero_points %v bits 8 group 4 asymmetric : (tensor<5x8xf32>) -> tensor<2x8xi8>
  return
}

// Codes by rows of bf16; pairs of bytes along K are as wide as two columns, codes of 4 bits as one.
// CHECK-LABEL: func.func @wide_codes
func.func @wide_codes(%x: tensor<?x5xbf16>, %w: tensor<5x8xi8>, %s: tensor<1x8xf32>, %pairs: tensor<1x3x32xi8>, %halves: tensor<1x3x16xi8>, %packed: tensor<1x1x16xf32>) {
  // CHECK: ds.linear %{{.*}}, %{{.*}} scales %{{.*}} {wide} : (tensor<?x5xbf16>, tensor<5x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %0 = ds.linear %x, %w scales %s {wide} : (tensor<?x5xbf16>, tensor<5x8xi8>, tensor<1x8xf32>) -> tensor<?x8xf32>
  // CHECK: ds.linear {{.*}} {columns = 8 : i64, interleave = 2 : i64, panel = 16 : i64, wide} : (tensor<?x5xbf16>, tensor<1x3x32xi8>
  %1 = ds.linear %x, %pairs scales %packed {panel = 16 : i64, interleave = 2 : i64, columns = 8 : i64, wide} : (tensor<?x5xbf16>, tensor<1x3x32xi8>, tensor<1x1x16xf32>) -> tensor<?x8xf32>
  // CHECK: ds.linear {{.*}} {columns = 8 : i64, interleave = 2 : i64, panel = 16 : i64, wide} : (tensor<?x5xbf16>, tensor<1x3x16xi8>
  %2 = ds.linear %x, %halves scales %packed {panel = 16 : i64, interleave = 2 : i64, columns = 8 : i64, wide} : (tensor<?x5xbf16>, tensor<1x3x16xi8>, tensor<1x1x16xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x12x?x64xf32>, %k: tensor<?x4x?x64xf32>, %mask: tensor<?x?xf32>, %seen: tensor<?x?xi1>, %place: tensor<?x1xi64>) {
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01
  %0 = ds.attention %q, %q, %q scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 guard rounds bf16 :
  %rounded = ds.attention %q, %q, %q scale 0.125 guard rounds bf16 : (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [add %{{.*}}] scale 1.250000e-01
  %1 = ds.attention %q, %k, %k [add %mask] scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x?xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [multiply %{{.*}}, keep %{{.*}} else -1.000000e+09] scale 1.250000e-01 : {{.*}}tensor<?x?xf32>
  %2 = ds.attention %q, %k, %k [multiply %mask, keep %seen else -1.0e9] scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x?xf32>, tensor<?x?xi1>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [window_mask %{{.*}} else 0xFFF0000000000000, window else -1.000000e+00] past ["t - s"] left 3 right 0 capacity 64 scale 1.250000e-01 softcap 5.000000e+01 guard
  %3 = ds.attention %q, %k, %k [window_mask %mask else 0xFFF0000000000000, window else -1.0] past ["t - s"] left 3 right 0 capacity 64 scale 0.125 softcap 50.0 guard : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x?xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [hide %{{.*}} else 0.000000e+00, window_add else -1.000000e+00] positions %{{.*}} right -1 scale 1.000000e+00 :
  %4 = ds.attention %q, %k, %k [hide %seen else 0.0, window_add else -1.0] positions %place right -1 scale 1.0 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x?xi1>, tensor<?x1xi64>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [keep_add %{{.*}} else -1.000000e+04, hide_add %{{.*}} else 0xFFF0000000000000] scale 1.000000e+00 :
  %5 = ds.attention %q, %k, %k [keep_add %seen else -1.0e4, hide_add %seen else 0xFFF0000000000000] scale 1.0 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x12x?x64xf32>
  return
}

// CHECK-LABEL: func.func @rotary
func.func @rotary(%x: tensor<?x12x?x64xf32>, %full: tensor<?x64xf32>, %half: tensor<?x1x?x32xf32>) {
  // CHECK: ds.rotary %{{.*}}, %{{.*}}, %{{.*}} interleaved false : (tensor<?x12x?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
  %0 = ds.rotary %x, %full, %full interleaved false : (tensor<?x12x?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.rotary %{{.*}}, %{{.*}}, %{{.*}} interleaved true
  %1 = ds.rotary %x, %half, %half interleaved true : (tensor<?x12x?x64xf32>, tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.rotary %{{.*}}, %{{.*}}, %{{.*}} interleaved false first 32 : (tensor<?x12x?x64xf32>, tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>)
  %2 = ds.rotary %x, %half, %half interleaved false first 32 : (tensor<?x12x?x64xf32>, tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>) -> tensor<?x12x?x64xf32>
  return
}

// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<1x2x5xf32>, %w: tensor<3x1x3xf32>, %b: tensor<3xf32>, %narrow: tensor<1x1x5xbf16>, %filters: tensor<3x1x3xbf16>) {
  // CHECK: ds.conv %{{.*}}, %{{.*}}, %{{.*}} strides [1] pads [1, 1] dilations [1] groups 1 {wide} : (tensor<1x1x5xbf16>, tensor<3x1x3xbf16>, tensor<3xf32>) -> tensor<1x3x5xf32>
  %wide = ds.conv %narrow, %filters, %b strides [1] pads [1, 1] dilations [1] groups 1 {wide} : (tensor<1x1x5xbf16>, tensor<3x1x3xbf16>, tensor<3xf32>) -> tensor<1x3x5xf32>
  // CHECK: ds.conv %{{.*}}, %{{.*}} strides [1] pads [1, 1] dilations [1] groups 1
  %0 = ds.slice %x starts [0, 0, 0] sizes [1, 1, 5] steps [1, 1, 1] : (tensor<1x2x5xf32>) -> tensor<1x1x5xf32>
  %1 = ds.conv %0, %w, %b strides [1] pads [1, 1] dilations [1] groups 1 : (tensor<1x1x5xf32>, tensor<3x1x3xf32>, tensor<3xf32>) -> tensor<1x3x5xf32>
  // CHECK: ds.pool average %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] {ceil = true, exponent = 2 : i64, include_pad = false}
  %2 = ds.pool average %x kernel [2] strides [2] pads [0, 0] dilations [1] {ceil = true, include_pad = false, exponent = 2 : i64} : (tensor<1x2x5xf32>) -> tensor<1x2x3xf32>
  return
}

// CHECK-LABEL: func.func @attention_gradient
func.func @attention_gradient(%q: tensor<?x12x?x64xf32>, %k: tensor<?x4x?x64xf32>, %mask: tensor<?x?xf32>, %place: tensor<?x1xi64>) {
  // CHECK: ds.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} [add %{{.*}}] scale 1.250000e-01 softcap 5.000000e+01 guard :
  %0:3 = ds.attention_gradient %q, %k, %k, %q [add %mask] scale 0.125 softcap 50.0 guard : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x?xf32>) -> (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>)
  // CHECK: ds.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} [window else -1.000000e+00] past ["t - s"] left 3 right 0 capacity 64 scale 1.250000e-01 :
  %1:3 = ds.attention_gradient %q, %k, %k, %q [window else -1.0] past ["t - s"] left 3 right 0 capacity 64 scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x12x?x64xf32>) -> (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>)
  // CHECK: ds.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} [window_add else -1.000000e+00] positions %{{.*}} right -1 scale 1.000000e+00 :
  %2:3 = ds.attention_gradient %q, %k, %k, %q [window_add else -1.0] positions %place right -1 scale 1.0 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x1xi64>) -> (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>)
  return
}

// CHECK-LABEL: func.func @attention_dropout
func.func @attention_dropout(%q: tensor<?x12x?x64xf32>, %k: tensor<?x4x?x64xf32>, %place: tensor<?x1xi64>, %seed: tensor<i64>, %step: tensor<i64>, %micro: tensor<i64>) {
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 dropout 1.000000e-01 stream 7 :
  %0 = ds.attention %q, %k, %k scale 0.125 dropout 0.1 stream 7 : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} [window else -1.000000e+00] positions %arg2 right 0 scale 1.250000e-01 guard rounds bf16 dropout 0.000000e+00 random %arg3, %arg4, %arg5, %arg3 :
  %1 = ds.attention %q, %k, %k [window else -1.0] positions %place right 0 scale 0.125 guard rounds bf16 dropout 0.0 random %seed, %step, %micro, %seed : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x1xi64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x12x?x64xf32>
  // CHECK: ds.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 dropout 5.000000e-01 random %arg3, %arg4, %arg5, %arg4 :
  %2:3 = ds.attention_gradient %q, %k, %k, %q scale 0.125 dropout 0.5 random %seed, %step, %micro, %step : (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x12x?x64xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> (tensor<?x12x?x64xf32>, tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>)
  return
}

// CHECK-LABEL: func.func @linear_attention
func.func @linear_attention(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x16xf32>, %g: tensor<1x2x3x8xf32>,
                            %b: tensor<1x2x3xf32>, %s: tensor<1x2x8x16xf32>) {
  // CHECK: ds.linear_attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 delta true
  %0, %1 = ds.linear_attention %q, %k, %v, %g, %b, %s scale 0.5 delta true : (tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3xf32>, tensor<1x2x8x16xf32>) -> (tensor<1x4x3x16xf32>, tensor<1x2x8x16xf32>)
  return
}
