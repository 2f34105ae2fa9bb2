"""Random differential tests of products, attention, convolutions and pooling against NumPy in double precision."""
import itertools

import numpy as np

from kit import case, processors
from programs import EPSILON, VARIANTS, Program, some

ODD = (1, 2, 3, 5, 7, 8, 13, 47, 48, 49, 97)
BROADCAST = [([2, 3], [2, 3]), ([2, 3], [3]), ([1], [4]), ([], [2]), ([2, 1], [1, 3]), ([0], [1])]


def flag(*values):
    return "[" + ", ".join(str(bool(value)).lower() for value in values) + "]"


def matmul(p, left, right, swap, element="f32", dims=(None, None), rtol=1e-5):
    """`left` and `right` are the shapes before their last axes are swapped where `swap` says so."""
    shapes = [shape[:-2] + shape[-2:][::-1] if flip else shape for shape, flip in zip((left, right), swap)]
    x, y = (p.input(p.random.standard_normal(shape), element, d) for shape, d in zip(shapes, dims))
    a, b = (value.wide.swapaxes(-1, -2) if flip else value.wide for value, flip in zip((x, y), swap))
    expected = a @ b
    result = list(expected.shape) if dims == (None, None) else ["?"] * expected.ndim
    p.test(f"ds.matmul {{0}}, {{1}} transpose {flag(*swap)}", [x, y], element, result, expected, rtol=rtol,
           scale=np.abs(a) @ np.abs(b))


@case(seconds=12)
def products(folder):
    p = Program()
    for m, k, n in [(m, *p.random.choice(ODD, 2)) for m in ODD] + [(5, 7, n) for n in ODD] + [(3, 0, 4), (0, 3, 4)]:
        matmul(p, [int(m), int(k)], [int(k), int(n)], p.random.integers(0, 2, 2))
    for swap, (left, right) in zip(itertools.cycle(itertools.product((0, 1), repeat=2)), BROADCAST):
        matmul(p, left + [5, 9], right + [9, 17], swap)
    for element, rtol in (("f64", 1e-13), ("f16", 2e-3), ("bf16", 1e-2)):
        for swap in itertools.product((0, 1), repeat=2):
            matmul(p, [2, 5, 13], [13, 49], swap, element, rtol=rtol)
    for number, swap in enumerate(itertools.product((0, 1), repeat=2)):  # batch axes that are 1 only at run time
        m, k, n = (f"{axis}{number}" for axis in "mkn")
        left, right = [f"b{number}", *((k, m) if swap[0] else (m, k))], [f"c{number}", *((n, k) if swap[1] else (k, n))]
        matmul(p, [3, 7, 13], [1, 13, 50], swap, dims=(left, right))
    p.verify(folder)


@case(seconds=10)
def turned_operands(folder):
    """Right operands whose columns lie together are packed in squares of words: pairs of 16 bits or of widened bytes, fours of bytes,
    cut along K and at the last columns. Of two matrices, one lies behind the other, and a guard behind that."""
    p = Program()
    number = itertools.count()
    kinds = [("i16", "i16"), ("ui8", "i8"), ("i8", "i8"), ("ui8", "ui8"), ("bf16", "bf16"), ("f32", "f32")]
    for (left, right), dynamic in itertools.product(kinds, (False, True)):
        for _ in range(3):
            i, k, n = next(number), *(int(p.random.choice([p.random.integers(1, 140), p.random.choice(ODD), 64, 128])) for _ in "kn")
            shapes, names = ([2, int(p.random.choice([1, 5, 40])), k], [2, n, k]), ([f"B{i}", f"M{i}", f"K{i}"], [f"B{i}", f"N{i}", f"K{i}"])
            draw = lambda element, shape: p.random.integers(-9, 10, shape) if element[0] in "bf" else p.random.integers(
                0 if element[0] == "u" else -128, 256 if element[0] == "u" else 128, shape)  # sums are exact, in f32, too
            x, y = (p.input(draw(element, shape), element, dims if dynamic else None) for element, shape, dims in zip((left, right), shapes, names))
            expected = x.array.astype(np.int64) @ y.array.astype(np.int64).swapaxes(1, 2)
            result = "i32" if left[0] in "iu" else left
            p.test("ds.matmul {0}, {1} transpose [false, true]", [x, y], result, ["?"] * 3 if dynamic else expected.shape, expected.astype(np.int32), rtol=EPSILON.get(result))
    p.verify(folder, VARIANTS[:2] + [f"--mcpu={some(processors(), 1)[0]}"])


@case(seconds=23)
def linear(folder):
    p = Program()
    for m, k, n in [(m, *p.random.choice(ODD, 2)) for m in ODD] + [(5, 7, n) for n in ODD]:
        m, k, n = int(m), int(k), int(n)
        x = p.input(p.random.standard_normal((m, k)), "f32", [f"m{len(p.arguments)}", k])
        weight = p.weight(p.random.standard_normal((k, n)).astype(np.float32), folder)
        operands, text, expected = [x, weight], "ds.linear {0}, {1}", x.wide @ weight.wide
        if p.random.integers(0, 2):
            operands.append(p.weight(p.random.standard_normal(n).astype(np.float32), folder))
            text, expected = text + ", {2}", expected + operands[2].wide
        scale = np.abs(x.wide) @ np.abs(weight.wide) + 1
        p.test(text, operands, "f32", [x.dims[0], n], expected, rtol=1e-5, scale=scale)
    p.verify(folder)


def attention(q, k, v, mask, scale, factor=1, cap=None):
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
    scores = scale * q @ k.swapaxes(-1, -2)
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    scores = scores * factor + (0 if mask is None else mask)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return e / e.sum(-1, keepdims=True) @ v


@case(seconds=12)
def attentions(folder):
    p = Program()
    number = itertools.count()

    def one(b, h, g, s, t, d, e, mask, element="f32", rtol=1e-5, dynamic=False):
        i = next(number)
        names = [f"B{i}", f"S{i}", f"T{i}"] if dynamic else [b, s, t]
        random = p.random.standard_normal
        q = p.input(random((b, h, s, d)), element, [names[0], h, names[1], d])
        k = p.input(random((b, g, t, d)), element, [names[0], g, names[2], d])
        v = p.input(random((b, g, t, e)), element, [names[0], g, names[2], e])
        operands, text = [q, k, v], "ds.attention {0}, {1}, {2}"
        if mask is not None:
            # A row that is masked as a whole would lose its scores to rounding.
            array = np.where((p.random.uniform(size=mask) < 0.3) & (mask[-1] > 1), -1e9, random(mask))
            if element == "f16":
                array = np.maximum(array, -1e4)
            operands.append(p.input(array, element, [f"M{i}_{axis}" for axis in range(len(mask))] if dynamic else None))
            text += " [add {3}]"
        expected = attention(q.wide, k.wide, v.wide, operands[3].wide if mask is not None else None, 0.3)
        p.test(text + " scale 0.3", operands, element, [names[0], h, names[1], e], expected, rtol=rtol, scale=1,
               what=f"attention {(b, h, g, s, t, d, e)} mask {mask} {element} dynamic={dynamic}")

    for s, t, d, e in [(1, 1, 1, 1), (5, 7, 3, 2), (8, 47, 8, 16), (13, 49, 16, 32), (3, 97, 5, 64), (17, 48, 32, 20)]:
        one(2, 2, 2, s, t, d, e, None)
    for element, dynamic in itertools.product(("f32", "f64"), (False, True)):
        one(2, 2, 2, 3, 0, 8, 16, None, element, dynamic=dynamic)
    for mask in itertools.product((1, 2), (1, 4), (1, 5), (1, 19)):
        one(2, 4, 2, 5, 19, 8, 8, mask)
    for mask in ((19,), (5, 1), (1, 1, 19)):
        one(2, 4, 1, 5, 19, 8, 8, mask)
    for mask in (None, (1, 1, 5, 1), (2, 1, 1, 19), (1, 4, 1, 1), (2, 4, 5, 19)):
        one(2, 4, 2, 5, 19, 8, 8, mask, dynamic=True)
    for element, rtol in (("f64", 1e-13), ("f16", 3e-3), ("bf16", 2e-2)):
        one(2, 4, 2, 5, 19, 8, 8, (2, 1, 1, 19), element, rtol)
    p.verify(folder)


@case(seconds=23)
def adjusted_attentions(folder):
    """Factor, softcap and guard, alone and together."""
    p = Program()
    number = itertools.count()
    for element, rtol in (("f32", 1e-5), ("f64", 1e-12), ("f16", 3e-3)):
        every = itertools.product((None, (1, 1, 5, 19), (2, 4, 1, 1)), (False, True), (None, 1.5), (False, True))
        for factor, masked, cap, guard in some(every, 14 if element == "f32" else 4):
            random, i = p.random.standard_normal, next(number)
            q = p.input(random((2, 4, 5, 8)), element, [2, 4, f"S{i}", 8])
            k = p.input(random((2, 2, 19, 8)), element, [2, 2, f"T{i}", 8])
            v = p.input(random((2, 2, 19, 8)), element, [2, 2, f"T{i}", 8])
            operands, text, steps = [q, k, v], "ds.attention {0}, {1}, {2}", []
            mask = times = None
            if factor is not None:
                steps.append(f"multiply {{{len(operands)}}}")
                times = p.input((p.random.uniform(size=factor) < 0.6).astype(float), element)
                operands.append(times)
            if masked:
                array = random((2, 1, 5, 19))
                if guard:
                    array[1, 0, 2] = -np.inf  # a row without a place to attend to
                steps.append(f"add {{{len(operands)}}}")
                mask = p.input(array, element)
                operands.append(mask)
            text += f" [{', '.join(steps)}] scale 0.7" if steps else " scale 0.7"
            text += (f" softcap {cap}" if cap else "") + (" guard" if guard else "")
            expected = attention(q.wide, k.wide, v.wide, mask.wide if masked else None, 0.7,
                                 1 if factor is None else times.wide, cap)
            if guard:
                expected = np.where(np.isnan(expected), 0, expected)
            p.test(text, operands, element, [2, 4, f"S{i}", 8], expected, rtol=rtol, scale=1,
                   what=f"attention factor {factor} mask {masked} cap {cap} guard {guard} {element}")
    p.verify(folder)


@case(seconds=12)
def rotaries(folder):
    p = Program()
    number = itertools.count()
    for element, rtol in (("f32", 1e-6), ("f64", 1e-14), ("f16", 2e-3), ("bf16", 2e-2)):
        for shape, angles in [((2,), ()), ((3, 8), (3,)), ((2, 4, 5, 6), (1, 1, 5)), ((2, 4, 5, 6), (2, 1, 5)),
                              ((2, 4, 5, 16), (5,)), ((2, 3, 4), (2, 1))]:
            for interleaved, per_pair, dynamic, behind in itertools.product((False, True), (False, True), (False, True), (0, 5)):
                i, width = next(number), shape[-1]
                shape = (*shape[:-1], width + behind)
                last = width // 2 if per_pair else width
                names = [f"X{i}_{axis}" for axis in range(len(shape) - 1)] + [shape[-1]] if dynamic else None
                angle = p.random.uniform(-3, 3, (*angles, last))
                x = p.input(p.random.standard_normal(shape), element, names)
                cosine, sine = p.input(np.cos(angle), element), p.input(np.sin(angle), element)
                first = np.arange(width // 2) * (2 if interleaved else 1)
                second = first + (1 if interleaved else width // 2)
                at = (slice(None), slice(None)) if per_pair else (first, second)
                y = x.wide.copy()
                a, b = x.wide[..., first], x.wide[..., second]
                y[..., first] = a * cosine.wide[..., at[0]] - b * sine.wide[..., at[0]]
                y[..., second] = b * cosine.wide[..., at[1]] + a * sine.wide[..., at[1]]
                part = f" first {width}" if behind else ""
                p.test(f"ds.rotary {{0}}, {{1}}, {{2}} interleaved {str(interleaved).lower()}{part}", [x, cosine, sine],
                       element, x.dims, y, rtol=rtol, scale=1,
                       what=f"rotary {shape} {angles} interleaved={interleaved} per pair={per_pair}{part} {element}")
                shape = (*shape[:-1], width)
    p.verify(folder)


def windows(x, kernel, strides, pads, dilations, fill, ceil=False):
    """All windows of [N, C, ...] as [N, C, out..., kernel...]."""
    rank = len(kernel)
    out, high = [], []
    for i in range(rank):
        span = (kernel[i] - 1) * dilations[i] + 1
        free = x.shape[2 + i] + pads[i] + pads[rank + i] - span
        count = free // strides[i] + 1
        if ceil and free % strides[i] and count * strides[i] < x.shape[2 + i] + pads[i]:
            count += 1
        out.append(count)
        high.append(max(pads[rank + i], (count - 1) * strides[i] + span - x.shape[2 + i] - pads[i]))
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:rank], high)), constant_values=fill)
    result = np.empty(x.shape[:2] + tuple(out) + tuple(kernel))
    for at in itertools.product(*map(range, out)):
        box = tuple(slice(a * s, a * s + (k - 1) * d + 1, d) for a, s, k, d in zip(at, strides, kernel, dilations))
        result[(slice(None), slice(None), *at)] = x[(slice(None), slice(None), *box)]
    return result


GEOMETRY = [([9], [3], [1], [0, 0], [1]), ([8], [3], [2], [1, 2], [2]), ([6, 7], [3, 2], [2, 1], [1, 0, 1, 1], [1, 1]),
            ([7, 9], [2, 3], [1, 2], [0, 2, 1, 1], [2, 1]), ([4, 5, 3], [2, 2, 2], [1, 2, 1], [1, 0, 0, 1, 0, 1], [1, 1, 1])]


@case(seconds=6)
def convolutions_and_pooling(folder):
    p = Program()
    for size, kernel, strides, pads, dilations in GEOMETRY:
        rank = len(kernel)
        last = tuple(range(-rank, 0))
        for groups in (1, 2):
            x = p.input(p.random.standard_normal([2, 4] + size), "f32")
            weight = p.input(p.random.standard_normal([6, 4 // groups] + kernel), "f32")
            bias = p.input(p.random.standard_normal(6), "f32")
            seen = windows(x.wide, kernel, strides, pads, dilations, 0)
            parts = [np.tensordot(part, filters, ((1, *range(2 + rank, 2 + 2 * rank)), (1, *range(2, 2 + rank))))
                     for part, filters in zip(np.split(seen, groups, 1), np.split(weight.wide, groups, 0))]
            expected = np.moveaxis(np.concatenate(parts, -1), -1, 1)
            attributes = f"strides {strides} pads {pads} dilations {dilations} groups {groups}"
            p.test("ds.conv {0}, {1} " + attributes, [x, weight], "f32", expected.shape, expected, 1e-5, 5)
            expected = expected + bias.wide.reshape([6] + [1] * rank)
            p.test("ds.conv {0}, {1}, {2} " + attributes, [x, weight, bias], "f32", expected.shape, expected, 1e-5, 5)
        for ceil in (False, True):
            x = p.input(p.random.standard_normal([2, 3] + size), "f32")
            ones = np.ones(x.array.shape)
            inside = windows(ones, kernel, strides, pads, dilations, 0, ceil).sum(last)
            padded = np.pad(ones, [(0, 0), (0, 0)] + list(zip(pads[:rank], pads[rank:])), constant_values=1)
            counted = windows(padded, kernel, strides, [0] * 2 * rank, dilations, 0, ceil)
            counted = counted[tuple(map(slice, inside.shape))].sum(last)
            zeros = windows(x.wide, kernel, strides, pads, dilations, 0, ceil)
            least = windows(x.wide, kernel, strides, pads, dilations, -np.inf, ceil)
            for kind, include, expected in (
                    ("max", False, least.max(last)), ("average", False, zeros.sum(last) / inside),
                    ("average", True, zeros.sum(last) / counted if counted.shape == inside.shape else None),
                    ("lp", False, (np.abs(zeros)**3).sum(last)**(1 / 3))):
                if expected is None:
                    continue
                p.test(f"ds.pool {kind} {{0}} kernel {kernel} strides {strides} pads {pads} dilations {dilations} "
                       f"{{{{ceil = {str(ceil).lower()}, include_pad = {str(include).lower()}, exponent = 3 : i64}}}}",
                       [x], "f32", expected.shape, expected, 1e-5, 1)
    p.verify(folder)
