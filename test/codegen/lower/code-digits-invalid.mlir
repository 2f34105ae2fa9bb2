// RUN: ds-opt %s --convert-ds-to-linalg="lanes=16" --verify-diagnostics

// A schedule that ds-schedule-kernels does not make: registers hold groups in whole steps.
ds.kernel @fractions sizes 0 arguments [[2, 8], [1, 2, 64], [1, 2, 16]] {
^bb0(%x: tensor<2x8xf32>, %w: tensor<1x2x64xi8>, %s: tensor<1x2x16xf32>):
  // expected-error@+1 {{is scheduled as digits, which meet a known number of steps in groups of whole steps of 4, found groups of 6}}
  %0 = ds.linear %x, %w scales %s {columns = 16 : i64, panel = 16 : i64, interleave = 4 : i64, group = 6 : i64, ds.schedule = #ds.schedule<code_digits, rows = 4, columns = 16, sweep = 128>, result_sizes = [[2, 16]]} : (tensor<2x8xf32>, tensor<1x2x64xi8>, tensor<1x2x16xf32>) -> tensor<2x16xf32>
  ds.yield %0 : tensor<2x16xf32>
}
