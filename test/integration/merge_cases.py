"""Projections of an attention that share an input: merged into one product they have the same bits as apart, and what
NumPy computes in float64."""
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from head_cases import attention
from kit import case, compile_model, expect, processors, run_package, tool
from programs import SEED

# Sums of 48 products of normal numbers, whose weights are a fifth of that, through an attention.
TOLERANCE = 2e-4


class Block:
    """One attention as exporters write it. `form` says how heads are moved, `biased` which projections have a bias, and
    `others` which of them read another input than the query does."""

    def __init__(self, name, heads=4, groups=4, size=12, hidden=48, biased="qkv", others="", form="heads", past=False):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.heads, self.groups, self.size, self.hidden, self.past = heads, groups, size, hidden, past
        self.biased, self.others, self.form = biased, others, form
        self.length = "t" if others == "kv" else "s"  # keys and values are equally many
        self.weights = {}
        for part, count in (("q", heads), ("k", groups), ("v", groups), ("o", heads)):
            shape = (hidden, count * size) if part != "o" else (count * size, hidden)
            self.weights[part] = (self.random.standard_normal(shape) / 5).astype(np.float32)
            if part in biased:
                self.weights["b" + part] = self.random.standard_normal(shape[1]).astype(np.float32)

    def model(self):
        nodes, constants = [], [numpy_helper.from_array(array, name) for name, array in self.weights.items()]

        def op(kind, *inputs, **attributes):
            name = f"{kind}_{len(nodes)}"
            nodes.append(helper.make_node(kind, inputs, [name], **attributes))
            return name

        def integers(*numbers):
            constants.append(numpy_helper.from_array(np.array(numbers, np.int64), f"c{len(constants)}"))
            return constants[-1].name

        def split(part, count):
            y = op("MatMul", "z" if part in self.others else "x", part)
            if part in self.biased:
                y = op("Add", y, "b" + part)
            if self.form == "rows":  # rows of batches and of heads lie in one axis
                y = op("Reshape", op("Transpose", op("Reshape", y, integers(0, 0, count, self.size)), perm=[0, 2, 1, 3]),
                       op("Concat", integers(-1), op("Slice", op("Shape", y), integers(1), integers(2)), integers(self.size), axis=0))
                return op("Reshape", y, op("Concat", op("Slice", op("Shape", "x"), integers(0), integers(1)), integers(count, -1, self.size), axis=0))
            return op("Transpose", op("Reshape", y, integers(0, 0, count, self.size)), perm=[0, 2, 1, 3])

        q, k, v = split("q", self.heads), split("k", self.groups), split("v", self.groups)
        outputs, inputs = [], ["x"] + ["z"] * bool(self.others)
        if self.past:
            k, v = (op("Concat", f"past_{part}", new, axis=2) for part, new in (("k", k), ("v", v)))
            outputs = [(k, ["b", self.groups, "u", self.size]), (v, ["b", self.groups, "u", self.size])]
        if self.groups != self.heads:
            repeat = self.heads // self.groups

            def repeated(y):
                y = op("Unsqueeze", y, integers(2))
                y = op("Expand", y, integers(1, 1, repeat, 1, 1))
                length = op("Slice", op("Shape", k), integers(2), integers(3))
                batch = op("Slice", op("Shape", "x"), integers(0), integers(1))
                return op("Reshape", y, op("Concat", batch, integers(self.heads), length, integers(self.size), axis=0))
            kk, vv = repeated(k), repeated(v)
        else:
            kk, vv = k, v
        constants.append(numpy_helper.from_array(np.float32(0.25), "scale"))
        scores = op("Mul", op("MatMul", q, op("Transpose", kk, perm=[0, 1, 3, 2])), "scale")
        seen = op("Transpose", op("MatMul", op("Softmax", scores, axis=-1), vv), perm=[0, 2, 1, 3])
        y = op("MatMul", op("Reshape", seen, integers(0, 0, self.heads * self.size)), "o")
        given = {"x": ["b", "s", self.hidden], "z": ["b", self.length, self.hidden],
                 **{f"past_{part}": ["b", self.groups, "p", self.size] for part in "kv"}}
        inputs += ["past_k", "past_v"] * self.past
        value = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "main", [value(name, TensorProto.FLOAT, given[name]) for name in inputs],
                                  [value(y, TensorProto.FLOAT, ["b", "s", self.hidden])] +
                                  [value(name, TensorProto.FLOAT, dims) for name, dims in outputs], constants)
        self.outputs = [y] + [name for name, _ in outputs]
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def inputs(self, b, s, t, p):
        shapes = {"x": (b, s, self.hidden), "z": (b, {"t": t, "s": s}[self.length], self.hidden), "past_k": (b, self.groups, p, self.size),
                  "past_v": (b, self.groups, p, self.size)}
        used = ["x"] + ["z"] * bool(self.others) + ["past_k", "past_v"] * self.past
        return {name: self.random.standard_normal(shapes[name], np.float32) for name in used}

    def expected(self, env):
        w = {name: array.astype(np.float64) for name, array in self.weights.items()}
        env = {name: array.astype(np.float64) for name, array in env.items()}

        def split(part, count):
            y = env["z" if part in self.others else "x"] @ w[part] + w.get("b" + part, 0)
            return y.reshape(*y.shape[:2], count, self.size).transpose(0, 2, 1, 3)
        q, k, v = split("q", self.heads), split("k", self.groups), split("v", self.groups)
        if self.past:
            k, v = np.concatenate([env["past_k"], k], 2), np.concatenate([env["past_v"], v], 2)
        seen = attention(q, k, v, 0.25).transpose(0, 2, 1, 3)
        return [seen.reshape(*seen.shape[:2], self.heads * self.size) @ w["o"], *([k, v] if self.past else [])]


def verify(folder, block, merged, *options, judged=True, cpus=dict.fromkeys((processors()[0], processors()[-1]))):
    """`merged` products become one; every way to fuse has the same bits."""
    onnx.save(block.model(), folder / "m.onnx")
    packages = []
    for fusion, cpu in ((fusion, cpu) for cpu in cpus for fusion in ("none", "specialized")):
        result = tool("ds-opt", folder / "m.onnx", "-o", folder / f"{fusion}-{cpu}.dsp", f"--fusion={fusion}", f"--mcpu={cpu}", "--report", *options)
        packages.append(folder / f"{fusion}-{cpu}.dsp")
        found = re.search(r"merge-products: (\d+) products merged", result.err + result.out)
        expect((int(found[1]) if found else 0) == (merged if fusion == "specialized" else 0), f"expected {merged} merged products: {result}")
    sizes = [sum(file.stat().st_size for file in package.glob("weights.bin")) for package in packages]
    expect(sizes[1] <= sizes[0] + 8192, f"weights are stored twice: {sizes}")
    for number, (b, s, t, p) in enumerate(((1, 1, 1, 0), (2, 7, 3, 5), (3, 1, 9, 16), (1, 33, 17, 2), (0, 2, 2, 1), (2, 49, 1, 0))):
        env = block.inputs(b, s, t, p)
        found = [run_package(package, env, folder, f"--threads={1 + (number + i) % 3}") for i, package in enumerate(packages)]
        what = f"sizes {(b, s, t, p)}, merged {merged} {options} (DS_SEED={SEED})"
        for name, expected in zip(block.outputs, block.expected(env)):
            for apart, together in zip(found[::2], found[1::2]):
                expect(apart[name].tobytes() == together[name].tobytes(), f"{name} has other bits than apart: {what}")
            error = np.abs(found[-1][name] - expected).max(initial=0)
            expect(found[-1][name].shape == expected.shape and (not judged or error <= TOLERANCE), f"{name}: an error of {error}: {what}")


@case(seconds=12)
def projections_of_one_input(folder):
    verify(folder, Block("all"), 3)
    verify(folder, Block("none", biased=""), 3)


@case(seconds=3)
def projections_without_some_biases(folder):
    """Whisper's keys have none."""
    verify(folder, Block("some", biased="qv", hidden=40), 3)


@case(seconds=6)
def fewer_heads_of_keys_than_of_queries(folder):
    verify(folder, Block("grouped", heads=6, groups=2, size=16), 3)


@case(seconds=8)
def keys_and_values_of_another_input(folder):
    verify(folder, Block("cross", others="kv"), 2)
    verify(folder, Block("values", others="v", biased="k"), 2)
    verify(folder, Block("only", others="k", biased="v"), 2)


@case(seconds=12)
def keys_and_values_behind_earlier_ones(folder):
    verify(folder, Block("past", past=True), 3)
    verify(folder, Block("past-grouped", heads=4, groups=2, past=True, biased=""), 3)


@case(seconds=3)
def rows_that_are_joined_with_heads(folder):
    """What is between transposes and attention joins axes that stay apart in a merged result."""
    verify(folder, Block("rows", form="rows"), 3)


@case(seconds=23)
def merged_codes(folder):
    """Codes, scales and zero points are joined, too; their numbers are those of quantized weights apart."""
    for number, options in enumerate(("int8", "int8,group=16,scheme=asymmetric", "int4", "int4,group=6,scheme=asymmetric")):
        verify(folder, Block(f"codes-{number}", heads=3 if number % 2 else 4, groups=3 if number % 2 else 4, size=16, biased="qv"), 3,
               f"--quantize={options},mixed=no", judged=False, cpus=(processors()[-(number % 2)],))
    # Values in finer steps do not join the others.
    verify(folder, Block("finer", size=16), 2, "--quantize=int4", judged=False, cpus=("x86-64-v3",))
    # A weight that is kept does not join the others.
    verify(folder, Block("kept", size=16), 2, "--quantize=int8,mixed=no,keep=^k$", judged=False, cpus=("x86-64-v3",))
