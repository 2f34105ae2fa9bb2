// RUN: ds-opt %s --split-input-file --ds-recompose-gelu --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-gelu --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.gelu erf %arg0 {ds.values = ["y"]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: return %[[Y]]
func.func @doc(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %root = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %x, %root : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = ds.unary erf %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %1, %one : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %3 = ds.binary mul %x, %2 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = ds.binary mul %3, %half {ds.values = ["y"]} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// The same factors in another order: (x * 0.5) * (1 + erf(x * 0.7071)), and halved by a division.
// CHECK-LABEL: func.func @other_orders
// CHECK-NEXT: ds.gelu erf %arg0
// CHECK-NEXT: ds.gelu erf %arg0
// CHECK-NEXT: return
func.func @other_orders(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %root = ds.constant dense<0.707106769> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %two = ds.constant dense<2.0> : tensor<f32>
  %0 = ds.binary mul %x, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %one, %1 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.binary mul %half, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %y = ds.binary mul %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = ds.binary mul %2, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = ds.binary div %4, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// A gated unit: the inner product is the GELU.
// CHECK-LABEL: func.func @gated
// CHECK-NEXT: %[[G:.*]] = ds.gelu erf %arg0
// CHECK-NEXT: ds.binary mul %[[G]], %arg1
func.func @gated(%x: tensor<4xf32>, %gate: tensor<4xf32>) -> tensor<4xf32> {
  %root = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %x, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = ds.binary mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = ds.binary mul %3, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %y = ds.binary mul %4, %gate : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The tanh flavour as GPT-2 writes it, and with x taken out of the cubic.
// CHECK-LABEL: func.func @tanh
// CHECK-NEXT: ds.gelu tanh %arg0
// CHECK-NEXT: ds.gelu tanh %arg0
// CHECK-NEXT: return
func.func @tanh(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %three = ds.constant dense<3.0> : tensor<f32>
  %cubic = ds.constant dense<4.471500e-02> : tensor<f32>
  %scale = ds.constant dense<0.797884583> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.binary pow %x, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = ds.binary mul %1, %cubic : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = ds.binary add %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = ds.binary mul %3, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = ds.unary tanh %4 : (tensor<4xf32>) -> tensor<4xf32>
  %6 = ds.binary add %5, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %y = ds.binary mul %0, %6 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = ds.binary mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = ds.binary mul %7, %cubic : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %9 = ds.binary add %8, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %10 = ds.binary mul %x, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %11 = ds.binary mul %10, %9 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %12 = ds.unary tanh %11 : (tensor<4xf32>) -> tensor<4xf32>
  %13 = ds.binary add %one, %12 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %14 = ds.binary mul %x, %13 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = ds.binary mul %half, %14 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// The quick flavour; x sigmoid(x) is a SiLU and no near miss.
// CHECK-LABEL: func.func @quick
// CHECK: ds.gelu quick %arg0
// CHECK: ds.unary sigmoid %arg0
// CHECK: ds.binary mul
func.func @quick(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = ds.constant dense<1.702> : tensor<f32>
  %0 = ds.binary mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary mul %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.unary sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %4 = ds.binary mul %x, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @wrong_scale
// CHECK-NOT: ds.gelu
func.func @wrong_scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = ds.constant dense<0.8> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = ds.binary mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-remark @+1 {{gelu not recomposed: the argument is scaled by 0.800000, expected 0.707107}}
  %y = ds.binary mul %3, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @not_halved
// CHECK-NOT: ds.gelu
func.func @not_halved(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %0 = ds.binary div %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-remark @+1 {{gelu not recomposed: the product has the factor 1.000000, expected 0.500000}}
  %y = ds.binary mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @of_another_value
// CHECK-NOT: ds.gelu
func.func @of_another_value(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %c = ds.constant dense<1.41421354> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %z, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = ds.binary mul %2, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-remark @+1 {{gelu not recomposed: the argument is not a multiple of x}}
  %y = ds.binary mul %x, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Gemma 2: the cube is x (x x), its factors on either side, and something else reads the square.
// CHECK-LABEL: func.func @cube_of_a_shared_square
// CHECK: %[[SQUARE:.*]] = ds.binary mul %arg0, %arg0
// CHECK: %[[Y:.*]] = ds.gelu tanh %arg0
// CHECK: return %[[Y]], %[[SQUARE]]
func.func @cube_of_a_shared_square(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c = ds.constant dense<0.044715> : tensor<f32>
  %s = ds.constant dense<0.797884583> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %square = ds.binary mul %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %cube = ds.binary mul %x, %square : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %small = ds.binary mul %c, %cube : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %sum = ds.binary add %x, %small : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %argument = ds.binary mul %s, %sum : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = ds.unary tanh %argument : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %gate = ds.binary add %one, %t : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %h = ds.binary mul %half, %x : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = ds.binary mul %h, %gate : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y, %square : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// The square of another value.
// CHECK-LABEL: func.func @cube_of_two_values
// CHECK-NOT: ds.gelu
func.func @cube_of_two_values(%x: tensor<?x4xf32>, %z: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c = ds.constant dense<0.044715> : tensor<f32>
  %s = ds.constant dense<0.797884583> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %square = ds.binary mul %z, %z : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %cube = ds.binary mul %square, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %small = ds.binary mul %cube, %c : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %sum = ds.binary add %small, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %argument = ds.binary mul %sum, %s : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t = ds.unary tanh %argument : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %gate = ds.binary add %t, %one : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %h = ds.binary mul %x, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{gelu not recomposed: the argument of tanh is not x + 0.044715 x^3}}
  %y = ds.binary mul %gate, %h : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// Constants that no exporter would have rounded so: the numbers would be others.
// CHECK-LABEL: func.func @another_number
// CHECK-NOT: ds.gelu
func.func @another_number(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = ds.constant dense<1.4148> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %0 = ds.binary div %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = ds.unary erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.binary add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = ds.binary mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-remark @+1 {{gelu not recomposed: the argument is scaled by 0.706814, expected 0.707107}}
  %y = ds.binary mul %3, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// In f16 the same number is the nearest one.
// CHECK-LABEL: func.func @rounded_number
// CHECK: ds.gelu erf %arg0
func.func @rounded_number(%x: tensor<4xf16>) -> tensor<4xf16> {
  %c = ds.constant dense<1.41406> : tensor<f16>
  %one = ds.constant dense<1.0> : tensor<f16>
  %half = ds.constant dense<0.5> : tensor<f16>
  %0 = ds.binary div %x, %c : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %1 = ds.unary erf %0 : (tensor<4xf16>) -> tensor<4xf16>
  %2 = ds.binary add %1, %one : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %3 = ds.binary mul %x, %half : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %y = ds.binary mul %3, %2 : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}
