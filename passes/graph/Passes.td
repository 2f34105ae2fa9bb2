// Passes of the graph phase: from what exporters write to blocks that the later phases know.
#ifndef DEEPSTRIDE_PASSES_GRAPH_TD
#define DEEPSTRIDE_PASSES_GRAPH_TD

include "mlir/Pass/PassBase.td"

class GraphPass<string flag, string operation> : Pass<flag, operation> {
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def PinDimensions : GraphPass<"ds-pin-dimensions", "::mlir::ModuleOp"> {
  let summary = "give dimensions a fixed size, or have two be one";
  let description = [{
    Replaces the symbol of a dimension by a number, or by that of another dimension, in the sizes of entry arguments and
    of every op. A name that no entry argument has is an error that lists the legal ones. Reports: dimensions pinned.
  }];
  let options = [ListOption<"dims", "dims", "std::string", "what to pin, as name=value, or what is one, as name=name">];
}

def FoldShapes : GraphPass<"ds-fold-shapes", "::mlir::func::FuncOp"> {
  let summary = "replace shape arithmetic by its symbolic value";
  let description = [{
    Runs the size analysis. A small integer tensor whose elements are known becomes a `ds.constant`, or a `ds.shape` where
    they depend on dimensions; sizes in attributes are written in canonical form; types become as static as the sizes
    allow. Numerically a no-op. Reports: folded, refined.
  }];
}

def FoldConstants : GraphPass<"ds-fold-constants", "::mlir::ModuleOp"> {
  let summary = "move ops over weights and constants into the recipes of weights";
  let description = [{
    An op all of whose operands are weights or constants, and that packaging can evaluate, becomes a `ds.weight` whose
    recipe ends in that op. Ops that would enlarge what is stored (broadcasts, gathers by repeated indices) stay.
    Numerically a no-op: packaging evaluates with the arithmetic of kernels. What states hold changes between calls and is
    never folded. Reports: folded.
  }];
}

def RecomposeLayerNorm : GraphPass<"ds-recompose-layer-norm", "::mlir::func::FuncOp"> {
  let summary = "find layer normalization in chains of primitive ops";
  let description = [{
    (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), with the square as Pow or Mul and the division as Div or as
    Mul with a reciprocal, followed by a scale and a bias or by neither. Differs from the chain by rounding only (a few
    ULP per element). Reports: recomposed.
  }];
}

def RecomposeRmsNorm : GraphPass<"ds-recompose-rms-norm", "::mlir::func::FuncOp"> {
  let summary = "find root-mean-square normalization in chains of primitive ops";
  let description = [{
    x / sqrt(mean(x^2) + epsilon), with the square as Pow or Mul and the division as Div, as Mul with a reciprocal or as
    Mul with a power of -1/2, followed by a scale or by none. Casts of an f16 or bf16 value to a wider float before and
    back after the chain join. Differs from the chain by rounding only. Reports: recomposed.
  }];
}

def RecomposeRotary : GraphPass<"ds-recompose-rotary", "::mlir::func::FuncOp"> {
  let summary = "find rotary position embeddings";
  let description = [{
    x cos + turn(x) sin, where turn swaps the halves of the last axis, or neighbours, and negates one of each pair; or
    the two sides of the pairs rotated one by one and joined, as halves or side by side. Cosines and sines are whatever
    values stand there. Differs from the chain by rounding only. Reports: recomposed.
  }];
}

def RecomposeGelu : GraphPass<"ds-recompose-gelu", "::mlir::func::FuncOp"> {
  let summary = "find GELU in its spellings";
  let description = [{
    x/2 (1 + erf(x/sqrt 2)) with its factors in any order, the tanh flavour with the cube as Pow or Mul, and
    x sigmoid(1.702 x). Constants may differ from the ideal by 1e-3 of their value, since exporters round them. Differs
    from the chain by rounding only. Reports: recomposed.
  }];
}

def RecomposeSoftmax : GraphPass<"ds-recompose-softmax", "::mlir::func::FuncOp"> {
  let summary = "find softmax in chains of exp and sums";
  let description = [{
    exp(x - max(x)) / sum(exp(x - max(x))), with or without the maximum. An additive mask stays the operand's producer.
    Without the maximum the chain overflows where `ds.softmax` does not. Reports: recomposed.
  }];
}

def RecomposeAttention : GraphPass<"ds-recompose-attention", "::mlir::func::FuncOp"> {
  let summary = "find scaled dot-product attention";
  let description = [{
    softmax(scale * Q K^T + mask) V on operands of rank 4, the scale on Q, on K, on both or on the scores, the mask
    additive on either side or absent, K transposed by an op or by the product; a dropout of the softmax becomes the
    attention's. Recognized by structure, never by names. Differs from the chain by rounding only. Reports: recomposed.
  }];
}

def RecognizeLayers : GraphPass<"ds-recognize-layers", "::mlir::func::FuncOp"> {
  let summary = "tell the layers of a transformer";
  let description = [{
    Groups attention, norms and activations into layers by their order and by what reads what, and writes one line for
    each into the report: `layer 0: attention (grouped 4:2, causal, rope), rms norm x2, swiglu`. A layer with a block that
    was nearly recognized says what kept it. Changes nothing but the marks of the passes before, which it removes.
    Reports: layers, recomposed.
  }];
}

def RecomposeLinear : GraphPass<"ds-recompose-linear", "::mlir::ModuleOp"> {
  let summary = "turn products with matrices of parameters into ds.linear";
  let description = [{
    A `ds.matmul` whose right operand is a parameter of rank 2 becomes `ds.linear`: a constant, a weight, a state, or what
    ops that a recipe could hold make of them. A transposed weight is transposed in its recipe, a state by an op of the
    program; a parameter of one axis that is added on either side joins as the bias. Numerically a no-op but for the order
    of the bias sum. Reports: linear, with bias.
  }];
}

def UnflattenRows : GraphPass<"ds-unflatten-rows", "::mlir::func::FuncOp"> {
  let summary = "let products read rows as they lie";
  let description = [{
    A `ds.reshape` before a `ds.linear` that keeps the last axis goes behind it, and on through elementwise ops that
    nothing else reads, with operands that are alike for all rows or were flattened the same way; a reshape that follows
    takes it in. Where it does not keep the last axis, as one that merges the heads of an attention, a reshape behind the
    product that does goes before it instead. Then what stands around a product has its sizes, and can share its kernel.
    What is computed is the same, in the same order. Reports: products.
  }];
}

def ComposeTransposes : GraphPass<"ds-compose-transposes", "::mlir::func::FuncOp"> {
  let summary = "make one transpose of two";
  let description = [{
    A `ds.transpose` that alone reads another one, or a `ds.reshape` of that which only joins neighbouring axes, becomes one
    transpose before the reshape: axes that are joined move together. Kernels of products and attention read a transpose
    in place, where no strides reach axes that were moved, joined and moved again. Reports: composed.
  }];
}

def MergeDuplicates : GraphPass<"ds-merge-duplicates", "::mlir::func::FuncOp"> {
  let summary = "compute once what layers compute each";
  let description = [{
    Ops of a block that have the same operands and attributes become the first of them, which keeps its names; those of
    the others are gone. In contrast to `cse`, names of values do not tell ops apart. Reports: merged.
  }];
}

def SqueezeConvolutions : GraphPass<"ds-squeeze-convolutions", "::mlir::func::FuncOp"> {
  let summary = "drop axes of one pixel from convolutions";
  let description = [{
    Trailing axes of a `ds.conv` that have one pixel, no padding and a filter of one tap are taken off by reshapes, which
    are views; one axis stays. What is computed is the same, in the same order; kernels read long runs of pixels instead
    of single ones. Reports: squeezed.
  }];
}

def UnstackReductions : GraphPass<"ds-unstack-reductions", "::mlir::func::FuncOp"> {
  let summary = "combine the parts of a stack instead of reducing it";
  let description = [{
    A max, min, sum or prod over the axis along which `ds.concat` joins two to eight parts of size 1 becomes elementwise
    ops on the parts, from the first to the last; sums and products only of f32 and f64, whose narrower kin are rounded
    once by the reduction. Other results than before by the order of a sum only. Reports: unstacked.
  }];
}

def WidenFloats : GraphPass<"ds-widen-floats", "::mlir::func::FuncOp"> {
  let summary = "compute in f64";
  let description = [{
    Every float value inside a function becomes f64: inputs and weights are cast where they enter, results where they
    leave, so that signatures and stored weights stay what they are. Makes the oracle that settles disputes about the
    last bits. Reports: widened.
  }];
}

#endif
