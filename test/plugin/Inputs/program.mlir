func.func @main(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %0 = ds.transpose %x [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %1 = ds.unary exp %0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
