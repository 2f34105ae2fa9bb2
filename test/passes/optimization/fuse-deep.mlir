// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-numerics -o /dev/null 2>/dev/null
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-NEXT: %[[A:.*]] = ds.linear %arg0, %arg1
// CHECK-NEXT: %[[B:.*]] = ds.gelu erf %[[A]]
// CHECK-NEXT: %[[C:.*]] = ds.binary add %[[B]], %arg2
// CHECK-NEXT: ds.yield %[[C]]
// CHECK: return %[[Y]]
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %w: tensor<4x8xf32> {ds.dims = [4, 8]},
               %r: tensor<?x8xf32> {ds.dims = ["n", 8]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %1 = ds.gelu erf %0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = ds.binary add %1, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// One number, one for each column, one for each row, and one for each index of the last axis of rows.
// CHECK-LABEL: func.func @operands
// CHECK: ds.fused
// CHECK-NEXT: ds.linear
// CHECK-COUNT-4: ds.binary
// CHECK: ds.yield
func.func @operands(%x: tensor<?x3x5xf32> {ds.dims = ["n", 3, 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                    %one: tensor<1xf32> {ds.dims = [1]}, %columns: tensor<20xf32> {ds.dims = [20]},
                    %rows: tensor<?x3x1xf32> {ds.dims = ["n", 3, 1]}, %last: tensor<3x1xf32> {ds.dims = [3, 1]})
    -> tensor<?x3x20xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x3x5xf32>, tensor<5x20xf32>) -> tensor<?x3x20xf32>
  %1 = ds.binary mul %0, %one : (tensor<?x3x20xf32>, tensor<1xf32>) -> tensor<?x3x20xf32>
  %2 = ds.binary add %1, %columns : (tensor<?x3x20xf32>, tensor<20xf32>) -> tensor<?x3x20xf32>
  %3 = ds.binary sub %rows, %2 : (tensor<?x3x1xf32>, tensor<?x3x20xf32>) -> tensor<?x3x20xf32>
  %4 = ds.binary max %3, %last : (tensor<?x3x20xf32>, tensor<3x1xf32>) -> tensor<?x3x20xf32>
  return %4 : tensor<?x3x20xf32>
}

// -----

// What one batch has is neither.
// CHECK-LABEL: func.func @of_a_batch
// CHECK-NOT: ds.fused
func.func @of_a_batch(%x: tensor<2x3x5xf32> {ds.dims = [2, 3, 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                      %batch: tensor<2x1x1xf32> {ds.dims = [2, 1, 1]}) -> tensor<2x3x20xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<2x3x5xf32>, tensor<5x20xf32>) -> tensor<2x3x20xf32>
  // expected-remark @+1 {{does not join the region of 'ds.linear': an operand is neither as large nor one number, one for each column, or one for each row}}
  %1 = ds.binary mul %0, %batch : (tensor<2x3x20xf32>, tensor<2x1x1xf32>) -> tensor<2x3x20xf32>
  return %1 : tensor<2x3x20xf32>
}

// -----

// Nor is what may turn out to be one number at run time.
// CHECK-LABEL: func.func @may_be_one
// CHECK-NOT: ds.fused
func.func @may_be_one(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                      %r: tensor<?x20xf32> {ds.dims = ["m", 20]}) -> tensor<?x20xf32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  // expected-remark @+1 {{its result has other sizes}}
  %1 = ds.binary add %0, %r : (tensor<?x20xf32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  return %1 : tensor<?x20xf32>
}

// -----

// A gate: what only the epilogue needs joins, a value that is also read elsewhere is a result.
// CHECK-LABEL: func.func @producers_and_results
// CHECK-NEXT: %[[R:.*]]:2 = ds.fused attributes {ds.values = ["y", ""]}
// CHECK-NEXT: %[[A:.*]] = ds.linear
// CHECK-NEXT: %[[G:.*]] = ds.unary exp %arg2
// CHECK-NEXT: %[[B:.*]] = ds.binary mul %[[A]], %[[G]]
// CHECK-NEXT: ds.yield %[[A]], %[[B]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @producers_and_results(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x50xf32> {ds.dims = [5, 50]},
                                 %g: tensor<?x50xf32> {ds.dims = ["n", 50]})
    -> (tensor<?x50xf32>, tensor<?x50xf32>) attributes {ds.entry} {
  %0 = ds.linear %x, %w {ds.values = ["y"]} : (tensor<?x5xf32>, tensor<5x50xf32>) -> tensor<?x50xf32>
  %1 = ds.unary exp %g : (tensor<?x50xf32>) -> tensor<?x50xf32>
  %2 = ds.binary mul %0, %1 : (tensor<?x50xf32>, tensor<?x50xf32>) -> tensor<?x50xf32>
  return %0, %2 : tensor<?x50xf32>, tensor<?x50xf32>
}

// -----

// Of two products that are added, the first takes the sum; the region stands behind the second.
// CHECK-LABEL: func.func @two_products
// CHECK-NEXT: %[[S:.*]] = ds.matmul %arg1, %arg0
// CHECK-NEXT: ds.fused
// CHECK-NEXT: %[[F:.*]] = ds.matmul %arg0, %arg1
// CHECK-NEXT: ds.binary add %[[F]], %[[S]]
func.func @two_products(%x: tensor<3x3xf32> {ds.dims = [3, 3]}, %y: tensor<3x3xf32> {ds.dims = [3, 3]})
    -> tensor<3x3xf32> attributes {ds.entry} {
  %0 = ds.matmul %x, %y transpose [false, false] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = ds.matmul %y, %x transpose [false, false] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-remark @+1 {{does not join the region of 'ds.matmul': it is in another region}}
  %2 = ds.binary add %0, %1 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %2 : tensor<3x3xf32>
}

// -----

// Where the second needs the first, the second takes it.
// CHECK-LABEL: func.func @in_between
// CHECK-NEXT: %[[F:.*]] = ds.matmul %arg0, %arg1
// CHECK-NEXT: ds.fused
// CHECK-NEXT: %[[S:.*]] = ds.matmul %[[F]], %arg0
// CHECK-NEXT: ds.binary add %[[F]], %[[S]]
func.func @in_between(%x: tensor<3x3xf32> {ds.dims = [3, 3]}, %y: tensor<3x3xf32> {ds.dims = [3, 3]})
    -> tensor<3x3xf32> attributes {ds.entry} {
  %0 = ds.matmul %x, %y transpose [false, false] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-remark @+1 {{does not join the region of 'ds.matmul': it is not elementwise}}
  %1 = ds.matmul %0, %x transpose [false, false] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-remark @+1 {{does not join the region of 'ds.matmul': something between them needs the anchor's result}}
  %2 = ds.binary add %0, %1 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %2 : tensor<3x3xf32>
}

// -----

// Booleans stay between ops.
// CHECK-LABEL: func.func @chosen
// CHECK: ds.fused
// CHECK: ds.select
// CHECK-NEXT: ds.yield
func.func @chosen(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]})
    -> tensor<?x20xf32> attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.linear %x, %w : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %1 = ds.binary lt %0, %zero : (tensor<?x20xf32>, tensor<f32>) -> tensor<?x20xi1>
  %2 = ds.select %1, %zero, %0 : (tensor<?x20xi1>, tensor<f32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  return %2 : tensor<?x20xf32>
}

// -----

// CHECK-LABEL: func.func @booleans_outside
// CHECK-NOT: ds.fused
func.func @booleans_outside(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x20xf32> {ds.dims = [5, 20]},
                            %m: tensor<?x20xi1> {ds.dims = ["n", 20]}) -> (tensor<?x20xi1>, tensor<?x20xf32>)
    attributes {ds.entry} {
  %zero = ds.constant dense<0.0> : tensor<f32>
  %0 = ds.linear %x, %w : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  // expected-remark @+1 {{a result is not what vectors store}}
  %1 = ds.binary lt %0, %zero : (tensor<?x20xf32>, tensor<f32>) -> tensor<?x20xi1>
  // expected-remark @+1 {{an operand is not what vectors load}}
  %2 = ds.select %m, %zero, %0 : (tensor<?x20xi1>, tensor<f32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  return %1, %2 : tensor<?x20xi1>, tensor<?x20xf32>
}

// -----

// Integer division looks for zeros first.
// CHECK-LABEL: func.func @division
// CHECK-NOT: ds.fused
func.func @division(%x: tensor<4x5xi32> {ds.dims = [4, 5]}, %w: tensor<5x6xi32> {ds.dims = [5, 6]},
                    %d: tensor<4x6xi32> {ds.dims = [4, 6]}) -> tensor<4x6xi32> attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<4x5xi32>, tensor<5x6xi32>) -> tensor<4x6xi32>
  %one = ds.constant dense<1> : tensor<i32>
  %e = ds.binary max %d, %one : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  // expected-remark @+1 {{it is not elementwise}}
  %1 = ds.binary div %0, %e : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  return %1 : tensor<4x6xi32>
}

// -----

// A convolution's columns are pixels: a number for each filter is one for each index of the last axis of rows.
// CHECK-LABEL: func.func @convolution
// CHECK: ds.fused
// CHECK-NEXT: ds.conv
// CHECK-NEXT: ds.binary mul
// CHECK-NEXT: ds.binary add
// CHECK-NEXT: ds.unary relu
// CHECK-NEXT: ds.yield
func.func @convolution(%x: tensor<?x3x9xf32> {ds.dims = ["n", 3, 9]}, %w: tensor<5x3x3xf32> {ds.dims = [5, 3, 3]},
                       %s: tensor<1x5x1xf32> {ds.dims = [1, 5, 1]}, %r: tensor<?x5x7xf32> {ds.dims = ["n", 5, 7]})
    -> tensor<?x5x7xf32> attributes {ds.entry} {
  %0 = ds.conv %x, %w strides [1] pads [0, 0] dilations [1] groups 1
      : (tensor<?x3x9xf32>, tensor<5x3x3xf32>) -> tensor<?x5x7xf32>
  %1 = ds.binary mul %0, %s : (tensor<?x5x7xf32>, tensor<1x5x1xf32>) -> tensor<?x5x7xf32>
  %2 = ds.binary add %1, %r : (tensor<?x5x7xf32>, tensor<?x5x7xf32>) -> tensor<?x5x7xf32>
  %3 = ds.unary relu %2 : (tensor<?x5x7xf32>) -> tensor<?x5x7xf32>
  return %3 : tensor<?x5x7xf32>
}

// -----

// Heads are read and written where they lie.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-DAG: ds.transpose %arg0
// CHECK-DAG: ds.transpose %arg1
// CHECK-DAG: %[[S:.*]] = ds.slice %arg2
// CHECK-DAG: ds.transpose %[[S]]
// CHECK: %[[A:.*]] = ds.attention
// CHECK-NEXT: %[[T:.*]] = ds.transpose %[[A]]
// CHECK-NEXT: ds.yield %[[T]]
// CHECK: return %[[Y]]
func.func @heads(%q: tensor<?x?x2x4xf32> {ds.dims = ["b", "s", 2, 4]}, %k: tensor<?x?x4x2xf32> {ds.dims = ["b", "t", 4, 2]},
                 %v: tensor<?x?x5x3xf32> {ds.dims = ["b", "t", 5, 3]}) -> tensor<?x?x2x3xf32> attributes {ds.entry} {
  %0 = ds.transpose %q [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %1 = ds.transpose %k [0, 3, 1, 2] : (tensor<?x?x4x2xf32>) -> tensor<?x2x?x4xf32>
  %2 = ds.slice %v starts [0, 0, 2, 0] sizes ["b", "t", 2, 3] steps [1, 1, 1, 1] : (tensor<?x?x5x3xf32>) -> tensor<?x?x2x3xf32>
  %3 = ds.transpose %2 [0, 2, 1, 3] : (tensor<?x?x2x3xf32>) -> tensor<?x2x?x3xf32>
  %4 = ds.attention %0, %1, %3 scale 0.5 : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x3xf32>) -> tensor<?x2x?x3xf32>
  %5 = ds.transpose %4 [0, 2, 1, 3] : (tensor<?x2x?x3xf32>) -> tensor<?x?x2x3xf32>
  return %5 : tensor<?x?x2x3xf32>
}

// -----

// The derivative of an attention reads through windows what the attention does, and stores each result as the transpose
// behind it has it.
// CHECK-LABEL: func.func @attention_gradient
// CHECK: %[[Y:.*]]:3 = ds.fused
// CHECK-COUNT-4: ds.transpose
// CHECK: %[[OQ:.*]], %[[OK:.*]], %[[OV:.*]] = ds.attention_gradient
// CHECK-NEXT: %[[Q:.*]] = ds.transpose %[[OQ]]
// CHECK-NEXT: %[[V:.*]] = ds.transpose %[[OV]]
// CHECK-NEXT: ds.yield %[[OK]], %[[Q]], %[[V]]
// CHECK: return %[[Y]]#1, %[[Y]]#0, %[[Y]]#2
func.func @attention_gradient(%q: tensor<?x?x2x4xf32> {ds.dims = ["b", "s", 2, 4]}, %k: tensor<?x?x2x4xf32> {ds.dims = ["b", "t", 2, 4]},
                              %v: tensor<?x?x2x3xf32> {ds.dims = ["b", "t", 2, 3]}, %g: tensor<?x?x2x3xf32> {ds.dims = ["b", "s", 2, 3]})
    -> (tensor<?x?x2x4xf32>, tensor<?x2x?x4xf32>, tensor<?x?x2x3xf32>) attributes {ds.entry} {
  %0 = ds.transpose %q [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %1 = ds.transpose %k [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %2 = ds.transpose %v [0, 2, 1, 3] : (tensor<?x?x2x3xf32>) -> tensor<?x2x?x3xf32>
  %3 = ds.transpose %g [0, 2, 1, 3] : (tensor<?x?x2x3xf32>) -> tensor<?x2x?x3xf32>
  %4:3 = ds.attention_gradient %0, %1, %2, %3 scale 0.5 : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x3xf32>, tensor<?x2x?x3xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x3xf32>)
  %5 = ds.transpose %4#0 [0, 2, 1, 3] : (tensor<?x2x?x4xf32>) -> tensor<?x?x2x4xf32>
  %6 = ds.transpose %4#2 [0, 2, 1, 3] : (tensor<?x2x?x3xf32>) -> tensor<?x?x2x3xf32>
  return %5, %4#1, %6 : tensor<?x?x2x4xf32>, tensor<?x2x?x4xf32>, tensor<?x?x2x3xf32>
}

// -----

// A mask is read from memory, so that a query that is also the mask stays there.
// CHECK-LABEL: func.func @query_and_mask
// CHECK-NEXT: ds.transpose %arg0
// CHECK-NEXT: ds.attention
func.func @query_and_mask(%q: tensor<1x3x2x3xf32> {ds.dims = [1, 3, 2, 3]}, %k: tensor<1x2x3x3xf32> {ds.dims = [1, 2, 3, 3]})
    -> tensor<1x2x3x3xf32> attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.attention': something else reads it}}
  %0 = ds.transpose %q [0, 2, 1, 3] : (tensor<1x3x2x3xf32>) -> tensor<1x2x3x3xf32>
  %1 = ds.attention %0, %k, %k [add %0] scale 0.5
      : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %1 : tensor<1x2x3x3xf32>
}

// -----

// What the anchor reads is in memory before it, also where all other readers are in the region.
// CHECK-LABEL: func.func @residual
// CHECK-NEXT: %[[T:.*]] = ds.unary relu %arg0
// CHECK-NEXT: ds.fused
// CHECK-NEXT: ds.linear %[[T]], %arg1
// CHECK-NEXT: ds.binary add %{{.*}}, %[[T]]
func.func @residual(%x: tensor<?x5xf32> {ds.dims = ["n", 5]}, %w: tensor<5x5xf32> {ds.dims = [5, 5]}) -> tensor<?x5xf32>
    attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.linear': the product's weight is not packed}}
  %0 = ds.unary relu %x : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %1 = ds.linear %0, %w : (tensor<?x5xf32>, tensor<5x5xf32>) -> tensor<?x5xf32>
  %2 = ds.binary add %1, %0 : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  return %2 : tensor<?x5xf32>
}

// -----

// Parts of one product are read where they lie: slices, and reshapes of them as long as strides reach what they show.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %[[Y:.*]] = ds.fused {
// CHECK-DAG: ds.slice %arg0 starts [0, 0, 0]
// CHECK-DAG: ds.slice %arg0 starts [0, 0, 8]
// CHECK-DAG: ds.slice %arg0 starts [0, 0, 16]
// CHECK: ds.attention
// CHECK-NEXT: ds.yield
// CHECK: return %[[Y]]
func.func @parts(%x: tensor<?x?x24xf32> {ds.dims = ["b", "s", 24]}) -> tensor<?x2x?x4xf32> attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 0, 0] sizes ["b", "s", 8] steps [1, 1, 1] : (tensor<?x?x24xf32>) -> tensor<?x?x8xf32>
  %1 = ds.slice %x starts [0, 0, 8] sizes ["b", "s", 8] steps [1, 1, 1] : (tensor<?x?x24xf32>) -> tensor<?x?x8xf32>
  %2 = ds.slice %x starts [0, 0, 16] sizes ["b", "s", 8] steps [1, 1, 1] : (tensor<?x?x24xf32>) -> tensor<?x?x8xf32>
  %3 = ds.reshape %0 ["b", "s", 2, 4] : (tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32>
  %4 = ds.reshape %1 ["b", "s", 2, 4] : (tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32>
  %5 = ds.reshape %2 ["b", "s", 2, 4] : (tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32>
  %6 = ds.transpose %3 [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %7 = ds.transpose %4 [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %8 = ds.transpose %5 [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %9 = ds.attention %6, %7, %8 scale 0.5 : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %9 : tensor<?x2x?x4xf32>
}

// -----

// A transpose of all parts, of which single ones are taken: every reader has its own.
// CHECK-LABEL: func.func @gathered_parts
// CHECK-NOT: ds.gather
// CHECK: %[[X:.*]] = ds.reshape %arg0
// CHECK-NEXT: ds.fused {
// CHECK-COUNT-3: ds.transpose %[[X]] [2, 0, 3, 1, 4]
// CHECK: ds.attention
// CHECK-NEXT: ds.yield
func.func @gathered_parts(%x: tensor<?x?x24xf32> {ds.dims = ["b", "s", 24]}) -> tensor<?x2x?x4xf32> attributes {ds.entry} {
  %i = ds.constant dense<0> : tensor<i64>
  %j = ds.constant dense<1> : tensor<i64>
  %k = ds.constant dense<-1> : tensor<i64>
  %0 = ds.reshape %x ["b", "s", 3, 2, 4] : (tensor<?x?x24xf32>) -> tensor<?x?x3x2x4xf32>
  %1 = ds.transpose %0 [2, 0, 3, 1, 4] : (tensor<?x?x3x2x4xf32>) -> tensor<3x?x2x?x4xf32>
  %2 = ds.gather 0 %1, %i : (tensor<3x?x2x?x4xf32>, tensor<i64>) -> tensor<?x2x?x4xf32>
  %3 = ds.gather 0 %1, %j : (tensor<3x?x2x?x4xf32>, tensor<i64>) -> tensor<?x2x?x4xf32>
  %4 = ds.gather 0 %1, %k : (tensor<3x?x2x?x4xf32>, tensor<i64>) -> tensor<?x2x?x4xf32>
  %5 = ds.attention %2, %3, %4 scale 0.5 : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %5 : tensor<?x2x?x4xf32>
}

// -----

// A slice of codes would have no scale.
// CHECK-LABEL: func.func @gathered_codes
// CHECK: ds.gather 0 %arg0, %{{.*}} scales %arg1
func.func @gathered_codes(%q: tensor<50x8xi8> {ds.dims = [50, 8]}, %s: tensor<50x2xf32> {ds.dims = [50, 2]}) -> tensor<8xf32> attributes {ds.entry} {
  %i = ds.constant dense<3> : tensor<i64>
  %0 = ds.gather 0 %q, %i scales %s : (tensor<50x8xi8>, tensor<i64>, tensor<50x2xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A reshape that no strides reach is copied: here the result of the transpose before it.
// CHECK-LABEL: func.func @unreachable
// CHECK-NEXT: %[[T:.*]] = ds.transpose %arg0
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[T]]
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[Q:.*]] = ds.transpose %[[R]]
// CHECK-NEXT: ds.attention %[[Q]], %arg1, %arg1
func.func @unreachable(%x: tensor<?x3x4xf32> {ds.dims = ["s", 3, 4]}, %k: tensor<1x2x5x2xf32> {ds.dims = [1, 2, 5, 2]})
    -> tensor<1x2x?x2xf32> attributes {ds.entry} {
  %0 = ds.transpose %x [1, 0, 2] : (tensor<?x3x4xf32>) -> tensor<3x?x4xf32>
  // expected-remark @+1 {{does not join the region of 'ds.attention': it joins axes between which elements are left out}}
  %1 = ds.reshape %0 [1, "3*s", 2, 2] : (tensor<3x?x4xf32>) -> tensor<1x?x2x2xf32>
  %2 = ds.transpose %1 [0, 2, 1, 3] : (tensor<1x?x2x2xf32>) -> tensor<1x2x?x2xf32>
  %3 = ds.attention %2, %k, %k scale 0.5 : (tensor<1x2x?x2xf32>, tensor<1x2x5x2xf32>, tensor<1x2x5x2xf32>) -> tensor<1x2x?x2xf32>
  return %3 : tensor<1x2x?x2xf32>
}

// -----

// What is joined, inserted, normalized or turned on its own is read through windows.
// CHECK-LABEL: func.func @readers
// CHECK: ds.fused {
// CHECK-NEXT: ds.slice
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: %[[T:.*]] = ds.transpose
// CHECK-NEXT: ds.concat 0 %arg1, %[[T]]
// CHECK: ds.fused {
// CHECK-NEXT: %[[S:.*]] = ds.slice
// CHECK-NEXT: ds.rms_norm %[[S]]
// CHECK: ds.fused {
// CHECK-NEXT: %[[S:.*]] = ds.slice
// CHECK-NEXT: ds.rotary %[[S]]
// CHECK: ds.fused {
// CHECK-NEXT: %[[S:.*]] = ds.slice
// CHECK-NEXT: ds.insert %[[S]] into %arg2
func.func @readers(%x: tensor<?x24xf32> {ds.dims = ["s", 24]}, %past: tensor<?x?x4xf32> {ds.dims = ["p", "s", 4]},
                   %into: tensor<?x8xf32> {ds.dims = ["c", 8]}, %s: tensor<8xf32> {ds.dims = [8]})
    -> (tensor<?x?x4xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 8] sizes ["s", 8] steps [1, 1] : (tensor<?x24xf32>) -> tensor<?x8xf32>
  %1 = ds.reshape %0 ["s", 2, 4] : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
  %2 = ds.transpose %1 [1, 0, 2] : (tensor<?x2x4xf32>) -> tensor<2x?x4xf32>
  %3 = ds.concat 0 %past, %2 : (tensor<?x?x4xf32>, tensor<2x?x4xf32>) -> tensor<?x?x4xf32>
  %4 = ds.rms_norm %0, %s axis 1 epsilon 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %5 = ds.rotary %0, %s, %s interleaved false : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %6 = ds.insert %0 into %into starts [1, 0] : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %3, %4, %5, %6 : tensor<?x?x4xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// What tiles share, one number for each column, is computed by each of them where that takes no time: a zero point
// times the sums of the weight's columns.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT: ds.fused {
// CHECK-NEXT: %[[P:.*]] = ds.linear
// CHECK-NEXT: %[[T:.*]] = ds.binary mul %arg2, %arg3
// CHECK-NEXT: ds.binary sub %[[P]], %[[T]]
// CHECK-NEXT: ds.yield
func.func @shared(%x: tensor<?x3xui8>, %w: tensor<3x40xi8>, %z: tensor<i32>, %sums: tensor<40xi32>) -> tensor<?x40xi32>
    attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x3xui8>, tensor<3x40xi8>) -> tensor<?x40xi32>
  %1 = ds.binary mul %z, %sums : (tensor<i32>, tensor<40xi32>) -> tensor<40xi32>
  %2 = ds.binary sub %0, %1 : (tensor<?x40xi32>, tensor<40xi32>) -> tensor<?x40xi32>
  return %2 : tensor<?x40xi32>
}

// -----

// Not what takes long, what something else reads, or numbers that all tiles share.
// CHECK-LABEL: func.func @computed_once
// CHECK: ds.unary exp
// CHECK: ds.binary mul %arg2, %arg2
// CHECK: ds.binary add %arg3, %arg3
// CHECK: ds.fused {
// CHECK-NEXT: ds.linear
// CHECK-NEXT: ds.binary add
// CHECK-NEXT: ds.binary mul
// CHECK-NEXT: ds.binary sub
// CHECK-NEXT: ds.yield
func.func @computed_once(%x: tensor<?x3xf32>, %w: tensor<3x40xf32>, %z: tensor<f32>, %b: tensor<40xf32>)
    -> (tensor<?x40xf32>, tensor<40xf32>) attributes {ds.entry} {
  %0 = ds.linear %x, %w : (tensor<?x3xf32>, tensor<3x40xf32>) -> tensor<?x40xf32>
  %1 = ds.unary exp %b : (tensor<40xf32>) -> tensor<40xf32>
  %2 = ds.binary mul %z, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = ds.binary add %b, %b : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %4 = ds.binary add %0, %1 : (tensor<?x40xf32>, tensor<40xf32>) -> tensor<?x40xf32>
  %5 = ds.binary mul %4, %2 : (tensor<?x40xf32>, tensor<f32>) -> tensor<?x40xf32>
  %6 = ds.binary sub %5, %3 : (tensor<?x40xf32>, tensor<40xf32>) -> tensor<?x40xf32>
  return %6, %3 : tensor<?x40xf32>, tensor<40xf32>
}
