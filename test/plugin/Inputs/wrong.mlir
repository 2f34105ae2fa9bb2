func.func @main() -> tensor<1xi64> {
  %0 = ds.shape [3] : tensor<1xi64>
  return %0 : tensor<1xi64>
}
