// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: not ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" 2>&1 | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.fma
// RUN: not ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 columns=24" --convert-ds-to-linalg="lanes=16" 2>&1 | FileCheck %s --check-prefix=PANEL
// PANEL: 'ds.linear' op is scheduled in panels of 24 columns, which are no whole vectors of 16

// A region is one linalg.generic over flat buffers, the grid is its rows.
// CHECK-LABEL: func.func @doc(
// CHECK-SAME: %arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: memref<?xf32>, %arg3: index, %arg4: index, %arg5: index, %arg6: memref<?xi8>) -> i32
// CHECK-SAME: ds.buffer_count = 3 : i64
// CHECK-SAME: ds.grid = "d0"
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-SAME: {ds.range}
// CHECK: arith.addf
// CHECK-NEXT: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return
ds.kernel @doc sizes 1 arguments [["d0", 4], [4]] {
^bb0(%x: tensor<?x4xf32>, %b: tensor<4xf32>):
  %0 = ds.binary add %x, %b {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = ds.unary exp %0 {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  ds.yield %1 : tensor<?x4xf32>
}

// -----

// Loops that every operand walks without a gap become one.
// CHECK-LABEL: func.func @collapses_loops
// CHECK-SAME: ds.grid = "4*d0"
// CHECK: iterator_types = ["parallel"]
ds.kernel @collapses_loops sizes 1 arguments [["d0", 4]] {
^bb0(%x: tensor<?x4xf32>):
  %0 = ds.unary exp %x {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  ds.yield %0 : tensor<?x4xf32>
}

// -----

// An axis that may be 1 at run time gets its stride then.
// CHECK-LABEL: func.func @broadcasts_at_run_time
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %arg{{.*}}, %c1
// CHECK: %[[STRIDE:.*]] = arith.select %[[ONE]], %c0
// CHECK: memref.reinterpret_cast {{.*}} strides: [%[[STRIDE]]]
ds.kernel @broadcasts_at_run_time sizes 2 arguments [["d0"], ["d1"]] {
^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
  %0 = ds.binary add %x, %y {result_sizes = [["d1"]]} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// -----

// The grid is the rows; a row is reduced by a generic into a cell.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: ds.grid = "d0"
// CHECK: %[[CELL:.*]] = memref.alloca() : memref<f32>
// CHECK: scf.for %[[ROW:.*]] = %arg3 to %arg4
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction"]
// CHECK: arith.maximumf %out, %in
// CHECK: %[[MAX:.*]] = memref.load %[[CELL]][]
// CHECK: memref.store %[[MAX]], %arg1[%[[ROW]]]
ds.kernel @rows sizes 1 arguments [["d0", 4]] {
^bb0(%x: tensor<?x4xf32>):
  %0 = ds.reduce max %x axes [1] keep false {result_sizes = [["d0"]]} : (tensor<?x4xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// -----

// The grid is the panels; six rows by two vectors are loop-carried over four steps at a time, in which a line of the
// next panel is prefetched, then over single steps. Whole panels are stored as they are, the last one's columns masked.
// Rows are in blocks of equal heights, five here where there are five rows.
// CHECK-LABEL: func.func @product
// CHECK-SAME: ds.grid = 2 : i64
// CHECK: %[[TILE:.*]]:12 = scf.for {{.*}} step %c4{{.*}} iter_args
// CHECK: memref.prefetch
// CHECK-COUNT-48: vector.fma {{.*}} : vector<8xf32>
// CHECK: %[[SUMS:.*]]:12 = scf.for {{.*}} iter_args({{.*}} = %[[TILE]]#0
// CHECK-COUNT-12: vector.fma
// CHECK: scf.if
// CHECK-COUNT-12: vector.store %[[SUMS]]#
// CHECK: } else {
// CHECK-COUNT-12: vector.maskedstore
// CHECK: :10 = scf.for {{.*}} step %c4{{.*}} iter_args
// The reference has no packed weights.
// PLAIN: 'ds.linear' op packed weights need a schedule of their layout, found 'f32' by 'f32' in panels of 16, interleaved by 1
ds.kernel @product sizes 1 arguments [["d0", 32], [2, 32, 16]] {
^bb0(%x: tensor<?x32xf32>, %w: tensor<2x32x16xf32>):
  %0 = ds.linear %x, %w {columns = 20 : i64, panel = 16 : i64, result_sizes = [["d0", 20]]} : (tensor<?x32xf32>, tensor<2x32x16xf32>) -> tensor<?x20xf32>
  ds.yield %0 : tensor<?x20xf32>
}

// -----

// A parameter that only a run knows is packed into scratch, a panel at a time for all rows.
// CHECK-LABEL: func.func @parameter_of_run_time
// CHECK-SAME: ds.grid = 2 : i64
// CHECK-SAME: ds.scratch = 2048 : i64
// CHECK: scf.for
// CHECK: memref.store
// CHECK: vector.fma
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
ds.kernel @parameter_of_run_time sizes 1 arguments [["d0", 32], [20, 32], [20]] {
^bb0(%x: tensor<?x32xf32>, %w: tensor<20x32xf32>, %b: tensor<20xf32>):
  %0 = ds.linear %x, %w, %b {result_sizes = [["d0", 20]], transposed} : (tensor<?x32xf32>, tensor<20x32xf32>, tensor<20xf32>) -> tensor<?x20xf32>
  ds.yield %0 : tensor<?x20xf32>
}

// -----

// A matrix that is no weight is packed into scratch; the reference multiplies and adds one by one.
// CHECK-LABEL: func.func @unpacked_product
// CHECK-SAME: ds.scratch = "64*d0"
// CHECK: vector.fma
// PLAIN-LABEL: func.func @unpacked_product
// PLAIN: arith.mulf
// PLAIN: arith.addf
ds.kernel @unpacked_product sizes 1 arguments [["d0", "d0"]] {
^bb0(%x: tensor<?x?xf32>):
  %0 = ds.matmul %x, %x transpose [false, true] {result_sizes = [["d0", "d0"]]} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  ds.yield %0 : tensor<?x?xf32>
}

// -----

// An index is counted from the end when negative, and checked; a bad one becomes the kernel's result.
// CHECK-LABEL: func.func @gather
// CHECK: %[[STATUS:.*]] = memref.alloca() : memref<i32>
// CHECK: arith.cmpi slt, %[[RAW:.*]], %c0
// CHECK: %[[OUTSIDE:.*]] = arith.cmpi uge
// CHECK: scf.if %[[OUTSIDE]]
// CHECK: memref.store %c1_i32{{.*}}, %[[STATUS]][]
// CHECK: %[[SAFE:.*]] = arith.select %[[OUTSIDE]], %c0
// CHECK: vector.load
// CHECK: return
ds.kernel @gather sizes 2 arguments [["d0", 8], ["d1"]] {
^bb0(%x: tensor<?x8xf32>, %i: tensor<?xi64>):
  %0 = ds.gather 0 %x, %i {result_sizes = [["d1", 8]]} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}

// -----

// The divisor is scanned for zeros before the division.
// CHECK-LABEL: func.func @integer_division
// CHECK: scf.for
// CHECK: arith.cmpi eq
// CHECK: memref.store %c2_i32
// CHECK: linalg.generic
// CHECK: arith.divsi
ds.kernel @integer_division sizes 0 arguments [[4], [4]] {
^bb0(%x: tensor<4xi32>, %y: tensor<4xi32>):
  %0 = ds.binary div %x, %y {result_sizes = [[4]]} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  ds.yield %0 : tensor<4xi32>
}

// -----

// bf16 is widened to f32 by integer arithmetic: no library function is needed. What rounds is expanded later
// (cpu/round-bfloats.mlir).
// CHECK-LABEL: func.func @narrow_floats
// CHECK: arith.shli
// CHECK: math.tanh {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: linalg.yield
ds.kernel @narrow_floats sizes 0 arguments [[4]] {
^bb0(%x: tensor<4xbf16>):
  %0 = ds.unary tanh %x {result_sizes = [[4]]} : (tensor<4xbf16>) -> tensor<4xbf16>
  ds.yield %0 : tensor<4xbf16>
}

// -----

// Attention packs keys and values into scratch, block by block: its size does not depend on their number.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: ds.grid = "2*d0"
// CHECK-SAME: ds.scratch = {{[0-9]+}} : i64
// CHECK: memref.view
// CHECK: vector.fma
// CHECK: math.exp
// CHECK: vector.fma
ds.kernel @attention sizes 2 arguments [["d0", 2, "d1", 8]] {
^bb0(%x: tensor<?x2x?x8xf32>):
  %0 = ds.attention %x, %x, %x scale 0.5 {result_sizes = [["d0", 2, "d1", 8]]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  ds.yield %0 : tensor<?x2x?x8xf32>
}

