// RUN: ds-opt %s --split-input-file --ds-quantize-weights="bits=4 group=2 mixed=true" --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="mixed=true" 2>/dev/null | FileCheck %s --check-prefix=EIGHT
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="bits=4 group=2 keep=^h mixed=true" 2>/dev/null | FileCheck %s --check-prefix=KEEP
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="group=2 mixed=true" 2>%t | FileCheck %s --check-prefix=HALVES
// RUN: FileCheck %s --check-prefix=REMARKS --input-file=%t
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="group=32 mixed=true floats=bf16" 2>%t.bf16 | FileCheck %s --check-prefix=LEFT
// RUN: FileCheck %s --check-prefix=BFLOAT --input-file=%t.bf16
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="group=2 mixed=true floats=bf16" 2>&1 >/dev/null | FileCheck %s --check-prefix=CODES
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="group=64 mixed=true" 2>%t.wide >/dev/null
// RUN: FileCheck %s --check-prefix=WIDE --input-file=%t.wide
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="bits=4 group=32 mixed=true" 2>%t.columns >/dev/null
// RUN: FileCheck %s --check-prefix=COLUMNS --input-file=%t.columns
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights="floats=f32" 2>&1 | FileCheck %s --check-prefix=FLOATS
// FLOATS: error: ds-quantize-weights: floats: expected f16 or bf16, found 'f32'

// Values of attention, and the last quarter of products: here the last one.
// CHECK-LABEL: func.func @attention
// CHECK-DAG: ds.linear %arg0, %{{.*}} scales %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi4>, tensor<2x4xf32>)
// CHECK-DAG: ds.linear %arg0, %{{.*}} scales %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi8>, tensor<2x4xf32>)
// CHECK: ds.linear %{{.*}} scales %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi8>, tensor<2x4xf32>)
// CHECK: ds.recipe @q.int4
// CHECK: ds.recipe @k.int4
// CHECK: ds.recipe @v.int8
// CHECK: ds.recipe @h.int8
// Short groups of 8 bits have nothing finer but floats. What stands beside the values has codes. Before rows of bf16
// floats are left to ds-round-products.
// LEFT-LABEL: func.func @attention
// LEFT-COUNT-2: ds.linear %arg0, %{{.*}} scales
// LEFT: ds.linear %arg0, %{{.*}} : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
// LEFT: ds.linear %{{.*}} : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
// BFLOAT: remark: weight 'q' in 8 bits: 64 bytes become 32, relative error 2.89e-03
// BFLOAT: remark: weight 'v' in bf16, as its rows, being values of attention: 64 bytes become 32, relative error 1.33e-03, largest 1.56e-03
// BFLOAT: remark: weight 'h' in bf16, as its rows, being among the last quarter of products: 64 bytes become 32, relative error 1.33e-03
// CODES: remark: weight 'v' in 8 bits: 64 bytes become 48, relative error 1.13e-03
// REMARKS: remark: weight 'q' in 8 bits: 64 bytes become 48, relative error
// REMARKS: remark: weight 'k' in 8 bits: 64 bytes become 48, relative error
// REMARKS: remark: weight 'v' in f16, being values of attention: 64 bytes become 32, relative error 1.51e-04, largest 1.95e-04
// REMARKS: remark: weight 'h' in f16, being among the last quarter of products: 64 bytes become 32,
// HALVES-LABEL: func.func @attention
// HALVES-COUNT-2: ds.linear %arg0, %{{.*}} scales %{{.*}} {group = 2 : i64} : (tensor<1x?x4xf32>, tensor<4x4xi8>, tensor<2x4xf32>)
// HALVES: ds.linear %arg0, %{{.*}} {wide} : (tensor<1x?x4xf32>, tensor<4x4xf16>) -> tensor<1x?x4xf32>
// HALVES: ds.linear %{{.*}} {wide} : (tensor<1x?x4xf32>, tensor<4x4xf16>) -> tensor<1x?x4xf32>
// HALVES: ds.recipe @v.f16 {
// HALVES: ds.cast %{{.*}} to f16 : (tensor<4x4xf32>) -> tensor<4x4xf16>
// What is kept is not counted: the last of three products is no quarter.
// KEEP-LABEL: func.func @attention
// KEEP: ds.recipe @v.int8
// KEEP-NOT: @h.int8
func.func @attention(%x: tensor<1x?x4xf32>) -> tensor<1x?x4xf32> attributes {ds.entry} {
  %qw = ds.weight @q : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'q' in 4 bits: 64 bytes become 40,}}
  %q = ds.linear %x, %qw : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
  %kw = ds.weight @k : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'k' in 4 bits: 64 bytes become 40,}}
  %k = ds.linear %x, %kw : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
  %vw = ds.weight @v : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'v' in 8 bits, in groups of 2, being values of attention: 64 bytes become 48,}}
  %v = ds.linear %x, %vw : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
  %0 = ds.reshape %q [1, "n", 2, 2] : (tensor<1x?x4xf32>) -> tensor<1x?x2x2xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<1x?x2x2xf32>) -> tensor<1x2x?x2xf32>
  %2 = ds.reshape %k [1, "n", 2, 2] : (tensor<1x?x4xf32>) -> tensor<1x?x2x2xf32>
  %3 = ds.transpose %2 [0, 2, 1, 3] : (tensor<1x?x2x2xf32>) -> tensor<1x2x?x2xf32>
  %4 = ds.reshape %v [1, "n", 2, 2] : (tensor<1x?x4xf32>) -> tensor<1x?x2x2xf32>
  %5 = ds.transpose %4 [0, 2, 1, 3] : (tensor<1x?x2x2xf32>) -> tensor<1x2x?x2xf32>
  %6 = ds.attention %1, %3, %5 scale 0.5 : (tensor<1x2x?x2xf32>, tensor<1x2x?x2xf32>, tensor<1x2x?x2xf32>) -> tensor<1x2x?x2xf32>
  %7 = ds.transpose %6 [0, 2, 1, 3] : (tensor<1x2x?x2xf32>) -> tensor<1x?x2x2xf32>
  %8 = ds.reshape %7 [1, "n", 4] : (tensor<1x?x2x2xf32>) -> tensor<1x?x4xf32>
  %hw = ds.weight @h : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'h' in 8 bits, in groups of 2, being among the last quarter of products: 64 bytes become 48,}}
  %9 = ds.linear %8, %hw : (tensor<1x?x4xf32>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
  return %9 : tensor<1x?x4xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @h {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}

// -----

// --reference leaves attention in parts; what is multiplied by a softmax are its values. Products with the same input as
// one of the last quarter stay alike, and what loses nothing stays as it is.
// CHECK-LABEL: func.func @parts
// CHECK: ds.recipe @first.int4
// CHECK: ds.recipe @v.int8
// CHECK: ds.recipe @w.int8
// CHECK: ds.recipe @u.int8
// CHECK: ds.recipe @grid.int4
func.func @parts(%s: tensor<?x?xf32>, %x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %a = ds.weight @first : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'first' in 4 bits: 64 bytes}}
  %0 = ds.linear %x, %a : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %b = ds.weight @v : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'v' in 8 bits, in groups of 2, being values of attention: 64 bytes}}
  %1 = ds.linear %x, %b : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %2 = ds.softmax %s axis 1 log false : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = ds.matmul %2, %1 transpose [false, false] : (tensor<?x?xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = ds.weight @w : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'w' in 8 bits, in groups of 2, being among the last quarter of products: 64 bytes}}
  %4 = ds.linear %3, %c : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %d = ds.weight @u : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'u' in 8 bits, in groups of 2, being among the last quarter of products: 64 bytes}}
  %5 = ds.linear %3, %d : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %e = ds.weight @grid : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'grid' in 4 bits: 64 bytes become 40, relative error 0.00e+00}}
  %6 = ds.linear %3, %e : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %5, %6 : tensor<?x4xf32>, tensor<?x4xf32>
}
ds.recipe @first {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @u {
  %0 = ds.constant dense<[[1.0, 0.31, 0.7, -0.4], [0.22, -0.9, 0.13, 0.6], [-0.8, 0.45, 0.33, 0.1], [0.05, 0.77, -0.5, 0.9]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @grid {
  %0 = ds.constant dense<0.5> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}

// -----

// In 8 bits what is multiplied beside the values is stored as they are, so that the three can be joined.
// Codes that lose less than f16 stay. Columns and groups beyond 32 become groups of that first.
// Beside 4 bits whole columns of 8 bits will do, unless groups lose much less, as those of 2 do.
// COLUMNS: remark: weight 'query' in 4 bits: 512 bytes become 80,
// COLUMNS: remark: weight 'value' in 8 bits, being values of attention: 512 bytes become 136,
// WIDE: remark: weight 'other' in 8 bits: 512 bytes become 136,
// WIDE: remark: weight 'query' in 8 bits, in groups of 32, being beside values of attention: 512 bytes become 144,
// WIDE: remark: weight 'value' in 8 bits, in groups of 32, being values of attention: 512 bytes become 144,
// REMARKS: remark: weight 'value' in 8 bits: 512 bytes become 384, relative error 9.78e-05,
// EIGHT-LABEL: func.func @beside
// EIGHT: ds.linear %arg2, %{{.*}} scales %{{[^{]*}} : (tensor<?x64xf32>, tensor<64x2xi8>, tensor<1x2xf32>)
// EIGHT-COUNT-2: ds.linear %arg1, %{{.*}} {group = 32 : i64} : (tensor<?x64xf32>, tensor<64x2xi8>, tensor<2x2xf32>)
// CHECK-LABEL: func.func @beside
// CHECK: ds.recipe @query.int4
// CHECK: ds.recipe @value.int8
func.func @beside(%s: tensor<?x?xf32>, %x: tensor<?x64xf32>, %z: tensor<?x64xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) {
  %o = ds.weight @other : tensor<64x2xf32>
  // expected-remark @+1 {{weight 'other' in 4 bits: }}
  %0 = ds.linear %z, %o : (tensor<?x64xf32>, tensor<64x2xf32>) -> tensor<?x2xf32>
  %q = ds.weight @query : tensor<64x2xf32>
  // expected-remark @+1 {{weight 'query' in 4 bits: }}
  %1 = ds.linear %x, %q : (tensor<?x64xf32>, tensor<64x2xf32>) -> tensor<?x2xf32>
  %v = ds.weight @value : tensor<64x2xf32>
  // expected-remark @+1 {{weight 'value' in 8 bits, in groups of 2, being values of attention: }}
  %2 = ds.linear %x, %v : (tensor<?x64xf32>, tensor<64x2xf32>) -> tensor<?x2xf32>
  %3 = ds.softmax %s axis 1 log false : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %4 = ds.matmul %3, %2 transpose [false, false] : (tensor<?x?xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0, %1, %4 : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
}
ds.recipe @other {
  %0 = ds.constant dense<0.3> : tensor<63x2xf32>
  %1 = ds.constant dense<0.41> : tensor<1x2xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<63x2xf32>, tensor<1x2xf32>) -> tensor<64x2xf32>
  ds.yield %2 : tensor<64x2xf32>
}
ds.recipe @query {
  %0 = ds.constant dense<0.3> : tensor<63x2xf32>
  %1 = ds.constant dense<0.41> : tensor<1x2xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<63x2xf32>, tensor<1x2xf32>) -> tensor<64x2xf32>
  ds.yield %2 : tensor<64x2xf32>
}
ds.recipe @value {
  %0 = ds.constant dense<0.3> : tensor<63x2xf32>
  %1 = ds.constant dense<0.41> : tensor<1x2xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<63x2xf32>, tensor<1x2xf32>) -> tensor<64x2xf32>
  ds.yield %2 : tensor<64x2xf32>
}

// -----

// A row of outliers takes the steps of whole columns of 8 bits: groups keep it to itself.
// EIGHT-LABEL: func.func @column
// EIGHT: ds.linear %arg0, %{{.*}} scales %{{.*}} {group = 32 : i64} : (tensor<?x256xf32>, tensor<256x4xi8>, tensor<8x4xf32>)
// EIGHT: ds.linear %arg0, %{{.*}} scales %{{[^{]*}} : (tensor<?x256xf32>, tensor<256x4xi8>, tensor<1x4xf32>)
func.func @column(%x: tensor<?x256xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %a = ds.weight @outliers : tensor<256x4xf32>
  // expected-remark @+1 {{weight 'outliers' in 4 bits}}
  %0 = ds.linear %x, %a : (tensor<?x256xf32>, tensor<256x4xf32>) -> tensor<?x4xf32>
  %b = ds.weight @none : tensor<256x4xf32>
  // expected-remark @+1 {{weight 'none' in 4 bits}}
  %1 = ds.linear %x, %b : (tensor<?x256xf32>, tensor<256x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}
ds.recipe @outliers {
  %0 = ds.constant dense<0.3> : tensor<255x4xf32>
  %1 = ds.constant dense<100.0> : tensor<1x4xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<255x4xf32>, tensor<1x4xf32>) -> tensor<256x4xf32>
  ds.yield %2 : tensor<256x4xf32>
}
ds.recipe @none {
  %0 = ds.constant dense<0.3> : tensor<255x4xf32>
  %1 = ds.constant dense<0.4> : tensor<1x4xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<255x4xf32>, tensor<1x4xf32>) -> tensor<256x4xf32>
  ds.yield %2 : tensor<256x4xf32>
}

// -----

// What is beyond f16, by less than half a step or more, what lies on the grid, and a column below f16.
// REMARKS: remark: weight 'least' in f16, being among the last quarter of products: 32 bytes become 16, relative error 1.97e-04, largest 1.50e+01
// REMARKS: remark: weight 'beyond' in 8 bits: 32 bytes become 24, relative error 1.10e-03
// REMARKS: remark: weight 'steps' in 8 bits: 32 bytes become 24, relative error 0.00e+00
// REMARKS: remark: weight 'below' in 8 bits: 32 bytes become 24, relative error
// HALVES-LABEL: func.func @range
// CHECK-LABEL: func.func @range
func.func @range(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) {
  %a = ds.weight @least : tensor<4x2xf32>
  // expected-remark @+1 {{weight 'least' in 8 bits, in groups of 2, being among the last quarter of products: }}
  %0 = ds.linear %x, %a : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %b = ds.weight @beyond : tensor<4x2xf32>
  // expected-remark @+1 {{weight 'beyond' in 8 bits, in groups of 2, being among the last quarter of products: }}
  %1 = ds.linear %x, %b : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %c = ds.weight @steps : tensor<4x2xf32>
  // expected-remark @+1 {{weight 'steps' in 4 bits: }}
  %2 = ds.linear %x, %c : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %d = ds.weight @below : tensor<4x2xf32>
  // expected-remark @+1 {{weight 'below' in 8 bits, in groups of 2, being among the last quarter of products: }}
  %3 = ds.linear %x, %d : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %0, %1, %2, %3 : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
}
ds.recipe @least {
  %0 = ds.constant dense<[[65519.0, 0.31], [30011.7, -0.9], [-1235.7, 0.45], [40123.4, 1.0e-7]]> : tensor<4x2xf32>
  ds.yield %0 : tensor<4x2xf32>
}
ds.recipe @beyond {
  %0 = ds.constant dense<[[65520.0, 0.31], [30011.7, -0.9], [-1235.7, 0.45], [40123.4, 1.0e-7]]> : tensor<4x2xf32>
  ds.yield %0 : tensor<4x2xf32>
}
ds.recipe @steps {
  %0 = ds.constant dense<0.5> : tensor<4x2xf32>
  ds.yield %0 : tensor<4x2xf32>
}
ds.recipe @below {
  %0 = ds.constant dense<[[1.0, 3.1e-8], [0.22, -9.0e-8], [-0.8, 4.5e-8], [0.05, 7.7e-8]]> : tensor<4x2xf32>
  ds.yield %0 : tensor<4x2xf32>
}
