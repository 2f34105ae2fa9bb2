// Ops that move elements without computing: views, selections, joins. Created by the importer, gone after codegen.

def DS_ReshapeOp : DS_TensorOp<"reshape", []> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    Never a copy: the planner gives operand and result one buffer. Gone after: codegen.

    Constraints: C1 the shape parses; C2 the element counts agree; C3 no size is negative. What is not known when compiling
    is checked before a run.

    Example: `%1 = ds.reshape %0 ["batch", "seq", 12, 32] : (tensor<?x?x384xf32>) -> tensor<?x?x12x32xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_SizeArray:$shape);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input $shape attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def DS_BroadcastOp : DS_TensorOp<"broadcast", [DS_PerElement]> {
  let summary = "repeats along axes of size 1, as NumPy does";
  let description = [{
    The result has the broadcast of the operand's shape and `shape` (ONNX Expand). Gone after: codegen.

    Constraints: C1 the shape parses; C2 the shapes broadcast; C3 no size is negative.

    Example: `%1 = ds.broadcast %0 ["batch", 4] : (tensor<1x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_SizeArray:$shape);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input $shape attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def DS_TransposeOp : DS_TensorOp<"transpose", [DeclareOpInterfaceMethods<DS_PerElement, ["isPointwise"]>]> {
  let summary = "permutes axes";
  let description = [{
    Result axis i is operand axis `permutation[i]`. Gone after: codegen.

    Constraints: C1 `permutation` is a permutation of the operand's axes.

    Example: `%1 = ds.transpose %0 [1, 0] : (tensor<?x4xf32>) -> tensor<4x?xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def DS_SliceOp : DS_TensorOp<"slice", [DeclareOpInterfaceMethods<DS_PerElement, ["isPointwise"]>]> {
  let summary = "a strided box of a tensor";
  let description = [{
    Element i along an axis is operand element `starts + i * steps`; starts are already normalised (not negative), a
    negative step walks backwards. Gone after: codegen.

    Constraints: C1 `starts`, `sizes` and `steps` have one element per axis and parse; C2 no step is 0; C3 the box lies
    inside the operand, which a run checks where it is not known.

    Example: `%1 = ds.slice %0 starts [0] sizes ["seq"] steps [1] : (tensor<512xi64>) -> tensor<?xi64>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_SizeArray:$starts, DS_SizeArray:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `starts` $starts `sizes` $sizes `steps` $steps attr-dict `:`
                         functional-type(operands, results)}];
  let hasFolder = 1;
}

def DS_InsertOp : DS_TensorOp<"insert"> {
  let summary = "a tensor with a box of it replaced";
  let description = [{
    Element i of `update` becomes element `starts + i` of the result, the rest is `into`. Never a copy: the planner gives
    `into` and the result one buffer, and `ds-outline-kernels` copies an `into` that something else reads. How loops
    collect what each of their iterations yields. Gone after: codegen.

    Constraints: C1 `starts` has one element per axis and parses; C2 both operands have one rank and element type; C3 the
    box lies inside `into`, which a run checks where it is not known.

    Example: `%2 = ds.insert %0 into %1 starts ["iter", 0] : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$update, DS_Tensor:$into, DS_SizeArray:$starts);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$update `into` $into `starts` $starts attr-dict `:` functional-type(operands, results)}];
}

def DS_PadOp : DS_TensorOp<"pad"> {
  let summary = "adds elements around a tensor";
  let description = [{
    Negative amounts crop. `value` is a scalar and is read for `constant` only. Gone after: codegen.

    Constraints: C1 `low` and `high` have one element per axis and parse; C2 `value` is one element of the operand's
    type.

    Example: `%1 = ds.pad constant %0, %v low [0, 1] high [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x4xf32>`
  }];
  let arguments = (ins DS_PadKind:$kind, DS_Tensor:$input, DS_Tensor:$value, DS_SizeArray:$low, DS_SizeArray:$high);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$kind $input `,` $value `low` $low `high` $high attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_ConcatOp : DS_TensorOp<"concat"> {
  let summary = "joins tensors along one axis";
  let description = [{
    Gone after: codegen.

    Constraints: C1 at least one operand, equal ranks and element types; C2 the axis is inside the rank; C3 the other
    axes agree.

    Example: `%2 = ds.concat 1 %0, %1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>`
  }];
  let arguments = (ins I64Attr:$axis, Variadic<DS_Tensor>:$inputs);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$axis $inputs attr-dict `:` functional-type(operands, results)";
}

def DS_GatherOp : DS_TensorOp<"gather"> {
  let summary = "takes slices by index along one axis";
  let description = [{
    Indices may be negative, counting from the end; one outside the axis ends the call with a diagnostic. Gone after:
    codegen.

    With `scales` the operand is a table of codes [rows, L] that stand for floats: code * scale, rounded once. Scales
    are [rows, G], of the type of the result: a row of the table is G groups of L / G neighbours. Created by `ds-quantize-tables`.

    Constraints: C1 the indices are i32 or i64; C2 the axis is inside the rank; C3 scales are a matrix of f32 or f64 beside
    a matrix of i8 and axis 0; C4 they have its rows; C5 both last sizes are numbers, and that of the scales divides the
    other.

    Example: `%2 = ds.gather 0 %0, %1 : (tensor<30522x384xf32>, tensor<?x?xi64>) -> tensor<?x?x384xf32>`
  }];
  let arguments = (ins I64Attr:$axis, DS_Tensor:$input, DS_Tensor:$indices, Optional<DS_Tensor>:$scales);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$axis $input `,` $indices (`scales` $scales^)? attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_GatherElementsOp : DS_TensorOp<"gather_elements"> {
  let summary = "takes single elements by index along one axis";
  let description = [{
    Gone after: codegen.

    Constraints: C1 the indices are i32 or i64; C2 equal ranks and the axis inside them.

    Example: `%2 = ds.gather_elements 1 %0, %1 : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>`
  }];
  let arguments = (ins I64Attr:$axis, DS_Tensor:$input, DS_Tensor:$indices);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$axis $input `,` $indices attr-dict `:` functional-type(operands, results)";
}

def DS_GatherNdOp : DS_TensorOp<"gather_nd"> {
  let summary = "takes slices by index tuples";
  let description = [{
    The last axis of `indices` holds the tuple. Gone after: codegen.

    Constraints: C1 the indices are i32 or i64; C2 the last index axis is static and, with the batch axes, within the
    operand's rank.

    Example: `%2 = ds.gather_nd 0 %0, %1 : (tensor<2x3xf32>, tensor<4x2xi64>) -> tensor<4xf32>`
  }];
  let arguments = (ins I64Attr:$batch_dims, DS_Tensor:$input, DS_Tensor:$indices);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$batch_dims $input `,` $indices attr-dict `:` functional-type(operands, results)";
}

def DS_ScatterElementsOp : DS_TensorOp<"scatter_elements"> {
  let summary = "a copy with single elements replaced by index along one axis";
  let description = [{
    Gone after: codegen.

    Constraints: C1 the indices are i32 or i64; C2 equal ranks, indices and updates of one shape, the axis inside; C3
    operand and updates have one element type.

    Example: `%3 = ds.scatter_elements assign 1 %0, %1, %2 : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x3xf32>`
  }];
  let arguments = (ins DS_ScatterKind:$kind, I64Attr:$axis, DS_Tensor:$input, DS_Tensor:$indices, DS_Tensor:$updates);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$kind $axis $input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}

def DS_ScatterNdOp : DS_TensorOp<"scatter_nd"> {
  let summary = "a copy with slices replaced by index tuples";
  let description = [{
    Gone after: codegen.

    Constraints: C1 the indices are i32 or i64; C2 the last index axis is static and within the operand's rank; C3
    operand and updates have one element type; C4 the updates are one slice of the operand per index tuple.

    Example: `%3 = ds.scatter_nd assign %0, %1, %2 : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32>`
  }];
  let arguments = (ins DS_ScatterKind:$kind, DS_Tensor:$input, DS_Tensor:$indices, DS_Tensor:$updates);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$kind $input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}

def DS_NonZeroOp : DS_TensorOp<"nonzero"> {
  let summary = "the indices of all elements that are not zero";
  let description = [{
    The result is [rank, count]; `count` names the computed symbol that the code defines while it runs. Gone after:
    codegen.

    Constraints: C1 the operand has at least one axis.

    Example: `%1 = ds.nonzero %0 count "count_0" : (tensor<2x2xi1>) -> tensor<2x?xi64>`
  }];
  let arguments = (ins DS_Tensor:$input, StrAttr:$count);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input `count` $count attr-dict `:` functional-type(operands, results)";
}
