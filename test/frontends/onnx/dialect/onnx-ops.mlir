// Round trip of the importer's dialect.
//
// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @node
func.func @node(%x: tensor<?x4xf32>) -> !onnx.unknown {
  // CHECK: %[[NONE:.*]] = onnx.none : none
  %none = onnx.none : none
  // CHECK: %[[W:.*]] = onnx.initializer "w" #onnx.range<"m.onnx", 4711, 48> : tensor<3x4xf32>
  %w = onnx.initializer "w" #onnx.range<"m.onnx", 4711, 48> : tensor<3x4xf32>
  // CHECK: onnx.initializer "s" dense<["a", "b"]> : tensor<2x!onnx.string>
  %s = onnx.initializer "s" dense<["a", "b"]> : tensor<2x!onnx.string>
  // CHECK: %[[Y:.*]] = onnx.node "Gemm" version 13(%{{.*}}, %[[W]], %[[NONE]]) attrs {transB = 1 : i64} outputs ["y"] :
  // CHECK-SAME: (tensor<?x4xf32>, tensor<3x4xf32>, none) -> tensor<?x3xf32>
  %y = onnx.node "Gemm" version 13(%x, %w, %none) attrs {transB = 1 : i64} outputs ["y"]
      : (tensor<?x4xf32>, tensor<3x4xf32>, none) -> tensor<?x3xf32>
  // CHECK: onnx.node "Split" domain "com.example" version 1(%[[Y]]) outputs ["a", ""] :
  // CHECK-SAME: -> (!onnx.unknown, none)
  %a:2 = onnx.node "Split" domain "com.example" version 1(%y) outputs ["a", ""]
      : (tensor<?x3xf32>) -> (!onnx.unknown, none)
  return %a#0 : !onnx.unknown
}

// CHECK-LABEL: func.func @graphs
func.func @graphs(%c: tensor<i1>, %q: !onnx.other<"seq(tensor(float))">) {
  // CHECK: onnx.node "If" version 21(%{{.*}}) outputs ["r"] graphs ["then_branch", "else_branch"] {
  // CHECK:   onnx.return %{{.*}} : !onnx.other<"seq(tensor(float))">
  // CHECK: }, {
  // CHECK: ^bb0(%[[I:.*]]: tensor<i64>):
  // CHECK:   onnx.return %[[I]] : tensor<i64>
  // CHECK: } : (tensor<i1>) -> !onnx.unknown
  %r = onnx.node "If" version 21(%c) outputs ["r"] graphs ["then_branch", "else_branch"] {
    onnx.return %q : !onnx.other<"seq(tensor(float))">
  }, {
  ^bb0(%i: tensor<i64>):
    onnx.return %i : tensor<i64>
  } : (tensor<i1>) -> !onnx.unknown
  return
}
