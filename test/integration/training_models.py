"""Models to be trained, small by default: GPT, BERT classifier, Llama, T5, ViT, CNN, bidirectional recurrences. In the shapes
that exporters write, with dynamic batch and length, float32, random weights by seed."""
import math

import numpy as np
from onnx import TensorProto

from generate import Graph, value

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Layers(Graph):
    """What the models share."""

    def integers(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def number(self, x):
        return self.constant(np.float32(x))

    def linear(self, x, name, rows, columns, bias=True, scale=None):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", rows, columns, scale=scale or rows ** -0.5))
        return self.op("Add", product, self.weight(f"{name}.bias", columns)) if bias else product

    def near_one(self, name, size):
        return self.constant(1 + self.random.standard_normal(size, np.float32) / 20, name)

    def layer_norm(self, x, name, size, epsilon=1e-5):
        return self.op("LayerNormalization", x, self.near_one(f"{name}.weight", size), self.weight(f"{name}.bias", size),
                       axis=-1, epsilon=epsilon)

    def rms_norm(self, x, name, size):
        mean = self.op("ReduceMean", self.op("Pow", x, self.number(2)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.number(1e-6)))
        return self.op("Mul", self.near_one(f"{name}.weight", size), self.op("Div", x, root))

    def heads(self, x, heads, size):
        return self.op("Transpose", self.op("Reshape", x, self.integers(0, 0, heads, size)), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, hidden, scale, bias=None):
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.number(scale)) if scale != 1 else scores
        scores = self.op("Add", scores, bias) if bias else scores
        weights = self.weigh(self.op("Softmax", scores, axis=-1))
        context = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.op("Reshape", context, self.integers(0, 0, hidden))

    def weigh(self, weights):
        """What becomes of an attention's weights."""
        return weights

    def gelu(self, x):
        cube = self.op("Mul", self.op("Mul", x, x), x)
        bend = self.op("Mul", self.op("Add", x, self.op("Mul", cube, self.number(0.044715))),
                       self.number(math.sqrt(2 / math.pi)))
        half = self.op("Mul", x, self.number(0.5))
        return self.op("Mul", half, self.op("Add", self.op("Tanh", bend), self.number(1)))

    def length(self, x, axis=1):
        return self.op("Gather", self.op("Shape", x), self.constant(np.int64(axis)), axis=0)

    def causal(self, length):
        """[length, length] with a large negative number above the diagonal."""
        last = self.integers(0)
        size = self.op("Unsqueeze", length, last)
        ones = self.op("Expand", self.number(-1e9), self.op("Concat", size, size, axis=0))
        return self.op("Trilu", ones, self.constant(np.int64(1)), upper=1)

    def range(self, length):
        return self.op("Range", self.constant(np.int64(0)), length, self.constant(np.int64(1)))

    def finish(self, x, name, inputs, *shape, opset=17):
        self.op("Identity", x, name=name)
        self.nodes[-1].output[0] = name
        return self.model(inputs, [value(name, FLOAT, *shape)], opset)


def gpt(layers=2, hidden=32, heads=4, vocabulary=61, positions=32, seed=0, graph=None):
    """Tokens in, logits of the next ones out; the head is the token table. `graph`: other layers or weights of the same names."""
    g = graph or Layers(seed)
    length = g.length("input_ids")
    x = g.op("Gather", g.weight("wte", vocabulary, hidden), "input_ids")
    x = g.op("Add", x, g.op("Gather", g.weight("wpe", positions, hidden), g.range(length)))
    mask = g.causal(length)
    split = g.integers(*[hidden] * 3)
    for layer in range(layers):
        name = f"h.{layer}"
        parts = g.op("Split", g.linear(g.layer_norm(x, f"{name}.ln_1", hidden), f"{name}.attn.c_attn", hidden, 3 * hidden),
                     split, axis=-1, outputs=3)
        q, k, v = (g.heads(part, heads, hidden // heads) for part in parts)
        context = g.attend(q, k, v, hidden, (hidden // heads) ** -0.5, mask)
        x = g.op("Add", x, g.linear(context, f"{name}.attn.c_proj", hidden, hidden))
        inner = g.gelu(g.linear(g.layer_norm(x, f"{name}.ln_2", hidden), f"{name}.mlp.c_fc", hidden, 4 * hidden))
        x = g.op("Add", x, g.linear(inner, f"{name}.mlp.c_proj", 4 * hidden, hidden))
    logits = g.op("MatMul", g.layer_norm(x, "ln_f", hidden), g.op("Transpose", "wte", perm=[1, 0]))
    return g.finish(logits, "logits", [value("input_ids", INT64, "batch", "length")], "batch", "length", vocabulary)


def bert(layers=2, hidden=32, heads=4, vocabulary=61, positions=32, classes=3, seed=0):
    """Tokens and a mask in, logits of classes of the first token's pooled state out."""
    g = Layers(seed)
    length = g.length("input_ids")
    x = g.op("Gather", g.weight("word_embeddings", vocabulary, hidden), "input_ids")
    x = g.op("Add", x, g.op("Gather", g.weight("position_embeddings", positions, hidden), g.range(length)))
    x = g.layer_norm(x, "embeddings.norm", hidden, 1e-12)
    mask = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.integers(1, 2)), to=FLOAT)
    mask = g.op("Mul", g.op("Sub", g.number(1), mask), g.number(-1e9))
    for layer in range(layers):
        name = f"layer.{layer}"
        q, k, v = (g.heads(g.linear(x, f"{name}.{what}", hidden, hidden), heads, hidden // heads)
                   for what in ("query", "key", "value"))
        context = g.attend(q, k, v, hidden, (hidden // heads) ** -0.5, mask)
        x = g.layer_norm(g.op("Add", g.linear(context, f"{name}.out", hidden, hidden), x), f"{name}.norm1", hidden, 1e-12)
        inner = g.linear(x, f"{name}.up", hidden, 4 * hidden)
        erf = g.op("Add", g.op("Erf", g.op("Div", inner, g.number(math.sqrt(2)))), g.number(1))
        inner = g.op("Mul", g.op("Mul", inner, erf), g.number(0.5))
        x = g.layer_norm(g.op("Add", g.linear(inner, f"{name}.down", 4 * hidden, hidden), x), f"{name}.norm2", hidden, 1e-12)
    first = g.op("Gather", x, g.constant(np.int64(0)), axis=1)
    pooled = g.op("Tanh", g.op("Gemm", first, g.weight("pooler.weight", hidden, hidden, scale=hidden ** -0.5),
                               g.weight("pooler.bias", hidden), transB=1))
    logits = g.op("Gemm", pooled, g.weight("classifier.weight", classes, hidden, scale=hidden ** -0.5),
                  g.weight("classifier.bias", classes), transB=1)
    return g.finish(logits, "logits", [value(name, INT64, "batch", "length") for name in ("input_ids", "attention_mask")],
                    "batch", classes)


def llama(layers=2, hidden=32, heads=4, shared=2, vocabulary=61, positions=32, seed=0):
    """RMS norms, rotated keys of `shared` heads, a gated feed-forward part, no biases, an own head."""
    g = Layers(seed)
    size = hidden // heads
    angles = np.outer(np.arange(positions), 10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)
    length = g.length("input_ids")
    rows = g.range(length)
    tables = [g.op("Gather", g.constant(np.concatenate([function(angles)] * 2, 1), name), rows)
              for name, function in (("cos", np.cos), ("sin", np.sin))]
    x = g.op("Gather", g.weight("embed_tokens", vocabulary, hidden), "input_ids")
    mask = g.causal(length)

    def rotate(x):
        low, high = (g.op("Slice", x, g.integers(a), g.integers(b), g.integers(3)) for a, b in ((0, size // 2), (size // 2, size)))
        turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
        return g.op("Add", g.op("Mul", x, tables[0]), g.op("Mul", turned, tables[1]))

    def repeat(x):
        batch, rows = g.op("Unsqueeze", g.length(x, 0), g.integers(0)), g.op("Unsqueeze", g.length(x, 2), g.integers(0))
        sizes = g.op("Concat", batch, g.integers(shared, heads // shared), rows, g.integers(size), axis=0)
        x = g.op("Expand", g.op("Unsqueeze", x, g.integers(2)), sizes)
        return g.op("Reshape", x, g.op("Concat", batch, g.integers(heads), rows, g.integers(size), axis=0))

    for layer in range(layers):
        name = f"layers.{layer}"
        normal = g.rms_norm(x, f"{name}.input_norm", hidden)
        q = rotate(g.heads(g.linear(normal, f"{name}.q_proj", hidden, hidden, False), heads, size))
        k, v = (g.heads(g.linear(normal, f"{name}.{what}_proj", hidden, shared * size, False), shared, size) for what in "kv")
        context = g.attend(q, repeat(rotate(k)), repeat(v), hidden, size ** -0.5, mask)
        x = g.op("Add", x, g.linear(context, f"{name}.o_proj", hidden, hidden, False))
        normal = g.rms_norm(x, f"{name}.post_norm", hidden)
        gate = g.linear(normal, f"{name}.gate_proj", hidden, 3 * hidden, False)
        gated = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), g.linear(normal, f"{name}.up_proj", hidden, 3 * hidden, False))
        x = g.op("Add", x, g.linear(gated, f"{name}.down_proj", 3 * hidden, hidden, False))
    logits = g.linear(g.rms_norm(x, "norm", hidden), "lm_head", hidden, vocabulary, False)
    return g.finish(logits, "logits", [value("input_ids", INT64, "batch", "length")], "batch", "length", vocabulary)


def t5(layers=2, hidden=32, heads=4, vocabulary=61, buckets=9, seed=0):
    """An encoder and a decoder with cross-attention, distances in a table of biases, no scale on scores, one token table."""
    g = Layers(seed)
    size = hidden // heads

    def bias(name, length, other):
        distance = g.op("Sub", g.op("Unsqueeze", g.range(other), g.integers(0)), g.op("Unsqueeze", g.range(length), g.integers(1)))
        limit = g.constant(np.int64(buckets // 2))
        bucket = g.op("Add", g.op("Max", g.op("Min", distance, limit), g.constant(np.int64(-(buckets // 2)))), limit)
        table = g.op("Gather", g.weight(f"{name}.relative_attention_bias", buckets, heads), bucket)
        return g.op("Unsqueeze", g.op("Transpose", table, perm=[2, 0, 1]), g.integers(0))

    def attention(x, memory, name, shift):
        q = g.heads(g.linear(x, f"{name}.q", hidden, hidden, False), heads, size)
        k, v = (g.heads(g.linear(memory, f"{name}.{what}", hidden, hidden, False), heads, size) for what in "kv")
        return g.linear(g.attend(q, k, v, hidden, 1, shift), f"{name}.o", hidden, hidden, False)

    def stack(kind, tokens, shift, memory=None):
        x = g.op("Gather", "shared", tokens)
        for layer in range(layers):
            name = f"{kind}.{layer}"
            normal = g.rms_norm(x, f"{name}.norm1", hidden)
            x = g.op("Add", x, attention(normal, normal, f"{name}.self", shift))
            if memory:
                x = g.op("Add", x, attention(g.rms_norm(x, f"{name}.norm2", hidden), memory, f"{name}.cross", None))
            inner = g.op("Relu", g.linear(g.rms_norm(x, f"{name}.norm3", hidden), f"{name}.wi", hidden, 2 * hidden, False))
            x = g.op("Add", x, g.linear(inner, f"{name}.wo", 2 * hidden, hidden, False))
        return g.rms_norm(x, f"{kind}.norm", hidden)

    g.weight("shared", vocabulary, hidden, scale=1)
    sizes = [g.length(name) for name in ("input_ids", "decoder_input_ids")]
    memory = stack("encoder", "input_ids", bias("encoder", sizes[0], sizes[0]))
    x = stack("decoder", "decoder_input_ids", g.op("Add", bias("decoder", sizes[1], sizes[1]), g.causal(sizes[1])), memory)
    logits = g.op("MatMul", g.op("Mul", x, g.number(hidden ** -0.5)), g.op("Transpose", "shared", perm=[1, 0]))
    return g.finish(logits, "logits", [value("input_ids", INT64, "batch", "source"), value("decoder_input_ids", INT64, "batch", "target")],
                    "batch", "target", vocabulary)


def vit(layers=2, hidden=32, heads=4, patch=4, image=12, classes=5, seed=0):
    """Images in patches behind a class token, positions, pre-norm layers, logits of the class token out."""
    g = Layers(seed)
    patches = (image // patch) ** 2
    x = g.op("Conv", "pixels", g.weight("patch.weight", hidden, 3, patch, patch, scale=0.15), g.weight("patch.bias", hidden),
             kernel_shape=[patch, patch], strides=[patch, patch])
    x = g.op("Transpose", g.op("Reshape", x, g.integers(0, hidden, patches)), perm=[0, 2, 1])
    batch = g.op("Unsqueeze", g.length("pixels", 0), g.integers(0))
    token = g.op("Expand", g.weight("cls_token", 1, 1, hidden), g.op("Concat", batch, g.integers(1, hidden), axis=0))
    x = g.op("Add", g.op("Concat", token, x, axis=1), g.weight("position_embeddings", 1, patches + 1, hidden))
    for layer in range(layers):
        name = f"layer.{layer}"
        normal = g.layer_norm(x, f"{name}.norm1", hidden, 1e-12)
        q, k, v = (g.heads(g.linear(normal, f"{name}.{what}", hidden, hidden), heads, hidden // heads)
                   for what in ("query", "key", "value"))
        x = g.op("Add", g.linear(g.attend(q, k, v, hidden, (hidden // heads) ** -0.5), f"{name}.out", hidden, hidden), x)
        inner = g.gelu(g.linear(g.layer_norm(x, f"{name}.norm2", hidden, 1e-12), f"{name}.up", hidden, 4 * hidden))
        x = g.op("Add", g.linear(inner, f"{name}.down", 4 * hidden, hidden), x)
    first = g.op("Gather", g.layer_norm(x, "norm", hidden, 1e-12), g.constant(np.int64(0)), axis=1)
    return g.finish(g.linear(first, "head", hidden, classes), "logits", [value("pixels", FLOAT, "batch", 3, image, image)],
                    "batch", classes)


def cnn(classes=5, seed=0):
    """Two convolutions with batch norm, a depthwise one, a residual, pools, a linear head."""
    g = Layers(seed)

    def conv(x, name, channels, before, size, group=1, **attributes):
        return g.op("Conv", x, g.weight(f"{name}.weight", channels, before // group, size, size, scale=(before * size * size / group) ** -0.5),
                    g.weight(f"{name}.bias", channels), kernel_shape=[size, size], group=group, **attributes)

    def norm(x, name, channels):
        statistics = (g.constant(g.random.standard_normal(channels, np.float32) / 10, f"{name}.mean"),
                      g.constant(0.5 + g.random.random(channels, np.float32), f"{name}.var"))
        return g.op("BatchNormalization", x, g.near_one(f"{name}.weight", channels), g.weight(f"{name}.bias", channels), *statistics)

    x = g.op("Relu", norm(conv("pixels", "conv1", 8, 3, 3, pads=[1] * 4), "bn1", 8))
    x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = conv(x, "depthwise", 8, 8, 3, group=8, pads=[1] * 4)
    x = g.op("Relu", g.op("Add", norm(conv(y, "pointwise", 8, 8, 1), "bn2", 8), x))
    x = conv(x, "conv2", 12, 8, 3, strides=[2, 2], auto_pad="SAME_UPPER")
    x = g.op("Flatten", g.op("GlobalAveragePool", g.op("Sigmoid", x)), axis=1)
    logits = g.op("Gemm", x, g.weight("fc.weight", classes, 12, scale=0.3), g.weight("fc.bias", classes), transB=1)
    return g.finish(logits, "logits", [value("pixels", FLOAT, "batch", 3, 12, 12)], "batch", classes)


def rnn(hidden=9, width=7, vocabulary=31, classes=4, seed=0):
    """A bidirectional LSTM over tokens, a GRU over its states, logits of the GRU's last state."""
    g = Layers(seed)
    x = g.op("Gather", g.weight("table", vocabulary, width, scale=1), "input_ids")
    x = g.op("Transpose", x, perm=[1, 0, 2])
    scale = hidden ** -0.5
    y, _, _ = g.op("LSTM", x, g.weight("lstm.w", 2, 4 * hidden, width, scale=scale), g.weight("lstm.r", 2, 4 * hidden, hidden, scale=scale),
                   g.weight("lstm.b", 2, 8 * hidden, scale=scale), hidden_size=hidden, direction="bidirectional", outputs=3)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.integers(0, 0, 2 * hidden))
    _, last = g.op("GRU", y, g.weight("gru.w", 1, 3 * hidden, 2 * hidden, scale=scale), g.weight("gru.r", 1, 3 * hidden, hidden, scale=scale),
                   g.weight("gru.b", 1, 6 * hidden, scale=scale), hidden_size=hidden, linear_before_reset=1, outputs=2)
    last = g.op("Squeeze", last, g.integers(0))
    return g.finish(g.linear(last, "head", hidden, classes), "logits", [value("input_ids", INT64, "batch", "length")], "batch", classes)
