// Elements of inputs are no dimensions, though sizes of other inputs may be computed from them.
// RUN: not ds-opt %s --ds-pin-dimensions="dims=k=2" 2>&1 | FileCheck %s
// CHECK: error: no input has a dimension named 'k', so it cannot be pinned
// CHECK: note: dimensions of the inputs: n{{$}}
func.func @doc(%k: tensor<1xi64> {ds.name = "k", ds.dims = [1]}, %x: tensor<?x?xf32> {ds.dims = ["n", "max(k[0], 1)"]}) -> tensor<?x?xf32> {
  return %x : tensor<?x?xf32>
}
