// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=training

func.func @gradient(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{violates the contract of phase 'training': no train.gradient is left}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<2xf32>):
    train.yield %a : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %dx : tensor<2xf32>
}

// -----

func.func @statistic(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{violates the contract of phase 'training': no ds.running_statistic is left}}
  %0, %1 = ds.running_statistic %x, %x momentum 0.9 node 7 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0 : tensor<2xf32>
}
