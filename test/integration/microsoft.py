"""Models of single com.microsoft nodes: each node has inputs of its own, whose sizes follow from named dimensions."""
import onnx
from onnx import TensorProto, helper, numpy_helper

import numpy as np

from kit import compile_model, distance, expect, onnx_runtime, run_package

DOMAIN = "com.microsoft"
TOLERANCE = 1e-4
CODES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.bool_): TensorProto.BOOL}


class Cases:
    """One model of many nodes. `sizes` of run() gives each named dimension a value; a dimension may be a sum."""

    def __init__(self, opset=17):
        self.opset, self.inputs, self.weights, self.nodes, self.outputs, self.checks = opset, {}, [], [], {}, []

    def input(self, dims, make=None, dtype=np.float32, name=None):
        """`make(random, shape, sizes)` gives the array; the default are normal floats."""
        name = name or f"in{len(self.inputs)}"
        make = make or (lambda random, shape, sizes: random.standard_normal(shape))
        self.inputs[name] = (dims, make, np.dtype(dtype))
        return name

    def integers(self, dims, low, high, dtype=np.int32):
        """`high` is exclusive; both may name dimensions."""
        def make(random, shape, sizes):
            return random.integers(eval(str(low), {}, sizes), eval(str(high), {}, sizes), shape)
        return self.input(dims, make, dtype)

    def weight(self, array, name=None):
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, outputs=(np.float32,), *, reference=None, keep=None, tolerance=TOLERANCE,
             measure=distance, domain=DOMAIN, **attributes):
        """`outputs` are element types, None for an output left out. What is compared is the node in ONNX Runtime, or
        `reference(inputs by position)` where that has no kernel; `keep(array, sizes, values)` takes what is defined, and
        `measure(ours, theirs)` must be at most the tolerance."""
        index = len(self.nodes)
        names = ["" if dtype is None else f"out{index}_{i}" for i, dtype in enumerate(outputs)]
        self.nodes.append(helper.make_node(op, [name or "" for name in inputs], names, f"{op.lower()}_{index}",
                                           domain=domain, **attributes))
        for name, dtype in zip(names, outputs):
            if name:
                self.outputs[name] = np.dtype(dtype)
        self.checks.append((index, [name for name in names if name], reference, keep, tolerance, measure))
        return names

    def model(self, path, nodes=None):
        nodes = self.nodes if nodes is None else nodes
        used = {name for node in nodes for name in node.input}
        made = {name for node in nodes for name in node.output}
        graph = helper.make_graph(
            nodes, "cases",
            [helper.make_tensor_value_info(name, CODES[dtype], dims) for name, (dims, _, dtype) in self.inputs.items()
             if name in used],
            [helper.make_tensor_value_info(name, CODES[dtype], None) for name, dtype in self.outputs.items()
             if name in made],
            [weight for weight in self.weights if weight.name in used])
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
        return path

    def values(self, sizes, seed):
        random = np.random.default_rng(seed)
        values = {}
        used = {name for node in self.nodes for name in node.input}
        for name, (dims, make, dtype) in self.inputs.items():
            if name not in used:
                continue
            shape = tuple(dim if isinstance(dim, int) else eval(dim, {}, sizes) for dim in dims)
            values[name] = np.asarray(make(random, shape, sizes)).astype(dtype).reshape(shape)
        return values

    def run(self, folder, *sizes, options=(), seed=0):
        package = compile_model(self.model(folder / "cases.onnx"), folder, *options)
        known = [check for check in self.checks if check[2] is None]
        runtime = self.model(folder / "runtime.onnx", [self.nodes[check[0]] for check in known]) if known else None
        constants = {weight.name: numpy_helper.to_array(weight) for weight in self.weights}
        for number, size in enumerate(sizes):
            values = self.values(size, seed + number)
            ours = run_package(package, values, folder)
            used = {name for check in known for name in self.nodes[check[0]].input}
            theirs = onnx_runtime(runtime, {name: values[name] for name in values if name in used}) if known else {}
            for index, names, reference, keep, tolerance, measure in self.checks:
                node = self.nodes[index]
                operands = [{**values, **constants}.get(name) for name in node.input]
                expected = dict(zip(names, reference(*operands))) if reference else theirs
                for name in names:
                    mine, right = ours[name], expected[name].astype(self.outputs[name])
                    if keep:
                        mine, right = keep(mine, size, operands), keep(right, size, operands)
                    far = measure(mine, right)
                    expect(far <= tolerance, f"{node.name} output {name} at {size}: {far:.3g} from the reference, "
                           f"expected at most {tolerance:g}; {mine.dtype}{list(mine.shape)} and {right.dtype}"
                           f"{list(right.shape)}\n{helper.printable_node(node)}")
