// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @gradient_c1_count(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'train.gradient' op C1: expects one argument of the region per operand, found 2 for 1}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    train.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

func.func @gradient_c1_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'train.gradient' op C1: expects argument 0 of type 'tensor<4xf32>', found 'tensor<5xf32>'}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<5xf32>):
    train.yield %a : tensor<5xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

func.func @gradient_c2_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{'train.gradient' op C2: expects one result per x, found 2 for 1}}
  %dx:2 = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    train.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @gradient_c2_type(%x: tensor<4xf32>) -> tensor<4xf64> {
  // expected-error @+1 {{'train.gradient' op C2: expects result 0 of type 'tensor<4xf32>', found 'tensor<4xf64>'}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    train.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf64>
  return %dx : tensor<4xf64>
}

// -----

func.func @gradient_c3_integers(%x: tensor<4xi64>, %z: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{'train.gradient' op C3: expects x 0 of f16, bf16, f32 or f64, found 'tensor<4xi64>'}}
  %dx = train.gradient (%x) at (%z) {
  ^bb0(%a: tensor<4xi64>, %b: tensor<4xf32>):
    train.yield %b : tensor<4xf32>
  } : (tensor<4xi64>, tensor<4xf32>) -> tensor<4xi64>
  return %dx : tensor<4xi64>
}

// -----

func.func @gradient_c4_terminator(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'train.gradient' op C4: expects a region that ends in train.yield}}
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    llvm.unreachable
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}

// -----

func.func @yield_c1_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.cast %a to i64 : (tensor<4xf32>) -> tensor<4xi64>
    // expected-error @+1 {{'train.yield' op C1: expects a tensor of f16, bf16, f32 or f64, found 'tensor<4xi64>'}}
    train.yield %0 : tensor<4xi64>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}
