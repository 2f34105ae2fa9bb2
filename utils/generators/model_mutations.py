"""Small changes of a model that leave it valid: what utils/check-mutated-models makes of what an exporter wrote.

A mutation is a function of a Mutant and the random numbers of its own seed. It edits the Mutant's model and says what it
did, or returns None where it found nothing to do. Sites are drawn from the model as it was, so that dropping one of
several mutations leaves the others where they were. Whether the result is valid is for ONNX Runtime to say.
"""
import copy

import numpy as np
import onnx
from onnx import helper, numpy_helper

MUTATIONS = []
SCALARS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 0.044715, 0.7978845608, 1.41421356, 1.702, 1e-5, 1e-2, -1e4, -1e9,
           float(np.finfo(np.float32).min), 0.125, 10.0, -0.5)
SWAPPED = [("Add", "Mul", "Sub", "Div", "Max", "Min"), ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"),
           ("Tanh", "Sigmoid", "Erf", "Relu", "Softplus", "Identity"), ("Sqrt", "Reciprocal", "Abs", "Exp", "Neg"),
           ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceMin"), ("Cos", "Sin"), ("And", "Or", "Xor"),
           ("Softmax", "LogSoftmax")]


def mutation(weight):
    def register(function):
        MUTATIONS.append((function, weight))
        return function
    return register


class Mutant:
    """A copy of a model with the types, shapes and uses of the values of the original.

    `types` maps a value to (dtype, shape); a size that differs between the runs it was measured in is None.
    """

    def __init__(self, base):
        self.base, self.types, self.sites, self.order, self.dtype = base, base.types, base.sites, base.order, base.dtype
        self.model = copy.deepcopy(base.model)
        self.nodes = {node.name: node for node in self.model.graph.node}
        self.count = 0

    def name(self):
        self.count += 1
        return f"mutated_{self.count}"

    def constant(self, array):
        name = self.name()
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def insert(self, node, op, inputs, outputs=1, **attributes):
        """A new node before `node`; its first output."""
        new = helper.make_node(op, inputs, [self.name() for _ in range(outputs)], self.name(), **attributes)
        at = next(i for i, other in enumerate(self.model.graph.node) if other.name == node.name)
        self.model.graph.node.insert(at, new)
        return new.output[0]

    def node(self, random, wanted=lambda node: True):
        """A node of the original that is still there, three times of four one that computes floats."""
        sites = [node for node in self.sites if wanted(node) and node.op_type != "Constant"]
        floats = [node for node in sites if self.is_float(node.output[0])]
        sites = floats if floats and random.random() < 0.75 else sites
        return self.nodes[sites[random.integers(len(sites))].name] if sites else None

    def edge(self, random, wanted=lambda name: True):
        """(node, index) of an input that is a known value of the original."""
        known = lambda node: [i for i, name in enumerate(node.input) if name in self.types and wanted(name)]
        node = self.node(random, known)
        if node is None:
            return None, None
        known = known(node)  # of the node as it is by now
        return (node, known[random.integers(len(known))]) if known else (None, None)

    def is_float(self, name):
        return name in self.types and self.types[name][0] == self.dtype

    def constant_of(self, name):
        return self.base.constants.get(name)

    def before(self, node, wanted):
        """Values of the original that are computed before the node."""
        limit = self.order.get(node.name, 0)
        return [name for name, at in self.base.defined.items() if at < limit and name in self.types and wanted(name)]


def attribute(node, name):
    return next((a for a in node.attribute if a.name == name), None)


def pick(random, items):
    return items[random.integers(len(items))]


def short(array):
    return repr(array.tolist()) if array.size < 8 else f"{array.dtype}{list(array.shape)}"


def scalar_sites(m):
    def wanted(name):
        array = m.constant_of(name)
        return array is not None and array.size == 1 and array.dtype == m.dtype
    return wanted


@mutation(8)
def scalar_number(m, random):
    """Another number where a constant of one element is used: once, or wherever it is."""
    node, i = m.edge(random, scalar_sites(m))
    if node is None:
        return None
    old, name = m.constant_of(node.input[i]), node.input[i]
    value = float(old.flat[0])
    value = pick(random, (*SCALARS, *[value * factor for factor in (-1, 0.5, 2, 1.0004, 1.1, 0.0)], value + 1, value - 1))
    new = m.constant(np.full(old.shape, value, old.dtype))
    everywhere = random.random() < 0.25
    for other in m.model.graph.node if everywhere else [node]:
        for j, given in enumerate(other.input):
            if given == name and (everywhere or j == i):
                other.input[j] = new
    return f"{node.name} input {i}: {old.flat[0]} becomes {value}{' everywhere' if everywhere else ''}"


@mutation(7)
def scalar_to_tensor(m, random):
    """A constant of one element becomes one of several numbers, or of more axes."""
    node, i = m.edge(random, scalar_sites(m))
    if node is None or node.output[0] not in m.types:
        return None
    shape = m.types[node.output[0]][1]
    if random.random() < 0.3:
        rank = int(random.integers(0, len(shape) + 2))
        new = np.full([1] * rank, m.constant_of(node.input[i]).flat[0], m.dtype)
    else:
        kept = [size if size and random.random() < 0.5 else 1 for size in shape]
        start = int(random.integers(len(kept) + 1)) if all(size == 1 for size in kept[:1]) else 0
        value = m.constant_of(node.input[i]).flat[0]
        with np.errstate(over="ignore"):
            new = (value * random.uniform(0.5, 1.5, kept[start:])).astype(m.dtype)
    node.input[i] = m.constant(new)
    return f"{node.name} input {i}: the scalar has shape {list(new.shape)}"


@mutation(3)
def scalar_at_run_time(m, random):
    """A constant of one element becomes a number that only a run knows."""
    node, i = m.edge(random, scalar_sites(m))
    sources = m.before(node, lambda name: m.is_float(name) and name not in m.base.constants) if node else []
    if not sources:
        return None
    old, source = m.constant_of(node.input[i]), pick(random, sources)
    if random.random() < 0.5:  # a number of the value
        flat = m.insert(node, "Reshape", [source, m.constant(np.array([-1]))])
        number = m.insert(node, "Gather", [flat, m.constant(np.zeros(old.shape, np.int64))])
    else:  # the number it was, or nearly
        number = m.insert(node, "ReduceMax", [source], keepdims=0)
        number = m.insert(node, "Mul", [number, m.constant(np.array(random.choice([0, 1e-3]), m.dtype))])
        number = m.insert(node, "Add", [number, m.constant(old)])
    node.input[i] = number
    return f"{node.name} input {i}: a number of {source} instead of {old.flat[0]}"


@mutation(6)
def swap_operands(m, random):
    binary = sum(SWAPPED[:2], ()) + ("MatMul", "Pow", "And", "Or", "Where", "Concat", "Gemm")
    node = m.node(random, lambda node: node.op_type in binary and len(node.input) > 1)
    if node is None:
        return None
    a = len(node.input) - 2 if node.op_type == "Where" else int(random.integers(len(node.input) - 1))
    node.input[a], node.input[a + 1] = node.input[a + 1], node.input[a]
    return f"{node.name}: operands {a} and {a + 1} swapped"


@mutation(6)
def change_axis(m, random):
    """Another axis, or axes, in an attribute; those that are inputs are for integer_number."""
    node = m.node(random, lambda node: attribute(node, "axis") or attribute(node, "axes"))
    if node is None or node.output[0] not in m.types:
        return None
    rank = max([1] + [len(m.types[name][1]) for name in (*node.input, *node.output) if name in m.types])
    if axis := attribute(node, "axis"):
        axis.i = int(random.integers(-rank, rank))
        return f"{node.name}: axis {axis.i}"
    axes = attribute(node, "axes").ints
    if random.random() < 0.4 and len(axes) < rank:
        axes.append(int(random.integers(-rank, rank)))
    else:
        axes[random.integers(len(axes))] = int(random.integers(-rank, rank))
    return f"{node.name}: axes {list(axes)}"


@mutation(5)
def change_permutation(m, random):
    node = m.node(random, lambda node: node.op_type == "Transpose" and attribute(node, "perm"))
    if node is None:
        return None
    permutation = attribute(node, "perm").ints
    if random.random() < 0.2:
        shuffled = random.permutation(len(permutation)).tolist()
        permutation[:] = shuffled
    elif len(permutation) > 1:
        a, b = random.choice(len(permutation), 2, replace=False)
        permutation[a], permutation[b] = permutation[b], permutation[a]
    return f"{node.name}: perm {list(permutation)}"


@mutation(14)
def rewire(m, random):
    """Another value of the same type and shape, or one that broadcasts to it."""
    node, i = m.edge(random)
    if node is None:
        return None
    dtype, shape = m.types[node.input[i]]

    def fits(name):
        other = m.types[name]
        if other[0] != dtype or name == node.input[i]:
            return False
        if other[1] == shape:
            return True
        return loose and len(other[1]) <= len(shape) and all(a in (1, b) for a, b in zip(other[1][::-1], shape[::-1]))

    loose = random.random() < 0.3
    sources = m.before(node, fits)
    if not sources:
        return None
    if len(sources) > 4 and random.random() < 0.5:  # a neighbour rather than anything
        sources = sorted(sources, key=lambda name: -m.base.defined[name])[:6]
    old, node.input[i] = node.input[i], pick(random, sources)
    return f"{node.name} input {i}: {node.input[i]} instead of {old}"


@mutation(7)
def extra_output(m, random):
    """An intermediate value that is an output, too, or has another use."""
    node = m.node(random)
    name = pick(random, list(node.output))
    if name not in m.types or any(output.name == name for output in m.model.graph.output):
        return None
    code = helper.np_dtype_to_tensor_dtype(m.types[name][0])
    if random.random() < 0.3 and m.is_float(name):
        new = m.name()
        m.model.graph.node.append(helper.make_node(pick(random, ["Neg", "Tanh", "Abs"]), [name], [new], m.name()))
        m.model.graph.output.append(helper.make_tensor_value_info(new, code, None))
        return f"{name} has another use"
    m.model.graph.output.append(helper.make_tensor_value_info(name, code, None))
    return f"{name} is an output"


@mutation(4)
def negate_condition(m, random):
    node, i = m.edge(random, lambda name: m.types[name][0] == np.bool_)
    if node is None:
        return None
    node.input[i] = m.insert(node, "Not", [node.input[i]])
    return f"{node.name} input {i}: negated"


@mutation(14)
def insert_between(m, random):
    """An op of one operand between two nodes of a chain, or one with a constant."""
    node, i = m.edge(random, m.is_float)
    if node is None:
        return None
    name, shape = node.input[i], m.types[node.input[i]][1]
    kind = pick(random, ["Identity", "Identity", "Cast", "Neg", "Abs", "Relu", "Tanh", "Add", "Mul", "Mul", "Sub", "Div",
                         "Transpose", "Max", "Where", "Reshape"])
    what = kind
    if kind in ("Add", "Mul", "Sub", "Div", "Max", "Where"):
        kept = [size if size and random.random() < 0.5 else 1 for size in shape]
        start = int(random.integers(len(kept) + 1)) if random.random() < 0.5 else 0
        kept = kept[start:] if all(size == 1 for size in kept[:start]) else kept
        if random.random() < 0.3:
            kept = []
        number = m.constant(random.uniform(0.5, 1.5, kept).astype(m.dtype))
        what = f"{kind} of a constant {kept}"
        if kind == "Where":
            condition = m.constant(random.random(kept) < 0.7)
            fill = m.constant(np.array(pick(random, [0.0, 1.0, -1e9, -10000.0, float(np.finfo(np.float32).min)]), m.dtype))
            operands = [condition, name, fill]
        else:
            operands = [number, name] if random.random() < 0.4 else [name, number]
        new = m.insert(node, kind, operands)
    elif kind == "Cast":
        other = onnx.TensorProto.DOUBLE if m.dtype == np.float32 else onnx.TensorProto.FLOAT
        there = m.insert(node, "Cast", [name], to=other)
        new = m.insert(node, "Cast", [there], to=helper.np_dtype_to_tensor_dtype(m.dtype))
    elif kind == "Transpose":  # there and back, or only where the sizes agree
        if len(shape) < 2:
            return None
        permutation = [int(axis) for axis in random.permutation(len(shape))]
        new = m.insert(node, "Transpose", [name], perm=permutation)
        if [shape[axis] for axis in permutation] != list(shape) or random.random() < 0.3:
            new = m.insert(node, "Transpose", [new], perm=[permutation.index(axis) for axis in range(len(shape))])
        what = f"Transpose {permutation}"
    elif kind == "Reshape":
        flat = m.insert(node, "Reshape", [name, m.constant(np.array([-1]))])
        new = m.insert(node, "Reshape", [flat, m.insert(node, "Shape", [name])])
    else:
        new = m.insert(node, kind, [name])
    node.input[i] = new
    return f"{node.name} input {i}: {what} before it"


@mutation(12)
def change_scores(m, random):
    """Before a softmax: one to three masks, choices, scales or bounds more."""
    node = m.node(random, lambda node: node.op_type == "Softmax")
    if node is None or node.input[0] not in m.types:
        return None
    name, shape, done = node.input[0], m.types[node.input[0]][1], []
    number = lambda value: m.constant(np.array(value, m.dtype))
    for _ in range(int(random.integers(1, 4))):
        axes = [axis for axis in range(len(shape)) if random.random() < 0.4]
        source = m.insert(node, "ReduceMax", [node.input[0]], axes=axes, keepdims=1) if axes and m.base.opset < 18 else node.input[0]
        if axes and m.base.opset >= 18:
            source = m.insert(node, "ReduceMax", [source, m.constant(np.array(axes))], keepdims=1)
        hidden = m.insert(node, pick(random, ["Greater", "Less"]), [source, number(random.uniform(-0.5, 1))])
        value = pick(random, [float(np.finfo(m.dtype).min), -1e9, -1e4, -np.inf, 0.0, 1.0, -1e30])
        low, high = number(value), number(-value)
        kind = pick(random, ["choose", "choose", "choose", "add", "add", "sub", "factor", "scale", "bound", "runtime"])
        if kind == "choose":
            name = m.insert(node, "Where", [hidden, *(([low, name], [name, low])[random.integers(2)])])
        elif kind in ("add", "sub"):
            mask = m.insert(node, "Where", [hidden, low if kind == "add" else high, number(0)])
            name = m.insert(node, kind.capitalize(), [name, mask] if kind == "sub" or random.random() < 0.7 else [mask, name])
        elif kind == "factor":
            name = m.insert(node, "Mul", [name, m.insert(node, "Where", [hidden, number(pick(random, [0, 2])), number(1)])])
        elif kind == "scale":
            name = m.insert(node, pick(random, ["Mul", "Div"]), [name, number(pick(random, [0.5, 3, -1]))])
        elif kind == "runtime":
            flat = m.insert(node, "Reshape", [source, m.constant(np.array([-1]))])
            name = m.insert(node, "Mul", [name, m.insert(node, "Gather", [flat, m.constant(np.array(0))])])
        else:
            cap = number(pick(random, [1.0, 3.0]))
            name = m.insert(node, "Mul", [m.insert(node, "Tanh", [m.insert(node, "Div", [name, cap])]), cap])
        done.append(f"{kind} {axes}")
    node.input[0] = name
    return f"{node.name}: {', '.join(done)}"


@mutation(9)
def integer_number(m, random):
    """Other numbers in a small constant of integers: where a slice begins, axes, shapes, what is gathered."""
    def wanted(name):
        array = m.constant_of(name)
        return array is not None and array.dtype == np.int64 and 0 < array.size <= 8
    node, i = m.edge(random, wanted)
    if node is None:
        return None
    old = m.constant_of(node.input[i])
    new, at = old.copy(), int(random.integers(old.size))
    choice = random.random()
    if choice < 0.2 and new.size > 1:
        other = int(random.integers(new.size))
        new.flat[at], new.flat[other] = new.flat[other], new.flat[at]
    elif choice < 0.35:
        new.flat[at] = -new.flat[at]
    elif choice < 0.5:
        new.flat[at] = pick(random, [0, 1, 2, -1, 3, 4, 8])
    elif choice < 0.6:
        new.flat[at] *= 2
    else:
        new.flat[at] += pick(random, [1, -1])
    if (new == old).all():
        return None
    node.input[i] = m.constant(new)
    return f"{node.name} input {i}: {short(old)} becomes {short(new)}"


@mutation(4)
def other_parameters(m, random):
    """Another shape or order of a constant tensor: a vector becomes a number, a matrix is transposed, a table rolls."""
    node, i = m.edge(random, lambda name: m.constant_of(name) is not None and m.constant_of(name).size > 1)
    if node is None:
        return None
    old = m.constant_of(node.input[i])
    kind = pick(random, ["one", "axes", "roll", "transpose", "expand", "flip"])
    if kind == "one":
        axis = int(random.integers(old.ndim))
        new = old.take([0], axis)
    elif kind == "axes":
        new = old.reshape([1] * int(random.integers(1, 3)) + list(old.shape))
    elif kind == "roll":
        new = np.roll(old, 1, int(random.integers(old.ndim)))
    elif kind == "transpose":
        new = np.ascontiguousarray(np.swapaxes(old, *random.integers(old.ndim, size=2)))
    elif kind == "expand":  # a parameter that differs along an axis that it was the same for
        shape = m.types.get(node.output[0], (None, ()))[1]
        if len(shape) <= old.ndim or not shape[-old.ndim - 1] or old.dtype != m.dtype:
            return None
        new = (old * random.uniform(0.5, 1.5, [shape[-old.ndim - 1]] + [1] * old.ndim)).astype(m.dtype)
    else:
        new = old.copy()
        at = int(random.integers(old.size))
        new.flat[at] = ~new.flat[at] if old.dtype == bool else -new.flat[at]
    node.input[i] = m.constant(new)
    return f"{node.name} input {i}: {kind} of the constant {list(old.shape)}"


@mutation(7)
def drop(m, random):
    """A node is left out where an operand has the type of its result."""
    same = lambda node: [name for name in node.input if m.types.get(name) == m.types.get(node.output[0], 0)]
    node = m.node(random, same)
    source = pick(random, same(node)) if node is not None and same(node) else None
    if source is None:
        return None
    for other in m.model.graph.node:
        for i, name in enumerate(other.input):
            if name == node.output[0]:
                other.input[i] = source
    return f"{node.name} dropped"


@mutation(7)
def change_operator(m, random):
    group = pick(random, SWAPPED)
    node = m.node(random, lambda node: node.op_type in group and not node.domain)
    if node is None:
        return None
    old, node.op_type = node.op_type, pick(random, group)
    return f"{node.name}: {node.op_type} instead of {old}" if old != node.op_type else None


@mutation(6)
def change_attribute(m, random):
    """Another flag, number or text in an attribute."""
    names = {"to", "axis", "axes", "perm", "value", "value_int", "value_ints", "value_float", "value_floats", "shape"}
    node = m.node(random, lambda node: any(a.name not in names for a in node.attribute))
    if node is None:
        return None
    a = pick(random, [a for a in node.attribute if a.name not in names])
    if a.type == a.INT:
        a.i = 1 - a.i if a.i in (0, 1) else a.i + pick(random, [1, -1, a.i])
    elif a.type == a.FLOAT:
        a.f = pick(random, [a.f * 2, -a.f, 0.0, 1.0, 0.3])
    elif a.type == a.INTS and a.ints:
        a.ints[random.integers(len(a.ints))] += pick(random, [1, -1])
    elif a.type == a.STRING:
        texts = {"none": "tanh", "tanh": "none", "add": "none", "NOTSET": "SAME_UPPER"}
        a.s = texts.get(a.s.decode(), "none").encode()
    else:
        return None
    return f"{node.name}: {helper.printable_attribute(a)}"


@mutation(4)
def duplicate(m, random):
    """One use gets a copy of the node that computes it, changed or not, with the nodes before it shared."""
    node, i = m.edge(random, lambda name: name in m.base.producers)
    if node is None or node.input[i] not in m.base.producers:
        return None
    source = m.nodes[m.base.producers[node.input[i]]]
    new = copy.deepcopy(source)
    new.name = m.name()
    at = list(source.output).index(node.input[i]) if node.input[i] in source.output else 0
    del new.output[:]
    new.output.extend(m.name() for _ in source.output)
    here = next(j for j, other in enumerate(m.model.graph.node) if other.name == node.name)
    m.model.graph.node.insert(here, new)
    node.input[i] = new.output[at]
    return f"{node.name} input {i}: a copy of {source.name}"


def mutate(m, seed):
    """Applies one mutation of the seed; what it did, or None where it found no place."""
    random = np.random.default_rng(seed)
    weights = np.array([weight for _, weight in MUTATIONS], float)
    function = MUTATIONS[random.choice(len(MUTATIONS), p=weights / weights.sum())][0]
    done = function(m, random)
    return f"{function.__name__}: {done}" if done else None
