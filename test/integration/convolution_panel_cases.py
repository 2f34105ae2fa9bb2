"""Panels of pixels that are as wide as each other and go on from image to image, against NumPy; and bits of an image alone."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from convolution_cases import conv, convolution, geometry
from kit import case, compile_model, expect, run_package
from products import FLOATS, Model
from programs import SEED

# Pixels of an image on both sides of one, two, three vectors of 8 or 16 and of panels of those, and whole ones.
PLANES = ((1, 1), (1, 3), (3, 5), (4, 4), (1, 17), (5, 6), (1, 31), (4, 8), (3, 11), (1, 47), (6, 8), (7, 7), (5, 13), (8, 10), (14, 14), (9, 25))
KERNELS = (([1, 1], 1, None), ([3, 3], 1, None), ([2, 3], 1, [1, 0, 0, 2]), ([3, 1], 1, None), ([1, 1], 2, None), ([3, 3], 2, [1, 1, 0, 0]),
           ([2, 2], 3, [0, 1, 1, 0]), ([3, 3], 1, [4, 4, 4, 4]))


def single(feed, image):
    return {name: array[image:image + 1] for name, array in feed.items()}


@case(seconds=12)
def images_share_panels(folder):
    """Sizes of images are known, batches are not, or are: each type, groups, strides, padding; an image's bits alone."""
    models = []
    for batch in ("b", 5):
        m = Model(f"shared panels {batch}")
        for number, plane in enumerate(PLANES):
            kernel, stride, pads = KERNELS[(number + (batch == 5)) % len(KERNELS)]
            element = "f32" if number % 3 else FLOATS[1 + number // 3 % 3]
            groups = (1, 1, 2, 3)[number % 4]
            isWindow = pads is None or all(n + p + q >= k for n, p, q, k in zip(plane, pads, pads[2:], kernel))
            attributes = geometry(kernel, stride, 1, pads if isWindow else None)
            x = m.input(element, [batch, 6, *plane])
            conv(m, element, x, 6, groups * int(m.random.integers(3, 40)), groups, kernel, attributes, number % 2)
        place = folder / f"batch-{batch}"
        place.mkdir()
        models.append((m, m.compiled(place)))
    for number, batch in enumerate((1, 2, 3, 8, 17, 0)):
        m, package = models[0]
        feed = m.feed({"b": batch})
        found = m.verify(package, feed, folder, f"--threads={1 + number % 3}", about=f"batch {batch}:")
        for image in range(min(batch, 3)):
            m.same_bits(found, m.run(package, single(feed, image), folder), f"image {image} of {batch}", lambda _, array: array[image:image + 1])
    m, package = models[1]
    feed = m.feed({})
    found = m.verify(package, feed, folder, "--threads=2")
    for threads in (1, 3, 7):
        m.same_bits(found, m.run(package, feed, folder, f"--threads={threads}"), f"{threads} threads")


@case(seconds=8)
def what_follows_shared_panels(folder):
    """Pieces of an image get what belongs to it: numbers of every image, filter and pixel; several results of one kernel."""
    m = Model("pieces")
    judges = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}
    for number, plane in enumerate(((7, 7), (1, 3), (5, 13), (14, 14), (4, 4))):
        filters = (5, 33, 16, 40, 70)[number]
        x = m.input("f32", ["b", 3, *plane], wide=False)
        weight, bias = m.drawn("f32", (filters, 3, 3, 3), wide=False), m.drawn("f32", (filters,), wide=False)
        attributes = geometry([3, 3])
        made = m.node("Conv", [x, weight, bias], kernel_shape=[3, 3], **attributes)
        convolved = lambda x, w, c, attributes=attributes: convolution(x, w, c, **attributes)
        for op, shape in (("Add", ["b", filters, *plane]), ("Mul", [1, filters, 1, 1]), ("Sub", ["b", filters, 1, 1]), ("Add", [*plane]), ("Mul", ["b", 1, *plane])):
            other = m.input("f32", shape, wide=False)
            both = m.node(op, [made, other])
            m.check(m.node("Relu", [both]), "f32", [x, weight, bias, other],
                    lambda x, w, c, y, convolved=convolved, op=op: np.maximum(judges[op](convolved(x, w, c), y), 0))
        m.check(made, "f32", [x, weight, bias], convolved)
        m.check(m.node("Neg", [made]), "f32", [x, weight, bias], lambda x, w, c, convolved=convolved: -convolved(x, w, c))
    package = m.compiled(folder)
    for number, batch in enumerate((1, 2, 5, 16)):
        feed = m.feed({"b": batch})
        found = m.verify(package, feed, folder, f"--threads={1 + number % 3}", about=f"batch {batch}:")
        cut = {name: array[:1] if m.inputs[name][1][0] == "b" else array for name, array in feed.items()}
        m.same_bits(found, m.run(package, cut, folder), f"the first of {batch}", lambda _, array: array[:1])


def floats_model(folder, name, nodes):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), str(path))
    return path


@case(seconds=3)
def bfloats_are_rounded_to_nearest_even(folder):
    """Every upper half of an f32, with lower halves around a tie: in order, so that whole vectors are normal or subnormal, and mixed."""
    upper, lower = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16), np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    ordered = (upper[None, :] | lower[:, None]).reshape(-1).view(np.float32)
    mixed = np.random.default_rng(SEED).permutation(ordered)
    path = floats_model(folder, "round", [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.BFLOAT16), helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT)])
    for options in ([], ["--mcpu=x86-64-v3"], ["--reference"]):
        package = compile_model(path, folder, *options)
        for x in (ordered, mixed, ordered[:37]):
            with np.errstate(invalid="ignore"):
                wanted = x.astype(ml_dtypes.bfloat16).astype(np.float32)
            y = run_package(package, {"x": x}, folder)["y"]
            wrong = np.where(np.isnan(x), ~np.isnan(y), y.view(np.uint32) != wanted.view(np.uint32))
            at = int(np.argmax(wrong))
            expect(not wrong.any(), f"{options}: {x[at]!r} became {y[at]!r}, expected {wanted[at]!r}; {int(wrong.sum())} are wrong (DS_SEED={SEED})")


@case(seconds=3)
def relu_keeps_what_is_no_number(folder):
    """NaN stays NaN, negative numbers and infinity become 0, the others stay, in vectors and in a tail, of each float."""
    x = np.random.default_rng(SEED).standard_normal(77).astype(np.float32)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-41, -1e-41, 3e38, -3e38], np.float32)
    for at in (0, 20, 68):
        x[at:at + 9] = special
    for code in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16):
        nodes = [helper.make_node("Cast", ["x"], ["h"], to=code), helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT)]
        with np.errstate(over="ignore"):
            held = x.astype(helper.tensor_dtype_to_np_dtype(code)).astype(np.float32)
        for options in ([], ["--mcpu=x86-64-v3"], ["--fusion=none"], ["--reference"]):
            y = run_package(compile_model(floats_model(folder, f"relu{code}", nodes), folder, *options), {"x": x}, folder)["y"]
            right = np.where(np.isnan(held), np.isnan(y), y == np.maximum(held, 0))
            expect(right.all(), f"{options}, type {code}: of {held[~right][:4]} {y[~right][:4]} (DS_SEED={SEED})")
