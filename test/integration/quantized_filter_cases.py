"""Filters of convolutions in 8 bits (--quantize) against NumPy, which quantizes and convolves on its own."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from convolution_cases import convolution, geometry
from kit import case, compile_model, expect, processors, run_package, tool
from programs import SEED, some
from quantized_weight_cases import UNIT, constants, quantized


def model(weight, groups, attributes):
    """A convolution, a bias and an activation: all of it one kernel."""
    rank = weight.ndim - 2
    dims = ["b", weight.shape[1] * groups, *["h", "w"][:rank]]
    nodes = [helper.make_node("Conv", ["x", "filters", "bias"], ["sums"], name="convolve", group=groups, **attributes),
             helper.make_node("Relu", ["sums"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(weight, "filters"),
                               numpy_helper.from_array(np.linspace(-1, 1, weight.shape[0], dtype=np.float32), "bias")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def within(found, x, weight, step, stands, bias, groups, attributes, what):
    """Half a step of each weight at most, and what a chain of f32 rounds."""
    exact = np.maximum(convolution(x.astype(np.float64), weight.astype(np.float64), bias, groups=groups, **attributes), 0)
    lost = convolution(np.abs(x).astype(np.float64), step / 2, groups=groups, **attributes)
    size = convolution(np.abs(x).astype(np.float64), np.abs(stands), np.abs(bias), groups=groups, **attributes)
    bound = lost * (1 + 512 * UNIT) + (weight[0].size + 6) * UNIT * size
    expect(found.shape == exact.shape and (np.abs(found - exact) <= bound).all(),
           f"{what}: off by {np.max(np.abs(found - exact) / bound):.3g} of the bound (DS_SEED={SEED})")
    return np.maximum(convolution(x.astype(np.float64), stands, bias, groups=groups, **attributes), 0), size


@case(seconds=5)
def filters_in_bytes(folder):
    random = np.random.default_rng([SEED, 17])
    for shape, groups, kind in (((40, 24, 3, 3), 1, {}), ((150, 17, 5), 1, {"strides": 2}), ((36, 12, 3, 3), 3, {"dilations": 2})):
        attributes = geometry(shape[2:], **kind)
        weight = (random.standard_normal(shape) * np.exp(random.standard_normal((shape[0], *[1] * (len(shape) - 1))))).astype(np.float32)
        weight[random.integers(shape[0])] = 0
        onnx.save(model(weight, groups, attributes), str(folder / "m.onnx"))
        depth, bias = weight[0].size, np.linspace(-1, 1, shape[0], dtype=np.float32).astype(np.float64)
        ways = [["--quantize=int8"], ["--quantize=int4,group=24"], ["--quantize=int8,group=36,scheme=asymmetric"],
                ["--quantize=int8", "--fusion=none"], *(["--quantize=int8,group=24", f"--mcpu={cpu}"] for cpu in processors())]
        for options in some(ways, 2):
            asked = int((options[0].split("group=") + ["0"])[1].split(",")[0])
            group = np.gcd(depth, asked) if asked and np.gcd(depth, asked) >= 16 else 0
            scheme = "asymmetric" if "asymmetric" in options[0] else "symmetric"
            stands, scales, _ = quantized(weight.reshape(shape[0], -1).T, 8, int(group), scheme)
            step = np.repeat(np.abs(scales), group or depth, axis=0)[:depth].T.reshape(shape).astype(np.float64)
            stands = stands.T.reshape(shape).astype(np.float64)
            package = compile_model(folder / "m.onnx", folder, *options)
            sizes = {name: info["bytes"] for name, (info, _) in constants(package).items()}
            expect(sum(sizes.values()) <= weight.size * 1.6 + 4096, f"filters of floats are left: {sizes}")
            launches = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]["launches"]
            expect(len(launches) == 1 or "--fusion=none" in options, f"the convolution's kernel does not make floats of its filters: {launches}")
            for batch, extent in ((1, 5), (2, 19)):
                x = random.standard_normal((batch, shape[1] * groups, *[extent, 7][:len(shape) - 2])).astype(np.float32)
                runs = [run_package(package, {"x": x}, folder, f"--threads={threads}")["y"] for threads in (1, 3)]
                what = f"{options} {shape} groups {groups}"
                expect(runs[0].tobytes() == runs[1].tobytes(), f"{what}: threads change bits (DS_SEED={SEED})")
                near, size = within(runs[0], x, weight, step, stands, bias, groups, attributes, what)
                expect((np.abs(runs[0] - near) <= (depth + 8) * UNIT * size).all(), f"{what}: other codes or scales (DS_SEED={SEED})")


@case
def filters_that_are_kept(folder):
    """Each says why; a convolution alone is enough for --quantize."""
    random = np.random.default_rng([SEED, 18])
    for shape, groups, option, reason in (((200, 1, 3, 3), 200, "", "a group has few of them"), ((40, 24, 3, 3), 1, ",keep=convolve", "'convolve' matches")):
        onnx.save(model(random.standard_normal(shape).astype(np.float32), groups, geometry(shape[2:])), str(folder / "m.onnx"))
        tool("ds-opt", folder / "m.onnx", "-o", folder / "no.dsp", f"--quantize=int8{option}", "--no-cache", "--report", code=1, says="no weight was quantized: no product has a weight, and filters are kept for the reasons in the remarks")
        found = tool("ds-opt", folder / "m.onnx", "-o", folder / "no.dsp", f"--quantize=int8{option}", "--no-cache", "--report", code=1)
        expect(reason in found.out + found.err, f"no reason in\n{found.out}{found.err}")
