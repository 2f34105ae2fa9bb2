// Scalars stand for elements of the types that packages know; another one is said, not met by an assertion.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg --verify-diagnostics

ds.kernel @odd_width sizes 0 arguments [[4]] {
^bb0(%x: tensor<4xi8>):
  // expected-error @+1 {{expects elements of 1, 2, 4, 8, 16, 32 or 64 bits that are integers, or floats of 16 to 64 bits or the standard's narrow formats, found 'tensor<4xi24>'}}
  %0 = ds.cast %x to i24 {result_sizes = [[4]]} : (tensor<4xi8>) -> tensor<4xi24>
  ds.yield %0 : tensor<4xi24>
}

// -----

ds.kernel @extended_float sizes 0 arguments [[4]] {
^bb0(%x: tensor<4xf80>):
  // expected-error @+1 {{expects elements of 1, 2, 4, 8, 16, 32 or 64 bits that are integers, or floats of 16 to 64 bits or the standard's narrow formats, found 'tensor<4xf80>'}}
  %0 = ds.unary exp %x {result_sizes = [[4]]} : (tensor<4xf80>) -> tensor<4xf80>
  ds.yield %0 : tensor<4xf80>
}
