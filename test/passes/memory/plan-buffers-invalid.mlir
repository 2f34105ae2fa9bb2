// What ds-outline-kernels diagnoses is not taken on trust.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-plan-buffers

// expected-error @+1 {{'func.func' op result 0 is tied to state "s", which no argument has}}
func.func @state_without_an_argument(%x: tensor<4xf32> {ds.dims = [4]}) -> (tensor<4xf32> {ds.state = "s"})
    attributes {ds.entry} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op has two results of state "s"}}
func.func @two_results(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  return %s, %s : tensor<4xf32>, tensor<4xf32>
}
