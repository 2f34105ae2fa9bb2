// The dist dialect: collectives between the ranks of a program, in start/wait form.
#ifndef DEEPSTRIDE_DIST_OPS_TD
#define DEEPSTRIDE_DIST_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_StatesSizes : NativeOpTrait<"StatesSizes"> {
  let cppNamespace = "::deepstride::ds";
}

def Dist_Start : OpInterface<"StartInterface"> {
  let cppNamespace = "::deepstride::dist";
  let description = "The first half of a collective.";
  let methods = [
    InterfaceMethod<"what manifests and messages call it", "::llvm::StringRef", "opName">,
    InterfaceMethod<"its name in messages", "::llvm::StringRef", "siteName">,
    InterfaceMethod<"along which axis of the mesh", "::llvm::StringRef", "meshAxis">,
    InterfaceMethod<"what is read until the wait", "::mlir::OperandRange", "sourceValues">,
    InterfaceMethod<"what the last results are written into, one for each of these", "::mlir::OperandRange",
                    "intoValues">,
    InterfaceMethod<"without which nothing is sent; null where it always is", "::mlir::Value", "conditionValue">,
    InterfaceMethod<"whether the results are the sources, in part rewritten", "bool", "isInPlace">,
    InterfaceMethod<"whether results, but those written into others, are sources with other values, and may lie where they do",
                    "bool", "mayReplaceSources">,
    InterfaceMethod<"how values combine; nothing where they do not",
                    "::std::optional<::deepstride::dist::Reduction>", "reductionKind">,
    InterfaceMethod<"null without", "::mlir::ArrayAttr", "layoutList">,
    InterfaceMethod<"as what values travel; nothing: as they are", "::std::optional<::deepstride::dist::Codec>",
                    "codecKind">,
    InterfaceMethod<"the float type that travels", "::mlir::Type", "wireType">,
    InterfaceMethod<"the operand that a result of the wait is written into; null where there is none",
                    "::mlir::OpOperand *", "intoOf", (ins "unsigned":$result), [{
      ::mlir::OperandRange into = $_op.intoValues();
      unsigned first = (*$_op->getResult(0).getUsers().begin())->getNumResults() - into.size();
      return result < first || into.empty() ? nullptr
                                            : &$_op->getOpOperand(into.getBeginOperandIndex() + result - first);
    }]>,
    InterfaceMethod<"the one wait, perhaps of other starts besides", "::mlir::Operation *", "waitOp", (ins), [{
      return *$_op->getResult(0).getUsers().begin();
    }]>,
  ];
}

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::deepstride::dist";
  let summary = "collectives between ranks";
  let description = [{
    Upstream's `shard` and `mpi` dialects have neither payload codecs, nor error feedback, nor site ids that a manifest
    and a watchdog can name; docs/rationale/dist.md says more. A collective is split in two so that other work can run
    between its halves: the start hands the source over, the wait owns the destination.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

def Dist_Pending : TypeDef<Dist_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "a collective between its start and its wait";
}

def Dist_ReductionEnum : I32EnumAttr<"Reduction", "how ranks' values combine",
    [I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>]> {
  let cppNamespace = "::deepstride::dist";
  let genSpecializedAttr = 0;
}
def Dist_Reduction : EnumAttr<Dist_Dialect, Dist_ReductionEnum, "reduction">;

def Dist_CodecEnum : I32EnumAttr<"Codec", "as what values travel", [I32EnumAttrCase<"one_bit", 0>, I32EnumAttrCase<"sparse_rows", 1>]> {
  let cppNamespace = "::deepstride::dist";
  let genSpecializedAttr = 0;
}
def Dist_Codec : EnumAttr<Dist_Dialect, Dist_CodecEnum, "codec">;

def Dist_Layout : AttrDef<Dist_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "where tensors lie in the flat space of a collective";
  let description = [{
    Tensors lie one behind another in a flat space, tensor i at element `offsets[i]`, a multiple of `block`; what none
    covers is zero. Of `elements` elements (the end of the last tensor, rounded up to a block) each of N ranks owns
    S = ceildiv(elements, N * block) * block, the space has N * S ("unit", ZeRO, Rajbhandari et al. 1910.02054). A
    range `[begin, end)` is the part that one message carries: a bucket; -1 is the end of the space.

    Example: `#dist.layout<[0, 64] of 128 by 64 from 64 to 128>`
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$offsets, "int64_t":$elements, "int64_t":$block,
                        DefaultValuedParameter<"int64_t", "0">:$begin, DefaultValuedParameter<"int64_t", "-1">:$end);
  let assemblyFormat = "`<` `[` $offsets `]` `of` $elements `by` $block (`from` $begin^)? (`to` $end^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What one of `ranks` ranks owns.
    ::deepstride::SizeExpr shard(const ::deepstride::SizeExpr &ranks) const;
  }];
}
/// An input that every rank of the mesh is given alike.
def Dist_Condition : Type<CPred<"$_self == ::mlir::RankedTensorType::get({}, ::mlir::IntegerType::get($_self.getContext(), 1))">,
    "tensor<i1>", "::mlir::RankedTensorType">, BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI1Type())">;

def Dist_LayoutArray : TypedArrayAttrBase<Dist_Layout, "an array of layouts">;

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

/// What all starts have in common.
class Dist_StartOp<string mnemonic, list<Trait> traits = []> : Dist_Op<mnemonic,
    [DeclareOpInterfaceMethods<Dist_Start>, MemoryEffects<[MemWrite]>] # traits> {
  let results = (outs Dist_Pending:$pending);
  let hasVerifier = 1;
}

def Dist_AllReduceStartOp : Dist_StartOp<"all_reduce_start", [AttrSizedOperandSegments]> {
  let summary = "begins to combine tensors of every rank";
  let description = [{
    Element i of the results is element i of the sources of all ranks along an axis of the mesh, combined in the order
    of ranks: floats in f32 (f64 in f64), rounded once. `site` names the collective in manifests, profiles and watchdog
    messages. All ranks start the same collectives in the same order. The sources stay unchanged until the wait.
    Without layouts there is one source, of any size. Where the condition after `when` does not hold, nothing is sent,
    and the results are the sources: a step's last micro-batch sends what all of them have added up. Created by
    distribution passes. Gone after: codegen.

    With the codec `one_bit`, what travels of an element is its sign, and a scale of each layout's space; what that
    leaves out is kept for the next time: error feedback (1-bit Adam, Tang et al. 2102.02888). Each layout has two
    errors: of this rank's values, of all N * S elements of the space, and of the means that this rank owns, of S. The
    next errors are results behind the others, in their places.

    With the codec `sparse_rows`, rows of the source that are not zeros travel with their numbers, or all of it where
    that is less, as all ranks find alike each time: for the gradients of tables.

    With `wire`, elements are rounded to that narrower type, each rank's own, too; sums are in f32 (f64 where f64
    travels) and rounded to it once.

    Constraints: C1 the result is used by exactly one `dist.wait`; C2 the site is not empty; C3 the element type is a
    float or a signless integer of 32 or 64 bits, the same of all sources; C4 layouts have an offset for each source,
    whose tensors have static shapes and do not overlap; C5 without layouts there is one source. Of `one_bit`: C8
    values are f32 or f64, combined by their mean; C9 layouts are whole, their blocks multiples of 8; C10 there are two
    errors for each layout, vectors of the sources' element type, and none otherwise. C11 the condition is an argument of
    the entry, and there is none with `one_bit`. Of `sparse_rows`: C12 there is one source, of static shape, with an axis
    and rows that are not empty; C13 it is combined by sum or mean; C14 a layout is whole. C18 what travels is narrower
    than the elements, both are floats, and none is given with `one_bit`.

    Example: `%p = dist.all_reduce_start sum %0 site "loss" : tensor<?xf32>`
  }];
  let arguments = (ins Dist_Reduction:$reduction, Variadic<AnyRankedTensor>:$sources, OptionalAttr<Dist_Codec>:$codec,
                       Variadic<AnyRankedTensor>:$errors, Optional<Dist_Condition>:$condition, StrAttr:$site,
                       DefaultValuedAttr<StrAttr, "\"data\"">:$axis, OptionalAttr<Dist_LayoutArray>:$layouts,
                       OptionalAttr<TypeAttr>:$wire);
  let assemblyFormat = [{
    $reduction $sources (`wire` $wire^)? (`codec` $codec^)? (`errors` $errors^ `:` type($errors))? (`when` $condition^)?
    (`layouts` $layouts^)? `site` $site attr-dict `:` type($sources)
  }];
}

def Dist_ReduceScatterStartOp : Dist_StartOp<"reduce_scatter_start", [AttrSizedOperandSegments]> {
  let summary = "begins to combine tensors of every rank, of which each rank gets its part";
  let description = [{
    As dist.all_reduce_start, but of each layout's space a rank gets what it owns: a result of S elements. With a range,
    only the range's elements change, and the result has the others of `into`. With `in_place` the results are the
    sources, of which the elements that this rank owns are combined, or none where the condition after `when` does not
    hold. With the codec `sparse_rows`, rows go to all ranks, each of which combines what it owns of them. Gone after:
    codegen.

    Constraints: C1 to C3, C8, C12 to C14, C18 as of dist.all_reduce_start; C19 the codec is `sparse_rows`, and in place;
    C4 layouts have an offset for each source; C6 `into` has a tensor for each layout, or none, as it has with
    `in_place`, without which there is no condition.

    Example: `%p = dist.reduce_scatter_start sum %a, %b layouts [#dist.layout<[0, 64] of 128 by 64>] site "g" :
              tensor<64xf32>, tensor<2xf32>`
  }];
  let arguments = (ins Dist_Reduction:$reduction, Variadic<AnyRankedTensor>:$sources, Variadic<AnyRankedTensor>:$into,
                       Optional<Dist_Condition>:$condition, UnitAttr:$in_place, StrAttr:$site,
                       DefaultValuedAttr<StrAttr, "\"data\"">:$axis, Dist_LayoutArray:$layouts, OptionalAttr<TypeAttr>:$wire,
                       OptionalAttr<Dist_Codec>:$codec);
  let assemblyFormat = [{
    $reduction $sources (`wire` $wire^)? (`codec` $codec^)? (`in_place` $in_place^)? (`into` $into^ `:` type($into))?
    (`when` $condition^)? `layouts` $layouts `site` $site attr-dict `:` type($sources)
  }];
}

def Dist_AllGatherStartOp : Dist_StartOp<"all_gather_start", [AttrSizedOperandSegments]> {
  let summary = "begins to give every rank what each rank owns";
  let description = [{
    A source for each layout: what this rank owns of it, S elements. The results are the tensors at the layouts'
    offsets. Where the condition after `when` does not hold, nothing is sent and nothing is written: whoever reads the
    results does so under a branch of that condition. Gone after: codegen.

    Constraints: C1, C2, C11 as of dist.all_reduce_start; C3 sources have one element type; C7 there is a source for each
    layout.

    Example: `%p = dist.all_gather_start %s layouts [#dist.layout<[0, 64] of 128 by 64>] site "w" : tensor<?xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources, Optional<Dist_Condition>:$condition, StrAttr:$site,
                       DefaultValuedAttr<StrAttr, "\"data\"">:$axis, Dist_LayoutArray:$layouts);
  let assemblyFormat = [{
    $sources (`when` $condition^)? `layouts` $layouts `site` $site attr-dict `:` type($sources)
  }];
}

def Dist_AllToAllStartOp : Dist_StartOp<"all_to_all_start"> {
  let summary = "begins to give every rank what each rank has for it";
  let description = [{
    What a source has of the part of a layout's space that rank i owns goes to rank i: of each layout a rank gets N * S
    elements, of which block i is what rank i had for it. Without layouts there is one source of any size E, whose block
    i is elements i * S to (i + 1) * S, S = ceildiv(E, N); what lies behind its end is zero. Gone after: codegen.

    Constraints: C1, C2 as of dist.all_reduce_start; C3 sources have one element type; C4 layouts have an offset for
    each source; C5 without layouts there is one source; C15 layouts are whole, and the wait states sizes, those of N * S
    elements where that is known.

    Example: `%p = dist.all_to_all_start %x site "experts" : tensor<?x4xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources, StrAttr:$site,
                       DefaultValuedAttr<StrAttr, "\"data\"">:$axis, OptionalAttr<Dist_LayoutArray>:$layouts);
  let assemblyFormat = "$sources (`layouts` $layouts^)? `site` $site attr-dict `:` type($sources)";
}

def Dist_BroadcastStartOp : Dist_StartOp<"broadcast_start"> {
  let summary = "begins to give every rank what one rank has";
  let description = [{
    The results are the sources of rank `root`; -1 is the last rank. They may lie where the sources of other ranks do.
    Gone after: codegen.

    Constraints: C1, C2 as of dist.all_reduce_start; C3 sources have one element type.

    Example: `%p = dist.broadcast_start %x root -1 site "loss" : tensor<f32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources, I64Attr:$root, StrAttr:$site,
                       DefaultValuedAttr<StrAttr, "\"data\"">:$axis);
  let assemblyFormat = "$sources `root` $root `site` $site attr-dict `:` type($sources)";
}

def Dist_SendRecvStartOp : Dist_StartOp<"send_recv_start", [AttrSizedOperandSegments]> {
  let summary = "begins to send to one neighbour what the other one sends here";
  let description = [{
    Rank r sends its sources to rank r + `by`, and the results are those of rank r - `by`. Where there is no such rank
    nothing is sent, and the results are `into`: the first stage of a pipeline has its input there. With `rotate` ranks
    are a ring, in which everyone has both neighbours. All ranks start it, as any collective. Gone after: codegen.

    Constraints: C1, C2 as of dist.all_reduce_start; C3 sources have one element type; C16 `by` is not 0, and -4096 to
    4096; C17 `into` are of the types of the sources, and there are none with `rotate`.

    Example: `%p = dist.send_recv_start %x by 1 into %first : tensor<4xf32> site "forward" : tensor<4xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources, I64Attr:$by, UnitAttr:$rotate,
                       Variadic<AnyRankedTensor>:$into, StrAttr:$site, DefaultValuedAttr<StrAttr, "\"data\"">:$axis);
  let assemblyFormat = [{
    $sources `by` $by (`rotate` $rotate^)? (`into` $into^ `:` type($into))? `site` $site attr-dict `:` type($sources)
  }];
}

def Dist_WaitOp : Dist_Op<"wait", [Dist_StatesSizes, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what a collective gives, once every rank has contributed";
  let description = [{
    Owns the destination buffers, which the planner keeps from the start on. `result_sizes` has a list of sizes for each
    result; without it, and without layouts, the result has those of the source. Several starts may bring ranges of one
    space, each when its tensors are there: their results lie in one place. With `deferred`, a wait for states that
    states are gathered into may be put off beyond the end of the entry, until one of them is used. Gone after: codegen.

    Constraints: C1 the operands come from starts that give results of such element types and as many; C2 several
    operands come from dist.reduce_scatter_start, in the order of the program, with one layout each, of one space, the
    ranges of which do not overlap, and write into the same tensor, or all into none; C3
    what is deferred comes from dist.all_gather_start.

    Example: `%1 = dist.wait %p : tensor<?xf32>`
  }];
  let arguments = (ins Variadic<Dist_Pending>:$pendings, OptionalAttr<ArrayAttr>:$result_sizes, UnitAttr:$deferred);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$pendings (`deferred` $deferred^)? (`sizes` $result_sizes^)? attr-dict `:` type($results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The first one, whose results those of all are.
    StartInterface getStart() { return getPendings().front().getDefiningOp<StartInterface>(); }
    ::llvm::SmallVector<StartInterface> getStarts();
    bool waitsFor(::mlir::Operation *start) {
      return ::llvm::is_contained(start->getResult(0).getUsers(), getOperation());
    }
  }];
}

#endif
