// What else a kernel repeats, however deep its loops are, takes no registers from the tiles of its product: gathering
// pixels at strides of 2 needs masks, whose constants LLVM would keep while sums go to the stack and back.
// RUN: ds-opt %s -o %t.dsp --mcpu=x86-64-v3
// RUN: llvm-objdump -d --no-show-raw-insn %t.dsp/code-x86-64-v3.so | FileCheck %s --implicit-check-not "vfmadd{{[0-9]+}}ps {{-?0x[0-9a-f]+}}(%rsp)" --implicit-check-not "%ymm{{[0-9]+}}, (%rsp)"
// CHECK: vpcmpgtd
// CHECK-COUNT-48: vfmadd
func.func @main(%x: tensor<1x64x64x64xf32>) -> tensor<1x64x32x32xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<64x64x3x3xf32>
  %y = ds.conv %x, %w strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] groups 1 : (tensor<1x64x64x64xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x32x32xf32>
  return %y : tensor<1x64x32x32xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.3> : tensor<64x64x3x3xf32>
  ds.yield %0 : tensor<64x64x3x3xf32>
}
