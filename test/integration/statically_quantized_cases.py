"""Transformer layers as ONNX Runtime's quantize_static writes them, with QuantizeLinear and DequantizeLinear around every
product: how many launches one takes, its bits without fusion and for every number of threads, and its numbers beside
ONNX Runtime's."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
import layers
from append_cases import guarded_steps
from dynamic_quantized_cases import judge
from kit import case, compile_model, expect, run_package, tool
from layer_cases import dims_of, launches
from optimized_cases import quantization
from programs import SEED

UNKNOWN = {"DefaultTensorType": TensorProto.FLOAT}  # of results that ONNX's inference of shapes does not know
SIZES = {"batch": 2, "sequence": 7, "tokens": 7, "past": 3, "values": 3, "total": 4, "frames": 5}


def bert(number):
    return generate.bert(layers=number, hidden=64, heads=4, vocabulary=50, positions=64)


def gpt2(number):
    return generate.gpt2_step(layers=number, hidden=96, heads=3, vocabulary=100)


def values_apart(number):
    """The lengths of cached keys and values have names of their own."""
    model = gpt2(number)
    for value in model.graph.input:
        if value.name.endswith(".value"):
            value.type.tensor_type.shape.dim[2].dim_param = "values"
    return model


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
    for name, make in (("one", gpt2), ("apart", values_apart)):
        (folder / name).mkdir()
        compare(folder / name, make, [dict(SIZES, past=past, values=past) for past in (0, 21)], reduce_range=True)


@case(seconds=45)
def statically_quantized_rows(folder):
    """Rotations, heads of queries that share keys and values, also where a thread's share ends inside a group; caches that are
    outputs as they are, and behind their codes; a bias of scores whose size is the caller's."""
    for name, make, tokens in (("step", llama, 1), ("rows", lambda n: llama(n, tokens="tokens"), 7), ("shown", layers.whisper, 1),
                               ("bias", t5_decoder, 1)):
        (folder / name).mkdir()
        sizes = [dict(SIZES, tokens=tokens, past=past, total=past + tokens, batch=batch) for batch, past in ((1, 0), (3, 21))]
        compare(folder / name, make, sizes + [dict(sizes[-1], total=1)] * (name == "bias"), reduce_range=True)


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


# Rows of 32 go into caches of `room` places from place `p` on, and become codes of eighths with them; `%m` hides what is behind.
STATES = """func.func @main(%x: tensor<2x?x{columns}xf32> {{ds.name = "x", ds.dims = [2, "s", {columns}]}}, %n: tensor<?xf32> {{ds.name = "n", ds.dims = ["p"]}},
    %m: tensor<?x{room}xf32> {{ds.name = "m", ds.dims = ["s", {room}]}}, %k: tensor<2x{groups}x{room}x32xf32> {{ds.dims = [2, {groups}, {room}, 32], ds.state = "k"}},
    %v: tensor<2x{groups}x{room}x32xf32> {{ds.dims = [2, {groups}, {room}, 32], ds.state = "v"}})
    -> (tensor<2x?x{heads}x32xf32> {{ds.name = "y"}}, tensor<2x{groups}x{room}x32xf32> {{ds.state = "k"}},
        tensor<2x{groups}x{room}x32xf32> {{ds.state = "v"}}) attributes {{ds.entry}} {{
  %eight = ds.constant dense<8.0> : tensor<f32>
  %eighth = ds.constant dense<0.125> : tensor<f32>
  %scale = ds.constant dense<0.004> : tensor<f32>
  %0 = ds.reshape %x [2, "s", {all}, 32] : (tensor<2x?x{columns}xf32>) -> tensor<2x?x{all}x32xf32>
  %1 = ds.transpose %0 [0, 2, 1, 3] : (tensor<2x?x{all}x32xf32>) -> tensor<2x{all}x?x32xf32>
  %2 = ds.slice %1 starts [0, 0, 0, 0] sizes [2, {heads}, "s", 32] steps [1, 1, 1, 1] : (tensor<2x{all}x?x32xf32>) -> tensor<2x{heads}x?x32xf32>
  %3 = ds.slice %1 starts [0, {heads}, 0, 0] sizes [2, {groups}, "s", 32] steps [1, 1, 1, 1] : (tensor<2x{all}x?x32xf32>) -> tensor<2x{groups}x?x32xf32>
  %4 = ds.slice %1 starts [0, {last}, 0, 0] sizes [2, {groups}, "s", 32] steps [1, 1, 1, 1] : (tensor<2x{all}x?x32xf32>) -> tensor<2x{groups}x?x32xf32>
  %5 = ds.insert %3 into %k starts [0, 0, "p", 0] : (tensor<2x{groups}x?x32xf32>, tensor<2x{groups}x{room}x32xf32>) -> tensor<2x{groups}x{room}x32xf32>
  %6 = ds.insert %4 into %v starts [0, 0, "p", 0] : (tensor<2x{groups}x?x32xf32>, tensor<2x{groups}x{room}x32xf32>) -> tensor<2x{groups}x{room}x32xf32>
  %7 = ds.reshape %5 [2, {groups}, 1, {room}, 32] : (tensor<2x{groups}x{room}x32xf32>) -> tensor<2x{groups}x1x{room}x32xf32>
  %8 = ds.broadcast %7 [1, 1, {times}, 1, 1] : (tensor<2x{groups}x1x{room}x32xf32>) -> tensor<2x{groups}x{times}x{room}x32xf32>
  %9 = ds.reshape %8 [2, {heads}, {room}, 32] : (tensor<2x{groups}x{times}x{room}x32xf32>) -> tensor<2x{heads}x{room}x32xf32>
  %10 = ds.reshape %6 [2, {groups}, 1, {room}, 32] : (tensor<2x{groups}x{room}x32xf32>) -> tensor<2x{groups}x1x{room}x32xf32>
  %11 = ds.broadcast %10 [1, 1, {times}, 1, 1] : (tensor<2x{groups}x1x{room}x32xf32>) -> tensor<2x{groups}x{times}x{room}x32xf32>
  %12 = ds.reshape %11 [2, {heads}, {room}, 32] : (tensor<2x{groups}x{times}x{room}x32xf32>) -> tensor<2x{heads}x{room}x32xf32>
  %13 = ds.binary mul %2, %eight : (tensor<2x{heads}x?x32xf32>, tensor<f32>) -> tensor<2x{heads}x?x32xf32>
  %14 = ds.unary round %13 : (tensor<2x{heads}x?x32xf32>) -> tensor<2x{heads}x?x32xf32>
  %15 = ds.cast %14 to i32 : (tensor<2x{heads}x?x32xf32>) -> tensor<2x{heads}x?x32xi32>
  %16 = ds.transpose %9 [0, 1, 3, 2] : (tensor<2x{heads}x{room}x32xf32>) -> tensor<2x{heads}x32x{room}xf32>
  %17 = ds.binary mul %16, %eight : (tensor<2x{heads}x32x{room}xf32>, tensor<f32>) -> tensor<2x{heads}x32x{room}xf32>
  %18 = ds.unary round %17 : (tensor<2x{heads}x32x{room}xf32>) -> tensor<2x{heads}x32x{room}xf32>
  %19 = ds.cast %18 to i32 : (tensor<2x{heads}x32x{room}xf32>) -> tensor<2x{heads}x32x{room}xi32>
  %20 = ds.matmul %15, %19 transpose [false, false] : (tensor<2x{heads}x?x32xi32>, tensor<2x{heads}x32x{room}xi32>) -> tensor<2x{heads}x?x{room}xi32>
  %21 = ds.cast %20 to f32 : (tensor<2x{heads}x?x{room}xi32>) -> tensor<2x{heads}x?x{room}xf32>
  %22 = ds.binary mul %21, %scale : (tensor<2x{heads}x?x{room}xf32>, tensor<f32>) -> tensor<2x{heads}x?x{room}xf32>
  %23 = ds.binary add %22, %m : (tensor<2x{heads}x?x{room}xf32>, tensor<?x{room}xf32>) -> tensor<2x{heads}x?x{room}xf32>
  %24 = ds.softmax %23 axis 3 log false : (tensor<2x{heads}x?x{room}xf32>) -> tensor<2x{heads}x?x{room}xf32>
  %25 = ds.binary mul %12, %eight : (tensor<2x{heads}x{room}x32xf32>, tensor<f32>) -> tensor<2x{heads}x{room}x32xf32>
  %26 = ds.unary round %25 : (tensor<2x{heads}x{room}x32xf32>) -> tensor<2x{heads}x{room}x32xf32>
  %27 = ds.binary mul %26, %eighth : (tensor<2x{heads}x{room}x32xf32>, tensor<f32>) -> tensor<2x{heads}x{room}x32xf32>
  %28 = ds.matmul %24, %27 transpose [false, false] : (tensor<2x{heads}x?x{room}xf32>, tensor<2x{heads}x{room}x32xf32>) -> tensor<2x{heads}x?x32xf32>
  %29 = ds.transpose %28 [0, 2, 1, 3] : (tensor<2x{heads}x?x32xf32>) -> tensor<2x?x{heads}x32xf32>
  return %29, %5, %6 : tensor<2x?x{heads}x32xf32>, tensor<2x{groups}x{room}x32xf32>, tensor<2x{groups}x{room}x32xf32>
}}
"""


@case(seconds=5)
def states_of_codes(folder):
    """One kernel a step, and no copy of a cache, whichever threads share a head of it; eighths are exact, so that NumPy's codes are ours."""
    random, room = np.random.default_rng([SEED, 11]), 21
    for heads, groups in ((3, 3), (6, 2)):
        text = STATES.format(heads=heads, groups=groups, times=heads // groups, room=room, all=heads + 2 * groups, last=heads + groups,
                             columns=32 * (heads + 2 * groups))
        (folder / "m.mlir").write_text(text)
        report = tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp", "--report")
        expect("1 kernels, 1 launches, 0 copies" in report.out + report.err, f"not in one kernel:\n{report.out}{report.err}")
        keys, values, place, caches = np.zeros((2, groups, room, 32)), np.zeros((2, groups, room, 32)), 0, {1: {}, 2: {}, 5: {}}
        for count in (3, 1, 9):
            x = random.standard_normal((2, count, heads + 2 * groups, 32)).astype(np.float32)
            mask = np.where(np.arange(room) <= np.arange(count)[:, None] + place, 0, -1e9).astype(np.float32)
            np.savez(folder / "inputs.npz", x=x.reshape(2, count, -1), n=np.zeros(place, np.float32), m=mask)
            rows = x.astype(np.float64).transpose(0, 2, 1, 3)
            keys[:, :, place:place + count], values[:, :, place:place + count] = rows[:, heads:heads + groups], rows[:, heads + groups:]
            codes = lambda rows, times=1: np.repeat(np.rint(rows * 8), times, 1)
            scores = codes(rows[:, :heads]) @ codes(keys, heads // groups).swapaxes(2, 3) * 0.004 + mask
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            y = (weights / weights.sum(-1, keepdims=True) @ (codes(values, heads // groups) / 8)).transpose(0, 2, 1, 3)
            for threads, cache in caches.items():
                for found in guarded_steps(folder, threads, first=place == 0):
                    cache |= found
                    where = f"{heads}:{groups} at {place}, {threads} threads (DS_SEED={SEED})"
                    expect(np.abs(cache["y"] - y).max() < 1e-4, f"wrong context by {np.abs(cache['y'] - y).max()}: {where}")
                    expect((cache["k"] == keys).all() and (cache["v"] == values).all(), f"wrong cache: {where}")
                    expect(cache["y"].tobytes() == caches[1]["y"].tobytes(), f"other bits: {where}")
            place += count
