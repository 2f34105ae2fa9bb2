// Rows that slices show of residuals, and insertions of what products give.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-numerics -o /dev/null 2>/dev/null
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// What slices show of the residual is read by the epilogue where it lies, though two of its ops read it.
// CHECK-LABEL: func.func @shown_rows
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: ds.linear %arg0, %arg1
// CHECK: ds.slice %arg2 starts ["n", 0, 4]
// CHECK-NEXT: ds.reshape
// CHECK: ds.binary add
// CHECK: ds.slice %arg2 starts ["n", 0, 4]
// CHECK: ds.binary max
// CHECK: ds.yield
// CHECK: return %[[Y]]
func.func @shown_rows(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                      %r: tensor<?x?x32xf32> {ds.dims = ["n+1", "n", 32]}) -> tensor<?x20xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %1 = ds.slice %r starts ["n", 0, 4] sizes [1, "n", 20] steps [1, 1, 1] : (tensor<?x?x32xf32>) -> tensor<1x?x20xf32>
  %2 = ds.reshape %1 ["n", 20] : (tensor<1x?x20xf32>) -> tensor<?x20xf32>
  %3 = ds.binary add %0, %2 : (tensor<?x20xf32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  %4 = ds.binary max %3, %2 : (tensor<?x20xf32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  return %4 : tensor<?x20xf32>
}

// -----

// Not where rows are in parts, at unequal distances, or read every second element; nor what a product reads as well.
// CHECK-LABEL: func.func @other_rows
// CHECK: %[[A:.*]] = ds.slice %arg2 starts [0, 0, 0]
// CHECK: %[[B:.*]] = ds.slice %arg2 starts [0, 0, 1] sizes [2, 3, 20] steps [1, 1, 2]
// CHECK: %[[C:.*]] = ds.slice %arg3
// CHECK: ds.fused
// CHECK-NOT: ds.slice
// CHECK: ds.binary add %{{.*}}, %[[A]]
// CHECK: ds.binary add %{{.*}}, %[[B]]
// CHECK: ds.binary add %{{.*}}, %[[C]]
func.func @other_rows(%x: tensor<2x3x20xf32> {ds.dims = [2, 3, 20]}, %w: tensor<20x20xf32> {ds.dims = [20, 20]},
                      %r: tensor<2x4x50xf32> {ds.dims = [2, 4, 50]}, %s: tensor<2x3x40xf32> {ds.dims = [2, 3, 40]})
    -> (tensor<2x3x20xf32>, tensor<2x3x20xf32>) attributes {ds.entry} {
  %0 = ds.slice %r starts [0, 0, 0] sizes [2, 3, 20] steps [1, 1, 1] : (tensor<2x4x50xf32>) -> tensor<2x3x20xf32>
  %1 = ds.slice %r starts [0, 0, 1] sizes [2, 3, 20] steps [1, 1, 2] : (tensor<2x4x50xf32>) -> tensor<2x3x20xf32>
  %2 = ds.slice %s starts [0, 0, 20] sizes [2, 3, 20] steps [1, 1, 1] : (tensor<2x3x40xf32>) -> tensor<2x3x20xf32>
  %3 = ds.linear %x, %w : (tensor<2x3x20xf32>, tensor<20x20xf32>) -> tensor<2x3x20xf32>
  %4 = ds.binary add %3, %0 : (tensor<2x3x20xf32>, tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
  %5 = ds.binary add %4, %1 : (tensor<2x3x20xf32>, tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
  %6 = ds.binary add %5, %2 : (tensor<2x3x20xf32>, tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
  %7 = ds.linear %2, %w : (tensor<2x3x20xf32>, tensor<20x20xf32>) -> tensor<2x3x20xf32>
  return %6, %7 : tensor<2x3x20xf32>, tensor<2x3x20xf32>
}

// -----

// What is put into a part of a tensor is stored there, and by itself where something else reads it.
// CHECK-LABEL: func.func @inserted
// CHECK-NEXT: %[[Y:.*]]:2 = ds.fused {
// CHECK-NEXT: ds.linear
// CHECK-NEXT: %[[T:.*]] = ds.unary tanh
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]] [1, "n", 20]
// CHECK-NEXT: %[[I:.*]] = ds.insert %[[R]] into %arg2 starts [2, 0, 0]
// CHECK-NEXT: ds.yield %[[T]], %[[I]]
// CHECK: return %[[Y]]#0, %[[Y]]#1
func.func @inserted(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                    %y: tensor<3x?x20xf32> {ds.dims = [3, "n", 20]}) -> (tensor<?x20xf32>, tensor<3x?x20xf32>)
    attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %1 = ds.unary tanh %0 : (tensor<?x20xf32>) -> tensor<?x20xf32>
  %2 = ds.reshape %1 [1, "n", 20] : (tensor<?x20xf32>) -> tensor<1x?x20xf32>
  %3 = ds.insert %2 into %y starts [2, 0, 0] : (tensor<1x?x20xf32>, tensor<3x?x20xf32>) -> tensor<3x?x20xf32>
  return %1, %3 : tensor<?x20xf32>, tensor<3x?x20xf32>
}

// -----

// Not where something else reads what is inserted, as it is there, nor where rows would be in parts.
// CHECK-LABEL: func.func @not_inserted
// CHECK-NOT: ds.fused
// CHECK: ds.insert
// CHECK: ds.insert
func.func @not_inserted(%x: tensor<2x5xf32> {ds.dims = [2, 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                        %y: tensor<3x2x20xf32> {ds.dims = [3, 2, 20]}, %z: tensor<2x4x8xf32> {ds.dims = [2, 4, 8]})
    -> (tensor<1x2x20xf32>, tensor<3x2x20xf32>, tensor<2x4x8xf32>) attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<2x5xf32>, tensor<5x20xf32>) -> tensor<2x20xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': it is not elementwise}}
  %1 = ds.reshape %0 [1, 2, 20] : (tensor<2x20xf32>) -> tensor<1x2x20xf32>
  %2 = ds.insert %1 into %y starts [2, 0, 0] : (tensor<1x2x20xf32>, tensor<3x2x20xf32>) -> tensor<3x2x20xf32>
  %3 = ds.reshape %0 [2, 4, 5] : (tensor<2x20xf32>) -> tensor<2x4x5xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': rows would be stored in parts}}
  %4 = ds.insert %3 into %z starts [0, 0, 3] : (tensor<2x4x5xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %1, %2, %4 : tensor<1x2x20xf32>, tensor<3x2x20xf32>, tensor<2x4x8xf32>
}

// -----

// A state that a step of the product reads is not stored over by the same kernel: it would be copied as a whole.
// CHECK-LABEL: func.func @reads_into
// CHECK-NEXT: %[[R:.*]] = ds.reshape %arg0
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[R]], %arg1
// CHECK-NEXT: ds.insert %[[P]] into %arg0
func.func @reads_into(%y: tensor<3x20xf32> {ds.dims = [3, 20]}, %w: tensor<60x20xf32> {ds.dims = [60, 20]})
    -> tensor<3x20xf32> attributes {ds.entry} {
  %0 = ds.reshape %y [1, 60] : (tensor<3x20xf32>) -> tensor<1x60xf32>
  %1 = ds.linear %0, %w : (tensor<1x60xf32>, tensor<60x20xf32>) -> tensor<1x20xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': the region makes or reads what it changes}}
  %2 = ds.insert %1 into %y starts [1, 0] : (tensor<1x20xf32>, tensor<3x20xf32>) -> tensor<3x20xf32>
  return %2 : tensor<3x20xf32>
}
