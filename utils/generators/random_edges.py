"""Random graphs where programs are at their edges: masks over numbers that are none, integers that wrap, sizes of 0 and 1.

Each is made of a few operators that every evaluator has. What the standard leaves open is kept out: floats beyond the
range of an integer, division by 0 or of the least integer by -1, shifts by the width or more.
"""
import numpy as np
from onnx import TensorProto, helper

from random_models import BOOL, F16, F32, F64, I32, I64, TYPES, code, is_signed
from random_operators import makes

INTEGERS = [TYPES[name] for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]


@makes("masked")
def masked(c, _):
    """Attention whose mask chooses: in masked keys lies anything, rows may be wholly masked."""
    if c.opset < 9:
        raise LookupError
    dtype = c.pick([F32, F32, F32, F64, F16])
    batch, heads, rows, columns, size = c.integer(0, 2), c.integer(1, 3), c.pick([0, 1, 1, 2, 5]), c.pick([1, 1, 2, 3, 6]), c.integer(1, 5)
    q, k, v = (c.data((batch, heads, n, size), dtype, -2, 2) for n in (rows, columns, columns))
    low = c.pick([-65504.0, -1e4, -np.inf] if dtype == F16 else [-1e9, float(np.finfo(np.float32).min), -np.inf, -1e4, -1e30])
    shape = c.pick([(columns,), (batch, 1, 1, columns), (1, 1, rows, columns), (batch, 1, rows, columns), (rows, columns),
                    (batch, heads, rows, columns)])
    keep = c.data(shape, BOOL)
    if keep.size and (low == -np.inf or c.chance(0.7)):  # else rows may be wholly masked, which the finite fill makes even
        keep[..., c.integer(0, columns - 1)] = True
    hidden = ~np.broadcast_to(keep, (batch, heads, rows, columns)).any(2)  # keys that no row sees
    if rows:
        k[hidden] = c.pick([np.nan, np.nan, np.inf, -np.inf, np.finfo(dtype).max])
    keys = c.node("Transpose", [c.value(k)], perm=[0, 1, 3, 2])
    scores = c.node("MatMul", [c.value(q), keys])
    if c.chance(0.6):
        scores = c.node(c.pick(["Mul", "Div"]), [scores, c.value(np.array(c.pick([0.5, 2, 0.25]), dtype), "constant")])
    if c.chance(0.2):
        scores = c.node("Add", [scores, c.value(c.data((rows, columns), dtype))])
    if c.chance(0.3):  # a mask of floats, compared
        condition = c.node("Greater", [c.value(keep.astype(F32)), c.value(np.array(0.5, F32), "constant")])
    else:
        condition = c.value(keep)
    fill = c.value(np.full(c.pick([(), (1,)]), low, dtype), "constant")
    if c.chance(0.4):
        scores = c.node("Where", [c.node("Not", [condition]), fill, scores])
    else:
        scores = c.node("Where", [condition, scores, fill])
    weights = c.node("Softmax", [scores], axis=3)
    if low == -np.inf and c.chance(0.3):
        weights = c.node("Where", [c.node("IsNaN", [weights]), c.value(np.zeros((), dtype), "constant"), weights])
    c.scale = 20
    c.node("MatMul", [weights, c.value(v)])


def edges(c, shape, dtype):
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, 46341, 65536, 1000003]
    numbers += [-1, -2, -46341, info.min // 2] if is_signed(dtype) else []
    legal = [n for n in numbers if info.min <= n <= info.max]
    count = int(np.prod(shape))
    return np.array([c.pick(legal) if c.chance(0.7) else int(c.random.integers(info.min, info.max, dtype=dtype, endpoint=True))
                     for _ in range(count)], dtype).reshape(shape)


@makes("integers")
def integers(c, _):
    """A chain of integer arithmetic that wraps; its operands come as constants, inputs or, if few, as possible sizes."""
    shape, dtype = c.pick([(), (1,), (1,), (2,), (3,), (2, 3), (0,), (33,)]), c.pick([*INTEGERS, I32, I64, I32, I64])

    def takes(op, kind):
        schema = c.schema(op)
        return any(f"tensor({name})" in schema.inputs[0].types for name, known in TYPES.items() if known == kind)

    if not takes("Add", dtype):
        raise LookupError
    c.result_type = dtype
    x = c.value(edges(c, shape, dtype))
    for _ in range(c.integer(1, 6)):
        op = c.pick(["Add", "Sub", "Mul", "Mul", "Neg", "Abs", "Cast", "Cast", "Max", "Min", "Where", "Div", "Mod", "BitShift",
                     "BitwiseAnd", "BitwiseXor", "BitwiseNot", "Sign", "CumSum", "ReduceMax"])
        operand = lambda numbers=None: c.value(edges(c, c.pick([shape, (), (1,)]) if shape else (), dtype) if numbers is None else numbers)
        if op == "Cast":
            target = c.pick([kind for kind in INTEGERS if takes("Add", kind)])
            x, dtype = c.node(op, [x], to=code(target)), target
        elif op == "Where":
            if c.opset < 9 or not takes("Less", dtype):
                continue
            y = operand()
            x = c.node(op, [c.node(c.pick(["Less", "Greater"]), [x, y]), x, y])
        else:
            try:
                legal = takes(op, dtype)
            except Exception:  # a younger operator
                continue
            if not legal:
                continue
            if op in ("Neg", "Abs", "Sign", "BitwiseNot"):
                x = c.node(op, [x])
            elif op in ("Div", "Mod"):
                truncates = {"fmod": 1} if op == "Mod" and c.chance(0.4) else {}
                c.has_reference &= bool(truncates) or not is_signed(dtype)  # it rounds down
                c.has_runtime &= not truncates or dtype.itemsize < 8  # it takes remainders of doubles
                divisor = np.array(c.pick([1, 2, 3, 7, np.iinfo(dtype).max]), dtype)
                x = c.node(op, [x, operand(divisor)], **truncates)
            elif op == "BitShift":
                amount = np.array(c.integer(0, 8 * dtype.itemsize - 1), dtype)
                x = c.node(op, [x, operand(amount)], direction=c.pick(["LEFT", "RIGHT"]))
            elif op == "CumSum":  # ONNX Runtime takes the sum of all integers in floats
                if shape and shape != (1,):
                    x = c.node(op, [x, c.value(np.array(0), "constant")])
            elif op.startswith("Reduce"):
                if not shape or 0 in shape:
                    continue
                x = c.node(op, [x], keepdims=0)
                shape = ()
            else:
                y = operand()
                x = c.node(op, [x, y] if c.chance(0.5) else [y, x])
    if c.chance(0.3) and takes("Less", dtype):
        c.node("Less", [x, c.value(edges(c, (), dtype))])


@makes("sizes")
def sizes(c, _):
    """Shape arithmetic over several named sizes, among them 0 and 1, that steers reshapes, cuts and broadcasts."""
    if c.opset < 13:
        raise LookupError
    c.style = "dynamic"
    named = {name: c.pick([0, 1, 1, 2, 3, 5]) for name in "abcd"}
    number = lambda n: c.value(np.array([n], np.int64), "constant")

    def tensor(names):
        """An input of named sizes, which it may share with others."""
        dtype, large = c.pick([F32, F32, I64]), c.chance(0.3)
        c.has_runtime &= dtype != I64 or not large  # it adds them as doubles
        array = c.data([named[name] for name in names], dtype, *((-9, 9) if dtype == I64 and not large else ()))
        info = helper.make_tensor_value_info(c.name("x"), code(array.dtype), [f"{c.prefix}{name}" for name in names])
        c.inputs.append((info, array))
        return info.name, [named[name] for name in names], names, array.dtype

    x, shape, names, dtype = tensor(c.pick(["ab", "abc", "cab", "abcd", "ba"]))
    steps = c.integer(1, 4)

    def size(axis):
        """One size as a vector, as exporters read it."""
        if c.chance(0.5) and c.opset >= 15:
            return c.node("Shape", [x], start=axis, end=axis + 1)
        return c.node("Gather", [c.node("Shape", [x]), number(axis)], axis=0)

    for _ in range(steps):
        kind, rank = c.pick(["merge", "cut", "cut to a size", "grow", "join", "transpose", "sum"]), len(shape)
        axis = c.integer(0, rank - 1) if rank else 0
        if kind == "merge" and rank >= 2:
            axis = c.integer(0, rank - 2)
            parts = [size(i) for i in range(axis)] + [c.node("Mul", [size(axis), size(axis + 1)])] + [size(i) for i in range(axis + 2, rank)]
            x = c.node("Reshape", [x, c.node("Concat", parts, axis=0)], **({"allowzero": 1} if c.opset >= 14 else {}))
            if c.opset < 14 and 0 in shape:
                raise LookupError
            shape = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2:]]
        elif kind == "cut" and rank:
            start, end = c.integer(-4, 4), c.integer(-4, 6)
            x = c.node("Slice", [x, number(start), number(end), number(axis)])
            shape[axis] = len(range(shape[axis])[start:end])
        elif kind == "cut to a size" and rank >= 2:  # a row for each of another axis, at most
            other = c.integer(0, rank - 1)
            bound = c.node(c.pick(["Min", "Max", "Add", "Sub", "Div"]), [size(other), number(c.integer(1, 4))])
            op, given = c.nodes[-1].op_type, int(c.numbers[c.nodes[-1].input[1]][0])
            end = {"Min": min, "Max": max, "Add": int.__add__, "Sub": int.__sub__, "Div": int.__floordiv__}[op](shape[other], given)
            x = c.node("Slice", [x, number(0), bound, number(axis)])
            shape[axis] = len(range(shape[axis])[0:end])
        elif kind == "grow" and rank < 5:
            x = c.node("Unsqueeze", [x, number(axis)])
            times = c.pick([0, 1, 2, 3])
            target = [size(i) if i != axis else number(times) for i in range(rank + 1)]
            x = c.node("Expand", [x, c.node("Concat", target, axis=0)])
            shape.insert(axis, times)
        elif kind == "join" and rank:
            x = c.node("Concat", [x] * c.integer(1, 3), axis=axis)
            shape[axis] *= len(c.nodes[-1].input)
        elif kind == "transpose" and rank:
            perm = [int(i) for i in c.random.permutation(rank)]
            x = c.node("Transpose", [x], perm=perm)
            shape = [shape[i] for i in perm]
        elif kind == "sum" and rank and shape[axis]:
            x = c.node("ReduceSum", [x, number(axis)], keepdims=c.integer(0, 1))
            shape = [1 if i == axis else n for i, n in enumerate(shape) if i != axis or c.nodes[-1].attribute[0].i]
        if np.prod(shape) > 5000:
            break
    y, other, _, second = tensor(c.pick(["a", "ab", "d"]))
    if second == dtype and tuple(other) == tuple(shape[-len(other):]):
        x = c.node("Add", [x, y])
    c.outputs = [x, *([c.node("Shape", [x])] if c.chance(0.5) else [])]
    c.scale = 20


@makes("growing")
def growing(c, _):
    """A loop whose state is longer after each iteration, and stacks that begin empty."""
    if c.opset < 13:
        raise LookupError
    width, length, count = c.integer(1, 3), c.integer(0, 3), c.integer(0, 5)
    state, row, p = c.value(c.data((length, width)), "dynamic"), c.value(c.data((c.integer(0, 2), width))), c.name("l")
    bodies = {"append": [helper.make_node("Concat", [p + "s", row], [p + "t"], axis=0)],
              "prepend": [helper.make_node("Add", [row, row], [p + "r"]), helper.make_node("Concat", [p + "r", p + "s"], [p + "t"], axis=0)],
              "double": [helper.make_node("Concat", [p + "s", p + "s"], [p + "t"], axis=0)],
              "again": [helper.make_node("Concat", [p + "s", p + "s", row], [p + "u"], axis=0), helper.make_node("Neg", [p + "u"], [p + "t"])]}
    info = helper.make_tensor_value_info
    nodes = [*bodies[c.pick(list(bodies))], helper.make_node("Identity", [p + "c"], [p + "d"])]
    body = helper.make_graph(nodes, "body", [info(p + "i", TensorProto.INT64, []), info(p + "c", TensorProto.BOOL, []),
                                             info(p + "s", TensorProto.FLOAT, [None, width])],
                             [info(p + "d", TensorProto.BOOL, []), info(p + "t", TensorProto.FLOAT, [None, width])])
    c.has_reference = False  # it begins each iteration with the first state
    x = c.node("Loop", [c.steering(count, I64, 0.5), "", state], body=body)
    if c.chance(0.5):
        c.node("ReduceSum", [x, c.value(np.array([0]), "constant")], keepdims=0)
