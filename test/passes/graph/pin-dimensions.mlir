// RUN: ds-opt %s --ds-pin-dimensions="dims=batch=2,odd-name=8" | FileCheck %s
// RUN: not ds-opt %s --ds-pin-dimensions="dims=nosuch=2" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ds-opt %s --ds-pin-dimensions="dims=batch=-1" 2>&1 | FileCheck %s --check-prefix=ILLEGAL
// RUN: ds-opt %s --ds-pin-dimensions="dims=batch=seq" | FileCheck %s --check-prefix=SAME
// RUN: ds-opt %s --ds-pin-dimensions="dims=batch=seq,seq=2" | FileCheck %s --check-prefix=CHAIN
// RUN: not ds-opt %s --ds-pin-dimensions="dims=batch=seq,seq=3,batch=2" 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not ds-opt %s --ds-pin-dimensions="dims=batch=nosuch" 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func.func @doc
// CHECK-SAME: %{{.*}}: tensor<2x4xf32> {ds.dims = [2, 4]}, %{{.*}}: tensor<?x8xf32> {ds.dims = ["seq + 2", 8]}
// CHECK-NEXT: ds.reshape %{{.*}} ["seq", 8]
//
// UNKNOWN: error: no input has a dimension named 'nosuch', so it cannot be pinned
// UNKNOWN: note: dimensions of the inputs: batch, seq, odd-name
// ILLEGAL: error: ds-pin-dimensions expects name=value or name=name, found 'batch=-1'
// SAME: func.func @doc(%{{.*}}: tensor<?x4xf32> {ds.dims = ["seq", 4]}, %{{.*}}: tensor<?x?xf32> {ds.dims = ["2*seq", "`odd-name`"]}
// SAME-NEXT: ds.reshape %{{.*}} ["seq", "4*seq"]
// CHAIN: func.func @doc(%{{.*}}: tensor<2x4xf32> {ds.dims = [2, 4]}, %{{.*}}: tensor<4x?xf32> {ds.dims = [4, "`odd-name`"]}
// SIZES: error: 'batch' and 'seq' are one dimension with two sizes, 2 and 3
// OTHER: error: no input has a dimension named 'nosuch'
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["batch", 4]}, %y: tensor<?x?xf32> {ds.dims = ["batch + seq", "`odd-name`"]})
    -> tensor<?x8xf32> {
  %0 = ds.reshape %y ["seq", "4*batch"] : (tensor<?x?xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
