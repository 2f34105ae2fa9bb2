// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @weight_c1_no_recipe() {
  // expected-error @+1 {{'ds.weight' op C1: 'nosuch' is no ds.recipe}}
  %0 = ds.weight @nosuch : tensor<4xf32>
  return
}

// -----

ds.recipe @w {
  %0 = ds.source "m" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @weight_c2_type() {
  // expected-error @+1 {{'ds.weight' op C2: expects the recipe's type 'tensor<4xf32>', found 'tensor<5xf32>'}}
  %0 = ds.weight @w : tensor<5xf32>
  return
}

// -----

// expected-error @+1 {{'ds.recipe' op C1: expects the region to yield one statically shaped tensor}}
ds.recipe @recipe_c1_no_yield {
  %0 = ds.source "m" [0, 16] : tensor<4xf32>
}

// -----

ds.recipe @recipe_c2_op {
  %0 = ds.source "m" [0, 16] : tensor<4xf32>
  // expected-error @+1 {{'ds.softmax' op C2: is not an op that a recipe can evaluate}}
  %1 = ds.softmax %0 axis 0 log false : (tensor<4xf32>) -> tensor<4xf32>
  ds.yield %1 : tensor<4xf32>
}

// -----

ds.recipe @recipe_c2_narrow {
  %0 = ds.source "m" [0, 16] : tensor<4xf32>
  // expected-error @+1 {{'ds.cast' op C2: is not an op that a recipe can evaluate}}
  %1 = ds.cast %0 to f8E4M3FN : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  ds.yield %1 : tensor<4xf8E4M3FN>
}

// -----

ds.recipe @recipe_c2_open_sizes {
  %0 = ds.source "m" [0, 16] : tensor<4xf32>
  // expected-error @+1 {{'ds.slice' op C2: is not an op that a recipe can evaluate}}
  %1 = ds.slice %0 starts ["n"] sizes [2] steps [1] : (tensor<4xf32>) -> tensor<2xf32>
  ds.yield %1 : tensor<2xf32>
}

// -----

ds.recipe @source_c1_length {
  // expected-error @+1 {{'ds.source' op C1: expects a length of 16 bytes for 'tensor<4xf32>', found 12}}
  %0 = ds.source "m" [0, 12] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}

// -----

ds.recipe @source_c2_offset {
  // expected-error @+1 {{'ds.source' op C2: expects an offset that is not negative, found -4}}
  %0 = ds.source "m" [-4, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}

// -----

func.func @shape_c1_text() {
  // expected-error @+1 {{'ds.shape' op C1: values holds a text that is no size expression}}
  %0 = ds.shape ["a +"] : tensor<1xi64>
  return
}

// -----

func.func @shape_c2_count() {
  // expected-error @+1 {{'ds.shape' op C2: expects as many values as elements}}
  %0 = ds.shape ["a", "b"] : tensor<3xi64>
  return
}

// -----

func.func @iota_c1_axis() {
  // expected-error @+1 {{'ds.iota' op C1: the axis is outside the shape}}
  %0 = ds.iota 1 [4] : tensor<4xi64>
  return
}

// -----

func.func @iota_c2_text() {
  // expected-error @+1 {{'ds.iota' op C2: shape holds a text that is no size expression}}
  %0 = ds.iota 0 ["("] : tensor<?xi64>
  return
}

// -----

func.func @result_type_disagrees() {
  // expected-error @+1 {{'ds.iota' op result #0 expects a type compatible with 'tensor<4xi64>', found 'tensor<5xi64>'}}
  %0 = ds.iota 0 [4] : tensor<5xi64>
  return
}

// -----

func.func @iota_c3_negative() {
  // expected-error @+1 {{'ds.iota' op C3: size: expected at least 0, found -4}}
  %0 = ds.iota 0 [-4] : tensor<?xi64>
  return
}

// -----

func.func @empty_c1_text() {
  // expected-error @+1 {{'ds.empty' op C1: shape holds a text that is no size expression}}
  %0 = ds.empty ["("] of f32 : tensor<?xf32>
  return
}

// -----

func.func @empty_c2_negative() {
  // expected-error @+1 {{'ds.empty' op C2: size: expected at least 0, found -4}}
  %0 = ds.empty [-4] of f32 : tensor<?xf32>
  return
}

// -----

func.func @empty_c3_type() {
  // expected-error @+1 {{'ds.empty' op C3: the element type is no integer or float}}
  %0 = ds.empty [4] of complex<f32> : tensor<4xcomplex<f32>>
  return
}
