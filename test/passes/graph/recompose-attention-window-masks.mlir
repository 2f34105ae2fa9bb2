// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
//
// Windows beside other masks, as numbers that are added, and two in one attention.

// Beside another condition.
// CHECK-LABEL: func.func @with_padding
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %arg3 else -1.000000e+09, window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @with_padding(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %pad: tensor<1x?xi1> {ds.dims = [1, "p + s"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %a = ds.binary bit_and %m, %pad : (tensor<?x?xi1>, tensor<1x?xi1>) -> tensor<?x?xi1>
  %f = ds.select %a, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// One of two conditions suffices.
// CHECK-LABEL: func.func @either
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @either(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %pad: tensor<1x?xi1> {ds.dims = [1, "p + s"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %a = ds.binary bit_or %m, %pad : (tensor<?x?xi1>, tensor<1x?xi1>) -> tensor<?x?xi1>
  %f = ds.select %a, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// What two conditions hide together.
// CHECK-LABEL: func.func @hidden_by_both
// CHECK: ds.attention %arg0, %arg1, %arg2 [hide %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @hidden_by_both(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %pad: tensor<1x?xi1> {ds.dims = [1, "p + s"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %a = ds.binary bit_and %m, %pad : (tensor<?x?xi1>, tensor<1x?xi1>) -> tensor<?x?xi1>
  %f = ds.select %a, %low, %x : (tensor<?x?xi1>, tensor<f32>, tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// What one of two hides.
// CHECK-LABEL: func.func @hidden_by_either
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09, window else -1.000000e+09] past ["p"] left -1 scale 1.000000e+00
func.func @hidden_by_either(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %pad: tensor<1x?xi1> {ds.dims = [1, "p + s"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %a = ds.binary bit_or %m, %pad : (tensor<?x?xi1>, tensor<1x?xi1>) -> tensor<?x?xi1>
  %f = ds.select %a, %low, %x : (tensor<?x?xi1>, tensor<f32>, tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Numbers to add; NaN stays NaN.
// CHECK-LABEL: func.func @added
// CHECK: ds.attention %arg0, %arg1, %arg2 [window_add else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @added(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %b = ds.select %m, %zero, %low : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %f = ds.binary add %x, %b : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Numbers to subtract stay a mask.
// CHECK-LABEL: func.func @subtracted
// CHECK: ds.attention %arg0, %arg1, %arg2 [add %{{.*}}] scale 1.000000e+00
func.func @subtracted(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %b = ds.select %m, %zero, %low : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %f = ds.binary sub %x, %b : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Not 0 where a place is seen.
// CHECK-LABEL: func.func @not_zero
// CHECK: ds.attention %arg0, %arg1, %arg2 [window_mask %{{.*}} else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @not_zero(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %half = ds.constant dense<0.5> : tensor<f32>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %b = ds.select %m, %half, %low : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %f = ds.binary add %x, %b : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A second window around the first one is read.
// CHECK-LABEL: func.func @two_windows
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, keep %{{.*}} else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @two_windows(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %n = ds.binary ge %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %g = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %f = ds.select %n, %g, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: it has another window than the masks around it}}
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A window whose width a run tells.
// CHECK-LABEL: func.func @run_time_width
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @run_time_width(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %n = ds.binary ge %col, %row : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %a = ds.binary bit_and %m, %n : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %f = ds.select %a, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  // expected-remark @+1 {{attention reads a mask that is nearly a window: its window has no constant width}}
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A choice of two numbers is read as a window by the one that fits the window before it; nothing is nearly one.
// CHECK-LABEL: func.func @either_number
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09, window_mask %{{.*}} else 1.000000e+00] past ["p"] left -1 scale 1.000000e+00
func.func @either_number(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %half = ds.constant dense<0.5> : tensor<f32>
  %one = ds.constant dense<1.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %g = ds.select %m, %low, %x : (tensor<?x?xi1>, tensor<f32>, tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %b = ds.select %m, %one, %half : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %f = ds.binary add %g, %b : (tensor<2x4x?x?xf32>, tensor<?x?xf32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Remainders of one number, where a run finds one, are all 0: they are repeated, and do not count columns.
// CHECK-LABEL: func.func @repeated_remainder
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @repeated_remainder(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x5x8xf32>, %v: tensor<2x4x5x8xf32>, %z: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x?x5xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %flat = ds.iota 0 ["n"] : tensor<?xi64>
  %five = ds.constant dense<5> : tensor<i64>
  %period = ds.broadcast %five [5] : (tensor<i64>) -> tensor<5xi64>
  %col = ds.binary mod %flat, %period : (tensor<?xi64>, tensor<5xi64>) -> tensor<5xi64>
  %m = ds.binary le %col, %row : (tensor<5xi64>, tensor<?x1xi64>) -> tensor<?x5xi1>
  %f = ds.select %m, %x, %low : (tensor<?x5xi1>, tensor<2x4x?x5xf32>, tensor<f32>) -> tensor<2x4x?x5xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x5xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}
