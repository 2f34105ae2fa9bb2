"""Slices that elementwise regions and products read where they lie: random models whose operands are windows of inputs and of
computed values, against NumPy's exact numbers."""
import numpy as np

from convolution_cases import convolution, geometry
from epilogue_cases import Chains, Term, judged
from kit import case
from programs import SEED

CUT = 3  # how many rows a window leaves out where the number of rows is known at run time only
FAR = 1 << 40  # behind any end
LENGTHS = (1, 2, 7, 16, 17, 31, 33, 48, 65)


class Windows(Chains):
    """Chains of operators whose operands are windows of larger values: slices in steps of either sign on every axis, with
    transposes and reshapes between them, of inputs and of what is computed."""

    def __init__(self, name, isCut=False):
        super().__init__(name)
        self.isCut, self.made = isCut, {}

    def shared(self, element, dims):
        """A window, a new one or one that other operators read, too."""
        made = self.made.setdefault((element, tuple(dims)), [])
        if len(made) < 5 and (not made or self.random.random() < 0.7):
            made.append(self.window(element, dims))
        return made[self.random.integers(len(made))]

    def source(self, element, dims):
        """An input, or what is computed of it."""
        term = self.leaf(element, dims)
        if self.random.random() < 0.3 and element[0] != "u":
            term = self.op("Neg", [term], np.negative, term.bound)
        return term

    def moved(self, op, term, value, dims, *operands, **attributes):
        extra = [Term(self.m.constant("i64", np.array(values, np.int64)), "i64", [], [], lambda env: None, 0) for values in operands]
        return self.op(op, [term, *extra], lambda x, *_: value(x), term.bound, term.element, dims, **attributes)

    def cut(self, term, axis, size, start, end, step):
        """A slice; an end of None lies behind the last element, or before the first."""
        at = (slice(None),) * axis + (slice(start, end, step),)
        end = end if end is not None else FAR if step > 0 else -FAR
        dims = [size if i == axis else dim for i, dim in enumerate(term.dims)]
        return self.moved("Slice", term, lambda x: x[at], dims, [start], [end], [axis], [step])

    def layout(self, size):
        """A size that holds so many elements in some steps, and the slice that takes them."""
        if isinstance(size, str):
            if not self.isCut:
                return (size, (0, None, 1)) if self.random.random() < 0.7 else (size, (-1, None, -1))
            start = int(self.random.integers(CUT + 1))
            return size + "+", (start, start - CUT or None, 1)
        step = int(self.random.choice([1, 1, 1, 2, -1, -2]))
        before, after = (int(n) for n in self.random.integers(0, 4, 2))
        span = (size - 1) * abs(step) + 1
        bounds = (before, before + span, step) if step > 0 else (before + span - 1, before - 1 if before else None, step)
        return before + span + after, bounds

    def window(self, element, dims):
        """A value of these sizes that slices show."""
        kind = self.random.integers(4)
        if len(dims) == 0:
            return self.leaf(element, dims)
        if kind == 0 and isinstance(dims[-1], int) and len(dims) > 1:
            return self.split(element, dims)
        if kind == 1 and isinstance(dims[-1], int):
            return self.regrouped(element, dims)
        order = [int(axis) for axis in self.random.permutation(len(dims))] if kind == 2 else list(range(len(dims)))
        layouts = {axis: self.layout(dim) for axis, dim in enumerate(dims)
                   if self.random.random() < 0.6 or axis == len(dims) - 1 or (self.isCut and isinstance(dim, str))}
        term = self.source(element, [layouts[axis][0] if axis in layouts else dims[axis] for axis in order])
        for place, axis in enumerate(order):
            if axis in layouts:
                term = self.cut(term, place, dims[axis], *layouts[axis][1])
        if order == sorted(order):
            return term
        back = [order.index(axis) for axis in range(len(dims))]
        return self.moved("Transpose", term, lambda x: x.transpose(back), list(dims), perm=back)

    def whole(self, element, dims, last):
        """A value whose last axis is so long; its rows are a window where rows are cut."""
        layouts = [self.layout(dim) if self.isCut and isinstance(dim, str) else (dim, None) for dim in [*dims[:-1], last]]
        term = self.source(element, [dim for dim, _ in layouts])
        for axis, (_, bounds) in enumerate(layouts):
            if bounds:
                term = self.cut(term, axis, dims[axis], *bounds)
        return term

    def split(self, element, dims):
        """One of the parts of the last axis; the others are for other readers."""
        term, size, made = self.whole(element, dims, 3 * dims[-1]), dims[-1], self.made.setdefault((element, tuple(dims)), [])
        names = self.m.node("Split", [term.name], outputs=3, axis=-1, num_outputs=3)
        for number, name in enumerate(names):
            value = lambda env, n=number: term.value(env)[..., n * size:(n + 1) * size]
            made.append(Term(name, element, list(dims), term.leaves, value, term.bound))
        return made[-int(self.random.integers(1, 4))]

    def regrouped(self, element, dims):
        """Slice, Reshape, Transpose, Slice, Reshape: columns that lay in groups, of which a part is left."""
        groups = next(n for n in (3, 2, 1) if dims[-1] % n == 0)
        width, rank = dims[-1] // groups, len(dims)
        before, after = (int(n) for n in self.random.integers(0, 3, 2))
        wide = self.whole(element, dims, (width + before) * groups + after)
        term = self.cut(wide, rank - 1, (width + before) * groups, 0, (width + before) * groups, 1)
        turned = self.random.random() < 0.5
        inner = [width + before, groups] if turned else [groups, width + before]
        term = self.moved("Reshape", term, lambda x: x.reshape(*x.shape[:-1], *inner), [*dims[:-1], *inner], [0] * (rank - 1) + inner)
        if turned:
            back = [*range(rank - 1), rank, rank - 1]
            term = self.moved("Transpose", term, lambda x: x.transpose(back), [*dims[:-1], *inner[::-1]], perm=back)
        term = self.cut(term, rank, width, before, None, 1)
        return self.moved("Reshape", term, lambda x: x.reshape(*x.shape[:-2], dims[-1]), list(dims), [0] * (rank - 1) + [dims[-1]])

    def flags(self, dims):
        """Bools that a slice shows."""
        size, bounds = self.layout(dims[-1])
        term = self.whole("f32", dims, size)
        flag = self.op("Greater", [term, self.number("f32", 0)], np.greater, 1, "i1")
        return self.cut(flag, len(dims) - 1, dims[-1], *bounds)

    def chosen(self, term):
        """One of two values, as slices of bools say."""
        one, two = self.flags(term.dims), self.flags(term.dims)
        flag = self.op(("Xor", "And")[self.random.integers(2)], [one, two], np.logical_xor, 1)
        flag.value = self.m.nodes[-1].op_type == "Xor" and flag.value or (lambda env: one.value(env) & two.value(env))
        other = self.shared(term.element, term.dims)
        self.check(self.op("Where", [flag, term, other], np.where, max(term.bound, other.bound), term.element, term.dims))


def shapes(random, columns):
    n, k = (int(random.choice(columns)) for _ in range(2))
    return [["m", n], ["m", 2, k], [3, "m", n]]


def elementwise(folder, name, elements, isCut, sizes):
    c = Windows(name, isCut)
    for element in elements:
        for dims in shapes(c.random, LENGTHS)[:2 if isCut else 3]:
            c.chain(c.shared(element, dims), len(dims) - 1, 4)
            c.chosen(c.shared(element, dims))
    judged(c, folder, [{"m": m, "m+": m + CUT} for m in sizes])


@case(seconds=5)
def floats_of_windows(folder):
    elementwise(folder, "windows of floats", ("f32", "f64"), False, (0, 1, 2, 35))


@case(seconds=5)
def half_floats_of_cut_rows(folder):
    elementwise(folder, "cut floats", ("f32", "f16", "bf16"), True, (1, 4, 37))


@case(seconds=5)
def integers_of_windows(folder):
    elementwise(folder, "windows of integers", ("i32", "u8"), False, (0, 1, 300))


@case(seconds=5)
def integers_of_cut_rows(folder):
    elementwise(folder, "cut integers", ("i64", "i8"), True, (1, 40))


def products_of_windows(folder, name, elements, isCut, sizes):
    """Linear layers and products of run-time operands, Gemm and residuals of what the product itself reads; what they read and
    all that follows them are windows."""
    c = Windows(name, isCut)
    for element in elements:
        for number, n in enumerate(c.random.permutation(LENGTHS)[:2 + (element == "f32")]):
            depth, n = int(c.random.choice([3, 5, 16])), int(n)
            dims = ["m", depth] if number % 2 or isCut else ["m", 2, depth]
            x = c.shared(element, dims)
            if number % 2:
                w = c.window(element, [depth, n])
            else:
                w = c.leaf(element, [depth, n], stored=True)
            if len(dims) == 2 and c.random.random() < 0.5:
                bias = c.shared(element, [["m", n], ["m", 1], [n]][c.random.integers(3)])
                term = c.op("Gemm", [x, w, bias], lambda a, b, d: a @ b + d, depth + 1, element, ["m", n])
            else:
                term = c.product(x, w)
            c.chain(term, len(dims) - 1, 4)
            square = c.leaf(element, [n, n], stored=True)
            wide = c.whole(element, [*dims[:-1], n], 2 * n + 3)
            part = c.cut(wide, len(dims) - 1, n, 3, 3 + n, 1)
            other = c.cut(wide, len(dims) - 1, n, n + 3, None, 1)
            c.check(c.op("Sub", [c.op("Add", [c.product(part, square), part], np.add, n + 1), other], np.subtract, n + 2))
    judged(c, folder, [{"m": m, "m+": m + CUT} for m in sizes])


@case(seconds=12)
def floats_behind_products(folder):
    products_of_windows(folder, "windows behind products", ("f32",), False, (1, 9, 130))


@case(seconds=12)
def cut_rows_behind_products(folder):
    products_of_windows(folder, "cut rows behind products", (("f32", "bf16", "f64")[SEED % 3],), True, (0, 1, 20))


@case(seconds=12)
def other_types_behind_products(folder):
    products_of_windows(folder, "other windows behind products", (("f16", "f64")[SEED % 2], ("i32", "i64")[SEED // 2 % 2]), False, (1, 8))


@case(seconds=6)
def windows_behind_convolutions(folder):
    c = Windows("windows behind convolutions")
    for number, (spatial, filters, groups, kernel) in enumerate((([20], 5, 1, [3]), (["h", 17], 6, 2, [3, 3]), ([4, 9], 4, 4, [3, 3]),
                                                                 (["h", 33], 18, 1, [1, 1]))):
        element = ("f32", "f64", "f32", "f16")[(number + SEED) % 4]
        x = c.shared(element, ["b", 4, *spatial])
        w, attributes = c.leaf(element, [filters, 4 // groups, *kernel], stored=True), geometry(kernel)
        value = lambda *arrays, a=attributes, g=groups: convolution(*arrays, groups=g, **a)
        term = c.op("Conv", [x, w], value, 4 * int(np.prod(kernel)), element, ["b", filters, *spatial], kernel_shape=kernel,
                    group=groups, **attributes)
        c.chain(term, 2, 4)
    judged(c, folder, [{"b": b, "h": h} for b, h in ((1, 1), (2, 5), (0, 3), (3, 18))])
