// RUN: ds-opt %s --split-input-file --ds-promote-parameters | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-promote-parameters 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// Rotary embeddings stay, whatever they are called; numbers are checked by test/integration/training_cases.py.

// Tables whose rows are chosen, of x cos + rotated(x) sin.
// REMARK: remark: 'a' is not trained: it is a rotary table
// REMARK: remark: 'b' is not trained: it is a rotary table
// CHECK-LABEL: func.func @tables(
// CHECK-SAME: ds.state = "w"
// CHECK-NOT: ds.state
// CHECK: return
ds.recipe @a {
  %0 = ds.source "model.onnx" [0, 256] : tensor<16x4xf32>
  ds.yield %0 : tensor<16x4xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [256, 256] : tensor<16x4xf32>
  ds.yield %0 : tensor<16x4xf32>
}
ds.recipe @w {
  %0 = ds.source "model.onnx" [512, 64] : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
func.func @tables(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %i: tensor<3xi64> {ds.dims = [3], ds.name = "i"}) -> (tensor<3x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %a = ds.weight @a : tensor<16x4xf32>
  %b = ds.weight @b : tensor<16x4xf32>
  %w = ds.weight @w : tensor<4x4xf32>
  %c = ds.gather 0 %a, %i : (tensor<16x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %s = ds.gather 0 %b, %i : (tensor<16x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %q = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %low = ds.slice %q starts [0, 0] sizes [3, 2] steps [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %high = ds.slice %q starts [0, 2] sizes [3, 2] steps [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = ds.unary neg %high : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %r = ds.concat 1 %n, %low : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %0 = ds.binary mul %q, %c : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = ds.binary mul %r, %s : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = ds.binary add %0, %1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// -----

// What multiplies positions and ends in cosines and sines; of a network of sines on floats, the weight is learned.
// REMARK: remark: 'f' is not trained: it is a vector of rotary frequencies
// CHECK-LABEL: func.func @frequencies(
// CHECK-SAME: ds.state = "w"
// CHECK-NOT: ds.state
// CHECK: return
ds.recipe @f {
  %0 = ds.source "model.onnx" [0, 16] : tensor<1x4xf32>
  ds.yield %0 : tensor<1x4xf32>
}
ds.recipe @w {
  %0 = ds.source "model.onnx" [16, 64] : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
func.func @frequencies(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %i: tensor<3x1xi64> {ds.dims = [3, 1], ds.name = "i"}) -> (tensor<3x4xf32> {ds.name = "y"}, tensor<3x4xf32> {ds.name = "z"}) attributes {ds.entry} {
  %f = ds.weight @f : tensor<1x4xf32>
  %w = ds.weight @w : tensor<4x4xf32>
  %p = ds.cast %i to f32 : (tensor<3x1xi64>) -> tensor<3x1xf32>
  %0 = ds.binary mul %p, %f : (tensor<3x1xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %1 = ds.unary cos %0 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = ds.unary sin %0 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %4 = ds.unary sin %3 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %5 = ds.unary cos %3 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %6 = ds.binary mul %4, %1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %7 = ds.binary mul %5, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %6, %7 : tensor<3x4xf32>, tensor<3x4xf32>
}
