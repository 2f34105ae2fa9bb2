// Ops that combine elements along axes. Created by the importer and by recomposition, gone after codegen.

def DS_ReduceOp : DS_TensorOp<"reduce"> {
  let summary = "combines the elements along axes";
  let description = [{
    Over no elements, sum is 0, prod 1, max and min the least and greatest value of the type. Gone after: codegen.

    Constraints: C1 the axes are sorted, unique and inside the rank; C2 the kind is defined for the element type.

    Example: `%1 = ds.reduce mean %0 axes [1] keep true : (tensor<?x4xf32>) -> tensor<?x1xf32>`
  }];
  let arguments = (ins DS_ReduceKind:$kind, DS_Tensor:$input, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$kind $input `axes` $axes `keep` $keep_dims attr-dict `:` functional-type(operands, results)}];
}

def DS_ArgReduceOp : DS_TensorOp<"arg_reduce"> {
  let summary = "the index of the greatest or least element along an axis";
  let description = [{
    Gone after: codegen.

    Constraints: C1 the kind is max or min; C2 the axis is inside the rank.

    Example: `%1 = ds.arg_reduce max %0 axis 1 keep false last false : (tensor<?x4xf32>) -> tensor<?xi64>`
  }];
  let arguments = (ins DS_ReduceKind:$kind, DS_Tensor:$input, I64Attr:$axis, BoolAttr:$keep_dims,
                       BoolAttr:$select_last);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$kind $input `axis` $axis `keep` $keep_dims `last` $select_last attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_SoftmaxOp : DS_TensorOp<"softmax"> {
  let summary = "softmax or its logarithm along an axis";
  let description = [{
    Computed with the maximum subtracted. Gone after: codegen.

    Constraints: C1 the element type is a float; C2 the axis is inside the rank.

    Example: `%1 = ds.softmax %0 axis 1 log false : (tensor<?x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, I64Attr:$axis, BoolAttr:$log);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input `axis` $axis `log` $log attr-dict `:` functional-type(operands, results)";
}

def DS_LayerNormOp : DS_TensorOp<"layer_norm"> {
  let summary = "layer normalization over the axes from `axis` on";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * scale + bias, the variance from centred values. Created by the importer and
    by `ds-recompose-layer-norm`. Gone after: codegen.

    Constraints: C1 the element type is a float; C2 the axis is inside the rank; C3 scale and bias broadcast to the
    operand and have its element type.

    Example: `%3 = ds.layer_norm %0, %1, %2 axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_Tensor:$scale, Optional<DS_Tensor>:$bias, I64Attr:$axis,
                       F64Attr:$epsilon);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `,` $scale (`,` $bias^)? `axis` $axis `epsilon` $epsilon attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_RmsNormOp : DS_TensorOp<"rms_norm"> {
  let summary = "root-mean-square normalization over the axes from `axis` on";
  let description = [{
    x / sqrt(mean(x^2) + epsilon) * scale. Gone after: codegen.

    Constraints: C1 the element type is a float; C2 the axis is inside the rank; C3 the scale broadcasts to the operand.

    Example: `%2 = ds.rms_norm %0, %1 axis 1 epsilon 1.0e-5 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_Tensor:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `,` $scale `axis` $axis `epsilon` $epsilon attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_QuantizeRowsOp : DS_TensorOp<"quantize_rows"> {
  let summary = "rows as bytes and one scale each";
  let description = [{
    Every row x along the last axis becomes codes q, stored as q + 128, and a scale s = max(max |x|, 1e-30) / 127, with
    q = round(x / s) from -127 to 127, to nearest, ties to even. (q + 128 - 128) s is at most s / 2 away from x, up to
    the rounding of f32; a row of zeros has codes of 128. A row that holds a NaN or an infinity has a NaN as its scale,
    and codes that say nothing. The scales keep the last axis, with size 1. Created by `ds-quantize-activations`. Gone
    after: codegen.

    Constraints: C1 the element type is f32 or f64; C2 the rank is at least 1.

    Example: `%1, %2 = ds.quantize_rows %0 : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<?x1xf32>)`
  }];
  let arguments = (ins DS_Tensor:$input);
  let results = (outs DS_Tensor:$codes, DS_Tensor:$scales);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def DS_RunningStatisticOp : DS_TensorOp<"running_statistic", [AllTypesMatch<["batch", "running", "used", "moved"]>]> {
  let summary = "a batch's mean or variance, and the running one that it moves";
  let description = [{
    `used` is what a batch norm normalizes by: in training the batch's statistic, in evaluation the running one. `moved`
    is momentum * running + (1 - momentum) * batch, which becomes the running one with the step, and in evaluation is the
    running one. `node` tells nodes apart that share a running statistic: each moves it. Created by the importer
    (BatchNormalization with training_mode) for a package that trains. Gone after: training (`ds-build-training-step`).

    Constraints: C1 the element type is a float; C2 operands and results have one type; C3 the momentum is at least 0
    and at most 1.

    Example: `%2, %3 = ds.running_statistic %0, %1 momentum 9.000000e-01 node 7 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)`
  }];
  let arguments = (ins DS_Tensor:$batch, DS_Tensor:$running, F64Attr:$momentum, I64Attr:$node);
  let results = (outs DS_Tensor:$used, DS_Tensor:$moved);
  let assemblyFormat = [{$batch `,` $running `momentum` $momentum `node` $node attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_CumulativeOp : DS_TensorOp<"cumulative"> {
  let summary = "running sums or products along an axis";
  let description = [{
    An exclusive run starts with 0 for sums and 1 for products. Created by the importer (CumSum, CumProd). Gone after:
    codegen.

    Constraints: C1 the axis is inside the rank; C2 the kind is sum or prod; C3 the element type is not i1.

    Example: `%1 = ds.cumulative sum %0 axis 0 exclusive false reverse false : (tensor<4xf32>) -> tensor<4xf32>`
  }];
  let arguments = (ins DS_ReduceKind:$kind, DS_Tensor:$input, I64Attr:$axis, BoolAttr:$exclusive, BoolAttr:$reverse);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$kind $input `axis` $axis `exclusive` $exclusive `reverse` $reverse attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_SuppressOp : DS_TensorOp<"suppress"> {
  let summary = "greedy choice of boxes that do not overlap much";
  let description = [{
    For every batch and class, boxes are taken up from the greatest of the `scores` [B, C, n] down, the first of equal ones
    first and NaN before every number; with `least`, only those above it. A box is kept where fewer than `most` are, and
    where it overlaps no kept one: what both share is positive, and more than `overlap` times what they cover together.
    Their ends along two axes are `low` and `high` [B, 2, n]. The result [B, C, n] begins with the numbers of the kept
    boxes, in the order in which they were taken up; the rest of it is -1. Created by the importer (NonMaxSuppression).
    Gone after: codegen.

    Constraints: C1 scores, ends, `overlap` and `least` are of one float type, `most` is i64; C2 the shapes are as above,
    and the others are scalars.

    Example: `%5 = ds.suppress %0, %1, %2 most %3 overlap %4 : (tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x9xi64>`
  }];
  let arguments = (ins DS_Tensor:$scores, DS_Tensor:$low, DS_Tensor:$high, DS_Tensor:$most, DS_Tensor:$overlap,
                       Optional<DS_Tensor>:$least);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$scores `,` $low `,` $high `most` $most `overlap` $overlap (`least` $least^)? attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_ArgsortOp : DS_TensorOp<"argsort"> {
  let summary = "the order that sorts the slices along the first axis";
  let description = [{
    Slices are compared by their elements in row-major order, the first that differs decides: least ones first, NaN
    after every number. Equal slices keep their order. Created by the importer (Unique). Gone after: codegen.

    Constraints: C1 the rank is at least 1.

    Example: `%1 = ds.argsort %0 : (tensor<?x4xf32>) -> tensor<?xi64>`
  }];
  let arguments = (ins DS_Tensor:$input);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def DS_TopKOp : DS_TensorOp<"top_k"> {
  let summary = "the k greatest or least elements along an axis, sorted, with their indices";
  let description = [{
    Among equal elements the lower index comes first. Gone after: codegen.

    Constraints: C1 the axis is inside the rank; C2 `k` parses.

    Example: `%1, %2 = ds.top_k %0 axis 1 k [3] largest true : (tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)`
  }];
  let arguments = (ins DS_Tensor:$input, I64Attr:$axis, DS_SizeArray:$k, BoolAttr:$largest);
  let results = (outs DS_Tensor:$values, DS_Tensor:$indices);
  let assemblyFormat = "$input `axis` $axis `k` $k `largest` $largest attr-dict `:` functional-type(operands, results)";
}
