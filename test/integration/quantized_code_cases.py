"""Products between DequantizeLinear nodes are products of integers: exact against NumPy's, whatever types and zero points operands have."""
import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

from kit import case, expect, run_package, tool
from programs import SEED

KINDS = {"u8": (TensorProto.UINT8, np.uint8), "i8": (TensorProto.INT8, np.int8)}


def draw(random, kind, *shape):
    info = np.iinfo(KINDS[kind][1])
    return random.integers(info.min, info.max + 1, shape).astype(KINDS[kind][1])


def dequantized(nodes, constants, name, scale, zero, axis=None):
    """Adds what reads `name` as floats."""
    names = [name, f"{name}.scale"]
    constants[f"{name}.scale"] = scale
    if zero is not None:
        names.append(f"{name}.zero")
        constants[f"{name}.zero"] = zero
    nodes.append(helper.make_node("DequantizeLinear", names, [f"{name}.f"], **({} if axis is None else {"axis": axis})))
    return f"{name}.f"


def compiled(folder, nodes, constants, inputs):
    inputs = [helper.make_tensor_value_info(name, KINDS[kind][0], shape) for name, kind, shape in inputs]
    graph = helper.make_graph(nodes, "codes", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "codes.onnx")
    tool("ds-opt", folder / "codes.onnx", "-o", folder / "codes.dsp")
    return folder / "codes.dsp"


def exact(found, sums, scale, what):
    wanted = sums.astype(np.float32) * scale.astype(np.float32)
    wrong = int((found != wanted).sum())
    expect(found.shape == wanted.shape and wrong == 0, f"{what} (DS_SEED={SEED}): {wrong} of {wanted.size} results differ")


def whole(array, zero):
    return array.astype(np.int64) - (0 if zero is None else np.asarray(zero).astype(np.int64))


def zeros_of(random, kind, columns):
    """None; that of symmetric codes; one; one for each column."""
    middle = np.array(128 if kind == "u8" else 0, KINDS[kind][1])
    return [None, middle, draw(random, kind), draw(random, kind, columns)]


@case(seconds=25)
def weights(folder):
    random = np.random.default_rng([SEED, 71])
    depth, columns = 600, 37
    for left in KINDS:
        for right in KINDS:
            for zero in zeros_of(random, right, columns):
                nodes, constants, per_column = [], {"w": draw(random, right, depth, columns)}, zero is not None and zero.ndim == 1
                scale = random.uniform(0.01, 0.02, columns if per_column else ()).astype(np.float32)
                x_scale, x_zero = np.float32(0.03), draw(random, left)
                names = [dequantized(nodes, constants, "x", x_scale, x_zero), dequantized(nodes, constants, "w", scale, zero, 1)]
                nodes.append(helper.make_node("MatMul", names, ["y"]))
                x = draw(random, left, 9, depth)
                found = run_package(compiled(folder, nodes, constants, [("x", left, ["m", depth])]), {"x": x}, folder)["y"]
                exact(found, whole(x, x_zero) @ whole(constants["w"], zero), scale * x_scale, f"{left} by {right}, zero point {zero}")


@case
def operands_of_run_time(folder):
    """Heads of queries by heads of keys, as statically quantized attention multiplies them."""
    random = np.random.default_rng([SEED, 72])
    for left in KINDS:
        for right in KINDS:
            nodes, constants = [], {}
            zeros = {"q": draw(random, left), "k": draw(random, right)}
            scales = {"q": np.float32(0.02), "k": np.float32(0.03)}
            names = [dequantized(nodes, constants, name, scales[name], zeros[name]) for name in ("q", "k")]
            nodes += [helper.make_node("Transpose", [names[1]], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", [names[0], "kt"], ["y"])]
            package = compiled(folder, nodes, constants, [("q", left, ["b", 3, "s", 520]), ("k", right, ["b", 3, "t", 520])])
            q, k = draw(random, left, 2, 3, 5, 520), draw(random, right, 2, 3, 17, 520)
            found = run_package(package, {"q": q, "k": k}, folder, "--threads=2")["y"]
            sums = np.einsum("bhsd,bhtd->bhst", whole(q, zeros["q"]), whole(k, zeros["k"]))
            exact(found, sums, scales["q"] * scales["k"], f"{left} by {right} of run time")


@case(seconds=3)
def filters(folder):
    random = np.random.default_rng([SEED, 73])
    for kind in KINDS:
        for zero in zeros_of(random, kind, 6):
            nodes, constants, per_filter = [], {"w": draw(random, kind, 6, 64, 3, 3)}, zero is not None and zero.ndim == 1
            scale = random.uniform(0.01, 0.02, 6 if per_filter else ()).astype(np.float32)
            x_scale, x_zero = np.float32(0.04), draw(random, "u8")
            names = [dequantized(nodes, constants, "x", x_scale, x_zero), dequantized(nodes, constants, "w", scale, zero, 0)]
            nodes.append(helper.make_node("Conv", names, ["y"], pads=[1, 1, 1, 1]))
            x = draw(random, "u8", 2, 64, 7, 5)
            found = run_package(compiled(folder, nodes, constants, [("x", "u8", ["n", 64, 7, 5])]), {"x": x}, folder)["y"]
            padded = np.pad(whole(x, x_zero), ((0, 0), (0, 0), (1, 1), (1, 1)))
            integers = whole(constants["w"], zero.reshape(-1, 1, 1, 1) if per_filter else zero)
            sums = np.einsum("nchwij,mcij->nmhw", sliding_window_view(padded, (3, 3), axis=(2, 3)), integers, optimize=True)
            exact(found, sums, (scale.reshape(-1, 1, 1) if per_filter else scale) * x_scale, f"filters of {kind}, zero point {zero}")


@case
def blocks_of_a_vector(folder):
    """Scales of contiguous ranges of a flat tensor, the last one shorter, of constants and at run time."""
    random = np.random.default_rng([SEED, 74])
    for size, block in ((96, 16), (50, 16), (7, 7)):
        count = -(-size // block)
        codes, zeros = draw(random, "i8", size), draw(random, "i8", count)
        scales = random.uniform(0.01, 0.02, count).astype(np.float32)
        nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0, block_size=block),
                 helper.make_node("DequantizeLinear", ["x", "s", "z"], ["g"], axis=0, block_size=block), helper.make_node("Add", ["f", "g"], ["y"])]
        x = draw(random, "i8", size)
        found = run_package(compiled(folder, nodes, {"w": codes, "s": scales, "z": zeros}, [("x", "i8", [size])]), {"x": x}, folder)["y"]
        real = [whole(array, np.repeat(zeros, block)[:size]).astype(np.float32) * np.repeat(scales, block)[:size] for array in (codes, x)]
        expect(np.array_equal(found, real[0] + real[1]), f"{size} in blocks of {block} (DS_SEED={SEED})")
