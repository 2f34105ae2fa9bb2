"""Weights that models store as codes (MatMulNBits, DequantizeLinear, casts times scales) against NumPy in double precision."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, processors, run_package, tool
from programs import SEED, some
from quantized_weight_cases import UNIT, digits_lose

ROWS = (1, 2, 8, 9, 17, 40)


class Weights:
    """Products with weights [K, N] that nodes make of codes; `stands` is what they are, in float64."""

    def __init__(self, name):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.nodes, self.constants, self.inputs, self.outputs, self.stands, self.bytes = [], [], [], [], [], 0

    def constant(self, array, kind=None):
        name = f"c{len(self.constants)}"
        if kind is None:
            self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        else:  # types that NumPy lacks: two in a byte
            packed = np.append(array.ravel(), [0] * (array.size % 2)).astype(np.int64) & 15
            self.constants.append(helper.make_tensor(name, kind, array.shape, (packed[0::2] | packed[1::2] << 4).astype(np.uint8).tobytes(), raw=True))
        return name

    def node(self, op, inputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], domain=domain, **attributes))
        return self.nodes[-1].output[0]

    def input(self, depth):
        self.inputs.append(helper.make_tensor_value_info(f"x{len(self.inputs)}", TensorProto.FLOAT, ["m", depth]))
        return self.inputs[-1].name

    def product(self, result, stands, stored):
        """`stored` bytes of codes, scales and zero points are all that a package needs of the weight."""
        self.nodes[-1].output[0] = f"y{len(self.outputs)}"
        self.outputs.append(helper.make_tensor_value_info(f"y{len(self.outputs)}", TensorProto.FLOAT, None))
        self.stands.append(stands.astype(np.float64))
        self.bytes += stored

    def verify(self, folder, *options, holds=True, factors=None):
        """Rows are multiplied by their factor where there are some."""
        graph = helper.make_graph(self.nodes, "stored", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(folder / "stored.onnx"))
        package = compile_model(folder / "stored.onnx", folder, *options)
        for rows in ROWS:
            feed = {f"x{i}": self.random.standard_normal((rows, len(w))).astype(np.float32) for i, w in enumerate(self.stands)}
            for i, factor in enumerate(factors or ()):
                feed[f"x{i}"] *= factor
            found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
            for i, w in enumerate(self.stands):
                x, y = feed[f"x{i}"].astype(np.float64), found[f"y{i}"]
                # One rounding per step of K, one of each weight and one of the scale; and what digits lose.
                bound = (len(w) + 4) * UNIT * (np.abs(x) @ np.abs(w)) + digits_lose(x, w)
                far = np.abs(y - x @ w)
                expect(y.shape == far.shape and (far <= bound).all(),
                       f"{options} {rows} rows, y{i} of {w.shape} by {self.nodes[i].op_type}: off by {(far - bound).max()} (DS_SEED={SEED})")
        size = (package / "weights.bin").stat().st_size
        # Panels are padded to whole ones, constants to lines.
        expect(holds is None or (size <= 1.6 * self.bytes + 4096 * len(self.stands)) == holds, f"{options}: expected about {self.bytes} bytes of weights, found {size}")


def scales(random, *shape):
    return np.exp(random.standard_normal(shape)).astype(np.float32)


@case(seconds=14)
def products_with_packed_bits(folder):
    w = Weights("bits")
    for bits in (4, 8, 2):
        for number, (k, n, block) in enumerate(((256, 100, 32), (144, 49, 16), (200, 160, 64), (97, 130, 128 if bits == 4 else 32))):
            blocks = -(-k // block)
            codes = w.random.integers(0, 1 << bits, (n, blocks, block))
            s = scales(w.random, n, blocks)
            def packed(x):
                fields = np.zeros((*x.shape[:-1], -(-x.shape[-1] * bits // 8) * 8 // bits), np.int64)
                fields[..., :x.shape[-1]] = x
                parts = [fields[..., i::8 // bits] << (bits * i) for i in range(8 // bits)]
                return np.bitwise_or.reduce(parts).astype(np.uint8)
            operands = [w.input(k), w.constant(packed(codes)), w.constant(s if number % 2 else s.ravel())]
            points = np.full((n, blocks), 1 << (bits - 1))
            if number % 2 == 0:
                points = w.random.integers(0, 1 << bits, (n, blocks))
                operands.append(w.constant(packed(points)))
            stands = (codes - points[..., None]) * s[..., None].astype(np.float64)
            w.node("MatMulNBits", operands, domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
            stored = k * n / (1 if bits == 8 else 2) + n * blocks * 5  # two bits are stored as four
            w.product(None, stands.reshape(n, -1)[:, :k].T, stored)
    for cpu in dict.fromkeys((processors()[0], processors()[-1])):
        w.verify(folder, f"--mcpu={cpu}")
    w.verify(folder, "--reference", holds=False)


@case(seconds=8)
def scales_far_apart(folder):
    """Of groups beside each other in a column, those of the first one small, great or 0: sums are what they are in floats."""
    w = Weights("far")
    powers = [(-18, 40), (0, 97), (None, 99), (None, 84), (60, -95), (60, -80), (60, -30), (60, -10), (31, -30), (30, -108), (-60, 20),
              (-60, 41), (-99, 0)] + [w.random.uniform(-99, 99, 2) for _ in range(9)]
    factors, given = [], len(powers) - 9  # of which the first group alone has the first power
    for number, (first, other) in enumerate(powers):
        k, n, block, blocks = 80, 70, 16, 5
        s = scales(w.random, n, blocks)
        for group in range(blocks):
            power = first if group % (blocks if number < given else 2 + number % 4) == 0 else other
            s[:, group] *= 0 if power is None else np.float32(2.0**power)
        codes = w.random.integers(0, 256, (n, blocks, block)).astype(np.uint8)
        codes[::2, 0] = 128  # stands for 0: nothing hides what others lose
        stands = (codes.astype(np.float64) - 128) * s[..., None].astype(np.float64)
        w.node("MatMulNBits", [w.input(k), w.constant(codes), w.constant(s)], domain="com.microsoft", K=k, N=n, bits=8, block_size=block)
        w.product(None, stands.reshape(n, k).T, 0)
        # Results from 2^-100 to 2^100 of rows from 2^-90 on, which have all their digits.
        greatest, least = (np.log2(np.abs(part).max()) for part in (stands, stands[::2]))
        lowest, highest = max(-90, -90 - least), min(90, 90 - greatest)
        factors.append(np.float32(2.0 ** (w.random.uniform(lowest, highest) if lowest < highest else min(0, highest))))
    w.verify(folder, holds=None, factors=factors)
    w.verify(folder, "--mcpu=x86-64-v3", holds=None, factors=factors)


@case(seconds=23)
def dequantized_products(folder):
    """By tensor, by axis and by blocks, of signed and unsigned codes, as they are and turned."""
    w = Weights("dequantized")
    kinds = {"i8": (np.int8, None, -128, 128), "u8": (np.uint8, None, 0, 256), "i4": (np.int8, TensorProto.INT4, -8, 8),
             "u4": (np.uint8, TensorProto.UINT4, 0, 16)}
    for number, (kind, (dtype, code, low, high)) in enumerate(kinds.items()):
        for turned in (False, True):
            for how in ("tensor", "column", "blocks"):
                k, n = ((96, 70), (160, 49), (64, 130))[(number + turned) % 3]
                shape = (n, k) if turned else (k, n)
                codes = w.random.integers(low, high, shape).astype(dtype)
                depth, block = int(turned), 32
                if how == "tensor":
                    own, attributes = (), {}
                elif how == "column":
                    own, attributes = (n,), {"axis": 1 - depth}
                else:
                    own, attributes = tuple(size // block if axis == depth else size for axis, size in enumerate(shape)), {
                        "axis": depth, "block_size": block}
                s, zero = scales(w.random, *own), w.random.integers(low, high, own).astype(dtype)
                operands = [w.constant(codes, code), w.constant(s)]
                if (number + turned) % 2:
                    operands.append(w.constant(zero, code))
                else:
                    zero = np.zeros(own, dtype)
                fitted = [(x.repeat(block, depth) if how == "blocks" else x.reshape((-1, 1) if turned and how == "column" else x.shape))
                          for x in (s.astype(np.float64), zero.astype(np.int64))]
                stands = (codes.astype(np.int64) - fitted[1]) * fitted[0]
                real = w.node("DequantizeLinear", operands, **attributes)
                if turned:
                    w.node("Gemm", [w.input(k), real], transB=1)
                else:
                    w.node("MatMul", [w.input(k), real])
                groups = k // block if how == "blocks" else 1
                w.product(None, stands.T if turned else stands, k * n / (2 if code else 1) + 5 * n * groups)
    w.verify(folder)
    w.verify(folder, "--mcpu=x86-64-v3")


@case(seconds=3)
def casts_times_scales(folder):
    w = Weights("casts")
    for number, (k, n) in enumerate(((64, 70), (33, 130), (100, 48))):
        codes = w.random.integers(-128, 128, (k, n)).astype(np.int8)
        real, s = w.node("Cast", [w.constant(codes)], to=TensorProto.FLOAT), scales(w.random, n) if number else scales(w.random)
        operands = [real, w.constant(s)]
        weight = w.node("Mul", operands[::-1] if number == 1 else operands)
        w.node("MatMul", [w.input(k), weight])
        w.product(None, codes * s.astype(np.float64), k * n + 4 * n)
    w.verify(folder)
    # Where nothing is left to quantize, the option says so.
    tool("ds-opt", folder / "stored.onnx", "-o", folder / "no.dsp", "--quantize=int4", code=1,
         says="no weight was quantized: the weight is kept: it is quantized or packed already")


def in_ranges(w, k, n, size, turned):
    """A product with a weight whose elements share a scale in ranges of `size`, as it lies flat: [K, N], or turned [N, K]."""
    codes = w.random.integers(-128, 128, (k * n // size, size)).astype(np.int8)
    s = scales(w.random, k * n // size)
    weight = w.node("DequantizeLinear", [w.constant(codes), w.constant(s)], axis=0)
    weight = w.node("Reshape", [weight, w.constant(np.array([n, k] if turned else [k, n]))])
    stands = (codes * s[:, None].astype(np.float64)).reshape((n, k) if turned else (k, n))
    if turned:
        weight, stands = w.node("Transpose", [weight], perm=[1, 0]), stands.T
    w.node("MatMul", [w.input(k), weight])
    return stands


@case(seconds=12)
def ranges_of_flat_weights(folder):
    """Whole rows, an even number of them, columns and parts of columns share a scale."""
    w = Weights("ranges")
    pick = lambda *numbers: int(w.random.choice(numbers))
    for turned in (False, True):
        for part in (2, 1) if turned else (1, 1):
            n, half, groups = pick(48, 70, 96), 2 * pick(3, 8, 16), pick(4, 6, 10)
            k = half * groups
            # Turned, a range is one column, or two, or an even part of one.
            size = (k * pick(1, 2) if part == 1 else half) if turned else half * n
            stands = in_ranges(w, k, n, size, turned)
            w.product(None, stands, k * n + 4 * n * (1 if turned and part == 1 else groups))
    w.verify(folder)
    w.verify(folder, "--mcpu=x86-64-v3")
    w = Weights("odd ranges")  # one row, parts of rows, ranges that end within a row or a column
    for turned, size in ((False, 96), (False, 48), (False, 128), (True, 96)):
        w.product(None, in_ranges(w, 64, 96, size, turned), 64 * 96)
    w.verify(folder, holds=False)


@case
def near_misses_stay_floats(folder):
    """Scales of rows, zero points with fractions, codes of 16 bits: right, and not in codes."""
    w = Weights("misses")
    k, n = 64, 96
    for kind in ("rows", "fractions", "wide"):
        codes = w.random.integers(-300 if kind == "wide" else -128, 300 if kind == "wide" else 128, (k, n))
        codes = codes.astype(np.int16 if kind == "wide" else np.int8)
        real = w.node("Cast", [w.constant(codes)], to=TensorProto.FLOAT)
        stands = codes.astype(np.float64)
        if kind == "fractions":
            real, stands = w.node("Sub", [real, w.constant(np.float32(0.5))]), stands - 0.5
        s = scales(w.random, k, 1) if kind == "rows" else scales(w.random, n)
        weight = w.node("Mul", [real, w.constant(s)])
        w.node("MatMul", [w.input(k), weight])
        w.product(None, stands * s.astype(np.float64), k * n)
    w.verify(folder, holds=False)


def both_sides(m, left, dims, zero_kind, shape, own):
    """A dequantized input and weight of these shapes: their names; zero point, scale, codes and scales of the weight."""
    kind, name = helper.np_dtype_to_tensor_dtype(np.dtype(left)), f"x{len(m.inputs)}"
    x_scale, zero = scales(m.random), m.random.integers(np.iinfo(left).min, np.iinfo(left).max + 1)
    m.inputs.append(helper.make_tensor_value_info(name, kind, dims))
    operands = [name, m.constant(x_scale)]
    if zero_kind == "constant":
        operands.append(m.constant(np.array(zero, left)))
    elif zero_kind == "input":
        zero = name + "_zero"
        m.inputs.append(helper.make_tensor_value_info(zero, kind, []))
        operands.append(zero)
    x = m.node("DequantizeLinear", operands)
    codes = m.random.choice([-128, 127, *range(-128, 128)], shape).astype(np.int8)
    w_scale = scales(m.random, *own)
    w = m.node("DequantizeLinear", [m.constant(codes), m.constant(w_scale)], axis=1 if len(shape) == 2 else 0)
    return name, x, w, 0 if zero_kind == "none" else zero, float(x_scale), codes, w_scale


def correlated(x, codes, pads, strides, groups):
    """The convolution of integers, window by window."""
    x = np.pad(x, ((0, 0), (0, 0), *zip(pads[:2], pads[2:])))
    out = []
    per = codes.shape[0] // groups
    for g in range(groups):
        part = x[:, g * codes.shape[1]:(g + 1) * codes.shape[1]]
        windows = np.lib.stride_tricks.sliding_window_view(part, codes.shape[2:], (2, 3))[:, :, ::strides[0], ::strides[1]]
        out.append(np.einsum("bcyxij,ocij->boyx", windows, codes[g * per:(g + 1) * per].astype(np.int64)))
    return np.concatenate(out, 1)


@case(seconds=12)
def integers_on_both_sides(folder):
    """Products and convolutions between DequantizeLinear are those of integers: exact sums, rounded after them only."""
    m = Weights("both sides")
    judges = []
    for number in range(12):
        left, zero_kind = (np.uint8, np.int8)[number // 2 % 2], ("none", "constant", "input")[number // 4]
        k, n = ((70, 49), (64, 100), (33, 130))[number % 3]
        if number % 2:
            groups, strides, pads = 1 + number // 2 % 2, [1 + number % 4 // 3, 1], [1, 0, 2, 1]
            shape, dims = (n // groups * groups, 8 // groups, 3, 2), ["m", 8, 9, "w"]  # small filters are no weights
        else:
            shape, dims = (k, n), ["m", k]
        count = shape[0] if number % 2 else n
        name, x, w, zero, x_scale, codes, w_scale = both_sides(m, left, dims, zero_kind, shape, (count,) if number % 5 else ())
        bias = m.random.standard_normal(count).astype(np.float32)
        if number % 2:
            m.node("Conv", [x, w, m.constant(bias)], pads=pads, strides=strides, group=groups)
            run = lambda i, codes=codes, pads=pads, strides=strides, groups=groups: correlated(i, codes, pads, strides, groups)
            w_scale, bias = (a.reshape(-1, 1, 1) if a.ndim else a for a in (w_scale, bias))
        else:
            m.node("Gemm", [x, w, m.constant(bias)])
            run = lambda i, codes=codes: i @ codes.astype(np.int64)
        m.nodes[-1].output[0] = f"y{number}"
        m.outputs.append(helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None))
        judges.append((name, zero, run, x_scale * w_scale.astype(np.float64), bias.astype(np.float64)))
    graph = helper.make_graph(m.nodes, "both", m.inputs, m.outputs, m.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(folder / "both.onnx"))
    text = tool("ds-opt", folder / "both.onnx", "--stop-after=optimization").out
    floats = [line for line in text.splitlines() if ("ds.linear" in line or "ds.conv " in line) and "xi32>" not in line.split("->")[-1]]
    expect(not floats, f"products of floats: {floats}")
    for cpu in some(processors(), 2):
        package = compile_model(folder / "both.onnx", folder, f"--mcpu={cpu}", name=f"{cpu}.dsp")
        for rows, width in ((1, 5), (3, 50), (17, 17)):
            feed = {}
            for value in m.inputs:
                kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                dims = [{"m": rows, "w": width}.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
                feed[value.name] = m.random.choice([np.iinfo(kind).min, np.iinfo(kind).max, *range(np.iinfo(kind).min, np.iinfo(kind).max + 1)], dims).astype(kind)
            found = run_package(package, feed, folder)
            for i, (name, zero, run, scale, bias) in enumerate(judges):
                point = feed[zero] if isinstance(zero, str) else zero
                exact = run(feed[name].astype(np.int64) - int(point)) * scale
                # The sum, the product of the scales, the product with it and the bias round once each.
                bound = 5 * UNIT * (np.abs(exact) + np.abs(bias))
                far = np.abs(found[f"y{i}"] - (exact + bias))
                expect(far.shape == found[f"y{i}"].shape and (far <= bound).all(),
                       f"{cpu} y{i}, {rows} rows of width {width}: off by {(far - bound).max()} (DS_SEED={SEED})")
