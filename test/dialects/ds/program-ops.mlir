// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: ds.kernel @k0 sizes 1 arguments {{\[\[}}"d0"]]
// CHECK: ds.yield %{{.*}} : tensor<?xf32>
ds.kernel @k0 sizes 1 arguments [["d0"]] {
^bb0(%arg0: tensor<?xf32>):
  %0 = ds.unary exp %arg0 : (tensor<?xf32>) -> tensor<?xf32>
  ds.yield %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @program
func.func @program(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: ds.launch @k0(%{{.*}}) sizes ["batch*seq"]
  %0 = ds.launch @k0(%x) sizes ["batch*seq"] {result_sizes = [["batch*seq"]]} : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK: ds.fused {
  // CHECK: ds.yield
  // CHECK: } : tensor<?xf32>
  %1 = ds.fused {
    %2 = ds.unary exp %0 : (tensor<?xf32>) -> tensor<?xf32>
    ds.yield %2 : tensor<?xf32>
  } : tensor<?xf32>
  // CHECK: ds.require 2147483647 : i64 at least "2*batch"
  ds.require 2147483647 at least "2*batch"
  // CHECK: ds.require "batch" equal to "seq"
  ds.require "batch" equal to "seq"
  // CHECK: ds.require 4 : i64 broadcast with "seq"
  ds.require 4 broadcast with "seq"
  // CHECK: %[[N:.*]] = ds.size "batch*seq"
  %n = ds.size "batch*seq"
  // CHECK: ds.define "i" = %[[N]] : i64
  ds.define "i" = %n : i64
  // CHECK: ds.define "taken" = %{{.*}} : tensor<i1>
  %taken = ds.constant dense<true> : tensor<i1>
  ds.define "taken" = %taken : tensor<i1>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
