"""Parameters that are states, as training will have them: the same blocks are found, the same bits computed, and what
is computed follows when a state changes. Expected numbers are NumPy's, in double.
"""
import math
import re

import numpy as np

from kit import case, compile_model, expect, tool
from programs import SEED, Program, Value, difference

HIDDEN, HEADS, WORDS, INNER = 64, 4, 50, 128
BLOCKS = {"layer_norm": 1, "rms_norm": 1, "linear": 6, "attention": 1, "gelu": 1, "gather": 1, "conv": 1}
PARAMETERS = {"words": [WORDS, HIDDEN], "gain": [1, HIDDEN], "shift": [1, HIDDEN], "q": [HIDDEN, HIDDEN], "qb": [HIDDEN],
              "k": [HIDDEN, HIDDEN], "kb": [1, HIDDEN], "va": [HIDDEN, 32], "vb": [HIDDEN, 32],
              "o": [HEADS, HIDDEN // HEADS, HIDDEN], "gain2": [HIDDEN], "up": [HIDDEN, INNER], "upb": [INNER],
              "down": [INNER, HIDDEN], "taps": [3, 2, 3], "tapsb": [3]}


class Model(Program):
    """A transformer block in the primitive ops that exporters write, its parameters in files or in states."""

    def __init__(self, folder, parameters, in_states):
        super().__init__()
        self.folder, self.in_states, self.states = folder, in_states, []
        self.parameters = {name: self.parameter(name, array) for name, array in parameters.items()}

    def parameter(self, name, array):
        if not self.in_states:
            return self.weight(array, self.folder)
        self.states.append(Value("%" + name, "f32", list(array.shape), array))
        return self.states[-1]

    def scalar(self, number):
        return self.constant(f"{number:.9e}", "f32", np.array(number, np.float32))

    def binary(self, kind, x, y):
        function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[kind]
        dims = x.dims if len(x.dims) >= len(y.dims) else y.dims
        return self.op(f"ds.binary {kind} {{0}}, {{1}}", [x, y], "f32", dims, function(x.wide, y.wide))

    def mean(self, x):
        return self.op(f"ds.reduce mean {{0}} axes [{len(x.dims) - 1}] keep true", [x], "f32", [*x.dims[:-1], 1],
                       x.wide.mean(-1, keepdims=True))

    def unary(self, kind, x, function):
        return self.op(f"ds.unary {kind} {{0}}", [x], "f32", x.dims, function(x.wide))

    def transpose(self, x, order):
        return self.op(f"ds.transpose {{0}} {list(order)}", [x], "f32", [x.dims[i] for i in order], x.wide.transpose(order))

    def reshape(self, x, dims, shape):
        text = ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims)
        return self.op(f"ds.reshape {{0}} [{text}]", [x], "f32", dims, x.wide.reshape(shape))

    def matmul(self, x, y, right=False):
        array = x.wide @ (y.wide.swapaxes(-1, -2) if right else y.wide)
        return self.op(f"ds.matmul {{0}}, {{1}} transpose [false, {str(right).lower()}]", [x, y], "f32",
                       [*x.dims[:-1], y.dims[-2 if right else -1]], array)

    def deviation(self, mean_square):
        return self.unary("sqrt", self.binary("add", mean_square, self.scalar(1e-5)), np.sqrt)

    def heads(self, x, count):
        split = self.reshape(x, [1, "seq", HEADS, HIDDEN // HEADS], [1, count, HEADS, -1])
        return self.transpose(split, [0, 2, 1, 3])

    def build(self, ids, image):
        p, count = self.parameters, len(ids)
        indices = self.input(ids, "i64", ["seq"])
        x = self.op("ds.gather 0 {0}, {1}", [p["words"], indices], "f32", ["seq", HIDDEN], p["words"].wide[ids])
        centred = self.binary("sub", x, self.mean(x))
        normal = self.binary("div", centred, self.deviation(self.mean(self.binary("mul", centred, centred))))
        normal = self.binary("add", self.binary("mul", normal, p["gain"]), p["shift"])
        q = self.binary("add", self.matmul(normal, p["q"], right=True), p["qb"])
        k = self.binary("add", self.matmul(normal, self.transpose(p["k"], [1, 0])), p["kb"])
        joined = self.op("ds.concat 1 {0}, {1}", [p["va"], p["vb"]], "f32", [HIDDEN, HIDDEN],
                         np.concatenate([p["va"].wide, p["vb"].wide], 1))
        v = self.matmul(normal, joined)
        q, k, v = (self.heads(value, count) for value in (q, k, v))
        scores = self.binary("div", self.matmul(q, k, right=True), self.scalar(math.sqrt(HIDDEN // HEADS)))
        power = np.exp(scores.wide - scores.wide.max(-1, keepdims=True))
        weights = self.op("ds.softmax {0} axis 3 log false", [scores], "f32", scores.dims, power / power.sum(-1, keepdims=True))
        mixed = self.transpose(self.matmul(weights, v), [0, 2, 1, 3])
        mixed = self.reshape(mixed, ["seq", HIDDEN], [count, HIDDEN])
        x = self.binary("add", x, self.matmul(mixed, self.reshape(p["o"], [HIDDEN, HIDDEN], [HIDDEN, HIDDEN])))
        normal = self.binary("div", x, self.deviation(self.mean(self.binary("mul", x, x))))
        normal = self.binary("mul", normal, p["gain2"])
        up = self.matmul(normal, self.binary("mul", p["up"], self.scalar(0.5)))
        up = self.binary("add", up, p["upb"])
        erf = self.unary("erf", self.binary("div", up, self.scalar(math.sqrt(2))), np.vectorize(math.erf))
        gelu = self.binary("mul", self.binary("mul", up, self.binary("add", erf, self.scalar(1))), self.scalar(0.5))
        half = self.op("ds.cast {0} to f16", [p["down"]], "f16", p["down"].dims, p["down"].array.astype(np.float16))
        down = self.op("ds.cast {0} to f32", [half], "f32", half.dims, half.array.astype(np.float32))
        self.check(self.binary("add", x, self.matmul(gelu, down)), "block", 1e-4, 1)
        image = self.input(image, "f32")
        windows = np.lib.stride_tricks.sliding_window_view(image.wide, 3, 2)
        result = np.einsum("nclk,ock->nol", windows, p["taps"].wide) + p["tapsb"].wide[:, None]
        self.test("ds.conv {0}, {1}, {2} strides [1] pads [0, 0] dilations [1] groups 1", [image, p["taps"], p["tapsb"]],
                  "f32", [1, 3, 6], result, 1e-4, 1)
        return self

    def text(self):
        """Every state is halved by a call."""
        if not self.in_states:
            return super().text()
        half, halved = self.scalar(0.5), []
        for value in self.states:
            halved.append(self.op("ds.binary mul {0}, {1}", [value, half], "f32", value.dims, value.wide / 2))
        text = super().text()
        inputs = "".join(f', {value.name}: {value.type} {{ds.name = "{value.name[1:]}", ds.dims = {value.dims}, '
                         f'ds.state = "{value.name[1:]}"}}' for value in self.states)
        results = "".join(f', {value.type} {{ds.state = "{value.name[1:]}"}}' for value in self.states)
        text = text.replace(")\n    -> (", inputs + ")\n    -> (", 1).replace(") attributes {ds.entry}", results + ") attributes {ds.entry}", 1)
        names, types = re.search(r"  return (.*) : (.*)\n", text).groups()
        return text.replace(f"  return {names} : {types}\n", "  return " + ", ".join([names, *(v.name for v in halved)])
                            + " : " + ", ".join([types, *(v.type for v in halved)]) + "\n")


def blocks_in(folder, text):
    path = folder / "graph.mlir"
    path.write_text(text)
    graph = tool("ds-opt", path, "--stop-after=graph").out
    return {kind: len(re.findall(rf"= ds\.{kind} ", graph)) for kind in BLOCKS}


@case(seconds=9)
def parameters_in_states_change_no_bit(folder):
    random = np.random.default_rng(SEED)
    ids, image = random.integers(0, WORDS, 37), random.standard_normal((1, 2, 8), np.float32)
    parameters = {name: (random.standard_normal(shape) / (4 if len(shape) > 1 else 2)).astype(np.float32)
                  for name, shape in PARAMETERS.items()}
    stored = Model(folder, parameters, False).build(ids, image)
    expect(blocks_in(folder, stored.text()) == BLOCKS, f"weights: {blocks_in(folder, stored.text())}, expected {BLOCKS}")
    for options in (["--mcpu=host"], ["--mcpu=x86-64-v3"], ["--reference"]):
        model = Model(folder, parameters, True).build(ids, image)
        text = model.text()
        expect(blocks_in(folder, text) == BLOCKS, f"states: {blocks_in(folder, text)}, expected {BLOCKS}")
        (folder / "states.mlir").write_text(text)
        package = compile_model(folder / "states.mlir", folder, *options, name="states.dsp")
        np.savez(folder / "in.npz", **{value.name[1:]: value.array for value in model.arguments})
        np.savez(folder / "state0.npz", **parameters)
        for call in range(2):
            tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz",
                 "--state-in", folder / f"state{call}.npz", "--state-out", folder / f"state{call + 1}.npz")
            halved = {name: array * np.float32(0.5**call) for name, array in parameters.items()}
            wanted = Model(folder, halved, False).build(ids, image)
            with np.load(folder / "out.npz") as outputs:
                actual = [outputs[f"r{i}"] for i in range(len(wanted.checks))]
            for value, (expected, what, rtol, scale) in zip(actual, wanted.checks):
                message = difference(value, expected, rtol, scale)
                expect(not message, f"{options}, call {call}: {what}: {message} (seed {SEED})")
            for value, bits in zip(actual, wanted.run(folder, options)):
                expect(np.array_equal(value, bits), f"{options}, call {call}: other bits than with weights in files, "
                       f"by up to {np.abs(value - bits).max()} (seed {SEED})")


@case(seconds=12)
def products_with_states_have_the_bits_of_weights(folder):
    """Sizes about the panels and row blocks of both levels, plain and transposed, with and without bias."""
    random = np.random.default_rng(SEED)
    for transposed in (False, True):
        for rows, depth, columns in ((1, 5, 1), (9, 63, 47), (13, 65, 49), (130, 128, 97)):
            x = random.standard_normal((rows, depth), np.float32)
            w, b = random.standard_normal((depth, columns), np.float32), random.standard_normal(columns, np.float32)
            given = np.ascontiguousarray(w.T) if transposed else w
            results = {}
            for in_states in (False, True):
                model = Model(folder, {"w": given, "b": b}, in_states)
                left = model.input(x, "f32", ["n", depth])
                product = model.matmul(left, model.parameters["w"], right=transposed)
                model.check(product, "product", 1e-5, math.sqrt(depth))
                model.check(model.binary("add", model.matmul(left, model.parameters["w"], right=transposed),
                                         model.parameters["b"]), "linear", 1e-5, math.sqrt(depth))
                text = model.text()
                (folder / "model.mlir").write_text(text)
                package = compile_model(folder / "model.mlir", folder)
                np.savez(folder / "in.npz", a0=x)
                np.savez(folder / "state.npz", w=given, b=b)
                options = ["--state-in", folder / "state.npz"] if in_states else []
                tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", *options)
                with np.load(folder / "out.npz") as outputs:
                    results[in_states] = [outputs[f"r{i}"] for i in range(2)]
                for actual, (value, what, rtol, scale) in zip(results[in_states], model.checks):
                    message = difference(actual, value, rtol, scale)
                    expect(not message, f"{(rows, depth, columns, transposed, in_states)}: {what}: {message} (seed {SEED})")
            for a, c in zip(*results.values()):
                expect(np.array_equal(a, c), f"{(rows, depth, columns, transposed)}: other bits (seed {SEED})")
