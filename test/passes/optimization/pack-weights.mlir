// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=256 columns=16" --ds-pack-weights | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-pack-weights | FileCheck %s --check-prefix=UNSCHEDULED --implicit-check-not=ds.pack
// RUN: ds-opt %s --split-input-file --ds-schedule-kernels="machine=512,byte_dot" --ds-pack-weights | FileCheck %s --check-prefix=DIGITS
// UNSCHEDULED: ds.linear

// CHECK-LABEL: func.func @doc
// CHECK-NEXT: %[[W:.*]] = ds.weight @w.packed : tensor<2x4x16xf32>
// CHECK-NEXT: ds.linear %arg0, %[[W]] {columns = 20 : i64, ds.schedule = {{.*}}, panel = 16 : i64}
// CHECK: ds.recipe @w.packed {
// CHECK-NEXT: %[[S:.*]] = ds.constant
// CHECK-NEXT: %[[P:.*]] = ds.pack %[[S]] panel 16 : (tensor<4x20xf32>) -> tensor<2x4x16xf32>
// CHECK-NEXT: ds.yield %[[P]]
// CHECK-NOT: ds.recipe @w {
func.func @doc(%x: tensor<?x4xf32>) -> tensor<?x20xf32> {
  %w = ds.weight @w : tensor<4x20xf32>
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x20xf32>) -> tensor<?x20xf32>
  return %0 : tensor<?x20xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x20xf32>
  ds.yield %0 : tensor<4x20xf32>
}

// -----

// Another use keeps the plain weight beside the packed one, which two ops share.
// CHECK-LABEL: func.func @other_uses
// CHECK-DAG: %[[PLAIN:.*]] = ds.weight @w : tensor<4x4xf32>
// CHECK: ds.weight @w.packed
// CHECK: ds.linear
// CHECK: ds.weight @w.packed
// CHECK: ds.linear
// CHECK: ds.binary add %{{.*}}, %[[PLAIN]]
// CHECK: ds.recipe @w.packed {
// CHECK: ds.recipe @w {
// CHECK-NOT: ds.recipe
func.func @other_uses(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = ds.weight @w : tensor<4x4xf32>
  %0 = ds.linear %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ds.linear %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = ds.binary add %1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x4xf32>
  ds.yield %0 : tensor<4x4xf32>
}

// -----

// Only weights are packed: a matrix that is known at run time has no recipe.
// CHECK-LABEL: func.func @not_a_weight
// CHECK: ds.linear %arg0, %arg1 {ds.schedule = {{.*}}} :
func.func @not_a_weight(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> tensor<?x4xf32> {
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// A panel has as many vectors, whatever it holds: half the columns of f64.
// CHECK-LABEL: func.func @other_types
// CHECK: %[[W:.*]] = ds.weight @w.packed : tensor<1x4x8xf64>
// CHECK: ds.linear %arg0, %[[W]] {columns = 4 : i64, ds.schedule = {{.*}}, panel = 8 : i64} :
func.func @other_types(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  %w = ds.weight @w : tensor<4x4xf64>
  %0 = ds.linear %x, %w : (tensor<?x4xf64>, tensor<4x4xf64>) -> tensor<?x4xf64>
  return %0 : tensor<?x4xf64>
}
ds.recipe @w {
  %0 = ds.constant dense<0.5> : tensor<4x4xf64>
  ds.yield %0 : tensor<4x4xf64>
}

// -----

// A weight that only a run knows stays as it is; its transpose is read by the product's kernel.
// CHECK-LABEL: func.func @state
// CHECK-NEXT: %[[A:.*]] = ds.linear %arg0, %arg1 {{{.*}}} : (
// CHECK-NEXT: %[[B:.*]] = ds.linear %[[A]], %arg1, %arg2 {ds.schedule = {{.*}}, transposed} : (
// CHECK-NEXT: return %[[B]]
func.func @state(%x: tensor<?x4xf32>, %w: tensor<4x20xf32> {ds.state = "w"}, %b: tensor<4xf32>)
    -> (tensor<?x4xf32>, tensor<4x20xf32> {ds.state = "w"}) {
  %0 = ds.linear %x, %w : (tensor<?x4xf32>, tensor<4x20xf32>) -> tensor<?x20xf32>
  %1 = ds.transpose %w [1, 0] : (tensor<4x20xf32>) -> tensor<20x4xf32>
  %2 = ds.linear %0, %1, %b : (tensor<?x20xf32>, tensor<20x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %2, %w : tensor<?x4xf32>, tensor<4x20xf32>
}

// -----

// Another reader keeps the transpose; an identity is none.
// CHECK-LABEL: func.func @transpose_of_others
// CHECK: %[[T:.*]] = ds.transpose %arg1 [1, 0]
// CHECK: ds.linear %arg0, %arg1 {ds.schedule = {{.*}}, transposed}
// CHECK: %[[S:.*]] = ds.transpose %arg1 [0, 1]
// CHECK: ds.linear %arg0, %[[S]] {ds.schedule = {{.*}}} : (
func.func @transpose_of_others(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>) {
  %0 = ds.transpose %w [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ds.linear %x, %0 : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %2 = ds.transpose %w [0, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = ds.linear %x, %2 : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %1, %3, %0 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>
}

// -----

// 16-bit integers are multiplied in pairs, which lie side by side; an odd last row is paired with zeros.
// CHECK-LABEL: func.func @pairs
// CHECK: %[[W:.*]] = ds.weight @w.packed : tensor<1x3x32xi8>
// CHECK: ds.linear %arg0, %[[W]] {columns = 4 : i64, ds.schedule = {{.*}}, interleave = 2 : i64, panel = 16 : i64} :
// CHECK: ds.pack %{{.*}} panel 16 interleave 2 : (tensor<5x4xi8>) -> tensor<1x3x32xi8>
func.func @pairs(%x: tensor<?x5xi16>) -> tensor<?x4xi32> {
  %w = ds.weight @w : tensor<5x4xi8>
  %0 = ds.linear %x, %w : (tensor<?x5xi16>, tensor<5x4xi8>) -> tensor<?x4xi32>
  return %0 : tensor<?x4xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<5x4xi8>
  ds.yield %0 : tensor<5x4xi8>
}

// -----

// Where the rows' type leaves their length open, the product says it: 5 is filled up to 6.
// CHECK-LABEL: func.func @open
// CHECK: ds.linear {{.*}} {columns = 4 : i64, depth = 5 : i64, ds.schedule = {{.*}}, interleave = 2 : i64, panel = 16 : i64} :
func.func @open(%x: tensor<?x?xi16>) -> tensor<?x4xi32> {
  %w = ds.weight @w : tensor<5x4xi8>
  %0 = ds.linear %x, %w : (tensor<?x?xi16>, tensor<5x4xi8>) -> tensor<?x4xi32>
  return %0 : tensor<?x4xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<5x4xi8>
  ds.yield %0 : tensor<5x4xi8>
}

// -----

// No micro-kernel streams bytes beside bytes of the same signs; unsigned and signed ones lie in fours.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[W:.*]] = ds.weight @w : tensor<4x4xi8>
// CHECK: ds.linear %arg0, %[[W]] {ds.schedule = {{.*}}} :
// CHECK: ds.linear %{{.*}}, %{{.*}} {columns = 4 : i64, ds.schedule = {{.*}}, interleave = 4 : i64, panel = 16 : i64} : (tensor<?x4xui8>, tensor<1x1x64xi8>)
func.func @bytes(%x: tensor<?x4xi8>, %u: tensor<?x4xui8>) -> (tensor<?x4xi32>, tensor<?x4xi32>) {
  %w = ds.weight @w : tensor<4x4xi8>
  %0 = ds.linear %x, %w : (tensor<?x4xi8>, tensor<4x4xi8>) -> tensor<?x4xi32>
  %1 = ds.linear %u, %w : (tensor<?x4xui8>, tensor<4x4xi8>) -> tensor<?x4xi32>
  return %0, %1 : tensor<?x4xi32>, tensor<?x4xi32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<4x4xi8>
  ds.yield %0 : tensor<4x4xi8>
}

// -----

// Scales and zero points are packed beside codes; those of 4 bits lie in pairs, two in a byte.
// CHECK-LABEL: func.func @codes
// CHECK-DAG: %[[W:.*]] = ds.weight @w.packed : tensor<2x3x16xi8>
// CHECK-DAG: %[[S:.*]] = ds.weight @s.packed : tensor<2x3x16xf32>
// CHECK-DAG: %[[Z:.*]] = ds.weight @z.packed : tensor<2x3x16xi8>
// CHECK: ds.linear %arg0, %[[W]] scales %[[S]] zero_points %[[Z]] {columns = 20 : i64, ds.schedule = {{.*}}, group = 2 : i64, interleave = 2 : i64, panel = 16 : i64} :
// CHECK: ds.pack %{{.*}} panel 16 interleave 2 : (tensor<5x20xi4>) -> tensor<2x3x16xi8>
// CHECK: ds.pack %{{.*}} panel 16 : (tensor<3x20xf32>) -> tensor<2x3x16xf32>
// CHECK: ds.pack %{{.*}} panel 16 : (tensor<3x20xi8>) -> tensor<2x3x16xi8>
func.func @codes(%x: tensor<?x5xf32>) -> tensor<?x20xf32> {
  %w = ds.weight @w : tensor<5x20xi4>
  %s = ds.weight @s : tensor<3x20xf32>
  %z = ds.weight @z : tensor<3x20xi8>
  %0 = ds.linear %x, %w scales %s zero_points %z {group = 2 : i64} : (tensor<?x5xf32>, tensor<5x20xi4>, tensor<3x20xf32>, tensor<3x20xi8>) -> tensor<?x20xf32>
  return %0 : tensor<?x20xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<5x20xi4>
  ds.yield %0 : tensor<5x20xi4>
}
ds.recipe @s {
  %0 = ds.constant dense<0.5> : tensor<3x20xf32>
  ds.yield %0 : tensor<3x20xf32>
}
ds.recipe @z {
  %0 = ds.constant dense<1> : tensor<3x20xi8>
  ds.yield %0 : tensor<3x20xi8>
}

// -----

// Where rows are digits, codes of 4 bits lie in eights, four bytes of a column side by side.
// DIGITS-LABEL: func.func @eights
// DIGITS: ds.linear %arg0, %{{.*}} scales %{{.*}} {columns = 192 : i64, ds.schedule = #ds.schedule<code_digits, {{.*}}>, group = 8 : i64, interleave = 8 : i64, panel = 32 : i64} :
// DIGITS: ds.pack %{{.*}} panel 32 interleave 8 : (tensor<13x192xi4>) -> tensor<6x2x128xi8>
// DIGITS: ds.pack %{{.*}} panel 32 : (tensor<2x192xf32>) -> tensor<6x2x32xf32>
func.func @eights(%x: tensor<?x13xf32>) -> tensor<?x192xf32> {
  %w = ds.weight @w : tensor<13x192xi4>
  %s = ds.weight @s : tensor<2x192xf32>
  %0 = ds.linear %x, %w scales %s {group = 8 : i64} : (tensor<?x13xf32>, tensor<13x192xi4>, tensor<2x192xf32>) -> tensor<?x192xf32>
  return %0 : tensor<?x192xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<13x192xi4>
  ds.yield %0 : tensor<13x192xi4>
}
ds.recipe @s {
  %0 = ds.constant dense<0.5> : tensor<2x192xf32>
  ds.yield %0 : tensor<2x192xf32>
}

// -----

// Scales that only a run knows cannot be packed, and then nothing is.
// CHECK-LABEL: func.func @computed_scales
// CHECK: ds.linear %arg0, %{{.*}} scales %arg1 : (tensor<?x5xf32>, tensor<5x20xi8>,
func.func @computed_scales(%x: tensor<?x5xf32>, %s: tensor<1x20xf32>) -> tensor<?x20xf32> {
  %w = ds.weight @w : tensor<5x20xi8>
  %0 = ds.linear %x, %w scales %s : (tensor<?x5xf32>, tensor<5x20xi8>, tensor<1x20xf32>) -> tensor<?x20xf32>
  return %0 : tensor<?x20xf32>
}
ds.recipe @w {
  %0 = ds.constant dense<3> : tensor<5x20xi8>
  ds.yield %0 : tensor<5x20xi8>
}
