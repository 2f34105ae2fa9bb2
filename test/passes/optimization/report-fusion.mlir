// Why values between kernels are in memory; the program stays as it is.
// RUN: ds-opt %s --ds-report-fusion | FileCheck %s
// RUN: ds-opt %s --ds-report-fusion 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: ds-opt %s --ds-report-fusion=products=false 2>&1 >/dev/null | FileCheck %s --check-prefix=ALONE
// RUN: not ds-opt %s --ds-report-fusion=stage=between 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: ds-report-fusion: stage is before or after, found 'between'

// REMARK: in memory before 'ds.gather' reads it: taken by index
// REMARK: in memory before 'ds.unary' reads it: nothing follows 'ds.gather' in its kernel
// REMARK: in memory before 'ds.matmul' reads it: would be computed again for each panel of columns
// REMARK: in memory before 'ds.matmul' reads it: would be computed again for each block of rows
// REMARK: in memory before 'ds.slice' reads it: elements move
// REMARK: in memory before 'ds.concat' reads it: 'ds.concat' has a kernel of its own
// REMARK: in memory before 'ds.concat' reads it: 'ds.concat' has a kernel of its own
// CHECK-LABEL: func.func @kinds
// CHECK: ds.gather
// CHECK: ds.concat
// ALONE: in memory before 'ds.gather' reads it: taken by index
// ALONE: in memory before 'ds.matmul' reads it: 'ds.matmul' stands alone without --fusion=specialized
func.func @kinds(%x: tensor<8x8xf32> {ds.dims = [8, 8]}, %i: tensor<8xi64> {ds.dims = [8]}) -> tensor<8x7xf32> attributes {ds.entry} {
  %0 = ds.softmax %x axis 1 log false : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ds.gather 0 %0, %i : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %2 = ds.unary exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ds.matmul %2, %1 transpose [false, false] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = ds.slice %3 starts [0, 0] sizes [8, 3] steps [1, 1] : (tensor<8x8xf32>) -> tensor<8x3xf32>
  %5 = ds.slice %x starts [0, 0] sizes [8, 4] steps [1, 1] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %6 = ds.concat 1 %4, %5 : (tensor<8x3xf32>, tensor<8x4xf32>) -> tensor<8x7xf32>
  return %6 : tensor<8x7xf32>
}

// What a product could compute of its rows, ds-fuse-deep says why not; a function of many instructions it never does.
// REMARK: in memory before 'ds.linear' reads it: 'ds.unary' is not computed in its kernel, 'ds-fuse-deep' remarks why
// REMARK: in memory before 'ds.linear' reads it: every thread would compute 'ds.gelu' of all its rows again, which takes too long
func.func @before_products(%x: tensor<8x8xf32> {ds.dims = [8, 8]}, %w: tensor<8x8xf32> {ds.dims = [8, 8]}, %i: tensor<8xi64> {ds.dims = [8]})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) attributes {ds.entry} {
  %0 = ds.unary neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ds.linear %0, %w {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 8>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ds.gelu erf %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ds.linear %2, %w {ds.schedule = #ds.schedule<multiply_add, rows = 6, columns = 16, sweep = 8>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %3, %x : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
