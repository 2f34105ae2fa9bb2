"""Near misses: what one condition of the compiler alone keeps apart, where all else looks as if a rule held."""
import numpy as np
from onnx import parser, save

from attention_cases import compiled
from kit import case, compile_model, expect, run_package, same_numbers, tool
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


@case(seconds=3)
def quotients_of_negative_sizes(folder):
    """Integers are divided towards 0, whole multiples of the divisor and those beside them alike."""
    as_onnx_runtime(folder, """
m (int64[1] k, int8[n] x) => (int64[1] a, int64[1] b, int64[1] c, int64[2] d)
    <int64[1] three = {3}, int64[1] seven = {7}, int64[1] ten = {10}> {
  a = Div (k, three)
  shape = Shape (x)
  less = Sub (shape, ten)
  b = Div (less, three)
  mixed = Sub (k, shape)
  c = Div (mixed, seven)
  d = Concat <axis = 0> (b, c)
}
""", [{"k": np.array([k], np.int64), "x": np.zeros(n, np.int8)} for k in (-8, -7, -6, -1, 0, 5, 6) for n in (0, 1, 4, 7, 8, 13)])


@case
def extremes_of_negative_elements(folder):
    """The greatest of what is negative and the least of what is great, in every integer type; no element beside them."""
    kinds = {"int8": np.int8, "uint8": np.uint8, "int32": np.int32, "int64": np.int64}
    outputs = ", ".join(f"{kind}[n] {kind}_max, {kind}[n] {kind}_min" for kind in kinds)
    text = "\n".join(f"  {kind}_max = ReduceMax <keepdims = 0> ({kind}_x, axes)\n  {kind}_min = ReduceMin <keepdims = 0> ({kind}_x, axes)"
                     for kind in kinds)
    save(parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
m ({", ".join(f"{kind}[n, 5] {kind}_x" for kind in kinds)}) => ({outputs}) <int64[1] axes = {{1}}> {{
{text}
}}"""), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    random = np.random.default_rng(SEED)
    for low, high in ((0, 0.5), (0.5, 1), (0, 1)):  # the lower half of a type, the upper half, all of it
        inputs = {}
        for kind, dtype in kinds.items():
            least, width = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max) - int(np.iinfo(dtype).min)
            inputs[f"{kind}_x"] = random.integers(least + int(low * width), least + int(high * (width - 1)), (3, 5), dtype, endpoint=True)
        found = run_package(package, inputs, folder)
        for kind in kinds:
            for name in ("max", "min"):
                expected = getattr(np, name)(inputs[f"{kind}_x"], axis=1)
                expect(np.array_equal(found[f"{kind}_{name}"], expected),
                       f"seed {SEED}: {name} of {kind}: expected {expected}, found {found[f'{kind}_{name}']}")


@case
def short_constants(folder):
    """What a compiler knows is what a run computes: integers of four bits keep the low ones, edges go on as they are."""
    save(parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
m (int8[n] x, int64[5] given) => (int64[5] signed, int64[5] unsigned, int64[5] given_signed, int64[5] given_unsigned,
                                  int64[9] edges, int64[9] wrapped, int64[9] mirrored, int64[9] filled, float[9] run)
    <int64[5] numbers = {9, -9, 7, -8, 1000}, int64[4] root = {4, 9, 16, 25}, int64[2] pads = {2, 3}> {
  s = Cast <to = 22> (numbers)
  signed = Cast <to = 7> (s)
  u = Cast <to = 21> (numbers)
  unsigned = Cast <to = 7> (u)
  gs = Cast <to = 22> (given)
  given_signed = Cast <to = 7> (gs)
  gu = Cast <to = 21> (given)
  given_unsigned = Cast <to = 7> (gu)
  real = Cast <to = 1> (root)
  roots = Sqrt (real)
  four = Cast <to = 7> (roots)
  edges = Pad <mode = "edge"> (four, pads)
  wrapped = Pad <mode = "wrap"> (four, pads)
  mirrored = Pad <mode = "reflect"> (four, pads)
  filled = Pad (four, pads)
  n = Shape (x)
  all = Expand (edges, n)
  run = Cast <to = 1> (all)
}"""), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    numbers, four = np.array([9, -9, 7, -8, 1000]), np.array([2, 3, 4, 5])
    found = run_package(package, {"x": np.zeros(1, np.int8), "given": numbers}, folder)
    expected = {"signed": (numbers + 8) % 16 - 8, "unsigned": numbers % 16, "edges": np.pad(four, (2, 3), "edge"),
                "wrapped": np.pad(four, (2, 3), "wrap"), "mirrored": np.pad(four, (2, 3), "reflect"), "filled": np.pad(four, (2, 3)),
                "run": np.pad(four, (2, 3), "edge")}
    expected |= {f"given_{name}": expected[name] for name in ("signed", "unsigned")}
    for name, array in expected.items():
        expect(np.array_equal(found[name], array), f"{name}: expected {array}, found {found[name]}")


def broadcasts(folder, count):
    """A sum of vectors, the size of each of which may be 1 or that of the others."""
    arguments = ", ".join(f'%x{i}: tensor<?xf32> {{ds.name = "x{i}", ds.dims = ["a{i}"]}}' for i in range(count))
    sums = "\n".join(f"  %s{i} = ds.binary add %{'s' if i > 1 else 'x'}{i - 1}, %x{i} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>"
                     for i in range(1, count))
    path = folder / f"sum{count}.mlir"
    path.write_text(f'func.func @main({arguments}) -> (tensor<?xf32> {{ds.name = "y"}}) attributes {{ds.entry}} {{\n{sums}\n'
                    f"  return %s{count - 1} : tensor<?xf32>\n}}\n")
    return path


@case
def sizes_that_grow_with_every_op(folder):
    """Sizes of many names are told apart only by a run; beyond what expressions may hold, a model is refused at once."""
    random = np.random.default_rng(SEED)
    package = compile_model(broadcasts(folder, 12), folder)
    x = {f"x{i}": random.standard_normal(7 if i in (3, 8) else 1).astype(np.float32) for i in range(12)}
    found = run_package(package, x, folder)["y"]
    expected = sum(array.astype(np.float64) for array in x.values())
    # Eleven roundings of sums of at most some tens.
    expect(found.shape == (7,) and np.allclose(found, expected, rtol=0, atol=1e-5), f"seed {SEED}: expected {expected}, found {found}")
    tool("ds-opt", broadcasts(folder, 120), "-o", folder / "long.dsp", code=1, timeout=60, says="has a size that is too long an expression")


@case(seconds=3)
def what_follows_a_product(folder):
    """A row is a bias only where it is added, and to a product that nobody else reads."""
    random = np.random.default_rng(SEED)
    weights, row = random.standard_normal((4, 3)).astype(np.float32), random.standard_normal(3).astype(np.float32)
    text = """<ir_version: 8, opset_import: ["" : 17]>
m (float[n, 4] x) => (float[n, 3] added, float[n, 3] front, float[n, 3] scaled, float[n, 3] less, float[n, 3] more,
                      float[n, 3] part, float[n, 3] whole, float[n, 3] greatest) <float[4, 3] w = {%s}, float[3] b = {%s}> {
%s
  added = Add (p0, b)
  front = Add (b, p1)
  scaled = Mul (p2, b)
  less = Sub (p3, b)
  more = Sub (b, p4)
  part = Div (p5, b)
  whole = Add (p6, b)
  greatest = Max (p6, b)
}""" % (", ".join(map(repr, map(float, weights.ravel()))), ", ".join(map(repr, map(float, row))),
        "\n".join(f"  p{i} = MatMul (x, w)" for i in range(7)))
    save(parser.parse_model(text), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    for n in (1, 5, 8):
        x = random.standard_normal((n, 4)).astype(np.float32)
        found, p = run_package(package, {"x": x}, folder), x.astype(np.float64) @ weights
        expected = {"added": p + row, "front": p + row, "scaled": p * row, "less": p - row, "more": row - p, "part": p / row,
                    "whole": p + row, "greatest": np.maximum(p, row)}
        size = np.abs(x).astype(np.float64) @ np.abs(weights)
        sizes = {"scaled": size * np.abs(row), "part": size / np.abs(row)}
        for name, array in expected.items():
            # Six roundings, each of 6e-8 of what is added up.
            near = np.abs(found[name] - array) <= 1e-6 * sizes.get(name, size + np.abs(row))
            expect(found[name].shape == array.shape and near.all(), f"seed {SEED}: {name}: expected {array}, found {found[name]}")


@case(seconds=6)
def masks_that_let_everything_pass(folder):
    """The conjunction with what is true is the mask; where that has more axes, the sum of both ranks counts."""
    for number, (truth, shape) in enumerate((("{1}", "[1, 1, 1, 1]"), ("{1}", ""), ("{1, 1, 1, 1}", "[1, 4, 1, 1]"), ("{0}", "[1, 1, 1, 1]"))):
        for first, second in (("all", "seen"), ("seen", "all")):
            (folder / f"{number}{first}").mkdir()
            model, package = compiled(f"""
masked (float[b, 4, s, 8] q, float[b, 4, t, 8] k, float[b, 4, t, 8] v, bool[s, t] seen) => (float[b, 4, s, 8] y)
    <bool{shape} all = {truth}, float low = {{-1000000.0}}> {{
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  both = And ({first}, {second})
  scores = Where (both, product, low)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}}
""", folder / f"{number}{first}")
            random = np.random.default_rng(SEED)
            b, s, t = 2, 5, 7
            inputs = {"q": random.standard_normal((b, 4, s, 8), np.float32), "k": random.standard_normal((b, 4, t, 8), np.float32),
                      "v": random.standard_normal((b, 4, t, 8), np.float32), "seen": random.random((s, t)) < 0.6}
            same_numbers(package, model, inputs, folder / f"{number}{first}")


@case
def functions_of_numbers_that_a_type_rounds(folder):
    """Beyond 2^24 an f32 holds not every whole number: what is known of one there is data, of a double it is a size."""
    as_onnx_runtime(folder, """
m (int8[n] x) => (float[3] a, float[3] b, float[3] c, double[3] d, double[3] e, float[3] f, int64[3] g)
    <float[3] far = {-10000000000.0, 16777217.0, -16777218.0}, double[3] farther = {-18014398509481984.0, 9007199254740994.0, -10000000000.0}> {
  a = Abs (far)
  b = Relu (far)
  c = Floor (far)
  d = Abs (farther)
  e = Relu (farther)
  shape = Shape (x)
  n = Cast <to = 1> (shape)
  sum = Mul (a, n)
  f = Abs (sum)
  g = Cast <to = 7> (a)
}
""", [{"x": np.zeros(n, np.int8)} for n in (0, 1, 5)])


@case
def the_greatest_of_nothing(folder):
    """An axis that a run may find empty has no greatest element, though its other axes have none either."""
    save(parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
m (float[n, k] x) => (int64[n] y) {
  y = ArgMax <axis = 1, keepdims = 0> (x)
}"""), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    x = np.random.default_rng(SEED).standard_normal((3, 4)).astype(np.float32)
    found = run_package(package, {"x": x}, folder)["y"]
    expect(np.array_equal(found, x.argmax(1)), f"seed {SEED}: expected {x.argmax(1)}, found {found}")
    np.savez(folder / "empty.npz", x=np.zeros((3, 0), np.float32))
    tool("ds-run", package, "--inputs", folder / "empty.npz", "--output", folder / "y.npz", code=1)
