// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=memory

// expected-error @+1 {{'func.func' violates the contract of phase 'memory': every entry has a buffer plan}}
func.func @compute_is_left(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ds.entry} {
  // expected-error @+1 {{'ds.unary' violates the contract of phase 'memory': every compute op is in a kernel}}
  %0 = ds.unary exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

ds.kernel @exp sizes 0 arguments [[4]] {
^bb0(%arg0: tensor<4xf32>):
  %0 = ds.unary exp %arg0 {result_sizes = [[4]]} : (tensor<4xf32>) -> tensor<4xf32>
  ds.yield %0 : tensor<4xf32>
}

// The second launch reads a buffer that lives until the first one only.
func.func @read_after_the_end(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry, ds.buffers = [
    {index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"},
    {bytes = 16 : i64, first = 0 : i64, last = 0 : i64, role = "workspace"}]} {
  %0 = ds.launch @exp(%x) sizes [] {buffers = array<i64: 0, 2>, index = 0 : i64, result_sizes = [[4]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'ds.launch' violates the contract of phase 'memory': buffer 2 holds operand 0}}
  %1 = ds.launch @exp(%0) sizes [] {buffers = array<i64: 2, 1>, index = 1 : i64, result_sizes = [[4]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The same, written into what the caller owns and into too little.
func.func @written_where_it_must_not(%x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry,
    ds.buffers = [{index = 0 : i64, role = "input"}, {index = 0 : i64, role = "output"},
    {bytes = 15 : i64, first = 0 : i64, last = 1 : i64, role = "workspace"}]} {
  // expected-error @+1 {{'ds.launch' violates the contract of phase 'memory': nothing writes input buffer 0}}
  %0 = ds.launch @exp(%x) sizes [] {buffers = array<i64: 0, 0>, index = 0 : i64, result_sizes = [[4]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'ds.launch' violates the contract of phase 'memory': a value fits into buffer 2}}
  %1 = ds.launch @exp(%0) sizes [] {buffers = array<i64: 0, 2>, index = 1 : i64, result_sizes = [[4]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{violates the contract of phase 'memory': buffer 1 holds a result of the program at its end}}
  return %1 : tensor<4xf32>
}

// -----

ds.kernel @copy sizes 1 arguments [["d0"]] {
^bb0(%arg0: tensor<?xf32>):
  ds.yield %arg0 : tensor<?xf32>
}

// A buffer over a symbol is another one after the symbol is defined.
func.func @defined_anew(%x: tensor<?xf32> {ds.dims = ["n"]}, %n: tensor<i64> {ds.dims = []}) -> tensor<?xf32>
    attributes {ds.entry, ds.buffers = [{index = 0 : i64, role = "input"}, {index = 1 : i64, role = "input"},
    {index = 0 : i64, role = "output"}, {bytes = "4*n", first = 0 : i64, last = 1 : i64, role = "workspace"}]} {
  %0 = ds.launch @copy(%x) sizes ["n"] {buffers = array<i64: 0, 3>, index = 0 : i64, result_sizes = [["n"]]}
      : (tensor<?xf32>) -> tensor<?xf32>
  ds.define "n" = %n {buffer = 1 : i64} : tensor<i64>
  // expected-error @+1 {{'ds.launch' violates the contract of phase 'memory': buffer 3 holds operand 0}}
  %1 = ds.launch @copy(%0) sizes ["n"] {buffers = array<i64: 3, 2>, index = 1 : i64, result_sizes = [["n"]]}
      : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// So it is where only one side of a branch has defined the symbol before.
func.func @defined_on_one_side(%x: tensor<?xf32> {ds.dims = ["m"]}, %n: tensor<i64> {ds.dims = []},
                               %c: tensor<i1> {ds.dims = []}) -> tensor<?xf32>
    attributes {ds.entry, ds.buffers = [{index = 0 : i64, role = "input"}, {index = 1 : i64, role = "input"},
    {index = 2 : i64, role = "input"}, {index = 0 : i64, role = "output"},
    {bytes = "4*n", first = 0 : i64, last = 1 : i64, role = "workspace"}]} {
  %k = tensor.extract %c[] {buffer = 2 : i64} : tensor<i1>
  scf.if %k {
    ds.define "n" = %n {buffer = 1 : i64} : tensor<i64>
  }
  %0 = ds.launch @copy(%x) sizes ["m"] {buffers = array<i64: 0, 4>, index = 0 : i64, result_sizes = [["n"]]}
      : (tensor<?xf32>) -> tensor<?xf32>
  ds.define "n" = %n {buffer = 1 : i64} : tensor<i64>
  // expected-error @+1 {{'ds.launch' violates the contract of phase 'memory': buffer 4 holds operand 0}}
  %1 = ds.launch @copy(%0) sizes ["n"] {buffers = array<i64: 4, 3>, index = 1 : i64, result_sizes = [["n"]]}
      : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
