// RUN: ds-opt %s --split-input-file --ds-schedule-quantization=groups=2 --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-schedule-quantization="groups=2 scheme=asymmetric mixed=true" --verify-diagnostics | FileCheck %s --check-prefix=MIXED
// RUN: ds-opt %s --split-input-file --ds-schedule-quantization="groups=2 rounding=stochastic" --verify-diagnostics | FileCheck %s --check-prefix=DRAWN
// RUN: not ds-opt %s --split-input-file --ds-schedule-quantization=scheme=other 2>&1 | FileCheck %s --check-prefix=OPTIONS
// RUN: not ds-opt %s --split-input-file --ds-schedule-quantization="layer-name=net layers=-1" 2>&1 | FileCheck %s --check-prefix=LAYERS
// The numbers are checked by test/integration/quantized_training_cases.py.
// LAYERS: error: layers: expected 0 or more, found -1
// OPTIONS: error: ds-schedule-quantization: expected groups of at least 1, scheme symmetric or asymmetric, rounding nearest or stochastic, found 1, 'other' and 'nearest'

// What reads the weight reads its image; what begins the gradient's state does not change, and neither does the vector.
// CHECK: module attributes {ds.quantized = {w = 0 : i64}}
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x6xf32> {ds.dims = [4, 6], ds.initial = @w, ds.name = "w", ds.state = "w"}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<6xf32>
// CHECK-SAME: %[[LEVELS:[a-z0-9]+]]: tensor<1xf64> {ds.dims = [1], ds.name = "quantize_levels"}
// CHECK-DAG: %[[SOME:.*]] = ds.binary gt
// CHECK: %[[MANY:.*]] = tensor.extract
// CHECK: %[[IMAGE:.*]] = scf.if %{{.*}} -> (tensor<4x6xf32>) {
// CHECK: %[[ROWS:.*]] = ds.reshape %[[W]] [2, 12]
// CHECK: %[[SIZES:.*]] = ds.unary abs %[[ROWS]]
// CHECK: ds.reduce max %[[SIZES]] axes [1]
// CHECK: ds.unary round
// CHECK: else
// CHECK: scf.if
// CHECK: ds.reduce mean
// CHECK: else
// CHECK-NEXT: scf.yield %[[W]]
// CHECK: %[[Y:.*]] = ds.matmul %[[X]], %[[IMAGE]]
// CHECK: ds.binary add %[[Y]], %[[B]]
// CHECK-LABEL: func.func @update(
// CHECK-NOT: quantize
// CHECK-LABEL: func.func @quantize(
// CHECK-SAME: ds.initial = @w, ds.name = "w", ds.state = "w"
// CHECK-SAME: tensor<1xf64> {ds.dims = [1], ds.name = "quantize_levels"}
// CHECK-SAME: -> (tensor<4x6xf32> {ds.name = "w"}) attributes {ds.entry}

// MIXED-LABEL: func.func @eval(
// MIXED-SAME: %[[W:[a-z0-9]+]]: tensor<4x6xf32>
// MIXED-SAME: %[[SHARES:[a-z0-9]+]]: tensor<1xf64> {ds.dims = [1], ds.name = "quantize_shares"}
// MIXED: scf.if
// MIXED: ds.reduce min
// MIXED: ds.reduce max
// MIXED: ds.binary mul %[[W]]
// MIXED: else
// MIXED-NEXT: scf.yield %[[W]]
// MIXED-NOT: scf.if
// MIXED: return

// DRAWN-LABEL: func.func @eval(
// DRAWN-SAME: tensor<i64> {ds.dims = [], ds.name = "quantize_seed"}
// DRAWN-SAME: tensor<i64> {ds.dims = [], ds.name = "quantize_step"}
// DRAWN: ds.binary bit_xor
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 96] : tensor<4x6xf32>
  ds.yield %0 : tensor<4x6xf32>
}
ds.recipe @b {
  %0 = ds.source "model.onnx" [96, 24] : tensor<6xf32>
  ds.yield %0 : tensor<6xf32>
}
// expected-remark @below {{'b' is not quantized: it has 1 dimension}}
func.func @eval(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %w: tensor<4x6xf32> {ds.dims = [4, 6], ds.initial = @w, ds.name = "w", ds.state = "w"}, %b: tensor<6xf32> {ds.dims = [6], ds.initial = @b, ds.name = "b", ds.state = "b"}) -> (tensor<3x6xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %1 = ds.binary add %0, %b : (tensor<3x6xf32>, tensor<6xf32>) -> tensor<3x6xf32>
  return %1 : tensor<3x6xf32>
}
func.func @update(%w: tensor<4x6xf32> {ds.dims = [4, 6], ds.initial = @w, ds.name = "w", ds.state = "w"}, %b: tensor<6xf32> {ds.dims = [6], ds.initial = @b, ds.name = "b", ds.state = "b"}) -> (tensor<4x6xf32> {ds.state = "w"}, tensor<6xf32> {ds.state = "b"}) attributes {ds.entry} {
  %0 = ds.binary add %w, %w : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %b : tensor<4x6xf32>, tensor<6xf32>
}

// -----

// Groups that do not divide, all named at once, with the greatest number that does.
ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 60] : tensor<3x5xf32>
  ds.yield %0 : tensor<3x5xf32>
}
ds.recipe @v {
  %0 = ds.source "model.onnx" [60, 24] : tensor<3x2xf32>
  ds.yield %0 : tensor<3x2xf32>
}
// expected-error @below {{quantize_groups: found 2, expected a divisor of every number of elements, as it is not of 'w'; the greatest below it is 1}}
func.func @eval(%w: tensor<3x5xf32> {ds.dims = [3, 5], ds.initial = @w, ds.name = "w", ds.state = "w"}, %v: tensor<3x2xf32> {ds.dims = [3, 2], ds.initial = @v, ds.name = "v", ds.state = "v"}) -> (tensor<5x2xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.matmul %w, %v transpose [true, false] : (tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}

// -----

ds.recipe @b {
  %0 = ds.source "model.onnx" [0, 24] : tensor<6xf32>
  ds.yield %0 : tensor<6xf32>
}
// expected-remark @below {{'b' is not quantized: it has 1 dimension}}
// expected-error @below {{quantize_training: no parameter has 2 dimensions or more, which are those that it quantizes}}
func.func @eval(%b: tensor<6xf32> {ds.dims = [6], ds.initial = @b, ds.name = "b", ds.state = "b"}) -> (tensor<6xf32> {ds.name = "y"}) attributes {ds.entry} {
  return %b : tensor<6xf32>
}

// -----

// expected-error @below {{ds-schedule-quantization: expected the entries of a training step, found no 'eval'}}
module {
}

// -----

ds.recipe @w {
  %0 = ds.source "model.onnx" [0, 24] : tensor<2x3xf32>
  ds.yield %0 : tensor<2x3xf32>
}
// expected-error @below {{expected inputs, labels and parameters of other names than those that quantize_training adds, which begin with 'quantize_', found 'quantize_step'}}
func.func @eval(%w: tensor<2x3xf32> {ds.dims = [2, 3], ds.initial = @w, ds.name = "w", ds.state = "w"}, %x: tensor<2x3xf32> {ds.dims = [2, 3], ds.name = "quantize_step"}) -> (tensor<2x3xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.binary add %w, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Ranks own parts of the weight: what is gathered is rounded, and images are handed out of what is gathered, without the model.
// CHECK-LABEL: func.func @eval(
// CHECK: %[[ALL:.*]] = dist.wait %{{.*}} {ds.gathered = ["w"]}
// CHECK: %[[ROUNDED:.*]] = scf.if
// CHECK: ds.reshape %[[ALL]] [2, 12]
// CHECK: ds.matmul %{{.*}}, %[[ROUNDED]]
// CHECK-LABEL: func.func @quantize(
// CHECK-NOT: ds.name = "x"
// CHECK-SAME: ds.state = "zero/u"
// CHECK-SAME: ds.name = "quantize_levels"
// CHECK-SAME: -> (tensor<4x6xf32> {ds.name = "w"})
// CHECK: dist.all_gather_start {{.*}} site "quantize/u"
// CHECK: dist.wait
// CHECK: %[[IMAGE:.*]] = scf.if
// CHECK-NOT: ds.matmul
// CHECK: return %[[IMAGE]]
func.func @eval(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %u: tensor<64xf32> {ds.dims = [64], ds.part = "shard", ds.state = "zero/u", ds.suffix = "", ds.unit = "u"}) -> (tensor<3x6xf32> {ds.name = "y"}) attributes {ds.entry} {
  %p = dist.all_gather_start %u layouts [#dist.layout<[0] of 64 by 64>] site "eval/u" : tensor<64xf32>
  %w = dist.wait %p sizes [[4, 6]] {ds.gathered = ["w"]} : tensor<4x6xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// -----

// What several images have in common is there before all of them, whichever of a unit's tensors comes first. What is gathered where a
// layer runs is rounded there.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: ds.name = "quantize_levels"
// CHECK: tensor.extract
// CHECK: tensor.extract
// CHECK: %[[ALL:.*]]:2 = dist.wait %{{.*}} {ds.gathered = ["w", "v"]}
// CHECK-NOT: tensor.extract
// CHECK: return
// CHECK-LABEL: func.func @micro(
// CHECK: %[[ALL:.*]]:2 = dist.wait %{{.*}} {ds.gathered = ["w", "v"]}
// CHECK-NEXT: %[[RUNS:.*]] = tensor.extract
// CHECK-NEXT: scf.if %[[RUNS]]
// CHECK-COUNT-2: %{{.*}} = scf.if
// CHECK: ds.matmul
// CHECK: return
func.func @eval(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %u: tensor<64xf32> {ds.dims = [64], ds.part = "shard", ds.state = "zero/u", ds.suffix = "", ds.unit = "u"}) -> (tensor<3x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %p = dist.all_gather_start %u layouts [#dist.layout<[0, 16] of 64 by 16>] site "eval/u" : tensor<64xf32>
  %w, %v = dist.wait %p sizes [[4, 4], [4, 4]] {ds.gathered = ["w", "v"]} : tensor<4x4xf32>, tensor<4x4xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = ds.matmul %0, %v transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
func.func @micro(%x: tensor<3x4xf32> {ds.dims = [3, 4], ds.name = "x"}, %gate: tensor<i1> {dist.uniform, ds.dims = [], ds.name = "layer_gate/0"}, %u: tensor<64xf32> {ds.dims = [64], ds.part = "shard", ds.state = "zero/u", ds.suffix = "", ds.unit = "u"}) -> (tensor<3x4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %p = dist.all_gather_start %u when %gate layouts [#dist.layout<[0, 16] of 64 by 16>] site "micro/u" : tensor<64xf32>
  %w, %v = dist.wait %p sizes [[4, 4], [4, 4]] {ds.gathered = ["w", "v"]} : tensor<4x4xf32>, tensor<4x4xf32>
  %runs = tensor.extract %gate[] : tensor<i1>
  %0 = scf.if %runs -> tensor<3x4xf32> {
    %1 = ds.matmul %x, %w transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %2 = ds.matmul %1, %v transpose [false, false] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    scf.yield %2 : tensor<3x4xf32>
  } else {
    scf.yield %x : tensor<3x4xf32>
  }
  return %0 : tensor<3x4xf32>
}
