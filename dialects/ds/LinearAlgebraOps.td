// Matrix products, convolutions and attention. Created by the importer and by recomposition, gone after codegen.

def DS_MatmulOp : DS_TensorOp<"matmul", [DeclareOpInterfaceMethods<DS_Anchor>]> {
  let summary = "matrix product with broadcast batch axes";
  let description = [{
    NumPy's matmul on operands of rank two and more; the flags transpose the last two axes. Products of integers of 8 or
    16 bits, which may differ in type, are summed in i32. With `wide` the operands are bf16, and what they are summed in
    and the result has is f32 (`ds-round-products`). Gone after: codegen.

    Constraints: C1 both ranks are at least 2; C2 one element type, or integers of 8 or 16 bits; C3 the inner sizes
    agree; C4 the batch axes broadcast; C5 `wide` stands for operands of bf16.

    Example: `%2 = ds.matmul %0, %1 transpose [false, true] : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>`
  }];
  let arguments = (ins DS_Tensor:$lhs, DS_Tensor:$rhs, DenseBoolArrayAttr:$transpose, UnitAttr:$wide);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `transpose` $transpose attr-dict `:` functional-type(operands, results)";
}

def DS_LinearOp : DS_TensorOp<"linear", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<DS_Anchor>]> {
  let summary = "a product with a parameter, plus bias";
  let description = [{
    x [..., K] times weight [K, N] plus bias [N]; integers of 8 or 16 bits are summed in i32. With `panel` the weight
    operand is packed as by `ds.pack` with `panel` and `interleave`, and `columns` is N; `depth` is K where the type of x
    does not say it and panels are filled up. With `transposed` it is [N, K].
    Created by `ds-recompose-linear`; `ds-pack-weights` packs and takes in transposes. Gone after: codegen.

    With `scales` the weight holds codes of 8 or 4 bits that stand for floats: (code - zero point) * scale. Scales and
    zero points are [G, N]: one each for every `group` steps of K, or, without `group`, one for all of K. With groups
    every weight is rounded to the operand's type before it is multiplied; without, the sum is multiplied by the scale,
    once. With `panel` they are packed by `ds.pack` with the same panel, not interleaved, and codes of 4 bits lie in
    pairs along K, two in a byte. Created by `ds-quantize-weights`.

    With `wide` the operands are bf16, or bf16 and codes, or f32 and a weight of f16, and what they are summed in, and the
    scales, the bias and the result have, is f32. Created by `ds-round-products` and `ds-quantize-weights`.

    Constraints: C1 one element type, integers of 8 or 16 bits, or a float and codes of i8 or i4; C2 the inner sizes
    agree; C3 the bias is [N], in the type of the result; C4 the weight has rank 2, or 3 with the given panel, which is
    not transposed; C5 `interleave` is positive, and 1 without a panel; C6 scales are [G, N], packed as the weight is, in
    the type of the result; C7 zero points are i8 and have the sizes of the scales, which they need; C8 `group` is a
    positive, even number, and stands beside scales; C9 `wide` stands for operands of bf16, of bf16 and codes, or of f32
    and f16.

    Example: `%3 = ds.linear %0, %1, %2 : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_Tensor:$weight, Optional<DS_Tensor>:$bias, Optional<DS_Tensor>:$scales,
                       Optional<DS_Tensor>:$zero_points, OptionalAttr<I64Attr>:$panel,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$interleave, OptionalAttr<I64Attr>:$columns,
                       OptionalAttr<I64Attr>:$depth, UnitAttr:$transposed, OptionalAttr<I64Attr>:$group, UnitAttr:$wide);
  let results = (outs DS_Tensor:$result);
  let declarations = [{
    /// Whether the packed weight holds codes of 4 bits, two in a byte.
    bool holdsHalfBytes();
  }];
  let assemblyFormat = [{$input `,` $weight (`,` $bias^)? (`scales` $scales^)? (`zero_points` $zero_points^)?
                         attr-dict `:` functional-type(operands, results)}];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input, "::mlir::Value":$weight,
                                 "::mlir::Value":$bias, "::mlir::IntegerAttr":$panel, "::mlir::IntegerAttr":$interleave,
                                 "::mlir::IntegerAttr":$columns, "::mlir::UnitAttr":$transposed), [{
    build($_builder, $_state, type, input, weight, bias, ::mlir::Value(), ::mlir::Value(), panel, interleave, columns,
          ::mlir::IntegerAttr(), transposed, ::mlir::IntegerAttr(), ::mlir::UnitAttr());
  }]>];
}

def DS_QuantizeWeightOp : DS_TensorOp<"quantize_weight"> {
  let summary = "one part of a weight in 8 or 4 bits";
  let description = [{
    A weight [K, N] becomes codes q [K, N] of i8 or i4, scales s and, `asymmetric`, zero points z, both [G, N], by groups
    of `group` rows of a column, the last of which may be shorter; a group of 0 is the whole column. Codes lie from l to h,
    which are -128 and 127 or -8 and 7; low and high are the least and the greatest of 0 and the group's weights, and no
    weight is more than half a scale outside of what codes reach. Symmetric: q = round(w / s), where s is, of three, the
    first with the least sum of squares of what the group's weights lose: the least, max(-low / (0.5 - l), high / (h + 0.5))
    or, where that is less, -max(high / (0.5 - l), -low / (h + 0.5)); the one that makes the greatest magnitude l,
    max(-low / -l, high / (h + 0.5)) where -low >= high and -max(high / -l, -low / (h + 0.5)) elsewhere; the one that makes
    it h, max(-low, high) / h. Weights that some model has quantized to as many bits so stay what they are. Asymmetric:
    s = (high - low) / (h - l), z = round(l - low / s), q = round(w / s) + z. Codes and z are cut to what the bits hold.
    Scales are rounded to f32, quotients are not; round is to nearest, ties to even. A group of zeros has the scale 0 and
    codes equal to z = 0. Every weight is at most |s| / 2 away from (q - z) s, up to the rounding of f32. Only inside
    recipes; packaging refuses weights that are not finite.

    `against` a lower triangle L [K, K] with a positive diagonal, which only codes take, rounding keeps |L (w - (q - z) s)|
    small instead, in every column, one element of it after the other: for k = 0, 1, ... what is rounded is not w_k but
    w_k + (sum over j < k of L_kj e_j) / L_kk, cut to what lies within 2 |s| of w_k, where e_j is w_j less what q_j stands
    for. Sums are taken in f64 in this order. So a weight is at most 2.5 |s| away from (q - z) s. This is GPTQ's rounding
    (Frantar et al., 2023), where L^T L is the sum of x x^T over the rows x that the weight is multiplied by.

    Constraints: C1 the operand has rank 2 and is f32; C2 `bits` is 4 or 8; C3 the group is not negative; C4 only the
    asymmetric scheme has zero points; C5 the triangle is f32 and has K rows and columns, and stands beside codes.

    Example: `%1 = ds.quantize_weight codes %0 bits 8 group 32 : (tensor<64x8xf32>) -> tensor<64x8xi8>`
  }];
  let arguments = (ins DS_QuantizedPart:$part, DS_Tensor:$input, Optional<DS_Tensor>:$triangle, I64Attr:$bits,
                       I64Attr:$group, UnitAttr:$asymmetric);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$part $input (`against` $triangle^)? `bits` $bits `group` $group (`asymmetric` $asymmetric^)?
                         attr-dict `:` functional-type(operands, results)}];
}

def DS_PackOp : DS_TensorOp<"pack"> {
  let summary = "a matrix in column panels";
  let description = [{
    [K, N] becomes [ceil(N / panel), ceil(K / i), panel i], zero padded, where i is `interleave`: rows of a panel in
    groups of i, whose elements of one column lie side by side. What a GEMM micro-kernel streams. Only inside recipes.
    Integers of 4 bits are packed in pairs, two in a byte of an i8: [ceil(N / panel), ceil(K / i), panel i / 2], where the
    low half is the first of the two.

    Constraints: C1 the operand has rank 2; C2 panel and interleave are positive; C3 integers of 4 bits are interleaved
    by an even number.

    Example: `%1 = ds.pack %0 panel 16 : (tensor<4x20xf32>) -> tensor<2x4x16xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, I64Attr:$panel, DefaultValuedOptionalAttr<I64Attr, "1">:$interleave);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `panel` $panel (`interleave` $interleave^)? attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_AttentionOp : DS_TensorOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "scaled dot-product attention";
  let description = [{
    softmax(steps(cap(scale * Q K^T))) V per head: query [B, H, S, D], key [B, G, T, D], value [B, G, T, E]; H is a
    multiple of G, and head h of the query meets head h / (H / G) of key and value. With `softcap` c, cap(x) is
    c tanh(x / c), else x. With `guard` a row whose softmax is not a number, as that of a row that is masked as a whole
    with minus infinity, gives zeros.

    The steps change the scores s in the order in which they are written. Masks broadcast to [B, H, S, T]:

    - `add %m`: s + m; `multiply %m`: s m;
    - `keep %c else low`: s where c holds, else low; `hide %c else low`: low where c holds, else s. What is hidden may
      be anything, NaN included;
    - `keep_add %c else low`: s where c holds, else s + low; `hide_add %c else low`: s + low where c holds, else s;
    - `window else low`: s inside the window, else low; `window_add else low`: s + low outside; `window_mask %m else
      low`: s + m inside, s + low outside.

    The window: row i stands at place p = i + `past`, or at its element of `positions`, which broadcasts to
    [B, H, S, 1]. It holds the places from p - `left` to p + `right`; a bound that is not given is open. A causal
    attention has `right` 0, a sliding one `left`, too. No mask is read for it, and what it hides for good is not
    computed. `capacity` is the number of keys up to which the model states the window, where a table of it was stored.

    With `rounds` the operands of both products are rounded to that type, the weights of the softmax before they are
    divided by their sum, which has all of their digits, or, with `dropout`, as that leaves them; sums are those of the
    element type (`ds-round-attention`).

    With `dropout` p the weights of the softmax are those of `ds.dropout` of the ratio p and this `stream`: element i of
    [B, H, S, T] is 0 or its own over 1 - p. Nothing of it is stored, the derivative draws the same places again. In the
    place of the stream, `ds-build-training-step` gives attentions that train what places are drawn by as operands,
    `random` seed, step, micro-batch and stream, so that equal layers share a kernel; from those that evaluate it takes
    the dropout. One with a stream still is not lowered.

    Created by `ds-recompose-attention` and the importer. Gone after: codegen.

    Constraints: C1 query, key and value have rank 4 and one float type; C2 B, T and D agree; C3 masks broadcast, have
    at most rank 4 and the query's element type, or f32 beside a float of 16 bits, and i1 in steps that keep or hide; C4 H is
    a multiple of G; C5 the softcap is positive; C6 there is one mask for each step that takes one, and one `low` for
    each step; C7 `left`, `right`, `past` and `positions` stand beside steps by the window, which have a bound, and not
    both of the latter; C8 positions are i64 and broadcast to [B, H, S, 1]; C9 T is at most `capacity`;
    C10 `rounds` is bf16, beside an element type of f32; C11 `dropout` is at least 0 and below 1, and stands beside either
    `stream` or `random`, which are four i64 without axes.

    Example: `%3 = ds.attention %q, %k, %v [add %m, window else 0xFFF0000000000000] past [3] right 0 scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x?xf32>) -> tensor<?x12x?x64xf32>`
  }];
  let arguments = (ins DS_Tensor:$query, DS_Tensor:$key, DS_Tensor:$value, Variadic<DS_Tensor>:$masks,
                       Optional<DS_Tensor>:$positions, Variadic<DS_Tensor>:$random,
                       TypedArrayAttrBase<DS_ScoreStepKind, "steps of scores">:$steps, DenseF64ArrayAttr:$lows,
                       DS_OptionalSizeArray:$past, OptionalAttr<I64Attr>:$left,
                       OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$capacity, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$softcap, UnitAttr:$guard, OptionalAttr<TypeAttr>:$rounds,
                       OptionalAttr<F64Attr>:$dropout, OptionalAttr<I64Attr>:$stream);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$query `,` $key `,` $value custom<ScoreSteps>($masks, $steps, $lows)
                         (`positions` $positions^)? (`past` $past^)? (`left` $left^)? (`right` $right^)?
                         (`capacity` $capacity^)? `scale` $scale (`softcap` $softcap^)? (`guard` $guard^)?
                         (`rounds` $rounds^)? (`dropout` $dropout^)? (`stream` $stream^)? (`random` $random^)?
                         attr-dict `:` functional-type(operands, results)}];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$query, "::mlir::Value":$key,
                                 "::mlir::Value":$value, "::llvm::ArrayRef<ScoreStep>":$steps,
                                 "const ScoreWindow &":$window, "double":$scale, "double":$softcap, "bool":$guard)>];
  let declarations = [{
    /// The steps with their masks, in order.
    ::llvm::SmallVector<ScoreStep> getScoreSteps();
    /// The window of the steps by it; false where there are none.
    ScoreWindow getWindow();
  }];
}

def DS_AttentionGradientOp : DS_TensorOp<"attention_gradient", [AttrSizedOperandSegments]> {
  let summary = "derivatives of an attention";
  let description = [{
    What the derivative of an attention is with respect to its query [B, H, S, D], key [B, G, T, D] and value
    [B, G, T, E], from that with respect to its result, `gradient` [B, H, S, E]. Steps, window, scale, softcap and guard
    are those of the attention (`ds.attention`). With the weights P of its softmax, which are computed again, g the
    gradient and sums over the columns of a row:

    - of the value: P^T g, and with W = g V^T
    - of the scores: P (W - sum(P W)), undone step by step: a mask that is added changes nothing, what is hidden gets 0;
      R is what is left for Q K^T, times the scale;
    - of the query: R K, of the key: R^T Q.

    With a `dropout` as the attention's, what it makes of P stands for P in P^T g, and what it makes
    of W for W everywhere.

    What belongs to the heads that share a key is summed over them. A row that `guard` makes zeros has P = 0. Nothing
    of B H S T elements is in memory: a kernel holds a block of rows of one head. Masks get no derivative here; where one
    is asked for, scores are written out as ops. Created by `ds-differentiate`. Gone after: codegen.

    Constraints: C1 query, key, value and gradient have rank 4 and one float type, f32 or f64; C2 B, T and D agree, and
    the gradient is as the attention's result; C3 to C9, and C11, as of `ds.attention`.

    Example: `%5:3 = ds.attention_gradient %q, %k, %v, %g [add %m] scale 0.125 : (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x?xf32>) -> (tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>, tensor<?x12x?x64xf32>)`
  }];
  let arguments = (ins DS_Tensor:$query, DS_Tensor:$key, DS_Tensor:$value, DS_Tensor:$gradient, Variadic<DS_Tensor>:$masks,
                       Optional<DS_Tensor>:$positions, Variadic<DS_Tensor>:$random,
                       TypedArrayAttrBase<DS_ScoreStepKind, "steps of scores">:$steps, DenseF64ArrayAttr:$lows,
                       DS_OptionalSizeArray:$past, OptionalAttr<I64Attr>:$left,
                       OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$capacity, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$softcap, UnitAttr:$guard, OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<I64Attr>:$stream);
  let results = (outs DS_Tensor:$ofQuery, DS_Tensor:$ofKey, DS_Tensor:$ofValue);
  let assemblyFormat = [{$query `,` $key `,` $value `,` $gradient custom<ScoreSteps>($masks, $steps, $lows)
                         (`positions` $positions^)? (`past` $past^)? (`left` $left^)? (`right` $right^)?
                         (`capacity` $capacity^)? `scale` $scale (`softcap` $softcap^)? (`guard` $guard^)?
                         (`dropout` $dropout^)? (`stream` $stream^)? (`random` $random^)?
                         attr-dict `:` functional-type(operands, results)}];
  let declarations = [{
    /// The steps with their masks, in order.
    ::llvm::SmallVector<ScoreStep> getScoreSteps();
    /// The window of the steps by it; false where there are none.
    ScoreWindow getWindow();
  }];
}

def DS_RotaryOp : DS_TensorOp<"rotary"> {
  let summary = "rotary position embedding";
  let description = [{
    Rotates pairs of elements of the last axis: with (a, b) the pair, a cos - b sin and b cos + a sin. Pairs lie half an
    axis apart, or side by side where `interleaved`. Cosines and sines broadcast over the other axes; along the last
    one there is one for each element, or one for each pair. With `first` n the first n elements of the last axis are
    rotated, as if they were all, and those behind them stay as they are. Created by `ds-recompose-rotary`. Gone after:
    codegen.

    Constraints: C1 the element type is one float type; C2 the last size is static, and what is rotated of it even and
    at most that size; C3 cosines and sines end in as many elements as are rotated, or both in half of that; C4 they
    broadcast to the operand.

    Example: `%3 = ds.rotary %0, %cos, %sin interleaved false : (tensor<?x12x?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x12x?x64xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_Tensor:$cosines, DS_Tensor:$sines, BoolAttr:$interleaved,
                       OptionalAttr<I64Attr>:$first);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `,` $cosines `,` $sines `interleaved` $interleaved (`first` $first^)? attr-dict `:`
                         functional-type(operands, results)}];
}

def DS_LinearAttentionOp : DS_TensorOp<"linear_attention"> {
  let summary = "attention by a matrix state that every step decays and updates";
  let description = [{
    Per batch entry and key head, over the steps t: S = decay_t S, by rows; v = beta_t (value_t - S^T key_t) with
    `delta`, else value_t; S = S + key_t v^T; then every query head of the group yields scale S^T query_t. Query
    [B, H, T, D], key and decay [B, G, T, D], value [B, G, T, E], beta [B, G, T], state [B, G, D, E]; H is a multiple of
    G. Yields [B, H, T, E] and the last state. Created by the importer (LinearAttention). Gone after: codegen.

    Constraints: C1 the ranks are as above and all element types one float; C2 B, G, T, D and E agree; C3 H is a
    multiple of G.

    Example: `%o, %n = ds.linear_attention %q, %k, %v, %g, %b, %s scale 0.5 delta false : (tensor<1x4x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?xf32>, tensor<1x2x8x16xf32>) -> (tensor<1x4x?x16xf32>, tensor<1x2x8x16xf32>)`
  }];
  let arguments = (ins DS_Tensor:$query, DS_Tensor:$key, DS_Tensor:$value, DS_Tensor:$decay, DS_Tensor:$beta,
                       DS_Tensor:$state, F64Attr:$scale, BoolAttr:$delta);
  let results = (outs DS_Tensor:$result, DS_Tensor:$last_state);
  let assemblyFormat = [{$query `,` $key `,` $value `,` $decay `,` $beta `,` $state `scale` $scale `delta` $delta
                         attr-dict `:` functional-type(operands, results)}];
}

def DS_ConvOp : DS_TensorOp<"conv", [DeclareOpInterfaceMethods<DS_Anchor>]> {
  let summary = "convolution over the spatial axes of [batch, channel, ...]";
  let description = [{
    Weight [M, C / groups, kernel...]; `pads` lists the beginnings of all axes, then the ends. Integers of 8 or 16 bits
    are summed in i32. With `wide` the operands are bf16, and what they are summed in, and the result, f32. Gone after:
    codegen.

    Constraints: C1 rank at least 3, equal for operand and weight; C2 one element type, or integers of 8 or 16 bits; C3 strides, dilations and pads
    match the spatial rank and are legal; C4 channels are groups times the weight's; C5 the bias is [M], in
    the type of the result; C6 `wide` stands for operands of bf16.

    Example: `%2 = ds.conv %0, %1 strides [1] pads [0, 0] dilations [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>`
  }];
  let arguments = (ins DS_Tensor:$input, DS_Tensor:$weight, Optional<DS_Tensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$groups, UnitAttr:$wide);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$input `,` $weight (`,` $bias^)? `strides` $strides `pads` $pads `dilations` $dilations
                         `groups` $groups attr-dict `:` functional-type(operands, results)}];
  let declarations = [{
    /// Whether a group has so few filters that gathering windows for them costs as much as it saves: they walk over
    /// the image, where the last stride is 1 or 2. Not where their number is known at run time only.
    bool hasFewFilters();
  }];
}

def DS_PoolOp : DS_TensorOp<"pool"> {
  let summary = "pooling over the spatial axes of [batch, channel, ...]";
  let description = [{
    With `ceil` the last window may start inside the tensor or its left padding and reach past the end. `exponent` is
    read for `lp` only. Gone after: codegen.

    Constraints: C1 rank at least 3; C2 kernel, strides, dilations and pads match the spatial rank and are legal.

    Example: `%1 = ds.pool max %0 kernel [2] strides [2] pads [0, 0] dilations [1] {ceil = false, include_pad = false, exponent = 2 : i64} : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>`
  }];
  let arguments = (ins DS_PoolKind:$kind, DS_Tensor:$input, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, BoolAttr:$ceil, BoolAttr:$include_pad,
                       I64Attr:$exponent);
  let results = (outs DS_Tensor:$result);
  let assemblyFormat = [{$kind $input `kernel` $kernel `strides` $strides `pads` $pads `dilations` $dilations attr-dict
                         `:` functional-type(operands, results)}];
}
