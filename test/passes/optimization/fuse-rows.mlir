// RUN: ds-opt %s --split-input-file --ds-fuse-rows --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-rows --verify-numerics -o /dev/null
// RUN: ds-opt %s --split-input-file --ds-fuse-rows --ds-fuse-elementwise --ds-report-fusion 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A residual that is read elsewhere is another result.
// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused attributes {ds.values = ["sum", "y"]} {
// CHECK-NEXT: %[[A:.*]] = ds.binary add %arg0, %arg1
// CHECK-NEXT: %[[N:.*]] = ds.layer_norm %[[A]], %arg2
// CHECK-NEXT: ds.yield %[[A]], %[[N]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @doc(%x: tensor<?x16xf32> {ds.dims = ["n", 16]}, %y: tensor<?x16xf32> {ds.dims = ["n", 16]},
               %s: tensor<16xf32> {ds.dims = [16]}) -> (tensor<?x16xf32>, tensor<?x16xf32>) attributes {ds.entry} {
  %1 = ds.binary add %x, %y {ds.values = ["sum"]} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %2 = ds.layer_norm %1, %s axis 1 epsilon 1.0e-5 {ds.values = ["y"]} : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  return %1, %2 : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// A whole chain, in which one bias, one row and one column are repeated; what the chain's middle is read for stays out.
// CHECK-LABEL: func.func @chain
// CHECK: %[[OUT:.*]] = ds.unary exp %arg0
// CHECK: ds.fused {
// CHECK-NEXT: ds.binary mul %[[OUT]], %arg1
// CHECK-NEXT: ds.binary add
// CHECK-NEXT: ds.softmax
// CHECK: return %{{.*}}, %[[OUT]]
func.func @chain(%x: tensor<2x?x16xf32> {ds.dims = [2, "n", 16]}, %c: tensor<?x1xf32> {ds.dims = ["n", 1]},
                 %r: tensor<16xf32> {ds.dims = [16]}) -> (tensor<2x?x16xf32>, tensor<2x?x16xf32>) attributes {ds.entry} {
  %1 = ds.unary exp %x : (tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %2 = ds.binary mul %1, %c : (tensor<2x?x16xf32>, tensor<?x1xf32>) -> tensor<2x?x16xf32>
  %3 = ds.binary add %2, %r : (tensor<2x?x16xf32>, tensor<16xf32>) -> tensor<2x?x16xf32>
  %4 = ds.softmax %3 axis 2 log false : (tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  return %4, %1 : tensor<2x?x16xf32>, tensor<2x?x16xf32>
}

// -----

// Stay alone: a softmax over another axis, a sum of other sizes, one that makes the scale, too, and what
// a reshape shows.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: ds.fused
func.func @apart(%x: tensor<16x16xf32> {ds.dims = [16, 16]}, %r: tensor<16xf32> {ds.dims = [16]},
                 %z: tensor<16x16xf32> {ds.dims = [16, 16]})
    -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>) attributes {ds.entry} {
  %1 = ds.binary add %x, %r : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
  %2 = ds.softmax %1 axis 0 log false : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %3 = ds.binary add %r, %r : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %4 = ds.broadcast %3 [16, 16] : (tensor<16xf32>) -> tensor<16x16xf32>
  %5 = ds.transpose %4 [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %6 = ds.rms_norm %5, %r axis 1 epsilon 1.0e-5 : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
  %7 = ds.rms_norm %3, %3 axis 0 epsilon 1.0e-5 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %8 = ds.unary exp %z : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %10 = ds.reshape %8 [16, 16] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %11 = ds.softmax %10 axis 1 log false : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2, %6, %7, %11 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>
}

// -----

// Divisors of integers are looked through for zeros first, by all threads: the division stays out, its cast does not.
// CHECK-LABEL: func.func @division
// CHECK: %[[Q:.*]] = ds.binary div
// CHECK: ds.fused {
// CHECK-NEXT: ds.cast %[[Q]]
// CHECK-NEXT: ds.softmax
func.func @division(%i: tensor<16x16xi32> {ds.dims = [16, 16]}) -> tensor<16x16xf32> attributes {ds.entry} {
  %3 = ds.constant dense<3> : tensor<16x16xi32>
  %8 = ds.binary div %i, %3 : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
  %9 = ds.cast %8 to f32 : (tensor<16x16xi32>) -> tensor<16x16xf32>
  %11 = ds.softmax %9 axis 1 log false : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %11 : tensor<16x16xf32>
}

// -----

// What makes the scale, and what makes the bias, stay out however far before the rows they are read, too: a norm reads
// both from memory.
// CHECK-LABEL: func.func @beside
// CHECK-DAG: %[[S:.*]] = ds.binary mul %arg0, %arg0
// CHECK-DAG: %[[B:.*]] = ds.unary exp %arg1
// CHECK: ds.fused {
// CHECK-NEXT: ds.binary sub %[[B]], %arg0
// CHECK-NEXT: ds.binary add %[[S]]
// CHECK-NEXT: ds.layer_norm %{{.*}}, %[[S]], %[[B]]
func.func @beside(%x: tensor<4x32xf32> {ds.dims = [4, 32]}, %y: tensor<4x32xf32> {ds.dims = [4, 32]})
    -> tensor<4x32xf32> attributes {ds.entry} {
  %1 = ds.binary mul %x, %x : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %2 = ds.unary exp %y : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %3 = ds.binary sub %2, %x : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %4 = ds.binary add %1, %3 : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %5 = ds.layer_norm %4, %1, %2 axis 0 epsilon 1.0e-5 : (tensor<4x32xf32>, tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  return %5 : tensor<4x32xf32>
}

// -----

// A loop of its own fills vectors from several short rows.
// CHECK-LABEL: func.func @short
// CHECK-NOT: ds.fused
func.func @short(%x: tensor<?x15xf32> {ds.dims = ["n", 15]}) -> tensor<?x15xf32> attributes {ds.entry} {
  %1 = ds.unary exp %x : (tensor<?x15xf32>) -> tensor<?x15xf32>
  %2 = ds.softmax %1 axis 1 log false : (tensor<?x15xf32>) -> tensor<?x15xf32>
  return %2 : tensor<?x15xf32>
}

// -----

// What changes a norm's rows joins it, one op after the other, up to another type; a mask by row is repeated.
// CHECK-LABEL: func.func @behind
// CHECK-NEXT: %[[R:.*]] = ds.fused
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0, %arg2
// CHECK-NEXT: %[[A:.*]] = ds.binary add %arg1, %[[N]]
// CHECK-NEXT: %[[M:.*]] = ds.binary mul %[[A]], %arg3
// CHECK-NEXT: %[[C:.*]] = ds.cast %[[M]] to bf16
// CHECK-NEXT: ds.yield %[[C]]
// CHECK: return %[[R]]
func.func @behind(%x: tensor<?x16xf32> {ds.dims = ["n", 16]}, %y: tensor<?x16xf32> {ds.dims = ["n", 16]},
                  %s: tensor<16xf32> {ds.dims = [16]}, %c: tensor<?x1xf32> {ds.dims = ["n", 1]}) -> tensor<?x16xbf16> attributes {ds.entry} {
  %1 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %2 = ds.binary add %y, %1 : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %3 = ds.binary mul %2, %c : (tensor<?x16xf32>, tensor<?x1xf32>) -> tensor<?x16xf32>
  %4 = ds.cast %3 to bf16 : (tensor<?x16xf32>) -> tensor<?x16xbf16>
  return %4 : tensor<?x16xbf16>
}

// -----

// A sum that is stored for another reader leaves room behind the norm; one that stands in the norm's result does not.
// CHECK-LABEL: func.func @places
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused
// CHECK-NEXT: %[[A:.*]] = ds.binary add %arg0, %arg1
// CHECK-NEXT: %[[N:.*]] = ds.layer_norm %[[A]], %arg2
// CHECK-NEXT: %[[G:.*]] = ds.gelu erf %[[N]]
// CHECK-NEXT: ds.yield %[[A]], %[[G]]
// CHECK: %[[Q:.*]] = ds.fused
// CHECK-NEXT: ds.binary mul
// CHECK-NEXT: ds.layer_norm
// CHECK-NEXT: ds.yield
// CHECK: %[[H:.*]] = ds.gelu erf %[[Q]]
// CHECK: return %[[R]]#0, %[[R]]#1, %[[H]]
// REMARK: in memory before 'ds.gelu' reads it: the rows that 'ds.layer_norm' reads are computed where its result goes
func.func @places(%x: tensor<?x16xf32> {ds.dims = ["n", 16]}, %y: tensor<?x16xf32> {ds.dims = ["n", 16]},
                  %s: tensor<16xf32> {ds.dims = [16]}) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) attributes {ds.entry} {
  %1 = ds.binary add %x, %y : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %2 = ds.layer_norm %1, %s axis 1 epsilon 1.0e-5 : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %3 = ds.gelu erf %2 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %4 = ds.binary mul %x, %y : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %5 = ds.layer_norm %4, %s axis 1 epsilon 1.0e-5 : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %6 = ds.gelu erf %5 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %1, %3, %6 : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Stay outside: what is read twice, what repeats rows, what reads the sum that the kernel computes before the norm, and
// what follows a softmax or short rows.
// CHECK-LABEL: func.func @not_behind
// CHECK: %[[N:.*]] = ds.layer_norm %arg0
// CHECK-NEXT: ds.binary mul %[[N]], %[[N]]
// CHECK-NEXT: ds.unary exp %[[N]]
// CHECK-NEXT: %[[R:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: ds.binary add %[[R]], %arg2
// CHECK-NEXT: %[[F:.*]]:2 = ds.fused
// CHECK: ds.yield
// CHECK: ds.binary add %[[F]]#1, %[[F]]#0
// CHECK-NEXT: %[[P:.*]] = ds.softmax
// CHECK-NEXT: ds.unary exp %[[P]]
// CHECK-NEXT: %[[S:.*]] = ds.rms_norm %arg3
// CHECK-NEXT: ds.unary exp %[[S]]
// REMARK: in memory before 'ds.binary' reads it: read by 2 regions
// REMARK: in memory before 'ds.binary' reads it: sizes differ: {{.4, 16. and .3, 4, 16.}}
// REMARK: in memory before 'ds.unary' reads it: nothing follows 'ds.softmax' in its kernel
// REMARK: in memory before 'ds.unary' reads it: rows are shorter than 16
func.func @not_behind(%x: tensor<4x16xf32> {ds.dims = [4, 16]}, %s: tensor<16xf32> {ds.dims = [16]},
                      %z: tensor<3x4x16xf32> {ds.dims = [3, 4, 16]}, %t: tensor<4x8xf32> {ds.dims = [4, 8]},
                      %u: tensor<8xf32> {ds.dims = [8]})
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<3x4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x8xf32>) attributes {ds.entry} {
  %1 = ds.layer_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = ds.binary mul %1, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = ds.unary exp %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %4 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %5 = ds.binary add %4, %z : (tensor<4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  %6 = ds.binary add %x, %s : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %7 = ds.rms_norm %6, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %8 = ds.binary add %7, %6 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %9 = ds.softmax %x axis 1 log false : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %10 = ds.unary exp %9 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %11 = ds.rms_norm %t, %u axis 1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %12 = ds.unary exp %11 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %3, %5, %8, %10, %12 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<3x4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x8xf32>
}

// -----

// What a norm is followed by stays in the loop of the elementwise ops around it: of one that computes what it reads else,
// and of two that read its result. One reader is no loss.
// CHECK-LABEL: func.func @shared_loops
// CHECK: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: ds.fused
// CHECK-NEXT: %[[Z:.*]] = ds.unary tanh %arg1
// CHECK-NEXT: ds.binary add %[[N]], %[[Z]]
// CHECK-NEXT: ds.softmax
// CHECK-NEXT: ds.yield
// CHECK: %[[L:.*]] = ds.layer_norm %arg0
// CHECK-NEXT: %[[A:.*]] = ds.unary abs %[[L]]
// CHECK-NEXT: ds.unary exp %[[A]]
// CHECK-NEXT: ds.unary sin %[[A]]
// CHECK-NEXT: ds.fused
// CHECK-NEXT: ds.layer_norm
// CHECK-NEXT: ds.unary neg
// CHECK-NEXT: ds.unary cos
// CHECK-NEXT: ds.yield
// REMARK: in memory before 'ds.unary' reads it: it shares a loop with 2 other ops
func.func @shared_loops(%x: tensor<4x16xf32> {ds.dims = [4, 16]}, %y: tensor<4x16xf32> {ds.dims = [4, 16]}, %s: tensor<16xf32> {ds.dims = [16]})
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) attributes {ds.entry} {
  %1 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = ds.unary tanh %y : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = ds.binary add %1, %2 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %4 = ds.softmax %3 axis 1 log false : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %5 = ds.layer_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %6 = ds.unary abs %5 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %7 = ds.unary exp %6 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %8 = ds.unary sin %6 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %9 = ds.layer_norm %y, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %10 = ds.unary neg %9 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %11 = ds.unary cos %10 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %4, %7, %8, %11 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// So does what is stored in a larger tensor, too: one loop stores it in both places.
// CHECK-LABEL: func.func @inserted
// CHECK: %[[N:.*]] = ds.layer_norm %arg0
// CHECK-NEXT: %[[A:.*]] = ds.unary abs %[[N]]
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[A]]
// CHECK-NEXT: ds.insert %[[R]] into %arg2
func.func @inserted(%x: tensor<4x16xf32> {ds.dims = [4, 16]}, %s: tensor<16xf32> {ds.dims = [16]}, %all: tensor<3x4x16xf32> {ds.dims = [3, 4, 16]})
    -> (tensor<4x16xf32>, tensor<3x4x16xf32>) attributes {ds.entry} {
  %1 = ds.layer_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = ds.unary abs %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = ds.reshape %2 [1, 4, 16] : (tensor<4x16xf32>) -> tensor<1x4x16xf32>
  %4 = ds.insert %3 into %all starts [1, 0, 0] : (tensor<1x4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %2, %4 : tensor<4x16xf32>, tensor<3x4x16xf32>
}
