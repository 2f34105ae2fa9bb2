// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @unary_c1_kind(%x: tensor<4xi64>) {
  // expected-error @+1 {{'ds.unary' op C1: exp is not defined for this element type}}
  %0 = ds.unary exp %x : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @binary_c1_element_types(%x: tensor<4xf32>, %y: tensor<4xi64>) {
  // expected-error @+1 {{'ds.binary' op C1: operands have different element types}}
  %0 = ds.binary add %x, %y : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @binary_c2_broadcast(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'ds.binary' op shapes do not broadcast: axis 0 has sizes 4 and 3}}
  %0 = ds.binary add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @binary_c3_kind(%x: tensor<4xi1>) {
  // expected-error @+1 {{'ds.binary' op C3: add is not defined for this element type}}
  %0 = ds.binary add %x, %x : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @select_c1_condition(%c: tensor<4xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.select' op C1: the condition must be i1}}
  %0 = ds.select %c, %x, %x : (tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @select_c2_values(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{'ds.select' op C2: the values have different element types}}
  %0 = ds.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @select_c3_broadcast(%c: tensor<3xi1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.select' op shapes do not broadcast: axis 0 has sizes 3 and 4}}
  %0 = ds.select %c, %x, %x : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cast_c1_types(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'ds.cast' op C1: only integer and float types convert}}
  %0 = ds.cast %x to f32 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_c1_type(%x: tensor<4xi64>) {
  // expected-error @+1 {{'ds.dropout' op C1: the element type must be a float}}
  %0 = ds.dropout %x ratio 0.1 stream 0 : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @dropout_c2_ratio(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.dropout' op C2: the ratio must be at least 0 and below 1, found 1}}
  %0 = ds.dropout %x ratio 1.0 stream 0 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @gelu_c1_type(%x: tensor<4xi64>) {
  // expected-error @+1 {{'ds.gelu' op C1: the element type must be a float}}
  %0 = ds.gelu erf %x : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @bitcast_c1_type(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'ds.bitcast' op C1: only integer and float types have bits}}
  %0 = ds.bitcast %x to i64 : (tensor<4xcomplex<f32>>) -> tensor<4xi64>
  return
}

// -----

func.func @bitcast_c2_width(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.bitcast' op C2: elements of the two types must take equally many bits}}
  %0 = ds.bitcast %x to i64 : (tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @result_type_disagrees(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.unary' op result #0 expects a type compatible with 'tensor<4xf32>', found 'tensor<4xf64>'}}
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf64>
  return
}
