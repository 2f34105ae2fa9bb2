// Entry points whose signature no package can hold.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-outline-kernels

// expected-error @+1 {{expects arguments and results that are ranked tensors}}
func.func @scalar_argument(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> attributes {ds.entry} {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{expects arguments and results that are ranked tensors}}
func.func @odd_integers(%x: tensor<2xi5>) -> tensor<2xi5> attributes {ds.entry} {
  return %x : tensor<2xi5>
}

// -----

// expected-error @+1 {{expects arguments and results that are ranked tensors}}
func.func @foreign_float(%x: tensor<2xf8E3M4>) -> tensor<2xf8E3M4> attributes {ds.entry} {
  return %x : tensor<2xf8E3M4>
}
