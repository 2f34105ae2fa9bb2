// Who else reads the parts: of the whole anybody may, of what would go away nobody.
// RUN: ds-opt %s --ds-recompose-gelu | FileCheck %s
// RUN: ds-opt %s --ds-recompose-gelu --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @whole_twice
// CHECK-NEXT: %[[Y:.*]] = ds.gelu erf %arg0
// CHECK-NEXT: %[[E:.*]] = ds.unary exp %[[Y]]
// CHECK-NEXT: return %[[Y]], %[[E]]
func.func @whole_twice(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %root = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %x, %root : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = ds.unary erf %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %1, %one : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %3 = ds.binary mul %x, %2 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = ds.binary mul %3, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %e = ds.unary exp %y : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y, %e : tensor<?x4xf32>, tensor<?x4xf32>
}

// The product is computed for another reader anyhow: a GELU beside it would compute it once more.
// CHECK-LABEL: func.func @part_twice
// CHECK: %[[TWICE:.*]] = ds.binary mul %arg0
// CHECK: ds.binary mul %[[TWICE]]
// CHECK-NOT: ds.gelu
// CHECK: return
func.func @part_twice(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %root = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %x, %root : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = ds.unary erf %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %1, %one : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %twice = ds.binary mul %x, %2 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = ds.binary mul %twice, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %e = ds.unary exp %twice : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y, %e : tensor<?x4xf32>, tensor<?x4xf32>
}
