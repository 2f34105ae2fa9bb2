// The least and greatest number of a whole tensor: the kernel that makes it takes those of rows, or of a panel's part of
// a row, and the product that reads codes computes their scale. Bits are compared by
// test/integration/dynamic_quantized_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --ds-fuse-rows --ds-merge-reductions | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null
// RUN: ds-opt %s --split-input-file --ds-fuse-deep="products=false" --ds-fuse-rows --ds-merge-reductions | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @product
// CHECK-NEXT: %[[A:.*]]:3 = ds.fused {
// CHECK-NEXT: %[[P:.*]] = ds.linear %arg0
// CHECK-NEXT: %[[G:.*]] = ds.gelu erf %[[P]]
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[G]] ["n", 2, 16]
// CHECK-DAG: %[[MAX:.*]] = ds.reduce max %[[R]] axes [2] keep false
// CHECK-DAG: %[[MIN:.*]] = ds.reduce min %[[R]] axes [2] keep false
// CHECK-NEXT: ds.yield %[[G]],
// CHECK: %[[B:.*]] = ds.fused {
// CHECK-DAG: %[[M:.*]] = ds.reduce max %[[A]]#{{[12]}} axes [0, 1] keep false
// CHECK-DAG: %[[N:.*]] = ds.reduce min %[[A]]#{{[12]}} axes [0, 1] keep false
// CHECK: %[[S:.*]] = ds.binary sub %[[M]], %[[N]]
// CHECK-NEXT: %[[D:.*]] = ds.binary div %[[A]]#0, %[[S]]
// CHECK-NEXT: ds.linear %[[D]], %arg2
// CHECK: return %[[B]]
// GENERIC-LABEL: func.func @product
// GENERIC: ds.fused
// GENERIC-NEXT: ds.reduce max %{{.*}} axes [0, 1]
// GENERIC-NEXT: ds.reduce min %{{.*}} axes [0, 1]
func.func @product(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %v: tensor<2x4x16xf32> {ds.dims = [2, 4, 16]},
                   %w: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %v {panel = 16 : i64, columns = 32 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x4xf32>, tensor<2x4x16xf32>) -> tensor<?x32xf32>
  %1 = ds.gelu erf %0 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %2 = ds.reduce max %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %3 = ds.reduce min %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %4 = ds.binary sub %2, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': something between them needs the anchor's result}}
  %5 = ds.binary div %1, %4 : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xf32>
  %6 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x32xf32>, tensor<1x32x16xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// A norm gives the extremes of its rows beside them; what is computed of them for two products is one kernel.
// CHECK-LABEL: func.func @norm
// CHECK: %[[A:.*]]:3 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-DAG: ds.reduce max %[[N]] axes [1] keep false
// CHECK-DAG: ds.reduce min %[[N]] axes [1] keep false
// CHECK-NEXT: ds.yield %[[N]]
// CHECK: %[[S:.*]] = ds.fused {
// CHECK-DAG: ds.reduce max %[[A]]#{{[12]}} axes [0] keep false
// CHECK-DAG: ds.reduce min %[[A]]#{{[12]}} axes [0] keep false
// CHECK-NEXT: ds.binary sub
// CHECK-NEXT: ds.yield
// CHECK-COUNT-2: ds.linear
// GENERIC-LABEL: func.func @norm
// GENERIC: ds.fused
// GENERIC-NEXT: ds.reduce max %{{.*}} axes [0, 1]
func.func @norm(%x: tensor<?x32xf32> {ds.dims = ["n", 32]}, %s: tensor<32xf32> {ds.dims = [32]}, %w: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]},
                %v: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]}) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.linear': something between them needs it}}
  %1 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %2 = ds.reduce max %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %3 = ds.reduce min %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': something else reads it}}
  %4 = ds.binary sub %2, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %5 = ds.binary div %1, %4 : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xf32>
  %6 = ds.binary mul %1, %4 : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xf32>
  %7 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x32xf32>, tensor<1x32x16xf32>) -> tensor<?x8xf32>
  %8 = ds.linear %6, %v {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x32xf32>, tensor<1x32x16xf32>) -> tensor<?x8xf32>
  return %7, %8 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Attention gives those of each head's rows, whatever shows its result.
// CHECK-LABEL: func.func @attention
// CHECK: ds.fused {
// CHECK-NEXT: %[[C:.*]] = ds.attention
// CHECK-DAG: ds.reduce max %[[C]] axes [3] keep false
// CHECK-DAG: ds.reduce min %[[C]] axes [3] keep false
// CHECK: ds.transpose %[[C]] [0, 2, 1, 3]
// CHECK: ds.reduce {{.*}} axes [0, 1, 2] keep false
func.func @attention(%q: tensor<?x2x?x16xf32> {ds.dims = ["b", 2, "s", 16]}, %k: tensor<?x2x?x16xf32> {ds.dims = ["b", 2, "t", 16]})
    -> (tensor<?x?x32xf32>, tensor<f32>) attributes {ds.entry} {
  %1 = ds.attention %q, %k, %k [] scale 1.0 : (tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf32>
  %2 = ds.transpose %1 [0, 2, 1, 3] : (tensor<?x2x?x16xf32>) -> tensor<?x?x2x16xf32>
  %3 = ds.reshape %2 ["b", "s", 32] : (tensor<?x?x2x16xf32>) -> tensor<?x?x32xf32>
  %4 = ds.reduce max %3 axes [0, 1, 2] keep false : (tensor<?x?x32xf32>) -> tensor<f32>
  %5 = ds.reduce min %3 axes [0, 1, 2] keep false : (tensor<?x?x32xf32>) -> tensor<f32>
  %6 = ds.binary sub %4, %5 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3, %6 : tensor<?x?x32xf32>, tensor<f32>
}

// -----

// Rows of 20 columns are not whole panels; a sum is no extreme.
// CHECK-LABEL: func.func @stays
// CHECK: ds.linear
// CHECK: ds.reduce max %{{.*}} axes [0, 1] keep false
// CHECK: ds.reduce sum %{{.*}} axes [0, 1] keep false
func.func @stays(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %v: tensor<2x4x16xf32> {ds.dims = [2, 4, 16]})
    -> (tensor<?x20xf32>, tensor<f32>, tensor<f32>) attributes {ds.entry} {
  %0 = ds.linear %x, %v {panel = 16 : i64, columns = 20 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x4xf32>, tensor<2x4x16xf32>) -> tensor<?x20xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': panels of 16 columns do not divide its rows}}
  %1 = ds.reduce max %0 axes [0, 1] keep false : (tensor<?x20xf32>) -> tensor<f32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': it is not elementwise}}
  %2 = ds.reduce sum %0 axes [0, 1] keep false : (tensor<?x20xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<?x20xf32>, tensor<f32>, tensor<f32>
}

// -----

// Of a norm that one product needs, its kernel takes the extremes of all rows itself; what else reads the norm is a result.
// CHECK-LABEL: func.func @norm_before
// CHECK: %[[A:.*]]:2 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.layer_norm %arg0
// CHECK-DAG: %[[MAX:.*]] = ds.reduce max %[[N]] axes [0, 1] keep false
// CHECK-DAG: %[[MIN:.*]] = ds.reduce min %[[N]] axes [0, 1] keep false
// CHECK: %[[S:.*]] = ds.binary sub %[[MAX]], %[[MIN]]
// CHECK-NEXT: %[[D:.*]] = ds.binary div %[[N]], %[[S]]
// CHECK-NEXT: %[[P:.*]] = ds.linear %[[D]]
// CHECK-NEXT: ds.yield %[[N]], %[[P]]
// GENERIC-LABEL: func.func @norm_before
// GENERIC: ds.linear
func.func @norm_before(%x: tensor<?x32xf32> {ds.dims = ["n", 32]}, %s: tensor<32xf32> {ds.dims = [32]}, %w: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]})
    -> (tensor<?x32xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %1 = ds.layer_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %2 = ds.reduce max %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %3 = ds.reduce min %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %4 = ds.binary sub %2, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %5 = ds.binary div %1, %4 : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xf32>
  %6 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x32xf32>, tensor<1x32x16xf32>) -> tensor<?x8xf32>
  return %1, %6 : tensor<?x32xf32>, tensor<?x8xf32>
}

// -----

// Of so much for so few columns they are taken once, by a launch.
// CHECK-LABEL: func.func @many_rows
// CHECK: %[[A:.*]]:3 = ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-DAG: ds.reduce max %[[N]] axes [1] keep false
// CHECK-DAG: ds.reduce min %[[N]] axes [1] keep false
// CHECK-NEXT: ds.yield %[[N]]
// CHECK: ds.fused {
// CHECK-DAG: ds.reduce max %[[A]]#{{[12]}} axes [0] keep false
// CHECK-DAG: ds.reduce min %[[A]]#{{[12]}} axes [0] keep false
// CHECK: ds.linear
// GENERIC-LABEL: func.func @many_rows
// GENERIC: ds.linear
func.func @many_rows(%x: tensor<1025x32xf32> {ds.dims = [1025, 32]}, %s: tensor<32xf32> {ds.dims = [32]}, %w: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]})
    -> tensor<1025x8xf32> attributes {ds.entry} {
  // expected-remark @+2 {{does not join the region of 'ds.linear': something between them needs it}}
  // expected-remark @+1 {{does not join the region of 'ds.linear': each thread would normalize 32800 elements again, for 8 columns}}
  %1 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<1025x32xf32>, tensor<32xf32>) -> tensor<1025x32xf32>
  %2 = ds.reduce max %1 axes [0, 1] keep false : (tensor<1025x32xf32>) -> tensor<f32>
  %3 = ds.reduce min %1 axes [0, 1] keep false : (tensor<1025x32xf32>) -> tensor<f32>
  %4 = ds.binary sub %2, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %5 = ds.binary div %1, %4 : (tensor<1025x32xf32>, tensor<f32>) -> tensor<1025x32xf32>
  %6 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<1025x32xf32>, tensor<1x32x16xf32>) -> tensor<1025x8xf32>
  return %6 : tensor<1025x8xf32>
}

// -----

// Something else reads an extreme: those of rows are in memory, and the norm beside them.
// CHECK-LABEL: func.func @extreme_read
// CHECK: ds.fused {
// CHECK-NEXT: %[[N:.*]] = ds.rms_norm %arg0
// CHECK-NEXT: ds.reduce max %[[N]] axes [1] keep false
// CHECK: ds.reduce max %{{.*}} axes [0] keep false
// CHECK: ds.linear
// GENERIC-LABEL: func.func @extreme_read
// GENERIC: ds.linear
func.func @extreme_read(%x: tensor<?x32xf32> {ds.dims = ["n", 32]}, %s: tensor<32xf32> {ds.dims = [32]}, %w: tensor<1x32x16xf32> {ds.dims = [1, 32, 16]})
    -> (tensor<f32>, tensor<?x8xf32>) attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.linear': something between them needs it}}
  %1 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': something else reads it}}
  %2 = ds.reduce max %1 axes [0, 1] keep false : (tensor<?x32xf32>) -> tensor<f32>
  %5 = ds.binary div %1, %2 : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xf32>
  %6 = ds.linear %5, %w {panel = 16 : i64, columns = 8 : i64, ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>} : (tensor<?x32xf32>, tensor<1x32x16xf32>) -> tensor<?x8xf32>
  return %2, %6 : tensor<f32>, tensor<?x8xf32>
}
