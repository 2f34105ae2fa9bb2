"""Masks around the windows of window_cases.py: stored tables that a recipe holds, offsets that the caller gives, positions
beside heads that joined the batch, sums of many masks. Numbers are NumPy's float64 of the model's own ops, with integers as
wide as the model's.
"""
import re

import numpy as np
import onnx
from onnx import parser

from kit import case, expect, same_numbers, tool
from mask_cases import SEED, graph_of, run_all, softmax, window

NUMBERS = {"zero": np.int64(0), "one": np.int64(1), "none": np.float32(0), "fone": np.float32(1), "low": np.float32(-1e4),
           "z1": np.array([0]), "ax": np.array([1]), "last": np.array([-1])}
COUNTED = """qs = Shape (q) ks = Shape (k) two = Constant <value_int = 2> () s = Gather (qs, two) t = Gather (ks, two)
  rows = Range (zero, s, one) cols = Range (zero, t, one) row = Unsqueeze (rows, ax)"""


def written(folder, text, constants, opset=18):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n' + text)
    used = set(re.findall(r"\w+", text))
    for name, value in (NUMBERS | constants).items():
        if name in used:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def chain(folder, lines, constants={}, s="s", t="t", more=""):
    """An attention whose softmax reads the `f` that the lines make of the scores x."""
    return written(folder, f"""
places (float[b, 2, {s}, 4] q, float[b, 2, {t}, 4] k, float[b, 2, {t}, 4] v{more}) => (float[b, 2, {s}, 4] y)
{{
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  x = MatMul (q, kt)
  {lines}
  w = Softmax (f)
  y = MatMul (w, v)
}}""", constants)


def draw(random, b, s, t):
    return {name: random.standard_normal((b, 2, n, 4)).astype(np.float32) for name, n in zip("qkv", (s, t, t))}


def weighted(given, scores):
    """What attention gives where `scores` makes of the products what the softmax reads."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    with np.errstate(all="ignore"):
        return {"y": softmax(scores(q @ k.swapaxes(-1, -2))) @ v}


def expect_steps(model, folder, pattern):
    found = graph_of(model, folder).get("y", "no attention").split("%, %, % ", 1)[-1]
    expect(re.fullmatch(pattern, found), f"expected '{pattern}', found '{found}'")


@case(seconds=5)
def tables_of_recipes(folder):
    """What is computed of large tables is done when the package is written: the recipe is read as the ops would be."""
    random, size = np.random.default_rng(SEED), 96
    triangle = np.tri(size, dtype=bool)
    tables = {"tri": triangle, "ones": np.tri(size, dtype=np.float32), "digits": random.integers(0, 10, (size, size)),
              "reals": random.standard_normal((size, size)).astype(np.float32), "three": np.int64(3), "half": np.float32(0.5)}
    few, positive = tables["digits"] <= 3, tables["reals"] > 0
    hidden = np.where(triangle, 0, -1e4)
    causal, added = r"\[window else -1\.0\S*\] right 0", r"\[window_add else -1\.0\S*\] right 0"
    forms = {
        "m = Where (tri, none, low) f = Add (x, m)": (added, lambda x: x + hidden),
        "n = Not (tri) m = Where (n, low, none) f = Add (x, m)": (added, lambda x: x + hidden),
        "c = Equal (ones, none) f = Where (c, low, x)": (causal, lambda x: np.where(triangle, x, -1e4)),
        "c = Greater (ones, none) f = Where (c, x, low)": (causal, lambda x: np.where(triangle, x, -1e4)),
        "c = Cast <to = 9> (ones) d = Not (c) f = Where (d, low, x)": (causal, lambda x: np.where(triangle, x, -1e4)),
        "c = LessOrEqual (digits, three) m = Where (c, none, low) f = Add (x, m)":
            (r"\[add %\]", lambda x: x + np.where(few, 0, -1e4)),
        "c = LessOrEqual (digits, three) f = Where (c, x, low)": (r"\[keep % else \S*\]", lambda x: np.where(few, x, -1e4)),
        "c = LessOrEqual (digits, three) m = Cast <to = 1> (c) f = Add (x, m)": (r"\[add %\]", lambda x: x + few),
        "c = Greater (reals, none) n = Cast <to = 1> (c) d = Sub (n, fone) m = Mul (d, half) f = Add (x, m)":
            (r"\[add %\]", lambda x: x + np.where(positive, 0, -0.5)),
    }
    for lines, (pattern, scores) in forms.items():
        model = chain(folder, lines, tables, size, size)
        expect_steps(model, folder, pattern)
        run_all(model, [draw(random, 2, size, size)], lambda given: weighted(given, scores), folder, variants=["--mcpu=host"])


@case
def operators_of_stored_tables(folder):
    """Whatever computes element by element is done when the package is written, and gives what ONNX Runtime computes."""
    random, shape = np.random.default_rng(SEED + 1), (64, 80)
    tables = {"w": random.standard_normal(shape).astype(np.float32), "u": random.standard_normal(shape).astype(np.float32),
              "i": random.integers(-50, 50, shape), "j": random.integers(1, 9, shape), "p": random.uniform(size=shape) < 0.5,
              "r": random.uniform(size=shape) < 0.5, "n": random.integers(0, 255, shape, dtype=np.uint8), "half": np.float32(0.5)}
    floats = {name: f"{name} (w)" for name in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Gelu", "HardSwish", "Mish", "Neg", "Relu",
                                               "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Tanh", "Sinh", "Atan", "Celu", "Selu")}
    floats |= {name: f"{name} (w, u)" for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")}
    floats |= {"tanh_gelu": 'Gelu <approximate = "tanh"> (w)', "choice": "Where (p, w, u)", "chosen": "Where (p, w, half)",
               "row": "Where (p, half, none)"}
    others = {name: f"{name} (i, j)" for name in ("Div", "Mod", "Equal", "Less", "GreaterOrEqual", "Max", "BitwiseAnd", "BitwiseXor")}
    others |= {name: f"{name} (p, r)" for name in ("And", "Or", "Xor")}
    others |= {"not": "Not (p)", "nan": "IsNaN (w)", "bits": "BitwiseNot (i)", "cast": "Cast <to = 7> (w)", "byte": "Cast <to = 2> (i)",
               "shift": 'BitShift <direction = "RIGHT"> (n, n)', "of_bytes": "Cast <to = 9> (n)", "integers": "Where (p, i, j)"}
    made = [f"a{at} = {op} y{at} = Add (x, a{at})" for at, op in enumerate(floats.values())]
    made += [f"a{at} = {op} c{at} = Cast <to = 1> (a{at}) y{at} = Add (x, c{at})" for at, op in enumerate(others.values(), len(made))]
    outputs = ", ".join(f"float[64, 80] y{at}" for at in range(len(made)))
    model = written(folder, f"stored (float[64, 80] x) => ({outputs}) {{\n  " + "\n  ".join(made) + "\n}", tables, opset=20)
    tool("ds-opt", model, "-o", folder / "graph.mlir", "--stop-after=graph")
    program = re.search(r"func\.func.*?\n  }", (folder / "graph.mlir").read_text(), re.S)[0]
    computed = set(re.findall(r"= (ds\.\w+)", program)) - {"ds.weight", "ds.binary"}
    expect(not computed and program.count("ds.binary") == len(made), f"expected sums alone, found {computed}, too")
    tool("ds-opt", model, "-o", folder / "model.dsp")
    same_numbers(folder / "model.dsp", model, {"x": random.standard_normal(shape).astype(np.float32)}, folder)


OFFSETS = {  # type of the offset, lines, what is read of them, what sees what
    "i64": (np.int64, "o = Add (row, n) m = LessOrEqual (cols, o)", r"\[window else \S*\] positions % right 0",
            lambda r, c, n: c <= r + n),
    "i32": (np.int32, "c = Cast <to = 6> (cols) r = Cast <to = 6> (row) o = Add (r, n) m = LessOrEqual (c, o)", r"\[keep % else \S*\]",
            lambda r, c, n: c.astype(np.int32) <= r.astype(np.int32) + n),
    "f32": (np.int32, "c = Cast <to = 1> (cols) r = Cast <to = 1> (row) g = Cast <to = 1> (n) o = Add (r, g) m = Greater (c, o)",
            r"\[keep % else \S*\]", lambda r, c, n: c.astype(np.float32) > r.astype(np.float32) + n.astype(np.float32)),
    # These hold every sum; of the first one, the width of n is not known any more.
    "wide": (np.int32, "g = Cast <to = 7> (n) o = Add (row, g) m = LessOrEqual (cols, o)", r"\[window else \S*\] positions % right 0",
             lambda r, c, n: c <= r + n.astype(np.int64)),
    "f64": (np.int32, "c = Cast <to = 11> (cols) r = Cast <to = 11> (row) g = Cast <to = 11> (n) o = Sub (c, g) m = Less (o, r)",
            r'\[window else \S*\] past \["n\[0\] - 1"\] right 0', lambda r, c, n: c - n.astype(np.float64) < r),
}


@case(seconds=24)
def offsets_that_the_caller_gives(folder):
    """An offset may be any number of its type. Where the sum with it wraps or rounds in the model, it does so here."""
    random = np.random.default_rng(SEED + 2)
    for name, (dtype, lines, pattern, sees) in OFFSETS.items():
        kind = "int64" if dtype == np.int64 else "int32"
        model = chain(folder, f"{COUNTED} {lines} f = Where (m, x, low)", more=f", {kind}[1] n")
        expect_steps(model, folder, pattern)
        limits, draws = np.iinfo(dtype), []
        for n in (0, 2, -2, 5, 2**24 + 1, limits.max, limits.max - 2, limits.min, limits.min + 2, limits.max // 2 + 1):
            draws += [draw(random, 2, s, t) | {"n": np.array([n], dtype)} for s, t in ((1, 1), (4, 4), (3, 7), (6, 2))]

        def outputs(given):
            s, t = given["q"].shape[2], given["k"].shape[2]
            with np.errstate(all="ignore"):
                seen = sees(np.arange(s)[:, None], np.arange(t), given["n"])
            return weighted(given, lambda x: np.where(seen, x, -1e4))
        run_all(model, draws, outputs, folder, variants=["--mcpu=host", "--reference"])


@case(seconds=2)
def positions_of_heads_in_the_batch(folder):
    """Positions for each of batch times heads stand beside products of rank 3: those of the attention have rank 4."""
    random = np.random.default_rng(SEED + 3)
    for batch, heads in ((2, 1), (2, 2), (1, 2)):
        n = batch * heads
        model = written(folder, f"""
joined (float[{n}, s, 4] q, float[{n}, s, 4] k, float[{n}, s, 4] v, int64[{n}, s, 1] p) => (float[{n}, s, 4] y) {{
  kt = Transpose <perm = [0, 2, 1]> (k)
  x = MatMul (q, kt)
  qs = Shape (q) s = Gather (qs, one) cols = Range (zero, s, one) s1 = Reshape (s, last)
  m = LessOrEqual (cols, p)
  c = Where (m, x, low)
  four = Concat <axis = 0> (split, s1, s1)
  f = Reshape (c, four)
  u = Softmax (f)
  three = Concat <axis = 0> (join, s1, s1)
  w = Reshape (u, three)
  y = MatMul (w, v)
}}""", {"split": np.array([batch, heads]), "join": np.array([n])})

        def outputs(given):
            seen = np.arange(given["q"].shape[1]) <= given["p"]
            return weighted(given, lambda x: np.where(seen, x, -1e4))
        draws = [{name: random.standard_normal((n, s, 4)).astype(np.float32) for name in "qkv"} | {"p": random.integers(0, s, (n, s, 1))}
                 for s in (1, 3, 9)]
        run_all(model, draws, outputs, folder, variants=["--mcpu=host"])


def doubled(levels):
    """Lines of attentions whose masks are made in levels, each of which reads the one below twice; what becomes of the scores."""
    sums = " ".join(f"m{i + 1} = Add (m{i}, m{i})" for i in range(levels))
    choices = " ".join(f"a{i} = And (m{i}, u) m{i + 1} = Xor (m{i}, a{i})" for i in range(levels))
    return ((f"{sums} f = Add (x, m{levels})", ", float[s, t] m0", lambda g, x: x + 2.0**levels * g["m0"]),
            (f"{COUNTED} c = LessOrEqual (cols, row) m0 = Where (c, none, small) {sums} f = Add (x, m{levels})", "",
             lambda g, x: x + np.where(window(*x.shape[2:], right=0), 0, -1.0)),
            (f"{COUNTED} s1 = Reshape (s, last) t1 = Reshape (t, last) st = Concat <axis = 0> (s1, t1) m0 = Expand (e, st) "
             f"{choices} f = Where (m{levels}, x, low)", ", bool[1, t] e, bool[1, t] u", lambda g, x: np.where(g["e"] & ~g["u"], x, -1e4)))


@case
def masks_that_are_sums_of_themselves(folder):
    """The time to read them must not double with each level."""
    random = np.random.default_rng(SEED + 4)
    for lines, more, _ in doubled(60):
        model = chain(folder, lines, {"small": np.float32(-2.0**-60)}, more=more)
        tool("ds-opt", model, "-o", folder / "graph.mlir", "--stop-after=graph", timeout=30)
    for lines, more, scores in doubled(6):
        model = chain(folder, lines, {"small": np.float32(-2.0**-6)}, more=more)
        draws = []
        for s, t in ((1, 1), (3, 5)):
            draws.append(draw(random, 2, s, t))
            if "m0" in more:
                draws[-1]["m0"] = (random.standard_normal((s, t)) * 2.0**-6).astype(np.float32)
            if "bool" in more:
                draws[-1] |= {name: random.uniform(size=(1, t)) < 0.5 for name in "eu"}
        run_all(model, draws, lambda g: weighted(g, lambda x: scores(g, x)), folder, variants=["--mcpu=host"])
