// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @all_to_all_start_c5_sources(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C5: expects one source where there are no layouts, found 2}}
  %p = dist.all_to_all_start %x, %y site "a" : tensor<4xf32>, tensor<4xf32>
  %0 = dist.wait %p sizes [["4*mesh.data"]] : tensor<?xf32>
  return
}

// -----

func.func @all_to_all_start_c4_place(%x: tensor<5xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C4: expects a tensor of at most 4 elements at 0, found 'tensor<5xf32>'}}
  %p = dist.all_to_all_start %x layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<5xf32>
  %0 = dist.wait %p sizes [["4*mesh.data"]] : tensor<?xf32>
  return
}

// -----

func.func @all_to_all_start_c15_range(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C15: expects whole layouts, found one from 4 to -1}}
  %p = dist.all_to_all_start %x layouts [#dist.layout<[4] of 8 by 4 from 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p sizes [["4*mesh.data"]] : tensor<?xf32>
  return
}

// -----

func.func @all_to_all_start_c15_without_sizes(%x: tensor<?xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C15: expects a wait that states sizes of 1 results}}
  %p = dist.all_to_all_start %x site "a" : tensor<?xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return
}

// -----

func.func @all_to_all_start_c15_elements(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C15: expects a wait for ceildiv(4, mesh.data)*mesh.data elements, found 4}}
  %p = dist.all_to_all_start %x site "a" : tensor<4xf32>
  %0 = dist.wait %p sizes [[4]] : tensor<4xf32>
  return
}

// -----

func.func @all_to_all_start_c15_space(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_to_all_start' op C15: expects a wait for 4*ceildiv(8, 4*mesh.data)*mesh.data elements, found 4*mesh.data}}
  %p = dist.all_to_all_start %x layouts [#dist.layout<[0] of 8 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p sizes [["4*mesh.data"]] : tensor<?xf32>
  return
}

// -----

func.func @broadcast_start_c1_two_waits(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.broadcast_start' op C1: expects exactly one dist.wait to use the result}}
  %p = dist.broadcast_start %x root 0 site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  %1 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @broadcast_start_c2_site(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.broadcast_start' op C2: expects a site name}}
  %p = dist.broadcast_start %x root 0 site "" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @broadcast_start_c3_types(%x: tensor<4xf32>, %y: tensor<4xi8>) {
  // expected-error @+1 {{'dist.broadcast_start' op C3: expects sources of one element type, found 'f32' and 'i8'}}
  %p = dist.broadcast_start %x, %y root 0 site "a" : tensor<4xf32>, tensor<4xi8>
  %0:2 = dist.wait %p sizes [[4], [4]] : tensor<4xf32>, tensor<4xi8>
  return
}

// -----

func.func @wait_c1_of_a_broadcast(%x: tensor<4xf32>) {
  %p = dist.broadcast_start %x root 0 site "a" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C1: expects results of the types of the sources and errors, 'tensor<4xf32>'}}
  %0 = dist.wait %p : tensor<2x2xf32>
  return
}

// -----

func.func @send_recv_start_c16_itself(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.send_recv_start' op C16: expects another rank, at most 4096 away, found by 0}}
  %p = dist.send_recv_start %x by 0 rotate site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @send_recv_start_c16_far(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.send_recv_start' op C16: expects another rank, at most 4096 away, found by -4097}}
  %p = dist.send_recv_start %x by -4097 rotate site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @send_recv_start_c17_none(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.send_recv_start' op C17: expects tensors of the types of the sources to write into, and none with rotate, found }}
  %p = dist.send_recv_start %x by 1 site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @send_recv_start_c17_type(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{'dist.send_recv_start' op C17: expects tensors of the types of the sources to write into, and none with rotate, found 'tensor<5xf32>'}}
  %p = dist.send_recv_start %x by 1 into %y : tensor<5xf32> site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @send_recv_start_c17_rotate(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.send_recv_start' op C17: expects tensors of the types of the sources to write into, and none with rotate, found 'tensor<4xf32>'}}
  %p = dist.send_recv_start %x by 1 rotate into %x : tensor<4xf32> site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @wait_c2_of_neighbours(%x: tensor<4xf32>) {
  %p = dist.send_recv_start %x by 1 rotate site "a" : tensor<4xf32>
  %q = dist.send_recv_start %x by 1 rotate site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects several starts to be of dist.reduce_scatter_start with one layout each, not in place}}
  %0 = dist.wait %p, %q : tensor<4xf32>
  return
}
