"""One case of about 1 MB for every operator, several where the axis or the kind of shape decides: a table of families."""
from typing import NamedTuple

import numpy as np

RANDOM = np.random.default_rng(0)
SIDE = 512  # SIDE x SIDE numbers of 4 bytes are 1 MB


class Case(NamedTuple):
    name: str  # the operator, and what tells it from other cases of it
    inputs: tuple  # arrays; None: absent
    constants: tuple = ()  # places of inputs that are stored in the model
    outputs: int = 1
    opset: int = 20
    attributes: dict = {}

    @property
    def operator(self):
        return self.name.split()[0]


def normal(*shape):
    return RANDOM.standard_normal(shape, np.float32)


def uniform(low, high, *shape):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64):
    return RANDOM.integers(low, high, shape, dtype=dtype)


def flags(*shape):
    return RANDOM.random(shape) < 0.5


def sizes(*numbers):
    return np.array(numbers, np.int64)


def case(name, *inputs, constants=(), outputs=1, opset=20, **attributes):
    return Case(name, inputs, tuple(constants), outputs, opset, attributes)


def elementwise():
    x = normal(SIDE, SIDE)
    for name in ("Abs Asinh Atan Ceil Celu Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu "
                 "Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Cosh Softplus Softsign Tan Tanh "
                 "ThresholdedRelu").split():
        yield case(name, x)
    yield case("Gelu tanh", x, approximate="tanh")
    yield case("Swish", x, opset=24)
    for name in ("Acos", "Asin", "Atanh", "Log", "Sqrt"):
        yield case(name, uniform(0.05, 0.95, SIDE, SIDE))
    yield case("Acosh", uniform(1, 3, SIDE, SIDE))
    y = uniform(0.5, 2, SIDE, SIDE)
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "Equal", "Greater", "GreaterOrEqual", "Less",
                 "LessOrEqual", "PRelu"):
        yield case(name, x, y)
    for name in ("Add", "Mul", "Div"):
        yield case(f"{name} row", x, y[:1])
        yield case(f"{name} column", x, y[:, :1])
    yield case("Pow", y, x)
    yield case("Pow 2", x, np.float32(2), constants=(1,))
    yield case("Mod fmod", x, y, fmod=1)
    a, b = integers(1, 1000, SIDE, SIDE, dtype=np.int32), integers(1, 1000, SIDE, SIDE, dtype=np.int32)
    for name in ("Add", "Mul", "Div", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield case(f"{name} i32", a, b)
    yield case("BitwiseNot i32", a)
    yield case("BitShift u32", a.astype(np.uint32), b.astype(np.uint32) % 32, direction="LEFT")
    p, q = flags(1024, 1024), flags(1024, 1024)
    for name in ("And", "Or", "Xor"):
        yield case(name, p, q)
    yield case("Not", p)
    yield case("Where", flags(SIDE, SIDE), x, y)
    yield case("Clip", x, np.float32(-1), np.float32(1), constants=(1, 2))
    for kind, number in (("f16", 10), ("i32", 6), ("bool", 9), ("f64", 11)):
        yield case(f"Cast {kind}", x, to=number)
    yield case("BitCast", x, to=6, opset=26)
    yield case("CastLike", x, normal(1).astype(np.float16))
    yield case("Dropout", x)


def reductions():
    x = uniform(0.5, 1.5, SIDE, SIDE)
    for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        for words, axes in (("rows", [1]), ("columns", [0]), ("all", [0, 1])):
            yield case(f"Reduce{name} {words}", x, sizes(*axes), constants=(1,))
    yield case("ReduceMean middle", uniform(0, 1, 16, 128, 128), sizes(1), constants=(1,))
    for name in ("ArgMax", "ArgMin"):
        yield case(f"{name} rows", x, axis=1)
        yield case(f"{name} columns", x, axis=0)
    for words, axis in (("rows", 1), ("columns", 0)):
        for name in ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
            yield case(f"{name} {words}", x, axis=axis)
        yield case(f"CumSum {words}", x, np.int64(axis), constants=(1,))
        yield case(f"CumProd {words}", x, np.int64(axis), constants=(1,), opset=26)
        yield case(f"TopK {words}", normal(SIDE, SIDE), sizes(10), constants=(1,), outputs=2, axis=axis)
    yield case("TopK half", normal(SIDE, SIDE), sizes(SIDE // 2), constants=(1,), outputs=2)


def normalizations():
    x, image = normal(SIDE, SIDE), normal(1, 64, 64, 64)
    scale, bias = uniform(0.5, 1.5, 64), normal(64)
    yield case("LayerNormalization", x, uniform(0.5, 1.5, SIDE), normal(SIDE), constants=(1, 2))
    yield case("RMSNormalization", x, uniform(0.5, 1.5, SIDE), constants=(1,), opset=23)
    yield case("InstanceNormalization", image, scale, bias, constants=(1, 2))
    yield case("GroupNormalization", image, scale, bias, constants=(1, 2), opset=21, num_groups=8)
    yield case("BatchNormalization", image, scale, bias, normal(64), uniform(0.5, 1.5, 64), constants=(1, 2, 3, 4))
    yield case("LRN", image, size=5)
    yield case("MeanVarianceNormalization", image)
    yield case("NegativeLogLikelihoodLoss", x, integers(0, SIDE, SIDE))
    yield case("SoftmaxCrossEntropyLoss", x, integers(0, SIDE, SIDE))


def movement():
    x, rows = normal(SIDE, SIDE), integers(0, SIDE, SIDE)
    yield case("Transpose", x, perm=[1, 0])
    yield case("Transpose heads", normal(1, 512, 8, 64), perm=[0, 2, 1, 3])
    yield case("Transpose channels", normal(1, 64, 64, 64), perm=[0, 2, 3, 1])
    yield case("Concat rows", x, x, axis=0)
    yield case("Concat columns", x, x, axis=1)
    yield case("Slice rows", x, sizes(1), sizes(500), sizes(0), constants=(1, 2, 3))
    yield case("Slice columns", x, sizes(1), sizes(500), sizes(1), constants=(1, 2, 3))
    yield case("Slice step", x, sizes(0), sizes(512), sizes(1), sizes(2), constants=(1, 2, 3, 4))
    yield case("Slice reverse", x, sizes(-1), sizes(-1000), sizes(1), sizes(-1), constants=(1, 2, 3, 4))
    yield case("Split rows", x, outputs=4, axis=0, num_outputs=4)
    yield case("Split columns", x, outputs=4, axis=1, num_outputs=4)
    yield case("Gather rows", x, rows, axis=0)
    yield case("Gather columns", x, rows, axis=1)
    yield case("GatherElements rows", x, integers(0, SIDE, SIDE, SIDE), axis=0)
    yield case("GatherElements columns", x, integers(0, SIDE, SIDE, SIDE), axis=1)
    yield case("GatherND rows", x, rows[:, None])
    yield case("GatherND elements", x, integers(0, SIDE, SIDE, 64, 2))
    yield case("ScatterElements", x, integers(0, SIDE, SIDE, 128), normal(SIDE, 128), axis=1)
    yield case("ScatterElements add", x, integers(0, SIDE, SIDE, 128), normal(SIDE, 128), axis=1, reduction="add")
    yield case("Scatter", x, integers(0, SIDE, SIDE, 128), normal(SIDE, 128), axis=1, opset=10)
    yield case("ScatterND rows", x, RANDOM.permutation(SIDE)[:128, None], normal(128, SIDE))
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield case(f"Pad {mode}", x, sizes(3, 5, 7, 9), constants=(1,), mode=mode)
    yield case("Tile rows", x, sizes(2, 1), constants=(1,))
    yield case("Tile columns", x, sizes(1, 2), constants=(1,))
    yield case("Expand rows", x[:1], sizes(SIDE, SIDE), constants=(1,))
    yield case("Expand columns", x[:, :1], sizes(SIDE, SIDE), constants=(1,))
    yield case("Reshape", x, sizes(-1), constants=(1,))
    yield case("Flatten", x)
    yield case("Squeeze", x[None], sizes(0), constants=(1,))
    yield case("Unsqueeze", x, sizes(0), constants=(1,))
    yield case("DepthToSpace", normal(1, 64, 64, 64), blocksize=2)
    yield case("DepthToSpace CRD", normal(1, 64, 64, 64), blocksize=2, mode="CRD")
    yield case("SpaceToDepth", normal(1, 64, 64, 64), blocksize=2)
    yield case("Trilu", x)
    yield case("ReverseSequence", x, integers(1, SIDE, SIDE), batch_axis=1, time_axis=0)
    yield case("EyeLike", x)
    yield case("OneHot", integers(0, SIDE, SIDE), np.int64(SIDE), np.array([0, 1], np.float32), constants=(1, 2))
    yield case("Compress rows", x, flags(SIDE), axis=0)
    yield case("NonZero", (RANDOM.random((SIDE, SIDE)) < 0.1).astype(np.float32))
    yield case("Unique", integers(0, 1000, 1 << 17), outputs=4)
    yield case("CenterCropPad", x, sizes(400, 600), constants=(1,))
    yield case("Col2Im", normal(1, 9 * 16, 62 * 62), sizes(64, 64), sizes(3, 3), constants=(1, 2))
    yield case("Range", np.int64(0), np.int64(1 << 17), np.int64(1))
    yield case("ConstantOfShape", sizes(SIDE, SIDE))
    yield case("TensorScatter", normal(4, 128, 512), normal(4, 16, 512), integers(0, 100, 4), opset=24, axis=1)


def products():
    x = normal(SIDE, SIDE)
    yield case("MatMul weight", x, normal(SIDE, SIDE), constants=(1,))
    yield case("MatMul", x, normal(SIDE, SIDE))
    yield case("MatMul vector", x[:1], normal(SIDE, SIDE), constants=(1,))
    yield case("MatMul 8 rows", x[:8], normal(SIDE, SIDE), constants=(1,))
    yield case("MatMul batched", normal(16, 128, 64), normal(16, 64, 128))
    yield case("Gemm", x, normal(SIDE, SIDE), normal(SIDE), constants=(1, 2), transB=1)
    yield case("Gemm transA", x, normal(SIDE, SIDE), transA=1)
    yield case("Einsum product", normal(16, 128, 64), normal(16, 64, 128), equation="bij,bjk->bik")
    yield case("Einsum heads", normal(1, 128, 8, 64), normal(1, 128, 8, 64), equation="bqhd,bkhd->bhqk")
    yield case("Det", normal(1024, 16, 16))
    yield case("Attention", *(normal(1, 8, 128, 64) for _ in range(3)), opset=23)
    yield case("Attention causal", *(normal(1, 8, 128, 64) for _ in range(3)), opset=23, is_causal=1)
    for words, interleaved in (("", 0), (" interleaved", 1)):
        yield case(f"RotaryEmbedding{words}", normal(1, 8, 512, 64), normal(512, 32), normal(512, 32),
                   integers(0, 512, 1, 512), constants=(1, 2), opset=23, interleaved=interleaved)


def convolutions():
    image = normal(1, 64, 64, 64)
    weight = lambda *shape: normal(*shape) * np.float32(0.1)
    yield case("Conv 3x3", image, weight(64, 64, 3, 3), normal(64), constants=(1, 2), pads=[1] * 4)
    yield case("Conv 1x1", image, weight(64, 64, 1, 1), constants=(1,))
    yield case("Conv 3x3 stride", image, weight(64, 64, 3, 3), constants=(1,), pads=[1] * 4, strides=[2, 2])
    yield case("Conv depthwise", image, weight(64, 1, 3, 3), constants=(1,), pads=[1] * 4, group=64)
    yield case("Conv depthwise 5x5", image, weight(64, 1, 5, 5), constants=(1,), pads=[2] * 4, group=64)
    yield case("Conv groups", image, weight(64, 16, 3, 3), constants=(1,), pads=[1] * 4, group=4)
    yield case("Conv 1d", normal(1, 64, 4096), weight(64, 64, 3), constants=(1,), pads=[1, 1])
    yield case("Conv first layer", normal(1, 3, 224, 224), weight(32, 3, 3, 3), constants=(1,), pads=[1] * 4, strides=[2, 2])
    yield case("Conv 3d", normal(1, 16, 16, 32, 32), weight(16, 16, 3, 3, 3), constants=(1,), pads=[1] * 6)
    yield case("Conv dilated", image, weight(64, 64, 3, 3), constants=(1,), pads=[2] * 4, dilations=[2, 2])
    yield case("ConvTranspose", image, weight(64, 64, 2, 2), constants=(1,), strides=[2, 2])
    yield case("ConvTranspose 3x3", image, weight(64, 32, 3, 3), constants=(1,), pads=[1] * 4)
    yield case("DeformConv", image, weight(64, 64, 3, 3), uniform(-1, 1, 1, 18, 62, 62), constants=(1,), opset=19)
    for name in ("MaxPool", "AveragePool", "LpPool"):
        yield case(f"{name} 2x2", image, kernel_shape=[2, 2], strides=[2, 2])
        yield case(f"{name} 3x3", image, kernel_shape=[3, 3], pads=[1] * 4)
    yield case("GlobalAveragePool", image)
    yield case("GlobalMaxPool", image)
    yield case("MaxUnpool", normal(1, 64, 32, 32), np.arange(64 * 32 * 32).reshape(1, 64, 32, 32) * 4,
               kernel_shape=[2, 2], strides=[2, 2])
    for mode in ("nearest", "linear", "cubic"):
        yield case(f"Resize {mode}", image, None, np.array([1, 1, 2, 2], np.float32), constants=(2,), mode=mode)
    yield case("Upsample", image, np.array([1, 1, 2, 2], np.float32), constants=(1,), opset=9)
    grid = uniform(-1, 1, 1, 64, 64, 2)
    yield case("GridSample linear", image, grid)
    yield case("GridSample nearest", image, grid, mode="nearest")
    yield case("AffineGrid", uniform(-1, 1, 4, 2, 3), sizes(4, 1, 256, 256), constants=(1,))
    corners = uniform(0, 40, 32, 2)
    yield case("RoiAlign", image, np.concatenate([corners, corners + 20], 1), np.zeros(32, np.int64), output_height=7,
               output_width=7, sampling_ratio=2)
    boxes = uniform(0, 0.9, 1, 1000, 2)
    yield case("NonMaxSuppression", np.concatenate([boxes, boxes + np.float32(0.05)], 2), uniform(0, 1, 1, 4, 1000), sizes(100),
               np.array([0.5], np.float32), np.array([0.3], np.float32), constants=(2, 3, 4))


def recurrent():
    x, hidden = normal(64, 4, 256), 256
    for name, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [normal(1, gates * hidden, width) * np.float32(0.05) for width in (256, hidden)]
        yield case(name, x, *weights, normal(1, 2 * gates * hidden), constants=(1, 2, 3), outputs=2, hidden_size=hidden)
    weights = [normal(2, 4 * hidden, width) * np.float32(0.05) for width in (256, hidden)]
    yield case("LSTM bidirectional", x, *weights, constants=(1, 2), outputs=2, hidden_size=hidden, direction="bidirectional")


def quantized():
    x, scale = normal(SIDE, SIDE), np.float32(0.02)
    # Seven bits: where there is no VNNI, ONNX Runtime's products of u8 and i8 saturate beyond, as 2 * 255 * 127 does in 16.
    a, w = integers(0, 128, SIDE, SIDE, dtype=np.uint8), integers(-127, 128, SIDE, SIDE, dtype=np.int8)
    zero, none = np.uint8(64), np.int8(0)
    yield case("QuantizeLinear", x, scale, zero, constants=(1, 2))
    yield case("QuantizeLinear channels", x, uniform(0.01, 0.03, SIDE), np.zeros(SIDE, np.int8), constants=(1, 2), axis=0)
    yield case("DequantizeLinear", a, scale, zero, constants=(1, 2))
    yield case("DequantizeLinear channels", w, uniform(0.01, 0.03, SIDE), np.zeros(SIDE, np.int8), constants=(1, 2), axis=0)
    yield case("DynamicQuantizeLinear", x, outputs=3)
    yield case("MatMulInteger", a, w, zero, none, constants=(1, 3))
    yield case("QLinearMatMul", a, scale, zero, w, scale, none, np.float32(2), zero, constants=range(1, 8))
    image, kernel = a.reshape(1, 64, 64, 64), integers(-127, 128, 64, 64, 3, 3, dtype=np.int8)
    yield case("ConvInteger", image, kernel.astype(np.uint8), zero, constants=(1, 2), pads=[1] * 4)
    yield case("QLinearConv", image, scale, zero, kernel, scale, none, np.float32(2), zero, constants=range(1, 8), pads=[1] * 4)


def signals():
    yield case("DFT", normal(64, 1024, 1), axis=1, opset=17)
    yield case("DFT odd", normal(64, 1000, 1), axis=1, opset=17)
    yield case("STFT", normal(1, 65536), sizes(128).reshape(()), np.hanning(512).astype(np.float32), constants=(1, 2))
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield case(name, np.int64(1 << 17))
    yield case("MelWeightMatrix", np.int64(128), np.int64(2048), np.int64(16000), np.float32(0), np.float32(8000))


FAMILIES = {family.__name__: family for family in (elementwise, reductions, normalizations, movement, products, convolutions,
                                                   recurrent, quantized, signals)}
