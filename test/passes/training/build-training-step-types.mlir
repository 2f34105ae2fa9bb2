// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd wire=f16" | FileCheck %s --check-prefix=WIRE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd wire=f32" | FileCheck %s --check-prefix=PLAIN
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd gradients-in=bf16 wire=f32" | FileCheck %s --check-prefix=WHOLE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd gradients-in=bf16 share-stage=3 wire=bf16" | FileCheck %s --check-prefix=PART
// RUN: not ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd wire=f64" 2>&1 | FileCheck %s --check-prefix=NO-WIRE
// RUN: not ds-opt %s --ds-build-training-step="loss=loss optimizer=sgd gradients-in=i8" 2>&1 | FileCheck %s --check-prefix=NO-TYPE
// RUN: not ds-opt %s --ds-build-training-step="loss=loss optimizer=one_bit_adam gradients-in=bf16" 2>&1 | FileCheck %s --check-prefix=ONE-BIT
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd gradients-in=bf16" | FileCheck %s --check-prefix=LAYER
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd gradients-in=bf16 accumulates=false" | FileCheck %s --check-prefix=ONCE
// Types in which gradients travel and are kept. The numbers are checked by test/integration/ranks_type_cases.py.

// Norms do not travel in it, nor do parameters.
// WIRE: dist.all_reduce_start sum %{{.*}} wire f16 when %{{.*}} site "gradients/
// WIRE-NOT: wire
// PLAIN-NOT: wire

// A sum is of the parameter's type, and rounded once; the update widens it.
// WHOLE-LABEL: func.func @micro(
// WHOLE-SAME: %[[FIRST:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "first"}
// WHOLE-SAME: %[[KEPT:[a-z0-9]+]]: tensor<4xbf16> {ds.dims = [4], ds.name = "own/gradient"
// WHOLE: %[[WIDE:.*]] = ds.cast %[[KEPT]] to f32 : (tensor<4xbf16>) -> tensor<4xf32>
// WHOLE-NEXT: %[[SUM:.*]] = ds.binary add %[[WIDE]], %[[OWN:.*]] :
// WHOLE-NEXT: %[[NEXT:.*]] = ds.select %[[FIRST]], %[[OWN]], %[[SUM]]
// WHOLE-NEXT: ds.cast %[[NEXT]] to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
// WHOLE: dist.all_reduce_start sum %{{[0-9]+}}, %{{[0-9]+}} when {{.*}} : tensor<4xbf16>, tensor<4xbf16>
// WHOLE-LABEL: func.func @update(
// WHOLE-SAME: %[[KEPT:[a-z0-9]+]]: tensor<4xbf16> {ds.dims = [4], ds.name = "own/gradient"
// WHOLE: %[[FLAT:.*]] = ds.pad constant %[[KEPT]]
// WHOLE: ds.cast %{{.*}} to f32 : (tensor<2x64xbf16>) -> tensor<2x64xf32>
// WHOLE: scf.if
// WHOLE: ds.cast %[[KEPT]] to f32

// PART-LABEL: func.func @micro(
// PART-SAME: %[[FIRST:[a-z0-9]+]]: tensor<i1> {ds.dims = [], ds.name = "first"}
// PART-SAME: %[[KEPT:[a-z0-9]+]]: tensor<?xbf16> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/embeddings/gradient"
// PART: dist.reduce_scatter_start sum %{{[0-9]+}}, %{{[0-9]+}} layouts {{.*}} : tensor<4xbf16>, tensor<4xbf16>
// PART: %[[ALL:.*]] = dist.wait {{.*}} : tensor<?xbf16>
// PART-DAG: %[[WIDE:.*]] = ds.cast %[[KEPT]] to f32
// PART-DAG: %[[OWN:.*]] = ds.cast %[[ALL]] to f32
// PART: %[[SUM:.*]] = ds.binary add %[[WIDE]], %[[OWN]]
// PART-NEXT: %[[NEXT:.*]] = ds.select %[[FIRST]], %[[OWN]], %[[SUM]]
// PART-NEXT: ds.cast %[[NEXT]] to bf16 : (tensor<?xf32>) -> tensor<?xbf16>

// NO-WIRE: wire: expected f32, f16 or bf16, found 'f64'
// NO-TYPE: gradients-in: expected f32, f16 or bf16, found 'i8'
// ONE-BIT: gradients-in: expected none of 1-bit optimizers, found 'bf16'

// What a block adds up where it runs, and hands on where it is dropped.
// LAYER-LABEL: func.func @micro(
// LAYER-SAME: %[[OWN:[a-z0-9]+]]: tensor<4xbf16> {ds.dims = [4], ds.name = "own/gradient"
// LAYER-SAME: ds.name = "layer_first/0"
// LAYER: %[[WIDE:.*]] = ds.cast %[[OWN]] to f32 : (tensor<4xbf16>) -> tensor<4xf32>
// LAYER-NEXT: ds.binary add %[[WIDE]]
// LAYER-NEXT: %[[NEXT:.*]] = ds.select
// LAYER-NEXT: %[[NARROW:.*]] = ds.cast %[[NEXT]] to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
// LAYER-NEXT: scf.yield {{.*}}%[[NARROW]] : {{.*}}tensor<4xbf16>
// LAYER-NEXT: else
// LAYER: scf.yield {{.*}}%[[OWN]] : {{.*}}tensor<4xbf16>
// ONCE-LABEL: func.func @micro(
// ONCE-SAME: %[[OWN:[a-z0-9]+]]: tensor<4xbf16> {ds.dims = [4], ds.name = "own/gradient"
// ONCE: %[[NARROW:.*]] = ds.cast %{{.*}} to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
// ONCE-NEXT: scf.yield {{.*}}%[[NARROW]] : {{.*}}tensor<4xbf16>
// ONCE: scf.yield {{.*}}%[[OWN]] : {{.*}}tensor<4xbf16>
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @main(%in: tensor<4xf32> {ds.dims = [4], ds.name = "x"}, %both: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "both", ds.state = "both"}, %own: tensor<4xf32> {ds.dims = [4], ds.initial = @w, ds.name = "own", ds.state = "own"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %stream = ds.unary tanh %in : (tensor<4xf32>) -> tensor<4xf32>
  %a0 = ds.binary mul %stream, %both : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b0 = ds.binary mul %a0, %own : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y0 = ds.binary add %stream, %b0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = ds.binary mul %y0, %both : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b1 = ds.binary mul %a1, %in : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y1 = ds.binary add %y0, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = ds.reduce sum %y1 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
