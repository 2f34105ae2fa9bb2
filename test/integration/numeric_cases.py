"""Random differential tests of every ds op family against NumPy. DS_SEED repeats a failure."""
import itertools
import math
import warnings

import numpy as np

from kit import case, expect
from programs import DTYPES, EPSILON, Program, rounded

FLOATS = ["f32", "f64", "f16", "bf16"]
INTEGERS = [f"{p}{n}" for p in ("i", "ui") for n in (8, 16, 32, 64)]


def specials(element):
    if element in FLOATS:
        return [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, np.inf, -np.inf, np.nan, 1e-3, 3e4, -3e4, 88.0, -88.0, 11.0]
    info = np.iinfo(DTYPES[element])
    return [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 2, 7]


def numbers(program, element, count=53):
    random = program.random
    if element in FLOATS:
        return np.concatenate([specials(element), random.standard_normal(count - 16) * 4])
    info = np.iinfo(DTYPES[element])
    low = max(info.min, -100)
    return np.concatenate([np.array(specials(element), DTYPES[element]),
                           random.integers(low, 100, count - 8).astype(DTYPES[element])])


vector_erf = np.vectorize(math.erf, otypes=[float])
UNARY = {
    "abs": np.abs, "neg": np.negative, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sqrt": np.sqrt, "reciprocal": lambda x: 1 / x,
    "erf": vector_erf, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "sign": np.sign}
INTEGER_UNARY = {"abs": np.abs, "neg": np.negative, "relu": lambda x: np.maximum(x, 0), "sign": np.sign,
                 "bitwise_not": np.invert}
GELU = {"erf": lambda x: x / 2 * (1 + vector_erf(x / np.sqrt(2))),
        "tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "quick": lambda x: x / (1 + np.exp(-1.702 * x))}
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum,
          "max": np.maximum}


@case(seconds=6)
def unary_functions(folder):
    p = Program()
    for element in FLOATS:
        x = p.input(numbers(p, element), element)
        with np.errstate(all="ignore"):
            for kind, function in UNARY.items():
                p.test(f"ds.unary {kind} {{0}}", [x], element, x.dims, function(x.wide))
            for kind, function in GELU.items():
                finite = np.isfinite(x.wide)  # -inf * 0 is NaN
                y = np.where(finite | (x.wide > 0), function(x.wide), np.nan)
                p.test(f"ds.gelu {kind} {{0}}", [x], element, x.dims, y, rtol=4 * EPSILON[element],
                       scale=np.where(finite, np.abs(x.wide), 0))
        p.test("ds.unary is_nan {0}", [x], "i1", x.dims, np.isnan(x.array))
    for element in INTEGERS:
        x = p.input(numbers(p, element), element)
        for kind, function in INTEGER_UNARY.items():
            p.test(f"ds.unary {kind} {{0}}", [x], element, x.dims, function(x.array))
    x = p.input(p.random.integers(0, 2, 37), "i1")
    p.test("ds.unary logical_not {0}", [x], "i1", x.dims, ~x.array)
    p.verify(folder)


@case(seconds=3)
def binary_functions(folder):
    p = Program()
    for element in FLOATS:
        left = rounded(numbers(p, element, 20), element)
        pairs = np.array(list(itertools.product(left, left)))
        x, y = p.input(pairs[:, 0], element), p.input(pairs[:, 1], element)
        with np.errstate(all="ignore"):
            for kind, function in BINARY.items():
                p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], element, x.dims, function(x.wide, y.wide))
            for kind, function in (("mod", np.mod), ("fmod", np.fmod)):
                # Remainders have no relative error: they are exact in the element type.
                p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], element, x.dims,
                       function(x.array, y.array) if element == "f32" else function(x.wide, y.wide), scale=1e-3)
            p.test("ds.binary pow {0}, {1}", [x, y], element, x.dims, np.power(x.wide, y.wide))
        for kind, function in COMPARISONS.items():
            p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], "i1", x.dims, function(x.array, y.array))
    p.verify(folder)


@case(seconds=12)
def integer_functions(folder):
    p = Program()
    for element in INTEGERS:
        values = numbers(p, element, 24)
        pairs = np.array(list(itertools.product(values, values)), DTYPES[element])
        x, y = p.input(pairs[:, 0], element), p.input(pairs[:, 1], element)
        divisor = p.input(np.where(pairs[:, 1] == 0, 3, pairs[:, 1]).astype(DTYPES[element]), element)
        bits = np.iinfo(DTYPES[element]).bits
        shift = p.input(p.random.integers(0, 127, len(pairs)), element)
        with np.errstate(all="ignore"):
            for kind in ("add", "sub", "mul", "min", "max"):
                p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], element, x.dims, BINARY[kind](x.array, y.array))
            for kind, function in (("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor)):
                p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], element, x.dims, function(x.array, y.array))
            remainder = np.fmod(x.array, divisor.array)
            quotient = (x.array - remainder) // divisor.array
            p.test("ds.binary div {0}, {1}", [x, divisor], element, x.dims, quotient)
            p.test("ds.binary fmod {0}, {1}", [x, divisor], element, x.dims, remainder)
            p.test("ds.binary mod {0}, {1}", [x, divisor], element, x.dims, np.mod(x.array, divisor.array))
        for kind, function in COMPARISONS.items():
            p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], "i1", x.dims, function(x.array, y.array))
        unsigned = x.array.view(f"uint{bits}")
        amount = np.minimum(shift.array, bits - 1).astype(unsigned.dtype)
        inside = shift.array < bits
        for kind, function in (("left", np.left_shift), ("right", np.right_shift)):
            shifted = np.where(inside, function(unsigned, amount), 0).astype(unsigned.dtype).view(x.array.dtype)
            p.test(f"ds.binary shift_{kind} {{0}}, {{1}}", [x, shift], element, x.dims, shifted)
        small, exponent = p.input(p.random.integers(0, 5, 40), element), p.input(p.random.integers(0, 4, 40), element)
        power = np.power(small.array.astype(np.int64), exponent.array.astype(np.int64)).astype(DTYPES[element])
        p.test("ds.binary pow {0}, {1}", [small, exponent], element, small.dims, power)
    x, y = (p.input(p.random.integers(0, 2, 37), "i1") for _ in range(2))
    for kind, function in (("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor),
                           ("eq", np.equal), ("ne", np.not_equal)):
        p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], "i1", x.dims, function(x.array, y.array))
    p.verify(folder)


@case(seconds=4)
def division_by_zero_is_diagnosed(folder):
    for variant in ("--mcpu=host", "--reference"):
        for kind, divisor in itertools.product(("div", "mod", "fmod"), ("input", "constant", "fused")):
            p = Program()
            x = p.input(np.arange(40) - 3, "i32")
            y = p.input(np.arange(40)[::-1] % 39 + 1 if divisor == "fused" else np.arange(40)[::-1], "i32")
            if divisor == "constant":
                y = p.constant("0", "i32", np.zeros((), np.int32))
            if divisor == "fused":  # computed from the input, zero somewhere
                y = p.op("ds.binary sub {0}, {1}", [y, p.constant("7", "i32", np.full((), 7))], "i32", [40], y.array)
            p.test(f"ds.binary {kind} {{0}}, {{1}}", [x, y], "i32", [40], x.array)
            result = p.run(folder, [variant], code=1)
            expect("zero" in result.err, f"{kind} by a zero {divisor}: expected a division by zero: {result}")


@case(seconds=6)
def casts(folder):
    p = Program()
    for source, target in itertools.product(FLOATS + INTEGERS + ["i1"], repeat=2):
        if source in FLOATS:
            low = 0 if target.startswith("ui") else -100
            x = p.input(np.concatenate([p.random.uniform(low, 100, 37), [0.0, 0.25, 99.9]]), source)
            if target in FLOATS:
                x = p.input(np.concatenate([numbers(p, source), [65504, 65520, 1e-7, 1e38]]), source)
        else:
            x = p.input(p.random.integers(0, 2, 33) if source == "i1" else numbers(p, source), source)
        with np.errstate(all="ignore"):
            expected = x.array != 0 if target == "i1" else rounded(x.array, target)
        p.test(f"ds.cast {{0}} to {target}", [x], target, x.dims, expected)
    # Just beside the middle of two numbers: rounding to f32 on the way would lose the side.
    for target, half in (("f16", 2.0 ** -11), ("bf16", 2.0 ** -8)):
        sides = np.array([half + 2.0 ** -45, half, half - 2.0 ** -45, 3 * half - 2.0 ** -45, 3 * half])
        up, step = np.array([2, 0, 0, 2, 4]) * half, np.array([[1.0], [-1.0], [2.0 ** -9], [-(2.0 ** 9)]])
        x = p.input(step * (1 + sides), "f64")
        p.test(f"ds.cast {{0}} to {target}", [x], target, x.dims, step * (1 + up))
    p.verify(folder)


DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def cast_whole(number, element):
    """To the nearest that the type holds, ties to even: in integers, which round nothing themselves."""
    if math.isinf(number):
        return number
    shift = max(abs(number).bit_length() - DIGITS[element], 0)
    kept, rest, half = abs(number) >> shift, abs(number) & ((1 << shift) - 1), (1 << shift) >> 1
    kept += rest > half or (rest == half > 0 and kept % 2)
    return (-1 if number < 0 else 1) * (math.inf if element == "f16" and kept << shift > 65504 else kept << shift)


@case(seconds=3)
def two_casts_round_twice(folder):
    """Whether their kernels are one or two: what the first cast drops decides ties of the second no more."""
    p = Program()
    for source in ("i64", "ui64", "i32", "ui32"):
        width = 31 if source == "i32" else 32 if source == "ui32" else 63
        near = [sum(parts) for digits in DIGITS.values() for top in (width - 1, digits + 2) if digits < top < width
                for parts in itertools.product([1 << top], [0, 1 << (top + 1 - digits)], [1 << (top - digits)], [-1, 0, 1])]
        near += [int(n) >> int(by) for n, by in p.random.integers([0, 0], [1 << width, width], (40, 2))]
        x = p.input(np.array(near + [0 if source.startswith("u") else -n for n in near], DTYPES[source]), source)
        for through, target in itertools.product(DIGITS, repeat=2):
            first = [cast_whole(number, through) for number in map(int, x.array)]
            second = [cast_whole(number, target) for number in first]
            between = p.op(f"ds.cast {{0}} to {through}", [x], through, x.dims, np.array(first, np.float64))
            p.test(f"ds.cast {{0}} to {target}", [between], target, x.dims, np.array(second, np.float64), rtol=0)
    p.verify(folder, ["--mcpu=host", "--mcpu=x86-64-v3", "--fusion=none", "--reference"])


SHAPES = [([3, 5], [5]), ([4, 1, 7], [1, 3, 1]), ([1], [6]), ([], [3, 2]), ([2, 3, 4, 5], [2, 1, 1, 5]), ([0, 3], [1, 3]),
          ([33], [1]), ([17, 1], [1, 19])]


@case(seconds=6)
def broadcasting(folder):
    p = Program()
    number = itertools.count()
    for left, right in SHAPES:
        for dynamic in (False, True):
            arrays = [p.random.standard_normal(shape) for shape in (left, right)]
            named = [[f"d{next(number)}" if dynamic else size for size in shape] for shape in (left, right)]
            x, y = (p.input(array, "f32", dims) for array, dims in zip(arrays, named))
            rank = max(len(left), len(right))
            shape = ["?"] * rank if dynamic else np.broadcast_shapes(left, right)
            both = p.op("ds.binary sub {0}, {1}", [x, y], "f32", shape, x.wide - y.wide)
            p.check(both, f"broadcast {left} {right} dynamic={dynamic}")
            half = p.op("ds.unary tanh {0}", [y], "f32", y.dims, np.tanh(y.wide))  # fuses where the sizes agree
            p.test("ds.binary mul {0}, {1}", [x, half], "f32", shape, x.wide * np.tanh(y.wide))
            condition = p.op("ds.binary gt {0}, {1}", [x, y], "i1", shape, x.array > y.array)
            p.test("ds.select {0}, {1}, {2}", [condition, x, y], "f32", shape, np.where(x.array > y.array, x.wide, y.wide))
    x = p.input(p.random.standard_normal((3, 1)), "f32")
    p.test("ds.broadcast {0} [2, 1, 4]", [x], "f32", [2, 3, 4], np.broadcast_to(x.wide, (2, 3, 4)))
    p.verify(folder)


def reduced(kind, x, axes, keep):
    functions = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "l1": lambda x, **k: np.sum(np.abs(x), **k),
                "l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)), "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
                "log_sum_exp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
                "sum_square": lambda x, **k: np.sum(x * x, **k)}
    if kind in ("max", "min"):
        return (np.max if kind == "max" else np.min)(x, axis=axes, keepdims=keep,
                                                    initial=-np.inf if kind == "max" else np.inf)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of nothing
        return functions[kind](x, axis=axes, keepdims=keep)


KINDS = ["sum", "mean", "prod", "max", "min", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"]


@case(seconds=5)
def reductions(folder):
    p = Program()
    for shape, dims in (([3, 5, 37], None), ([2, 0, 3], None), ([4, 33], ["r0", "r1"]), ([7], None)):
        x = p.input(p.random.uniform(0.1, 2, shape), "f32", dims)
        for count in range(len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                keep = bool(p.random.integers(0, 2))
                for kind in p.random.choice(KINDS, 4, replace=False):
                    y = reduced(kind, x.wide, axes, keep)
                    kept = [d for i, d in enumerate(x.dims) if i not in axes]
                    result = [1 if i in axes else d for i, d in enumerate(x.dims)] if keep else kept
                    p.test(f"ds.reduce {kind} {{0}} axes {list(axes)} keep {str(keep).lower()}", [x], "f32", result, y,
                           rtol=2e-5)
    for kind in KINDS:
        x = p.input(p.random.uniform(0.5, 1.5, (2, 3000)), "f16")
        if kind not in ("prod", "sum_square"):
            p.test(f"ds.reduce {kind} {{0}} axes [1] keep false", [x], "f16", [2], reduced(kind, x.wide, 1, False))
        x = p.input(p.random.uniform(0.5, 1.5, (2, 30)), "bf16")
        p.test(f"ds.reduce {kind} {{0}} axes [1] keep false", [x], "bf16", [2], reduced(kind, x.wide, 1, False))
    with np.errstate(all="ignore"):
        rows = np.array([[np.inf, 1, 2], [-np.inf, -np.inf, -np.inf], [np.nan, 1, np.inf], [1000, 999, -np.inf]])
        x = p.input(rows, "f32")
        p.test("ds.reduce log_sum_exp {0} axes [1] keep false", [x], "f32", [4],
               np.array([np.inf, -np.inf, np.nan, 1000 + np.log1p(np.exp(-1))]))
        columns = p.input(rows.T, "f32")
        p.test("ds.reduce log_sum_exp {0} axes [0] keep false", [columns], "f32", [4],
               np.array([np.inf, -np.inf, np.nan, 1000 + np.log1p(np.exp(-1))]))
        for kind in ("sum", "max", "min"):
            p.test(f"ds.reduce {kind} {{0}} axes [1] keep false", [x], "f32", [4], reduced(kind, rows, 1, False))
    for element in ("i32", "i64", "ui32", "ui64"):
        x = p.input(p.random.integers(0, 9, (3, 41)), element)
        for kind in ("sum", "prod", "max", "min", "l1", "sum_square"):
            with np.errstate(all="ignore"):
                y = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "l1": np.sum,
                     "sum_square": lambda a, **k: np.sum(a * a, **k)}[kind](x.array, axis=1)
            p.test(f"ds.reduce {kind} {{0}} axes [1] keep false", [x], element, [3], y.astype(DTYPES[element]))
    x = p.input(p.random.integers(0, 2, (5, 3)), "i1")
    p.test("ds.reduce max {0} axes [1] keep false", [x], "i1", [5], x.array.max(1))
    p.test("ds.reduce min {0} axes [0] keep true", [x], "i1", [1, 3], x.array.min(0, keepdims=True))
    p.verify(folder)


def softmax(x, axis, log=False):
    with np.errstate(all="ignore"):
        e = x - x.max(axis, keepdims=True)
        s = np.exp(e).sum(axis, keepdims=True)
        return e - np.log(s) if log else np.exp(e) / s


@case(seconds=12)
def rows(folder):
    p = Program()
    for element, rtol in (("f32", 1e-5), ("f64", 1e-12), ("f16", 2e-3), ("bf16", 1.6e-2)):
        shapes = [([3, 5, 37], None), ([4, 33], [f"n{element}", f"m{element}"]), ([3, 64], None)]
        for shape, dims in shapes[:3 if element == "f32" else 1]:
            x = p.input(p.random.standard_normal(shape) * 3, element, dims)
            for axis in range(len(shape)):
                for log in (False, True):
                    p.test(f"ds.softmax {{0}} axis {axis} log {str(log).lower()}", [x], element, x.dims,
                           softmax(x.wide, axis, log), rtol=rtol, scale=1 if log else None)
                axes = tuple(range(axis, len(shape)))
                scale = p.input(p.random.standard_normal(shape[axis:]), element, None if not dims else dims[axis:])
                bias = p.input(p.random.standard_normal(shape[-1:]), element, None if not dims else dims[-1:])
                centred = x.wide - x.wide.mean(axes, keepdims=True)
                y = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5) * scale.wide
                p.test(f"ds.layer_norm {{0}}, {{1}}, {{2}} axis {axis} epsilon 1.0e-5", [x, scale, bias], element, x.dims,
                       y + bias.wide, rtol=rtol, scale=3)
                p.test(f"ds.layer_norm {{0}}, {{1}} axis {axis} epsilon 1.0e-5", [x, scale], element, x.dims, y, rtol, 3)
                y = x.wide / np.sqrt((x.wide**2).mean(axes, keepdims=True) + 1e-5) * scale.wide
                p.test(f"ds.rms_norm {{0}}, {{1}} axis {axis} epsilon 1.0e-5", [x, scale], element, x.dims, y, rtol, 3)
    masked = p.input([[1.0, -np.inf, 2.0], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 0], [np.nan, 0, 0]], "f32")
    p.test("ds.softmax {0} axis 1 log false", [masked], "f32", [4, 3], softmax(masked.wide, 1), rtol=1e-5)
    p.verify(folder)


@case(seconds=23)
def same_bits_for_any_batch_and_thread_count(folder):
    p = Program()
    x = p.input(p.random.standard_normal((13, 6, 24)), "f32", ["b", "s", 24])
    w = p.weight(p.random.standard_normal((24, 50)).astype(np.float32), folder)
    y = p.check(p.op("ds.matmul {0}, {1} transpose [false, false]", [x, w], "f32", ["b", "s", 50], None), "product")
    y = p.check(p.op("ds.gelu erf {0}", [y], "f32", ["b", "s", 50], None), "gelu")
    y = p.check(p.op("ds.softmax {0} axis 2 log false", [y], "f32", ["b", "s", 50], None), "softmax")
    s = p.check(p.op("ds.matmul {0}, {1} transpose [false, true]", [y, y], "f32", ["b", "s", "s"], None), "scores")
    y = p.check(p.op("ds.matmul {0}, {1} transpose [false, false]", [s, y], "f32", ["b", "s", 50], None), "values")
    w = p.weight(p.random.standard_normal(50).astype(np.float32), folder)
    p.check(p.op("ds.layer_norm {0}, {1} axis 2 epsilon 1.0e-5", [y, w], "f32", ["b", "s", 50], None), "norm")
    heads = p.op('ds.reshape {0} ["b", 1, "s", 24]', [x], "f32", ["b", 1, "s", 24], None)
    p.check(p.op("ds.attention {0}, {1}, {2} scale 0.2", [heads] * 3, "f32", ["b", 1, "s", 24], None), "attention")
    for variant in ("--mcpu=x86-64-v3", "--mcpu=host"):
        whole = p.run(folder, [variant], ["--threads=2"])
        for rows, threads in (((0, 13), 1), ((0, 1), 1), ((4, 5), 2), ((3, 10), 1), ((12, 13), 1)):
            p.arguments[0].array, kept = x.array[rows[0]:rows[1]], p.arguments[0].array
            part = p.run(folder, [variant], [f"--threads={threads}"])
            p.arguments[0].array = kept
            for one, all_, (_, what, *_) in zip(part, whole, p.checks):
                expect(np.array_equal(one, all_[rows[0]:rows[1]]), f"DS_SEED={p.seed}: {variant}: {what} of rows {rows} "
                       f"alone, on {threads} threads, has other bits")


@case
def bitcasts(folder):
    p = Program()
    kinds = {1: ["i8", "ui8"], 2: ["f16", "i16", "ui16"], 4: ["f32", "i32", "ui32"], 8: ["f64", "i64", "ui64"]}
    for elements in kinds.values():
        for source, target in itertools.product(elements, elements):
            x = p.input(p.random.integers(-100, 100, 40).astype(DTYPES[source]), source, [f"n{source}{target}"])
            y = x.array.view(DTYPES[target])
            y = np.where(np.isnan(y), 0, y) if target in FLOATS else y  # a NaN may come back as another one
            if target in FLOATS:
                bits = p.op(f"ds.bitcast {{0}} to {target}", [x], target, x.dims, y)
                zero = p.constant("0.0", target, np.zeros((), DTYPES[target]))
                nan = p.op("ds.unary is_nan {0}", [bits], "i1", x.dims, None)
                p.test("ds.select {0}, {1}, {2}", [nan, zero, bits], target, x.dims, y)
            else:
                p.test(f"ds.bitcast {{0}} to {target}", [x], target, x.dims, y)
    x = p.input(p.random.integers(0, 2, 37), "i1")
    p.test("ds.bitcast {0} to ui8", [x], "ui8", x.dims, x.array.view(np.uint8))
    p.verify(folder)
