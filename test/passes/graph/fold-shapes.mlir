// RUN: ds-opt %s --split-input-file --ds-fold-shapes | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fold-shapes --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[SHAPE:.*]] = ds.shape ["batch*seq"] {ds.values = ["count"]} : tensor<1xi64>
// CHECK-NEXT: return %[[SHAPE]]
func.func @doc(%x: tensor<?x?xf32> {ds.dims = ["batch", "seq"]}) -> tensor<1xi64> {
  %0 = ds.shape ["batch", "seq"] : tensor<2xi64>
  %1 = ds.reduce prod %0 axes [0] keep true {ds.values = ["count"]} : (tensor<2xi64>) -> tensor<1xi64>
  return %1 : tensor<1xi64>
}

// -----

// The chain of an exporter: Shape, Gather, Mul, Concat. All numbers, so the result is a constant.
// CHECK-LABEL: func.func @constant_sizes
// CHECK-NEXT: %[[C:.*]] = ds.constant dense<[2, 24]> : tensor<2xi64>
// CHECK-NEXT: return %[[C]]
func.func @constant_sizes() -> tensor<2xi64> {
  %0 = ds.shape [2, 12] : tensor<2xi64>
  %1 = ds.constant dense<0> : tensor<1xi64>
  %2 = ds.constant dense<-1> : tensor<1xi64>
  %3 = ds.gather 0 %0, %1 : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %4 = ds.gather 0 %0, %2 : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %5 = ds.binary mul %3, %4 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %6 = ds.concat 0 %3, %5 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %6 : tensor<2xi64>
}

// -----

// Whole numbers stay exact in float, as in the square root of the head size; sizes of run time stay integers.
// CHECK-LABEL: func.func @floats
// CHECK: %[[SHAPE:.*]] = ds.shape ["seq"] : tensor<1xi64>
// CHECK: %[[CAST:.*]] = ds.cast %[[SHAPE]] to f32
// CHECK: %[[C:.*]] = ds.constant dense<3.200000e+01> : tensor<1xf32>
// CHECK: return %[[CAST]], %[[C]]
func.func @floats(%x: tensor<?x32xf32> {ds.dims = ["seq", 32]}) -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = ds.shape ["seq"] : tensor<1xi64>
  %1 = ds.cast %0 to f32 : (tensor<1xi64>) -> tensor<1xf32>
  %2 = ds.shape [32] : tensor<1xi64>
  %3 = ds.cast %2 to f32 : (tensor<1xi64>) -> tensor<1xf32>
  return %1, %3 : tensor<1xf32>, tensor<1xf32>
}

// -----

// Sizes in attributes become canonical, and types as static as the sizes allow, up to the function's type.
// CHECK-LABEL: func.func @refines
// CHECK-SAME: -> tensor<?x12x32xf32>
// CHECK-NEXT: ds.reshape %{{.*}} ["batch", 12, 32] {{.*}} -> tensor<?x12x32xf32>
func.func @refines(%x: tensor<?x384xf32> {ds.dims = ["batch", 384]}) -> tensor<?x?x?xf32> {
  %0 = ds.reshape %x ["1*batch", "3*4", "floordiv(384, 12)"] : (tensor<?x384xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Movement that moves nothing is seen by sizes, where types only say "?".
// CHECK-LABEL: func.func @removes_movement
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @removes_movement(%x: tensor<?x?xf32> {ds.dims = ["batch", "seq"]})
    -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = ds.reshape %x ["batch", "seq"] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = ds.broadcast %x [1, "seq"] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = ds.slice %x starts [0, 0] sizes ["batch", "seq"] steps [1, 1] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = ds.cast %x to f32 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %1, %2, %3 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Movement that moves something stays: two unknown sizes are not one.
// CHECK-LABEL: func.func @keeps_movement
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: ds.slice
// CHECK-NEXT: ds.slice
func.func @keeps_movement(%x: tensor<?x?xf32> {ds.dims = ["batch", "seq"]})
    -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = ds.reshape %x ["seq", "batch"] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = ds.slice %x starts [0, 0] sizes ["batch", "seq"] steps [1, -1] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = ds.slice %x starts [1, 0] sizes ["batch - 1", "seq"] steps [1, 1] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Data is not shape arithmetic: values that are read at run time stay.
// CHECK-LABEL: func.func @keeps_data
// CHECK: ds.binary add
func.func @keeps_data(%x: tensor<100xi64> {ds.dims = [100]}) -> tensor<100xi64> {
  %0 = ds.binary add %x, %x : (tensor<100xi64>, tensor<100xi64>) -> tensor<100xi64>
  return %0 : tensor<100xi64>
}

// -----

// Elements of a small integer input are symbols of their own: they steer sizes.
// CHECK-LABEL: func.func @input_elements
// CHECK: %[[S:.*]] = ds.shape ["shape[1]", "shape[0]"]
// CHECK: return %[[S]]
func.func @input_elements(%s: tensor<2xi64> {ds.dims = [2], ds.name = "shape"}) -> tensor<2xi64> {
  %0 = ds.slice %s starts [1] sizes [2] steps [-1] : (tensor<2xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

// Narrow integers wrap: what is left of a constant is known.
// CHECK-LABEL: func.func @wraps
// CHECK: ds.constant dense<705032704> : tensor<1xi32>
func.func @wraps() -> tensor<1xi32> {
  %0 = ds.constant dense<5000000000> : tensor<1xi64>
  %1 = ds.cast %0 to i32 : (tensor<1xi64>) -> tensor<1xi32>
  return %1 : tensor<1xi32>
}

// -----

// Whether elements of inputs wrap is known only when the model runs: a kernel computes what might have.
// CHECK-LABEL: func.func @keeps_wrapping
// CHECK: %[[SUM:.*]] = ds.binary add
// CHECK: %[[LESS:.*]] = ds.binary lt %{{.*}}, %[[SUM]]
// CHECK: %[[WIDE:.*]] = ds.cast %[[SUM]] to i64
// CHECK: %[[LOW:.*]] = ds.cast %{{.*}} to i32
// CHECK: return %[[LESS]], %[[WIDE]], %[[LOW]]
func.func @keeps_wrapping(%x: tensor<1xi32> {ds.dims = [1], ds.name = "x"}, %y: tensor<1xi64> {ds.dims = [1], ds.name = "y"})
    -> (tensor<1xi1>, tensor<1xi64>, tensor<1xi32>) {
  %one = ds.constant dense<1> : tensor<1xi32>
  %sum = ds.binary add %x, %one : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %less = ds.binary lt %x, %sum : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
  %wide = ds.cast %sum to i64 : (tensor<1xi32>) -> tensor<1xi64>
  %low = ds.cast %y to i32 : (tensor<1xi64>) -> tensor<1xi32>
  return %less, %wide, %low : tensor<1xi1>, tensor<1xi64>, tensor<1xi32>
}

// -----

// In a wider type they do not.
// CHECK-LABEL: func.func @cannot_wrap
// CHECK: %[[S:.*]] = ds.shape ["1000003*x[0] + 1"] : tensor<1xi64>
// CHECK: %[[TRUE:.*]] = ds.constant dense<true>
// CHECK: return %[[S]], %[[TRUE]]
func.func @cannot_wrap(%x: tensor<1xi32> {ds.dims = [1], ds.name = "x"}) -> (tensor<1xi64>, tensor<1xi1>) {
  %one = ds.constant dense<1> : tensor<1xi64>
  %factor = ds.constant dense<1000003> : tensor<1xi64>
  %wide = ds.cast %x to i64 : (tensor<1xi32>) -> tensor<1xi64>
  %product = ds.binary mul %wide, %factor : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %sum = ds.binary add %product, %one : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %less = ds.binary lt %product, %sum : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
  return %sum, %less : tensor<1xi64>, tensor<1xi1>
}

// -----

// A dimension may be 0, by which nothing is divided, and more than 32 bits hold.
// CHECK-LABEL: func.func @keeps_what_may_fail
// CHECK: %[[REST:.*]] = ds.binary mod
// CHECK: %[[NARROW:.*]] = ds.cast %{{.*}} to i32
// CHECK: return %[[REST]], %[[NARROW]]
func.func @keeps_what_may_fail(%x: tensor<?x?xf32> {ds.dims = ["n", "k"]}) -> (tensor<1xi64>, tensor<1xi32>) {
  %product = ds.shape ["k*n"] : tensor<1xi64>
  %k = ds.shape ["k"] : tensor<1xi64>
  %rest = ds.binary mod %product, %k : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %narrow = ds.cast %k to i32 : (tensor<1xi64>) -> tensor<1xi32>
  return %rest, %narrow : tensor<1xi64>, tensor<1xi32>
}

// -----

// Inside a branch, where the result's type is compared with that of the other one, it stays.
// CHECK-LABEL: func.func @keeps_types_of_branches
// CHECK: scf.if %{{.*}} -> (tensor<?xf32>)
func.func @keeps_types_of_branches(%c: i1, %x: tensor<?xf32> {ds.dims = ["n"]}, %y: tensor<4xf32> {ds.dims = [4]})
    -> tensor<?xf32> {
  %0 = scf.if %c -> tensor<?xf32> {
    %1 = ds.unary exp %x : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  } else {
    %2 = ds.reshape %y [4] : (tensor<4xf32>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// -----

// What a gradient varies has no known elements, even where its value has.
// CHECK-LABEL: func.func @varied_constant
// CHECK: ^bb0(%[[X:.*]]: tensor<2xf32>, %{{.*}}: tensor<2xi64>)
// CHECK: ds.binary mul %[[X]]
// CHECK: ds.constant dense<2> : tensor<1xi64>
func.func @varied_constant() -> (tensor<2xf32>, tensor<1xi64>) {
  %x = ds.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %z = ds.constant dense<1> : tensor<2xi64>
  %dx = train.gradient (%x) at (%z) {
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xi64>):
    %0 = ds.binary mul %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    train.yield %0 : tensor<2xf32>
  } : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  %s = ds.reduce sum %z axes [0] keep true : (tensor<2xi64>) -> tensor<1xi64>
  return %dx, %s : tensor<2xf32>, tensor<1xi64>
}
