"""Random attention, sequences, control flow and draws, and whole random programs of several operators."""
import numpy as np
from onnx import TensorProto, helper

from random_models import BOOL, F16, F32, F64, I32, I64, TYPES, Case, code, is_float
from random_operators import makes


@makes("Attention")
def attention(c, op):
    dtype = c.type_of(op, among=[F32, F32, F64, F16])
    batch, group, kv, size, value_size = c.integer(1, 2), c.integer(1, 2), c.integer(1, 2), c.integer(1, 4), c.integer(1, 4)
    heads, queries, keys, past = group * kv, c.integer(1, 4), c.integer(1, 4), 0
    flat = c.chance(0.3)
    shaped = lambda h, s, d: c.value(c.data((batch, s, h * d) if flat else (batch, h, s, d), dtype))
    inputs = [shaped(heads, queries, size), shaped(kv, keys, size), shaped(kv, keys, value_size)]
    attributes = c.maybe(is_causal=c.integer(0, 1), scale=c.real(0.1, 1), softcap=c.real(1, 4))
    if c.chance(0.3):
        past = c.integer(1, 3)
    total = past + keys
    if c.chance(0.5):
        shape = c.pick([(queries, total), (batch, 1, queries, total), (1, heads, queries, total)])
        mask = c.data(shape, c.pick([dtype, BOOL]))
        if mask.dtype == BOOL:
            mask[..., 0] = True
        inputs.append(c.value(mask))
    elif past:
        inputs.append("")
    outputs = 1
    if past:
        inputs += [c.value(c.data((batch, kv, past, size), dtype)), c.value(c.data((batch, kv, past, value_size), dtype))]
        outputs = 3
    if c.chance(0.2):
        outputs, attributes["qk_matmul_output_mode"] = 4, c.integer(0, 3)
        if not past:
            outputs = 1
            attributes.pop("qk_matmul_output_mode")
    if flat:
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv}
    c.scale = 50
    c.node(op, inputs, outputs=outputs, **attributes)


@makes("RotaryEmbedding")
def rotary(c, op):
    batch, heads, length, half = c.integer(1, 2), c.integer(1, 3), c.integer(1, 4), c.integer(1, 4)
    dtype, whole = c.type_of(op, among=[F32, F32, F16]), c.chance(0.6)
    part = half if whole else c.integer(1, half)
    flat, positions = c.chance(0.4), c.chance(0.5)
    rows = (length + 3,) if positions else (batch, length)
    inputs = [c.value(c.data((batch, length, heads * 2 * half) if flat else (batch, heads, length, 2 * half), dtype))]
    inputs += [c.value(c.data((*rows, part), dtype)) for _ in range(2)]
    if positions:
        inputs.append(c.value(c.random.integers(0, length + 3, (batch, length)).astype(I64)))
    attributes = c.maybe(interleaved=c.integer(0, 1))
    attributes |= {} if whole else {"rotary_embedding_dim": 2 * part}
    c.node(op, inputs, **attributes, **({"num_heads": heads} if flat else {}))


@makes("CausalConvWithState")
def causal_conv(c, op):
    batch, channels, length, width = c.integer(1, 2), c.integer(1, 3), c.integer(1, 5), c.integer(1, 4)
    inputs = [c.value(c.data((batch, channels, length))), c.value(c.data((channels, 1, width)))]
    inputs += [c.value(c.data((channels,))) if c.chance(0.5) else "", c.value(c.data((batch, channels, width - 1))) if c.chance(0.5) else ""]
    c.scale = 10
    c.node(op, inputs, outputs=2, **c.maybe(activation=c.pick(["none", "silu", "swish"])))


@makes("LinearAttention")
def linear_attention(c, op):
    batch, group, kv, length, size, wide = (c.integer(1, n) for n in (2, 2, 2, 4, 3, 3))
    rule = c.pick(["linear", "gated", "delta", "gated_delta"])
    inputs = [c.value(c.data((batch, length, heads * width), F32)) for heads, width in ((kv * group, size), (kv, size), (kv, wide))]
    inputs.append(c.value(c.data((batch, kv, size, wide), F32)) if c.chance(0.5) else "")
    inputs.append(c.value(c.data((batch, length, kv * c.pick([1, size])), F32, -1, 0)) if "gated" in rule else "")
    inputs.append(c.value(c.data((batch, length, kv), F32, 0, 1)) if "delta" in rule else "")
    c.scale = 50
    c.node(op, inputs, outputs=2, update_rule=rule, q_num_heads=kv * group, kv_num_heads=kv, **c.maybe(scale=c.real(0.1, 1)))


@makes("SequenceConstruct SequenceLength SequenceInsert SequenceErase SequenceAt ConcatFromSequence SequenceEmpty "
       "SplitToSequence SequenceMap")
def sequences(c, op):
    shape, count = list(c.shape(1, 3, 1)), c.integer(1, 4)
    axis, dtype = c.integer(0, len(shape) - 1), c.pick([F32, I64])
    tensor = lambda: c.value(c.data(shape, dtype))
    if op == "SplitToSequence":
        split = [c.integer(1, 3) for _ in range(count)]
        shape[axis] = sum(split)
        way = c.integer(0, 2)
        given = [c.steering(split, I64, 0)] if way == 0 else [c.steering(c.integer(1, 3), I64, 0)] if way == 1 else []
        sequence = c.node(op, [tensor(), *given], axis=axis, **(c.maybe(keepdims=c.integer(0, 1)) if way == 2 else {}))
        c.node("SequenceLength", [sequence])
        kept = c.outputs
        c.node("SequenceAt", [sequence, c.steering(-1, I64, 0)])
        c.outputs = kept + c.outputs[-1:]
        return
    if op == "SequenceEmpty":
        sequence = c.node("SequenceInsert", [c.node(op, [], dtype=code(dtype)), tensor()])
    else:
        sequence = c.node("SequenceConstruct", [tensor() for _ in range(count)])
    place = c.integer(-count, count - 1) if op != "SequenceEmpty" else 0
    if op == "SequenceInsert":
        sequence = c.node(op, [sequence, tensor()] + [c.steering(place, I64, 0)] * c.chance(0.6))
    elif op == "SequenceErase" and count > 1:
        sequence = c.node(op, [sequence] + [c.steering(place, I64, 0)] * c.chance(0.6))
        place = 0
    elif op == "SequenceMap":
        if c.opset < 17:
            raise LookupError
        info = lambda name: helper.make_tensor_value_info(name, code(dtype), None)
        name = c.prefix
        body = helper.make_graph([helper.make_node("Neg", [name + "bi"], [name + "bo"])], "body", [info(name + "bi")], [info(name + "bo")])
        sequence = c.node(op, [sequence], body=body)
    if op in ("SequenceAt", "SequenceMap"):
        c.node("SequenceAt", [sequence, c.steering(place, c.pick([I64, I32]), 0)])
    elif op == "SequenceLength":
        c.node(op, [sequence])
    else:
        stacks = c.integer(0, 1)
        c.node("ConcatFromSequence", [sequence], axis=c.axis(len(shape) + stacks), **({"new_axis": stacks} if stacks else {}))


@makes("Optional OptionalHasElement OptionalGetElement")
def optionals(c, op):
    x = c.value(c.data(c.shape(), c.pick([F32, I64])))
    if op == "OptionalHasElement" and c.opset >= 18 and c.chance(0.5):
        return c.node(op, [x] if c.chance(0.6) else [])
    optional = c.node("Optional", [x])
    return c.node("OptionalGetElement" if op == "Optional" else op, [optional])


@makes("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial")
def draws(c, op):
    """Numbers that the standard does not fix: only types and shapes are compared."""
    c.drawn = True
    dtype = c.pick([F32, F64, F16])
    attributes = c.maybe(seed=c.real(0, 9))
    if op in ("RandomNormal", "RandomUniform"):
        return c.node(op, [], shape=list(c.shape(1)), **attributes, **c.maybe(dtype=code(dtype)))
    if op == "Multinomial":
        return c.node(op, [c.value(c.data((c.integer(1, 3), c.integer(1, 4))))], **attributes,
                      **c.maybe(sample_size=c.integer(1, 5), dtype=code(c.pick([I32, I64]))))
    x = c.data(c.shape(), c.type_of(op), *((0, 1) if op == "Bernoulli" else ()))
    return c.node(op, [c.value(x)], **attributes, **c.maybe(dtype=code(dtype)))


def body_of(c, values, results, outer=(), steps=2):
    """Nodes that compute `results` values of the type and shape of the first of `values`."""
    inner = Case(c.random, c.opset, c.name("b"))
    inner.style = "constant"
    pool = list(values) + list(outer)
    for _ in range(c.integer(1, steps)):
        kind = c.pick(["Tanh", "Neg", "Sigmoid", "Abs", "Add", "Mul", "Sub", "Max"])
        pool.append(inner.node(kind, [c.pick(pool) for _ in range(1 if kind in ("Tanh", "Neg", "Sigmoid", "Abs") else 2)]))
    names = [inner.node("Identity", [pool[-1 - i % len(pool)]]) for i in range(results)]
    return inner.nodes, names


@makes("If")
def if_(c, op):
    shape = c.shape(0, 3)
    x, y = (c.value(c.data(shape, F32, -2, 2)) for _ in range(2))
    condition = c.steering(c.chance(0.5), BOOL, 0.6)
    results = c.integer(1, 2)
    branches = {}
    for name in ("then_branch", "else_branch"):
        nodes, names = body_of(c, [x], results, [y])
        branches[name] = helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names])
    c.node(op, [condition], outputs=results, **branches)


@makes("Loop")
def loop(c, op):
    shape = c.shape(0, 2, 1)
    state, outer = c.value(c.data(shape, F32, -1, 1)), c.value(c.data(shape, F32, -1, 1))
    scans, p = c.integer(0, 1), c.name("l")
    nodes, names = body_of(c, [p + "s"], 1 + scans, [outer])
    nodes.append(helper.make_node("Identity" if c.chance(0.7) else "Not", [p + "c"], [p + "d"]))
    info = helper.make_tensor_value_info
    c.has_reference = not scans  # it concatenates what is to be stacked
    body = helper.make_graph(nodes, "body", [info(p + "i", TensorProto.INT64, []), info(p + "c", TensorProto.BOOL, []),
                                             info(p + "s", TensorProto.FLOAT, list(shape) if c.chance(0.5) else None)],
                             [info(p + "d", TensorProto.BOOL, []), *(info(n, TensorProto.FLOAT, None) for n in names)])
    least = 1 if scans else 0  # the standard gives no shape to stacks of nothing
    count, condition = c.steering(c.integer(least, 4), I64, 0.5), c.steering(c.chance(0.85) or scans > 0, BOOL, 0.5)
    c.node(op, [count, condition if c.chance(0.6) else "", state], outputs=1 + scans, body=body)


@makes("Scan")
def scan(c, op):
    if c.opset < 9:
        raise LookupError
    length, shape = c.integer(1, 4), list(c.shape(0, 2, 1))
    axis = c.integer(0, len(shape))
    sequence = c.value(c.data([*shape[:axis], length, *shape[axis:]], F32, -1, 1))
    state, p = c.value(c.data(shape, F32, -1, 1)), c.name("k")
    nodes, names = body_of(c, [p + "s", p + "x"], 2)
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
    body = helper.make_graph(nodes, "body", [info(p + "s"), info(p + "x")], [info(n) for n in names])
    attributes = {"scan_input_axes": [axis]} if axis or c.chance(0.3) else {}
    attributes |= c.maybe(scan_input_directions=[c.integer(0, 1)], scan_output_directions=[c.integer(0, 1)])
    attributes |= {"scan_output_axes": [c.integer(0, len(shape))]} if c.chance(0.4) else {}
    c.node(op, [state, sequence], outputs=2, body=body, num_scan_inputs=1, **attributes)


def program(c):
    """A random directed graph of 3 to 12 nodes over values whose shapes are followed while it is built."""
    pool = []  # name, shape, whether its numbers are within about one unit
    c.scale = 200
    base = [c.size(1) for _ in range(c.integer(1, 4))]

    def leaf(shape):
        pool.append((c.value(c.data(shape, F32, -1, 1)), tuple(shape)))
        return pool[-1]

    def add(kind, inputs, shape, **attributes):
        pool.append((c.node(kind, inputs, **attributes), tuple(int(size) for size in shape)))

    leaf(base)
    for _ in range(c.integer(3, 12)):
        x, shape = c.pick(pool[-4:])
        rank, kind = len(shape), c.integer(0, 15)
        if np.prod(shape) > 3000:
            kind = 13
        if kind <= 1:
            add(c.pick(["Tanh", "Sigmoid", "Neg", "Abs", "Relu", "Erf", "Softplus", "Round", "Sin", "Identity"]), [x], shape)
        elif kind <= 4:
            same = [v for v in pool if v[1] == shape] + [leaf([1 if c.chance(0.4) else s for s in shape][c.integer(0, rank):])]
            other = c.pick(same)
            add(c.pick(["Add", "Sub", "Mul", "Max", "Min"]), [x, other[0]] if c.chance(0.5) else [other[0], x], shape)
        elif kind == 5 and rank:
            perm = [int(a) for a in c.random.permutation(rank)]
            add("Transpose", [x], [shape[a] for a in perm], perm=perm)
        elif kind == 6 and rank >= 1:
            k, n = shape[-1], c.size(1)
            add("MatMul", [x, leaf((k, n))[0]], (*shape[:-1], n))
            add("Tanh", [pool[-1][0]], pool[-1][1])
        elif kind == 7 and rank:
            axis = c.integer(0, rank - 1)
            keep = c.integer(0, 1)
            op = c.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
            out = [1 if i == axis else s for i, s in enumerate(shape) if i != axis or keep]
            if c.opset >= 18 or op == "ReduceSum" and c.opset >= 13:
                add(op, [x, c.steering([axis])], out, keepdims=keep)
            else:
                add(op, [x], out, axes=[axis], keepdims=keep)
        elif kind == 8 and rank > 1:
            c.has_reference &= c.opset >= 13 or rank <= 2  # it has one meaning of the axis
            add("Softmax", [x], shape, **({"axis": c.axis(rank)} if c.opset >= 13 else {}))
        elif kind == 9:
            target = [int(np.prod(shape))] if c.chance(0.5) else [*shape[:-2], int(np.prod(shape[-2:]))]
            add("Reshape", [x, c.steering([-1 if c.chance(0.3) and i == 0 else s for i, s in enumerate(target)])], target)
        elif kind == 10 and rank:
            axis = c.integer(0, rank - 1)
            other = [v for v in pool if len(v[1]) == rank and v[1][:axis] + v[1][axis + 1:] == shape[:axis] + shape[axis + 1:]]
            y = c.pick(other)
            add("Concat", [x, y[0]], [s + (y[1][axis] if i == axis else 0) for i, s in enumerate(shape)], axis=axis)
        elif kind == 11 and rank and c.opset >= 10:
            axis = c.integer(0, rank - 1)
            stop = c.integer(1, shape[axis])
            start = c.integer(0, stop - 1)
            add("Slice", [x, c.steering([start]), c.steering([stop]), c.steering([axis], I64, 0)],
                [stop - start if i == axis else s for i, s in enumerate(shape)])
        elif kind == 12 and rank and c.opset >= 17:
            add("LayerNormalization", [x, leaf(shape[-1:])[0]], shape)
        elif kind == 13 and rank:
            axis = c.integer(0, rank - 1)
            rows = c.integer(1, 4)
            indices = c.value(c.random.integers(0, shape[axis], rows).astype(I64))
            add("Gather", [x, indices], [rows if i == axis else s for i, s in enumerate(shape)], axis=axis)
        elif kind == 14:
            condition = c.node("Greater", [x, c.value(np.array(0.1, F32))]) if c.opset >= 9 else None
            if condition:
                add("Where", [condition, x, leaf(shape)[0]], shape)
        elif kind == 15 and c.opset >= 13:
            flag = c.node("Greater", [c.node("ReduceSum", [x], keepdims=0), c.value(np.array(0.3141, F32))])  # no sum by design
            branches = {}
            for name in ("then_branch", "else_branch"):
                nodes, names = body_of(c, [x], 1)
                branches[name] = helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, None)])
            add("If", [flag], shape, **branches)
            c.outputs = [name for name in c.outputs if name != x]
    if c.chance(0.4):  # a value in the middle, too
        made = {name for node in c.nodes if node.op_type != "Constant" for name in node.output}
        inner = [name for name, _ in pool if name in made and name not in c.outputs]
        c.outputs += [c.pick(inner)] if inner else []
