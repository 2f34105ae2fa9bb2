"""Attention whose masks choose, and windows in place of masks: against NumPy's float64 of the model's own ops.

What a choice hides may be anything: keys of NaN, infinity and 3e38 stand in such places, as in the unused rows of a static
cache. Tolerances are those of a softmax over a few dozen f32 scores: 2e-5 of values around 1.
"""
import itertools
import re

import numpy as np
import onnx
from onnx import parser

from kit import case, expect, run_package, tool
from programs import SEED, Program, some

HUGE = (np.nan, np.inf, -np.inf, 3e38)


def softmax(scores):
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return e / e.sum(-1, keepdims=True)


def window(s, t, past=0, left=None, right=None, positions=None):
    """Which of t columns each of s rows sees; positions [b, 1, s, 1] or numbers."""
    place = np.arange(s)[:, None] + past if positions is None else positions
    column = np.arange(t)
    seen = np.ones(np.broadcast_shapes(np.shape(place), (s, t)), bool)
    if left is not None:
        seen &= column >= place - left
    if right is not None:
        seen &= column <= place + right
    return seen


def run_all(model, inputs, outputs, folder, variants=("--mcpu=host", "--mcpu=x86-64-v3", "--reference")):
    """Compiles each variant once and compares all draws; `outputs` yields the expected arrays of one draw of inputs."""
    for variant in variants:
        tool("ds-opt", model, "-o", folder / "model.dsp", variant)
        for draw in inputs:
            found = run_package(folder / "model.dsp", draw, folder)
            for name, expected in outputs(draw).items():
                compare(found[name], expected, f"seed {SEED}, {variant}: {name} of "
                        f"{ {k: v.shape for k, v in draw.items()} }")


def compare(found, expected, what, tolerance=2e-5):
    expect(found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}")
    found = found.astype(np.float64)
    near = np.abs(found - expected) <= tolerance * np.maximum(1, np.abs(expected))
    wrong = ~(near | (np.isnan(found) & np.isnan(expected)) | (found == expected))
    expect(not wrong.any(), f"{what}: {wrong.sum()} of {wrong.size} differ, first at {np.argwhere(wrong)[:1].tolist()}: "
           f"{found[wrong][:1]}, expected {expected[wrong][:1]}")


def graph_of(model, folder):
    """The attentions that are results of the graph phase, as text, by the names of these; several may be one attention."""
    tool("ds-opt", model, "-o", folder / "graph.mlir", "--stop-after=graph")
    text = (folder / "graph.mlir").read_text()
    found = dict(re.findall(r"(%\w+) = ds\.attention (.*?) scale ", text))
    names = re.findall(r'ds\.name = "(\w+)"', re.search(r"func\.func @main\(.*?\) -> (.*?) attributes", text)[1])
    results = re.search(r"^ *return (.*?) :", text, re.MULTILINE)[1].split(", ")
    return {name: re.sub(r"%\w+", "%", " ".join(found[value].split())) for name, value in zip(names, results) if value in found}


# Kernels, by random steps and windows.

KINDS = ("add", "multiply", "keep", "hide", "keep_add", "hide_add", "window", "window_add", "window_mask")
FLAGS = ("keep", "hide", "keep_add", "hide_add")


def apply(kind, scores, mask, low, seen):
    if kind == "add":
        return scores + mask
    if kind == "multiply":
        return scores * mask
    if kind == "keep":
        return np.where(mask, scores, low)
    if kind == "hide":
        return np.where(mask, low, scores)
    if kind == "keep_add":
        return scores + np.where(mask, 0, low)
    if kind == "hide_add":
        return scores + np.where(mask, low, 0)
    if kind == "window":
        return np.where(seen, scores, low)
    return scores + np.where(seen, 0 if kind == "window_add" else mask, low)


def add_random_attention(p, element, rtol, sizes, kinds, number):
    b, h, g, s, t = sizes
    random, dynamic = p.random, p.random.integers(2)
    d = int(random.choice([3, 8, 16]))
    names = [f"B{number}", f"S{number}", f"T{number}"] if dynamic else [b, s, t]
    bounds = {"left": None, "right": None}
    if any("window" in kind for kind in kinds):
        side = random.integers(3)
        bounds["left"] = int(random.integers(0, 4)) if side != 0 else None
        bounds["right"] = int(random.integers(-1, 3)) if side != 1 else None
    windowed = any("window" in kind for kind in kinds)
    past = int(random.integers(-2, 5)) if windowed and random.integers(2) else 0
    text = "past [%d]" % past
    if windowed and dynamic and random.integers(2):
        past, text = t - s, f'past ["T{number} - S{number}"]'
    positions = random.integers(-2, t + 2, (b, 1, s, 1)) if windowed and random.integers(3) == 0 else None
    seen = np.broadcast_to(window(s, t, past, positions=positions, **bounds), (b, h, s, t))
    hidden = np.zeros((b, h, s, t), bool)  # by a choice
    masks, lows = [], []
    for place, kind in enumerate(kinds):
        mask = None
        shape = [n if random.integers(3) else 1 for n in (b, h, s, t)]
        if kind in FLAGS:
            mask = random.uniform(size=shape) < 0.7
        if kind in ("keep", "hide"):
            hidden |= ~mask if kind == "keep" else mask
        elif kind in ("add", "multiply", "window_mask"):
            mask = random.standard_normal(shape)
        if kind == "window":
            hidden |= ~seen
        # Numbers so low that a sum with them loses the score, or what a later step adds, would leave rows that are hidden
        # as a whole to rounding.
        is_final = all(later in ("keep", "hide", "window") for later in kinds[place:])
        lows.append(float(random.choice([-2.0, -np.inf, 0.5] + ([-1e9, -1e4] if is_final else []))
                          if element != "f16" else random.choice([-2.0, -np.inf])))
        masks.append(mask)
    q, k, v = (random.standard_normal(shape) for shape in ((b, h, s, d), (b, g, t, d), (b, g, t, d)))
    # A key that no row meets may be anything, unless it is added to or multiplied with before it is chosen away.
    unmet = hidden.reshape(b, g, h // g, s, t).all((2, 3))
    k[unmet] = random.choice(HUGE, (int(unmet.sum()), d)) if s else k[unmet]
    operands = [p.input(q, element, [names[0], h, names[1], d]), p.input(k, element, [names[0], g, names[2], d]),
                p.input(v, element, [names[0], g, names[2], d])]
    with np.errstate(all="ignore"):
        scores = 0.3 * operands[0].wide @ np.repeat(operands[1].wide, h // g, 1).swapaxes(2, 3)
        steps = []
        for kind, mask, low in zip(kinds, masks, lows):
            written = kind
            if mask is not None:
                written += f" {{{len(operands)}}}"
                operands.append(p.input(mask, "i1" if mask.dtype == bool else element))
                mask = operands[-1].array if mask.dtype == bool else operands[-1].wide
            if kind not in ("add", "multiply"):
                written += f" else {'0xFFF0000000000000' if np.isinf(low) else low}"
            steps.append(written)
            scores = apply(kind, scores, mask, low, seen)
        expected = softmax(scores) @ np.repeat(operands[2].wide, h // g, 1)
    guard = bool(random.integers(2))
    if guard:
        expected = np.where(np.isnan(expected), 0, expected)
    if t == 0:
        expected = np.zeros_like(expected)
    words = [f"ds.attention {{0}}, {{1}}, {{2}} [{', '.join(steps)}]"]
    if positions is not None:
        words.append(f"positions {{{len(operands)}}}")
        operands.append(p.input(positions, "i64"))
    elif windowed and past:
        words.append(text)
    words += [f"{side} {bound}" for side, bound in bounds.items() if bound is not None]
    words.append("scale 0.3" + (" guard" if guard else ""))
    p.test(" ".join(words), operands, element, [names[0], h, names[1], d], expected, rtol=rtol, scale=1)


@case(seconds=23)
def random_steps(folder):
    sizes = [(1, 1, 1, 1, 1), (2, 2, 1, 5, 5), (1, 2, 2, 1, 9), (2, 4, 2, 6, 9), (1, 2, 1, 9, 6), (1, 2, 2, 17, 50), (1, 1, 1, 40, 40),
             (2, 2, 1, 3, 0), (1, 2, 1, 0, 3)]
    number, every = itertools.count(), itertools.cycle(KINDS)  # none is left to chance
    for element, rtol in (("f32", 2e-5), ("f64", 1e-12), ("f16", 3e-3), ("bf16", 3e-2)):
        p = Program()
        for size in some(sizes, 6):
            add_random_attention(p, element, rtol, size, ["window"], next(number))
            kinds = [next(every), *(str(kind) for kind in p.random.choice(KINDS, p.random.integers(0, 3)))]
            add_random_attention(p, element, rtol, size, kinds, next(number))
            add_random_attention(p, element, rtol, size, kinds[::-1] + ["window"], next(number))
        p.verify(folder)


@case
def values_that_nobody_reads(folder):
    """NaN among values under a weight of 0: NaN in the chain, which a kernel that skips hidden keys need not give. The
    vector kernel skips all columns that no row of a block sees."""
    p = Program()
    s, t = 9, 33
    q, k, v = (p.random.standard_normal((1, 2, n, 8)) for n in (s, t, t))
    v[:, :, 20:] = np.nan
    seen = window(s, t, past=3, right=0)
    expected = softmax(np.where(seen, 0.3 * q @ k.swapaxes(2, 3), -np.inf)) @ np.nan_to_num(v)
    value = p.op("ds.attention {0}, {1}, {2} [window else 0xFFF0000000000000] past [3] right 0 scale 0.3",
                 [p.input(q, "f32"), p.input(k, "f32"), p.input(v, "f32")], "f32", [1, 2, s, 8], expected)
    p.check(value, "attention", rtol=2e-5, scale=1)
    for variant in ("--mcpu=host", "--reference"):
        found, = p.run(folder, [variant])
        missed = np.isnan(found) & (variant == "--reference")
        expect((missed | (np.abs(found - expected) <= 2e-5)).all(), f"{variant}: {np.abs(found - expected).max()}")


@case(seconds=3)
def places_at_the_ends_of_64_bits(folder):
    """Where rows stand is data: what the caller gives may be farther away than any column, and bounds do not wrap."""
    p, s, t, limits = Program(), 5, 9, np.iinfo(np.int64)
    q, k, v = (p.input(p.random.standard_normal((1, 2, n, 8)), "f32") for n in (s, t, t))
    scores = 0.3 * q.wide @ k.wide.swapaxes(2, 3)
    for past in (0, 3, -3, limits.max, limits.max - 4, limits.min, limits.min + 4, 2**62, -2**62):
        for bounds in ({"right": 0}, {"left": 1}, {"left": 2, "right": 1}):
            near = int(np.clip(past, -2**40, 2**40))
            words = " ".join(f"{side} {reach}" for side, reach in bounds.items()) + " scale 0.3"
            count = p.input(np.array([past]), "i64")
            p.test(f'ds.attention {{0}}, {{1}}, {{2}} [window else -1.0e+9] past ["{count.name[1:]}[0]"] {words}', [q, k, v], "f32",
                   [1, 2, s, 8], softmax(np.where(window(s, t, near, **bounds), scores, -1e9)) @ v.wide, rtol=2e-5, scale=1,
                   what=f"past {past}, {words}")
            given = p.input(np.full((1, 1, s, 1), past), "i64")
            p.test(f"ds.attention {{0}}, {{1}}, {{2}} [window else -1.0e+9] positions {{3}} {words}", [q, k, v, given], "f32",
                   [1, 2, s, 8], softmax(np.where(window(s, t, positions=near, **bounds), scores, -1e9)) @ v.wide, rtol=2e-5,
                   scale=1, what=f"positions {past}, {words}")
    p.verify(folder)


# Masks as models write them.

def choosing(text, elements="float"):
    return parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + f"""
chosen ({elements}[b, 2, s, 8] q, {elements}[b, 2, t, 8] k, {elements}[b, 2, t, 8] v, bool[b, 1, s, t] m, {elements}[b, 1, s, t] a)
  => ({elements}[b, 2, s, 8] y)
{{
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  s = MatMul (q, kt)
  {text}
  y = MatMul (w, v)
}}
""")


def draw(random, b, s, t, dtype=np.float32, whole=True, hidden=HUGE):
    """Queries, keys, values, a mask with keys that nobody sees and rows that see nothing, a bias."""
    seen = random.uniform(size=(b, 1, s, t)) < 0.6
    seen[..., t // 2:t // 2 + 2] = False
    if whole:
        seen[:, :, s // 2] = False
    else:
        seen[..., -1] = True
    q, k, v = (random.standard_normal((b, 2, n, 8)).astype(dtype) for n in (s, t, t))
    k[:, :, t // 2:t // 2 + 2] = random.choice([x for x in hidden if dtype != np.float16 or not abs(x) == 3e38])
    if not whole:  # the place that every row sees
        k[:, :, -1] = random.standard_normal((b, 2, 8))
    return {"q": q, "k": k, "v": v, "m": seen, "a": random.standard_normal((b, 1, s, t)).astype(dtype)}


@case(seconds=23)
def choices_around_scores(folder):
    """Each low number, alone, inside and around a bias, chosen where the mask holds or where not."""
    random = np.random.default_rng(SEED)
    names = {np.float32: "float", np.float64: "double", np.float16: "float16"}
    forms = {"keep": ("c = Where (m, s, low) w = Softmax (c)", lambda s, m, a, low: np.where(m, s, low)),
             "hide": ("n = Not (m) c = Where (n, low, s) w = Softmax (c)", lambda s, m, a, low: np.where(m, s, low)),
             "inside": ("c = Where (m, s, low) d = Add (c, a) w = Softmax (d)", lambda s, m, a, low: np.where(m, s, low) + a),
             "around": ("d = Add (s, a) c = Where (m, d, low) w = Softmax (c)", lambda s, m, a, low: np.where(m, s + a, low)),
             "scaled": ("c = Where (m, s, low) d = Mul (c, half) w = Softmax (d)", lambda s, m, a, low: np.where(m, s, low) / 2),
             "twice": ("c = Where (m, s, low) g = Greater (a, half) d = Where (g, half, c) w = Softmax (d)",
                       lambda s, m, a, low: np.where(a > 0.5, 0.5, np.where(m, s, low)))}
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-12), (np.float16, 4e-3)):
        least = float(np.finfo(dtype).min)
        for form, (text, chain) in forms.items():
            if dtype != np.float32 and form not in ("keep", "around"):
                continue
            for low in (-1e9 if dtype != np.float16 else -1e4, least, -np.inf):
                model = choosing(text, names[dtype])
                for name, number in (("low", low), ("half", 0.5)):
                    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number, dtype), name))
                onnx.save(model, folder / "chosen.onnx")
                found = graph_of(folder / "chosen.onnx", folder)
                expect(("y" in found) == (form != "scaled"), f"{form}: found {found}")
                tool("ds-opt", folder / "chosen.onnx", "-o", folder / "chosen.dsp")
                for b, s, t in ((1, 1, 1), (2, 5, 7), (2, 3, 40)):
                    # A finite number beside a bias leaves rows that are hidden as a whole to rounding in f32.
                    given = draw(random, b, s, t, dtype, whole=form != "inside" or np.isinf(low))
                    q, k, v, a = (given[name].astype(np.float64) for name in "qkva")
                    with np.errstate(all="ignore"):
                        expected = softmax(chain(q @ k.swapaxes(2, 3), given["m"], a, low)) @ v
                    compare(run_package(folder / "chosen.dsp", given, folder)["y"], expected,
                            f"seed {SEED}: {form} {low} {dtype.__name__} {(b, s, t)}", tolerance)


@case
def guarded_choices(folder):
    """Rows without a place give zeros, as in PyTorch's scaled_dot_product_attention; nothing else does."""
    random = np.random.default_rng(SEED + 1)
    model = choosing("c = Where (m, s, low) p = Softmax (c) n = IsNaN (p) w = Where (n, zero, p)")
    for name, number in (("low", -np.inf), ("zero", 0)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number, np.float32), name))
    onnx.save(model, folder / "guarded.onnx")
    expect("y" in graph_of(folder / "guarded.onnx", folder), "expected an attention")

    def outputs(given):
        q, k, v = (given[name].astype(np.float64) for name in "qkv")
        with np.errstate(all="ignore"):
            weights = softmax(np.where(given["m"], q @ k.swapaxes(2, 3), -np.inf))
        return {"y": np.where(np.isnan(weights), 0, weights) @ v}
    run_all(folder / "guarded.onnx", [draw(random, *sizes) for sizes in ((1, 1, 1), (2, 5, 7), (1, 20, 40))], outputs, folder)


@case(seconds=3)
def masks_that_only_look_like_choices(folder):
    """tf2onnx multiplies by the condition: the model's own ops give NaN for a hidden key of NaN, and so do ours. What is
    added does not hide NaN, either."""
    random = np.random.default_rng(SEED + 2)
    forms = {"multiplied": ("f = Cast <to = 1> (m) n = Not (m) g = Cast <to = 1> (n) h = Mul (f, s) l = Mul (g, low) "
                            "c = Add (h, l) w = Softmax (c)", lambda s, m: m * s + ~m * -1e9),
             "added": ("f = Cast <to = 1> (m) n = Sub (one, f) l = Mul (n, low) c = Add (s, l) w = Softmax (c)",
                       lambda s, m: s + (1.0 - m) * -1e9),
             "selected": ("l = Where (m, zero, low) c = Add (s, l) w = Softmax (c)", lambda s, m: s + np.where(m, 0, -1e9))}
    for form, (text, chain) in forms.items():
        model = choosing(text)
        for name, number in (("low", -1e9), ("one", 1), ("zero", 0)):
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number, np.float32), name))
        onnx.save(model, folder / "form.onnx")
        found = graph_of(folder / "form.onnx", folder)
        expect("y" in found and not re.search(r"\b(keep|hide) ", found["y"]), f"{form}: found {found}")
        # The flags are read where they are, not made numbers of.
        expect("multiply" in found["y"] or found["y"].endswith("keep_add % else -1.000000e+09]"), f"{form}: found {found}")

        def outputs(given):
            q, k, v = (given[name].astype(np.float64) for name in "qkv")
            with np.errstate(all="ignore"):
                return {"y": softmax(chain(q @ k.swapaxes(2, 3), given["m"])) @ v}
    # Of 3e38 only f32 makes infinity, which the chain in float64 does not.
        draws = [draw(random, *sizes, whole=False, hidden=HUGE[:3]) for sizes in ((2, 5, 7), (1, 2, 40))]
        finite = draw(random, 2, 6, 9, whole=False)
        finite["k"] = random.standard_normal(finite["k"].shape).astype(np.float32)
        run_all(folder / "form.onnx", draws + [finite], outputs, folder, variants=["--mcpu=host"])


@case(seconds=3)
def cache_rows_that_hold_nothing(folder):
    """GroupQueryAttention over a static cache: rows past the sequence may be NaN; each batch entry has its own length."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]>
cached (float[b, s, 32] q, float[b, s, 16] k, float[b, s, 16] v, float[b, 2, c, 8] pk, float[b, 2, c, 8] pv, int32[b] last, int32[1] total)
  => (float[b, s, 32] y, float[b, s, 32] z, float[b, 2, m, 8] nk, float[b, 2, m, 8] nv, float[b, 2, m, 8] ok, float[b, 2, m, 8] ov)
{
  y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2> (q, k, v, pk, pv, last, total)
  z, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, local_window_size = 3> (q, k, v, pk, pv, last, total)
}""")
    onnx.save(model, folder / "cached.onnx")
    random = np.random.default_rng(SEED + 3)
    tool("ds-opt", folder / "cached.onnx", "-o", folder / "cached.dsp")
    for s, c, past in (2, 12, [3, 0, 7]), (2, 2300, [1500, 0, 1023]), (700, 2300, [500, 0, 1500]):
        cached_rows(random, folder, s, c, np.array(past))


def cached_rows(random, folder, s, c, past):
    b = len(past)
    q, k, v = (random.standard_normal((b, s, n)).astype(np.float32) for n in (32, 16, 16))
    pk, pv = (random.standard_normal((b, 2, c, 8)).astype(np.float32) for _ in "kv")
    for i in range(b):
        pk[i, :, past[i]:] = np.nan
    inputs = {"q": q, "k": k, "v": v, "pk": pk, "pv": pv, "last": (past + s - 1).astype(np.int32), "total": np.array([past.max() + s], np.int32)}
    found = run_package(folder / "cached.dsp", inputs, folder)
    shared = run_package(folder / "cached.dsp", inputs, folder, "--threads=5")  # heads that share keys are on several threads
    expect(all(found[name].tobytes() == shared[name].tobytes() for name in "yz"), f"seed {SEED}: bits depend on threads, {s} rows behind {past}")
    heads = q.reshape(b, s, 4, 8).transpose(0, 2, 1, 3).astype(np.float64)
    for name, left in (("y", None), ("z", 2)):
        for i in range(b):
            keys, values = (np.repeat(np.concatenate([old[i, :, :past[i]], new[i].reshape(s, 2, 8).swapaxes(0, 1)], 1), 2, 0)
                            .astype(np.float64) for old, new in ((pk, k), (pv, v)))
            scores = heads[i] @ keys.swapaxes(1, 2) / np.sqrt(8)
            seen = window(s, past[i] + s, past[i], left=left, right=0)
            expected = softmax(np.where(seen, scores, -np.inf)) @ values
            compare(found[name][i], expected.swapaxes(0, 1).reshape(s, 32), f"seed {SEED}: {name} of batch entry {i} of {s} rows behind {past}")


@case(seconds=3)
def masks_that_a_run_finds_repeated(folder):
    """Batch and heads in one axis; the mask's may be 1 in a run, and so may its rows and columns."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
joined (float[6, s, 8] q, float[6, t, 8] k, float[6, t, 8] v, float[m, r, c] a) => (float[6, u, 8] y)
{
  kt = Transpose <perm = [0, 2, 1]> (k)
  x = MatMul (q, kt)
  f = Add (x, a)
  w = Softmax (f)
  y = MatMul (w, v)
}""")
    onnx.save(model, folder / "joined.onnx")
    text = tool("ds-opt", folder / "joined.onnx", "--stop-after=graph").out
    expect("ds.attention" in text, f"expected an attention:\n{text}")
    random = np.random.default_rng(SEED + 4)

    def outputs(given):
        q, k, v, a = (given[name].astype(np.float64) for name in "qkva")
        return {"y": softmax(q @ k.swapaxes(1, 2) + a) @ v}
    sizes = ((5, 7, (1, 5, 7)), (5, 7, (6, 1, 7)), (5, 7, (1, 1, 1)), (1, 1, (1, 1, 1)), (1, 7, (6, 1, 7)), (1, 7, (1, 5, 7)))
    draws = [{"q": random.standard_normal((6, s, 8)), "k": random.standard_normal((6, t, 8)), "v": random.standard_normal((6, t, 8)),
              "a": random.standard_normal(mask)} for s, t, mask in sizes]
    run_all(folder / "joined.onnx", [{name: x.astype(np.float32) for name, x in given.items()} for given in draws], outputs, folder)
