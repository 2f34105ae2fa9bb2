// RUN: not ds-opt %s -o %t.dsp 2>&1 | FileCheck %s

// Sizes that a model makes up of a few bytes are not computed beyond a limit, even where little of them is kept.
// CHECK: recipe-limit.mlir:[[@LINE+7]]:8: error: expected constants of at most 17179869184 bytes each that are computed while packaging, found a tensor of 'tensor<4294967297xf32>'
func.func @main() -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.weight @w : tensor<4xf32>
  return %0 : tensor<4xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<1.0> : tensor<1xf32>
  %1 = ds.broadcast %0 [4294967297] : (tensor<1xf32>) -> tensor<4294967297xf32>
  %2 = ds.slice %1 starts [0] sizes [4] steps [1] : (tensor<4294967297xf32>) -> tensor<4xf32>
  ds.yield %2 : tensor<4xf32>
}
