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

// Two casts round twice, here as in two kernels: canonicalization would convert the integer straight to the last type.
// CHECK-LABEL: llvm.func @casts
// CHECK-NOT: bf16
// CHECK: llvm.sitofp {{.*}}i8> to vector<{{.*}}f32>
// CHECK-NOT: bf16
// CHECK-LABEL: llvm.func @long
// CHECK: llvm.sitofp {{.*}}i64> to vector<{{.*}}f64>
// CHECK-NEXT: llvm.intr.experimental.constrained.fptrunc {{.*}}f64> to vector<{{.*}}f32>
ds.kernel @casts sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xi8>):
  %0 = ds.cast %x to bf16 {result_sizes = [["d0"]]} : (tensor<?xi8>) -> tensor<?xbf16>
  ds.yield %0 : tensor<?xbf16>
}
ds.kernel @long sizes 1 arguments [["d0"]] {
^bb0(%x: tensor<?xi64>):
  %0 = ds.cast %x to f64 {result_sizes = [["d0"]]} : (tensor<?xi64>) -> tensor<?xf64>
  %1 = ds.cast %0 to f32 {result_sizes = [["d0"]]} : (tensor<?xf64>) -> tensor<?xf32>
  ds.yield %1 : tensor<?xf32>
}
