"""Lists whose length only a run knows, against ONNX Runtime: axes of reductions that keep the rank, bounds of slices, and
what a pinned name is meant for that a list of sizes bears, too."""
import math

import numpy as np
from onnx import TensorProto as T, helper

from kit import case, expect, run_package, tool
from programs import SEED
from real_file_cases import FLOAT, agree, compiled, node, normal, refused, value, warned, write


def numbers(*values):
    return np.array(values, np.int64)


def random():
    return np.random.default_rng(SEED)


OPSET = (("", 18),)
KINDS = ["Sum", "Mean", "Prod", "Max", "Min", "L1", "L2", "LogSum", "SumSquare", "LogSumExp"]


@case(seconds=12)
def reductions_by_a_list_of_any_length(folder):
    choice = random()
    for kind in KINDS:
        for noop in 0, 1:
            model = write(folder / f"{kind}{noop}.onnx",
                          [node(f"Reduce{kind}", "x axes", "y", keepdims=1, noop_with_empty_axes=noop)],
                          [value("x", ["n", 3, "m"]), value("axes", ["k"], T.INT64)], [value("y", None)], opsets=OPSET)
            package, warnings = compiled(model, folder)
            warned(warnings)
            lists = [(), (1,), (-1, 0), (0, 1, 2)] + [tuple(choice.permutation(3)[:2] - 3)]
            for axes in lists:
                if noop and not axes and kind not in ("Sum", "Mean", "Max", "Min", "Prod"):
                    continue  # ONNX Runtime copies the operand, the standard applies the kind to each element
                x = np.abs(normal(2, 3, 4)) + FLOAT(0.1)
                agree(package, model, {"x": x, "axes": numbers(*axes)}, folder, 1e-5, axes)
    # What is no axis ends the call.
    np.savez(folder / "in.npz", x=normal(2, 3, 4), axes=numbers(0, 3))
    tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1)


@case
def a_list_that_is_repeated_reduces_once(folder):
    model = write(folder / "twice.onnx", [node("ReduceSum", "x axes", "y", keepdims=1)],
                  [value("x", [4, 5]), value("axes", ["k"], T.INT64)], [value("y", None)], opsets=OPSET)
    package, _ = compiled(model, folder)
    x = normal(4, 5)
    found = run_package(package, {"x": x, "axes": numbers(1, -1)}, folder)["y"]
    expect(np.allclose(found, x.sum(1, keepdims=True), atol=1e-5), found)


@case
def a_list_of_axes_that_a_stated_rank_counts(folder):
    model = write(folder / "rank.onnx", [node("ReduceSum", "x axes", "y", keepdims=0)],
                  [value("x", ["n", 3, "m"]), value("axes", ["k"], T.INT64)], [value("y", ["a", "b"])], opsets=OPSET)
    package, _ = compiled(model, folder)
    for axis in 0, 1, 2, -1:
        agree(package, model, {"x": normal(2, 3, 4), "axes": numbers(axis)}, folder, 1e-5, axis)


def bound(choice, size):
    """Any bound: inside, outside, from the end, and what exporters write for the end."""
    return int(choice.choice([choice.integers(-2 * size - 1, 2 * size + 2), 2**31, 2**63 - 1, -2**63 + 1]))


@case(seconds=4)
def slices_by_lists_of_any_length(folder):
    choice = random()
    lists = ["starts", "ends", "axes", "steps"]
    for count in 2, 3, 4:
        model = write(folder / f"slice{count}.onnx", [helper.make_node("Slice", ["x", *lists[:count]], ["y"])],
                      [value("x", ["n", 4, 5]), *(value(name, [f"k{i}"], T.INT64) for i, name in enumerate(lists[:count]))],
                      [value("y", None)])
        package, warnings = compiled(model, folder)
        warned(warnings)
        for _ in range(12):
            shape = (int(choice.integers(1, 5)), 4, 5)
            length = int(choice.integers(0, 4))
            axes = choice.permutation(3)[:length] if count > 2 else np.arange(length)
            feeds = {"x": normal(*shape), "starts": [bound(choice, shape[a]) for a in axes],
                     "ends": [bound(choice, shape[a]) for a in axes]}
            if count > 2:
                feeds["axes"] = [int(a) - 3 * int(choice.integers(2)) for a in axes]
            if count > 3:
                feeds["steps"] = [int(choice.choice([1, 2, 3, -1, -2, 100])) for _ in axes]
                # A step backwards from the end to the end is empty; ONNX Runtime takes the largest end for the front.
                feeds["ends"] = [-2**63 + 1 if step < 0 and end >= 2**31 else end
                                 for step, end in zip(feeds["steps"], feeds["ends"])]
            feeds = {name: array if name == "x" else np.array(array, np.int64).reshape(length)
                     for name, array in feeds.items()}
            agree(package, model, feeds, folder, 0, {name: list(a) for name, a in feeds.items() if name != "x"})
        # Lists of two lengths are no lists of one.
        np.savez(folder / "in.npz", x=normal(2, 4, 5), starts=numbers(0, 0), ends=numbers(1), axes=numbers(0, 1),
                 steps=numbers(1, 1))
        tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1)


@case
def a_pin_is_for_the_data_of_its_name(folder):
    """An exporter names the length of a list of sizes as it names a dimension of the data."""
    reshape = [node("Reshape", "x shape", "y")]
    model = write(folder / "both.onnx", reshape, [value("x", ["n", 4]), value("shape", ["n"], T.INT64)],
                  [value("y", ["a", "b"])])
    for options in [], ["--dim", "n=6"], ["--shape", "x=6,4"]:
        package, warnings = compiled(model, folder, *options)
        warned(warnings)
        agree(package, model, {"x": normal(6, 4), "shape": numbers(3, 8)}, folder, 0, options)
    # A list whose name is its own is as long as its readers ask for; a pin may say so, too, but nothing else.
    alone = write(folder / "alone.onnx", reshape, [value("x", ["n", 4]), value("shape", ["k"], T.INT64)],
                  [value("y", ["a", "b"])])
    package, warnings = compiled(alone, folder, "--dim", "k=2")
    agree(package, alone, {"x": normal(6, 4), "shape": numbers(3, 8)}, folder, 0)
    refused(alone, "--dim: input 'shape': expected 'k' to be 2, as many elements as its readers ask for, found 6",
            options=["--dim", "k=6"])
    # Two lists of one name and of different lengths, one of which the pin says.
    two = write(folder / "two.onnx", [*reshape, node("Tile", "z repeats", "w")],
                [value("x", [24]), value("shape", ["k"], T.INT64), value("z", [2]), value("repeats", ["k"], T.INT64)],
                [value("y", ["a", "b"]), value("w", ["c"])])
    for options in [], ["--dim", "k=2"], ["--dim", "k=1"]:
        package, _ = compiled(two, folder, *options)
        agree(package, two, {"x": normal(24), "shape": numbers(3, 8), "z": normal(2), "repeats": numbers(2)}, folder, 0)
    refused(two, "expected 'k' to be 2", options=["--dim", "k=3"])


@case
def a_stated_length_is_the_one_that_readers_ask_for(folder):
    """As a pin of its name is."""
    for name in "k", None:
        model = write(folder / f"{name}.onnx", [node("Reshape", "x shape", "y")],
                      [value("x", ["n", 4]), value("shape", [name], T.INT64)], [value("y", ["a", "b"])])
        package, warnings = compiled(model, folder, "--shape", "shape=2")
        warned(warnings)
        agree(package, model, {"x": normal(6, 4), "shape": numbers(3, 8)}, folder, 0)
        for length in 6, 1, 0:
            refused(model, f"--shape: input 'shape': expected 2 elements, as many as its readers ask for, found {length}",
                    options=["--shape", f"shape={length}"])
        refused(model, "--dim: input 'shape': expected 'k' to be 2, as many elements as its readers ask for, found 6",
                options=["--shape", "shape=k", "--dim", "k=6"])


@case(seconds=6)
def integers_are_averaged_once(folder):
    """Over axes that only a run knows: a mean and a root of whole numbers are not rounded before the last step."""
    choice = random()
    exact = {"Mean": lambda x, axes: np.trunc(x.sum(axes, keepdims=True) / math.prod(x.shape[a] for a in axes)),
             "L2": lambda x, axes: np.vectorize(math.isqrt)((x * x).sum(axes, keepdims=True))}
    draws = [(np.array([[[5, 0, 2], [3, 1, 1], [3, 2, 1]]]), (1, 2)), (np.array([[[7, 7], [7, 7], [1, 0]]]), (0, 1, 2))]
    for axes in (0, 1), (2, 0), (-1, -2), (0, 1, 2), (1,), (2, 1, 0):
        draws += [(choice.integers(-9, 10, choice.integers(1, 8, 3)), axes) for _ in range(3)]
    for kind, reduced in exact.items():
        for element, code, counts in (np.int32, T.INT32, ("k", 2, 3)), (np.int64, T.INT64, ("k",)):
            for count in counts:
                model = write(folder / f"{kind}{count}.onnx", [node(f"Reduce{kind}", "x axes", "y", keepdims=1)],
                              [value("x", ["a", "b", "c"], code), value("axes", [count], T.INT64)], [value("y", None, code)],
                              opsets=OPSET)
                package, _ = compiled(model, folder)
                for x, axes in draws:
                    if count != "k" and len(axes) != count:
                        continue
                    found = run_package(package, {"x": x.astype(element), "axes": numbers(*axes)}, folder)["y"]
                    expected = reduced(x, axes).astype(element)
                    expect(found.dtype == element and np.array_equal(found, expected),
                           f"seed {SEED}: {kind} of {x.tolist()} over {axes} of {count}: expected {expected}, found {found}")


@case(seconds=5)
def a_scalar_has_no_axes(folder):
    expected = {"Sum": -3, "Mean": -3, "Prod": -3, "Max": -3, "Min": -3, "L1": 3, "L2": 3, "SumSquare": 9, "LogSumExp": -3}
    for kind, number in expected.items():
        for keep in 0, 1:
            model = write(folder / f"{kind}{keep}.onnx", [node(f"Reduce{kind}", "x axes", "y", keepdims=keep)],
                          [value("x", []), value("axes", ["k"], T.INT64)], [value("y", None)], opsets=OPSET)
            package, warnings = compiled(model, folder)
            warned(warnings)
            feeds = {"x": np.array(-3, FLOAT), "axes": numbers()}
            found = run_package(package, feeds, folder)["y"]
            expect(found.shape == () and found == number, f"{kind}: found {found}")
            agree(package, model, feeds, folder, 1e-6)
    np.savez(folder / "in.npz", x=FLOAT(3), axes=numbers(0))
    tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1,
         says="expected no axes of a scalar")


@case
def wrong_lists_are_named(folder):
    """What is wrong with the lists of a call, and of a model."""
    def wrong(model, says, **feeds):
        np.savez(folder / "in.npz", **feeds)
        tool("ds-run", folder / f"{model}.dsp", "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1, says=says)
    x, lists = normal(2, 4, 5), ["starts", "ends", "axes", "steps"]
    for name, length in ("open", ["k"]), ("known", [2]):
        model = write(folder / f"{name}.onnx", [helper.make_node("Slice", ["x", *lists], ["y"])],
                      [value("x", ["n", 4, 5]), *(value(each, length, T.INT64) for each in lists)], [value("y", None)])
        compiled(model, folder)
        legal = {"starts": numbers(0, 0), "ends": numbers(1, 1), "axes": numbers(0, 1), "steps": numbers(1, 1)}
        once = ", each at most once" if name == "open" else ""
        wrong(name, "expected steps other than 0", x=x, **legal | {"steps": numbers(1, 0)})
        wrong(name, f"expected axes from -3 to 2{once}", x=x, **legal | {"axes": numbers(0, 3)})
        wrong(name, f"expected axes from -3 to 2{once}", x=x, **legal | {"axes": numbers(-4, 1)})
        wrong(name, once or "expected every axis at most once", x=x, **legal | {"axes": numbers(1, -2)})
    model = write(folder / "first.onnx", [helper.make_node("Slice", ["x", "starts", "ends"], ["y"])],
                  [value("x", ["n", 4, 5]), *(value(each, ["k"], T.INT64) for each in lists[:2])], [value("y", None)])
    compiled(model, folder)
    wrong("first", "expected a list of at most 3 elements", x=x, starts=numbers(0, 0, 0, 0), ends=numbers(1, 1, 1, 1))
    model = write(folder / "sum.onnx", [node("ReduceSum", "x axes", "y", keepdims=1)],
                  [value("x", ["n", 4, 5]), value("axes", ["k"], T.INT64)], [value("y", None)], opsets=OPSET)
    compiled(model, folder)
    wrong("sum", "expected axes from -3 to 2: ", x=x, axes=numbers(0, 3))
    parts = [value("y", None), value("z", None)]
    model = write(folder / "negative.onnx", [node("Split", "x parts", "y z")], [value("x", [5])], parts, {"parts": numbers(6, -1)})
    refused(model, "expected a split into parts of at least 0 elements, found -1")
    model = write(folder / "halves.onnx", [node("Split", "x", "y z")], [value("x", [5])], parts, opsets=(("", 13),))
    refused(model, "expected an axis that is divisible into 2 equal parts, found 5 elements")
