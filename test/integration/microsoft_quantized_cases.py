"""Quantized operators of com.microsoft against ONNX Runtime."""
import numpy as np

from kit import case
from microsoft import Cases

f32, u8, i8 = np.float32, np.uint8, np.int8
SIZES = {"batch": 2, "seq": 5}, {"batch": 3, "seq": 9}


def numbers(c, dims, dtype):
    return c.integers(dims, *((0, 256) if dtype == u8 else (-128, 128)), dtype)


def weights(c, dims, dtype):
    """Right operands of products. On CPUs without VNNI, ONNX Runtime adds pairs of u8 × i8 products in 16 bits, which
    saturate; |w| <= 64 keeps 2 * 255 * |w| inside of them."""
    return c.integers(dims, *((0, 256) if dtype == u8 else (-64, 65)), dtype)


def scale(c, dims=(), low=0.01, high=0.1):
    return c.input(list(dims), lambda random, shape, sizes: random.uniform(low, high, shape))


def zero(c, dtype, dims=()):
    return c.integers(list(dims), *((100, 156) if dtype == u8 else (-20, 20)), dtype)


def steps(ours, theirs):
    """The share of elements that are one step apart. A quotient right between two integers may fall to either side:
    ONNX Runtime multiplies with reciprocals and fuses multiplications and additions. More than a step is wrong."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return np.inf
    difference = np.abs(ours.astype(int) - theirs.astype(int))
    return np.inf if difference.max() > 1 else float(difference.mean())


ROUNDED = {"measure": steps, "tolerance": 0.02}


@case
def quantized_elementwise(folder):
    c = Cases()
    for dtype in (u8, i8):
        for dims in (["batch", "seq", 24], [24], [1]):
            for op in ("QLinearAdd", "QLinearMul"):
                c.node(op, [numbers(c, ["batch", "seq", 24], dtype), scale(c), zero(c, dtype), numbers(c, dims, dtype),
                            scale(c), zero(c, dtype), scale(c, (), 0.05, 0.2), zero(c, dtype)], [dtype], **ROUNDED)
        c.node("QLinearSigmoid", [numbers(c, ["batch", "seq"], dtype), scale(c), zero(c, dtype), scale(c, (), 0.003, 0.005),
                                  zero(c, dtype)], [dtype], **ROUNDED)
        c.node("QLinearLeakyRelu", [numbers(c, ["batch", "seq"], dtype), scale(c), zero(c, dtype), scale(c), zero(c, dtype)],
               [dtype], alpha=0.2, **ROUNDED)
        for opset, axis in ((13, -1), (11, 1), (13, 1)):
            # 1 / scale is mostly no integer. Results above 127 wrap in ONNX Runtime: int8 keeps below.
            c.node("QLinearSoftmax", [numbers(c, ["batch", "seq", 7], dtype), scale(c), zero(c, dtype),
                                      scale(c, (), *((0.008, 0.01) if dtype == i8 else (0.003, 0.005))),
                                      c.integers([], -20, -5, i8) if dtype == i8 else zero(c, dtype)], [dtype], opset=opset,
                   axis=axis, **ROUNDED)
        for last in (0, 1):
            c.node("QLinearGlobalAveragePool", [numbers(c, ["batch", 3, "seq", 7], dtype), scale(c), zero(c, dtype), scale(c),
                                                zero(c, dtype)], [dtype], channels_last=last, **ROUNDED)
            shape = ["batch", 9, 7, 3] if last else ["batch", 3, 9, 7]
            image = [numbers(c, shape, dtype), scale(c), zero(c, dtype), scale(c), zero(c, dtype)]
            for windows in ({"kernel_shape": [2, 3]}, {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 2]},
                            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
                            {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}):
                c.node("QLinearAveragePool", image, [dtype], channels_last=last, **windows, **ROUNDED)
        c.node("QLinearConcat", [scale(c), zero(c, dtype), numbers(c, ["batch", 3], dtype), scale(c), zero(c, dtype),
                                 numbers(c, ["batch", "seq"], dtype), scale(c), zero(c, dtype)], [dtype], axis=1, **ROUNDED)
        condition = c.integers(["batch", "seq"], 0, 2, np.bool_)
        c.node("QLinearWhere", [condition, numbers(c, ["batch", "seq"], dtype), scale(c), zero(c, dtype),
                                numbers(c, ["seq"], dtype), scale(c), zero(c, dtype), scale(c), zero(c, dtype)], [dtype],
               **ROUNDED)
        x = c.input(["batch", "seq", 6])
        c.node("QuantizeLinear", [x, scale(c), zero(c, dtype)], [dtype])
        c.node("QuantizeLinear", [x, scale(c, [6]), zero(c, dtype, [6])], [dtype], axis=2)
        c.node("DequantizeLinear", [numbers(c, ["batch", 4], dtype), scale(c), zero(c, dtype)])
        c.node("DequantizeLinear", [numbers(c, ["batch", 4], dtype), scale(c, [4]), zero(c, dtype, [4])], axis=-1)
    c.run(folder, *SIZES)


@case(seconds=12)
def quantized_products(folder):
    c = Cases()
    def integer_product(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
        a, b = (x.astype(np.int64) - (0 if zero is None else zero) for x, zero in ((a, a_zero), (b, b_zero)))
        return [a @ b * (a_scale * b_scale.astype(np.float64)) + (0 if bias is None else bias)]
    for a in (u8, i8):
        for b in (u8, i8):
            reference = None if a == u8 else integer_product  # kernels for int8 on the left are rare
            x, w, bias = numbers(c, ["batch", "seq", 20], a), weights(c, [20, 12], b), c.input([12])
            for columns in ((), (12,)):
                c.node("MatMulIntegerToFloat", [x, w, scale(c), scale(c, columns), zero(c, a), zero(c, b, columns), bias],
                       reference=reference)
            c.node("MatMulIntegerToFloat", [x, w, scale(c), scale(c)], reference=reference)
        c.node("MatMulIntegerToFloat", [numbers(c, ["batch", 3, "seq", 20], a), weights(c, ["batch", 3, 20, 7], i8), scale(c),
                                        scale(c), zero(c, a)], reference=reference)
    for b in (u8, i8):
        x, w, bias = c.input(["batch", "seq", 20]), weights(c, [20, 12], b), c.input([12])
        c.node("DynamicQuantizeMatMul", [x, w, scale(c)])
        c.node("DynamicQuantizeMatMul", [x, w, scale(c), zero(c, b), bias])
        c.node("DynamicQuantizeMatMul", [x, w, scale(c, [12]), zero(c, b, [12]), bias])
        x, w, turned = numbers(c, ["batch", 20], u8), weights(c, [20, 12], b), weights(c, [12, 20], b)
        more = c.integers([12], -1000, 1000)
        c.node("QGemm", [x, scale(c), zero(c, u8), w, scale(c), zero(c, b)], alpha=0.5)
        c.node("QGemm", [x, scale(c), zero(c, u8), turned, scale(c, [12]), zero(c, b, [12]), more], transB=1)
        c.node("QGemm", [x, scale(c), zero(c, u8), w, scale(c), zero(c, b), more, scale(c, (), 0.3, 0.5), zero(c, u8)], [u8], **ROUNDED)
    c.run(folder, *SIZES)


@case(seconds=6)
def quantized_attention(folder):
    c = Cases()

    def lengths(random, shape, sizes):
        return random.integers(1, sizes["seq"] + 1, shape)
    x, w = numbers(c, ["batch", "seq", 16], u8), weights(c, [16, 48], i8)
    bias, s, z = c.input([48]), scale(c), zero(c, u8)
    mask = c.input(["batch"], lengths, np.int32)
    past = c.input([2, "batch", 4, 3, 4])
    for weight_scale, weight_zero in ((s, zero(c, i8)), (scale(c, [48]), zero(c, i8, [48])), (s, None)):
        for unidirectional in (0, 1):
            c.node("QAttention", [x, w, bias, s, weight_scale, mask, z, weight_zero], num_heads=4,
                   unidirectional=unidirectional)
            c.node("QAttention", [x, w, bias, s, weight_scale, None, z, weight_zero, past], [f32, f32], num_heads=4,
                   unidirectional=unidirectional)
    c.run(folder, *SIZES)
