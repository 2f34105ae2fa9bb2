// Passes of the optimization phase.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_TD
#define DEEPSTRIDE_PASSES_OPTIMIZATION_TD

include "mlir/Pass/PassBase.td"

def FuseDeep : Pass<"ds-fuse-deep", "::mlir::func::FuncOp"> {
  let summary = "compute products with what follows them, the norm before them, and the heads of attention where they lie";
  let description = [{
    A product or convolution becomes the anchor of a `ds.fused` region; the elementwise ops that follow it join as its
    epilogue, with what only they need. Their operands are as large as the anchor's result, or one number, one for each
    column or one for each row. A value that is also read elsewhere becomes a result of the region. The f32 norm of what a
    `ds.linear` with packed weights reads becomes its prologue, if it is over the last axis and what follows the product
    does not read it. Attention takes in the transposes, slices and reshapes of its operands, as long as strides reach
    what they show, and a transpose of its result; gathers of one known index become slices for this. Several of these
    before anything else become one copy. Remarks say why an op stays outside. Numerically a no-op. Reports: ops fused,
    regions.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

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

def MergeProducts : Pass<"ds-merge-products", "::mlir::ModuleOp"> {
  let summary = "compute the projections of an attention that share an input as one product";
  let description = [{
    The `ds.linear` ops that make query, key and value of one attention become one where they have the same input, and
    weights and biases that are constants of the package: their columns lie side by side, in a recipe for each operand.
    What they gave are slices of its result, which attention reads in place. Codes of quantized weights are joined with
    their scales and zero points. A product stays where something needs its result in memory as it is, where its weight
    has other uses, which would store it twice, and where types, groups or what stands beside codes differ. Where only
    some have a bias, the others get one of -0, which changes no float. Remarks say why one stays. Numerically a no-op,
    bit by bit. Reports: products merged.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def NarrowIntegerProducts : Pass<"ds-narrow-integer-products", "::mlir::ModuleOp"> {
  let summary = "multiply 32-bit integers that hold no more than 16 bits as 16 bits";
  let description = [{
    Where the operands of an i32 product or convolution are provably within 16 bits, as differences of 8-bit numbers and
    their zero points are, the left one (the filters of a convolution) becomes i16, a weight on the right i8, ui8 or i16,
    whichever is enough, and another operand i16. Sums stay i32, modulo 2^32. Numerically a no-op. Reports: products
    narrowed; remarks say why one is not.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def PackWeights : Pass<"ds-pack-weights", "::mlir::ModuleOp"> {
  let summary = "store the weights of ds.linear in the panels that its micro-kernel streams";
  let description = [{
    Extends the recipe of every weight of `ds.linear` by `ds.pack`, in panels of as many vectors as those of f32, and in
    pairs of rows where 16-bit integers are multiplied. A weight with other uses keeps its plain range beside the packed
    one; floats of less than 16 bits are left as they are. A weight that is computed at run time stays; where it is a
    transpose, its product reads what was transposed. Numerically a no-op. Reports: weights packed,
    transposes taken in.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"panel", "panel", "int64_t", "48", "columns of a panel of f32">];
}

def QuantizeWeights : Pass<"ds-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "store the weights of ds.linear in 8 or 4 bits";
  let description = [{
    The weight of every `ds.linear` of f32 whose weight is a constant becomes integer codes and f32 scales, one for each
    column, or for every `group` elements along K of a column; with the asymmetric scheme there are zero points, too
    (`ds.quantize_weight` has the formulas). Activations stay f32, and kernels turn codes into f32 in registers. An element
    of the result changes by at most the sum over K of |x| scale / 2, plus what rounding of f32 gives. A weight is kept
    where `keep` matches the name of its recipe or of its product's node, where it is no f32 constant or not finite, and where it would not become
    smaller. Fails where no weight is quantized. Remarks give the size and the error of every weight, or why it is kept.
    Reports: weights quantized, products with codes, products kept, bytes before and after, and the ten weights with the
    greatest relative error.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"bits", "bits", "int64_t", "8", "bits of a code: 8 or 4">,
                 Option<"group", "group", "int64_t", "0", "elements along K that share a scale; 0: all">,
                 Option<"scheme", "scheme", "std::string", "\"symmetric\"", "symmetric or asymmetric">,
                 Option<"keep", "keep", "std::string", "\"\"", "regular expression of names of weights, or of products, to leave">];
}

#endif
