// What is said of masks in memory, and whose keys an attention reads.
// RUN: ds-opt %s -o %t.dsp --report | FileCheck %s

// A mask in memory is a mask, also where it compares places: it may hide them by other conditions, too. What is certain
// to look one way is a window of the op before layers are recognised.
// Keys that no projection of the program makes are another one's: those of an encoder, kept in a cache.
// CHECK: recognize-layers: 3 layers, 3 recomposed
// CHECK-NEXT: layer 0: attention (masked), relu
// CHECK-NEXT: layer 1: attention (masked), relu
// CHECK-NEXT: layer 2: cross attention, relu
func.func @masks(%x: tensor<?x?x16xf32> {ds.name = "x", ds.dims = ["b", "s", 16]},
    %memory: tensor<?x4x?x4xf32> {ds.name = "memory", ds.dims = ["b", 4, "t", 4]},
    %w: tensor<16x16xf32> {ds.name = "w", ds.dims = [16, 16]}) -> (tensor<?x?x16xf32> {ds.name = "y"}) attributes {ds.entry} {
  %one = ds.constant dense<1> : tensor<i64>
  %zero = ds.constant dense<0> : tensor<i64>
  %three = ds.constant dense<-3> : tensor<i64>
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %none = ds.constant dense<0.0> : tensor<f32>
  %ones = ds.broadcast %one ["s*s"] : (tensor<i64>) -> tensor<?xi64>
  %flat = ds.cumulative sum %ones axis 0 exclusive true reverse false : (tensor<?xi64>) -> tensor<?xi64>
  %both = ds.reshape %flat ["s", "s"] : (tensor<?xi64>) -> tensor<?x?xi64>
  %n = ds.shape ["s"] : tensor<1xi64>
  %column = ds.binary mod %both, %n : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?x?xi64>
  %row = ds.binary div %both, %n : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?x?xi64>
  %ahead = ds.binary sub %column, %row : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
  %later = ds.binary gt %ahead, %zero : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
  %seen = ds.binary ge %row, %column : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi1>
  %unseen = ds.unary logical_not %seen : (tensor<?x?xi1>) -> tensor<?x?xi1>
  %hidden = ds.binary bit_or %later, %unseen : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %far = ds.binary lt %ahead, %three : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
  %outside = ds.binary bit_or %later, %far : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %t = ds.shape ["t"] : tensor<1xi64>
  %moved = ds.binary add %row, %t : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?x?xi64>
  %beyond = ds.binary gt %column, %moved : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi1>
  %cached = ds.binary bit_and %hidden, %beyond : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %causal = ds.select %cached, %low, %none : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %window = ds.select %outside, %low, %none : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %p = ds.linear %x, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %h = ds.reshape %p ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %q = ds.transpose %h [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %a = ds.attention %q, %q, %q [add %causal] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x?xf32>) -> tensor<?x4x?x4xf32>
  %a1 = ds.unary relu %a : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %b = ds.attention %q, %q, %a1 [add %window] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x?xf32>) -> tensor<?x4x?x4xf32>
  %b1 = ds.unary relu %b : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %b2 = ds.transpose %b1 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %b3 = ds.reshape %b2 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %b4 = ds.linear %b3, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %b5 = ds.reshape %b4 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %q2 = ds.transpose %b5 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %c = ds.attention %q2, %memory, %memory scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %c1 = ds.unary relu %c : (tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %c2 = ds.transpose %c1 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %c3 = ds.reshape %c2 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  return %c3 : tensor<?x?x16xf32>
}
