// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @all_reduce
func.func @all_reduce(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %[[P:.*]] = dist.all_reduce_start sum %{{.*}} site "loss" : tensor<?xf32>
  %p = dist.all_reduce_start sum %x site "loss" : tensor<?xf32>
  // CHECK: dist.wait %[[P]] : tensor<?xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return %0 : tensor<?xf32>
}
