"""If whose branches differ in size, chosen at run time, against ONNX Runtime. What only the other branch requires of
sizes is not required."""
import numpy as np

from kit import case, expect, tool
from loop_cases import agrees, scalar
from programs import SEED

JOINED = """
m (float[n, 3] x, float[m, 3] y, bool c) => (float[k, 3] z, float[k, 2] w, int64[2] shape) <float[3, 2] weight = {1, 2, 3, 4, 5, 6}> {
  z = If (c) <then_branch = t () => (float[p, 3] a) { a = Concat <axis = 0> (x, y, x) },
              else_branch = f () => (float[q, 3] b) { b = Neg (y) }>
  e = Exp (z)
  w = MatMul (e, weight)
  shape = Shape (w)
}
"""

# The sides require n == m or one of them 1, and an even n.
DEMANDING = """
m (float[n] x, float[m] y, bool c) => (float[a, b] z) <int64[2] pairs = {-1, 2}, int64[2] row = {1, -1}> {
  z = If (c) <then_branch = t () => (float[i, j] p) { s = Add (x, y)  p = Reshape (s, row) },
              else_branch = f () => (float[k, l] q) { q = Reshape (x, pairs) }>
}
"""

# As merged decoders have it: without a past, the past is a dummy of another batch and of no length.
CACHED = """
m (float[b, s, 4] x, float[pb, ps, 4] past, bool use_cache) => (float[b, s, 4] y, float[tb, ts, 4] present) {
  y, present = If (use_cache) <
    then_branch = with () => (float[b1, s1, 4] y1, float[b2, s2, 4] all) {
      all = Concat <axis = 1> (past, x)
      turned = Transpose <perm = [0, 2, 1]> (all)
      scores = MatMul (x, turned)
      shares = Softmax <axis = -1> (scores)
      y1 = MatMul (shares, all)
    },
    else_branch = without () => (float[b3, s3, 4] y2, float[b4, s4, 4] new) {
      new = Identity (x)
      turned2 = Transpose <perm = [0, 2, 1]> (x)
      scores2 = MatMul (x, turned2)
      shares2 = Softmax <axis = -1> (scores2)
      y2 = MatMul (shares2, x)
    }>
}
"""

NESTED = """
m (float[n] x, bool c, bool e) => (float[k] z, float total) {
  z = If (c) <
    then_branch = t () => (float[p] a) {
      half = If (e) <then_branch = t2 () => (float[p2] a2) { a2 = Concat <axis = 0> (x, x) },
                     else_branch = f2 () => (float[q2] b2) { b2 = Identity (x) }>
      a = Concat <axis = 0> (half, x)
    },
    else_branch = f () => (float[q] b) { b = ReduceMax (x) }>
  total = ReduceSum <keepdims = 0> (z)
}
"""

# Every iteration takes another branch, and the sizes of one grow with the iterations.
IN_A_LOOP = """
m (float[n] x, int64 trip) => (float sum, float[k] sums) <int64 two = {2}, int64 zero = {0}, int64[1] front = {0}> {
  none = Constant <value = float {0.0}> ()
  sum, sums = Loop (trip, "", none) <body = b (int64 i, bool g, float s) => (bool h, float next, float out) {
    h = Identity (g)
    rest = Mod (i, two)
    odd = Equal (rest, zero)
    count = Unsqueeze (i, front)
    part = If (odd) <then_branch = t () => (float[p] a) { a = Slice (x, front, count) },
                     else_branch = f () => (float[q] r) { r = Concat <axis = 0> (x, x, x) }>
    here = ReduceSum <keepdims = 0> (part)
    next = Add (s, here)
    out = Tanh (next)
  }>
}
"""

# Only in even iterations can what is left be halved; what the iteration before said of its branch must be forgotten.
HALVES = """
m (float[n] x, bool[m] evens, int64 trip) => (float sum) <int64[1] front = {0}, int64[2] halves = {2, -1}> {
  none = Constant <value = float {0.0}> ()
  end = Shape (x)
  sum = Loop (trip, "", none) <body = b (int64 i, bool g, float s) => (bool h, float next) {
    h = Identity (g)
    even = Gather (evens, i)
    count = Unsqueeze (i, front)
    part = If (even) <then_branch = t () => (float[2, p] a) { a0 = Slice (x, count, end) a = Reshape (a0, halves) },
                      else_branch = f () => (float[1, q] r) { r0 = Neg (x) r = Unsqueeze (r0, front) }>
    squares = Mul (part, part)
    columns = ReduceSum <keepdims = 0> (squares, front)
    largest = ReduceMax <keepdims = 0> (columns)
    next = Add (s, largest)
  }>
}
"""

# The condition is known from the sizes of the call.
OF_SIZES = """
m (float[n] x) => (float[k] z) <int64 zero = {0}, int64 four = {4}, int64[1] first = {0}, int64[1] last = {4}> {
  shape = Shape (x)
  n = Gather (shape, zero)
  long = Greater (n, four)
  z = If (long) <then_branch = t () => (float[p] a) { a = Slice (x, first, last) },
                 else_branch = f () => (float[q] b) { b = Concat <axis = 0> (x, x) }>
}
"""


def numbers(random, *shape):
    """Multiples of 1/64, of which f32 adds some without rounding: sums that cancel are the same in any order."""
    return np.round(64 * random.standard_normal(shape)).astype(np.float32) / np.float32(64)


@case
def sizes_of_the_branch_that_is_taken(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, JOINED, [{"x": numbers(random, n, 3), "y": numbers(random, m, 3), "c": scalar(c, bool)}
                            for n, m, c in [(2, 3, 1), (2, 3, 0), (1, 1, 0), (5, 1, 1), (0, 2, 1), (3, 0, 0)]])


@case
def what_the_other_branch_requires(folder):
    random = np.random.default_rng(SEED)
    feeds = lambda n, m, c: {"x": numbers(random, n), "y": numbers(random, m), "c": scalar(c, bool)}
    package = agrees(folder, DEMANDING, [feeds(*row) for row in [(4, 4, 1), (4, 1, 1), (3, 3, 1), (4, 3, 0), (2, 7, 0)]])
    for row, says in ((4, 3, 1), "broadcast"), ((3, 3, 0), "=="):
        np.savez(folder / "wrong.npz", **feeds(*row))
        tool("ds-run", package, "--inputs", folder / "wrong.npz", "--output", folder / "o.npz", code=1, says=[says, "If#0"])


@case
def merged_decoders(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, CACHED, [{"x": numbers(random, b, s, 4), "past": numbers(random, pb, ps, 4), "use_cache": scalar(use, bool)}
                            for b, s, pb, ps, use in [(2, 5, 1, 0, 0), (2, 1, 2, 5, 1), (2, 1, 2, 6, 1), (3, 4, 1, 1, 0)]])


@case
def nested_sizes(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, NESTED, [{"x": numbers(random, n), "c": scalar(c, bool), "e": scalar(e, bool)}
                            for n in (1, 4) for c in (0, 1) for e in (0, 1)])


@case
def sizes_in_a_loop(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, IN_A_LOOP, [{"x": numbers(random, n), "trip": scalar(trip)} for n, trip in [(6, 6), (3, 1), (8, 5), (2, 0)]])


@case
def sizes_that_an_iteration_forgets(folder):
    random = np.random.default_rng(SEED)
    agrees(folder, HALVES, [{"x": numbers(random, n), "trip": scalar(trip), "evens": np.arange(9) % 2 == 0} for n, trip in [(6, 6), (2, 2), (8, 5)]])


@case
def conditions_of_sizes(folder):
    random = np.random.default_rng(SEED)
    package = agrees(folder, OF_SIZES, [{"x": numbers(random, n)} for n in (1, 4, 5, 9)])
    expect("count_" not in tool("ds-run", "inspect", package, "--json").out, "expected sizes that are known before the call")
