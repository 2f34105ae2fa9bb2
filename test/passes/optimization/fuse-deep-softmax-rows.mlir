// Keys and values of attention in parts that its kernel puts together, turns or repeats before they become codes: bits
// are compared by test/integration/statically_quantized_cases.py.
// RUN: ds-opt %s --split-input-file --ds-fuse-deep | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-fuse-deep --verify-diagnostics -o /dev/null

// New rows are parts of one product. The kernel appends them to the caches; it shows the keys' new row and all values.
// CHECK-LABEL: func.func @cache
// CHECK: %[[Y:.*]]:3 = ds.fused {
// CHECK: %[[NEW:.*]] = ds.transpose %{{.*}} [0, 2, 1, 3] : (tensor<?x1x2x4xf32>)
// CHECK: %[[K:.*]] = ds.concat 2 %arg1, %[[NEW]]
// CHECK: %[[V:.*]] = ds.concat 2 %arg2
// CHECK: %[[KT:.*]] = ds.transpose %[[K]] [0, 1, 3, 2]
// CHECK-NEXT: %[[KC:.*]] = ds.cast %[[KT]] to i32
// CHECK-NEXT: %[[P:.*]] = ds.matmul %{{.*}}, %[[KC]]
// CHECK: %[[S:.*]] = ds.softmax
// CHECK-NEXT: %[[R:.*]] = ds.unary round %[[V]]
// CHECK-NEXT: %[[C:.*]] = ds.matmul %[[S]], %[[R]]
// CHECK-NEXT: ds.yield %[[NEW]], %[[V]], %[[C]]
// CHECK: return %[[Y]]#2, %[[Y]]#0, %[[Y]]#1
func.func @cache(%x: tensor<?x1x24xf32> {ds.dims = ["b", 1, 24]}, %pk: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]},
                 %pv: tensor<?x2x?x4xf32> {ds.dims = ["b", 2, "p", 4]})
    -> (tensor<?x2x1x4xf32>, tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>) attributes {ds.entry} {
  %0 = ds.slice %x starts [0, 0, 0] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %1 = ds.slice %x starts [0, 0, 8] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %2 = ds.slice %x starts [0, 0, 16] sizes ["b", 1, 8] steps [1, 1, 1] : (tensor<?x1x24xf32>) -> tensor<?x1x8xf32>
  %3 = ds.reshape %0 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %4 = ds.reshape %1 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %5 = ds.reshape %2 ["b", 1, 2, 4] : (tensor<?x1x8xf32>) -> tensor<?x1x2x4xf32>
  %6 = ds.transpose %3 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %7 = ds.transpose %4 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %8 = ds.transpose %5 [0, 2, 1, 3] : (tensor<?x1x2x4xf32>) -> tensor<?x2x1x4xf32>
  %9 = ds.concat 2 %pk, %7 : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %10 = ds.concat 2 %pv, %8 : (tensor<?x2x?x4xf32>, tensor<?x2x1x4xf32>) -> tensor<?x2x?x4xf32>
  %11 = ds.cast %6 to i32 : (tensor<?x2x1x4xf32>) -> tensor<?x2x1x4xi32>
  %12 = ds.transpose %9 [0, 1, 3, 2] : (tensor<?x2x?x4xf32>) -> tensor<?x2x4x?xf32>
  %13 = ds.cast %12 to i32 : (tensor<?x2x4x?xf32>) -> tensor<?x2x4x?xi32>
  %14 = ds.matmul %11, %13 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<?x2x1x4xi32>, tensor<?x2x4x?xi32>) -> tensor<?x2x1x?xi32>
  %15 = ds.cast %14 to f32 : (tensor<?x2x1x?xi32>) -> tensor<?x2x1x?xf32>
  %16 = ds.softmax %15 axis 3 log false : (tensor<?x2x1x?xf32>) -> tensor<?x2x1x?xf32>
  %17 = ds.unary round %10 : (tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %18 = ds.matmul %16, %17 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<?x2x1x?xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x1x4xf32>
  return %18, %7, %10 : tensor<?x2x1x4xf32>, tensor<?x2x1x4xf32>, tensor<?x2x?x4xf32>
}

// -----

// Queries and keys are turned where they are read; heads of queries share those of keys and values.
// CHECK-LABEL: func.func @shared
// CHECK: %[[Y:.*]]:2 = ds.fused {
// CHECK: %[[Q:.*]] = ds.rotary %arg0, %arg4, %arg4
// CHECK-NEXT: %[[T:.*]] = ds.rotary %arg1, %arg5, %arg5
// CHECK-NEXT: %[[K:.*]] = ds.concat 2 %arg2, %[[T]]
// CHECK-NEXT: ds.cast %[[Q]] to i32
// CHECK-NEXT: ds.reshape %[[K]]
// CHECK-NEXT: ds.broadcast
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: ds.transpose
// CHECK-NEXT: ds.cast
// CHECK: ds.softmax
// CHECK-NEXT: ds.reshape %arg3
// CHECK-NEXT: ds.broadcast
// CHECK-NEXT: ds.reshape
// CHECK-NEXT: ds.matmul
// CHECK-NEXT: ds.yield %[[K]], %{{.*}}
// CHECK: return %[[Y]]#1, %[[Y]]#0
func.func @shared(%q: tensor<1x4x1x8xf32> {ds.dims = [1, 4, 1, 8]}, %k: tensor<1x2x1x8xf32> {ds.dims = [1, 2, 1, 8]},
                  %pk: tensor<1x2x?x8xf32> {ds.dims = [1, 2, "p", 8]}, %v: tensor<1x2x?x8xf32> {ds.dims = [1, 2, "p + 1", 8]},
                  %qt: tensor<1x1x1x8xf32> {ds.dims = [1, 1, 1, 8]}, %kt: tensor<1x1x1x8xf32> {ds.dims = [1, 1, 1, 8]})
    -> (tensor<1x4x1x8xf32>, tensor<1x2x?x8xf32>) attributes {ds.entry} {
  %0 = ds.rotary %q, %qt, %qt interleaved false : (tensor<1x4x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x4x1x8xf32>
  %1 = ds.rotary %k, %kt, %kt interleaved false : (tensor<1x2x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x2x1x8xf32>
  %2 = ds.concat 2 %pk, %1 : (tensor<1x2x?x8xf32>, tensor<1x2x1x8xf32>) -> tensor<1x2x?x8xf32>
  %3 = ds.reshape %2 [1, 2, 1, "p + 1", 8] : (tensor<1x2x?x8xf32>) -> tensor<1x2x1x?x8xf32>
  %4 = ds.broadcast %3 [1, 1, 2, 1, 1] : (tensor<1x2x1x?x8xf32>) -> tensor<1x2x2x?x8xf32>
  %5 = ds.reshape %4 [1, 4, "p + 1", 8] : (tensor<1x2x2x?x8xf32>) -> tensor<1x4x?x8xf32>
  %6 = ds.transpose %5 [0, 1, 3, 2] : (tensor<1x4x?x8xf32>) -> tensor<1x4x8x?xf32>
  %7 = ds.cast %0 to i32 : (tensor<1x4x1x8xf32>) -> tensor<1x4x1x8xi32>
  %8 = ds.cast %6 to i32 : (tensor<1x4x8x?xf32>) -> tensor<1x4x8x?xi32>
  %9 = ds.matmul %7, %8 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x4x1x8xi32>, tensor<1x4x8x?xi32>) -> tensor<1x4x1x?xi32>
  %10 = ds.cast %9 to f32 : (tensor<1x4x1x?xi32>) -> tensor<1x4x1x?xf32>
  %11 = ds.softmax %10 axis 3 log false : (tensor<1x4x1x?xf32>) -> tensor<1x4x1x?xf32>
  %12 = ds.reshape %v [1, 2, 1, "p + 1", 8] : (tensor<1x2x?x8xf32>) -> tensor<1x2x1x?x8xf32>
  %13 = ds.broadcast %12 [1, 1, 2, 1, 1] : (tensor<1x2x1x?x8xf32>) -> tensor<1x2x2x?x8xf32>
  %14 = ds.reshape %13 [1, 4, "p + 1", 8] : (tensor<1x2x2x?x8xf32>) -> tensor<1x4x?x8xf32>
  %15 = ds.matmul %11, %14 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x4x1x?xf32>, tensor<1x4x?x8xf32>) -> tensor<1x4x1x8xf32>
  return %15, %2 : tensor<1x4x1x8xf32>, tensor<1x2x?x8xf32>
}

// -----

// Keys that are repeated stay outside beside values that are not; what joins features is no cache.
// CHECK-LABEL: func.func @apart
// CHECK: ds.concat 3
// CHECK: ds.broadcast
// CHECK: ds.fused {
// CHECK-NOT: ds.broadcast
// CHECK: ds.yield
// CHECK: return
func.func @apart(%q: tensor<1x4x1x8xi32>, %k: tensor<1x2x5x8xi32>, %v: tensor<1x4x5x3xf32>, %w: tensor<1x4x5x1xf32>)
    -> tensor<1x4x1x4xf32> attributes {ds.entry} {
  // expected-remark @+1 {{does not join the region of 'ds.softmax': it joins something else than tokens}}
  %0 = ds.concat 3 %v, %w : (tensor<1x4x5x3xf32>, tensor<1x4x5x1xf32>) -> tensor<1x4x5x4xf32>
  %1 = ds.reshape %k [1, 2, 1, 5, 8] : (tensor<1x2x5x8xi32>) -> tensor<1x2x1x5x8xi32>
  %2 = ds.broadcast %1 [1, 1, 2, 1, 1] : (tensor<1x2x1x5x8xi32>) -> tensor<1x2x2x5x8xi32>
  %3 = ds.reshape %2 [1, 4, 5, 8] : (tensor<1x2x2x5x8xi32>) -> tensor<1x4x5x8xi32>
  %4 = ds.transpose %3 [0, 1, 3, 2] : (tensor<1x4x5x8xi32>) -> tensor<1x4x8x5xi32>
  %5 = ds.matmul %q, %4 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x4x1x8xi32>, tensor<1x4x8x5xi32>) -> tensor<1x4x1x5xi32>
  %6 = ds.cast %5 to f32 : (tensor<1x4x1x5xi32>) -> tensor<1x4x1x5xf32>
  %7 = ds.softmax %6 axis 3 log false : (tensor<1x4x1x5xf32>) -> tensor<1x4x1x5xf32>
  %8 = ds.matmul %7, %0 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x4x1x5xf32>, tensor<1x4x5x4xf32>) -> tensor<1x4x1x4xf32>
  return %8 : tensor<1x4x1x4xf32>
}

// -----

// Values that are shown behind their steps are a result, which the product reads; codes before that are not.
// CHECK-LABEL: func.func @shown
// CHECK: %[[Y:.*]]:2 = ds.fused {
// CHECK: %[[V:.*]] = ds.concat 2 %arg2, %arg3
// CHECK: %[[R:.*]] = ds.unary round %[[V]]
// CHECK: %[[C:.*]] = ds.matmul %{{.*}}, %[[R]]
// CHECK-NEXT: ds.yield %[[R]], %[[C]]
// CHECK: return %[[Y]]#1, %[[Y]]#0
// CHECK-LABEL: func.func @codes
// CHECK: %[[CODES:.*]] = ds.unary round %arg2
// CHECK: ds.fused {
// CHECK: ds.unary neg %[[CODES]]
// CHECK: return %{{.*}}, %[[CODES]]
func.func @shown(%q: tensor<1x2x1x4xi32>, %k: tensor<1x2x4x6xi32>, %pv: tensor<1x2x5x4xf32>, %v: tensor<1x2x1x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>) attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x4xi32>, tensor<1x2x4x6xi32>) -> tensor<1x2x1x6xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x1x6xi32>) -> tensor<1x2x1x6xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x1x6xf32>) -> tensor<1x2x1x6xf32>
  %3 = ds.concat 2 %pv, %v : (tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32>) -> tensor<1x2x6x4xf32>
  %4 = ds.unary round %3 : (tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  %5 = ds.matmul %2, %4 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x1x4xf32>
  return %5, %4 : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>
}
func.func @codes(%q: tensor<1x2x1x4xi32>, %k: tensor<1x2x4x6xi32>, %v: tensor<1x2x6x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>) attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x4xi32>, tensor<1x2x4x6xi32>) -> tensor<1x2x1x6xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x1x6xi32>) -> tensor<1x2x1x6xf32>
  %2 = ds.softmax %1 axis 3 log false : (tensor<1x2x1x6xf32>) -> tensor<1x2x1x6xf32>
  %3 = ds.unary round %v : (tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  %4 = ds.unary neg %3 : (tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  %5 = ds.matmul %2, %4 transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x1x4xf32>
  return %5, %3 : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>
}

// -----

// A mask may have another number of columns, 1 for all keys: as many as there are values are as many as there are scores.
// Not where values are counted in another way, too.
// CHECK-LABEL: func.func @mask
// CHECK: %[[Y:.*]] = ds.fused {
// CHECK: ds.binary add
// CHECK: ds.softmax
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func @counts
// CHECK: ds.yield
// CHECK-NEXT: }
// CHECK: ds.softmax
func.func @mask(%q: tensor<1x2x1x4xi32>, %k: tensor<1x2x4x?xi32> {ds.dims = [1, 2, 4, "n"]},
                %v: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "n", 4]}, %m: tensor<1x2x1x?xf32> {ds.dims = [1, 2, 1, "m"]})
    -> tensor<1x2x1x4xf32> attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x4xi32>, tensor<1x2x4x?xi32>) -> tensor<1x2x1x?xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x1x?xi32>) -> tensor<1x2x1x?xf32>
  %2 = ds.binary add %1, %m : (tensor<1x2x1x?xf32>, tensor<1x2x1x?xf32>) -> tensor<1x2x1x?xf32>
  %3 = ds.softmax %2 axis 3 log false : (tensor<1x2x1x?xf32>) -> tensor<1x2x1x?xf32>
  %4 = ds.matmul %3, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x?xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x1x4xf32>
  return %4 : tensor<1x2x1x4xf32>
}
func.func @counts(%q: tensor<1x2x1x4xi32>, %k: tensor<1x2x4x?xi32> {ds.dims = [1, 2, 4, "n"]},
                  %v: tensor<1x2x?x4xf32> {ds.dims = [1, 2, "p", 4]}, %m: tensor<1x2x1x?xf32> {ds.dims = [1, 2, 1, "m"]})
    -> tensor<1x2x1x4xf32> attributes {ds.entry} {
  %0 = ds.matmul %q, %k transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x4xi32>, tensor<1x2x4x?xi32>) -> tensor<1x2x1x?xi32>
  %1 = ds.cast %0 to f32 : (tensor<1x2x1x?xi32>) -> tensor<1x2x1x?xf32>
  // expected-remark @+1 {{does not join the region of 'ds.matmul': its result has other sizes}}
  %2 = ds.binary add %1, %m : (tensor<1x2x1x?xf32>, tensor<1x2x1x?xf32>) -> tensor<1x2x1x?xf32>
  // expected-remark @+1 {{does not share a kernel with the products around it: scores are repeated before it}}
  %3 = ds.softmax %2 axis 3 log false : (tensor<1x2x1x?xf32>) -> tensor<1x2x1x?xf32>
  %4 = ds.matmul %3, %v transpose [false, false] {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>}
      : (tensor<1x2x1x?xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x1x4xf32>
  return %4 : tensor<1x2x1x4xf32>
}
