"""Gradients of an ONNX model by PyTorch's autograd, in a process of its own: Debian's python3-torch runs it.

    /usr/bin/python3 torch_oracle.py GRAPH.npz INPUTS.npz OUT.npz LOSS [double]

GRAPH is what torch_graph.py writes of a model.

LOSS is the name of an output, or cross_entropy|LOGITS|LABELS|IGNORED[|shift], or mse|VALUES|LABELS. All float initializers of two
elements or more vary. Writes loss and d loss / d NAME. Interprets nodes one by one; shares no code with the compiler.
"""
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64, 10: torch.float16}


def ints(x):
    return [int(i) for i in x.reshape(-1).tolist()]


def reduce(function):
    def run(a, x, axes=None):
        axes = ints(axes) if axes is not None else a.get("axes")
        return function(x, list(range(x.dim())) if axes is None else list(axes), bool(a.get("keepdims", 1)))
    return run


def slices(a, x, starts, ends, axes=None, steps=None):
    axes = ints(axes) if axes is not None else list(range(len(starts)))
    for i, (start, end) in enumerate(zip(ints(starts), ints(ends))):
        step, axis, size = ints(steps)[i] if steps is not None else 1, axes[i], x.shape[axes[i]]
        assert step > 0
        index = torch.arange(size)[slice(start, end, step)]
        x = x.index_select(axis, index)
    return x


def reshape(a, x, shape):
    sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(ints(shape))]
    return x.reshape(sizes)


def gather(a, x, indices):
    axis = a.get("axis", 0) % x.dim()
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    flat = x.index_select(axis, indices.reshape(-1))
    return flat.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]])


def gemm(a, x, y, z=None):
    x, y = x.T if a.get("transA") else x, y.T if a.get("transB") else y
    result = a.get("alpha", 1.0) * (x @ y)
    return result if z is None else result + a.get("beta", 1.0) * z


def split(a, x, sizes=None):
    axis, count = a.get("axis", 0), a.get("num_outputs")
    parts = ints(sizes) if sizes is not None else a.get("split")
    if parts is None:
        width = -(-x.shape[axis] // a["outputs"])
        parts = [min(width, x.shape[axis] - i * width) for i in range(a["outputs"])]
    return tuple(torch.split(x, list(parts), axis))


def layer_norm(a, x, scale, bias=None):
    axis = a.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], scale.expand(x.shape[axis:]), bias, a.get("epsilon", 1e-5))


def rms_norm(a, x, scale):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + a.get("epsilon", 1e-5)) * scale


def padded(a, x, kernel, value=0.0):
    """x with the pads of a convolution or a pool, of auto_pad, too."""
    rank = len(kernel)
    pads, kind = list(a.get("pads", [0] * (2 * rank))), a.get("auto_pad", "NOTSET")
    if kind.startswith("SAME"):
        for i, (size, width) in enumerate(zip(x.shape[2:], kernel)):
            stride, dilation = a.get("strides", [1] * rank)[i], a.get("dilations", [1] * rank)[i]
            total = max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
            small = total // 2
            pads[i], pads[rank + i] = (small, total - small) if kind == "SAME_UPPER" else (total - small, small)
    return F.pad(x, [p for i in reversed(range(rank)) for p in (pads[i], pads[i + rank])], value=value)


def conv(a, x, w, bias=None):
    rank = x.dim() - 2
    function, pads = {1: F.conv1d, 2: F.conv2d}[rank], a.get("pads", [0] * (2 * rank))
    if pads[:rank] == pads[rank:] and "auto_pad" not in a:  # without a copy
        return function(x, w, bias, a.get("strides", [1] * rank), pads[:rank], a.get("dilations", [1] * rank), a.get("group", 1))
    return function(padded(a, x, w.shape[2:]), w, bias, a.get("strides", [1] * rank), 0, a.get("dilations", [1] * rank), a.get("group", 1))


def max_pool(a, x):
    return F.max_pool2d(padded(a, x, a["kernel_shape"], -torch.inf), a["kernel_shape"], a.get("strides", [1, 1]))


def recurrent(kind):
    def run(a, x, w, r, b=None, lengths=None, h=None, c=None):
        directions, hidden = w.shape[0], r.shape[2]
        outputs, lasts, cells = [], [], []
        for d in range(directions):
            backward = a.get("direction", "forward") == "reverse" or d == 1
            bias = b[d] if b is not None else torch.zeros(2 * w.shape[1], dtype=x.dtype)
            wb, rb = bias[:w.shape[1]], bias[w.shape[1]:]
            state = h[d] if h is not None else torch.zeros(x.shape[1], hidden, dtype=x.dtype)
            cell = c[d] if c is not None else torch.zeros(x.shape[1], hidden, dtype=x.dtype)
            steps = range(x.shape[0] - 1, -1, -1) if backward else range(x.shape[0])
            row = [None] * x.shape[0]
            for t in steps:
                left, right = x[t] @ w[d].T + wb, state @ r[d].T + rb
                if kind == "LSTM":
                    i, o, f, g = (left + right).split(hidden, -1)
                    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                    state = o.sigmoid() * cell.tanh()
                elif kind == "GRU":
                    (lz, lr, lh), (rz, rr, rh) = left.split(hidden, -1), right.split(hidden, -1)
                    z, reset = (lz + rz).sigmoid(), (lr + rr).sigmoid()
                    if a.get("linear_before_reset"):
                        new = (lh + reset * rh).tanh()
                    else:
                        new = (lh + (reset * state) @ r[d][2 * hidden:].T + rb[2 * hidden:]).tanh()
                    state = (1 - z) * new + z * state
                else:
                    state = (left + right).tanh()
                row[t] = state
            outputs.append(torch.stack(row))
            lasts.append(state)
            cells.append(cell)
        result = (torch.stack(outputs, 1), torch.stack(lasts))
        return result + (torch.stack(cells),) if kind == "LSTM" else result
    return run


def batch_norm(a, x, scale, bias, mean, variance):
    shape = [1, -1] + [1] * (x.dim() - 2)
    normal = (x - mean.reshape(shape)) / torch.sqrt(variance.reshape(shape) + a.get("epsilon", 1e-5))
    return normal * scale.reshape(shape) + bias.reshape(shape)


OPS = {
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc"),
    "Pow": lambda a, x, y: x ** y.to(x.dtype), "Sqrt": lambda a, x: x.sqrt(), "Erf": lambda a, x: torch.erf(x), "Tanh": lambda a, x: x.tanh(),
    "Sigmoid": lambda a, x: x.sigmoid(), "Relu": lambda a, x: x.relu(), "Exp": lambda a, x: x.exp(), "Log": lambda a, x: x.log(),
    "Neg": lambda a, x: -x, "Abs": lambda a, x: x.abs(), "Reciprocal": lambda a, x: 1 / x, "Identity": lambda a, x: x, "Not": lambda a, x: ~x,
    "And": lambda a, x, y: x & y, "Or": lambda a, x, y: x | y, "Equal": lambda a, x, y: x == y, "Less": lambda a, x, y: x < y,
    "LessOrEqual": lambda a, x, y: x <= y, "Greater": lambda a, x, y: x > y, "GreaterOrEqual": lambda a, x, y: x >= y,
    "Min": lambda a, *x: x[0] if len(x) == 1 else torch.minimum(*x), "Max": lambda a, *x: x[0] if len(x) == 1 else torch.maximum(*x),
    "Clip": lambda a, x, low=None, high=None: x.clamp(low, high), "Where": lambda a, c, x, y: torch.where(c, x, y), "Cos": lambda a, x: x.cos(), "Sin": lambda a, x: x.sin(),
    "Softmax": lambda a, x: x.softmax(a.get("axis", -1)), "LogSoftmax": lambda a, x: x.log_softmax(a.get("axis", -1)),
    "MatMul": lambda a, x, y: x @ y, "Gemm": gemm, "Gather": gather, "Reshape": reshape, "Slice": slices, "Split": split,
    "Transpose": lambda a, x: x.permute(a.get("perm", list(range(x.dim()))[::-1])),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]), "Shape": lambda a, x: torch.tensor(x.shape),
    "Cast": lambda a, x: x.to(TYPES[a["to"]]), "Expand": lambda a, x, s: x.expand(torch.broadcast_shapes(x.shape, ints(s))),
    "Range": lambda a, x, y, z: torch.arange(x.item(), y.item(), z.item()), "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "ConstantOfShape": lambda a, s: torch.full(ints(s), a["value"].item() if "value" in a else 0.0,
                                               dtype=a["value"].dtype if "value" in a else torch.float32),
    "ReduceMean": reduce(lambda x, axes, keep: x.mean(axes, keep)), "ReduceSum": reduce(lambda x, axes, keep: x.sum(axes, keep)),
    "LayerNormalization": layer_norm, "RMSNormalization": rms_norm, "Conv": conv, "MaxPool": max_pool, "BatchNormalization": batch_norm,
    "GlobalAveragePool": lambda a, x: x.mean(list(range(2, x.dim())), True),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")), "Tile": lambda a, x, n: x.repeat(ints(n)),
    "Trilu": lambda a, x, k=None: (torch.triu if a.get("upper", 1) else torch.tril)(x, int(k) if k is not None else 0),
    "LSTM": recurrent("LSTM"), "GRU": recurrent("GRU"), "RNN": recurrent("RNN"),
}


def unsqueeze(a, x, axes=None):
    axes = ints(axes) if axes is not None else a["axes"]
    for axis in sorted(i % (x.dim() + len(axes)) for i in axes):
        x = x.unsqueeze(axis)
    return x


def squeeze(a, x, axes=None):
    axes = ints(axes) if axes is not None else a.get("axes", [i for i, size in enumerate(x.shape) if size == 1])
    for axis in sorted((i % x.dim() for i in axes), reverse=True):
        x = x.squeeze(axis)
    return x


OPS.update(Unsqueeze=unsqueeze, Squeeze=squeeze)


def run(graph, values):
    """All values of the graph by name."""
    for node in graph["nodes"]:
        a = {"outputs": len(node["outputs"]), **node["attributes"]}
        if node["op"] == "Constant":
            value = next(iter(node["attributes"].values()))
            results = value if isinstance(value, torch.Tensor) else torch.tensor(value)
            if results.is_floating_point() and values["double"]:
                results = results.double()
        else:
            if node["op"] == "Cast" and values["double"] and a["to"] == 1:
                a["to"] = 11
            results = OPS[node["op"]](a, *(values[name] if name else None for name in node["inputs"]))
        for name, result in zip(node["outputs"], results if isinstance(results, tuple) else (results,)):
            values[name] = result
    return values


def loss_of(values, text):
    kind, *rest = text.split("|")
    if kind == "mse":
        return ((values[rest[0]] - values[rest[1]]) ** 2).mean()
    if kind != "cross_entropy":
        return values[text].reshape(())
    logits, labels, ignored = values[rest[0]], values[rest[1]], int(rest[2])
    if len(rest) > 3:
        logits, labels = logits[..., :-1, :], labels[..., 1:]
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=ignored)


def load(path, double):
    """The graph with tensors in its attributes, its initializers, and those that vary."""
    arrays = {name: torch.from_numpy(array.copy()) for name, array in np.load(path).items()}
    graph = json.loads(bytes(arrays["graph"].numpy()).decode())
    for node in graph["nodes"]:
        for name, value in node["attributes"].items():
            if isinstance(value, dict):
                node["attributes"][name] = arrays[value["array"]]
    values, parameters = {"double": double}, {}
    for name in graph["initializers"]:
        value = arrays["weight/" + name]
        if value.is_floating_point():
            value = value.double() if double else value
            if value.numel() > 1:
                parameters[name] = value.requires_grad_()
        values[name] = value
    return graph, values, parameters


def main():
    path, inputs, output, loss = sys.argv[1:5]
    double = len(sys.argv) > 5
    torch.set_num_threads(1)
    graph, values, parameters = load(path, double)
    for name, array in np.load(inputs).items():
        value = torch.from_numpy(array)
        values[name] = value.double() if double and value.is_floating_point() else value
    total = loss_of(run(graph, values), loss)
    total.backward()
    found = {name: (p.grad if p.grad is not None else torch.zeros_like(p)).numpy() for name, p in parameters.items()}
    np.savez(output, loss=total.detach().numpy(), **found)


if __name__ == "__main__":
    main()
