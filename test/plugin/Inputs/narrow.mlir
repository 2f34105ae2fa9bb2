func.func @of16(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = ds.constant dense<1.0> : tensor<f32>
  %1 = ds.constant dense<0.002> : tensor<f32>
  %2 = ds.unary exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %3 = ds.binary mul %2, %1 : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = ds.binary add %3, %0 : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
func.func @narrow(%x: tensor<8xf16>) -> tensor<8xf16> {
  %0 = ds.constant dense<1.0> : tensor<f16>
  %1 = ds.constant dense<0.002> : tensor<f16>
  %2 = ds.unary exp %x : (tensor<8xf16>) -> tensor<8xf16>
  %3 = ds.binary mul %2, %1 : (tensor<8xf16>, tensor<f16>) -> tensor<8xf16>
  %4 = ds.binary add %3, %0 : (tensor<8xf16>, tensor<f16>) -> tensor<8xf16>
  return %4 : tensor<8xf16>
}
