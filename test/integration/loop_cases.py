"""Loop, Scan and If against ONNX Runtime on fresh random inputs: trip counts, conditions, nesting, carried values."""
import numpy as np

from kit import case, compile_model, expect, run_package, same_numbers, tool
from programs import SEED


def agrees(folder, text, inputs, name="m"):
    """The textual model on every set of inputs; loops only repeat single f32 operations, so the bits are near."""
    from onnx import parser, save
    model = folder / f"{name}.onnx"
    save(parser.parse_model('<ir_version: 8, opset_import: ["" : 16]>\n' + text), model)
    package = compile_model(model, folder, name=f"{name}.dsp")
    for feeds in inputs:
        same_numbers(package, model, feeds, folder, tolerance=1e-5)
    return package


def scalar(value, kind=np.int64):
    return np.array(value, kind)


COLLECT = """
m (float[n, 2] x, int64 trip, bool go) => (float[n, 2] last, float[k, n, 2] all, int64[k] counters) {
  last, all, counters = Loop (trip, go, x) <body = b (int64 i, bool c, float[n, 2] a) => (bool d, float[n, 2] next, float[n, 2] out, int64 j) {
    d = Identity (c)
    f = Cast <to = 1> (i)
    twice = Add (a, x)
    next = Sub (twice, f)
    out = Tanh (next)
    j = Mul (i, i)
  }>
}
"""

UNTIL = """
m (float[4] x, float limit, int64 most) => (float[4] last, float[k, 4] all, float[4] other) {
  start = Identity (limit)
  last, other, all = Loop (most, "", x, x) <body = b (int64 i, bool c, float[4] a, float[4] z) => (bool d, float[4] next, float[4] swapped, float[4] out) {
    next = Add (a, z)
    swapped = Identity (a)
    out = Neg (next)
    largest = ReduceMax <keepdims = 0> (next)
    d = Less (largest, start)
  }>
}
"""

NESTED = """
m (float[r, c] x, int64 inner) => (float[c] total, float[r, k] parts) <int64 one = {1}, float half = {0.5}> {
  zero = Constant <value = float[1] {0.0}> ()
  shape = Shape (x)
  cols = Gather (shape, one)
  axis = Constant <value = int64[1] {0}> ()
  last = Unsqueeze (cols, axis)
  wide = Expand (zero, last)
  total, parts = Scan <num_scan_inputs = 1, body = outer (float[c] t, float[c] row) => (float[c] sum, float[k] part) {
    sum = Add (t, row)
    small = ReduceSum <keepdims = 0> (row)
    end, part = Loop (inner, "", small) <body = b (int64 i, bool g, float s) => (bool h, float next, float out) {
      h = Identity (g)
      grown = Mul (s, half)
      biased = ReduceMax <keepdims = 0> (sum)
      next = Add (grown, biased)
      out = Identity (next)
    }>
  }> (wide, x)
}
"""

BACKWARDS = """
m (float[b, s, h] x, float[b, h] state) => (float[b, h] end, float[b, h, s] forth, float[s, b, h] back) {
  end, forth, back = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
      scan_output_axes = [2, 0], scan_output_directions = [0, 1],
      body = step (float[b, h] t, float[b, h] row) => (float[b, h] next, float[b, h] y, float[b, h] z) {
    both = Add (t, row)
    next = Sigmoid (both)
    y = Identity (next)
    z = Mul (next, row)
  }> (state, x)
}
"""

GROWING = """
m (float[2] x) => (float[k] grown) <int64 three = {3}> {
  grown = Loop (three, "", x) <body = b (int64 i, bool c, float[p] a) => (bool d, float[q] next) {
    d = Identity (c)
    next = Concat <axis = 0> (a, x)
  }>
}
"""

CHOICES = """
m (float[n] x, float[n] y, bool c, bool e) => (float[n] a, float[n] b) {
  a = If (c) <then_branch = t () => (float[n] p) { p = Identity (x) }, else_branch = f () => (float[n] q) { q = Identity (y) }>
  b = If (c) <
    then_branch = t2 () => (float[n] p2) {
      p2 = If (e) <then_branch = t3 () => (float[n] p3) { p3 = Exp (x) }, else_branch = f3 () => (float[n] q3) { q3 = Neg (a) }>
    },
    else_branch = f2 () => (float[n] q2) { q2 = Add (x, y) }>
}
"""


@case
def collects_for_every_trip_count(folder):
    random = np.random.default_rng(SEED)
    inputs = [{"x": random.standard_normal((n, 2)).astype(np.float32), "trip": scalar(trip), "go": scalar(go, bool)}
              for n, trip, go in [(3, 5, True), (1, 1, True), (4, 0, True), (2, 7, False), (2, -3, True)]]
    package = agrees(folder, COLLECT, inputs[:2])
    # ONNX Runtime gives stacks of no iterations the size 0 wherever the body does not state one; the body computes with
    # tensors of the shape of x, and so do we.
    for feeds in inputs[2:]:
        found = run_package(package, feeds, folder)
        expected = {"last": feeds["x"], "all": np.zeros((0, *feeds["x"].shape), np.float32), "counters": np.zeros(0, np.int64)}
        for name, array in expected.items():
            expect(found[name].dtype == array.dtype and np.array_equal(found[name], array),
                   f"{name}: expected {array.dtype} {array.shape} {array}, found {found[name].dtype} {found[name].shape} {found[name]}")


@case
def ends_by_condition(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, UNTIL, [{"x": random.uniform(0.1, 1, 4).astype(np.float32), "limit": scalar(limit, np.float32),
                            "most": scalar(most)}
                           for limit, most in [(50, 1 << 40), (50, 3), (-1, 9), (1e4, 0), (300, 1000)]])


@case
def of_no_trips(folder):
    """Fewer than none are none, whether the count is stored or given."""
    x = np.random.default_rng(SEED).standard_normal(3).astype(np.float32)
    text = """
m (float[3] x) => (float[3] last, float[k, 3] all) <int64 trip = {COUNT}> {
  last, all = Loop (trip, "", x) <body = b (int64 i, bool c, float[3] a) => (bool d, float[3] next, float[3] out) {
    d = Identity (c)
    next = Add (a, a)
    out = Neg (next)
  }>
}
"""
    for count in (0, -1, -(1 << 63) + 1, -1 << 63):
        agrees(folder, text.replace("COUNT", str(count)), [{"x": x}], name=f"stored{-count}")
    given = text.replace("float[3] x)", "float[3] x, int64 trip)").replace(" <int64 trip = {COUNT}>", "")
    agrees(folder, given, [{"x": x, "trip": scalar(count)} for count in (2, 0, -1, -1 << 63)])


@case
def nests(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, NESTED, [{"x": random.standard_normal(shape).astype(np.float32), "inner": scalar(inner)}
                            for shape, inner in [((3, 4), 2), ((1, 1), 5), ((5, 2), 0)]])


@case
def scans_backwards_along_any_axis(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, BACKWARDS, [{"x": random.standard_normal((b, s, h)).astype(np.float32),
                                "state": random.standard_normal((b, h)).astype(np.float32)}
                               for b, s, h in [(2, 5, 3), (1, 1, 1), (3, 2, 4)]])


@case
def unrolls_what_changes_shape(folder):
    agrees(folder, GROWING, [{"x": np.random.default_rng(SEED).standard_normal(2).astype(np.float32)}])


@case
def branches_choose_tensors(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, CHOICES, [{"x": random.standard_normal(3).astype(np.float32),
                              "y": random.standard_normal(3).astype(np.float32), "c": scalar(c, bool),
                              "e": scalar(e, bool)} for c in (False, True) for e in (False, True)])


@case(seconds=3)
def threads_and_profiles_do_not_matter(folder):
    random = np.random.default_rng(SEED)
    feeds = {"x": random.standard_normal((300, 2)).astype(np.float32), "trip": scalar(30), "go": scalar(True, bool)}
    package = agrees(folder, COLLECT, [feeds])
    alone, together = (run_package(package, feeds, folder, f"--threads={count}") for count in (1, 4))
    for name, array in alone.items():
        expect(np.array_equal(array, together[name]), f"{name} differs with four threads")
    tool("ds-run", "profile", package, "--inputs", folder / "inputs.npz")

ROWS = """
m (float[4] x) => (float[a] y, int64[b] z, int64[1] last)
    <int64 most = {MOST}, int64 limit = {LIMIT}, bool go = {1}, int64[1] one = {1}, int64[1] all = {-1}> {
  last, rows = Loop (most, go, one) <body = g (int64 i, bool c, int64[1] a) => (bool d, int64[1] b, int64[1] row) {
    less = Less (a, limit)
    d = Squeeze (less)
    b = Add (a, a)
    row = Identity (a)
  }>
  z = Reshape (rows, all)
  longer = ConstantOfShape (last)
  sum = ReduceSum (x)
  y = Add (longer, sum)
}
"""


@case
def collects_rows_of_constants_until_a_condition(folder):
    """The number of iterations is that of a loop of constants, which the compiler can run: a size may depend on it."""
    random = np.random.default_rng(SEED)
    for most, limit in ((1 << 62, 1000), (1 << 62, int(random.integers(1, 500))), (1000, 70), (3, 100)):
        text = ROWS.replace("MOST", str(most)).replace("LIMIT", str(limit))
        agrees(folder, text, [{"x": random.uniform(0.1, 1, 4).astype(np.float32)}], f"rows{most}_{limit}")
