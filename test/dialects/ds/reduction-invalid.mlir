// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @reduce_c1_axes(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'ds.reduce' op C1: the axes must be sorted, unique and inside rank 2}}
  %0 = ds.reduce sum %x axes [1, 0] keep false : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @reduce_c2_kind(%x: tensor<2xi1>) {
  // expected-error @+1 {{'ds.reduce' op C2: sum is not defined for i1}}
  %0 = ds.reduce sum %x axes [0] keep false : (tensor<2xi1>) -> tensor<i1>
  return
}

// -----

func.func @arg_reduce_c1_kind(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.arg_reduce' op C1: the kind must be max or min}}
  %0 = ds.arg_reduce sum %x axis 0 keep false last false : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

func.func @arg_reduce_c2_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.arg_reduce' op C2: the axis 1 is outside rank 1}}
  %0 = ds.arg_reduce max %x axis 1 keep false last false : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

func.func @softmax_c1_type(%x: tensor<2xi64>) {
  // expected-error @+1 {{'ds.softmax' op C1: the element type must be a float}}
  %0 = ds.softmax %x axis 0 log false : (tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @softmax_c2_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.softmax' op C2: the axis -1 is outside rank 1}}
  %0 = ds.softmax %x axis -1 log false : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @layer_norm_c1_type(%x: tensor<2xi64>) {
  // expected-error @+1 {{'ds.layer_norm' op C1: the element type must be a float}}
  %0 = ds.layer_norm %x, %x axis 0 epsilon 0.0 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @layer_norm_c2_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.layer_norm' op C2: the axis 1 is outside rank 1}}
  %0 = ds.layer_norm %x, %x axis 1 epsilon 0.0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @layer_norm_c3_scale(%x: tensor<2xf32>, %g: tensor<2x2xf32>) {
  // expected-error @+1 {{'ds.layer_norm' op C3: scale and bias must have the operand's element type and at most its rank}}
  %0 = ds.layer_norm %x, %g axis 0 epsilon 0.0 : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @layer_norm_c3_scale_does_not_enlarge(%x: tensor<?x1xf32>, %g: tensor<4xf32>) {
  // expected-error @+1 {{'ds.layer_norm' op C3: scale and bias must broadcast to the operand, found size 4 for 1}}
  %0 = ds.layer_norm %x, %g axis 1 epsilon 0.0 : (tensor<?x1xf32>, tensor<4xf32>) -> tensor<?x1xf32>
  return
}

// -----

func.func @layer_norm_c3_bias_does_not_enlarge(%x: tensor<1x4xf32>, %g: tensor<4xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+1 {{'ds.layer_norm' op C3: scale and bias must broadcast to the operand, found size 2 for 1}}
  %0 = ds.layer_norm %x, %g, %b axis 1 epsilon 0.0 : (tensor<1x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @rms_norm_c1_type(%x: tensor<2xi64>) {
  // expected-error @+1 {{'ds.rms_norm' op C1: the element type must be a float}}
  %0 = ds.rms_norm %x, %x axis 0 epsilon 0.0 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @rms_norm_c2_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.rms_norm' op C2: the axis 1 is outside rank 1}}
  %0 = ds.rms_norm %x, %x axis 1 epsilon 0.0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rms_norm_c3_scale(%x: tensor<2xf32>, %g: tensor<3xf32>) {
  // expected-error @+1 {{'ds.rms_norm' op shapes do not broadcast: axis 0 has sizes 2 and 3}}
  %0 = ds.rms_norm %x, %g axis 0 epsilon 0.0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rms_norm_c3_scale_does_not_enlarge(%x: tensor<?x1xf32>, %g: tensor<4xf32>) {
  // expected-error @+1 {{'ds.rms_norm' op C3: scale and bias must broadcast to the operand, found size 4 for 1}}
  %0 = ds.rms_norm %x, %g axis 1 epsilon 0.0 : (tensor<?x1xf32>, tensor<4xf32>) -> tensor<?x1xf32>
  return
}

// -----

func.func @cumulative_sum_c1_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.cumulative' op C1: the axis 1 is outside rank 1}}
  %0 = ds.cumulative sum %x axis 1 exclusive false reverse false : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cumulative_c2_kind(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.cumulative' op C2: the kind must be sum or prod}}
  %0 = ds.cumulative max %x axis 0 exclusive false reverse false : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cumulative_c3_element(%x: tensor<2xi1>) {
  // expected-error @+1 {{'ds.cumulative' op C3: sum is not defined for i1}}
  %0 = ds.cumulative sum %x axis 0 exclusive false reverse false : (tensor<2xi1>) -> tensor<2xi1>
  return
}

// -----

func.func @suppress_c1_element(%s: tensor<1x2x9xf32>, %l: tensor<1x2x9xf64>, %h: tensor<1x2x9xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // expected-error @+1 {{'ds.suppress' op C1: scores, ends, 'overlap' and 'least' must be of one float type, 'most' i64}}
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x9xf32>, tensor<1x2x9xf64>, tensor<1x2x9xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x9xi64>
  return
}

// -----

func.func @suppress_c1_most(%s: tensor<1x2x9xf32>, %l: tensor<1x2x9xf32>, %h: tensor<1x2x9xf32>, %m: tensor<i32>, %o: tensor<f32>) {
  // expected-error @+1 {{'ds.suppress' op C1: scores, ends, 'overlap' and 'least' must be of one float type, 'most' i64}}
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<i32>, tensor<f32>) -> tensor<1x2x9xi64>
  return
}

// -----

func.func @suppress_c2_rank(%s: tensor<1x2x9xf32>, %l: tensor<2x9xf32>, %h: tensor<1x2x9xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // expected-error @+1 {{'ds.suppress' op C2: scores and ends must have three axes, the other operands none}}
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x9xf32>, tensor<2x9xf32>, tensor<1x2x9xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x9xi64>
  return
}

// -----

func.func @suppress_c2_scalar(%s: tensor<1x2x9xf32>, %l: tensor<1x2x9xf32>, %h: tensor<1x2x9xf32>, %m: tensor<i64>, %o: tensor<1xf32>) {
  // expected-error @+1 {{'ds.suppress' op C2: scores and ends must have three axes, the other operands none}}
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<i64>, tensor<1xf32>) -> tensor<1x2x9xi64>
  return
}

// -----

func.func @suppress_c2_shape(%s: tensor<1x2x9xf32>, %l: tensor<1x2x9xf32>, %h: tensor<1x4x9xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // expected-error @+1 {{'ds.suppress' op C2: ends of boxes}}
  %0 = ds.suppress %s, %l, %h most %m overlap %o : (tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<1x4x9xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x9xi64>
  return
}

// -----

func.func @argsort_c1_rank(%x: tensor<f32>) {
  // expected-error @+1 {{'ds.argsort' op C1: the rank must be at least 1}}
  %0 = ds.argsort %x : (tensor<f32>) -> tensor<i64>
  return
}

// -----

func.func @top_k_c1_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.top_k' op C1: the axis 1 is outside rank 1}}
  %0, %1 = ds.top_k %x axis 1 k [1] largest true : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xi64>)
  return
}

// -----

func.func @top_k_c2_k(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.top_k' op C2: k must be one size}}
  %0, %1 = ds.top_k %x axis 0 k [1, 1] largest true : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xi64>)
  return
}

// -----

func.func @top_k_c2_negative(%x: tensor<?xf32>) {
  // expected-error @+1 {{'ds.top_k' op C2: k: expected at least 0, found -1}}
  %0, %1 = ds.top_k %x axis 0 k [-1] largest true : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi64>)
  return
}

// -----

func.func @quantize_rows_c1_type(%x: tensor<2xf16>) {
  // expected-error @+1 {{'ds.quantize_rows' op C1: the element type must be f32 or f64}}
  %0, %1 = ds.quantize_rows %x : (tensor<2xf16>) -> (tensor<2xui8>, tensor<1xf16>)
  return
}

// -----

func.func @quantize_rows_c2_rank(%x: tensor<f32>) {
  // expected-error @+1 {{'ds.quantize_rows' op C2: the operand must have an axis}}
  %0, %1 = ds.quantize_rows %x : (tensor<f32>) -> (tensor<ui8>, tensor<f32>)
  return
}

// -----

func.func @running_statistic_c1_type(%x: tensor<2xi32>) {
  // expected-error @+1 {{'ds.running_statistic' op C1: the element type must be a float}}
  %0, %1 = ds.running_statistic %x, %x momentum 0.9 node 7 : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  return
}

// -----

func.func @running_statistic_c2_types(%x: tensor<2xf32>, %r: tensor<3xf32>) {
  // expected-error @+1 {{'ds.running_statistic' op failed to verify that all of {batch, running, used, moved} have same type}}
  %0, %1 = ds.running_statistic %x, %r momentum 0.9 node 7 : (tensor<2xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @running_statistic_c3_momentum(%x: tensor<2xf32>) {
  // expected-error @+1 {{'ds.running_statistic' op C3: the momentum must be at least 0 and at most 1, found 1.5}}
  %0, %1 = ds.running_statistic %x, %x momentum 1.5 node 7 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}
