// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @all_reduce_start_c1_one_wait(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C1: expects exactly one dist.wait to use the result}}
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  %1 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c2_site(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C2: expects a site name}}
  %p = dist.all_reduce_start sum %x site "" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c3_type(%x: tensor<4xi8>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C3: expects a float, i32 or i64 element type, found 'i8'}}
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xi8>
  %0 = dist.wait %p : tensor<4xi8>
  return
}

// -----

func.func @wait_c1_type(%x: tensor<4xf32>) {
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C1: expects a start of type 'tensor<5xf32>'}}
  %0 = dist.wait %p : tensor<5xf32>
  return
}
