// Passes of the optimization phase.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_TD
#define DEEPSTRIDE_PASSES_OPTIMIZATION_TD

include "mlir/Pass/PassBase.td"

def FuseDeep : Pass<"ds-fuse-deep", "::mlir::func::FuncOp"> {
  let summary = "compute products with what follows them, the norm before them, and attention with its heads and caches";
  let description = [{
    A product or convolution becomes the anchor of a `ds.fused` region; the elementwise ops that follow it join as its
    epilogue, with what only they need. Their operands are as large as the anchor's result, or one number, one for each
    column or one for each row. Sums, products and casts of such numbers that only the epilogue reads join, too. Rows of
    an operand that slices show are read where they lie, and what `ds.insert` puts into a part of a tensor in whole rows is
    stored there. A value that is also read elsewhere becomes a result of the region. The norm of what a
    `ds.linear` with packed weights reads becomes its prologue, if it is over the last axis and what follows the product
    does not read it; so do elementwise ops of a few instructions between them, or without a norm, which read rows, numbers
    and what columns share, and `ds.quantize_rows`, if its codes and scales are read in the region only. Codes of 8 bits
    on the way that something else reads, too, are a result. So do elementwise
    ops that make the filters of a `ds.conv` of constants. Another product of the same input that only the epilogue reads, as the
    other half of a gate, joins, too, where both have packed weights of one layout. So do other projections of the same
    attention and input that ds-merge-products has left, where nothing follows either: each is a result of the region.

    Attention takes in the transposes, slices and reshapes of its operands, as long as strides reach what they show, and a
    transpose of its result; gathers of one known index become slices for this. It also normalizes and turns
    (`ds.rotary`) rows of its operands, and appends new keys and values to cached ones (`ds.concat` of tokens, or
    `ds.insert` into a state); what is read elsewhere of these is a result of the region. Joining, inserting, norms and
    rotations on their own read windows in place as well.

    Attention in parts, whose scores are sums of integers, is a region, too: both products, the softmax in f32 and the
    elementwise ops between them, what makes codes before their operands and behind the result, and the windows around
    that. Rows are turned and appended to caches there, too, and heads of keys and values repeated for those of queries
    (`ds.broadcast` between reshapes); values that are shown behind their elementwise ops are a result of the region.

    Where the greatest or the least number of a whole f32 tensor is taken, as for the scale of its codes, the kernel that
    makes the tensor takes those of its rows: attention those of each head's, a product those of each panel's part of a
    row, and a norm by `ds-fuse-rows`. The numbers that are computed of them join the region of the product that reads
    them, if nothing else does; so do the extremes of the norm before a product, of all its rows, unless it is known that
    this takes longer than a launch. Remarks say why an op stays outside. Numerically a no-op. Reports: ops fused, regions.

    Without `products`, as for `--fusion=generic`, products and attention stay alone, and only what reads windows in place
    becomes regions: so do attention and its derivative, whose heads are not moved then, either.
  }];
  let options = [Option<"products", "products", "bool", "true",
                        "whether products, convolutions and attention take in what computes around them">];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def FuseRows : Pass<"ds-fuse-rows", "::mlir::func::FuncOp"> {
  let summary = "compute what a norm or a softmax reads in its kernel";
  let description = [{
    The elementwise ops that make the operand of a `ds.layer_norm`, `ds.rms_norm` or `ds.softmax` over the last axis, as a
    residual or a mask, join its region where they have the operand's sizes and rows are not known to be shorter than 16.
    The operand becomes another result of the region if it is read elsewhere; what leads to it joins only if nothing else
    reads it. The kernel computes a row, and reads it while it is in cache. Elementwise ops that alone read what a norm
    gives, one after the other, join as well, as a sum with a residual: they are applied before that is stored, unless the
    operand is computed and has no place. So do the greatest and the least number of each row that a norm over the last
    axis gives. Numerically a no-op, bit by bit. Reports: ops fused, regions.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def FuseElementwise : Pass<"ds-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "gather elementwise ops and the views between them into fused regions";
  let description = [{
    An elementwise producer joins the region of its consumers when all have the same sizes, so that the value between
    them never reaches memory, or is written once and not read again: a value with other uses becomes a result of the
    region, as long as nothing outside of it stands between two of its ops. Transposes and broadcasts of small operands
    join as reads, and so do slices, with transposes and reshapes around them, of rows that are as long as a vector or
    of few elements: each region reads what they show where it lies. What `ds.insert` puts into a part of a tensor is
    stored there. Numerically a no-op.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def FuseCopies : Pass<"ds-fuse-copies", "::mlir::func::FuncOp"> {
  let summary = "copy what several transposes, slices and reshapes show once";
  let description = [{
    Where something reads them that does not follow windows in place, transposes and slices are copies. A chain of them,
    with reshapes between, becomes one `ds.fused` region and so one copy, as long as strides reach what it shows and no
    link of it is read elsewhere, but in place. Runs behind everything that takes in windows. Numerically a no-op.
    Reports: ops fused, regions.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def ReportFusion : Pass<"ds-report-fusion", "::mlir::ModuleOp"> {
  let summary = "count kernels and the bytes that they move, and say why values between them are in memory";
  let description = [{
    Changes nothing. Counts what becomes kernels of entry functions, every `ds.fused` and every op outside of one, and
    what they read and write (`dialects/ds/Traffic.h`), each kernel for itself: what a kernel leaves in a cache counts
    again, loops count once. Where sizes are not known, as an expression and at sizes of 32. At the stage `after` it says
    of every value that one kernel hands to another why it is in memory. Part of the pipeline under `--report`.
    Reports: kernels before and after fusion, bytes, regions, boundaries and their reasons; remarks say where each is.
  }];
  let options = [Option<"stage", "stage", "std::string", "\"after\"", "before or after fusion">,
                 Option<"products", "products", "bool", "true", "as of ds-fuse-deep: whether products join regions">];
}

def FactorZeroPoints : Pass<"ds-factor-zero-points", "::mlir::ModuleOp"> {
  let summary = "multiply bytes, and subtract what their zero points contribute";
  let description = [{
    A product or convolution in i32 whose operand is a tensor of bytes less one zero point, and whose weight is a
    constant that spans at most 256 integers, multiplies unsigned by signed bytes instead. What the zero point adds is
    its product with the sums of the weight's columns, which packaging computes: it joins the bias where it is a
    constant, and is subtracted where it is known at run time only. Signed bytes and weights beyond a signed byte are
    moved by 128, or what brings them there, once for all products that read them. Padding becomes a `ds.pad` by the zero point. Sums are modulo 2^32.
    Numerically a no-op. Reports: products factored; remarks say why one is not.
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
    some have a bias, the others get one of -0, which changes no float. Products of integers take along what makes numbers
    of their sums, as zero points, scales and a bias do, and what rounds it to codes, where that is alike; the
    attention may be one in parts, whose scores are sums of integers. Remarks say why one stays. Numerically a no-op,
    bit by bit. Reports: products merged.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def MergeReductions : Pass<"ds-merge-reductions", "::mlir::func::FuncOp"> {
  let summary = "read an input once for its reductions over the same axes";
  let description = [{
    Up to four `ds.reduce` ops of one input over the same axes, as the least and the greatest element are, become one
    `ds.fused` region; what stands between them and needs one moves behind it. A log_sum_exp, which reads its input twice,
    stays alone, and so does what a branch or loop that needs the one keeps from the other. The greatest and the least
    number of all of two results of one region, as of the extremes of rows, are taken in one kernel, too. Elementwise ops of
    nothing but what one or more reductions make of a whole tensor join. Numerically a no-op, bit by bit. Reports: reductions
    merged, ops fused.
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
    Extends the recipe of every weight of a scheduled `ds.linear` by `ds.pack`, in panels of the columns and with the
    rows side by side that its schedule names. A weight with other uses keeps its plain range beside the packed one; floats of less than 16 bits are left as they are. A weight that is computed at run time stays; where it is a
    transpose, its product reads what was transposed. Numerically a no-op. Reports: weights packed,
    transposes taken in.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def RoundProducts : Pass<"ds-round-products", "::mlir::ModuleOp"> {
  let summary = "multiply in bf16 or f16 and sum in f32";
  let description = [{
    Every `ds.linear` of f32 with a constant weight rounds both operands to `type`, bf16 or f16, and sums in f32 (`wide`).
    Products that read the same rows share what they are rounded to. With u = 2^-8 for bf16 and 2^-11 for f16, an element
    of the result changes by at most (2 u + u^2) times the sum over K of |x w|, plus what rounding of f32 gives; for
    numbers of f16 below 2^-14, which are rounded to multiples of 2^-24, add 2^-25 (|x| + |w| + 2^-25) for each product.
    f16 ends at 65504: a weight with greater finite elements keeps its product in f32, greater elements of rows become
    infinite. Codes of quantized weights stay what they are, only rows are rounded, which changes an element by at most u
    times the sum over K of |x w|.

    With `computed` operands are rounded that are computed while the program runs, too, as in training: those of every
    product of f32, matmul and convolution included. Where the machine multiplies pairs of bf16 faster than f32, they are
    taken as bf16 (`wide`); else, for f16, and for convolutions of one or two filters a group, they are rounded and widened
    again where they are made, which multiplies the same numbers.

    Fails where no product was rounded, and no attention or convolution before. Reports: products rounded; remarks say why one is not.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "what operands are rounded to: bf16 or f16">,
                 Option<"computed", "computed", "bool", "false", "also round what is computed while the program runs">,
                 Option<"machine", "machine", "std::string", "\"512\"", "bits of a vector, and instructions with their rates">];
}

def RoundFilters : Pass<"ds-round-filters", "::mlir::ModuleOp"> {
  let summary = "multiply images and filters in bf16 or f16 and sum in f32";
  let description = [{
    Every `ds.conv` of f32 with constant filters rounds both operands to `type`, bf16 or f16, and sums in f32: where the
    machine multiplies pairs of bf16 faster than f32, as bf16 (`wide`), else rounded and widened again, which multiplies
    the same numbers. An element of the result changes by at most what `ds-round-products` says of products, K being the
    taps of a filter; `vdpbf16ps` takes subnormal numbers, and gives such results, as 0. One filter of a group, or two, are
    too few to share what is gathered for them, and stay f32, as do filters of which f16 cannot hold a finite element. Reports: convolutions rounded; remarks say why one is
    not.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "what operands are rounded to: bf16 or f16">,
                 Option<"machine", "machine", "std::string", "\"512\"", "bits of a vector, and instructions with their rates">];
}

def RoundAttention : Pass<"ds-round-attention", "::mlir::ModuleOp"> {
  let summary = "multiply queries, keys, weights and values of attention in bf16";
  let description = [{
    Every `ds.attention` of f32 rounds the operands of its two products to bf16 where the machine multiplies those at
    least 1.5 times as fast; scores, softmax and sums stay f32. With u = 2^-8, a score changes by at most (2 u + u^2)
    scale times the sum over D of |q k|, d say, and so a weight of the softmax by a factor of at most e^(2 d); the result by
    at most (2 u + u^2) times the greatest of the values beyond that. One query a head reads keys and values once, and
    stays f32. Reports: attentions rounded; remarks say why one is not.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"machine", "machine", "std::string", "\"512\"",
                        "bits of a vector, then instructions, each with its rate: 512,bfloat_dot=0.5,bfloat_tiles">];
}

def ScheduleKernels : Pass<"ds-schedule-kernels", "::mlir::ModuleOp"> {
  let summary = "choose the micro-kernel and the tile of every product";
  let description = [{
    Every `ds.linear`, `ds.matmul`, `ds.conv` and `ds.attention` whose types a vector kernel multiplies gets a
    `#ds.schedule`; others stay plain loops. Of several kernels for the same types, as `vdpbf16ps` and multiply-adds of
    widened halves, the one with the greatest rate on the machine is taken, which was measured where one was; of several
    tiles the one that takes the least time for the columns that are known, so that 64 columns do not fill two thirds
    of two panels. Sums of bf16 are rounded differently by different kernels, everything else has the same bits.
    Reports: products scheduled, plain loops, and how many ops have which schedule; remarks name the kernel, the tile
    and how much longer others take.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"machine", "machine", "std::string", "\"512\"",
                        "bits of a vector, then instructions, each with its rate: 512,byte_dot,bfloat_dot=0.5">,
                 Option<"rows", "rows", "int64_t", "0", "rows of every tile; 0: the fastest">,
                 Option<"columns", "columns", "int64_t", "0", "columns of every tile of f32 sums; 0: the fastest">];
}

def RecoverCodes : Pass<"ds-recover-codes", "::mlir::ModuleOp"> {
  let summary = "keep the weights that a file stores in 8 or 4 bits as codes";
  let description = [{
    Where the weight of a `ds.linear` of f32 is, up to reshapes, transposes and a cut, (codes - zero points) * scales with
    codes of at most 8 bits and one scale for each column or for each group along K, the product reads the codes
    themselves, as those of `ds-quantize-weights`: MatMulNBits, DequantizeLinear and casts times scales come so. With
    groups the result has the same bits; a scale of a whole column multiplies the sum instead of every weight. A weight
    with groups whose scales are too far apart for kernels to sum in f32 stays floats. Reports: weights recovered; remarks
    say why a weight stays floats.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def FoldRequantization : Pass<"ds-fold-requantization", "::mlir::func::FuncOp"> {
  let summary = "leave codes as they are where they would become numbers and the same codes again";
  let description = [{
    (codes - zero point) * scale that is quantized to the same type with the same scale and zero point, one of each, gives
    the codes: exactly, where the scale is a normal number of f32 and 255 times it is finite. Reshapes and transposes
    between the two move the codes. What else reads the numbers still does. Queries of an attention stay numbers where a
    cached key is a product of the same input, so that the projections are merged. Reports: tensors that stay codes.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def MultiplyCodes : Pass<"ds-multiply-codes", "::mlir::ModuleOp"> {
  let summary = "multiply the integers that both operands of a product stand for";
  let description = [{
    A `ds.linear` with a weight of i8 codes and one scale, and zero point, for each column, or a convolution with filters
    of codes and one scale for each, whose other operand is (bytes - zero point) * scale, multiplies the integers; both
    scales and the bias follow. So does a `ds.matmul` of two such operands of run time. The sums are exact: where they may
    pass 32 bits, beyond K = 2^16, or 2^15 where both sides are differences, or where K is not known, products stay as
    they are. The result is rounded less often than before.
    Reports: products of integers.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def QuantizeActivations : Pass<"ds-quantize-activations", "::mlir::ModuleOp"> {
  let summary = "multiply rows in 8 bits by weights in 8 bits";
  let description = [{
    Every `ds.linear` whose weight is i8 with one scale for each column reads its rows as bytes (`ds.quantize_rows`),
    which products that read the same rows share. An element of the result changes by at most the row's scale / 2 times
    the sum of |w| over K, w what the codes of the weight stand for, plus what rounding of f32 gives. Products that stay
    as they are have groups, zero points or another type. Reports: products in bytes; remarks say why one is not.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def ObserveProducts : Pass<"ds-observe-products", "::mlir::ModuleOp"> {
  let summary = "sum what the rounding of weights is judged by, while the program runs";
  let description = [{
    For every weight that `ds-quantize-weights` would quantize, the program sums x x^T over the rows x that its products
    outside of branches and loops multiply by it: in f32 over the rows of a call, then in f64, in a state that products
    of the same rows share. Results of entries go. Weights are taken in their order from the `first` on, as many as have
    sums of `bytes` in all, and at least one. The attribute `ds.observed` of the module has the states of each weight,
    `ds.unobserved` the number of the first that is left. Reports: weights observed.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"keep", "keep", "std::string", "\"\"", "as of ds-quantize-weights">,
                 Option<"first", "first", "int64_t", "0", "number of the first weight to observe">,
                 Option<"bytes", "bytes", "int64_t", "536870912", "most that sums may take, unless one does">];
}

def QuantizeTables : Pass<"ds-quantize-tables", "::mlir::ModuleOp"> {
  let summary = "store the tables of embeddings in 8 bits";
  let description = [{
    Every `ds.gather` of rows of a constant matrix of f32 gathers codes of 8 bits instead, with a scale for each row, or for
    each `group` elements of it where that divides a row, as `ds.quantize_weight` defines them for the columns of the
    transposed table: symmetric, to nearest. An element of the result changes by at most its scale / 2, plus one rounding.
    A product with the same table has codes of its own.
    A table is kept where `keep` matches its name or its gather's, where it is not finite, and where it would not become
    smaller. Remarks say so, and give size and error. Reports: tables quantized, bytes before and after, errors.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [
    Option<"group", "group", "int64_t", "0", "elements of a row that share a scale; 0: all of them">,
    Option<"keep", "keep", "std::string", "\"\"", "regular expression of names of tables, or of gathers, to leave">,
  ];
}

def QuantizeFilters : Pass<"ds-quantize-filters", "::mlir::ModuleOp"> {
  let summary = "store the filters of convolutions in 8 bits";
  let description = [{
    The constant filters of every `ds.conv` of f32 become codes of 8 bits and f32 scales, one for each filter, or for every
    gcd(`group`, elements of a filter) elements of it where that is at least 16, as `ds.quantize_weight` defines them; with the
    asymmetric scheme there are zero points, too. Filters are (codes - zero points) * scales, which the kernel of the
    convolution computes. An element of the result changes by at most the sum of |x| scale / 2 over its window, plus what
    rounding of f32 gives. Filters are kept where `keep` matches their name or their convolution's, where they are no f32
    constant or not finite, where a group has at most two, and where they would not become smaller. Remarks say so, and
    give sizes and errors. Reports: filters quantized, convolutions kept, bytes before and after, errors.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [
    Option<"group", "group", "int64_t", "0", "elements of a filter that share a scale; 0: all of them">,
    Option<"scheme", "scheme", "std::string", "\"symmetric\"", "symmetric or asymmetric">,
    Option<"keep", "keep", "std::string", "\"\"", "regular expression of names of filters, or of convolutions, to leave">,
  ];
}

def QuantizeWeights : Pass<"ds-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "store the weights of ds.linear in 8 or 4 bits";
  let description = [{
    The weight of every `ds.linear` of f32 whose weight is a constant becomes integer codes and f32 scales, one for each
    column, or for every `group` elements along K of a column; with the asymmetric scheme there are zero points, too
    (`ds.quantize_weight` has the formulas). Activations stay f32, and kernels turn codes into f32 in registers. An element
    of the result changes by at most the sum over K of |x| scale / 2, plus what rounding of f32 gives. A weight is kept
    where `keep` matches the name of its recipe or of its product's node, where it is no f32 constant or not finite, where
    it would not become smaller, and where the scales of its groups are too far apart for kernels to sum in f32
    (`areScalesApart`, dialects/ds/HostQuantization.h). Where the attribute `ds.triangles` of the module names a recipe for
    a weight, its codes are rounded against that. With `mixed` some weights are stored one step finer: instead of 4 bits in 8, with one scale for a column
    where that loses at most 1.8 times what the same groups lose, else with these; instead of 8 bits in columns or groups
    of more than 32 in groups of 32; instead of 8 bits in groups of at most 32, asked for by `group`, in f16. Where `floats` is bf16 they are left as they are, for ds-round-products.
    Those are weights that give an attention its values and nothing else; those of the last quarter of products, and of
    products with the same inputs; and, where 8 bits stay 8, those of products with the same inputs as values have,
    which can be joined then, and those whose relative error is more than 1.8 times that of groups of 32. A weight whose
    relative error is below 1e-6 is not among them, nor is one that f16 would not serve better: where it loses less as
    codes, an element is beyond f16, or a column loses more than 2^-11 of its norm, being below f16.
    Fails where no weight is quantized, and no table was before. Remarks give the size and the error of every weight, or why it is kept.
    Reports: weights quantized, products with codes and with floats of 16 bits, products kept, bytes before and after, with `mixed` how many
    weights are in finer steps, and the ten weights with the greatest relative error.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
  let options = [Option<"bits", "bits", "int64_t", "8", "bits of a code: 8 or 4">,
                 Option<"group", "group", "int64_t", "0", "elements along K that share a scale; 0: all">,
                 Option<"scheme", "scheme", "std::string", "\"symmetric\"", "symmetric or asymmetric">,
                 Option<"mixed", "mixed", "bool", "false", "store weights that results depend on most in finer steps">,
                 Option<"floats", "floats", "std::string", "\"f16\"", "what is finer than short groups: f16, or bf16 where ds-round-products comes behind">,
                 Option<"keep", "keep", "std::string", "\"\"", "regular expression of names of weights, or of products, to leave">];
}

#endif
