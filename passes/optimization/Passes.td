// Passes of the optimization phase.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_TD
#define DEEPSTRIDE_PASSES_OPTIMIZATION_TD

include "mlir/Pass/PassBase.td"

def FuseElementwise : Pass<"ds-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "gather elementwise ops and the views between them into fused regions";
  let description = [{
    An elementwise producer joins the region of its consumers when all have the same sizes, so that the value between
    them never reaches memory, or is written once and not read again: a value with other uses becomes a result of the
    region, as long as nothing outside of it stands between two of its ops. Transposes and broadcasts of small operands
    join as reads. Numerically a no-op.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def PackWeights : Pass<"ds-pack-weights", "::mlir::ModuleOp"> {
  let summary = "store the weights of ds.linear in the panels that its micro-kernel streams";
  let description = [{
    Extends the recipe of every f32 weight that only `ds.linear` ops use by `ds.pack`. A weight with other uses keeps its
    plain range beside the packed one, one of another type is left as it is. A weight that is computed at run time stays;
    where it is a transpose, its product reads what was transposed. Numerically a no-op. Reports: weights packed,
    transposes taken in.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"panel", "panel", "int64_t", "48", "columns of a panel">];
}

#endif
