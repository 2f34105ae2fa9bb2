// RUN: ds-opt %s --ds-quantize-filters="keep=left group=18" | FileCheck %s
// RUN: ds-opt %s --ds-quantize-filters="keep=left group=18" --verify-diagnostics -o /dev/null
// RUN: ds-opt %s --ds-quantize-filters="scheme=asymmetric" | FileCheck %s --check-prefix=ZERO
// RUN: not ds-opt %s --ds-quantize-filters="scheme=other" 2>&1 | FileCheck %s --check-prefix=SCHEME

// SCHEME: ds-quantize-filters: scheme: expected symmetric or asymmetric, found 'other'

ds.recipe @w {
  %0 = ds.constant dense<1.5> : tensor<12x4x3x3xf32>
  ds.yield %0 : tensor<12x4x3x3xf32>
}
ds.recipe @left {
  %0 = ds.constant dense<1.0> : tensor<12x4x3x3xf32>
  ds.yield %0 : tensor<12x4x3x3xf32>
}

// Two groups of 18 elements a filter. Few filters a group, and those that are named, stay.
// CHECK-LABEL: func.func @filters
// CHECK: %[[C:.*]] = ds.weight @w.filters : tensor<12x2x18xi8>
// CHECK: %[[F:.*]] = ds.cast %[[C]] to f32
// CHECK: %[[S:.*]] = ds.weight @w.filter_scales : tensor<12x2x1xf32>
// CHECK: %[[M:.*]] = ds.binary mul %[[F]], %[[S]]
// CHECK: %[[W:.*]] = ds.reshape %[[M]] [12, 4, 3, 3]
// CHECK: ds.conv %arg0, %[[W]]
// CHECK: ds.conv %arg0, %{{.*}} groups 1
// CHECK: ds.conv %arg1, %{{.*}} groups 6
// ZERO: ds.weight @w.filter_zero_points : tensor<12x1x1xi8>
func.func @filters(%x: tensor<1x4x?x?xf32> {ds.dims = [1, 4, "h", "w"]}, %z: tensor<1x24x?x?xf32> {ds.dims = [1, 24, "h", "w"]})
    -> (tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<12x4x3x3xf32>
  %l = ds.weight @left : tensor<12x4x3x3xf32>
  // expected-remark @+1 {{filters 'w' in 8 bits in groups of 18: 1728 bytes become 528}}
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  // expected-remark @+1 {{filters 'left' are kept: 'left' matches their name or their convolution's}}
  %1 = ds.conv %x, %l strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  // expected-remark @+1 {{filters 'w' are kept: a group has few of them, which walk over the image as they are}}
  %2 = ds.conv %z, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 6 : (tensor<1x24x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  return %0, %1, %2 : tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>
}

// Axes that were left out are between the weight and the convolution.
// CHECK-LABEL: func.func @squeezed
// CHECK: %[[C:.*]] = ds.weight @w.filters : tensor<12x2x18xi8>
// CHECK: %[[M:.*]] = ds.binary mul
// CHECK: %[[W:.*]] = ds.reshape %[[M]] [12, 4, 9]
// CHECK: ds.conv %arg0, %[[W]]
func.func @squeezed(%x: tensor<1x4x?xf32> {ds.dims = [1, 4, "w"]}) -> tensor<1x12x?xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<12x4x3x3xf32>
  %r = ds.reshape %w [12, 4, 9] : (tensor<12x4x3x3xf32>) -> tensor<12x4x9xf32>
  %0 = ds.conv %x, %r strides [1] pads [4, 4] dilations [1] groups 1 : (tensor<1x4x?xf32>, tensor<12x4x9xf32>) -> tensor<1x12x?xf32>
  return %0 : tensor<1x12x?xf32>
}
