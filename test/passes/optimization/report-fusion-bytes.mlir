// Kernels and bytes before and after fusion, where sizes are known and where they are not.
// RUN: ds-opt %s --report --stop-after=optimization 2>&1 | FileCheck %s
// RUN: sed -e 's/tensor<4x8xf32>/tensor<?x8xf32>/g; s/\[4, 8\]/["n", 8]/' %s | ds-opt - --report --stop-after=optimization 2>&1 | FileCheck %s --check-prefix=SYMBOLS
// RUN: ds-opt %s --report --stop-after=optimization --fusion=none 2>&1 | FileCheck %s --check-prefix=NONE
// SYMBOLS: bytes moved before fusion: 9472 at n=32: 288*n + 256
// SYMBOLS-NEXT: bytes moved after fusion: 4352 at n=32: 128*n + 256
// NONE: report-fusion: 4 kernels before fusion
// NONE-NEXT: bytes moved before fusion: 1408
// NONE-NOT: after fusion

// By hand: x is 4 x 8 floats, 128 bytes, w 256. Before: product 128 + 256 + 128, tanh 256, add 384, softmax 256. After:
// a product that tanh and the sum follow, 128 + 256 + 128, and its other operand, x, is read already; softmax 256.
// CHECK: report-fusion: 4 kernels before fusion, 2 kernels after fusion, 1 regions, 1 boundaries
// CHECK-NEXT: bytes moved before fusion: 1408
// CHECK-NEXT: bytes moved after fusion: 768
// CHECK-NEXT: 1 boundary, 'ds.binary' in the kernel of 'ds.matmul' to 'ds.softmax': reduction along another axis: 'ds.softmax' takes whole lines, of which a tile of 'ds.matmul' has a part
func.func @main(%x: tensor<4x8xf32> {ds.name = "x", ds.dims = [4, 8]}, %w: tensor<8x8xf32> {ds.name = "w", ds.dims = [8, 8]})
    -> (tensor<4x8xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = ds.unary tanh %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = ds.binary add %1, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = ds.softmax %2 axis 1 log false : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
