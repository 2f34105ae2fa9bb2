// RUN: ds-opt %s --ds-schedule-kernels="machine=256 rows=6 columns=16" --ds-codegen-pipeline="lanes=8" | FileCheck %s --check-prefixes=CHECK,V3
// RUN: ds-opt %s --ds-schedule-kernels="machine=512 rows=8 columns=48" --ds-codegen-pipeline="lanes=16" | FileCheck %s --check-prefixes=CHECK,V4

// From kernels to the LLVM dialect, for the vectors of x86-64-v3 and x86-64-v4.
// CHECK-NOT: unrealized_conversion_cast
// CHECK-NOT: llvm.func @fmaf
// CHECK-LABEL: llvm.func @product
// V3: llvm.intr.fmuladd({{.*}} : (vector<8xf32>
// V4: llvm.intr.fmuladd({{.*}} : (vector<16xf32>
ds.kernel @product sizes 1 arguments [["d0", 32], [32, 20]] {
^bb0(%x: tensor<?x32xf32>, %y: tensor<32x20xf32>):
  %0 = ds.matmul %x, %y transpose [false, false] {result_sizes = [["d0", 20]]} : (tensor<?x32xf32>, tensor<32x20xf32>) -> tensor<?x20xf32>
  ds.yield %0 : tensor<?x20xf32>
}

// CHECK-LABEL: llvm.func @activation
// CHECK-SAME: (%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: !llvm.ptr) -> i32
// CHECK-NOT: llvm.call
// V3: llvm.intr.fma({{.*}} : (vector<8xf32>
// V4: llvm.intr.fma({{.*}} : (vector<16xf32>
// CHECK-NOT: llvm.call
// CHECK: llvm.return
ds.kernel @activation sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xf32>):
  %0 = ds.gelu erf %x {result_sizes = [["d0"]]} : (tensor<?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}
