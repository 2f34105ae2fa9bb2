"""The com.microsoft operators of transformers against ONNX Runtime, each over its attributes and optional operands."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, expect, tool
from microsoft import Cases

SIZES = {"batch": 2, "seq": 5}, {"batch": 3, "seq": 9}
f32 = np.float32


def positive(random, shape, sizes):
    return random.random(shape) + 0.5


erf = np.vectorize(math.erf, otypes=[float])


def layer_norm(x, scale, bias=None, epsilon=1e-12):
    """Normalized values, mean and inverse deviation, in double precision."""
    x = x.astype(np.float64)
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon)
    return (x - mean) * inverse * scale + (0 if bias is None else bias), mean, inverse


@case
def skip_normalizations(folder):
    c = Cases()
    x, gamma, beta, bias = c.input(["batch", "seq", 24]), c.input([24]), c.input([24]), c.input([24])
    skips = [c.input(dims) for dims in (["batch", "seq", 24], [1, "seq", 24], ["seq", 24])]
    for skip in skips:
        c.node("SkipLayerNormalization", [x, skip, gamma, beta, bias], [f32, None, None, f32], epsilon=1e-5)
        c.node("SkipLayerNormalization", [x, skip, gamma, None, bias])
        c.node("SkipLayerNormalization", [x, skip, gamma])
        c.node("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], [f32, None, None, f32], epsilon=1e-6)
        c.node("SkipSimplifiedLayerNormalization", [x, skip, gamma])
    c.node("SkipSimplifiedLayerNormalization", [c.input(["batch", 24]), c.input(["batch", 24]), gamma])
    # ONNX Runtime leaves the statistics out.
    c.node("SkipLayerNormalization", [x, skips[0], gamma, beta], [f32, f32, f32], epsilon=1e-3,
           reference=lambda x, skip, gamma, beta: layer_norm(x + skip, gamma, beta, 1e-3))
    c.run(folder, *SIZES)


@case
def simplified_layer_norm(folder):
    c = Cases()
    x, scale = c.input(["batch", "seq", 20]), c.input([20])
    c.node("SimplifiedLayerNormalization", [x, scale], domain="", axis=-1, epsilon=1e-6, stash_type=1)
    c.node("SimplifiedLayerNormalization", [x, scale], [f32, f32], domain="")
    c.node("SimplifiedLayerNormalization", [x, c.input(["seq", 20])], [f32, f32], domain="", axis=1)
    c.run(folder, *SIZES)


@case
def embed_layer_norm(folder):
    c = Cases()
    ids, segments = c.integers(["batch", "seq"], 0, 50), c.integers(["batch", "seq"], 0, 2)
    word, position = c.weight(np.random.default_rng(1).standard_normal((50, 16), f32)), c.input([32, 16])
    segment, gamma, beta = c.input([2, 16]), c.input([16]), c.input([16])
    mask = c.input(["batch", "seq"], lambda random, shape, sizes: np.arange(shape[1]) < random.integers(
        1, shape[1] + 1, (shape[0], 1)), np.int32)
    places, shared = c.integers(["batch", "seq"], 0, 32), c.integers([1, "seq"], 0, 32)
    both = [f32, np.int32]
    c.node("EmbedLayerNormalization", [ids, segments, word, position, segment, gamma, beta, mask], both)
    c.node("EmbedLayerNormalization", [ids, segments, word, position, segment, gamma, beta, mask, places],
           [*both, f32], epsilon=1e-3)
    c.node("EmbedLayerNormalization", [ids, None, word, position, None, gamma, beta, None, shared], both)
    c.node("EmbedLayerNormalization", [ids, None, word, position, None, gamma, beta], [*both, f32], mask_index_type=0)
    c.run(folder, *SIZES)


@case
def activations(folder):
    c = Cases()
    x, bias = c.input(["batch", "seq", 20]), c.input([20])
    c.node("Gelu", [x])
    c.node("BiasGelu", [x, bias])
    c.node("FastGelu", [x])
    c.node("FastGelu", [x, bias])
    c.node("QuickGelu", [x])
    c.node("QuickGelu", [x], alpha=1.0)
    c.node("QuickGelu", [x], alpha=-0.5)

    def split_gelu(x, bias):
        left, right = np.split((x + bias).astype(np.float64), 2, -1)
        return [left * right * (1 + erf(right / np.sqrt(2))) / 2]
    c.node("BiasSplitGelu", [x, bias], reference=split_gelu)
    scores = c.input(["batch", 4, "seq", "seq"])

    def bias_softmax(axis):
        def compute(x, bias):
            shape = (x + bias).shape
            flat = (x + bias).astype(np.float64).reshape(*shape[:axis], -1)
            weights = np.exp(flat - flat.max(-1, keepdims=True))
            return [(weights / weights.sum(-1, keepdims=True)).reshape(shape)]
        return compute
    for dims, axis, inner in ((["batch", 1, 1, "seq"], 3, 1), ([1, 1, "seq", "seq"], 3, 0),
                              (["batch", 1, "seq", "seq"], 2, 1)):
        c.node("BiasSoftmax", [scores, c.input(dims)], axis=axis, is_inner_broadcast=inner,
               reference=bias_softmax(axis))
    c.run(folder, *SIZES)


@case(seconds=11)
def fused_products(folder):
    c = Cases()
    for a_turned in (0, 1):
        for b_turned in (0, 1):
            a = c.input(["batch", 3, "seq", 8] if not a_turned else ["batch", 3, 8, "seq"])
            b = c.input(["batch", 3, 8, 6] if not b_turned else ["batch", 3, 6, 8])
            c.node("FusedMatMul", [a, b], alpha=0.25, transA=a_turned, transB=b_turned)
            c.node("TransposeMatMul", [a, b], transA=a_turned, transB=b_turned)
    for a_turned in (0, 1):
        a = c.input(["seq", "batch", 8] if not a_turned else [8, "batch", "seq"])
        b = c.input(["batch", 8, 6])
        c.node("FusedMatMul", [a, b], transBatchA=1, transA=a_turned, alpha=-1.5)
    c.node("FusedMatMul", [c.input(["batch", 4, "seq", 8]), c.input([6, "batch", 4, 8])], transBatchB=1, transB=1)
    c.node("FusedMatMul", [c.input([8]), c.input(["batch", 8, 6])], alpha=2.0)
    c.node("FusedMatMul", [c.input(["batch", "seq", 8]), c.input([8])])
    a, b, bias = c.input(["batch", 8]), c.input([6, 8]), c.input([6])
    for activation in ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.3},
                       {"activation": "Tanh"}, {"activation": "Sigmoid"},
                       {"activation": "HardSigmoid", "activation_alpha": 0.1, "activation_beta": 0.4}):
        c.node("FusedGemm", [a, b, bias], transB=1, alpha=0.5, beta=2.0, **activation)
    image, filters, bias = c.input(["batch", 4, "seq", 11]), c.input([6, 4, 3, 3]), c.input([6])
    for activation in ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.2]},
                       {"activation": "Clip", "activation_params": [-0.5, 2.0]}, {"activation": "Tanh"},
                       {"activation": "HardSigmoid", "activation_params": [0.1, 0.4]}):
        c.node("FusedConv", [image, filters, bias], pads=[1, 1, 1, 1], **activation)
    c.node("FusedConv", [image, filters, bias, c.input(["batch", 6, "seq", 11])], auto_pad="SAME_UPPER",
           activation="Relu")
    c.node("FusedConv", [image, c.input([8, 2, 3, 2])], group=2, dilations=[1, 2], strides=[2, 1], activation="Sigmoid")
    c.run(folder, *SIZES)


def pack(fields, bits):
    """Fields [..., n] of `bits` bits as bytes, the first one lowest."""
    per_byte = 8 // bits
    fields = np.concatenate([fields, np.zeros((*fields.shape[:-1], -fields.shape[-1] % per_byte), np.uint8)], -1)
    parts = fields.reshape(*fields.shape[:-1], -1, per_byte)
    return sum(parts[..., i].astype(np.uint32) << (i * bits) for i in range(per_byte)).astype(np.uint8)


@case(seconds=23)
def matmul_nbits(folder):
    random = np.random.default_rng(3)
    c = Cases()
    for bits in (2, 4, 8):
        for block, k, n in ((16, 48, 10), (32, 70, 7), (64, 128, 16)):
            blocks = -(-k // block)
            fields = random.integers(0, 1 << bits, (n, blocks, block)).astype(np.uint8)
            scales = (random.random((n, blocks)) * 0.1 + 0.01).astype(f32)
            points = random.integers(0, 1 << bits, (n, blocks)).astype(np.uint8)
            x, bias = c.input(["batch", "seq", k]), c.weight(random.standard_normal(n).astype(f32))
            packed = c.weight(pack(fields, bits))
            for zero, zeros in ((None, 1 << (bits - 1)), (c.weight(pack(points, bits)), points[..., None]),
                                (c.weight(points.astype(f32) + f32(0.25)), points[..., None] + 0.25)):
                weight = ((fields.astype(np.float64) - zeros) * scales[..., None]).reshape(n, -1)[:, :k]

                def reference(x, *rest, weight=weight):
                    return [x @ weight.T + (rest[4] if len(rest) > 4 else 0)]
                attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
                c.node("MatMulNBits", [x, packed, c.weight(scales), zero], reference=reference, **attributes)
                c.node("MatMulNBits", [x, packed, c.weight(scales), zero, None, bias], reference=reference, **attributes)
            groups = random.integers(0, blocks, k).astype(np.int32)
            columns = fields.reshape(n, -1)[:, :k].astype(np.float64)
            sorted_weight = (columns - points[:, groups]) * scales[:, groups]
            c.node("MatMulNBits", [x, packed, c.weight(scales), c.weight(pack(points, bits)), c.weight(groups)],
                   reference=lambda x, *rest, weight=sorted_weight: [x @ weight.T], **attributes)
            if bits == 4:
                c.node("MatMulNBits", [x, packed, c.weight(scales.ravel())], accuracy_level=1, **attributes)
    c.run(folder, *SIZES)
    # Unpacked once, where the package is written.
    recipes, program = tool("ds-opt", folder / "cases.onnx", "--stop-after=graph").out.split("func.func @main", 1)
    expect("bit_and" in recipes and "bit_and" not in program and "ui8" not in program, "weights are unpacked at run time")


@case
def packed_bits_that_do_not_fit_are_refused(folder):
    for change, says in (({"K": 1 << 62}, "attributes 'K' and 'N': expected sizes of 1 to 2147483647, found 4611686018427387904 and 8"),
                         ({"N": 0}, "attributes 'K' and 'N': expected sizes of 1 to 2147483647, found 32 and 0"),
                         ({"K": 31}, "input 0: expected rows of 31 elements, attribute 'K', found f32[m, 32]"),
                         ({"scales": np.float16}, "input 2: expected elements of the type of input 0, f32[m, 32], found f16[8, 2]"),
                         ({"bias": np.float16}, "input 5: expected elements of the type of input 0, f32[m, 32], found f16[8]"),
                         ({}, "")):
        constants = [numpy_helper.from_array(array, name) for name, array in
                     (("q", np.zeros((8, 2, 16), np.uint8)), ("s", np.ones((8, 2), change.get("scales", f32))), ("b", np.ones(8, change.get("bias", f32))))]
        node = helper.make_node("MatMulNBits", ["x", "q", "s", "", "", "b"], ["y"], domain="com.microsoft", K=change.get("K", 32), N=change.get("N", 8), bits=8, block_size=16)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", 32])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10), str(folder / "m.onnx"))
        result = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", code=1 if says else 0, says=says)
        expect(len(result.err.splitlines()) == (1 if says else 0), f"expected one line: {result}")


@case
def rotary_embedding(folder):
    c = Cases()
    caches = [c.input([40, half]) for half in (8, 8, 4, 4)]
    flat, heads = c.input(["batch", "seq", 48]), c.input(["batch", 3, "seq", 16])
    places, offset = c.integers(["batch", "seq"], 0, 40, np.int64), c.integers([1], 0, 20, np.int64)
    for interleaved in (0, 1):
        for positions in (places, offset):
            c.node("RotaryEmbedding", [flat, positions, *caches[:2]], interleaved=interleaved)
            c.node("RotaryEmbedding", [heads, positions, *caches[:2]], interleaved=interleaved)
            c.node("RotaryEmbedding", [flat, positions, *caches[2:]], interleaved=interleaved, num_heads=3,
                   rotary_embedding_dim=8)
            c.node("RotaryEmbedding", [heads, positions, *caches[2:]], interleaved=interleaved, num_heads=3,
                   rotary_embedding_dim=8)
    c.run(folder, *SIZES)


def lengths(low=1):
    """A length of each row of the batch."""
    return lambda random, shape, sizes: random.integers(low, sizes["seq"] + sizes.get("past", 0) + 1, shape)


def padding(random, shape, sizes):
    """0 and 1; no row is all 0."""
    mask = random.random(shape) < 0.7
    mask[..., 0] = True
    return mask


PAST_SIZES = {"batch": 2, "seq": 4, "past": 3}, {"batch": 3, "seq": 1, "past": 7}


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def heads_of(x, heads):
    batch, length, width = x.shape
    return x.astype(np.float64).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def merged(x):
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def attention(query, key, value, add=0, scale=None):
    scale = scale or 1 / np.sqrt(query.shape[-1])
    return softmax(scale * query @ np.swapaxes(key, 2, 3) + add) @ value


@case(seconds=12)
def attention_masks(folder):
    c = Cases()
    x, weights = c.input(["batch", "seq", 12]), c.weight(np.random.default_rng(2).standard_normal((12, 48)).astype(f32))
    bias = c.input([48])
    relative = [c.input(dims) for dims in (["batch", 4, "seq", "seq"], [1, 4, "seq", "seq"], [1, 1, "seq", "seq"],
                                           ["batch", 1, "seq", "seq"])]
    def two(random, shape, sizes):
        ends, starts = lengths()(random, shape[0] // 2, sizes), np.zeros(shape[0] // 2)
        return np.concatenate([ends, np.minimum(starts + random.integers(0, 3, shape[0] // 2), ends - 1)])
    masks = [None, c.input(["batch"], lengths(), np.int32), c.input(["2*batch"], two, np.int32),
             c.input(["3*batch+2"], lengths(), np.int32), c.input(["batch", "seq"], padding, np.int32),
             c.input(["batch", "seq", "seq"], padding, np.int32)]
    for mask in masks:
        for unidirectional in (0, 1):
            c.node("Attention", [x, weights, bias, mask], num_heads=4, unidirectional=unidirectional)
            c.node("Attention", [x, weights, bias, mask, None, relative[unidirectional]], num_heads=4,
                   unidirectional=unidirectional)
        c.node("Attention", [x, weights, bias, mask, None, relative[2]], num_heads=2, scale=0.3)
        c.node("Attention", [x, weights, bias, mask, None, relative[3]], [f32, f32], num_heads=4,
               mask_filter_value=-3.0, scale=0.7)
    # Without a bias ONNX Runtime's CPU provider crashes.
    c.node("Attention", [x, weights, None, masks[4]], num_heads=4, reference=lambda x, weights, bias, mask: [merged(
        attention(*(heads_of(part, 4) for part in np.split(x.astype(np.float64) @ weights, 3, -1)),
                  np.where(mask, 0, -10000.0)[:, None, None]))])
    for mask in (None, masks[1], masks[4]):
        c.node("Attention", [x, weights, bias, mask], num_heads=4, qkv_hidden_sizes=[16, 16, 16])
        c.node("Attention", [x, weights, bias, mask], num_heads=4, qkv_hidden_sizes=[12, 12, 24], unidirectional=1)
    c.run(folder, *SIZES)


@case(seconds=3)
def attention_with_a_mask_of_its_own_length(folder):
    """Which of the forms a mask of one axis has, only the run knows."""
    c = Cases()
    x, weights, bias = c.input(["batch", "seq", 12]), c.weight(np.random.default_rng(2).standard_normal((12, 48)).astype(f32)), c.input([48])

    def any_form(random, shape, sizes):
        ends = lengths(2)(random, shape, sizes)
        return np.where(np.arange(*shape) < sizes["batch"], ends, random.integers(0, 2, shape))
    mask = c.input(["own"], any_form, np.int32)
    for unidirectional in (0, 1):
        c.node("Attention", [x, weights, bias, mask], num_heads=4, unidirectional=unidirectional)
    c.run(folder, *({"batch": batch, "seq": seq, "own": own} for batch, seq in ((2, 5), (3, 9), (1, 2))
                    for own in (batch, 2 * batch, 3 * batch + 2)))
    values = c.values({"batch": 2, "seq": 5, "own": 3}, 0)
    np.savez(folder / "in.npz", **values)
    tool("ds-run", folder / "model.dsp", "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1,
         says="expected a mask of batch, 2 * batch or 3 * batch + 2 elements")


@case(seconds=6)
def attention_with_past(folder):
    c = Cases()
    x, weights = c.input(["batch", "seq", 16]), c.weight(np.random.default_rng(2).standard_normal((16, 48)).astype(f32))
    bias, past = c.input([48]), c.input([2, "batch", 4, "past", 4])
    for mask in (None, c.input(["batch"], lengths(), np.int32), c.input(["batch", "past+seq"], padding, np.int32),
                 c.input(["batch", "seq", "past+seq"], padding, np.int32)):
        for unidirectional in (0, 1):
            c.node("Attention", [x, weights, bias, mask, past], [f32, f32], num_heads=4,
                   unidirectional=unidirectional)
    c.run(folder, *PAST_SIZES)


@case
def attention_in_shared_buffer(folder):
    """ONNX Runtime's CPU provider lacks the buffer, and the square mask of Megatron."""
    c = Cases()
    x, weights = c.input(["batch", "seq", 16]), c.weight(np.random.default_rng(2).standard_normal((16, 48)).astype(f32))
    bias, past = c.input([48]), c.input([2, "batch", 4, 12, 4])
    used = c.input([1], lambda random, shape, sizes: sizes["past"], np.int32)

    def reference(x, weights, bias, mask, past, relative, used):
        parts = [heads_of(part, 4) for part in np.split(x.astype(np.float64) @ weights + bias, 3, -1)]
        start, rows = int(used[0]), x.shape[1]
        end = start + rows
        present = past.astype(np.float64)
        present[:, :, :, start:end] = np.stack(parts[1:])
        key, value = present[:, :, :, :end]
        add = np.where(np.arange(end) <= start + np.arange(rows)[:, None], 0.0, -np.inf)
        if mask is not None:
            add = add + np.where(mask[:, :, start:end, :end], 0, -10000.0)
        return [merged(attention(parts[0], key, value, add)), present]
    for mask in (None, c.input(["batch", 1, 12, 12], padding, np.int32)):
        c.node("Attention", [x, weights, bias, mask, past, None, used], [f32, f32], num_heads=4, unidirectional=1,
               past_present_share_buffer=1, reference=reference)
    c.run(folder, *PAST_SIZES)


@case(seconds=23)
def multi_head_attention(folder):
    c = Cases()
    query, bias = c.input(["batch", "seq", 16]), c.input([56])
    key, value = c.input(["batch", "kv", 16]), c.input(["batch", "kv", 24])
    cached = c.input(["batch", 4, "kv", 4]), c.input(["batch", 4, "kv", 4])
    def kv_lengths(random, shape, sizes):
        return random.integers(1, sizes["kv"] + 1, shape)
    masks = [None, c.input(["batch"], kv_lengths, np.int32), c.input(["3*batch+2"], kv_lengths, np.int32),
             c.input(["batch", "kv"], padding, np.int32), c.input(["batch", "seq", "kv"], padding, np.int32)]
    relative = [None, c.input(["batch", 4, "seq", "kv"]), c.input([1, 4, "seq", "kv"]),
                c.input(["batch", 1, "seq", "kv"]), c.input([1, 1, "seq", "kv"])]
    for mask in masks:
        for extra in relative:
            c.node("MultiHeadAttention", [query, key, value, bias, mask, extra], num_heads=4)
        c.node("MultiHeadAttention", [query, key, value, None, mask], num_heads=4, scale=0.2, mask_filter_value=-2.0)
        c.node("MultiHeadAttention", [query, *cached, None, mask], num_heads=4)
        c.node("MultiHeadAttention", [query, key, value, bias, mask], [f32, f32, f32, f32], num_heads=4)
    same = c.input(["batch", "seq", 16]), c.input(["batch", "seq", 24])
    for mask in (None, c.input(["batch", "seq"], padding, np.int32)):
        c.node("MultiHeadAttention", [query, *same, bias, mask], num_heads=4, unidirectional=1)
        c.node("MultiHeadAttention", [query, *same, None, mask], [f32, f32, f32], num_heads=4, unidirectional=1)
    # Packed operands, which the CPU provider lacks.
    packed, pair, wide = c.input(["batch", "seq", 4, 3, 4]), c.input(["batch", "kv", 4, 2, 4]), c.input([48])

    def packed_all(x, key=None, value=None, bias=None):
        parts = [x[:, :, :, i].reshape(*x.shape[:2], 16) + (0 if bias is None else bias[16 * i:16 * i + 16])
                 for i in range(3)]
        return [merged(attention(*(heads_of(part, 4) for part in parts)))]
    c.node("MultiHeadAttention", [packed], num_heads=4, reference=packed_all)
    c.node("MultiHeadAttention", [packed, None, None, wide], num_heads=4, reference=packed_all)
    c.node("MultiHeadAttention", [query, pair], num_heads=4, reference=lambda x, pair: [merged(attention(
        heads_of(x, 4), *(np.moveaxis(pair[:, :, :, i], 1, 2).astype(np.float64) for i in range(2))))])
    c.run(folder, {"batch": 2, "seq": 5, "kv": 7}, {"batch": 3, "seq": 1, "kv": 4}, {"batch": 4, "seq": 6, "kv": 6})


@case
def one_query_sees_all_keys(folder):
    """A run may have one row, which has no later places, though a program does not know it."""
    c = Cases()
    query, key, value = c.input(["batch", "seq", 16]), c.input(["batch", "kv", 16]), c.input(["batch", "kv", 24])
    for mask in (None, c.input(["batch", "kv"], padding, np.int32)):
        c.node("MultiHeadAttention", [query, key, value, None, mask], num_heads=4, unidirectional=1)
    c.run(folder, {"batch": 2, "seq": 1, "kv": 7}, {"batch": 3, "seq": 4, "kv": 4}, {"batch": 1, "seq": 1, "kv": 1})


@case(seconds=12)
def multi_head_attention_with_past(folder):
    c = Cases()
    query, key, value = (c.input(["batch", "seq", 16]) for _ in range(3))
    past, bias = [c.input(["batch", 4, "past", 4]) for _ in range(2)], c.input([48])
    for mask in (None, c.input(["batch"], lengths(), np.int32), c.input(["batch", "past+seq"], padding, np.int32),
                 c.input(["batch", "seq", "past+seq"], padding, np.int32)):
        for unidirectional in (0, 1):
            for extra in (None, c.input([1, 4, "seq", "past+seq"])):
                c.node("MultiHeadAttention", [query, key, value, bias, mask, extra, *past], [f32, f32, f32],
                       num_heads=4, unidirectional=unidirectional)
    # The past in a buffer, which the CPU provider lacks.
    buffers = [c.input(["batch", 4, 12, 4]) for _ in range(2)]
    used = c.input([], lambda random, shape, sizes: sizes["past"], np.int32)

    def shared(query, key, value, bias, mask, relative, past_key, past_value, used):
        start, end = int(used), int(used) + query.shape[1]
        present = [past_key.astype(np.float64), past_value.astype(np.float64)]
        for buffer, new in zip(present, (key, value)):
            buffer[:, :, start:end] = heads_of(new, 4)
        return [merged(attention(heads_of(query, 4), *(buffer[:, :, :end] for buffer in present))), *present]
    c.node("MultiHeadAttention", [query, key, value, None, None, None, *buffers, used], [f32, f32, f32], num_heads=4,
           reference=shared)
    c.run(folder, *PAST_SIZES)


@case
def half_precision(folder):
    """ONNX Runtime and we round at different places of a formula: a few units of 11 bits apart."""
    c, f16 = Cases(), np.float16
    few = 4e-3
    x, skip, gamma, bias = (c.input(dims, dtype=f16) for dims in ([["batch", "seq", 32]] * 2 + [[32]] * 2))
    c.node("SkipLayerNormalization", [x, skip, gamma, bias, bias], [f16, None, None, f16], tolerance=few)
    c.node("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], [f16], tolerance=few)
    c.node("SimplifiedLayerNormalization", [x, gamma], [f16], domain="", tolerance=few)
    c.node("SimplifiedLayerNormalization", [x, c.input([32])], [f32], domain="", tolerance=few, reference=lambda x, scale: [
        x * scale.astype(np.float64) / np.sqrt((x.astype(np.float64)**2).mean(-1, keepdims=True) + 1e-5)])
    caches = [c.input([40, 8], dtype=f16) for _ in range(2)]
    c.node("RotaryEmbedding", [x, c.integers(["batch", "seq"], 0, 40, np.int64), *caches], [f16], tolerance=few)
    past = [c.input(["batch", 1, 12, 16], dtype=f16) for _ in range(2)]
    last = c.input(["batch"], lambda random, shape, sizes: np.full(shape, sizes["seq"] - 1), np.int32)
    total = c.input([1], lambda random, shape, sizes: sizes["seq"], np.int32)
    key = [c.input(["batch", "seq", 16], dtype=f16) for _ in range(2)]
    c.node("GroupQueryAttention", [x, *key, *past, last, total, *caches], [f16] * 3, num_heads=2, kv_num_heads=1,
           do_rotary=1, tolerance=few)
    random = np.random.default_rng(5)
    fields, scales = random.integers(0, 16, (10, 1, 32)).astype(np.uint8), random.random((10, 1)).astype(f16) / 8
    weight = (fields - 8.0) * scales[..., None]
    c.node("MatMulNBits", [x, c.weight(pack(fields, 4)), c.weight(scales)], [f16], K=32, N=10, bits=4, block_size=32,
           tolerance=few, reference=lambda x, *rest: [x @ weight.reshape(10, 32).T])
    c.run(folder, *SIZES)
