"""Near misses: what one condition of the compiler alone keeps apart, where all else looks as if a rule held."""
import numpy as np

from attention_cases import compiled
from kit import case, same_numbers
from programs import SEED
from wrap_cases import as_onnx_runtime


@case
def a_long_way_to_no_product(folder):
    """What a softmax reads doubles and halves forty times: each op has two ways back, none of which ends at a product."""
    chain = "\n".join(f"  s{i} = Add (h{i}, h{i})\n  h{i + 1} = Mul (s{i}, half)" for i in range(40))
    model, package = compiled(f"""
deep (float[n, 4] h0, float[4, 3] v) => (float[n, 3] y) <float half = {{0.5}}> {{
{chain}
  weights = Softmax <axis = -1> (h40)
  y = MatMul (weights, v)
}}
""", folder, attentions=0)
    random = np.random.default_rng(SEED)
    same_numbers(package, model, {"h0": random.standard_normal((5, 4), np.float32), "v": random.standard_normal((4, 3), np.float32)},
                 folder)


@case
def the_successor_of_the_greatest(folder):
    """x < x + 1 holds for all but one number of a type; so do the comparisons that follow from it."""
    as_onnx_runtime(folder, """
m (int32[1] k, int64[1] l) => (bool[1] a, bool[1] b, bool[1] c, bool[1] d, int32[1] e, int64[1] f)
    <int32[1] one = {1}, int64[1] wideOne = {1}> {
  next = Add (k, one)
  a = Less (k, next)
  e = Max (k, next)
  before = Sub (k, one)
  b = Less (before, k)
  wideNext = Add (l, wideOne)
  c = Less (l, wideNext)
  wideBefore = Sub (l, wideOne)
  d = Less (wideBefore, l)
  f = Max (l, wideNext)
}
""", [{"k": np.array([k], np.int32), "l": np.array([l], np.int64)}
      for k, l in ((5, 5), (2**31 - 1, 2**63 - 1), (-2**31, -2**63), (2**31 - 2, 2**63 - 2), (-2**31 + 1, -2**63 + 1))])


@case
def constants_that_64_bits_hold_not(folder):
    """Whole numbers of floats beyond 2^63 take no part in size arithmetic, just within they do."""
    as_onnx_runtime(folder, """
m (int8[n] x) => (bool[4] a, bool[4] b, float[4] c, double[4] d)
    <float[4] far = {9223372036854775808.0, 1e19, -9223372036854775808.0, -1.7e19}, double[4] farther = {9223372036854775808.0, 1.8e19, -1e19, 4.0}> {
  shape = Shape (x)
  n = Cast <to = 1> (shape)
  wide = Cast <to = 11> (shape)
  a = Less (n, far)
  b = Greater (wide, farther)
  c = Add (n, far)
  d = Mul (wide, farther)
}
""", [{"x": np.zeros(n, np.int8)} for n in (0, 1, 5)])
