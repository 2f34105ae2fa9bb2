"""Transformer layers as ONNX Runtime's quantize_static writes them, with QuantizeLinear and DequantizeLinear around every
product: how many launches one takes, its bits without fusion and for every number of threads, and its numbers beside
ONNX Runtime's."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
import layers
from dynamic_quantized_cases import judge
from kit import case, compile_model, expect, run_package, tool
from layer_cases import dims_of, launches
from optimized_cases import quantization
from programs import SEED

UNKNOWN = {"DefaultTensorType": TensorProto.FLOAT}  # of results that ONNX's inference of shapes does not know
SIZES = {"batch": 2, "sequence": 7, "tokens": 7, "past": 3, "total": 4, "frames": 5}


def bert(number):
    return generate.bert(layers=number, hidden=64, heads=4, vocabulary=50, positions=64)


def gpt2(number):
    return generate.gpt2_step(layers=number, hidden=96, heads=3, vocabulary=100)


def llama(number, **options):
    return layers.llama(number, hidden=96, width=32, **options)


def t5_decoder(number):
    return layers.t5(number, decoder=True)


# Cross-attention takes three more.
LAUNCHES = {"BERT": (bert, 5), "ViT": (layers.vit, 5), "T5, encoder": (layers.t5, 5), "GPT-2": (gpt2, 5), "Llama": (llama, 5),
            "Whisper, decoder": (layers.whisper, 8), "T5, decoder": (t5_decoder, 8)}


def feed(model, random, sizes):
    inputs = {}
    for value, dims in zip(model.graph.input, dims_of(model).values()):
        shape = [sizes.get(d, d) for d in dims]
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            inputs[value.name] = random.standard_normal(shape).astype(np.float32)
        elif value.name == "attention_mask":
            inputs[value.name] = (np.arange(shape[1]) < random.integers(1, shape[1] + 1, (shape[0], 1))).astype(np.int64)
        else:
            inputs[value.name] = random.integers(1, 4, shape)
    return inputs


def quantized(folder, make, number, **options):
    tools, path, model = quantization(), folder / f"quantized-{number}.onnx", make(number)
    generate.save(model, folder / "float.onnx")

    class Calibration(tools.CalibrationDataReader):
        def __init__(self):
            self.data = iter([feed(model, np.random.default_rng(0), SIZES)])

        def get_next(self):
            return next(self.data, None)
    tools.quantize_static(folder / "float.onnx", path, Calibration(), quant_format=tools.QuantFormat.QDQ,
                          op_types_to_quantize=["MatMul"], extra_options=UNKNOWN, **options)
    return path


@case(seconds=10)
def launches_of_a_statically_quantized_layer(folder):
    for kind, (make, expected) in LAUNCHES.items():
        found = launches(folder, lambda number, make=make: onnx.load(quantized(folder, make, number)), fewest=1)
        expect(found == expected, f"{kind}: a layer takes {found} launches, expected {expected}")


def compare(folder, make, sizes, **options):
    model, random = quantized(folder, make, 1, **options), np.random.default_rng([SEED, len(options)])
    judge(model, folder, [feed(onnx.load(model), random, size) for size in sizes], most=0.05)


@case(seconds=14)
def statically_quantized_layer(folder):
    """Rows of scores beyond a vector and a block, and a single one; weights of 7 bits, as ONNX Runtime's sums of two u8 × i8
    products saturate at 16 bits on CPUs without VNNI."""
    compare(folder, bert, [dict(SIZES, batch=1, sequence=1), dict(SIZES, batch=3, sequence=37)], reduce_range=True)


@case(seconds=12)
def statically_quantized_step(folder):
    """Keys and values of a cache, some of them behind no token."""
    compare(folder, gpt2, [dict(SIZES, past=0), dict(SIZES, past=21)], reduce_range=True)


@case(seconds=45)
def statically_quantized_rows(folder):
    """Rotations, heads of queries that share keys and values, also where a thread's share ends inside a group; caches that are
    outputs as they are, and behind their codes; a bias of scores whose size is the caller's."""
    for name, make, tokens in (("step", llama, 1), ("rows", lambda n: llama(n, tokens="tokens"), 7), ("shown", layers.whisper, 1),
                               ("bias", t5_decoder, 1)):
        (folder / name).mkdir()
        compare(folder / name, make, [dict(SIZES, tokens=tokens, past=past, total=past + tokens, batch=batch)
                                      for batch, past in ((1, 0), (3, 21))], reduce_range=True)


@case
def codes_that_are_shown(folder):
    """Codes of rows in memory that a product multiplies and the program shows: more rows than a block has."""
    random, rows, depth = np.random.default_rng([SEED, 9]), 300, 64
    scale, zero = np.float32(0.03), np.int8(-5)
    weight = random.integers(-127, 128, (depth, 64)).astype(np.int8)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["c"]), helper.make_node("DequantizeLinear", ["c", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "s"], ["v"]), helper.make_node("MatMul", ["d", "v"], ["y"])]
    graph = helper.make_graph(nodes, "codes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", depth])],
                              [helper.make_tensor_value_info("c", TensorProto.INT8, None), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in (("s", scale), ("z", zero), ("w", weight))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    x = random.standard_normal((rows, depth)).astype(np.float32)
    codes = np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)
    sums = (codes.astype(np.int64) - zero) @ weight.astype(np.int64)
    for threads in (1, 3):
        found = run_package(package, {"x": x}, folder, f"--threads={threads}")
        expect((found["c"] == codes).all(), f"codes differ in {np.argwhere(found['c'] != codes)[:3]}")
        error = np.abs(found["y"] - sums * (np.float64(scale) * scale)).max()
        expect(error < 1e-3, f"the product is off by {error}")


class Projections:
    """Query, key and value of one input, each with codes of its own, before an attention of codes; heads of all three are shown.
    `axis`: whether each column of a weight has a scale. Weights have no zero points, as symmetric ones have none."""
    heads, size, hidden = 3, 16, 48

    def __init__(self, seed, axis):
        self.random, self.axis, self.nodes, self.constants = np.random.default_rng([SEED, seed]), axis, [], []
        self.kind = self.random.choice([np.int8, np.uint8])
        self.x = self.steps(0.03)
        self.weights, self.outputs = {}, {}
        for part in "qkv":
            columns = self.heads * self.size
            scale = self.random.uniform(0.002, 0.02, columns if axis else ()).astype(np.float32)
            self.weights[part] = (self.random.integers(-128, 128, (self.hidden, columns)).astype(np.int8), scale)
            self.outputs[part] = (*self.steps(0.05), self.random.standard_normal(columns).astype(np.float32))

    def steps(self, scale):
        limits = np.iinfo(self.kind)
        return np.float32(self.random.uniform(0.5, 2) * scale), self.kind(self.random.integers(limits.min + 40, limits.max - 40))

    def op(self, kind, *inputs, name=None, **attributes):
        names = []
        for given in inputs:
            if not isinstance(given, str):
                self.constants.append(numpy_helper.from_array(np.asarray(given), f"c{len(self.constants)}"))
                given = self.constants[-1].name
            names.append(given)
        self.nodes.append(helper.make_node(kind, names, [name or f"{kind}_{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def codes(self, x, scale, zero):
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero)

    def model(self):
        x, shown = self.codes("x", *self.x), {}
        for part, (weight, scale) in self.weights.items():
            y = self.op("MatMul", x, self.op("DequantizeLinear", weight, scale, axis=1))
            *steps, bias = self.outputs[part]
            y = self.op("Reshape", self.op("Add", self.codes(y, *steps), bias), np.array([0, 0, self.heads, self.size]))
            shown[part] = self.op("Transpose", y, perm=[0, 2, 1, 3], name=part)
        keys = self.op("Transpose", shown["k"], perm=[0, 1, 3, 2])
        scores = self.codes(self.op("MatMul", self.codes(shown["q"], *self.steps(0.1)), self.codes(keys, *self.steps(0.1))), *self.steps(2))
        weights = self.codes(self.op("Softmax", self.op("Mul", scores, np.float32(0.02))), *self.steps(0.005))
        self.op("MatMul", weights, self.codes(shown["v"], *self.steps(0.1)), name="y")
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "s", self.hidden])]
        graph = helper.make_graph(self.nodes, "projections", inputs, [value(name) for name in "qkvy"], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def coded(self, x, scale, zero):
        """In f32, as QuantizeLinear is defined: divided, rounded to even, moved, and held in the type."""
        assert x.dtype == np.float32
        return np.clip(np.rint(x / scale).astype(np.int64) + int(zero), *(int(limit) for limit in (np.iinfo(self.kind).min, np.iinfo(self.kind).max)))

    def expected(self, x):
        scale, zero = self.x
        rows, heads = self.coded(x, scale, zero) - int(zero), {}
        for part, (weight, of_weight) in self.weights.items():
            sums = rows @ weight.astype(np.int64)
            out, moved, bias = self.outputs[part]
            numbers = self.coded(sums.astype(np.float32) * (of_weight * scale), out, moved)
            y = (numbers - int(moved)).astype(np.float32) * out + bias
            heads[part] = y.reshape(*x.shape[:2], self.heads, self.size).transpose(0, 2, 1, 3)
        return heads


@case(seconds=4)
def merged_projections_of_codes(folder):
    """To the bit, by sums of integers in NumPy: a scale and a zero point for each projection, or for each column."""
    for axis in (False, True):
        projections = Projections(axis, axis)
        onnx.save(projections.model(), folder / "m.onnx")
        report = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--report").out
        expect("merge-products: 3 products merged" in report, f"axis {axis}: not merged\n{report}")
        for shape in ((1, 1), (2, 37)):
            x = (projections.random.standard_normal((*shape, projections.hidden)) * 2).astype(np.float32)
            found = run_package(folder / "m.dsp", {"x": x}, folder, "--threads=2")
            for part, array in projections.expected(x).items():
                expect(found[part].tobytes() == array.tobytes(),
                       f"axis {axis} {part} of {array.shape}: {np.count_nonzero(found[part] != array)} of {array.size} differ (DS_SEED={SEED})")
