// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @movement
func.func @movement(%x: tensor<?x4xf32>, %v: tensor<f32>, %i: tensor<?x2xi64>, %w: tensor<3x4xf32>,
                    %u: tensor<3x2xi64>, %updates: tensor<3x2xf32>, %rows: tensor<2x1xi64>, %b: tensor<2x2xi1>,
                    %codes: tensor<3x4xi8>, %scales: tensor<3x2xf32>) {
  // CHECK: ds.reshape %{{.*}} ["batch", 2, 2] : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  %0 = ds.reshape %x ["batch", 2, 2] : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  // CHECK: ds.broadcast %{{.*}} ["batch", 4] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = ds.broadcast %x ["batch", 4] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.transpose %{{.*}} [1, 0] : (tensor<?x4xf32>) -> tensor<4x?xf32>
  %2 = ds.transpose %x [1, 0] : (tensor<?x4xf32>) -> tensor<4x?xf32>
  // CHECK: ds.slice %{{.*}} starts [0, 3] sizes ["batch", 4] steps [1, -1]
  %3 = ds.slice %x starts [0, 3] sizes ["batch", 4] steps [1, -1] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.pad constant %{{.*}}, %{{.*}} low [0, 1] high [0, "p"] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x?xf32>
  %4 = ds.pad constant %x, %v low [0, 1] high [0, "p"] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x?xf32>
  // CHECK: ds.concat 0 %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  %5 = ds.concat 0 %x, %w : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  // CHECK: ds.gather 0 %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<?x2xi64>) -> tensor<?x2x4xf32>
  %6 = ds.gather 0 %w, %i : (tensor<3x4xf32>, tensor<?x2xi64>) -> tensor<?x2x4xf32>
  // CHECK: ds.gather 0 %{{.*}}, %{{.*}} scales %{{.*}} : (tensor<3x4xi8>, tensor<?x2xi64>, tensor<3x2xf32>) -> tensor<?x2x4xf32>
  %16 = ds.gather 0 %codes, %i scales %scales : (tensor<3x4xi8>, tensor<?x2xi64>, tensor<3x2xf32>) -> tensor<?x2x4xf32>
  // CHECK: ds.gather_elements 1 %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  %7 = ds.gather_elements 1 %w, %u : (tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  // CHECK: ds.gather_nd 0 %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  %8 = ds.gather_nd 0 %w, %i : (tensor<3x4xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  // CHECK: ds.scatter_elements add 1 %{{.*}} -> tensor<3x4xf32>
  %9 = ds.scatter_elements add 1 %w, %u, %updates : (tensor<3x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<3x4xf32>
  // CHECK: ds.scatter_nd assign %{{.*}} -> tensor<4xf32>
  %10 = ds.slice %w starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %11 = ds.reshape %10 [4] : (tensor<1x4xf32>) -> tensor<4xf32>
  %12 = ds.slice %11 starts [0] sizes [2] steps [1] : (tensor<4xf32>) -> tensor<2xf32>
  %13 = ds.scatter_nd assign %11, %rows, %12 : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32>
  // CHECK: ds.nonzero %{{.*}} count "count_0" : (tensor<2x2xi1>) -> tensor<2x?xi64>
  %14 = ds.nonzero %b count "count_0" : (tensor<2x2xi1>) -> tensor<2x?xi64>
  // CHECK: ds.insert %{{.*}} into %{{.*}} starts ["i", 0] : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %15 = ds.insert %10 into %x starts ["i", 0] : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}
