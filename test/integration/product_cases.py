"""Matrix products of every element type at the edges of blocks, panels and vectors, against NumPy's exact numbers."""
import itertools

import numpy as np

from kit import case
from products import FLOATS, WHOLE, Model, extreme, normal, product

ROWS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 31, 33, 130, 131)
DEPTHS = (0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 767, 769, 1537)
COLUMNS = (1, 7, 8, 15, 16, 17, 31, 47, 48, 49, 100)


def pairs(random, count=None):
    """Every depth and every number of columns at least once, in pairs that the seed chooses."""
    wide = [*COLUMNS, *random.choice(COLUMNS, len(DEPTHS) - len(COLUMNS))]
    found = list(zip(DEPTHS, (int(n) for n in random.permutation(wide))))
    return found if count is None else [found[i] for i in random.permutation(len(found))[:count]]


def constant_weights(folder, name, elements):
    """Packed weights: rows in a dynamic dimension; the wide numbers are now those of x, now those of the weight."""
    m = Model(name)
    for element in elements:
        inputs = {}
        for number, (k, n) in enumerate(pairs(m.random)):
            wide = number % 2 == 0
            if (k, wide) not in inputs:
                inputs[k, wide] = m.input(element, ["m", k], wide=wide)
            x = inputs[k, wide]
            if number % 3 == 1:
                weight = m.drawn(element, (n, k), wide=not wide)
                m.check(m.node("Gemm", [x, weight], transB=1), element, [x, weight], lambda x, w: product(x, w.T), k)
            else:
                m.matmul(element, x, m.drawn(element, (k, n), wide=not wide), k)
    package = m.compiled(folder)
    for rows in ROWS:
        m.verify(package, m.feed({"m": rows}), folder, f"--threads={1 + rows % 3}", about=f"{rows} rows:")


@case(seconds=12)
def floats_times_constant_weights(folder):
    constant_weights(folder, "single", FLOATS[:2])


@case(seconds=23)
def half_floats_times_constant_weights(folder):
    constant_weights(folder, "half", FLOATS[2:])


@case(seconds=23)
def integers_times_constant_weights(folder):
    constant_weights(folder, "whole", WHOLE)


@case(seconds=12)
def operands_of_run_time_sizes_either_way(folder):
    m = Model("either way")
    for element in FLOATS + WHOLE:
        sides = {}
        for wide in (True, False):
            sides[wide] = [m.input(element, dims, wide=wide) for dims in (["m", "k"], ["k", "m"])], \
                          [m.input(element, dims, wide=not wide) for dims in (["k", "n"], ["n", "k"])]
        for number, (i, j) in enumerate(itertools.product((0, 1), repeat=2)):
            lefts, rights = sides[number % 2 == 0]
            a, b = lefts[i], rights[j]
            judge = lambda a, b, i=i, j=j: product(a.T if i else a, b.T if j else b)
            m.check(m.node("Gemm", [a, b], transA=i, transB=j), element, [a, b], judge, "k")
            lefts, rights = sides[number % 2 == 1]
            a, b = lefts[i], rights[j]
            turned = [m.node("Transpose", [x], perm=[1, 0]) if turn else x for x, turn in ((a, i), (b, j))]
            m.check(m.node("MatMul", turned), element, [a, b], judge, "k")
    package = m.compiled(folder)
    columns = itertools.cycle(m.random.permutation(COLUMNS))
    depths = itertools.cycle(m.random.permutation(DEPTHS))
    for rows in m.random.permutation(ROWS):
        sizes = {"m": int(rows), "k": int(next(depths)), "n": int(next(columns))}
        m.verify(package, m.feed(sizes), folder, about=f"{sizes}:")
    for sizes in ({"m": 3, "k": 5, "n": 0}, {"m": 0, "k": 0, "n": 0}, {"m": 1, "k": 1, "n": 1}):
        m.verify(package, m.feed(sizes), folder, about=f"{sizes}:")


@case(seconds=23)
def batches_broadcast_and_vectors_are_rows_or_columns(folder):
    m = Model("batches")
    for element in ("f32", "f64", "f16", "bf16", "i32", "u64"):
        x, y = m.input(element, ["b", "c", "m", 13]), m.input(element, ["d", 13, 50], wide=False)
        m.matmul(element, x, y, 13)  # d is 1 or c
        m.matmul(element, m.input(element, ["c", "m", 13]), m.drawn(element, (13, 49), wide=False), 13)
        m.matmul(element, m.drawn(element, (5, 1, 4, 9)), m.input(element, ["d", 9, "n"], wide=False), 9)
        m.matmul(element, m.drawn(element, (3, 17), wide=False), m.input(element, ["c", 17, "n"]), 17)
        row, long = m.input(element, ["n"]), m.input(element, ["n"], wide=False)
        m.matmul(element, row, m.input(element, ["n", 47], wide=False), "n")
        m.matmul(element, row, m.input(element, ["c", "n", 31], wide=False), "n")
        m.matmul(element, m.input(element, ["m", "n"]), long, "n")
        m.matmul(element, m.input(element, ["b", "m", "n"]), long, "n")
        m.matmul(element, row, long, "n")
        m.matmul(element, m.drawn(element, (65,)), m.drawn(element, (65, 17), wide=False), 65)
        m.matmul(element, m.input(element, ["m", 65]), m.drawn(element, (65,), wide=False), 65)
        square = m.input(element, ["m", "n"], wide=element not in ("f32", "f16"))  # whose squares stay exact
        if element != "f64":
            turned = m.node("Transpose", [square], perm=[1, 0])
            m.check(m.node("MatMul", [square, turned]), element, [square], lambda x: product(x, x.T), "n")
    package = m.compiled(folder)
    for b, c, d, rows, n in ((1, 1, 1, 1, 1), (2, 3, 3, 5, 7), (2, 3, 1, 4, 64), (0, 2, 2, 3, 9), (3, 0, 0, 2, 8),
                             (2, 1, 1, 0, 17), (1, 4, 4, 17, 0), (1, 2, 1, 33, 129)):
        sizes = {"b": b, "c": c, "d": d, "m": rows, "n": n}
        m.verify(package, m.feed(sizes), folder, about=f"{sizes}:")


@case(seconds=6)
def products_of_stated_sizes(folder):
    """Sizes that the compiler knows, a row or a column among them, choose code of their own."""
    m = Model("stated")
    for element in ("f32", "f64", "f16", "bf16", "i32", "i64"):
        for number, (rows, k, n) in enumerate(((1, 7, 49), (1, 65, 1), (9, 1, 17), (4, 8, 8), (7, 63, 1), (6, 5, 16),
                                               (1, 1, 1), (13, 0, 5), (0, 4, 6), (2, 769, 3), (130, 3, 100))):
            x = m.input(element, [rows, k], wide=number % 2 == 0)
            m.matmul(element, x, m.drawn(element, (k, n), wide=number % 2 == 1), k)
            m.matmul(element, x, m.input(element, [k, n], wide=number % 2 == 1), k)
    package = m.compiled(folder)
    for threads in (1, 2, 3):
        m.verify(package, m.feed({}), folder, f"--threads={threads}")


@case(seconds=12)
def what_is_fused_to_a_product(folder):
    """Bias in each form, factors, activations and residuals behind products, elementwise work before them."""
    m = Model("fused")
    for element in ("f32", "f64", "f16", "bf16", "i32", "u32", "i64"):
        k, n = 21, 49
        # The product and the sum may each be rounded: both hold sums of narrow numbers.
        x, w = m.input(element, ["m", k], wide=element not in ("f16", "bf16")), m.drawn(element, (k, n), wide=False)
        right = m.input(element, [k, n], wide=False)
        for bias in ((n,), (1, n), ("m", 1), ("m", n), (1,), ()):
            b = m.input(element, list(bias), wide=False)
            m.check(m.node("Gemm", [x, w, b]), element, [x, w, b], lambda x, w, b: product(x, w) + b)
        stored = m.drawn(element, (n,), wide=False)
        m.check(m.node("Gemm", [x, w, stored]), element, [x, w, stored], lambda x, w, b: product(x, w) + b)
        if element in ("f32", "f64"):
            m.check(m.node("Gemm", [x, right, stored], alpha=2.0, beta=-0.5), element, [x, right, stored],
                    lambda x, w, b: 2 * product(x, w) - b / 2)
        if element in FLOATS:
            y = m.input(element, ["m", n], wide=False)
            relu = m.node("Relu", [m.node("Add", [m.node("MatMul", [x, w]), stored])])
            m.check(m.node("Add", [relu, y]), element, [x, w, stored, y], lambda x, w, b, y: np.maximum(product(x, w) + b, 0) + y)
            least = m.node("Relu", [x])
            m.check(m.node("MatMul", [least, w]), element, [x, w], lambda x, w: product(np.maximum(x, 0), w))
            m.check(m.node("MatMul", [least, right]), element, [x, right], lambda x, w: product(np.maximum(x, 0), w))
        twice = m.node("Add", [m.node("MatMul", [x, w]), m.node("MatMul", [x, right])])
        m.check(twice, element, [x, w, right], lambda x, w, r: product(x, w) + product(x, r))
    package = m.compiled(folder)
    for rows in (0, 1, 5, 8, 17, 131):
        m.verify(package, m.feed({"m": rows}), folder, about=f"{rows} rows:")


def standing_alone():
    """Floats by packed and by run-time weights, by depths that leave a rest of each kind."""
    m = Model("alone")
    for element in FLOATS:
        for k, n in ((1, 1), (5, 7), (65, 49), (769, 17)):
            x = m.input(element, ["m", k])
            m.matmul(element, x, m.drawn(element, (k, n), normal), k)
            m.matmul(element, x, m.input(element, [k, n]), k)
        x = m.input(element, ["m", 130])
        m.matmul(element, x, m.input(element, [130]), 130)
        turned = m.input(element, [48, 130])
        m.check(m.node("Gemm", [x, turned], transB=1), element, [x, turned], lambda x, w: product(x, w.T), 130)
    return m


@case(seconds=23)
def the_bits_of_a_row_depend_on_nothing_but_the_row(folder):
    """Neither on other rows and how many there are, nor on NaN and infinities in them, nor on threads."""
    m = standing_alone()
    package = m.compiled(folder)
    feed = m.feed({"m": 131}, normal)
    whole = m.verify(package, feed, folder, "--threads=2", whole=False)
    rows = {name for name, (_, dims, _, _) in m.inputs.items() if dims[0] == "m"}
    for threads in (1, 3):
        m.same_bits(whole, m.run(package, feed, folder, f"--threads={threads}"), f"{threads} threads")
    for first, end, threads in ((0, 1, 1), (130, 131, 3), (5, 6, 2), (3, 20, 1), (7, 13, 2), (40, 106, 3), (1, 131, 1)):
        part = m.run(package, {name: array[first:end] if name in rows else array for name, array in feed.items()}, folder,
                     f"--threads={threads}")
        m.same_bits(whole, part, f"rows {first} to {end} alone, {threads} threads", lambda name, array: array[first:end])
    for total in (17, 131):
        bad = {name: array[:total].copy() if name in rows else array for name, array in feed.items()}
        for name in rows:
            last = bad[name].shape[1] - 1
            bad[name][3] = np.nan
            bad[name][6, 0], bad[name][7, last] = np.inf, np.nan
            bad[name][12, last], bad[name][total - 1, last] = -np.inf, np.inf
        good = np.delete(np.arange(total), [3, 6, 7, 12, total - 1])
        found = m.verify(package, bad, folder, whole=False, about="rows with NaN and infinities:")
        m.same_bits({name: array[good] for name, array in found.items()}, {name: array[good] for name, array in whole.items()},
                    f"{total} rows, some of NaN")


@case(seconds=34)
def columns_keep_their_infinities_to_themselves(folder):
    """NaN and infinities in the first, the last real and one other column, beside zeros and beside infinities of x."""
    m = Model("columns")
    ends = []
    for element in FLOATS:
        for k, n in ((1, 1), (3, 7), (8, 17), (65, 31), (5, 49), (64, 100)):
            weight = normal(m.random, element, (k, n))
            weight[-1, -1], weight[0, 0] = np.inf, np.nan
            weight[k // 2, n // 2] = -np.inf
            x = m.input(element, ["m", k])
            for right, turn in ((m.constant(element, weight), 0), (m.constant(element, weight.T), 1),
                                (m.input(element, [k, n], lambda *_, weight=weight: weight), 0),
                                (m.input(element, [n, k], lambda *_, weight=weight: weight.T), 1)):
                m.check(m.node("Gemm", [x, right], transB=turn), element, [x, right],
                        lambda x, w, turn=turn: product(x, w.T if turn else w), k)
            ends.append(x.removesuffix("_bf16"))
    package = m.compiled(folder)
    for rows in (1, 7, 33):
        feed = m.feed({"m": rows}, normal)
        m.verify(package, feed, folder, whole=False, about="finite x:")
        for name in ends:
            feed[name][0] = 0  # zero times infinity is NaN in these columns, in no other
            feed[name][rows // 2, -1] = np.inf
        m.verify(package, feed, folder, whole=False, about="x with zeros and infinities:")


@case(seconds=23)
def every_variant_computes_the_same(folder):
    m = Model("variants")
    for element in (*FLOATS, "i32", "u64"):
        for k, n in ((7, 17), (65, 49)):
            x = m.input(element, ["m", k])
            m.matmul(element, x, m.drawn(element, (k, n), wide=False), k)
            m.matmul(element, x, m.input(element, [k, n], wide=False), k)
    for left, right in itertools.product(("u8", "i8"), repeat=2):
        x, w = m.input(left, ["m", 65]), m.drawn(right, (65, 31), extreme)
        m.check(m.node("MatMulInteger", [x, w]), "i32", [x, w], product)
    for option in ("--mcpu=x86-64-v3", "--reference"):
        package = m.compiled(folder, option)
        for rows in (1, 13):
            m.verify(package, m.feed({"m": rows}), folder, about=f"{option}, {rows} rows:")
