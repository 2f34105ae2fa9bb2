// RUN: ds-opt %s --split-input-file --ds-list-parameters | FileCheck %s

// CHECK: module attributes {ds.parameters = {bias = {elements = 8 : i64, node = "/encoder/Add"}, w = {elements = 32 : i64, node = "/encoder/MatMul"}}}
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 128] : tensor<4x8xf32>
  ds.yield %0 : tensor<4x8xf32>
}
func.func @doc(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}) -> tensor<?x8xf32> attributes {ds.entry} {
  %w = ds.weight @w : tensor<4x8xf32>
  %b = ds.constant {ds.values = ["bias"]} dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> loc("/encoder/MatMul")
  %1 = ds.binary add %0, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32> loc("/encoder/Add")
  return %1 : tensor<?x8xf32>
}

// -----

// A table that is read twice is one parameter of its first reader, whatever lies between.
// CHECK: ds.parameters = {table = {elements = 12 : i64, node = "/Gather"}}
ds.recipe @table {
  %0 = ds.source "model.onnx" [0, 48] : tensor<3x4xf32>
  ds.yield %0 : tensor<3x4xf32>
}
func.func @is_read_twice(%i: tensor<?xi64> {ds.dims = ["n"]}) -> tensor<?x3xf32> attributes {ds.entry} {
  %head = ds.weight @table : tensor<3x4xf32>
  %turned = ds.transpose %head [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32> loc("/Transpose")
  %table = ds.weight @table : tensor<3x4xf32>
  %0 = ds.gather 0 %table, %i : (tensor<3x4xf32>, tensor<?xi64>) -> tensor<?x4xf32> loc("/Gather")
  %1 = ds.matmul %0, %turned transpose [false, false] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32> loc("/MatMul")
  return %1 : tensor<?x3xf32>
}

// -----

// States that begin with something are learned, statistics of norms are not, nor are positions and scalars.
// CHECK: ds.parameters = {scale = {elements = 4 : i64, node = "/Mul"}}
ds.recipe @first {
  %0 = ds.source "model.onnx" [0, 16] : tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}
func.func @others_are_no_parameters(%x: tensor<?x4xf32> {ds.dims = ["n", 4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "scale", ds.initial = @first},
    %mean: tensor<4xf32> {ds.dims = [4], ds.state = "mean", ds.initial = @first, ds.statistic}, %zeros: tensor<4xf32> {ds.dims = [4], ds.state = "cache"})
    -> (tensor<?x4xf32>, tensor<4xf32> {ds.state = "scale"}, tensor<4xf32> {ds.state = "mean"}, tensor<4xf32> {ds.state = "cache"}) attributes {ds.entry} {
  %half = ds.constant {ds.values = ["half"]} dense<0.5> : tensor<f32>
  %0 = ds.binary sub %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("/Sub")
  %1 = ds.binary mul %0, %s : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("/Mul")
  %2 = ds.binary mul %1, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("/Half")
  return %2, %s, %mean, %zeros : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-NOT: ds.parameters
func.func @has_none(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
