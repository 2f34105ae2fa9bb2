"""Random differential tests of ops that move elements, and of scans, against NumPy."""
import itertools

import numpy as np

from kit import case, expect
from programs import DTYPES, Program

TYPES = ["f32", "f64", "f16", "bf16", "i8", "i64", "ui16", "i1"]


def random_input(p, element, shape, dims=None):
    if element == "i1":
        return p.input(p.random.integers(0, 2, shape), element, dims)
    if element in ("f32", "f64", "f16", "bf16"):
        return p.input(p.random.standard_normal(shape), element, dims)
    return p.input(p.random.integers(0, 100, shape), element, dims)


def exact(p, text, operands, element, dims, expected):
    p.test(text, operands, element, dims, expected, rtol=0)


@case(seconds=6)
def movement(folder):
    p = Program()
    for element in TYPES:
        x = random_input(p, element, (3, 5, 37))
        for order in itertools.permutations(range(3)):
            y = x.array.transpose(order)
            exact(p, f"ds.transpose {{0}} {list(order)}", [x], element, y.shape, y)
        y = x.array[2::-2, 1:4, 36:0:-5]
        exact(p, f"ds.slice {{0}} starts [2, 1, 36] sizes {list(y.shape)} steps [-2, 1, -5]", [x], element, y.shape, y)
        exact(p, "ds.slice {0} starts [1, 0, 3] sizes [0, 5, 34] steps [1, 1, 1]", [x], element, [0, 5, 34],
              x.array[1:1, :, 3:])
        zero = random_input(p, element, ())
        for kind, mode in (("constant", "constant"), ("edge", "edge"), ("reflect", "reflect"), ("wrap", "wrap")):
            keywords = {"constant_values": zero.array} if kind == "constant" else {}
            y = np.pad(x.array, ((1, 2), (0, 3), (36, 5)), mode, **keywords)
            exact(p, f"ds.pad {kind} {{0}}, {{1}} low [1, 0, 36] high [2, 3, 5]", [x, zero], element, y.shape, y)
        y = np.pad(x.array[1:, :, :-4], ((0, 1), (2, 0), (0, 0)), constant_values=zero.array)
        exact(p, "ds.pad constant {0}, {1} low [-1, 2, 0] high [1, 0, -4]", [x, zero], element, y.shape, y)
        for axis in range(3):
            parts = [x]
            for size in (1, 0, 18):
                shape = [3, 5, 37]
                shape[axis] = size
                parts.append(random_input(p, element, shape, [f"c{len(p.arguments)}" if i == axis else d
                                                              for i, d in enumerate(shape)]))
            y = np.concatenate([part.array for part in parts], axis)
            exact(p, f"ds.concat {axis} {{0}}, {{1}}, {{2}}, {{3}}", parts, element,
                  ["?" if i == axis else d for i, d in enumerate(y.shape)], y)
    y = np.broadcast_to(np.arange(7)[:, None], (4, 7, 3))
    exact(p, "ds.iota 1 [4, 7, 3]", [], "i64", y.shape, y)
    p.verify(folder)


@case(seconds=6)
def elements_a_few_places_apart(folder):
    """Read in vectors of all that lies between: rows of every length, the last of which end with the buffer."""
    p = Program()
    for element, apart, length in itertools.product(TYPES, (2, 3, 4, 5), (7, 16, 19, 70)):
        x = random_input(p, element, (2, 3, length, apart))
        y = x.array.transpose(0, 3, 1, 2)
        exact(p, "ds.transpose {0} [0, 3, 1, 2]", [x], element, y.shape, y)
        if element == "i1":
            continue
        row = random_input(p, element, (3, length * apart))
        first = length % apart
        y = row.array[:, first::apart]
        shape = f"starts [0, {first}] sizes [3, {y.shape[1]}] steps [1, {apart}]"
        picked = p.op(f"ds.slice {{0}} {shape}", [row], element, y.shape, y)
        exact(p, "ds.unary abs {0}", [picked], element, y.shape, np.abs(y))
    p.verify(folder)


SCATTER = {"assign": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@case(seconds=12)
def gathers_and_scatters(folder):
    p = Program()
    for element, index in zip(TYPES, itertools.cycle(("i32", "i64"))):
        x = random_input(p, element, (4, 5, 37))
        for axis in range(3):
            size = x.array.shape[axis]
            i = p.input(p.random.integers(-size, size, (2, 3)), index)
            y = np.take(x.array, i.array, axis)
            exact(p, f"ds.gather {axis} {{0}}, {{1}}", [x, i], element, y.shape, y)
            shape = [2, 5, 30]
            i = p.input(p.random.integers(-size, size, shape), index)
            grid = list(np.indices(shape))
            grid[axis] = i.array
            exact(p, f"ds.gather_elements {axis} {{0}}, {{1}}", [x, i], element, shape, x.array[tuple(grid)])
            for kind, function in SCATTER.items():
                if element == "i1" and kind in ("add", "mul"):
                    continue
                # Each target at most once for assign; f16 and bf16 round after every update.
                unique = np.argsort(p.random.uniform(size=[2, 5, 30] if axis == 2 else x.array.shape), axis)
                target = unique[:2, :5, :30] if axis != 2 else unique
                i = p.input(target if axis != 0 else unique[:2, :, :30], index)
                updates = random_input(p, element, i.array.shape)
                grid = list(np.indices(i.array.shape))
                grid[axis] = i.array
                y = x.array.copy()
                if function is None:
                    y[tuple(grid)] = updates.array
                else:
                    y[tuple(grid)] = function(y[tuple(grid)], updates.array)
                p.test(f"ds.scatter_elements {kind} {axis} {{0}}, {{1}}, {{2}}", [x, i, updates], element, y.shape, y)
        for tuple_size in (0, 1, 2, 3):
            count = 3
            tuples = np.stack([p.random.permutation(4)[:count] if a == 0 else p.random.integers(-s, s, count)
                               for a, s in zip(range(tuple_size), (4, 5, 37))], -1) if tuple_size else np.zeros((1, 0), int)
            i = p.input(tuples, index)
            y = x.array[tuple(tuples.T)] if tuple_size else x.array[None]
            exact(p, "ds.gather_nd 0 {0}, {1}", [x, i], element, y.shape, y)
            updates = random_input(p, element, y.shape)
            z = x.array.copy()
            if tuple_size:
                z[tuple(tuples.T)] = updates.array
            else:
                z[...] = updates.array[0]
            exact(p, "ds.scatter_nd assign {0}, {1}, {2}", [x, i, updates], element, z.shape, z)
        i = p.input(p.random.integers(-5, 5, (4, 3, 1)), index)
        y = np.stack([x.array[b][i.array[b, :, 0]] for b in range(4)])
        exact(p, "ds.gather_nd 1 {0}, {1}", [x, i], element, y.shape, y)
    p.verify(folder)


@case(seconds=12)
def bad_indices_are_diagnosed(folder):
    programs = []

    def add(text, operands, element, dims):
        p = Program()
        values = [p.input(array, t, d) for array, t, d in operands]
        p.test(text, values, element, dims, np.zeros(()))
        programs.append((p, text))

    x = (np.zeros((4, 5)), "f32", ["n", "m"])
    empty = (np.zeros((0, 5)), "f32", ["n", "m"])
    for value in (4, -5, 2**40, -2**62):
        index, grid = (np.array([0, value]), "i64", ["i"]), (np.full((2, 5), value), "i64", ["i", "j"])
        pairs = (np.array([[value, 0]]), "i64", ["i", 2])
        add("ds.gather 0 {0}, {1}", [x, index], "f32", ["?", "?"])
        add("ds.gather_elements 0 {0}, {1}", [x, grid], "f32", ["?", "?"])
        add("ds.gather_nd 0 {0}, {1}", [x, pairs], "f32", ["?"])
        add("ds.scatter_elements add 0 {0}, {1}, {2}", [x, grid, (np.zeros((2, 5)), "f32", ["i", "j"])], "f32",
            ["?", "?"])
        add("ds.scatter_nd add {0}, {1}, {2}", [x, pairs, (np.zeros(1), "f32", ["i"])], "f32", ["?", "?"])
    zeros = (np.zeros((2, 5)), "i64", ["i", "j"])
    add("ds.gather 0 {0}, {1}", [empty, (np.zeros(3), "i64", ["i"])], "f32", ["?", "?"])
    add("ds.gather_elements 0 {0}, {1}", [empty, zeros], "f32", ["?", "?"])
    add("ds.scatter_elements assign 0 {0}, {1}, {2}", [empty, zeros, (np.ones((2, 5)), "f32", ["i", "j"])], "f32",
        ["?", "?"])
    # Indices may not reach beyond the operand on the other axes, nor tuples beyond the updates.
    wide = (np.zeros((2, 5000000)), "i64", ["i", "j"])
    add("ds.gather_elements 0 {0}, {1}", [x, wide], "f32", ["?", "?"])
    add("ds.scatter_elements assign 0 {0}, {1}, {2}", [x, wide, (np.ones((2, 5000000)), "f32", ["i", "j"])], "f32",
        ["?", "?"])
    add("ds.scatter_nd assign {0}, {1}, {2}", [x, (np.zeros((900000, 1)), "i64", ["i", 1]),
                                              (np.ones((1, 5)), "f32", ["u", "v"])], "f32", ["?", "?"])
    add("ds.arg_reduce max {0} axis 0 keep false last false", [empty], "i64", ["?"])
    for (p, text), variant in zip(programs, itertools.cycle(("--mcpu=host", "--reference"))):
        result = p.run(folder, [variant], code=1)
        expect(result.err.strip(), f"{text}: expected a diagnosis")


def ordered(x, largest):
    """Stable order of a line, NaN first."""
    key = np.where(np.isnan(x), np.inf, x if largest else -x) if x.dtype.kind == "f" else (x if largest else -x)
    key = np.stack([~np.isnan(x) if x.dtype.kind == "f" else np.ones(x.shape, bool), -key])
    return np.lexsort((np.arange(len(x)), key[1], key[0]))


@case(seconds=12)
def scans(folder):
    p = Program()
    for element in ("f32", "f64", "i32", "bf16"):
        array = p.random.integers(-4, 5, (3, 7, 19)).astype(np.float64)
        if element != "i32":
            array[p.random.uniform(size=array.shape) < 0.05] = np.nan
            array[0, 0, :3] = [np.inf, -np.inf, np.inf]
        x = p.input(array, element)
        for axis, largest in itertools.product(range(3), (True, False)):
            length = x.array.shape[axis]
            for k in {1, length // 2, length}:
                order = np.apply_along_axis(lambda line: ordered(line, largest), axis, x.array.astype(np.float64))
                order = np.take(order, range(k), axis)
                values = np.take_along_axis(x.array, order, axis)
                results = p.ops(f"ds.top_k {{0}} axis {axis} k [{k}] largest {str(largest).lower()}", [x],
                                [(element, values.shape, values), ("i64", values.shape, order)])
                for result in results:
                    p.check(result, f"top_k {element} axis {axis} k {k} largest {largest}")
            kind = "max" if largest else "min"
            function = np.argmax if largest else np.argmin  # NaN is greatest and least
            first = function(x.array, axis)
            last = length - 1 - function(np.flip(x.array, axis), axis)
            for which, y in (("false", first), ("true", last)):
                p.test(f"ds.arg_reduce {kind} {{0}} axis {axis} keep false last {which}", [x], "i64", y.shape, y)
                p.test(f"ds.arg_reduce {kind} {{0}} axis {axis} keep true last {which}", [x], "i64",
                       np.expand_dims(y, axis).shape, np.expand_dims(y, axis))
    for element in ("f32", "i64", "ui8"):
        x = random_input(p, element, (3, 7, 19))
        for axis, exclusive, reverse in itertools.product(range(3), (False, True), (False, True)):
            line = np.flip(x.array, axis) if reverse else x.array
            y = np.cumsum(line, axis, dtype=np.float64 if element == "f32" else DTYPES[element])
            y = y - line if exclusive else y
            y = np.flip(y, axis) if reverse else y
            options = f"axis {axis} exclusive {str(exclusive).lower()} reverse {str(reverse).lower()}"
            p.test(f"ds.cumulative sum {{0}} {options}", [x], element, y.shape, y.astype(DTYPES[element]), rtol=1e-5, scale=1)
            y = np.cumprod(line, axis, dtype=np.float64 if element == "f32" else DTYPES[element])
            if exclusive:  # one place later, after a 1
                y = np.concatenate([np.ones_like(np.take(y, [0], axis)), np.delete(y, -1, axis)], axis)
            y = np.flip(y, axis) if reverse else y
            p.test(f"ds.cumulative prod {{0}} {options}", [x], element, y.shape, y.astype(DTYPES[element]), rtol=1e-5)
    for element in TYPES:
        x = p.input(np.where(p.random.uniform(size=(5, 7)) < 0.5, 0, 1), element, [f"n{element}", 7])
        y = np.stack(np.nonzero(x.array))
        p.test(f'ds.nonzero {{0}} count "count_{element}"', [x], "i64", [2, "?"], y)
    x = p.input(np.zeros((3, 2)), "f32")
    p.test('ds.nonzero {0} count "none"', [x], "i64", [2, "?"], np.zeros((2, 0), np.int64))
    p.verify(folder)


@case(seconds=6)
def sorted_slices(folder):
    """Against a stable lexicographic sort; few values, so that many elements and slices are equal."""
    p = Program()
    for element in TYPES:
        for shape, dims in (((40,), [f"n{element}"]), ((30, 3), [f"r{element}", 3]), ((17, 2, 2), [17, f"c{element}", 2]),
                            ((65, 1), [65, f"one{element}"]), ((1, 4), [f"single{element}", 4]),
                            ((6, 0), [6, f"none{element}"]), ((0, 2), [f"empty{element}", 2])):
            values = p.random.integers(0, 2 if element == "i1" else 4, shape).astype(np.float64)
            if element in ("f32", "f64", "f16", "bf16"):
                values = np.where(p.random.uniform(size=shape) < 0.2, np.nan, values - 2)
                values[p.random.uniform(size=shape) < 0.1] = -0.0
                values[p.random.uniform(size=shape) < 0.1] = -np.inf
            elif element[0] == "i" and element != "i1":
                values -= 2
            x = p.input(values, element, dims)
            columns = x.array.astype(np.float64).reshape(shape[0], int(np.prod(shape[1:]))).T
            keys = [key for column in columns for key in (np.isnan(column), np.where(np.isnan(column), 0, column))]
            order = np.lexsort([np.arange(shape[0]), *reversed(keys)])  # the last key decides first
            exact(p, "ds.argsort {0}", [x], "i64", dims[:1], order.astype(np.int64))
    p.verify(folder)


def greedy_choice(scores, low, high, most, overlap, least):
    """The numbers of the boxes of one line that are kept; NaN is greater than every number."""
    kept = []
    order = np.lexsort((np.arange(len(scores)), -np.nan_to_num(scores, nan=0), ~np.isnan(scores)))
    for i in order:
        others = np.array(kept, int)
        shared = np.prod(np.maximum(np.minimum(high[:, others], high[:, [i]]) - np.maximum(low[:, others], low[:, [i]]), 0), 0)
        extents = high - low
        both = np.prod(extents[:, others], 0) + np.prod(extents[:, i]) - shared
        with np.errstate(all="ignore"):
            excluded = ((shared > 0) & (shared / both > overlap)).any()
        if len(kept) < most and (least is None or scores[i] > least) and not excluded:
            kept.append(i)
    return kept + [-1] * (len(scores) - len(kept))


@case(seconds=3)
def orders_of_single_elements(folder):
    """Of few and many different numbers, whose bytes are all the same or not; the order of equal ones is kept."""
    p = Program()
    for number, n in enumerate((0, 1, 2, 9, 255, 257, 1000)):
        for element in ("i8", "ui8", "i16", "i32", "ui32", "i64", "ui64"):
            info = np.iinfo(DTYPES[element])
            wide = p.random.integers(info.min, info.max, n, DTYPES[element], endpoint=True)
            small = p.random.integers(-3 if info.min else 0, 9, n)
            for x in (wide, small, np.where(p.random.random(n) < 0.5, wide, p.random.choice([info.min, 0, info.max], n))):
                x = p.input(x, element, [f"n{number}"])
                exact(p, "ds.argsort {0}", [x], "i64", [f"n{number}"], np.argsort(x.array, kind="stable"))
        for element in ("f32", "f64", "f16", "bf16"):
            x = p.random.standard_normal(n) * 2.0 ** p.random.integers(-12, 12, n)
            x = np.where(p.random.random(n) < 0.3, p.random.choice([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan, -np.nan], n), x)
            x = p.input(x, element, [f"n{number}"])
            exact(p, "ds.argsort {0}", [x], "i64", [f"n{number}"], np.argsort(x.array, kind="stable"))  # NaN comes last
    p.verify(folder)


@case(seconds=3)
def rotations_of_pairs(folder):
    """Halves of a row and neighbours, below, at and beyond a vector's width; a number of each table for a pair or a place."""
    p = Program()
    for number, width in enumerate((2, 10, 16, 32, 34, 64, 70, 128)):
        for element in ("f32", "f64", "f16"):
            for interleaved in (False, True):
                rows, columns = [2, f"r{number}"], width // 2 if number % 2 else width
                x = p.input(p.random.standard_normal((2, 3, width)), element, [*rows, width])
                tables = [p.input(p.random.uniform(-1, 1, (3, columns)), element, [rows[1], columns]) for _ in range(2)]
                first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(width // 2), slice(width // 2, None))
                cosine, sine = (np.concatenate([t.wide] * 2, 1) if columns < width else t.wide for t in tables)
                if interleaved and columns < width:
                    cosine, sine = (np.repeat(t.wide, 2, 1) for t in tables)
                a, b, y = x.wide[..., first], x.wide[..., second], np.empty(x.wide.shape)
                y[..., first] = a * cosine[:, first] - b * sine[:, first]
                y[..., second] = b * cosine[:, second] + a * sine[:, second]
                p.test(f"ds.rotary {{0}}, {{1}}, {{2}} interleaved {str(interleaved).lower()}", [x, *tables], element,
                       [*rows, width], y, scale=4)
    p.verify(folder)


@case(seconds=3)
def boxes_that_do_not_overlap_much(folder):
    """Numbers of boxes around a block of keys and beyond; ties, both zeros and NaN among scores, NaN and empty boxes."""
    p = Program()
    for number, (n, most, least) in enumerate(((0, 3, None), (1, 1, 0.5), (9, 4, None), (33, 0, 0), (64, -1, None), (64, 64, 0.25),
                                               (65, 20, -1), (200, 150, None), (700, 100, 0.1), (130, 1 << 40, -0.0))):
        for element in ("f32", "f64", "f16"):
            batches, classes = (1, 2) if number % 2 else (2, 1)
            few = p.random.choice(np.array([-1, -0.0, 0, 0.5, np.inf]), (batches, classes, n))
            scores = np.where(p.random.random(few.shape) < 0.5, p.random.uniform(0, 1, few.shape), few)
            scores = np.where(p.random.random(few.shape) < 0.05, np.nan, scores)
            low = p.random.uniform(0, 5, (batches, 2, n))
            high = low + p.random.uniform(0.3, 3, low.shape)
            high = np.where(p.random.random(low.shape) < 0.05, low, np.where(p.random.random(low.shape) < 0.02, np.nan, high))
            if element == "f16":  # what two boxes share and cover is exact
                scores, low, high = scores, np.round(2 * low) / 2, np.round(2 * high) / 2
            dims = [batches, classes, f"n{number}"], [batches, 2, f"n{number}"]
            operands = [p.input(x, element, d) for x, d in ((scores, dims[0]), (low, dims[1]), (high, dims[1]))]
            operands += [p.input(np.int64(most), "i64"), p.input(np.float64(0.3125), element)]
            text = "ds.suppress {0}, {1}, {2} most {3} overlap {4}"
            if least is not None:
                operands.append(p.input(np.float64(least), element))
                text += " least {5}"
            values = [x.wide for x in operands]
            y = [[greedy_choice(values[0][b, c], values[1][b], values[2][b], most, 0.3125, None if least is None else values[5])
                  for c in range(classes)] for b in range(batches)]
            p.test(text, operands, "i64", dims[0], np.array(y, np.int64).reshape(batches, classes, n))
    p.verify(folder)


@case
def recurrences(folder):
    p = Program()
    random = p.random
    for element, heads, groups, steps, delta in (("f32", 4, 2, 7, True), ("f64", 3, 3, 5, False), ("f64", 4, 1, 3, True)):
        shapes = [(2, heads, steps, 6), (2, groups, steps, 6), (2, groups, steps, 5), (2, groups, steps, 6),
                  (2, groups, steps), (2, groups, 6, 5)]
        dims = [[2, h, f"t{heads}{groups}", *rest] for (_, h, _, *rest) in shapes[:5]] + [list(shapes[5])]
        inputs = [p.input(random.uniform(0, 1, shape) / 2, element, d) for shape, d in zip(shapes, dims)]
        q, k, v, g, b, state = (value.wide for value in inputs)
        y = np.zeros((2, heads, steps, 5))
        for t in range(steps):
            state = g[:, :, t, :, None] * state
            update = v[:, :, t]
            if delta:
                update = b[:, :, t, None] * (update - np.einsum("bgde,bgd->bge", state, k[:, :, t]))
            state = state + k[:, :, t, :, None] * update[:, :, None, :]
            y[:, :, t] = 0.5 * np.einsum("bhde,bhd->bhe", np.repeat(state, heads // groups, 1), q[:, :, t])
        results = p.ops(f"ds.linear_attention {{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}} scale 0.5 delta {str(delta).lower()}",
                        inputs, [(element, [*dims[0][:3], 5], y), (element, shapes[5], state)])
        for value in results:
            p.check(value, f"linear attention of {element}", rtol=1e-5 if element == "f32" else 1e-13, scale=1)
    p.verify(folder)
