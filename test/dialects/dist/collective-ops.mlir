// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @all_reduce
func.func @all_reduce(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %[[P:.*]] = dist.all_reduce_start sum %{{.*}} site "loss" : tensor<?xf32>
  %p = dist.all_reduce_start sum %x site "loss" : tensor<?xf32>
  // CHECK: dist.wait %[[P]] : tensor<?xf32>
  %0 = dist.wait %p : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @several
func.func @several(%a: tensor<64xf32>, %b: tensor<2xf32>) -> (tensor<64xf32>, tensor<2xf32>) {
  // CHECK: %[[P:.*]] = dist.all_reduce_start mean %{{.*}}, %{{.*}} layouts [#dist.layout<[0, 64] of 128 by 64>] site "gradients" : tensor<64xf32>, tensor<2xf32>
  %p = dist.all_reduce_start mean %a, %b layouts [#dist.layout<[0, 64] of 128 by 64>] site "gradients" : tensor<64xf32>, tensor<2xf32>
  // CHECK: dist.wait %[[P]] sizes {{\[\[64\], \[2\]\]}} : tensor<64xf32>, tensor<2xf32>
  %0:2 = dist.wait %p sizes [[64], [2]] : tensor<64xf32>, tensor<2xf32>
  return %0#0, %0#1 : tensor<64xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @shards
func.func @shards(%a: tensor<64xf32>, %b: tensor<2xf32>, %old: tensor<?xf32>) -> (tensor<64xf32>, tensor<2xf32>) {
  // CHECK: %[[P:.*]] = dist.reduce_scatter_start sum %{{.*}} into %{{.*}} : tensor<?xf32> layouts [#dist.layout<[0] of 128 by 64 to 64>] site "first" : tensor<64xf32>
  %p = dist.reduce_scatter_start sum %a into %old : tensor<?xf32> layouts [#dist.layout<[0] of 128 by 64 to 64>] site "first" : tensor<64xf32>
  // CHECK: dist.wait %[[P]] sizes {{\[\["}}64*ceildiv(128, 64*mesh.data)"]] : tensor<?xf32>
  %0 = dist.wait %p sizes [["64*ceildiv(128, 64*mesh.data)"]] : tensor<?xf32>
  // CHECK: %[[Q:.*]] = dist.all_gather_start %{{.*}} layouts [#dist.layout<[64, 128] of 192 by 64 from 64>] site "parameters" {axis = "tensor"} : tensor<?xf32>
  %q = dist.all_gather_start %0 layouts [#dist.layout<[64, 128] of 192 by 64 from 64>] site "parameters" {axis = "tensor"} : tensor<?xf32>
  // CHECK: dist.wait %[[Q]] deferred sizes
  %1:2 = dist.wait %q deferred sizes [[64], [2]] : tensor<64xf32>, tensor<2xf32>
  return %1#0, %1#1 : tensor<64xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @buckets
func.func @buckets(%a: tensor<64xf32>, %b: tensor<2xf32>, %last: tensor<i1>) -> (tensor<?xf32>, tensor<64xf32>, tensor<2xf32>) {
  // CHECK: %[[P:.*]] = dist.reduce_scatter_start sum %{{.*}} layouts [#dist.layout<[64] of 128 by 64 from 64>] site "second" : tensor<2xf32>
  %p = dist.reduce_scatter_start sum %b layouts [#dist.layout<[64] of 128 by 64 from 64>] site "second" : tensor<2xf32>
  %q = dist.reduce_scatter_start sum %a layouts [#dist.layout<[0] of 128 by 64 to 64>] site "first" : tensor<64xf32>
  // CHECK: dist.wait %[[P]], %{{.*}} sizes {{\[\["}}64*ceildiv(128, 64*mesh.data)"]] : tensor<?xf32>
  %0 = dist.wait %p, %q sizes [["64*ceildiv(128, 64*mesh.data)"]] : tensor<?xf32>
  // CHECK: dist.reduce_scatter_start sum %{{.*}} in_place when %arg2 layouts [#dist.layout<[0] of 64 by 64>] site "own" : tensor<64xf32>
  %r = dist.reduce_scatter_start sum %a in_place when %last layouts [#dist.layout<[0] of 64 by 64>] site "own" : tensor<64xf32>
  %1 = dist.wait %r sizes [[64]] : tensor<64xf32>
  // CHECK: dist.all_gather_start %{{.*}} when %arg2 layouts [#dist.layout<[0] of 64 by 64>] site "layer" : tensor<?xf32>
  %t = dist.all_gather_start %0 when %last layouts [#dist.layout<[0] of 64 by 64>] site "layer" : tensor<?xf32>
  %3 = dist.wait %t sizes [[64]] : tensor<64xf32>
  // CHECK: dist.all_reduce_start sum %{{.*}} when %arg2 site "all" : tensor<2xf32>
  %s = dist.all_reduce_start sum %b when %last site "all" : tensor<2xf32>
  %2 = dist.wait %s sizes [[2]] : tensor<2xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<64xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @one_bit
func.func @one_bit(%a: tensor<64xf32>, %b: tensor<2xf32>, %w: tensor<?xf32>, %s: tensor<?xf32>) -> (tensor<64xf32>, tensor<2xf32>, tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %[[P:.*]] = dist.all_reduce_start mean %{{.*}}, %{{.*}} codec one_bit errors %{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xf32> layouts [#dist.layout<[0, 64] of 72 by 8>] site "momentum" : tensor<64xf32>, tensor<2xf32>
  %p = dist.all_reduce_start mean %a, %b codec one_bit errors %w, %s : tensor<?xf32>, tensor<?xf32> layouts [#dist.layout<[0, 64] of 72 by 8>] site "momentum" : tensor<64xf32>, tensor<2xf32>
  // CHECK: dist.wait %[[P]] {{.*}} : tensor<64xf32>, tensor<2xf32>, tensor<?xf32>, tensor<?xf32>
  %0:4 = dist.wait %p sizes [[64], [2], ["8*ceildiv(72, 8*mesh.data)*mesh.data"], ["8*ceildiv(72, 8*mesh.data)"]] : tensor<64xf32>, tensor<2xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<64xf32>, tensor<2xf32>, tensor<?xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @sparse_rows
func.func @sparse_rows(%a: tensor<4x2xf32>, %last: tensor<i1>) -> tensor<4x2xf32> {
  // CHECK: dist.all_reduce_start sum %{{.*}} codec sparse_rows when %arg1 layouts [#dist.layout<[0] of 8 by 1>] site "table" : tensor<4x2xf32>
  %p = dist.all_reduce_start sum %a codec sparse_rows when %last layouts [#dist.layout<[0] of 8 by 1>] site "table" : tensor<4x2xf32>
  %0 = dist.wait %p sizes [[4, 2]] : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%a: tensor<?x4xf32>, %b: tensor<2xi8>, %c: tensor<64xf32>) -> (tensor<?x4xf32>, tensor<?xi8>, tensor<?xf32>) {
  // CHECK: %[[P:.*]] = dist.all_to_all_start %{{.*}} site "experts" : tensor<?x4xf32>
  %p = dist.all_to_all_start %a site "experts" : tensor<?x4xf32>
  // CHECK: dist.wait %[[P]] sizes {{\[\[}}"mesh.data", 4]] : tensor<?x4xf32>
  %0 = dist.wait %p sizes [["mesh.data", 4]] : tensor<?x4xf32>
  %q = dist.all_to_all_start %b site "small" {axis = "expert"} : tensor<2xi8>
  %1 = dist.wait %q sizes [["ceildiv(2, mesh.expert)*mesh.expert"]] : tensor<?xi8>
  // CHECK: dist.all_to_all_start %{{.*}} layouts [#dist.layout<[64] of 128 by 64>] site "space" : tensor<64xf32>
  %r = dist.all_to_all_start %c layouts [#dist.layout<[64] of 128 by 64>] site "space" : tensor<64xf32>
  %2 = dist.wait %r sizes [["64*ceildiv(128, 64*mesh.data)*mesh.data"]] : tensor<?xf32>
  return %0, %1, %2 : tensor<?x4xf32>, tensor<?xi8>, tensor<?xf32>
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%a: tensor<?xf32>, %b: tensor<2x3xf32>) -> (tensor<?xf32>, tensor<2x3xf32>) {
  // CHECK: %[[P:.*]] = dist.broadcast_start %{{.*}}, %{{.*}} root -1 site "loss" : tensor<?xf32>, tensor<2x3xf32>
  %p = dist.broadcast_start %a, %b root -1 site "loss" : tensor<?xf32>, tensor<2x3xf32>
  // CHECK: dist.wait %[[P]] sizes {{\[\[}}"n"], [2, 3]] : tensor<?xf32>, tensor<2x3xf32>
  %0:2 = dist.wait %p sizes [["n"], [2, 3]] : tensor<?xf32>, tensor<2x3xf32>
  return %0#0, %0#1 : tensor<?xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func.func @send_recv
func.func @send_recv(%a: tensor<?xf32>, %b: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %[[P:.*]] = dist.send_recv_start %{{.*}} by -1 into %{{.*}} : tensor<?xf32> site "backward" {axis = "pipe"} : tensor<?xf32>
  %p = dist.send_recv_start %a by -1 into %b : tensor<?xf32> site "backward" {axis = "pipe"} : tensor<?xf32>
  // CHECK: dist.send_recv_start %{{.*}} by 2 rotate site "ring" : tensor<?xf32>
  %q = dist.send_recv_start %a by 2 rotate site "ring" : tensor<?xf32>
  // CHECK: dist.wait %[[P]] : tensor<?xf32>
  %0 = dist.wait %p : tensor<?xf32>
  %1 = dist.wait %q : tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @narrower
func.func @narrower(%a: tensor<4x2xf32>, %b: tensor<64xf64>, %last: tensor<i1>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<?xf64>) {
  // CHECK: dist.all_reduce_start sum %{{.*}} wire bf16 codec sparse_rows when %arg2 site "a" : tensor<4x2xf32>
  %p = dist.all_reduce_start sum %a wire bf16 codec sparse_rows when %last site "a" : tensor<4x2xf32>
  %0 = dist.wait %p sizes [[4, 2]] : tensor<4x2xf32>
  // CHECK: dist.reduce_scatter_start sum %{{.*}} wire f16 codec sparse_rows in_place when %arg2 layouts [#dist.layout<[0] of 64 by 64>] site "b" : tensor<4x2xf32>
  %q = dist.reduce_scatter_start sum %0 wire f16 codec sparse_rows in_place when %last layouts [#dist.layout<[0] of 64 by 64>] site "b" : tensor<4x2xf32>
  %1 = dist.wait %q sizes [[4, 2]] : tensor<4x2xf32>
  // CHECK: dist.reduce_scatter_start sum %{{.*}} wire f32 layouts [#dist.layout<[0] of 64 by 64>] site "c" : tensor<64xf64>
  %r = dist.reduce_scatter_start sum %b wire f32 layouts [#dist.layout<[0] of 64 by 64>] site "c" : tensor<64xf64>
  %2 = dist.wait %r sizes [["64*ceildiv(64, 64*mesh.data)"]] : tensor<?xf64>
  return %0, %1, %2 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<?xf64>
}
