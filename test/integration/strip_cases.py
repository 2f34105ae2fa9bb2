"""Softmax, running sums, reductions and arg-reductions along every axis against NumPy: what lies behind the axis is walked in vectors,
so sizes are below, at and beyond their width, whole and with a rest, and dynamic."""
import numpy as np

from kit import case
from programs import DTYPES, Program, rounded

# [outer, axis, inner] for f32 lanes of 8 and 16 and strips of four vectors; inner 1 is a row.
SHAPES = ((1, 5, 1), (3, 1, 7), (2, 4, 16), (2, 3, 65), (1, 7, 130), (2, 37, 1), (2, 33, 2), (0, 3, 5), (2, 3, 0))
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "ui8", "i16", "i32", "ui32", "i64", "ui64")


def dims_of(shape, number):
    """Static for some, dynamic for others; the names are of this shape alone."""
    return list(shape) if number % 2 else [f"{name}{number}" for name in "abc"]


def special(random, shape, element):
    """Numbers with ties, both zeros and infinities, and NaN in some lines."""
    x = rounded(random.integers(-3, 4, shape).astype(np.float64), element)
    x = np.where(random.random(shape) < 0.2, -0.0, x)
    x = np.where(random.random(shape) < 0.05, random.choice([np.inf, -np.inf], shape), x)
    return np.where(random.random(shape) < 0.03, np.nan, x)


def whole(random, shape, element):
    info = np.iinfo(DTYPES[element])
    wide = random.integers(info.min, info.max, shape, DTYPES[element], endpoint=True)
    return np.where(random.random(shape) < 0.5, random.choice(np.array([info.min, 0, info.max], DTYPES[element]), shape), wide)


@case(seconds=12)
def places_of_the_greatest(folder):
    """The first or the last of the greatest, as NumPy finds it: NaN is greater and less than all numbers."""
    p = Program()
    for number, shape in enumerate(SHAPES):
        if shape[1] == 0:
            continue
        for element in FLOATS + INTEGERS:
            dims = dims_of(shape, number)
            draw = special if element in FLOATS else whole
            x = p.input(draw(p.random, shape, element), element, dims)
            for kind in ("max", "min"):
                find = np.argmax if kind == "max" else np.argmin
                y = find(x.array, 1) if x.array.size else np.zeros((shape[0], shape[2]))
                p.test(f"ds.arg_reduce {kind} {{0}} axis 1 keep false last false", [x], "i64", [dims[0], dims[2]], y)
                z = shape[1] - 1 - (find(x.array[:, ::-1], 1) if x.array.size else np.zeros((shape[0], shape[2]), int))
                p.test(f"ds.arg_reduce {kind} {{0}} axis 1 keep true last true", [x], "i64", [dims[0], 1, dims[2]], z[:, None])
    p.verify(folder)


@case(seconds=3)
def places_in_long_rows(folder):
    """Ties between lanes and between vectors: few different numbers in rows of every length around a vector's."""
    p = Program()
    for length in (*range(1, 35), 63, 64, 65, 100):
        x = p.input(p.random.integers(0, 3, (9, length)), "f32")
        last = length - 1 - np.argmax(x.array[:, ::-1], 1)
        p.test("ds.arg_reduce max {0} axis 1 keep false last false", [x], "i64", [9], np.argmax(x.array, 1))
        p.test("ds.arg_reduce max {0} axis 1 keep false last true", [x], "i64", [9], last)
    p.verify(folder, ["--mcpu=x86-64-v3", "--mcpu=host"])


@case(seconds=7)
def softmax_over_every_axis(folder):
    p = Program()
    for number, shape in enumerate(SHAPES):
        for element in FLOATS:
            dims = dims_of(shape, number)
            x = p.input(3 * p.random.standard_normal(shape), element, dims)
            x.array[:1, :1] = rounded(np.full_like(x.array[:1, :1], -np.inf if shape[1] > 1 else 1), element)
            if number == 3:  # a line of NaN, and one that only a subtracted maximum saves
                x.array[0, 1, 3] = np.nan
                x.array[1, :, 64] = rounded(1e4 + np.arange(3), element)
            shifted = x.wide - x.wide.max(1, keepdims=True, initial=-np.inf)
            with np.errstate(all="ignore"):
                total = np.exp(shifted).sum(1, keepdims=True)
                y, log = np.exp(shifted) / total, shifted - np.log(total)
            rtol = {"f32": 4e-6, "f64": 1e-13}.get(element)
            p.test("ds.softmax {0} axis 1 log false", [x], element, dims, y, rtol=rtol)
            p.test("ds.softmax {0} axis 1 log true", [x], element, dims, log, rtol=rtol, scale=1)
    p.verify(folder)


@case(seconds=12)
def running_sums_over_every_axis(folder):
    """Of whole numbers, which are exact; integers wrap."""
    p = Program()
    for number, shape in enumerate(SHAPES):
        for element in FLOATS + INTEGERS:
            dims = dims_of(shape, number)
            x = p.random.integers(-2, 3, shape) if element in FLOATS else whole(p.random, shape, element)
            x = p.input(x, element, dims)
            for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
                for kind, function, start in (("sum", np.cumsum, 0), ("prod", np.cumprod, 1)):
                    if exclusive != reverse and kind == "prod":
                        continue
                    ordered = (x.array.astype(np.float64 if element in FLOATS else x.array.dtype))[:, ::-1 if reverse else 1]
                    y = function(ordered, 1, dtype=ordered.dtype)
                    if exclusive:
                        y = np.concatenate([np.full_like(y[:, :1], start), y[:, :-1]], 1)
                    y = y[:, ::-1 if reverse else 1]
                    options = f"axis 1 exclusive {str(exclusive).lower()} reverse {str(reverse).lower()}"
                    p.test(f"ds.cumulative {kind} {{0}} {options}", [x], element, dims, y, rtol=0)
    p.verify(folder)


def extreme(kind, x, axis):
    """NaN where there is one; of zeros alone and what is further in, +0 is greater than -0."""
    start = -np.inf if kind == "max" else np.inf
    if kind == "min":
        return -extreme("max", -x, axis)
    most = x.max(axis, initial=start)
    has_positive = ((x == 0) & ~np.signbit(x)).any(axis)
    return np.where(most == 0, np.where(has_positive, 0.0, -0.0), most)


@case(seconds=16)
def several_reductions_of_one_input(folder):
    """One pass for up to four; the sign of a zero shows in its inverse."""
    p = Program()
    one = p.constant("1.0", "f32", np.float32(1))
    for number, (rows, length) in enumerate(((3, 1), (6, 65), (5, 300), (4, 1029), (3, 0))):
        for element in FLOATS:
            dims = dims_of((rows, length), number)[:2]
            x = special(p.random, (rows, length), element)
            for row, sign in zip(range(1, rows), (-1, 1, -1)):  # lines whose extreme is 0, and lines without NaN
                x[row] = sign * np.abs(np.where(np.isnan(x[row]), 0, x[row]))
            x = p.input(x, element, dims)
            for axis in (1, 0):
                if x.array.shape[axis] == 0:
                    continue
                for kind in ("max", "min"):
                    y = extreme(kind, x.wide, axis)
                    y = p.test(f"ds.reduce {kind} {{0}} axes [{axis}] keep false", [x], element, [dims[1 - axis]], y, rtol=0)
                    if element == "f32":
                        with np.errstate(all="ignore"):
                            p.test("ds.binary div {0}, {1}", [one, y], element, [dims[1 - axis]], 1 / y.array)
            x = p.input(p.random.integers(1, 3, (rows, length)), element, dims)
            for axes in ([0], [1], [0, 1]) if length else ():
                kept = [1 if axis in axes else size for axis, size in enumerate(dims)]
                for kind, y in (("max", x.wide.max(tuple(axes), initial=-np.inf, keepdims=True)),
                                ("sum", x.wide.sum(tuple(axes), keepdims=True)),
                                ("l2", np.sqrt((x.wide**2).sum(tuple(axes), keepdims=True))),
                                ("log_sum_exp", np.log(np.exp(x.wide).sum(tuple(axes), keepdims=True)))):
                    p.test(f"ds.reduce {kind} {{0}} axes {axes} keep true", [x], element, kept, y, scale=1)
        for element in ("i8", "ui8", "i32", "ui64"):
            dims = dims_of((rows, length), number)[:2]
            x = p.input(whole(p.random, (rows, length), element), element, dims)
            for axes in ([0], [1]):
                for kind in ("max", "min", "sum") if length else ("sum",):
                    y = x.array.sum(axes[0], dtype=x.array.dtype) if kind == "sum" else getattr(x.array, kind)(axes[0])
                    p.test(f"ds.reduce {kind} {{0}} axes {axes} keep false", [x], element, [dims[1 - axes[0]]], y)
    p.verify(folder)
