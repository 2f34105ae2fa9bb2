// The manifest is JSON: names that MLIR can hold and JSON cannot are refused before anything is written.
// RUN: rm -rf %t.dsp
// RUN: not ds-opt %s -o %t.dsp --mcpu=x86-64-v3 2>&1 | FileCheck %s
// RUN: not ls %t.dsp

// CHECK: error: {{.*}}expected names in UTF-8, found 'caf\E9'
func.func @main(%x: tensor<4xf32> {ds.name = "caf\E9"}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
