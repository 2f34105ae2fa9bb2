// RUN: ds-opt %s --split-input-file --ds-tie-parameters=untie --verify-diagnostics | FileCheck %s
// What is stored twice stays; where nothing is, there was nothing to keep apart.
// CHECK-NOT: ds.tied
// CHECK-LABEL: func.func @twice
// CHECK: ds.weight @a
// CHECK: ds.weight @b
ds.recipe @a {
  %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
ds.recipe @b {
  %0 = ds.constant dense<[[1.0, 3.0], [2.0, 4.0]]> : tensor<2x2xf32>
  ds.yield %0 : tensor<2x2xf32>
}
func.func @twice(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = ds.weight @a : tensor<2x2xf32>
  %b = ds.weight @b : tensor<2x2xf32>
  %0 = ds.matmul %x, %a transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = ds.matmul %0, %b transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// expected-error @below {{--untie: expected a weight that the model stores twice, found none}}
module {
  ds.recipe @a {
    %0 = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    ds.yield %0 : tensor<2x2xf32>
  }
  func.func @once(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %a = ds.weight @a : tensor<2x2xf32>
    %0 = ds.matmul %x, %a transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}
