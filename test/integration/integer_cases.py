"""Integers have a width: small integer inputs near the edges of their types, against NumPy, whose integers wrap. As
data they are what a kernel computes; as sizes they are numbers, so that what wraps is diagnosed."""
import numpy as np

from kit import case, compile_model, expect, run_package, tool
from programs import SEED

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
EDGES = {kind: np.array([np.iinfo(kind).min, np.iinfo(kind).min + 1, -1, 0, 1, 2, 1000003, np.iinfo(kind).max - 1,
                         np.iinfo(kind).max], kind) for kind in (np.int32, np.int64)}


def built(folder, text, name="m", **keywords):
    from onnx import parser, save
    save(parser.parse_model(HEAD + text), folder / f"{name}.onnx")
    return compile_model(folder / f"{name}.onnx", folder, name=f"{name}.dsp", **keywords)


def draws(kind, count=5, rounds=20):
    """Values that meet the edges as often as not."""
    random = np.random.default_rng([SEED, 1])
    info = np.iinfo(kind)
    for _ in range(rounds):
        anywhere = random.integers(info.min, info.max, count, kind, endpoint=True)
        yield np.where(random.random(count) < 0.6, random.choice(EDGES[kind], count), anywhere).astype(kind)


def same(actual, expected, what):
    expected = np.asarray(expected)
    expect(actual.dtype == expected.dtype and np.array_equal(actual, expected),
           f"{what}: expected {expected.dtype} {expected.tolist()}, found {actual.dtype} {actual.tolist()}")


def checked(folder, package, inputs, expected):
    outputs = run_package(package, inputs, folder)
    with np.errstate(all="ignore"):
        for name, value in expected.items():
            same(outputs[name], value, f"{name} of {({k: v.tolist() for k, v in inputs.items()})}")


ARITHMETIC = """
m (TYPE[5] x, TYPE[5] y) => (TYPE[5] sum, TYPE[5] difference, TYPE[5] product, TYPE[5] negated, TYPE[5] absolute,
    TYPE[5] sign, TYPE[5] least, TYPE[5] most, TYPE[5] square, TYPE[5] chosen, TYPE[5] running, TYPE total, TYPE all,
    TYPE largest, TYPE smallest, bool[5] less, bool[5] same, bool[5] atLeast, bool[5] always, TYPE[5] rest)
    <TYPE one = {1}, int64 zero = {0}, TYPE seven = {7}> {
  sum = Add (x, y)
  difference = Sub (x, y)
  product = Mul (x, y)
  negated = Neg (x)
  absolute = Abs (x)
  sign = Sign (x)
  least = Min (sum, y)
  most = Max (product, y)
  square = Mul (difference, difference)
  less = Less (sum, difference)
  same = Equal (sum, x)
  atLeast = GreaterOrEqual (product, x)
  next = Add (x, one)
  always = Less (x, next)
  chosen = Where (less, product, negated)
  running = CumSum (sum, zero)
  total = ReduceSum <keepdims = 0> (sum)
  all = ReduceProd <keepdims = 0> (x)
  largest = ReduceMax <keepdims = 0> (sum)
  smallest = ReduceMin <keepdims = 0> (negated)
  rest = Mod (product, seven)
}
"""


@case(seconds=3)
def arithmetic_wraps_as_the_type_does(folder):
    for kind in (np.int32, np.int64):
        package = built(folder, ARITHMETIC.replace("TYPE", np.dtype(kind).name), np.dtype(kind).name)
        for x, y in zip(draws(kind), draws(kind)):
            one = kind(1)
            with np.errstate(all="ignore"):
                total, product, difference, negated = x + y, x * y, x - y, -x
                checked(folder, package, {"x": x, "y": y}, {
                    "sum": total, "difference": difference, "product": product, "negated": negated,
                    "absolute": np.abs(x), "sign": np.sign(x), "least": np.minimum(total, y),
                    "most": np.maximum(product, y), "square": difference * difference, "less": total < difference,
                    "same": total == x, "atLeast": product >= x, "always": x < x + one,
                    "chosen": np.where(total < difference, product, negated),
                    "running": np.cumsum(total, dtype=kind), "total": np.sum(total, dtype=kind),
                    "all": np.prod(x, dtype=kind), "largest": np.max(total), "smallest": np.min(negated),
                    "rest": np.mod(product, kind(7))})


@case
def a_cast_keeps_what_the_type_before_it_kept(folder):
    package = built(folder, """
m (int32[5] x, int64[5] y) => (int64[5] wide, int64[5] narrowed, int64[5] summed, bool[5] any, int64[5] whole,
    int32[5] back) <int32 factor = {1000003}, int64 far = {4294967296}> {
  large = Mul (x, factor)
  wide = Cast <to = 7> (large)
  narrow = Cast <to = 6> (y)
  narrowed = Cast <to = 7> (narrow)
  twice = Add (narrow, x)
  summed = Cast <to = 7> (twice)
  beyond = Mul (y, far)
  any = Cast <to = 9> (beyond)
  small = Cast <to = 6> (beyond)
  whole = Cast <to = 7> (small)
  back = Cast <to = 6> (narrowed)
}
""")
    for x, y in zip(draws(np.int32), draws(np.int64)):
        with np.errstate(all="ignore"):
            narrow, beyond = y.astype(np.int32), y * np.int64(1 << 32)
            checked(folder, package, {"x": x, "y": y}, {
                "wide": (x * np.int32(1000003)).astype(np.int64), "narrowed": narrow.astype(np.int64),
                "summed": (narrow + x).astype(np.int64), "any": beyond != 0,
                "whole": beyond.astype(np.int32).astype(np.int64), "back": narrow})


@case
def floats_round_integers(folder):
    package = built(folder, """
m (int64[5] x) => (int64[5] single, int64[5] double, float[5] third, int64[5] sum) <float three = {3.0}> {
  f = Cast <to = 1> (x)
  single = Cast <to = 7> (f)
  d = Cast <to = 11> (x)
  double = Cast <to = 7> (d)
  third = Mul (f, three)
  s = Add (f, f)
  sum = Cast <to = 7> (s)
}
""")
    random = np.random.default_rng([SEED, 2])
    for bits in (3, 23, 24, 25, 31, 52, 53, 54, 60):
        x = random.integers(-(1 << bits), 1 << bits, 5) + np.array([0, 1, -1, 1 << bits, -(1 << bits)])
        f = x.astype(np.float32)
        checked(folder, package, {"x": x}, {
            "single": f.astype(np.int64), "double": x.astype(np.float64).astype(np.int64),
            "third": f * np.float32(3), "sum": (f + f).astype(np.int64)})


@case
def a_remainder_is_of_what_wrapped_and_never_by_zero(folder):
    package = built(folder, """
m (int64[3] x, int64[3] y) => (int64[3] rest, int64[3] quotient) {
  product = Mul (x, y)
  rest = Mod (product, y)
  quotient = Div (product, y)
}
""")
    random = np.random.default_rng([SEED, 3])
    for _ in range(20):
        x, y = random.integers(-(1 << 62), 1 << 62, 3), random.integers(1, 1 << 40, 3) * random.choice([-1, 1], 3)
        with np.errstate(all="ignore"):
            product = x * y
            quotient = np.array([abs(int(p)) // abs(int(d)) * (1 if (p < 0) == (d < 0) else -1)
                                 for p, d in zip(product, y)], np.int64)
            checked(folder, package, {"x": x, "y": y}, {"rest": np.mod(product, y), "quotient": quotient})
    np.savez(folder / "zero.npz", x=np.array([1, 2, 3]), y=np.array([1, 0, 2]))
    tool("ds-run", package, "--inputs", folder / "zero.npz", code=1, says="zero")


@case
def a_product_of_sizes_may_be_divided_by_none(folder):
    package = built(folder, """
m (float[n, k] x) => (int64[1] rest, int64[1] rows) <int64[1] first = {0}, int64[1] second = {1}> {
  shape = Shape (x)
  n = Gather (shape, first)
  k = Gather (shape, second)
  product = Mul (n, k)
  rest = Mod (product, k)
  rows = Div (product, k)
}
""")
    for n, k in ((3, 2), (0, 1), (1, 5)):
        checked(folder, package, {"x": np.zeros((n, k), np.float32)},
                {"rest": np.array([0]), "rows": np.array([n])})
    np.savez(folder / "zero.npz", x=np.zeros((3, 0), np.float32))
    tool("ds-run", package, "--inputs", folder / "zero.npz", code=1, says="zero")


@case
def hashes_and_linear_congruences_are_data(folder):
    """Chains whose coefficients leave 64 bits; the condition of a branch and a gathered row depend on one."""
    steps = "\n".join(f"  p{i + 1} = Mul (s{i}, factor)\n  s{i + 1} = Add (p{i + 1}, offset)" for i in range(6))
    package = built(folder, f"""
m (int64[2] s0, float[8] table) => (int64[2] s6, float[2] row, float[1] side)
    <int64 factor = {{6364136223846793005}}, int64 offset = {{1442695040888963407}}, int64 eight = {{8}},
     int64[1] zero = {{0}}, int64 first = {{0}}> {{
{steps}
  place = Mod (s6, eight)
  row = Gather (table, place)
  head = Gather (s6, first)
  none = Squeeze (zero)
  positive = Less (none, head)
  side = If (positive) <then_branch = t () => (float[1] a) {{ a = Constant <value_floats = [1.0]> () }},
                        else_branch = f () => (float[1] b) {{ b = Constant <value_floats = [-1.0]> () }}>
}}
""")
    table = np.random.default_rng([SEED, 4]).standard_normal(8).astype(np.float32)
    for state in draws(np.int64, 2, 10):
        with np.errstate(all="ignore"):
            end = state
            for _ in range(6):
                end = end * np.int64(6364136223846793005) + np.int64(1442695040888963407)
        checked(folder, package, {"s0": state, "table": table}, {
            "s6": end, "row": table[np.mod(end, 8)], "side": np.array([1 if end[0] > 0 else -1], np.float32)})


SHAPED = """
m (float[n] x, TYPE[2] shape, TYPE first) => (float[a, b] twice, TYPE[c] counted, float[d] cut, float[e, 2] filled)
    <TYPE two = {2}, TYPE one = {1}, TYPE none = {0}, int64[1] ends = {1000}, int64[1] front = {0},
     int64[1] pair = {2}> {
  doubled0 = Mul (shape, two)
  doubled = Cast <to = 7> (doubled0)
  twice = Reshape (x, doubled)
  end = Add (first, one)
  counted = Range (none, end, one)
  from = Cast <to = 7> (first)
  start = Unsqueeze (from, front)
  cut = Slice (x, start, ends)
  sizes = Concat <axis = 0> (start, pair)
  filled = ConstantOfShape <value = float[1] {3.0}> (sizes)
}
"""


@case
def arithmetic_on_inputs_steers_shapes(folder):
    for kind in (np.int32, np.int64):
        package = built(folder, SHAPED.replace("TYPE", np.dtype(kind).name), np.dtype(kind).name)
        for shape, first in (((1, 3), 0), ((2, 1), 5), ((3, 5), 1), ((0, 4), 0)):
            x = np.random.default_rng([SEED, 5]).standard_normal(4 * shape[0] * shape[1]).astype(np.float32)
            checked(folder, package, {"x": x, "shape": np.array(shape, kind), "first": kind(first)}, {
                "twice": x.reshape(2 * shape[0], 2 * shape[1]), "counted": np.arange(first + 1, dtype=kind),
                "cut": x[first:1000], "filled": np.full((first, 2), 3, np.float32)})
        # What wraps is no size: (2^31, 2) doubled would be (0, 4) in 32 bits.
        half = int(np.iinfo(kind).max) // 2 + 1
        np.savez(folder / "wraps.npz", x=np.zeros(0, np.float32), shape=np.array([half, 2], kind), first=kind(0))
        tool("ds-run", package, "--inputs", folder / "wraps.npz", code=1)


@case
def ranges_beyond_what_doubles_count(folder):
    """Both ends round to the same double; the distance of the last two is more than 63 bits hold."""
    last = np.iinfo(np.int64).max
    for start, limit, delta in ((2**62, 2**62 + 3, 1), (2**53 + 7, 2**53, -2), (last - 5, last, 2), (-last, -last + 1, 3),
                                (last, -last, 1), (-last, last, 2**62), (last, -last, -(2**62) - 1)):
        model = "m () => (int64[a] y) { " + "".join(
            f"{name} = Constant <value = int64 {{{value}}}> () " for name, value in zip("sld", (start, limit, delta))) + \
            "y = Range (s, l, d) }"
        checked(folder, built(folder, model), {}, {"y": np.array(range(start, limit, delta), np.int64)})


@case
def sizes_in_32_bits_and_in_floats_stay_sizes(folder):
    """As tf2onnx writes shape arithmetic; a dimension that 32 bits do not hold is diagnosed."""
    model = """
m (uint8[n, 4] x) => (uint8[a, b] y, int32[1] rows, float[1] mean) <int32[1] two = {2}, int64[1] first = {0},
    float[1] half = {0.5}, int32[1] rest = {-1}> {
  shape = Shape (x)
  n = Gather (shape, first)
  narrow = Cast <to = 6> (n)
  rows = Mul (narrow, two)
  target0 = Concat <axis = 0> (rows, rest)
  target = Cast <to = 7> (target0)
  y = Reshape (x, target)
  mean0 = Cast <to = 1> (n)
  mean = Mul (mean0, half)
}
"""
    package = built(folder, model)
    for n in (1, 2, 3, 7):
        x = np.arange(4 * n, dtype=np.uint8).reshape(n, 4)
        checked(folder, package, {"x": x}, {"y": x.reshape(2 * n, 2), "rows": np.array([2 * n], np.int32),
                                            "mean": np.array([n / 2], np.float32)})


KINDS = {"int32": (6, np.int32), "int64": (7, np.int64), "float": (1, np.float32), "double": (11, np.float64),
         "bool": (9, np.bool_)}


def random_model(random):
    """A chain of 14 steps over vectors of three, and NumPy's values of it by name for given inputs."""
    values, lines, steps = {"x": "int32", "y": "int64", "z": "int64"}, [], []
    constants = {"one": 1, "seven": 7, "large": 1000003, "below": -2}

    def pick(*kinds):
        found = [name for name, kind in values.items() if kind in kinds]
        return random.choice(found[-6:]) if found else None

    def add(kind, line, compute):
        name = f"v{len(steps)}"
        values[name] = kind
        lines.append(f"{name} = {line}")
        steps.append((name, compute))

    while len(steps) < 14:
        a = pick("int32", "int64")
        kind = values[a]
        b = random.choice([name for name in values if values[name] == kind])
        choice = random.integers(12)
        c = random.choice(list(constants))
        if choice < 3:
            op, f = [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)][choice]
            add(kind, f"{op} ({a}, {b})", lambda v, f=f, a=a, b=b: f(v[a], v[b]))
        elif choice == 3:
            add(kind, f"Mul ({a}, {c}_{kind})", lambda v, a=a, c=constants[c], k=KINDS[kind][1]: v[a] * k(c))
        elif choice == 4:
            op, f = [("Neg", np.negative), ("Abs", np.abs), ("Sign", np.sign)][random.integers(3)]
            add(kind, f"{op} ({a})", lambda v, f=f, a=a: f(v[a]))
        elif choice == 5:
            op, f = [("Min", np.minimum), ("Max", np.maximum)][random.integers(2)]
            add(kind, f"{op} ({a}, {b})", lambda v, f=f, a=a, b=b: f(v[a], v[b]))
        elif choice == 6:
            op, f = [("Less", np.less), ("Equal", np.equal), ("GreaterOrEqual", np.greater_equal)][random.integers(3)]
            add("bool", f"{op} ({a}, {b})", lambda v, f=f, a=a, b=b: f(v[a], v[b]))
        elif choice == 7:
            to = random.choice(["int32", "int64", "bool", "float", "double"])
            add(to, f"Cast <to = {KINDS[to][0]}> ({a})", lambda v, a=a, k=KINDS[to][1]: v[a].astype(k))
        elif choice == 8:
            add(kind, f"Mod ({a}, seven_{kind})", lambda v, a=a, k=KINDS[kind][1]: np.mod(v[a], k(7)))
        elif choice == 9 and (mask := pick("bool")):
            add(kind, f"Where ({mask}, {a}, {b})", lambda v, m=mask, a=a, b=b: np.where(v[m], v[a], v[b]))
        elif choice == 10 and (flag := pick("bool")):
            add("int32", f"Cast <to = 6> ({flag})", lambda v, a=flag: v[a].astype(np.int32))
        elif choice == 11:
            op, f = [("ReduceSum", np.sum), ("ReduceProd", np.prod)][random.integers(2)]
            add(kind, f"{op} <keepdims = 1> ({a})",
                lambda v, f=f, a=a, k=KINDS[kind][1]: f(v[a], dtype=k, keepdims=True))
    names = [name for name, _ in steps]
    initializers = ", ".join(f"{kind} {name}_{kind} = {{{value}}}" for name, value in constants.items()
                             for kind in ("int32", "int64"))
    text = (f"m (int32[3] x, int64[3] y, int64[3] z) => ({', '.join(f'{values[n]}[{n}s] {n}' for n in names)}) "
            f"<{initializers}> {{\n" + "\n".join(lines) + "\n}")
    return text, steps


@case
def values_that_fit_after_some_that_do_not(folder):
    """-|y| fits 64 bits for every y, |y| does not: where the run wraps between, the numbers are data, not sizes."""
    package = built(folder, """m (int64[3] y) => (int64[3] b, int64[3] c, int64[3] d)
      { a = Abs (y) b = Neg (a) c = Min (b, y) n = Neg (y) d = Max (n, y) }""", "m")
    y = np.array([np.iinfo(np.int64).min, -5, 7])
    outputs = run_package(package, {"y": y}, folder)
    with np.errstate(all="ignore"):
        for name, expected in (("b", -np.abs(y)), ("c", np.minimum(-np.abs(y), y)), ("d", np.maximum(-y, y))):
            same(outputs[name], expected, name)


@case(seconds=4)
def random_chains_of_integers_are_numpys(folder):
    random = np.random.default_rng([SEED, 6])
    for number in range(8):
        text, steps = random_model(random)
        package = built(folder, text, f"m{number}")
        for _ in range(6):
            inputs = {"x": next(draws(np.int32, 3, 1)), "y": next(draws(np.int64, 3, 1)),
                      "z": random.integers(-3, 4, 3)}
            values = dict(inputs)
            with np.errstate(all="ignore"):
                for name, compute in steps:
                    values[name] = compute(values)
            outputs = run_package(package, inputs, folder)
            for name, _ in steps:
                same(outputs[name], values[name], f"{name} of {inputs} in\n{text}\n")
