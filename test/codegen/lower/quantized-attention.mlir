// Attention of codes: scratch has room for a block of keys, whatever their number, and rows of more keys meet them three times.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --convert-ds-to-linalg="lanes=16" | FileCheck %s

// CHECK-LABEL: func.func @any
// CHECK-SAME: ds.scratch = {{[0-9]+}} : i64
// CHECK-DAG: %[[ALL:.*]] = arith.cmpi sle, %arg{{[0-9]+}}, %c8192{{.*}}
// CHECK: %[[LAST:.*]] = arith.select %[[ALL]], %c0{{.*}}, %c2{{.*}}
// CHECK: %[[ROUNDS:.*]] = arith.addi %[[LAST]], %c1
// CHECK: scf.for %[[ROUND:.*]] = %c0{{.*}} to %[[ROUNDS]] step %c1
// CHECK-DAG: %[[WEIGHS:.*]] = arith.cmpi eq, %[[ROUND]], %[[LAST]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %{{.*}} step %c8192
// CHECK: arith.addf %{{.*}} : f64
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: scf.if %[[WEIGHS]]
ds.kernel @any sizes 3 arguments [["d0", 2, "d1", 64], ["d0", 2, "d2", 64], ["d0", 2, "d2", 64]] {
^bb0(%q: tensor<?x2x?x64xui8>, %k: tensor<?x2x?x64xi8>, %v: tensor<?x2x?x64xi8>):
  %0 = ds.matmul %q, %k transpose [false, true] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", "d2"]]} : (tensor<?x2x?x64xui8>, tensor<?x2x?x64xi8>) -> tensor<?x2x?x?xi32>
  %1 = ds.cast %0 to f32 {result_sizes = [["d0", 2, "d1", "d2"]]} : (tensor<?x2x?x?xi32>) -> tensor<?x2x?x?xf32>
  %2 = ds.softmax %1 axis 3 log false {result_sizes = [["d0", 2, "d1", "d2"]]} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %3 = ds.cast %2 to ui8 {result_sizes = [["d0", 2, "d1", "d2"]]} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xui8>
  %4 = ds.matmul %3, %v transpose [false, false] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", 64]]} : (tensor<?x2x?x?xui8>, tensor<?x2x?x64xi8>) -> tensor<?x2x?x64xi32>
  ds.yield %4 : tensor<?x2x?x64xi32>
}

// -----

// Few keys are one block, of which no sum is kept.
// CHECK-LABEL: func.func @few
// CHECK-SAME: ds.scratch = {{[0-9]+}} : i64
// CHECK-NOT: f64
// CHECK: return
ds.kernel @few sizes 2 arguments [["d0", 2, "d1", 64], ["d0", 2, 300, 64], ["d0", 2, 300, 64]] {
^bb0(%q: tensor<?x2x?x64xui8>, %k: tensor<?x2x300x64xi8>, %v: tensor<?x2x300x64xi8>):
  %0 = ds.matmul %q, %k transpose [false, true] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x64xui8>, tensor<?x2x300x64xi8>) -> tensor<?x2x?x300xi32>
  %1 = ds.cast %0 to f32 {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xi32>) -> tensor<?x2x?x300xf32>
  %2 = ds.softmax %1 axis 3 log false {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xf32>) -> tensor<?x2x?x300xf32>
  %3 = ds.cast %2 to ui8 {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xf32>) -> tensor<?x2x?x300xui8>
  %4 = ds.matmul %3, %v transpose [false, false] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", 64]]} : (tensor<?x2x?x300xui8>, tensor<?x2x300x64xi8>) -> tensor<?x2x?x64xi32>
  ds.yield %4 : tensor<?x2x?x64xi32>
}

// -----

ds.kernel @shown sizes 2 arguments [["d0", 2, "d1", 64], ["d0", 2, 300, 64], ["d0", 2, 300, 64]] {
^bb0(%q: tensor<?x2x?x64xui8>, %k: tensor<?x2x300x64xi8>, %v: tensor<?x2x300x64xi8>):
  %0 = ds.matmul %q, %k transpose [false, true] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x64xui8>, tensor<?x2x300x64xi8>) -> tensor<?x2x?x300xi32>
  %1 = ds.cast %0 to f32 {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xi32>) -> tensor<?x2x?x300xf32>
  // expected-error @+1 {{shares a kernel that yields more than its result, its keys and its values, or rounds its weights}}
  %2 = ds.softmax %1 axis 3 log false {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xf32>) -> tensor<?x2x?x300xf32>
  %3 = ds.cast %2 to ui8 {result_sizes = [["d0", 2, "d1", 300]]} : (tensor<?x2x?x300xf32>) -> tensor<?x2x?x300xui8>
  %4 = ds.matmul %3, %v transpose [false, false] {ds.schedule = #ds.schedule<byte_dot, rows = 8, columns = 48, sweep = 128>, result_sizes = [["d0", 2, "d1", 64]]} : (tensor<?x2x?x300xui8>, tensor<?x2x300x64xi8>) -> tensor<?x2x?x64xi32>
  ds.yield %2, %4 : tensor<?x2x?x300xf32>, tensor<?x2x?x64xi32>
}
