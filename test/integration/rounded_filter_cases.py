"""Convolutions in bf16 and f16 (--precision) against NumPy, which rounds both sides on its own and multiplies in double precision."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from convolution_cases import convolution, geometry
from kit import case, compile_model, expect, onnx_runtime, processors, run_package, tool
from programs import SEED, some
from quantized_weight_cases import quantized
from rounded_product_cases import ROUNDING, UNIT, rounded
from trained_cases import package as packaged

# Filters, channels of a group, taps; K odd and even, filters around the rows of tiles, pixels around their columns.
SHAPES = (((3, 1, 1), 1, {}), ((40, 24, 3, 3), 1, {}), ((17, 5, 3, 3), 1, {"strides": 2}), ((36, 7, 5), 3, {"dilations": 2}),
          ((64, 65, 1, 1), 1, {}), ((9, 3, 1, 1), 1, {"strides": 2}), ((12, 3, 7, 7), 1, {"strides": [2, 3]}),
          ((150, 2, 2, 3), 2, {"pads": [1, 2, 0, 1]}), ((8, 4, 2, 3, 2), 1, {}))
SIZES = ((1, 1, 1), (5, 7, 3), (4, 49, 2), (17, 33, 2), (2, 8, 5))


def model(weight, groups, attributes, inputs=1):
    """A convolution, a bias and an activation, of one input or of as many, for which the filters are the same."""
    rank = weight.ndim - 2
    dims = ["b", weight.shape[1] * groups, *["h", "w", "d"][:rank]]
    nodes = [helper.make_node("Conv", [f"x{i}", "filters", "bias"], [f"sums{i}"], name=f"convolve{i}", group=groups, **attributes)
             for i in range(inputs)]
    nodes += [helper.make_node("Relu", [f"sums{i}"], [f"y{i}"]) for i in range(inputs)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, dims) for i in range(inputs)],
                              [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(inputs)],
                              [numpy_helper.from_array(weight, "filters"),
                               numpy_helper.from_array(np.linspace(-1, 1, weight.shape[0], dtype=np.float32), "bias")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def judge(precision, x, w, stands, groups, attributes, y, what):
    """`stands`: what the filters are, in doubles, before they are rounded."""
    bias = np.linspace(-1, 1, w.shape[0], dtype=np.float32).astype(np.float64)
    convolve = lambda *arrays: convolution(*(np.asarray(a, np.float64) for a in arrays), groups=groups, **attributes)
    a, b = rounded(x, precision), rounded(stands.astype(np.float32), precision)
    # At most two roundings for a step of K, and one of the bias.
    bound = (2 * w[0].size + 2) * UNIT * convolve(np.abs(a), np.abs(b), np.abs(bias))
    far = np.abs(y - np.maximum(convolve(a, b, bias), 0))
    expect(y.dtype == np.float32 and far.shape == y.shape and (far <= bound).all(),
           f"{what}: off by {(far - bound).max(initial=0)} beyond rounding")
    u = ROUNDING[precision]
    bound += (2 * u + u * u) * convolve(np.abs(x), np.abs(stands))
    if precision == "f16":
        bound += 2.0**-25 * (convolve(np.abs(x), np.ones_like(w)) + convolve(np.ones_like(x), np.abs(w)) + w[0].size * 2.0**-25)
    far = np.abs(y - np.maximum(convolve(x, stands, bias), 0))
    expect((far <= bound).all(), f"{what}: beyond the stated bound by {(far - bound).max(initial=0)}")


def verify(precision, folder):
    random = np.random.default_rng([SEED, 23])
    options = [[f"--mcpu={cpu}"] for cpu in processors()] + [["--reference"], ["--fusion=none"], ["--fusion=generic"]]
    for (shape, groups, kind), option in zip(SHAPES, some(options * 9, len(SHAPES))):
        rank = len(shape) - 2
        attributes = geometry(shape[2:], **kind)
        w = random.standard_normal(shape).astype(np.float32)
        onnx.save(model(w, groups, attributes), str(folder / "m.onnx"))
        ways = [["--mcpu=host"], option] + ([["--mcpu=host", "--quantize=int8"]] if precision == "bf16" else [])
        packages = []
        for number, way in enumerate(ways):
            codes = "--quantize=int8" in way and w.nbytes > 4096
            stands = quantized(w.reshape(len(w), -1).T, 8, 0, "symmetric")[0].T.reshape(shape) if codes else w
            if codes or "--quantize=int8" not in way:
                package = compile_model(folder / "m.onnx", folder, f"--precision={precision}", *way, name=f"m{number}.dsp")
                packages.append((package, way, stands.astype(np.float64)))
        for size in some(SIZES, 3):
            if kind.get("pads") and min(size[:rank]) < 3:
                continue
            x = random.standard_normal((3, shape[1] * groups, *size[:rank])).astype(np.float32)
            for package, way, stands in packages:
                y = run_package(package, {"x0": x}, folder, f"--threads={random.integers(1, 4)}")["y0"]
                what = f"{precision} {way} {shape} on {x.shape} (DS_SEED={SEED})"
                judge(precision, x, w, stands, groups, attributes, y, what)
                alone = run_package(package, {"x0": x[1:2]}, folder, f"--threads={random.integers(1, 4)}")["y0"]
                expect(alone.tobytes() == y[1:2].tobytes(), f"{what}: other bits alone than among three images")


@case(seconds=20)
def filters_in_bf16(folder):
    verify("bf16", folder)


@case(seconds=14)
def filters_in_f16(folder):
    verify("f16", folder)


@case(seconds=4)
def what_images_of_fewer_bits_do_not_hold(folder):
    """NaN and infinities reach the windows that see them and no others; the largest numbers become infinite."""
    w = np.abs(np.random.default_rng([SEED, 29]).standard_normal((20, 6, 3, 3))).astype(np.float32) + 1
    attributes = geometry((3, 3))
    onnx.save(model(w, 1, attributes), str(folder / "m.onnx"))
    for precision, option in (("bf16", "--mcpu=host"), ("bf16", "--mcpu=x86-64-v3"), ("f16", "--mcpu=host"), ("bf16", "--reference")):
        package = compile_model(folder / "m.onnx", folder, f"--precision={precision}", option)
        x = np.ones((4, 6, 9, 40), np.float32)
        x[0, 2, 4, 20], x[1, 2, 4, 20], x[2, 5, 0, 39] = np.nan, np.inf, np.finfo(np.float32).max
        y = run_package(package, {"x0": x}, folder)["y0"]
        seen = np.zeros((4, 9, 40), bool)
        seen[:2, 3:6, 19:22], seen[2, :2, 38:] = True, True
        for image, is_it in ((0, np.isnan), (1, np.isposinf), (2, np.isposinf), (3, np.isposinf)):
            expect(np.array_equal(is_it(y[image]), np.broadcast_to(seen[image], y[image].shape)), f"{precision} {option}: image {image}")
            expect(np.isfinite(y[image][:, ~seen[image]]).all(), f"{precision} {option}: image {image} elsewhere")


@case(seconds=4)
def filters_take_half_the_bytes(folder):
    """Stored in 16 bits; an image that two convolutions read is rounded once; what stays f32 is said, and is f32."""
    random = np.random.default_rng([SEED, 31])
    w, depthwise = (random.standard_normal(shape).astype(np.float32) for shape in ((64, 32, 3, 3), (32, 1, 3, 3)))
    attributes = geometry((3, 3))
    whole = model(w, 1, attributes)
    graph = whole.graph
    graph.node.append(helper.make_node("Conv", ["x0", "own"], ["z"], name="own", group=32, **attributes))
    graph.node.append(helper.make_node("Conv", ["x0", "filters"], ["again"], name="again", **attributes))
    graph.initializer.append(numpy_helper.from_array(depthwise, "own"))
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("z", "again"))
    onnx.save(whole, str(folder / "m.onnx"))
    x = random.standard_normal((2, 32, 9, 17)).astype(np.float32)
    for precision in ("bf16", "f16"):
        tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", f"--precision={precision}", "--report",
             says="convolution not rounded: a group has one filter or two, too few to share what is gathered for them")
        size = (folder / "m.dsp/weights.bin").stat().st_size
        expect(size < 0.5 * w.nbytes + depthwise.nbytes + 4096, f"{precision}: {size} bytes of weights for {w.nbytes} of filters")
        found = run_package(folder / "m.dsp", {"x0": x}, folder)
        exact = convolution(x.astype(np.float64), depthwise.astype(np.float64), groups=32, **attributes)
        size = convolution(np.abs(x).astype(np.float64), np.abs(depthwise).astype(np.float64), groups=32, **attributes)
        expect((np.abs(found["z"] - exact) <= 11 * UNIT * size).all(), f"{precision}: the depthwise convolution is not f32")
        judge(precision, x, w, w.astype(np.float64), 1, attributes, found["y0"], f"{precision}, beside others")


@case(seconds=4)
def nothing_else_to_round(folder):
    """Models of one convolution, along an axis that was written as two, or by filters that are codes: each is rounded, on every
    processor, to half the bytes, or keeps its codes."""
    random = np.random.default_rng([SEED, 41])
    w = random.standard_normal((40, 24, 5, 1)).astype(np.float32)
    attributes, line = geometry((5, 1)), geometry((5,))
    proto = model(w, 1, attributes)
    proto.graph.input[0].type.tensor_type.shape.dim[3].ClearField("value")
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 1
    onnx.save(proto, str(folder / "line.onnx"))
    onnx.save(model(w[..., 0], 1, line), str(folder / "plain.onnx"))
    x = random.standard_normal((2, 24, 33, 1)).astype(np.float32)
    for cpu in ("host", "x86-64-v3"):
        for precision in ROUNDING:
            package = compile_model(folder / "line.onnx", folder, f"--precision={precision}", f"--mcpu={cpu}")
            expect((package / "weights.bin").stat().st_size <= w.nbytes // 2 + 4096, f"{precision}, {cpu}: filters are not stored in 16 bits")
            found = run_package(package, {"x0": x}, folder)["y0"]
            judge(precision, x, w, w.astype(np.float64), 1, attributes, found, f"{precision}, {cpu}, as two axes")
        stands = quantized(w.reshape(40, -1).T, 8, 0, "symmetric")[0].T.reshape(w.shape)[..., 0].astype(np.float64)
        for name in ("plain", "line"):
            package = compile_model(folder / f"{name}.onnx", folder, "--precision=bf16", "--quantize=int8", f"--mcpu={cpu}")
            expect((package / "weights.bin").stat().st_size <= w.nbytes // 4 + 4096, f"{name}, {cpu}: filters are not stored in 8 bits")
            found = run_package(package, {"x0": x if name == "line" else x[..., 0]}, folder)["y0"].reshape(2, 40, -1)
            judge("bf16", x[..., 0], w[..., 0], stands, 1, line, found, f"codes, {name}, {cpu}")


@case
def filters_beyond_f16(folder):
    w = np.ones((8, 4, 3, 3), np.float32)
    w[5, 1, 2, 0] = 65520
    onnx.save(model(w, 1, geometry((3, 3))), str(folder / "m.onnx"))
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--precision=f16", code=1,
         says="no product was rounded: there is no product with a weight, and no convolution was, which --report explains")
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--precision=bf16")


@case(slow=True)
def trained_models_in_bf16(folder):
    """Text in images and notes in sound, beside ONNX Runtime in f32: 20 to 30 convolutions behind each other, each of which may
    lose 2^-8 of a number at random signs."""
    random = np.random.default_rng([SEED, 37])
    for path, name, shape in (("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "x", (2, 3, 48, 160)),
                              ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", "x", (3, 3, 48, 192)),
                              ("basic_pitch/saved_models/icassp_2022/nmp.onnx", "serving_default_input_2:0", (1, 43844, 1))):
        model, feed = packaged(path), {name: random.uniform(-1, 1, shape).astype(np.float32)}
        found, expected = run_package(compile_model(model, folder, "--precision=bf16"), feed, folder), onnx_runtime(model, feed)
        for key, array in expected.items():
            far = np.linalg.norm(found[key].astype(np.float64) - array) / np.linalg.norm(array.astype(np.float64))
            expect(far <= 0.1, f"{model.name}: output {key} is {far:.3g} of its length away (DS_SEED={SEED})")
