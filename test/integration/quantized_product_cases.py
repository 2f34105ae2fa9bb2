"""Products of 8 and 16 bits against NumPy's exact integers: where pairs would saturate, overflow 31 bits or not fit 16."""
import itertools

import numpy as np

from kit import case, processors
from product_cases import COLUMNS, DEPTHS, ROWS, pairs
from programs import some
from products import CODES, NUMPY, Model, draw, extreme, highest, lowest, product

BYTES = ("u8", "i8")
MAKES = (draw, extreme, lowest, highest)


def centred(x, zero=None, axis=-1):
    """x minus its zero point, one of `axis` where that is a vector."""
    x = x.astype(np.int64)
    if zero is None:
        return x
    zero = zero.astype(np.int64)
    return x - (zero.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if zero.ndim == 1 else zero)


def integer_product(a, b, a_zero=None, b_zero=None):
    return product(centred(a, a_zero, -2), centred(b, b_zero, -1))


def check(m, op, element, operands, judge, places, **keywords):
    """`places` names the operands that are there, in the order in which `judge` takes them by name."""
    known = [(name, operand) for name, operand in zip(places, operands) if operand]
    m.check(m.node(op, operands, **keywords), element, [operand for _, operand in known],
            lambda *arrays: judge(**dict(zip([name for name, _ in known], arrays))))


def matmul_integer(m, a, b, a_zero=None, b_zero=None):
    operands = [a, b, a_zero, b_zero] if b_zero else [a, b, a_zero] if a_zero else [a, b]
    check(m, "MatMulInteger", "i32", operands, integer_product, ("a", "b", "a_zero", "b_zero"))


def zero_points(m, kind, left, right, n, make=draw):
    """Both zero points by kind: absent, constants or inputs, one or one per row and column."""
    own = lambda element, shape: m.drawn(element, shape, make, wide=False)
    given = lambda element, dims: m.input(element, dims, wide=False)
    one, many = (), (n,)
    return (lambda: (None, None), lambda: (own(left, one), own(right, one)), lambda: (given(left, []), own(right, many)),
            lambda: (given(left, ["m"]), None), lambda: (own(left, one), given(right, [n])), lambda: (None, own(right, many)),
            lambda: (given(left, ["m"]), given(right, [])))[kind]()


@case(seconds=23)
def byte_products_with_constant_weights(folder):
    m = Model("bytes")
    rows = {}
    for place, (k, n) in enumerate(pairs(m.random)):
        signs = list(enumerate(itertools.product(BYTES, repeat=2)))
        for number, (left, right) in (signs[i] for i in m.random.permutation(4)[:2]):
            if (left, k) not in rows:
                rows[left, k] = m.input(left, ["m", k])
            x = rows[left, k]
            make = MAKES[(place + number) % 4]
            zeros = zero_points(m, (place + 2 * number) % 7, left, right, n, make)
            matmul_integer(m, x, m.drawn(right, (k, n), make), *zeros)
    for cpu in some(processors(), 2):
        package = m.compiled(folder, f"--mcpu={cpu}")
        for number, count in enumerate(ROWS):
            make = MAKES[number % 4]
            m.verify(package, m.feed({"m": count}, make), folder, f"--threads={1 + number % 3}",
                     about=f"{make.__name__} {count} rows on {cpu}:")


def fours(total, sign, share=1):
    """Weights of [k, n] of which four in eight rows, anywhere, come to `total` of one sign; another one may have the other sign. A `share` of eights of rows has such."""
    def make(random, element, shape, _=True):
        k, n = shape
        weights = np.zeros(shape, np.int8)
        for step in range(0, k, 8):
            if random.random() >= share:
                continue
            for column in range(n):
                places = random.permutation(8)
                parts = random.multinomial(total, np.full(4, 0.25))
                while (over := parts - 127).max() > 0: # what is too large for a byte goes to the least
                    parts[parts.argmax()] = 127
                    parts[parts.argmin()] += over.max()
                weights[step + places[:4], column] = sign * parts
                weights[step + places[4], column] = -sign * random.integers(0, 128)
        return weights
    return make


@case(seconds=12)
def four_products_of_bytes_around_16_bits(folder):
    """Pairs of products, and fours of them, that 16 bits just hold and just do not: with the greatest numbers on the other side, and drawn ones."""
    m = Model("fours")
    rows = {k: m.input("u8", ["m", k]) for k in (8, 40, 64, 72)}
    for total, sign in itertools.product((64, 127, 128, 129, 130, 251, 252, 253, 254, 256, 380, 508), (1, -1)):
        k, n = m.random.choice([8, 40, 64, 72]), m.random.choice([1, 8, 15, 16, 17, 33])
        matmul_integer(m, rows[k], m.drawn("i8", (int(k), int(n)), fours(total, sign)))
        matmul_integer(m, rows[72], m.drawn("i8", (72, int(n)), fours(total, sign, m.random.choice([0.2, 0.5, 0.75]))))
    matmul_integer(m, rows[64], m.constant("i8", np.full((64, 16), -128)))
    for large in range(1, 7):  # of three panels: which do not fit, and become words
        parts = [fours(508 if large >> part & 1 else 100, 1)(m.random, "i8", (72, 16)) for part in range(3)]
        matmul_integer(m, rows[72], m.constant("i8", np.concatenate(parts, 1)))
    deep = m.input("u8", ["m", 1000])
    for totals in ((508, 100), (100, 508), (253, 100)):  # what does not fit is left early, late, or not
        matmul_integer(m, deep, m.constant("i8", np.concatenate([fours(total, 1)(m.random, "i8", (496 + 8 * place, 16))
                                                                 for place, total in enumerate(totals)])))
    for cpu in ("x86-64-v3", *some([cpu for cpu in processors() if cpu != "x86-64-v3"], 1)):
        package = m.compiled(folder, f"--mcpu={cpu}")
        for number, count in enumerate((1, 8, 12, 13, 33, 171)):
            for make in (highest, draw):
                m.verify(package, m.feed({"m": count}, make), folder, f"--threads={1 + number % 2}", about=f"{make.__name__} {count} rows on {cpu}:")


@case(seconds=6)
def byte_products_of_run_time_sizes(folder):
    m = Model("bytes at run time")
    for left, right in itertools.product(BYTES, repeat=2):
        a, b = m.input(left, ["m", "k"]), m.input(right, ["k", "n"])
        for kind in (0, 1, 3, 4, 6):
            matmul_integer(m, a, b, *zero_points(m, kind, left, right, "n"))
        matmul_integer(m, a, b, m.input(left, [], wide=False), m.input(right, ["n"], wide=False))
        turned = m.input(right, ["n", "k"])
        m.check(m.node("MatMulInteger", [a, m.node("Transpose", [turned], perm=[1, 0])]), "i32", [a, turned],
                lambda a, b: integer_product(a, b.T))
        c, d = m.input(left, ["b", "m", "k"]), m.input(right, ["b", "k", "n"])
        matmul_integer(m, c, d, m.input(left, ["b", "m", 1], wide=False), m.input(right, ["b", 1, "n"], wide=False))
        matmul_integer(m, c, b, m.drawn(left, ()), m.drawn(right, ()))
        matmul_integer(m, m.input(left, ["c", 1, "m", "k"]), d)
    package = m.compiled(folder)
    columns, depths = (itertools.cycle(m.random.permutation(numbers)) for numbers in (COLUMNS, DEPTHS))
    makes = itertools.cycle(MAKES)
    for count in m.random.permutation(ROWS):
        sizes = {"m": int(count), "k": int(next(depths)), "n": int(next(columns)), "b": int(m.random.integers(0, 3)), "c": 2}
        make = next(makes)
        m.verify(package, m.feed(sizes, make), folder, about=f"{make.__name__} {sizes}:")


def power(*shape):
    """Scales by which products and quotients are exact."""
    return lambda random, element=None, _=None, wide=True: np.ldexp(1.0, random.integers(-6, -2, shape))


def requantized(sums, factor, zero, kind):
    info = np.iinfo(kind)
    steps = np.rint(sums.astype(np.float32).astype(np.float64) * factor)
    return np.clip(steps + float(zero), info.min, info.max).astype(np.int64)


@case(seconds=23)
def quantized_results(folder):
    """Scales are powers of two: what is rounded, to f32 and to the result's type, is exact until then."""
    m = Model("results")
    scale = lambda *shape: m.constant("f32", power(*shape)(m.random))
    given = lambda *dims: m.input("f32", list(dims), lambda random, element, shape, wide: power(*shape)(random))
    microsoft = {"domain": "com.microsoft"}
    for number, (left, right) in enumerate(itertools.product(BYTES, repeat=2)):
        for k, n, kind in ((65, 17, 1), (769, 49, 2), (1537, 31, 6), (1, 8, 4), (8, 7, 1)):
            a, b = m.input(left, ["m", k]), m.drawn(right, (k, n), MAKES[(number + k) % 4])
            a_zero, b_zero = zero_points(m, kind, left, right, n)
            a_scale, b_scale = scale() if kind % 2 else given(), scale(n) if kind == 2 else scale()
            if kind == 6:
                a_scale = given("m")
            y_scale = m.constant("f32", np.ldexp(1.0, int(np.log2(k) / 2) - 1))
            y_zero = m.drawn(left, ())

            def quantized(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
                wide = a_scale[:, None] if a_scale.ndim else a_scale
                return requantized(integer_product(a, b, a_zero, b_zero), wide * b_scale / y_scale, y_zero, y_zero.dtype)
            check(m, "QLinearMatMul", left, [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero], quantized,
                  ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"))
            bias = m.drawn("f32", (n,))

            def real(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=0):
                # Scaled by powers of two, the sum is rounded to f32 once before bias is added.
                sums = integer_product(a, b, a_zero, b_zero).astype(np.float32).astype(np.float64)
                return sums * a_scale * b_scale + bias
            names = ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias")
            one = scale()
            check(m, "MatMulIntegerToFloat", "f32", [a, b, one, b_scale, m.drawn(left, ()), b_zero, bias], real, names, **microsoft)
            check(m, "MatMulIntegerToFloat", "f32", [a, b, one, b_scale], real, names, **microsoft)
    for right in BYTES:
        a = m.input("u8", ["m", 65])
        for turned in (False, True):
            b = m.drawn(right, (31, 65) if turned else (65, 31), extreme)
            zero, more = m.drawn(right, (31,)), m.drawn("i32", (31,), lambda random, *_: random.integers(-9999, 9999, 31))
            a_zero, a_scale, b_scale, y_scale = m.drawn("u8", ()), scale(), scale(31), m.constant("f32", np.float32(16))
            y_zero = m.drawn("u8", ())

            def gemm(a, a_scale, a_zero, b, b_scale, b_zero, more, y_scale=None, y_zero=None, turned=turned):
                sums = integer_product(a, b.T if turned else b, a_zero, b_zero) + more
                if y_scale is None:
                    return sums.astype(np.float32).astype(np.float64) * a_scale * b_scale
                return requantized(sums, a_scale * b_scale / y_scale, y_zero, np.uint8)
            names = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "more", "y_scale", "y_zero")
            operands = [a, a_scale, a_zero, b, b_scale, zero, more]
            check(m, "QGemm", "f32", operands, gemm, names, **microsoft, transB=int(turned))
            check(m, "QGemm", "u8", [*operands, y_scale, y_zero], gemm, names, **microsoft, transB=int(turned))
    for number, (left, right) in enumerate(itertools.product(BYTES[:1], BYTES)):
        # One place attends to itself alone, so that what comes out is the last third of the product.
        a, b = m.input(left, ["m", 1, 33]), m.drawn(right, (33, 90), MAKES[number])
        operands = [a, b, m.drawn("f32", (90,)), scale(), scale(), m.drawn(left, ()), m.drawn(right, ())]
        third = lambda a, b, bias, a_scale, b_scale, a_zero, b_zero: real(a, b, a_scale, b_scale, a_zero, b_zero, bias)[..., 60:]
        result = m.node("QAttention", [*operands[:5], None, *operands[5:]], num_heads=3, **microsoft)
        m.check(result, "f32", operands, third)
    package = m.compiled(folder)
    for number, count in enumerate((0, 1, 3, 4, 7, 9, 16, 33)):
        m.verify(package, m.feed({"m": count}, MAKES[number % 4]), folder, about=f"{count} rows:")


def spanning(random, element, shape, wide=True):
    """Eighths that span 255 of them, so that the scale of 8 bits is 1/8 and quantizing is exact."""
    low = int(random.integers(-255, 1))
    x = random.integers(low, low + 256, shape).astype(np.float64)
    if x.size == 1:
        x.reshape(-1)[0] = random.choice([-255, 255])
    elif x.size:
        x.reshape(-1)[random.choice(x.size, 2, replace=False)] = low, low + 255
    return x / 8


@case(seconds=23)
def dynamically_quantized_products(folder):
    """As quantizing tools write them, and fused; u8 times u8 and u8 times i8."""
    m = Model("dynamic")
    exact = lambda x, w, zero: product(np.rint(x * 8).astype(np.int64), centred(w, zero)).astype(np.float32).astype(np.float64) / 8
    for right in BYTES:
        for number, (k, n) in enumerate(((1, 7), (2, 1), (7, 17), (64, 48), (65, 49), (769, 31), (1537, 16))):
            x = m.input("f32", ["m", k], spanning)
            make = MAKES[number % 4]
            w = m.drawn(right, (k, n), make)
            y, scale, zero = m.node("DynamicQuantizeLinear", [x], 3)
            for columns in ((), (n,)):
                w_scale, w_zero = m.constant("f32", power(*columns)(m.random)), m.drawn(right, columns, make, wide=False)
                bias = m.drawn("f32", (n,))
                scales = m.node("Mul", [scale, w_scale])
                sums = m.node("Cast", [m.node("MatMulInteger", [y, w, zero, w_zero])], to=1)
                scaled = m.node("Mul", [sums, scales])
                m.check(scaled, "f32", [x, w, w_zero, w_scale], lambda x, w, zero, scale: exact(x, w, zero) * scale)
                m.check(m.node("Add", [scaled, bias]), "f32", [x, w, w_zero, w_scale, bias],
                        lambda x, w, zero, scale, bias: exact(x, w, zero) * scale + bias)
                m.check(m.node("DynamicQuantizeMatMul", [x, w, w_scale, w_zero, bias], domain="com.microsoft"), "f32",
                        [x, w, w_zero, w_scale, bias], lambda x, w, zero, scale, bias: exact(x, w, zero) * scale + bias)
            m.check(m.node("DynamicQuantizeMatMul", [x, w, w_scale], domain="com.microsoft"), "f32", [x, w, w_scale],
                    lambda x, w, scale: exact(x, w, None) * scale)
    package = m.compiled(folder)
    for count in (1, 2, 3, 5, 8, 17, 33):
        m.verify(package, m.feed({"m": count}), folder, about=f"{count} rows:")


class Chain:
    """An i32 operand that starts in 8 or 16 bits: the nodes of a model and what NumPy computes of its input."""

    def __init__(self, m, element, dims, cast="i32"):
        self.m, self.input, self.steps = m, m.input(element, dims) if element in NUMPY else element, []
        self.name = self.input
        self.cast(cast)

    def then(self, function, op, *others, **attributes):
        self.name = self.m.node(op, [self.name, *others], **attributes)
        self.steps.append(function)
        return self

    def cast(self, to):
        return self.then(lambda x: x.astype(NUMPY[to]), "Cast", to=CODES[to])

    def by(self, op, number, function):
        number = np.asarray(number, np.int32)
        return self.then(lambda x: function(x, number), op, self.m.constant("i32", number))

    def __call__(self, x):
        with np.errstate(all="ignore"):
            for step in self.steps:
                x = step(x)
        return x


def chains(m, dims, width):
    """Operands at and beyond the limits of 16 bits. `dims` has `width` as its last size."""
    last = lambda *numbers: np.array([*[7] * (width - len(numbers)), *numbers], np.int32)
    new = lambda element: Chain(m, element, dims)

    def add(chain, number):
        return chain.by("Add", number, np.add)

    def sub(chain, number):
        return chain.by("Sub", number, np.subtract)

    def mul(chain, number):
        return chain.by("Mul", number, np.multiply)
    found = [new("u8"), new("i8"), new("u16"), new("i16"), new("i32")]
    found += [sub(new("u16"), zero) for zero in (32768, 32767, 65535, 1)]
    found += [sub(new("i16"), zero) for zero in (-1, 1, 40000)] + [add(new("i16"), 1)]
    found += [sub(new("u8"), zero) for zero in (40000, 32768, 32769, -32512, -32513, 128)]
    found += [sub(new("u8"), last(40000)), sub(new("i8"), last(-32767 + 127, -32768 + 127)), add(new("u8"), last((1 << 31) - 1))]
    found += [mul(new("u8"), factor) for factor in (128, 129, -128, -129, 1 << 24)]
    found += [mul(new("i8"), factor) for factor in (256, -256, 255)] + [mul(new("i16"), -1)]
    found += [new("i16").then(np.negative, "Neg"), new("i16").then(np.abs, "Abs"), new("i8").then(np.negative, "Neg")]
    found += [new("i32").cast("i16").cast("i32"), new("i32").cast("u16").cast("i32"), new("i32").cast("u8").cast("i32"),
              new("u16").cast("i16").cast("i32"), new("i16").cast("u16").cast("i32"), new("u16").cast("i8").cast("i32")]
    for low, high in ((-32768, 32767), (-32768, 32768), (-32769, 32767), (0, 255), (0, 65535)):
        found.append(new("i32").by("Max", low, np.maximum).by("Min", high, np.minimum))
    for bits in (0xFF, 0x7FFF, 0xFFFF, -32768):
        found.append(new("i32").by("BitwiseAnd", bits, np.bitwise_and))
    found += [new("i32").by("Mod", 256, np.mod), new("i32").by("Mod", 65536, np.mod), new("i32").by("Mod", -32769, np.mod)]
    for element in ("u8", "i8"):  # squares of bytes: up to 65025, up to 16384
        chain = new(element)
        found.append(chain.then(lambda x: x * x, "Mul", chain.name))
    chain = new("u8")
    negative = m.node("Greater", [chain.name, m.constant("i32", np.int32(200))])
    chain.name = m.node("Where", [negative, m.constant("i32", np.int32(40000)), chain.name])
    chain.steps.append(lambda x: np.where(x > 200, np.int32(40000), x))
    return [*found, chain]


def chain_products(folder, name, k, rows):
    """Each chain as left and as right operand, beside bytes, beside 16 bits and beside constants of full range."""
    m = Model(name)
    n, outlier = 17, lambda random, *_: np.where(np.arange(k * 17).reshape(k, 17) == k * 17 - 1, random.choice([32768, -32769]),
                                                 random.integers(-128, 128, (k, 17)))
    partners = [Chain(m, "i16", [k, n]), Chain(m, "u8", [k, n])]
    constants = [m.drawn("i32", (k, n), make) for make in (lambda random, *_: random.choice([-32768, 32767], (k, n)),
                                                           lambda *_: np.full((k, n), -32768), outlier)]
    for number, chain in enumerate(chains(m, ["m", k], k)):
        weight = constants[number % 3]
        for partner in partners:
            m.check(m.node("MatMul", [chain.name, partner.name]), "i32", [chain.input, partner.input],
                    lambda x, y, f=chain, g=partner: product(f(x), g(y)))
        m.check(m.node("MatMul", [chain.name, weight]), "i32", [chain.input, weight], lambda x, w, f=chain: product(f(x), w))
    left = [Chain(m, "i16", ["m", k]), Chain(m, "u8", ["m", k])]
    for number, chain in enumerate(chains(m, [k, n], n)):
        partner = left[number % 2]
        m.check(m.node("MatMul", [partner.name, chain.name]), "i32", [partner.input, chain.input],
                lambda x, y, f=partner, g=chain: product(f(x), g(y)))
    package = m.compiled(folder)
    for number, count in enumerate(rows):
        make = MAKES[number % 4]
        m.verify(package, m.feed({"m": count}, make), folder, about=f"{make.__name__} {count} rows:")


@case(seconds=12)
def operands_around_16_bits(folder):
    chain_products(folder, "around", 37, (1, 4, 9, 2, 13, 3, 6))


@case(seconds=6)
def operands_around_16_bits_of_even_depth(folder):
    chain_products(folder, "even", 64, (1, 4, 6, 3))


@case(seconds=23)
def narrow_operands_with_wide_sums(folder):
    """Sums beyond 31 bits in 64, beyond 32 in 32, negative numbers as unsigned ones, zero points known at run time only."""
    m = Model("wide sums")
    for left, right, wide in (("u8", "u8", "i64"), ("i8", "i8", "i64"), ("u16", "u16", "i64"), ("i16", "i16", "i64"),
                              ("i8", "u8", "u64"), ("i16", "i8", "u64"), ("i8", "u8", "u32"), ("u16", "u16", "u32"),
                              ("u16", "u16", "i32"), ("i16", "i16", "i32"), ("u8", "u8", "i32"), ("i32", "i8", "i64"),
                              ("u32", "u8", "i64")):
        for k in (33, 40001):
            a, b = Chain(m, left, ["m", k], wide), Chain(m, right, [k, 9], wide)
            judge = lambda x, y, f=a, g=b: product(f(x), g(y))
            m.check(m.node("MatMul", [a.name, b.name]), wide, [a.input, b.input], judge)
            weight = Chain(m, m.drawn(right, (k, 3), highest if right[0] == "u" else lowest), None, wide)
            m.check(m.node("MatMul", [a.name, weight.name]), wide, [a.input, weight.input],
                    lambda x, y, f=a, g=weight: product(f(x), g(y)))
    for element, zero_element in itertools.product(("u8", "i16"), ("i32", "u16", "i8")):
        a, b = Chain(m, element, ["m", 65]), m.input("i32", [65, 9], lambda random, *_: random.integers(-128, 128, (65, 9)))
        zero = m.input(zero_element, ["m", 1], wide=False)
        moved = m.node("Sub", [a.name, m.node("Cast", [zero], to=6)])
        m.check(m.node("MatMul", [moved, b]), "i32", [a.input, zero, b], lambda x, zero, y: product(
            x.astype(np.int32) - zero.astype(np.int32), y))
    package = m.compiled(folder)
    for make, count in zip(MAKES, (1, 2, 4, 3)):
        m.verify(package, m.feed({"m": count}, make), folder, about=f"{make.__name__} {count} rows:")
