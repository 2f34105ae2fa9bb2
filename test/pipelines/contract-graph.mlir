// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=graph

func.func @shape_arithmetic_is_left() -> tensor<1xi64> {
  // expected-error @+1 {{'ds.shape' violates the contract of phase 'graph': no foldable shape arithmetic}}
  %0 = ds.shape [3] : tensor<1xi64>
  %1 = ds.shape ["n"] : tensor<1xi64>
  // expected-error @+1 {{'ds.binary' violates the contract of phase 'graph': no foldable shape arithmetic}}
  %2 = ds.binary mul %0, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %2 : tensor<1xi64>
}

// -----

func.func @holds() -> (tensor<1xi64>, tensor<3xi64>) {
  %0 = ds.shape ["n"] : tensor<1xi64>
  %1 = ds.iota 0 [3] : tensor<3xi64>
  return %0, %1 : tensor<1xi64>, tensor<3xi64>
}
