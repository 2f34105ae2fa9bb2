// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=optimization

func.func @products(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = ds.fused {
    %1 = ds.matmul %x, %x transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    // expected-error @+1 {{'ds.matmul' violates the contract of phase 'optimization': a fused region has at most one anchor}}
    %2 = ds.matmul %1, %x transpose [false, false] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    ds.yield %2 : tensor<2x2xf32>
  } : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Boxes are read and stored where they lie; what is computed is not seen through reshapes otherwise.
func.func @boxes(%x: tensor<4xf32>, %y: tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<1x2xf32>) {
  %0:2 = ds.fused {
    %1 = ds.slice %x starts [1] sizes [2] steps [1] : (tensor<4xf32>) -> tensor<2xf32>
    %2 = ds.unary exp %1 : (tensor<2xf32>) -> tensor<2xf32>
    %3 = ds.reshape %2 [2, 1] : (tensor<2xf32>) -> tensor<2x1xf32>
    %4 = ds.insert %3 into %y starts [1, 0] : (tensor<2x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    // expected-error @+1 {{'ds.reshape' violates the contract of phase 'optimization': fused regions hold elementwise ops, slices, broadcasts and transposes only, beside an anchor and what is computed before it and extremes of its rows, before a norm or softmax, or views only}}
    %5 = ds.reshape %2 [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
    ds.yield %4, %5 : tensor<4x1xf32>, tensor<1x2xf32>
  } : tensor<4x1xf32>, tensor<1x2xf32>
  return %0#0, %0#1 : tensor<4x1xf32>, tensor<1x2xf32>
}

// -----

func.func @sizes() -> tensor<2xi64> {
  %0 = ds.fused {
    // expected-error @+1 {{'ds.shape' violates the contract of phase 'optimization': fused regions hold elementwise ops, slices, broadcasts and transposes only, beside an anchor and what is computed before it and extremes of its rows, before a norm or softmax, or views only}}
    %1 = ds.shape [3, 4] : tensor<2xi64>
    ds.yield %1 : tensor<2xi64>
  } : tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

// Divisors are read for zeros first; those from outside, and constants, can be.
func.func @divisors(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %0 = ds.fused {
    %c = ds.constant dense<3> : tensor<i64>
    %1 = ds.binary div %x, %y : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    %2 = ds.binary mod %1, %c : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    // expected-error @+1 {{'ds.binary' violates the contract of phase 'optimization': what is read as a whole first, as divisors are, comes from outside of a fused region}}
    %3 = ds.binary fmod %x, %2 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    ds.yield %3 : tensor<4xi64>
  } : tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

func.func @beside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = ds.fused {
    %1 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = ds.binary add %1, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{'ds.rms_norm' violates the contract of phase 'optimization': what an anchor reads beside its rows comes from outside of a fused region}}
    %3 = ds.rms_norm %2, %1 axis 0 epsilon 1.0e-5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ds.yield %3 : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @reductions(%x: tensor<2x2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0:2 = ds.fused {
    %1 = ds.reduce max %x axes [0] keep false : (tensor<2x2xf32>) -> tensor<2xf32>
    // expected-error @+1 {{'ds.reduce' violates the contract of phase 'optimization': reductions of a fused region have one input and the same axes}}
    %2 = ds.reduce max %x axes [1] keep false : (tensor<2x2xf32>) -> tensor<2xf32>
    ds.yield %1, %2 : tensor<2xf32>, tensor<2xf32>
  } : tensor<2xf32>, tensor<2xf32>
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

func.func @reduction_and_function(%x: tensor<2x2xf32>) -> tensor<2xf32> {
  %0 = ds.fused {
    // expected-error @+1 {{or reductions of one input}}
    %1 = ds.reduce max %x axes [0] keep false : (tensor<2x2xf32>) -> tensor<2xf32>
    %2 = ds.unary exp %1 : (tensor<2xf32>) -> tensor<2xf32>
    ds.yield %2 : tensor<2xf32>
  } : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Rows are what a softmax's kernel ends with.
func.func @between(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = ds.fused {
    // expected-error @+1 {{'ds.softmax' violates the contract of phase 'optimization': fused regions hold elementwise ops}}
    %1 = ds.softmax %x axis 1 log false : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = ds.unary exp %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    ds.yield %2 : tensor<4x16xf32>
  } : tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
