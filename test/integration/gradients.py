"""Gradient nodes against central differences: every function is compiled with a Gradient of a weighted sum of its
outputs, and a Gradient of a weighted sum of those gradients, and run; ONNX's reference evaluator computes the first sum
at shifted inputs in float64."""

import onnx
from onnx import helper, numpy_helper

import numpy as np

import judge
from kit import compile_model, distance, expect, run_package, tool
from programs import SEED

CODES = {np.dtype(np.float64): onnx.TensorProto.DOUBLE, np.dtype(np.float32): onnx.TensorProto.FLOAT,
         np.dtype(np.float16): onnx.TensorProto.FLOAT16}
# Of f64: differences with a step of 1e-5 are off by about 1e-10 of the third derivative and 1e-11 of the value, which
# random inputs of size 1 keep far below this. Narrower types: some tens of their roundings, summed.
TOLERANCE = {np.float64: 2e-7, np.float32: 2e-5, np.float16: 2e-2}
STEP = 1e-5
# Of second order, in f64: differences with a step h are off by a multiple of h^2 and one of h^4, and those with h and h/2
# together by the latter alone (Richardson's extrapolation): 1e-14 of the sixth derivative, and 1e-8 of the value.
SECOND_TOLERANCE, SECOND_STEP = 2e-5, 3e-4


def evaluator(model):
    """ONNX's, with what rounds to float32 or knows no negative pads replaced."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Pad(OpRun):
        op_domain = ""

        def _run(self, x, pads, value=0, axes=None, mode="constant"):
            amounts = pads.reshape(2, -1).T
            if mode != "constant":
                return (np.pad(x, amounts, mode=mode),)
            grown = np.pad(x, np.maximum(amounts, 0), constant_values=float(value))
            return (grown[tuple(slice(max(-low, 0), size - max(-high, 0))
                                for (low, high), size in zip(amounts, grown.shape))],)
    return ReferenceEvaluator(model, new_ops=[*judge.wide_operators(), Pad])


class Function:
    """The nodes of a graph in ONNX's text form over named inputs; xs are the floats among them."""

    def __init__(self, text, inputs, fixed, dims, xs, becomes):
        self.text, self.fixed, self.dims, self.becomes = text, fixed, dims, becomes or []
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
    """Functions that are compiled as one model, each with its Gradients."""

    def __init__(self, opset=21):
        self.random = np.random.default_rng(SEED)
        self.functions, self.opset = [], opset

    def numbers(self, *shape, low=-2.0, high=2.0):
        return self.random.uniform(low, high, shape)

    def away(self, *shape, least=0.05):
        """Numbers of both signs that a step does not take past 0."""
        array = self.numbers(*shape)
        return array + np.sign(array) * least

    def scattered(self, *shape):
        """Numbers whose rows vary by about 1 each: a norm divides by how much they do, and is a pole where they do not."""
        rows = np.broadcast_to(np.linspace(-1.8, 1.8, shape[-1]), shape)
        return self.random.permuted(rows, axis=-1) + self.numbers(*shape, low=-0.2, high=0.2)

    def between_halves(self, *shape):
        """Numbers to 4 of both signs that a step does not take past a multiple of 0.5."""
        return self.random.integers(-8, 8, shape) / 2 + self.random.uniform(0.1, 0.4, shape)

    def spread(self, *shape):
        """Numbers that a step does not bring into another order."""
        size = int(np.prod(shape))
        return (self.random.permutation(size) / max(size, 1) * 3 - 1.4).reshape(shape)

    def test(self, text, fixed=None, dims=None, xs=None, becomes=None, **inputs):
        """A function y of its inputs, whose floats are xs; `becomes` names ops that it must have been recomposed to."""
        self.functions.append(Function(text, inputs, fixed or {}, dims or {}, xs, becomes))

    def gradient(self, function, prefix, xs, y, results, more=()):
        rest = [name for name in function.inputs if name not in function.xs]
        zs = [prefix + name for name in [*rest, "weights", *more]]
        return helper.make_node("Gradient", xs + zs, results, name=f"{prefix}of_{y}", xs=xs, zs=zs, y=prefix + y,
                                domain="ai.onnx.preview.training")

    def nodes(self, function, prefix, order):
        """The gradients d<x>, and with order 2 the derivatives s<x> of the sum of directions times gradients."""
        xs = [prefix + name for name in function.xs]
        nodes = [helper.make_node("Mul", [prefix + "y", prefix + "weights"], [prefix + "weighted"]),
                 self.gradient(function, prefix, xs, "weighted", [f"{prefix}d{name}" for name in function.xs])]
        if order == 1:
            return nodes
        along = [f"{prefix}along{name}" for name in function.xs]
        for name, product in zip(function.xs, along):
            nodes.append(helper.make_node("Mul", [f"{prefix}d{name}", f"{prefix}v{name}"], [product + "_"]))
            nodes.append(helper.make_node("ReduceSum", [product + "_"], [product], keepdims=0))
        nodes.append(helper.make_node("Sum", along, [prefix + "along"]))
        nodes.append(self.gradient(function, prefix, xs, "along", [f"{prefix}s{name}" for name in function.xs],
                                   ["v" + name for name in function.xs]))
        return nodes

    def build(self, element, order):
        """One model of all functions, names made different by a prefix per function."""
        nodes, inputs, outputs, stored, feeds = [], [], [], [], {}
        code = CODES[np.dtype(element)]
        for index, function in enumerate(self.functions):
            prefix = f"f{index}_"
            part = function.model(element, self.opset).graph
            onnx.compose.add_prefix_graph(part, prefix, inplace=True)
            for node in part.node:
                node.name = f"{prefix}{node.op_type}"
            nodes += [*part.node, *self.nodes(function, prefix, order)]
            extra = {"weights": function.weights}
            if order == 2:
                extra |= {"v" + name: array for name, array in function.directions.items()}
            own = [*part.input, *(helper.make_tensor_value_info(prefix + name, code, function.dims.get(
                name.removeprefix("v"), array.shape)) for name, array in extra.items())]
            for value in own:
                for dim in value.type.tensor_type.shape.dim:
                    if dim.dim_param:
                        dim.dim_param = prefix + dim.dim_param
            inputs += own
            stored += part.initializer
            outputs += [helper.make_tensor_value_info(f"{prefix}{'ds'[order - 1]}{name}", code, None)
                        for name in function.xs]
            feeds |= {prefix + name: function.cast(array, element)
                      for name, array in {**function.inputs, **extra}.items()}
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.preview.training", 1)]
        graph = helper.make_graph(nodes, "gradients", inputs, outputs, stored)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds

    def expectations(self, function, orders):
        """The derivatives of sum(weights * y), and of nothing else, by x: first order, and second along directions."""
        run = evaluator(function.model(np.float64, self.opset)).run
        y, = run(None, function.inputs)
        function.weights = self.numbers(*np.shape(y), low=0.5)
        function.directions = {name: self.numbers(*function.inputs[name].shape) for name in function.xs}

        def sum_at(name, place, step, along=0.0):
            inputs = {**function.inputs}
            for x, direction in function.directions.items():
                inputs[x] = np.array(inputs[x] + along * direction)
            inputs[name][place] += step
            return float(np.sum(np.asarray(run(None, inputs)[0], np.float64) * function.weights))
        first = {name: np.zeros_like(function.inputs[name]) for name in function.xs}
        second = {name: np.zeros_like(function.inputs[name]) for name in function.xs}
        for name in function.xs:
            for place in np.ndindex(function.inputs[name].shape):
                first[name][place] = (sum_at(name, place, STEP) - sum_at(name, place, -STEP)) / (2 * STEP)
                if 2 not in orders:
                    continue
                whole, half = (sum(sign * other * sum_at(name, place, sign * step, other * step)
                                   for sign in (1, -1) for other in (1, -1)) / (4 * step**2)
                               for step in (SECOND_STEP, SECOND_STEP / 2))
                second[name][place] = (4 * half - whole) / 3
        return first, second

    def verify(self, folder, elements=(np.float64, np.float32), orders=(1, 2), slack=1, options=()):
        expected = [self.expectations(function, orders) for function in self.functions]
        for element, order in [*((element, 1) for element in elements), (np.float64, 2)]:
            if order not in orders:
                continue
            name = f"{np.dtype(element).name}-{order}"
            model, feeds = self.build(element, order)
            onnx.save(model, folder / f"{name}.onnx")
            package = compile_model(folder / f"{name}.onnx", folder, *options, name=f"{name}.dsp")
            found = run_package(package, feeds, folder)
            tolerance = slack * (TOLERANCE[element] if order == 1 else SECOND_TOLERANCE)
            for index, function in enumerate(self.functions):
                for x, slopes in expected[index][order - 1].items():
                    actual = found[f"f{index}_{'ds'[order - 1]}{x}"]
                    # Differences of sums near 1 err by as much where the slope is small.
                    off = distance(actual, slopes.astype(element), magnitude=1)
                    expect(off <= tolerance, f"seed {SEED}, {name}: gradient of '{function.text}' with respect to {x} "
                           f"is off by {off:.3g}:\n{actual}\nexpected\n{slopes}")
        wanted = [op for function in self.functions for op in function.becomes]
        if wanted:
            text = tool("ds-opt", folder / f"{np.dtype(elements[0]).name}-1.onnx", "--stop-after=graph").out
            words = " ".join(text.split())
            for op in set(wanted):
                expect(words.count(op + " ") >= wanted.count(op), f"expected {wanted.count(op)} {op}:\n{text}")
