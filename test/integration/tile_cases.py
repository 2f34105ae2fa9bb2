"""Transposes, alone and among what is fused with them, and padding against NumPy: squares with a rest on two sides, rows of
sizes around a vector's, static and dynamic, in all types."""
import itertools

import numpy as np

from kit import case, expect
from numeric_movement_cases import exact, random_input
from programs import Program

TYPES = ("f32", "f64", "f16", "bf16", "i8", "ui16", "i64", "i1")
SIZES = (1, 7, 8, 9, 15, 16, 17, 33, 64)


@case(seconds=7)
def transposes_of_every_size(folder):
    p = Program()
    for number, (rows, columns) in enumerate(itertools.product(SIZES, SIZES)):
        element = TYPES[number % 3] if number % 4 else TYPES[(number // 4) % len(TYPES)]
        dims = [rows, columns] if number % 2 else [f"r{number}", f"c{number}"]
        x = random_input(p, element, (rows, columns), dims)
        exact(p, "ds.transpose {0} [1, 0]", [x], element, dims[::-1], x.array.T)
    for element in TYPES:
        for shape in ((2, 16, 3, 17), (16, 2, 33, 1), (3, 0, 16, 16)):
            for order in ((0, 1, 3, 2), (3, 1, 2, 0), (2, 0, 3, 1), (1, 3, 0, 2)):
                dims = [f"{name}{len(p.body)}" for name in "abcd"]
                x = random_input(p, element, shape, dims)
                exact(p, f"ds.transpose {{0}} {list(order)}", [x], element, [dims[i] for i in order], x.array.transpose(order))
    p.verify(folder)


@case
def transposes_among_other_steps(folder):
    p = Program()
    for number, (rows, columns) in enumerate(((17, 33), (32, 16), (40, 9), (64, 65))):
        r, c = (rows, columns) if number % 2 else (f"r{number}", f"c{number}")
        draw = lambda shape, dims: p.input(p.random.integers(-9, 9, shape).astype(np.float64), "f32", dims)
        x, y, row, column = draw((rows, columns), [r, c]), draw((columns, rows), [c, r]), draw((rows,), [r]), draw((columns, 1), [c, 1])
        turned = p.op("ds.transpose {0} [1, 0]", [x], "f32", [c, r], x.array.T)
        sum_ = p.op("ds.binary add {0}, {1}", [turned, y], "f32", [c, r], x.array.T + y.array)
        scaled = p.op("ds.binary mul {0}, {1}", [sum_, row], "f32", [c, r], sum_.array * row.array)
        exact(p, "ds.binary sub {0}, {1}", [scaled, column], "f32", [c, r], scaled.array - column.array)
        # Steps before the transpose, on what it moves; then both kinds of operand, from two transposes.
        doubled = p.op("ds.binary add {0}, {1}", [x, x], "f32", [r, c], 2 * x.array)
        back = p.op("ds.transpose {0} [1, 0]", [doubled], "f32", [c, r], 2 * x.array.T)
        exact(p, "ds.binary max {0}, {1}", [back, turned], "f32", [c, r], np.maximum(2 * x.array, x.array).T)
        signs = p.op("ds.binary lt {0}, {1}", [turned, y], "i1", [c, r], x.array.T < y.array)
        exact(p, "ds.select {0}, {1}, {2}", [signs, turned, y], "f32", [c, r], np.minimum(x.array.T, y.array))
        place = p.op(f"ds.iota 1 [{columns}, {rows}]", [], "i64", [columns, rows], np.tile(np.arange(rows), (columns, 1)))
        if number % 2:
            real = p.op("ds.cast {0} to f32", [place], "f32", [c, r], place.array)
            exact(p, "ds.binary mul {0}, {1}", [turned, real], "f32", [c, r], x.array.T * place.array)
            part = x.array[1:, ::2]
            cut = p.op(f"ds.slice {{0}} starts [1, 0] sizes {list(part.shape)} steps [1, 2]", [x], "f32", part.shape, part)
            exact(p, "ds.transpose {0} [1, 0]", [cut], "f32", part.shape[::-1], part.T)
    # Operands that are contiguous along different loops, which nothing tiles.
    a, b, c = (p.input(p.random.integers(0, 9, shape), "f32") for shape in ((24, 20, 18), (20, 24, 18), (18, 24, 20)))
    turned = [p.op(f"ds.transpose {{0}} {order}", [x], "f32", [20, 18, 24], x.array.transpose(order))
              for x, order in ((a, [1, 2, 0]), (b, [0, 2, 1]), (c, [2, 0, 1]))]
    for x, y in itertools.combinations(turned, 2):
        exact(p, "ds.binary sub {0}, {1}", [x, y], "f32", [20, 18, 24], x.array - y.array)
    p.verify(folder)


@case(seconds=6)
def elements_repeated(folder):
    """Whole parts of a vector and others, beside numbers for a row and for all, and on steps before."""
    p = Program()
    for number, (rows, columns, times) in enumerate(((1, 5, 2), (3, 8, 2), (2, 37, 4), (5, 16, 8), (2, 9, 16), (4, 7, 3), (1, 1, 4),
                                                     (0, 3, 2), (3, 0, 2), (33, 21, 2))):
        r, c = (rows, columns) if number % 2 else (f"r{number}", f"c{number}")
        for element in TYPES:
            x = random_input(p, element, (rows, columns, 1), [r, c, 1])
            text = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in (r, c, times))
            exact(p, f"ds.broadcast {{0}} [{text}]", [x], element, [r, c, times], np.repeat(x.array, times, 2))
            y = np.broadcast_to(x.array[:, None], (rows, 3, columns, times))
            apart = p.op("ds.reshape {0} [" + ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in (r, 1, c, 1)) + "]", [x],
                         element, [r, 1, c, 1], x.array[:, None])
            exact(p, "ds.broadcast {0} [" + ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in (r, 3, c, times)) + "]",
                  [apart], element, [r, 3, c, times], y)
        x, row = (p.input(p.random.integers(-9, 9, (rows, n, 1)), "f32", [r, d, 1]) for n, d in ((columns, c), (1, 1)))
        sum_ = p.op("ds.binary add {0}, {1}", [x, row], "f32", [r, c, 1], x.array + row.array)
        whole = p.op(f"ds.broadcast {{0}} [{text}]", [sum_], "f32", [r, c, times], np.repeat(sum_.array, times, 2))
        twice = p.op(f"ds.broadcast {{0}} [{text}]", [row], "f32", [r, c, times], np.broadcast_to(row.array, whole.array.shape))
        exact(p, "ds.binary mul {0}, {1}", [whole, twice], "f32", [r, c, times], whole.array * twice.array)
    p.verify(folder)


@case(seconds=7)
def padding_by_rows(folder):
    """Every kind before, behind and across axes, cropped on some sides, into the padding of the other one, too; ends longer than
    the axis, axes of 1 and of 0."""
    p = Program()
    shapes = (((37,), (3,), (40,)), ((5, 18), (2, 0), (1, 7)), ((4, 6, 9), (3, 5, 0), (0, 8, 0)), ((3, 17, 8), (2, 0, 0), (4, 0, 0)),
              ((6, 33), (-2, 4), (3, -5)), ((5, 7, 3), (0, -3, 1), (-1, 4, 2)), ((1, 16), (3, 1), (2, 1)), ((2, 9), (5, -9), (2, 12)),
              ((2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 3, 4)), ((4, 6), (0, 5), (0, -8)), ((3, 5), (4, 0), (-6, 2)))
    for number, (shape, low, high) in enumerate(shapes):
        for kind, element in itertools.product(("constant", "edge", "reflect", "wrap"), TYPES[number % 4::4]):
            name = f"{number}{kind}{element}"
            x = random_input(p, element, shape, None if number % 2 else [f"n{name}_{i}" for i in range(len(shape))])
            fill = random_input(p, element, ())
            keywords = {"constant_values": fill.array} if kind == "constant" else {}
            y = np.pad(x.array, [(max(a, 0), max(b, 0)) for a, b in zip(low, high)], kind, **keywords)
            y = y[tuple(slice(max(-a, 0), size + min(b, 0)) for a, b, size in zip(low, high, y.shape))]
            dims = list(y.shape) if number % 2 else ["?"] * len(shape)
            exact(p, f"ds.pad {kind} {{0}}, {{1}} low {list(low)} high {list(high)}", [x, fill], element, dims, y)
    none = p.input(np.zeros((0, 5)), "f32", ["none", "five"])
    fill = p.input(np.full((), 7.0), "f32")
    exact(p, "ds.pad constant {0}, {1} low [2, 1] high [1, 0]", [none, fill], "f32", ["?", "?"], np.full((3, 6), 7.0))
    exact(p, "ds.pad edge {0}, {1} low [2, 1] high [1, 0]", [none, fill], "f32", ["?", "?"], np.zeros((3, 6)))
    p.verify(folder)


@case(seconds=6)
def elements_gathered_from_rows(folder):
    """Along the last axis, in vectors: places from either end, of every width; a bad one is found wherever it stands."""
    p = Program()
    for number, count in enumerate((1, 2, 7, 8, 9, 15, 16, 17, 33, 64)):
        element, index = TYPES[number % len(TYPES)], ("i32", "i64")[number % 2]
        size = int(p.random.integers(1, 40))
        x = random_input(p, element, (3, 2, size), [f"a{number}", 2, f"c{number}"] if number % 3 else None)
        i = p.input(p.random.integers(-size, size, count), index, [f"i{number}"] if number % 2 else None)
        y = np.take(x.array, i.array, 2)
        exact(p, "ds.gather 2 {0}, {1}", [x, i], element, ["?" if isinstance(d, str) else d for d in (x.dims[0], 2, i.dims[0])], y)
    empty = p.input(np.zeros((3, 0)), "f32", ["rows", "none"])
    nothing = p.input(np.zeros(0), "i64", ["nothing"])
    exact(p, "ds.gather 1 {0}, {1}", [empty, nothing], "f32", ["?", "?"], np.zeros((3, 0)))
    p.verify(folder)
    for place in (0, 15, 16, 20):
        for value, size in ((24, 24), (-25, 24), (2**40, 24), (0, 0)):
            p = Program()
            indices = np.zeros(21, np.int64)
            indices[place] = value
            x, i = p.input(np.ones((2, size)), "f32", ["n", "m"]), p.input(indices, "i64", ["i"])
            p.test("ds.gather 1 {0}, {1}", [x, i], "f32", ["?", "?"], np.zeros((2, 21)))
            for variant in ("--mcpu=x86-64-v3", "--mcpu=host"):
                result = p.run(folder, [variant], code=1)
                expect("index" in result.err, f"{variant}: {result}")
