// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Masks that hide places by their distance become a window; nearly such masks are read. How exporters come to them is
// tested with numbers in test/integration/window_cases.py.

// What is later than a row behind a cache.
// CHECK-LABEL: func.func @doc
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @doc(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A row does not see its own place.
// CHECK-LABEL: func.func @strict
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right -1 scale 1.000000e+00
func.func @strict(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary lt %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// One place ahead.
// CHECK-LABEL: func.func @ahead
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right 1 scale 1.000000e+00
func.func @ahead(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %one = ds.constant dense<1> : tensor<i64>
  %next = ds.binary add %place, %one : (tensor<?x1xi64>, tensor<i64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %next : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Rows that begin with the first place.
// CHECK-LABEL: func.func @without_past
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] right 0 scale 1.000000e+00
func.func @without_past(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %row : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Neither later nor earlier.
// CHECK-LABEL: func.func @equal
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @equal(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary eq %col, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Every other place.
// CHECK-LABEL: func.func @double
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @double(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %twice = ds.binary add %col, %col : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  %m = ds.binary le %twice, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// The same places for all rows: no distance.
// CHECK-LABEL: func.func @one_row
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @one_row(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %past : (tensor<1x?xi64>, tensor<1xi64>) -> tensor<1x?xi1>
  %f = ds.select %m, %x, %low : (tensor<1x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does not hold every place.
// CHECK-LABEL: func.func @counted_in_i8
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @counted_in_i8(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to i8 : (tensor<1x?xi64>) -> tensor<1x?xi8>
  %r = ds.cast %place to i8 : (tensor<?x1xi64>) -> tensor<?x1xi8>
  %m = ds.binary le %c, %r : (tensor<1x?xi8>, tensor<?x1xi8>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does not hold every place.
// CHECK-LABEL: func.func @counted_in_f16
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @counted_in_f16(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to f16 : (tensor<1x?xi64>) -> tensor<1x?xf16>
  %r = ds.cast %place to f16 : (tensor<?x1xi64>) -> tensor<?x1xf16>
  %m = ds.binary le %c, %r : (tensor<1x?xf16>, tensor<?x1xf16>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does not hold every place.
// CHECK-LABEL: func.func @counted_in_bf16
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @counted_in_bf16(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to bf16 : (tensor<1x?xi64>) -> tensor<1x?xbf16>
  %r = ds.cast %place to bf16 : (tensor<?x1xi64>) -> tensor<?x1xbf16>
  %m = ds.binary le %c, %r : (tensor<1x?xbf16>, tensor<?x1xbf16>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does.
// CHECK-LABEL: func.func @counted_in_i32
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @counted_in_i32(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to i32 : (tensor<1x?xi64>) -> tensor<1x?xi32>
  %r = ds.cast %place to i32 : (tensor<?x1xi64>) -> tensor<?x1xi32>
  %m = ds.binary le %c, %r : (tensor<1x?xi32>, tensor<?x1xi32>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does.
// CHECK-LABEL: func.func @counted_in_f32
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @counted_in_f32(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to f32 : (tensor<1x?xi64>) -> tensor<1x?xf32>
  %r = ds.cast %place to f32 : (tensor<?x1xi64>) -> tensor<?x1xf32>
  %m = ds.binary le %c, %r : (tensor<1x?xf32>, tensor<?x1xf32>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// A type that does.
// CHECK-LABEL: func.func @counted_in_f64
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] past ["p"] right 0 scale 1.000000e+00
func.func @counted_in_f64(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.cast %col to f64 : (tensor<1x?xi64>) -> tensor<1x?xf64>
  %r = ds.cast %place to f64 : (tensor<?x1xi64>) -> tensor<?x1xf64>
  %m = ds.binary le %c, %r : (tensor<1x?xf64>, tensor<?x1xf64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Places that a run gives.
// CHECK-LABEL: func.func @positions
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %arg3 right 0 scale 1.000000e+00
func.func @positions(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %given: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %given : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// One place before those.
// CHECK-LABEL: func.func @positions_ahead
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %arg3 right -1 scale 1.000000e+00
func.func @positions_ahead(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %given: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary lt %col, %given : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// What is earlier than those.
// CHECK-LABEL: func.func @positions_earlier
// CHECK: ds.attention %arg0, %arg1, %arg2 [window else -1.000000e+09] positions %arg3 left 0 scale 1.000000e+00
func.func @positions_earlier(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %given: tensor<?x1xi64> {ds.dims = ["s", 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary ge %col, %given : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// One length for all rows is no place of each.
// CHECK-LABEL: func.func @one_position
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @one_position(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %given: tensor<1x1xi64> {ds.dims = [1, 1], ds.bound = 9}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m = ds.binary le %col, %given : (tensor<1x?xi64>, tensor<1x1xi64>) -> tensor<1x?xi1>
  %f = ds.select %m, %x, %low : (tensor<1x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}

// -----

// Columns of another name: only a run tells whether they are as many.
// CHECK-LABEL: func.func @other_columns
// CHECK: ds.attention %arg0, %arg1, %arg2 [keep %{{.*}} else -1.000000e+09] scale 1.000000e+00
func.func @other_columns(%q: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "s", 8]}, %k: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %v: tensor<2x4x?x8xf32> {ds.dims = [2, 4, "p + s", 8]}, %of: tensor<?xf32> {ds.dims = ["t"]}) -> tensor<2x4x?x8xf32> {
  %low = ds.constant dense<-1.0e+9> : tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %x = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x?xf32>
  %row = ds.iota 0 ["s", 1] : tensor<?x1xi64>
  %col = ds.iota 1 [1, "p + s"] : tensor<1x?xi64>
  %past = ds.shape ["p"] : tensor<1xi64>
  %place = ds.binary add %row, %past : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %c = ds.iota 1 [1, "t"] : tensor<1x?xi64>
  %m = ds.binary le %c, %place : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %f = ds.select %m, %x, %low : (tensor<?x?xi1>, tensor<2x4x?x?xf32>, tensor<f32>) -> tensor<2x4x?x?xf32>
  %w = ds.softmax %f axis 3 log false : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = ds.matmul %w, %v transpose [false, false] : (tensor<2x4x?x?xf32>, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %y : tensor<2x4x?x8xf32>
}
