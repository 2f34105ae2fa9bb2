// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false share-stage=3" --ds-verify-contract=phase=distribution | FileCheck %s
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false share-stage=3 max-reuse=1000" --ds-verify-contract=phase=distribution | FileCheck %s --check-prefix=STAYS
// RUN: ds-opt %s --ds-gate-layers --ds-build-training-step="loss=loss optimizer=sgd,momentum=false share-stage=3 rounds=bf16" --ds-verify-contract=phase=distribution | FileCheck %s --check-prefix=NARROW
// Blocks that a micro-batch may drop, of parameters that ranks share. The numbers are checked by test/integration/ranks_technique_cases.py.

// Evaluation drops none.
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: when
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[GATE0:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_gate/0"}
// CHECK-SAME: %[[GATE1:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_gate/1"}
// CHECK-SAME: %[[GATE2:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_gate/2"}
// What a block alone reads is gathered where the block runs, ahead of it, too. `both` makes of the second unit one of two blocks, and
// no gate is before what follows the last block.
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} when %[[GATE0]] layouts {{.*}} site "micro/layer 0"
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} layouts {{.*}} site "micro/layer 1"
// CHECK-NEXT: scf.if
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} when %[[GATE2]] layouts {{.*}} site "micro/layer 2"
// CHECK-NEXT: scf.if
// CHECK: %[[W2:.*]] = dist.wait {{.*}} {ds.gathered = ["w2"]}
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} layouts {{.*}} site "micro/layer 3"
// CHECK-NEXT: scf.if
// CHECK-NEXT: ds.matmul %{{.*}}, %[[W2]]
// On the way back nobody reads what was added, so that the second unit is of its block alone.
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} layouts {{.*}} site "micro/backward/layer 3"
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} when %[[GATE2]] layouts {{.*}} site "micro/backward/layer 2"
// CHECK: dist.all_gather_start %{{[a-z0-9]+}} when %[[GATE1]] layouts {{.*}} site "micro/backward/layer 1"
// CHECK-NOT: all_gather_start
// CHECK-LABEL: func.func @update(

// A unit that stays for the way back is gathered once, where its block runs.
// STAYS-LABEL: func.func @micro(
// STAYS: dist.all_gather_start %{{[a-z0-9]+}} when %{{[a-z0-9]+}} layouts {{.*}} site "micro/layer 0"
// STAYS: dist.all_gather_start %{{[a-z0-9]+}} layouts {{.*}} site "micro/layer 1"
// STAYS: dist.all_gather_start %{{[a-z0-9]+}} when %[[GATE2:.*]] layouts {{.*}} site "micro/layer 2"
// STAYS-NOT: micro/backward
// STAYS-LABEL: func.func @update(

// What is stored in two bytes is widened inside of the block.
// NARROW-LABEL: func.func @micro(
// NARROW: dist.all_gather_start %{{[a-z0-9]+}} when %{{[a-z0-9]+}} layouts {{.*}} site "micro/layer 2" : tensor<?xbf16>
// NARROW: %[[W2:.*]] = dist.wait {{.*}} {ds.gathered = ["w2"]}
// NARROW-NOT: ds.cast %[[W2]]
// NARROW: scf.if
// NARROW: ds.cast %[[W2]] to f32

func.func @main(%x: tensor<4x8xf32> {ds.dims = [4, 8], ds.name = "x"},
    %w0: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w, ds.name = "w0", ds.state = "w0"},
    %b0: tensor<8xf32> {ds.dims = [8], ds.initial = @b, ds.name = "b0", ds.state = "b0"},
    %w1: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w, ds.name = "w1", ds.state = "w1"},
    %both: tensor<8xf32> {ds.dims = [8], ds.initial = @b, ds.name = "both", ds.state = "both"},
    %w2: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w, ds.name = "w2", ds.state = "w2"},
    %head: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w, ds.name = "head", ds.state = "head"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %p0 = ds.matmul %x, %w0 transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s0 = ds.binary add %p0, %b0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %t0 = ds.unary tanh %s0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y0 = ds.binary add %x, %t0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %p1 = ds.matmul %y0, %w1 transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s1 = ds.binary add %p1, %both : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %t1 = ds.unary tanh %s1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y1 = ds.binary add %y0, %t1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %p2 = ds.matmul %y1, %w2 transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s2 = ds.binary add %p2, %both : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %t2 = ds.unary tanh %s2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y2 = ds.binary add %y1, %t2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %logits = ds.matmul %y2, %head transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %squares = ds.binary mul %logits, %logits : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %loss = ds.reduce sum %squares axes [0, 1] keep false : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
