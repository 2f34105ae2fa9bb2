// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=distribution

func.func @site_twice(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %p = dist.all_reduce_start sum %x site "a" : tensor<2xf32>
  %0 = dist.wait %p : tensor<2xf32>
  // expected-error @+1 {{violates the contract of phase 'distribution': collective sites are unique, found 'a' twice}}
  %q = dist.all_reduce_start sum %0 site "a" : tensor<2xf32>
  %1 = dist.wait %q : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

func.func @under_a_branch(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = scf.if %c -> tensor<2xf32> {
    // expected-error @+1 {{no collective under a branch, which ranks might take differently}}
    %p = dist.all_reduce_start sum %x site "a" : tensor<2xf32>
    %1 = dist.wait %p : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
