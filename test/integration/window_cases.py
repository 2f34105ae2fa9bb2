"""Causal and sliding-window masks in the forms that exporters write: which become windows, and NumPy's numbers either way."""
import re

import numpy as np
import onnx
from onnx import parser

from kit import case, expect, tool
from mask_cases import SEED, compare, graph_of, run_all, softmax, window

LOW = -3.4028234663852886e38
SIZES = ((1, 0), (1, 6), (5, 0), (4, 3), (9, 2))  # rows and past; stored tables have 12 columns
HEAD = """
forms (float[b, 2, s, 4] q, float[b, 2, p, 4] pk, float[b, 2, s, 4] nk, float[b, 2, p, 4] pv, float[b, 2, s, 4] nv,
       bool[b, 1, 1, t] pad) => (%s)
{
  k = Concat <axis = 2> (pk, nk)
  v = Concat <axis = 2> (pv, nv)
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  x = MatMul (q, kt)
  two = Constant <value_int = 2> ()
  qs = Shape (q)
  ks = Shape (k)
  s = Gather (qs, two)
  t = Gather (ks, two)
  past = Sub (t, s)
  rows = Range (zero, s, one)
  cols = Range (zero, t, one)
  row = Unsqueeze (rows, ax)
  place = Add (row, past)
  s1 = Reshape (s, ax)
  t1 = Reshape (t, ax)
  past1 = Reshape (past, ax)
  st = Concat <axis = 0> (s1, t1)
"""
NUMBERS = {"zero": np.int64(0), "one": np.int64(1), "three": np.int64(3), "ax": np.array([1]), "low": np.float32(LOW),
           "none": np.float32(0), "inf": np.float32(-np.inf), "ten": np.float32(-1e4), "fone": np.float32(1),
           "z1": np.array([0]), "ax2": np.array([2]), "ax3": np.array([3]), "d1": np.array([12])}
TRIANGLE = np.tri(12, dtype=bool)


def banded(size, left):
    return np.tri(size, dtype=bool) & ~np.tri(size, k=-left - 1, dtype=bool)


def flipped(row, column):
    table = TRIANGLE.copy()
    table[row, column] ^= True
    return table


def build(forms, folder, tables):
    """One model with an attention for each form: name -> text that makes `f` (scores for the softmax) of x."""
    outputs = ", ".join(f"float[b, 2, s, 4] {name}" for name in forms)
    text = HEAD % outputs
    for name, (lines, *_) in forms.items():
        own = set(re.findall(r"(\w+) =", lines)) - {"axis", "to", "upper", "value", "keepdims"}
        text += "  " + re.sub(r"\b(%s)\b" % "|".join(own), rf"\1_{name}", lines)
        text += f"\n  w_{name} = Softmax (f_{name})\n  {name} = MatMul (w_{name}, v)\n"
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + text + "}")
    used = set(re.findall(r"\w+", text))
    for name, value in (NUMBERS | tables).items():
        if name in used:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    path = folder / "forms.onnx"
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def draw(random, s, p, b=2):
    shapes = {"q": s, "pk": p, "nk": s, "pv": p, "nv": s}
    given = {name: random.standard_normal((b, 2, n, 4)).astype(np.float32) for name, n in shapes.items()}
    seen = random.uniform(size=(b, 1, 1, s + p)) < 0.7
    seen[..., 0] = True  # scores minus 1e4 would lose digits where a row sees nothing else
    return given | {"pad": seen}


def check(forms, folder, tables={}):
    """Each form becomes what is written beside it, a pattern for the whole attention, and has its chain's numbers."""
    random = np.random.default_rng(SEED)
    model = build(forms, folder, tables)
    graph = graph_of(model, folder)
    for name, (_, pattern, _) in forms.items():
        expect(name in graph, f"{name} is no attention: {graph}")
        steps = graph[name].split("%, %, % ", 1)[-1] if " " in graph[name] else ""
        expect(re.fullmatch(pattern, steps), f"{name}: expected '{pattern}', found '{steps}'")

    def outputs(given):
        k, v = (np.concatenate([given["p" + x], given["n" + x]], 2).astype(np.float64) for x in "kv")
        x = given["q"].astype(np.float64) @ k.swapaxes(2, 3)
        s, t = x.shape[2:]
        with np.errstate(all="ignore"):
            return {name: softmax(chain(x, s, t, given)) @ v for name, (_, _, chain) in forms.items()}
    run_all(model, [draw(random, *sizes) for sizes in SIZES], outputs, folder, variants=["--mcpu=host", "--reference"])


def chosen(low=LOW, **bounds):
    """Hidden scores become the low number; rows stand behind the past."""
    return lambda x, s, t, given: np.where(window(s, t, t - s, **bounds), x, low)


def added(low, **bounds):
    return lambda x, s, t, given: x + np.where(window(s, t, t - s, **bounds), 0, low)


CAUSAL = r'\[window else -3\.40\S*\] past \["p"\] right 0'


@case(seconds=12)
def comparisons(folder):
    check({
        "le": ("m = LessOrEqual (cols, place) f = Where (m, x, low)", CAUSAL, chosen(right=0)),
        "ge": ("m = GreaterOrEqual (place, cols) f = Where (m, x, low)", CAUSAL, chosen(right=0)),
        "later": ("m = Greater (cols, place) f = Where (m, low, x)", CAUSAL, chosen(right=0)),
        "earlier": ("m = Less (place, cols) n = Not (m) f = Where (n, x, low)", CAUSAL, chosen(right=0)),
        "moved": ("m = Sub (cols, past) l = LessOrEqual (m, row) f = Where (l, x, low)", CAUSAL, chosen(right=0)),
        "expanded": ("m = LessOrEqual (cols, place) e = Expand (m, st) f = Where (e, x, low)", CAUSAL, chosen(right=0)),
        "infinite": ("m = LessOrEqual (cols, place) f = Where (m, x, inf)", r'\[window else 0xFFF0000000000000\] past \["p"\] right 0',
                     chosen(-np.inf, right=0)),
        # One more place, or one less, is another window; rows without their past stand elsewhere.
        "ahead": ("n = Add (place, one) m = LessOrEqual (cols, n) f = Where (m, x, low)",
                  r'\[window else \S*\] past \["p"\] right 1', chosen(right=1)),
        "strict": ("m = Less (cols, place) f = Where (m, x, low)", r'\[window else \S*\] past \["p"\] right -1', chosen(right=-1)),
        "unmoved": ("m = LessOrEqual (cols, row) f = Where (m, x, low)", r"\[window else \S*\] right 0",
                    lambda x, s, t, given: np.where(window(s, t, 0, right=0), x, LOW)),
        "turned": ("m = GreaterOrEqual (cols, place) f = Where (m, x, low)", r'\[window else \S*\] past \["p"\] left 0',
                   chosen(left=0)),
        "hidden": ("m = LessOrEqual (cols, place) f = Where (m, low, x)", r'\[window else \S*\] past \["p"\] left -1',
                   chosen(left=-1)),
    }, folder)


@case(seconds=6)
def comparisons_that_are_no_windows(folder):
    def keep(seen):
        return lambda x, s, t, given: np.where(seen(np.arange(s)[:, None], np.arange(t), t - s, given), x, LOW)
    mask = r"\[keep % else -3\.40\S*\]"
    check({
        "equal": ("m = Equal (cols, place) f = Where (m, x, low)", mask, keep(lambda i, j, p, g: j == i + p)),
        "double": ("c = Add (cols, cols) m = LessOrEqual (c, place) f = Where (m, x, low)", mask,
                   keep(lambda i, j, p, g: 2 * j <= i + p)),
        "columns": ("m = LessOrEqual (cols, three) f = Where (m, x, low)", mask, keep(lambda i, j, p, g: (j <= 3) | (i < 0))),
        "of_rows": ("m = LessOrEqual (row, three) f = Where (m, x, low)", mask, keep(lambda i, j, p, g: (i <= 3) | (j < 0))),
        "sum": ("c = Add (cols, row) m = LessOrEqual (c, three) f = Where (m, x, low)", mask, keep(lambda i, j, p, g: i + j <= 3)),
        "bytes": ("c = Cast <to = 3> (cols) r = Cast <to = 3> (place) m = LessOrEqual (c, r) f = Where (m, x, low)", mask,
                  keep(lambda i, j, p, g: j <= i + p)),
        "either": ("l = LessOrEqual (cols, place) m = Or (l, pad) f = Where (m, x, low)", mask,
                   keep(lambda i, j, p, g: (j <= i + p) | g["pad"])),
        "half": ("c = Cast <to = 10> (cols) r = Cast <to = 10> (place) m = LessOrEqual (c, r) f = Where (m, x, low)", mask,
                 keep(lambda i, j, p, g: j <= i + p)),
    }, folder)


@case(seconds=12)
def windows_of_two_bounds(folder):
    two = r'\[window else -3\.40\S*\] past \["p"\] '
    check({
        "sliding": ("m = LessOrEqual (cols, place) o = Sub (place, three) n = Greater (cols, o) a = And (m, n) f = Where (a, x, low)",
                    two + "left 2 right 0", chosen(left=2, right=0)),
        "wider": ("m = LessOrEqual (cols, place) o = Sub (place, three) n = GreaterOrEqual (cols, o) a = And (n, m) f = Where (a, x, low)",
                  two + "left 3 right 0", chosen(left=3, right=0)),
        "outside": ("m = Greater (cols, place) d = Sub (place, cols) n = GreaterOrEqual (d, three) a = Or (m, n) f = Where (a, low, x)",
                    two + "left 2 right 0", chosen(left=2, right=0)),
        "local": ("d = Sub (cols, place) a = Abs (d) m = LessOrEqual (a, one) f = Where (m, x, low)",
                  two + "left 1 right 1", chosen(left=1, right=1)),
        "far": ("d = Sub (place, cols) a = Abs (d) m = Greater (a, three) f = Where (m, low, x)",
                two + "left 3 right 3", chosen(left=3, right=3)),
        "near": ("d = Sub (place, cols) a = Abs (d) m = Less (a, three) n = Not (m) f = Where (n, low, x)",
                 two + "left 2 right 2", chosen(left=2, right=2)),
        "nested": ("m = LessOrEqual (cols, place) g = Where (m, x, low) o = Sub (place, three) n = Greater (cols, o) f = Where (n, g, low)",
                   r".*keep %.*window else .*|.*window else .*keep %.*", chosen(left=2, right=0)),
        "away": ("d = Sub (place, cols) a = Abs (d) m = Greater (a, three) f = Where (m, x, low)", r"\[keep % else \S*\]",
                 lambda x, s, t, given: np.where(~window(s, t, t - s, left=3, right=3), x, LOW)),
    }, folder)


@case(seconds=4)
def windows_beside_padding(folder):
    def seen(s, t, given):
        return window(s, t, t - s, right=0) & given["pad"]

    def padded(x, s, t, given):
        return np.where(seen(s, t, given), x, LOW)
    after = r'\[keep % else -3\.40\S*, window else -3\.40\S*\] past \["p"\] right 0'
    check({
        "both": ("m = LessOrEqual (cols, place) a = And (m, pad) f = Where (a, x, low)", after, padded),
        "neither": ("m = Greater (cols, place) n = Not (pad) a = Or (m, n) f = Where (a, low, x)", after, padded),
        "biased": ("m = LessOrEqual (cols, place) a = And (pad, m) g = Where (a, none, low) f = Add (x, g)",
                   r'\[window_mask % else -3\.40\S*\] past \["p"\] right 0', lambda x, s, t, given: x + np.where(seen(s, t, given), 0, LOW)),
        "summed": ("m = LessOrEqual (cols, place) g = Where (m, none, inf) n = Where (pad, none, ten) l = Add (n, g) f = Add (x, l)",
                   r'\[keep_add % else -1\.0\S*e\+04, window_add else 0xFFF0000000000000\] past \["p"\] right 0', lambda x, s, t, given: x + np.where(
                       given["pad"], 0, -1e4) + np.where(window(s, t, t - s, right=0), 0, -np.inf)),
        "then": ("m = LessOrEqual (cols, place) g = Where (m, x, low) n = Where (pad, none, ten) f = Add (g, n)",
                 r'\[window else -3\.40\S*, keep_add % else -1\.0\S*e\+04\] past \["p"\] right 0', lambda x, s, t, given: np.where(
                     window(s, t, t - s, right=0), x, LOW) + np.where(given["pad"], 0, -1e4)),
        "first": ("n = Where (pad, none, ten) g = Add (x, n) m = LessOrEqual (cols, place) f = Where (m, g, low)",
                  r'\[keep_add % else -1\.0\S*e\+04, window else -3\.40\S*\] past \["p"\] right 0', lambda x, s, t, given: np.where(
                      window(s, t, t - s, right=0), x + np.where(given["pad"], 0, -1e4), LOW)),
        "weak": ("m = LessOrEqual (cols, place) c = Cast <to = 1> (m) d = Sub (fone, c) g = Mul (d, ten) n = Where (pad, x, low) f = Add (n, g)",
                 r'\[keep % else \S*, window_add else -1\.0\S*e\+04\] past \["p"\] right 0', lambda x, s, t, given: np.where(
                     given["pad"], x, LOW) + np.where(window(s, t, t - s, right=0), 0, -1e4)),
    }, folder)


@case(seconds=3)
def triangles_of_ones(folder):
    """Trilu of what is filled, as older exporters write: of numbers to add, of ones, of conditions."""
    full = "e = Expand (%s, st) "
    check({
        "upper": ("n = Add (past, one) " + full % "low" + "g = Trilu <upper = 1> (e, n) f = Add (x, g)",
                  r'\[window_add else -3\.40\S*\] past \["p"\] right 0', added(LOW, right=0)),
        "lower": (full % "fone" + "g = Trilu <upper = 0> (e, past) c = Cast <to = 9> (g) f = Where (c, x, low)", CAUSAL, chosen(right=0)),
        "inverse": (full % "fone" + "g = Trilu <upper = 0> (e, past) d = Sub (fone, g) h = Mul (d, ten) f = Add (x, h)",
                    r'\[window_add else -1\.0\S*e\+04\] past \["p"\] right 0', added(-1e4, right=0)),
        "zeros": (full % "one" + "g = Trilu <upper = 0> (e, past) c = Equal (g, zero) f = Where (c, low, x)", CAUSAL, chosen(right=0)),
        # The diagonal itself hidden.
        "diagonal": (full % "low" + "g = Trilu <upper = 1> (e, past) f = Add (x, g)",
                     r'\[window_add else -3\.40\S*\] past \["p"\] right -1', added(LOW, right=-1)),
        "unmoved": (full % "one" + "g = Trilu <upper = 0> (e) c = Cast <to = 9> (g) f = Where (c, x, low)", r"\[window else \S*\] right 0",
                    lambda x, s, t, given: np.where(window(s, t, 0, right=0), x, LOW)),
    }, folder)


@case(seconds=12)
def stored_triangles(folder):
    """A table of 12 places cut to rows and columns, as GPT-2's. One element off, or cut elsewhere, it is a mask."""
    cut = "a = Slice (%s, past1, t1, ax2) c = Slice (a, z1, t1, ax3) "
    where = cut + "f = Where (c, x, low)"
    mask, table = r"\[keep % else -3\.40\S*\]", r'\[window else -3\.40\S*\] past \["p"\] %sright 0 capacity 12'
    four = {name: value[None, None] for name, value in {
        "tri": TRIANGLE, "slid": banded(12, 3), "off": flipped(7, 9), "hole": flipped(9, 4), "above": np.tri(12, k=1, dtype=bool),
        "tall": np.tri(14, 12, dtype=bool), "numbers": np.tri(12, dtype=np.float32), "bytes": np.tri(12, dtype=np.uint8),
        "three_values": np.tri(12, dtype=np.float32) + np.tri(12, k=-4, dtype=np.float32),
        "lows": np.triu(np.full((12, 12), -1e4, np.float32), 1)}.items()}

    def looked(name, low=LOW):
        return lambda x, s, t, given: np.where(four[name][0, 0, t - s:t, :t] != 0, x, low)
    check({
        "y_tri": (where % "tri", table % "", looked("tri")),
        "y_slid": (where % "slid", table % "left 3 ", looked("slid")),
        "y_tall": (where % "tall", table % "", looked("tall")),
        "y_above": (where % "above", r'\[window else \S*\] past \["p"\] right 1 capacity 12', looked("above")),
        "y_bytes": (cut % "bytes" + "d = Cast <to = 9> (c) f = Where (d, x, low)", table % "", looked("bytes")),
        "y_off": (where % "off", mask, looked("off")),
        "y_hole": (where % "hole", mask, looked("hole")),
        "y_values": (cut % "three_values" + "d = Cast <to = 9> (c) f = Where (d, x, low)", mask, looked("three_values")),
        "y_ones": (cut % "numbers" + "d = Sub (fone, c) e = Mul (d, ten) f = Add (x, e)",
                   r'\[window_add else -1\.0\S*\] past \["p"\] right 0 capacity 12', added(-1e4, right=0)),
        "y_lows": (cut % "lows" + "f = Add (x, c)", r'\[window_add else -1\.0\S*\] past \["p"\] right 0 capacity 12', added(-1e4, right=0)),
        # Not behind the past: the first rows of the table.
        "y_first": ("a = Slice (tri, z1, s1, ax2) c = Slice (a, z1, t1, ax3) f = Where (c, x, low)", r"\[window else \S*\] right 0 capacity 12",
                    lambda x, s, t, given: np.where(TRIANGLE[:s, :t], x, LOW)),
    }, folder, four)


@case
def triangles_in_files(folder):
    """Tables too large for constants of the IR: the importer reads them, in the type that they are stored in."""
    size = 96
    kinds = "bool uint8 int8 uint16 int32 int64 float16 float32 float64".split()
    tables = {f"of_{kind}": np.tri(size, dtype=kind)[None, None] for kind in kinds}
    cut = "a = Slice (%s, past1, t1, ax2) c = Slice (a, z1, t1, ax3) "
    forms = {f"y_{name}": (cut % name + "d = Cast <to = 9> (c) f = Where (d, x, low)", r'\[window else \S*\] past \["p"\] right 0 capacity 96',
                           chosen(right=0)) for name in tables}
    # Two numbers that are one double: only the diagonal holds the lesser one.
    tables["near"] = tables["of_int64"] * 2**60 + np.tri(size, k=-1, dtype=np.int64)
    tables["lesser"] = np.int64(2**60)
    tables["next"] = tables["of_int64"] * 2**53 + np.tri(size, k=-1, dtype=np.int64)
    tables["two53"] = np.int64(2**53)
    forms["y_next"] = (cut % "next" + "d = Equal (c, two53) f = Where (d, x, low)", r"\[keep % else -3\.40\S*\]",
                       lambda x, s, t, given: np.where(np.eye(size, dtype=bool)[t - s:t, :t], x, LOW))
    forms["y_near"] = (cut % "near" + "d = Equal (c, lesser) f = Where (d, x, low)", r"\[keep % else -3\.40\S*\]",
                       lambda x, s, t, given: np.where(np.eye(size, dtype=bool)[t - s:t, :t], x, LOW))
    check(forms, folder, tables)


@case
def more_keys_than_a_table_holds(folder):
    """The table limits the model; its window does not make it longer."""
    random = np.random.default_rng(SEED)
    model = build({"y": ("a = Slice (tri, past1, t1, ax2) c = Slice (a, z1, t1, ax3) f = Where (c, x, low)", "", None)}, folder,
                  {"tri": TRIANGLE[None, None]})
    tool("ds-opt", model, "-o", folder / "model.dsp")
    np.savez(folder / "inputs.npz", **draw(random, 5, 8))
    tool("ds-run", folder / "model.dsp", "--inputs", folder / "inputs.npz", "--output", folder / "out.npz", code=1, says="does not hold")


# Conditions that would be windows if their numbers had no width: (constants, text, what NumPy has for it).
WRAPPING = {
    "i32 limit": ({"big": np.int32(2147483646)}, "c = Cast <to = 6> (cols) r = Cast <to = 6> (row) lim = Add (r, big) "
                  "m = LessOrEqual (c, lim)", lambda r, c: c.astype(np.int32) <= (r.astype(np.int32) + np.int32(2147483646))),
    "i32 casts": ({"big": np.int64(2147483646)}, "d = Add (cols, big) c = Cast <to = 6> (d) e = Add (row, big) "
                  "r = Cast <to = 6> (e) m = LessOrEqual (c, r)",
                  lambda r, c: (c + 2147483646).astype(np.int32) <= (r + 2147483646).astype(np.int32)),
    "f32 places": ({"big": np.float32(1e9)}, "c = Cast <to = 1> (cols) d = Add (c, big) r = Cast <to = 1> (row) "
                   "e = Add (r, big) m = LessOrEqual (d, e)",
                   lambda r, c: c.astype(np.float32) + np.float32(1e9) <= r.astype(np.float32) + np.float32(1e9)),
    "i64 places": ({"big": np.int64(2**63 - 3)}, "c = Add (cols, big) r = Add (row, big) m = LessOrEqual (c, r)",
                   lambda r, c: c + np.int64(2**63 - 3) <= r + np.int64(2**63 - 3)),
    "i32 product": ({"big": np.int32(2147483647), "i": np.int32(1), "five": np.int32(5)},
                    "seen = LessOrEqual (cols, row) n = Cast <to = 6> (seen) p = Mul (n, big) q1 = Add (p, i) "
                    "m = Greater (q1, five)",
                    lambda r, c: (c <= r).astype(np.int32) * np.int32(2147483647) + np.int32(1) > 5),
    "i64 product": ({"big": np.int64(2**40), "none": np.int64(0), "more": np.int64(2**24)},
                    "seen = LessOrEqual (cols, row) n = Where (seen, big, none) p = Mul (n, more) m = Greater (p, none)",
                    lambda r, c: np.where(c <= r, np.int64(2**40), 0) * np.int64(2**24) > 0),
    "i64 doubles": ({"big": np.int64(2**53), "none": np.int64(0), "next": np.int64(2**53 + 1)},
                    "seen = LessOrEqual (cols, row) n = Where (seen, big, none) m = Equal (n, next)",
                    lambda r, c: np.where(c <= r, 2**53, 0) == 2**53 + 1),
}


@case(seconds=12)
def conditions_whose_numbers_wrap_or_round(folder):
    """Arithmetic of indices has the width of its type: what wraps in i32 or rounds in f32 is no window."""
    random = np.random.default_rng(SEED + 7)
    for name, (constants, text, condition) in WRAPPING.items():
        model = parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + f"""
wraps (float[b, 2, s, 4] q, float[b, 2, t, 4] k, float[b, 2, t, 4] v) => (float[b, 2, s, 4] y)
{{
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  x = MatMul (q, kt)
  two = Constant <value_int = 2> ()
  qs = Shape (q) ks = Shape (k) s = Gather (qs, two) t = Gather (ks, two)
  zero = Constant <value_int = 0> () one = Constant <value_int = 1> () ax = Constant <value_ints = [1]> ()
  rows = Range (zero, s, one) cols = Range (zero, t, one) row = Unsqueeze (rows, ax)
  {text}
  low = Constant <value_float = -1e4> ()
  chosen = Where (m, x, low)
  w = Softmax (chosen)
  y = MatMul (w, v)
}}
""")
        for constant, number in constants.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(number), constant))
        onnx.save(model, folder / "wraps.onnx")

        def outputs(given):
            q, k, v = (given[which].astype(np.float64) for which in "qkv")
            r, c = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
            with np.errstate(all="ignore"):
                seen = condition(r, c)
            return {"y": softmax(np.where(seen, q @ k.swapaxes(2, 3), -1e4)) @ v}
        feeds = [{which: random.standard_normal((2, 2, n, 4)).astype(np.float32) for which, n in zip("qkv", (s, t, t))}
                 for s, t in ((1, 1), (5, 5), (3, 20))]
        run_all(folder / "wraps.onnx", feeds, outputs, folder)
