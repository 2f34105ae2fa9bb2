"""What follows a product in its kernel: chains of elementwise operators behind products and convolutions of every element
type, against NumPy's exact numbers. All numbers are whole and so small that every type holds every value between them."""
import itertools

import numpy as np
from onnx import TensorProto

from convolution_cases import convolution, geometry
from kit import case, expect, processors, tool
from products import CODES, FLOATS, NUMPY, Model, narrowed, product
from programs import SEED, rounded

ROWS = (0, 1, 2, 7, 8, 9, 127, 128, 129, 131, 260)
COLUMNS = (1, 15, 16, 17, 47, 48, 49, 100)
FUSIONS = ("none", "generic", "specialized")
CPUS = (processors()[0], processors()[-1])
LARGEST = {"f32": 1 << 24, "f64": 1 << 53, "f16": 1 << 11, "bf16": 1 << 8}  # up to here whole numbers are exact


def small(random, element, shape, wide=True):
    return random.integers(-1, 2, shape).astype(np.float64 if element in FLOATS else NUMPY[element])


def few(random, element, shape, wide=True):
    return random.integers(0, 4, shape).astype(np.float64 if element in FLOATS else NUMPY[element])


class Term:
    """A value of the graph: what it is computed from, its sizes, and the greatest number that it may hold."""

    def __init__(self, name, element, dims, leaves, value, bound):
        self.name, self.element, self.dims, self.leaves, self.value, self.bound = name, element, dims, leaves, value, bound


class Chains:
    """Random chains of operators; `value` of a term takes the arrays of the leaves by name."""

    def __init__(self, name):
        self.m = Model(name)
        self.random = self.m.random
        self.inputs = {}
        self.turn = 0

    def leaf(self, element, dims, make=small, stored=False):
        if stored:
            name = self.m.drawn(element, tuple(dims), make)
        else:
            name = self.m.input(element, list(dims), make)
        return Term(name, element, list(dims), [name], lambda env: env[name], 3 if make is few else 1)

    def shared(self, element, dims):
        """An input that many chains read."""
        key = element, tuple(dims)
        if key not in self.inputs:
            self.inputs[key] = self.leaf(element, dims)
        return self.inputs[key]

    def number(self, element, value):
        value = np.array(value, np.float64 if element in FLOATS else NUMPY[element])
        name = self.m.constant(element, value)
        return Term(name, element, [], [], lambda env: value, abs(int(value)))

    def anchored(self, op, operands, element, dims, value, bound, **attributes):
        name = self.m.node(op, [operand.name for operand in operands], **attributes)
        leaves = list(dict.fromkeys(leaf for operand in operands for leaf in operand.leaves))
        return Term(name, element, dims, leaves, lambda env: value(*(operand.value(env) for operand in operands)), bound)

    def op(self, op, operands, value, bound, element=None, dims=None, **attributes):
        element = element or operands[0].element
        if element in LARGEST:
            assert bound <= LARGEST[element], (op, element, bound)

        def number(*arrays):
            result = value(*arrays)
            return result if element in FLOATS or element == "i1" else narrowed(result, element)
        return self.anchored(op, operands, element, dims or operands[0].dims, number, bound, **attributes)

    def clip(self, term, low, high):
        if term.element in FLOATS:
            bounds = [self.number(term.element, low), self.number(term.element, high)]
            return self.op("Clip", [term, *bounds], np.clip, max(-low, high))
        top = self.op("Min", [term, self.number(term.element, high)], np.minimum, high)
        return self.op("Max", [top, self.number(term.element, max(low, 0) if term.element[0] == "u" else low)], np.maximum, high)

    def tamed(self, term, most):
        """The term, or what Clip leaves of it."""
        if term.element in FLOATS and term.bound > most:
            return self.clip(term, -3, most)
        return term

    def cast(self, term, element):
        codes = {**CODES, "i1": TensorProto.BOOL}
        wrap = lambda x: x.astype(np.float64) if element in FLOATS else x.astype(np.int64)
        return self.op("Cast", [term], wrap, term.bound, element, to=codes[element])

    def shapes(self, dims, rows):
        """How operands may meet a result whose first `rows` axes are rows: whole, one number, rows, columns, and as no
        tile is met, which stays outside."""
        rank = len(dims)
        yield dims
        yield []
        yield [1] * rank
        yield dims[rows:]
        yield [*dims[:rows], *[1] * (rank - rows)]
        if rows > 1:
            yield [dims[rows - 1], *[1] * (rank - rows)]
            yield [dims[0], *[1] * (rank - 1)]
            yield [1, *dims[1:]]

    def partner(self, term, rows):
        shapes = list(self.shapes(term.dims, rows))
        dims = shapes[self.random.integers(len(shapes))]
        static = not any(isinstance(dim, str) for dim in dims)
        if static and self.random.random() < 0.5:
            return self.leaf(term.element, dims, stored=True)
        return self.shared(term.element, dims)

    def step(self, term, rows, earlier):
        """One more operator; `earlier` are values of the same sizes and type."""
        m, element, most = self.random, term.element, LARGEST.get(term.element, 1 << 30)
        isFloat = element in FLOATS
        kind = m.integers(12)
        same = [other for other in earlier if other.element == element]
        other = same[m.integers(len(same))] if same and m.random() < 0.3 else self.partner(term, rows)
        if kind <= 3:
            op, f = (("Add", np.add), ("Sub", np.subtract), ("Add", np.add), ("Mul", np.multiply))[kind]
            if isFloat and (term.bound + other.bound if kind < 3 else term.bound * other.bound) > most:
                term, other = self.tamed(term, 5), self.tamed(other, 4)
            bound = term.bound + other.bound if kind < 3 else term.bound * other.bound
            pair = [term, other] if m.random() < 0.5 else [other, term]
            return self.op(op, pair, f, bound, element, term.dims)
        if kind == 4:
            return self.op("Relu", [term], lambda x: np.maximum(x, 0), term.bound) if isFloat or element == "i32" else \
                self.op("Max", [term, other], np.maximum, max(term.bound, other.bound))
        if kind == 5:
            return self.op("Min", [other, term], np.minimum, max(term.bound, other.bound), element, term.dims)
        if kind == 6:
            return self.clip(term, -2, 6)
        if kind == 7:
            return self.op("Neg", [term], np.negative, term.bound) if element[0] != "u" else \
                self.op("Max", [term, other], np.maximum, max(term.bound, other.bound))
        if kind in (8, 9):
            compare, f = (("Less", np.less), ("GreaterOrEqual", np.greater_equal), ("Equal", np.equal))[m.integers(3)]
            flag = self.op(compare, [term, other], f, 1, "i1", term.dims)
            pair = [term, other] if m.random() < 0.5 else [other, self.number(element, 2)]
            return self.op("Where", [flag, *pair], lambda c, x, y: np.where(c, x, y), max(term.bound, other.bound, 2), element, term.dims)
        if kind == 10:
            return self.op("Add", [term, term], np.add, 2 * term.bound) if 2 * term.bound <= most else \
                self.op("Sub", [term, term], np.subtract, 0)
        return self.op("Abs", [term], np.abs, term.bound)

    def chain(self, term, rows, length=5):
        """Checks the end and one or two values on the way, which makes regions with several results. The first operands
        take all shapes in turn."""
        shapes = list(self.shapes(term.dims, rows))
        operand = self.shared(term.element, shapes[self.turn % len(shapes)])
        self.turn += 1
        term = self.op("Sub", [term, operand], np.subtract, term.bound + operand.bound)
        earlier = [term]
        for _ in range(length):
            earlier.append(self.step(earlier[-1], rows, earlier))
        self.check(earlier[-1])
        if self.random.random() < 0.6:
            self.check(earlier[self.random.integers(len(earlier) - 1)])
        target = ("i8", "u8", "i32", "i64", "f16", "f64", "f32", "u16", "i1", "bf16")[self.random.integers(10)]
        if target != term.element and self.random.random() < 0.7:
            last = earlier[-1]
            last = self.clip(last, 0 if target[0] in "ui" and target != "i64" else -100, 100) if last.element in FLOATS else \
                self.clip(last, 0, 100)
            if target == "i1":
                wide = self.cast(self.op("Greater", [last, self.number(last.element, 2)], np.greater, 1, "i1"), "f32")
                self.check(self.op("Mul", [wide, self.number("f32", 3)], np.multiply, 3))
            else:
                self.check(self.cast(last, target))

    def check(self, term):
        element, leaves = term.element, term.leaves
        self.m.check(self.m.node("Identity", [term.name]), element, leaves, lambda *arrays: term.value(dict(zip(leaves, arrays))))

    def product(self, x, w, element=None, bound=None, **more):
        dims = [*x.dims[:-2], x.dims[-2], w.dims[-1]] if len(x.dims) > 1 else [w.dims[-1]]
        if len(w.dims) > len(x.dims):
            dims = [*w.dims[:-2], *dims[-2:]]
        depth = x.dims[-1] if isinstance(x.dims[-1], int) else 20
        exact = lambda a, b: product(np.broadcast_to(a, a.shape), b)
        return self.op("MatMul", [x, w], exact, depth * x.bound * w.bound, element or x.element, dims)


def judged(chains, folder, sizes, options=(), threads=True):
    """Every size against NumPy, under every kind of fusion and for processors with vectors of two lengths; floats of 32
    and 64 bits and integers have the same bits in all of them, and for every number of threads."""
    m = chains.m
    feeds = [(size, m.feed(size)) for size in sizes]
    packages = {(fusion, cpu): m.compiled(folder, f"--fusion={fusion}", f"--mcpu={cpu}", *options).rename(folder / f"{fusion}-{cpu}.dsp")
                for fusion, cpu in dict.fromkeys([*((fusion, CPUS[1]) for fusion in FUSIONS), ("specialized", CPUS[0])])}
    for number, (size, feed) in enumerate(feeds):
        first = None
        for (fusion, cpu), package in packages.items():
            found = m.verify(package, feed, folder, f"--threads={1 + number % 3}", about=f"{size} {fusion} {cpu}:")
            if first is not None:
                m.same_bits(first, found, f"{size} {fusion} {cpu}")
            first = found
        m.same_bits(first, m.run(package, feed, folder, f"--threads={1 + (number + 1) % 3}"), f"{size}, other threads")


def linear_layers(folder, name, elements, columns):
    c = Chains(name)
    for element in elements:
        for number, n in enumerate(columns):
            depth = (3, 5, 16, 1)[number % 4]
            if number % 3 == 2:
                x, rows = c.shared(element, ["m", 3, depth]), 2
            else:
                x, rows = c.shared(element, ["m", depth]), 1
            w = c.leaf(element, [depth, n], stored=True)
            c.chain(c.product(x, w), rows)
    judged(c, folder, [{"m": rows} for rows in c.random.permutation(ROWS)[:7]])


@case(seconds=12)
def floats_behind_linear_layers(folder):
    linear_layers(folder, "linear f32", ("f32",), COLUMNS)


@case(seconds=12)
def doubles_behind_linear_layers(folder):
    linear_layers(folder, "linear f64", ("f64",), COLUMNS[1:])


@case(seconds=23)
def half_floats_behind_linear_layers(folder):
    linear_layers(folder, "linear f16", ("f16", "bf16"), (1, 16, 17, 48, 100))


@case(seconds=6)
def what_follows_sees_what_memory_would_hold(folder):
    """Sums that their type does not hold are rounded to it before they are cast to a wider one."""
    m = Model("rounded first")
    for element in ("f16", "bf16"):
        x, y = m.input(element, ["m", 5]), m.input(element, ["b", 3, "m", "n"])
        for n in (1, 17, 48):
            w = m.drawn(element, (5, n), wide=False)
            wide = m.node("Cast", [m.node("MatMul", [x, w])], to=CODES["f32"])
            m.check(wide, "f32", [x, w], lambda a, b, element=element: rounded(a @ b, element))
        for filters, groups, kernel in ((7, 1, [1, 1]), (3, 3, [3, 3]), (4, 1, [3, 3])):
            w, attributes = m.drawn(element, (filters, 3 // groups, *kernel), wide=False), geometry(kernel)
            wide = m.node("Cast", [m.node("Conv", [y, w], kernel_shape=kernel, group=groups, **attributes)], to=CODES["f32"])
            m.check(wide, "f32", [y, w], lambda a, b, element=element, attributes=attributes, groups=groups: rounded(
                convolution(a, b, groups=groups, **attributes), element))
    for cpu in dict.fromkeys(CPUS):
        package = m.compiled(folder, f"--mcpu={cpu}")
        for rows, columns, batch in ((1, 1, 1), (9, 17, 2), (130, 33, 1)):
            sizes = {"m": rows, "n": columns, "b": batch}
            m.verify(package, m.feed(sizes), folder, about=f"{sizes}:")


@case(seconds=23)
def integers_behind_linear_layers(folder):
    linear_layers(folder, "linear i32", ("i32", "i64", "u32", "u64"), (16, 49, 1))


@case(seconds=17)
def products_of_run_time_operands(folder):
    """Batches that broadcast; columns of run-time sizes, which may be 0 or 1."""
    c = Chains("matmul")
    for number, element in enumerate(("f32", "f64", "f16", "bf16", "i32", "i64")):
        for left, right in ((["m", 5], [5, "n"]), (["b", 2, "m", 5], ["b", 2, 5, "n"]), (["b", 1, "m", 3], [2, 3, 17]),
                            (["b", "m", 4], [4, 48]))[number and number % 2::1 + (number > 0)]:
            x, w = c.shared(element, left), c.shared(element, right)
            dims = [*(left[:-2] if len(left) == 4 and right[0] != 2 else [*left[:-3], 2] if right[0] == 2 else left[:-2]), left[-2], right[-1]]
            term = c.op("MatMul", [x, w], product, left[-1], element, dims)
            c.chain(term, len(dims) - 1)
    sizes = [{"b": (1, 2, 0, 3)[i % 4], "m": rows, "n": (COLUMNS + (0,))[i % 9]} for i, rows in enumerate(c.random.permutation(ROWS)[:7])]
    judged(c, folder, sizes)


CONVS = [(["b", 3, "w"], 5, 1, [3], 1), (["b", 4, "h", "w"], 6, 2, [3, 3], 1), (["b", 6, "h", "w"], 6, 6, [3, 3], 1),
         (["b", 5, "h", "w"], 130, 1, [1, 1], 1), (["b", 3, "h", "w"], 9, 1, [3, 3], 2), (["b", 4, "h", "w"], 8, 4, [2, 3], 2),
         (["b", 2, 3, "h", "w"], 3, 1, [2, 2, 2], 1), (["b", 3, "w"], 3, 3, [5], 1), (["b", 1, "w"], 17, 1, [1], 1),
         (["b", 3, "h", "w"], 4, 1, [1, 1], 3)]


def convolutions(folder, name, elements, geometries):
    c = Chains(name)
    for number, (dims, filters, groups, kernel, stride) in enumerate(geometries):
        for element in elements:
            x = c.shared(element, dims)
            channels = dims[1] // groups
            w = c.leaf(element, [filters, channels, *kernel], stored=number % 3 != 1)
            operands = [x, w] + ([c.leaf(element, [filters], stored=True)] if number % 2 else [])
            attributes = geometry(kernel, stride)
            out = [f"{dim}{stride}" if isinstance(dim, str) and stride > 1 else dim for dim in dims[2:]]
            term = c.op("Conv", operands, lambda *arrays, a=attributes, g=groups: convolution(*arrays, groups=g, **a),
                        channels * int(np.prod(kernel)) + 1, element, [dims[0], filters, *out], kernel_shape=kernel, group=groups, **attributes)
            c.chain(term, 2, 4)
    sizes = []
    for i, (h, w) in enumerate(((1, 1), (7, 7), (1, 48), (3, 16), (2, 17), (5, 49), (4, 33), (1, 100), (2, 15))):
        sizes.append({"b": (1, 2, 0, 3)[i % 4], "h": h, "w": w, **{f"{n}{s}": -(-v // s) for n, v in (("h", h), ("w", w)) for s in (2, 3)}})
    judged(c, folder, sizes)


@case(seconds=6)
def floats_behind_convolutions(folder):
    convolutions(folder, "conv f32", ("f32",), CONVS)


@case(seconds=23)
def other_types_behind_convolutions(folder):
    convolutions(folder, "conv others", ("f64", "f16", "bf16"), CONVS[:6])


@case(seconds=12)
def quantized_products(folder):
    """Sums of bytes that are scaled, rounded, clipped and cast back; scales are powers of two, so that all is exact."""
    c = Chains("quantized")
    for number, (left, right, n) in enumerate(itertools.product(("u8", "i8"), ("u8", "i8"), (16, 47, 100))):
        x, w = c.shared(left, ["m", 5]), c.leaf(right, [5, n], few, stored=True)
        exact = lambda a, b: product(a.astype(np.int64), b.astype(np.int64))
        total = c.op("MatMulInteger", [x, w], exact, 255 * 15, "i32", ["m", n])
        wide = c.cast(total, "f32")
        per_row = c.leaf("f32", ["m", 1])
        scaled = c.op("Mul", [wide, c.number("f32", 0.5) if number % 2 else per_row], np.multiply, 255 * 15)
        moved = c.op("Add", [scaled, c.leaf("f32", [n], stored=True)], np.add, 255 * 16)
        c.check(moved)
        target = ("u8", "i8")[number % 2]
        if number % 3:
            low, high = (0, 255) if target == "u8" else (-128, 127)
            whole = c.op("Round", [moved], np.rint, 255 * 16)
            c.check(c.cast(c.clip(whole, low, high), target))
        else:
            info = np.iinfo(NUMPY[target])
            operands = [moved, c.number("f32", 4), c.number(target, 3)]
            c.check(c.op("QuantizeLinear", operands, lambda x, s, z, info=info: np.clip(np.rint(x / s) + z, info.min, info.max), 255, target))
    judged(c, folder, [{"m": rows} for rows in (0, 1, 7, 129)])


@case(seconds=12)
def functions_of_products(folder):
    """Functions that round: close to NumPy's float64, and the same bits in every kernel."""
    c = Chains("functions")
    m = c.m
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    for number, (op, f) in enumerate((("Sigmoid", sigmoid), ("Tanh", np.tanh), ("Exp", np.exp), ("Softplus", lambda x: np.log1p(np.exp(x))),
                                      ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), ("Elu", lambda x: np.where(x > 0, x, np.expm1(x))))):
        for element in ("f32", "f64")[:1 + number % 2]:
            x, w = c.shared(element, ["m", 5]), c.leaf(element, [5, (17, 48, 33)[number % 3]], stored=True)
            term = c.product(x, w)
            name = m.node("Mul", [m.node(op, [term.name]), term.name])
            # Functions are good to a few units in the last place; softplus of -5 loses three bits.
            m.check(name, element, term.leaves, lambda *arrays, f=f, t=term: (lambda y: f(y) * y)(t.value(dict(zip(t.leaves, arrays)))), 64)
    packages = [m.compiled(folder, f"--fusion={fusion}").rename(folder / f"{fusion}.dsp") for fusion in FUSIONS]
    for rows in (1, 9, 130):
        feed = m.feed({"m": rows})
        found = [m.run(package, feed, folder) for package in packages]
        values = {**feed, **m.constants}
        for name, element, operands, judge, _ in m.checks:
            expected = judge(*(values[operand] for operand in operands))
            error = np.abs(found[0][name] - expected) - (1e-5 if element == "f32" else 1e-13) * np.maximum(1, np.abs(expected))
            expect((error <= 0).all(), f"{name} of {rows} rows is off by {error.max()}")
        for other in found[1:]:
            m.same_bits(found[0], other, f"{rows} rows")


@case(seconds=12)
def residuals_that_the_product_reads(folder):
    """f(x) + f(x) @ w: what the product reads is computed before it, though only the product and what follows read it."""
    c = Chains("residual")
    for element in FLOATS + ("i32",):
        x = c.shared(element, ["m", 5])
        t = c.op("Relu", [x], lambda x: np.maximum(x, 0), 1)
        c.check(c.op("Add", [c.product(t, c.leaf(element, [5, 5], stored=True)), t], np.add, 6))
        s = c.op("Abs", [c.leaf(element, [4, 4])], np.abs, 1)
        c.check(c.op("Sub", [s, c.op("MatMul", [s, s], product, 4)], np.subtract, 5))
        if element != "i32":
            y = c.op("Relu", [c.shared(element, ["b", 3, "w"])], lambda x: np.maximum(x, 0), 1)
            attributes = geometry([3])
            folded = c.op("Conv", [y, c.leaf(element, [3, 3, 3], stored=True)], lambda *arrays, a=attributes: convolution(*arrays, **a), 9,
                          kernel_shape=[3], **attributes)
            c.check(c.op("Add", [folded, y], np.add, 10))
    judged(c, folder, [{"m": 1, "b": 1, "w": 1}, {"m": 9, "b": 2, "w": 17}])


def state_program(rows, columns, results):
    """x + x @ w in every place where a value may lie that is updated in place."""
    square, wide = f"tensor<{columns}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
    return f"""func.func @main(%s: {wide} {{ds.name = "s", ds.dims = [{rows}, {columns}], ds.state = "s"}},
    %t: {wide} {{ds.name = "t", ds.dims = [{rows}, {columns}], ds.state = "t"}}, %w: {square} {{ds.name = "w", ds.dims = [{columns}, {columns}]}})
    -> ({wide} {{ds.name = "y"}}, {wide} {{ds.state = "s"}}, {wide} {{ds.state = "t"}}) attributes {{ds.entry}} {{
  %0 = ds.linear %s, %w : ({wide}, {square}) -> {wide}
  %1 = ds.binary add %0, %s : ({wide}, {wide}) -> {wide}
  %2 = ds.binary sub %1, %t : ({wide}, {wide}) -> {wide}
  %3 = ds.binary max %2, %s : ({wide}, {wide}) -> {wide}
  return {results} : {wide}, {wide}, {wide}
}}
"""


@case(seconds=6)
def states_that_a_product_updates(folder):
    random = np.random.default_rng(SEED)
    rows, columns = int(random.choice([3, 130])), int(random.choice([17, 48]))
    w = random.integers(-1, 2, (columns, columns)).astype(np.float32)
    for results in ("%1, %2, %3", "%3, %1, %2", "%2, %3, %1", "%0, %3, %t", "%3, %3, %0", "%s, %2, %1", "%2, %t, %3"):
        (folder / "m.mlir").write_text(state_program(rows, columns, results))
        tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp")
        s, t = (random.integers(-2, 3, (rows, columns)).astype(np.float32) for _ in range(2))
        np.savez(folder / "w.npz", w=w), np.savez(folder / "before.npz", s=s, t=t)
        tool("ds-run", folder / "m.dsp", "--inputs", folder / "w.npz", "--state-in", folder / "before.npz", "--output", folder / "y.npz",
             "--state-out", folder / "after.npz", "--threads=2")
        values = {"%s": s, "%t": t, "%0": s @ w}
        values["%1"] = values["%0"] + s
        values["%2"] = values["%1"] - t
        values["%3"] = np.maximum(values["%2"], s)
        with np.load(folder / "y.npz") as outputs, np.load(folder / "after.npz") as states:
            found = outputs["y"], states["s"], states["t"]
        for name, value, array in zip("yst", results.split(", "), found):
            expect((array == values[value]).all(), f"{results}: {name} is wrong (DS_SEED={SEED})")


@case
def products_in_branches_and_loops(folder):
    """Regions whose results are carried, yielded and stored, beside values that their operands still lie in."""
    n = 17
    kind = f"tensor<{n}x{n}xf32>"
    dims = f"ds.dims = [{n}, {n}]"
    text = f"""func.func @main(%x: {kind} {{ds.name = "x", {dims}}}, %w: {kind} {{ds.name = "w", {dims}}}, %s: {kind} {{ds.name = "s", {dims},
    ds.state = "s"}}, %c: tensor<i1> {{ds.name = "c", ds.dims = []}}) -> ({kind} {{ds.name = "y"}}, {kind} {{ds.name = "z"}}, {kind} {{ds.state = "s"}})
    attributes {{ds.entry}} {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = ds.size 3
  %low = ds.constant dense<-2.0> : tensor<f32>
  %high = ds.constant dense<2.0> : tensor<f32>
  %k = tensor.extract %c[] : tensor<i1>
  %r:3 = scf.while (%i = %zero, %a = %s, %b = %x) : (i64, {kind}, {kind}) -> (i64, {kind}, {kind}) {{
    %go = arith.cmpi slt, %i, %n : i64
    scf.condition(%go) %i, %a, %b : i64, {kind}, {kind}
  }} do {{
  ^bb0(%i: i64, %a: {kind}, %b: {kind}):
    %0 = ds.linear %a, %w : ({kind}, {kind}) -> {kind}
    %1 = ds.binary add %0, %b : ({kind}, {kind}) -> {kind}
    %2 = ds.binary max %1, %low : ({kind}, tensor<f32>) -> {kind}
    %3 = ds.binary min %2, %high : ({kind}, tensor<f32>) -> {kind}
    %4 = ds.binary sub %3, %a : ({kind}, {kind}) -> {kind}
    %next = arith.addi %i, %one : i64
    scf.yield %next, %3, %4 : i64, {kind}, {kind}
  }}
  %f:2 = scf.if %k -> ({kind}, {kind}) {{
    %5 = ds.matmul %r#1, %r#2 transpose [false, true] : ({kind}, {kind}) -> {kind}
    %6 = ds.binary add %5, %r#1 : ({kind}, {kind}) -> {kind}
    scf.yield %6, %5 : {kind}, {kind}
  }} else {{
    %5 = ds.linear %w, %r#1 : ({kind}, {kind}) -> {kind}
    %6 = ds.binary sub %r#2, %5 : ({kind}, {kind}) -> {kind}
    scf.yield %r#1, %6 : {kind}, {kind}
  }}
  return %r#2, %f#0, %f#1 : {kind}, {kind}, {kind}
}}
"""
    (folder / "m.mlir").write_text(text)
    random = np.random.default_rng(SEED)
    for fusion, flag in itertools.product(FUSIONS, (True, False)):
        tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp", f"--fusion={fusion}")
        x, w, s = (random.integers(-1, 2, (n, n)).astype(np.float32) for _ in range(3))
        np.savez(folder / "x.npz", x=x, w=w, c=np.array(flag)), np.savez(folder / "before.npz", s=s)
        tool("ds-run", folder / "m.dsp", "--inputs", folder / "x.npz", "--state-in", folder / "before.npz", "--output", folder / "y.npz",
             "--state-out", folder / "after.npz")
        a, b = s, x
        for _ in range(3):
            after = np.clip(a @ w + b, -2, 2)
            a, b = after, after - a
        first, second = (a @ b.T + a, a @ b.T) if flag else (a, b - w @ a)
        with np.load(folder / "y.npz") as outputs, np.load(folder / "after.npz") as states:
            for name, found, expected in (("y", outputs["y"], b), ("z", outputs["z"], first), ("s", states["s"], second)):
                expect((found == expected).all(), f"{fusion} {flag}: {name} is wrong (DS_SEED={SEED})")
