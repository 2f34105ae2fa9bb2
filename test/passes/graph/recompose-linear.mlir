// RUN: ds-opt %s --split-input-file --ds-recompose-linear --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-linear --verify-numerics -o /dev/null

// CHECK: ds.recipe @w
// CHECK: ds.transpose %{{.*}} [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[W:.*]] = ds.weight @w{{.*}} : tensor<4x8xf32>
// CHECK-DAG: %[[B:.*]] = ds.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: %[[Y:.*]] = ds.linear %arg0, %[[W]], %[[B]] {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]]
ds.recipe @stored {
  %0 = ds.source "model.onnx" [64, 128] : tensor<8x4xf32>
  ds.yield %0 : tensor<8x4xf32>
}
func.func @doc(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %w = ds.weight @stored {ds.values = ["w"]} : tensor<8x4xf32>
  %b = ds.constant dense<1.0> : tensor<8xf32>
  %0 = ds.matmul %x, %w transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %b, %0 {ds.values = ["y"]} : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Without a bias, and where the product has other uses; more axes before the last.
// CHECK-LABEL: func.func @without_bias
// CHECK: %[[Y:.*]] = ds.linear %arg0, %[[W:[a-z0-9_]*]] :
// CHECK: ds.binary add %[[Y]]
// CHECK: ds.unary exp %[[Y]]
func.func @without_bias(%x: tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %b = ds.constant dense<1.0> : tensor<2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x3x4xf32>, tensor<4x2xf32>) -> tensor<2x3x2xf32>
  %1 = ds.binary add %0, %b : (tensor<2x3x2xf32>, tensor<2xf32>) -> tensor<2x3x2xf32>
  %2 = ds.unary exp %0 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %1, %2 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

// -----

// A bias of one row loses its axis of size 1.
// CHECK-LABEL: func.func @bias_row
// CHECK: %[[B:.*]] = ds.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK: ds.linear %arg0, %{{.*}}, %[[B]]
func.func @bias_row(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ds.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = ds.binary add %0, %b : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// A bias of heads behind a reshape: one number for each feature, whatever stands before the heads.
// CHECK-LABEL: func.func @bias_of_heads
// CHECK: %[[B:.*]] = ds.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK: %[[L:.*]] = ds.linear %arg0, %{{.*}}, %[[B]] : (tensor<6x2xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
// CHECK: %[[R:.*]] = ds.reshape %[[L]] [24] : (tensor<6x4xf32>) -> tensor<24xf32>
// CHECK: %[[S:.*]] = ds.reshape %[[R]] [2, 3, 2, 2] {ds.values = ["y"]}
// CHECK: return %[[S]]
func.func @bias_of_heads(%x: tensor<6x2xf32>) -> tensor<2x3x2x2xf32> {
  %w = ds.constant dense<1.0> : tensor<2x4xf32>
  %b = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %1 = ds.reshape %0 [24] {ds.values = ["a"]} : (tensor<6x4xf32>) -> tensor<24xf32>
  %2 = ds.reshape %1 [2, 3, 2, 2] {ds.values = ["b"]} : (tensor<24xf32>) -> tensor<2x3x2x2xf32>
  %3 = ds.binary add %2, %b {ds.values = ["y"]} : (tensor<2x3x2x2xf32>, tensor<2x2xf32>) -> tensor<2x3x2x2xf32>
  return %3 : tensor<2x3x2x2xf32>
}

// -----

// The product of a branch's bias is computed where it was: not for each turn of a loop.
// CHECK-LABEL: func.func @bias_in_a_branch
// CHECK: ds.linear %arg0, %{{[a-z0-9_]*}} :
// CHECK: scf.if
// CHECK: ds.binary add
func.func @bias_in_a_branch(%x: tensor<3x2xf32>, %c: i1) -> tensor<3x2xf32> {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = scf.if %c -> tensor<3x2xf32> {
    %2 = ds.binary add %0, %b : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
    scf.yield %2 : tensor<3x2xf32>
  } else {
    scf.yield %x : tensor<3x2xf32>
  }
  return %1 : tensor<3x2xf32>
}

// -----

// Not of the last axes as a whole, and where the product without it is read, too.
// CHECK-LABEL: func.func @bias_of_some_heads
// CHECK-COUNT-3: ds.binary add
func.func @bias_of_some_heads(%x: tensor<6x2xf32>) -> (tensor<6x2x2xf32>, tensor<3x2x4xf32>, tensor<6x2x2xf32>, tensor<6x2x2xf32>) {
  %w = ds.constant dense<1.0> : tensor<2x4xf32>
  %b = ds.constant dense<[[1.0], [3.0]]> : tensor<2x1xf32>
  %c = ds.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %d = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %1 = ds.reshape %0 [6, 2, 2] : (tensor<6x4xf32>) -> tensor<6x2x2xf32>
  // expected-remark@+1 {{bias not taken into linear: it has the type 'tensor<2x1xf32>', expected one axis of 4, or the last axes of what a reshape makes of the product}}
  %2 = ds.binary add %1, %b : (tensor<6x2x2xf32>, tensor<2x1xf32>) -> tensor<6x2x2xf32>
  %3 = ds.matmul %x, %w transpose [false, false] : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %4 = ds.reshape %3 [3, 2, 4] : (tensor<6x4xf32>) -> tensor<3x2x4xf32>
  // expected-remark@+1 {{bias not taken into linear}}
  %5 = ds.binary add %4, %c : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<3x2x4xf32>
  %6 = ds.matmul %x, %w transpose [false, false] : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %7 = ds.reshape %6 [6, 2, 2] : (tensor<6x4xf32>) -> tensor<6x2x2xf32>
  %8 = ds.binary add %7, %d : (tensor<6x2x2xf32>, tensor<2x2xf32>) -> tensor<6x2x2xf32>
  return %2, %5, %8, %7 : tensor<6x2x2xf32>, tensor<3x2x4xf32>, tensor<6x2x2xf32>, tensor<6x2x2xf32>
}

// -----

// As many numbers as columns, but for rows and heads: its axis of size 1 is not the product's.
// CHECK-LABEL: func.func @bias_of_rows
// CHECK: ds.binary add
func.func @bias_of_rows(%x: tensor<2x2xf32>) -> tensor<2x2x2xf32> attributes {ds.entry} {
  %w = ds.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %b = ds.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = ds.reshape %0 [2, 2, 2] : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
  // expected-remark@+1 {{bias not taken into linear}}
  %2 = ds.binary add %1, %b : (tensor<2x2x2xf32>, tensor<2x2x1xf32>) -> tensor<2x2x2xf32>
  return %2 : tensor<2x2x2xf32>
}

// -----

// CHECK-LABEL: func.func @bias_of_another_shape
// CHECK: %[[Y:.*]] = ds.linear
// CHECK: ds.binary add %[[Y]]
func.func @bias_of_another_shape(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = ds.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ds.constant dense<1.0> : tensor<3x1xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{bias not taken into linear: it has the type 'tensor<3x1xf32>', expected one axis of 2}}
  %1 = ds.binary add %0, %b : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func @weight_of_rank_three
// CHECK-NOT: ds.linear
func.func @weight_of_rank_three(%x: tensor<2x3x4xf32>) -> tensor<2x3x2xf32> {
  %w = ds.constant dense<1.0> : tensor<2x4x2xf32>
  // expected-remark @+1 {{linear not recomposed: the weight has rank 3, expected 2}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<2x3x4xf32>, tensor<2x4x2xf32>) -> tensor<2x3x2xf32>
  return %0 : tensor<2x3x2xf32>
}

// -----

// A product of two run-time values is no near miss.
// CHECK-LABEL: func.func @run_time_weight
// CHECK-NOT: ds.linear
func.func @run_time_weight(%x: tensor<3x4xf32>, %w: tensor<4x2xf32>) -> tensor<3x2xf32> {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

// Parameters in states: what recipes do to weights is done by ops of the program.
// CHECK-LABEL: func.func @states
// CHECK-DAG: %[[W:.*]] = ds.transpose %arg1 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[B:.*]] = ds.reshape %arg2 [8] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK: %[[Y:.*]] = ds.linear %arg0, %[[W]], %[[B]] {ds.values = ["y"]}
// CHECK-NEXT: return %[[Y]], %arg1, %arg2
// CHECK-NOT: ds.recipe
func.func @states(%x: tensor<?x4xf32>, %w: tensor<8x4xf32> {ds.state = "w"}, %b: tensor<1x8xf32> {ds.state = "b"})
    -> (tensor<?x8xf32>, tensor<8x4xf32> {ds.state = "w"}, tensor<1x8xf32> {ds.state = "b"}) {
  %0 = ds.matmul %x, %w transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  %y = ds.binary add %b, %0 {ds.values = ["y"]} : (tensor<1x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y, %w, %b : tensor<?x8xf32>, tensor<8x4xf32>, tensor<1x8xf32>
}

// -----

// What is made of a state is a parameter, too: joined with a weight, scaled, cut.
// CHECK-LABEL: func.func @made_of_states
// CHECK: %[[J:.*]] = ds.concat 1
// CHECK: %[[S:.*]] = ds.binary mul %[[J]]
// CHECK: %[[W:.*]] = ds.slice %[[S]]
// CHECK: ds.linear %arg0, %[[W]] :
func.func @made_of_states(%x: tensor<?x4xf32>, %w: tensor<4x2xf32> {ds.state = "w"})
    -> (tensor<?x3xf32>, tensor<4x2xf32> {ds.state = "w"}) {
  %half = ds.constant dense<0.5> : tensor<f32>
  %c = ds.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %0 = ds.concat 1 %w, %c : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %1 = ds.binary mul %0, %half : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = ds.slice %1 starts [0, 1] sizes [4, 3] steps [1, 1] : (tensor<4x4xf32>) -> tensor<4x3xf32>
  %3 = ds.matmul %x, %2 transpose [false, false] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  return %3, %w : tensor<?x3xf32>, tensor<4x2xf32>
}

// -----

// A state that an input was added to is no parameter.
// CHECK-LABEL: func.func @made_of_an_input
// CHECK-NOT: ds.linear
func.func @made_of_an_input(%x: tensor<?x4xf32>, %z: tensor<4x2xf32>, %w: tensor<4x2xf32> {ds.state = "w"})
    -> (tensor<?x2xf32>, tensor<4x2xf32> {ds.state = "w"}) {
  %0 = ds.binary add %w, %z : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = ds.matmul %x, %0 transpose [false, false] : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %1, %w : tensor<?x2xf32>, tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @state_of_a_dynamic_size
// CHECK-NOT: ds.linear
func.func @state_of_a_dynamic_size(%x: tensor<?x4xf32>, %w: tensor<4x?xf32> {ds.dims = [4, "n"], ds.state = "w"})
    -> (tensor<?x?xf32>, tensor<4x?xf32> {ds.state = "w"}) {
  // expected-remark @+1 {{linear not recomposed: the weight has a dynamic size}}
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x4xf32>, tensor<4x?xf32>) -> tensor<?x?xf32>
  return %0, %w : tensor<?x?xf32>, tensor<4x?xf32>
}

// -----

// Inside of a gradient, whose arguments stand for its operands.
// CHECK-LABEL: func.func @inside_of_a_gradient
// CHECK: train.gradient
// CHECK: ds.linear
func.func @inside_of_a_gradient(%x: tensor<3x4xf32>, %w: tensor<4x2xf32> {ds.state = "w"})
    -> (tensor<4x2xf32>, tensor<4x2xf32> {ds.state = "w"}) {
  %0 = train.gradient (%w) at (%x) {
  ^bb0(%a: tensor<4x2xf32>, %b: tensor<3x4xf32>):
    %1 = ds.matmul %b, %a transpose [false, false] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %2 = ds.reduce sum %1 axes [0, 1] keep false : (tensor<3x2xf32>) -> tensor<f32>
    train.yield %2 : tensor<f32>
  } : (tensor<4x2xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>
  return %0, %w : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// What is differentiated varies: a constant's argument is transposed by the program, not in a recipe.
// CHECK-LABEL: func.func @gradient_of_a_constant
// CHECK: train.gradient
// CHECK: ds.transpose
// CHECK: ds.linear
func.func @gradient_of_a_constant(%x: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %w = ds.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %0 = train.gradient (%w) at (%x) {
  ^bb0(%a: tensor<2x4xf32>, %b: tensor<3x4xf32>):
    %1 = ds.matmul %b, %a transpose [false, true] : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
    %2 = ds.reduce sum %1 axes [0, 1] keep false : (tensor<3x2xf32>) -> tensor<f32>
    train.yield %2 : tensor<f32>
  } : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
