// Of which processors it is known that loads of four rows look far enough ahead of a weight (few-rows.mlir).
// RUN: ds-opt %s -o %t.dsp --mcpu=znver4,skylake-avx512
// RUN: llvm-objdump -d %t.dsp/code-znver4.so | FileCheck %s --check-prefix=FAR --implicit-check-not=prefetch
// RUN: llvm-objdump -d %t.dsp/code-skylake-avx512.so | FileCheck %s --check-prefix=NEAR
// FAR: vfmadd{{.*}}zmm
// NEAR: prefetcht1
// NEAR: vfmadd{{.*}}zmm
func.func @main(%x: tensor<4x512xf32> {ds.name = "x", ds.dims = [4, 512]}) -> (tensor<4x512xf32> {ds.name = "y"}) attributes {ds.entry} {
  %w = ds.constant dense<0.5> : tensor<11x512x48xf32>
  %0 = ds.linear %x, %w {columns = 512 : i64, panel = 48 : i64} : (tensor<4x512xf32>, tensor<11x512x48xf32>) -> tensor<4x512xf32>
  return %0 : tensor<4x512xf32>
}
