// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=import

func.func @onnx_is_left(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'onnx.node' violates the contract of phase 'import': no onnx op is left}}
  %y = onnx.node "Relu" version 14(%x) outputs ["y"] : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// expected-error @+1 {{'builtin.module' violates the contract of phase 'import': no onnx attribute is left}}
module attributes {onnx.ir_version = 8 : i64} {
}

// -----

func.func @location_is_lost(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @unknown {{'ds.unary' violates the contract of phase 'import': every op has the location of its ONNX node}}
  %y = ds.unary exp %x : (tensor<2xf32>) -> tensor<2xf32> loc(unknown)
  return %y : tensor<2xf32>
}

// -----

func.func @holds(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = ds.unary exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// What was sized by the first definition would be read with the size of the second.
func.func @one_symbol_twice(%x: tensor<4xi1>, %y: tensor<9xi1>) -> (tensor<1x?xi64>, tensor<1x?xi64>) {
  %a = ds.nonzero %x count "c" : (tensor<4xi1>) -> tensor<1x?xi64>
  // expected-error @+1 {{'ds.nonzero' violates the contract of phase 'import': size symbols are defined once, found 'c' again}}
  %b = ds.nonzero %y count "c" : (tensor<9xi1>) -> tensor<1x?xi64>
  return %a, %b : tensor<1x?xi64>, tensor<1x?xi64>
}

// -----

func.func @symbol_of_a_dimension(%x: tensor<?xi1> {ds.dims = ["n"]}, %c: tensor<i64>) -> tensor<?xi64> {
  // expected-error @+1 {{'ds.define' violates the contract of phase 'import': size symbols are defined once, found 'n' again}}
  ds.define "n" = %c : tensor<i64>
  %y = ds.iota 0 ["n"] : tensor<?xi64>
  return %y : tensor<?xi64>
}
