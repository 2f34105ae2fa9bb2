// Structure: fused regions, kernels and launches.

def DS_YieldOp : DS_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["FusedOp", "KernelOp", "RecipeOp"]>]> {
  let summary = "ends a ds region";
  let description = [{
    Example: `ds.yield %0 : tensor<4xf32>`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def DS_FusedOp : DS_Op<"fused", [SingleBlock]> {
  let summary = "ops that become one kernel";
  let description = [{
    The ops inside stay what they were; the region uses values from above. Created by the fusion passes, turned into
    `ds.kernel` and `ds.launch` by `ds-outline-kernels`. Gone after: memory.

    Constraints: C1 the region's yield has the types of the results; C2 it holds only pure ops.

    Example:
    ```mlir
    %2 = ds.fused {
      %1 = ds.unary exp %0 : (tensor<?xf32>) -> tensor<?xf32>
      ds.yield %1 : tensor<?xf32>
    } : tensor<?xf32>
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<DS_Tensor>:$results);
  let assemblyFormat = "attr-dict-with-keyword $body `:` type($results)";
  let hasVerifier = 1;
}

def DS_KernelOp : DS_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "an outlined kernel over its own size symbols";
  let description = [{
    Sizes inside are named d0, d1, ... in order of first use, so that equal layers give equal text and are compiled
    once. `argument_sizes` has one size list per block argument. Created by `ds-outline-kernels`, consumed by
    `convert-ds-to-linalg`. Gone after: codegen.

    Constraints: C1 one size list per argument, of its rank; C2 the region ends in `ds.yield`.

    Example:
    ```mlir
    ds.kernel @k0 sizes 1 arguments [["d0"]] {
    ^bb0(%arg0: tensor<?xf32>):
      %0 = ds.unary exp %arg0 : (tensor<?xf32>) -> tensor<?xf32>
      ds.yield %0 : tensor<?xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$size_count, ArrayAttr:$argument_sizes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `sizes` $size_count `arguments` $argument_sizes attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def DS_DefineOp : DS_Op<"define", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives a computed size symbol its value";
  let description = [{
    From here on buffers whose sizes depend on the symbol exist. Created by `ds-outline-kernels` before an op whose
    result size depends on data, and by the importer for the counter of a loop, whose iterations define it anew: what
    has a size over such a symbol holds nothing beyond its iteration. The importer also names conditions of branches so
    (1 or 0), since sizes may depend on the branch that was taken. Gone after: codegen (the `define` service).

    Constraints: C1 the value is one i64, in a tensor or as a scalar, or one i1 in a tensor; C2 the symbol is not empty.

    Example: `ds.define "count_0" = %0 : tensor<i64>`
  }];
  let arguments = (ins StrAttr:$symbol, AnyTypeOf<[DS_Tensor, I64]>:$value);
  let assemblyFormat = "$symbol `=` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def DS_RequireOp : DS_Op<"require", [MemoryEffects<[MemWrite]>]> {
  let summary = "a condition on sizes that the program relies on";
  let description = [{
    One size must be `at least` another, `equal to` it, or `broadcast with` it: equal, or one of both 1. The run checks
    it, inside of a branch or a loop only where that is run. Created by the importer where elements of integer tensors
    steer sizes: as sizes they are numbers, so arithmetic on them must not have wrapped; and by whatever removes an op
    that required it. Gone after: memory (constraints of the package).

    Constraints: C1 both parse.

    Example: `ds.require 2147483647 at least "2*batch"`
  }];
  let arguments = (ins DS_Size:$lhs, DS_SizeRelation:$relation, DS_Size:$rhs);
  let assemblyFormat = "$lhs custom<SizeRelation>($relation) $rhs attr-dict";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let declarations = "::deepstride::SizeConstraint getConstraint();";
}

def DS_SizeOp : DS_Op<"size", [Pure]> {
  let summary = "a size as a scalar";
  let description = [{
    Bounds the iterations of a loop. Created by the importer. Gone after: codegen (a load from the sizes of the call).

    Constraints: C1 the value parses.

    Example: `%0 = ds.size "batch*seq"`
  }];
  let arguments = (ins DS_Size:$value);
  let results = (outs I64:$result);
  let assemblyFormat = "$value attr-dict";
  let hasVerifier = 1;
}

def DS_LaunchOp : DS_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    `sizes` gives the kernel's d0, d1, ... as expressions of the program. Created by `ds-outline-kernels`; the code
    generator turns it into static launch data. Gone after: codegen.

    Constraints: C1 the symbol is a `ds.kernel`; C2 operand and result types are the kernel's; C3 one size per symbol of
    the kernel, each parsing.

    Example: `%1 = ds.launch @k0(%0) sizes ["batch*seq"] : (tensor<?xf32>) -> tensor<?xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<DS_Tensor>:$inputs, DS_SizeArray:$sizes);
  let results = (outs Variadic<DS_Tensor>:$results);
  let assemblyFormat = [{$kernel `(` $inputs `)` `sizes` $sizes attr-dict `:` functional-type(operands, results)}];
}
