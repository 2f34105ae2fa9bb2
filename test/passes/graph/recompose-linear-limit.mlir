// As many ops may lie between a weight and what it is as a recipe may have; with one more it is computed by the program.
// RUN: ds-opt %s --ds-recompose-linear | FileCheck %s

// CHECK-LABEL: func.func @of_64_ops(
// CHECK: ds.linear %arg0, %{{.*}}, %{{.*}} :
func.func @of_64_ops(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = ds.weight @w : tensor<4x3xf32>
  %b0 = ds.weight @b : tensor<3xf32>
  %b1 = ds.unary neg %b0 : (tensor<3xf32>) -> tensor<3xf32>
  %b2 = ds.unary neg %b1 : (tensor<3xf32>) -> tensor<3xf32>
  %b3 = ds.unary neg %b2 : (tensor<3xf32>) -> tensor<3xf32>
  %b4 = ds.unary neg %b3 : (tensor<3xf32>) -> tensor<3xf32>
  %b5 = ds.unary neg %b4 : (tensor<3xf32>) -> tensor<3xf32>
  %b6 = ds.unary neg %b5 : (tensor<3xf32>) -> tensor<3xf32>
  %b7 = ds.unary neg %b6 : (tensor<3xf32>) -> tensor<3xf32>
  %b8 = ds.unary neg %b7 : (tensor<3xf32>) -> tensor<3xf32>
  %b9 = ds.unary neg %b8 : (tensor<3xf32>) -> tensor<3xf32>
  %b10 = ds.unary neg %b9 : (tensor<3xf32>) -> tensor<3xf32>
  %b11 = ds.unary neg %b10 : (tensor<3xf32>) -> tensor<3xf32>
  %b12 = ds.unary neg %b11 : (tensor<3xf32>) -> tensor<3xf32>
  %b13 = ds.unary neg %b12 : (tensor<3xf32>) -> tensor<3xf32>
  %b14 = ds.unary neg %b13 : (tensor<3xf32>) -> tensor<3xf32>
  %b15 = ds.unary neg %b14 : (tensor<3xf32>) -> tensor<3xf32>
  %b16 = ds.unary neg %b15 : (tensor<3xf32>) -> tensor<3xf32>
  %b17 = ds.unary neg %b16 : (tensor<3xf32>) -> tensor<3xf32>
  %b18 = ds.unary neg %b17 : (tensor<3xf32>) -> tensor<3xf32>
  %b19 = ds.unary neg %b18 : (tensor<3xf32>) -> tensor<3xf32>
  %b20 = ds.unary neg %b19 : (tensor<3xf32>) -> tensor<3xf32>
  %b21 = ds.unary neg %b20 : (tensor<3xf32>) -> tensor<3xf32>
  %b22 = ds.unary neg %b21 : (tensor<3xf32>) -> tensor<3xf32>
  %b23 = ds.unary neg %b22 : (tensor<3xf32>) -> tensor<3xf32>
  %b24 = ds.unary neg %b23 : (tensor<3xf32>) -> tensor<3xf32>
  %b25 = ds.unary neg %b24 : (tensor<3xf32>) -> tensor<3xf32>
  %b26 = ds.unary neg %b25 : (tensor<3xf32>) -> tensor<3xf32>
  %b27 = ds.unary neg %b26 : (tensor<3xf32>) -> tensor<3xf32>
  %b28 = ds.unary neg %b27 : (tensor<3xf32>) -> tensor<3xf32>
  %b29 = ds.unary neg %b28 : (tensor<3xf32>) -> tensor<3xf32>
  %b30 = ds.unary neg %b29 : (tensor<3xf32>) -> tensor<3xf32>
  %b31 = ds.unary neg %b30 : (tensor<3xf32>) -> tensor<3xf32>
  %b32 = ds.unary neg %b31 : (tensor<3xf32>) -> tensor<3xf32>
  %b33 = ds.unary neg %b32 : (tensor<3xf32>) -> tensor<3xf32>
  %b34 = ds.unary neg %b33 : (tensor<3xf32>) -> tensor<3xf32>
  %b35 = ds.unary neg %b34 : (tensor<3xf32>) -> tensor<3xf32>
  %b36 = ds.unary neg %b35 : (tensor<3xf32>) -> tensor<3xf32>
  %b37 = ds.unary neg %b36 : (tensor<3xf32>) -> tensor<3xf32>
  %b38 = ds.unary neg %b37 : (tensor<3xf32>) -> tensor<3xf32>
  %b39 = ds.unary neg %b38 : (tensor<3xf32>) -> tensor<3xf32>
  %b40 = ds.unary neg %b39 : (tensor<3xf32>) -> tensor<3xf32>
  %b41 = ds.unary neg %b40 : (tensor<3xf32>) -> tensor<3xf32>
  %b42 = ds.unary neg %b41 : (tensor<3xf32>) -> tensor<3xf32>
  %b43 = ds.unary neg %b42 : (tensor<3xf32>) -> tensor<3xf32>
  %b44 = ds.unary neg %b43 : (tensor<3xf32>) -> tensor<3xf32>
  %b45 = ds.unary neg %b44 : (tensor<3xf32>) -> tensor<3xf32>
  %b46 = ds.unary neg %b45 : (tensor<3xf32>) -> tensor<3xf32>
  %b47 = ds.unary neg %b46 : (tensor<3xf32>) -> tensor<3xf32>
  %b48 = ds.unary neg %b47 : (tensor<3xf32>) -> tensor<3xf32>
  %b49 = ds.unary neg %b48 : (tensor<3xf32>) -> tensor<3xf32>
  %b50 = ds.unary neg %b49 : (tensor<3xf32>) -> tensor<3xf32>
  %b51 = ds.unary neg %b50 : (tensor<3xf32>) -> tensor<3xf32>
  %b52 = ds.unary neg %b51 : (tensor<3xf32>) -> tensor<3xf32>
  %b53 = ds.unary neg %b52 : (tensor<3xf32>) -> tensor<3xf32>
  %b54 = ds.unary neg %b53 : (tensor<3xf32>) -> tensor<3xf32>
  %b55 = ds.unary neg %b54 : (tensor<3xf32>) -> tensor<3xf32>
  %b56 = ds.unary neg %b55 : (tensor<3xf32>) -> tensor<3xf32>
  %b57 = ds.unary neg %b56 : (tensor<3xf32>) -> tensor<3xf32>
  %b58 = ds.unary neg %b57 : (tensor<3xf32>) -> tensor<3xf32>
  %b59 = ds.unary neg %b58 : (tensor<3xf32>) -> tensor<3xf32>
  %b60 = ds.unary neg %b59 : (tensor<3xf32>) -> tensor<3xf32>
  %b61 = ds.unary neg %b60 : (tensor<3xf32>) -> tensor<3xf32>
  %b62 = ds.unary neg %b61 : (tensor<3xf32>) -> tensor<3xf32>
  %b63 = ds.unary neg %b62 : (tensor<3xf32>) -> tensor<3xf32>
  %b64 = ds.unary neg %b63 : (tensor<3xf32>) -> tensor<3xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %1 = ds.binary add %0, %b64 : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @of_65_ops(
// CHECK: ds.binary add
func.func @of_65_ops(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = ds.weight @w : tensor<4x3xf32>
  %b0 = ds.weight @b : tensor<3xf32>
  %b1 = ds.unary neg %b0 : (tensor<3xf32>) -> tensor<3xf32>
  %b2 = ds.unary neg %b1 : (tensor<3xf32>) -> tensor<3xf32>
  %b3 = ds.unary neg %b2 : (tensor<3xf32>) -> tensor<3xf32>
  %b4 = ds.unary neg %b3 : (tensor<3xf32>) -> tensor<3xf32>
  %b5 = ds.unary neg %b4 : (tensor<3xf32>) -> tensor<3xf32>
  %b6 = ds.unary neg %b5 : (tensor<3xf32>) -> tensor<3xf32>
  %b7 = ds.unary neg %b6 : (tensor<3xf32>) -> tensor<3xf32>
  %b8 = ds.unary neg %b7 : (tensor<3xf32>) -> tensor<3xf32>
  %b9 = ds.unary neg %b8 : (tensor<3xf32>) -> tensor<3xf32>
  %b10 = ds.unary neg %b9 : (tensor<3xf32>) -> tensor<3xf32>
  %b11 = ds.unary neg %b10 : (tensor<3xf32>) -> tensor<3xf32>
  %b12 = ds.unary neg %b11 : (tensor<3xf32>) -> tensor<3xf32>
  %b13 = ds.unary neg %b12 : (tensor<3xf32>) -> tensor<3xf32>
  %b14 = ds.unary neg %b13 : (tensor<3xf32>) -> tensor<3xf32>
  %b15 = ds.unary neg %b14 : (tensor<3xf32>) -> tensor<3xf32>
  %b16 = ds.unary neg %b15 : (tensor<3xf32>) -> tensor<3xf32>
  %b17 = ds.unary neg %b16 : (tensor<3xf32>) -> tensor<3xf32>
  %b18 = ds.unary neg %b17 : (tensor<3xf32>) -> tensor<3xf32>
  %b19 = ds.unary neg %b18 : (tensor<3xf32>) -> tensor<3xf32>
  %b20 = ds.unary neg %b19 : (tensor<3xf32>) -> tensor<3xf32>
  %b21 = ds.unary neg %b20 : (tensor<3xf32>) -> tensor<3xf32>
  %b22 = ds.unary neg %b21 : (tensor<3xf32>) -> tensor<3xf32>
  %b23 = ds.unary neg %b22 : (tensor<3xf32>) -> tensor<3xf32>
  %b24 = ds.unary neg %b23 : (tensor<3xf32>) -> tensor<3xf32>
  %b25 = ds.unary neg %b24 : (tensor<3xf32>) -> tensor<3xf32>
  %b26 = ds.unary neg %b25 : (tensor<3xf32>) -> tensor<3xf32>
  %b27 = ds.unary neg %b26 : (tensor<3xf32>) -> tensor<3xf32>
  %b28 = ds.unary neg %b27 : (tensor<3xf32>) -> tensor<3xf32>
  %b29 = ds.unary neg %b28 : (tensor<3xf32>) -> tensor<3xf32>
  %b30 = ds.unary neg %b29 : (tensor<3xf32>) -> tensor<3xf32>
  %b31 = ds.unary neg %b30 : (tensor<3xf32>) -> tensor<3xf32>
  %b32 = ds.unary neg %b31 : (tensor<3xf32>) -> tensor<3xf32>
  %b33 = ds.unary neg %b32 : (tensor<3xf32>) -> tensor<3xf32>
  %b34 = ds.unary neg %b33 : (tensor<3xf32>) -> tensor<3xf32>
  %b35 = ds.unary neg %b34 : (tensor<3xf32>) -> tensor<3xf32>
  %b36 = ds.unary neg %b35 : (tensor<3xf32>) -> tensor<3xf32>
  %b37 = ds.unary neg %b36 : (tensor<3xf32>) -> tensor<3xf32>
  %b38 = ds.unary neg %b37 : (tensor<3xf32>) -> tensor<3xf32>
  %b39 = ds.unary neg %b38 : (tensor<3xf32>) -> tensor<3xf32>
  %b40 = ds.unary neg %b39 : (tensor<3xf32>) -> tensor<3xf32>
  %b41 = ds.unary neg %b40 : (tensor<3xf32>) -> tensor<3xf32>
  %b42 = ds.unary neg %b41 : (tensor<3xf32>) -> tensor<3xf32>
  %b43 = ds.unary neg %b42 : (tensor<3xf32>) -> tensor<3xf32>
  %b44 = ds.unary neg %b43 : (tensor<3xf32>) -> tensor<3xf32>
  %b45 = ds.unary neg %b44 : (tensor<3xf32>) -> tensor<3xf32>
  %b46 = ds.unary neg %b45 : (tensor<3xf32>) -> tensor<3xf32>
  %b47 = ds.unary neg %b46 : (tensor<3xf32>) -> tensor<3xf32>
  %b48 = ds.unary neg %b47 : (tensor<3xf32>) -> tensor<3xf32>
  %b49 = ds.unary neg %b48 : (tensor<3xf32>) -> tensor<3xf32>
  %b50 = ds.unary neg %b49 : (tensor<3xf32>) -> tensor<3xf32>
  %b51 = ds.unary neg %b50 : (tensor<3xf32>) -> tensor<3xf32>
  %b52 = ds.unary neg %b51 : (tensor<3xf32>) -> tensor<3xf32>
  %b53 = ds.unary neg %b52 : (tensor<3xf32>) -> tensor<3xf32>
  %b54 = ds.unary neg %b53 : (tensor<3xf32>) -> tensor<3xf32>
  %b55 = ds.unary neg %b54 : (tensor<3xf32>) -> tensor<3xf32>
  %b56 = ds.unary neg %b55 : (tensor<3xf32>) -> tensor<3xf32>
  %b57 = ds.unary neg %b56 : (tensor<3xf32>) -> tensor<3xf32>
  %b58 = ds.unary neg %b57 : (tensor<3xf32>) -> tensor<3xf32>
  %b59 = ds.unary neg %b58 : (tensor<3xf32>) -> tensor<3xf32>
  %b60 = ds.unary neg %b59 : (tensor<3xf32>) -> tensor<3xf32>
  %b61 = ds.unary neg %b60 : (tensor<3xf32>) -> tensor<3xf32>
  %b62 = ds.unary neg %b61 : (tensor<3xf32>) -> tensor<3xf32>
  %b63 = ds.unary neg %b62 : (tensor<3xf32>) -> tensor<3xf32>
  %b64 = ds.unary neg %b63 : (tensor<3xf32>) -> tensor<3xf32>
  %b65 = ds.unary neg %b64 : (tensor<3xf32>) -> tensor<3xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %1 = ds.binary add %0, %b65 : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x3xf32>
  ds.yield %0 : tensor<4x3xf32>
}
ds.recipe @b {
  %0 = ds.constant dense<0.5> : tensor<3xf32>
  ds.yield %0 : tensor<3xf32>
}
