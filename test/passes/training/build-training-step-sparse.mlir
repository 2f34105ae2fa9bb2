// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam sparse-tables" 2>&1 | FileCheck %s --check-prefixes=SPARSE,TIED
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam" 2>&1 | FileCheck %s --check-prefix=DENSE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam sparse-tables share-stage=1" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam sparse-tables share-stage=2" 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam sparse-tables overlaps=false accumulates=false" 2>&1 | FileCheck %s --check-prefix=APART
// Tables travel by rows where only rows are read of them. What travels is judged by test/integration/ranks_sparse_cases.py.

// TIED: warning: sparse_gradients: the gradient of 'tied' travels as a whole: 'ds.matmul' reads the table, too, and may touch all rows
// TIED-NOT: warning

// Touched rows of all micro-batches of a step, in its last one; what else is read before the first product goes without it.
// SPARSE-LABEL: func.func @micro(
// SPARSE-SAME: %[[LAST:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "last"}
// SPARSE-DAG: dist.all_reduce_start sum %{{[0-9]+}} codec sparse_rows when %[[LAST]] layouts [#dist.layout<[0] of 80 by 1>] site "gradients/rows" : tensor<10x8xf32>
// SPARSE-DAG: dist.all_reduce_start sum %{{[0-9]+}} when %[[LAST]] layouts [#dist.layout<[0] of 80 by 1>] site "gradients/embeddings" : tensor<10x8xf32>
// SPARSE-NOT: sparse_rows
// SPARSE-LABEL: func.func @update(

// DENSE-NOT: warning
// DENSE-NOT: sparse_rows
// DENSE: layouts [#dist.layout<[0, 128] of 256 by 64>] site "gradients/embeddings" : tensor<10x8xf32>, tensor<10x8xf32>

// The table is a unit of its own, of which a rank combines what it owns.
// ONE-NOT: the gradient of 'rows'
// ONE-LABEL: func.func @micro(
// ONE-SAME: %[[LAST:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "last"}
// ONE-DAG: dist.reduce_scatter_start sum %{{[0-9]+}} codec sparse_rows in_place when %[[LAST]] layouts [#dist.layout<[0] of 128 by 64>] site "gradients/rows" : tensor<10x8xf32>
// ONE-DAG: dist.reduce_scatter_start sum %{{[0-9]+}} in_place when %[[LAST]] layouts [#dist.layout<[0] of 128 by 64>] site "gradients/embeddings" : tensor<10x8xf32>
// ONE-LABEL: func.func @update(
// ONE: dist.all_gather_start {{.*}} site "parameters/rows"
// ONE-NOT: sparse_rows

// TWO: warning: sparse_gradients: the gradient of 'rows' travels as a whole: at zero_optimization.stage 2 ranks own parts of it
// TWO: warning: sparse_gradients: the gradient of 'tied' travels as a whole: at zero_optimization.stage 2 ranks own parts of it
// TWO-NOT: sparse_rows

// APART: %[[P:.*]] = dist.all_reduce_start sum %{{[0-9]+}} codec sparse_rows layouts [#dist.layout<[0] of 80 by 1>] site "gradients/rows" : tensor<10x8xf32>
// APART-NEXT: dist.wait %[[P]]

ds.recipe @rows {
  %0 = ds.source "model.onnx" [0, 320] : tensor<10x8xf32>
  ds.yield %0 : tensor<10x8xf32>
}
ds.recipe @tied {
  %0 = ds.source "model.onnx" [320, 320] : tensor<10x8xf32>
  ds.yield %0 : tensor<10x8xf32>
}

func.func @main(%ids: tensor<4xi64> {ds.dims = [4], ds.name = "ids"},
    %rows: tensor<10x8xf32> {ds.dims = [10, 8], ds.initial = @rows, ds.name = "rows", ds.state = "rows"},
    %tied: tensor<10x8xf32> {ds.dims = [10, 8], ds.initial = @tied, ds.name = "tied", ds.state = "tied"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.gather 0 %rows, %ids : (tensor<10x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %1 = ds.gather 0 %tied, %ids : (tensor<10x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %2 = ds.binary add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = ds.matmul %2, %tied transpose [false, true] : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  %4 = ds.unary tanh %3 : (tensor<4x10xf32>) -> tensor<4x10xf32>
  %5 = ds.reduce sum %4 axes [0, 1] keep false : (tensor<4x10xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}
