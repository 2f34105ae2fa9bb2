// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=one_bit_adam,weight_decay=0.1 clip=1 no-decay=^b" | FileCheck %s
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=one_bit_lamb" | FileCheck %s --check-prefix=LAMB
// RUN: ds-opt %s --ds-build-training-step="loss=loss optimizer=adamw clip=1" | FileCheck %s --check-prefix=PLAIN
// RUN: not ds-opt %s --ds-build-training-step="loss=loss optimizer=one_bit_adam share-stage=1" 2>&1 | FileCheck %s --check-prefix=SHARED
// The two regimes of 1-bit Adam. The numbers are checked by test/integration/ranks_one_bit_cases.py.

// SHARED: error: zero_optimization.stage 1: momentum is compressed as a whole, of which ranks would have parts; expected stage 0 of 1-bit optimizers
// PLAIN-NOT: local_norm
// PLAIN-NOT: codec

// The warm-up adds up gradients, which stay a rank's own behind it, and knows of no errors.
// CHECK-LABEL: func.func @micro(
// CHECK-SAME: %[[LAST:[a-z0-9]+]]: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "last"}
// CHECK: dist.all_reduce_start sum %{{.*}} when %[[LAST]]
// CHECK-LABEL: func.func @update(
// CHECK-NOT: one_bit
// CHECK-NOT: dist.all_reduce

// The norm of each rank's own gradients, reduced.
// CHECK-LABEL: func.func @local_norm(
// CHECK-SAME: ds.name = "loss_scale"
// CHECK-SAME: ds.name = "ranks"
// CHECK-SAME: ds.state = "w/gradient"
// CHECK-NOT: dist.all_reduce_start sum %{{.*}} site "gradients
// CHECK: dist.all_reduce_start max %{{.*}} site "norm/max"
// CHECK: dist.all_reduce_start sum %{{.*}} site "norm/sum"
// CHECK: return {{.*}} : tensor<f64>, tensor<i1>

// A large tensor has a scale of its own, small ones of a unit have one together. Errors are states with a row for each
// rank, and with a part for each.
// CHECK-LABEL: func.func @update_compressed(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<128x128xf32> {ds.dims = [128, 128], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<128x128xf32> {ds.dims = [128, 128], ds.name = "w/exp_avg", ds.state = "w/exp_avg"}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<128x128xf32> {ds.dims = [128, 128], ds.name = "w/exp_avg_sq", ds.state = "w/exp_avg_sq"}
// CHECK-SAME: tensor<?xf32> {ds.dims = ["8*ceildiv(16384, 8*mesh.data)*mesh.data"], ds.name = "one_bit/w/worker_error", ds.part = "worker", ds.state = "one_bit/w/worker_error", ds.suffix = "/worker_error", ds.unit = "w"}
// CHECK-SAME: tensor<?xf32> {ds.dims = ["8*ceildiv(16384, 8*mesh.data)"], ds.name = "one_bit/w/server_error", ds.part = "shard", {{.*}}ds.suffix = "/server_error", ds.unit = "w"}
// CHECK-SAME: ds.state = "one_bit/layer 0 small/worker_error"
// CHECK-SAME: ds.units = [{block = 8 : i64, elements = 16384 : i64, name = "w"
// Where there never was a gradient, momentum is 0 before it is sent and after.
// CHECK: %[[NONE:.*]] = ds.binary eq %[[V]],
// CHECK: %[[LOCAL:.*]] = ds.select %[[NONE]],
// CHECK: %[[P:.*]] = dist.all_reduce_start mean %[[LOCAL]], %{{.*}} codec one_bit errors %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} layouts [#dist.layout<[0] of 16384 by 8>, #dist.layout<[0] of 128 by 8>] site "momentum" : tensor<128x128xf32>, tensor<128xf32>
// CHECK-NEXT: %[[MEAN:.*]]:6 = dist.wait %[[P]]
// CHECK: ds.binary eq %[[V]],
// CHECK: %[[NEXT:.*]] = ds.select %{{.*}}, %{{.*}}, %[[MEAN]]#0
// CHECK: ds.binary mul %[[W]],
// CHECK: ds.unary sqrt %[[V]]
// CHECK: return %{{.*}}, %[[NEXT]], {{.*}}, %[[MEAN]]#2, %[[MEAN]]#3, %[[MEAN]]#4, %[[MEAN]]#5 :

// 1-bit LAMB averages trust ratios in the warm-up. Then all momenta are one space, and have one size on their way; scales
// are computed once, where they are still 0.
// LAMB-LABEL: func.func @update(
// LAMB-SAME: tensor<f64> {ds.dims = [], ds.name = "w/trust_average", ds.state = "w/trust_average"}
// LAMB-LABEL: func.func @update_compressed(
// LAMB-SAME: %[[M:[a-z0-9]+]]: tensor<128x128xf32> {ds.dims = [128, 128], ds.name = "w/exp_avg", ds.state = "w/exp_avg"}
// LAMB-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {ds.dims = [], ds.name = "w/momentum_scale", ds.state = "w/momentum_scale"}
// LAMB-SAME: ds.state = "one_bit/all/worker_error"
// LAMB: %[[FIRST:.*]] = ds.binary eq %[[SCALE]],
// LAMB: %[[GO:.*]] = tensor.extract %[[FIRST]]
// LAMB: %[[SCALES:.*]]:2 = scf.if %[[GO]]
// LAMB: ds.reduce l2 %[[M]]
// LAMB: } else {
// LAMB-NEXT: scf.yield %[[SCALE]],
// LAMB: ds.cast %[[SCALES]]#0
// LAMB: dist.all_reduce_start mean {{.*}} codec one_bit {{.*}} layouts [#dist.layout<[0, 16384] of 16512 by 8>] site "momentum"
// LAMB: ds.cast %[[SCALES]]#0
// LAMB: ds.reduce max

ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 65536] : tensor<128x128xf32>
  ds.yield %0 : tensor<128x128xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [65536, 512] : tensor<128xf32>
  ds.yield %0 : tensor<128xf32>
}
func.func @main(%x: tensor<4x128xf32> {ds.dims = [4, 128], ds.name = "x"},
    %w: tensor<128x128xf32> {ds.dims = [128, 128], ds.initial = @w, ds.name = "w", ds.state = "w"},
    %b: tensor<128xf32> {ds.dims = [128], ds.initial = @b, ds.name = "b", ds.state = "b"}) -> (tensor<f32> {ds.name = "loss"}) attributes {ds.entry} {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %1 = ds.binary add %0, %b : (tensor<4x128xf32>, tensor<128xf32>) -> tensor<4x128xf32>
  %2 = ds.reduce sum %1 axes [0, 1] keep false : (tensor<4x128xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
