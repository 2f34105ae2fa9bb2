// RUN: ds-opt %s --split-input-file --ds-observe-products | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-observe-products="bytes=1" | FileCheck %s --check-prefix=FEW
// RUN: ds-opt %s --split-input-file --ds-observe-products="bytes=1 first=1" | FileCheck %s --check-prefix=REST
// RUN: ds-opt %s --split-input-file --ds-observe-products="keep=^q$|^node$" | FileCheck %s --check-prefix=KEEP

// CHECK: module attributes {ds.observed = {w = ["calibration.0"]}}
// CHECK: func.func @doc(%[[X:.*]]: tensor<?x3x4xf32>
// CHECK-SAME: %[[S:.*]]: tensor<4x4xf64> {ds.dims = [4, 4], ds.name = "calibration.0", ds.state = "calibration.0"}
// CHECK-SAME: -> (tensor<4x4xf64> {ds.state = "calibration.0"})
// CHECK-NOT: ds.linear
// CHECK: %[[R:.*]] = ds.reshape %[[X]] ["3*batch", 4]
// CHECK: %[[P:.*]] = ds.matmul %[[R]], %[[R]] transpose [true, false] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[C:.*]] = ds.cast %[[P]] to f64
// CHECK: %[[N:.*]] = ds.binary add %[[S]], %[[C]]
// CHECK: return %[[N]]
func.func @doc(%x: tensor<?x3x4xf32> {ds.name = "x", ds.dims = ["batch", 3, 4]})
    -> (tensor<?x3x20xf32> {ds.name = "y"}) attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x20xf32>
  %0 = ds.linear %x, %w : (tensor<?x3x4xf32>, tensor<4x20xf32>) -> tensor<?x3x20xf32>
  return %0 : tensor<?x3x20xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x20xf32>
  ds.yield %0 : tensor<4x20xf32>
}

// -----

// Products of the same rows share their sums; a weight of two products has those of both; states of the program stay;
// what is computed behind the last rows goes. Rounds begin where the last one ended.
// CHECK: ds.observed = {k = ["calibration.0", "calibration.2"], q = ["calibration.0", "calibration.1"]}
// CHECK: func.func @shared
// CHECK-SAME: -> (tensor<4xf32> {ds.state = "s"}, tensor<4x4xf64> {ds.state = "calibration.0"}, tensor<4x4xf64> {ds.state = "calibration.1"}, tensor<4x4xf64> {ds.state = "calibration.2"})
// CHECK-COUNT-2: ds.linear
// CHECK-NOT: ds.linear
// FEW: ds.observed = {q = ["calibration.0", "calibration.1"]}, ds.unobserved = 1
// REST: ds.observed = {k = ["calibration.0", "calibration.1"]}}
// KEEP: ds.observed = {k = ["calibration.0"]}}
func.func @shared(%x: tensor<2x4xf32> {ds.name = "x", ds.dims = [2, 4]},
                  %s: tensor<4xf32> {ds.name = "s", ds.dims = [4], ds.state = "s"})
    -> (tensor<2x4xf32> {ds.name = "y"}, tensor<4xf32> {ds.state = "s"}) attributes {ds.entry} {
  %q = ds.weight @q : tensor<4x4xf32>
  %k = ds.weight @k : tensor<4x4xf32>
  %0 = ds.linear %x, %q : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = ds.linear %x, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = ds.linear %0, %q : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = ds.linear %2, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("node")
  %4 = ds.binary add %1, %3 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %5 = ds.unary neg %s : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %5 : tensor<2x4xf32>, tensor<4xf32>
}
ds.recipe @q {
  %0 = ds.constant dense<0.5> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
ds.recipe @k {
  %0 = ds.constant dense<0.5> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}
