// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=optimization

func.func @product(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = ds.fused {
    // expected-error @+1 {{'ds.matmul' violates the contract of phase 'optimization': fused regions hold elementwise ops, broadcasts and transposes only}}
    %1 = ds.matmul %x, %x transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    ds.yield %1 : tensor<2x2xf32>
  } : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
