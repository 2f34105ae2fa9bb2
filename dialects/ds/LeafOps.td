// Values that come from nowhere: constants, weights, symbolic shapes, counters.

def DS_ConstantOp : DS_TensorOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>,
                                          DeclareOpInterfaceMethods<DS_PerElement, ["isPointwise"]>]> {
  let summary = "a small constant tensor";
  let description = [{
    Created by the importer for tensors of at most 4 KiB and by folding. Consumed by kernels, which embed splats and
    read everything else from the package. Gone after: codegen.

    Example: `%0 = ds.constant dense<0.5> : tensor<f32>`
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let declarations = [{
    static constexpr int64_t byteLimit = 4096;
  }];
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value),
                            [{ build($_builder, $_state, value.getShapedType(), value); }]>];
}

def DS_WeightOp : DS_Op<"weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a constant tensor that lives in weights.bin";
  let description = [{
    The result of the `ds.recipe` it names. Created by the importer; passes change the weight by extending its recipe.
    Gone after: codegen (a constant buffer).

    Constraints: C1 the symbol is a `ds.recipe`; C2 the recipe yields the result type.

    Example: `%0 = ds.weight @encoder.weight : tensor<384x384xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$recipe);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$recipe attr-dict `:` type($result)";
}

def DS_RecipeOp : DS_Op<"recipe", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "how one stored constant is made from file ranges";
  let description = [{
    A pure region over `ds.source` ops that ends in `ds.yield` of one static tensor. Evaluated once, when the package
    is written; a stored range is keyed by the recipe's text, so equal recipes share one range.

    Constraints: C1 the region ends in `ds.yield` of exactly one statically shaped tensor; C2 every other op is one that
    packaging can evaluate.

    Example:
    ```mlir
    ds.recipe @w {
      %0 = ds.source "model.onnx" [4096, 64] : tensor<4x4xf32>
      %1 = ds.transpose %0 [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      ds.yield %1 : tensor<4x4xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let declarations = [{
    ::mlir::Value getYielded();
  }];
}

def DS_SourceOp : DS_Op<"source", [Pure, HasParent<"RecipeOp">]> {
  let summary = "bytes of a file as a tensor";
  let description = [{
    Little-endian, dense, row-major. Only inside `ds.recipe`.

    Constraints: C1 the length equals the byte size of the static result type; C2 the offset is not negative.

    Example: `%0 = ds.source "model.onnx" [4096, 64] : tensor<4x4xf32>`
  }];
  let arguments = (ins StrAttr:$file, I64Attr:$offset, I64Attr:$length);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$file `[` $offset `,` $length `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def DS_ShapeOp : DS_TensorOp<"shape"> {
  let summary = "sizes as an integer tensor";
  let description = [{
    What is left of shape arithmetic after folding: a tensor whose elements are size expressions. Created by
    `ds-fold-shapes`; a kernel writes it where the values are really needed. Gone after: codegen.

    Constraints: C1 the values parse; C2 the element count of the result equals their number.

    Example: `%0 = ds.shape ["batch", "seq", 384] : tensor<3xi64>`
  }];
  let arguments = (ins DS_SizeArray:$values);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
}

def DS_IotaOp : DS_TensorOp<"iota", [DeclareOpInterfaceMethods<DS_PerElement, ["isPointwise", "joinsRegions"]>]> {
  let summary = "the index along one axis";
  let description = [{
    Created for Range, EyeLike, Trilu, OneHot masks. Gone after: codegen.

    Constraints: C1 the axis is inside the shape; C2 the sizes parse; C3 they are not negative.

    Example: `%0 = ds.iota 0 ["seq"] : tensor<?xi64>`
  }];
  let arguments = (ins I64Attr:$axis, DS_SizeArray:$shape);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$axis $shape attr-dict `:` type($result)";
}

def DS_EmptyOp : DS_TensorOp<"empty"> {
  let summary = "a tensor whose elements nobody reads";
  let description = [{
    Created by `ds-differentiate` where the side of a branch that does not run hands on what only the way back through
    the other side reads. No kernel makes it; reading its elements gives what lay in its buffer. Gone after: codegen.

    Constraints: C1 the sizes parse; C2 they are not negative; C3 the element type is an integer or a float.

    Example: `%0 = ds.empty ["batch", 4] of f32 : tensor<?x4xf32>`
  }];
  let arguments = (ins DS_SizeArray:$shape, TypeAttr:$element);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$shape `of` $element attr-dict `:` type($result)";
}
