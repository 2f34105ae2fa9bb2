"""Small models of one block in primitive ops, in the spellings that patterns know: bases of utils/check-mutated-models.

Each is an attention, a norm, a GELU, a softmax or a rotary embedding. Sizes are named as exporters name them, so that the
inputs of an exported model fit.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, SIZE = 4, 8


class Chain:
    def __init__(self, random):
        self.random, self.nodes, self.inputs, self.constants = random, [], [], []

    def pick(self, *items):
        return items[self.random.integers(len(items))]

    def name(self, text="v"):
        return f"{text}_{len(self.nodes) + len(self.inputs) + len(self.constants)}"

    def op(self, kind, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [self.name()], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def number(self, value):
        return self.constant(np.full(self.pick((), (), (1,)), value, np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def input(self, *dims):
        name = self.name("x")
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)))
        return name

    def either(self, kind, a, b):
        return self.op(kind, *([a, b] if self.random.random() < 0.5 else [b, a]))

    def reduce(self, kind, value, *axes):
        if kind == "ReduceSum":
            return self.op(kind, value, self.ints(*axes), keepdims=1)
        return self.op(kind, value, axes=list(axes), keepdims=1)

    def scaled(self, value, factor):
        if self.random.random() < 0.5:
            return self.either("Mul", value, self.number(factor))
        return self.op("Div", value, self.number(1 / factor))


def attention(c):
    """Heads apart, joined to the batch or in groups; scale, cap and masks in any order that is one."""
    rank = c.pick(3, 4, 4, 4, 5)
    batch, rows = c.pick("batch", 2), c.pick("length", 5)
    columns = c.pick(rows, "source", 7)
    front = {3: [c.pick(batch, HEADS)], 4: [batch, HEADS], 5: [batch, 2, 2]}[rank]
    shared = {3: front, 4: [batch, 2] if c.random.random() < 0.3 else front, 5: [batch, 2, 1]}[rank]
    q, k, v = c.input(*front, rows, SIZE), c.input(*shared, columns, SIZE), c.input(*shared, columns, SIZE)
    if shared != front and rank == 4:
        copies = [repeated(c, value) for value in (k, v)]
        k, v = copies
    if c.random.random() < 0.3:
        q = c.scaled(q, 0.6)
    order = list(range(rank))
    order[-1], order[-2] = order[-2], order[-1]
    unread = None
    if c.random.random() < 0.3:  # keys that no row sees hold what is no number, as unused rows of a cache may
        unread = c.op("Less", c.input(*[1] * (rank - 2), columns, 1), c.number(0.3))
        k = c.op("Where", unread, c.number(np.nan), k)
    turned = c.op("Transpose", k, perm=order)
    if c.random.random() < 0.3:
        turned = c.scaled(turned, 0.6)
    scores = c.op("MatMul", q, turned)
    if c.random.random() < 0.6:
        scores = c.scaled(scores, 0.35)
    if c.random.random() < 0.2:
        cap = c.number(2)
        scores = c.op("Mul", c.op("Tanh", c.op("Div", scores, cap)), cap)
    for _ in range(int(c.random.integers(3))):
        scores = masked(c, scores, front, rows, columns)
    if unread:
        low = c.number(c.pick(float(np.finfo(np.float32).min), -1e9, -1e4))
        scores = c.op("Where", c.op("Transpose", unread, perm=order), low, scores)
    weights = c.op("Softmax", scores, axis=-1)
    if c.random.random() < 0.2:
        weights = c.op("Where", c.op("IsNaN", weights), c.number(0), weights)
    return c.op("MatMul", weights, v)


def repeated(c, value):
    """Two heads of two, each for its neighbours or in turns."""
    axis = c.pick(2, 2, 1)
    wide = c.op("Unsqueeze", value, c.ints(axis))
    copies = c.op("Concat", wide, wide, axis=axis) if c.random.random() < 0.5 else c.op("Expand", wide, c.ints(*[2 if i == axis else 1 for i in range(5)]))
    return c.op("Reshape", copies, c.ints(0, HEADS, -1, SIZE))


def masked(c, scores, front, rows, columns):
    dims = [*front, rows, columns]
    kept = [size if c.random.random() < 0.5 else 1 for size in dims]
    while kept and kept[0] == 1 and c.random.random() < 0.5:
        kept.pop(0)
    mask = c.input(*kept)
    if c.random.random() < 0.3 and kept:
        mask = c.op("Expand", mask, c.op("Shape", scores))
    low = c.number(c.pick(float(np.finfo(np.float32).min), -1e9, -1e4, -1e30, 0))
    hidden = c.op(c.pick("Less", "Greater"), mask, c.number(0.3))
    kind = c.pick("bias", "choose", "choose", "add", "factor", "sub", "products")
    if kind == "bias":
        return c.either("Add", scores, mask)
    if kind == "sub":
        return c.op("Sub", scores, mask)
    if kind == "factor":
        return c.either("Mul", scores, mask)
    if kind == "add":
        return c.either("Add", scores, c.op("Where", hidden, low, c.number(0)))
    if kind == "choose":
        return c.op("Where", hidden, *([low, scores] if c.random.random() < 0.5 else [scores, low]))
    one = c.op("Cast", hidden, to=TensorProto.FLOAT)
    other = c.op("Cast", c.op("Not", hidden), to=TensorProto.FLOAT)
    return c.either("Add", c.either("Mul", one, scores), c.either("Mul", other, low))


def norm(c):
    """Layer norm or RMS norm over the last one or two axes."""
    sizes = c.pick([8], [8], [4, 4])
    axes = [-1] if c.random.random() < 0.7 else [-2, -1][-len(sizes):]
    x = c.input("batch", "length", *sizes)
    centred, mean = x, None
    if c.random.random() < 0.6:
        mean = c.reduce("ReduceMean", x, *axes)
        centred = c.op("Sub", x, mean)
    squared = c.op("Pow", centred, c.constant(np.float32(2))) if c.random.random() < 0.5 else c.op("Mul", centred, centred)
    radicand = c.either("Add", c.reduce("ReduceMean", squared, *axes), c.number(c.pick(1e-5, 1e-2, 0.3)))
    root = c.op("Sqrt", radicand) if c.random.random() < 0.7 else c.op("Pow", radicand, c.constant(np.float32(0.5)))
    shape = (*[1] * int(c.random.integers(3)), *sizes[-len(axes):])
    scale, bias = (c.constant(c.random.uniform(0.5, 1.5, shape).astype(np.float32)) for _ in range(2))
    spelling = c.pick("div", "reciprocal", "folded")
    if spelling == "folded":
        inverse = c.op("Div", scale, root)
        if mean is None:
            return c.either("Mul", x, inverse)
        return c.either("Add", c.either("Mul", x, inverse), c.op("Sub", bias, c.either("Mul", mean, inverse)))
    y = c.op("Div", centred, root) if spelling == "div" else c.either("Mul", centred, c.op("Reciprocal", root))
    y = c.either("Mul", y, scale) if c.random.random() < 0.8 else y
    return c.either("Add", y, bias) if c.random.random() < 0.6 else y


def gelu(c):
    x = c.input("batch", "length", SIZE)
    kind = c.pick("erf", "tanh", "quick", "silu")
    if kind in ("quick", "silu"):
        gate = c.op("Sigmoid", c.scaled(x, 1.702) if kind == "quick" else x)
        return c.either("Mul", x, gate)
    if kind == "erf":
        inner = c.op("Erf", c.scaled(x, float(np.sqrt(0.5))))
    else:
        cube = c.op("Pow", x, c.constant(np.float32(3))) if c.random.random() < 0.5 else c.op("Mul", c.op("Mul", x, x), x)
        inner = c.op("Tanh", c.scaled(c.either("Add", x, c.scaled(cube, 0.044715)), float(np.sqrt(2 / np.pi))))
    gate = c.either("Add", inner, c.number(1))
    place = c.pick(0, 1, 2)
    y = c.either("Mul", c.scaled(x, 0.5) if place == 0 else x, c.scaled(gate, 0.5) if place == 1 else gate)
    y = c.scaled(y, 0.5) if place == 2 else y
    return c.either("Mul", y, c.input("batch", "length", SIZE)) if c.random.random() < 0.3 else y


def softmax(c):
    x, axis = c.input("batch", "length", SIZE), c.pick(-1, -1, 1, 0)
    if c.random.random() < 0.7:
        x = c.op("Sub", x, c.reduce("ReduceMax", x, axis))
    power = c.op("Exp", x)
    return c.op("Div", power, c.reduce("ReduceSum", power, axis))


def rotary(c):
    """Halves or neighbours, turned at once or side by side."""
    x = c.input("batch", HEADS, "length", SIZE)
    apart = c.random.random() < 0.5
    if c.random.random() < 0.5:
        parts = [c.op("Slice", x, c.ints(begin), c.ints(end), c.ints(3)) for begin, end in ((0, SIZE // 2), (SIZE // 2, SIZE))]
        join = lambda a, b: c.op("Concat", a, b, axis=-1)
    else:
        parts = [c.op("Slice", x, c.ints(begin), c.ints(SIZE), c.ints(-1), c.ints(2)) for begin in (0, 1)]
        join = lambda a, b: c.op("Reshape", c.op("Concat", *[c.op("Unsqueeze", part, c.ints(-1)) for part in (a, b)], axis=-1),
                                 c.ints(0, 0, 0, SIZE))
    front = c.pick(["length"], [1, "length"], ["batch", 1, "length"])
    cosines, sines = (c.input(*front, SIZE // 2 if apart else SIZE) for _ in range(2))
    if not apart:
        return c.either("Add", c.either("Mul", x, cosines), c.either("Mul", join(c.op("Neg", parts[1]), parts[0]), sines))
    real = c.op("Sub", c.either("Mul", parts[0], cosines), c.either("Mul", parts[1], sines))
    imaginary = c.either("Add", c.either("Mul", parts[1], cosines), c.either("Mul", parts[0], sines))
    return join(real, imaginary)


def write_chains(folder, count, seed):
    """Models into the folder; those of a seed are the same everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        random = np.random.default_rng([seed, index])
        c = Chain(random)
        block = c.pick(attention, attention, attention, norm, gelu, softmax, rotary)
        result = block(c)
        graph = helper.make_graph(c.nodes, block.__name__, c.inputs, [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], c.constants)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder / f"{block.__name__}_{index}.onnx")
    return sorted(folder.glob("*.onnx"))
