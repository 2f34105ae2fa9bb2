// Projections of one attention whose weights are packed, and of other types, so that merging has left them. Only kernels in
// vectors read such weights: numbers are compared by test/integration/layer_type_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics=only-expected -o /dev/null

// The norm before them is computed once for both.
// CHECK-LABEL: func.func @codes
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg1
// CHECK-NEXT: %[[K:.*]] = ds.linear %[[N]], %arg2
// CHECK-NEXT: %[[V:.*]] = ds.linear %[[N]], %arg4
// CHECK-NEXT: ds.yield %[[K]], %[[V]]
// CHECK-DAG: ds.reshape %[[Y]]#0
// CHECK-DAG: ds.reshape %[[Y]]#1
func.func @codes(%q: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "s", 4]}, %x: tensor<1x?x4xf32> {ds.dims = [1, "t", 4]},
                 %wk: tensor<1x2x16xi8> {ds.dims = [1, 2, 16]}, %s: tensor<1x1x16xf32> {ds.dims = [1, 1, 16]},
                 %wv: tensor<1x4x32xi8> {ds.dims = [1, 4, 32]}, %t: tensor<1x1x32xf32> {ds.dims = [1, 1, 32]},
                 %n: tensor<4xf32> {ds.dims = [4]}) -> tensor<1x2x?x4xf32> attributes {ds.entry} {
  %0 = ds.rms_norm %x, %n axis 2 epsilon 1.0e-5 : (tensor<1x?x4xf32>, tensor<4xf32>) -> tensor<1x?x4xf32>
  %1 = ds.linear %0, %wk scales %s {panel = 16 : i64, columns = 8 : i64, group = 4 : i64, interleave = 2 : i64}
      : (tensor<1x?x4xf32>, tensor<1x2x16xi8>, tensor<1x1x16xf32>) -> tensor<1x?x8xf32>
  %2 = ds.reshape %1 [1, "t", 2, 4] : (tensor<1x?x8xf32>) -> tensor<1x?x2x4xf32>
  %3 = ds.transpose %2 [0, 2, 1, 3] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %4 = ds.linear %0, %wv scales %t {panel = 32 : i64, columns = 8 : i64, group = 4 : i64}
      : (tensor<1x?x4xf32>, tensor<1x4x32xi8>, tensor<1x1x32xf32>) -> tensor<1x?x8xf32>
  %5 = ds.reshape %4 [1, "t", 2, 4] : (tensor<1x?x8xf32>) -> tensor<1x?x2x4xf32>
  %6 = ds.transpose %5 [0, 2, 1, 3] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %7 = ds.attention %q, %3, %6 scale 0.5
      : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %7 : tensor<1x2x?x4xf32>
}

// -----

// What ops may follow keeps a kernel of its own, for an epilogue.
// CHECK-LABEL: func.func @followed
// CHECK-NEXT: ds.linear %arg0, %arg1
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: ds.linear %arg0, %arg2
// CHECK-NEXT: ds.unary exp
func.func @followed(%x: tensor<1x1x?x4xf32> {ds.dims = [1, 1, "t", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                    %b: tensor<1x4x32xf32> {ds.dims = [1, 4, 32]}) -> (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
    attributes {ds.entry} {
  %0 = ds.linear %x, %w {panel = 16 : i64, columns = 4 : i64} : (tensor<1x1x?x4xf32>, tensor<1x4x16xf32>) -> tensor<1x1x?x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': ops that may follow it read it}}
  %1 = ds.linear %x, %b {panel = 32 : i64, columns = 4 : i64} : (tensor<1x1x?x4xf32>, tensor<1x4x32xf32>) -> tensor<1x1x?x4xf32>
  %2 = ds.unary exp %1 : (tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %3 = ds.attention %x, %0, %1 scale 0.5
      : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  return %2, %3 : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----

// Of two attentions, as of all layers that read an encoder's result: not all at once.
// CHECK-LABEL: func.func @attentions
// CHECK-NEXT: ds.linear %arg0, %arg1
// CHECK-NEXT: ds.linear %arg0, %arg2
func.func @attentions(%x: tensor<1x1x?x4xf32> {ds.dims = [1, 1, "t", 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                      %b: tensor<1x4x32xf32> {ds.dims = [1, 4, 32]}) -> tensor<1x1x?x4xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w {panel = 16 : i64, columns = 4 : i64} : (tensor<1x1x?x4xf32>, tensor<1x4x16xf32>) -> tensor<1x1x?x4xf32>
  %1 = ds.linear %x, %b {panel = 32 : i64, columns = 4 : i64} : (tensor<1x1x?x4xf32>, tensor<1x4x32xf32>) -> tensor<1x1x?x4xf32>
  %2 = ds.attention %x, %x, %0 scale 0.5
      : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %3 = ds.attention %2, %x, %1 scale 0.5
      : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  return %3 : tensor<1x1x?x4xf32>
}

// -----

// Keys that are written into a cache, each sequence's at its own place.
// CHECK-LABEL: func.func @places
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: ds.linear %arg0, %arg1
// CHECK-NEXT: ds.linear %arg0, %arg2
// CHECK: ds.scatter_elements assign 2 %arg3, %arg4, %[[Y]]#1
func.func @places(%x: tensor<?x1x1x4xf32> {ds.dims = ["b", 1, 1, 4]}, %w: tensor<1x4x16xf32> {ds.dims = [1, 4, 16]},
                  %b: tensor<1x4x32xf32> {ds.dims = [1, 4, 32]}, %past: tensor<?x1x5x4xf32> {ds.dims = ["b", 1, 5, 4]},
                  %p: tensor<?x1x1x4xi64> {ds.dims = ["b", 1, 1, 4]}) -> tensor<?x1x1x4xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w {panel = 16 : i64, columns = 4 : i64} : (tensor<?x1x1x4xf32>, tensor<1x4x16xf32>) -> tensor<?x1x1x4xf32>
  %1 = ds.linear %x, %b {panel = 32 : i64, columns = 4 : i64} : (tensor<?x1x1x4xf32>, tensor<1x4x32xf32>) -> tensor<?x1x1x4xf32>
  %2 = ds.scatter_elements assign 2 %past, %p, %1
      : (tensor<?x1x5x4xf32>, tensor<?x1x1x4xi64>, tensor<?x1x1x4xf32>) -> tensor<?x1x5x4xf32>
  %3 = ds.attention %0, %2, %2 scale 0.5
      : (tensor<?x1x1x4xf32>, tensor<?x1x5x4xf32>, tensor<?x1x5x4xf32>) -> tensor<?x1x1x4xf32>
  return %3 : tensor<?x1x1x4xf32>
}
