"""What a random model is made of: the case that collects nodes and values, and random types, shapes and numbers.

A case is one small graph with the numbers of its inputs. It draws how each value comes into the graph: as an input of
known or unknown sizes, as an initializer or as a Constant node, so that folding is tested as much as code.
"""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64), "float16": np.dtype(np.float16),
         "bfloat16": np.dtype(ml_dtypes.bfloat16), "int8": np.dtype(np.int8), "int16": np.dtype(np.int16),
         "int32": np.dtype(np.int32), "int64": np.dtype(np.int64), "uint8": np.dtype(np.uint8),
         "uint16": np.dtype(np.uint16), "uint32": np.dtype(np.uint32), "uint64": np.dtype(np.uint64),
         "bool": np.dtype(np.bool_)}
WEIGHTS = {"float": 12, "double": 3, "float16": 3, "bfloat16": 2, "int64": 4, "int32": 3, "bool": 2}
F32, F64, F16, BF16 = (TYPES[name] for name in ("float", "double", "float16", "bfloat16"))
I64, I32, BOOL = TYPES["int64"], TYPES["int32"], TYPES["bool"]
FLOATS = (F32, F64, F16, BF16)
SIZES, SIZE_WEIGHTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 17), (2, 6, 10, 10, 6, 4, 3, 2, 1, 1)


def code(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def is_float(dtype):
    return np.dtype(dtype) in FLOATS


def is_signed(dtype):
    return is_float(dtype) or np.dtype(dtype).kind == "i"


class Case:
    """One graph and its numbers. `value` adds a value, `node` a node; `scale` widens the tolerance of the numbers."""

    def __init__(self, random, opset, prefix):
        self.random, self.opset, self.prefix = random, opset, prefix
        self.nodes, self.inputs, self.initializers, self.outputs, self.domains = [], [], [], [], set()
        self.count, self.scale = 0, 1.0
        self.numbers = {}  # of the values that came in, by name
        self.drawn = False  # the standard fixes type and shape only
        self.has_reference = True  # the reference evaluator follows the standard
        self.has_runtime = True  # so does ONNX Runtime
        self.result_type = None  # where neither ONNX's inference nor its reference evaluator knows it
        self.style = self.pick(["static", "static", "dynamic", "dynamic", "mixed", "constant"])
        self.shares_symbols = self.chance(0.5)
        self.specials = self.chance(0.15)

    # Choices.
    def chance(self, share):
        return bool(self.random.random() < share)

    def pick(self, items, weights=None):
        items = list(items)
        p = None if weights is None else np.array(weights, float) / sum(weights)
        return items[self.random.choice(len(items), p=p)]

    def integer(self, low, high):
        """A number of low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def real(self, low, high):
        return float(np.float32(self.random.uniform(low, high)))

    def maybe(self, **attributes):
        """Some of the attributes; the others keep their defaults."""
        return {name: number for name, number in attributes.items() if self.chance(0.6)}

    def schema(self, name, domain=""):
        return onnx.defs.get_schema(name, self.opset if domain == "" else 1, domain)

    def type_of(self, name, index=0, among=None, domain=""):
        """A type that an operator takes as one of its inputs."""
        texts = self.schema(name, domain).inputs[index].types
        known = [text for text in TYPES if f"tensor({text})" in texts and (among is None or TYPES[text] in among)]
        return TYPES[self.pick(known, [WEIGHTS.get(text, 1) for text in known])]

    def size(self, low=0):
        sizes = [(size, weight) for size, weight in zip(SIZES, SIZE_WEIGHTS) if size >= low]
        return self.pick(*zip(*sizes))

    def shape(self, low=0, high=5, least=0):
        """A shape of a rank from low to high, of at most about 2,000 elements."""
        rank = self.integer(low, high)
        while True:
            shape = tuple(self.size(least) for _ in range(rank))
            if np.prod(shape) <= 2000:
                return shape

    def broadcasting(self, count, low=0, high=4):
        """Shapes that broadcast to a common one, which comes last."""
        whole = self.shape(low, high)
        shapes = []
        for _ in range(count):
            own = whole[self.integer(0, len(whole)) if self.chance(0.4) else 0:]
            shapes.append(tuple(1 if self.chance(0.25) else size for size in own))
        return [*shapes, np.broadcast_shapes(*shapes)]

    def axis(self, rank, low=0):
        """An axis, counted from either end."""
        axis = self.integer(low, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    # Numbers.
    def data(self, shape, dtype=F32, low=None, high=None, special=False):
        dtype = np.dtype(dtype)
        if dtype == BOOL:
            return self.random.integers(0, 2, shape).astype(np.bool_)
        if not is_float(dtype):
            info = np.iinfo(dtype)
            if low is None and self.chance(0.15):
                return self.random.integers(info.min, info.max, shape, dtype, endpoint=True)
            low = max(info.min, -9 if low is None else low)
            return self.random.integers(low, min(info.max, 9 if high is None else high), shape, endpoint=True).astype(dtype)
        if low is None:
            numbers = self.random.standard_normal(shape) * self.pick([1, 1, 1, 3, 0.1])
            if self.chance(0.2):
                numbers = np.round(numbers * 4) / 2  # ties
        else:
            numbers = self.random.uniform(low, high, shape)
        numbers = np.asarray(numbers).astype(dtype)
        if special and self.specials and numbers.size:
            flat = numbers.reshape(-1).copy()
            for number in (np.nan, np.inf, -np.inf, -0.0, 0.0):
                flat[self.random.integers(0, flat.size)] = number
            numbers = flat.reshape(shape)
        return numbers

    def distinct(self, shape, dtype=F32):
        """Numbers without ties, for what sorts."""
        count = int(np.prod(shape))
        return (self.random.permutation(count).reshape(shape) - count // 2 * is_signed(dtype)).astype(dtype)

    # The graph.
    def name(self, what="v"):
        self.count += 1
        return f"{self.prefix}{what}{self.count}"

    def value(self, array, how=None):
        """Brings an array into the graph; how: static, dynamic, initializer, constant, or as the case likes."""
        array = np.asarray(array)
        how = how or (self.pick(["static", "dynamic", "initializer", "constant"]) if self.style == "mixed" else self.style)
        name = self.name("x" if how in ("static", "dynamic") else "w")
        self.numbers[name] = array
        if how in ("static", "dynamic"):
            shape = [self.symbol(size) if how == "dynamic" else size for size in array.shape]
            self.inputs.append((helper.make_tensor_value_info(name, code(array.dtype), shape), array))
        elif how == "initializer":
            self.initializers.append(numpy_helper.from_array(array, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], name=name + "_node",
                                               value=numpy_helper.from_array(array, name)))
        return name

    def symbol(self, size):
        self.count += 1
        return f"{self.prefix}s{size}" if self.shares_symbols else f"{self.prefix}d{self.count}"

    def weight(self, array):
        """A value whose sizes are mostly known when the model is compiled."""
        return self.value(array, self.pick(["initializer", "static"]) if self.style == "dynamic" and self.chance(0.9) else None)

    def steering(self, numbers, dtype=I64, runtime=0.3):
        """A value that steers shapes: constant, or known only when the model runs."""
        array = np.array(numbers, dtype)
        return self.value(array, self.pick(["initializer", "constant", "static", "dynamic"],
                                           [1 - runtime, 1 - runtime, 1.4 * runtime, 0.6 * runtime]))

    def node(self, operator, inputs, outputs=1, domain="", **attributes):
        """Adds a node; its results are the outputs of the case until another node takes them."""
        results = [self.name("y") for _ in range(outputs)]
        attributes = {name: each for name, each in attributes.items() if each is not None}
        if domain:
            self.domains.add(domain)
        while inputs and inputs[-1] == "":
            inputs = inputs[:-1]
        self.nodes.append(helper.make_node(operator, list(inputs), results, name=self.name("n"), domain=domain, **attributes))
        self.outputs = [name for name in self.outputs if name not in inputs] + results
        return results[0] if outputs == 1 else results


def model_of(cases, opset):
    """One model of all cases; its outputs have the types that ONNX infers."""
    domains = set().union(*(case.domains for case in cases))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in sorted(domains)]
    graph = helper.make_graph([node for case in cases for node in case.nodes], "g",
                              [info for case in cases for info, _ in case.inputs],
                              [onnx.ValueInfoProto(name=name) for case in cases for name in case.outputs],
                              [tensor for case in cases for tensor in case.initializers])
    version = max(4, helper.find_min_ir_version_for(imports, ignore_unknown=True))
    model = helper.make_model(graph, opset_imports=imports, ir_version=version, producer_name="check-random-models")
    known = {info.name: info for info in onnx.shape_inference.infer_shapes(model, data_prop=False).graph.output}
    for output in model.graph.output:
        found = known[output.name].type
        kind = found.WhichOneof("value")
        if kind == "tensor_type" and found.tensor_type.elem_type:
            output.type.tensor_type.elem_type = found.tensor_type.elem_type
        elif kind in ("sequence_type", "optional_type"):
            output.type.CopyFrom(found)
        else:
            own = next(case for case in cases if output.name in case.outputs)
            floats = [array.dtype for _, array in own.inputs if is_float(array.dtype)]
            output.type.tensor_type.elem_type = code(own.result_type or (floats or [F32])[0])
    return model
