// Entry points whose signature no package can hold.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-outline-kernels

// expected-error @+1 {{expects arguments and results that are ranked tensors}}
func.func @scalar_argument(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> attributes {ds.entry} {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{expects arguments and results that are ranked tensors}}
func.func @narrow_integers(%x: tensor<2xi4>) -> tensor<2xi4> attributes {ds.entry} {
  return %x : tensor<2xi4>
}
