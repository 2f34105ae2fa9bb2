// The private dialect of the importer: one op for any ONNX operator, 1:1 with the file.
#ifndef FRONTENDS_ONNX_DIALECT_ONNX
#define FRONTENDS_ONNX_DIALECT_ONNX

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::deepstride::onnx";
  let summary = "an ONNX model as it was read, one op per node";
  let description = [{
    Private to the importer. The reader creates it from the file, `convert-onnx-to-ds` consumes it;
    after the import phase no op, type or attribute of it is left.

    A model is one `func.func @main` in a module that carries `onnx.ir_version`, `onnx.producer` and
    `onnx.opset_import` (pairs of domain and version). Arguments and results carry `onnx.name`, and
    `onnx.dims`: per dimension an integer or the ONNX dimension name, which is empty where the file
    gives a dynamic dimension none. Model-local functions are already inlined: the names of what came
    from the call `c` start with `c/`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===-- types ---------------------------------------------------------------------------------===//

class Onnx_Type<string name, string keyword> : TypeDef<Onnx_Dialect, name> {
  let mnemonic = keyword;
}

def Onnx_UnknownType : Onnx_Type<"Unknown", "unknown"> {
  let summary = "a value whose type the file does not state";
  let description = [{
    Created by the reader for node outputs without `value_info`; replaced by `onnx-infer-shapes`.
  }];
}

def Onnx_StringType : Onnx_Type<"String", "string"> {
  let summary = "the element type of tensors of strings";
}

def Onnx_OtherType : Onnx_Type<"Other", "other"> {
  let summary = "a sequence, optional, map, sparse tensor or opaque type, in ONNX's spelling";
  let description = [{
    Example: `!onnx.other<"seq(tensor(float))">`. Kept so that a later phase can scalarize or
    diagnose it.
  }];
  let parameters = (ins StringRefParameter<"spelling of the ONNX type">:$spelling);
  let assemblyFormat = "`<` $spelling `>`";
}

//===-- attributes ----------------------------------------------------------------------------===//

def Onnx_RangeAttr : AttrDef<Onnx_Dialect, "Range", [TypedAttrInterface]> {
  let mnemonic = "range";
  let summary = "the elements of a tensor as a byte range of a file";
  let description = [{
    The bytes are little-endian and row-major, as ONNX defines `raw_data`; 4-bit and 2-bit elements
    are packed from the low bits. `file` is the model itself or a file below its folder; the reader
    has checked that the range lies inside of it and has exactly the size that the type asks for.

    Constraints:
    - C1: the type is a tensor of static shape.

    Example: `#onnx.range<"model.onnx", 4711, 1536> : tensor<384xf32>`
  }];
  let parameters = (ins StringRefParameter<"path of the file">:$file,
                        "uint64_t":$offset,
                        "uint64_t":$length,
                        AttributeSelfTypeParameter<"tensor type">:$type);
  let assemblyFormat = "`<` $file `,` $offset `,` $length `>`";
  let genVerifyDecl = 1;
}

//===-- ops -----------------------------------------------------------------------------------===//

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits>;

def Onnx_NodeOp : Onnx_Op<"node"> {
  let summary = "one node of the graph, any operator of any domain";
  let description = [{
    Life: created by the reader; types refined by `onnx-infer-shapes`; consumed by the pattern of
    its operator in `convert-onnx-to-ds`, or listed in the report of unsupported operators.

    `version` is the version of `domain` that the model (or the function it came from) imports; the
    domain `ai.onnx` is the empty one. `outputs` are the ONNX names of the results, 1:1. An absent
    optional input is an `onnx.none`; an absent optional output has the name "" and type `none`. The
    values that a Gradient names in `xs`, `zs` and `y` follow its inputs in this order.
    `attrs` holds the attributes 1:1: INT `i64`, FLOAT `f32`, INTS `array<i64>`, FLOATS
    `array<f32>`, tensors as elements or `#onnx.range`, type protos as types, sparse tensors as a
    dictionary {values, indices, dims}. A graph attribute is a region; `graphs` names the regions in
    order (`body`, or `bodies[0]`, `bodies[1]` for a list of graphs). Regions see outer values.

    Constraints:
    - C1: one name in `outputs` per result.
    - C2: one name in `graphs` per region, and no such name in `attrs`.
    - C3: every region is one block that ends in `onnx.return`.

    Example:
    ```mlir
    %y = onnx.node "Gemm" version 13 (%x, %w, %none) attrs {transB = 1 : i64} outputs ["y"]
        : (tensor<?x4xf32>, tensor<3x4xf32>, none) -> tensor<?x3xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs,
                       StrAttr:$op_type,
                       DefaultValuedStrAttr<StrAttr, "">:$domain,
                       I64Attr:$version,
                       DefaultValuedAttr<DictionaryAttr, "{}">:$attrs,
                       StrArrayAttr:$outputs,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$graphs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    $op_type (`domain` $domain^)? `version` $version `(` $inputs `)` (`attrs` $attrs^)?
    `outputs` $outputs (`graphs` $graphs^ $bodies)? attr-dict `:` functional-type($inputs, $results)
  }];
  let hasVerifier = 1;
}

def Onnx_ReturnOp : Onnx_Op<"return", [Pure, Terminator, HasParent<"NodeOp">]> {
  let summary = "the outputs of a subgraph";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Onnx_NoneOp : Onnx_Op<"none", [Pure]> {
  let summary = "stands for an absent optional input";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Onnx_InitializerOp : Onnx_Op<"initializer", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor stored in the model: elements in the IR, or a range of a file";
  let description = [{
    Life: created by the reader for every initializer that is used; `convert-onnx-to-ds` makes a
    constant or a `ds.weight` of it. Tensors of more than 4 KiB are `#onnx.range`: their bytes never
    enter the process. (Tensors stored in varint fields have no such range and are elements.)

    Constraints:
    - C1: `value` is elements or a range.

    Example:
    ```mlir
    %w = onnx.initializer "fc.weight" #onnx.range<"model.onnx", 4711, 6144> : tensor<4x384xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, TypedAttrInterface:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$name $value attr-dict";
  let hasVerifier = 1;
}

#endif // FRONTENDS_ONNX_DIALECT_ONNX
