// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-fuse-deep -o /dev/null
// RUN: ds-opt %s --split-input-file --ds-fuse-deep=products=false 2>/dev/null | FileCheck %s --check-prefix=ALONE

// New rows are parts of one product; the kernel of the attention appends them to the cache, and shows it.
// CHECK-LABEL: func.func @cache
// CHECK-NEXT: %[[Y:.*]]:3 = ds.fused {
// CHECK: %[[NEW:.*]] = ds.transpose %{{.*}} [0, 2, 1, 3]
// CHECK: %[[K:.*]] = ds.concat 2 %arg1, %[[NEW]]
// CHECK: %[[V:.*]] = ds.concat 2 %arg2
// CHECK: %[[A:.*]] = ds.attention %{{.*}}, %[[K]], %[[V]]
// CHECK-NEXT: ds.yield %[[K]], %[[V]], %[[A]]
// CHECK: return %[[Y]]#2, %[[Y]]#0, %[[Y]]#1
// Attention that stands alone reads heads in place all the same; caches have kernels of their own.
// ALONE-LABEL: func.func @cache
// ALONE: %[[K:.*]] = ds.fused {
// ALONE: ds.concat 2 %arg1
// ALONE: %[[V:.*]] = ds.fused {
// ALONE: ds.concat 2 %arg2
// ALONE: ds.fused {
// ALONE-NEXT: ds.slice %arg0 starts [0, 0, 0]
// ALONE-NEXT: ds.reshape
// ALONE-NEXT: %[[Q:.*]] = ds.transpose
// ALONE-NEXT: %[[A:.*]] = ds.attention %[[Q]], %[[K]], %[[V]]
// ALONE-NEXT: ds.yield %[[A]]
func.func @cache(%x: tensor<?x1x24xf32> {ds.dims = ["b", 1, 24]}, %pk: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]},
                 %pv: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]})
    -> (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 0, 0] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %1 = ds.slice %x starts [0, 0, 8] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %2 = ds.slice %x starts [0, 0, 16] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %3 = ds.reshape %0 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %4 = ds.reshape %1 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %5 = ds.reshape %2 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %6 = ds.transpose %3 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %7 = ds.transpose %4 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %8 = ds.transpose %5 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %9 = ds.concat 2 %pk, %7 : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %10 = ds.concat 2 %pv, %8 : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %11 = ds.attention %6, %9, %10 scale 0.5 : (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %11, %9, %10 : tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>
}

// -----

// Heads are normalized and turned where they are read; new rows that are shown themselves are a result, too.
// CHECK-LABEL: func.func @turned
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK: ds.rms_norm
// CHECK: %[[T:.*]] = ds.transpose
// CHECK: %[[Q:.*]] = ds.rotary %[[T]], %arg3, %arg3
// CHECK: %[[K:.*]] = ds.rotary %arg1, %arg3, %arg3
// CHECK: %[[A:.*]] = ds.attention %[[Q]], %[[K]], %arg2
// CHECK-NEXT: ds.yield %[[K]], %[[A]]
// CHECK: return %[[Y]]#1, %[[Y]]#0
// ALONE-LABEL: func.func @turned
// ALONE: ds.rms_norm
// ALONE: ds.fused {
// ALONE-NEXT: ds.transpose
// ALONE-NEXT: ds.rotary
// ALONE-NEXT: ds.yield
// ALONE: ds.rotary
// ALONE-NEXT: ds.attention
func.func @turned(%q: tensor<1x?x4x8xf32> {ds.dims = [1, "s", 4, 8]}, %k: tensor<1x2x?x8xf32> {ds.dims = [1, 2, "s", 8]},
                  %v: tensor<1x2x?x8xf32> {ds.dims = [1, 2, "s", 8]}, %t: tensor<?x8xf32> {ds.dims = ["s", 8]},
                  %g: tensor<8xf32> {ds.dims = [8]}) -> (tensor<1x4x?x8xf32>, tensor<1x2x?x8xf32>) attributes {ds.entry} {
  %0 = ds.rms_norm %q, %g axis 3 epsilon 1.0e-5 : (tensor<1x?x4x8xf32>, tensor<8xf32>) -> tensor<1x?x4x8xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<1x?x4x8xf32>) -> tensor<1x4x?x8xf32>
  %2 = ds.rotary %1, %t, %t interleaved false : (tensor<1x4x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<1x4x?x8xf32>
  %3 = ds.rotary %k, %t, %t interleaved false : (tensor<1x2x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<1x2x?x8xf32>
  %4 = ds.attention %2, %3, %v scale 0.5 : (tensor<1x4x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) -> tensor<1x4x?x8xf32>
  return %4, %3 : tensor<1x4x?x8xf32>, tensor<1x2x?x8xf32>
}

// -----

// New rows go into a state.
// CHECK-LABEL: func.func @state
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[K:.*]] = ds.insert %arg0 into %arg1
// CHECK-NEXT: ds.attention %arg0, %[[K]], %[[K]]
func.func @state(%x: tensor<1x2x1x4xf32> {ds.dims = [1, 2, 1, 4]}, %k: tensor<1x2x9x4xf32> {ds.dims = [1, 2, 9, 4], ds.state = "k"})
    -> (tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32> {ds.state = "k"}) attributes {ds.entry} {
  %0 = ds.insert %x into %k starts [0, 0, 3, 0] : (tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32>) -> tensor<1x2x9x4xf32>
  %1 = ds.attention %x, %0, %0 scale 0.5 : (tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32>, tensor<1x2x9x4xf32>) -> tensor<1x2x1x4xf32>
  return %1, %0 : tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32>
}

// -----

// CHECK-LABEL: func.func @outside
// CHECK-NOT: ds.fused
func.func @outside(%q: tensor<1x2x4x4xf32> {ds.dims = [1, 2, 4, 4]}, %k: tensor<1x1x4x4xf32> {ds.dims = [1, 1, 4, 4]},
                   %v: tensor<1x2x3x4xf32> {ds.dims = [1, 2, 3, 4]}, %r: tensor<1x2x1x4xf32> {ds.dims = [1, 2, 1, 4]})
    -> tensor<1x2x4x4xf32> attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.attention': it joins something else than tokens}}
  %0 = ds.concat 1 %k, %k : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.attention': the attention reads it in another way, too}}
  %1 = ds.concat 2 %v, %r : (tensor<1x2x3x4xf32>, tensor<1x2x1x4xf32>) -> tensor<1x2x4x4xf32>
  %2 = ds.attention %q, %0, %1 [add %1] scale 0.5
      : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @between
// CHECK: ds.rotary
// CHECK: ds.attention
func.func @between(%q: tensor<1x2x3x4xf32> {ds.dims = [1, 2, 3, 4]}, %t: tensor<3x4xf32> {ds.dims = [3, 4]},
                   %v: tensor<1x2x3x4xf32> {ds.dims = [1, 2, 3, 4]}, %one: tensor<1x?x1x4xf32> {ds.dims = [1, "n", 1, 4]})
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.attention': something else reads it}}
  %0 = ds.rotary %q, %t, %t interleaved false : (tensor<1x2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<1x2x3x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.attention': its rows are not contiguous, or joined with others}}
  %1 = ds.rotary %v, %one, %one interleaved false : (tensor<1x2x3x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>) -> tensor<1x2x3x4xf32>
  %2 = ds.attention %0, %1, %v scale 0.5 : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %2, %0 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Halves are put together as they lie: rows are widened where they are multiplied.
// CHECK-LABEL: func.func @halves
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: ds.concat
// CHECK-NEXT: ds.attention
func.func @halves(%q: tensor<1x2x1x4xf16> {ds.dims = [1, 2, 1, 4]}, %k: tensor<1x2x2x4xf16> {ds.dims = [1, 2, 2, 4]})
    -> tensor<1x2x1x4xf16> attributes {ds.entry} {
  %0 = ds.concat 2 %k, %q : (tensor<1x2x2x4xf16>, tensor<1x2x1x4xf16>) -> tensor<1x2x3x4xf16>
  %1 = ds.attention %q, %0, %0 scale 0.5 : (tensor<1x2x1x4xf16>, tensor<1x2x3x4xf16>, tensor<1x2x3x4xf16>) -> tensor<1x2x1x4xf16>
  return %1 : tensor<1x2x1x4xf16>
}

// -----

// The halves of a gate are computed side by side, with the norm before both.
// CHECK-LABEL: func.func @gate
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: %[[G:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: %[[E:.*]] = ds.gelu
// CHECK-NEXT: %[[U:.*]] = ds.linear %[[N]], %arg2
// CHECK-NEXT: ds.binary mul %[[E]], %[[U]]
// CHECK-NEXT: ds.yield
func.func @gate(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                %u: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]}, %s: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.gelu tanh %1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = ds.linear %0, %u {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %4 = ds.binary mul %2, %3 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// A half that is read elsewhere is a result, but only one of both; weights that are not packed are no halves.
// CHECK-LABEL: func.func @half_gates
// CHECK: %[[H:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[A:.*]] = ds.linear
// CHECK-NEXT: %[[B:.*]] = ds.linear
// CHECK-NEXT: %[[C:.*]] = ds.binary mul %[[B]], %[[A]]
// CHECK-NEXT: ds.yield %[[A]], %[[C]]
// CHECK: %[[U:.*]] = ds.linear
// CHECK: ds.fused {
// CHECK-NEXT: %[[D:.*]] = ds.linear
// CHECK-NEXT: ds.binary mul %[[U]], %[[D]]
// CHECK: %[[P:.*]] = ds.linear
// CHECK: ds.fused {
// CHECK-NEXT: %[[E:.*]] = ds.linear
// CHECK-NEXT: ds.binary mul %[[P]], %[[E]]
func.func @half_gates(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                      %p: tensor<4x8xf32> {ds.dims = [4, 8]})
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %0 = ds.linear %x, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %1 = ds.linear %x, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.binary mul %1, %0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = ds.linear %x, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': something else reads it}}
  %4 = ds.linear %x, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': it is in another region}}
  %5 = ds.binary mul %4, %3 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = ds.linear %x, %p : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': its weight is not packed, or has another layout}}
  %7 = ds.linear %x, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': it is in another region}}
  %8 = ds.binary mul %7, %6 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2, %0, %5, %3, %4, %8 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A context that is rounded before the next product is stored so.
// CHECK-LABEL: func.func @rounded
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[A:.*]] = ds.attention
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[A]]
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]]
// CHECK-NEXT: %[[C:.*]] = ds.cast %[[R]] to bf16
// CHECK-NEXT: ds.yield %[[C]]
func.func @rounded(%q: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "s", 4]}) -> tensor<1x?x8xbf16> attributes {ds.entry} {
  %0 = ds.attention %q, %q, %q scale 0.5 : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32>
  %2 = ds.reshape %1 [1, "s", 8] : (tensor<1x?x2x4xf32>) -> tensor<1x?x8xf32>
  %3 = ds.cast %2 to bf16 : (tensor<1x?x8xf32>) -> tensor<1x?x8xbf16>
  return %3 : tensor<1x?x8xbf16>
}

// -----

// So is one that is rounded to f16 and multiplied as f32.
// CHECK-LABEL: func.func @rounded_to_half
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[A:.*]] = ds.attention
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[A]]
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]]
// CHECK-NEXT: %[[H:.*]] = ds.cast %[[R]] to f16
// CHECK-NEXT: %[[C:.*]] = ds.cast %[[H]] to f32
// CHECK-NEXT: ds.yield %[[C]]
func.func @rounded_to_half(%q: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "s", 4]}) -> tensor<1x?x8xf32> attributes {ds.entry} {
  %0 = ds.attention %q, %q, %q scale 0.5 : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32>
  %2 = ds.reshape %1 [1, "s", 8] : (tensor<1x?x2x4xf32>) -> tensor<1x?x8xf32>
  %3 = ds.cast %2 to f16 : (tensor<1x?x8xf32>) -> tensor<1x?x8xf16>
  %4 = ds.cast %3 to f32 : (tensor<1x?x8xf16>) -> tensor<1x?x8xf32>
  return %4 : tensor<1x?x8xf32>
}

// -----

// A cast to anything else is not the attention's, nor is half of a rounding.
// CHECK-LABEL: func.func @cast_of_a_context
// CHECK: ds.fused {
// CHECK-NEXT: ds.attention
// CHECK-NEXT: ds.transpose
// CHECK-NEXT: ds.yield
// CHECK: ds.cast {{.*}} to f16
// CHECK: ds.attention
// CHECK-NEXT: ds.cast {{.*}} to f64
func.func @cast_of_a_context(%q: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "s", 4]}) -> (tensor<1x?x2x4xf16>, tensor<1x2x?x4xf64>) attributes {ds.entry} {
  %0 = ds.attention %q, %q, %q scale 0.5 : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32>
  %2 = ds.cast %1 to f16 : (tensor<1x?x2x4xf32>) -> tensor<1x?x2x4xf16>
  %3 = ds.attention %q, %q, %q scale 0.25 : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %4 = ds.cast %3 to f64 : (tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf64>
  return %2, %4 : tensor<1x?x2x4xf16>, tensor<1x2x?x4xf64>
}

// -----

// Rows of other floats are turned and appended in the kernel, too; those of narrow formats are read in place only.
// CHECK-LABEL: func.func @half_cache
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[R:.*]] = ds.rotary %arg0
// CHECK-NEXT: %[[K:.*]] = ds.concat 2 %arg1, %[[R]]
// CHECK-NEXT: %[[A:.*]] = ds.attention %arg0, %[[K]], %[[K]]
// CHECK-NEXT: ds.yield %[[K]], %[[A]]
func.func @half_cache(%x: tensor<1x2x1x4xf16> {ds.dims = [1, 2, 1, 4]}, %past: tensor<1x2x?x4xf16> {ds.dims = [1, 2, "p", 4]},
                      %c: tensor<1x4xf16> {ds.dims = [1, 4]}) -> (tensor<1x2x?x4xf16>, tensor<1x2x1x4xf16>) attributes {ds.entry} {
  %0 = ds.rotary %x, %c, %c interleaved false : (tensor<1x2x1x4xf16>, tensor<1x4xf16>, tensor<1x4xf16>) -> tensor<1x2x1x4xf16>
  %1 = ds.concat 2 %past, %0 : (tensor<1x2x?x4xf16>, tensor<1x2x1x4xf16>) -> tensor<1x2x?x4xf16>
  %2 = ds.attention %x, %1, %1 scale 0.5 : (tensor<1x2x1x4xf16>, tensor<1x2x?x4xf16>, tensor<1x2x?x4xf16>) -> tensor<1x2x1x4xf16>
  return %1, %2 : tensor<1x2x?x4xf16>, tensor<1x2x1x4xf16>
}

// -----

// CHECK-LABEL: func.func @narrow_cache
// CHECK-NEXT: ds.concat
// CHECK-NEXT: ds.attention
func.func @narrow_cache(%x: tensor<1x2x1x4xf8E4M3FN> {ds.dims = [1, 2, 1, 4]}, %past: tensor<1x2x?x4xf8E4M3FN> {ds.dims = [1, 2, "p", 4]})
    -> (tensor<1x2x?x4xf8E4M3FN>, tensor<1x2x1x4xf8E4M3FN>) attributes {ds.entry} {
  %0 = ds.concat 2 %past, %x : (tensor<1x2x?x4xf8E4M3FN>, tensor<1x2x1x4xf8E4M3FN>) -> tensor<1x2x?x4xf8E4M3FN>
  %1 = ds.attention %x, %0, %0 scale 0.5 : (tensor<1x2x1x4xf8E4M3FN>, tensor<1x2x?x4xf8E4M3FN>, tensor<1x2x?x4xf8E4M3FN>) -> tensor<1x2x1x4xf8E4M3FN>
  return %0, %1 : tensor<1x2x?x4xf8E4M3FN>, tensor<1x2x1x4xf8E4M3FN>
}

// -----

// Each sequence continues a cache behind its own length: what chooses places joins, too, though others read it. Places that
// are not those of whole rows stay.
// CHECK-LABEL: func.func @placed
// CHECK: %[[Y:.*]]:2 = ds.fused {
// CHECK-DAG: %[[L:.*]] = ds.binary lt %{{.*}}, %arg2
// CHECK-DAG: %[[I:.*]] = ds.broadcast %arg3
// CHECK-DAG: %[[S:.*]] = ds.select %[[L]], %{{.*}}
// CHECK: %[[K:.*]] = ds.scatter_elements assign 2 %[[S]], %[[I]], %arg0
// CHECK: %[[A:.*]] = ds.attention %arg0, %[[K]], %[[K]]
// CHECK-NEXT: ds.yield %[[K]], %[[A]]
// CHECK-LABEL: func.func @elsewhere
// CHECK: %[[K:.*]] = ds.scatter_elements assign 2
// CHECK-NEXT: ds.attention %arg0, %[[K]], %[[K]]
func.func @placed(%x: tensor<?x2x1x4xf32> {ds.dims = ["b", 2, 1, 4]}, %past: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]},
                  %lengths: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]}, %places: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]})
    -> (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>, tensor<?x1x?x1xi1>) attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.iota 2 [1, 1, "p", 1] : tensor<1x1x?x1xi64>
  %1 = ds.binary lt %0, %lengths : (tensor<1x1x?x1xi64>, tensor<?x1x1x1xi64>) -> tensor<?x1x?x1xi1>
  %2 = ds.select %1, %past, %zero : (tensor<?x1x?x1xi1>, tensor<?x2x?x4xf32>, tensor<f32>) -> tensor<?x2x?x4xf32>
  %3 = ds.broadcast %places ["b", 2, 1, 4] : (tensor<?x1x1x1xi64>) -> tensor<?x2x1x4xi64>
  %4 = ds.scatter_elements assign 2 %2, %3, %x : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xi64>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %5 = ds.attention %x, %4, %4 scale 0.5 : (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %4, %5, %1 : tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>, tensor<?x1x?x1xi1>
}

func.func @elsewhere(%x: tensor<?x2x1x4xf32> {ds.dims = ["b", 2, 1, 4]}, %past: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]},
                     %lengths: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]}, %places: tensor<?x2x1x1xi64> {ds.dims = ["b", 2, 1, 1]})
    -> (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.iota 2 [1, 1, "p", 1] : tensor<1x1x?x1xi64>
  %1 = ds.binary lt %0, %lengths : (tensor<1x1x?x1xi64>, tensor<?x1x1x1xi64>) -> tensor<?x1x?x1xi1>
  %2 = ds.select %1, %past, %zero : (tensor<?x1x?x1xi1>, tensor<?x2x?x4xf32>, tensor<f32>) -> tensor<?x2x?x4xf32>
  %3 = ds.broadcast %places ["b", 2, 1, 4] : (tensor<?x2x1x1xi64>) -> tensor<?x2x1x4xi64>
  // expected-remark @+1 {{does not join the region of 'ds.attention': it joins something else than tokens}}
  %4 = ds.scatter_elements assign 2 %2, %3, %x : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xi64>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %5 = ds.attention %x, %4, %4 scale 0.5 : (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %4, %5 : tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>
}

// -----

// Neither a cache of one row that the select repeats joins, nor one that is what the same attention puts together.
// CHECK-LABEL: func.func @repeated
// CHECK: %[[K:.*]] = ds.scatter_elements assign 2
// CHECK-NEXT: ds.attention %arg0, %[[K]], %[[K]]
// CHECK-LABEL: func.func @chained
// CHECK: %[[K:.*]] = ds.scatter_elements assign 2
// CHECK-NEXT: ds.fused {
// CHECK: ds.select %{{.*}}, %[[K]]
// CHECK: %[[L:.*]] = ds.scatter_elements assign 2
// CHECK: ds.attention %arg0, %[[L]], %[[K]]
func.func @repeated(%x: tensor<?x2x1x4xf32> {ds.dims = ["b", 2, 1, 4]}, %past: tensor<?x2x1x4xf32> {ds.dims = ["b", 2, 1, 4]},
                    %lengths: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]}, %places: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]},
                    %m: tensor<?xf32> {ds.dims = ["p"]})
    -> (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.iota 2 [1, 1, "p", 1] : tensor<1x1x?x1xi64>
  %1 = ds.binary lt %0, %lengths : (tensor<1x1x?x1xi64>, tensor<?x1x1x1xi64>) -> tensor<?x1x?x1xi1>
  %2 = ds.select %1, %past, %zero : (tensor<?x1x?x1xi1>, tensor<?x2x1x4xf32>, tensor<f32>) -> tensor<?x2x?x4xf32>
  %3 = ds.broadcast %places ["b", 2, 1, 4] : (tensor<?x1x1x1xi64>) -> tensor<?x2x1x4xi64>
  // expected-remark @+1 {{does not join the region of 'ds.attention': it joins something else than tokens}}
  %4 = ds.scatter_elements assign 2 %2, %3, %x : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xi64>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %5 = ds.attention %x, %4, %4 scale 0.5 : (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %4, %5 : tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>
}

func.func @chained(%x: tensor<?x2x1x4xf32> {ds.dims = ["b", 2, 1, 4]}, %past: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]},
                   %lengths: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]}, %places: tensor<?x1x1x1xi64> {ds.dims = ["b", 1, 1, 1]})
    -> (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.iota 2 [1, 1, "p", 1] : tensor<1x1x?x1xi64>
  %1 = ds.binary lt %0, %lengths : (tensor<1x1x?x1xi64>, tensor<?x1x1x1xi64>) -> tensor<?x1x?x1xi1>
  %2 = ds.select %1, %past, %zero : (tensor<?x1x?x1xi1>, tensor<?x2x?x4xf32>, tensor<f32>) -> tensor<?x2x?x4xf32>
  %3 = ds.broadcast %places ["b", 2, 1, 4] : (tensor<?x1x1x1xi64>) -> tensor<?x2x1x4xi64>
  // expected-remark @+1 {{does not join the region of 'ds.attention': the attention reads it in another way, too}}
  %4 = ds.scatter_elements assign 2 %2, %3, %x : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xi64>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %5 = ds.select %1, %4, %zero : (tensor<?x1x?x1xi1>, tensor<?x2x?x4xf32>, tensor<f32>) -> tensor<?x2x?x4xf32>
  %6 = ds.scatter_elements assign 2 %5, %3, %x : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xi64>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %7 = ds.attention %x, %6, %4 scale 0.5 : (tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %4, %7 : tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>
}
