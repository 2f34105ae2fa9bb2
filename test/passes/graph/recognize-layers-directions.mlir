// Which attentions look one way only. Encoders compare positions, too: for biases by distance, for windows on both sides.
// RUN: ds-opt %s -o %t.dsp --report | FileCheck %s

// CHECK: recognize-layers: 6 layers, 6 recomposed
// CHECK-NEXT: layer 0: attention (masked, bias by head), relu
// CHECK-NEXT: layer 1: attention (window), relu
// CHECK-NEXT: layer 2: attention (causal), relu
// CHECK-NEXT: layer 3: attention (masked), relu
// CHECK-NEXT: layer 4: attention (masked), relu
// CHECK-NEXT: layer 5: attention (causal, window), relu
func.func @directions(%x: tensor<?x?x16xf32> {ds.name = "x", ds.dims = ["b", "s", 16]},
    %w: tensor<16x16xf32> {ds.name = "w", ds.dims = [16, 16]}, %table: tensor<64x4xf32> {ds.name = "table", ds.dims = [64, 4]},
    %length: tensor<?x1x1x1xi64> {ds.name = "length", ds.dims = ["b", 1, 1, 1], ds.bound = 9}) -> (tensor<?x4x?x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %zero = ds.constant dense<0> : tensor<i64>
  %two = ds.constant dense<2> : tensor<i64>
  %most = ds.constant dense<31> : tensor<i64>
  %half = ds.constant dense<32> : tensor<i64>
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %none = ds.constant dense<0.0> : tensor<f32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %column = ds.iota 1 [1, "s"] : tensor<1x?xi64>
  %distance = ds.binary sub %column, %row : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
  // The bias of a place depends on which side of the row it is.
  %later = ds.binary gt %distance, %zero : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
  %side = ds.cast %later to i64 : (tensor<?x?xi1>) -> tensor<?x?xi64>
  %offset = ds.binary mul %side, %half : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
  %far = ds.unary abs %distance : (tensor<?x?xi64>) -> tensor<?x?xi64>
  %near = ds.binary min %far, %most : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
  %bucket = ds.binary add %near, %offset : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
  %biases = ds.gather 0 %table, %bucket : (tensor<64x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  %turned = ds.transpose %biases [2, 0, 1] : (tensor<?x?x4xf32>) -> tensor<4x?x?xf32>
  %bias = ds.reshape %turned [1, 4, "s", "s"] : (tensor<4x?x?xf32>) -> tensor<1x4x?x?xf32>
  %inside = ds.binary lt %column, %length : (tensor<1x?xi64>, tensor<?x1x1x1xi64>) -> tensor<?x1x1x?xi1>
  %padding = ds.select %inside, %none, %low : (tensor<?x1x1x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x1x1x?xf32>
  // A window on both sides that is a mask.
  %end = ds.binary add %row, %two : (tensor<?x1xi64>, tensor<i64>) -> tensor<?x1xi64>
  %begin = ds.binary sub %row, %two : (tensor<?x1xi64>, tensor<i64>) -> tensor<?x1xi64>
  %early = ds.binary le %column, %end : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %late = ds.binary ge %column, %begin : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %local = ds.binary bit_and %early, %late : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %p = ds.linear %x, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %h = ds.reshape %p ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %q = ds.transpose %h [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %a0 = ds.attention %q, %q, %q [add %bias] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<1x4x?x?xf32>) -> tensor<?x4x?x4xf32>
  %r0 = ds.unary relu %a0 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a1 = ds.attention %q, %q, %r0 [window else -1.0e+9] left 2 right 2 scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %r1 = ds.unary relu %a1 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a2 = ds.attention %q, %q, %r1 [window else -1.0e+9] right 0 scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %r2 = ds.unary relu %a2 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a3 = ds.attention %q, %q, %r2 [add %padding] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x1x1x?xf32>) -> tensor<?x4x?x4xf32>
  %r3 = ds.unary relu %a3 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a4 = ds.attention %q, %q, %r3 [keep %local else -1.0e+9] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x?xi1>) -> tensor<?x4x?x4xf32>
  %r4 = ds.unary relu %a4 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %a5 = ds.attention %q, %q, %r4 [window else -1.0e+9] left 3 right -1 scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %r5 = ds.unary relu %a5 : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  return %r5 : tensor<?x4x?x4xf32>
}
