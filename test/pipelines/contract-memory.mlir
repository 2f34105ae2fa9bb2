// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=memory

// expected-error @+1 {{'func.func' violates the contract of phase 'memory': every entry has a buffer plan}}
func.func @compute_is_left(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ds.entry} {
  // expected-error @+1 {{'ds.unary' violates the contract of phase 'memory': every compute op is in a kernel}}
  %0 = ds.unary exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
