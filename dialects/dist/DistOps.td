// The dist dialect: collectives between the ranks of a program, in start/wait form.
#ifndef DEEPSTRIDE_DIST_OPS_TD
#define DEEPSTRIDE_DIST_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_KeepsSizes : NativeOpTrait<"KeepsSizes"> {
  let cppNamespace = "::deepstride::ds";
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

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_AllReduceStartOp : Dist_Op<"all_reduce_start", [Dist_KeepsSizes, MemoryEffects<[MemWrite]>]> {
  let summary = "begins to combine one tensor of every rank";
  let description = [{
    `site` names the collective in manifests, profiles and watchdog messages. All ranks start the same collectives in
    the same order. The source stays unchanged until the wait. Created by distribution passes. Gone after: codegen.

    Constraints: C1 the result is used by exactly one `dist.wait`; C2 the site is not empty; C3 the element type is a
    float or a signless integer of 32 or 64 bits.

    Example: `%p = dist.all_reduce_start sum %0 site "loss" : tensor<?xf32>`
  }];
  let arguments = (ins Dist_Reduction:$reduction, AnyRankedTensor:$source, StrAttr:$site);
  let results = (outs Dist_Pending:$pending);
  let assemblyFormat = "$reduction $source `site` $site attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Dist_WaitOp : Dist_Op<"wait", [Dist_KeepsSizes, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the combined tensor, once every rank has contributed";
  let description = [{
    Owns the destination buffer, which the planner keeps from the start on. Gone after: codegen.

    Constraints: C1 the operand comes from a start of the same tensor type.

    Example: `%1 = dist.wait %p : tensor<?xf32>`
  }];
  let arguments = (ins Dist_Pending:$pending);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$pending attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
