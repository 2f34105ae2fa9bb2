// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-contract=phase=distribution

func.func @site_twice(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %p = dist.all_reduce_start sum %x site "a" : tensor<2xf32>
  %0 = dist.wait %p : tensor<2xf32>
  // expected-error @+1 {{violates the contract of phase 'distribution': collective sites are unique, found 'a' twice}}
  %q = dist.all_reduce_start sum %0 site "a" : tensor<2xf32>
  %1 = dist.wait %q : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

func.func @under_a_branch(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = scf.if %c -> tensor<2xf32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %p = dist.all_reduce_start sum %x site "a" : tensor<2xf32>
    %1 = dist.wait %p : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// What an all-reduce gives is the same everywhere, and so is what an entry says it is.
func.func @alike(%c: i1 {dist.uniform}, %x: tensor<f32>) -> tensor<f32> {
  %p = dist.all_reduce_start sum %x site "a" : tensor<f32>
  %sum = dist.wait %p : tensor<f32>
  %off = ds.binary sub %sum, %sum : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %finite = ds.binary eq %off, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %condition = tensor.extract %finite[] : tensor<i1>
  %0 = scf.if %condition -> tensor<f32> {
    %q = dist.all_reduce_start max %x site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    %2 = scf.if %c -> tensor<f32> {
      %r = dist.all_reduce_start max %x site "c" : tensor<f32>
      %3 = dist.wait %r : tensor<f32>
      scf.yield %3 : tensor<f32>
    } else {
      scf.yield %1 : tensor<f32>
    }
    scf.yield %2 : tensor<f32>
  } else {
    scf.yield %x : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// A part of a sum is each rank's own, and so is what lies at a rank's index.
func.func @part(%x: tensor<1xi1>, %c: tensor<1xf32> {dist.uniform}) -> tensor<1xf32> {
  %p = dist.reduce_scatter_start sum %c layouts [#dist.layout<[0] of 1 by 1>] site "a" : tensor<1xf32>
  %part = dist.wait %p sizes [[1]] : tensor<1xf32>
  %zero = ds.constant dense<0.0> : tensor<1xf32>
  %positive = ds.binary gt %part, %zero : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
  %first = arith.constant 0 : index
  %condition = tensor.extract %positive[%first] : tensor<1xi1>
  %0 = scf.if %condition -> tensor<1xf32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %q = dist.all_reduce_start max %c site "b" : tensor<1xf32>
    %1 = dist.wait %q : tensor<1xf32>
    scf.yield %1 : tensor<1xf32>
  } else {
    scf.yield %c : tensor<1xf32>
  }
  return %0 : tensor<1xf32>
}

// -----

func.func @own_place(%x: tensor<2xi1> {dist.uniform}, %c: tensor<f32>) -> tensor<f32> {
  %own = ds.slice %x starts ["mesh.data.index"] sizes [1] steps [1] : (tensor<2xi1>) -> tensor<1xi1>
  %first = arith.constant 0 : index
  %condition = tensor.extract %own[%first] : tensor<1xi1>
  %0 = scf.if %condition -> tensor<f32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %q = dist.all_reduce_start max %c site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %c : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// What one rank has told all others is the same everywhere; what each had for this one is not.
func.func @told(%x: tensor<i1>, %c: tensor<f32>) -> tensor<f32> {
  %p = dist.broadcast_start %x root 0 site "a" : tensor<i1>
  %told = dist.wait %p : tensor<i1>
  %condition = tensor.extract %told[] : tensor<i1>
  %0 = scf.if %condition -> tensor<f32> {
    %q = dist.all_reduce_start max %c site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %c : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @blocks(%x: tensor<1xi1> {dist.uniform}, %c: tensor<f32>) -> tensor<f32> {
  %p = dist.all_to_all_start %x site "a" : tensor<1xi1>
  %blocks = dist.wait %p sizes [["mesh.data*ceildiv(1, mesh.data)"]] : tensor<?xi1>
  %first = arith.constant 0 : index
  %condition = tensor.extract %blocks[%first] : tensor<?xi1>
  %0 = scf.if %condition -> tensor<f32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %q = dist.broadcast_start %c root 0 site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %c : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @neighbour(%x: tensor<i1> {dist.uniform}, %c: tensor<f32>) -> tensor<f32> {
  %p = dist.send_recv_start %x by 1 rotate site "a" : tensor<i1>
  %other = dist.wait %p : tensor<i1>
  %condition = tensor.extract %other[] : tensor<i1>
  %0 = scf.if %condition -> tensor<f32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %q = dist.send_recv_start %c by 1 into %c : tensor<f32> site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %c : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// A send by rank 0 and a receive by rank 1, each under a branch of its own, would be proved of nobody.
func.func @own_end(%c: tensor<f32>, %ranks: tensor<8xi1> {dist.uniform}) -> tensor<f32> {
  %own = ds.slice %ranks starts ["mesh.data.index"] sizes [1] steps [1] : (tensor<8xi1>) -> tensor<1xi1>
  %first = arith.constant 0 : index
  %condition = tensor.extract %own[%first] : tensor<1xi1>
  %0 = scf.if %condition -> tensor<f32> {
    // expected-error @+1 {{no collective under a branch or in a loop that ranks might take differently}}
    %q = dist.send_recv_start %c by 1 into %c : tensor<f32> site "b" : tensor<f32>
    %1 = dist.wait %q : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %c : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// A rank that runs the layer would wait for those that drop it.
func.func @own_gate(%x: tensor<?xf32>, %runs: tensor<i1>) -> tensor<4xf32> {
  // expected-error @+1 {{no condition that ranks might be given differently}}
  %p = dist.all_gather_start %x when %runs layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<?xf32>
  %all = dist.wait %p sizes [[4]] : tensor<4xf32>
  %condition = tensor.extract %runs[] : tensor<i1>
  %0 = scf.if %condition -> tensor<4xf32> {
    %1 = ds.unary tanh %all : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %none = ds.constant dense<0.0> : tensor<4xf32>
    scf.yield %none : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Of what was not gathered nobody may read: where the layer is dropped, or behind another gate.
func.func @dropped(%x: tensor<?xf32>, %runs: tensor<i1> {dist.uniform}, %other: tensor<i1> {dist.uniform}) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @+1 {{what is gathered under a condition is read under that condition}}
  %p = dist.all_gather_start %x when %runs layouts [#dist.layout<[0] of 4 by 4>] site "a" : tensor<?xf32>
  %all = dist.wait %p sizes [[4]] : tensor<4xf32>
  // expected-error @+1 {{what is gathered under a condition is read under that condition}}
  %q = dist.all_gather_start %x when %runs layouts [#dist.layout<[0] of 4 by 4>] site "b" : tensor<?xf32>
  %rest = dist.wait %q sizes [[4]] : tensor<4xf32>
  %condition = tensor.extract %runs[] : tensor<i1>
  %otherwise = tensor.extract %other[] : tensor<i1>
  %none = ds.constant dense<0.0> : tensor<4xf32>
  %0 = scf.if %condition -> tensor<4xf32> {
    scf.yield %none : tensor<4xf32>
  } else {
    scf.yield %all : tensor<4xf32>
  }
  %1 = scf.if %otherwise -> tensor<4xf32> {
    scf.yield %rest : tensor<4xf32>
  } else {
    scf.yield %none : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
