"""Schedules: every width of a tile, the instructions that ceilings choose, and a softmax without subnormal numbers."""
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
from kit import Skip, case, compile_model, expect, processors, run_package, tool
from programs import SEED
from quantized_weight_cases import Products
from rounded_product_cases import judge

UNIT = {np.float32: 2.0**-24, np.float64: 2.0**-53}


@case(seconds=23)
def panels_of_all_widths(folder):
    """Columns decide how wide a tile is: 1 to 4 vectors. Products with weights, of two operands, and convolutions."""
    random = np.random.default_rng([SEED, 31])
    widths = sorted({1, 2, *random.choice(np.arange(3, 200), 3, replace=False), 64, 128})
    nodes, inputs, outputs, constants, wanted = [], [], [], [], {}
    rows, depth = int(random.integers(1, 40)), int(random.integers(1, 70))
    feed = {}
    for i, n in enumerate(map(int, widths)):
        type = (np.float32, np.float64)[i % 2]
        onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(type))
        x, w = random.standard_normal((rows, depth)).astype(type), random.standard_normal((depth, n)).astype(type)
        right = random.standard_normal((2, depth, n)).astype(type)
        image, filters = random.standard_normal((2, 3, n)).astype(type), random.standard_normal((5, 3, 1)).astype(type)
        feed |= {f"x{i}": x, f"r{i}": right, f"i{i}": image}
        constants += [numpy_helper.from_array(w, f"w{i}"), numpy_helper.from_array(filters, f"f{i}")]
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"linear{i}"]),
                  helper.make_node("MatMul", [f"x{i}", f"r{i}"], [f"matmul{i}"]),
                  helper.make_node("Conv", [f"i{i}", f"f{i}"], [f"conv{i}"])]
        inputs += [helper.make_tensor_value_info(f"x{i}", onnx_type, ["m", depth]),
                   helper.make_tensor_value_info(f"r{i}", onnx_type, [2, depth, n if i % 3 else f"n{i}"]),
                   helper.make_tensor_value_info(f"i{i}", onnx_type, ["b", 3, n if i % 3 else f"n{i}"])]
        outputs += [helper.make_tensor_value_info(f"{kind}{i}", onnx_type, None) for kind in ("linear", "matmul", "conv")]
        long = lambda a: a.astype(np.longdouble)
        for kind, a, b in (("linear", x, w), ("matmul", x, right), ("conv", filters[:, :, 0], image)):
            # One rounding for a step of K.
            wanted[f"{kind}{i}"] = (long(a) @ long(b), (a.shape[-1] + 1) * UNIT[type] * (np.abs(long(a)) @ np.abs(long(b))))
    graph = helper.make_graph(nodes, "widths", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "widths.onnx"))
    for option in [f"--mcpu={cpu}" for cpu in processors()] + ["--reference"]:
        package = compile_model(folder / "widths.onnx", folder, option)
        for key, found in run_package(package, feed, folder, "--threads=2").items():
            right, bound = wanted[key]
            far = np.abs(found - right)
            expect(found.shape == right.shape and (far <= bound).all(),
                   f"{option} {key} of {found.shape}: off by {far.max(initial=0)} (DS_SEED={SEED})")


def ceilings(folder, **numbers):
    path = Path(folder, "ceilings.json")
    path.write_text(json.dumps({"ceilings": numbers}))
    return f"--ceilings={path}"


@case(seconds=12)
def bf16_by_what_is_faster(folder):
    """Without AMX: vdpbf16ps or halves, by the ceilings; rows have the same bits above and below what is widened."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    if "avx512_bf16" not in flags:
        raise Skip("no vdpbf16ps here")
    m = Products("faster", ((64, 48), (33, 100), (300, 16), (2, 64), (770, 50)))
    feeds = {rows: m.feed(rows) for rows in (1, 16, 17, 130, 147)}
    for kernel, rate in (("bfloat_dot", 200), ("bfloat_halves", 50)):
        given = ceilings(folder, f32_gflops=100, bf16_gflops=rate, int8_gops=None)
        onnx.save(m.model, str(folder / "products.onnx"))
        package = folder / f"{kernel}.dsp"
        tool("ds-opt", folder / "products.onnx", "-o", package, "--precision=bf16", "--mcpu=cooperlake", "--report", given, says=[kernel])
        for rows, feed in feeds.items():
            found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
            for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                judge("bf16", feed[f"x{i}"], w, bias, found[f"y{i}"], f"{kernel}, {rows} rows, y{i} of {w.shape} (DS_SEED={SEED})")
            part = {key: array[-2:] for key, array in feed.items()}
            for key, array in run_package(package, part, folder).items():
                expect(array.tobytes() == found[key][-2:].tobytes(), f"{kernel}: {key} has other bits among {rows} rows (DS_SEED={SEED})")


@case
def ceilings_that_are_none(folder):
    m = Products("ceilings", ((8, 600),))
    onnx.save(m.model, str(folder / "m.onnx"))
    bad = {"cannot open: No such file or directory": None, "no JSON": "{", "no JSON: arrays and objects more than 64 deep": "[" * 200000,
           "expected an object 'ceilings'": "[]", "expected a positive number 'f32_gflops'": '{"ceilings": {}}',
           "expected a positive number 'bf16_gflops'": '{"ceilings": {"f32_gflops": 10, "bf16_gflops": -1}}'}
    for says, text in bad.items():
        path = folder / "bad.json"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", f"--ceilings={path}", code=2, says=[f"--ceilings={path}: {says}"])
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--ceilings=", code=2, says=["--ceilings expects a file"])


@case
def weights_of_hidden_scores_are_zero(folder):
    """Softmax over all axes and attention whose masks hide by far or by little: no weight is subnormal, none is lost."""
    random = np.random.default_rng([SEED, 47])
    x = (random.standard_normal((3, 37, 50)) * 60).astype(np.float32)
    x[random.random(x.shape) < 0.3] = -1e30
    x[0, 0, :] = np.linspace(-110, 0, 50)  # across where numbers become subnormal
    nodes = [helper.make_node("Softmax", ["x"], [f"y{axis}"], axis=axis) for axis in range(3)]
    graph = helper.make_graph(nodes, "softmax", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", "c"])],
                              [helper.make_tensor_value_info(f"y{axis}", TensorProto.FLOAT, None) for axis in range(3)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(folder / "m.onnx"))
    for option in [f"--mcpu={cpu}" for cpu in processors()] + ["--reference"]:
        found = run_package(compile_model(folder / "m.onnx", folder, option), {"x": x}, folder)
        for axis in range(3):
            y = found[f"y{axis}"]
            wide = x.astype(np.float64)
            below = wide - wide.max(axis, keepdims=True)
            e = np.exp(below)
            right = e / e.sum(axis, keepdims=True)
            # exp is off by 1.1 units and by what its argument is, sums and quotients by one each; what is below e^-87 of the
            # greatest is 0.
            bound = (x.shape[axis] + 8 + np.abs(below)) * 2.0**-24 * right + np.exp(-86.9)
            expect((np.abs(y - right) <= bound).all(), f"{option}, axis {axis}: off by {np.abs(y - right).max()} (DS_SEED={SEED})")


@case(seconds=13)
def products_without_a_path_for_few_rows(folder):
    """What benchmarks/ablation measures the path of few rows against computes the same: bit by bit, but for attention,
    whose one query is summed in another order."""
    random = np.random.default_rng([SEED, 37])
    weights = [numpy_helper.from_array(random.standard_normal(shape, np.float32) / 8, name) for name, shape in (("u", (64, 130)), ("v", (130, 64)))]
    nodes = [helper.make_node("MatMul", ["x", "u"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]), helper.make_node("MatMul", ["t", "v"], ["p"]),
             helper.make_node("Add", ["p", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [generate.value("x", TensorProto.FLOAT, "batch", 64)], [generate.value("y", TensorProto.FLOAT, "batch", 64)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "products.onnx")
    step = generate.save(generate.gpt2_step(layers=2, hidden=64, heads=2, vocabulary=130), folder / "step.onnx")
    runs = [(folder / "products.onnx", options, 0) for options in ([], ["--fusion=none"], ["--quantize=int8"], ["--quantize=int4,group=32"], ["--precision=bf16"])]
    for model, options, tolerance in [*runs, (step, [], 1e-5), (step, ["--quantize=int8"], 1e-5)]:
        packages = [compile_model(model, folder, "--no-cache", *options, *more, name=f"{name}.dsp") for name, more in (("few", []), ("many", ["--test-many-rows"]))]
        for batch in (1, 2, 5, 9, 17):
            results = []
            for package in packages:
                tool("ds-run", package, f"--dim=batch={batch}", *(["--dim=past=3"] if model == step else []), "--output", folder / "y.npz")
                with np.load(folder / "y.npz") as arrays:
                    results.append(dict(arrays))
            for name, expected in results[0].items():
                error = np.abs(results[1][name] - expected).max() / np.abs(expected).max()
                expect(error <= tolerance, f"{model.name} {options}, {batch} rows: {name} is off by {error}")
