// RUN: ds-opt %s --split-input-file --canonicalize | FileCheck %s
// CHECK-LABEL: func.func @moves_nothing
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @moves_nothing(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = ds.reshape %x [4, 2] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = ds.broadcast %x [1, 2] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = ds.slice %x starts [0, 0] sizes [4, 2] steps [1, 1] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = ds.transpose %x [0, 1] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0, %1, %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// Equal types do not say that a place or a size of the run is legal.
// CHECK-LABEL: func.func @requires
// CHECK-NEXT: %[[C:.*]] = ds.constant
// CHECK-NEXT: %[[E:.*]] = ds.broadcast %arg0 ["s[0]"]
// CHECK-NEXT: %[[S:.*]] = ds.slice %arg0 starts ["s[0]"]
// CHECK-NEXT: %[[N:.*]] = ds.broadcast %[[C]] ["s[0]"]
// CHECK-NEXT: return %[[E]], %[[S]], %[[N]]
func.func @requires(%x: tensor<4xf32>, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = ds.broadcast %x ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.slice %x starts ["s[0]"] sizes [4] steps [1] : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.constant dense<1.0> : tensor<4xf32>
  %3 = ds.broadcast %2 ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A reshape between two is left out where its sizes are known to fit.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: ds.reshape %arg0 [2, 6]
// CHECK-NEXT: %[[R:.*]] = ds.reshape %arg1 ["s[0]", "s[1]"]
// CHECK-NEXT: ds.reshape %[[R]] ["n"]
func.func @reshapes(%x: tensor<3x4xf32>, %y: tensor<?xf32> {ds.dims = ["n"]},
                    %s: tensor<2xi64> {ds.name = "s", ds.dims = [2]}) -> (tensor<2x6xf32>, tensor<?xf32>) {
  %0 = ds.reshape %x [12] : (tensor<3x4xf32>) -> tensor<12xf32>
  %1 = ds.reshape %0 [2, 6] : (tensor<12xf32>) -> tensor<2x6xf32>
  %2 = ds.reshape %y ["s[0]", "s[1]"] : (tensor<?xf32>) -> tensor<?x?xf32>
  %3 = ds.reshape %2 ["n"] : (tensor<?x?xf32>) -> tensor<?xf32>
  return %1, %3 : tensor<2x6xf32>, tensor<?xf32>
}
