"""Convolutions of every element type around the widths of vectors and panels, against NumPy's exact numbers."""
import itertools

import numpy as np

from kit import case, expect
from products import FLOATS, NUMPY, Model, draw, extreme, lowest, narrowed, normal, product
from programs import SEED, Program
from quantized_product_cases import BYTES, MAKES, centred, check, power, requantized

# Height and width; every convolution of a dynamic size below is padded so that it has a window in each.
SIZES = ((1, 1), (1, 7), (1, 48), (8, 1), (49, 1), (5, 7), (17, 33), (2, 8), (3, 9), (2, 15), (3, 16), (2, 17), (3, 47), (2, 49),
         (4, 50), (1, 100))


def convolution(x, w, bias=None, *, strides, pads, dilations, groups=1):
    """[N, C, ...] by [M, C / groups, kernel...]: every window against every filter of its group."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, 2 + rank)))
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]
    out, filters, depth = seen.shape[2:2 + rank], w.shape[0] // groups, w[0].size
    seen = np.moveaxis(seen, 1, 1 + rank)  # [N, out..., C, kernel...]
    parts = [product(seen.take(range(g * w.shape[1], (g + 1) * w.shape[1]), 1 + rank).reshape(-1, depth),
                     w[g * filters:(g + 1) * filters].reshape(filters, depth).T) for g in range(groups)]
    y = np.moveaxis(np.concatenate(parts, 1).reshape(x.shape[0], *out, w.shape[0]), -1, 1)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def transposed(x, w, bias=None, *, strides, pads, dilations, extra, groups=1):
    """Every pixel adds its multiple of the filters of its group, [C, M / groups, kernel...], to what it came from."""
    rank, count = x.ndim - 2, x.shape[1] // groups
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    out = [(n - 1) * s + span + more for n, s, span, more in zip(x.shape[2:], strides, spans, extra)]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *out))
    for g, tap in itertools.product(range(groups), np.ndindex(*w.shape[2:])):
        place = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, x.shape[2:], strides))
        some = np.tensordot(x[:, g * count:(g + 1) * count], w[(slice(g * count, (g + 1) * count), slice(None), *tap)], (1, 0))
        y[(slice(None), slice(g * w.shape[1], (g + 1) * w.shape[1]), *place)] += np.moveaxis(some, -1, 1)
    y = y[(slice(None), slice(None), *(slice(p, n - q) for p, q, n in zip(pads[:rank], pads[rank:], out)))]
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def geometry(kernel, strides=1, dilations=1, pads=None):
    """Attributes by rank. Without `pads` so many zeros that windows at every place stay, the odd one behind."""
    rank = len(kernel)
    fill = lambda value: [value] * rank if isinstance(value, int) else list(value)
    strides, dilations = fill(strides), fill(dilations)
    if pads is None:
        ends = [(k - 1) * d for k, d in zip(kernel, dilations)]
        pads = [end // 2 for end in ends] + [end - end // 2 for end in ends]
    return {"strides": strides, "pads": [pads] * 2 * rank if isinstance(pads, int) else list(pads), "dilations": dilations}


def conv(m, element, x, channels, filters, groups, kernel, attributes, bias=True, stored=True, wide=False, op="Conv", make=draw):
    """One convolution; `wide` says whether the weight holds the wide numbers."""
    shape = [filters, channels // groups, *kernel]
    weight = m.drawn(element, shape, make, wide) if stored else m.input(element, shape, wide=wide)
    add = m.drawn(element, (filters,), make, False) if bias else None
    operands = [x, weight, *([add] if add else [])]
    result = m.node(op, operands, kernel_shape=list(kernel), group=groups, **attributes)
    m.check(result, element, operands, lambda *arrays: convolution(*arrays, groups=groups, **attributes),
            channels // groups * int(np.prod(kernel)) + 1)
    return result, operands


PLANES = [([1, 1], geometry([1, 1])), ([1, 1], geometry([1, 1], 2)), ([1, 1], geometry([1, 1], [3, 1], 1, [1, 0, 0, 2])),
          ([3, 3], geometry([3, 3])), ([3, 3], geometry([3, 3], 2)), ([3, 3], geometry([3, 3], [1, 3])),
          ([3, 3], geometry([3, 3], 1, 2)), ([2, 2], geometry([2, 2])), ([5, 5], geometry([5, 5])), ([5, 3], geometry([5, 3], [2, 3])),
          ([7, 7], geometry([7, 7], 2)), ([1, 7], geometry([1, 7])), ([7, 1], geometry([7, 1], [3, 1])),
          ([1, 5], geometry([1, 5], [1, 2])),
          ([2, 3], geometry([2, 3], [1, 2], [3, 1])), ([3, 2], geometry([3, 2], 1, [1, 2], [4, 0, 0, 5])),
          ([3, 3], geometry([3, 3], 1, 1, 4)), ([3, 3], geometry([3, 3], 2, 3, [7, 6, 8, 9])),
          ([1, 3], geometry([1, 3], 3, 1, [0, 9, 2, 0]))]


@case(seconds=6)
def planes_of_dynamic_sizes(folder):
    """Windows partly and wholly in the padding; weights stored and given; sizes and batches as they come."""
    m = Model("planes")
    images = {}
    for number, (kernel, attributes) in enumerate(PLANES):
        for element in ("f32",) if number % 2 else ("f32", FLOATS[1 + number // 2 % 3]):
            channels, groups = [(3, 1), (4, 2), (6, 3), (5, 5), (1, 1), (2, 2)][number % 6]
            filters = groups * int(m.random.integers(1, 10))
            for wide in (False, True):
                if (element, channels, wide) not in images:
                    images[element, channels, wide] = m.input(element, ["b", channels, "h", "w"], wide=wide)
            conv(m, element, images[element, channels, True], channels, filters, groups, kernel, attributes, number % 2)
            conv(m, element, images[element, channels, False], channels, filters, groups, kernel, attributes, (number // 2) % 2,
                 stored=number % 3 != 0, wide=True)
    package = m.compiled(folder)
    for number, (h, w) in enumerate(SIZES):
        sizes = {"b": (1, 3, 1, 2, 0, 1)[number % 6], "h": h, "w": w}
        m.verify(package, m.feed(sizes), folder, f"--threads={1 + number % 3}", about=f"{sizes}:")


@case(seconds=3)
def depthwise_planes(folder):
    """A filter, or two or three, for each channel."""
    m = Model("depthwise")
    for number, (kernel, attributes) in enumerate(PLANES):
        element = ("f32", "f32", "f64", "f16", "f32", "bf16")[number % 6]
        channels, multiplier = (7, 8, 9, 3, 17)[number % 5], (1, 2, 1, 1, 3)[number % 5]
        wide = number % 2 == 0
        x = m.input(element, ["b", channels, "h", "w"], wide=wide)
        conv(m, element, x, channels, channels * multiplier, channels, kernel, attributes, number % 3 > 0, stored=number % 4 > 0,
             wide=not wide)
    for kernel in ([3], [1, 1, 3], [3, 2, 3]):
        dims = ["b", 5, "w"] if len(kernel) == 1 else ["b", 5, 3, "h", "w"]
        conv(m, "f32", m.input("f32", dims), 5, 5, 5, kernel, geometry(kernel))
        conv(m, "f32", m.input("f32", dims), 5, 10, 5, kernel, geometry(kernel, 2), bias=False)
    package = m.compiled(folder)
    for number, (h, w) in enumerate(SIZES):
        sizes = {"b": (1, 2, 0, 1)[number % 4], "h": h, "w": w}
        m.verify(package, m.feed(sizes), folder, f"--threads={1 + number % 3}", about=f"{sizes}:")


@case(seconds=5)
def filters_in_parts(folder):
    """Images of few panels, whose filters threads share: counts around the sizes of parts, groups, any number of threads."""
    m = Model("parts")
    still = [m.input("f32", [2, 6, 7, 7]), m.input("f32", ["b", 6, "h", "w"])]
    for number, filters in enumerate((31, 33, 64, 65, 130, 256, 300, 520)):
        groups = 2 if number % 3 == 1 else 1
        kernel = [[3, 3], [1, 1], [2, 3]][number % 3]
        conv(m, "f32", still[number % 2], 6, filters * groups, groups, kernel, geometry(kernel), number % 2)
    conv(m, "f16", m.input("f16", [1, 6, 7, 7]), 6, 200, 1, [3, 3], geometry([3, 3]))
    package = m.compiled(folder)
    for number, (h, w) in enumerate(((7, 7), (3, 5), (14, 14), (9, 40))):
        sizes = {"b": (1, 2)[number % 2], "h": h, "w": w}
        feed = m.feed(sizes)
        m.verify(package, feed, folder, f"--threads={1 + number}", about=f"{sizes}:")
        found = [m.run(package, feed, folder, f"--threads={threads}") for threads in (1, 2, 3, 7)]
        for threads, other in zip((2, 3, 7), found[1:]):
            for name, array in other.items():
                expect(array.tobytes() == found[0][name].tobytes(), f"{name} of {sizes}: {threads} threads give other bits (DS_SEED={SEED})")


@case(seconds=6)
def lines_in_planes(folder):
    """As exporters write convolutions over one axis: the last axes have one pixel, which other filters read in padding."""
    m = Model("lines in planes")
    pick = lambda *numbers: int(m.random.choice(numbers))
    for number, element in enumerate((*FLOATS, "f32", "f32")):
        groups = pick(1, 2)
        x = m.input(element, ["b", 4, "h", 1], wide=number % 2 == 0)
        for taps, pads in (([pick(2, 3, 5), 1], [pick(0, 2), 0, pick(1, 4), 0]), ([pick(2, 3), 1], [4, 1, 1, 0]), ([2, 2], [1, 0, 1, 1])):
            attributes = geometry(taps, [pick(1, 2), pick(1, 3)], [pick(1, 2), pick(1, 2) if taps[1] == 1 else 1], pads)
            conv(m, element, x, 4, groups * pick(1, 3, 9), groups, taps, attributes, number % 2, number % 3 > 0, number % 2 == 1)
        x = m.input(element, ["b", 3, "h", 1, 1], wide=number % 2 == 0)
        conv(m, element, x, 3, pick(2, 17), 1, [3, 1, 1], geometry([3, 1, 1]), True, True, number % 2 == 1)
    package = m.compiled(folder)
    for number, (h, w) in enumerate(SIZES):
        sizes = {"b": (1, 3, 2)[number % 3], "h": 8 + h * w}
        m.verify(package, m.feed(sizes), folder, f"--threads={1 + number % 3}", about=f"{sizes}:")


@case(seconds=8)
def lines_and_volumes(folder):
    m = Model("lines")
    for element in FLOATS:
        for number, (kernel, groups, attributes) in enumerate((
                ([1], 1, geometry([1])), ([2], 2, geometry([2], 2)), ([3], 1, geometry([3], 1, 2)), ([5], 3, geometry([5], 3)),
                ([7], 1, geometry([7], 1, 1, [0, 6])), ([3], 6, geometry([3], 2, 3, [9, 8])), ([3], 2, geometry([3], 1, 1, [0, 5])))):
            x = m.input(element, ["b", 6, "w"], wide=number % 2 == 0)
            conv(m, element, x, 6, groups * (1 + (number * 4) % 9), groups, kernel, attributes, number % 2, number % 3 > 0,
                 number % 2 == 1)
        for number, (kernel, groups, attributes) in enumerate((
                ([1, 1, 1], 1, geometry([1, 1, 1])), ([3, 3, 3], 2, geometry([3, 3, 3])),
                ([2, 1, 3], 1, geometry([2, 1, 3], [1, 2, 3])),
                ([1, 3, 2], 2, geometry([1, 3, 2], [2, 1, 1], [1, 2, 3])), ([3, 2, 2], 1,
                                                                            geometry([3, 2, 2], 1, 1, [2, 1, 0, 3, 0, 4])))):
            x = m.input(element, ["b", 2, "d", "h", "w"], wide=number % 2 == 1)
            conv(m, element, x, 2, groups * (number + 1), groups, kernel, attributes, number % 2, number % 3 > 0, number % 2 == 0)
    package = m.compiled(folder)
    for number, (d, h, w) in enumerate(((1, 1, 1), (2, 3, 7), (3, 1, 17), (1, 4, 8), (4, 5, 49), (1, 1, 48), (2, 2, 16), (3, 7, 1))):
        sizes = {"b": (1, 3, 1, 0)[number % 4], "d": d, "h": h, "w": w}
        m.verify(package, m.feed(sizes), folder, f"--threads={1 + number % 3}", about=f"{sizes}:")


@case(seconds=4)
def stated_images_of_drawn_geometry(folder):
    """Sizes that the compiler knows, most without padding, drawn by the seed; every group has 1 to 9 filters once."""
    m = Model("stated images")
    for number in range(54):
        rank = (2, 2, 1, 2, 3, 2)[number % 6]
        element = FLOATS[(0, 1, 0, 2, 0, 3)[m.random.integers(6)]]
        kernel = [int(k) for k in m.random.choice([1, 2, 3, 5, 7] if rank < 3 else [1, 2, 3], rank)]
        strides, dilations = ([int(s) for s in m.random.choice([1, 1, 2, 3], rank)] for _ in range(2))
        pads = [int(p) for p in m.random.integers(0, 4, 2 * rank)] if number % 3 == 0 else [0] * 2 * rank
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        # The last axis has as many windows as vectors have lanes, or one more or less; others have a few.
        count = [int(m.random.integers(1, 5)) for _ in range(rank - 1)] + [int(m.random.choice([1, 7, 8, 9, 15, 16, 17, 31, 33, 47,
                                                                                                48, 49]))]
        image = [max(1, (n - 1) * s + span - p - q) for n, s, span, p, q in zip(count, strides, spans, pads[:rank], pads[rank:])]
        groups, perGroup, filters = (1, 2, 1, 3)[number % 4], int(m.random.integers(1, 5)), 1 + number % 9
        wide = number % 2 == 0
        x = m.input(element, [1 + number % 3, groups * perGroup, *image], wide=wide)
        conv(m, element, x, groups * perGroup, groups * filters, groups, kernel,
             {"strides": strides, "pads": pads, "dilations": dilations}, number % 4 < 2, number % 5 > 0, not wide)
    package = m.compiled(folder)
    for threads in (1, 2, 3):
        m.verify(package, m.feed({}), folder, f"--threads={threads}")


@case(seconds=6)
def many_channels(folder):
    """Sums over more than one block of depth, more filters than a panel, what is fused behind, padding by name."""
    m = Model("channels")
    for element in FLOATS:
        for channels, filters, kernel in ((171, 17, [3, 3]), (200, 49, [1, 1]), (31, 100, [1, 3]), (64, 1, [3, 3])):
            x = m.input(element, ["b", channels, 5, "w"])
            conv(m, element, x, channels, filters, 1, kernel, geometry(kernel), stored=channels != 31)
        x = m.input(element, ["b", 8, 5, "w"], wide=False)
        attributes = {"strides": [1, 2], "dilations": [1, 1]}
        weight, bias = m.drawn(element, (9, 8, 3, 3), wide=False), m.drawn(element, (9,), wide=False)
        for mode, low in (("SAME_UPPER", False), ("SAME_LOWER", True)):
            def same(x, w, b, low=low):
                width = x.shape[3]
                total = max((-(-width // 2) - 1) * 2 + 3 - width, 0)
                half = total - total // 2 if low else total // 2
                return convolution(x, w, b, pads=[1, half, 1, total - half], **attributes)
            m.check(m.node("Conv", [x, weight, bias], auto_pad=mode, strides=[1, 2]), element, [x, weight, bias], same)
        result, operands = conv(m, element, x, 8, 6, 2, [3, 3], geometry([3, 3]))
        other = m.input(element, ["b", 6, 5, "w"], wide=False)
        judge = lambda x, w, b, other: np.maximum(convolution(x, w, b, groups=2, **geometry([3, 3])) + other, 0)
        m.check(m.node("Relu", [m.node("Add", [result, other])]), element, [*operands, other], judge)
        relu = m.node("Relu", [result])
        m.check(relu, element, operands, lambda x, w, b: np.maximum(convolution(x, w, b, groups=2, **geometry([3, 3])), 0))
    package = m.compiled(folder)
    for b, w in ((1, 1), (2, 17), (1, 49)):
        m.verify(package, m.feed({"b": b, "w": w}), folder, about=f"{b} images of width {w}:")


@case(seconds=6)
def the_bits_of_an_image_depend_on_nothing_but_the_image(folder):
    """Neither on the batch, nor on threads, nor on NaN and infinities in other images; these touch only the windows and
    groups that see them."""
    m = Model("images")
    for element in FLOATS:
        for channels, filters, groups, kernel, attributes, stored in (
                (3, 9, 1, *PLANES[3], True), (3, 9, 1, *PLANES[4], False), (4, 6, 2, *PLANES[17], True), (5, 5, 5, *PLANES[3], True),
                (5, 10, 5, *PLANES[9], False), (65, 17, 1, *PLANES[0], True), (6, 3, 3, *PLANES[15], True),
                (2, 49, 1, *PLANES[5], True)):
            x = m.input(element, ["b", channels, "h", "w"])
            shape = [filters, channels // groups, *kernel]
            weight = m.drawn(element, shape, normal) if stored else m.input(element, shape)
            m.check(m.node("Conv", [x, weight], group=groups, **attributes), element, [x, weight],
                    lambda x, w, groups=groups, attributes=attributes: convolution(x, w, groups=groups, **attributes),
                    channels // groups * int(np.prod(kernel)))
    package = m.compiled(folder)
    images = {name for name, (_, dims, _, _) in m.inputs.items() if dims[0] == "b"}
    for h, w in ((5, 17), (3, 50), (9, 8)):
        feed = m.feed({"b": 3, "h": h, "w": w}, normal)
        whole = m.verify(package, feed, folder, "--threads=2", whole=False, about=f"{h} x {w}:")
        for threads in (1, 3):
            m.same_bits(whole, m.run(package, feed, folder, f"--threads={threads}"), f"{h} x {w}, {threads} threads")
        for first, end in ((0, 1), (2, 3), (1, 3)):
            part = m.run(package, {name: array[first:end] if name in images else array for name, array in feed.items()}, folder)
            m.same_bits(whole, part, f"{h} x {w}, images {first} to {end} alone", lambda name, array: array[first:end])
        for name in images:
            feed[name][1, -1, h // 2, w // 2], feed[name][1, 0, 0, w - 1] = np.nan, np.inf
            feed[name][1, feed[name].shape[1] // 2, h - 1, 0] = -np.inf
        found = m.verify(package, feed, folder, whole=False, about=f"{h} x {w} with NaN and infinities:")
        m.same_bits({name: array[::2] for name, array in whole.items()}, {name: array[::2] for name, array in found.items()},
                    f"{h} x {w}, beside an image with NaN")


@case
def transposed_convolutions(folder):
    m = Model("transposed")
    for number, (kernel, strides, dilations, pads, extra) in enumerate((
            ([3, 3], [1, 1], [1, 1], [1, 1, 1, 1], [0, 0]), ([2, 2], [2, 2], [1, 1], [0, 0, 0, 0], [0, 0]),
            ([4, 4], [2, 2], [1, 1], [1, 1, 1, 1], [0, 0]), ([3, 3], [2, 2], [1, 1], [1, 1, 1, 1], [1, 1]),
            ([3, 2], [1, 3], [2, 1], [0, 1, 2, 0], [0, 2]), ([1, 1], [1, 1], [1, 1], [0, 0, 0, 0], [0, 0]),
            ([5, 3], [3, 2], [1, 2], [2, 0, 1, 3], [2, 1]), ([3], [2], [1], [1, 0], [1]),
            ([2, 1, 3], [1, 2, 2], [1, 1, 1], [0] * 6, [0, 1, 0]))):
        for element in ("f32", FLOATS[1 + number % 3]):
            channels, groups, filters = ((3, 1, 5), (4, 2, 3), (6, 3, 1), (5, 5, 1), (5, 5, 2))[number % 5]
            x = m.input(element, ["b", channels, *(["w"], ["h", "w"], [2, "h", "w"])[len(kernel) - 1]], wide=number % 2 == 0)
            shape = [channels, filters, *kernel]
            weight = m.drawn(element, shape, wide=number % 2 == 1) if number % 3 else m.input(element, shape, wide=number % 2 == 1)
            operands = [x, weight, *([m.drawn(element, (filters * groups,), wide=False)] if number % 2 else [])]
            attributes = {"strides": strides, "dilations": dilations, "pads": pads}
            m.check(m.node("ConvTranspose", operands, group=groups, output_padding=extra, **attributes), element, operands,
                    lambda *arrays, groups=groups, extra=extra, attributes=attributes: transposed(*arrays, groups=groups,
                                                                                                  extra=extra, **attributes))
    package = m.compiled(folder)
    for number, (h, w) in enumerate(((2, 2), (5, 7), (3, 16), (7, 17), (2, 25), (9, 48))):
        sizes = {"b": (1, 2, 0)[number % 3], "h": h, "w": w}
        m.verify(package, m.feed(sizes), folder, f"--threads={1 + number % 3}", about=f"{sizes}:")


def integer_convolution(x, w, x_zero=None, w_zero=None, bias=None, **attributes):
    return convolution(centred(x, x_zero), centred(w, w_zero, 0), bias, **attributes)


BYTE_PLANES = [(3, 5, 1, *PLANES[3]), (4, 6, 2, *PLANES[4]), (7, 7, 7, *PLANES[3]), (5, 10, 5, *PLANES[6]), (171, 9, 1, *PLANES[3]),
               (17, 16, 1, *PLANES[0]), (6, 27, 3, *PLANES[9]), (1, 8, 1, *PLANES[10]), (2, 3, 1, *PLANES[17]), (1, 1, 1, *PLANES[0]),
               (2, 9, 1, [3], geometry([3], 2)), (4, 4, 2, [2, 1, 3], geometry([2, 1, 3])), (9, 9, 9, *PLANES[8]),
               (65, 1, 1, *PLANES[2])]


@case(seconds=6)
def byte_convolutions(folder):
    """u8 and i8 on both sides; zero points absent, one, or one per filter, constant and given; padding is the zero point."""
    m = Model("byte convolutions")
    for place, (channels, filters, groups, kernel, attributes) in enumerate(BYTE_PLANES):
        dims = ["b", channels, *(["w"], ["h", "w"], [3, "h", "w"])[len(kernel) - 1]]
        for number, (left, right) in enumerate(itertools.product(BYTES, repeat=2)):
            make, kind = MAKES[(place + number) % 4], (place + 2 * number) % 6
            x, shape = m.input(left, dims), [filters, channels // groups, *kernel]
            weight = m.input(right, shape) if kind == 5 else m.drawn(right, shape, make)
            own = lambda element, shape: m.drawn(element, shape, make, wide=False)
            given = lambda element, dims: m.input(element, dims, wide=False)
            zeros = (lambda: (None, None), lambda: (own(left, ()), own(right, ())), lambda: (given(left, []), own(right, (filters,))),
                     lambda: (None, given(right, [filters])), lambda: (own(left, ()), None),
                     lambda: (given(left, []), given(right, [])))
            x_zero, w_zero = zeros[kind]()
            operands = [x, weight, x_zero, w_zero] if w_zero else [x, weight, x_zero] if x_zero else [x, weight]
            check(m, "ConvInteger", "i32", operands, lambda groups=groups, attributes=attributes, **arrays: integer_convolution(
                **arrays, groups=groups, **attributes), ("x", "w", "x_zero", "w_zero"), group=groups, **attributes)
    package = m.compiled(folder)
    for number, (h, w) in enumerate(((1, 1), (5, 7), (1, 49), (9, 1), (3, 16), (2, 17), (4, 8), (17, 33), (1, 47), (2, 9), (3, 3),
                                     (1, 15))):
        sizes, make = {"b": (1, 2, 1, 0)[number % 4], "h": h, "w": w}, MAKES[number // 2 % 4]
        m.verify(package, m.feed(sizes, make), folder, f"--threads={1 + number % 3}", about=f"{make.__name__} {sizes}:")


@case(seconds=5)
def byte_convolutions_of_many_filters(folder):
    """Filters on both sides of the 2^20 elements up to which they become words once, and groups of them."""
    m = Model("many filters")
    for filters, channels, groups in ((1024, 1024, 1), (1025, 1024, 1), (66, 34, 2)):
        left, right = m.random.choice(BYTES), m.random.choice(BYTES)
        x, weight = m.input(left, ["b", channels, "h", "w"]), m.drawn(right, [filters, channels // groups, 1, 1], MAKES[0])
        check(m, "ConvInteger", "i32", [x, weight], lambda x, w, groups=groups: integer_convolution(
            x, w, groups=groups, strides=[1, 1], pads=[0] * 4, dilations=[1, 1]), ("x", "w"), group=groups)
    package = m.compiled(folder, "--mcpu=x86-64-v3")
    for number, (h, w) in enumerate(((1, 1), (3, 7), (2, 17))):
        m.verify(package, m.feed({"b": 1 + number % 2, "h": h, "w": w}, MAKES[number]), folder, f"--threads={1 + number}",
                 about=f"{h} x {w}:")


@case(seconds=6)
def quantized_convolutions(folder):
    """Scales are powers of two, so that the quotients are exact until they are rounded."""
    m = Model("quantized convolutions")
    names = ("x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero", "bias")
    for place, (channels, filters, groups, kernel, attributes) in enumerate(BYTE_PLANES):
        dims = ["b", channels, *(["w"], ["h", "w"], [3, "h", "w"])[len(kernel) - 1]]
        for number, (left, right) in enumerate(itertools.product(BYTES, repeat=2)):
            if (place + number) % 2:
                continue
            columns = (filters,) if (place // 2) % 2 else ()
            w_zero = m.drawn(right, columns)
            depth = channels // groups * int(np.prod(kernel))
            operands = [m.input(left, dims), m.constant("f32", power()(m.random)), m.drawn(left, ()),
                        m.drawn(right, [filters, channels // groups, *kernel], MAKES[place % 4]),
                        m.constant("f32", power(*columns)(m.random)),
                        w_zero, m.constant("f32", np.ldexp(1.0, int(np.log2(depth) / 2) - 1)), m.drawn(left, ()),
                        m.drawn("i32", (filters,), lambda random, _, shape, wide: random.integers(-5000, 5000,
                                                                                                  shape)) if place % 3 else None]

            def judge(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, groups=groups, attributes=attributes):
                sums = integer_convolution(x, w, x_zero, w_zero, bias, groups=groups, **attributes)
                factor = x_scale * w_scale / y_scale
                return requantized(sums, factor.reshape(-1, *[1] * (x.ndim - 2)) if factor.ndim else factor, y_zero, y_zero.dtype)
            check(m, "QLinearConv", left, operands if operands[-1] else operands[:-1], judge, names, group=groups, **attributes)
    package = m.compiled(folder)
    for number, (h, w) in enumerate(((1, 1), (5, 7), (2, 17), (3, 48), (17, 33), (1, 9))):
        sizes, make = {"b": (1, 2, 0)[number % 3], "h": h, "w": w}, MAKES[number % 4]
        m.verify(package, m.feed(sizes, make), folder, f"--threads={1 + number % 3}", about=f"{make.__name__} {sizes}:")


@case(seconds=4)
def integer_convolutions_that_wrap(folder):
    """ds.conv of whole numbers, also of ones that come from 8 and 16 bits and are moved beyond them."""
    p = Program()
    names = {"i32": "i32", "i64": "i64", "u32": "ui32", "u64": "ui64", "u8": "ui8", "u16": "ui16", "i8": "i8", "i16": "i16"}
    for source, element, moved in (
            ("i32", "i32", None), ("i64", "i64", None), ("u32", "u32", None), ("u64", "u64", None), ("i16", "i32", None),
            ("u16", "i32", None),
            ("u8", "i32", -40000), ("u8", "i32", -128), ("i16", "i32", 1), ("u16", "i32", -32768), ("i8", "i64", None),
            ("u16", "i64", None),
            ("i8", "u32", None), ("i16", "i32", -1)):
        for channels, filters, groups, kernel, attributes in (*BYTE_PLANES[:3], BYTE_PLANES[5], BYTE_PLANES[10]):
            make = (draw, extreme, lowest)[int(p.random.integers(3))]
            image = [2, channels, *[6, 17][-len(kernel):]]
            x = p.input(make(p.random, source, image), names[source], ["b", channels, *["h", "w"][-len(kernel):]])
            other = "i16" if source in ("i16", "u16") else source if source == element else "i8"
            w = p.input(make(p.random, other, [filters, channels // groups, *kernel]), names[other])
            operands, arrays = [], []
            for value in (x, w):
                array = value.array.astype(NUMPY[element])
                operands.append(value if value.element == names[element] else p.op(
                    f"ds.cast {{0}} to {names[element]}", [value], names[element], value.dims, array))
                arrays.append(array)
            if moved is not None:
                offset = p.constant(str(moved), names[element], np.array(moved, NUMPY[element]))
                with np.errstate(all="ignore"):
                    arrays[0] = arrays[0] + NUMPY[element](moved)
                operands[0] = p.op("ds.binary add {0}, {1}", [operands[0], offset], names[element], x.dims, arrays[0])
            bias = p.input(draw(p.random, element, [filters]), names[element])
            wide = (array.astype(np.int64) for array in (*arrays, bias.array))
            expected = narrowed(convolution(*wide, groups=groups, **attributes), element)
            words = " ".join(f"{name} {value}" for name, value in {**attributes, "groups": groups}.items())
            p.test("ds.conv {0}, {1}, {2} " + words, [*operands, bias], names[element], ["?"] * len(image), expected)
    p.verify(folder, ["--mcpu=host"])
