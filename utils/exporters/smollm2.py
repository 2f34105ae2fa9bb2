"""Writes a Llama-shaped decoder from a GGUF checkpoint as ONNX: opset 17, float32, with past, in primitive operators.

usage: smollm2.py MODEL.gguf FOLDER      writes FOLDER/model.onnx and FOLDER/weights.bin
Inputs: input_ids [batch, length], attention_mask [batch, total], past.N.key and past.N.value [batch, heads, past, size];
total is past + length. Outputs: logits [batch, length, vocabulary] and present.N.key, present.N.value.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from checkpoints import read_gguf
from onnx import TensorProto, helper, numpy_helper


class Writer:
    """Collects nodes; weights go to a file beside the model."""

    def __init__(self, folder):
        self.nodes, self.initializers, self.weights = [], [], open(Path(folder, "weights.bin"), "wb")

    def op(self, kind, *inputs, outputs=1, **attributes):
        name = f"/{kind}_{len(self.nodes)}"
        results = [f"{name}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=name, **attributes))
        return results[0] if outputs == 1 else results

    def constant(self, array):
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def weight(self, name, array):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape,
                             data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "weights.bin"), ("offset", self.weights.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(text))
        self.weights.write(np.ascontiguousarray(array, np.float32).tobytes())
        self.initializers.append(tensor)
        return name


def write(checkpoint, folder):
    metadata, tensors = read_gguf(checkpoint)
    of = lambda key: metadata[f"llama.{key}"]
    layers, hidden, heads, groups = (of("block_count"), of("embedding_length"), of("attention.head_count"),
                                     of("attention.head_count_kv"))
    size, vocabulary = hidden // heads, of("vocab_size")
    g = Writer(folder)

    def halves(weight, count):
        """GGUF interleaves the two halves of every head that RoPE rotates; exporters keep them apart."""
        return weight.reshape(count, size // 2, 2, hidden).swapaxes(1, 2).reshape(count * size, hidden)

    def norm(x, name):
        mean = g.op("ReduceMean", g.op("Pow", x, g.constant(np.float32(2))), axes=[-1])
        root = g.op("Sqrt", g.op("Add", mean, g.constant(np.float32(of("attention.layer_norm_rms_epsilon")))))
        return g.op("Mul", g.weight(name, tensors[name]), g.op("Mul", x, g.op("Reciprocal", root)))

    def linear(x, name, weight=None):
        return g.op("MatMul", x, g.weight(name, (tensors[name] if weight is None else weight).T))

    def split(x, count):
        return g.op("Transpose", g.op("Reshape", x, g.integers(0, 0, count, size)), perm=[0, 2, 1, 3])

    def rotate(x):
        first = g.op("Slice", x, g.integers(0), g.integers(size // 2), g.integers(3))
        second = g.op("Slice", x, g.integers(size // 2), g.integers(1 << 62), g.integers(3))
        turned = g.op("Concat", g.op("Neg", second), first, axis=-1)
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    def repeat(x):
        """Every key and value head serves heads / groups query heads."""
        wide = g.op("Unsqueeze", x, g.integers(2))
        shape = g.op("Concat", g.op("Slice", g.op("Shape", wide), g.integers(0), g.integers(2)),
                     g.integers(heads // groups), g.op("Slice", g.op("Shape", wide), g.integers(3), g.integers(5)),
                     axis=0)
        return g.op("Reshape", g.op("Expand", wide, shape), g.op("Concat", batch, g.integers(heads, -1, size), axis=0))

    scalar = lambda name, axis: g.op("Gather", g.op("Shape", name), g.constant(np.int64(axis)), axis=0)
    batch = g.op("Unsqueeze", scalar("input_ids", 0), g.integers(0))
    past = scalar("past.0.key", 2)
    total = g.op("Add", past, scalar("input_ids", 1))
    one = g.constant(np.int64(1))
    positions = g.op("Unsqueeze", g.op("Range", past, total, one), g.integers(1))
    frequencies = (of("rope.freq_base") ** (-np.arange(0, size, 2) / size)).astype(np.float32)
    angles = g.op("Mul", g.op("Cast", positions, to=TensorProto.FLOAT), g.constant(frequencies))
    angles = g.op("Concat", angles, angles, axis=-1)
    cos, sin = g.op("Cos", angles), g.op("Sin", angles)
    seen = g.op("LessOrEqual", g.op("Range", g.constant(np.int64(0)), total, one), positions)
    mask = g.op("Slice", "attention_mask", g.integers(0), g.op("Unsqueeze", total, g.integers(0)), g.integers(1))
    mask = g.op("Cast", g.op("Unsqueeze", mask, g.integers(1, 2)), to=TensorProto.BOOL)
    bias = g.op("Where", g.op("And", seen, mask), g.constant(np.float32(0)),
                g.constant(np.float32(np.finfo(np.float32).min)))

    embedding = g.weight("token_embd.weight", tensors["token_embd.weight"])
    x = g.op("Gather", embedding, "input_ids")
    shape = lambda length: ["batch", groups, length, size]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"]),
              helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", vocabulary])]
    for layer in range(layers):
        name = f"blk.{layer}"
        y = norm(x, f"{name}.attn_norm.weight")
        q, k = (rotate(split(linear(y, f"{name}.attn_{part}.weight", halves(tensors[f"{name}.attn_{part}.weight"], n)), n))
                for part, n in (("q", heads), ("k", groups)))
        v = split(linear(y, f"{name}.attn_v.weight"), groups)
        joined = []
        for part, new in (("key", k), ("value", v)):
            inputs.append(helper.make_tensor_value_info(f"past.{layer}.{part}", TensorProto.FLOAT, shape("past")))
            outputs.append(helper.make_tensor_value_info(f"present.{layer}.{part}", TensorProto.FLOAT, shape("total")))
            joined.append(g.op("Concat", f"past.{layer}.{part}", new, axis=2))
            g.nodes[-1].output[0] = joined[-1] = f"present.{layer}.{part}"
        scores = g.op("MatMul", q, g.op("Transpose", repeat(joined[0]), perm=[0, 1, 3, 2]))
        scores = g.op("Add", g.op("Mul", scores, g.constant(np.float32(size ** -0.5))), bias)
        context = g.op("MatMul", g.op("Softmax", scores, axis=-1), repeat(joined[1]))
        context = g.op("Reshape", g.op("Transpose", context, perm=[0, 2, 1, 3]), g.integers(0, 0, hidden))
        x = g.op("Add", x, linear(context, f"{name}.attn_output.weight"))
        y = norm(x, f"{name}.ffn_norm.weight")
        gate = linear(y, f"{name}.ffn_gate.weight")
        gate = g.op("Mul", gate, g.op("Sigmoid", gate))
        x = g.op("Add", x, linear(g.op("Mul", gate, linear(y, f"{name}.ffn_up.weight")), f"{name}.ffn_down.weight"))
    x = norm(x, "output_norm.weight")
    g.op("MatMul", x, g.op("Transpose", embedding, perm=[1, 0]))  # the embedding is the output layer too
    g.nodes[-1].output[0] = "logits"
    g.weights.close()
    graph = helper.make_graph(g.nodes, "main", inputs, outputs, g.initializers)
    path = Path(folder, "model.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return metadata, path


if __name__ == "__main__":
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    write(sys.argv[1], sys.argv[2])
