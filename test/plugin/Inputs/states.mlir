func.func @new_value(%x: tensor<4xf32>, %s: tensor<4xf32> {ds.state = "s"}) -> (tensor<4xf32> {ds.state = "s"}) {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.binary add %s, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @nothing_at_zero(%s: tensor<?xf32> {ds.dims = ["n"], ds.state = "s"})
    -> (tensor<?xf32>, tensor<?xf32> {ds.state = "s"}) {
  %0 = ds.unary exp %s : (tensor<?xf32>) -> tensor<?xf32>
  %1 = ds.binary mul %s, %0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %1, %s : tensor<?xf32>, tensor<?xf32>
}
