// Softmax, arg-reductions and running sums over axes before the last one: strips of neighbouring columns in vectors, four
// or as many as there are columns for. A row is searched in vectors, too.
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="lanes=8" | FileCheck %s
// RUN: ds-opt %s --split-input-file --convert-ds-to-linalg="reference=true" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=vector.

// The axes behind the walked one are columns together.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: ds.grid = "d0*floordiv(d1*d2 + 31, 32)"
// CHECK-COUNT-4: arith.maximumf {{.*}} : vector<8xf32>
// CHECK-COUNT-4: math.exp {{.*}} : vector<8xf32>
// CHECK-COUNT-4: arith.divf {{.*}} : vector<8xf32>
// CHECK: } else {
// CHECK: vector.maskedstore
// PLAIN-LABEL: func.func @softmax
// PLAIN: linalg.generic
ds.kernel @softmax sizes 3 arguments [["d0", "5", "d1", "d2"]] {
^bb0(%x: tensor<?x5x?x?xf32>):
  %0 = ds.softmax %x axis 1 log false {result_sizes = [["d0", "5", "d1", "d2"]]} : (tensor<?x5x?x?xf32>) -> tensor<?x5x?x?xf32>
  ds.yield %0 : tensor<?x5x?x?xf32>
}

// -----

// Ten columns are two vectors; places are counted in 32 bits where an axis is known to be short.
// CHECK-LABEL: func.func @places
// CHECK-COUNT-2: arith.select {{.*}} : vector<8xi1>, vector<8xi32>
// CHECK-NOT: arith.select {{.*}} vector<8xi32>
// CHECK: arith.extui {{.*}} : vector<8xi32> to vector<8xi64>
// PLAIN-LABEL: func.func @places
ds.kernel @places sizes 0 arguments [["5", "10"]] {
^bb0(%x: tensor<5x10xf32>):
  %0 = ds.arg_reduce max %x axis 0 keep false last false {result_sizes = [["10"]]} : (tensor<5x10xf32>) -> tensor<10xi64>
  ds.yield %0 : tensor<10xi64>
}

// -----

// CHECK-LABEL: func.func @row
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xi64>)
// CHECK: vector.extract_strided_slice {{.*}} : vector<2xf32> to vector<1xf32>
// PLAIN-LABEL: func.func @row
ds.kernel @row sizes 1 arguments [["3", "d0"]] {
^bb0(%x: tensor<3x?xf32>):
  %0 = ds.arg_reduce min %x axis 1 keep false last true {result_sizes = [["3"]]} : (tensor<3x?xf32>) -> tensor<3xi64>
  ds.yield %0 : tensor<3xi64>
}

// -----

// CHECK-LABEL: func.func @sums
// CHECK-COUNT-4: arith.addi {{.*}} : vector<4xi64>
// PLAIN-LABEL: func.func @sums
ds.kernel @sums sizes 1 arguments [["3", "d0"]] {
^bb0(%x: tensor<3x?xi64>):
  %0 = ds.cumulative sum %x axis 0 exclusive false reverse true {result_sizes = [["3", "d0"]]} : (tensor<3x?xi64>) -> tensor<3x?xi64>
  ds.yield %0 : tensor<3x?xi64>
}

// -----

// Booleans are no vectors.
// CHECK-LABEL: func.func @booleans
// CHECK-NOT: vector<
// PLAIN-LABEL: func.func @booleans
ds.kernel @booleans sizes 1 arguments [["3", "d0"]] {
^bb0(%x: tensor<3x?xi1>):
  %0 = ds.arg_reduce max %x axis 0 keep false last false {result_sizes = [["d0"]]} : (tensor<3x?xi1>) -> tensor<?xi64>
  ds.yield %0 : tensor<?xi64>
}
