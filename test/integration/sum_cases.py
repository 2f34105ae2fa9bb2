"""Sums of a few hundred thousand numbers: their error does not grow with how many there are, whatever axes they lie on.

Rows hold one number almost everywhere: then a chain of sums in f32 rounds to the same side at nearly every step, so that
its error grows as fast as it can, where that of random numbers hides it."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, expect, run_package, tool
from programs import SEED

# Blocks of 256 sums, each rounded by at most 2^-24 of what is there; folding lanes and adding up blocks takes a few more.
TOLERANCE = 300 * 2.0**-24
REDUCTIONS = {"ReduceSum": lambda x, axes: x.sum(axes), "ReduceMean": lambda x, axes: x.mean(axes), "ReduceL1": lambda x, axes: np.abs(x).sum(axes),
              "ReduceSumSquare": lambda x, axes: (x * x).sum(axes), "ReduceL2": lambda x, axes: np.sqrt((x * x).sum(axes)),
              "ReduceLogSumExp": lambda x, axes: np.log(np.exp(x).sum(axes))}


def rows_of(random, shape, axes):
    """One number for each row, twice as much in every sixteenth place."""
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    number = random.uniform(0.1, 1, kept).astype(np.float32)
    return np.where(random.random(shape) < 1 / 16, 2 * number, number)


def normal(x, axes, epsilon=1e-5):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon)


def model(path, nodes, shape, constants=()):
    """Nodes of x, with an output of the name of each; a name with numbers is a list of axes."""
    constants = [*constants, *(numpy_helper.from_array(np.array(list(map(int, name)), np.int64), name) for name in sorted({n for node in nodes for n in node.input if n.isdigit()}))]
    graph = helper.make_graph(nodes, "sums", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None) for node in nodes], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(path))
    tool("ds-opt", path, "-o", path.with_suffix(".dsp"))
    return path.with_suffix(".dsp")


def check(what, found, wanted, bound=TOLERANCE):
    distance = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-30)
    expect(found.shape == wanted.shape and (distance <= bound).all(), f"{what}: {distance.max()} of the result off, at most {bound} (DS_SEED={SEED})")


@case(seconds=5)
def sums_of_long_rows(folder):
    """Axes beside each other, apart, and before a kept one; the last is short, or no vector divides it, or is long; sizes
    are known or not. A row has the same bits whatever other rows there are."""
    random = np.random.default_rng([SEED, 31])
    for axes in ((1, 2), (0, 2), (1,), (0, 1)):
        name = "".join(map(str, axes))
        nodes = [helper.make_node(kind, ["x", name], [kind], keepdims=0) for kind in REDUCTIONS]
        dynamic = model(folder / f"d{name}.onnx", nodes, ["a", "b", "c"])
        for last in (1, 3, 15, 16, 1000):
            long = 300000 // last
            shape = {"12": (3, long, last), "02": (long, 3, last), "1": (3, long, last), "01": (long // 100, 100, last)}[name]
            x = rows_of(random, shape, axes)
            found = run_package(dynamic, {"x": x}, folder)
            for kind, reduction in REDUCTIONS.items():
                check(f"{kind} of {shape} over {axes}", found[kind], reduction(x.astype(np.float64), axes))
            if 0 not in axes:
                for kind, alone in run_package(dynamic, {"x": x[1:2]}, folder).items():
                    expect(alone.tobytes() == found[kind][1:2].tobytes(), f"{kind} of {shape} over {axes}: a row alone has other bits")
        fixed = run_package(model(folder / f"s{name}.onnx", nodes, shape), {"x": x}, folder)
        for kind in REDUCTIONS:
            expect(fixed[kind].tobytes() == found[kind].tobytes(), f"{kind} of {shape} over {axes}: other bits than where sizes are not known")


@case(seconds=4)
def norms_of_long_rows(folder):
    """What divides by the spread of a row, which is a quarter of its mean; softmax, whose sums are of exponentials."""
    random = np.random.default_rng([SEED, 32])
    node = helper.make_node
    for last in (1, 2, 5, 17):
        shape = (2, 2, 200000 // last, last)
        x = rows_of(random, shape, (2, 3))
        scale, line = random.uniform(1, 2, 2).astype(np.float32), random.uniform(1, 2, last).astype(np.float32)
        constants = [numpy_helper.from_array(array, name) for name, array in (("s", scale), ("z", np.zeros(2, np.float32)), ("line", line))]
        nodes = [node("InstanceNormalization", ["x", "s", "z"], ["instance"]), node("GlobalAveragePool", ["x"], ["pool"]),
                 node("LayerNormalization", ["x", "line"], ["layer"], axis=2), node("Softmax", ["x"], ["share"], axis=2)]
        exact = x.astype(np.float64)
        powers = np.exp(exact - exact.max(2, keepdims=True))
        wanted = {"instance": normal(exact, (2, 3)) * scale[:, None, None], "layer": normal(exact, (2, 3)) * line,
                  "pool": exact.mean((2, 3), keepdims=True), "share": powers / powers.sum(2, keepdims=True)}
        for number, sizes in enumerate((["n", 2, "t", last], shape)):
            found = run_package(model(folder / f"n{last}{number}.onnx", nodes, sizes, constants), {"x": x}, folder)
            for name, right in wanted.items():
                # a mean is as far off as it says; beside it, differences are up to sixteen times smaller
                check(f"{name} of {shape}", found[name], right, TOLERANCE if name in ("pool", "share") else 16 * TOLERANCE)
