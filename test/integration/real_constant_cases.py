"""Sizes that constants decide through operators of every kind, against ONNX Runtime: what sorts, normalizes, convolves,
chooses or iterates. Each is evaluated when the model is imported."""
import re
import time

import numpy as np
from onnx import TensorProto as T, helper

from kit import case, expect, tool
from programs import SEED
from real_file_cases import FLOAT, agree, compiled, node, normal, value, warned, write


def numbers(*values, kind=np.int64):
    return np.array(values, kind)


def body(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def doubling():
    """Two iterations: the carried list is doubled, one row of it collected each time."""
    return body([node("Add", "v v", "w"), node("Identity", "c", "d"), node("Identity", "w", "row")],
                [value("i", [], T.INT64), value("c", [], T.BOOL), value("v", [2], T.INT64)],
                [value("d", [], T.BOOL), value("w", [2], T.INT64), value("row", [2], T.INT64)])


def until_six():
    """Adds the counter until the sum is six: how often is decided by the data."""
    return body([node("Add", "v one", "w"), node("ReduceSum", "w", "t", keepdims=0), node("Less", "t six", "d")],
                [value("i", [], T.INT64), value("c", [], T.BOOL), value("v", [2], T.INT64)],
                [value("d", [], T.BOOL), value("w", [2], T.INT64)])


def cast(x):
    return node("Cast", x, "s", to=T.INT64)


# Each gives two sizes whose product is 6, from constants alone.
OPERATORS = {
    "TopK": ([node("TopK", "c two", "v p"), node("Identity", "v", "s")], {"c": numbers(1, 3, -5, 2), "two": numbers(2)}),
    "TopKPlaces": ([node("TopK", "f two", "v s", largest=0)], {"f": np.array([9, 7, 1, 0], FLOAT)[[0, 1, 3, 2]],
                                                              "two": numbers(2)}),
    "Det": ([node("Det", "m", "d"), cast("d")], {"m": np.array([[[2, 0], [5, 1]], [[0, 3], [-1, 4]]], FLOAT)}),
    "Unique": ([node("Unique", "c", "s p q r")], {"c": numbers(3, 2, 3, 2, 2)}),
    "UniqueCounts": ([node("Unique", "c", "u p q s", sorted=0)], {"c": numbers(7, -1, 7, -1, 7)}),
    "Trilu": ([node("Trilu", "m", "t"), node("ReduceSum", "t axis", "s", keepdims=0)],
              {"m": numbers(1, 1, 9, 3).reshape(2, 2), "axis": numbers(1)}),
    "TriluFloat": ([node("Trilu", "m", "t", upper=0), node("ReduceSum", "t axis", "r", keepdims=0), cast("r")],
                   {"m": np.array([[2, 8], [1, 2]], FLOAT), "axis": numbers(1)}),
    "Softmax": ([node("Softmax", "f", "p"), node("Mul", "p n", "q"), cast("q")],
                {"f": np.zeros(2, FLOAT), "n": np.array([4.5, 6.5], FLOAT)}),
    "LogSoftmax": ([node("LogSoftmax", "f", "p"), node("Mul", "p n", "q"), cast("q")],
                   {"f": np.zeros(2, FLOAT), "n": np.array([-3.5, -5], FLOAT)}),
    "LayerNormalization": ([node("LayerNormalization", "f g b", "p"), node("Round", "p", "q"), cast("q")],
                           {"f": np.array([1, 3], FLOAT), "g": np.array([1, 1], FLOAT), "b": np.array([3, 2], FLOAT)}),
    "OneHot": ([node("OneHot", "i depth v", "h"), node("Slice", "h one two", "r"), node("Squeeze", "r zero", "s")],
               {"i": numbers(1, 0), "depth": np.array(2, np.int64), "v": numbers(2, 3), "zero": numbers(0),
                "one": numbers(1), "two": numbers(2)}),
    "Conv": ([node("Conv", "f w", "p", pads=[1, 1]), node("Squeeze", "p axes", "q"), cast("q")],
             {"f": np.array([[[3, 1]]], FLOAT), "w": np.array([[[1, 0.5, 1]]], FLOAT) * 1.0, "axes": numbers(0, 1)}),
    "ConvTranspose": ([node("ConvTranspose", "f w", "p"), node("Squeeze", "p axes", "q"), cast("q")],
                      {"f": np.array([[[1]]], FLOAT), "w": np.array([[[2, 3]]], FLOAT), "axes": numbers(0, 1)}),
    "ConvInteger": ([node("ConvInteger", "f w", "p"), node("Squeeze", "p axes", "q"), cast("q")],
                    {"f": np.array([[[1, 1, 2]]], np.uint8), "w": np.array([[[1, 1]]], np.uint8), "axes": numbers(0, 1)}),
    "MaxPool": ([node("MaxPool", "f", "p", kernel_shape=[2]), node("Squeeze", "p axes", "q"), cast("q")],
                {"f": np.array([[[1, 2, 3]]], FLOAT), "axes": numbers(0, 1)}),
    "AveragePool": ([node("AveragePool", "f", "p", kernel_shape=[2], pads=[0, 1]), node("Squeeze", "p axes", "q"),
                     cast("q")], {"f": np.array([[[1, 3]]], FLOAT), "axes": numbers(0, 1)}),
    "GlobalMaxPool": ([node("GlobalMaxPool", "f", "p"), node("Squeeze", "p axes", "q"), cast("q")],
                      {"f": np.array([[[1, 3], [2, -1]]], FLOAT), "axes": numbers(0, 2)}),
    "EyeLike": ([node("EyeLike", "m", "e", dtype=T.INT64), node("MatMul", "e c", "s")],
                {"m": np.zeros((2, 2), FLOAT), "c": numbers(2, 3)}),
    "Hardmax": ([node("Hardmax", "f", "h"), node("Add", "h f", "p"), cast("p")], {"f": np.array([2, 2.5], FLOAT)}),
    "ReverseSequence": ([node("ReverseSequence", "m n", "r", time_axis=1, batch_axis=0), node("Squeeze", "r zero", "s")],
                        {"m": numbers(2, 3).reshape(1, 2), "n": numbers(2), "zero": numbers(0)}),
    "Loop": ([helper.make_node("Loop", ["two", "yes", "c"], ["w", "rows"], body=doubling()), node("Div", "w four", "s")],
             {"two": np.array(2, np.int64), "yes": np.array(True), "c": numbers(2, 3), "four": numbers(4)}),
    "LoopItself": ([helper.make_node("Loop", ["two", "yes", "c"], ["s", "rows"], body=doubling())],
                   {"two": np.array(0, np.int64), "yes": np.array(True), "c": numbers(2, 3)}),
    "LoopRows": ([helper.make_node("Loop", ["two", "yes", "c"], ["w", "rows"], body=doubling()),
                  node("ReduceMax", "rows", "t", axes=[0], keepdims=0), node("Div", "t four", "s")],
                 {"two": np.array(2, np.int64), "yes": np.array(True), "c": numbers(2, 3), "four": numbers(4)}),
    "LoopUntil": ([helper.make_node("Loop", ["", "yes", "c"], ["v"], body=until_six()), node("Sub", "v o", "s")],
                  {"yes": np.array(True), "c": numbers(0, 1), "one": numbers(1), "six": np.array(6, np.int64),
                   "o": numbers(1, 1)}),
    "Compress": ([node("Compress", "c m", "s")], {"c": numbers(9, 2, 3), "m": np.array([False, True, True])}),
    "NonMaxSuppression": ([node("NonMaxSuppression", "boxes scores most", "n"), node("Shape", "n", "t"),
                           node("Mul", "t o", "u"), node("Slice", "u one2 two2", "v"), node("Concat", "two2 v", "s",
                                                                                            axis=0)],
                          {"boxes": np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], FLOAT), "scores": np.ones((1, 1, 2), FLOAT),
                           "most": numbers(2), "o": numbers(1, 1), "one2": numbers(1), "two2": numbers(2)}),
    "ScatterAdd": ([node("ScatterElements", "c i u", "s", reduction="add")],
                   {"c": numbers(1, 1), "i": numbers(0, 1, 1), "u": numbers(1, 1, 1)}),
    "ReduceL1": ([node("ReduceL1", "m", "s", keepdims=0, axes=[1])], {"m": numbers(-1, 1, 2, -1).reshape(2, 2)}),
    "Einsum": ([node("Einsum", "m c", "p", equation="ij,j->i"), cast("p")],
               {"m": np.array([[1, 1], [0, 3]], FLOAT), "c": np.array([1, 1], FLOAT)}),
    "Relu": ([node("Relu", "f", "p"), cast("p")], {"f": np.array([2.5, 3.5], FLOAT)}),
    "InstanceNormalization": ([node("InstanceNormalization", "f g b", "p"), node("Add", "p o", "h"),
                               node("Round", "h", "q"), node("Squeeze", "q axes", "r"), cast("r")],
                              {"f": np.array([[[1, 3]]], FLOAT), "g": np.array([0.5], FLOAT), "b": np.array([1], FLOAT),
                               "o": np.array([1.5, 1.5], FLOAT), "axes": numbers(0, 1)}),
    "Quantized": ([node("QuantizeLinear", "f scale zero", "q"), node("DequantizeLinear", "q scale zero", "d"), cast("d")],
                  {"f": np.array([2, 3], FLOAT), "scale": FLOAT(0.5), "zero": np.array(3, np.uint8)}),
}


@case(seconds=6)
def any_operator(folder):
    for name, (nodes, constants) in OPERATORS.items():
        model = write(folder / f"{name}.onnx", [*nodes, node("Reshape", "x s", "y")], [value("x", [6])],
                      [value("y", None)], constants)
        package, warnings = compiled(model, folder)
        warned(warnings)
        agree(package, model, {"x": normal(6)}, folder, 0)


@case(seconds=4)
def a_shape_behind_quantized_layers(folder):
    """What constants compute on the way to data is nobody's size: it spends nothing of what sizes may cost."""
    random, layers = np.random.default_rng(SEED), 40
    constants = {"scale": FLOAT(0.05), "zero": np.array(0, np.int8), "real": np.array([4, 9], FLOAT),
                 "one": numbers(1, 1)}
    nodes = []
    for i in range(layers):
        constants[f"w{i}"] = random.integers(-2, 3, (16, 16, 3, 3)).astype(np.int8)
        nodes += [node("QuantizeLinear", f"x{i} scale zero", f"q{i}"), node("DequantizeLinear", f"q{i} scale zero", f"d{i}"),
                  node("DequantizeLinear", f"w{i} scale zero", f"v{i}"),
                  node("Conv", f"d{i} v{i}", f"c{i}", pads=[1, 1, 1, 1]), node("Relu", f"c{i}", f"x{i + 1}")]
    # The weights of another network are quantized in the file: constants that no size depends on.
    constants["f"] = random.standard_normal((32, 32)).astype(FLOAT)
    for i in range(400):
        nodes += [node("QuantizeLinear", "f scale zero" if i == 0 else f"g{i} scale zero", f"p{i}"),
                  node("DequantizeLinear", f"p{i} scale zero", f"g{i + 1}")]
    nodes += [node("Sqrt", "real", "root"), node("Cast", "root", "pair", to=T.INT64), node("Mul", "pair one", "s"),
              node("ReduceMax", "g400", "most", keepdims=0), node("Reshape", "z s", "y0"), node("Add", "y0 most", "y")]
    model = write(folder / "deep.onnx", nodes, [value("x0", [1, 16, 2, 2]), value("z", [6])],
                  [value("y", None), value(f"x{layers}", None)], constants)
    package, warnings = compiled(model, folder)
    warned(warnings)
    agree(package, model, {"x0": normal(1, 16, 2, 2), "z": normal(6)}, folder, 1e-5)


@case(seconds=6)
def arithmetic_that_doubles_stays_short(folder):
    """Division, magnitude and choice mention their operand more than once: what is too long to follow is data."""
    steps = {"Div": [node("Add", "{0} c", "{0}a"), node("Div", "{0}a two", "{1}")],
             "Abs": [node("Sub", "{0} c", "{0}a"), node("Abs", "{0}a", "{1}")],
             "Max": [node("Mul", "{0} minus", "{0}a"), node("Max", "{0} {0}a", "{0}b"), node("Sub", "{0}b c", "{1}")],
             "Where": [node("Less", "{0} c", "{0}m"), node("Add", "{0} c", "{0}a"), node("Sub", "{0} two", "{0}b"),
                       node("Where", "{0}m {0}a {0}b", "{1}")],
             "Mod": [node("Mul", "{0} {0}", "{0}a"), node("Mod", "{0}a large", "{1}")]}
    constants = {"two": numbers(2), "c": numbers(7), "minus": numbers(-1), "large": numbers(1000003)}
    for name, step in steps.items():
        nodes = []
        for i in range(40):
            for part in step:
                copy = type(part)()
                copy.CopyFrom(part)
                for field in copy.input, copy.output:
                    field[:] = [text.format(f"v{i}", f"v{i + 1}") for text in field]
                nodes.append(copy)
        used = {text for part in nodes for text in part.input}
        stored = {key: array for key, array in constants.items() if key in used}
        model = write(folder / f"{name}.onnx", nodes, [value("v0", [3], T.INT64)], [value("v40", None, T.INT64)], stored)
        package, warnings = compiled(model, folder)
        warned(warnings)
        draws = np.random.default_rng(SEED)
        for magnitude in 10, 10**6, 2**40:
            agree(package, model, {"v0": draws.integers(-magnitude, magnitude, 3)}, folder, 0, name)
        model = write(folder / f"{name}Sizes.onnx", [node("Shape", "x", "v0"), *nodes],
                      [value("x", [f"n{axis}" for axis in range(16)])], [value("v40", None, T.INT64)], stored)
        start = time.time()
        package, warnings = compiled(model, folder)
        taken = time.time() - start  # seconds; a chain that doubles would never end
        expect(taken < 60, f"{name}: {taken:.1f} s")
        warned(warnings)
        text = tool("ds-opt", model, "--stop-after=import").out
        longest = max(map(len, re.findall('"([^"]*)"', text)))
        expect(longest <= 1024, f"{name}: expected elements of at most 1024 characters, found {longest}")
        text = tool("ds-opt", model, "--stop-after=graph").out
        longest = max(map(len, re.findall('"([^"]*)"', text)))
        expect(longest <= 1024, f"{name}: expected elements of at most 1024 characters, found {longest}")
        agree(package, model, {"x": normal(*draws.integers(1, 3, 16))}, folder, 0, name)


@case(seconds=3)
def constants_of_run_time_shapes_beside_others(folder):
    """One number in the shape of an input, joined with stored constants: nothing of it can be folded or evaluated."""
    full = [node("Shape", "x", "s"), helper.make_node("ConstantOfShape", ["s"], ["c"], value=helper.make_tensor(
        "", T.INT64, [1], [3]))]
    constants = {"row": numbers(1, 2).reshape(1, 2), "minus": numbers(-1), "zero": numbers(0), "two": numbers(2)}
    tails = {
        "Concat": [node("Concat", "c row", "j", axis=0), node("ReduceMax", "j", "m", axes=[0], keepdims=0),
                   node("Sub", "m row", "y")],
        "Where": [node("Equal", "c row", "e"), node("Where", "e c row", "y")],
        "Expand": [node("Add", "c row", "t"), node("Expand", "row s", "u"), node("Mul", "t u", "y")],
        "Gather": [node("Concat", "row c", "j", axis=0), node("Gather", "j zero", "g"), node("Add", "g c", "y")],
        "MatMul": [node("Transpose", "row", "t"), node("MatMul", "c t", "y")],
        "Shape": [node("Reshape", "c minus", "f"), node("Concat", "f two", "j", axis=0), node("Size", "j", "k"),
                  node("ConstantOfShape", "k1", "o"), node("Add", "k o", "y")],
    }
    for name, tail in tails.items():
        nodes = [*full, *tail]
        if name == "Shape":
            nodes.insert(-2, node("Reshape", "k minus", "k1"))
        used = {text for part in nodes for text in part.input}
        kind = T.FLOAT if name == "Shape" else T.INT64
        if name == "Shape":
            nodes[-1] = node("Identity", "o", "y")
        model = write(folder / f"{name}.onnx", nodes, [value("x", ["n", 2])], [value("y", None, kind)],
                      {key: array for key, array in constants.items() if key in used})
        for options in [], ["--dim", "n=4"]:
            package, warnings = compiled(model, folder, *options)
            warned(warnings)
            for rows in [4] if options else [0, 1, 4]:
                agree(package, model, {"x": normal(rows, 2)}, folder, 0, rows)
