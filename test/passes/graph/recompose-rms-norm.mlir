// RUN: ds-opt %s --split-input-file --ds-recompose-rms-norm --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-rms-norm --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.rms_norm %arg0, %arg1 axis 1 epsilon 9.9{{[0-9]*}}E-7 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @doc(%x: tensor<?x8xf32>, %g: tensor<8xf32>) -> tensor<?x8xf32> {
  %two = ds.constant dense<2.0> : tensor<f32>
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %s = ds.binary pow %x, %two : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %n = ds.binary div %x, %r : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %y = ds.binary mul %g, %n {ds.values = ["y"]} : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// As PyTorch's exporters write it: x * (1 / sqrt(...)); then with a reciprocal and as a power; two axes, no scale.
// CHECK-LABEL: func.func @other_spellings
// CHECK: ds.rms_norm %arg0, %arg1 axis 1
// CHECK: %[[ONE:.*]] = ds.constant dense<1.000000e+00> : tensor<4x8xf32>
// CHECK: ds.rms_norm %arg0, %[[ONE]] axis 1
// CHECK: ds.rms_norm %arg0, %{{.*}} axis 2
// CHECK-NOT: ds.binary
func.func @other_spellings(%x: tensor<2x4x8xf32>, %g: tensor<4x8xf32>)
    -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  %one = ds.constant dense<1.0> : tensor<f32>
  %minus = ds.constant dense<-0.5> : tensor<f32>
  %e = ds.constant dense<1.0e-5> : tensor<1xf32>
  %s = ds.binary mul %x, %x : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %v = ds.reduce mean %s axes [1, 2] keep true : (tensor<2x4x8xf32>) -> tensor<2x1x1xf32>
  %ve = ds.binary add %e, %v : (tensor<1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %r = ds.unary sqrt %ve : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %i = ds.binary div %one, %r : (tensor<f32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %n = ds.binary mul %x, %i : (tensor<2x4x8xf32>, tensor<2x1x1xf32>) -> tensor<2x4x8xf32>
  %y = ds.binary mul %n, %g : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %c = ds.unary reciprocal %r : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %z = ds.binary mul %c, %x : (tensor<2x1x1xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %w = ds.reduce mean %s axes [2] keep true : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %we = ds.binary add %w, %e : (tensor<2x4x1xf32>, tensor<1xf32>) -> tensor<2x4x1xf32>
  %p = ds.binary pow %we, %minus : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %t = ds.binary mul %x, %p : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  return %y, %z, %t : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

// -----

// Llama in f16: widened before, narrowed after, the scale on the narrow value.
// CHECK-LABEL: func.func @widened
// CHECK-NEXT: ds.rms_norm %arg0, %arg1 axis 1 {{.*}} : (tensor<4x8xf16>, tensor<8xf16>) -> tensor<4x8xf16>
// CHECK-NEXT: return
func.func @widened(%x: tensor<4x8xf16>, %g: tensor<8xf16>) -> tensor<4x8xf16> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %w = ds.cast %x to f32 : (tensor<4x8xf16>) -> tensor<4x8xf32>
  %s = ds.binary mul %w, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = ds.binary div %w, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %h = ds.cast %n to f16 : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %y = ds.binary mul %h, %g : (tensor<4x8xf16>, tensor<8xf16>) -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}

// -----

// Gemma in f16: the scale on the wide value; the casts stay.
// CHECK-LABEL: func.func @scaled_wide
// CHECK: ds.cast %arg0 to f32
// CHECK-NEXT: ds.rms_norm %{{.*}}, %arg1 axis 1 {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: ds.cast
func.func @scaled_wide(%x: tensor<4x8xf16>, %g: tensor<8xf32>) -> tensor<4x8xf16> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %w = ds.cast %x to f32 : (tensor<4x8xf16>) -> tensor<4x8xf32>
  %s = ds.binary mul %w, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = ds.binary div %w, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %h = ds.binary mul %n, %g : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %y = ds.cast %h to f16 : (tensor<4x8xf32>) -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}

// -----

// CHECK-LABEL: func.func @of_another_value
// CHECK-NOT: ds.rms_norm
func.func @of_another_value(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // expected-remark @+1 {{rms norm not recomposed: the mean square is not that of the value that is divided}}
  %n = ds.binary div %z, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @not_the_last_axes
// CHECK-NOT: ds.rms_norm
func.func @not_the_last_axes(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [0] keep true : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %ve = ds.binary add %v, %e : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %r = ds.unary sqrt %ve : (tensor<1x8xf32>) -> tensor<1x8xf32>
  // expected-remark @+1 {{rms norm not recomposed: the axes are not the last ones}}
  %n = ds.binary div %x, %r : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @epsilon_of_run_time
// CHECK-NOT: ds.rms_norm
func.func @epsilon_of_run_time(%x: tensor<4x8xf32>, %e: tensor<f32>) -> tensor<4x8xf32> {
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // expected-remark @+1 {{rms norm not recomposed: epsilon is not a constant}}
  %n = ds.binary div %x, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// The sum of squares instead of their mean: a unit vector, no near miss.
// CHECK-LABEL: func.func @unit_vector
// CHECK-NOT: ds.rms_norm
func.func @unit_vector(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ds.reduce sum %s axes [1] keep true : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %ve = ds.binary add %v, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = ds.unary sqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %n = ds.binary div %x, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// As Keras writes it, through tf2onnx: the scale joined to the reciprocal root, behind axes of size 1.
// CHECK-LABEL: func.func @folded
// CHECK: %[[G:.*]] = ds.reshape %arg1 [8] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]] = ds.rms_norm %arg0, %[[G]] axis 1 epsilon 9.9{{[0-9]*}}E-7 {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @folded(%x: tensor<?x8xf32>, %g: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %ig = ds.binary mul %i, %g : (tensor<?x1xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %y = ds.binary mul %x, %ig {ds.values = ["y"]} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// The root of one value folded into the scale of another one.
// CHECK-LABEL: func.func @folded_of_another
// CHECK-NOT: ds.rms_norm
func.func @folded_of_another(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>, %g: tensor<8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-6> : tensor<f32>
  %s = ds.binary mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %i = ds.unary reciprocal %r : (tensor<?x1xf32>) -> tensor<?x1xf32>
  // expected-remark @+1 {{rms norm not recomposed: the mean square is not that of the value that is divided}}
  %ig = ds.binary mul %i, %g : (tensor<?x1xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = ds.binary mul %z, %ig : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
