"""Gradient nodes against central differences: every function is compiled with a Gradient of a weighted sum of its
outputs and run; ONNX's reference evaluator computes the same sum at shifted inputs in float64."""
import math

import onnx
from onnx import helper, numpy_helper

import numpy as np

from kit import compile_model, distance, expect, run_package
from programs import SEED

CODES = {np.dtype(np.float64): onnx.TensorProto.DOUBLE, np.dtype(np.float32): onnx.TensorProto.FLOAT,
         np.dtype(np.float16): onnx.TensorProto.FLOAT16}
# Of f64: differences with a step of 1e-5 are off by about 1e-10 of the third derivative and 1e-11 of the value, which
# random inputs of size 1 keep far below this. Narrower types: some tens of their roundings, summed.
TOLERANCE = {np.float64: 2e-7, np.float32: 2e-5, np.float16: 2e-2}
STEP = 1e-5


def evaluator(model):
    """ONNX's, with what rounds to float32 or knows no negative pads replaced."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Erf(OpRun):
        op_domain = ""

        def _run(self, x):
            return (np.vectorize(math.erf, otypes=[float])(x),)

    class Gelu(OpRun):
        op_domain = ""

        def _run(self, x, approximate="none"):
            share = np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2))
            if approximate == "tanh":
                share = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
            return (x / 2 * (1 + share),)

    class Pad(OpRun):
        op_domain = ""

        def _run(self, x, pads, value, axes=None, mode="constant"):
            amounts = pads.reshape(2, -1).T
            grown = np.pad(x, np.maximum(amounts, 0), constant_values=float(value))
            return (grown[tuple(slice(max(-low, 0), size - max(-high, 0))
                                for (low, high), size in zip(amounts, grown.shape))],)
    return ReferenceEvaluator(model, new_ops=[Erf, Gelu, Pad])


class Function:
    """The nodes of a graph in ONNX's text form over named inputs; xs are the floats among them."""

    def __init__(self, text, inputs, fixed, dims, xs):
        self.text, self.fixed, self.dims = text, fixed, dims
        self.inputs = inputs = {name: np.asarray(array) for name, array in inputs.items()}
        self.xs = [name for name, array in inputs.items() if array.dtype.kind == "f"] if xs is None else xs

    def cast(self, array, element):
        return array.astype(element) if array.dtype.kind == "f" else array

    def value(self, name, element):
        array = self.cast({**self.inputs, **self.fixed}[name], element)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                             self.dims.get(name, array.shape))

    def nodes(self, element):
        code = str(CODES[np.dtype(element)])
        return list(onnx.parser.parse_graph("g () => () {" + self.text.replace("$T", code) + "}").node)

    def model(self, element, opset):
        graph = helper.make_graph(
            self.nodes(element), "g", [self.value(name, element) for name in self.inputs],
            [helper.make_tensor_value_info("y", CODES[np.dtype(element)], None)],
            [numpy_helper.from_array(self.cast(array, element), name) for name, array in self.fixed.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


class Gradients:
    """Functions that are compiled as one model, each with its Gradient."""

    def __init__(self, opset=21):
        self.random = np.random.default_rng(SEED)
        self.functions, self.opset = [], opset

    def numbers(self, *shape, low=-2.0, high=2.0):
        return self.random.uniform(low, high, shape)

    def away(self, *shape, least=0.05):
        """Numbers of both signs that a step does not take past 0."""
        array = self.numbers(*shape)
        return array + np.sign(array) * least

    def spread(self, *shape):
        """Numbers that a step does not bring into another order."""
        size = int(np.prod(shape))
        return (self.random.permutation(size) / max(size, 1) * 3 - 1.4).reshape(shape)

    def test(self, text, fixed=None, dims=None, xs=None, **inputs):
        self.functions.append(Function(text, inputs, fixed or {}, dims or {}, xs))

    def build(self, element, weights):
        """One model of all functions, names made different by a prefix per function."""
        nodes, inputs, outputs, stored, feeds = [], [], [], [], {}
        for index, function in enumerate(self.functions):
            code, prefix = CODES[np.dtype(element)], f"f{index}_"
            part = function.model(element, self.opset).graph
            onnx.compose.add_prefix_graph(part, prefix, inplace=True)
            for node in part.node:
                node.name = f"{prefix}{node.op_type}"
            nodes += [*part.node, helper.make_node("Mul", [prefix + "y", prefix + "weights"], [prefix + "weighted"]),
                      helper.make_node("Gradient", [prefix + name for name in self.order(function)],
                                       [f"{prefix}d{name}" for name in function.xs], name=f"{prefix}gradient",
                                       domain="ai.onnx.preview.training", xs=[prefix + name for name in function.xs],
                                       zs=[prefix + name for name in self.order(function)[len(function.xs):]],
                                       y=prefix + "weighted")]
            inputs += [*part.input, helper.make_tensor_value_info(prefix + "weights", code, weights[index].shape)]
            stored += part.initializer
            outputs += [helper.make_tensor_value_info(f"{prefix}d{name}", code, None) for name in function.xs]
            feeds |= {prefix + name: function.cast(array, element) for name, array in function.inputs.items()}
            feeds[prefix + "weights"] = weights[index].astype(element)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.preview.training", 1)]
        graph = helper.make_graph(nodes, "gradients", inputs, outputs, stored)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds

    @staticmethod
    def order(function):
        return [*function.xs, *(name for name in function.inputs if name not in function.xs), "weights"]

    def differences(self, function, weights):
        """The derivatives of sum(weights * y), and of nothing else."""
        run = evaluator(function.model(np.float64, self.opset)).run

        def sum_at(inputs):
            return float(np.sum(np.asarray(run(None, inputs)[0], np.float64) * weights))
        for name in function.xs:
            array = function.inputs[name]
            slopes = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                sums = []
                for step in (STEP, -STEP):
                    moved = array.copy()
                    moved[place] += step
                    sums.append(sum_at({**function.inputs, name: moved}))
                slopes[place] = (sums[0] - sums[1]) / (2 * STEP)
            yield name, slopes

    def verify(self, folder, elements=(np.float64, np.float32), options=()):
        weights = []
        for function in self.functions:
            y, = evaluator(function.model(np.float64, self.opset)).run(None, function.inputs)
            weights.append(self.numbers(*np.shape(y), low=0.5))
        expected = [dict(self.differences(function, weights[i])) for i, function in enumerate(self.functions)]
        for element in elements:
            name = np.dtype(element).name
            model, feeds = self.build(element, weights)
            onnx.save(model, folder / f"{name}.onnx")
            package = compile_model(folder / f"{name}.onnx", folder, *options, name=f"{name}.dsp")
            found = run_package(package, feeds, folder)
            for index, function in enumerate(self.functions):
                for x, slopes in expected[index].items():
                    off = distance(found[f"f{index}_d{x}"], slopes.astype(element))
                    expect(off <= TOLERANCE[element], f"seed {SEED}, {name}: gradient of '{function.text}' with "
                           f"respect to {x} is off by {off:.3g}:\n{found[f'f{index}_d{x}']}\nexpected\n{slopes}")
