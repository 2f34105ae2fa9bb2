// Pinned dimensions decide guards: one that always holds is gone, and so is a function with one that never does. Guards
// that are no guards stay as they are; planning an entry refuses them.
// RUN: ds-opt %s --split-input-file --ds-pin-dimensions="dims=n=4" | FileCheck %s
// RUN: ds-opt %s --split-input-file --cse --verify-numerics -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
//
// CHECK: func.func @yes{{.*}} ds.guards = []
// CHECK-NOT: @no
// CHECK: func.func @malformed{{.*}}ds.guards = [3, {condition = "lt("}]
// CHECK: func.func @part{{.*}} ds.guards = [{condition = "lt(4, m)", holds = true}]
//
// Each is compared for itself.
// SAME: verify-numerics: @yes: same results
// SAME: verify-numerics: @no: same results
// SAME: verify-numerics: @part: same results
func.func @yes(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<?xf32>
    attributes {ds.entry, ds.group = "g", ds.guards = [{condition = "eq(4, n)", holds = true}]} {
  %0 = ds.unary neg %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @no(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<?xf32>
    attributes {ds.entry, ds.group = "g", ds.guards = [{condition = "eq(4, n)", holds = false}]} {
  %0 = ds.unary neg %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @malformed(%x: tensor<?xf32> {ds.dims = ["n"]}) -> tensor<?xf32>
    attributes {ds.guards = [3 : i64, {condition = "lt("}]} {
  %0 = ds.unary neg %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @part(%x: tensor<?x?xf32> {ds.dims = ["n", "m"]}) -> tensor<?x?xf32>
    attributes {ds.entry, ds.group = "h", ds.guards = [{condition = "lt(n, m)", holds = true},
                                                       {condition = "lt(n, 9)", holds = true}]} {
  %0 = ds.unary neg %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
