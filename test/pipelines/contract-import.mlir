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
