"""What functions of elements give: kernels on inputs, the compiler on constants, and NumPy or Python's integers.

The same program runs with its operands as inputs and as constants, where nothing may be left of it after folding. Both
must have the same bits, NaN alone may be another NaN: docs/rationale/scalars.md.
"""
import math
import re

import numpy as np

from kit import case, compile_model, expect, run_package, tool
from programs import DTYPES, SEED, Program

COUNT = 251  # whole vectors and a tail; in f64 still little enough for ds.constant
FLOATS = {"f64": (53, -1074, 1024), "f32": (24, -149, 128), "f16": (11, -24, 16), "bf16": (8, -133, 128)}
INTEGERS = {f"{sign}{bits}": (bits, sign == "i") for sign in ("i", "ui") for bits in (8, 16, 32, 64)}
STORED = {"i1": np.bool_, "bf16": np.int16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
          **{name: np.dtype(("int" if signed else "uint") + str(bits)).type for name, (bits, signed) in INTEGERS.items()}}
# Functions that are rounded once, so that NumPy and we can only agree. The others are within these units in the last
# place of the type: one rounding of a result within 1.4 units in f32, sigmoid's three, and NumPy's own error in f64.
EXACT = {"abs", "neg", "sqrt", "reciprocal", "relu", "floor", "ceil", "round", "sign", "add", "sub", "mul", "div",
         "fmod", "mod", "min", "max", "select"}
UNITS = {"f64": 6, "f32": 3, "f16": 1, "bf16": 1}
TRANSCENDENTAL = ["exp", "expm1", "log", "log1p", "erf", "tanh", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan",
                  "sinh", "cosh", "asinh", "acosh", "atanh"]
# What gives a zero of the sign of IEEE 754 for a zero.
SIGNED = {*TRANSCENDENTAL, "abs", "neg", "sqrt", "floor", "ceil", "round", "gelu erf", "gelu tanh", "gelu quick"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def wrap(value, bits, signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def to_float(value, element):
    """A double, or an integer of any size, to the nearest number of a type, ties to even."""
    precision, least, limit = FLOATS[element]
    if isinstance(value, int):
        drop = max(0, value.bit_length() - precision)
        half, rest = (1 << drop) >> 1, abs(value) & ((1 << drop) - 1)
        whole = abs(value) >> drop
        whole += drop > 0 and (rest > half or (rest == half and whole & 1))
        value = math.copysign(math.ldexp(whole, drop), value) if value else 0.0
    if element == "f64" or not math.isfinite(value) or value == 0:
        return value
    if abs(value) >= 2.0**(limit + 1):
        return math.copysign(math.inf, value)
    quantum = max(math.frexp(value)[1] - precision, least)
    result = math.ldexp(round(math.ldexp(value, -quantum)), quantum)
    return math.copysign(math.inf if abs(result) >= 2.0**limit else abs(result), value)


def draw(rng, element):
    """Random bits, small numbers, and what is special of a type."""
    if element == "i1":
        return rng.integers(0, 2, COUNT).astype(bool)
    if element in INTEGERS:
        bits, signed = INTEGERS[element]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        special = [low, low + 1, high, high - 1, 0, 1, 2, 3] + [-1, -2, -3] * signed
        values = special + [int(v) for v in rng.integers(-9 * signed, 10, 60)]
        values += [wrap(int.from_bytes(rng.bytes(8), "little"), bits, signed) >> int(rng.integers(0, bits))
                   for _ in range(COUNT - len(values))]
        values = np.array(values, STORED[element])
    else:
        precision, least, limit = FLOATS[element]
        special = [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**least, -2.0**least, 2.0**(least + precision - 1),
                   2.0**(least + precision - 1) - 2.0**least, 2.0**(limit - 1) * (2 - 2.0**(1 - precision))]
        special += [v for n in (0.5, 1, 1.5, 2, 2.5, 3, 127.5, 128, 255.5, 256) for v in (n, -n)]
        special += [v for n in (15, 16, 31, 32, 63, 64) for v in (2.0**n, -2.0**n, 2.0**n - 1)]
        values = special + [float(v) for v in rng.standard_normal(COUNT - len(special) - 60) * 4]
        values += [math.ldexp(rng.uniform(-1, 1), int(rng.integers(least, limit))) for _ in range(60)]
        values = np.array([to_float(v, element) for v in values])
        if element == "bf16":
            values = values.astype(np.float32).view(np.uint32).__rshift__(16).astype(np.uint16).view(np.int16)
        values = values.astype(STORED[element])
    return rng.permutation(values)


def numbers(array, element):
    """Python's numbers, floats as doubles."""
    if element == "bf16":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64).tolist() if element in FLOATS else [int(v) for v in array]


def integer_result(kind, x, y, bits, signed):
    if kind in ("div", "fmod"):
        quotient = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        return quotient if kind == "div" else x - y * quotient
    if kind == "pow" and y < 0:
        return 1 if x == 1 else (-1 if y & 1 else 1) if x == -1 else 0
    if kind in ("shift_left", "shift_right"):
        count, whole = y % (1 << bits), x % (1 << bits)
        return 0 if count >= bits else whole << count if kind == "shift_left" else whole >> count
    return {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "mod": lambda: x % y,
            "pow": lambda: pow(x, y, 1 << bits), "min": lambda: min(x, y), "max": lambda: max(x, y),
            "bit_and": lambda: x & y, "bit_or": lambda: x | y, "bit_xor": lambda: x ^ y, "abs": lambda: abs(x),
            "neg": lambda: -x, "sign": lambda: (x > 0) - (x < 0), "relu": lambda: max(x, 0),
            "bitwise_not": lambda: ~x, "logical_not": lambda: 1 - x}[kind]()


def float_result(kind, x, y):
    """In double, from what NumPy computes there."""
    x, y = np.float64(x), None if y is None else np.float64(y)
    with np.errstate(all="ignore"):
        if kind == "erf":
            return math.erf(x)
        if kind == "pow" and x == -math.inf and y == 0.5:
            return math.inf  # of IEEE 754; NumPy takes a square root
        if kind == "sigmoid":
            return 1 / (1 + np.exp(-x))
        if kind.startswith("gelu"):
            inner = {"gelu erf": lambda: (1 + math.erf(x * math.sqrt(0.5))) / 2, "gelu quick": lambda: 1 / (1 + np.exp(-1.702 * x)),
                     "gelu tanh": lambda: (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2}
            return x * inner[kind]()
        same = {"abs": np.abs, "neg": np.negative, "reciprocal": lambda v: 1 / v, "relu": lambda v: np.maximum(v, 0),
                "round": np.rint, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "pow": np.power, "min": np.minimum, "max": np.maximum, "asin": np.arcsin, "acos": np.arccos,
                "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}
        function = same.get(kind) or getattr(np, kind)
        return float(function(x) if y is None else function(x, y))


def cast_result(x, source, target):
    if target == "i1":
        return x != 0
    if target in FLOATS:
        return to_float(x, target)
    bits, signed = INTEGERS[target]
    if source in FLOATS:
        wide = 64 if bits == 64 or (bits == 32 and not signed) else 32
        whole = int(x) if math.isfinite(x) else None
        fits = whole is not None and abs(x) < 2.0**(wide - 1)
        upper = target == "ui64" and whole is not None and 1 << 63 <= whole < 1 << 64
        x = whole if fits or upper else -(1 << wide - 1)
    return wrap(x, bits, signed)


class Table:
    """One op a row: its text, the element type of its result, and the function that says what it must give."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.operands, self.rows = {}, []

    def operand(self, role, element):
        if (role, element) not in self.operands:
            values = draw(self.rng, element)
            if role == "divisor":
                values = np.where(values == 0, values.dtype.type(3), values)
            if role == "count":  # of bits to shift by, or of factors
                values = np.where(np.arange(COUNT) % 4 > 0, self.rng.integers(0, 70, COUNT).astype(values.dtype), values)
            self.operands[role, element] = values
        return role, element

    def add(self, text, operands, element, expected):
        self.rows.append((text, operands, element, expected))

    def unary(self, kind, element, result=None):
        name = kind if kind.startswith("gelu") else "unary " + kind
        self.add(f"ds.{name} {{}}", [self.operand("x", element)], result or element,
                 lambda x: self.expected(kind, element, x))

    def binary(self, kind, element, right=None):
        role = "divisor" if kind in ("div", "mod", "fmod") and element in INTEGERS else \
            "count" if kind.startswith("shift") or (kind == "pow" and right in (None, *INTEGERS)) and element in INTEGERS else "y"
        operands = [self.operand("x", element), self.operand(role, right or element)]
        self.add(f"ds.binary {kind} {{}}, {{}}", operands, "i1" if kind in COMPARISONS else element,
                 lambda x, y: self.expected(kind, element, x, y, right))

    @staticmethod
    def expected(kind, element, x, y=None, right=None):
        if kind in COMPARISONS:
            return eval(f"x {COMPARISONS[kind]} y")
        if kind == "is_nan":
            return math.isnan(x)
        if element in FLOATS:  # an exponent is rounded to the type in which the power is computed
            return float_result(kind, x, to_float(y, "f32") if kind == "pow" and element != "f64" else y)
        if right in FLOATS:
            return cast_result(float_result(kind, x, y), "f64", element)
        bits, signed = INTEGERS.get(element, (1, False))
        return wrap(integer_result(kind, x, y, bits, signed), bits, signed)

    def program(self, constants):
        lines, arguments, results, types = [], [], [], []
        tensor = lambda element: f"tensor<{COUNT}x{element}>"
        for (role, element), values in self.operands.items():
            name, stored = f"%{role}_{element}", "i16" if element == "bf16" else element
            given = name + ("_bits" if element == "bf16" else "")
            if constants:
                data = str(values.tolist()).lower() if element == "i1" else f'"0x{values.tobytes().hex()}"'
                lines.append(f"{given} = ds.constant dense<{data}> : {tensor(stored)}")
            else:
                arguments.append(f'{given}: {tensor(stored)} {{ds.name = "{given[1:]}", ds.dims = [{COUNT}]}}')
            if element == "bf16":
                lines.append(f"{name} = ds.bitcast {given} to bf16 : ({tensor('i16')}) -> {tensor('bf16')}")
        for i, (text, operands, element, _) in enumerate(self.rows):
            names = [f"%{role}_{given}" for role, given in operands]
            given = ", ".join(tensor(given) for _, given in operands)
            lines.append(f"%r{i} = {text.format(*names)} : ({given}) -> {tensor(element)}")
            stored, last = element, f"%r{i}"
            if element == "bf16":
                stored, last = "i16", f"%r{i}_bits"
                lines.append(f"{last} = ds.bitcast %r{i} to i16 : ({tensor('bf16')}) -> {tensor('i16')}")
            results.append(last)
            types.append(tensor(stored))
        named = ", ".join(f'{kind} {{ds.name = "r{i}"}}' for i, kind in enumerate(types))
        return (f"func.func @main({', '.join(arguments)}) -> ({named}) attributes {{ds.entry}} {{\n  " + "\n  ".join(lines)
                + f"\n  return {', '.join(results)} : {', '.join(types)}\n}}\n")

    def check(self, folder):
        folder.mkdir(exist_ok=True)
        (folder / "inputs.mlir").write_text(self.program(False))
        (folder / "constants.mlir").write_text(self.program(True))
        left = tool("ds-opt", folder / "constants.mlir", "--stop-after=graph").out
        left = re.findall(r"= ds\.(?:unary|binary|cast|bitcast|gelu|select).*", left)
        expect(not left, f"not folded: {left[:3]}")
        given = {f"{role}_{element}" + ("_bits" if element == "bf16" else ""): values
                 for (role, element), values in self.operands.items()}
        folded = run_package(compile_model(folder / "constants.mlir", folder), {}, folder)
        for cpu in ("x86-64-v3", "host"):
            run = run_package(compile_model(folder / "inputs.mlir", folder, f"--mcpu={cpu}"), given, folder)
            for i, row in enumerate(self.rows):
                self.compare(row, run[f"r{i}"], folded[f"r{i}"], cpu)
        for i, row in enumerate(self.rows):
            self.judge(row, folded[f"r{i}"])

    def compare(self, row, run, folded, cpu):
        text, operands, element, _ = row
        if element in FLOATS:
            nan = np.isnan(numbers(run, element)) & np.isnan(numbers(folded, element))
            width = f"u{run.dtype.itemsize}"
            same = nan | (run.view(width) == folded.view(width))
        else:
            same = run == folded
        at = int(np.argmin(same))
        given = [numbers(self.operands[o], o[1])[at] for o in operands]
        expect(same.all(), f"{cpu}: {text} {operands} of {given}: kernels give {numbers(run, element)[at]!r}, folding "
               f"{numbers(folded, element)[at]!r} (seed {SEED})")

    def judge(self, row, actual):
        text, operands, element, function = row
        kind = text.split(" {")[0].removeprefix("ds.").removeprefix("unary ").removeprefix("binary ")
        columns = [numbers(self.operands[o], o[1]) for o in operands]
        for given, value in zip(zip(*columns), numbers(actual, element)):
            wanted = function(*given)
            if element not in FLOATS:
                right = value == int(wanted)
            elif math.isnan(wanted) or math.isnan(value):
                right = math.isnan(wanted) and math.isnan(value)
            elif wanted == 0 == value and given[0] == 0 and kind in SIGNED:
                right = math.copysign(1, value) == math.copysign(1, wanted)
            elif kind in EXACT or kind.startswith("cast"):
                right = value == to_float(wanted, element)
            else:
                precision, least, limit = FLOATS[element]
                # GELU's factor 1 + erf cancels where x is negative: its error is a share of x.
                scale = abs(given[0]) if kind.startswith("gelu") else abs(wanted)
                finite = math.isfinite(scale) and math.isfinite(value)
                unit = 2.0**max(math.frexp(scale)[1] - precision, least) if finite else 0
                right = value == to_float(wanted, element) or abs(value - wanted) <= UNITS[element] * unit
            expect(right, f"{text} {operands} of {given}: {value!r}, expected {wanted!r} (seed {SEED})")


@case(seconds=6)
def functions_of_floats(folder):
    table = Table(SEED)
    for element in FLOATS:
        for kind in [*TRANSCENDENTAL, "abs", "neg", "sqrt", "reciprocal", "relu", "floor", "ceil", "round", "sign",
                     "gelu erf", "gelu tanh", "gelu quick"]:
            table.unary(kind, element)
        table.unary("is_nan", element, "i1")
    table.check(folder)


@case
def pairs_of_floats(folder):
    table = Table(SEED)
    for element in FLOATS:
        for kind in ["add", "sub", "mul", "div", "pow", "mod", "fmod", "min", "max", *COMPARISONS]:
            table.binary(kind, element)
        condition, x, y = table.operand("c", "i1"), table.operand("x", element), table.operand("y", element)
        table.add("ds.select {}, {}, {}", [condition, x, y], element, lambda c, x, y: x if c else y)
        for right in ("i64", "f32"):
            table.binary("pow", element, right)
    table.check(folder)


@case(seconds=12)
def functions_of_integers(folder):
    table = Table(SEED)
    for element in INTEGERS:
        for kind in ["abs", "neg", "sign", "relu", "bitwise_not"]:
            table.unary(kind, element)
        for kind in ["add", "sub", "mul", "div", "pow", "mod", "fmod", "min", "max", "bit_and", "bit_or", "bit_xor",
                     "shift_left", "shift_right", *COMPARISONS]:
            table.binary(kind, element)
    for element, right in (("i32", "i64"), ("i64", "i32"), ("ui8", "i8"), ("i16", "ui64")):
        table.binary("pow", element, right)
    table.unary("logical_not", "i1")
    for kind in ["bit_and", "bit_or", "bit_xor", "eq", "ne"]:
        table.binary(kind, "i1")
    table.check(folder)


@case(seconds=4)
def casts_between_all_types(folder):
    table = Table(SEED)
    for source in STORED:
        for target in STORED:
            if source != target:
                table.add(f"ds.cast {{}} to {target}", [table.operand("x", source)], target,
                          lambda x, pair=(source, target): cast_result(x, *pair))
    table.check(folder)


@case
def constant_exponents_change_no_bit(folder):
    """A kernel that knows the exponent multiplies; one that reads it calls the power function of everyone else."""
    exponents = [0.5, -1, 1, 2, 3, -0.5, 7]
    rng = np.random.default_rng(SEED)
    x = draw(rng, "f32")
    lines, results = [], []
    for i, exponent in enumerate(exponents):
        lines += [f"%e{i} = ds.constant dense<{float(exponent)}> : tensor<f32>",
                  f"%k{i} = ds.binary pow %x, %e{i} : (tensor<{COUNT}xf32>, tensor<f32>) -> tensor<{COUNT}xf32>",
                  f"%r{i} = ds.binary pow %x, %y{i} : (tensor<{COUNT}xf32>, tensor<f32>) -> tensor<{COUNT}xf32>"]
        results += [f"k{i}", f"r{i}"]
    arguments = [f'%x: tensor<{COUNT}xf32> {{ds.name = "x", ds.dims = [{COUNT}]}}']
    arguments += [f'%y{i}: tensor<f32> {{ds.name = "y{i}", ds.dims = []}}' for i in range(len(exponents))]
    kind = f"tensor<{COUNT}xf32>"
    text = (f"func.func @main({', '.join(arguments)}) -> (" + ", ".join(f'{kind} {{ds.name = "{r}"}}' for r in results)
            + ") attributes {ds.entry} {\n  " + "\n  ".join(lines) + "\n  return "
            + ", ".join(f"%{r}" for r in results) + " : " + ", ".join([kind] * len(results)) + "\n}\n")
    (folder / "program.mlir").write_text(text)
    given = {"x": x, **{f"y{i}": np.float32(e) for i, e in enumerate(exponents)}}
    out = run_package(compile_model(folder / "program.mlir", folder), given, folder)
    for i, exponent in enumerate(exponents):
        known, read = out[f"k{i}"], out[f"r{i}"]
        same = (known.view("u4") == read.view("u4")) | (np.isnan(known) & np.isnan(read))
        at = int(np.argmin(same))
        expect(same.all(), f"{x[at]!r} ** {exponent}: {known[at]!r} with a constant exponent, {read[at]!r} with an input")


def whole_quotients(p, element):
    """Dividends and divisors of a type: all pairs of bytes; else numbers of all sizes, edges, and what lies beside a
    multiple of the divisor, where a rounded quotient would be off by one."""
    kind = DTYPES[element]
    info = np.iinfo(kind)
    if info.bits == 8:
        x, y = np.meshgrid(np.arange(info.min, info.max + 1), np.arange(info.min, info.max + 1))
        return x[y != 0].astype(kind), y[y != 0].astype(kind)
    edges = [n for n in (info.min, info.min + 1, -2, -1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max) if n >= info.min]
    pairs = [(x, y) for x in edges for y in edges if y]
    for _ in range(3000):
        y = int(p.random.integers(1, 1 << int(p.random.integers(1, info.bits - 1)), dtype=np.uint64))
        y = -y if info.min and p.random.random() < 0.5 else y
        q = int(p.random.integers(0, info.max // abs(y) + 1, dtype=np.uint64))
        pairs += [(x, y) for x in (q * y - 1, q * y, q * y + 1) if info.min <= x <= info.max]
    return tuple(np.array(column, dtype=object).astype(kind) for column in zip(*pairs))


@case(seconds=2)
def quotients_of_integers(folder):
    """Exact, towards zero; the remainders with the sign of the divisor (mod) and of the dividend (fmod)."""
    p = Program()
    for number, element in enumerate(("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64")):
        x, y = whole_quotients(p, element)
        bits, least = np.iinfo(x.dtype).bits, np.iinfo(x.dtype).min
        wrap = lambda n: (n - least) % (1 << bits) + least
        whole = [(int(a), int(b)) for a, b in zip(x, y)]
        quotients = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in whole]
        expected = {"div": [wrap(q) for q in quotients], "fmod": [a - q * b for (a, b), q in zip(whole, quotients)],
                    "mod": [a % b for a, b in whole]}
        operands = [p.input(values, element, [f"n{number}"]) for values in (x, y)]
        for kind, values in expected.items():
            p.test(f"ds.binary {kind} {{0}}, {{1}}", operands, element, [f"n{number}"], np.array(values, object).astype(x.dtype))
    p.verify(folder)


@case
def a_divisor_of_zero_is_found_anywhere(folder):
    for length, place in ((1, 0), (64, 63), (65, 64), (200, 70), (7, 3)):
        for element in ("i8", "i64"):
            p = Program()
            x, y = (p.input(p.random.integers(1, 100, length), element) for _ in range(2))
            y.array[place] = 0
            p.test("ds.binary div {0}, {1}", [x, y], element, [length], x.array)
            ended = p.run(folder, ["--mcpu=host"], code=1)
            expect("zero" in ended.err, f"expected a division by zero, found {ended.err}")
