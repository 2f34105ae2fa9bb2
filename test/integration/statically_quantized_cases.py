"""Transformer layers as ONNX Runtime's quantize_static writes them, with QuantizeLinear and DequantizeLinear around every
product: how many launches one takes, its bits without fusion and for every number of threads, and its numbers beside
ONNX Runtime's."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
import layers
from dynamic_quantized_cases import judge
from kit import case, compile_model, expect, run_package
from layer_cases import dims_of, launches
from optimized_cases import quantization
from programs import SEED

UNKNOWN = {"DefaultTensorType": TensorProto.FLOAT}  # of results that ONNX's inference of shapes does not know
SIZES = {"batch": 2, "sequence": 7, "tokens": 7, "past": 3, "total": 4, "frames": 5}


def bert(number):
    return generate.bert(layers=number, hidden=64, heads=4, vocabulary=50, positions=64)


def gpt2(number):
    return generate.gpt2_step(layers=number, hidden=96, heads=3, vocabulary=100)


# Beside those of f32: rotations and repeated heads before keys are quantized, and caches that are outputs.
LAUNCHES = {"BERT": (bert, 5), "ViT": (layers.vit, 5), "T5, encoder": (layers.t5, 5), "GPT-2": (gpt2, 9),
            "Llama": (lambda n: layers.llama(n, hidden=96, width=32), 11), "Whisper, decoder": (layers.whisper, 11)}


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
