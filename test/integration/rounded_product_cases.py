"""Products in bf16 (--precision=bf16) against NumPy, which rounds both sides on its own and multiplies in double precision."""
import ml_dtypes
import numpy as np

import generate
from kit import MINILM, case, compile_model, distance, expect, processors, run_package, tool
from model_cases import COSINES, SENTENCES, tokens
from programs import SEED
from quantized_weight_cases import Products

SHAPES = ((1, 1), (2, 600), (33, 49), (64, 100), (65, 16), (97, 48), (770, 50), (40, 1030))
ROWS = (0, 1, 2, 3, 7, 8, 9, 16, 17, 40, 131)
UNIT = 2.0**-24


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


@case
def products_in_bf16(folder):
    m = Products("bf16", SHAPES)
    feeds = {rows: m.feed(rows) for rows in ROWS}
    for option in [*(f"--mcpu={cpu}" for cpu in (*processors(), "host")), "--reference"]:
        package = m.compiled(folder, "--precision=bf16", option)
        whole = None
        for rows, feed in feeds.items():
            found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
            for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                x, y, what = feed[f"x{i}"], found[f"y{i}"], f"{option} {rows} rows, y{i} of {w.shape} (DS_SEED={SEED})"
                magnitude = np.abs(rounded(x)) @ np.abs(rounded(w)) + np.abs(bias)
                # At most two roundings for a step of K, and one of the bias.
                bound = (2 * len(w) + 2) * UNIT * magnitude
                far = np.abs(y - (rounded(x) @ rounded(w) + bias))
                expect(y.dtype == np.float32 and far.shape == y.shape and (far <= bound).all(),
                       f"{what}: off by {(far - bound).max(initial=0)} beyond rounding")
                # The stated bound: 2^-8 for each side.
                wide = x.astype(np.float64), w.astype(np.float64)
                bound += 2.0**-7 * (1 + 2.0**-9) * (np.abs(wide[0]) @ np.abs(wide[1]))
                far = np.abs(y - (wide[0] @ wide[1] + bias))
                expect((far <= bound).all(), f"{what}: beyond the stated bound by {(far - bound).max(initial=0)}")
            whole = (feed, found) if rows == max(ROWS) else whole
        feed, found = whole
        for first, count, threads in ((0, 1, 1), (3, 8, 2), (40, 13, 1), (5, 17, 3)):
            part = {key: array[first:first + count] for key, array in feed.items()}
            for key, array in run_package(package, part, folder, f"--threads={threads}").items():
                expect(array.tobytes() == found[key][first:first + count].tobytes(),
                       f"{option}: {key} has other bits in {count} rows than in {max(ROWS)} (DS_SEED={SEED})")


@case
def what_bf16_does_not_hold(folder):
    """NaN and infinities stay what they are, the largest numbers become infinite; other rows know nothing of it."""
    m = Products("limits", ((64, 48), (65, 100)))
    m.weights = [np.abs(w) + 1 for w in m.weights]
    for i, w in enumerate(m.weights):
        m.model.graph.initializer[2 * i].raw_data = w.tobytes()
    for option in ("--mcpu=host", "--mcpu=x86-64-v3", "--reference"):
        package = m.compiled(folder, "--precision=bf16", option)
        feed = m.feed(8)
        for x in feed.values():
            x[1, 5], x[3, 7], x[4, 0], x[6, 2] = np.nan, np.inf, -np.inf, np.finfo(np.float32).max
        for name, y in run_package(package, feed, folder).items():
            expect(np.isnan(y[1]).all() and np.isposinf(y[[3, 6]]).all() and np.isneginf(y[4]).all(), f"{option} {name}: {y[:, 0]}")
            expect(np.isfinite(y[[0, 2, 5, 7]]).all(), f"{option} {name}: other rows are not finite")


@case
def models_in_bf16(folder):
    """Sentence vectors keep their cosines; a BERT block's merged products give what single ones give."""
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    package = compile_model(MINILM, folder, "--precision=bf16")
    vectors = run_package(package, inputs, folder)["461"].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for (i, j), cosine in COSINES.items():
        found = float(vectors[i] @ vectors[j])
        expect(abs(found - cosine) <= 0.01, f"cosine {i + 1}·{j + 1}: expected {cosine}, found {found:.4f}")
    plain = compile_model(MINILM, folder, name="plain.dsp")
    sizes = [(path / "weights.bin").stat().st_size for path in (package, plain)]
    expect(sizes[0] < 0.85 * sizes[1], f"expected weights of products in half the bytes, found {sizes}")  # the table of words stays
    model = generate.save(generate.bert(layers=1, hidden=64, heads=4), folder / "bert.onnx")
    values = tokens(2, 9, SEED)
    found = [run_package(compile_model(model, folder, "--precision=bf16", f"--fusion={fusion}", name=f"{fusion}.dsp"), values, folder)
             for fusion in ("none", "specialized")]
    for name, array in found[0].items():
        far = distance(found[1][name], array)
        # The sums have the same bits; what follows them is rounded to bf16 again, where one unit of f32 may decide.
        expect(far <= 0.01, f"{name}: fusion moves numbers by {far:.3g}")


@case
def nothing_to_round_is_said(folder):
    text = 'func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {\n  return %x : tensor<4xf32>\n}\n'
    (folder / "none.mlir").write_text(text)
    tool("ds-opt", folder / "none.mlir", "-o", folder / "none.dsp", "--precision=bf16", code=1,
         says="no product was rounded: there is no product with a weight")
