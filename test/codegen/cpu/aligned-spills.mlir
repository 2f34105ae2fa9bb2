// Sums that registers do not hold lie in whole lines of the stack: a store across two lines takes as long as two.
// Where codes have scales for groups, there are twice as many sums as a tile has vectors.
// RUN: ds-opt %s -o %t.dsp --quantize=int8,group=32,mixed=no --mcpu=x86-64-v4
// RUN: llvm-objdump -d --no-show-raw-insn %t.dsp/code-x86-64-v4.so | FileCheck %s --implicit-check-not "vmovups %zmm{{[0-9]+}}, {{.*}}(%rsp)"
// CHECK: andq $-0x40, %rsp
// CHECK: vmovaps %zmm{{[0-9]+}}, {{.*}}(%rsp)
func.func @main(%x: tensor<?x256xf32> {ds.dims = ["rows", 256]}) -> tensor<?x96xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<256x96xf32>
  %y = ds.linear %x, %w : (tensor<?x256xf32>, tensor<256x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.3> : tensor<255x96xf32>
  %1 = ds.constant dense<0.41> : tensor<1x96xf32>
  %2 = ds.concat 0 %0, %1 : (tensor<255x96xf32>, tensor<1x96xf32>) -> tensor<256x96xf32>
  ds.yield %2 : tensor<256x96xf32>
}
