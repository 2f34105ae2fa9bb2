// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @fused_c1_types(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.fused' op C1: expects the region to yield the result types}}
  %0 = ds.fused {
    ds.yield %x : tensor<2xf32>
  } : tensor<3xf32>
  return
}

// -----

func.func @fused_c2_purity(%x: tensor<2xf32>) {
  %0 = ds.fused {
    // expected-error @+1 {{'dist.all_reduce_start' op C2: is not pure and cannot be inside ds.fused}}
    %p = dist.all_reduce_start sum %x site "a" : tensor<2xf32>
    %1 = dist.wait %p : tensor<2xf32>
    ds.yield %1 : tensor<2xf32>
  } : tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{'ds.kernel' op C1: expects a size list of its rank for argument 0}}
ds.kernel @kernel_c1_sizes sizes 1 arguments [["d0", "d0"]] {
^bb0(%arg0: tensor<?xf32>):
  ds.yield %arg0 : tensor<?xf32>
}

// -----

// expected-error @+1 {{'ds.kernel' op C2: expects the region to end in ds.yield}}
"ds.kernel"() <{sym_name = "kernel_c2_yield", size_count = 0 : i64, argument_sizes = []}> ({
^bb0:
  "ds.launch"() <{kernel = @kernel_c2_yield, sizes = []}> : () -> ()
}) : () -> ()

// -----

func.func @launch_c1_kernel() {
  // expected-error @+1 {{'ds.launch' op C1: 'nosuch' is no ds.kernel}}
  ds.launch @nosuch() sizes [] : () -> ()
  return
}

// -----

ds.kernel @k sizes 0 arguments [[2]] {
^bb0(%arg0: tensor<2xf32>):
  ds.yield %arg0 : tensor<2xf32>
}
func.func @launch_c2_types(%x: tensor<3xf32>) {
  // expected-error @+1 {{'ds.launch' op C2: expects the operand and result types of the kernel}}
  %0 = ds.launch @k(%x) sizes [] : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

ds.kernel @k sizes 1 arguments [["d0"]] {
^bb0(%arg0: tensor<?xf32>):
  ds.yield %arg0 : tensor<?xf32>
}
func.func @launch_c3_sizes(%x: tensor<?xf32>) {
  // expected-error @+1 {{'ds.launch' op C3: expects 1 size expressions}}
  %0 = ds.launch @k(%x) sizes [] : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @define_c1_value(%x: tensor<2xi64>) {
  // expected-error @+1 {{'ds.define' op C1: expects one i64 or i1 value, found 'tensor<2xi64>'}}
  ds.define "n" = %x : tensor<2xi64>
  return
}

// -----

func.func @define_c2_symbol(%x: i64) {
  // expected-error @+1 {{'ds.define' op C2: expects a symbol name}}
  ds.define "" = %x : i64
  return
}

// -----

func.func @require_c1_text() {
  // expected-error @+1 {{'ds.require' op C1: expects size expressions, found "within(n, 0, 3)"}}
  ds.require "n" at least "within(n, 0, 3)"
  return
}

// -----

func.func @require_relation() {
  // expected-error @+1 {{expected 'equal to', 'broadcast with' or 'at least', found 'unlike'}}
  ds.require "n" unlike "m"
  return
}

// -----

func.func @size_c1_text() {
  // expected-error @+1 {{'ds.size' op C1: expects a size expression, found "n +"}}
  %0 = ds.size "n +"
  return
}
