// What the kernel of a product cannot hold.
// RUN: ds-opt %s --split-input-file --verify-diagnostics=only-expected --ds-schedule-kernels="machine=256 rows=6 columns=16" --convert-ds-to-linalg="lanes=8"
// RUN: ds-opt %s --split-input-file --verify-diagnostics --convert-ds-to-linalg="reference=true"

ds.kernel @operand sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>):
  // expected-error @+1 {{'ds.unary' op cannot be in the kernel of a product}}
  %0 = ds.unary neg %x {result_sizes = [["d0", 5]]} : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %1 = ds.linear %0, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  ds.yield %1 : tensor<?x20xf32>
}

// -----

ds.kernel @image sizes 0 arguments [[1, 3, 9], [4, 3, 3]] {
^bb0(%x: tensor<1x3x9xf32>, %w: tensor<4x3x3xf32>):
  %0 = ds.unary neg %x {result_sizes = [[1, 3, 9]]} : (tensor<1x3x9xf32>) -> tensor<1x3x9xf32>
  // expected-error @+1 {{'ds.conv' op expects operands in memory, found what its kernel computes}}
  %1 = ds.conv %0, %w strides [1] pads [0, 0] dilations [1] groups 1 {result_sizes = [[1, 4, 7]]}
      : (tensor<1x3x9xf32>, tensor<4x3x3xf32>) -> tensor<1x4x7xf32>
  ds.yield %1 : tensor<1x4x7xf32>
}

// -----

ds.kernel @mask sizes 0 arguments [[1, 2, 3, 4], [3, 3]] {
^bb0(%q: tensor<1x2x3x4xf32>, %m: tensor<3x3xf32>):
  %0 = ds.transpose %m [1, 0] {result_sizes = [[3, 3]]} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-error @+1 {{'ds.attention' op expects masks and positions in memory, found what its kernel computes}}
  %1 = ds.attention %q, %q, %q [add %0] scale 0.5 {result_sizes = [[1, 2, 3, 4]]}
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<3x3xf32>) -> tensor<1x2x3x4xf32>
  ds.yield %1 : tensor<1x2x3x4xf32>
}

// -----

// expected-error @+1 {{'ds.kernel' op expects results that vectors store, found 'i1'}}
ds.kernel @flags sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %1 = ds.unary is_nan %0 {result_sizes = [["d0", 20]]} : (tensor<?x20xf32>) -> tensor<?x20xi1>
  ds.yield %1 : tensor<?x20xi1>
}

// -----

ds.kernel @bytes sizes 1 arguments [["d0", 5], [5, 20], ["d0", 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>, %q: tensor<?x20xf8E4M3FN>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  // expected-error @+1 {{'ds.cast' op expects operands that vectors load, found 'f8E4M3FN'}}
  %1 = ds.cast %q to f32 {result_sizes = [["d0", 20]]} : (tensor<?x20xf8E4M3FN>) -> tensor<?x20xf32>
  %2 = ds.binary add %0, %1 {result_sizes = [["d0", 20]]} : (tensor<?x20xf32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  ds.yield %2 : tensor<?x20xf32>
}

// -----

ds.kernel @narrow sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  // expected-error @+1 {{'ds.cast' op expects results that vectors hold, found 'i4'}}
  %1 = ds.cast %0 to i4 {result_sizes = [["d0", 20]]} : (tensor<?x20xf32>) -> tensor<?x20xi4>
  %2 = ds.cast %1 to f32 {result_sizes = [["d0", 20]]} : (tensor<?x20xi4>) -> tensor<?x20xf32>
  ds.yield %2 : tensor<?x20xf32>
}

// -----

// Nobody would look through the divisors first.
ds.kernel @division sizes 1 arguments [["d0", 5], [5, 20], ["d0", 20]] {
^bb0(%x: tensor<?x5xi32>, %w: tensor<5x20xi32>, %d: tensor<?x20xi32>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xi32>, tensor<5x20xi32>) -> tensor<?x20xi32>
  // expected-error @+1 {{'ds.binary' op cannot be in the kernel of a product}}
  %1 = ds.binary div %0, %d {result_sizes = [["d0", 20]]} : (tensor<?x20xi32>, tensor<?x20xi32>) -> tensor<?x20xi32>
  ds.yield %1 : tensor<?x20xi32>
}

// -----

ds.kernel @bits sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  // expected-error @+1 {{'ds.bitcast' op cannot be in the kernel of a product}}
  %1 = ds.bitcast %0 to i32 {result_sizes = [["d0", 20]]} : (tensor<?x20xf32>) -> tensor<?x20xi32>
  ds.yield %1 : tensor<?x20xi32>
}

// -----

ds.kernel @batch sizes 0 arguments [[2, 3, 5], [5, 20], [2, 1, 1]] {
^bb0(%x: tensor<2x3x5xf32>, %w: tensor<5x20xf32>, %b: tensor<2x1x1xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[2, 3, 20]]} : (tensor<2x3x5xf32>, tensor<5x20xf32>) -> tensor<2x3x20xf32>
  // expected-error @+1 {{'ds.binary' op has an operand that the tiles of its kernel do not meet in whole rows or columns}}
  %1 = ds.binary mul %0, %b {result_sizes = [[2, 3, 20]]} : (tensor<2x3x20xf32>, tensor<2x1x1xf32>) -> tensor<2x3x20xf32>
  ds.yield %1 : tensor<2x3x20xf32>
}

// -----

// An operand is no result, whatever its sizes are.
// expected-error @+1 {{'ds.kernel' op expects results of the sizes of its anchor}}
ds.kernel @operand_again sizes 0 arguments [[4, 5], [5, 20], [4, 20]] {
^bb0(%x: tensor<4x5xf32>, %w: tensor<5x20xf32>, %y: tensor<4x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[4, 20]]} : (tensor<4x5xf32>, tensor<5x20xf32>) -> tensor<4x20xf32>
  ds.yield %0, %y : tensor<4x20xf32>, tensor<4x20xf32>
}

// -----

// expected-error @+1 {{'ds.kernel' op expects results of the sizes of its anchor}}
ds.kernel @other_size sizes 0 arguments [[4, 5], [5, 20], [1, 20]] {
^bb0(%x: tensor<4x5xf32>, %w: tensor<5x20xf32>, %y: tensor<1x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[4, 20]]} : (tensor<4x5xf32>, tensor<5x20xf32>) -> tensor<4x20xf32>
  %1 = ds.unary neg %y {result_sizes = [[1, 20]]} : (tensor<1x20xf32>) -> tensor<1x20xf32>
  ds.yield %0, %1 : tensor<4x20xf32>, tensor<1x20xf32>
}

// -----

ds.kernel @pair sizes 1 arguments [["d0", 5], [5, 20]] {
^bb0(%x: tensor<?x5xf32>, %w: tensor<5x20xf32>):
  // expected-error @+1 {{'ds.linear' op shares a kernel with what is no product of the same input and layout}}
  %0 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %1 = ds.linear %x, %w {result_sizes = [["d0", 20]]} : (tensor<?x5xf32>, tensor<5x20xf32>) -> tensor<?x20xf32>
  %2 = ds.binary mul %0, %1 {result_sizes = [["d0", 20]]} : (tensor<?x20xf32>, tensor<?x20xf32>) -> tensor<?x20xf32>
  ds.yield %2 : tensor<?x20xf32>
}

// -----

ds.kernel @cache sizes 0 arguments [[1, 2, 3, 4], [1, 1, 3, 4]] {
^bb0(%q: tensor<1x2x3x4xf32>, %k: tensor<1x1x3x4xf32>):
  %0 = ds.concat 1 %k, %k {result_sizes = [[1, 2, 3, 4]]} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
  // expected-error @+1 {{'ds.attention' op shares a kernel with more than windows that strides reach, row ops and caches of its operands, or its features are moved}}
  %1 = ds.attention %q, %0, %q scale 0.5 {result_sizes = [[1, 2, 3, 4]]}
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  ds.yield %1 : tensor<1x2x3x4xf32>
}

// -----

// expected-error @+1 {{'ds.kernel' op yields what its product's rows become}}
ds.kernel @codes sizes 1 arguments [["d0", 4], [1, 1, 64]] {
^bb0(%x: tensor<?x4xf32>, %w: tensor<1x1x64xi8>):
  %0, %1 = ds.quantize_rows %x {result_sizes = [["d0", 4], ["d0", 1]]} : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)
  %2 = ds.linear %0, %w {columns = 4 : i64, interleave = 4 : i64, panel = 16 : i64, result_sizes = [["d0", 4]]}
      : (tensor<?x4xui8>, tensor<1x1x64xi8>) -> tensor<?x4xi32>
  ds.yield %0, %2 : tensor<?x4xui8>, tensor<?x4xi32>
}

// -----

ds.kernel @beside sizes 1 arguments [["d0", 4], [1, 4, 16], [1, 4, 32]] {
^bb0(%x: tensor<?x4xf32>, %w: tensor<1x4x16xf32>, %b: tensor<1x4x32xf32>):
  %0 = ds.linear %x, %w {panel = 16 : i64, columns = 4 : i64, result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x4xf32>
  // expected-error @+1 {{'ds.linear' op shares a kernel with a product that ops follow}}
  %1 = ds.linear %x, %b {panel = 32 : i64, columns = 4 : i64, result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<1x4x32xf32>) -> tensor<?x4xf32>
  %2 = ds.unary exp %0 {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  ds.yield %0, %1, %2 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

ds.kernel @norms sizes 1 arguments [["d0", 4], [4], [1, 4, 16]] {
^bb0(%x: tensor<?x4xf32>, %s: tensor<4xf32>, %w: tensor<1x4x16xf32>):
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // expected-error @+1 {{'ds.reduce' op takes an extreme of a norm, which is not the only one in its kernel}}
  %1 = ds.reduce max %0 axes [0, 1] keep false {result_sizes = [[]]} : (tensor<?x4xf32>) -> tensor<f32>
  %2 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-4 {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %3 = ds.binary mul %2, %1 {result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %4 = ds.linear %3, %w {panel = 16 : i64, columns = 4 : i64, result_sizes = [["d0", 4]]} : (tensor<?x4xf32>, tensor<1x4x16xf32>) -> tensor<?x4xf32>
  ds.yield %4 : tensor<?x4xf32>
}

// -----

ds.kernel @length sizes 2 arguments [["d0", "d1"], ["d1"], [1, 4, 16]] {
^bb0(%x: tensor<?x?xf32>, %s: tensor<?xf32>, %w: tensor<1x4x16xf32>):
  %0 = ds.rms_norm %x, %s axis 1 epsilon 1.0e-5 {result_sizes = [["d0", "d1"]]} : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  // expected-error @+1 {{'ds.reduce' op takes an extreme of rows of unknown length}}
  %1 = ds.reduce max %0 axes [0, 1] keep false {result_sizes = [[]]} : (tensor<?x?xf32>) -> tensor<f32>
  %2 = ds.binary mul %0, %1 {result_sizes = [["d0", "d1"]]} : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %3 = ds.linear %2, %w {panel = 16 : i64, columns = 4 : i64, result_sizes = [["d0", 4]]} : (tensor<?x?xf32>, tensor<1x4x16xf32>) -> tensor<?x4xf32>
  ds.yield %3 : tensor<?x4xf32>
}

// -----

// Rows of what is inserted, or shown, must lie together.
ds.kernel @inserted_parts sizes 0 arguments [[2, 5], [5, 20], [2, 4, 8]] {
^bb0(%x: tensor<2x5xf32>, %w: tensor<5x20xf32>, %y: tensor<2x4x8xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[2, 20]]} : (tensor<2x5xf32>, tensor<5x20xf32>) -> tensor<2x20xf32>
  %1 = ds.reshape %0 [2, 4, 5] {result_sizes = [[2, 4, 5]]} : (tensor<2x20xf32>) -> tensor<2x4x5xf32>
  // expected-error @+1 {{'ds.insert' op inserts what the tiles of its kernel do not meet in whole rows}}
  %2 = ds.insert %1 into %y starts [0, 0, 3] {result_sizes = [[2, 4, 8]]} : (tensor<2x4x5xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  ds.yield %2 : tensor<2x4x8xf32>
}

// -----

ds.kernel @shown_parts sizes 0 arguments [[2, 5], [5, 20], [2, 40]] {
^bb0(%x: tensor<2x5xf32>, %w: tensor<5x20xf32>, %r: tensor<2x40xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[2, 20]]} : (tensor<2x5xf32>, tensor<5x20xf32>) -> tensor<2x20xf32>
  %1 = ds.slice %r starts [0, 0] sizes [2, 20] steps [1, 2] {result_sizes = [[2, 20]]} : (tensor<2x40xf32>) -> tensor<2x20xf32>
  // expected-error @+1 {{'ds.binary' op has an operand that the tiles of its kernel do not meet in whole rows or columns}}
  %2 = ds.binary add %0, %1 {result_sizes = [[2, 20]]} : (tensor<2x20xf32>, tensor<2x20xf32>) -> tensor<2x20xf32>
  ds.yield %2 : tensor<2x20xf32>
}

// -----

// expected-error @+1 {{'ds.kernel' op expects results of the sizes of its anchor}}
ds.kernel @transposed sizes 0 arguments [[2, 5], [5, 20]] {
^bb0(%x: tensor<2x5xf32>, %w: tensor<5x20xf32>):
  %0 = ds.linear %x, %w {result_sizes = [[2, 20]]} : (tensor<2x5xf32>, tensor<5x20xf32>) -> tensor<2x20xf32>
  %1 = ds.transpose %0 [1, 0] {result_sizes = [[20, 2]]} : (tensor<2x20xf32>) -> tensor<20x2xf32>
  ds.yield %1 : tensor<20x2xf32>
}
