// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s

// What a window hides last has one score: its weights are one exponential, as often as there are hidden columns.
// CHECK-LABEL: func.func @hidden
// CHECK: %[[BELOW:.*]] = arith.subf %{{cst.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[WEIGHT:.*]] = math.exp %[[BELOW]] {ds.nonpositive} : f32
// CHECK-NEXT: %[[HIDDEN:.*]] = arith.select %{{.*}}, %[[WEIGHT]], %{{.*}} : f32
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: %[[COUNT:.*]] = arith.sitofp %{{.*}} : i64 to f32
// CHECK-NEXT: arith.mulf %[[HIDDEN]], %[[COUNT]] : f32
ds.kernel @hidden sizes 0 arguments [[1, 2, 40, 8]] {
^bb0(%q: tensor<1x2x40x8xf32>):
  %0 = ds.attention %q, %q, %q [window else -1.0] left 3 right 0 scale 0.5 {result_sizes = [[1, 2, 40, 8]]}
      : (tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>) -> tensor<1x2x40x8xf32>
  ds.yield %0 : tensor<1x2x40x8xf32>
}

// -----

// A mask that is added later tells hidden columns apart.
// CHECK-LABEL: func.func @told_apart
// CHECK-NOT: arith.sitofp
// CHECK: return
ds.kernel @told_apart sizes 0 arguments [[1, 2, 40, 8], [40, 40]] {
^bb0(%q: tensor<1x2x40x8xf32>, %m: tensor<40x40xf32>):
  %0 = ds.attention %q, %q, %q [window else -1.0, add %m] left 3 right 0 scale 0.5 {result_sizes = [[1, 2, 40, 8]]}
      : (tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>, tensor<40x40xf32>) -> tensor<1x2x40x8xf32>
  ds.yield %0 : tensor<1x2x40x8xf32>
}
