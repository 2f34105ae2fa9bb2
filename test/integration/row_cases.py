"""Norms and softmaxes that compute their rows in their own kernel, against NumPy, and bit by bit against --fusion=none."""
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, expect, run_package, tool
from programs import SEED


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def rms_norm(x, scale):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale


@case(seconds=12)
def rows_are_computed(folder):
    """Residuals, masks by row and by column, chains that start at integers; sums are read elsewhere or not; lengths that
    no vector divides, one row, none."""
    random = np.random.default_rng([SEED, 12])
    for length, dtype, code in ((23, np.float32, TensorProto.FLOAT), (64, np.float32, TensorProto.FLOAT), (33, np.float64, TensorProto.DOUBLE),
                                (16, np.float32, TensorProto.FLOAT)):
        value = lambda name, shape, kind=code: helper.make_tensor_value_info(name, kind, shape)
        scale, bias, column = (random.standard_normal(length).astype(dtype) for _ in range(3))
        constants = [numpy_helper.from_array(array, name) for name, array in (("scale", scale), ("bias", bias), ("column", column))]
        node = helper.make_node
        nodes = [
            node("Add", ["x", "y"], ["sum"]), node("LayerNormalization", ["sum", "scale", "bias"], ["normal"], axis=-1),
            node("Mul", ["sum", "normal"], ["late"]),                       # reads the sum behind the norm
            node("Mul", ["x", "row"], ["weighted"]), node("Add", ["weighted", "column"], ["moved"]), node("Tanh", ["moved"], ["bent"]),
            node("RMSNormalization", ["bent", "scale"], ["root"], axis=-1),  # nothing else reads the chain
            node("Where", ["allowed", "x", "low"], ["masked"]), node("Softmax", ["masked"], ["share"], axis=-1),
            node("Cast", ["count"], ["float"], to=code), node("Sub", ["float", "y"], ["rest"]), node("LogSoftmax", ["rest"], ["log"], axis=-1)]
        constants.append(numpy_helper.from_array(np.array(-1e4, dtype), "low"))
        shape = ["a", "b", length]
        graph = helper.make_graph(
            nodes, "rows",
            [value("x", shape), value("y", shape), value("row", ["b", 1]), value("allowed", [1, "b", length], TensorProto.BOOL),
             value("count", shape, TensorProto.INT32)],
            [value("late", None), value("root", None), value("share", None), value("rest", None), value("log", None)], constants)
        path = folder / "rows.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), str(path))
        report = tool("ds-opt", path, "-o", folder / "rows.dsp", "--report").out
        expect("fuse-rows: 7 ops fused, 4 regions" in report, report)
        tool("ds-opt", path, "-o", folder / "generic.dsp", "--fusion=generic")
        tool("ds-opt", path, "-o", folder / "apart.dsp", "--fusion=none")
        for a, b in ((1, 1), (3, 5), (2, 41), (0, 4)):
            feed = {"x": random.standard_normal((a, b, length)), "y": random.standard_normal((a, b, length)), "row": random.standard_normal((b, 1))}
            feed = {name: array.astype(dtype) for name, array in feed.items()}
            feed["allowed"] = random.random((1, b, length)) < 0.7
            feed["count"] = random.integers(-5, 5, (a, b, length)).astype(np.int32)
            wide = {name: array if array.dtype == bool else array.astype(np.float64) for name, array in feed.items()}
            total, rest = wide["x"] + wide["y"], wide["count"] - wide["y"]
            right = {"late": total * layer_norm(total, scale, bias), "root": rms_norm(np.tanh(wide["x"] * wide["row"] + column), scale),
                     "share": softmax(np.where(wide["allowed"], wide["x"], -1e4)), "rest": rest, "log": np.log(softmax(rest))}
            found, apart, generic = (run_package(folder / f"{name}.dsp", feed, folder) for name in ("rows", "apart", "generic"))
            for name, wanted in right.items():
                what = f"{name}, {a} by {b} rows of {length} {np.dtype(dtype).name} (DS_SEED={SEED})"
                expect(found[name].shape == wanted.shape, f"{what}: {found[name].shape}")
                expect(found[name].tobytes() == apart[name].tobytes() == generic[name].tobytes(), f"{what}: other bits than without fusion")
                # a norm of few nearly equal elements is as exact as their differences are: hence the second term
                bound = 2e-4 if dtype == np.float32 else 1e-11
                close = np.abs(found[name] - wanted) <= bound * (1 + np.abs(wanted))
                expect(close.all(), f"{what}: {found[name][~close]} for {wanted[~close]}")


@case(seconds=12)
def scales_beside_rows(folder):
    """What makes a norm's scale or bias is read by what makes its rows, too, next to them or far before."""
    random = np.random.default_rng([SEED, 33])
    node = helper.make_node
    for shape in ((4, 32), (64,)):
        value = lambda name, sizes=shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        x, y = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
        exact, other = x.astype(np.float64), y.astype(np.float64)
        square, total = exact * exact, np.tanh(exact * exact + other)
        centred = total - total.mean()
        layer, root = centred / np.sqrt((centred**2).mean() + 1e-5), total / np.sqrt((total**2).mean() + 1e-5)
        for name, last, right in (("scale", node("LayerNormalization", ["rows", "s"], ["o"], axis=0), layer * square),
                                  ("bias", node("LayerNormalization", ["rows", "y", "s"], ["o"], axis=0), layer * other + square),
                                  ("both", node("LayerNormalization", ["rows", "s", "s"], ["o"], axis=0), layer * square + square),
                                  ("sum", node("LayerNormalization", ["rows", "sum"], ["o"], axis=0), layer * (square + other)),
                                  ("rows", node("RMSNormalization", ["rows", "rows"], ["o"], axis=0), root * total),
                                  ("root", node("RMSNormalization", ["rows", "s"], ["o"], axis=0), root * square)):
            graph = helper.make_graph([node("Mul", ["x", "x"], ["s"]), node("Add", ["s", "y"], ["sum"]), node("Tanh", ["sum"], ["rows"]), last],
                                      "beside", [value("x"), value("y")], [value("o", None)])
            path = folder / f"{name}.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), str(path))
            results = []
            for fusion in ("specialized", "generic", "none"):
                package = folder / f"{name}-{fusion}.dsp"
                tool("ds-opt", path, "-o", package, f"--fusion={fusion}")
                results.append(run_package(package, {"x": x, "y": y}, folder)["o"])
            what = f"{name}, {shape} (DS_SEED={SEED})"
            expect(len({result.tobytes() for result in results}) == 1, f"{what}: other bits than without fusion")
            # sums of 128 numbers in f32
            expect(np.allclose(results[0], right, rtol=2e-5, atol=2e-5), f"{what}: {np.abs(results[0] - right).max()} off")


@case(seconds=12)
def rows_are_changed(folder):
    """What follows a norm: residuals that lie where the result may, masks by row, column and number, ops of one operand,
    another type; rows that no vector divides, one row, none."""
    random = np.random.default_rng([SEED, 71])
    node = helper.make_node
    rowwise = {"Tanh": np.tanh, "Abs": np.abs, "Neg": np.negative}
    both = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Max": np.maximum}
    beside = {"y": ["a", "b", None], "row": ["b", 1], "column": [None], "number": []}
    for number in range(8):
        isComputed = number > 4
        length, isRoot, code = int(random.choice([16, 23, 64, 200])), random.random() < 0.5, [TensorProto.FLOAT, TensorProto.DOUBLE][number % 3 == 2]
        dtype = helper.tensor_dtype_to_np_dtype(code)
        value = lambda name, shape: helper.make_tensor_value_info(name, code, [length if d is None else d for d in shape])
        scale, bias = (random.standard_normal(length).astype(dtype) for _ in range(2))
        constants = [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(bias, "bias")]
        # The residual has a kernel of its own, and a buffer that the norm's may write over.
        nodes = [node("Exp" if isComputed else "Identity", ["x"], ["input"]), node("Softmax", ["y"], ["residual"], axis=-1),
                 node("RMSNormalization", ["input", "scale"], ["v0"], axis=-1) if isRoot else
                 node("LayerNormalization", ["input", "scale", "bias"], ["v0"], axis=-1)]
        steps = []
        for step in range(int(random.integers(1, 5))):
            if random.random() < 0.4:
                name = str(random.choice(list(rowwise)))
                nodes.append(node(name, [f"v{step}"], [f"v{step + 1}"]))
                steps.append(lambda v, feed, f=rowwise[name]: f(v))
            else:
                name, other, isLeft = str(random.choice(list(both))), str(random.choice(["residual", "row", "column", "number", "input"])), random.random() < 0.5
                nodes.append(node(name, [f"v{step}", other] if isLeft else [other, f"v{step}"], [f"v{step + 1}"]))
                steps.append(lambda v, feed, f=both[name], o=other, left=isLeft: f(v, feed[o]) if left else f(feed[o], v))
        last = f"v{len(steps)}"
        result, kind = last, code
        if number % 2:
            result, kind = "cast", TensorProto.FLOAT16
            nodes.append(node("Cast", [last], ["cast"], to=kind))
        graph = helper.make_graph(nodes, "rows", [value("x", ["a", "b", None])] + [value(name, shape) for name, shape in beside.items()],
                                  [helper.make_tensor_value_info(result, kind, None)], constants)
        path = folder / f"{number}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), str(path))
        packages = {fusion: folder / f"{number}-{fusion}.dsp" for fusion in ("specialized", "generic", "none")}
        report = {fusion: tool("ds-opt", path, "-o", package, f"--fusion={fusion}", "--report").out for fusion, package in packages.items()}
        launches = {fusion: int(re.search(r"(\d+) launches", text).group(1)) for fusion, text in report.items()}
        fewest = 1 + any("residual" in node.input for node in nodes)
        expect(isComputed or launches["specialized"] == fewest, f"{number} (DS_SEED={SEED}): {launches} launches, expected {fewest}")
        for a, b in ((1, 1), (3, 5), (2, 41), (0, 4)):
            sizes = {"a": a, "b": b, None: length}
            feed = {name: random.standard_normal([sizes.get(d, d) for d in shape]).astype(dtype) for name, shape in [("x", beside["y"]), *beside.items()]}
            wide = {name: array.astype(np.float64) for name, array in feed.items()}
            wide |= {"input": np.exp(wide["x"]) if isComputed else wide["x"], "residual": softmax(wide["y"])}
            right = rms_norm(wide["input"], scale) if isRoot else layer_norm(wide["input"], scale, bias)
            for step in steps:
                right = step(right, wide)
            found = {fusion: run_package(package, feed, folder)[result] for fusion, package in packages.items()}
            what = f"{number}, {a} by {b} rows of {length} {np.dtype(dtype).name} (DS_SEED={SEED})"
            expect(len({array.tobytes() for array in found.values()}) == 1, f"{what}: other bits than without fusion")
            # a norm of few nearly equal elements is as exact as their differences are: hence the second term
            bound = 1e-3 if number % 2 else 2e-4 if dtype == np.float32 else 1e-11
            array = found["specialized"].astype(np.float64)
            close = np.abs(array - right) <= bound * (1 + np.abs(right))
            expect(array.shape == right.shape and close.all(), f"{what}: {array[~close]} for {right[~close]}")
