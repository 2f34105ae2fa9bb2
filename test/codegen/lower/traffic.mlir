// Bytes that a kernel reads of an operand and writes of a result, where that is a part: what profiles count.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg | FileCheck %s

// Elements of the slices, each once; the other operand as a whole.
// CHECK-LABEL: func.func @slices
// CHECK-SAME: ds.reads = ["4*d0 + 4*d1", unit]
// CHECK-NOT: ds.writes
ds.kernel @slices sizes 2 arguments [["1000000"], ["d0 + d1"]] {
^bb0(%x: tensor<1000000xf32>, %y: tensor<?xf32>):
  %0 = ds.slice %x starts [7] sizes ["d0 + d1"] steps [1] {result_sizes = [["d0 + d1"]]} : (tensor<1000000xf32>) -> tensor<?xf32>
  %1 = ds.slice %x starts [7] sizes ["d0 + d1"] steps [1] {result_sizes = [["d0 + d1"]]} : (tensor<1000000xf32>) -> tensor<?xf32>
  %2 = ds.binary add %0, %y {result_sizes = [["d0 + d1"]]} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %3 = ds.binary mul %1, %2 {result_sizes = [["d0 + d1"]]} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  ds.yield %3 : tensor<?xf32>
}

// -----

// Halves beside each other are all of it, and so are every other element and the rest.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: ds.reads
// CHECK-LABEL: func.func @alternate
// CHECK-NOT: ds.reads
ds.kernel @halves sizes 1 arguments [["d0", "8"]] {
^bb0(%x: tensor<?x8xf32>):
  %0 = ds.slice %x starts [0, 0] sizes ["d0", 4] steps [1, 1] {result_sizes = [["d0", "4"]]} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %1 = ds.slice %x starts [0, 7] sizes ["d0", 4] steps [1, -1] {result_sizes = [["d0", "4"]]} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %0, %1 {result_sizes = [["d0", "4"]]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  ds.yield %2 : tensor<?x4xf32>
}
ds.kernel @alternate sizes 1 arguments [["d0", "8"]] {
^bb0(%x: tensor<?x8xf32>):
  %0 = ds.slice %x starts [0, 0] sizes ["d0", 4] steps [1, 2] {result_sizes = [["d0", "4"]]} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %1 = ds.slice %x starts [0, 1] sizes ["d0", 4] steps [1, 2] {result_sizes = [["d0", "4"]]} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %2 = ds.binary add %0, %1 {result_sizes = [["d0", "4"]]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  ds.yield %2 : tensor<?x4xf32>
}

// -----

// Slices that overlap count as much as the longer one; a slice of a slice, transposed, and of a broadcast operand.
// CHECK-LABEL: func.func @overlapping
// CHECK-SAME: ds.reads = [28]
// CHECK-LABEL: func.func @inner
// CHECK-SAME: ds.reads = ["8*d0", 8]
ds.kernel @overlapping sizes 0 arguments [["8"]] {
^bb0(%x: tensor<8xf32>):
  %0 = ds.slice %x starts [0] sizes [7] steps [1] {result_sizes = [["7"]]} : (tensor<8xf32>) -> tensor<7xf32>
  %1 = ds.slice %x starts [1] sizes [7] steps [1] {result_sizes = [["7"]]} : (tensor<8xf32>) -> tensor<7xf32>
  %2 = ds.binary sub %1, %0 {result_sizes = [["7"]]} : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  ds.yield %2 : tensor<7xf32>
}
ds.kernel @inner sizes 1 arguments [["8", "d0"], ["8", "1"]] {
^bb0(%x: tensor<8x?xf32>, %y: tensor<8x1xf32>):
  %0 = ds.binary mul %x, %y {result_sizes = [["8", "d0"]]} : (tensor<8x?xf32>, tensor<8x1xf32>) -> tensor<8x?xf32>
  %1 = ds.transpose %0 [1, 0] {result_sizes = [["d0", "8"]]} : (tensor<8x?xf32>) -> tensor<?x8xf32>
  %2 = ds.slice %1 starts [0, 4] sizes ["d0", 4] steps [1, 1] {result_sizes = [["d0", "4"]]} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %3 = ds.slice %2 starts [0, 1] sizes ["d0", 2] steps [1, 1] {result_sizes = [["d0", "2"]]} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  ds.yield %3 : tensor<?x2xf32>
}

// -----

// As many rows of a table as are taken, and no more than it has.
// CHECK-LABEL: func.func @table
// CHECK-SAME: ds.reads = ["4*min(1220880, 40*d0)", unit]
// CHECK-NOT: ds.writes
ds.kernel @table sizes 1 arguments [["30522", "40"], ["d0"]] {
^bb0(%x: tensor<30522x40xf32>, %i: tensor<?xi64>):
  %0 = ds.gather 0 %x, %i {result_sizes = [["d0", "40"]]} : (tensor<30522x40xf32>, tensor<?xi64>) -> tensor<?x40xf32>
  ds.yield %0 : tensor<?x40xf32>
}

// -----

// Of codes, too, and all scales of a row.
// CHECK-LABEL: func.func @codes
// CHECK-SAME: ds.reads = ["min(1220880, 40*d0)", unit, "4*min(152610, 5*d0)"]
ds.kernel @codes sizes 1 arguments [["30522", "40"], ["d0"], ["30522", "5"]] {
^bb0(%x: tensor<30522x40xi8>, %i: tensor<?xi64>, %s: tensor<30522x5xf32>):
  %0 = ds.gather 0 %x, %i scales %s {result_sizes = [["d0", "40"]]} : (tensor<30522x40xi8>, tensor<?xi64>, tensor<30522x5xf32>) -> tensor<?x40xf32>
  ds.yield %0 : tensor<?x40xf32>
}

// -----

// In place: what is put there is written; what stood there is read where it is added to.
// CHECK-LABEL: func.func @insert
// CHECK-SAME: ds.reads = [unit, 0]
// CHECK-SAME: ds.writes = [32]
// CHECK-LABEL: func.func @assign
// CHECK-SAME: ds.reads = [0, unit, unit]
// CHECK-SAME: ds.writes = ["4*min(8*d0, 8*d1)"]
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: ds.reads = ["4*min(8*d0, 8*d1)", unit, unit]
// CHECK-SAME: ds.writes = ["4*min(8*d0, 8*d1)"]
ds.kernel @insert sizes 2 arguments [["1", "8"], ["d0", "8"]] {
^bb0(%row: tensor<1x8xf32>, %cache: tensor<?x8xf32>):
  %0 = ds.insert %row into %cache starts ["d1", 0] {result_sizes = [["d0", "8"]]} : (tensor<1x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}
ds.kernel @assign sizes 2 arguments [["d0", "8"], ["d1", "1"], ["d1", "8"]] {
^bb0(%cache: tensor<?x8xf32>, %i: tensor<?x1xi64>, %rows: tensor<?x8xf32>):
  %0 = ds.scatter_nd assign %cache, %i, %rows {result_sizes = [["d0", "8"]]} : (tensor<?x8xf32>, tensor<?x1xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}
ds.kernel @accumulate sizes 2 arguments [["d0", "8"], ["d1", "1"], ["d1", "8"]] {
^bb0(%cache: tensor<?x8xf32>, %i: tensor<?x1xi64>, %rows: tensor<?x8xf32>):
  %0 = ds.scatter_nd add %cache, %i, %rows {result_sizes = [["d0", "8"]]} : (tensor<?x8xf32>, tensor<?x1xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  ds.yield %0 : tensor<?x8xf32>
}

// -----

// Windows that are further apart than they are long: every fourth place of the picture.
// CHECK-LABEL: func.func @strided
// CHECK-SAME: ds.reads = [48, unit]
ds.kernel @strided sizes 0 arguments [["1", "3", "4", "4"], ["5", "3", "1", "1"]] {
^bb0(%x: tensor<1x3x4x4xf32>, %w: tensor<5x3x1x1xf32>):
  %0 = ds.conv %x, %w strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] groups 1 {result_sizes = [["1", "5", "2", "2"]]} : (tensor<1x3x4x4xf32>, tensor<5x3x1x1xf32>) -> tensor<1x5x2x2xf32>
  ds.yield %0 : tensor<1x5x2x2xf32>
}

// -----

// Parts of one product, read in place; the merged result is three times as much.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: ds.reads = ["24*d0"]
ds.kernel @attention sizes 1 arguments [["1", "1", "d0", "9"]] {
^bb0(%x: tensor<1x1x?x9xf32>):
  %0 = ds.slice %x starts [0, 0, 0, 0] sizes [1, 1, "d0", 2] steps [1, 1, 1, 1] {result_sizes = [["1", "1", "d0", "2"]]} : (tensor<1x1x?x9xf32>) -> tensor<1x1x?x2xf32>
  %1 = ds.slice %x starts [0, 0, 0, 3] sizes [1, 1, "d0", 2] steps [1, 1, 1, 1] {result_sizes = [["1", "1", "d0", "2"]]} : (tensor<1x1x?x9xf32>) -> tensor<1x1x?x2xf32>
  %2 = ds.slice %x starts [0, 0, 0, 6] sizes [1, 1, "d0", 2] steps [1, 1, 1, 1] {result_sizes = [["1", "1", "d0", "2"]]} : (tensor<1x1x?x9xf32>) -> tensor<1x1x?x2xf32>
  %3 = ds.attention %0, %1, %2[] scale 0.5 {result_sizes = [["1", "1", "d0", "2"]]} : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  ds.yield %3 : tensor<1x1x?x2xf32>
}
