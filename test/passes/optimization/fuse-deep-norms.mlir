// Norms before products whose weights are packed, which only kernels in vectors read: numbers are compared by
// test/integration/norm_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// The norm before a product is computed in its kernel.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.layer_norm %arg0
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: %[[G:.*]] = ds.gelu erf %[[P]]
// CHECK-NEXT: ds.yield %[[G]]
// CHECK: return %[[Y]]
func.func @norm(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                %s: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.layer_norm %x, %s, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.gelu erf %1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// What else reads it gets it from the first product, whose region has another result.
// CHECK-LABEL: func.func @norm_with_readers
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: ds.yield %[[N]], %[[P]]
// CHECK: ds.linear %[[Y]]#0, %arg1
func.func @norm_with_readers(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                             %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Two products of one input that an epilogue combines are computed side by side, and the norm before both once.
// CHECK-LABEL: func.func @norm_of_a_sum
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: %[[Q:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: ds.binary add %[[P]], %[[Q]]
// CHECK-NEXT: ds.yield
func.func @norm_of_a_sum(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                         %s: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  %3 = ds.binary add %1, %2 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// Norms that products do not take in.
// CHECK-LABEL: func.func @norms_outside
// CHECK-NOT: ds.fused
func.func @norms_outside(%x: tensor<?x2x4xf32> {ds.dims = ["n", 2, 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                         %u: tensor<4x8xf32> {ds.dims = [4, 8]}, %s: tensor<4xf32> {ds.dims = [4]},
                         %t: tensor<2x4xf32> {ds.dims = [2, 4]})
    -> (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{the product's weight is not packed}}
  %0 = ds.rms_norm %x, %s axis 2 epsilon 1.0e-5 : (tensor<?x2x4xf32>, tensor<4xf32>) -> tensor<?x2x4xf32>
  %1 = ds.linear %0, %u : (tensor<?x2x4xf32>, tensor<4x8xf32>) -> tensor<?x2x8xf32>
  // expected-remark @+1 {{it spans several axes}}
  %2 = ds.rms_norm %x, %t axis 1 epsilon 1.0e-5 : (tensor<?x2x4xf32>, tensor<2x4xf32>) -> tensor<?x2x4xf32>
  %3 = ds.linear %2, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x2x4xf32>, tensor<1x4x16xf32>) -> tensor<?x2x8xf32>
  // expected-remark @+1 {{its scale or bias has several axes}}
  %4 = ds.rms_norm %x, %t axis 2 epsilon 1.0e-5 : (tensor<?x2x4xf32>, tensor<2x4xf32>) -> tensor<?x2x4xf32>
  %5 = ds.linear %4, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x2x4xf32>, tensor<1x4x16xf32>) -> tensor<?x2x8xf32>
  return %1, %3, %5 : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>
}

// -----

// CHECK-LABEL: func.func @long_rows
// CHECK-NOT: ds.fused
func.func @long_rows(%x: tensor<?x4097xf32> {ds.dims = ["n", 4097]}, %w: tensor<1x4097x16xf32> {ds.dims = [1, 4097, 16]},
                     %s: tensor<4097xf32> {ds.dims = [4097]}) -> tensor<?x8xf32> attributes {ds.entry} {
  // expected-remark @+1 {{its rows are too long for each thread to hold a block of them}}
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4097xf32>, tensor<4097xf32>) -> tensor<?x4097xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4097xf32>, tensor<1x4097x16xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// What follows the product reads memory, where the norm is not yet.
// CHECK-LABEL: func.func @norm_as_residual
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[N]]
// CHECK-NEXT: ds.binary add %[[P]], %[[N]]
func.func @norm_as_residual(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                            %s: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x4xf32> attributes {ds.entry} {
  // expected-remark @+1 {{what follows the product reads it, too}}
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 4 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %1, %0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// Rows that are rounded before they are multiplied are rounded in the kernel, too; the norm itself is a result.
// CHECK-LABEL: func.func @rounded_norm
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: %[[R:.*]] = ds.cast %[[N]] to bf16
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[R]], %arg1
// CHECK-NEXT: ds.yield %[[N]], %[[P]]
func.func @rounded_norm(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x2x32xbf16> {ds.dims = [1, 2, 32]},
                        %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xf32>, tensor<?x4xf32>) attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to bf16 : (tensor<?x4xf32>) -> tensor<?x4xbf16>
  %2 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64, interleave = 2 : i64, wide} : (tensor<?x4xbf16>, tensor<1x2x32xbf16>) -> tensor<?x8xf32>
  return %2, %0 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// What something else reads after it is rounded is a result, too.
// CHECK-LABEL: func.func @rounded_norm_with_readers
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: ds.rms_norm
// CHECK-NEXT: %[[R:.*]] = ds.cast
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[R]]
// CHECK-NEXT: ds.yield %[[R]], %[[P]]
func.func @rounded_norm_with_readers(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x2x32xbf16> {ds.dims = [1, 2, 32]},
                        %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xf32>, tensor<?x4xbf16>) attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to bf16 : (tensor<?x4xf32>) -> tensor<?x4xbf16>
  %2 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64, interleave = 2 : i64, wide} : (tensor<?x4xbf16>, tensor<1x2x32xbf16>) -> tensor<?x8xf32>
  return %2, %1 : tensor<?x8xf32>, tensor<?x4xbf16>
}

// -----

// What the epilogue reads after it is rounded is a launch of its own, as it reads memory.
// CHECK-LABEL: func.func @rounded_norm_read_behind
// CHECK-NEXT: ds.rms_norm
// CHECK-NEXT: %[[R:.*]] = ds.cast
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: ds.linear %[[R]]
// CHECK-NEXT: ds.cast %[[R]] to f32
// CHECK-NEXT: ds.binary add
func.func @rounded_norm_read_behind(%x: tensor<?x8xf32> {ds.dims = ["n", 8]}, %w: tensor<1x4x32xbf16> {ds.dims = [1, 4, 32]},
                        %s: tensor<8xf32> {ds.dims = [8]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': what follows the product reads it, too}}
  %1 = ds.cast %0 to bf16 : (tensor<?x8xf32>) -> tensor<?x8xbf16>
  %2 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64, interleave = 2 : i64, wide} : (tensor<?x8xbf16>, tensor<1x4x32xbf16>) -> tensor<?x8xf32>
  %3 = ds.cast %1 to f32 : (tensor<?x8xbf16>) -> tensor<?x8xf32>
  %4 = ds.binary add %2, %3 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// Rows that are rounded to f16 are multiplied as f32 again: both casts are in the kernel.
// CHECK-LABEL: func.func @norm_rounded_to_half
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: %[[R:.*]] = ds.cast %[[N]] to f16
// CHECK-NEXT: %[[B:.*]] = ds.cast %[[R]] to f32
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[B]], %arg1
// CHECK-NEXT: ds.yield %[[P]]
func.func @norm_rounded_to_half(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf16> {ds.dims = [1, 4, 16]},
                                %s: tensor<4xf32> {ds.dims = [4]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to f16 : (tensor<?x4xf32>) -> tensor<?x4xf16>
  %2 = ds.cast %1 to f32 : (tensor<?x4xf16>) -> tensor<?x4xf32>
  %3 = ds.linear %2, %w {panel = 16 : i64, columns = 8 : i64, wide} : (tensor<?x4xf32>, tensor<1x4x16xf16>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// What lies between the two is needed in memory here, where the kernel reads it.
// CHECK-LABEL: func.func @norm_read_as_half
// CHECK-NEXT: ds.rms_norm
// CHECK-NEXT: ds.cast
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: ds.cast
// CHECK-NEXT: ds.linear
func.func @norm_read_as_half(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf16> {ds.dims = [1, 4, 16]},
                             %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xf32>, tensor<?x4xf16>) attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to f16 : (tensor<?x4xf32>) -> tensor<?x4xf16>
  %2 = ds.cast %1 to f32 : (tensor<?x4xf16>) -> tensor<?x4xf32>
  %3 = ds.linear %2, %w {panel = 16 : i64, columns = 8 : i64, wide} : (tensor<?x4xf32>, tensor<1x4x16xf16>) -> tensor<?x8xf32>
  return %3, %1 : tensor<?x8xf32>, tensor<?x4xf16>
}

// -----

// Norms of narrow and of wide floats join products of their type.
// CHECK-LABEL: func.func @norms_of_other_floats
// CHECK: ds.fused {
// CHECK-NEXT: ds.rms_norm
// CHECK-NEXT: ds.linear
// CHECK: ds.fused {
// CHECK-NEXT: ds.layer_norm
// CHECK-NEXT: ds.linear
func.func @norms_of_other_floats(%x: tensor<?x4xf16> {ds.dims = ["n", 4]}, %y: tensor<?x4xf64> {ds.dims = ["n", 4]},
                                 %w: tensor<1x4x16xf16> {ds.dims = [1, 4, 16]}, %v: tensor<1x4x16xf64> {ds.dims = [1, 4, 16]},
                                 %s: tensor<4xf16> {ds.dims = [4]}, %t: tensor<4xf64> {ds.dims = [4]})
    -> (tensor<?x8xf16>, tensor<?x8xf64>) attributes {ds.entry} {
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf16>, tensor<4xf16>) -> tensor<?x4xf16>
  %1 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf16>, tensor<1x4x16xf16>) -> tensor<?x8xf16>
  %2 = ds.layer_norm %y, %t, %t axis 1 epsilon 1.0e-5 : (tensor<?x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %3 = ds.linear %2, %v {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf64>, tensor<1x4x16xf64>) -> tensor<?x8xf64>
  return %1, %3 : tensor<?x8xf16>, tensor<?x8xf64>
}
