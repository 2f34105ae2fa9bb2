// RUN: ds-opt %s --split-input-file --ds-quantize-weights --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="bits=4 group=2 scheme=asymmetric keep=^kept|^node$" | FileCheck %s --check-prefix=FOUR
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights=bits=3 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights=group=3 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights=scheme=odd 2>&1 | FileCheck %s --check-prefix=SCHEME
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights="keep=(" 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: ds-opt %s --split-input-file --ds-quantize-weights="keep=^nothing$" 2>&1 | FileCheck %s --check-prefix=MISTYPED
// RUN: not ds-opt %s --split-input-file --ds-quantize-weights=keep=. 2>&1 | FileCheck %s --check-prefix=NONE
// MISTYPED: warning: ds-quantize-weights: keep: '^nothing$' matches no name of a weight, nor of what reads one
// BITS: error: ds-quantize-weights: bits: expected 8 or 4, found 3
// GROUP: error: ds-quantize-weights: group: expected 0 or an even number of at most 1048576, found 3
// SCHEME: error: ds-quantize-weights: scheme: expected symmetric or asymmetric, found 'odd'
// REGEX: error: ds-quantize-weights: keep: expected a regular expression, found '(': parentheses not balanced
// NONE: error: ds-quantize-weights: no weight was quantized: weight 'w' is kept: '.' matches its name or its product's

// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[S:.*]] = ds.weight @w.scales : tensor<1x20xf32>
// CHECK-DAG: %[[Q:.*]] = ds.weight @w.int8 : tensor<4x20xi8>
// CHECK: ds.linear %arg0, %[[Q]], %arg1 scales %[[S]] :
// CHECK: ds.recipe @w.int8 {
// CHECK-NEXT: %[[C:.*]] = ds.constant
// CHECK-NEXT: %[[R:.*]] = ds.quantize_weight codes %[[C]] bits 8 group 0 : (tensor<4x20xf32>) -> tensor<4x20xi8>
// CHECK-NEXT: ds.yield %[[R]]
// CHECK: ds.recipe @w.scales {
// CHECK: ds.quantize_weight scales %{{.*}} bits 8 group 0 : (tensor<4x20xf32>) -> tensor<1x20xf32>
// CHECK-NOT: ds.recipe @w {
// FOUR-LABEL: func.func @doc
// FOUR-DAG: %[[S:.*]] = ds.weight @w.scales : tensor<2x20xf32>
// FOUR-DAG: %[[Q:.*]] = ds.weight @w.int4 : tensor<4x20xi4>
// FOUR-DAG: %[[Z:.*]] = ds.weight @w.zero_points : tensor<2x20xi8>
// FOUR: ds.linear %arg0, %[[Q]], %arg1 scales %[[S]] zero_points %[[Z]] {group = 2 : i64} :
// FOUR: ds.quantize_weight codes %{{.*}} bits 4 group 2 asymmetric : (tensor<4x20xf32>) -> tensor<4x20xi4>
func.func @doc(%x: tensor<?x4xf32>, %b: tensor<20xf32>) -> tensor<?x20xf32> {
  %w = ds.weight @w : tensor<4x20xf32>
  // expected-remark @+1 {{weight 'w' in 8 bits: 320 bytes become 160, relative error 0.00e+00, largest 0.00e+00}}
  %0 = ds.linear %x, %w, %b : (tensor<?x4xf32>, tensor<4x20xf32>, tensor<20xf32>) -> tensor<?x20xf32>
  return %0 : tensor<?x20xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x20xf32>
  ds.yield %0 : tensor<4x20xf32>
}

// -----

// What other ops read stays as it is, as the rows of a tied embedding do; two products share their codes.
// CHECK-LABEL: func.func @tied
// CHECK: %[[T:.*]] = ds.weight @table : tensor<8x8xf32>
// CHECK: ds.gather 0 %[[T]]
// CHECK: ds.linear %{{.*}}, %{{.*}} scales
// CHECK: ds.linear %{{.*}}, %{{.*}} scales
// CHECK-COUNT-3: ds.recipe
// CHECK-NOT: ds.recipe
func.func @tied(%i: tensor<?xi64>) -> tensor<?x8xf32> {
  %w = ds.weight @table : tensor<8x8xf32>
  %0 = ds.gather 0 %w, %i : (tensor<8x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  // expected-remark @+1 {{weight 'table' in 8 bits: 256 bytes become 96}}
  %1 = ds.linear %0, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %2 = ds.linear %1, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
ds.recipe @table {
  %0 = ds.constant dense<0.5> : tensor<8x8xf32>
  ds.yield %0 : tensor<8x8xf32>
}

// -----

// --reference=f64 casts weights; scales are cast in their place. A group of all rows is none.
// CHECK-LABEL: func.func @wide
// CHECK: %[[S:.*]] = ds.cast %{{.*}} to f64 : (tensor<1x8xf32>) -> tensor<1x8xf64>
// CHECK: ds.linear %arg0, %{{.*}} scales %[[S]] : (tensor<?x2xf64>, tensor<2x8xi8>, tensor<1x8xf64>) -> tensor<?x8xf64>
// FOUR-LABEL: func.func @wide
// FOUR: ds.linear %arg0, %{{.*}} scales %{{.*}} zero_points %{{.*}} : (tensor<?x2xf64>, tensor<2x8xi4>,
func.func @wide(%x: tensor<?x2xf64>) -> tensor<?x8xf64> {
  %w = ds.weight @w : tensor<2x8xf32>
  %0 = ds.cast %w to f64 : (tensor<2x8xf32>) -> tensor<2x8xf64>
  // expected-remark @+1 {{weight 'w' in 8 bits: 64 bytes become 48}}
  %1 = ds.linear %x, %0 : (tensor<?x2xf64>, tensor<2x8xf64>) -> tensor<?x8xf64>
  return %1 : tensor<?x8xf64>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<2x8xf32>
  ds.yield %0 : tensor<2x8xf32>
}

// -----

// What is kept, and why.
// CHECK-LABEL: func.func @reasons
// FOUR-LABEL: func.func @reasons
// FOUR: ds.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
func.func @reasons(%x: tensor<?x4xf32>, %h: tensor<?x4xf16>, %one: tensor<?x1xf32>, %s: tensor<4x4xf32>) {
  %kept = ds.weight @kept : tensor<4x4xf32>
  // CHECK: ds.linear %arg0, %{{.*}} scales
  // expected-remark @+1 {{weight 'kept' in 8 bits: 64 bytes become 32}}
  %0 = ds.linear %x, %kept : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{the weight is kept: it is no constant of the package, which is known when the package is written}}
  %1 = ds.linear %x, %s : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %small = ds.constant dense<0.5> : tensor<4x4xf32>
  // expected-remark @+1 {{the weight is kept: it has at most 4096 bytes}}
  %6 = ds.linear %x, %small : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %half = ds.weight @half : tensor<4x4xf16>
  // expected-remark @+1 {{weight 'half' is kept: its elements are f16, expected f32}}
  %2 = ds.linear %h, %half : (tensor<?x4xf16>, tensor<4x4xf16>) -> tensor<?x4xf16>
  %bad = ds.weight @bad : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'bad' is kept: it has elements that are not finite, or would not be as codes}}
  %3 = ds.linear %x, %bad : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %row = ds.weight @row : tensor<1x4xf32>
  // expected-remark @+1 {{weight 'row' is kept: codes and scales take 20 bytes, its elements 16}}
  %4 = ds.linear %one, %row : (tensor<?x1xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{weight 'kept' is kept: it is stored transposed}}
  %5 = ds.linear %x, %kept {transposed} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return
}
ds.recipe @kept {
  %0 = ds.constant dense<0.25> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @half {
  %0 = ds.constant dense<0.5> : tensor<4x4xf16>
  ds.yield %0 : tensor<4x4xf16>
}
ds.recipe @bad {
  %0 = ds.constant dense<0x7F800000> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @row {
  %0 = ds.constant dense<0.5> : tensor<1x4xf32>
  ds.yield %0 : tensor<1x4xf32>
}
// FOUR-LABEL: func.func @some
// FOUR: ds.linear %{{.*}}, %{{.*}} scales
// FOUR: ds.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<4x4xf32>)
func.func @some(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = ds.weight @other : tensor<4x4xf32>
  // expected-remark @+1 {{weight 'other' in 8 bits: 64 bytes become 32, relative error 2.29e-03, largest 2.50e-02}}
  %1 = ds.linear %x, %0 : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %2 = ds.linear %1, %0 : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32> loc("node")
  return %2 : tensor<?x4xf32>
}
ds.recipe @other {
  %0 = ds.constant dense<[[1.0, 2.0, 4.0, 8.0], [1.3, 0.1, 3.0, 7.7], [0.5, 0.2, 0.3, 0.4], [0.0, -2.0, -1.0, 5.5]]> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}

// -----

// The least number of f32 is a code of -128 times a scale that is rounded up.
func.func @beyond(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = ds.weight @widest : tensor<2x8xf32>
  %v = ds.weight @beside : tensor<2x8xf32>
  // expected-remark @+1 {{weight 'widest' is kept: it has elements that are not finite, or would not be as codes}}
  %0 = ds.linear %x, %w : (tensor<?x2xf32>, tensor<2x8xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{weight 'beside' in 8 bits: 64 bytes become 48}}
  %1 = ds.linear %y, %v : (tensor<?x2xf32>, tensor<2x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}
ds.recipe @widest {
  %0 = ds.constant dense<[[-3.4028235e38, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [3.4028235e38, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]> : tensor<2x8xf32>
  ds.yield %0 : tensor<2x8xf32>
}
ds.recipe @beside {
  %0 = ds.constant dense<0.5> : tensor<2x8xf32>
  ds.yield %0 : tensor<2x8xf32>
}

// -----

// Groups of 2: scales of 2^-60 and 2^41 cannot be summed beside each other in f32; with one scale for a column nothing is
// summed that way. Rows that have decayed to 2^-139 are small beside others, and exact; so are columns far from each other.
// FOUR-LABEL: func.func @apart
// FOUR: ds.linear %arg0, %{{.*}} : (tensor<?x4xf32>, tensor<4x16xf32>)
// FOUR: ds.linear %arg0, %{{.*}} scales
// FOUR: ds.linear %arg0, %{{.*}} scales
// FOUR: ds.linear %arg0, %{{.*}} scales
func.func @apart(%x: tensor<?x4xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %w = ds.weight @far : tensor<4x16xf32>
  %v = ds.weight @near : tensor<4x16xf32>
  // expected-remark @+1 {{weight 'far' in 8 bits: 256 bytes become 128}}
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x16xf32>) -> tensor<?x16xf32>
  // expected-remark @+1 {{weight 'near' in 8 bits: 256 bytes become 128}}
  %1 = ds.linear %x, %v : (tensor<?x4xf32>, tensor<4x16xf32>) -> tensor<?x16xf32>
  %d = ds.weight @decayed : tensor<4x16xf32>
  %c = ds.weight @columns : tensor<4x16xf32>
  // expected-remark @+1 {{weight 'decayed' in 8 bits: 256 bytes become 128}}
  %2 = ds.linear %x, %d : (tensor<?x4xf32>, tensor<4x16xf32>) -> tensor<?x16xf32>
  // expected-remark @+1 {{weight 'columns' in 8 bits: 256 bytes become 128}}
  %3 = ds.linear %x, %c : (tensor<?x4xf32>, tensor<4x16xf32>) -> tensor<?x16xf32>
  return %0, %1, %2, %3 : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}
ds.recipe @decayed {
  %0 = ds.constant dense<[[0.05], [0.01], [1.0e-42], [1.0e-42]]> : tensor<4x1xf32>
  %1 = ds.broadcast %0 [4, 16] : (tensor<4x1xf32>) -> tensor<4x16xf32>
  ds.yield %1 : tensor<4x16xf32>
}
ds.recipe @columns {
  %0 = ds.constant dense<[1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13, 1.3e-17, 6.6e13]> : tensor<16xf32>
  %1 = ds.broadcast %0 [4, 16] : (tensor<16xf32>) -> tensor<4x16xf32>
  ds.yield %1 : tensor<4x16xf32>
}
ds.recipe @far {
  %0 = ds.constant dense<[[1.3e-17], [1.3e-17], [6.6e13], [6.6e13]]> : tensor<4x1xf32>
  %1 = ds.broadcast %0 [4, 16] : (tensor<4x1xf32>) -> tensor<4x16xf32>
  ds.yield %1 : tensor<4x16xf32>
}
ds.recipe @near {
  %0 = ds.constant dense<[[1.3e-17], [1.3e-17], [1.0e6], [1.0e6]]> : tensor<4x1xf32>
  %1 = ds.broadcast %0 [4, 16] : (tensor<4x1xf32>) -> tensor<4x16xf32>
  ds.yield %1 : tensor<4x16xf32>
}
