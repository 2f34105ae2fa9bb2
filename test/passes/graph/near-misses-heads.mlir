// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Each function differs in one thing from an attention: heads, groups or batches do not fit.

// Each head of a group has its own value.
// CHECK-LABEL: func.func @own_values
// CHECK-NOT: ds.attention
func.func @own_values(%arg0: tensor<1x2x2x5x8xf32>, %arg1: tensor<1x2x1x7x8xf32>, %arg2: tensor<1x2x2x7x8xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %1 = ds.softmax %0 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x2x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %2 : tensor<1x2x2x5x8xf32>
}

// -----

// How many groups there are is known at run time only.
// CHECK-LABEL: func.func @groups_of_run_time
// CHECK-NOT: ds.attention
func.func @groups_of_run_time(%arg0: tensor<1x?x2x5x8xf32> {ds.dims = [1, "g", 2, 5, 8]}, %arg1: tensor<1x?x1x7x8xf32> {ds.dims = [1, "g", 1, 7, 8]}, %arg2: tensor<1x?x1x7x8xf32> {ds.dims = [1, "g", 1, 7, 8]}) -> tensor<1x?x2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x?x2x5x8xf32>, tensor<1x?x1x7x8xf32>) -> tensor<1x?x2x5x7xf32>
  %1 = ds.softmax %0 axis 4 log false : (tensor<1x?x2x5x7xf32>) -> tensor<1x?x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<1x?x2x5x7xf32>, tensor<1x?x1x7x8xf32>) -> tensor<1x?x2x5x8xf32>
  return %2 : tensor<1x?x2x5x8xf32>
}

// -----

// How many heads a group has is known at run time only.
// CHECK-LABEL: func.func @heads_of_run_time
// CHECK-NOT: ds.attention
func.func @heads_of_run_time(%arg0: tensor<1x2x?x5x8xf32> {ds.dims = [1, 2, "h", 5, 8]}, %arg1: tensor<1x2x1x7x8xf32>, %arg2: tensor<1x2x1x7x8xf32>) -> tensor<1x2x?x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x2x?x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x?x5x7xf32>
  %1 = ds.softmax %0 axis 4 log false : (tensor<1x2x?x5x7xf32>) -> tensor<1x2x?x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<1x2x?x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x?x5x8xf32>
  return %2 : tensor<1x2x?x5x8xf32>
}

// -----

// A mask for each head of a group, the same for all groups, without an axis of groups.
// CHECK-LABEL: func.func @mask_by_head
// CHECK-NOT: ds.attention
func.func @mask_by_head(%arg0: tensor<1x2x2x5x8xf32>, %arg1: tensor<1x2x1x7x8xf32>, %arg2: tensor<1x2x1x7x8xf32>, %arg3: tensor<2x5x7xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<1x2x2x5x7xf32>, tensor<2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  %2 = ds.softmax %1 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %3 : tensor<1x2x2x5x8xf32>
}

// -----

// With an axis of groups that has size 1.
// CHECK-LABEL: func.func @mask_by_head_of_one_group
// CHECK-NOT: ds.attention
func.func @mask_by_head_of_one_group(%arg0: tensor<1x2x2x5x8xf32>, %arg1: tensor<1x2x1x7x8xf32>, %arg2: tensor<1x2x1x7x8xf32>, %arg3: tensor<1x2x5x7xf32>) -> tensor<1x2x2x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x2x2x5x8xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x7xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<1x2x2x5x7xf32>, tensor<1x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  %2 = ds.softmax %1 axis 4 log false : (tensor<1x2x2x5x7xf32>) -> tensor<1x2x2x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the heads of a group do not share their key and value, or their masks do not join}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<1x2x2x5x7xf32>, tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x5x8xf32>
  return %3 : tensor<1x2x2x5x8xf32>
}

// -----

// Masks for many heads beside one head, as a run may tell.
// CHECK-LABEL: func.func @heads_enlarged
// CHECK-NOT: ds.attention
func.func @heads_enlarged(%arg0: tensor<2x?x?x8xf32> {ds.dims = [2, "h", "s", 8]}, %arg1: tensor<2x?x?x8xf32> {ds.dims = [2, "h", "s", 8]}, %arg2: tensor<2x?x?x8xf32> {ds.dims = [2, "h", "s", 8]}, %arg3: tensor<2x?x?x?xf32> {ds.dims = [2, "m", "s", "s"]}) -> tensor<2x?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x?x?x8xf32>, tensor<2x?x?x8xf32>) -> tensor<2x?x?x?xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<2x?x?x?xf32>, tensor<2x?x?x?xf32>) -> tensor<2x?x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x?x?x?xf32>) -> tensor<2x?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the mask might enlarge the scores}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x?x?x?xf32>, tensor<2x?x?x8xf32>) -> tensor<2x?x?x8xf32>
  return %3 : tensor<2x?x?x8xf32>
}

// -----

// Masks for many rows beside one row.
// CHECK-LABEL: func.func @rows_enlarged
// CHECK-NOT: ds.attention
func.func @rows_enlarged(%arg0: tensor<2x4x1x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x1x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x1x7xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<2x4x1x7xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask might enlarge the scores}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// Masks for many columns beside one column.
// CHECK-LABEL: func.func @columns_enlarged
// CHECK-NOT: ds.attention
func.func @columns_enlarged(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x1x8xf32>, %arg2: tensor<2x4x7x8xf32>, %arg3: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x1x8xf32>) -> tensor<2x4x5x1xf32>
  %1 = ds.binary add %0, %arg3 : (tensor<2x4x5x1xf32>, tensor<5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the mask might enlarge the scores}}
  %3 = ds.matmul %2, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %3 : tensor<2x4x5x8xf32>
}

// -----

// The query is the same for all batches.
// CHECK-LABEL: func.func @one_batch_of_queries
// CHECK-NOT: ds.attention
func.func @one_batch_of_queries(%arg0: tensor<1x4x5x8xf32>, %arg1: tensor<3x4x7x8xf32>, %arg2: tensor<3x4x7x8xf32>) -> tensor<3x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x4x5x8xf32>, tensor<3x4x7x8xf32>) -> tensor<3x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<3x4x5x7xf32>) -> tensor<3x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<3x4x5x7xf32>, tensor<3x4x7x8xf32>) -> tensor<3x4x5x8xf32>
  return %2 : tensor<3x4x5x8xf32>
}

// -----

// The key is.
// CHECK-LABEL: func.func @one_batch_of_keys
// CHECK-NOT: ds.attention
func.func @one_batch_of_keys(%arg0: tensor<3x4x5x8xf32>, %arg1: tensor<1x4x7x8xf32>, %arg2: tensor<3x4x7x8xf32>) -> tensor<3x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<3x4x5x8xf32>, tensor<1x4x7x8xf32>) -> tensor<3x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<3x4x5x7xf32>) -> tensor<3x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<3x4x5x7xf32>, tensor<3x4x7x8xf32>) -> tensor<3x4x5x8xf32>
  return %2 : tensor<3x4x5x8xf32>
}

// -----

// The value is.
// CHECK-LABEL: func.func @one_batch_of_values
// CHECK-NOT: ds.attention
func.func @one_batch_of_values(%arg0: tensor<3x4x5x8xf32>, %arg1: tensor<3x4x7x8xf32>, %arg2: tensor<1x4x7x8xf32>) -> tensor<3x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<3x4x5x8xf32>, tensor<3x4x7x8xf32>) -> tensor<3x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<3x4x5x7xf32>) -> tensor<3x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<3x4x5x7xf32>, tensor<1x4x7x8xf32>) -> tensor<3x4x5x8xf32>
  return %2 : tensor<3x4x5x8xf32>
}

// -----

// Batches of run time, of which the query has one.
// CHECK-LABEL: func.func @queries_of_run_time
// CHECK-NOT: ds.attention
func.func @queries_of_run_time(%arg0: tensor<1x4x5x8xf32>, %arg1: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}, %arg2: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}) -> tensor<?x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x4x5x8xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<?x4x5x7xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x8xf32>
  return %2 : tensor<?x4x5x8xf32>
}

// -----

// The key has one.
// CHECK-LABEL: func.func @keys_of_run_time
// CHECK-NOT: ds.attention
func.func @keys_of_run_time(%arg0: tensor<?x4x5x8xf32> {ds.dims = ["b", 4, 5, 8]}, %arg1: tensor<1x4x7x8xf32>, %arg2: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}) -> tensor<?x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x4x5x8xf32>, tensor<1x4x7x8xf32>) -> tensor<?x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<?x4x5x7xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x8xf32>
  return %2 : tensor<?x4x5x8xf32>
}

// -----

// The value has one.
// CHECK-LABEL: func.func @values_of_run_time
// CHECK-NOT: ds.attention
func.func @values_of_run_time(%arg0: tensor<?x4x5x8xf32> {ds.dims = ["b", 4, 5, 8]}, %arg1: tensor<?x4x7x8xf32> {ds.dims = ["b", 4, 7, 8]}, %arg2: tensor<1x4x7x8xf32>) -> tensor<?x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x4x5x8xf32>, tensor<?x4x7x8xf32>) -> tensor<?x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<?x4x5x7xf32>, tensor<1x4x7x8xf32>) -> tensor<?x4x5x8xf32>
  return %2 : tensor<?x4x5x8xf32>
}

// -----

// One head of key and value.
// CHECK-LABEL: func.func @one_head_of_keys
// CHECK-NOT: ds.attention
func.func @one_head_of_keys(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x1x7x8xf32>, %arg2: tensor<2x1x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x1x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x1x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %2 : tensor<2x4x5x8xf32>
}

// -----

// One head of the value.
// CHECK-LABEL: func.func @one_head_of_values
// CHECK-NOT: ds.attention
func.func @one_head_of_values(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x4x7x8xf32>, %arg2: tensor<2x1x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: batch and heads of query, key and value differ}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x1x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %2 : tensor<2x4x5x8xf32>
}

// -----

// Three axes; one query for all heads.
// CHECK-LABEL: func.func @query_for_all_heads
// CHECK-NOT: ds.attention
func.func @query_for_all_heads(%arg0: tensor<1x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<1x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %2 : tensor<4x5x8xf32>
}

// -----

// One key.
// CHECK-LABEL: func.func @key_for_all_heads
// CHECK-NOT: ds.attention
func.func @key_for_all_heads(%arg0: tensor<4x5x8xf32>, %arg1: tensor<1x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<1x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %2 : tensor<4x5x8xf32>
}

// -----

// One value.
// CHECK-LABEL: func.func @value_for_all_heads
// CHECK-NOT: ds.attention
func.func @value_for_all_heads(%arg0: tensor<4x5x8xf32>, %arg1: tensor<4x7x8xf32>, %arg2: tensor<1x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<1x7x8xf32>) -> tensor<4x5x8xf32>
  return %2 : tensor<4x5x8xf32>
}

// -----

// As many heads as the key has, or a multiple of them that is called as many.
// CHECK-LABEL: func.func @four_heads_or_more
// CHECK-NOT: ds.attention
func.func @four_heads_or_more(%arg0: tensor<?x5x8xf32> {ds.dims = ["4*b", 5, 8]}, %arg1: tensor<4x7x8xf32>, %arg2: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = ds.softmax %0 axis 2 log false : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %2 = ds.matmul %1, %arg2 transpose [false, false] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %2 : tensor<4x5x8xf32>
}

// -----

// Batch and heads joined, of sizes that a run may find to differ. The query has no four heads.
// CHECK-LABEL: func.func @query_not_split
// CHECK-NOT: ds.attention
func.func @query_not_split(%arg0: tensor<?x?x8xf32> {ds.dims = ["c", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 4, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = ds.reshape %2 ["4*b", "s", "t"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}

// -----

// The key has none.
// CHECK-LABEL: func.func @key_not_split
// CHECK-NOT: ds.attention
func.func @key_not_split(%arg0: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["c", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 4, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = ds.reshape %2 ["4*b", "s", "t"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}

// -----

// The value has none.
// CHECK-LABEL: func.func @value_not_split
// CHECK-NOT: ds.attention
func.func @value_not_split(%arg0: tensor<?x?x8xf32> {ds.dims = ["4*b", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["4*b", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["c", "t", 8]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 4, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x4x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = ds.reshape %2 ["4*b", "s", "t"] : (tensor<?x4x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}

// -----

// One head: its batch may be 1.
// CHECK-LABEL: func.func @one_head
// CHECK-NOT: ds.attention
func.func @one_head(%arg0: tensor<?x?x8xf32> {ds.dims = ["b", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["c", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["c", "t", 8]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", 1, "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x1x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x1x?x?xf32>) -> tensor<?x1x?x?xf32>
  %3 = ds.reshape %2 ["b", "s", "t"] : (tensor<?x1x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}

// -----

// Heads that a run gives.
// CHECK-LABEL: func.func @split_by_run_time
// CHECK-NOT: ds.attention
func.func @split_by_run_time(%arg0: tensor<?x?x8xf32> {ds.dims = ["b*h", "s", 8]}, %arg1: tensor<?x?x8xf32> {ds.dims = ["c*h", "t", 8]}, %arg2: tensor<?x?x8xf32> {ds.dims = ["c*h", "t", 8]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %arg0, %arg1 transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.reshape %0 ["b", "h", "s", "t"] : (tensor<?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %3 = ds.reshape %2 ["b*h", "s", "t"] : (tensor<?x?x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{attention not recomposed: the scores do not split the first axis of query, key and value into batch and heads}}
  %4 = ds.matmul %3, %arg2 transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %4 : tensor<?x?x8xf32>
}
