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
  // expected-error @+1 {{'dist.wait' op C1: expects results of the types of the sources and errors, 'tensor<4xf32>'}}
  %0 = dist.wait %p : tensor<5xf32>
  return
}

// -----

func.func @wait_c1_count(%x: tensor<64xf32>) {
  %p = dist.reduce_scatter_start sum %x layouts [#dist.layout<[0] of 64 by 64>] site "a" : tensor<64xf32>
  // expected-error @+1 {{'dist.wait' op C1: expects 1 results of element type 'f32'}}
  %0:2 = dist.wait %p : tensor<?xf32>, tensor<?xf32>
  return
}

// -----

func.func @wait_c3_deferred(%x: tensor<4xf32>) {
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C3: expects a deferred wait to be that of dist.all_gather_start, found dist.all_reduce_start}}
  %0 = dist.wait %p deferred : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c3_one_type(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C3: expects sources of one element type, found 'f32' and 'f64'}}
  %p = dist.all_reduce_start sum %x, %y layouts [#dist.layout<[0, 4] of 8 by 4>] site "a" : tensor<4xf32>, tensor<4xf64>
  %0:2 = dist.wait %p : tensor<4xf32>, tensor<4xf64>
  return
}

// -----

func.func @all_reduce_start_c4_offsets(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C4: expects a tensor for each offset, found 1}}
  %p = dist.all_reduce_start sum %x layouts [#dist.layout<[0, 4] of 8 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c4_overlap(%x: tensor<5xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C4: expects a tensor of at most 4 elements at 0, found 'tensor<5xf32>'}}
  %p = dist.all_reduce_start sum %x, %y layouts [#dist.layout<[0, 4] of 8 by 4>] site "a" : tensor<5xf32>, tensor<4xf32>
  %0:2 = dist.wait %p : tensor<5xf32>, tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c5_layouts(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C5: expects one source where there are no layouts, found 2}}
  %p = dist.all_reduce_start sum %x, %y site "a" : tensor<4xf32>, tensor<4xf32>
  %0:2 = dist.wait %p : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @reduce_scatter_start_c6_into(%x: tensor<4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C6: expects a tensor to write into for each layout, or none, found 2 for 1}}
  %p = dist.reduce_scatter_start sum %x into %y, %y : tensor<?xf32>, tensor<?xf32> layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return
}

// -----

func.func @all_gather_start_c11_condition(%x: tensor<?xf32>, %y: tensor<f32>) {
  %0 = ds.binary gt %y, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // expected-error @+1 {{'dist.all_gather_start' op C11: expects an argument of the entry as condition}}
  %p = dist.all_gather_start %x when %0 layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<?xf32>
  %1 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_gather_start_c7_sources(%x: tensor<?xf32>) {
  // expected-error @+1 {{'dist.all_gather_start' op C7: expects a source for each layout, found 2 for 1}}
  %p = dist.all_gather_start %x, %x layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<?xf32>, tensor<?xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @layout_elements(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a multiple of the block as number of elements, found 5 by 4}}
  %p = dist.all_reduce_start sum %x layouts [#dist.layout<[0] of 5 by 4>] site "a" : tensor<4xf32>
  return
}

// -----

func.func @layout_offsets(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects growing offsets that are multiples of 4 up to 8, found 2}}
  %p = dist.all_reduce_start sum %x layouts [#dist.layout<[0, 2] of 8 by 4>] site "a" : tensor<4xf32>
  return
}

// -----

func.func @layout_range(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a range inside of 0 to 8, or to -1, found 4 to 2}}
  %p = dist.all_reduce_start sum %x layouts [#dist.layout<[0] of 8 by 4 from 4 to 2>] site "a" : tensor<4xf32>
  return
}

// -----

func.func @reduce_scatter_start_c6_condition(%x: tensor<4xf32>, %last: tensor<i1>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C6: expects nothing to write into in place, and a condition only there}}
  %p = dist.reduce_scatter_start sum %x when %last layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c8_type(%x: tensor<8xf16>, %e: tensor<8xf16>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C8: expects f32 or f64 with a codec, found 'f16'}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<8xf16>, tensor<8xf16> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf16>
  %0:3 = dist.wait %p : tensor<8xf16>, tensor<8xf16>, tensor<8xf16>
  return
}

// -----

func.func @reduce_scatter_start_c6_in_place(%x: tensor<4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C6: expects nothing to write into in place, and a condition only there}}
  %p = dist.reduce_scatter_start sum %x in_place into %y : tensor<?xf32> layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c8_reduction(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C8: expects the mean with a codec, found sum}}
  %p = dist.all_reduce_start sum %x codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @all_reduce_start_c11_condition(%x: tensor<4xf32>, %y: tensor<f32>) {
  %0 = ds.binary gt %y, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // expected-error @+1 {{'dist.all_reduce_start' op C11: expects an argument of the entry as condition}}
  %p = dist.all_reduce_start sum %x when %0 site "a" : tensor<4xf32>
  %1 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c9_layouts(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C9: expects layouts with a codec}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @wait_c2_kind(%x: tensor<4xf32>) {
  %p = dist.all_reduce_start sum %x site "a" : tensor<4xf32>
  %q = dist.all_reduce_start sum %x site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects several starts to be of dist.reduce_scatter_start with one layout each, not in place}}
  %0 = dist.wait %p, %q : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c9_block(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C9: expects a block that is a multiple of 8, found 4}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> layouts [#dist.layout<[0] of 8 by 4>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @wait_c2_order(%x: tensor<4xf32>) {
  %p = dist.reduce_scatter_start sum %x layouts [#dist.layout<[0] of 8 by 4 to 4>] site "a" : tensor<4xf32>
  %q = dist.reduce_scatter_start sum %x layouts [#dist.layout<[4] of 8 by 4 from 4>] site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects starts in the order of the program}}
  %0 = dist.wait %q, %p : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c9_range(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C9: expects whole layouts, found one from 0 to 8}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> layouts [#dist.layout<[0] of 8 by 8 to 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @wait_c2_into(%x: tensor<4xf32>, %y: tensor<?xf32>) {
  %p = dist.reduce_scatter_start sum %x layouts [#dist.layout<[0] of 8 by 4 to 4>] site "a" : tensor<4xf32>
  %q = dist.reduce_scatter_start sum %x into %y : tensor<?xf32> layouts [#dist.layout<[4] of 8 by 4 from 4>] site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects several starts to write into the same tensor}}
  %0 = dist.wait %p, %q : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c10_count(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C10: expects two errors for each layout, found 1 for 1}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e : tensor<8xf32> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:2 = dist.wait %p : tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @wait_c2_space(%x: tensor<4xf32>) {
  %p = dist.reduce_scatter_start sum %x layouts [#dist.layout<[0] of 8 by 4 to 4>] site "a" : tensor<4xf32>
  %q = dist.reduce_scatter_start sum %x layouts [#dist.layout<[4] of 12 by 4 from 4>] site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects ranges of one space, found #dist.layout<[0] of 8 by 4 to 4> and #dist.layout<[4] of 12 by 4 from 4>}}
  %0 = dist.wait %p, %q : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c10_without_codec(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C10: expects no errors without the codec one_bit, found 2}}
  %p = dist.all_reduce_start mean %x errors %e, %e : tensor<8xf32>, tensor<8xf32> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @wait_c2_overlap(%x: tensor<4xf32>) {
  %p = dist.reduce_scatter_start sum %x layouts [#dist.layout<[4] of 8 by 4 from 4>] site "a" : tensor<4xf32>
  %q = dist.reduce_scatter_start sum %x layouts [#dist.layout<[0] of 8 by 4>] site "b" : tensor<4xf32>
  // expected-error @+1 {{'dist.wait' op C2: expects ranges that do not overlap, found #dist.layout<[4] of 8 by 4 from 4> and #dist.layout<[0] of 8 by 4>}}
  %0 = dist.wait %p, %q : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c10_vectors(%x: tensor<8xf32>, %e: tensor<2x4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C10: expects errors that are vectors of 'f32', found 'tensor<2x4xf32>'}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<2x4xf32>, tensor<2x4xf32> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @all_reduce_start_c11_codec(%x: tensor<8xf32>, %e: tensor<8xf32>, %last: tensor<i1>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C11: expects no condition with the codec one_bit}}
  %p = dist.all_reduce_start mean %x codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> when %last layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @all_reduce_start_c10_rows(%x: tensor<4x2xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C10: expects no errors without the codec one_bit, found 2}}
  %p = dist.all_reduce_start mean %x codec sparse_rows errors %e, %e : tensor<8xf32>, tensor<8xf32> site "a" : tensor<4x2xf32>
  %0:3 = dist.wait %p : tensor<4x2xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @all_reduce_start_c12_sources(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C12: expects one source with sparse_rows, found 2}}
  %p = dist.all_reduce_start sum %x, %y codec sparse_rows layouts [#dist.layout<[0, 8] of 16 by 8>] site "a" : tensor<4x2xf32>, tensor<4x2xf32>
  %0:2 = dist.wait %p : tensor<4x2xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @all_reduce_start_c12_scalar(%x: tensor<f32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C12: expects rows of constant size with sparse_rows, found 'tensor<f32>'}}
  %p = dist.all_reduce_start sum %x codec sparse_rows site "a" : tensor<f32>
  %0 = dist.wait %p : tensor<f32>
  return
}

// -----

func.func @all_reduce_start_c12_open(%x: tensor<?x2xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C12: expects rows of constant size with sparse_rows, found 'tensor<?x2xf32>'}}
  %p = dist.all_reduce_start sum %x codec sparse_rows site "a" : tensor<?x2xf32>
  %0 = dist.wait %p : tensor<?x2xf32>
  return
}

// -----

func.func @all_reduce_start_c12_empty(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C12: expects rows of constant size with sparse_rows, found 'tensor<4x0xf32>'}}
  %p = dist.all_reduce_start sum %x codec sparse_rows site "a" : tensor<4x0xf32>
  %0 = dist.wait %p : tensor<4x0xf32>
  return
}

// -----

func.func @all_reduce_start_c13_max(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C13: expects sum or mean with sparse_rows, found max}}
  %p = dist.all_reduce_start max %x codec sparse_rows site "a" : tensor<4x2xf32>
  %0 = dist.wait %p : tensor<4x2xf32>
  return
}

// -----

func.func @all_reduce_start_c14_range(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C14: expects a whole layout with sparse_rows, found one from 0 to 8}}
  %p = dist.all_reduce_start sum %x codec sparse_rows layouts [#dist.layout<[0] of 8 by 8 to 8>] site "a" : tensor<4x2xf32>
  %0 = dist.wait %p : tensor<4x2xf32>
  return
}

// -----

func.func @all_reduce_start_c18_wider(%x: tensor<4xf16>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects a narrower float to travel than 'f16', found 'f32'}}
  %p = dist.all_reduce_start sum %x wire f32 site "a" : tensor<4xf16>
  %0 = dist.wait %p : tensor<4xf16>
  return
}

// -----

func.func @all_reduce_start_c18_as_wide(%x: tensor<4xf16>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects a narrower float to travel than 'f16', found 'bf16'}}
  %p = dist.all_reduce_start sum %x wire bf16 site "a" : tensor<4xf16>
  %0 = dist.wait %p : tensor<4xf16>
  return
}

// -----

func.func @all_reduce_start_c18_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects a narrower float to travel than 'f32', found 'i16'}}
  %p = dist.all_reduce_start sum %x wire i16 site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @all_reduce_start_c18_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects a narrower float to travel than 'i32', found 'bf16'}}
  %p = dist.all_reduce_start sum %x wire bf16 site "a" : tensor<4xi32>
  %0 = dist.wait %p : tensor<4xi32>
  return
}

// -----

func.func @all_reduce_start_c18_narrow(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects a narrower float to travel than 'f32', found 'f8E5M2'}}
  %p = dist.all_reduce_start sum %x wire f8E5M2 site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<4xf32>
  return
}

// -----

func.func @reduce_scatter_start_c18_wider(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C18: expects a narrower float to travel than 'f32', found 'f64'}}
  %p = dist.reduce_scatter_start sum %x wire f64 layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<4xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return
}

// -----

func.func @all_reduce_start_c18_bits(%x: tensor<8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{'dist.all_reduce_start' op C18: expects no type that travels with the codec one_bit, found 'bf16'}}
  %p = dist.all_reduce_start mean %x wire bf16 codec one_bit errors %e, %e : tensor<8xf32>, tensor<8xf32> layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0:3 = dist.wait %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @reduce_scatter_start_c19_bits(%x: tensor<8xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C19: expects no codec but sparse_rows, and that in place, found one_bit}}
  %p = dist.reduce_scatter_start sum %x codec one_bit in_place layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0 = dist.wait %p : tensor<8xf32>
  return
}

// -----

func.func @reduce_scatter_start_c19_elsewhere(%x: tensor<8xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C19: expects no codec but sparse_rows, and that in place, found sparse_rows}}
  %p = dist.reduce_scatter_start sum %x codec sparse_rows layouts [#dist.layout<[0] of 8 by 8>] site "a" : tensor<8xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return
}

// -----

func.func @reduce_scatter_start_c14(%x: tensor<8xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter_start' op C14: expects a whole layout with sparse_rows, found one from 0 to 8}}
  %p = dist.reduce_scatter_start sum %x codec sparse_rows in_place layouts [#dist.layout<[0] of 8 by 8 to 8>] site "a" : tensor<8xf32>
  %0 = dist.wait %p : tensor<8xf32>
  return
}
