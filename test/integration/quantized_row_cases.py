"""Products of rows in 8 bits (--activations=int8) against NumPy, which quantizes rows and weights on its own."""
import numpy as np

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
