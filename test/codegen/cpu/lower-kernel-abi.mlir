// RUN: ds-opt %s --split-input-file --ds-lower-kernel-abi | FileCheck %s

// Two buffers, one size, the range and the scratch arrive as ds_kernel has them: buffers, sizes, begin, end, scratch.
// CHECK-LABEL: func.func @doc
// CHECK-SAME: (%[[BUFFERS:.*]]: !llvm.ptr, %[[SIZES:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr) -> i32
// CHECK: llvm.getelementptr %[[BUFFERS]][0]
// CHECK: builtin.unrealized_conversion_cast {{.*}} to memref<?xf32>
// CHECK: llvm.getelementptr %[[BUFFERS]][1]
// CHECK: llvm.getelementptr %[[SIZES]][0]
// CHECK: arith.index_cast %[[BEGIN]]
// CHECK: arith.index_cast %[[END]]
// CHECK: llvm.insertvalue %[[SCRATCH]]
func.func @doc(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %begin: index, %end: index, %scratch: memref<?xi8>) -> i32
    attributes {ds.buffer_count = 2 : i64} {
  %ok = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %0 = memref.load %x[%i] : memref<?xf32>
    memref.store %0, %y[%n] : memref<?xf32>
  }
  return %ok : i32
}

// -----

// CHECK-LABEL: func.func @no_kernel(%arg0: memref<?xf32>)
func.func @no_kernel(%x: memref<?xf32>) {
  return
}
