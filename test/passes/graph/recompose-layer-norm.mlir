// RUN: ds-opt %s --split-input-file --ds-recompose-layer-norm --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-layer-norm --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[G:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = ds.layer_norm %[[X]], %[[G]], %[[B]] axis 1 epsilon 9.9999997473787516E-6 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @doc(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<9.99999974E-6> : tensor<f32>
  %two = ds.constant dense<2.0> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary pow %d, %two : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %n = ds.binary div %d, %r : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %ng = ds.binary mul %n, %g : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %ng, %b {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// The square as a product, the quotient as a product with a reciprocal, every commutative op turned around; two axes.
// CHECK-LABEL: func.func @other_spellings
// CHECK: ds.layer_norm %arg0, %arg1, %arg2 axis 1
// CHECK-NOT: ds.binary
func.func @other_spellings(%x: tensor<2x4x8xf32>, %g: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<2x4x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<1xf32>
  %m = ds.reduce mean %x axes [1, 2] keep true : (tensor<2x4x8xf32>) -> tensor<2x1x1xf32>
  %d = ds.binary sub %x, %m : (tensor<2x4x8xf32>, tensor<2x1x1xf32>) -> tensor<2x4x8xf32>
  %s = ds.binary mul %d, %d : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %v = ds.reduce mean %s axes [1, 2] keep true : (tensor<2x4x8xf32>) -> tensor<2x1x1xf32>
  %ve = ds.binary add %e, %v : (tensor<1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %r = ds.unary sqrt %ve : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %i = ds.unary reciprocal %r : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %n = ds.binary mul %i, %d : (tensor<2x1x1xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %ng = ds.binary mul %g, %n : (tensor<4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %y = ds.binary add %b, %ng : (tensor<4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Without scale and bias the scale is one; a scale of another shape stays an op of its own.
// CHECK-LABEL: func.func @without_affine
// CHECK: %[[ONE:.*]] = ds.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: %[[N:.*]] = ds.layer_norm %arg0, %[[ONE]] axis 1
// CHECK: ds.binary mul %[[N]], %arg1
func.func @without_affine(%x: tensor<4x8xf32>, %rows: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = ds.binary sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %s = ds.binary mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = ds.binary div %d, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = ds.binary mul %n, %rows : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @not_the_last_axes
// CHECK-NOT: ds.layer_norm
func.func @not_the_last_axes(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [0] keep true : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %d = ds.binary sub %x, %m : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %s = ds.binary mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [0] keep true : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %ve = ds.binary add %v, %e : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %r = ds.unary sqrt %ve : (tensor<1x8xf32>) -> tensor<1x8xf32>
  // expected-remark @+1 {{layer norm not recomposed: the axes are not the last ones}}
  %n = ds.binary div %d, %r : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @epsilon_of_run_time
// CHECK-NOT: ds.layer_norm
func.func @epsilon_of_run_time(%x: tensor<4x8xf32>, %e: tensor<f32>) -> tensor<4x8xf32> {
  %m = ds.reduce mean %x axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = ds.binary sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %s = ds.binary mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // expected-remark @+1 {{layer norm not recomposed: epsilon is not a constant}}
  %n = ds.binary div %d, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @variance_of_another_value
// CHECK-NOT: ds.layer_norm
func.func @variance_of_another_value(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = ds.binary sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // expected-remark @+1 {{layer norm not recomposed: the variance is not that of the centred value}}
  %n = ds.binary div %d, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// A root-mean-square norm centres nothing: no norm of this kind, and no near miss.
// CHECK-LABEL: func.func @not_an_rms_norm
// CHECK-NOT: ds.layer_norm
func.func @not_an_rms_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = ds.binary div %x, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// As TensorFlow normalizes, and so tf2onnx and keras2onnx write it: scale and mean folded before x is touched.
// CHECK-LABEL: func.func @folded
// CHECK-NEXT: %[[Y:.*]] = ds.layer_norm %arg0, %arg1, %arg2 axis 1 epsilon 9.9{{[0-9]*}}E-7 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @folded(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %ig = ds.binary mul %i, %g : (tensor<?x1xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %xi = ds.binary mul %x, %ig : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %mi = ds.binary mul %m, %ig : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = ds.binary sub %b, %mi : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %xi, %o {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func.func @folded_with_mean_square
// CHECK-NOT: ds.layer_norm
func.func @folded_with_mean_square(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %ig = ds.binary mul %i, %g : (tensor<?x1xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %xi = ds.binary mul %x, %ig : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %mi = ds.binary mul %m, %ig : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = ds.binary sub %b, %mi : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{layer norm not recomposed: the variance is not that of the centred value}}
  %y = ds.binary add %xi, %o {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func.func @folded_with_wide_scale
// CHECK-NOT: ds.layer_norm
func.func @folded_with_wide_scale(%x: tensor<?x8xf32>, %g: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %ig = ds.binary mul %i, %g : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %xi = ds.binary mul %x, %ig : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %mi = ds.binary mul %m, %ig : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = ds.binary sub %b, %mi : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-remark @+1 {{layer norm not recomposed: scale and bias do not have the shape of the normalized axes}}
  %y = ds.binary add %xi, %o {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// As Keras 3 normalizes, through tf2onnx: parameters behind axes of size 1, the mean negated, the bias joined to it.
// CHECK-LABEL: func.func @folded_negated
// CHECK-DAG: %[[G:.*]] = ds.reshape %arg1 [8] : (tensor<1x1x8xf32>) -> tensor<8xf32>
// CHECK-DAG: %[[B:.*]] = ds.constant dense<5.000000e-01> : tensor<8xf32>
// CHECK: %[[Y:.*]] = ds.layer_norm %arg0, %[[G]], %[[B]] axis 2 epsilon 9.9{{[0-9]*}}E-7 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @folded_negated(%x: tensor<?x3x8xf32>, %g: tensor<1x1x8xf32>) -> tensor<?x3x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %b = ds.constant dense<0.5> : tensor<1x1x8xf32>
  %m = ds.reduce mean %x axes [2] keep true : (tensor<?x3x8xf32>) -> tensor<?x3x1xf32>
  %n = ds.unary neg %m : (tensor<?x3x1xf32>) -> tensor<?x3x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x3x8xf32>, tensor<?x3x1xf32>) -> tensor<?x3x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
  %v = ds.reduce mean %s axes [2] keep true : (tensor<?x3x8xf32>) -> tensor<?x3x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x3x1xf32>, tensor<f32>) -> tensor<?x3x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x3x1xf32>) -> tensor<?x3x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x3x1xf32>) -> tensor<?x3x1xf32>
  %ig = ds.binary mul %i, %g : (tensor<?x3x1xf32>, tensor<1x1x8xf32>) -> tensor<?x3x8xf32>
  %xi = ds.binary mul %x, %ig : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
  %mi = ds.binary mul %n, %ig : (tensor<?x3x1xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
  %o = ds.binary add %mi, %b : (tensor<?x3x8xf32>, tensor<1x1x8xf32>) -> tensor<?x3x8xf32>
  %y = ds.binary add %xi, %o {ds.values = ["y"]} : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
  return %y : tensor<?x3x8xf32>
}

// -----

// Keras without scale and centre.
// CHECK-LABEL: func.func @folded_plain
// CHECK: %[[ONES:.*]] = ds.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: ds.layer_norm %arg0, %[[ONES]] axis 1
func.func @folded_plain(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %n = ds.unary neg %m : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %xi = ds.binary mul %x, %i : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %mi = ds.binary mul %n, %i : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %y = ds.binary add %xi, %mi : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
