// RUN: ds-opt %s --split-input-file --ds-quantize-tables --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-quantize-tables="keep=^table$|^node$" | FileCheck %s --check-prefix=KEEP
// RUN: ds-opt %s --split-input-file --ds-quantize-tables="group=4" | FileCheck %s --check-prefix=GROUP
// RUN: not ds-opt %s --split-input-file --ds-quantize-tables="group=-1" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not ds-opt %s --split-input-file --ds-quantize-tables="keep=((a{255}){255}){255}" 2>&1 | FileCheck %s --check-prefix=MUCH
// MUCH: error: ds-quantize-tables: keep: expected a regular expression, found '((a{255}){255}){255}': with its repetitions written out it has more than 10000 characters
// WRONG: error: ds-quantize-tables: group: expected at least 0, found -1

// CHECK-LABEL: func.func @doc
// CHECK-DAG: %[[Q:.*]] = ds.weight @table.rows : tensor<20x8xi8>
// CHECK-DAG: %[[S:.*]] = ds.weight @table.row_scales : tensor<20x1xf32>
// CHECK: %[[R:.*]] = ds.gather 0 %[[Q]], %arg0 scales %[[S]] : (tensor<20x8xi8>, tensor<?x?xi64>, tensor<20x1xf32>) -> tensor<?x?x8xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: ds.recipe @table.rows {
// CHECK: %[[T:.*]] = ds.transpose %{{.*}} [1, 0]
// CHECK: %[[CODES:.*]] = ds.quantize_weight codes %[[T]] bits 8 group 0 : (tensor<8x20xf32>) -> tensor<8x20xi8>
// CHECK: ds.transpose %[[CODES]] [1, 0]
// CHECK: ds.recipe @table.row_scales {
// CHECK-NOT: ds.recipe @table {
// KEEP-LABEL: func.func @doc
// KEEP: ds.gather 0 %{{.*}}, %arg0 : (tensor<20x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
// GROUP-LABEL: func.func @doc
// GROUP: ds.gather 0 %{{.*}}, %arg0 scales %{{.*}} : (tensor<20x8xi8>, tensor<?x?xi64>, tensor<20x2xf32>) -> tensor<?x?x8xf32>
// GROUP: ds.quantize_weight codes %{{.*}} bits 8 group 4 : (tensor<8x20xf32>) -> tensor<8x20xi8>
func.func @doc(%i: tensor<?x?xi64>) -> tensor<?x?x8xf32> {
  %t = ds.weight @table : tensor<20x8xf32>
  // expected-remark @+1 {{table 'table' in 8 bits: 640 bytes become 240, relative error 0.00e+00, largest 0.00e+00}}
  %0 = ds.gather 0 %t, %i : (tensor<20x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
ds.recipe @table {
  %0 = ds.constant dense<0.5> : tensor<20x8xf32>
  ds.yield %0 : tensor<20x8xf32>
}

// -----

// What is kept, and why. Where the program computes on f64, rows are cast to that.
// CHECK-LABEL: func.func @reasons
// KEEP-LABEL: func.func @reasons
func.func @reasons(%i: tensor<?xi64>) -> (tensor<?x1xf32>, tensor<?x8xf32>, tensor<8x?xf32>, tensor<?x8xf64>) {
  %narrow = ds.weight @narrow : tensor<8x1xf32>
  // expected-remark @+1 {{table 'narrow' is kept: codes and scales take 40 bytes, its elements 32}}
  %0 = ds.gather 0 %narrow, %i : (tensor<8x1xf32>, tensor<?xi64>) -> tensor<?x1xf32>
  %bad = ds.weight @bad : tensor<8x8xf32>
  // expected-remark @+1 {{table 'bad' is kept: it has elements that are not finite, or would not be as codes}}
  %1 = ds.gather 0 %bad, %i : (tensor<8x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  // CHECK: ds.gather 1 %{{.*}} : (tensor<8x8xf32>, tensor<?xi64>) -> tensor<8x?xf32>
  %2 = ds.gather 1 %bad, %i : (tensor<8x8xf32>, tensor<?xi64>) -> tensor<8x?xf32>
  %wide = ds.weight @wide : tensor<8x8xf32>
  %3 = ds.cast %wide to f64 : (tensor<8x8xf32>) -> tensor<8x8xf64>
  // CHECK: %[[ROWS:.*]] = ds.gather 0 %{{.*}}, %arg0 scales %{{.*}} : (tensor<8x8xi8>, tensor<?xi64>, tensor<8x1xf32>) -> tensor<?x8xf32>
  // CHECK: ds.cast %[[ROWS]] to f64
  // KEEP: ds.gather 0 %{{.*}} : (tensor<8x8xf64>, tensor<?xi64>) -> tensor<?x8xf64>
  // expected-remark @unknown {{table 'wide' in 8 bits: 256 bytes become 96}}
  %4 = ds.gather 0 %3, %i : (tensor<8x8xf64>, tensor<?xi64>) -> tensor<?x8xf64> loc("node")
  return %0, %1, %2, %4 : tensor<?x1xf32>, tensor<?x8xf32>, tensor<8x?xf32>, tensor<?x8xf64>
}
ds.recipe @narrow {
  %0 = ds.constant dense<0.5> : tensor<8x1xf32>
  ds.yield %0 : tensor<8x1xf32>
}
ds.recipe @bad {
  %0 = ds.constant dense<0x7F800000> : tensor<8x8xf32>
  ds.yield %0 : tensor<8x8xf32>
}
ds.recipe @wide {
  %0 = ds.constant dense<0.5> : tensor<8x8xf32>
  ds.yield %0 : tensor<8x8xf32>
}
