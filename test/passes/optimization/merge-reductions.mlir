// RUN: ds-opt %s --split-input-file --ds-merge-reductions --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-merge-reductions --verify-numerics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused attributes {ds.values = ["", "y"]} {
// CHECK-NEXT: %[[A:.*]] = ds.reduce max %arg0 axes [1]
// CHECK-NEXT: %[[B:.*]] = ds.reduce min %arg0 axes [1]
// CHECK-NEXT: ds.yield %[[A]], %[[B]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> (tensor<?xf32>, tensor<?x1xf32>) attributes {ds.entry} {
  %1 = ds.reduce max %x axes [1] keep false : (tensor<?x4xf32>) -> tensor<?xf32>
  %2 = ds.reduce min %x axes [1] keep true {ds.values = ["y"]} : (tensor<?x4xf32>) -> tensor<?x1xf32>
  return %1, %2 : tensor<?xf32>, tensor<?x1xf32>
}

// -----

// What stands between them and needs one moves behind them.
// CHECK-LABEL: func.func @between
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused
// CHECK: ds.unary exp %[[R]]#0
// CHECK: ds.binary add
func.func @between(%x: tensor<3x4xf32> {ds.dims = [3, 4]}) -> tensor<3xf32> attributes {ds.entry} {
  %1 = ds.reduce sum %x axes [1] keep false : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = ds.unary exp %1 : (tensor<3xf32>) -> tensor<3xf32>
  %3 = ds.reduce l1 %x axes [1] keep false : (tensor<3x4xf32>) -> tensor<3xf32>
  %4 = ds.binary add %2, %3 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %4 : tensor<3xf32>
}

// -----

// Two regions whose ops alternate; the second one moves behind what the first one has moved.
// CHECK-LABEL: func.func @alternating
// CHECK-COUNT-2: ds.fused
// CHECK-NOT: ds.fused
func.func @alternating(%x: tensor<3x4xf32> {ds.dims = [3, 4]}) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
    attributes {ds.entry} {
  %1 = ds.reduce sum %x axes [1] keep false : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = ds.reduce min %1 axes [0] keep false : (tensor<3xf32>) -> tensor<f32>
  %3 = ds.reduce l1 %x axes [1] keep false : (tensor<3x4xf32>) -> tensor<3xf32>
  %4 = ds.reduce max %1 axes [0] keep false : (tensor<3xf32>) -> tensor<f32>
  return %2, %4, %3 : tensor<f32>, tensor<f32>, tensor<3xf32>
}

// -----

// Other axes, another input, and a log_sum_exp, which reads its input twice.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: ds.fused
func.func @apart(%x: tensor<4x4xf32> {ds.dims = [4, 4]}, %y: tensor<4x4xf32> {ds.dims = [4, 4]})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) attributes {ds.entry} {
  %1 = ds.reduce max %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = ds.reduce max %y axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %3 = ds.reduce log_sum_exp %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %4 = ds.reduce max %x axes [0, 1] keep false : (tensor<4x4xf32>) -> tensor<f32>
  %5 = ds.reduce log_sum_exp %y axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  return %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @most
// CHECK: ds.fused {
// CHECK-COUNT-4: ds.reduce
// CHECK: ds.yield
// CHECK: ds.reduce l2
func.func @most(%x: tensor<4x4xf32> {ds.dims = [4, 4]})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {ds.entry} {
  %1 = ds.reduce max %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = ds.reduce min %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %3 = ds.reduce sum %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %4 = ds.reduce mean %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  %5 = ds.reduce l2 %x axes [0] keep false : (tensor<4x4xf32>) -> tensor<4xf32>
  return %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A branch that needs the first one stands between them.
// CHECK-LABEL: func.func @branch
// CHECK-NOT: ds.fused
func.func @branch(%x: tensor<4xf32> {ds.dims = [4]}, %c: tensor<i1> {ds.dims = []}) -> (tensor<f32>, tensor<f32>)
    attributes {ds.entry} {
  %1 = ds.reduce max %x axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  %flag = tensor.extract %c[] : tensor<i1>
  %2 = scf.if %flag -> tensor<f32> {
    %3 = ds.unary exp %1 : (tensor<f32>) -> tensor<f32>
    scf.yield %3 : tensor<f32>
  } else {
    scf.yield %1 : tensor<f32>
  }
  %4 = ds.reduce min %x axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
  return %2, %4 : tensor<f32>, tensor<f32>
}

// -----

// What is computed of the numbers of a whole tensor follows in the kernel, also those of a single reduction.
// CHECK-LABEL: func.func @followers
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused
// CHECK-NEXT: %[[A:.*]] = ds.reduce max
// CHECK-NEXT: %[[B:.*]] = ds.reduce min
// CHECK-NEXT: %[[S:.*]] = ds.binary sub %[[A]], %[[B]]
// CHECK-NEXT: %[[Z:.*]] = ds.binary div %[[A]], %[[S]]
// CHECK-NEXT: ds.yield %[[S]], %[[Z]]
// CHECK: ds.binary div %arg0, %[[R]]#0
// CHECK: ds.fused
// CHECK-NEXT: ds.reduce sum
// CHECK-NEXT: ds.unary sqrt
func.func @followers(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> (tensor<?x4xf32>, tensor<f32>, tensor<f32>)
    attributes {ds.entry} {
  %1 = ds.reduce max %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %2 = ds.reduce min %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %3 = ds.binary sub %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = ds.binary div %x, %3 : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %5 = ds.binary div %1, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %6 = ds.reduce sum %4 axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %7 = ds.unary sqrt %6 : (tensor<f32>) -> tensor<f32>
  return %4, %5, %7 : tensor<?x4xf32>, tensor<f32>, tensor<f32>
}

// -----

// Not what needs another number, and nothing behind rows.
// CHECK-LABEL: func.func @no_followers
// CHECK-NOT: ds.fused
func.func @no_followers(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %y: tensor<f32> {ds.dims = []})
    -> (tensor<f32>, tensor<?xf32>) attributes {ds.entry} {
  %1 = ds.reduce max %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %2 = ds.binary mul %1, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = ds.reduce max %x axes [1] keep false : (tensor<?x4xf32>) -> tensor<?xf32>
  %4 = ds.unary exp %3 : (tensor<?xf32>) -> tensor<?xf32>
  return %2, %4 : tensor<f32>, tensor<?xf32>
}

// -----

// A log_sum_exp reads its input twice, and is no scan of others; what follows it joins it.
// CHECK-LABEL: func.func @log_sum_exp
// CHECK: ds.fused
// CHECK-NEXT: ds.reduce log_sum_exp
// CHECK-NEXT: ds.unary tanh
func.func @log_sum_exp(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> tensor<f32> attributes {ds.entry} {
  %1 = ds.reduce log_sum_exp %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %2 = ds.unary tanh %1 : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// The norm of a whole tensor in f32 adds up its squares in f64, a scan of its own. Norms of rows stay f32.
// CHECK-LABEL: func.func @whole_norm
// CHECK-NOT: ds.fused
// CHECK: return
func.func @whole_norm(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> (tensor<f32>, tensor<f32>) attributes {ds.entry} {
  %1 = ds.reduce l2 %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  %2 = ds.reduce max %x axes [0, 1] keep false : (tensor<?x4xf32>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @row_norms
// CHECK: ds.fused
// CHECK-NEXT: ds.reduce l2
// CHECK-NEXT: ds.reduce max
func.func @row_norms(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> (tensor<?xf32>, tensor<?xf32>) attributes {ds.entry} {
  %1 = ds.reduce l2 %x axes [1] keep false : (tensor<?x4xf32>) -> tensor<?xf32>
  %2 = ds.reduce max %x axes [1] keep false : (tensor<?x4xf32>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}
