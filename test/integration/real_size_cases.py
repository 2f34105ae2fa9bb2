"""Sizes in files from the wild, against ONNX Runtime: those that constants decide through any operator, lists of sizes
and tuples of indices of dynamic length, padding that keeps the size under a stride, and what the quantizer writes."""
import itertools

import numpy as np
import onnx
from onnx import TensorProto as T, helper

from kit import case, expect, onnx_runtime, run_package, tool
from programs import SEED
from real_file_cases import FLOAT, agree, compiled, node, normal, refused, value, warned, write


def numbers(*values, kind=np.int64):
    return np.array(values, kind)


# ---- sizes that constants decide ----

@case
def the_position_embedding_of_a_trained_vit(folder):
    """Interpolation as PyTorch exports it: the grid is the root of the number of positions, in floats."""
    text = [
        node("Shape", "table", "ts"), node("Gather", "ts i", "all"), node("Sub", "all i", "patches"),
        node("Cast", "patches", "real", to=T.FLOAT), node("Pow", "real half", "root"), node("Cast", "root", "grid",
                                                                                            to=T.INT64),
        node("Sqrt", "real", "edge"), node("Div", "target edge", "scale"),
        node("Unsqueeze", "grid zero", "g1"), node("Concat", "first g1 g1 last", "shape", axis=0),
        node("Slice", "table start end one", "positions"), node("Reshape", "positions shape", "square"),
        node("Transpose", "square", "planes", perm=[0, 3, 1, 2]),
        node("Unsqueeze", "scale zero", "s1"), node("Concat", "units s1 s1", "scales", axis=0),
        helper.make_node("Resize", ["planes", "", "scales"], ["larger"], mode="cubic", cubic_coeff_a=-0.75,
                         coordinate_transformation_mode="half_pixel"),
        node("Transpose", "larger", "back", perm=[0, 2, 3, 1]), node("Reshape", "back rows", "flat"), node("Add",
                                                                                                           "x flat",
                                                                                                           "y")]
    constants = {"table": normal(1, 26, 8), "zero": numbers(0), "one": numbers(1), "half": np.array(0.5, FLOAT),
                 "target": np.array(7.1, FLOAT), "first": numbers(1), "last": numbers(8), "start": numbers(1),
                 "end": numbers(2**60), "units": np.ones(2, FLOAT), "rows": numbers(1, -1, 8), "i": np.array(1,
                                                                                                             np.int64)}
    model = write(folder / "vit.onnx", text, [value("x", ["batch", 49, 8])], [value("y", ["batch", 49, 8])], constants)
    package, warnings = compiled(model, folder)
    warned(warnings)
    for batch in 1, 3:
        # Bicubic weights in f32 there, in f64 here.
        agree(package, model, {"x": normal(batch, 49, 8, key=1)}, folder, 1e-5, batch)


# Each gives a list of two or three sizes, whose elements are 6 or its divisors, from constants alone.
SUBEXPRESSIONS = {
    "Where": ([node("Greater", "c d", "m"), node("Where", "m c d", "s")], {"c": numbers(2, 1), "d": numbers(1, 3)}),
    "Pow": ([node("Pow", "f g", "p"), node("Cast", "p", "s", to=T.INT64)],
            {"f": np.array([4, 9], FLOAT), "g": np.array([0.5, 0.5], FLOAT)}),
    "Exp": ([node("Exp", "f", "p"), node("Round", "p", "r"), node("Cast", "r", "s", to=T.INT64)],
            {"f": np.log(np.array([2, 3], FLOAT))}),
    "ReduceMax": ([node("ReduceMax", "f", "p", axes=[0], keepdims=0), node("Cast", "p", "s", to=T.INT64)],
                  {"f": np.array([[1.5, 3.7], [2.9, -8]], FLOAT)}),
    "ReduceProd": ([node("Cast", "c", "f", to=T.FLOAT), node("ReduceProd", "f", "p", axes=[1], keepdims=0),
                    node("Cast", "p", "s", to=T.INT64)], {"c": numbers(2, 1, 1, 3).reshape(2, 2)}),
    "ReduceMean": ([node("ReduceMean", "c", "p", axes=[1], keepdims=0), node("Cast", "p", "s", to=T.INT64)],
                   {"c": np.array([[1.5, 2.5], [2, 4]], FLOAT)}),
    "ArgMax": ([node("ArgMax", "f", "a", axis=1, keepdims=0), node("Add", "a one", "s")],
               {"f": np.array([[1, 5, 2], [0, 1, 9]], FLOAT), "one": numbers(1)}),
    "CumSum": ([node("CumSum", "c zero", "s")], {"c": numbers(2, 1), "zero": np.array(0, np.int64)}),
    "NonZero": ([node("NonZero", "c", "z"), node("Squeeze", "z zero", "p"), node("Add", "p one", "s")],
                {"c": numbers(0, 4, 7), "zero": numbers(0), "one": numbers(1)}),
    "Pad": ([node("Pad", "c p one", "a"), node("Mul", "a b", "s")],
            {"c": numbers(3), "p": numbers(1, 0), "one": np.array(2, np.int64), "b": numbers(1, 1)}),
    "GatherND": ([node("GatherND", "f i", "g"), node("Floor", "g", "h"), node("Cast", "h", "s", to=T.INT64)],
                 {"f": np.array([[2.5, 9], [3.9, 9]], FLOAT), "i": numbers(0, 0, 1, 0).reshape(2, 2)}),
    "GatherElements": ([node("GatherElements", "f i", "g", axis=0), node("Cast", "g", "s", to=T.INT64)],
                       {"f": np.array([9.5, 2.5, 3.5], FLOAT), "i": numbers(-2, 2)}),
    "ScatterND": ([node("ScatterND", "f i u", "g"), node("Cast", "g", "s", to=T.INT64)],
                  {"f": np.array([9.5, 3.5], FLOAT), "i": numbers(0).reshape(1, 1), "u": np.array([2.5], FLOAT)}),
    "MatMul": ([node("MatMul", "f g", "p"), node("Cast", "p", "s", to=T.INT64)],
               {"f": np.array([[1, 1], [1, 2]], FLOAT), "g": np.array([1, 1], FLOAT)}),
    "Mod": ([node("Mod", "c d", "s")], {"c": numbers(-4, 9), "d": numbers(3, 6)}),
    "BitShift": ([node("BitShift", "c d", "b", direction="RIGHT"), node("Cast", "b", "s", to=T.INT64)],
                 {"c": numbers(8, 6, kind=np.uint8), "d": numbers(2, 1, kind=np.uint8)}),
    "Range": ([node("Range", "a b a", "r"), node("Sqrt", "r", "q"), node("ReduceSum", "q", "t", keepdims=1),
               node("Ceil", "t", "u"), node("Cast", "u", "v", to=T.INT64), node("Concat", "two v", "s", axis=0)],
              {"a": np.array(1, FLOAT), "b": np.array(3, FLOAT), "two": numbers(2)}),
}
# What reads the list: each takes sizes whose product is 6 and gives one shape whatever the list holds.
READERS = {
    "Reshape": [node("Reshape", "x s", "y")],
    "Expand": [node("Expand", "unit s", "full"), node("Reshape", "x s", "shaped"), node("Add", "full shaped", "y")],
    "ConstantOfShape": [node("ConstantOfShape", "s", "full"), node("Reshape", "x s", "shaped"), node("Add",
                                                                                                     "full shaped",
                                                                                                     "y")],
    "Tile": [node("Tile", "unit s", "full"), node("Reshape", "x s", "shaped"), node("Add", "full shaped", "y")],
}


@case(seconds=6)
def sizes_from_constants_through_any_operator(folder):
    for (name, (nodes, constants)), (reader, rest) in zip(SUBEXPRESSIONS.items(), itertools.cycle(READERS.items())):
        model = write(folder / f"{name}_{reader}.onnx", [*nodes, *rest], [value("x", [6])], [value("y", None)],
                      {**constants, "unit": np.ones((1, 1), FLOAT)})
        package, warnings = compiled(model, folder)
        warned(warnings)
        agree(package, model, {"x": normal(6)}, folder, 0)
        text = tool("ds-opt", model, "--stop-after=import").out
        expect("?" not in text, f"{name}: expected a static result, found {text}")


@case(seconds=3)
def counts_from_constants_steer_other_operators(folder):
    """Where a symbol, too, takes part: a list of which one element comes from a root and one from a dimension."""
    root = [node("Sqrt", "nine", "q"), node("Cast", "q", "three", to=T.INT64)]
    constants = {"nine": np.array([9], FLOAT), "zero": numbers(0), "one": numbers(1), "minus": numbers(-1),
                 "values": np.array([0, 1], FLOAT)}
    shape = [node("Shape", "x", "xs"), node("Slice", "xs zero one", "n")]
    readers = {
        "Reshape": [*shape, node("Concat", "n three minus", "s", axis=0), node("Reshape", "x s", "y")],
        "TopK": [node("TopK", "x three", "y z")],
        "Slice": [node("Slice", "x one three one", "y")],
        "OneHot": [node("ArgMax", "x", "a", axis=1, keepdims=0), node("OneHot", "a three values", "y")],
        "Resize": [node("Concat", "one three", "i", axis=0), node("Cast", "i", "scales", to=T.FLOAT),
                   helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest")],
        "Pad": [node("Concat", "zero three zero one", "p", axis=0), node("Pad", "x p", "y")],
        "Split": [node("Concat", "one three", "i", axis=0), node("Add", "i one", "p"), node("Split", "x p", "y z",
                                                                                            axis=1)],
        "Range": [node("Squeeze", "three", "e"), node("Squeeze", "zero", "b"), node("Squeeze", "one", "d"),
                  node("Range", "b e d", "y")],
        "Unsqueeze": [node("Sub", "three one", "a"), node("Unsqueeze", "x a", "y")],
        "ReduceSum": [node("Sub", "three n2", "a"), node("ReduceSum", "x a", "y")],
    }
    for name, nodes in readers.items():
        outputs = [value("y", None)] if name != "TopK" and name != "Split" else [value("y", None), value("z", None)]
        kinds = {"TopK": [T.FLOAT, T.INT64], "Range": [T.INT64]}
        for output, kind in zip(outputs, kinds.get(name, [])):
            output.type.tensor_type.elem_type = kind
        model = write(folder / f"{name}.onnx", [*root, *nodes], [value("x", ["n", 6])], outputs,
                      {**constants, "n2": numbers(2)})
        package, warnings = compiled(model, folder)
        warned(warnings)
        for rows in 1, 4:
            # Eighths have exact sums in any order; a sum that cancels would have no digits to compare.
            agree(package, model, {"x": np.round(8 * normal(rows, 6)) / 8}, folder, 0, rows)


@case
def what_is_no_constant_is_not_folded(folder):
    """Near misses: one element of the chain is data, so the size stays unknown and the message says so."""
    model = write(folder / "data.onnx", [node("Sqrt", "x", "q"), node("Cast", "q", "s", to=T.INT64), node("Reshape",
                                                                                                          "z s", "y")],
                  [value("x", [2]), value("z", [6])], [value("y", None)])
    refused(model, "Reshape: input 1 ('shape', i64[2]) is computed from data while the model runs")
    # Integers wrap as their type says.
    model = write(folder / "wrap.onnx", [node("Mul", "c c", "p"), node("Cast", "p", "s", to=T.INT64), node("Reshape",
                                                                                                           "x s", "y")],
                  [value("x", [6])], [value("y", None)], {"c": numbers(16 * 5 + 1, 11, kind=np.uint8)})
    # 81 * 81 and 11 * 11 are 161 and 121 modulo 256.
    refused(model, f"expected equal sizes, found 6 and {161 * 121}")


# ---- lists and tuples of dynamic length ----

@case(seconds=3)
def lengths_of_shape_inputs_that_the_model_leaves_no_choice(folder):
    shape = value("s", ["k"], T.INT64)
    readers = {
        "Reshape": ([node("Reshape", "x s", "y")], [3, 2, 2], [2, -1, 3]),
        "Expand": ([node("Expand", "x s", "y")], [2, 1, 12], [1, 3, 1]),
        "Tile": ([node("Tile", "x s", "y")], [2], [0]),
        "ConstantOfShape": ([node("ConstantOfShape", "s", "o"), node("Add", "o one", "y")], [2, 1, 4], [0, 3, 1]),
        "Pad": ([node("Pad", "x s", "y")], [1, 2], [-3, 0]),
        "Slice": ([node("Slice", "x zero s", "y")], [5], [-1]),
        "Cast": ([node("Cast", "s", "t", to=T.INT64), node("Reshape", "x t", "y")], [6, 2, 1], [1, 1, -1]),
    }
    for name, (nodes, first, second) in readers.items():
        rank = 1 if name in ("Tile", "Pad", "Slice") else 3
        stated = [value("o", ["a", "b", "c"])] if name == "ConstantOfShape" else []
        model = write(folder / f"{name}.onnx", nodes, [value("x", [12]), shape],
                      [value("y", [f"d{i}" for i in range(rank)])], {"one": np.array(1, FLOAT), "zero": numbers(0)},
                      stated)
        package, warnings = compiled(model, folder)
        warned(warnings)
        for sizes in first, second:
            agree(package, model, {"x": normal(12), "s": numbers(*sizes)}, folder, 0, sizes)
    # The name of that axis says nothing about axes of data, though the model states it.
    for name, inputs, feeds in [
            ("square", [value("x", ["k", "k"]), shape], {"x": normal(4, 4), "s": numbers(2, 8)}),
            ("sum", [value("x", ["k + 1", "k"]), shape], {"x": normal(5, 4), "s": numbers(2, 10)}),
            ("summand", [value("x", ["k + 1"]), shape], {"x": normal(12), "s": numbers(4, 3)}),
            ("other", [value("x", [12]), shape, value("w", ["k"])],
             {"x": normal(12), "s": numbers(4, 3), "w": normal(5)})]:
        model = write(folder / f"{name}.onnx", [node("Reshape", "x s", "y"), node("Neg", "w" if name == "other" else "x",
                                                                                  "v")],
                      inputs, [value("y", ["a", "b"]), value("v", None)])
        agree(compiled(model, folder)[0], model, feeds, folder, 0)
    # Of another length than the ranks ask for, a call says so.
    np.savez(folder / "long.npz", x=normal(12), s=numbers(2, 2, 3, 1))
    tool("ds-run", folder / "Reshape.dsp", "--inputs", folder / "long.npz", code=1, says="'s'")


@case
def lengths_that_must_be_said(folder):
    """Nothing states the rank of the result: the message says how to pin the length, and pinned it is right."""
    model = write(folder / "open.onnx", [node("Reshape", "x s", "y")], [value("x", [12]), value("s", ["k"], T.INT64)],
                  [value("y", None)])
    refused(model,
            "Reshape: input 1 ('shape', i64[k]): expected a known number of elements, found k; pin it with --dim")
    for options in ("--dim", "k=2"), ("--shape", "s=2"):
        package, _ = compiled(model, folder, *options)
        for sizes in (3, 4), (-1, 1):
            agree(package, model, {"x": normal(12), "s": numbers(*sizes)}, folder, 0, sizes)
    # A shape for Expand may be shorter than the operand's: the rank of the result does not say how long it is.
    model = write(folder / "short.onnx", [node("Expand", "x s", "y")], [value("x", [3, 1]), value("s", ["k"], T.INT64)],
                  [value("y", ["a", "b"])])
    refused(model, "Expand: input 1 ('shape', i64[k]): expected a known number of elements")
    package, _ = compiled(model, folder, "--dim", "k=1")
    agree(package, model, {"x": normal(3, 1), "s": numbers(4)}, folder, 0)


@case
def index_tuples_of_dynamic_length(folder):
    random = np.random.default_rng([SEED, 5])
    data, cube = normal(4, 3, 5), ["a", "b", "c"]
    for stated, batch, length in ([["n", "c"]], 0, 2), ([["n", "b", "c"]], 0, 1), ([["n"]], 0, 3), ([["a", "n", "c"]],
                                                                                                    1, 1):
        shape = stated[0]
        indices = ["a", "n", "k"] if batch else ["n", "k"]
        model = write(folder / "gather.onnx", [node("GatherND", "x i", "y", batch_dims=batch)],
                      [value("x", cube), value("i", indices, T.INT64)], [value("y", shape)])
        package, warnings = compiled(model, folder)
        warned(warnings)
        for count in 1, 6:
            lead = (4, count) if batch else (count,)
            drawn = np.stack([random.integers(-size, size, lead) for size in data.shape[batch:batch + length]], -1)
            model_key = write(folder / f"gather{batch}{length}{count}.onnx", [node("GatherND", "x i", "y",
                                                                                   batch_dims=batch)],
                              [value("x", cube), value("i", indices, T.INT64)], [value("y", shape)])
            agree(package, model_key, {"x": data, "i": drawn}, folder, 0, (shape, count))
    for wrong in np.zeros((4, 6, 2), np.int64), np.zeros((4, 0, 2), np.int64), np.zeros((4, 6, 0), np.int64):
        np.savez(folder / "wrong.npz", x=data, i=wrong)
        tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says=["k", "does not hold, found"])
    # The updates say how long the tuples are.
    model = write(folder / "scatter.onnx", [node("ScatterND", "x i u", "y", reduction="add")],
                  [value("x", cube), value("i", ["n", "k"], T.INT64), value("u", ["n", "c"])], [value("y", cube)],
                  opsets=[("", 18)])
    package, warnings = compiled(model, folder)
    warned(warnings)
    for count in 1, 5:
        drawn = np.stack([random.integers(-size, size, count) for size in data.shape[:2]], -1)
        agree(package, model, {"x": data, "i": drawn, "u": normal(count, 5)}, folder, 1e-6, count)
    model = write(folder / "open.onnx", [node("GatherND", "x i", "y")], [value("x", cube), value("i", ["n", "k"],
                                                                                                 T.INT64)],
                  [value("y", None)])
    refused(model,
            "GatherND: input 1 ('indices', i64[n, k]): the rank of the result depends on the size of the last axis, k; "
            "pin it with --dim")
    package, _ = compiled(model, folder, "--dim", "k=3")
    agree(package, model, {"x": data, "i": numbers(1, 2, 3, 0, 0, -1).reshape(2, 3)}, folder, 0)
    model = write(folder / "none.onnx", [node("GatherND", "x i", "y")], [value("x", cube), value("i", ["n", "k"],
                                                                                                 T.INT64)],
                  [value("y", ["p", "q", "r", "s"])])
    refused(model, "expected tuples of 1 to 3 indices, found 0")


@case(seconds=6)
def axes_that_are_listed_twice(folder):
    """Reductions take them once; without the reduced axes the rank of the result would depend on the call."""
    axes, ends = value("a", ["two"], T.INT64), [value("y", None)]
    data = normal(3, 4, 5)
    for operator in "ReduceSum", "ReduceMean", "ReduceL1", "ReduceLogSumExp", "ReduceSumSquare":
        model = write(folder / f"{operator}.onnx", [node(operator, "x a", "y")], [value("x", ["n", 4, 5]), axes], ends,
                      opsets=[("", 18)])
        package, _ = compiled(model, folder, "--dim", "two=2")
        for listed in (1, 1), (0, -3), (0, 2), (-1, 2), (2, -2):
            # Sums of at most 20 squares in another order.
            agree(package, model, {"x": data, "a": numbers(*listed)}, folder, 1e-5, listed)
        np.savez(folder / "wrong.npz", x=data, a=numbers(0, 3))
        tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="does not hold")
        for keep in 0, 1:
            model = write(folder / f"{operator}{keep}.onnx", [node(operator, "x a", "y", keepdims=keep)],
                          [value("x", ["n", 4, 5])], ends, {"a": numbers(1, -3, -2, 1)}, opsets=[("", 18)])
            agree(compiled(model, folder)[0], model, {"x": data}, folder, 1e-5, keep)
    model = write(folder / "dropped.onnx", [node("ReduceSum", "x a", "y", keepdims=0)], [value("x", ["n", 4, 5]), axes],
                  ends)
    package, _ = compiled(model, folder, "--dim", "two=2")
    agree(package, model, {"x": data, "a": numbers(2, 0)}, folder, 1e-5)
    np.savez(folder / "wrong.npz", x=data, a=numbers(1, -2))
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="does not hold")
    refused(write(folder / "outside.onnx", [node("ReduceSum", "x a", "y")], [value("x", ["n", 4, 5])], ends,
                  {"a": numbers(-4, -4)}), "expected an axis from -3 to 2, found -4")
