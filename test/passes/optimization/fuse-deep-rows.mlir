// Rows that change or become codes in the kernel of the product that multiplies them: bits are compared by
// test/integration/layer_type_cases.py and dynamic_quantized_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// The epilogue multiplies by the scales that the kernel computes.
// CHECK-LABEL: func.func @bytes
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: %[[Q:.*]], %[[S:.*]] = ds.quantize_rows %arg0
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[Q]], %arg1
// CHECK-NEXT: %[[F:.*]] = ds.cast %[[P]] to f32
// CHECK-NEXT: %[[M:.*]] = ds.binary mul %[[F]], %[[S]]
// CHECK-NEXT: ds.yield %[[M]]
// CHECK: return %[[Y]]
func.func @bytes(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0, %1 = ds.quantize_rows %x : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %3 = ds.cast %2 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %4 = ds.binary mul %3, %1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// So does a norm before them, which is a result where a residual reads it.
// CHECK-LABEL: func.func @norm_in_bytes
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: %[[Q:.*]], %[[S:.*]] = ds.quantize_rows %[[N]]
// CHECK-NEXT: ds.linear %[[Q]], %arg1
// CHECK: ds.yield %[[N]]
// CHECK: return %[[Y]]#1, %[[Y]]#0
func.func @norm_in_bytes(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]},
                         %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xf32>, tensor<?x4xf32>) attributes {ds.entry} {
  %n = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %0, %1 = ds.quantize_rows %n : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %3 = ds.cast %2 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %4 = ds.binary mul %3, %1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %4, %n : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// Two halves of a gate share them.
// CHECK-LABEL: func.func @gate_in_bytes
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[Q:.*]], %[[S:.*]] = ds.quantize_rows %arg0
// CHECK: ds.linear %[[Q]], %arg1
// CHECK: ds.linear %[[Q]], %arg1
// CHECK: ds.yield
func.func @gate_in_bytes(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0, %1 = ds.quantize_rows %x : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %3 = ds.cast %2 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %4 = ds.binary mul %3, %1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %5 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %6 = ds.cast %5 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %7 = ds.binary mul %6, %1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %8 = ds.binary mul %4, %7 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %8 : tensor<?x8xf32>
}

// -----

// Where only the norm cannot join, codes are made in the kernel all the same.
// CHECK-LABEL: func.func @norm_of_two_axes
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: ds.quantize_rows %[[N]]
func.func @norm_of_two_axes(%x: tensor<?x2x4xf32> {ds.dims = ["n", 2, 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]},
                            %s: tensor<2x4xf32> {ds.dims = [2, 4]}) -> tensor<?x2x8xf32> attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.linear': it spans several axes}}
  %n = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x2x4xf32>, tensor<2x4xf32>) -> tensor<?x2x4xf32>
  %0, %1 = ds.quantize_rows %n : (tensor<?x2x4xf32>) -> (tensor<?x2x4xui8>, tensor<?x2x1xf32>)
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x2x4xui8>, tensor<1x1x64xi8>) -> tensor<?x2x8xi32>
  %3 = ds.cast %2 to f32 : (tensor<?x2x8xi32>) -> tensor<?x2x8xf32>
  %4 = ds.binary mul %3, %1 : (tensor<?x2x8xf32>, tensor<?x2x1xf32>) -> tensor<?x2x8xf32>
  return %4 : tensor<?x2x8xf32>
}

// -----

// Codes or scales that something else reads are made once, in memory, and so are those of long rows.
// CHECK-LABEL: func.func @outside
// CHECK: ds.quantize_rows
// CHECK: ds.fused {
// CHECK-NEXT: ds.linear
// CHECK: ds.quantize_rows
// CHECK: ds.fused {
// CHECK-NEXT: ds.linear
// CHECK: ds.quantize_rows
// CHECK: ds.fused {
// CHECK-NEXT: ds.linear
func.func @outside(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %y: tensor<?x16388xf32> {ds.dims = ["n", 16388]},
                   %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]}, %v: tensor<1x4097x64xi8> {ds.dims = [1, 4097, 64]})
    -> (tensor<?x8xf32>, tensor<?x4xui8>, tensor<?x8xf32>, tensor<?x1xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.linear': something else reads it after it is quantized}}
  %0, %1 = ds.quantize_rows %x : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %2 = ds.linear %0, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %3 = ds.cast %2 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %4 = ds.binary mul %3, %1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %z = ds.unary neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': something else reads it after it is quantized}}
  %5, %6 = ds.quantize_rows %z : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %7 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  %8 = ds.cast %7 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': its rows are too long for each thread to hold a block of them}}
  %9, %10 = ds.quantize_rows %y : (tensor<?x16388xf32>) -> (tensor<?x16388xui8>, tensor<?x1xf32>)
  %11 = ds.linear %9, %v {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x16388xui8>, tensor<1x4097x64xi8>) -> tensor<?x8xi32>
  %12 = ds.cast %11 to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  return %4, %0, %8, %6, %12 : tensor<?x8xf32>, tensor<?x4xui8>, tensor<?x8xf32>, tensor<?x1xf32>, tensor<?x8xf32>
}

// -----

// Codes with one scale, which is known before, are elementwise ops: so are sums of several rows and what columns share.
// CHECK-LABEL: func.func @codes_of_one_scale
// CHECK-NEXT: ds.constant
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: ds.binary add %arg0, %arg1
// CHECK-NEXT: ds.binary mul %{{.*}}, %arg2
// CHECK-NEXT: ds.binary div %{{.*}}, %arg3
// CHECK-NEXT: ds.unary round
// CHECK-NEXT: ds.binary min
// CHECK-NEXT: %[[Q:.*]] = ds.cast %{{.*}} to ui8
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[Q]], %arg4
// CHECK-NEXT: ds.yield %[[P]]
// CHECK: return %[[Y]]
func.func @codes_of_one_scale(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %y: tensor<?x4xf32> {ds.dims = ["n", 4]},
                              %c: tensor<4xf32> {ds.dims = [4]}, %s: tensor<f32> {ds.dims = []},
                              %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]}) -> tensor<?x8xi32> attributes {ds.entry} {
  %most = ds.constant dense<255.0> : tensor<f32>
  %0 = ds.binary add %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.binary mul %0, %c : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = ds.binary div %1, %s : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %3 = ds.unary round %2 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %4 = ds.binary min %3, %most : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %5 = ds.cast %4 to ui8 : (tensor<?x4xf32>) -> tensor<?x4xui8>
  %6 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  return %6 : tensor<?x8xi32>
}

// -----

// What something else reads on the way is in memory, what is multiplied is a result; neither is what the epilogue reads.
// CHECK-LABEL: func.func @readers
// CHECK-NEXT: %[[A:.*]] = ds.unary abs %arg0
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.unary neg %[[A]]
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[N]], %arg1
// CHECK-NEXT: ds.yield %[[N]], %[[P]]
// CHECK: %[[M:.*]] = ds.unary neg %arg2
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[M]], %arg3
// CHECK-NEXT: ds.binary add %[[P]], %[[M]]
func.func @readers(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                   %z: tensor<?x8xf32> {ds.dims = ["n", 8]}, %v: tensor<1x8x16xf32> {ds.dims = [1, 8, 16]})
    -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %0 = ds.unary abs %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.unary neg %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': what follows the product reads it, too}}
  %3 = ds.unary neg %z : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = ds.linear %3, %v {panel = 16 : i64, columns = 8 : i64} : (tensor<?x8xf32>, tensor<1x8x16xf32>) -> tensor<?x8xf32>
  %5 = ds.binary add %4, %3 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2, %0, %1, %5 : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>
}

// -----

// A function that takes long is computed once, with what would be in memory for it else.
// CHECK-LABEL: func.func @long_function
// CHECK-NEXT: ds.unary exp
// CHECK-NEXT: ds.unary neg
// CHECK-NEXT: ds.linear
func.func @long_function(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]})
    -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': what it reads would be in memory instead}}
  %1 = ds.unary neg %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// Codes that something else reads are a result, with what makes them in the kernel; floats are not.
// CHECK-LABEL: func.func @shared_codes
// CHECK: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: %[[D:.*]] = ds.binary div %[[N]]
// CHECK-NEXT: %[[C:.*]] = ds.cast %[[D]] to i8
// CHECK-NEXT: %[[W:.*]] = ds.cast %[[C]] to i16
// CHECK-NEXT: %[[U:.*]] = ds.cast %[[W]] to ui8
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[U]], %arg1
// CHECK-NEXT: ds.yield %[[C]], %[[P]]
// CHECK: return %[[Y]]#1, %[[Y]]#0
func.func @shared_codes(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]},
                        %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xi32>, tensor<?x4xi8>) attributes {ds.entry} {
  %c = ds.constant dense<0.5> : tensor<f32>
  %n = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %0 = ds.binary div %n, %c : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to i8 : (tensor<?x4xf32>) -> tensor<?x4xi8>
  %2 = ds.cast %1 to i16 : (tensor<?x4xi8>) -> tensor<?x4xi16>
  %3 = ds.cast %2 to ui8 : (tensor<?x4xi16>) -> tensor<?x4xui8>
  %4 = ds.linear %3, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  return %4, %1 : tensor<?x8xi32>, tensor<?x4xi8>
}

// -----

// CHECK-LABEL: func.func @shared_floats
// CHECK: %[[D:.*]] = ds.binary div
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: ds.cast %[[D]] to ui8
// CHECK: return %[[Y]], %[[D]]
func.func @shared_floats(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<1x1x64xi8> {ds.dims = [1, 1, 64]},
                         %s: tensor<4xf32> {ds.dims = [4]}) -> (tensor<?x8xi32>, tensor<?x4xf32>) attributes {ds.entry} {
  %c = ds.constant dense<0.5> : tensor<f32>
  %n = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %0 = ds.binary div %n, %c : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = ds.cast %0 to ui8 : (tensor<?x4xf32>) -> tensor<?x4xui8>
  %4 = ds.linear %1, %w {panel = 16 : i64, columns = 8 : i64, interleave = 4 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x8xi32>
  return %4, %0 : tensor<?x8xi32>, tensor<?x4xf32>
}
