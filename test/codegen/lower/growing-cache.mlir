// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s

// One query reads rows of a cache where they lie, and the whole cache, which the kernel yields, is written beside: from
// 1 MB on past the caches, where the place is aligned for that, with a fence behind.
// CHECK-LABEL: func.func @grows
// CHECK-SAME: %[[X:arg[0-9]+]]: memref<?xf32>, %[[PAST:arg[0-9]+]]: memref<?xf32>, %[[ALL:arg[0-9]+]]: memref<?xf32>
// CHECK: %[[LEAST:.*]] = arith.constant 1048576 : index
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %[[LEAST]]
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK: %[[AWAY:.*]] = arith.andi %[[LARGE]], %[[ALIGNED]]
// CHECK: scf.if %[[AWAY]] {
// CHECK: %[[ROW:.*]] = vector.load %[[PAST]]
// CHECK: vector.store %[[ROW]], %[[ALL]][{{.*}}] {alignment = 32 : i64, nontemporal = true}
// CHECK: llvm.fence seq_cst
// CHECK: } else {
// CHECK: vector.store %{{.*}}, %[[ALL]][{{[^]]*}}] : memref
// CHECK: vector.load %[[PAST]]
// CHECK: vector.fma
ds.kernel @grows sizes 3 arguments [["d0", 2, 1, 16], ["d0", 2, "d1", 16]] {
^bb0(%x: tensor<?x2x1x16xf32>, %past: tensor<?x2x?x16xf32>):
  %0 = ds.concat 2 %past, %x {result_sizes = [["d0", 2, "d2", 16]]} : (tensor<?x2x?x16xf32>, tensor<?x2x1x16xf32>) -> tensor<?x2x?x16xf32>
  %1 = ds.attention %x, %0, %0 scale 0.5 {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>, result_sizes = [["d0", 2, 1, 16]]} : (tensor<?x2x1x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x2x1x16xf32>
  ds.yield %0, %1 : tensor<?x2x?x16xf32>, tensor<?x2x1x16xf32>
}

// -----

// What nothing else reads is not written; many queries pack what they read, and read the cache that they have written.
// CHECK-LABEL: func.func @shows
// CHECK-NOT: nontemporal
// CHECK-LABEL: func.func @many
// CHECK-NOT: nontemporal
ds.kernel @shows sizes 3 arguments [["d0", 2, 1, 16], ["d0", 2, "d1", 16]] {
^bb0(%x: tensor<?x2x1x16xf32>, %past: tensor<?x2x?x16xf32>):
  %0 = ds.concat 2 %past, %x {result_sizes = [["d0", 2, "d2", 16]]} : (tensor<?x2x?x16xf32>, tensor<?x2x1x16xf32>) -> tensor<?x2x?x16xf32>
  %1 = ds.attention %x, %0, %0 scale 0.5 {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>, result_sizes = [["d0", 2, 1, 16]]} : (tensor<?x2x1x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x2x1x16xf32>
  ds.yield %1 : tensor<?x2x1x16xf32>
}

ds.kernel @many sizes 3 arguments [["d0", 2, 5, 16], ["d0", 2, "d1", 16]] {
^bb0(%x: tensor<?x2x5x16xf32>, %past: tensor<?x2x?x16xf32>):
  %0 = ds.concat 2 %past, %x {result_sizes = [["d0", 2, "d2", 16]]} : (tensor<?x2x?x16xf32>, tensor<?x2x5x16xf32>) -> tensor<?x2x?x16xf32>
  %1 = ds.attention %x, %0, %0 scale 0.5 {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 128>, result_sizes = [["d0", 2, 5, 16]]} : (tensor<?x2x5x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x2x5x16xf32>
  ds.yield %0, %1 : tensor<?x2x?x16xf32>, tensor<?x2x5x16xf32>
}
