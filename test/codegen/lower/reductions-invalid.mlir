// What the kernel of reductions cannot hold.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --convert-ds-to-linalg="lanes=8"

ds.kernel @operand sizes 1 arguments [["d0", 5], []] {
^bb0(%x: tensor<?x5xf32>, %y: tensor<f32>):
  %0 = ds.reduce max %x axes [0, 1] keep false {result_sizes = [[]]} : (tensor<?x5xf32>) -> tensor<f32>
  // expected-error @+1 {{'ds.binary' op cannot follow a reduction in its kernel}}
  %1 = ds.binary add %0, %y {result_sizes = [[]]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  ds.yield %1 : tensor<f32>
}

// -----

ds.kernel @rows sizes 1 arguments [["d0", 5]] {
^bb0(%x: tensor<?x5xf32>):
  // expected-error @+1 {{'ds.reduce' op cannot share a kernel with other ops}}
  %0 = ds.reduce max %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x5xf32>) -> tensor<?xf32>
  %1 = ds.unary exp %0 {result_sizes = [["d0"]]} : (tensor<?xf32>) -> tensor<?xf32>
  ds.yield %1 : tensor<?xf32>
}
