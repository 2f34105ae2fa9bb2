// Single elements are sorted digit by digit, slices of several by a heap.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @single
// CHECK-SAME: ds.scratch = "8*d0 + 2048"
// CHECK-NOT: scf.while
// CHECK-COUNT-2: arith.shrui {{.*}} : i16
// PLAIN-LABEL: func.func @single
// PLAIN: scf.while
ds.kernel @single sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xi16>):
  %0 = ds.argsort %x {result_sizes = [["d0"]]} : (tensor<?xi16>) -> tensor<?xi64>
  ds.yield %0 : tensor<?xi64>
}

// -----

// Both zeros are one key, and NaN is the greatest.
// CHECK-LABEL: func.func @floats
// CHECK: arith.addf
// CHECK: arith.bitcast {{.*}} : f32 to i32
// CHECK: arith.cmpf uno
ds.kernel @floats sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xf32>):
  %0 = ds.argsort %x {result_sizes = [["d0"]]} : (tensor<?xf32>) -> tensor<?xi64>
  ds.yield %0 : tensor<?xi64>
}

// -----

// CHECK-LABEL: func.func @slices
// CHECK-NOT: ds.scratch
// CHECK: scf.while
ds.kernel @slices sizes 1 arguments [["d0", 2]] {
^bb0(%x: tensor<?x2xi16>):
  %0 = ds.argsort %x {result_sizes = [["d0"]]} : (tensor<?x2xi16>) -> tensor<?xi64>
  ds.yield %0 : tensor<?xi64>
}
