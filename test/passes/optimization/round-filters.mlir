// RUN: ds-opt %s --ds-round-filters="machine=512,bfloat_dot" --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: ds-opt %s --ds-round-filters="machine=512" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: ds-opt %s --ds-round-filters="machine=512,bfloat_dot=0.9" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: ds-opt %s --ds-round-filters="type=f16 machine=512,bfloat_dot" 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not ds-opt %s --ds-round-filters="type=f8" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not ds-opt %s --ds-round-filters="machine=13" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: ds-opt %s --ds-round-filters="machine=512,bfloat_dot" --ds-round-products="machine=512,bfloat_dot" -o /dev/null
// RUN: ds-opt %s --ds-round-filters="machine=512" --ds-round-products="machine=512" -o /dev/null

// TYPE: ds-round-filters: type: expected bf16 or f16, found 'f8'
// MACHINE: ds-round-filters: machine '13': expected 128, 256, 512 or 1024 bits of a vector, found '13'

ds.recipe @w {
  %0 = ds.constant dense<1.5> : tensor<12x4x3x3xf32>
  ds.yield %0 : tensor<12x4x3x3xf32>
}
ds.recipe @large {
  %0 = ds.constant dense<65520.0> : tensor<12x4x3x3xf32>
  ds.yield %0 : tensor<12x4x3x3xf32>
}

// Filters are stored rounded; an image that two convolutions read is rounded once. Without an instruction for pairs that
// is faster, and for f16, the same numbers are multiplied in f32.
// CHECK: ds.recipe @folded {
// CHECK: ds.cast %{{.*}} to bf16 : (tensor<12x4x3x3xf32>) -> tensor<12x4x3x3xbf16>
// CHECK-LABEL: func.func @filters
// CHECK: %[[X:.*]] = ds.cast %arg0 to bf16
// F32: %[[Y:.*]] = ds.cast %[[X]] to f32
// CHECK: %[[W:.*]] = ds.weight @folded : tensor<12x4x3x3xbf16>
// F32: %[[V:.*]] = ds.cast %[[W]] to f32
// WIDE: ds.conv %[[X]], %[[W]] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 {wide} : (tensor<1x4x?x?xbf16>, tensor<12x4x3x3xbf16>) -> tensor<1x12x?x?xf32>
// F32: ds.conv %[[Y]], %[[V]] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>
// CHECK-NOT: ds.cast %arg0
// WIDE: ds.conv %[[X]], %{{.*}} groups 1 {wide}
// F32: ds.conv %[[Y]], %{{.*}} groups 1 :
// Codes times their scales are rounded where they are made.
// CHECK: %[[M:.*]] = ds.binary mul
// CHECK: %[[N:.*]] = ds.cast %[[M]] to bf16
// WIDE: %[[R:.*]] = ds.reshape %[[N]] [12, 4, 3, 3] : (tensor<12x1x36xbf16>) -> tensor<12x4x3x3xbf16>
// WIDE: ds.conv %[[X]], %[[R]] {{.*}} {wide}
// HALF: remark: convolution not rounded: its weight 'large' has an element of magnitude 6.552e+04; f16 ends at 65504
// HALF: remark: convolution not rounded: its filters are codes, whose scales may take them beyond f16
// HALF: ds.cast %{{.*}} to f16 : (tensor<12x4x3x3xf32>) -> tensor<12x4x3x3xf16>
// HALF: func.func @filters
// HALF: %[[X:.*]] = ds.cast %arg0 to f16
// HALF: %[[Y:.*]] = ds.cast %[[X]] to f32
// HALF: %[[W:.*]] = ds.weight @{{.*}} : tensor<12x4x3x3xf16>
// HALF: %[[V:.*]] = ds.cast %[[W]] to f32
// HALF: ds.conv %[[Y]], %[[V]]
// HALF: ds.conv %arg0, %{{.*}} : (tensor<1x4x?x?xf32>
// HALF: ds.conv %arg0, %{{.*}} : (tensor<1x4x?x?xf32>
func.func @filters(%x: tensor<1x4x?x?xf32> {ds.dims = [1, 4, "h", "w"]})
    -> (tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<12x4x3x3xf32>
  %l = ds.weight @large : tensor<12x4x3x3xf32>
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  %1 = ds.conv %x, %l strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  %codes = ds.constant dense<3> : tensor<12x1x36xi8>
  %scales = ds.constant dense<0.5> : tensor<12x1x1xf32>
  %f = ds.cast %codes to f32 : (tensor<12x1x36xi8>) -> tensor<12x1x36xf32>
  %m = ds.binary mul %f, %scales : (tensor<12x1x36xf32>, tensor<12x1x1xf32>) -> tensor<12x1x36xf32>
  %q = ds.reshape %m [12, 4, 3, 3] : (tensor<12x1x36xf32>) -> tensor<12x4x3x3xf32>
  %2 = ds.conv %x, %q strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x4x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  return %0, %1, %2 : tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>
}

// Axes that were left out are between the weight and the convolution: it is stored as it is read.
// CHECK-LABEL: func.func @squeezed
// CHECK: %[[W:.*]] = ds.weight @{{.*}} : tensor<12x4x9xbf16>
// WIDE: ds.conv %{{.*}}, %[[W]] {{.*}} {wide}
// CHECK-NOT: ds.reshape
// HALF: func.func @squeezed
// HALF: ds.weight @{{.*}} : tensor<12x4x9xf16>
// HALF-NOT: ds.reshape
func.func @squeezed(%x: tensor<1x4x?xf32> {ds.dims = [1, 4, "w"]}) -> tensor<1x12x?xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<12x4x3x3xf32>
  %r = ds.reshape %w [12, 4, 9] : (tensor<12x4x3x3xf32>) -> tensor<12x4x9xf32>
  %0 = ds.conv %x, %r strides [1] pads [4, 4] dilations [1] groups 1 : (tensor<1x4x?xf32>, tensor<12x4x9xf32>) -> tensor<1x12x?xf32>
  return %0 : tensor<1x12x?xf32>
}

// Filters whose number is known at run time are computed there.
// CHECK-LABEL: func.func @given
func.func @given(%x: tensor<1x24x8x8xf32>, %g: tensor<?x24x3x3xf32> {ds.dims = ["m", 24, 3, 3]}) -> tensor<1x?x6x6xf32> attributes {ds.entry} {
  // expected-remark @+1 {{convolution not rounded: its filters are computed while the program runs}}
  %0 = ds.conv %x, %g strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x24x8x8xf32>, tensor<?x24x3x3xf32>) -> tensor<1x?x6x6xf32>
  return %0 : tensor<1x?x6x6xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK-NOT: to bf16
func.func @kept(%x: tensor<1x24x?x?xf32> {ds.dims = [1, 24, "h", "w"]}, %g: tensor<12x24x3x3xf32>, %d: tensor<1x4x8x8xf64>)
    -> (tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x6x6xf64>) attributes {ds.entry} {
  %w = ds.weight @w : tensor<12x4x3x3xf32>
  %c = ds.constant dense<0.5> : tensor<12x4x3x3xf64>
  // expected-remark @+1 {{convolution not rounded: a group has one filter or two, too few to share what is gathered for them}}
  %0 = ds.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 6 : (tensor<1x24x?x?xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x?x?xf32>
  // expected-remark @+1 {{convolution not rounded: its filters are computed while the program runs}}
  %1 = ds.conv %x, %g strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x24x?x?xf32>, tensor<12x24x3x3xf32>) -> tensor<1x12x?x?xf32>
  // expected-remark @+1 {{convolution not rounded: its operands are not f32}}
  %2 = ds.conv %d, %c strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] groups 1 : (tensor<1x4x8x8xf64>, tensor<12x4x3x3xf64>) -> tensor<1x12x6x6xf64>
  return %0, %1, %2 : tensor<1x12x?x?xf32>, tensor<1x12x?x?xf32>, tensor<1x12x6x6xf64>
}
