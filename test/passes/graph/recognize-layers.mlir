// RUN: ds-opt %s --ds-recognize-layers | FileCheck %s
// RUN: ds-opt %s --ds-recognize-layers --verify-numerics -o /dev/null
// RUN: ds-opt %s -o %t.dsp --report | FileCheck %s --check-prefix=REPORT

// Nothing changes but the marks of the passes before, which are gone.
// CHECK-LABEL: func.func @three_layers
// CHECK-NOT: ds.left
// CHECK: return
//
// The norm of the embeddings and the one behind the last layer belong to none.
// REPORT: recognize-layers: 3 layers, 2 recomposed
// REPORT-NEXT: layer 0: attention (grouped 4:2, causal, rope, q/k norms, softcap), rms norm x2, swiglu
// REPORT-NEXT: layer 1: attention (causal, window), cross attention (masked, bias by head), layer norm x3, gelu tanh
// REPORT-NEXT: layer 2: layer norm x2, relu, attention not recomposed: the softmax is not along the last axis
func.func @three_layers(%x: tensor<?x?x16xf32> {ds.name = "x", ds.dims = ["b", "s", 16]},
    %memory: tensor<?x?x16xf32> {ds.name = "memory", ds.dims = ["b", "s", 16]},
    %w: tensor<16x16xf32> {ds.name = "w", ds.dims = [16, 16]},
    %v: tensor<16x16xf32> {ds.name = "v", ds.dims = [16, 16]},
    %narrow: tensor<16x8xf32> {ds.name = "narrow", ds.dims = [16, 8]},
    %g: tensor<16xf32> {ds.name = "g", ds.dims = [16]},
    %small: tensor<4xf32> {ds.name = "small", ds.dims = [4]},
    %cos: tensor<?x4xf32> {ds.name = "cos", ds.dims = ["s", 4]},
    %bias: tensor<1x4x?x?xf32> {ds.name = "bias", ds.dims = [1, 4, "s", "s"]}) -> (tensor<?x?x16xf32> {ds.name = "y"}) attributes {ds.entry} {
  %1 = ds.layer_norm %x, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %2 = ds.rms_norm %1, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %3 = ds.linear %2, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %4 = ds.reshape %3 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %5 = ds.transpose %4 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %6 = ds.rotary %5, %cos, %cos interleaved false : (tensor<?x4x?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4x?x4xf32>
  %7 = ds.linear %2, %narrow : (tensor<?x?x16xf32>, tensor<16x8xf32>) -> tensor<?x?x8xf32>
  %8 = ds.reshape %7 ["b", "s", 2, 4] : (tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32>
  %9 = ds.transpose %8 [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %10 = ds.rms_norm %9, %small axis 3 epsilon 1.0e-5 : (tensor<?x2x?x4xf32>, tensor<4xf32>) -> tensor<?x2x?x4xf32>
  %11 = ds.rotary %10, %cos, %cos interleaved false : (tensor<?x2x?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x2x?x4xf32>
  %12 = ds.linear %2, %narrow : (tensor<?x?x16xf32>, tensor<16x8xf32>) -> tensor<?x?x8xf32>
  %13 = ds.reshape %12 ["b", "s", 2, 4] : (tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32>
  %14 = ds.transpose %13 [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %15 = ds.attention %6, %11, %14 [window_add else -3.40282347E+38] right 0 scale 0.5 softcap 20.0 : (tensor<?x4x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x4x?x4xf32>
  %16 = ds.transpose %15 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %17 = ds.reshape %16 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %18 = ds.linear %17, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %19 = ds.binary add %1, %18 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %20 = ds.rms_norm %19, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %21 = ds.linear %20, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %22 = ds.unary sigmoid %21 : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %23 = ds.binary mul %21, %22 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %24 = ds.linear %20, %v : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %25 = ds.binary mul %23, %24 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %26 = ds.linear %25, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %27 = ds.binary add %19, %26 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %28 = ds.layer_norm %27, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %29 = ds.linear %28, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %30 = ds.reshape %29 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %31 = ds.transpose %30 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %32 = ds.linear %28, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %33 = ds.reshape %32 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %34 = ds.transpose %33 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %35 = ds.linear %28, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %36 = ds.reshape %35 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %37 = ds.transpose %36 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %38 = ds.attention %31, %34, %37 [window_add else -3.40282347E+38] left 2 right 0 scale 0.5 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %39 = ds.transpose %38 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %40 = ds.reshape %39 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %41 = ds.linear %40, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %42 = ds.binary add %27, %41 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %43 = ds.layer_norm %42, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %44 = ds.linear %43, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %45 = ds.reshape %44 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %46 = ds.transpose %45 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %47 = ds.linear %memory, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %48 = ds.reshape %47 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %49 = ds.transpose %48 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %50 = ds.linear %memory, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %51 = ds.reshape %50 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %52 = ds.transpose %51 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %53 = ds.attention %46, %49, %52 [add %bias] scale 1.0 : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<1x4x?x?xf32>) -> tensor<?x4x?x4xf32>
  %54 = ds.transpose %53 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %55 = ds.reshape %54 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %56 = ds.linear %55, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %57 = ds.binary add %42, %56 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %58 = ds.layer_norm %57, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %59 = ds.linear %58, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %60 = ds.gelu tanh %59 : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %61 = ds.linear %60, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %62 = ds.binary add %57, %61 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %63 = ds.layer_norm %62, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %64 = ds.linear %63, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %65 = ds.reshape %64 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %66 = ds.transpose %65 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %67 = ds.linear %63, %v : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %68 = ds.reshape %67 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %69 = ds.transpose %68 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %70 = ds.linear %63, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %71 = ds.reshape %70 ["b", "s", 4, 4] : (tensor<?x?x16xf32>) -> tensor<?x?x4x4xf32>
  %72 = ds.transpose %71 [0, 2, 1, 3] : (tensor<?x?x4x4xf32>) -> tensor<?x4x?x4xf32>
  %73 = ds.matmul %66, %69 transpose [false, true] : (tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x?xf32>
  %74 = ds.softmax %73 axis 2 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %75 = ds.matmul %74, %72 transpose [false, false] {ds.left = "attention not recomposed: the softmax is not along the last axis"} : (tensor<?x4x?x?xf32>, tensor<?x4x?x4xf32>) -> tensor<?x4x?x4xf32>
  %76 = ds.transpose %75 [0, 2, 1, 3] : (tensor<?x4x?x4xf32>) -> tensor<?x?x4x4xf32>
  %77 = ds.reshape %76 ["b", "s", 16] : (tensor<?x?x4x4xf32>) -> tensor<?x?x16xf32>
  %78 = ds.linear %77, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %79 = ds.binary add %62, %78 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %80 = ds.layer_norm %79, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  %81 = ds.linear %80, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %82 = ds.unary relu %81 : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %83 = ds.linear %82, %w : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
  %84 = ds.binary add %79, %83 : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %85 = ds.layer_norm %84, %g, %g axis 2 epsilon 1.0e-5 : (tensor<?x?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
  return %85 : tensor<?x?x16xf32>
}
