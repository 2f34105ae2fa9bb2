"""Products of rows in 8 bits (--activations=int8) against NumPy, which quantizes rows and weights on its own."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import MINILM, case, compile_model, distance, expect, processors, run_package, tool
from model_cases import COSINES, SENTENCES, tokens
from programs import SEED, some
from quantized_weight_cases import Products, quantized

SHAPES = ((33, 49), (64, 100), (65, 16), (98, 47), (99, 17), (771, 50), (40, 1030))
ROWS = (0, 1, 2, 3, 7, 8, 9, 16, 17, 40, 131)
OPTIONS = ("--quantize=int8", "--activations=int8")


def rows_of(random, count, depth):
    """Rows of all sizes: of zeros, of one number, tiny, huge, and with halves of steps, whose rounding is told apart."""
    x = random.standard_normal((count, depth)).astype(np.float32)
    for row in range(count):
        kind = random.integers(0, 9)
        if kind == 0:
            x[row] = 0
        elif kind == 1:
            x[row, 1:] = 0
        elif kind in (2, 3):
            x[row] *= np.float32(1e-33 if kind == 2 else 1e30)
        elif kind in (4, 5):
            x[row] = random.integers(-254, 255, depth) / np.float32(2)
            x[row, random.integers(depth)] = 127 if kind == 4 else -127
    return x


def expected(x, w, bias):
    """As documented, in f32: what is summed is whole, all else is rounded once a step."""
    stands, scales, codes = quantized(w, 8, 0, "symmetric")
    largest = np.maximum(np.abs(x).max(1, keepdims=True, initial=0), np.float32(1e-30))
    steps = np.rint(x * (np.float32(127) / largest)).astype(np.int64)
    sums = (steps @ codes.astype(np.int64)).astype(np.float32)
    with np.errstate(over="ignore"):
        return (sums * scales[:1].astype(np.float32)) * (largest / np.float32(127)) + bias, stands


@case(seconds=12)
def rows_in_bytes(folder):
    m = Products("rows in bytes", SHAPES)
    feeds = {}
    for rows in ROWS:
        feeds[rows] = {f"x{i}": rows_of(m.random, rows, len(w)) for i, w in enumerate(m.weights)}
    for options in ([f"--mcpu={cpu}"] for cpu in some(processors(), 2)), [["--reference"]]:
        for option in options:
            package = m.compiled(folder, *OPTIONS, *option)
            for rows, feed in feeds.items():
                found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
                for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                    x, y = feed[f"x{i}"], found[f"y{i}"]
                    want, stands = expected(x, w, bias)
                    what = f"{option} {rows} rows, y{i} of {w.shape} (DS_SEED={SEED})"
                    expect(y.shape == want.shape and np.array_equal(y, want), f"{what}: {np.argwhere(y != want)[:3].tolist()} differ")
                    # The stated bound: half a step of the row for every weight. Numbers below 1e-30 have no step of their own.
                    wide = x.astype(np.float64)
                    step = np.maximum(np.abs(wide).max(1, keepdims=True, initial=0), 1e-30) / 127
                    rounding = (len(w) + 9) * 2.0**-24 * (np.abs(wide) @ np.abs(stands) + np.abs(bias)) + 1e-38
                    bound = step * (0.5 + 256 * 2.0**-24) * np.abs(stands).sum(0) + rounding
                    far = np.abs(y - (wide @ stands + bias))
                    expect(((far <= bound) | np.isinf(want)).all(), f"{what}: beyond half a step, by {(far - bound).max(initial=0)}")


@case(seconds=6)
def rows_that_are_not_finite(folder):
    """Every number of such a row is NaN, and none of another."""
    m = Products("not finite", SHAPES[:4])
    for option in ("--mcpu=host", "--mcpu=x86-64-v3", "--reference"):
        package = m.compiled(folder, *OPTIONS, option)
        feed = m.feed(12)
        for x in feed.values():
            for row, number in ((0, np.nan), (3, np.inf), (5, -np.inf), (11, np.nan)):
                x[row, m.random.integers(x.shape[1])] = number
        found = run_package(package, feed, folder)
        for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
            y, bad = found[f"y{i}"], [0, 3, 5, 11]
            expect(np.isnan(y[bad]).all(), f"{option} y{i}: a row that is not finite gave numbers")
            others = np.delete(feed[f"x{i}"], bad, 0)
            expect(np.array_equal(np.delete(y, bad, 0), expected(others, w, bias)[0]), f"{option} y{i}: other rows changed")


@case(seconds=5)
def rows_of_another_length_are_refused(folder):
    """Panels are filled up to whole words of codes, and rows that the model leaves open must not be."""
    random = np.random.default_rng([SEED, 11])
    for depth in (63, 64):
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", "k"])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 40])],
                                  [numpy_helper.from_array(random.standard_normal((depth, 40)).astype(np.float32), "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(folder / "m.onnx"))
        for options in (["--quantize=int8"], ["--quantize=int4"], list(OPTIONS), ["--precision=bf16"], ["--quantize=int8", "--mcpu=x86-64-v3"], ["--reference"]):
            package = compile_model(folder / "m.onnx", folder, *options)
            run_package(package, {"x": random.standard_normal((3, depth)).astype(np.float32)}, folder)
            for wrong in (depth - 1, depth + 1):
                np.savez(folder / "in.npz", x=np.ones((3, wrong), np.float32))
                tool("ds-run", package, "--inputs", folder / "in.npz", code=1, says=f"k == {depth} does not hold, found {wrong} and {depth}")


@case(seconds=10)
def rows_that_change_before_they_are_bytes(folder):
    """By elementwise ops in the product's kernel, behind a norm, too."""
    f32, depth, columns = np.float32, 96, 50
    random = np.random.default_rng([SEED, 96])
    w, g, c = random.standard_normal((depth, columns)).astype(f32), random.standard_normal(depth).astype(f32), f32(0.3)
    changes = {"times a number": ([("Mul", ["n", "c"])], lambda n, z: n * c), "plus a number": ([("Add", ["n", "c"])], lambda n, z: n + c),
               "times columns": ([("Mul", ["n", "g"])], lambda n, z: n * g), "plus rows": ([("Add", ["n", "z"])], lambda n, z: n + z),
               "two": ([("Mul", ["n", "g"]), ("Sub", ["t0", "c"])], lambda n, z: n * g - c)}
    for before in ("Identity", "LayerNormalization", "Softmax"):
        for what, (ops, change) in changes.items():
            nodes = [helper.make_node(before, ["x", "g"] if before == "LayerNormalization" else ["x"], ["n"], **({} if before == "Identity" else {"axis": -1}))]
            nodes += [helper.make_node(op, inputs, [f"t{i}"]) for i, (op, inputs) in enumerate(ops)]
            nodes.append(helper.make_node("MatMul", [f"t{len(ops) - 1}", "w"], ["y"]))
            given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", depth]) for name in ("x", "z")]
            graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", columns])],
                                      [numpy_helper.from_array(np.asarray(array), name) for name, array in (("w", w), ("g", g), ("c", c))])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(folder / "m.onnx"))
            feed = {name: random.standard_normal((21, depth)).astype(f32) for name in ("x", "z")}
            for option in some(["--fusion=generic", "--fusion=specialized", "--mcpu=x86-64-v3"], 1):
                package = compile_model(folder / "m.onnx", folder, *OPTIONS, option)
                y, text = run_package(package, feed, folder)["y"], f"{before}, {what}, {option} (DS_SEED={SEED})"
                n = feed["x"]
                if before == "LayerNormalization":
                    n = ((n - n.mean(1, keepdims=True)) / np.sqrt(n.var(1, keepdims=True) + 1e-5) * g).astype(f32)
                elif before == "Softmax":
                    n = np.exp(n) / np.exp(n).sum(1, keepdims=True)
                want, stands = expected(change(n, feed["z"]), w, f32(0))
                # Other roundings of a norm may move numbers to the next step.
                far = distance(y, want)
                expect(far == 0 if before == "Identity" and what != "two" else far < 0.002, f"{text}: {far} away")
                alone = run_package(package, {name: x[5:6] for name, x in feed.items()}, folder, "--threads=1")["y"]
                expect(alone.tobytes() == y[5:6].tobytes(), f"{text}: a row has other bits alone")


@case(seconds=12)
def minilm_keeps_its_cosines_with_rows_in_bytes(folder):
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    package = compile_model(MINILM, folder, *OPTIONS)
    vectors = run_package(package, inputs, folder)["461"].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for (i, j), cosine in COSINES.items():
        found = float(vectors[i] @ vectors[j])
        # Errors of rows are as large as those of weights, and random, too: 0.01 times the root of 2, rounded up.
        expect(abs(found - cosine) <= 0.02, f"cosine {i + 1}·{j + 1}: expected {cosine}, found {found:.4f}")
    values = tokens(3, 24, SEED)
    whole = run_package(package, values, folder, "--threads=1")["461"]
    for row in range(3):
        alone = run_package(package, {name: array[row:row + 1] for name, array in values.items()}, folder, "--threads=3")["461"]
        expect(alone.tobytes() == whole[row:row + 1].tobytes(), f"row {row} has other bits alone")
    plain = run_package(compile_model(MINILM, folder, name="plain.dsp"), values, folder)["461"]
    far = distance(whole, plain)
    expect(0 < far <= 0.1, f"expected vectors within 10 % of those in f32, found {far:.3g}")


@case
def products_that_stay_in_floats_say_why(folder):
    m = Products("kept", ((64, 64), (64, 64)))
    m.compiled(folder)
    model = folder / "products.onnx"
    result = tool("ds-opt", model, "-o", folder / "a.dsp", *OPTIONS, "--report")
    expect("quantize-activations: 2 products in bytes" in result.out, f"no report: {result}")
    result = tool("ds-opt", model, "-o", folder / "b.dsp", "--quantize=int8,keep=w1", "--activations=int8", "--report")
    expect("rows stay floats: the weight is not quantized" in result.err, f"no remark: {result}")
    expect("quantize-activations: 1 products in bytes" in result.out, f"no report: {result}")
