// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @reshape_c1_text(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.reshape' op C1: shape holds a text that is no size expression}}
  %0 = ds.reshape %x ["2,2"] : (tensor<4xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @reshape_c2_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.reshape' op C2: element counts: expected equal sizes, found 4 and 6}}
  %0 = ds.reshape %x [2, 3] : (tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_c1_text(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.broadcast' op C1: shape holds a text that is no size expression}}
  %0 = ds.broadcast %x [")"] : (tensor<4xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @broadcast_c2_shapes(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.broadcast' op shapes do not broadcast: axis 0 has sizes 4 and 3}}
  %0 = ds.broadcast %x [3] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @transpose_c1_permutation(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.transpose' op C1: expects a permutation of 2 axes}}
  %0 = ds.transpose %x [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_c1_count(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.slice' op C1: starts, sizes and steps must have 2 elements}}
  %0 = ds.slice %x starts [0] sizes [1] steps [1] : (tensor<2x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_c2_step(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.slice' op C2: a step is 0}}
  %0 = ds.slice %x starts [0] sizes [1] steps [0] : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_c3_box(%x: tensor<4xf32>) {
  // expected-error @+1 {{'ds.slice' op C3:}}
  %0 = ds.slice %x starts [2] sizes [3] steps [1] : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_c1_count(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'ds.pad' op C1: low and high must have 2 elements}}
  %0 = ds.pad constant %x, %v low [0] high [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_c2_value(%x: tensor<2xf32>, %v: tensor<i64>) {
  // expected-error @+1 {{'ds.pad' op C2: the value must be one element of the operand's type}}
  %0 = ds.pad constant %x, %v low [0] high [0] : (tensor<2xf32>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_c1_ranks(%x: tensor<2xf32>, %y: tensor<2x2xf32>) {
  // expected-error @+1 {{'ds.concat' op C1: operands have different ranks or element types}}
  %0 = ds.concat 0 %x, %y : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_c2_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.concat' op C2: the axis 1 is outside rank 1}}
  %0 = ds.concat 1 %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_c3_sizes(%x: tensor<2x2xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.concat' op C3: axis 1 of operand 1: expected equal sizes, found 2 and 3}}
  %0 = ds.concat 0 %x, %y : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @gather_c1_indices(%x: tensor<2xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{'ds.gather' op C1: the indices must be i32 or i64}}
  %0 = ds.gather 0 %x, %i : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_c2_axis(%x: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{'ds.gather' op C2: the axis 1 is outside rank 1}}
  %0 = ds.gather 1 %x, %i : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_c3_unsigned(%x: tensor<2x4xui8>, %i: tensor<2xi64>, %s: tensor<2x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4xui8>, tensor<2xi64>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c3_codes(%x: tensor<2x4xi16>, %i: tensor<2xi64>, %s: tensor<2x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4xi16>, tensor<2xi64>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c3_scales(%x: tensor<2x4xi8>, %i: tensor<2xi64>, %s: tensor<2x1xf16>) {
  // expected-error @+1 {{'ds.gather' op C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4xi8>, tensor<2xi64>, tensor<2x1xf16>) -> tensor<2x4xf16>
  return
}

// -----

func.func @gather_c3_axis(%x: tensor<2x4xi8>, %i: tensor<2xi64>, %s: tensor<2x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0}}
  %0 = ds.gather 1 %x, %i scales %s : (tensor<2x4xi8>, tensor<2xi64>, tensor<2x1xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @gather_c3_rank(%x: tensor<2x4x4xi8>, %i: tensor<2xi64>, %s: tensor<2x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4x4xi8>, tensor<2xi64>, tensor<2x1xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @gather_c4_rows(%x: tensor<2x4xi8>, %i: tensor<2xi64>, %s: tensor<3x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C4: rows: expected equal sizes, found 2 and 3}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4xi8>, tensor<2xi64>, tensor<3x1xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c5_groups(%x: tensor<2x4xi8>, %i: tensor<2xi64>, %s: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.gather' op C5: the last size of the scales must divide that of the codes, and both be numbers}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x4xi8>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c5_dynamic(%x: tensor<2x?xi8>, %i: tensor<2xi64>, %s: tensor<2x1xf32>) {
  // expected-error @+1 {{'ds.gather' op C5: the last size of the scales must divide that of the codes, and both be numbers}}
  %0 = ds.gather 0 %x, %i scales %s : (tensor<2x?xi8>, tensor<2xi64>, tensor<2x1xf32>) -> tensor<2x?xf32>
  return
}

// -----

func.func @gather_elements_c1_indices(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.gather_elements' op C1: the indices must be i32 or i64}}
  %0 = ds.gather_elements 0 %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_c2_ranks(%x: tensor<2xf32>, %i: tensor<2x2xi64>) {
  // expected-error @+1 {{'ds.gather_elements' op C2: expects equal ranks and an axis inside them}}
  %0 = ds.gather_elements 0 %x, %i : (tensor<2xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @gather_nd_c1_indices(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.gather_nd' op C1: the indices must be i32 or i64}}
  %0 = ds.gather_nd 0 %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @gather_nd_c2_tuple(%x: tensor<2xf32>, %i: tensor<3x2xi64>) {
  // expected-error @+1 {{'ds.gather_nd' op C2: the last index axis must be static and fit the operand's rank}}
  %0 = ds.gather_nd 0 %x, %i : (tensor<2xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @scatter_elements_c1_indices(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.scatter_elements' op C1: the indices must be i32 or i64}}
  %0 = ds.scatter_elements assign 0 %x, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_elements_c2_shapes(%x: tensor<2xf32>, %i: tensor<1xi64>, %u: tensor<2xf32>) {
  // expected-error @+1 {{'ds.scatter_elements' op C2: indices and updates: expected equal sizes, found 1 and 2}}
  %0 = ds.scatter_elements assign 0 %x, %i, %u : (tensor<2xf32>, tensor<1xi64>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_elements_c3_types(%x: tensor<2xf32>, %i: tensor<1xi64>, %u: tensor<1xf64>) {
  // expected-error @+1 {{'ds.scatter_elements' op C3: operand and updates have different element types}}
  %0 = ds.scatter_elements assign 0 %x, %i, %u : (tensor<2xf32>, tensor<1xi64>, tensor<1xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c1_indices(%x: tensor<2xf32>, %i: tensor<1x1xf32>, %u: tensor<1xf32>) {
  // expected-error @+1 {{'ds.scatter_nd' op C1: the indices must be i32 or i64}}
  %0 = ds.scatter_nd assign %x, %i, %u : (tensor<2xf32>, tensor<1x1xf32>, tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c2_tuple(%x: tensor<2xf32>, %i: tensor<1x2xi64>, %u: tensor<1xf32>) {
  // expected-error @+1 {{'ds.scatter_nd' op C2: the last index axis must be static and fit the ranks of operand and updates}}
  %0 = ds.scatter_nd assign %x, %i, %u : (tensor<2xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c3_types(%x: tensor<2xf32>, %i: tensor<1x1xi64>, %u: tensor<1xf64>) {
  // expected-error @+1 {{'ds.scatter_nd' op C3: operand and updates have different element types}}
  %0 = ds.scatter_nd assign %x, %i, %u : (tensor<2xf32>, tensor<1x1xi64>, tensor<1xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c4_updates(%x: tensor<2x4xf32>, %i: tensor<1x1xi64>, %u: tensor<1x3xf32>) {
  // expected-error @+1 {{'ds.scatter_nd' op C4: indices and updates: expected equal sizes, found 4 and 3}}
  %0 = ds.scatter_nd assign %x, %i, %u : (tensor<2x4xf32>, tensor<1x1xi64>, tensor<1x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @nonzero_c1_rank(%x: tensor<i1>) {
  // expected-error @+1 {{'ds.nonzero' op C1: the operand must have at least one axis}}
  %0 = ds.nonzero %x count "c" : (tensor<i1>) -> tensor<0x?xi64>
  return
}

// -----

func.func @insert_c1_starts(%x: tensor<1x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.insert' op C1: starts must have 2 elements}}
  %0 = ds.insert %x into %y starts [0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @insert_c1_text(%x: tensor<1x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.insert' op C1: starts holds a text that is no size expression}}
  %0 = ds.insert %x into %y starts ["(", 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @insert_c2_rank(%x: tensor<4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.insert' op C2: operands must have one rank and element type}}
  %0 = ds.insert %x into %y starts [0, 0] : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @insert_c3_before(%x: tensor<1x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.insert' op C3: the box starts before axis 0}}
  %0 = ds.insert %x into %y starts [-1, 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @insert_c3_after(%x: tensor<1x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'ds.insert' op C3: axis 0: expected at least 4, found 3}}
  %0 = ds.insert %x into %y starts [3, 0] : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @reshape_c3_negative(%x: tensor<6xf32>) {
  // expected-error @+1 {{'ds.reshape' op C3: size of axis 0: expected at least 0, found -2}}
  %0 = ds.reshape %x [-2, -3] : (tensor<6xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @broadcast_c3_negative(%x: tensor<1xf32>) {
  // expected-error @+1 {{'ds.broadcast' op C3: size of axis 0: expected at least 0, found -2}}
  %0 = ds.broadcast %x [-2] : (tensor<1xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @slice_c3_start(%x: tensor<?xf32>) {
  // expected-error @+1 {{'ds.slice' op C3: the box reaches outside axis 0 of size ?0_0}}
  %0 = ds.slice %x starts [-1] sizes [1] steps [1] : (tensor<?xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_c3_end_of_walk_backwards(%x: tensor<?xf32>) {
  // expected-error @+1 {{'ds.slice' op C3: the box reaches outside axis 0 of size ?0_0}}
  %0 = ds.slice %x starts [1] sizes [3] steps [-1] : (tensor<?xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @insert_c3_start(%u: tensor<1xf32>, %x: tensor<?xf32>) {
  // expected-error @+1 {{'ds.insert' op C3: the box starts before axis 0}}
  %0 = ds.insert %u into %x starts [-1] : (tensor<1xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}
