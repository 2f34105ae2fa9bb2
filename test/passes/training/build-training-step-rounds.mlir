// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam rounds=bf16" | FileCheck %s --check-prefix=WHOLE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=2 rounds=f16" | FileCheck %s --check-prefix=STORED
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=lamb share-stage=3 rounds=bf16" --ds-verify-contract=phase=distribution | FileCheck %s --check-prefix=PARTS
// RUN: not ds-opt %s --ds-build-training-step="loss=loss rounds=f8" 2>&1 | FileCheck %s --check-prefix=WRONG
// What is read of parameters is rounded. The numbers are checked by test/integration/ranks_precision_cases.py.

// WRONG: rounds: expected bf16 or f16, found 'f8'

// Without sharing parameters are f32, and each is rounded once, in front of its readers; of a table, rows that are taken.
// WHOLE-LABEL: func.func @eval(
// WHOLE-SAME: %[[TABLE:[a-z0-9]+]]: tensor<9x8xf32> {ds.dims = [9, 8], ds.initial = @table
// WHOLE-SAME: %[[W:[a-z0-9]+]]: tensor<8x8xf32>
// WHOLE: %[[ROWS:.*]] = ds.gather 0 %[[TABLE]]
// WHOLE-NEXT: %[[NARROW:.*]] = ds.cast %[[ROWS]] to bf16
// WHOLE-NEXT: %[[WIDE:.*]] = ds.cast %[[NARROW]] to f32
// WHOLE: %[[NARROWW:.*]] = ds.cast %[[W]] to bf16
// WHOLE-NEXT: %[[WIDEW:.*]] = ds.cast %[[NARROWW]] to f32
// WHOLE: ds.matmul %[[WIDE]], %[[WIDEW]]
// WHOLE: ds.transpose %[[TABLE]] [1, 0] : (tensor<9x8xf32>)
// WHOLE-LABEL: func.func @micro(
// WHOLE-SAME: ds.state = "table/gradient"
// WHOLE: ds.cast %{{.*}} to bf16
// WHOLE-LABEL: func.func @update(
// WHOLE-NOT: bf16

// From stage 1 on states are of the type, and gradients f32. The update writes the masters that a rank owns, and what they are rounded to, where
// nothing overflowed; that is what travels.
// STORED-LABEL: func.func @eval(
// STORED-SAME: %[[TABLE:[a-z0-9]+]]: tensor<9x8xf16> {ds.dims = [9, 8], ds.initial = @table, ds.name = "table", ds.part = "tensor", ds.state = "table", ds.suffix = ""
// STORED: %[[ROWS:.*]] = ds.gather 0 %[[TABLE]], %{{.*}} -> tensor<4x8xf16>
// STORED-NEXT: ds.cast %[[ROWS]] to f32
// STORED: %[[ACROSS:.*]] = ds.transpose %[[TABLE]] [1, 0] : (tensor<9x8xf16>) -> tensor<8x9xf16>
// STORED-NEXT: ds.cast %[[ACROSS]] to f32
// STORED-LABEL: func.func @micro(
// STORED: reduce_scatter_start sum %{{.*}} : tensor<{{.*}}xf32>
// STORED-LABEL: func.func @update(
// STORED-SAME: %[[MASTER:[a-z0-9]+]]: tensor<?xf32> {{{.*}}ds.part = "shard", ds.state = "zero/embeddings/master", ds.suffix = "/master", ds.unit = "embeddings"}
// STORED-SAME: %[[VIEW:[a-z0-9]+]]: tensor<?xf16> {{{.*}}ds.part = "view", ds.state = "zero/embeddings", ds.suffix = ""
// STORED-SAME: ds.units = [{{.*}}rounded = f16
// STORED: %[[NEXT:.*]]:{{[0-9]+}} = scf.if
// STORED: %[[ROUNDED:.*]] = ds.cast %[[SUM:.*]] to f16
// STORED: scf.yield %[[SUM]], %{{.*}}, %{{.*}}, %[[ROUNDED]]
// STORED: scf.yield %[[MASTER]], %{{.*}}, %{{.*}}, %[[VIEW]]
// STORED: dist.all_gather_start %[[NEXT]]#3 {{.*}} : tensor<?xf16>

// At stage 3 parts are gathered, and widened behind that.
// PARTS-LABEL: func.func @eval(
// PARTS-SAME: tensor<?xbf16> {{{.*}}ds.part = "shard", ds.state = "zero/{{[a-z]+ ?[0-9]*}}", ds.suffix = ""
// PARTS: dist.all_gather_start %{{.*}} : tensor<?xbf16>
// PARTS: dist.wait %{{.*}} : tensor<9x8xbf16>
ds.recipe @table {
  %0 = ds.source "model.onnx" [0, 288] : tensor<9x8xf32>
  ds.yield %0 : tensor<9x8xf32>
}
ds.recipe @w {
  %0 = ds.source "model.onnx" [288, 256] : tensor<8x8xf32>
  ds.yield %0 : tensor<8x8xf32>
}
func.func @main(%ids: tensor<4xi64> {ds.dims = [4], ds.name = "ids"},
    %table: tensor<9x8xf32> {ds.dims = [9, 8], ds.initial = @table, ds.name = "table", ds.state = "table"},
    %w: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w, ds.name = "w", ds.state = "w"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.gather 0 %table, %ids : (tensor<9x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %1 = ds.matmul %0, %w transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = ds.transpose %table [1, 0] : (tensor<9x8xf32>) -> tensor<8x9xf32>
  %3 = ds.matmul %1, %2 transpose [false, false] : (tensor<4x8xf32>, tensor<8x9xf32>) -> tensor<4x9xf32>
  %4 = ds.reduce sum %3 axes [0, 1] keep false : (tensor<4x9xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
