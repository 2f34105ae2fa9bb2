"""Operators in floats of 16 bits against the definition in float64, rounded once."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from kit import case, compile_model, expect, run_package
from programs import SEED

DIGITS = {"f16": (11, -24, 2.0**16), "bf16": (8, -133, 2.0**128)}
CODES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def rounded(array, element):
    """To the nearest numbers of the type, ties to even, in float64."""
    digits, least, limit = DIGITS[element]
    array = np.asarray(array, np.float64)
    unit = np.ldexp(1.0, np.maximum(np.frexp(array)[1] - digits, least))
    result = np.rint(array / unit) * unit
    return np.where(np.abs(result) >= limit, np.copysign(np.inf, array), result)


class Operators:
    def __init__(self, element):
        self.element, self.cases = element, []
        self.random = np.random.default_rng([SEED, len(element)])

    def numbers(self, *shape, scale=1.0, offset=0.0):
        return rounded(offset + scale * self.random.standard_normal(shape), self.element)

    def add(self, op, inputs, expected=None, outputs=1, opset=22, domain="", units=0.55, sums=False, dynamic=False, **attributes):
        """`expected` lists the results in float64; without it the reference evaluator gives them. A result may be `units`
        of the type's last place away: half of one, and what is left of f32's roundings. Of `sums` f32 loses a share of
        their greatest terms, which results that cancel do not show."""
        self.cases.append((op, inputs, expected, outputs, opset, domain, units, sums, dynamic, attributes))

    def model(self, path, case, element):
        op, inputs, _, outputs, opset, domain, _, _, dynamic, attributes = case
        nodes, arguments, names, stored = [], [], [], []
        for i, array in enumerate(inputs):
            if array is None:
                names.append("")
                continue
            isFloat = array.dtype == np.float64
            names.append(f"x{i}")
            if not isFloat and not dynamic:
                stored.append(numpy_helper.from_array(array, f"x{i}"))
                continue
            shape = [f"d{i}_{axis}" for axis in range(array.ndim)] if dynamic and isFloat else list(array.shape)
            code = TensorProto.DOUBLE if isFloat else helper.np_dtype_to_tensor_dtype(array.dtype)
            arguments.append(helper.make_tensor_value_info(f"x{i}", code, shape))
            if isFloat and element:
                nodes.append(helper.make_node("Cast", [f"x{i}"], [f"n{i}"], to=CODES[element]))
                names[-1] = f"n{i}"
        given = [f"m{i}" if element else f"y{i}" for i in range(outputs)]
        nodes.append(helper.make_node(op, names, given, domain=domain, **attributes))
        if element:
            nodes += [helper.make_node("Cast", [f"m{i}"], [f"y{i}"], to=TensorProto.DOUBLE) for i in range(outputs)]
        results = [helper.make_tensor_value_info(f"y{i}", TensorProto.DOUBLE, None) for i in range(outputs)]
        graph = helper.make_graph(nodes, op, arguments, results, stored)
        imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))

    def verify(self, folder, options=()):
        for number, case in enumerate(self.cases):
            op, inputs, expected, outputs, _, _, units, sums, dynamic, attributes = case
            path = folder / f"{number}.onnx"
            self.model(path, case, self.element)
            given = {f"x{i}": array for i, array in enumerate(inputs) if array is not None and (dynamic or array.dtype == np.float64)}
            found = run_package(compile_model(path, folder, *options), given, folder)
            if expected is None:
                self.model(folder / "wide.onnx", case, None)
                expected = ReferenceEvaluator(str(folder / "wide.onnx")).run(None, given)
            digits, least, limit = DIGITS[self.element]
            for i in range(outputs):
                wanted, actual = np.asarray(expected[i], np.float64), found[f"y{i}"]
                expect(wanted.shape == actual.shape, f"{op}: {actual.shape}, expected {wanted.shape}")
                unit = np.ldexp(1.0, np.maximum(np.frexp(wanted)[1] - digits, least))
                lost = 2.0**-21 * np.abs(wanted).max(initial=0) if sums else 0
                isLarge = np.isinf(rounded(wanted, self.element))
                error = np.where(isLarge, np.where(actual == rounded(wanted, self.element), 0, np.inf),
                                 (np.abs(actual - wanted) - lost) / unit)
                error = np.where(np.isnan(actual), np.inf, error)
                worst = np.unravel_index(np.argmax(error), error.shape) if error.size else ()
                expect(error.size == 0 or error[worst] <= units, f"{op} {attributes} in {self.element}: output {i} is {actual[worst]!r}, "
                       f"expected {wanted[worst]!r}: {error.max():.3g} units in the last place, expected at most {units} (seed {SEED})")


def normalized(x, axes, epsilon=0.0):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def single(value):
    return float(np.float32(value))


@case(seconds=4)
def activations_of_half_precision(folder):
    for element in DIGITS:
        o = Operators(element)
        x = np.concatenate([o.numbers(150), o.numbers(150, scale=0.03), o.numbers(20, scale=20)])
        o.add("LeakyRelu", [x], alpha=0.30017)  # between two numbers of f16
        o.add("Shrink", [x], bias=0.3, lambd=0.4)
        o.add("PRelu", [x, o.numbers(1)])
        o.add("Gelu", [x[:300]], approximate="tanh")
        o.add("HardSigmoid", [x], alpha=0.3, beta=0.4)
        o.add("Swish", [x], [x / (1 + np.exp(-single(1.3) * x))], opset=24, alpha=1.3)
        o.add("QuickGelu", [x], [x / (1 + np.exp(-single(1.3) * x))], domain="com.microsoft", alpha=1.3)
        o.add("Mean", [x, x[::-1].copy(), o.numbers(320), o.numbers(1)])
        o.add("Mean", [o.numbers(50, offset=6e4)] * 3)  # whose sum f16 does not hold
        o.add("Sum", [x, x[::-1].copy(), o.numbers(320), o.numbers(1)])
        o.verify(folder)


@case(seconds=6)
def normalizations_of_half_precision(folder):
    """Squares of these numbers are beyond f16."""
    for element in DIGITS:
        o = Operators(element)
        x, scale, bias = o.numbers(2, 6, 5, 4, scale=300, offset=100), o.numbers(6), o.numbers(6, scale=0.2)
        channels = lambda array: array.reshape(6, 1, 1)
        o.add("MeanVarianceNormalization", [x], [normalized(x, (0, 2, 3))], sums=True, axes=[0, 2, 3])
        squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
        window = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
        o.add("LRN", [x], [x / (1.5 + single(0.4) / 3 * window)**single(0.6)], size=3, alpha=0.4, beta=0.6, bias=1.5)
        o.add("LpNormalization", [x], [x / np.sqrt((x**2).sum(1, keepdims=True))], axis=1, p=2)
        o.add("LpNormalization", [x * 16], [x / np.abs(x).sum(1, keepdims=True)], axis=1, p=1)
        o.add("InstanceNormalization", [x, scale, bias], [channels(scale) * normalized(x, (2, 3), single(1e-5)) + channels(bias)], sums=True)
        grouped = normalized(x.reshape(2, 3, -1), 2, single(1e-5)).reshape(x.shape)
        o.add("GroupNormalization", [x, scale, bias], [channels(scale) * grouped + channels(bias)], num_groups=3, sums=True)
        o.add("BatchNormalization", [o.numbers(2, 6, 5), scale, bias, o.numbers(6), np.abs(o.numbers(6))], epsilon=1e-3, sums=True)
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        moved = [0.9 * bias + 0.1 * mean, 0.9 * rounded(scale**2, element) + 0.1 * variance]
        o.add("BatchNormalization", [x, scale, bias, bias, rounded(scale**2, element)],
              [channels(scale) * normalized(x, (0, 2, 3), single(1e-5)) + channels(bias), *moved], outputs=3, training_mode=1, sums=True)
        o.add("LayerNormalization", [x, o.numbers(4), o.numbers(4)], sums=True)
        o.add("RMSNormalization", [x, o.numbers(4)], opset=23)
        o.add("LpPool", [x], kernel_shape=[2, 2], p=2)
        o.add("GlobalLpPool", [x], [np.sqrt((x**2).sum((2, 3), keepdims=True))], p=2)
        o.add("Softmax", [o.numbers(4, 9, scale=3)], axis=-1)
        o.add("LogSoftmax", [o.numbers(4, 9, scale=3)], axis=-1)
        o.verify(folder)


@case(seconds=12)
def reductions_of_half_precision(folder):
    for element in DIGITS:
        o = Operators(element)
        x = o.numbers(3, 4, 5, scale=30, offset=10)
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Prod", "Sum", "SumSquare"):
            values = {"LogSum": np.abs(x), "Prod": rounded(x / 30, element)}.get(kind, x)
            o.add("Reduce" + kind, [values, np.array([0, 2])], opset=18, sums=True)
            o.add("Reduce" + kind, [values, np.array([0, 2])], opset=18, sums=True, dynamic=True)
        scores, classes = o.numbers(7, 5, 3, scale=4), o.random.integers(0, 5, (7, 3))
        weights = np.abs(o.numbers(5))
        for reduction in ("none", "mean", "sum"):
            o.add("NegativeLogLikelihoodLoss", [scores, classes, weights], reduction=reduction)
            o.add("SoftmaxCrossEntropyLoss", [scores, classes, weights], outputs=2, sums=True, reduction=reduction)
        o.add("CumSum", [x, np.array(1)])
        o.verify(folder)


@case(seconds=3)
def samples_of_half_precision(folder):
    for element in DIGITS:
        o = Operators(element)
        x = o.numbers(2, 3, 6, 6)
        for mode in ("linear", "cubic"):
            o.add("Resize", [x, None, None, np.array([2, 3, 9, 13])], opset=19, sums=True, mode=mode)
        o.add("AffineGrid", [o.numbers(2, 2, 3), np.array([2, 3, 4, 5])], opset=20, sums=True)
        o.add("GridSample", [x, rounded(o.random.uniform(-0.9, 0.9, (2, 4, 4, 2)), element)], opset=20, sums=True, mode="linear")
        o.add("AveragePool", [x], opset=19, sums=True, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        o.verify(folder)
