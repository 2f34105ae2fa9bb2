// A wait for a collective that has no buffers, or not both of them, or one for both.
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

// -----

// What one rank tells lies where the others had their own. What a neighbour sends does not: this rank's may still be on the way.
func.func @in_place(%s: tensor<4xf32> {ds.dims = [4], ds.state = "s"}, %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry, ds.buffers = [
    {index = 0 : i64, role = "state"}, {index = 1 : i64, role = "state"}]} {
  %p = dist.broadcast_start %s root 0 site "a" {buffers = array<i64: 0, 0>} : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': a collective does not write over what it reads elsewhere}}
  %q = dist.send_recv_start %t by 1 rotate site "b" {buffers = array<i64: 1, 1>} : tensor<4xf32>
  %1 = dist.wait %q : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
