"""Models that the cases and benchmarks write themselves: deterministic by seed, in the shapes that exporters write."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects nodes and initializers; every method returns the name of a value."""

    def __init__(self, seed=0):
        self.nodes, self.initializers, self.random = [], [], np.random.default_rng(seed)

    def op(self, kind, *inputs, name=None, outputs=1, **attributes):
        name = name or f"/{kind}_{len(self.nodes)}"
        results = [f"{name}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=name, **attributes))
        return results[0] if outputs == 1 else results

    def constant(self, array, name=None):
        name = name or f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def weight(self, name, *shape, scale=0.02):
        return self.constant(self.random.standard_normal(shape, np.float32) * np.float32(scale), name)

    def model(self, inputs, outputs, opset=17):
        graph = helper.make_graph(self.nodes, "main", inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


def bert(layers=12, hidden=768, heads=12, vocabulary=30522, positions=512, seed=0, graph=None):
    """A BERT encoder with dynamic batch and length, as PyTorch's TorchScript exporter writes it at opset 17. The weights
    are random, unless `graph` knows other ones of the same names."""
    g = graph or Graph(seed)
    integers = lambda *numbers: g.constant(np.array(numbers, np.int64))
    zero, one, size = integers(0), integers(1), hidden // heads
    batch = g.op("Gather", g.op("Shape", "input_ids"), g.constant(np.int64(0)), axis=0)
    length = g.op("Gather", g.op("Shape", "input_ids"), g.constant(np.int64(1)), axis=0)
    lengths = g.op("Unsqueeze", length, zero)

    def shaped(value, *sizes):
        parts = [g.op("Unsqueeze", part, zero) if isinstance(part, str) else integers(part) for part in sizes]
        return g.op("Reshape", value, g.op("Concat", *parts, axis=0))

    def linear(value, name, columns, rows=hidden):
        product = g.op("MatMul", value, g.weight(f"{name}.weight", rows, columns))
        return g.op("Add", g.weight(f"{name}.bias", columns), product)

    def norm(value, name):
        return g.op("LayerNormalization", value, g.constant(1 + g.random.standard_normal(hidden, np.float32) / 20,
                    f"{name}.weight"), g.weight(f"{name}.bias", hidden), axis=-1, epsilon=1e-12)

    mask = g.op("Unsqueeze", g.op("Unsqueeze", "attention_mask", one), integers(2))
    mask = g.op("Sub", g.constant(np.float32(1)), g.op("Cast", mask, to=TensorProto.FLOAT))
    mask = g.op("Mul", mask, g.constant(np.float32(np.finfo(np.float32).min)))
    positions_used = g.op("Slice", g.constant(np.arange(positions, dtype=np.int64)[None], "position_ids"), zero,
                          lengths, one, one)
    x = g.op("Gather", g.weight("word_embeddings", vocabulary, hidden), "input_ids")
    x = g.op("Add", x, g.op("Gather", g.weight("position_embeddings", positions, hidden), positions_used))
    x = norm(x, "embeddings.norm")
    for layer in range(layers):
        name = f"layer.{layer}"
        split = lambda what: g.op("Transpose", shaped(linear(x, f"{name}.{what}", hidden), batch, length, heads, size),
                                  perm=[0, 2, 3, 1] if what == "key" else [0, 2, 1, 3])
        scores = g.op("MatMul", split("query"), split("key"))
        scores = g.op("Div", scores, g.constant(np.float32(math.sqrt(size))))
        weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        context = g.op("Transpose", g.op("MatMul", weights, split("value")), perm=[0, 2, 1, 3])
        x = norm(g.op("Add", linear(shaped(context, batch, length, hidden), f"{name}.out", hidden), x), f"{name}.norm1")
        h = linear(x, f"{name}.up", 4 * hidden)
        erf = g.op("Add", g.op("Erf", g.op("Div", h, g.constant(np.float32(math.sqrt(2))))), g.constant(np.float32(1)))
        h = g.op("Mul", g.op("Mul", h, erf), g.constant(np.float32(0.5)))
        x = norm(g.op("Add", linear(h, f"{name}.down", hidden, 4 * hidden), x), f"{name}.norm2")
    g.op("Identity", x, name="last_hidden_state")
    g.nodes[-1].output[0] = "last_hidden_state"
    return g.model([value(name, TensorProto.INT64, "batch", "sequence") for name in ("input_ids", "attention_mask")],
                   [value("last_hidden_state", TensorProto.FLOAT, "batch", "sequence", hidden)])


def gpt2_step(layers=12, hidden=768, heads=12, vocabulary=50257, seed=0):
    """One step of a GPT-2 decoder: a row of hidden states per sequence and its past in, logits and the new keys and
    values out. Batch and past are dynamic; the head is a product with a transposed table, as with a tied embedding."""
    g = Graph(seed)
    size = hidden // heads

    def linear(value, name, columns, rows=hidden):
        product = g.op("MatMul", value, g.weight(f"{name}.weight", rows, columns))
        return g.op("Add", product, g.weight(f"{name}.bias", columns))

    def norm(value, name):
        return g.op("LayerNormalization", value, g.constant(1 + g.random.standard_normal(hidden, np.float32) / 20,
                    f"{name}.weight"), g.weight(f"{name}.bias", hidden), axis=-1, epsilon=1e-5)

    inputs, outputs, x = [value("hidden", TensorProto.FLOAT, "batch", 1, hidden)], [], "hidden"
    split = g.constant(np.array([hidden] * 3, np.int64))
    for layer in range(layers):
        parts = g.op("Split", linear(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn", 3 * hidden), split, axis=-1,
                     outputs=3)
        shape = g.constant(np.array([0, 1, heads, size], np.int64))
        q, *new = [g.op("Transpose", g.op("Reshape", part, shape), perm=[0, 2, 1, 3]) for part in parts]
        keys, values = [], []
        for kind, part, joined in (("key", new[0], keys), ("value", new[1], values)):
            name = f"past.{layer}.{kind}"
            inputs.append(value(name, TensorProto.FLOAT, "batch", heads, "past", size))
            joined.append(g.op("Concat", name, part, axis=2))
            outputs.append(value(g.op("Identity", part, name=f"new.{layer}.{kind}"), TensorProto.FLOAT, "batch", heads, 1, size))
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", keys[0], perm=[0, 1, 3, 2])),
                      g.constant(np.float32(size ** -0.5)))
        context = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), values[0]), perm=[0, 2, 1, 3])
        context = g.op("Reshape", context, g.constant(np.array([0, 1, hidden], np.int64)))
        x = g.op("Add", x, linear(context, f"h.{layer}.attn.c_proj", hidden))
        inner = linear(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc", 4 * hidden)
        cube = g.op("Mul", g.op("Mul", inner, inner), inner)
        bend = g.op("Mul", g.op("Add", inner, g.op("Mul", cube, g.constant(np.float32(0.044715)))),
                    g.constant(np.float32(math.sqrt(2 / math.pi))))
        inner = g.op("Mul", g.op("Mul", inner, g.constant(np.float32(0.5))),
                     g.op("Add", g.op("Tanh", bend), g.constant(np.float32(1))))
        x = g.op("Add", x, linear(inner, f"h.{layer}.mlp.c_proj", hidden, 4 * hidden))
    head = g.op("Transpose", g.weight("wte", vocabulary, hidden), perm=[1, 0])
    logits = g.op("MatMul", norm(x, "ln_f"), head)
    return g.model(inputs, [value(logits, TensorProto.FLOAT, "batch", 1, vocabulary), *outputs])


def chain(nodes, seed=0):
    """`nodes` operators in a row, of several kinds and with many distinct constants, over a small dynamic tensor."""
    g = Graph(seed)
    x = "x"
    for i in range(nodes):
        kind = i % 5
        if kind == 0:
            x = g.op("Add", x, g.weight(f"bias{i}", 16))
        elif kind == 1:
            x = g.op("MatMul", x, g.weight(f"weight{i}", 16, 16, scale=0.25))
        elif kind == 2:
            x = g.op("Tanh", x)
        elif kind == 3:
            x = g.op("Mul", x, g.constant(np.float32(1 + i % 16 / 8)))
        else:
            x = g.op("Transpose", g.op("Transpose", x, perm=[1, 0]), perm=[1, 0]) if i % 2 else g.op("Sigmoid", x)
    g.op("Identity", x)
    g.nodes[-1].output[0] = "y"
    return g.model([value("x", TensorProto.FLOAT, "n", 16)], [value("y", TensorProto.FLOAT, "n", 16)])


def small(seed=0):
    """A model of a few hundred bytes of weights: y = tanh(x · w) + b."""
    g = Graph(seed)
    g.op("Add", g.op("Tanh", g.op("MatMul", "x", g.weight("w", 4, 8, scale=1))), g.weight("b", 8), name="last")
    g.nodes[-1].output[0] = "y"
    return g.model([value("x", TensorProto.FLOAT, "n", 4)], [value("y", TensorProto.FLOAT, "n", 8)])


def external(location, offset=None, length=None, shape=(4, 8)):
    """small(), with the weight kept in another file, as the given text fields say."""
    model = small()
    tensor = next(t for t in model.graph.initializer if t.name == "w")
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.dims[:]
    tensor.dims.extend(shape)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            tensor.external_data.add(key=key, value=str(text))
    return model, data


def save(model, path):
    path.write_bytes(model.SerializeToString())
    return path
