// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<?x4xf32>, %g: tensor<4xf32>) {
  // CHECK: ds.reduce mean %{{.*}} axes [1] keep true : (tensor<?x4xf32>) -> tensor<?x1xf32>
  %0 = ds.reduce mean %x axes [1] keep true : (tensor<?x4xf32>) -> tensor<?x1xf32>
  // CHECK: ds.reduce sum_square %{{.*}} axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %1 = ds.reduce sum_square %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  // CHECK: ds.quantize_rows %{{.*}} : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %codes, %scales = ds.quantize_rows %x : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  // CHECK: ds.arg_reduce max %{{.*}} axis 1 keep false last true : (tensor<?x4xf32>) -> tensor<?xi64>
  %2 = ds.arg_reduce max %x axis 1 keep false last true : (tensor<?x4xf32>) -> tensor<?xi64>
  // CHECK: ds.softmax %{{.*}} axis 1 log false
  %3 = ds.softmax %x axis 1 log false : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.layer_norm %{{.*}}, %{{.*}}, %{{.*}} axis 1 epsilon 1.000000e-05
  %4 = ds.layer_norm %x, %g, %g axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.layer_norm %{{.*}}, %{{.*}} axis 1 epsilon 0.000000e+00 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %5 = ds.layer_norm %x, %g axis 1 epsilon 0.0 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.rms_norm %{{.*}}, %{{.*}} axis 1 epsilon 1.000000e-05
  %6 = ds.rms_norm %x, %g axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.cumulative sum %{{.*}} axis 0 exclusive false reverse true
  %7 = ds.cumulative sum %x axis 0 exclusive false reverse true : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.top_k %{{.*}} axis 1 k [3] largest true : (tensor<?x4xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
  %8, %9 = ds.top_k %x axis 1 k [3] largest true : (tensor<?x4xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
  // CHECK: ds.cumulative prod %{{.*}} axis 1 exclusive true reverse false
  %10 = ds.cumulative prod %x axis 1 exclusive true reverse false : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.running_statistic %{{.*}}, %{{.*}} momentum 9.000000e-01 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %used, %moved = ds.running_statistic %g, %g momentum 0.9 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: ds.argsort %{{.*}} : (tensor<?x4xf32>) -> tensor<?xi64>
  %11 = ds.argsort %x : (tensor<?x4xf32>) -> tensor<?xi64>
  return
}

// CHECK-LABEL: func.func @suppress
func.func @suppress(%s: tensor<1x2x?xf32>, %l: tensor<1x2x?xf32>, %h: tensor<1x2x?xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // CHECK: ds.suppress %{{.*}}, %{{.*}}, %{{.*}} most %{{.*}} overlap %{{.*}} : (tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x?xi64>
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x?xi64>
  // CHECK: ds.suppress {{.*}} overlap %[[O:.*]] least %[[O]]
  %1 = ds.suppress %s, %l, %h most %m overlap %o least %o : (tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x2x?xi64>
  return
}
