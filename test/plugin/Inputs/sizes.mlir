func.func @main(%x: tensor<?x?xf32> {ds.name = "x", ds.dims = ["n", "m"]}) -> tensor<1xi64> {
  %0 = ds.shape ["n"] : tensor<1xi64>
  return %0 : tensor<1xi64>
}
