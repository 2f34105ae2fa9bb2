// Rotations in vectors: pairs half a row apart are read as they lie, neighbours are sorted apart and together again.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.

// CHECK-LABEL: func.func @halves
// CHECK-COUNT-4: vector.load {{.*}} vector<8xf32>
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-2: vector.store {{.*}} vector<8xf32>
// PLAIN-LABEL: func.func @halves
ds.kernel @halves sizes 1 arguments [["d0", 16], ["d0", 8], ["d0", 8]] {
^bb0(%x: tensor<?x16xf32>, %c: tensor<?x8xf32>, %s: tensor<?x8xf32>):
  %0 = ds.rotary %x, %c, %s interleaved false {result_sizes = [["d0", 16]]} : (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  ds.yield %0 : tensor<?x16xf32>
}

// -----

// Pairs behind the last whole vector are turned one by one.
// CHECK-LABEL: func.func @neighbours
// CHECK-COUNT-2: vector.load {{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 9, 11, 13, 15]
// CHECK-COUNT-2: vector.load {{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 8, 1, 9, 2, 10, 3, 11]
// CHECK: vector.shuffle {{.*}} [4, 12, 5, 13, 6, 14, 7, 15]
// CHECK-COUNT-2: vector.store {{.*}} vector<8xf32>
// CHECK: scf.for
// CHECK: memref.store
ds.kernel @neighbours sizes 1 arguments [["d0", 18], ["d0", 9], ["d0", 9]] {
^bb0(%x: tensor<?x18xf32>, %c: tensor<?x9xf32>, %s: tensor<?x9xf32>):
  %0 = ds.rotary %x, %c, %s interleaved true {result_sizes = [["d0", 18]]} : (tensor<?x18xf32>, tensor<?x9xf32>, tensor<?x9xf32>) -> tensor<?x18xf32>
  ds.yield %0 : tensor<?x18xf32>
}

// -----

// Tables of whole rows are sorted apart, too.
// CHECK-LABEL: func.func @tables
// CHECK-COUNT-6: vector.shuffle {{.*}} vector<8xf32>
ds.kernel @tables sizes 1 arguments [["d0", 16], ["d0", 16], ["d0", 16]] {
^bb0(%x: tensor<?x16xf32>, %c: tensor<?x16xf32>, %s: tensor<?x16xf32>):
  %0 = ds.rotary %x, %c, %s interleaved true {result_sizes = [["d0", 16]]} : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  ds.yield %0 : tensor<?x16xf32>
}
