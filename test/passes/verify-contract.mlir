// The contract of each phase: test/pipelines/contract-<phase>.mlir.
// RUN: not ds-opt %s --ds-verify-contract=phase=graph 2>&1 | FileCheck %s
// RUN: not ds-opt %s --ds-verify-contract=phase=gr4ph 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: ds-opt %s --ds-verify-contract=phase=import | FileCheck %s --check-prefix=HOLDS

// CHECK: error: 'ds.shape' violates the contract of phase 'graph': no foldable shape arithmetic
// UNKNOWN: error: ds-verify-contract expects a phase (import, graph, training, distribution, optimization, memory, codegen), found 'gr4ph'
// HOLDS: ds.shape [3]
func.func @doc() -> tensor<1xi64> {
  %0 = ds.shape [3] : tensor<1xi64>
  return %0 : tensor<1xi64>
}
