func.func private @outside(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @index(%n: index) -> index {
  return %n : index
}
