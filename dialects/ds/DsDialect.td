// The ds dialect itself, its enums and its interfaces.
#ifndef DEEPSTRIDE_DS_DIALECT_TD
#define DEEPSTRIDE_DS_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def DS_Dialect : Dialect {
  let name = "ds";
  let cppNamespace = "::deepstride::ds";
  let summary = "transformer-level tensor programs with symbolic sizes";
  let description = [{
    Ops on ranked tensors, from the graph that a frontend builds down to the launches that code generation turns into
    an entry point. Weights never live in the IR: `ds.weight` names a `ds.recipe`, a small region over file ranges that
    packaging evaluates once. Sizes that are known only at run time are expressions over named symbols (see the size
    grammar of the package format); an op that needs them carries them as attributes.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
}

class DS_Enum<string name, string summary, list<string> names>
    : I32EnumAttr<name, summary,
                  !foreach(i, !range(0, !size(names)), I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::deepstride::ds";
  let genSpecializedAttr = 0;
}

def DS_UnaryKindEnum : DS_Enum<"UnaryKind", "elementwise function of one operand",
  ["abs", "neg", "exp", "expm1", "log", "log1p", "sqrt", "reciprocal", "erf", "tanh", "sigmoid", "relu", "sin", "cos", "tan", "asin",
   "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "floor", "ceil", "round", "sign", "logical_not",
   "bitwise_not", "is_nan"]>;
def DS_UnaryKind : EnumAttr<DS_Dialect, DS_UnaryKindEnum, "unary_kind">;

def DS_BinaryKindEnum : DS_Enum<"BinaryKind", "elementwise function of two operands",
  ["add", "sub", "mul", "div", "pow", "mod", "fmod", "min", "max", "bit_and", "bit_or", "bit_xor", "shift_left",
   "shift_right", "eq", "ne", "lt", "le", "gt", "ge"]>;
def DS_BinaryKind : EnumAttr<DS_Dialect, DS_BinaryKindEnum, "binary_kind">;

def DS_ReduceKindEnum : DS_Enum<"ReduceKind", "reduction over axes",
  ["sum", "mean", "prod", "max", "min", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"]>;
def DS_ReduceKind : EnumAttr<DS_Dialect, DS_ReduceKindEnum, "reduce_kind">;

def DS_GeluKindEnum : DS_Enum<"GeluKind", "flavour of GELU", ["erf", "tanh", "quick"]>;
def DS_GeluKind : EnumAttr<DS_Dialect, DS_GeluKindEnum, "gelu_kind">;

def DS_PoolKindEnum : DS_Enum<"PoolKind", "what a pooling window yields", ["max", "average", "lp"]>;
def DS_PoolKind : EnumAttr<DS_Dialect, DS_PoolKindEnum, "pool_kind">;

def DS_QuantizedPartEnum : DS_Enum<"QuantizedPart", "what quantization makes of a weight",
  ["codes", "scales", "zero_points"]>;
def DS_QuantizedPart : EnumAttr<DS_Dialect, DS_QuantizedPartEnum, "quantized_part">;

def DS_PadKindEnum : DS_Enum<"PadKind", "what padding is filled with",
  ["constant", "edge", "reflect", "wrap"]>;
def DS_PadKind : EnumAttr<DS_Dialect, DS_PadKindEnum, "pad_kind">;

def DS_ScatterKindEnum : DS_Enum<"ScatterKind", "how scattered values meet what is there",
  ["assign", "add", "mul", "max", "min"]>;
def DS_ScatterKind : EnumAttr<DS_Dialect, DS_ScatterKindEnum, "scatter_kind">;

def DS_ScoreStepKindEnum : DS_Enum<"ScoreStepKind", "what happens to the scores of an attention",
  ["add", "multiply", "keep", "hide", "keep_add", "hide_add", "window", "window_add", "window_mask"]>;
def DS_ScoreStepKind : EnumAttr<DS_Dialect, DS_ScoreStepKindEnum, "score_step">;

def DS_SizeRelationEnum : DS_Enum<"SizeRelation", "what two sizes must be to each other",
  ["equal", "broadcast", "at_least"]>;
def DS_SizeRelation : EnumAttr<DS_Dialect, DS_SizeRelationEnum, "size_relation">;

def DS_ProductKernelEnum : DS_Enum<"ProductKernel", "what multiplies and adds in a product",
  ["multiply_add", "codes", "code_digits", "pair_dot", "byte_dot", "byte_pairs", "byte_quads", "byte_tiles", "bfloat_dot", "bfloat_halves", "bfloat_tiles"]>;

def DS_ScheduleAttr : AttrDef<DS_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how a product is computed";
  let description = [{
    The micro-kernel, and the tile that it computes at a time: `rows` rows of the left operand by `columns` columns of a
    panel of the right one. A packed weight lies in panels of so many columns. Panels are swept once for every `sweep`
    rows. Codes and halves meet up to `few` rows as they are; for more, a panel of them becomes floats first. Stands on ops that
    multiply, as `ds.schedule`; without it they are plain loops. Created by `ds-schedule-kernels`.

    - `multiply_add`: one element of each operand, in the type of the sum;
    - `codes`: floats by codes of 8 or 4 bits, converted as they are loaded;
    - `code_digits`: f32 by such codes, which stay integers: a row lies in three digits of base 256 (vpdpbusd), with a
      unit of its own;
    - `pair_dot`: 16-bit integers in pairs along K, summed in i32 (vpmaddwd);
    - `byte_dot`, `byte_pairs`, `byte_tiles`: unsigned by signed bytes in fours along K, summed in i32 (vpdpbusd, two
      vpmaddwd, or AMX, which computes squares of 16 by 16 sums). Panels of `byte_pairs` become those of `byte_quads` for
      many rows: no schedule names it;
    - `bfloat_dot`, `bfloat_halves`, `bfloat_tiles`: bf16 in pairs along K, summed in f32 (vdpbf16ps, two multiply-adds
      of f32, or AMX); with `bfloat_dot` the weight may be codes, converted as they are loaded.

    Example: `#ds.schedule<multiply_add, rows = 8, columns = 48, sweep = 128>`
  }];
  let parameters = (ins EnumParameter<DS_ProductKernelEnum>:$kernel, "int64_t":$rows, "int64_t":$columns,
                        "int64_t":$sweep, DefaultValuedParameter<"int64_t", "0">:$few);
  let assemblyFormat = "`<` $kernel `,` struct($rows, $columns, $sweep, $few) `>`";
  let genVerifyDecl = 1;
}

// Integer constants or size texts; C1 of every op that carries one: each element parses.
class DS_HoldsSizes;
def DS_Size : AnyAttrOf<[I64Attr, StrAttr]>, DS_HoldsSizes;
def DS_SizeArray : TypedArrayAttrBase<DS_Size, "sizes: 64-bit integers or size expressions">, DS_HoldsSizes;
def DS_OptionalSizeArray : OptionalAttr<DS_SizeArray>, DS_HoldsSizes;

// The names of those among an op's arguments that are DS_Size or DS_SizeArray, as C++ string literals.
class DS_SizeAttributeNames<dag arguments> {
  list<string> names =
      !foldl([]<string>, !range(!size(arguments)), found, i,
             !listconcat(found, !if(!isa<DS_HoldsSizes>(!getdagarg<Constraint>(arguments, i)),
                                    ["\"" # !getdagname(arguments, i) # "\""], []<string>)));
}

def DS_ResultInference : OpInterface<"ResultInference"> {
  let cppNamespace = "::deepstride::ds";
  let description = [{
    Derives element types, symbolic sizes and, for small integer tensors, symbolic contents of the results from those of
    the operands. It is the one statement of an op's shape rules: builders take result types from it, the verifier
    compares types with it, and the size analysis runs it over whole functions.
  }];
  let methods = [InterfaceMethod<
    "Fills `inference.results`; on illegal operands fails after `inference.error`, naming the labelled constraint.",
    "::llvm::LogicalResult", "inferResults", (ins "::deepstride::Inference &":$inference)>];
  let verify = "return ::deepstride::ds::verifyAgainstInference($_op);";
}

def DS_SizedByAttributes : OpInterface<"SizedByAttributes"> {
  let cppNamespace = "::deepstride::ds";
  let description = [{
    Says which attributes of an op hold sizes. Every op of the dialect has it, from the types of its arguments: an
    argument of type DS_Size, DS_SizeArray or DS_OptionalSizeArray is found by whatever renames, binds or resolves
    symbols, without being listed anywhere. An optional one may be missing.
  }];
  let methods = [StaticInterfaceMethod<"Names of the attributes that are a size or a list of sizes.",
                                       "::llvm::ArrayRef<::llvm::StringLiteral>", "sizeAttributes">];
}

def DS_PerElement : OpInterface<"PerElement"> {
  let cppNamespace = "::deepstride::ds";
  let description = [{
    Ops whose kernels compute each element of the one result on its own, so that one loop may hold several of them: the
    one list of what is elementwise, for fusion, in-place writes, constants in kernels and code generation. All but the
    pointwise ones only choose the index at which they read, or read nothing.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether an element of the result depends on nothing but the operands' elements at its own index, broadcast as in
      NumPy. A result may then overwrite an operand of its sizes.
    }], "bool", "isPointwise", (ins), "", "return true;">,
    InterfaceMethod<[{
      Whether `ds.fused` regions may hold the op. Others have kernels of their own.
    }], "bool", "joinsRegions", (ins), "", "return true;">,
    InterfaceMethod<[{
      The operand that is read as a whole before the first element is computed, because some of its values end the call:
      the divisor of an integer division. It must be in memory where the op's kernel begins.
    }], "std::optional<unsigned>", "scannedOperand", (ins), "", "return std::nullopt;">
  ];
}

def DS_Anchor : OpInterface<"Anchor"> {
  let cppNamespace = "::deepstride::ds";
  let description = [{
    Ops whose kernels compute their one result in tiles, and can apply elementwise ops to a tile before it is stored: the
    anchor of a `ds.fused` region, of which such a region has at most one. What follows it there is its epilogue.
  }];
  let methods = [InterfaceMethod<[{
    How many leading axes of the result the rows of a tile run over; its columns run over the axes behind them.
  }], "int64_t", "rowAxes">];
}

#endif
