// Pooling by rows of results: rows of the operand are combined into a line of scratch, along which windows walk in vectors.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=16" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.
// RUN: ds-opt %s --split-input-file --ds-codegen-pipeline="lanes=8" | FileCheck %s --check-prefix=LLVM

// Three rows of whole vectors, then every second place of the line.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: ds.grid = "8*d0"
// CHECK-COUNT-3: vector.load {{.*}} : memref<?xf32>, vector<16xf32>
// CHECK: vector.store
// CHECK-NOT: vector.maskedload
// CHECK: vector.load {{.*}} vector<32xf32>
// CHECK-NEXT: vector.deinterleave
// CHECK: vector.store {{.*}} vector<16xf32>
// PLAIN-LABEL: func.func @halves
// LLVM-LABEL: llvm.func @halves
// LLVM: vector<8xf32>
ds.kernel @halves sizes 1 arguments [["d0", "1", "16", "32"]] {
^bb0(%x: tensor<?x1x16x32xf32>):
  %0 = ds.pool max %x kernel [3, 2] strides [2, 2] pads [1, 0, 0, 0] dilations [1, 1] {ceil = false, include_pad = false, exponent = 2 : i64, result_sizes = [["d0", "1", "8", "16"]]} : (tensor<?x1x16x32xf32>) -> tensor<?x1x8x16xf32>
  ds.yield %0 : tensor<?x1x8x16xf32>
}

// -----

// A width that no whole vectors make has masks, and strides of 3 are gathered.
// CHECK-LABEL: func.func @thirds
// CHECK: vector.maskedload
// CHECK: vector.gather
// CHECK: vector.maskedstore
// PLAIN-LABEL: func.func @thirds
// LLVM-LABEL: llvm.func @thirds
ds.kernel @thirds sizes 1 arguments [["1", "d0", "31"]] {
^bb0(%x: tensor<1x?x31xf16>):
  %0 = ds.pool average %x kernel [4] strides [3] pads [0, 0] dilations [1] {ceil = false, include_pad = true, exponent = 2 : i64, result_sizes = [["1", "d0", "10"]]} : (tensor<1x?x31xf16>) -> tensor<1x?x10xf16>
  ds.yield %0 : tensor<1x?x10xf16>
}

// -----

// What no vectors hold is walked element by element.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: vector<
// PLAIN-LABEL: func.func @narrow
// LLVM-LABEL: llvm.func @narrow
ds.kernel @narrow sizes 0 arguments [["1", "1", "8"]] {
^bb0(%x: tensor<1x1x8xf8E4M3FN>):
  %0 = ds.pool max %x kernel [2] strides [2] pads [0, 0] dilations [1] {ceil = false, include_pad = false, exponent = 2 : i64, result_sizes = [["1", "1", "4"]]} : (tensor<1x1x8xf8E4M3FN>) -> tensor<1x1x4xf8E4M3FN>
  ds.yield %0 : tensor<1x1x4xf8E4M3FN>
}
