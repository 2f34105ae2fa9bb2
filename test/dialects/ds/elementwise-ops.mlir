// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<?x4xf32>, %y: tensor<4xf32>, %c: tensor<4xi1>, %i: tensor<4xi64>) {
  // CHECK: ds.unary tanh %{{.*}} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = ds.unary tanh %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.unary is_nan %{{.*}} : (tensor<4xf32>) -> tensor<4xi1>
  %1 = ds.unary is_nan %y : (tensor<4xf32>) -> tensor<4xi1>
  // CHECK: ds.unary bitwise_not
  %2 = ds.unary bitwise_not %i : (tensor<4xi64>) -> tensor<4xi64>
  // CHECK: ds.binary add %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %3 = ds.binary add %x, %y : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.binary lt {{.*}} -> tensor<4xi1>
  %4 = ds.binary lt %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  // CHECK: ds.binary pow {{.*}} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %5 = ds.binary pow %y, %i : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  // CHECK: ds.select %{{.*}} : (tensor<4xi1>, tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %6 = ds.select %c, %x, %y : (tensor<4xi1>, tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.cast %{{.*}} to f32 : (tensor<4xi64>) -> tensor<4xf32>
  %7 = ds.cast %i to f32 : (tensor<4xi64>) -> tensor<4xf32>
  // CHECK: ds.gelu erf %{{.*}} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %8 = ds.gelu erf %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.dropout %{{.*}} ratio 1.000000e-01 stream 7 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %dropped = ds.dropout %x ratio 1.000000e-01 stream 7 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.bitcast %{{.*}} to i32 : (tensor<?x4xf32>) -> tensor<?x4xi32>
  %9 = ds.bitcast %x to i32 : (tensor<?x4xf32>) -> tensor<?x4xi32>
  return
}
