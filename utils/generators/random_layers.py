"""Random nodes of the operators that layers are made of: products, norms, windows, recurrences, losses, control flow."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from random_models import BF16, BOOL, F16, F32, F64, I32, I64, TYPES, code, is_float
from random_operators import makes

I8, U8 = TYPES["int8"], TYPES["uint8"]


@makes("MatMul MatMulInteger QLinearMatMul")
def matmul(c, op):
    m, k, n = c.size(), c.size(), c.size()
    dtype = c.type_of(op) if op == "MatMul" else None
    if k == 0 and not is_float(dtype or I8):
        k = 1  # ONNX Runtime leaves sums of no integers as the memory was, and does not broadcast them
    batch_a, batch_b, _ = c.broadcasting(2, 0, 2)
    if np.prod(batch_a) * m * k > 5000 or np.prod(batch_b) * k * n > 5000:
        batch_a = batch_b = ()
    a, b = (*batch_a, m, k), (*batch_b, k, n)
    if op == "MatMul" and c.chance(0.15):
        a = (k,)
    if op == "MatMul" and c.chance(0.15):
        b = (k,)
    if op == "MatMul":
        c.scale = 10
        return c.node(op, [c.value(c.data(a, dtype)), c.value(c.data(b, dtype))])
    types = [c.pick([I8, U8]) for _ in range(2)]
    x, y = (c.value(c.data(shape, dtype, -99, 99)) for shape, dtype in zip((a, b), types))
    zero = lambda dtype, shape=(): c.value(c.data(shape, dtype, 0, 5))
    if op == "MatMulInteger":
        wide = (n,) if c.chance(0.3) and len(b) == 2 else ()
        return c.node(op, [x, y, zero(types[0]) if c.chance(0.6) else "", zero(types[1], wide) if c.chance(0.6) else ""])
    scale = lambda low: c.value(np.array(c.real(low, 0.1), F32))
    out = types[0]
    return c.node(op, [x, scale(0.01), zero(types[0]), y, scale(0.01), zero(types[1]), scale(0.05), zero(out)])


@makes("Gemm")
def gemm(c, op):
    m, k, n = c.size(), c.size(), c.size()
    ta, tb, dtype = c.integer(0, 1), c.integer(0, 1), c.type_of(op)
    bias = c.pick([(m, n), (n,), (1, n), (m, 1), (), (1,), (1, 1)])
    c.scale = 10
    if not is_float(dtype):
        c.has_reference = False  # it multiplies integers as floats
    inputs = [c.value(c.data((k, m) if ta else (m, k), dtype)), c.value(c.data((n, k) if tb else (k, n), dtype))]
    if c.opset < 11 or c.chance(0.7):
        inputs.append(c.value(c.data(bias, dtype)))
    flags = {name: flag for name, flag in (("transA", ta), ("transB", tb)) if flag or c.chance(0.3)}
    scales = c.maybe(alpha=c.real(-2, 2), beta=c.real(-2, 2)) if is_float(dtype) else {}
    c.node(op, inputs, **flags, **scales)


@makes("Einsum")
def einsum(c, op):
    size = {letter: c.size(1) for letter in "abcdij"}
    equation = c.pick(["ij->ji", "ij,jd->id", "aij,ajd->aid", "ii->i", "ii", "i,j->ij", "ij,ij->", "ij->", "abij,abdj->abid",
                       "ij,jd", "...ij,...jd->...id", "...i->...", "aij,ad->adij", "ab,bc,cd->ad", "i...->...i", "aib,bjc->aijc"])
    terms = equation.split("->")[0].split(",")
    dots, dtype = c.shape(0, 2, 1), c.type_of(op, among=[F32, F64, I64, I32])
    arrays = []
    for term in terms:
        front, mid, back = term.partition("...")
        shape = [size[l] for l in front] + (list(dots) if mid else []) + [size[l] for l in back]
        arrays.append(c.value(c.data(shape, dtype)))
    c.scale = 10
    c.node(op, arrays, equation=equation)


def window_attributes(c, spatial, kernel, dilates=True, ceil=False):
    """Attributes of a sliding window, and the sizes of an input that it fits on."""
    attributes = c.maybe(strides=[c.integer(1, 3) for _ in range(spatial)])
    if dilates:
        attributes |= c.maybe(dilations=[c.integer(1, 2) for _ in range(spatial)])
    choice = c.pick(["none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if choice == "pads":
        attributes["pads"] = [c.integer(0, k - 1) for _ in range(2) for k in kernel]
    elif choice != "none":
        attributes["auto_pad"] = choice
        c.has_reference = False  # it forgets the dilation
        if choice.startswith("SAME"):
            attributes.pop("dilations", None)
            if "strides" in attributes:  # else the padding is negative
                attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel)]
    if ceil:
        attributes |= c.maybe(ceil_mode=c.integer(0, 1))
    dilations = attributes.get("dilations", [1] * spatial)
    sizes = [d * (k - 1) + 1 + c.integer(0, 5) for d, k in zip(dilations, kernel)]
    return attributes, sizes


@makes("Conv ConvInteger QLinearConv")
def conv(c, op):
    spatial, group = c.integer(1, 3), c.pick([1, 1, 2, 3])
    kernel = [c.integer(1, 4) for _ in range(spatial)]
    attributes, sizes = window_attributes(c, spatial, kernel)
    ins, outs, batch = group * c.integer(1, 3), group * c.integer(1, 3), c.pick([0, 1, 1, 2])
    shapes = (batch, ins, *sizes), (outs, ins // group, *kernel)
    attributes |= {"group": group} if group > 1 else {}
    attributes |= c.maybe(kernel_shape=kernel)
    if op == "Conv":
        dtype = c.type_of(op)
        c.scale = 10
        inputs = [c.value(c.data(shapes[0], dtype)), *(c.weight(c.data(shape, dtype)) for shape in (shapes[1], (outs,)))]
        return c.node(op, inputs[:c.integer(2, 3)], **attributes)
    types = (U8, c.pick([I8, U8]))
    x, w = c.value(c.data(shapes[0], types[0], -99, 99)), c.weight(c.data(shapes[1], types[1], -99, 99))
    zeros = [c.value(c.data((), dtype, 0, 5)) for dtype in types]
    if op == "ConvInteger":
        return c.node(op, [x, w, *zeros[:c.integer(0, 2)]], **attributes)
    scale = lambda shape=(): c.value(np.asarray(c.data(shape, F32, 0.01, 0.1)))
    wide = (outs,) if c.chance(0.5) else ()
    inputs = [x, scale(), zeros[0], w, scale(wide), c.value(np.zeros(wide, types[1])), scale(), c.value(np.array(7, U8))]
    return c.node(op, inputs + [c.value(c.data((outs,), I32))] * c.chance(0.5), **attributes)


@makes("ConvTranspose")
def conv_transpose(c, op):
    spatial, group = c.integer(1, 3), c.pick([1, 1, 2])
    kernel = [c.integer(1, 3) for _ in range(spatial)]
    strides = [c.integer(1, 3) for _ in range(spatial)]
    attributes = {"strides": strides, **c.maybe(kernel_shape=kernel, dilations=[c.integer(1, 2) for _ in range(spatial)])}
    same = ["SAME_UPPER", "SAME_LOWER"] * all(s <= k for s, k in zip(strides, kernel))  # else the padding is negative
    choice = c.pick(["none", "pads", "output_padding", "VALID", *same])
    if choice == "pads":
        attributes["pads"] = [c.integer(0, k - 1) for _ in range(2) for k in kernel]
    elif choice == "output_padding":
        attributes[choice] = [c.integer(0, s - 1) for s in strides]
    elif choice != "none":
        attributes["auto_pad"] = choice
        attributes.pop("dilations", None)
    ins, outs, dtype = group * c.integer(1, 2), c.integer(1, 3), c.type_of(op)
    shapes = (c.pick([1, 2]), ins, *(c.integer(2, 5) for _ in kernel)), (ins, outs, *kernel), (outs * group,)
    c.scale = 10
    inputs = [c.value(c.data(shapes[0], dtype)), *(c.weight(c.data(shape, dtype)) for shape in shapes[1:])]
    c.node(op, inputs[:c.integer(2, 3)], **attributes, **({"group": group} if group > 1 else {}))


@makes("MaxPool AveragePool LpPool")
def pool(c, op):
    spatial = c.integer(1, 3)
    kernel = [c.integer(1, 4) for _ in range(spatial)]
    dilates = c.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    attributes, sizes = window_attributes(c, spatial, kernel, dilates, c.opset >= {"LpPool": 18}.get(op, 10))
    dtype = c.type_of(op)
    if op == "AveragePool":
        attributes |= c.maybe(count_include_pad=c.integer(0, 1))
    if op == "LpPool":
        attributes |= c.maybe(p=c.integer(1, 3))
    outputs = 2 if op == "MaxPool" and c.opset >= 8 and c.chance(0.3) else 1
    if outputs == 2:
        attributes |= c.maybe(storage_order=c.integer(0, 1))
    c.has_reference = False  # it takes some pads of one axis for those of the other
    shape = (c.pick([0, 1, 2]), c.integer(1, 3), *sizes)
    c.scale = 10
    c.node(op, [c.value(c.distinct(shape, dtype) if outputs == 2 else c.data(shape, dtype))], outputs=outputs,
           kernel_shape=kernel, **attributes)


@makes("GlobalMaxPool GlobalAveragePool GlobalLpPool")
def global_pool(c, op):
    c.has_reference = False  # it pools some ranks only
    c.scale = 10
    c.node(op, [c.value(c.data(c.shape(3, 5, 1), c.type_of(op)))], **(c.maybe(p=c.integer(1, 3)) if op == "GlobalLpPool" else {}))


@makes("LayerNormalization RMSNormalization")
def layer_norm(c, op):
    shape, dtype = c.shape(1, 4, 1), c.type_of(op)
    axis = c.axis(len(shape))
    scale = c.value(c.data(shape[axis:] if axis < 0 else shape[axis:], dtype))
    c.scale = 50
    attributes = {**({} if axis == -1 else {"axis": axis}), **c.maybe(epsilon=1e-3)}
    if op == "RMSNormalization":
        return c.node(op, [c.value(c.data(shape, dtype)), scale], **attributes)
    bias = [c.value(c.data(shape[axis:], dtype))] if c.chance(0.6) else []
    x, results = c.value(c.data(shape, dtype)), c.pick([1, 1, 3])
    c.has_reference = dtype != BF16 or results == 1  # it rounds the statistics to bf16
    return c.node(op, [x, scale, *bias], outputs=results, **attributes)


@makes("InstanceNormalization GroupNormalization BatchNormalization LRN LpNormalization MeanVarianceNormalization")
def norm(c, op):
    dtype, groups = c.type_of(op), c.integer(1, 3)
    shape = list(c.shape(3, 4, 1))
    c.scale = 50
    if op in ("LRN", "MeanVarianceNormalization"):
        shape = list(c.shape(4, 4, 1))
    if op == "LpNormalization":
        c.has_reference = False  # it sums without absolute values
        shape = c.shape(1, 4, 1)
        return c.node(op, [c.value(c.data(shape, dtype))], **c.maybe(axis=c.axis(len(shape)), p=c.integer(1, 2)))
    if op == "LRN":
        c.has_reference = False  # its windows are off by one
        return c.node(op, [c.value(c.data(shape, dtype))], size=c.pick([1, 3, 5]), **c.maybe(alpha=0.01, beta=0.6, bias=1.5))
    if op == "MeanVarianceNormalization":
        return c.node(op, [c.value(c.data(shape, dtype))], **c.maybe(axes=c.pick([[0, 2, 3], [1], [0, 1], [2, 3]])))
    if op == "GroupNormalization":
        shape[1] = groups * c.integer(1, 3)
        wide = shape[1] if c.opset >= 21 else groups
        return c.node(op, [c.value(c.data(s, dtype)) for s in (shape, (wide,), (wide,))], num_groups=groups, **c.maybe(epsilon=1e-3))
    x, scale, bias = (c.value(c.data(s, dtype)) for s in (shape, (shape[1],), (shape[1],)))
    if op == "InstanceNormalization":
        return c.node(op, [x, scale, bias], **c.maybe(epsilon=1e-3))
    mean, var = c.value(c.data((shape[1],), dtype)), c.value(c.data((shape[1],), dtype, 0.1, 2))
    attributes, outputs = c.maybe(epsilon=1e-3, momentum=0.8), 1
    if c.opset >= 14 and c.chance(0.3):
        attributes["training_mode"], outputs = 1, c.pick([1, 3])
    return c.node(op, [x, scale, bias, mean, var], outputs=outputs, **attributes)


@makes("QuantizeLinear DequantizeLinear")
def quantize(c, op):
    shape, stored = c.shape(1, 4), c.pick([I8, U8] + [TYPES["int16"], TYPES["uint16"]] * (c.opset >= 21))
    axis = c.axis(len(shape))
    wide = (shape[axis],) if c.opset >= 13 and c.chance(0.5) else ()
    real = c.pick([F32, F32, F16]) if c.opset >= 19 else F32
    attributes = {"axis": axis} if wide else {}
    if wide and c.opset >= 21 and c.chance(0.4) and 0 not in shape:  # ONNX Runtime divides by the size of a block of none
        block = c.integer(1, 4)
        attributes["block_size"] = block
        wide = list(shape)
        wide[axis] = -(-shape[axis] // block)
    scale = c.value(c.data(wide, real, 0.02, 0.5))
    zero = [c.value(c.data(wide, stored, 0, 9))]
    if op == "QuantizeLinear":
        x = c.value(c.data(shape, real))
        if stored == U8 and c.chance(0.3):
            zero = []
        return c.node(op, [x, scale, *zero], **attributes)
    if stored == U8 and c.chance(0.4):
        zero = []
    return c.node(op, [c.value(c.data(shape, stored)), scale, *zero], **attributes)


@makes("DynamicQuantizeLinear")
def dynamic_quantize(c, op):
    c.node(op, [c.value(c.data(c.shape(1, 4, 1), F32))], outputs=3)


@makes("RNN GRU LSTM")
def recurrent(c, op):
    length, batch, ins, hidden = c.integer(1, 4), c.integer(1, 3), c.integer(1, 4), c.integer(1, 4)
    direction = c.pick(["forward", "reverse", "bidirectional"])
    ways, gates = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    layout = c.integer(0, 1) if c.opset >= 14 and c.chance(0.3) else 0
    dtype = c.type_of(op, among=[F32, F32, F64])
    order = (lambda *s: (s[1], s[0], *s[2:])) if layout else (lambda *s: s)
    x = c.data(order(length, batch, ins), dtype)
    inputs = [c.value(x), c.weight(c.data((ways, gates * hidden, ins), dtype)), c.weight(c.data((ways, gates * hidden, hidden), dtype))]
    c.has_reference = False  # it knows neither lengths nor directions
    inputs.append(c.weight(c.data((ways, 2 * gates * hidden), dtype)) if c.chance(0.6) else "")
    inputs.append(c.value(c.random.integers(1, length + 1, batch).astype(I32)) if c.chance(0.4) else "")
    for _ in range(1 + (op == "LSTM")):
        inputs.append(c.value(c.data(order(ways, batch, hidden), dtype)) if c.chance(0.4) else "")
    if op == "LSTM":
        inputs.append(c.value(c.data((ways, 3 * hidden), dtype)) if c.chance(0.3) else "")
    attributes = {"hidden_size": hidden, **c.maybe(clip=c.real(0.5, 3))}
    attributes |= {"direction": direction} if direction != "forward" else {}
    attributes |= {"layout": 1} if layout else {}
    if op == "GRU":
        attributes |= c.maybe(linear_before_reset=c.integer(0, 1))
    if op == "LSTM":
        attributes |= {"input_forget": 1} if c.chance(0.15) else {}
    if c.chance(0.3):
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[op] * ways
        attributes["activations"] = [c.pick(["Tanh", "Sigmoid", "Softsign", "HardSigmoid"]) for _ in range(count)]  # others overflow
    c.scale = 10
    c.node(op, inputs, outputs=3 if op == "LSTM" else 2, **attributes)


@makes("Resize")
def resize(c, op):
    dtype = c.type_of(op, among=[F32, F32, U8] if c.opset > 10 else [F32])
    mode = c.pick(["nearest", "linear", "cubic"] if c.opset >= 11 and dtype == F32 else ["nearest", "linear"])
    shape = (c.integer(1, 2), c.integer(1, 2), c.integer(3, 6), c.integer(3, 6))
    x = c.value(c.data(shape, dtype, -9, 9))
    scales = [1.0, 1.0, c.pick([0.5, 0.6, 1, 1.5, 2, 3]), c.pick([0.5, 0.7, 1, 2, 2.5])]
    c.scale = 10
    if c.opset == 10:
        return c.node(op, [x, c.steering(scales, F32, 0.1)], mode=mode)
    way = c.pick(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + ["half_pixel_symmetric"] * (c.opset >= 19))
    attributes = {"mode": mode, **c.maybe(coordinate_transformation_mode=way)}
    if mode == "nearest":
        attributes |= c.maybe(nearest_mode=c.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes |= c.maybe(cubic_coeff_a=-0.5, exclude_outside=c.integer(0, 1))
    if c.opset >= 18 and mode != "nearest" and c.chance(0.3):
        attributes["antialias"] = 1
    axes = None
    if c.opset >= 18 and c.chance(0.4):
        attributes["axes"] = axes = c.pick([[2, 3], [3, 2]])  # ONNX Runtime forgets sizes of negative ones
    roi = "" if c.opset >= 13 else c.value(np.zeros(0, F32), "initializer")
    if c.chance(0.5):
        sizes = [*shape[:2], c.integer(2, 9), c.integer(2, 9)]
        if axes:
            attributes |= c.maybe(keep_aspect_ratio_policy=c.pick(["stretch", "not_larger", "not_smaller"]))
            sizes = sizes[2:]
        return c.node(op, [x, roi, "" if c.opset >= 13 else c.value(np.zeros(0, F32), "initializer"), c.steering(sizes)], **attributes)
    return c.node(op, [x, roi, c.steering(scales[2:] if axes else scales, F32)], **attributes)


@makes("Upsample")
def upsample(c, op):
    x = c.value(c.data((1, 2, 3, 4), F32))
    scales = [1.0, 1.0, c.pick([1, 1.5, 2, 3]), c.pick([1, 2, 2.5])]
    mode = c.maybe(mode=c.pick(["nearest", "linear"]))
    c.node(op, [x], scales=scales, **mode) if c.opset < 9 else c.node(op, [x, c.steering(scales, F32)], **mode)


@makes("AffineGrid GridSample")
def grids(c, op):
    n, channels, h, w = c.integer(1, 2), c.integer(1, 2), c.integer(2, 5), c.integer(2, 5)
    c.scale = 50
    if op == "AffineGrid":
        three = c.chance(0.4)
        size = [n, channels, *([c.integer(2, 4)] if three else []), h, w]
        c.has_reference = False  # it makes f32 of f64
        theta = c.value(c.data((n, 3, 4) if three else (n, 2, 3), c.type_of(op)))
        return c.node(op, [theta, c.steering(size)], **c.maybe(align_corners=c.integer(0, 1)))
    modes = ["linear", "nearest", "cubic"] if c.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    if c.opset < 20:  # at borders, ONNX Runtime's is not the standard's, which knows the newer name only
        modes.remove("bicubic")
    x, grid = c.data((n, channels, h, w), F32), c.data((n, c.integer(1, 4), c.integer(1, 4), 2), F32, -1.3, 1.3)
    return c.node(op, [c.value(x), c.value(grid)], **c.maybe(
        mode=c.pick(modes), padding_mode=c.pick(["zeros", "border", "reflection"]), align_corners=c.integer(0, 1)))


@makes("RoiAlign")
def roi_align(c, op):
    x, rois = c.data((2, 2, 6, 7), F32), c.integer(0, 3)
    corners = np.sort(c.data((rois, 2, 2), F32, 0, 6), axis=1).reshape(rois, 4)
    modes = {"coordinate_transformation_mode": c.pick(["half_pixel", "output_half_pixel"])} if c.opset >= 16 else {}
    c.scale = 10
    c.node(op, [c.value(x), c.value(corners), c.value(c.random.integers(0, 2, rois).astype(I64))],
           **c.maybe(output_height=c.integer(1, 3), output_width=c.integer(1, 3), sampling_ratio=c.integer(0, 2),
                     spatial_scale=c.real(0.3, 1.2), mode=c.pick(["avg", "avg", "max"]), **modes))


@makes("Det")
def det(c, op):
    n = c.integer(1, 4)
    c.scale = 50
    c.node(op, [c.value(c.data((*c.shape(0, 2), n, n), c.type_of(op, among=[F32])))])


@makes("NonMaxSuppression")
def suppression(c, op):
    batch, boxes, classes = c.integer(1, 2), c.integer(1, 6), c.integer(1, 2)
    centers = c.chance(0.3)
    corners = np.sort(c.data((batch, boxes, 2, 2), F32, 0, 4), axis=2)
    where = corners.reshape(batch, boxes, 4) if not centers else c.data((batch, boxes, 4), F32, 1, 4)
    inputs = [c.value(where), c.value((c.distinct((batch, classes, boxes)) / 30).astype(F32))]
    inputs.append(c.steering([c.integer(0, 4)]))
    inputs += [c.value(np.array([c.real(0, 0.8)], F32)), c.value(np.array([c.real(-0.3, 0.3)], F32))][:c.integer(0, 2)]
    c.node(op, inputs, **c.maybe(center_point_box=int(centers)) if not centers else {"center_point_box": 1})


@makes("MaxUnpool")
def max_unpool(c, op):
    shape = (1, 2, 2 * c.integer(1, 3), 2 * c.integer(1, 3))
    y, i = c.node("MaxPool", [c.value(c.distinct(shape))], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    c.node(op, [y, i] + [c.steering(shape)] * c.chance(0.4), kernel_shape=[2, 2], strides=[2, 2])


@makes("Col2Im")
def col2im(c, op):
    h, w, kh, kw, ch, n = c.integer(3, 6), c.integer(3, 6), c.integer(1, 2), c.integer(1, 2), c.integer(1, 2), c.integer(1, 2)
    c.node(op, [c.value(c.data((n, ch * kh * kw, (h - kh + 1) * (w - kw + 1)), c.type_of(op, among=[F32, F64, F16, I32]))), c.steering([h, w]), c.steering([kh, kw], I64, 0.1)])


@makes("DeformConv")
def deform_conv(c, op):
    n, ins, outs, k, h, w = 1, 2, c.integer(1, 3), c.integer(1, 2), c.integer(3, 5), c.integer(3, 5)
    oh, ow = h - k + 1, w - k + 1
    shapes = (n, ins, h, w), (outs, ins, k, k), (n, 2 * k * k, oh, ow), (outs,), (n, k * k, oh, ow)
    c.scale = 50
    inputs = [c.value(c.data(shape, F32)) for shape in shapes]
    c.node(op, inputs[:c.integer(3, 5)], **c.maybe(kernel_shape=[k, k]))


@makes("DFT")
def dft(c, op):
    shape = [c.integer(1, 3), c.integer(1, 6), c.integer(1, 5), c.integer(1, 2)]
    inverse, axis = c.integer(0, 1), c.integer(1, 2)
    c.scale = 50
    x = c.value(c.data(shape, c.type_of(op, among=[F32, F64])))
    length = c.steering(c.integer(1, 8)) if c.chance(0.5) else ""
    onesided = {"onesided": 1} if not inverse and shape[-1] == 1 and c.chance(0.4) else {}
    if c.opset >= 20:
        return c.node(op, [x, length, c.steering(axis)], **c.maybe(inverse=inverse) if not inverse else {"inverse": 1}, **onesided)
    return c.node(op, [x, length], axis=axis, inverse=inverse, **onesided)


@makes("STFT")
def stft(c, op):
    length, step = c.integer(2, 6), c.integer(1, 4)
    c.scale = 50
    dtype = c.type_of(op, among=[F32, F64])
    inputs = [c.value(c.data((c.integer(1, 2), length + c.integer(0, 12), 1), dtype)), c.steering(step)]
    window = c.chance(0.6)
    inputs += [c.value(c.data((length,), dtype)) if window else "", c.steering(length) if not window or c.chance(0.5) else ""]
    c.node(op, inputs, **c.maybe(onesided=c.integer(0, 1)))


@makes("MelWeightMatrix")
def mel(c, op):
    c.scale = 10
    c.node(op, [c.steering(c.integer(2, 6)), c.steering(c.pick([16, 32])), c.steering(c.pick([8000, 16000])),
                c.steering(c.real(0, 100), F32), c.steering(c.real(2000, 4000), F32)])


@makes("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def loss(c, op):
    n, classes, rest, dtype = c.integer(1, 3), c.integer(1, 4), c.shape(0, 2, 1), c.type_of(op, among=[F32, F32, F64, F16])
    x, target = c.data((n, classes, *rest), dtype), c.random.integers(0, classes, (n, *rest)).astype(c.pick([I64, I32]))
    attributes = c.maybe(reduction=c.pick(["none", "sum", "mean"]))
    if c.chance(0.4):
        attributes["ignore_index"] = c.pick([0, -1, classes])
        target = np.where(c.random.random(target.shape) < 0.3, attributes["ignore_index"], target).astype(target.dtype)
        target.reshape(-1)[0] = classes - 1  # something remains
    weights = [c.value(c.data((classes,), dtype, 0.1, 1))] if c.chance(0.5) else []
    c.scale = 10
    c.node(op, [c.value(x), c.value(target), *weights], outputs=c.integer(1, 2) if op.startswith("Soft") else 1, **attributes)


@makes("Adagrad Adam Momentum")
def optimizer(c, op):
    shapes, dtype = [c.shape(0, 2) for _ in range(c.integer(1, 2))], c.pick([F32, F64])
    kinds = {"Adagrad": 3, "Momentum": 3, "Adam": 4}[op]
    c.result_type, c.scale = dtype, 100  # the reference evaluator computes rates in f32
    tensors = [c.value(c.data(shape, dtype, *((0.1, 2) if kind >= 2 and op != "Momentum" else (None, None))))
               for kind in range(kinds) for shape in shapes]
    attributes = {"Adagrad": c.maybe(decay_factor=0.1, epsilon=1e-4, norm_coefficient=0.01),
                  "Adam": c.maybe(alpha=0.8, beta=0.9, epsilon=1e-4, norm_coefficient=0.01, norm_coefficient_post=0.01),
                  "Momentum": {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.01, "mode": c.pick(["standard", "nesterov"])}}[op]
    c.node(op, [c.value(np.array(c.real(0.01, 0.5), F32)), c.value(np.array(c.integer(0, 3), I64)), *tensors],
           outputs=(kinds - 1) * len(shapes), domain="ai.onnx.preview.training", **attributes)


@makes("Dropout")
def dropout(c, op):
    x, dtype = c.shape(), c.type_of(op)
    if c.opset < 12:
        return c.node(op, [c.value(c.data(x, dtype))], **c.maybe(ratio=0.3))  # what the mask is came with opset 12
    inputs = [c.value(c.data(x, dtype))] + [c.value(np.array(0.3, F32)), c.value(np.array(False))][:c.integer(0, 2)]
    return c.node(op, inputs, outputs=c.integer(1, 2))
