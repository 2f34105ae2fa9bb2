// RUN: ds-opt %s --ds-quantize-weights="keep=^product$" --verify-diagnostics
// The name of a product matches also where it reads its weight through a cast, as --reference=f64 has them: no warning.

func.func @cast(%x: tensor<?x2xf64>) -> (tensor<?x8xf64>, tensor<?x8xf64>) {
  %w = ds.weight @w : tensor<2x8xf32>
  %wide = ds.cast %w to f64 : (tensor<2x8xf32>) -> tensor<2x8xf64>
  // expected-remark @unknown {{weight 'w' is kept: '^product$' matches its name or its product's}}
  %0 = ds.linear %x, %wide : (tensor<?x2xf64>, tensor<2x8xf64>) -> tensor<?x8xf64> loc("product")
  %v = ds.weight @v : tensor<2x8xf32>
  %other = ds.cast %v to f64 : (tensor<2x8xf32>) -> tensor<2x8xf64>
  // expected-remark @below {{weight 'v' in 8 bits: 64 bytes become 48}}
  %1 = ds.linear %x, %other : (tensor<?x2xf64>, tensor<2x8xf64>) -> tensor<?x8xf64>
  return %0, %1 : tensor<?x8xf64>, tensor<?x8xf64>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<2x8xf32>
  ds.yield %0 : tensor<2x8xf32>
}
ds.recipe @v {
  %0 = ds.constant dense<0.5> : tensor<2x8xf32>
  ds.yield %0 : tensor<2x8xf32>
}
