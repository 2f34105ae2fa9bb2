// RUN: ds-opt %s --split-input-file --ds-recompose-softmax --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-softmax --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.softmax %arg0 axis 1 log false {ds.values = ["y"]} : (tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @doc(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %m = ds.reduce max %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %e = ds.unary exp %d : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = ds.reduce sum %e axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %y = ds.binary div %e, %s {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Without the maximum, with a reciprocal; the additive mask stays an op of its own.
// CHECK-LABEL: func.func @masked
// CHECK-NEXT: %[[X:.*]] = ds.binary add %arg0, %arg1
// CHECK-NEXT: ds.softmax %[[X]] axis 1 log false
// CHECK-NEXT: return
func.func @masked(%x: tensor<4x8xf32>, %mask: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = ds.binary add %x, %mask : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %e = ds.unary exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = ds.reduce sum %e axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %r = ds.unary reciprocal %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = ds.binary mul %r, %e : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @several_axes
// CHECK-NOT: ds.softmax
func.func @several_axes(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.unary exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = ds.reduce sum %e axes [0, 1] keep true : (tensor<4x8xf32>) -> tensor<1x1xf32>
  // expected-remark @+1 {{softmax not recomposed: the sum is over several axes}}
  %y = ds.binary div %e, %s : (tensor<4x8xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @different_axes
// CHECK-NOT: ds.softmax
func.func @different_axes(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = ds.reduce max %x axes [0] keep true : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %d = ds.binary sub %x, %m : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %e = ds.unary exp %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = ds.reduce sum %e axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // expected-remark @+1 {{softmax not recomposed: maximum and sum have different axes}}
  %y = ds.binary div %e, %s : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Numpy aligns sums of lost axes with the last axes, here with the wrong ones.
// CHECK-LABEL: func.func @axis_not_kept
// CHECK-NOT: ds.softmax
func.func @axis_not_kept(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = ds.unary exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = ds.reduce sum %e axes [1] keep false : (tensor<8x8xf32>) -> tensor<8xf32>
  // expected-remark @+1 {{softmax not recomposed: the sum does not keep its axis}}
  %y = ds.binary div %e, %s : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// The quotient of two different exponentials is no softmax.
// CHECK-LABEL: func.func @of_another_value
// CHECK-NOT: ds.softmax
func.func @of_another_value(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.unary exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = ds.unary exp %z : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = ds.reduce sum %f axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %y = ds.binary div %e, %s : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
