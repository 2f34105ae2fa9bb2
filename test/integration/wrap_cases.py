"""Shape arithmetic that wraps, rounds or is negative, against ONNX Runtime: data is what the type makes of a number, a
size is the number itself or is diagnosed."""
import numpy as np

from integer_cases import HEAD, built
from kit import case, compile_model, expect, onnx_runtime, run_package, tool
from programs import SEED

RANDOM = np.random.default_rng(SEED)


def rows(count):
    """A tensor of that many elements; their values do not matter."""
    return np.zeros(count, np.int8)


def as_onnx_runtime(folder, text, calls, name="m"):
    """Bits, types and shapes of every output, for each call."""
    package = built(folder, text, name)
    for inputs in calls:
        ours, theirs = run_package(package, inputs, folder), onnx_runtime(folder / f"{name}.onnx", inputs)
        for output, expected in theirs.items():
            found = ours[output]
            expect(found.dtype == expected.dtype and np.array_equal(found, expected),
                   f"{output} of {({k: v.shape if v.dtype == np.int8 else v.tolist() for k, v in inputs.items()})}: "
                   f"expected {expected.shape} {expected.ravel()[:9]}, found {found.shape} {found.ravel()[:9]} in {text}")
    return package


def refused(folder, package, inputs, says=None):
    np.savez(folder / "refused.npz", **inputs)
    tool("ds-run", package, "--inputs", folder / "refused.npz", code=1, says=says)


@case
def what_wrapped_has_any_sign(folder):
    """A square is not negative, nor is a sum of what is not; in 32 and 64 bits they are where they wrapped."""
    as_onnx_runtime(folder, """
m (int8[n] x) => (bool[1] negative, bool[1] least, bool[1] positive, int32[1] most, int32[1] half, int32[1] rest)
    <int32[1] none = {0}, int32[1] one = {1}, int32[1] two = {2}, int32[1] seven = {7}, int32[1] low = {-2147483648}> {
  shape = Shape (x)
  n = Cast <to = 6> (shape)
  square = Mul (n, n)
  negative = Less (square, none)
  half = Div (square, two)
  rest = Mod (square, seven)
  most = Max (square, none)
  next = Add (square, one)
  positive = Greater (next, none)
  least = Equal (next, low)
}
""", [{"x": rows(n)} for n in (0, 5, 50000, 65536)])
    as_onnx_runtime(folder, """
m (int32[1] k, int64[1] l) => (bool[1] a, bool[1] b, bool[1] c, bool[1] d, bool[1] e, int64[1] f, bool[1] g)
    <int32[1] none = {0}, int32[1] one = {1}, int32[1] low = {-2147483648}, int64[1] wideNone = {0},
     int64[1] four = {4}> {
  m = Max (k, none)
  square = Mul (m, m)
  a = Less (square, none)
  twice = Add (m, m)
  b = Less (twice, none)
  next = Add (m, one)
  c = Equal (next, low)
  wide = Max (l, wideNone)
  wideTwice = Add (wide, wide)
  d = Less (wideTwice, wideNone)
  widened = Cast <to = 7> (square)
  scaled = Mul (widened, four)
  e = Less (scaled, wideNone)
  f = Max (scaled, wideTwice)
  single = Cast <to = 1> (wide)
  back = Cast <to = 7> (single)
  fourfold = Mul (back, four)
  g = Less (fourfold, wideNone)
}
""", [{"k": np.array([k], np.int32), "l": np.array([l])}
      for k, l in ((50000, 2**62 + 5), (2**31 - 1, 2**61), (7, 2**63 - 2**40), (-3, -(2**63)))], "elements")


@case
def a_size_relies_on_what_did_not_wrap(folder):
    package = as_onnx_runtime(folder, """
m (int8[n] x) => (int8[a, b] y, float[c] z, int32[1] half)
    <int32[1] two = {2}, int32[1] none = {0}, int64[1] open = {-1}> {
  shape = Shape (x)
  n = Cast <to = 6> (shape)
  square = Mul (n, n)
  twice = Mul (n, two)
  half = Div (twice, two)
  wide = Cast <to = 7> (half)
  target = Concat <axis = 0> (wide, open)
  y = Reshape (x, target)
  negative = Less (square, none)
  count = Cast <to = 7> (negative)
  z = ConstantOfShape (count)
}
""", [{"x": rows(n)} for n in (1, 2, 46340)])
    refused(folder, package, {"x": rows(46341)})


@case
def a_dimension_that_32_bits_do_not_hold_is_diagnosed(folder):
    """4096 times 2^20 is 0 in 32 bits, of which a shape of any tensor without elements could be made."""
    package = as_onnx_runtime(folder, """
m (int8[n] x) => (float[a, b] y, int32[1] rows) <int32[1] factor = {1048576}, int64[1] none = {0}> {
  shape = Shape (x)
  n = Cast <to = 6> (shape)
  rows = Mul (n, factor)
  wide = Cast <to = 7> (rows)
  target = Concat <axis = 0> (wide, none)
  y = ConstantOfShape (target)
}
""", [{"x": rows(n)} for n in (0, 3, 2047)])
    refused(folder, package, {"x": rows(4096)})
    refused(folder, package, {"x": rows(2048)})


@case
def products_of_dimensions_wrap_in_64_bits(folder):
    """Such a product need not be the size of a tensor."""
    as_onnx_runtime(folder, """
m (int8[n] x) => (bool[1] less, int64[1] most, int64[1] rest, int64[1] double, int64[1] eighth, bool[1] equal)
    <int64[1] none = {0}, int64[1] seven = {7}> {
  n = Shape (x)
  square = Mul (n, n)
  cube = Mul (square, n)
  less = Less (cube, none)
  most = Max (cube, none)
  rest = Mod (cube, seven)
  wide = Cast <to = 11> (cube)
  double = Cast <to = 7> (wide)
  fourth = Mul (square, square)
  eighth = Mul (fourth, fourth)
  equal = Equal (eighth, none)
}
""", [{"x": rows(n)} for n in (0, 7, 1001, 1 << 20)])
    as_onnx_runtime(folder, """
m (int8[n] x) => (bool[1] less, int64[1] most) <int64[1] none = {0}> {
  n = Shape (x)
  square = Mul (n, n)
  cube = Mul (square, n)
  less = Less (cube, none)
  most = Max (cube, none)
}
""", [{"x": rows(n)} for n in (3, 1 << 21)], "large")
    package = as_onnx_runtime(folder, """
m (int8[n, k, l] x) => (int8[a] flat, int8[b, c] split) <int64[1] second = {1}, int64[1] open = {-1}> {
  shape = Shape (x)
  count = ReduceProd <keepdims = 1> (shape)
  flat = Reshape (x, count)
  k = Gather (shape, second)
  others = Div (count, k)
  target = Concat <axis = 0> (others, open)
  split = Reshape (x, target)
}
""", [{"x": np.arange(n * k * l, dtype=np.int8).reshape(n, k, l)} for n, k, l in ((2, 3, 4), (1, 1, 5))], "sizes")
    refused(folder, package, {"x": np.zeros((2, 0, 3), np.int8)})


@case
def what_a_side_relies_on_is_required_where_it_is_taken(folder):
    package = as_onnx_runtime(folder, """
m (int8[n] x, int32[1] k) => (float[m] filled) <int32[1] hundred = {100}> {
  n = Shape (x)
  square = Mul (k, k)
  wide = Cast <to = 7> (square)
  small = Less (k, hundred)
  size = Where (small, wide, n)
  filled = ConstantOfShape (size)
}
""", [{"x": rows(5), "k": np.array([k], np.int32)} for k in (50000, 100, 99, 0, -7)])
    refused(folder, package, {"x": rows(5), "k": np.array([-50000], np.int32)})
    package = as_onnx_runtime(folder, """
m (int8[n] x, int32[2] k) => (float[m] filled)
    <int32[1] hundred = {100}, int64[1] first = {0}, int64[1] second = {1}> {
  n = Shape (x)
  a = Gather (k, first)
  b = Gather (k, second)
  squareOfA = Mul (a, a)
  squareOfB = Mul (b, b)
  wideA = Cast <to = 7> (squareOfA)
  wideB = Cast <to = 7> (squareOfB)
  isSmallA = Less (a, hundred)
  isSmallB = Less (b, hundred)
  inner = Where (isSmallB, wideB, n)
  size = Where (isSmallA, inner, wideA)
  filled = ConstantOfShape (size)
}
""", [{"x": rows(5), "k": np.array(k, np.int32)} for k in ((3, 50000), (3, 7), (200, -50000), (200, 50000))], "nested")
    for k in ((3, -50000), (50000, 3)):
        refused(folder, package, {"x": rows(5), "k": np.array(k, np.int32)})


@case
def remainders_and_quotients_have_the_signs_of_the_standard(folder):
    """Of constants, and of a size less than what is taken from it, as the length behind a convolution is written."""
    as_onnx_runtime(folder, """
m (float[6] x) => (float[a, b] shaped, float[c] none, float[d] cut)
    <int64[1] seven = {7}, int64[1] three = {-3}, int64[1] one = {-1}, int64[1] five = {5}, int64[1] open = {-1},
     int64[1] front = {0}, int64[1] end = {100}> {
  r = Mod (seven, three)
  rows = Add (r, five)
  target = Concat <axis = 0> (rows, open)
  shaped = Reshape (x, target)
  empty = Mod (seven, one)
  none = ConstantOfShape (empty)
  cut = Slice (x, r, end, front)
}
""", [{"x": RANDOM.standard_normal(6).astype(np.float32)}])
    as_onnx_runtime(folder, """
m (int8[n] x, int64[1] k, int32[1] l) => (float[a] windows, int64[1] data, float[b] more, int64[1] of, int32[1] narrow)
    <int64[1] kernel = {3}, int64[1] stride = {2}, int64[1] one = {1}, int64[1] five = {5}, int32[1] four = {4}> {
  n = Shape (x)
  rest = Sub (n, kernel)
  steps = Div (rest, stride)
  data = Add (steps, one)
  windows = ConstantOfShape (data)
  of = Div (k, five)
  least = Max (of, one)
  more = ConstantOfShape (least)
  narrow = Div (l, four)
}
""", [{"x": rows(n), "k": np.array([k]), "l": np.array([l], np.int32)}
      for n, k, l in ((0, -7, -7), (1, 7, 2**31 - 1), (2, -5, -(2**31)), (3, 4, -4), (4, -4, -1), (9, 23, 9))]
                    + [{"x": rows(5), "k": np.array([-(2**63)]), "l": np.array([-5], np.int32)}], "windows")


@case
def steps_as_far_as_64_bits_go(folder):
    least = -(2**63)
    as_onnx_runtime(folder, f"""
m (float[6] x, int8[n] y) => (float[a] last, float[b] first, int64[c] range, int8[d] behind)
    <int64[1] five = {{5}}, int64[1] one = {{1}}, int64[1] end = {{{least}}}, int64[1] front = {{0}}, int64[1] step = {{{least}}},
     int64 none = {{0}}, int64 delta = {{{least}}}, int64 zero = {{0}}> {{
  last = Slice (x, five, end, front, step)
  first = Slice (x, front, end, front, step)
  behind = Slice (y, five, end, front, step)
  shape = Shape (y)
  n = Gather (shape, zero)
  range = Range (n, none, delta)
}}
""", [{"x": RANDOM.standard_normal(6).astype(np.float32), "y": np.arange(n, dtype=np.int8)} for n in (0, 1, 5, 9)])


def folded_and_computed(folder, name, shape, result, body, values):
    """The outputs of one graph with its floats as constants, and as an input: what is folded, and what kernels compute."""
    from onnx import numpy_helper, parser, save
    found = []
    for kind, inputs in (("folded", "int8[n] unused"), ("computed", f"float[{shape}] c, int8[n] unused")):
        model = parser.parse_model(HEAD + f"m ({inputs}) => ({result}) {{ {body} }}")
        given = {"unused": rows(1)}
        if kind == "folded":
            model.graph.initializer.append(numpy_helper.from_array(values, "c"))
        else:
            given["c"] = values
        save(model, folder / f"{name}-{kind}.onnx")
        found.append(run_package(compile_model(folder / f"{name}-{kind}.onnx", folder), given, folder))
    return found


@case
def sums_of_constant_floats_are_a_kernels(folder):
    """Whatever the order is in which a kernel adds: the bits do not depend on whether an operand is a constant."""
    kinds = {"sum": "ReduceSum <keepdims = 0> (c, one)", "mean": "ReduceMean <axes = [1], keepdims = 0> (c)",
             "prod": "ReduceProd <axes = [1], keepdims = 0> (e)", "square": "ReduceSumSquare <axes = [1], keepdims = 0> (c)",
             "norm": "ReduceL2 <axes = [1], keepdims = 0> (c)", "log": "ReduceLogSumExp <axes = [1], keepdims = 0> (c)",
             "running": "ReduceMax <axes = [1], keepdims = 0> (r)", "product": "ReduceMax <axes = [1], keepdims = 0> (p)"}
    body = ("one = Constant <value_ints = [1]> () big = Constant <value_float = 65536.0> () e = Exp (c) t = Transpose (c) "
            "r = CumSum (c, one) p = MatMul (c, t)\n")
    for kind, text in kinds.items():
        body += (f"{kind}_s = {text} {kind}_k = Mul ({kind}_s, big) {kind}_f = Floor ({kind}_k) "
                 f"{kind} = Cast <to = 7> ({kind}_f) {kind}_next = Add ({kind}, one)\n")
    outputs = [name for kind in kinds for name in (kind, kind + "_next")]
    result = ", ".join(f"int64[4] {name}" for name in outputs)
    for columns in (24, 200):
        values = RANDOM.standard_normal((4, columns)).astype(np.float32)
        folded, computed = folded_and_computed(folder, f"of{columns}", f"4, {columns}", result, body, values)
        for name in outputs:
            expect(np.array_equal(folded[name], computed[name]),
                   f"seed {SEED}: {name} of {columns}: {folded[name]} folded, {computed[name]} computed")


@case
def running_sums_of_floats_round_at_every_step(folder):
    """40 times 0.1 in 32 bits; the order of a running sum is the standard's, so that data and sizes are, too."""
    values = np.full(40, 0.1, np.float32)
    running = ("axis = Constant <value_int = 0> () ten = Constant <value_float = 10.0> () s = CumSum (c, axis) "
               "k = Mul (s, ten) t = Floor (k) y = Cast <to = 7> (t)")
    folded, computed = folded_and_computed(folder, "data", "40", "int64[40] y", running, values)
    data = onnx_runtime(folder / "data-computed.onnx", {"c": values, "unused": rows(1)})["y"]
    expect(np.array_equal(computed["y"], data) and np.array_equal(folded["y"], data),
           f"{folded['y']} folded, {computed['y']} computed, expected {data}")
    expect(data[-1] == 39, f"expected the last sum to be less than 4, found {data[-1]} tenths")
    constant = ", ".join(["0.1"] * 40)
    as_onnx_runtime(folder, f"""
m (int8[n] x) => (float[a] filled, int64[1] data, int64[b] more) <float[40] c = {{{constant}}}, int64[1] last = {{39}},
    int64[1] one = {{1}}> {{
  {running}
  data = Gather (y, last)
  filled = ConstantOfShape (data)
  next = Add (data, one)
  more = ConstantOfShape <value = int64[1] {{7}}> (next)
}}
""", [{"x": rows(1)}], "size")


@case
def sums_of_constant_floats_are_sizes(folder):
    """Where no order of them matters: eighths, of which f32 holds every sum."""
    numbers = RANDOM.integers(1, 64, 12) / 8
    constant = ", ".join(map(str, numbers))
    as_onnx_runtime(folder, f"""
m (int8[n] x) => (float[a] ofSum, float[b] ofMean, float[c] ofProduct) <float[12] c = {{{constant}}},
    float[3] p = {{2, 3.5, 4}}> {{
  s = ReduceSum <keepdims = 1> (c)
  sum = Cast <to = 7> (s)
  ofSum = ConstantOfShape (sum)
  m = ReduceMean <keepdims = 1> (c)
  mean = Cast <to = 7> (m)
  ofMean = ConstantOfShape (mean)
  q = ReduceProd <keepdims = 1> (p)
  product = Cast <to = 7> (q)
  ofProduct = ConstantOfShape (product)
}}
""", [{"x": rows(1)}])


@case
def many_places_in_one_constant_take_no_time(folder):
    """Each of them might be a size; what is behind all of them is computed when the model runs."""
    sines = "\n".join(f"  s{i + 1} = Sin (s{i})" for i in range(40))
    places = "\n".join(f"  f{i} = Constant <value_float = {i}.5> () p{i} = Mul (s40, f{i}) y{i} = ArgMax <axis = 0> (p{i})"
                       for i in range(200))
    outputs = ", ".join(f"int64[1] y{i}" for i in range(200))
    text = f"""
m (int8[n] x) => ({outputs}) <int64[1] count = {{65536}}> {{
  s0 = ConstantOfShape <value = float[1] {{0.5}}> (count)
{sines}
{places}
}}
"""
    from onnx import parser, save
    save(parser.parse_model(HEAD + text), folder / "m.onnx")
    result = tool("ds-opt", folder / "m.onnx", "--stop-after=import", "-o", folder / "m.mlir", timeout=20)
    expect(result.code == 0, f"{result}")
