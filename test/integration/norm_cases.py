"""Norms before products: computed in the product's kernel they have the same bits as apart, for any number of threads and
of rows, and what NumPy computes in float64."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, processors, run_package
from programs import SEED

# Sums of up to 520 products of normalized numbers and weights of a twentieth.
TOLERANCE = 1e-4


def normalized(x, scale, bias, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True) if bias is not None else x
    y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * scale
    return y + bias if bias is not None else y


class Layers:
    """Norm and product after norm and product, each of its own sizes, with readers of the norm beside the product."""

    def __init__(self, name):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.nodes, self.constants, self.inputs, self.outputs, self.parts = [], [], {}, [], []

    def weight(self, name, *shape, spread=1.0, offset=0.0):
        array = (offset + spread * self.random.standard_normal(shape)).astype(np.float32)
        self.constants.append(numpy_helper.from_array(array, name))
        return array.astype(np.float64)

    def add(self, depth, columns, kind, reads=(), count=1):
        """`reads`: "norm" gives the norm as an output, "residual" adds it behind the product, where sizes allow, "after"
        adds it to the result of another product."""
        i = len(self.parts)
        x = f"x{i}"
        self.inputs[x] = depth
        scale, bias = self.weight(f"s{i}", depth, spread=0.1, offset=1), self.weight(f"t{i}", depth)
        op = lambda kind, inputs, out, **attributes: self.nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        if kind == "layer":
            op("LayerNormalization", [x, f"s{i}", f"t{i}"], f"n{i}", axis=-1, epsilon=1e-5)
        else:
            bias = None
            op("RMSNormalization", [x, f"s{i}"], f"n{i}", axis=-1, epsilon=1e-5)
        weights = []
        for j in range(count):
            weights.append((self.weight(f"w{i}_{j}", depth, columns, spread=0.05), self.weight(f"b{i}_{j}", columns)))
            op("MatMul", [f"n{i}", f"w{i}_{j}"], f"m{i}_{j}")
            op("Add", [f"m{i}_{j}", f"b{i}_{j}"], f"p{i}_{j}")
            last = f"p{i}_{j}"
            if "relu" in reads:
                op("Relu", [last], f"r{i}_{j}")
                last = f"r{i}_{j}"
            if "residual" in reads:
                op("Add", [last, f"n{i}"], f"a{i}_{j}")
                last = f"a{i}_{j}"
            if "input" in reads:
                op("Add", [x, last], f"c{i}_{j}")
                last = f"c{i}_{j}"
            self.outputs.append((last, columns))
        if "norm" in reads:
            op("Identity", [f"n{i}"], f"i{i}")
            self.outputs.append((f"i{i}", depth))
        if "after" in reads:
            back = self.weight(f"v{i}", columns, depth, spread=0.05)
            op("MatMul", [last, f"v{i}"], f"d{i}")
            op("Add", [f"d{i}", f"n{i}"], f"e{i}")
            self.outputs.append((f"e{i}", depth))

        def expected(array):
            n = normalized(array.astype(np.float64), scale, bias)
            results = []
            for w, b in weights:
                y = n @ w + b
                y = np.maximum(y, 0) if "relu" in reads else y
                y = y + n if "residual" in reads else y
                results.append(y + array if "input" in reads else y)
            return results + ([n] if "norm" in reads else []) + ([results[-1] @ back + n] if "after" in reads else [])
        self.parts.append(expected)

    def verify(self, folder, *options, fused, judged=True, cpus=dict.fromkeys((processors()[0], processors()[-1]))):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "main", [value(name, TensorProto.FLOAT, ["b", "s", depth]) for name, depth in self.inputs.items()],
                                  [value(name, TensorProto.FLOAT, ["b", "s", size]) for name, size in self.outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        onnx.save(model, folder / "m.onnx")
        for cpu in cpus:
            packages = [compile_model(folder / "m.onnx", folder, f"--fusion={fusion}", f"--mcpu={cpu}", *options, name=f"{fusion}-{cpu}.dsp")
                        for fusion in ("none", "specialized")]
            kernels = [len(launches_of(package)) for package in packages]
            expect(kernels[0] - kernels[1] >= fused, f"expected {fused} fewer launches, found {kernels}")
            rows = {}
            for number, (b, s) in enumerate(((1, 1), (3, 2), (5, 13), (1, 64), (1, 129), (0, 3))):
                env = {name: self.random.standard_normal((b, s, depth)).astype(np.float32) * 3 + 1 for name, depth in self.inputs.items()}
                if b and s > 1:  # one row of each is that of the first call
                    for name, array in env.items():
                        array[-1, -1] = rows.setdefault(name, array[-1, -1].copy())
                runs = [run_package(packages[0], env, folder)] + [run_package(packages[1], env, folder, f"--threads={t}") for t in (2, 5)]
                expected = [y for name, part in zip(self.inputs, self.parts) for y in part(env[name])]
                for (name, _), want in zip(self.outputs, expected):
                    what = f"{name} of {b}x{s} on {cpu} (DS_SEED={SEED})"
                    for run in runs[1:]:
                        expect(run[name].tobytes() == runs[0][name].tobytes(), f"{what}: other bits than apart")
                    error = np.abs(runs[1][name] - want).max(initial=0)
                    expect(runs[1][name].shape == want.shape and (not judged or error <= TOLERANCE), f"{what}: an error of {error}")
                    if b and s > 1:
                        row = runs[1][name][-1, -1].tobytes()
                        expect(rows.setdefault(name + "'", row) == row, f"{what}: a row depends on the others")


def launches_of(package):
    return json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]["launches"]


@case(seconds=12)
def norms_before_products(folder):
    n = Layers("plain")
    for depth, columns, kind in ((48, 96, "layer"), (520, 50, "rms"), (33, 49, "layer"), (64, 48, "rms"), (128, 130, "layer")):
        n.add(depth, columns, kind, ("relu",) if depth % 2 else ())
    n.verify(folder, fused=6)


@case(seconds=12)
def norms_with_other_readers(folder):
    n = Layers("readers")
    n.add(64, 96, "layer", ("after",))
    n.add(72, 56, "rms", ("norm", "relu"))
    n.add(48, 48, "layer", ("norm", "input"))
    n.add(48, 48, "rms", ("norm",))
    n.add(40, 72, "layer", count=3)
    n.add(48, 48, "layer", ("residual",))
    n.verify(folder, fused=8)


@case(seconds=16)
def norms_before_codes(folder):
    for number, how in enumerate(("int8", "int4,group=16")):
        n = Layers(f"codes-{number}")
        n.add(64, 96, "layer", ("after",))
        n.add(96, 50, "rms", ("relu",))
        n.verify(folder, f"--quantize={how}", fused=4, judged=False, cpus=(processors()[-number],))
