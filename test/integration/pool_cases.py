"""Pooling against NumPy, which walks over every window: strides, margins, dilation and the count of what is averaged, of
widths around a vector's, in all types."""
import itertools

import numpy as np

from kit import case
from programs import DTYPES, Program

FLOATS = ("f32", "f64", "f16", "bf16")


def results(size, kernel, stride, low, high, dilation, ceil):
    room = size + low + high - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil else 0)) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= size + low else count


def windows(x, kernel, strides, pads, dilations, ceil, include):
    """Of each window, what it sees as a list of arrays, and how many places an average of it divides by."""
    spatial = len(kernel)
    low, high = pads[:spatial], pads[spatial:]
    sizes = [results(*one, ceil) for one in zip(x.shape[2:], kernel, strides, low, high, dilations)]
    for at in itertools.product(*map(range, sizes)):
        taps, count = [], 1
        for i, place in enumerate(at):
            start = place * strides[i] - low[i]
            places = [start + tap * dilations[i] for tap in range(kernel[i])]
            taps.append([place for place in places if 0 <= place < x.shape[2 + i]])
            count *= sum(place < x.shape[2 + i] + high[i] for place in places) if include else len(taps[-1])
        seen = x
        for axis, places in enumerate(taps):
            seen = np.take(seen, places, 2 + axis)
        yield at, seen.reshape(*x.shape[:2], -1), count, sizes


def pooled(kind, x, exponent, element, *how):
    wide = x.astype(np.float64) if element in FLOATS else x
    for at, seen, count, sizes in windows(wide, *how):
        if at == (0,) * len(at):
            y = np.zeros((*x.shape[:2], *sizes), wide.dtype)
        with np.errstate(all="ignore"):
            if kind == "max":
                least = -np.inf if element in FLOATS else np.iinfo(DTYPES[element]).min
                value = np.max(seen, -1, initial=least)
            elif kind == "average":
                value = seen.sum(-1) / count
            else:
                value = (np.abs(seen) ** exponent).sum(-1) ** (1 / exponent)
        y[(slice(None), slice(None), *at)] = value
    return y


def add(p, kind, x, kernel, strides, pads, dilations, ceil=False, include=False, exponent=2):
    sizes = [results(*one, ceil) for one in zip(x.array.shape[2:], kernel, strides, pads[:len(kernel)], pads[len(kernel):],
                                               dilations)]
    if min(sizes) < 1:
        return
    y = pooled(kind, x.array, exponent, x.element, kernel, strides, pads, dilations, ceil, include)
    flags = f"{{{{ceil = {str(ceil).lower()}, include_pad = {str(include).lower()}, exponent = {exponent} : i64}}}}"
    names = [f"y{len(p.body)}_{i}" for i in range(y.ndim)]
    dims = [f"{name}" if isinstance(dim, str) else size for name, dim, size in zip(names, x.dims, y.shape)]
    p.test(f"ds.pool {kind} {{0}} kernel {kernel} strides {strides} pads {pads} dilations {dilations} {flags}", [x], x.element,
           dims, y, rtol=0 if kind == "max" else {"f32": 4e-6, "f64": 1e-13}.get(x.element), scale=1)


def numbers(p, element, shape, dims=None):
    if element in FLOATS:
        x = p.random.standard_normal(shape)
    else:
        info = np.iinfo(DTYPES[element])
        x = p.random.integers(info.min, info.max, shape, DTYPES[element], endpoint=True)
    return p.input(x, element, dims)


@case(seconds=6)
def windows_of_every_stride_and_margin(folder):
    p = Program()
    for number, (height, width) in enumerate(((5, 1), (1, 7), (6, 8), (4, 15), (5, 16), (3, 17), (9, 33), (4, 64), (7, 100))):
        dims = [1, 2, height, width] if number % 2 else [f"n{number}", f"c{number}", height, width]
        x = numbers(p, "f32", (1, 2, height, width), dims)
        for _ in range(6):
            kernel = [int(p.random.integers(1, 5)), int(p.random.integers(1, 6))]
            dilations = [int(p.random.integers(1, 3)) for _ in kernel]
            strides = [int(p.random.integers(1, 4)) for _ in kernel]
            pads = [int(p.random.integers(0, size)) for size in kernel * 2]
            ceil, include = bool(p.random.integers(2)), bool(p.random.integers(2))
            kind = ("max", "average", "lp")[int(p.random.integers(3))]
            add(p, kind, x, kernel, strides, pads, dilations, ceil, include, int(p.random.integers(1, 4)))
    p.verify(folder)


@case(seconds=6)
def windows_of_every_type(folder):
    """Maxima with NaN, infinities and the least integers; averages of floats; of one, two and three axes."""
    p = Program()
    for element in FLOATS + ("i8", "ui8", "i16", "i32", "ui32", "i64", "ui64"):
        x = numbers(p, element, (2, 1, 5, 37))
        if element in FLOATS:
            x.array[0, 0, 1, 3], x.array[0, 0, 2, 9], x.array[1, 0] = np.nan, np.inf, -np.inf
            x.array[1, 0, 2, :5] = -0.0
        for stride in (1, 2, 3):
            for width in (2, 3):
                add(p, "max", x, [2, width], [1, stride], [1, 1, 0, 1], [1, 1])
        if element in FLOATS:
            y = numbers(p, element, (1, 2, 3, 21))
            for include in (False, True):
                add(p, "average", y, [3, 3], [2, 2], [1, 1, 1, 1], [1, 1], True, include)
                add(p, "lp", y, [3, 2], [1, 3], [1, 0, 1, 0], [1, 2], False, include)
        line = numbers(p, element, (2, 3, 40))
        add(p, "max", line, [4], [2], [1, 2], [3])
        block = numbers(p, element, (1, 2, 3, 4, 18))
        add(p, "max", block, [2, 3, 3], [1, 2, 2], [0, 1, 1, 1, 1, 1], [1, 1, 1], True)
    p.verify(folder)


@case
def long_windows(folder):
    """Kernels that are walked in loops, the whole image among them."""
    p = Program()
    x = numbers(p, "f32", (1, 3, 14, 14))
    for kernel in ([14, 14], [12, 3], [3, 11], [1, 14]):
        for kind in ("max", "average"):
            add(p, kind, x, kernel, [1, 2], [0, 0, 0, 0], [1, 1])
            add(p, kind, x, kernel, [2, 1], [kernel[0] - 1, kernel[1] - 1, 1, 0], [1, 1], include=True)
    p.verify(folder, ["--mcpu=x86-64-v3", "--mcpu=host"])
