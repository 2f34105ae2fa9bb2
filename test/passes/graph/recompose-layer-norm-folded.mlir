// The folded form of a layer norm, x i + (bias - mean i), whose bias may stand on either side of a mean that is negated.
// RUN: ds-opt %s --ds-recompose-layer-norm | FileCheck %s
// RUN: ds-opt %s --ds-recompose-layer-norm --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @bias_first
// CHECK: %[[B:.*]] = ds.constant dense<[8.000000e+00
// CHECK: %[[Y:.*]] = ds.layer_norm %arg0, %{{.*}}, %[[B]] axis 1
// CHECK: return %[[Y]]
func.func @bias_first(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %g1 = ds.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %b = ds.constant dense<[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]> : tensor<8xf32>
  %i = ds.binary div %g1, %r : (tensor<8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %xi = ds.binary mul %x, %i : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = ds.unary neg %m : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %mi = ds.binary mul %o, %i : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %off = ds.binary add %b, %mi : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %xi, %off : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @mean_first
// CHECK: %[[B:.*]] = ds.constant dense<[8.000000e+00
// CHECK: %[[Y:.*]] = ds.layer_norm %arg0, %{{.*}}, %[[B]] axis 1
// CHECK: return %[[Y]]
func.func @mean_first(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = ds.constant dense<1.0e-5> : tensor<f32>
  %m = ds.reduce mean %x axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %d = ds.binary sub %x, %m : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = ds.binary mul %d, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = ds.reduce mean %s axes [1] keep true : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %ve = ds.binary add %v, %e : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = ds.unary sqrt %ve : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %g1 = ds.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %b = ds.constant dense<[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]> : tensor<8xf32>
  %i = ds.binary div %g1, %r : (tensor<8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %xi = ds.binary mul %x, %i : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = ds.unary neg %m : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %mi = ds.binary mul %o, %i : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %off = ds.binary add %mi, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %xi, %off : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
