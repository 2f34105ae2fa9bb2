// Names of sizes that are no identifiers are quoted, the one without letters among them.
// RUN: ds-opt %s --ds-fold-shapes | FileCheck %s

// CHECK-LABEL: func.func @names
// CHECK: ds.reshape %arg0 ["2*``", "`1st` + 1"]
func.func @names(%x: tensor<?x?xf32> {ds.dims = ["`1st` + 1", "2 * ``"]}) -> tensor<?x?xf32> {
  %0 = ds.reshape %x ["`` * 2", "1 + `1st`"] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
