// A wait for a collective that has no buffers, or not both of them.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=memory

func.func @without(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry, ds.buffers = [
    {index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"}]} {
  // expected-error @+1 {{violates the contract of phase 'memory': every collective has a buffer for each source and result}}
  %p = dist.all_reduce_start mean %x site "a" : tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': every wait has a start before it}}
  %0 = dist.wait %p : tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': buffer 1 holds a result of the program at its end}}
  return %0 : tensor<4xf32>
}

// -----

func.func @one_of_two(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry, ds.buffers = [
    {index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"}]} {
  // expected-error @+1 {{violates the contract of phase 'memory': every collective has a buffer for each source and result}}
  %p = dist.all_reduce_start mean %x site "a" {buffers = array<i64: 1>} : tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': every wait has a start before it}}
  %0 = dist.wait %p : tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': buffer 1 holds a result of the program at its end}}
  return %0 : tensor<4xf32>
}
