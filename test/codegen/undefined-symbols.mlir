// RUN: ds-opt %s -o %t.dsp --mcpu=x86-64-v3,x86-64-v4
// RUN: llvm-nm -u -D %t.dsp/code-x86-64-v3.so | FileCheck %s --implicit-check-not=U
// RUN: llvm-nm -u -D %t.dsp/code-x86-64-v4.so | FileCheck %s --implicit-check-not=U
// RUN: llvm-objdump -d %t.dsp/code-x86-64-v3.so | FileCheck %s --check-prefix=V3 --implicit-check-not=zmm
// RUN: llvm-objdump -d %t.dsp/code-x86-64-v4.so | FileCheck %s --check-prefix=V4
// V3: vfmadd{{.*}}ymm
// V4: vfmadd{{.*}}zmm

// Code needs nothing but libc and libm: narrow floats, fused multiply-add and rounding are no calls, and what is one is
// a function of the C standard.
// CHECK: U fmodf@GLIBC
// CHECK-NEXT: U powf@GLIBC
// CHECK-NEXT: U sinf@GLIBC
func.func @main(%x: tensor<?x24xf32> {ds.name = "x", ds.dims = ["n", 24]}) -> (tensor<?x24xbf16>, tensor<?x24xf16>,
    tensor<?x24xf32>, tensor<?x?xf32>, tensor<?x24xf32>) attributes {ds.entry} {
  %b = ds.cast %x to bf16 : (tensor<?x24xf32>) -> tensor<?x24xbf16>
  %h = ds.cast %x to f16 : (tensor<?x24xf32>) -> tensor<?x24xf16>
  %0 = ds.unary tanh %b : (tensor<?x24xbf16>) -> tensor<?x24xbf16>
  %1 = ds.softmax %h axis 1 log false : (tensor<?x24xf16>) -> tensor<?x24xf16>
  %2 = ds.unary sin %x : (tensor<?x24xf32>) -> tensor<?x24xf32>
  %3 = ds.unary floor %2 : (tensor<?x24xf32>) -> tensor<?x24xf32>
  %4 = ds.binary fmod %3, %x : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x24xf32>
  %5 = ds.binary pow %4, %x : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x24xf32>
  %6 = ds.matmul %x, %x transpose [false, true] : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x?xf32>
  %7 = ds.gelu erf %x : (tensor<?x24xf32>) -> tensor<?x24xf32>
  return %0, %1, %5, %6, %7 : tensor<?x24xbf16>, tensor<?x24xf16>, tensor<?x24xf32>, tensor<?x?xf32>, tensor<?x24xf32>
}
