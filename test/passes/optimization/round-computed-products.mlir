// RUN: ds-opt %s --ds-round-products="type=bf16 computed=true" | FileCheck %s
// RUN: ds-opt %s --ds-round-products="type=bf16 computed=true machine=512,bfloat_dot=2" | FileCheck %s --check-prefix=PAIRS
// RUN: ds-opt %s --ds-round-products="type=f16 computed=true" | FileCheck %s --check-prefix=HALF
// RUN: not ds-opt %s --ds-round-products=type=bf16 2>&1 | FileCheck %s --check-prefix=CONSTANT
// The numbers are checked by test/integration/training_precision_cases.py.

// What is computed while the program runs is rounded where it is made, once for all products, and widened again; f64 stays.
// CHECK-LABEL: func.func @products
// CHECK-DAG: %[[XB:.*]] = ds.cast %arg0 to bf16
// CHECK-DAG: %[[X:.*]] = ds.cast %[[XB]] to f32
// CHECK-DAG: %[[WB:.*]] = ds.cast %arg1 to bf16
// CHECK-DAG: %[[W:.*]] = ds.cast %[[WB]] to f32
// CHECK: %[[Y:.*]] = ds.linear %[[X]], %[[W]]
// CHECK: %[[G:.*]] = ds.cast %{{.*}} to f32 : (tensor<?x8xbf16>) -> tensor<?x8xf32>
// CHECK: ds.matmul %[[X]], %[[G]] transpose [true, false]
// CHECK: ds.matmul %arg2, %arg2
// Where pairs of bf16 are multiplied faster, products read them; they lie along K.
// PAIRS-LABEL: func.func @products
// PAIRS-DAG: %[[X:.*]] = ds.cast %arg0 to bf16
// PAIRS-DAG: %[[W:.*]] = ds.cast %arg1 to bf16
// PAIRS: ds.linear %[[X]], %[[W]] {wide} : (tensor<?x4xbf16>, tensor<4x8xbf16>) -> tensor<?x8xf32>
// PAIRS: %[[T:.*]] = ds.transpose %[[X]] {{.*}} : (tensor<?x4xbf16>) -> tensor<4x?xbf16>
// PAIRS: ds.matmul %[[T]], %{{.*}} transpose [false, false] {wide} : (tensor<4x?xbf16>, tensor<?x8xbf16>) -> tensor<4x8xf32>
// PAIRS: ds.matmul %arg2, %arg2
// HALF: ds.cast %arg0 to f16
// What has been widened from the type is rounded already: products of pairs read what it was made of, others read it as it is.
// CHECK-LABEL: func.func @parameters
// CHECK: %[[WIDE:.*]] = ds.cast %arg1 to f32
// CHECK-NOT: ds.cast %[[WIDE]]
// CHECK: ds.linear %{{.*}}, %[[WIDE]] :
// PAIRS-LABEL: func.func @parameters
// PAIRS: ds.linear %{{.*}}, %arg1 {wide} : (tensor<?x4xbf16>, tensor<4x8xbf16>) -> tensor<?x8xf32>
// HALF-LABEL: func.func @parameters
// HALF: ds.cast %{{.*}} to f16 : (tensor<4x8xf32>)
// CONSTANT: remark: product not rounded: its weight is computed while the program runs
// CONSTANT: error: ds-round-products: no product was rounded
func.func @products(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<4x8xf32>, %d: tensor<2x2xf64>) -> (tensor<4x8xf32>, tensor<2x2xf64>) attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %1 = ds.unary tanh %0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = ds.matmul %x, %1 transpose [true, false] : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<4x8xf32>
  %3 = ds.matmul %d, %d transpose [false, false] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %2, %3 : tensor<4x8xf32>, tensor<2x2xf64>
}
func.func @parameters(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<4x8xbf16>) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.cast %w to f32 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %1 = ds.linear %x, %0 : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
// Convolutions as well; filters that a group has for itself stay f32 in their kernel.
// CHECK-LABEL: func.func @convolutions
// CHECK: ds.conv {{.*}} groups 1 : (tensor<?x4x?xf32>, tensor<8x4x3xf32>)
// PAIRS-LABEL: func.func @convolutions
// PAIRS: ds.conv %{{.*}}, %arg1 {{.*}} groups 1 {wide} : (tensor<?x4x?xbf16>, tensor<8x4x3xbf16>) -> tensor<?x8x?xf32>
// PAIRS: ds.conv %{{.*}}, %{{.*}} groups 4 : (tensor<?x4x?xf32>, tensor<4x1x3xf32>)
// HALF-LABEL: func.func @convolutions
// HALF: ds.conv {{.*}} groups 1 : (tensor<?x4x?xf32>, tensor<8x4x3xf32>)
func.func @convolutions(%x: tensor<?x4x?xf32> {ds.dims = ["n", 4, "s"]}, %w: tensor<8x4x3xbf16>, %own: tensor<4x1x3xf32>)
    -> (tensor<?x8x?xf32>, tensor<?x4x?xf32>) attributes {ds.entry} {
  %0 = ds.cast %w to f32 : (tensor<8x4x3xbf16>) -> tensor<8x4x3xf32>
  %1 = ds.conv %x, %0 strides [1] pads [1, 1] dilations [1] groups 1 : (tensor<?x4x?xf32>, tensor<8x4x3xf32>) -> tensor<?x8x?xf32>
  %2 = ds.conv %x, %own strides [1] pads [1, 1] dilations [1] groups 4 : (tensor<?x4x?xf32>, tensor<4x1x3xf32>) -> tensor<?x4x?xf32>
  return %1, %2 : tensor<?x8x?xf32>, tensor<?x4x?xf32>
}
