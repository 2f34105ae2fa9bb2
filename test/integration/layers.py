"""Transformer layers in the shapes that exporters write them, with random weights: what the count of launches per layer and
benchmarks are about. Batch, past and the encoder's length are dynamic."""
import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from generate import Graph, value


class Layers(Graph):
    """Values are [batch, tokens, hidden]."""

    def __init__(self, hidden, seed=0):
        super().__init__(seed)
        self.hidden, self.inputs, self.outputs = hidden, [], []

    def input(self, name, *shape, kind=TensorProto.FLOAT):
        self.inputs.append(value(name, kind, *shape))
        return name

    def output(self, name, *shape):
        self.outputs.append(value(name, TensorProto.FLOAT, *shape))

    def linear(self, x, name, columns, rows=None, bias=True):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", rows or self.hidden, columns, scale=0.05))
        return self.op("Add", product, self.weight(f"{name}.bias", columns)) if bias else product

    def number(self, x):
        return self.constant(np.float32(x))

    def sizes(self, *sizes):
        return self.constant(np.array(sizes, np.int64))

    def layer_norm(self, x, name):
        scale = self.constant(1 + self.random.standard_normal(self.hidden, np.float32) / 20, f"{name}.weight")
        return self.op("LayerNormalization", x, scale, self.weight(f"{name}.bias", self.hidden), axis=-1, epsilon=1e-5)

    def rms_norm(self, x, name, width=None):
        scale = self.constant(1 + self.random.standard_normal(width or self.hidden, np.float32) / 20, f"{name}.weight")
        variance = self.op("ReduceMean", self.op("Pow", x, self.number(2)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", variance, self.number(1e-6)))
        return self.op("Mul", self.op("Div", x, root), scale)

    def gelu(self, x):
        error = self.op("Erf", self.op("Div", x, self.number(2 ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", error, self.number(1))), self.number(0.5))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def heads(self, x, count, width):
        return self.op("Reshape", x, self.sizes(0, 0, count, width))

    def turned(self, x):
        return self.op("Transpose", x, perm=[0, 2, 1, 3])

    def tables(self, positions, width):
        """Cosines and sines of rotary embeddings, [batch, 1, tokens, width]."""
        frequencies = self.constant((10000.0 ** (-np.arange(0, width, 2) / width)).astype(np.float32))
        places = self.op("Unsqueeze", self.op("Cast", positions, to=TensorProto.FLOAT), self.sizes(2))
        angles = self.op("Mul", places, frequencies)
        both = self.op("Unsqueeze", self.op("Concat", angles, angles, axis=-1), self.sizes(1))
        return self.op("Cos", both), self.op("Sin", both)

    def rotary(self, x, tables, width):
        cosines, sines = tables
        part = lambda begin, end: self.op("Slice", x, self.sizes(begin), self.sizes(end), self.sizes(3))
        half = self.op("Concat", self.op("Neg", part(width // 2, width)), part(0, width // 2), axis=-1)
        return self.op("Add", self.op("Mul", x, cosines), self.op("Mul", half, sines))

    def cached(self, x, name, heads, width):
        past = self.input(f"past.{name}", "batch", heads, "past", width)
        joined = self.op("Concat", past, x, axis=2)
        present = self.op("Identity", joined, name=f"present.{name}")
        self.output(present, "batch", heads, "total", width)
        return joined

    def attention(self, q, k, v, heads, groups, width, bias=None, scale=None):
        """The context, [batch, tokens, heads * width]; k and v have `groups` heads."""
        def repeated(x):
            if heads == groups:
                return x
            wide = self.op("Expand", self.op("Unsqueeze", x, self.sizes(2)), self.sizes(1, 1, heads // groups, 1, 1))
            return self.op("Reshape", wide, self.sizes(0, heads, -1, width))
        scores = self.op("MatMul", q, self.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
        if scale != 1:
            scores = self.op("Mul", scores, self.number(scale or width ** -0.5))
        if bias:
            scores = self.op("Add", scores, bias)
        context = self.turned(self.op("MatMul", self.op("Softmax", scores, axis=-1), repeated(v)))
        return self.op("Reshape", context, self.sizes(0, 0, heads * width))

    def self_attention(self, x, name, heads, cached=True, bias=True, scale=None, scores=None):
        width = self.hidden // heads
        q, k, v = (self.turned(self.heads(self.linear(x, f"{name}.{part}", self.hidden, bias=bias), heads, width)) for part in "qkv")
        if cached:
            k, v = self.cached(k, f"{name}.key", heads, width), self.cached(v, f"{name}.value", heads, width)
        return self.linear(self.attention(q, k, v, heads, heads, width, scores, scale), f"{name}.out", self.hidden, bias=bias)

    def cross_attention(self, x, encoded, name, heads, bias=True, scale=None):
        """`encoded`: an encoder's result; without one, its keys and values are inputs, as after the first step."""
        width = self.hidden // heads
        q = self.turned(self.heads(self.linear(x, f"{name}.q", self.hidden, bias=bias), heads, width))
        if encoded:
            k, v = (self.turned(self.heads(self.linear(encoded, f"{name}.{part}", self.hidden, bias=bias), heads, width)) for part in "kv")
        else:
            k, v = (self.input(f"{name}.{part}", "batch", heads, "frames", width) for part in ("key", "value"))
        return self.linear(self.attention(q, k, v, heads, heads, width, scale=scale), f"{name}.out", self.hidden, bias=bias)

    def finish(self, x, tokens):
        self.output(x, "batch", tokens, self.hidden)
        return self.model(self.inputs, self.outputs)


def llama(layers=2, hidden=64, heads=4, groups=2, width=16, inner=96, tokens=1, normed=False, norms=("before",), seed=0):
    """With grouped queries, rotary embeddings and a gated feed-forward; `normed`: queries and keys are, as in Qwen 3. `norms`
    of what a block reads and gives: OLMo 2 has those behind, Gemma 2 both."""
    g = Layers(hidden, seed)
    x = g.input("hidden", "batch", tokens, hidden)
    tables = g.tables(g.input("positions", "batch", tokens, kind=TensorProto.INT64), width)
    if "behind" in norms:
        x = g.op("Mul", x, g.number(hidden ** 0.5))
    for layer in range(layers):
        name = f"layers.{layer}"
        before = lambda value, label: g.rms_norm(value, f"{name}.{label}") if "before" in norms else value
        behind = lambda value, label: g.rms_norm(value, f"{name}.{label}") if "behind" in norms else value
        y = before(x, "norm")
        q, k, v = (g.heads(g.linear(y, f"{name}.{part}", count * width, bias=False), count, width)
                   for part, count in (("q", heads), ("k", groups), ("v", groups)))
        if normed:
            q, k = g.rms_norm(q, f"{name}.q_norm", width), g.rms_norm(k, f"{name}.k_norm", width)
        q, k, v = g.rotary(g.turned(q), tables, width), g.rotary(g.turned(k), tables, width), g.turned(v)
        k, v = g.cached(k, f"{layer}.key", groups, width), g.cached(v, f"{layer}.value", groups, width)
        context = g.attention(q, k, v, heads, groups, width)
        x = g.op("Add", x, behind(g.linear(context, f"{name}.o", hidden, heads * width, bias=False), "norm3"))
        y = before(x, "norm2")
        gated = g.op("Mul", g.silu(g.linear(y, f"{name}.gate", inner, bias=False)), g.linear(y, f"{name}.up", inner, bias=False))
        x = g.op("Add", x, behind(g.linear(gated, f"{name}.down", hidden, inner, bias=False), "norm4"))
    return g.finish(g.rms_norm(x, "norm"), tokens)


def grouped(layers=2, hidden=64, heads=4, groups=2, width=16, inner=96, tokens=1, seed=0):
    """As llama, with the attention and its cache in one node of com.microsoft: each sequence has its own length."""
    g = Layers(hidden, seed)
    x = g.input("hidden", "batch", tokens, hidden)
    lengths = [g.input("lengths", "batch", kind=TensorProto.INT32), g.input("total", 1, kind=TensorProto.INT32)]
    angles = np.arange(64)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    tables = [g.constant(table(angles).astype(np.float32)) for table in (np.cos, np.sin)]
    for layer in range(layers):
        name = f"layers.{layer}"
        y = g.rms_norm(x, f"{name}.norm")
        rows = [g.linear(y, f"{name}.{part}", count * width, bias=False) for part, count in (("q", heads), ("k", groups), ("v", groups))]
        past = [g.input(f"past.{layer}.{part}", "batch", groups, "past", width) for part in ("key", "value")]
        context, *caches = g.op("GroupQueryAttention", *rows, *past, *lengths, *tables, outputs=3, domain="com.microsoft",
                                num_heads=heads, kv_num_heads=groups, do_rotary=1)
        for part, cache in zip(("key", "value"), caches):
            g.output(g.op("Identity", cache, name=f"present.{layer}.{part}"), "batch", groups, "all", width)
        x = g.op("Add", x, g.linear(context, f"{name}.o", hidden, heads * width, bias=False))
        y = g.rms_norm(x, f"{name}.norm2")
        gated = g.op("Mul", g.silu(g.linear(y, f"{name}.gate", inner, bias=False)), g.linear(y, f"{name}.up", inner, bias=False))
        x = g.op("Add", x, g.linear(gated, f"{name}.down", hidden, inner, bias=False))
    model = g.finish(g.rms_norm(x, "norm"), tokens)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def whisper(layers=2, hidden=64, heads=4, first=False, seed=0):
    """The decoder: cached attention, attention to an encoder's result, GELU, layers that normalize first. In the `first`
    step keys and values are computed of that result, later they are inputs."""
    g = Layers(hidden, seed)
    x, encoded = g.input("hidden", "batch", 1, hidden), first and g.input("encoded", "batch", "frames", hidden)
    for layer in range(layers):
        x = g.op("Add", x, g.self_attention(g.layer_norm(x, f"{layer}.n1"), f"{layer}.self", heads))
        x = g.op("Add", x, g.cross_attention(g.layer_norm(x, f"{layer}.n2"), encoded, f"{layer}.cross", heads))
        inner = g.gelu(g.linear(g.layer_norm(x, f"{layer}.n3"), f"{layer}.fc1", 4 * hidden))
        x = g.op("Add", x, g.linear(inner, f"{layer}.fc2", hidden, 4 * hidden))
    return g.finish(g.layer_norm(x, "norm"), 1)


def vit(layers=2, hidden=64, heads=4, seed=0):
    """An encoder that normalizes first: ViT's, and Whisper's."""
    g = Layers(hidden, seed)
    x = g.input("hidden", "batch", "tokens", hidden)
    for layer in range(layers):
        x = g.op("Add", x, g.self_attention(g.layer_norm(x, f"{layer}.n1"), f"{layer}.self", heads, cached=False))
        inner = g.gelu(g.linear(g.layer_norm(x, f"{layer}.n2"), f"{layer}.fc1", 4 * hidden))
        x = g.op("Add", x, g.linear(inner, f"{layer}.fc2", hidden, 4 * hidden))
    return g.finish(g.layer_norm(x, "norm"), "tokens")


def t5(layers=2, hidden=64, heads=4, inner=96, decoder=False, first=False, seed=0):
    """With a bias of relative positions, which is an input here, without scale, and a gated GELU; `first` as above."""
    g = Layers(hidden, seed)
    tokens = 1 if decoder else "tokens"
    x = g.input("hidden", "batch", tokens, hidden)
    bias = g.input("bias", 1, heads, tokens, "total" if decoder else "tokens")
    encoded = first and g.input("encoded", "batch", "frames", hidden)
    for layer in range(layers):
        y = g.rms_norm(x, f"{layer}.n1")
        x = g.op("Add", x, g.self_attention(y, f"{layer}.self", heads, cached=decoder, bias=False, scale=1, scores=bias))
        if decoder:
            y = g.rms_norm(x, f"{layer}.n2")
            x = g.op("Add", x, g.cross_attention(y, encoded, f"{layer}.cross", heads, bias=False, scale=1))
        y = g.rms_norm(x, f"{layer}.n3")
        gated = g.op("Mul", g.gelu(g.linear(y, f"{layer}.wi0", inner, bias=False)), g.linear(y, f"{layer}.wi1", inner, bias=False))
        x = g.op("Add", x, g.linear(gated, f"{layer}.wo", hidden, inner, bias=False))
    return g.finish(g.rms_norm(x, "norm"), tokens)


def stored_as(model, code):
    """The model with all that is f32 in that type: as an exporter writes a model whose parameters were converted."""
    element = helper.tensor_dtype_to_np_dtype(code)

    def convert(tensor):
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor)
            with np.errstate(over="ignore"):  # a mask's least f32 is -inf in f16
                numbers = np.ascontiguousarray(array.astype(element))
            tensor.CopyFrom(helper.make_tensor(tensor.name, code, array.shape, numbers.tobytes(), raw=True))

    for tensor in model.graph.initializer:
        convert(tensor)
    for entry in [*model.graph.input, *model.graph.output]:
        if entry.type.tensor_type.elem_type == TensorProto.FLOAT:
            entry.type.tensor_type.elem_type = code
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = code
            if attribute.type == AttributeProto.TENSOR:
                convert(attribute.t)
    return model


def between_floats(model, code):
    """That type inside, f32 at the borders: for inputs that NumPy has no type for."""
    stored_as(model, code)
    first, last = [], []
    for entry, nodes in [(entry, first) for entry in model.graph.input] + [(entry, last) for entry in model.graph.output]:
        if entry.type.tensor_type.elem_type != code:
            continue
        entry.type.tensor_type.elem_type = TensorProto.FLOAT
        inner = f"{entry.name}.inner"
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [inner if name == entry.name else name for name in names]
        cast = (entry.name, inner, code) if nodes is first else (inner, entry.name, TensorProto.FLOAT)
        nodes.append(helper.make_node("Cast", [cast[0]], [cast[1]], to=cast[2]))
    nodes = [*first, *model.graph.node, *last]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model
