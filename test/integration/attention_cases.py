"""Attention from primitive chains, as exporters other than PyTorch's write them: recomposed, and ONNX Runtime's numbers."""
import numpy as np
import onnx
from onnx import parser

import judge
from kit import case, compile_model, expect, onnx_runtime, run_package, same_numbers, tool
from programs import SEED

HEAD = '<ir_version: 8, opset_import: ["" : %d]>\n'


def compiled(text, folder, attentions=1, opset=15):
    """Model and package; the graph phase must hold that many attentions."""
    path = folder / "model.onnx"
    model = parser.parse_model(HEAD % opset + text)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    tool("ds-opt", path, "-o", folder / "graph.mlir", "--stop-after=graph")
    found = (folder / "graph.mlir").read_text().count("= ds.attention")
    expect(found == attentions, f"expected {attentions} attentions, found {found}")
    tool("ds-opt", path, "-o", folder / "model.dsp")
    return path, folder / "model.dsp"


def refused(package, inputs, folder, says):
    np.savez(folder / "inputs.npz", **inputs)
    tool("ds-run", package, "--inputs", folder / "inputs.npz", "--output", folder / "out.npz", code=1, says=says)


def random(seed, **shapes):
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(shape, np.float32) for name, shape in shapes.items()}


MASKED = """
masked (float[b, 4, s, 8] q, float[b, 4, t, 8] k, float[b, 4, t, 8] v, float[m, 1, 1, n] mask) => (float[c, 4, s, 8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  scores = Add (product, mask)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""


@case
def masks_of_other_names(folder):
    """Whether a mask enlarges the batch is known at run time: then query, key and value are repeated for it."""
    model, package = compiled(MASKED, folder)
    sizes = [(2, 5, 7, 2, 7), (1, 5, 7, 3, 7), (3, 4, 6, 1, 6), (2, 1, 1, 2, 1), (2, 3, 5, 1, 1), (1, 1, 4, 4, 4)]
    for seed, (b, s, t, m, n) in enumerate(sizes):
        inputs = random(seed, q=(b, 4, s, 8), k=(b, 4, t, 8), v=(b, 4, t, 8), mask=(m, 1, 1, n))
        same_numbers(package, model, inputs, folder)
    wrong = random(9, q=(2, 4, 5, 8), k=(2, 4, 7, 8), v=(2, 4, 7, 8), mask=(3, 1, 1, 7))
    refused(package, wrong, folder, "does not hold, found 2 and 3")
    wrong = random(9, q=(2, 4, 5, 8), k=(2, 4, 1, 8), v=(2, 4, 1, 8), mask=(2, 1, 1, 7))
    refused(package, wrong, folder, "does not hold, found 1 and 7")


@case
def scales_of_run_time(folder):
    model, package = compiled("""
scaled (float[b, 2, s, 8] q, float[b, 2, s, 8] k, float[b, 2, s, 8] v, float scale, float[1] divisor) => (float[b, 2, s, 8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  scaled = Mul (scale, product)
  scores = Div (scaled, divisor)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
""", folder)
    for seed, (b, s) in enumerate(((1, 1), (2, 5), (3, 17))):
        inputs = random(seed, q=(b, 2, s, 8), k=(b, 2, s, 8), v=(b, 2, s, 8), scale=(), divisor=(1,))
        same_numbers(package, model, {name: np.asarray(value, np.float32) for name, value in inputs.items()}, folder)


@case
def queries_in_groups(folder):
    """Products of rank 5; one mask for all heads and a bias for each."""
    model, package = compiled("""
grouped (float[b, 2, 3, s, 8] q, float[b, 2, 1, t, 8] k, float[b, 2, 1, t, 8] v, float[b, 1, 1, 1, t] mask,
         float[1, 2, 3, s, t] bias) => (float[b, 2, 3, s, 8] y) {
  kt = Transpose <perm = [0, 1, 2, 4, 3]> (k)
  product = MatMul (q, kt)
  biased = Add (product, bias)
  scores = Add (mask, biased)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
""", folder)
    for seed, (b, s, t) in enumerate(((1, 1, 1), (2, 5, 7), (3, 17, 4))):
        same_numbers(package, model, random(seed, q=(b, 2, 3, s, 8), k=(b, 2, 1, t, 8), v=(b, 2, 1, t, 8),
                                            mask=(b, 1, 1, 1, t), bias=(1, 2, 3, s, t)), folder)


@case
def masks_wider_than_products(folder):
    """f16 products with a mask in f32. The chain rounds scores to f16, attention does not: both are compared with float64,
    and ours may not be farther away than half precision explains (2^-9 of values around 1)."""
    model, package = compiled("""
wide (float16[b, 2, s, 8] q, float16[b, 2, s, 8] k, float16[b, 2, s, 8] v, float[s, s] mask) => (float16[b, 2, s, 8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  wide = Cast <to = 1> (product)
  scores = Add (wide, mask)
  weights = Softmax <axis = -1> (scores)
  narrow = Cast <to = 10> (weights)
  y = MatMul (narrow, v)
}
""", folder)
    for seed, (b, s) in enumerate(((1, 1), (2, 5), (3, 17))):
        inputs = random(seed, q=(b, 2, s, 8), k=(b, 2, s, 8), v=(b, 2, s, 8))
        inputs = {name: value.astype(np.float16) for name, value in inputs.items()}
        inputs["mask"] = np.where(np.tri(s, dtype=bool), 0, np.finfo(np.float32).min).astype(np.float32)
        ours = run_package(package, inputs, folder)["y"]
        q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
        scores = q @ k.swapaxes(2, 3) + inputs["mask"]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = weights / weights.sum(-1, keepdims=True) @ v
        far = np.abs(ours.astype(np.float64) - exact).max()
        expect(far <= 2 ** -9 * max(1, np.abs(exact).max()), f"b={b} s={s}: {far} from float64")
        expect(onnx_runtime(model, inputs)["y"].dtype == ours.dtype, f"expected the type of ONNX Runtime, found {ours.dtype}")


@case
def tables_that_end(folder):
    """A mask cut from a stored triangle, as GPT-Neo's: rows behind a cache, and none left where the cache is too long."""
    triangle = np.tri(16, dtype=bool)[None, None]
    text = """
cut (float[b, 2, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v) => (float[b, 2, s, 8] y) {
  shape = Shape (q)
  keys = Shape (k)
  two = Constant <value_ints = [2]> ()
  three = Constant <value_ints = [3]> ()
  rows = Gather <axis = 0> (shape, two)
  total = Gather <axis = 0> (keys, two)
  past = Sub (total, rows)
  some = Slice (triangle, past, total, two)
  zero = Constant <value_ints = [0]> ()
  seen = Slice (some, zero, total, three)
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  low = Constant <value_float = -3.4e38> ()
  scores = Where (seen, product, low)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""
    model = parser.parse_model(HEAD % 15 + text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(triangle, "triangle"))
    path = folder / "model.onnx"
    onnx.save(model, path)
    tool("ds-opt", path, "-o", folder / "model.dsp")
    for seed, (b, s, t) in enumerate(((1, 1, 1), (2, 5, 5), (3, 2, 9), (1, 1, 16))):
        same_numbers(folder / "model.dsp", path, random(seed, q=(b, 2, s, 8), k=(b, 2, t, 8), v=(b, 2, t, 8)), folder)
    refused(folder / "model.dsp", random(9, q=(1, 2, 1, 8), k=(1, 2, 17, 8), v=(1, 2, 17, 8)), folder, "does not hold")


HIDDEN_TWICE = """
hidden (float[b, 4, s, 8] q, float[b, 4, t, 8] k, float[b, 4, t, 8] v, bool[b, 1, s, t] hidden, float[b, 1, s, t] mask)
  => (float[b, 4, s, 8] y) <float low = {-3.4028234663852886e38}> {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  masked = Add (product, mask)
  scores = Where (hidden, low, masked)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""


@case
def places_that_two_masks_hide(folder):
    """A row that one mask hides as a whole has equal weights, wherever the other one hides it, too."""
    model, package = compiled(HIDDEN_TWICE, folder)
    inputs = random(1, q=(2, 4, 5, 8), k=(2, 4, 7, 8), v=(2, 4, 7, 8))
    generator = np.random.default_rng(2)
    inputs["hidden"] = generator.random((2, 1, 5, 7)) < 0.5
    inputs["hidden"][:, 0, 2] = True
    inputs["mask"] = np.where(generator.random((2, 1, 5, 7)) < 0.5, np.finfo(np.float32).min, np.float32(0))
    same_numbers(package, model, inputs, folder)


CAPPED = """
capped (float[b, 4, s, 8] q, float[b, 4, t, 8] k, float[b, 4, t, 8] v, float r) => (float[b, 4, s, 8] y) <float c = {2.0}> {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  small = Div (product, c)
  bounded = Tanh (small)
  capped = Mul (bounded, c)
  scores = Mul (capped, r)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""


@case
def capped_scores_that_are_scaled_again(folder):
    model, package = compiled(CAPPED, folder, attentions=0)
    inputs = random(3, q=(2, 4, 5, 8), k=(2, 4, 7, 8), v=(2, 4, 7, 8))
    same_numbers(package, model, inputs | {"r": np.array(3, np.float32)}, folder)


ONE_HEAD = """
one (float[b, s, 8] q, float[b, t, 8] k, float[b, t, 8] v, float[b, 1, t] mask) => (float[b, s, 8] y) {
  kt = Transpose <perm = [0, 2, 1]> (k)
  product = MatMul (q, kt)
  scores = Add (product, mask)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""


@case
def one_head_beside_the_batch(folder):
    """Without an axis of heads, the first one is the batch, which a run decides."""
    model, package = compiled(ONE_HEAD, folder)
    for seed, (b, s, t) in enumerate([(2, 5, 7), (1, 1, 1), (3, 1, 4)]):
        same_numbers(package, model, random(seed, q=(b, s, 8), k=(b, t, 8), v=(b, t, 8), mask=(b, 1, t)), folder)


@case
def heads_that_a_run_counts(folder):
    text = ONE_HEAD.replace("[b, ", "[b, h, ").replace("[0, 2, 1]", "[0, 1, 3, 2]")
    model, package = compiled(text, folder)
    inputs = random(5, q=(2, 3, 5, 8), k=(2, 3, 7, 8), v=(2, 3, 7, 8), mask=(2, 3, 1, 7))
    same_numbers(package, model, inputs, folder)


@case
def operator_with_heads_that_a_run_counts(folder):
    model, package = compiled("""
standard (float[b, h, s, 8] q, float[b, h, t, 8] k, float[b, h, t, 8] v) => (float[b, h, s, 8] y) {
  y = Attention <is_causal = 1, scale = 0.5> (q, k, v)
}
""", folder, opset=23)
    for seed, (b, h, s, t) in enumerate([(2, 3, 5, 7), (1, 1, 4, 4), (3, 2, 1, 3)]):
        same_numbers(package, model, random(seed, q=(b, h, s, 8), k=(b, h, t, 8), v=(b, h, t, 8)), folder)


@case(seconds=6)
def operator_with_masks_shorter_than_the_keys(folder):
    """The standard hides the keys that a mask does not reach, also where only a run knows how many those are. Against
    ONNX's reference evaluator: ONNX Runtime wants masks of full length."""
    generator = np.random.default_rng(SEED)
    for kind in "bool", "float":
        for dims, own in ("[s, m]", lambda b, s, m: (s, m)), ("[b, 1, s, m]", lambda b, s, m: (b, 1, s, m)):
            for past in "", "past":
                more = "float[b, 2, p, 8] pk, float[b, 2, p, 8] pv" if past else ""
                path = folder / "short.onnx"
                onnx.save(parser.parse_model(HEAD % 23 + f"""
short (float[b, 2, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v, {kind}{dims} mask{", " + more if past else ""}) => (float[b, 2, s, 8] y) {{
  y{", rk, rv" if past else ""} = Attention (q, k, v, mask{", pk, pv" if past else ""})
}}
"""), path)
                package = compile_model(path, folder)
                for b, s, t, m in (2, 3, 5, 3), (1, 2, 5, 1), (2, 3, 5, 5), (1, 3, 1, 1), (3, 17, 40, 21), (1, 1, 9, 4):
                    p = int(generator.integers(0, t - m + 1)) if past else 0
                    shapes = {"q": (b, 2, s, 8), "k": (b, 2, t, 8), "v": (b, 2, t, 8)} | (
                        {"pk": (b, 2, p, 8), "pv": (b, 2, p, 8)} if past else {})
                    inputs = {name: generator.standard_normal(shape, np.float32) for name, shape in shapes.items()}
                    mask = generator.standard_normal(own(b, s, m), np.float32)
                    if kind == "bool":
                        mask = mask < 0.3
                        mask[..., 0] = True
                    expected = judge.by_the_standard(onnx.load(path), inputs | {"mask": mask})["y"]
                    found = run_package(package, inputs | {"mask": mask}, folder)["y"]
                    far = judge.distance(found.astype(np.float64), expected)
                    expect(far <= 2e-5, f"DS_SEED={SEED}: {kind}{dims} {past} of {b, s, t, m, p}: {far} away")
                wrong = {name: array for name, array in inputs.items() if name not in ("k", "v")}
                keys = np.zeros((1, 2, 1, 8), np.float32)
                says = "expected at most as many columns of the mask as there are keys"
                wrong |= {"k": keys, "v": keys, "mask": np.ones(own(1, 1, 2 + p), mask.dtype)}
                refused(package, wrong, folder, says)


SCALED = """
wide (float16[b, 2, s, 8] q, float16[b, 2, s, 8] k, float16[b, 2, s, 8] v, float[1] n) => (float16[b, 2, s, 8] y) {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  wide = Cast <to = 1> (product)
  SCORES
  weights = Softmax <axis = -1> (scores)
  narrow = Cast <to = 10> (weights)
  y = MatMul (narrow, v)
}
"""


@case(seconds=3)
def scales_wider_than_products(folder):
    """A number of run time in f32 scales f16 products: one that f16 does not hold scales them, too. Against float64, as
    masks_wider_than_products; products are made of few digits, so that the chain's rounding to f16 changes nothing."""
    forms = {"scores = Div (wide, n)": (lambda x, n: x / n, 1), "scores = Mul (n, wide)": (lambda x, n: x * n, 1),
             "c = Constant <value_float = 2.0> () scaled = Div (wide, n) small = Div (scaled, c) bounded = Tanh (small) "
             "scores = Mul (bounded, c)": (lambda x, n: 2 * np.tanh(x / n / 2), 0)}
    generator = np.random.default_rng(SEED)
    for scores, (exact, attentions) in forms.items():
        _, package = compiled(SCALED.replace("SCORES", scores), folder, attentions=attentions)
        for b, s in ((1, 1), (2, 5), (3, 17)):
            for size, number in ((1, 2), (24, 1e5), (2**-6, 1e-5)):
                number = np.float32(number if "Div" in scores else 1 / number)
                q, k = (generator.integers(-3, 4, (b, 2, s, 8)) * size for _ in "qk")
                inputs = {"q": q, "k": k, "v": generator.standard_normal((b, 2, s, 8))}
                inputs = {name: value.astype(np.float16) for name, value in inputs.items()} | {"n": number.reshape(1)}
                ours = run_package(package, inputs, folder)["y"].astype(np.float64)
                weights = exact((q @ k.swapaxes(2, 3)).astype(np.float64), float(number))
                weights = np.exp(weights - weights.max(-1, keepdims=True))
                expected = weights / weights.sum(-1, keepdims=True) @ inputs["v"].astype(np.float64)
                far = np.abs(ours - expected).max()
                expect(far <= 2 ** -9 * max(1, np.abs(expected).max()), f"DS_SEED={SEED}: {scores} by {number} of {b}, {s}: {far} away")


@case
def weights_of_another_rank(folder):
    """Weights whose batch and heads are joined, or split, meet a value that broadcasts: more than an attention does."""
    for text, shapes in (("""
joined (float[2, 1, 3, 4] q, float[2, 1, 3, 4] k, float[2, 1, 3, 4] v) => (float[2, 2, 3, 4] y) <int64[3] sizes = {2, 3, 3}> {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  scores = MatMul (q, kt)
  weights = Softmax <axis = -1> (scores)
  joined = Reshape (weights, sizes)
  y = MatMul (joined, v)
}
""", (2, 1, 3, 4)), ("""
split (float[2, 3, 4] q, float[2, 3, 4] k, float[2, 3, 4] v) => (float[2, 2, 3, 4] y) <int64[4] sizes = {2, 1, 3, 3}> {
  kt = Transpose <perm = [0, 2, 1]> (k)
  product = MatMul (q, kt)
  scores = Reshape (product, sizes)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
""", (2, 3, 4))):
        own = folder / text.split()[0]
        own.mkdir()
        model, package = compiled(text, own, attentions=0)
        same_numbers(package, model, random(SEED, q=shapes, k=shapes, v=shapes), own)
