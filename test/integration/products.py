"""Models of many products and convolutions: what NumPy computes of each, exactly, as the numbers drawn are whole."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import compile_model, expect, run_package
from programs import DTYPES, EPSILON, SEED, rounded

CODES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
         "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "i16": TensorProto.INT16, "u16": TensorProto.UINT16,
         "i32": TensorProto.INT32, "i64": TensorProto.INT64, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64}
NUMPY = {**DTYPES, **{f"u{bits}": DTYPES[f"ui{bits}"] for bits in (8, 16, 32, 64)}}
FLOATS, WHOLE = ("f32", "f64", "f16", "bf16"), ("i32", "i64", "u32", "u64")
# Wide numbers that only this type and wider ones hold, times narrow ones up to 2: their sums over 1537 (f64: 2047)
# places are exact in the type that sums are kept in, which is f32 for floats of 16 bits.
WIDE = {"f32": 1 << 12, "f64": 1 << 41, "f16": 1 << 11, "bf16": 1 << 8}


def draw(random, element, shape, wide=True):
    """Whole numbers of all sizes that keep sums exact; integers may wrap."""
    if element in FLOATS:
        limit = WIDE[element] if wide else 3
        return random.integers(1 - limit, limit, shape).astype(np.float64)
    info = np.iinfo(NUMPY[element])
    return random.integers(info.min, info.max, shape, NUMPY[element], endpoint=True)


def extreme(random, element, shape, wide=True):
    """The least and the greatest numbers of the type."""
    info = np.iinfo(NUMPY[element])
    return random.choice(np.array([info.min, info.max], NUMPY[element]), shape)


def lowest(random, element, shape, wide=True):
    """All the least number of the type; zero points, which are not wide, all the greatest."""
    info = np.iinfo(NUMPY[element])
    return np.full(shape, info.min if wide else info.max, NUMPY[element])


def highest(random, element, shape, wide=True):
    return lowest(random, element, shape, not wide)


def normal(random, element, shape, wide=True):
    return rounded(random.standard_normal(shape), element).astype(np.float64)


def product(a, b):
    """Exact; integers that doubles do not hold modulo 2^64."""
    if a.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return a @ b
    largest = [float(np.abs(x.astype(np.float64)).max(initial=0)) for x in (a, b)]
    if largest[0] * largest[1] * a.shape[-1] < 2**53:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return a.astype(np.int64) @ b.astype(np.int64)


def narrowed(array, element):
    """To the type: rounded once, integers modulo its size."""
    if element in FLOATS:
        return rounded(array, element)
    return np.asarray(array).astype(np.uint64 if element[0] == "u" else np.int64).astype(NUMPY[element])


class Model:
    def __init__(self, name):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.inputs, self.weights, self.nodes, self.checks, self.constants, self.count = {}, [], [], [], {}, 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, element, dims, make=None, wide=True):
        """`make(random, element, shape)` draws it, whatever the run draws."""
        name = self.name()
        self.inputs[name] = (element, dims, make, wide)
        if element != "bf16":
            return name
        self.nodes.append(helper.make_node("Cast", [name], [name + "_bf16"], to=CODES["bf16"]))
        return name + "_bf16"

    def constant(self, element, array):
        name = self.name()
        array = np.asarray(array)
        stored = ml_dtypes.bfloat16 if element == "bf16" else NUMPY[element]
        self.weights.append(numpy_helper.from_array(array.astype(stored), name))
        self.constants[name] = array.astype(np.float64) if element in FLOATS else array.astype(NUMPY[element])
        return name

    def drawn(self, element, shape, make=draw, wide=True):
        return self.constant(element, make(self.random, element, shape, wide))

    def node(self, op, operands, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, [operand or "" for operand in operands], names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def check(self, result, element, operands, judge, depth=0):
        """`judge(arrays of the operands)` gives the numbers of a node's result. `depth` is the length of sums or the
        name of the dimension that is; it bounds the error where the numbers drawn are not whole."""
        if element == "bf16":
            result = self.node("Cast", [result], to=CODES["f32"])
        self.checks.append((result, element, operands, judge, depth))

    def matmul(self, element, a, b, depth=0):
        self.check(self.node("MatMul", [a, b]), element, [a, b], product, depth)

    def save(self, path):
        stored = lambda element: CODES["f32" if element == "bf16" else element]
        graph = helper.make_graph(
            self.nodes, "products",
            [helper.make_tensor_value_info(name, stored(element), dims) for name, (element, dims, _, _) in self.inputs.items()],
            [helper.make_tensor_value_info(name, stored(element), None) for name, element, *_ in self.checks], self.weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))
        return path

    def compiled(self, folder, *options):
        return compile_model(self.save(folder / "products.onnx"), folder, *options)

    def feed(self, sizes, make=draw):
        """Arrays by name: floats as float64, which hold numbers of their type."""
        feed = {}
        for name, (element, dims, own, wide) in self.inputs.items():
            shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims)
            kind = np.float64 if element in FLOATS else NUMPY[element]
            feed[name] = np.asarray((own or make)(self.random, element, shape, wide), kind).reshape(shape)
        return feed

    def run(self, package, feed, folder, *options):
        given = {name: rounded(array, self.inputs[name][0]) if self.inputs[name][0] in FLOATS else array
                 for name, array in feed.items()}
        return run_package(package, given, folder, *options)

    def verify(self, package, feed, folder, *options, whole=True, about=""):
        """Runs and judges every result; returns what came out. NaN is only right where it is expected."""
        found = self.run(package, feed, folder, *options)
        values = {**feed, **{name + "_bf16": array for name, array in feed.items()}, **self.constants}
        for name, element, operands, judge, depth in self.checks:
            arrays = [values[operand] for operand in operands]
            expected = narrowed(judge(*arrays), element)
            actual, node = found[name], next(node for node in self.nodes if name in node.output)
            what = (f"{about} {node.op_type} -> {element} of {[(array.dtype.name, array.shape) for array in arrays]}, "
                    f"made by {helper.printable_node(node)} (DS_SEED={SEED})")
            expect(actual.dtype == expected.dtype and actual.shape == expected.shape,
                   f"{what}: found {actual.dtype} {actual.shape}, expected {expected.dtype} {expected.shape}")
            right = (actual == expected) | ((actual != actual) & (expected != expected))
            if not whole and element in FLOATS:
                length = feed_size(feed, self.inputs, depth)
                unit = 2.0**-53 if element == "f64" else 2.0**-24
                with np.errstate(all="ignore"):
                    wide = judge(*arrays)
                    bound = (length + 2) * unit * judge(*map(np.abs, arrays)) + (
                        EPSILON[element] * np.abs(wide) if element in ("f16", "bf16") else 0)
                    right |= np.abs(actual.astype(np.float64) - wide) <= bound
            if not right.all():
                at = tuple(int(i) for i in np.argwhere(~right)[0])
                raise AssertionError(f"{what}: {(~right).sum()} of {right.size} differ, first at {list(at)}: found "
                                     f"{actual[at]!r}, expected {expected[at]!r}")
        return found

    def same_bits(self, found, other, what, cut=lambda name, array: array):
        for name, element, *_ in self.checks:
            one, two = cut(name, found[name]), other[name]
            expect(one.tobytes() == two.tobytes(), f"{what}: {element} {name} {two.shape} has other bits (DS_SEED={SEED})")


def feed_size(feed, inputs, dim):
    if isinstance(dim, int):
        return dim
    return next(array.shape[dims.index(dim)] for array, (_, dims, _, _) in ((feed[name], inputs[name]) for name in feed)
                if dim in dims)
