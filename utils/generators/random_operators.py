"""Random nodes of the operators that compute element by element, move, index and reduce; see check-random-models."""
import numpy as np

from random_models import BF16, BOOL, F16, F32, F64, I32, I64, TYPES, code, is_float, is_signed

# Operator -> function(case, operator) that adds nodes to the case.
GENERATORS = {}


def makes(names):
    def register(function):
        GENERATORS.update(dict.fromkeys(names.split(), function))
        return function
    return register


DOMAINS = {"Acosh": (1, 9), "Asin": (-1, 1), "Acos": (-1, 1), "Atanh": (-0.95, 0.95), "Log": (0.01, 9), "Sqrt": (0, 9),
           "Tan": (-1.4, 1.4), "Sinh": (-5, 5), "Cosh": (-5, 5), "Reciprocal": (0.1, 4)}


@makes("Neg Exp Log Sqrt Reciprocal Erf Tanh Sigmoid Relu Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Sign Not "
       "BitwiseNot IsNaN IsInf Abs Floor Ceil Round Identity LeakyRelu Elu Selu Celu HardSigmoid HardSwish Mish Softplus "
       "Softsign ThresholdedRelu Shrink Gelu Swish Size NonZero")
def unary(c, op):
    dtype = c.type_of(op)
    low, high = DOMAINS.get(op, (None, None))
    c.has_runtime = op != "Shrink" or is_float(dtype)  # it computes those in f32
    attributes = {"LeakyRelu": {"alpha": c.real(-1, 1)}, "Elu": {"alpha": c.real(0.1, 2)},
                  "Selu": {"alpha": c.real(0.5, 2), "gamma": c.real(0.5, 2)}, "Celu": {"alpha": c.real(0.5, 2)},
                  "HardSigmoid": {"alpha": c.real(0.1, 1), "beta": c.real(-1, 1)},
                  "ThresholdedRelu": {"alpha": c.real(-1, 1)}, "Swish": {"alpha": c.real(-2, 2)},
                  "Shrink": {"lambd": c.real(0, 2), "bias": c.real(-1, 1)},
                  "Gelu": {"approximate": c.pick(["none", "tanh"])},
                  "IsInf": {"detect_negative": c.integer(0, 1), "detect_positive": c.integer(0, 1)}}.get(op, {})
    c.node(op, [c.value(c.data(c.shape(), dtype, low, high, special=True))], **c.maybe(**attributes))


@makes("Add Sub Mul Div And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Less LessOrEqual Greater GreaterOrEqual Mod "
       "BitShift PRelu")
def binary(c, op):
    dtype = c.type_of(op)
    a, b, whole = c.broadcasting(2)
    attributes = {}
    if op == "BitShift":
        attributes["direction"] = c.pick(["LEFT", "RIGHT"])
    if op == "PRelu":  # one way
        a = whole
    # A slope of infinity: what stands at 0 is 0 by the standard, NaN by the reference evaluator.
    x, y = c.data(a, dtype, special=True), c.data(b, dtype, special=op not in ("Mod", "PRelu"))
    if op in ("Div", "Mod"):
        if is_float(dtype):
            y = np.where(np.abs(y) < 0.25, np.asarray(0.5, dtype), y)
            attributes |= {"fmod": 1} if op == "Mod" else {}
        else:
            y = np.where((y == 0) | (y == -1 if is_signed(dtype) else False), np.asarray(3, dtype), y)
            attributes |= {"fmod": c.integer(0, 1)} if op == "Mod" and c.chance(0.6) else {}
            c.has_runtime = not attributes.get("fmod") or dtype.itemsize < 8  # it takes remainders of doubles
    if op == "BitShift":
        y = (y % (8 * dtype.itemsize)).astype(dtype)
    c.node(op, [c.value(x), c.value(y)], **attributes)


@makes("Pow")
def power(c, op):
    dtype, own = c.type_of(op), c.type_of(op, 1)
    a, b, _ = c.broadcasting(2)
    x = c.data(a, dtype, 0.1, 3) if is_float(dtype) else c.data(a, dtype, 1 if is_signed(own) else -4, 5)
    y = c.data(b, own, -2, 3) if is_float(own) else c.data(b, own, 0, 4)
    if is_float(dtype) and c.chance(0.3):
        y = c.pick([2, 3, 0.5, 0, 1, -1 if is_signed(own) else 1]) * np.ones(b)
    c.node(op, [c.value(x), c.value(y.astype(own))])


@makes("Min Max Sum Mean")
def variadic(c, op):
    dtype, count = c.type_of(op), c.integer(1, 4)
    shapes = c.broadcasting(count)[:-1]
    c.node(op, [c.value(c.data(shape, dtype, special=True)) for shape in shapes])


@makes("Where")
def where(c, op):
    condition, a, b, _ = c.broadcasting(3)
    dtype = c.type_of(op, 1)
    c.node(op, [c.value(c.data(condition, BOOL)), c.value(c.data(a, dtype, special=True)), c.value(c.data(b, dtype, special=True))])


@makes("Clip")
def clip(c, op):
    dtype = c.type_of(op)
    x = c.value(c.data(c.shape(), dtype, special=True))
    low, high = sorted([c.integer(0 if not is_signed(dtype) else -5, 5), c.integer(0, 7)])
    if c.opset < 11:
        c.node(op, [x], **c.maybe(min=float(low), max=float(high)))
    else:
        bounds = [c.value(np.array(bound, dtype)) if c.chance(0.7) else "" for bound in (low, high)]
        c.node(op, [x, *bounds])


@makes("Cast CastLike")
def cast(c, op):
    source, target = c.type_of("Cast"), c.type_of("Cast")
    shape = c.shape()
    if is_float(source) and not is_float(target):
        x = c.data(shape, source, 0 if not is_signed(target) else -99, 99)
    else:
        x = c.data(shape, source, special=is_float(target) or target == BOOL)
    if op == "Cast":
        c.node(op, [c.value(x)], to=code(target))
    else:
        c.node(op, [c.value(x), c.value(np.ones(c.shape(0, 2), target))])


@makes("BitCast")
def bitcast(c, op):
    source = c.type_of(op)
    same = [dtype for dtype in TYPES.values() if dtype.itemsize == source.itemsize and BOOL not in (dtype, source)] or [source]
    c.node(op, [c.value(c.data(c.shape(), source))], to=code(c.pick(same)))


@makes("Softmax LogSoftmax Hardmax")
def softmax(c, op):
    shape, dtype = c.shape(1), c.type_of(op)
    numbers = c.distinct(shape, dtype) if op == "Hardmax" else c.data(shape, dtype)
    c.has_reference &= c.opset >= 13  # it has one meaning of the axis
    axis = {"axis": c.axis(len(shape))}  # the default of old opsets, 1, is none of a vector
    c.node(op, [c.value(numbers)], **(axis if c.opset < 13 and len(shape) == 1 else c.maybe(**axis)))


@makes("Shape")
def shape(c, op):
    rank = c.integer(0, 5)
    limits = c.maybe(start=c.integer(-rank - 2, rank + 2), end=c.integer(-rank - 2, rank + 2)) if c.opset >= 15 else {}
    c.node(op, [c.value(c.data(c.shape(rank, rank), c.type_of(op)))], **limits)


@makes("ConstantOfShape")
def constant_of_shape(c, op):
    from onnx import numpy_helper
    dtype = c.pick([dtype for dtype in TYPES.values() if dtype != BF16 or c.opset >= 20])
    c.node(op, [c.steering(c.shape())], **c.maybe(value=numpy_helper.from_array(c.data((1,), dtype))))


@makes("Range")
def range_(c, op):
    dtype = c.type_of(op, among=[F32, F64, I32, I64, TYPES["int16"]])
    start, step = c.integer(-5, 5), c.pick([-3, -2, -1, 1, 2, 5]) * (0.5 if is_float(dtype) else 1)
    c.node(op, [c.steering(number, dtype) for number in (start, start + step * c.integer(-2, 9), step)])


@makes("EyeLike")
def eye_like(c, op):
    dtype = c.pick([F32, F64, I32, I64, F16, TYPES["uint64"]])
    c.node(op, [c.value(c.data(c.shape(2, 2), c.type_of(op)))], **c.maybe(k=c.integer(-5, 5), dtype=code(dtype)))


@makes("OneHot")
def one_hot(c, op):
    shape, depth = c.shape(0, 3), c.integer(1, 6)
    c.has_reference = False  # it wraps what is out of range
    given, deep, held = c.pick([(I64, I64, I64), (I64, I64, F32), (F32, F32, F32), (I64, I32, F32), (I32, I32, F32),
                                (I64, F32, F32), tuple(c.type_of(op, i, among=[I64, I32, F32]) for i in range(3))])
    indices = c.data(shape, given, -depth - 2, depth + 1)
    if is_float(indices.dtype):
        indices = np.floor(indices)
    depth_value = c.steering(depth if c.chance(0.5) else [depth], deep)
    c.node(op, [c.value(indices), depth_value, c.value(c.data((2,), held))], **c.maybe(axis=c.axis(len(shape) + 1)))


@makes("Trilu")
def trilu(c, op):
    inputs = [c.value(c.data(c.shape(2), c.type_of(op), special=True))]
    c.node(op, inputs + [c.steering(c.integer(-6, 6))] * c.chance(0.7), **c.maybe(upper=c.integer(0, 1)))


@makes("HannWindow HammingWindow BlackmanWindow")
def window(c, op):
    dtype = c.pick([F32, F64, F16])
    # From 3: a window of 2 may hold nothing but what rounding leaves of 0.
    c.node(op, [c.steering(c.integer(3, 20), c.pick([I32, I64]))], **c.maybe(periodic=c.integer(0, 1), output_datatype=code(dtype)))


@makes("Transpose")
def transpose(c, op):
    shape = c.shape()
    perm = [int(axis) for axis in c.random.permutation(len(shape))]
    c.node(op, [c.value(c.data(shape, c.type_of(op), special=True))], **c.maybe(perm=perm) if shape else {})


@makes("Reshape")
def reshape(c, op):
    shape = c.shape()
    count = int(np.prod(shape))
    target, rest = [], count
    for _ in range(c.integer(0, 4)):
        part = c.pick([n for n in range(1, rest + 1) if rest % n == 0] if rest else [0, 1, 2, 3])
        target.append(part)
        rest = rest // part if part else 0
    target = target + [rest] if rest != 1 or c.chance(0.3) else target
    if count == 0 and np.prod(target) != 0:
        target = [0]
    attributes = c.maybe(allowzero=1) if c.opset >= 14 else {}
    if not attributes:
        if 0 in target:  # copies the size of the input
            target = list(shape)
        target = [0 if i < len(shape) and size == shape[i] and c.chance(0.3) else size for i, size in enumerate(target)]
    if target and (0 not in target or not attributes) and count and c.chance(0.4):
        target[c.integer(0, len(target) - 1)] = -1
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.steering(target)], **attributes)


@makes("Flatten")
def flatten(c, op):
    shape = c.shape(0 if c.opset >= 9 else 1)
    axis = c.integer(-len(shape) if c.opset >= 11 else 0, len(shape))
    c.node(op, [c.value(c.data(shape, c.type_of(op)))], **c.maybe(axis=axis) if shape else {"axis": 0})


@makes("Squeeze Unsqueeze")
def squeeze(c, op):
    shape = list(c.shape(0, 4))
    if op == "Squeeze":
        for _ in range(c.integer(0, 2)):
            shape.insert(c.integer(0, len(shape)), 1)
        axes, rank = [i for i, size in enumerate(shape) if size == 1 and c.chance(0.8)], len(shape)
    else:
        rank = len(shape) + c.integer(0 if c.opset >= 13 else 1, 2)
        axes = sorted(int(a) for a in c.random.choice(rank, rank - len(shape), replace=False))
    if c.opset >= 11:
        axes = [a - rank if c.chance(0.3) else a for a in axes]
    if c.opset >= 13 and c.chance(0.5):
        c.random.shuffle(axes)
    x = c.value(c.data(shape, c.type_of(op)))
    if op == "Squeeze" and (not axes or c.chance(0.2)):
        c.node(op, [x])
    elif c.opset >= 13:
        c.node(op, [x, c.steering(axes)])
    else:
        c.node(op, [x], axes=axes)


@makes("Expand")
def expand(c, op):
    a, b, _ = c.broadcasting(2)
    c.node(op, [c.value(c.data(a, c.type_of(op))), c.steering(b)])


@makes("Tile")
def tile(c, op):
    shape = c.shape(1, 4)
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.steering([c.pick([0, 1, 1, 2, 3]) for _ in shape])])


@makes("Concat")
def concat(c, op):
    shape, dtype = list(c.shape(1, 4)), c.type_of(op)
    axis = c.axis(len(shape)) if c.opset >= 11 else c.integer(0, len(shape) - 1)
    parts = []
    for _ in range(c.integer(1, 4)):
        shape[axis] = c.size()
        parts.append(c.value(c.data(shape, dtype, special=True)))
    c.node(op, parts, axis=axis)


@makes("DepthToSpace SpaceToDepth")
def depth_to_space(c, op):
    block, (n, d, h, w) = c.integer(1, 3), (c.size() for _ in range(4))
    shape = (n, d * block * block, h, w) if op == "DepthToSpace" else (n, d, h * block, w * block)
    mode = c.maybe(mode=c.pick(["DCR", "CRD"])) if op == "DepthToSpace" and c.opset >= 11 else {}
    c.node(op, [c.value(c.data(shape, c.type_of(op)))], blocksize=block, **mode)


@makes("Slice")
def slice_(c, op):
    shape = c.shape(1)
    x = c.value(c.data(shape, c.type_of(op)))
    axes = sorted(int(a) for a in c.random.choice(len(shape), c.integer(1, len(shape)), replace=False))
    bound = lambda: c.pick([c.integer(-9, 9), 0, -1, 2**31 - 1, -2**31, c.integer(0, 4)])
    starts, ends = [[bound() for _ in axes] for _ in range(2)]
    if c.opset < 10:
        return c.node(op, [x], starts=starts, ends=ends, **({} if axes == list(range(len(axes))) else {"axes": axes}))
    dtype = c.pick([I64, I64, I32])
    if dtype == I64 and c.chance(0.2):
        ends[0] = c.pick([2**63 - 1, -2**63])
    steps = [c.pick([1, 1, 2, 3, -1, -2, -7]) for _ in axes] if c.chance(0.5) else None
    for i, step in enumerate(steps or []):
        if step < 0 and ends[i] in (2**31 - 1, 2**63 - 1):  # ONNX Runtime goes to the front then, the standard nowhere
            ends[i] = 2**31
    ends = [min(end, 2**31 - 2) for end in ends] if dtype == I32 else ends
    inputs = [c.steering(starts, dtype), c.steering(ends, dtype)]
    if axes != list(range(len(axes))) or steps or c.chance(0.5):
        inputs.append(c.steering([a - len(shape) if c.chance(0.3) else a for a in axes], dtype, 0.1))
        inputs += [c.steering(steps, dtype, 0.15)] if steps else []
    return c.node(op, [x, *inputs])


@makes("Split")
def split(c, op):
    shape, parts = list(c.shape(1, 4)), c.integer(1, 4)
    axis = c.axis(len(shape)) if c.opset >= 11 else c.integer(0, len(shape) - 1)
    sizes = [c.integer(0, 3) for _ in range(parts)] if c.chance(0.5) else None
    shape[axis] = sum(sizes) if sizes else parts * c.integer(1, 3)
    attributes = {} if axis == 0 and c.chance(0.5) else {"axis": axis}
    inputs = [c.value(c.data(shape, c.type_of(op)))]
    if c.opset >= 13 and sizes:
        inputs.append(c.steering(sizes))
    elif sizes:
        attributes["split"] = sizes
    elif c.opset >= 18:
        attributes["num_outputs"] = parts
    c.node(op, inputs, outputs=parts, **attributes)


@makes("Pad")
def pad(c, op):
    shape = c.shape(1, 4)
    mode = c.pick(["constant", "constant", "reflect", "edge"] + ["wrap"] * (c.opset >= 19))
    dtype = c.type_of(op)
    axes = list(range(len(shape)))
    if c.opset >= 18 and c.chance(0.4):
        axes = sorted(int(a) for a in c.random.choice(len(shape), c.integer(1, len(shape)), replace=False))
    pads = []
    for _ in range(2):
        for a in axes:
            limit = {"constant": 3, "edge": 3 if shape[a] else 0}.get(mode, min(3, max(shape[a] - 1, 0)))
            pads.append(c.integer(0, limit) if mode != "constant" or c.chance(0.7) else -c.integer(0, shape[a] // 2))
    x, attributes = c.value(c.data(shape, dtype)), {} if mode == "constant" and c.chance(0.5) else {"mode": mode}
    if c.opset < 11:
        return c.node(op, [x], pads=pads, **attributes, **(c.maybe(value=c.real(-3, 3)) if mode == "constant" else {}))
    fill = c.value(c.data((), dtype)) if mode == "constant" and c.chance(0.5) else ""
    used = len(axes) < len(shape) or c.opset >= 18 and c.chance(0.3)
    axes = [c.steering([a - len(shape) if c.chance(0.3) else a for a in axes], c.pick([I64, I32]), 0.1)] if used else []
    return c.node(op, [x, c.steering(pads), fill, *axes])


@makes("CenterCropPad")
def center_crop_pad(c, op):
    shape = c.shape(1, 4)
    axes = sorted(int(a) for a in c.random.choice(len(shape), c.integer(1, len(shape)), replace=False))
    some = {"axes": axes} if len(axes) < len(shape) or c.chance(0.5) else {}
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.steering([c.size() for _ in axes])], **some)


@makes("Gather")
def gather(c, op):
    shape = list(c.shape(1, 4))
    axis = c.axis(len(shape))
    shape[axis] = c.size(1)
    low = -shape[axis] if c.opset >= 11 else 0
    indices = c.data(c.shape(0, 3), c.pick([I64, I32]), low, shape[axis] - 1)
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.value(indices % shape[axis] if low == 0 else np.clip(indices, low, shape[axis] - 1))],
           **({} if axis == 0 and c.chance(0.5) else {"axis": axis}))


@makes("GatherElements Scatter ScatterElements")
def elements(c, op):
    shape, dtype = list(c.shape(1, 4, 1)), c.type_of(op)
    axis = c.axis(len(shape)) if c.opset >= 11 else c.integer(0, len(shape) - 1)
    axis = axis % len(shape)
    chosen = [c.integer(0, size) for size in shape]
    reductions = ["none"] + ["add", "mul"] * (c.opset >= 16) + ["max", "min"] * (c.opset >= 18)
    reduction = c.pick(reductions) if op == "ScatterElements" else "none"
    if dtype == BOOL and reduction in ("mul", "add"):
        reduction = "none"
    if op == "GatherElements" or reduction != "none":
        if op == "GatherElements":
            chosen[axis] = c.size()
            c.has_reference &= 0 not in chosen  # of nothing, its result has one axis
        indices = c.random.integers(0, shape[axis], chosen)
    else:  # each place once
        indices = np.argsort(c.random.random([*chosen[:axis], shape[axis], *chosen[axis + 1:]]), axis=axis)
        indices = np.take(indices, range(chosen[axis]), axis=axis)
    if c.opset >= 11 and c.chance(0.5):
        indices = np.where(c.random.random(indices.shape) < 0.5, indices - shape[axis], indices)
    inputs = [c.value(c.data(shape, dtype)), c.value(indices.astype(c.pick([I64, I32])))]
    if op != "GatherElements":
        inputs.append(c.value(c.data(chosen, dtype)))
    attributes = {} if axis == 0 else {"axis": axis - len(shape) if c.opset >= 11 and c.chance(0.4) else axis}
    c.node(op, inputs, **attributes, **({"reduction": reduction} if reduction != "none" else {}))


@makes("GatherND ScatterND")
def tuples(c, op):
    shape, dtype = c.shape(1, 4, 1), c.type_of(op)
    batch = c.integer(0, len(shape) - 1) if op == "GatherND" and c.opset >= 12 and c.chance(0.4) else 0
    depth = c.integer(1, len(shape) - batch)
    outer = c.shape(0, 2) if op == "GatherND" else (c.integer(0, 3),)
    if op == "GatherND":
        indices = np.stack([c.random.integers(-size if c.opset >= 11 else 0, size, (*shape[:batch], *outer))
                            for size in shape[batch:batch + depth]], -1)
        return c.node(op, [c.value(c.data(shape, dtype)), c.value(indices.astype(I64))], **({"batch_dims": batch} if batch else {}))
    reductions = ["none"] + ["add", "mul"] * (c.opset >= 16) + ["max", "min"] * (c.opset >= 18)
    reduction = c.pick(reductions) if dtype != BOOL else "none"
    places = int(np.prod(shape[:depth]))
    flat = c.random.choice(places, min(outer[0], places), replace=False) if reduction == "none" else c.random.integers(0, places, outer)
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).reshape(len(flat), depth)
    return c.node(op, [c.value(c.data(shape, dtype)), c.value(indices.astype(I64)), c.value(c.data((len(flat), *shape[depth:]), dtype))],
                  **({"reduction": reduction} if reduction != "none" else {}))


@makes("Compress")
def compress(c, op):
    shape = c.shape(1, 4, 1)
    axis = c.axis(len(shape)) if c.opset >= 11 else c.integer(0, len(shape) - 1)
    whole = c.chance(0.4)
    count = int(np.prod(shape)) if whole else shape[axis]
    condition = c.data((c.integer(1, count),), BOOL)
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.value(condition)], **({} if whole else {"axis": axis}))


@makes("TopK")
def top_k(c, op):
    shape = list(c.shape(1, 4))
    axis, dtype = c.axis(len(shape)), c.type_of(op, among=[F32, F64, F16, I64, I32])
    shape[axis] = c.size(1)
    k = c.integer(0 if c.chance(0.1) else 1, shape[axis])
    x = c.value(c.distinct(shape, dtype))
    attributes = {} if axis == -1 else {"axis": axis if c.opset >= 11 else axis % len(shape)}
    if c.opset < 10:
        return c.node(op, [x], outputs=2, k=max(k, 1), **attributes)
    attributes |= c.maybe(largest=c.integer(0, 1)) if c.opset >= 11 else {}
    return c.node(op, [x, c.steering([k])], outputs=2, **attributes)


@makes("ReverseSequence")
def reverse_sequence(c, op):
    shape, first = c.shape(2, 4, 1), c.integer(0, 1)
    lengths = c.random.integers(1, shape[first] + 1, shape[1 - first])
    c.node(op, [c.value(c.data(shape, c.type_of(op))), c.value(lengths.astype(I64))],
           **({} if first == 0 and c.chance(0.5) else {"time_axis": first, "batch_axis": 1 - first}))


@makes("TensorScatter")
def tensor_scatter(c, op):
    shape = list(c.shape(3, 4, 1))
    axis, dtype = c.integer(1, len(shape) - 1), c.type_of(op)
    c.has_reference &= dtype != BF16  # of which it computes numbers that neither operand holds
    update = list(shape)
    update[axis] = c.integer(1, shape[axis])
    circular = c.chance(0.5)
    most = shape[axis] - (0 if circular else update[axis])
    where = [c.value(c.random.integers(0, max(most, 1) if circular else most + 1, shape[0]).astype(I64))] if c.chance(0.7) else []
    c.node(op, [c.value(c.data(shape, dtype)), c.value(c.data(update, dtype)), *where],
           axis=axis if c.chance(0.5) else axis - len(shape), **({"mode": "circular"} if circular else {}))


@makes("Unique")
def unique(c, op):
    shape = c.shape(1, 3, 1)
    numbers = c.data(shape, c.type_of(op, among=[F32, F64, I64, TYPES["int8"]]), 0, 3)
    numbers = np.round(numbers.astype(F64)).astype(numbers.dtype)
    c.node(op, [c.value(numbers)], outputs=c.integer(1, 4),
           **c.maybe(sorted=c.integer(0, 1), axis=c.axis(len(shape))))


@makes("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare")
def reduce(c, op):
    shape, dtype = c.shape(0, 5, 1), c.type_of(op)  # evaluators do not agree on sums of nothing
    if not is_float(dtype):
        numbers = c.data(shape, dtype, -2, 2) if "Log" not in op and "L2" not in op else c.data(shape, dtype, 1, 3)
    else:
        numbers = c.data(shape, dtype, *((0.1, 2) if op in ("ReduceLogSum", "ReduceProd") else (None, None)))
    c.scale, c.has_reference = 10, dtype != BF16  # it adds in bf16
    rank = len(shape)
    attributes = c.maybe(keepdims=c.integer(0, 1))
    axes = sorted(int(a) for a in c.random.choice(rank, c.integer(0 if c.chance(0.2) else 1, rank), replace=False)) if rank else []
    if c.opset >= 11:
        axes = [a - rank if c.chance(0.3) else a for a in axes]
    as_input = c.opset >= 18 or op == "ReduceSum" and c.opset >= 13
    x = c.value(numbers)
    if not as_input:
        return c.node(op, [x], **attributes, **({"axes": axes} if axes and c.chance(0.85) else {}))
    attributes |= c.maybe(noop_with_empty_axes=c.integer(0, 1))
    return c.node(op, [x, c.steering(axes)] if c.chance(0.85) else [x], **attributes)


@makes("ArgMax ArgMin")
def arg_max(c, op):
    # Of no elements, ONNX Runtime's result has the shape of the input.
    shape = [max(size, 1) for size in c.shape(1, 4)]
    axis, dtype = c.axis(len(shape)) if c.opset >= 11 else 0, c.type_of(op)
    shape[axis] = c.size(1)
    last = c.maybe(select_last_index=c.integer(0, 1)) if c.opset >= 12 else {}
    c.node(op, [c.value(c.data(shape, dtype))], **({} if axis == 0 and c.chance(0.5) else {"axis": axis}),
           **c.maybe(keepdims=c.integer(0, 1)), **last)


@makes("CumSum CumProd")
def cumulative(c, op):
    shape, dtype = c.shape(1, 4), c.type_of(op)
    c.scale = 10
    numbers = c.data(shape, dtype, *((0.5, 1.5) if is_float(dtype) else (1, 2)) if op == "CumProd" else (None, None))
    c.node(op, [c.value(numbers), c.steering(c.axis(len(shape)), c.pick([I64, I32]))],
           **c.maybe(exclusive=c.integer(0, 1), reverse=c.integer(0, 1)))
