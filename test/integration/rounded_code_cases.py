"""Codes under rows of bf16 and f16 (--quantize with --precision) against NumPy, which quantizes and rounds on its own."""
import numpy as np

import generate
from kit import MINILM, case, compile_model, distance, expect, processors, run_package, tool
from model_cases import COSINES, SENTENCES, tokens
from programs import SEED, some
from quantized_weight_cases import HOWS, ROWS, SHAPES, UNIT, Products, digits_lose, option, quantized
from rounded_product_cases import ROUNDING, rounded


def judge(m, feed, found, how, precision, about):
    bits, group, scheme = how
    for i, (w, b) in enumerate(zip(m.weights, m.biases)):
        k, n = w.shape
        groups = -(-k // group) if 0 < group < k else 1
        packed = -(-k * bits // 8) * n + groups * n * (5 if scheme == "asymmetric" else 4)
        isKept = 4 * k * n <= 4096 or packed >= 4 * k * n  # then it is rounded as it is
        x, actual = feed[f"x{i}"], found[f"y{i}"].astype(np.float64)
        stands = rounded(w, precision) if isKept else quantized(w, *how)[0]
        rows = rounded(x, precision)
        # At most two roundings for each step of K, one of each weight and its scale, one of the bias.
        rounding = (2 * k + 5) * UNIT * (np.abs(rows) @ np.abs(stands) + np.abs(b))
        if precision == "f16":  # rows that lie in memory as f32 may become digits
            rounding += digits_lose(rows, stands)
        what = f"{about} y{i} of {w.shape} in {how} by {precision} (DS_SEED={SEED})"
        far = np.abs(actual - (rows @ stands + b))
        expect(far.shape == actual.shape and (far <= rounding).all(), f"{what}: {(far - rounding).max(initial=0)} beyond rounding")
        if precision == "bf16" and not isKept:  # the stated bound of what rounding rows costs
            bound = ROUNDING[precision] * (np.abs(x.astype(np.float64)) @ np.abs(stands)) + rounding
            far = np.abs(actual - (x.astype(np.float64) @ stands + b))
            expect((far <= bound).all(), f"{what}: beyond the stated bound by {(far - bound).max(initial=0)}")


def verify(folder, precision, options, hows):
    for number, how in enumerate(hows):
        m = Products(f"{precision} {how}", [*(SHAPES[(3 * number + i) % 9] for i in range(3)), SHAPES[-1]])
        for target in options if len(options) < 3 else {options[(SEED + number) % len(options)], options[-1]}:
            package = m.compiled(folder, option(*how), f"--precision={precision}", target)
            whole = None
            for rows in ROWS:
                feed = m.feed(rows)
                found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
                judge(m, feed, found, how, precision, f"{target} {rows} rows:")
                whole = feed, found
            feed, found = whole
            for first, count, threads in ((0, 1, 1), (3, 8, 2), (40, 13, 1), (5, 17, 3)):
                part = {key: array[first:first + count] for key, array in feed.items()}
                for key, array in run_package(package, part, folder, f"--threads={threads}").items():
                    expect(array.tobytes() == found[key][first:first + count].tobytes(),
                           f"{target} {how} {precision}: {key} has other bits in {count} rows than in {max(ROWS)} (DS_SEED={SEED})")


@case(seconds=23)
def codes_by_rows_of_bf16(folder):
    verify(folder, "bf16", [*(f"--mcpu={cpu}" for cpu in processors()), "--mcpu=host"], some(HOWS, 4))


@case(seconds=23)
def codes_by_rows_of_bf16_in_short_groups(folder):
    verify(folder, "bf16", ["--mcpu=host"], some([(4, 2, "symmetric"), (8, 6, "asymmetric"), (4, 10, "symmetric"), (8, 10, "symmetric")], 2))


@case(seconds=12)
def codes_by_rows_of_f16(folder):
    verify(folder, "f16", ["--mcpu=host"], some(HOWS, 2))


@case(seconds=6)
def codes_by_rounded_rows_in_plain_loops(folder):
    for number, how in enumerate(some(HOWS, 4)):
        precision = ("bf16", "f16")[number % 2]
        m = Products(f"plain {how}")
        package = m.compiled(folder, option(*how), f"--precision={precision}", "--reference")
        for rows in (0, 1, 3):
            feed = m.feed(rows)
            judge(m, feed, run_package(package, feed, folder), how, precision, f"plain {rows} rows:")


@case(seconds=23)
def models_of_codes_and_bf16(folder):
    """Sentence vectors keep their cosines; merged products and norms in kernels give what single ones give; rows keep their bits."""
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    for how, furthest in (("int8", 0.015), ("int4", 0.1)):
        package = compile_model(MINILM, folder, f"--quantize={how}", "--precision=bf16")
        vectors = run_package(package, inputs, folder)["461"].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for (i, j), cosine in COSINES.items():
            found = float(vectors[i] @ vectors[j])
            expect(abs(found - cosine) <= furthest, f"{how}: cosine {i + 1}·{j + 1}: expected {cosine}, found {found:.4f}")
    model = generate.save(generate.bert(layers=2, hidden=128, heads=4), folder / "bert.onnx")
    values = tokens(3, 21, SEED)
    for how in some(("int8", "int4", "int8,scheme=asymmetric"), 2):
        found = []
        for fusion in ("none", "specialized"):
            package = compile_model(model, folder, f"--quantize={how}", "--precision=bf16", f"--fusion={fusion}", name=f"{fusion}.dsp")
            found.append(run_package(package, values, folder))
        for name, y in found[0].items():
            far = distance(found[1][name], y)
            expect(far <= 0.02, f"{how} {name}: {far} between --fusion=none and specialized (DS_SEED={SEED})")
        alone = run_package(package, {name: array[:1] for name, array in values.items()}, folder)
        for name, y in alone.items():
            expect(y.tobytes() == found[1][name][:1].tobytes(), f"{how} {name}: other bits alone (DS_SEED={SEED})")


@case
def rows_of_bytes_are_not_rounded(folder):
    """--activations=int8 leaves nothing to round: an error that says why."""
    m = Products("bytes", ((64, 100),))
    m.compiled(folder, "--quantize=int8", "--activations=int8")
    tool("ds-opt", folder / "products.onnx", "-o", folder / "no.dsp", "--quantize=int8", "--activations=int8", "--precision=bf16",
         code=1, says="no product was rounded: its operands are not f32")
