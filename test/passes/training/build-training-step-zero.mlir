// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=1" | FileCheck %s --check-prefixes=STATES,ONE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=2" | FileCheck %s --check-prefixes=STATES,TWO
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3" | FileCheck %s --check-prefix=THREE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adamw,weight_decay=0.1 share-stage=2 no-decay=^b" | FileCheck %s --check-prefix=SPARED
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=lamb share-stage=3" --ds-verify-contract=phase=distribution | FileCheck %s --check-prefix=LAMB
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=1 reduce-bucket=64 gather-bucket=64" | FileCheck %s --check-prefix=PARTS
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=2 reduce-bucket=1" | FileCheck %s --check-prefix=JOINED
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=2 reduce-bucket=1 overlaps=false" | FileCheck %s --check-prefix=APART
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 max-reuse=0" | FileCheck %s --check-prefix=THREE
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 max-reuse=1" | FileCheck %s --check-prefix=AGAIN
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 prefetch=64" | FileCheck %s --check-prefix=AHEAD
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 max-live=192" | FileCheck %s --check-prefix=AHEAD
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 prefetch=0" | FileCheck %s --check-prefix=AHEAD
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 persistence=65" | FileCheck %s --check-prefix=KEPT
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adam share-stage=3 persistence=65 model-persistence=63" | FileCheck %s --check-prefix=FEWER
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=lamb share-stage=0" | FileCheck %s --check-prefix=NONE
// What ranks share. The numbers are checked by test/integration/ranks_zero_cases.py.

// Trust ratios are of whole parameters: norms of the blocks that each rank owns are gathered, behind the branch that all ranks take alike.
// LAMB-LABEL: func.func @update(
// LAMB-SAME: {dist.uniform, ds.dims = [], ds.name = "learning_rate"}
// LAMB: scf.if
// LAMB: %[[NORMS:.*]] = ds.reduce l2 %{{.*}} axes [1]
// LAMB: dist.all_gather_start %[[NORMS]], %{{.*}}, %{{.*}}, %{{.*}} layouts [#dist.layout<[0, 1] of 2 by 1>, #dist.layout<[0, 1] of 2 by 1>, #dist.layout<[0] of 2 by 1>, #dist.layout<[0] of 2 by 1>] site "trust"
// LAMB-NEXT: %[[ALL:.*]]:6 = dist.wait
// LAMB: ds.reduce l2 %{{.*}} axes [0]
// LAMB: ds.slice %{{.*}} starts ["ceildiv(128, 64*mesh.data)*mesh.data.index"] sizes ["ceildiv(128, 64*mesh.data)"]
// LAMB: scf.yield
// LAMB-NOT: dist.

// Without sharing there are no units.
// NONE-NOT: ds.unit
// NONE-NOT: reduce_scatter

// Stages 1 and 2: parameters are whole in all entries, and lie in units.
// STATES-LABEL: func.func @eval(
// STATES-SAME: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w0, ds.name = "w0", ds.part = "tensor", ds.state = "w0", ds.suffix = "", ds.unit = "layer 0"}
// STATES-SAME: tensor<8x10xf32> {{{.*}}ds.part = "tensor", ds.state = "w1", ds.suffix = "", ds.unit = "layer 1"}
// STATES-NOT: dist.
// STATES-LABEL: func.func @micro(

// Stage 1 adds up gradients of micro-batches as one process does, and ranks' in the last of them, each where it is
// complete: a rank gets the sums of its part, in the places of its own gradients. The update reads that part.
// ONE-SAME: %[[LAST:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "last"}
// ONE-SAME: tensor<8x8xf32> {{{.*}}ds.part = "tensor", ds.state = "w0/gradient", ds.suffix = "/gradient", ds.unit = "layer 0"}
// ONE: %[[P1:.*]] = dist.reduce_scatter_start sum %{{.*}} in_place when %[[LAST]] layouts [#dist.layout<[0] of 128 by 64>] site "gradients/layer 1" : tensor<8x10xf32>
// ONE: ds.matmul
// ONE: %[[P0:.*]] = dist.reduce_scatter_start sum %{{.*}}, %{{.*}} in_place when %[[LAST]] layouts [#dist.layout<[0, 64] of 128 by 64>] site "gradients/layer 0" : tensor<8x8xf32>, tensor<8xf32>
// ONE-NEXT: %[[G1:.*]] = dist.wait %[[P1]] sizes {{\[}}[8, 10]] : tensor<8x10xf32>
// ONE-NEXT: %[[G0:.*]]:2 = dist.wait %[[P0]] sizes {{\[}}[8, 8], [8]] : tensor<8x8xf32>, tensor<8xf32>
// ONE-NEXT: return %{{.*}}, %[[G1]], %[[G0]]#0, %[[G0]]#1
// ONE-LABEL: func.func @update(
// ONE-SAME: %[[SHARD:[a-z0-9]+]]: tensor<?xf32> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/layer 0", ds.part = "view", ds.state = "zero/layer 0", ds.suffix = "", ds.unit = "layer 0"}
// ONE-SAME: tensor<?xf32> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/layer 0/exp_avg", ds.part = "shard", ds.state = "zero/layer 0/exp_avg", ds.suffix = "/exp_avg", ds.unit = "layer 0"}
// ONE-SAME: ds.name = "zero/layer 0/exp_avg_sq", ds.part = "shard"
// ONE-SAME: %[[G0:[a-z0-9]+]]: tensor<?xf32> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/layer 0/gradient", ds.part = "view"
// ONE-SAME: ds.name = "zero/layer 1", ds.part = "view"
// ONE-NOT: reduce_scatter
// The norm: each rank's blocks, then the greatest of all, then sums that are exact.
// ONE: ds.reshape %[[G0]] ["ceildiv(128, 64*mesh.data)", 64]
// ONE: %[[GREATEST:.*]] = ds.reduce max
// ONE-NEXT: dist.all_reduce_start max %[[GREATEST]] layouts [#dist.layout<[0] of 1 by 1>] site "norm/max" : tensor<f64>
// ONE: dist.all_reduce_start sum %{{.*}} layouts [#dist.layout<[0] of 2 by 1>] site "norm/sum" : tensor<2xf64>
// ONE-NEXT: dist.wait
// ONE-NOT: dist.
// ONE: %[[UPDATED:.*]]:6 = scf.if
// ONE-NOT: dist.
// ONE: scf.yield %[[SHARD]]
// ONE: %[[A0:.*]] = dist.all_gather_start %[[UPDATED]]#0 layouts [#dist.layout<[0, 64] of 128 by 64>] site "parameters/layer 0" : tensor<?xf32>
// ONE-NEXT: %[[A1:.*]] = dist.all_gather_start %[[UPDATED]]#3 layouts [#dist.layout<[0] of 128 by 64>] site "parameters/layer 1" : tensor<?xf32>
// They may still be on their way when the entry ends.
// ONE-NEXT: %[[WHOLE:.*]]:2 = dist.wait %[[A0]] deferred sizes {{\[}}[8, 8], [8]] : tensor<8x8xf32>, tensor<8xf32>
// ONE-NEXT: %[[LAST:.*]] = dist.wait %[[A1]] deferred sizes {{\[}}[8, 10]] : tensor<8x10xf32>
// ONE-NEXT: return {{.*}}, %[[WHOLE]]#0, %[[WHOLE]]#1, %[[LAST]] :

// Stage 2 keeps parts of gradients. A unit's are sent where they are complete, the last layer's first, and added up before
// the next ones are sent.
// TWO-SAME: tensor<i1> {ds.dims = [], ds.name = "first"}
// TWO-SAME: %[[SUM1:[a-z0-9]+]]: tensor<?xf32> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/layer 1/gradient", ds.part = "shard", ds.state = "zero/layer 1/gradient", ds.suffix = "/gradient", ds.unit = "layer 1"}
// TWO-SAME: %[[SUM0:[a-z0-9]+]]: tensor<?xf32> {{{.*}}ds.name = "zero/layer 0/gradient"
// TWO-NOT: all_gather
// TWO: %[[P1:.*]] = dist.reduce_scatter_start sum %{{.*}} layouts [#dist.layout<[0] of 128 by 64>] site "gradients/layer 1" : tensor<8x10xf32>
// TWO: ds.matmul
// TWO: %[[G1:.*]] = dist.wait %[[P1]]
// TWO-NEXT: ds.binary add %[[SUM1]], %[[G1]]
// TWO: %[[P0:.*]] = dist.reduce_scatter_start sum %{{.*}}, %{{.*}} layouts [#dist.layout<[0, 64] of 128 by 64>] site "gradients/layer 0" : tensor<8x8xf32>, tensor<8xf32>
// TWO-NEXT: %[[G0:.*]] = dist.wait %[[P0]]
// TWO-NEXT: ds.binary add %[[SUM0]], %[[G0]]
// TWO-LABEL: func.func @update(
// TWO-NOT: reduce_scatter
// TWO: site "norm/max"
// TWO: site "norm/sum"
// TWO: all_gather_start {{.*}} site "parameters/layer 0"
// TWO: all_gather_start {{.*}} site "parameters/layer 1"

// Stage 3 gathers parameters before each of the two ways reads them; the next ones are on the way meanwhile.
// THREE-LABEL: func.func @eval(
// THREE-SAME: %[[E0:[a-z0-9]+]]: tensor<?xf32> {ds.dims = ["64*ceildiv(128, 64*mesh.data)"], ds.name = "zero/layer 0", ds.part = "shard", ds.state = "zero/layer 0", ds.suffix = "", ds.unit = "layer 0"}
// THREE-NOT: ds.initial
// THREE: dist.all_gather_start %[[E0]] layouts [#dist.layout<[0, 64] of 128 by 64>] site "eval/layer 0"
// THREE: site "eval/layer 1"
// THREE-LABEL: func.func @micro(
// THREE-NOT: ds.state = "w0"
// THREE: %[[P0:.*]] = dist.all_gather_start %{{.*}} site "micro/layer 0" : tensor<?xf32>
// THREE-NEXT: %[[W0:.*]]:2 = dist.wait %[[P0]] sizes {{\[}}[8, 8], [8]]
// THREE-NEXT: %[[P1:.*]] = dist.all_gather_start %{{.*}} site "micro/layer 1"
// THREE-NEXT: ds.matmul %{{.*}}, %[[W0]]#0
// THREE: %[[W1:.*]] = dist.wait %[[P1]]
// THREE-NEXT: %[[P2:.*]] = dist.all_gather_start %{{.*}} site "micro/backward/layer 1"
// THREE-NEXT: ds.matmul %{{.*}}, %[[W1]]
// THREE: %[[W2:.*]] = dist.wait %[[P2]]
// THREE-NEXT: ds.matmul %{{.*}}, %[[W2]] transpose [false, true]
// The first layer's gradients take no parameters.
// THREE-NOT: all_gather
// THREE: site "gradients/layer 1"
// THREE: site "gradients/layer 0"
// THREE-LABEL: func.func @update(
// THREE-SAME: ds.name = "zero/layer 0", ds.part = "shard"
// THREE-SAME: ds.name = "zero/layer 0/gradient", ds.part = "shard"
// Where tensors lie in the units, and what they begin with.
// THREE-SAME: attributes {ds.entry, ds.units = [
// THREE-SAME: {block = 64 : i64, elements = 128 : i64, name = "layer 0", tensors = [{initial = @w0, name = "w0", offset = 0 : i64, shape = [8, 8]}, {initial = @b0, name = "b0", offset = 64 : i64, shape = [8]}]}
// THREE-SAME: {block = 64 : i64, elements = 128 : i64, name = "layer 1", tensors = [{initial = @w1, name = "w1", offset = 0 : i64, shape = [8, 10]}]}
// THREE-NOT: reduce_scatter
// THREE-NOT: all_gather
// THREE: return

// Messages are parts of a unit where a bucket is smaller, the last one first, which the way back has first; a tensor
// stays in one. Ranges make up the space.
// PARTS: %[[B0:.*]] = dist.reduce_scatter_start sum {{.*}} in_place {{.*}} layouts [#dist.layout<[64] of 128 by 64 from 64>] site "gradients/layer 0, part 1" : tensor<8xf32>
// PARTS: %[[B1:.*]] = dist.reduce_scatter_start sum {{.*}} layouts [#dist.layout<[0] of 128 by 64 to 64>] site "gradients/layer 0, part 2" : tensor<8x8xf32>
// PARTS: dist.wait %[[B0]] sizes
// PARTS: dist.wait %[[B1]] sizes
// PARTS: all_gather_start %[[U:.*]]#0 layouts [#dist.layout<[0] of 128 by 64 to 64>] site "parameters/layer 0, part 2"
// PARTS: all_gather_start %[[U]]#0 layouts [#dist.layout<[64] of 128 by 64 from 64>] site "parameters/layer 0, part 1"
// PARTS: all_gather_start %[[U]]#3 layouts [#dist.layout<[0] of 128 by 64>] site "parameters/layer 1"

// What a rank keeps of a unit is one tensor: one wait ends all of its messages, or each goes into the result of the last.
// JOINED: %[[B0:.*]] = dist.reduce_scatter_start sum %{{[0-9]+}} layouts [#dist.layout<[64] of 128 by 64 from 64>] site "gradients/layer 0, part 1"
// JOINED: %[[B1:.*]] = dist.reduce_scatter_start sum %{{[0-9]+}} layouts [#dist.layout<[0] of 128 by 64 to 64>] site "gradients/layer 0, part 2"
// JOINED: dist.wait %[[B0]], %[[B1]] sizes {{\[}}["64*ceildiv(128, 64*mesh.data)"]] : tensor<?xf32>
// APART: %[[B0:.*]] = dist.reduce_scatter_start sum %{{[0-9]+}} layouts {{.*}} site "gradients/layer 0, part 1"
// APART-NEXT: %[[R0:.*]] = dist.wait %[[B0]]
// APART: %[[B1:.*]] = dist.reduce_scatter_start sum %{{[0-9]+}} into %[[R0]] : tensor<?xf32> layouts {{.*}} site "gradients/layer 0, part 2"
// APART-NEXT: dist.wait %[[B1]]
// APART-LABEL: func.func @update(
// APART-NOT: deferred
// APART: return

// A tensor that may not be there ahead is gathered when it is read.
// The last layer is read on the way back at once: it stays.
// AGAIN-LABEL: func.func @micro(
// AGAIN: site "micro/layer 0"
// AGAIN: %[[P1:.*]] = dist.all_gather_start %{{.*}} site "micro/layer 1"
// AGAIN: %[[W1:.*]] = dist.wait %[[P1]]
// AGAIN-NOT: all_gather
// AGAIN: ds.matmul %{{.*}}, %[[W1]] transpose [false, false]
// AGAIN-NOT: all_gather
// AGAIN: ds.matmul %{{.*}}, %[[W1]] transpose [false, true]
// AGAIN-NOT: all_gather
// AGAIN-LABEL: func.func @update(

// AHEAD-LABEL: func.func @micro(
// AHEAD: %[[P0:.*]] = dist.all_gather_start %{{.*}} site "micro/layer 0"
// AHEAD-NEXT: dist.wait %[[P0]]
// AHEAD-NEXT: ds.matmul
// AHEAD: %[[P1:.*]] = dist.all_gather_start %{{.*}} layouts [#dist.layout<[0] of 128 by 64>] site "micro/layer 1"
// AHEAD-NEXT: dist.wait %[[P1]]

// Small tensors stay whole on every rank, in units that each update gathers.
// KEPT-LABEL: func.func @eval(
// KEPT-SAME: ds.part = "tensor", ds.state = "w0"
// KEPT-SAME: ds.part = "tensor", ds.state = "b0"
// KEPT-SAME: ds.part = "shard", ds.state = "zero/layer 1"
// KEPT-NOT: site "eval/layer 0
// KEPT-LABEL: func.func @micro(
// KEPT-NOT: site "micro/layer 0
// KEPT: site "gradients/layer 0, whole"
// KEPT-LABEL: func.func @update(
// KEPT: all_gather_start {{.*}} site "parameters/layer 0, whole"
// KEPT-NOT: all_gather
// KEPT: return
// FEWER-LABEL: func.func @eval(
// FEWER-SAME: ds.part = "tensor", ds.state = "b0"
// FEWER-SAME: ds.part = "shard", ds.state = "zero/layer 0"
// FEWER-SAME: ds.part = "shard", ds.state = "zero/layer 1"
// FEWER: site "eval/layer 0"

// Parameters without decay are units of their own.
// SPARED-LABEL: func.func @micro(
// SPARED: site "gradients/layer 1" : tensor<8x10xf32>
// SPARED: site "gradients/layer 0 without decay" : tensor<8xf32>
// SPARED: site "gradients/layer 0" : tensor<8x8xf32>
ds.recipe @w0 {
  %0 = ds.source "model.onnx" [0, 256] : tensor<8x8xf32>
  ds.yield %0 : tensor<8x8xf32>
}
ds.recipe @b0 {
  %0 = ds.source "model.onnx" [256, 32] : tensor<8xf32>
  ds.yield %0 : tensor<8xf32>
}
ds.recipe @w1 {
  %0 = ds.source "model.onnx" [288, 320] : tensor<8x10xf32>
  ds.yield %0 : tensor<8x10xf32>
}
func.func @main(%x: tensor<4x8xf32> {ds.dims = [4, 8], ds.name = "x"},
    %w0: tensor<8x8xf32> {ds.dims = [8, 8], ds.initial = @w0, ds.name = "w0", ds.state = "w0"},
    %b0: tensor<8xf32> {ds.dims = [8], ds.initial = @b0, ds.name = "b0", ds.state = "b0"},
    %w1: tensor<8x10xf32> {ds.dims = [8, 10], ds.initial = @w1, ds.name = "w1", ds.state = "w1"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.matmul %x, %w0 transpose [false, false] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = ds.binary add %0, %b0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = ds.unary tanh %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = ds.matmul %2, %w1 transpose [false, false] : (tensor<4x8xf32>, tensor<8x10xf32>) -> tensor<4x10xf32>
  %4 = ds.reduce sum %3 axes [0, 1] keep false : (tensor<4x10xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
