// Elementwise ops; operands broadcast as in NumPy. Created by the importer, fused into kernels, gone after codegen.

def DS_UnaryOp : DS_TensorOp<"unary", [DS_PerElement]> {
  let summary = "an elementwise function of one tensor";
  let description = [{
    `round` is half to even; `is_nan` yields i1; `logical_not` takes i1. `expm1` is e^x - 1 and `log1p` is log(1 + x),
    both with all digits where x is near 0. Created by the importer. Gone after: codegen.

    Constraints: C1 the kind is defined for the element type.

    Example: `%1 = ds.unary tanh %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_UnaryKind:$kind, DS_Tensor:$input);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
}

def DS_BinaryOp : DS_TensorOp<"binary", [DeclareOpInterfaceMethods<DS_PerElement, ["scannedOperand"]>]> {
  let summary = "an elementwise function of two tensors";
  let description = [{
    Integer `div` truncates, `mod` has the sign of the divisor, `fmod` that of the dividend; comparisons yield i1.
    Created by the importer. Gone after: codegen.

    Constraints: C1 both element types are equal (`pow` and shifts excepted: the result has the left one); C2 the shapes
    broadcast; C3 the kind is defined for the element type.

    Example: `%2 = ds.binary add %0, %1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_BinaryKind:$kind, DS_Tensor:$lhs, DS_Tensor:$rhs);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def DS_SelectOp : DS_TensorOp<"select", [DS_PerElement]> {
  let summary = "takes each element from one of two tensors";
  let description = [{
    Created by the importer (Where). Gone after: codegen.

    Constraints: C1 the condition is i1; C2 both values have one element type; C3 the shapes broadcast.

    Example: `%3 = ds.select %c, %0, %1 : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>`
  }];
  let arguments = (ins DS_Tensor:$condition, DS_Tensor:$on_true, DS_Tensor:$on_false);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
}

def DS_CastOp : DS_TensorOp<"cast", [DS_PerElement]> {
  let summary = "converts the element type";
  let description = [{
    Floats become integers by truncation toward zero, i1 by comparison with zero. Created by the importer. Gone after:
    codegen.

    Constraints: C1 source and target are integer or float types.

    Example: `%1 = ds.cast %0 to f32 : (tensor<4xi64>) -> tensor<4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, TypeAttr:$to);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input `to` $to attr-dict `:` functional-type(operands, results)";
}

def DS_BitcastOp : DS_TensorOp<"bitcast", [DS_PerElement]> {
  let summary = "the same bits as another element type";
  let description = [{
    Created by the importer (BitCast). Gone after: codegen.

    Constraints: C1 source and target are integer or float types; C2 elements of both take equally many bits in memory,
    where i1 takes a byte.

    Example: `%1 = ds.bitcast %0 to i32 : (tensor<4xf32>) -> tensor<4xi32>`
  }];
  let arguments = (ins DS_Tensor:$input, TypeAttr:$to);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input `to` $to attr-dict `:` functional-type(operands, results)";
}

def DS_GeluOp : DS_TensorOp<"gelu", [DS_PerElement]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    erf: x/2 (1 + erf(x/sqrt 2)); tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); quick: x sigmoid(1.702 x).
    Created by the importer (Gelu) and by `ds-recompose-gelu`. Gone after: codegen.

    Constraints: C1 the element type is a float.

    Example: `%1 = ds.gelu erf %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_GeluKind:$kind, DS_Tensor:$input);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
}

def DS_DropoutOp : DS_TensorOp<"dropout"> {
  let summary = "zeros in random places, in training";
  let description = [{
    Element i is 0 with the probability `ratio`, else the operand's over 1 - ratio (Srivastava et al. 2014, inverted).
    Which ones is decided by Philox4x32-10 (Salmon et al. 2011) on the seed, the step, the micro-batch, `stream` and i,
    so that nothing is stored: the same op on a gradient has the same places. Created by the importer for a package that
    trains. Gone after: training (`ds-build-training-step`).

    Constraints: C1 the element type is a float; C2 the ratio is at least 0 and below 1.

    Example: `%1 = ds.dropout %0 ratio 1.000000e-01 stream 7 : (tensor<?x4xf32>) -> tensor<?x4xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, F64Attr:$ratio, I64Attr:$stream);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$input `ratio` $ratio `stream` $stream attr-dict `:` functional-type(operands, results)";
}
