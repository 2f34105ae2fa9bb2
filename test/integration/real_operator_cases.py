"""Operators of files in the wild against ONNX Runtime: padding that keeps the size under a stride, at sizes known only
in the call, and what the quantizer of ONNX Runtime writes of recurrent networks, embeddings and attention."""
import itertools
import logging

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from kit import case, distance, expect, onnx_runtime, run_package, tool
from programs import SEED
from real_file_cases import FLOAT, agree, compiled, node, normal, refused, stored, value, warned, write


# ---- padding that keeps the size, under a stride ----

def attributes_of(random, spatial):
    kernel = [int(size) for size in random.integers(1, 5, spatial)]
    # Under longer strides, which skip places between windows, ONNX Runtime cuts places off where nothing is to be padded.
    strides = [min(int(stride), size + 1) for stride, size in zip(random.integers(1, 5, spatial), kernel)]
    return {"kernel_shape": kernel, "strides": strides, "auto_pad": str(random.choice(["SAME_UPPER", "SAME_LOWER"]))}


def sizes_around(random, spatial):
    """Smaller than windows and strides, and larger; of each parity."""
    yield from ([size] * spatial for size in (1, 2, 3))
    for _ in range(3):
        yield [int(size) for size in random.integers(1, 12, spatial)]


def same_padding(folder, kind, nodes, initializers=(), channels=2, tolerance=2e-6, draw=normal, input_type=T.FLOAT,
                 outputs="y", count=4, opset=19):
    """`nodes` makes the nodes of a model from attributes of windows; x is [batch, channels, ...], its sizes dynamic."""
    random = np.random.default_rng([SEED, len(kind), ord(kind[0])])
    for trial in range(count):
        spatial = int(random.integers(1, 3))
        attributes = attributes_of(random, spatial)
        made, stores = nodes(random, attributes)
        names = ["batch", channels, *(f"s{i}" for i in range(spatial))]
        kinds = (T.FLOAT, T.INT64) if input_type == T.FLOAT else (T.INT32,)
        results = [value(name, None, element) for name, element in zip(outputs.split(), kinds)]
        model = write(folder / f"{kind}{trial}.onnx", made, [value("x", names, input_type)], results,
                      {**dict(initializers), **stores}, opsets=[("", opset)])
        package, warnings = compiled(model, folder)
        warned(warnings)
        for sizes in sizes_around(random, spatial):
            agree(package, model, {"x": draw(2, channels, *sizes)}, folder, tolerance, (attributes, sizes))


@case(seconds=4)
def convolutions_that_keep_the_size(folder):
    def conv(random, attributes):
        return [node("Conv", "x w b", "y", **attributes)], {"w": normal(3, 2, *attributes["kernel_shape"]),
                                                            "b": normal(3)}

    # Sums of at most 2 * 16 products in another order.
    same_padding(folder, "Conv", conv)
    # ONNX Runtime takes dilated windows with padding that is written out only.
    weight = {"w": normal(3, 2, 3)}
    ways = dict(dilations=[2], strides=[3])
    dynamic = write(folder / "dilated.onnx", [node("Conv", "x w", "y", auto_pad="SAME_LOWER", **ways)],
                    [value("x", [1, 2, "n"])], [value("y", None)], weight)
    package, _ = compiled(dynamic, folder)
    for size in 1, 4, 5, 6, 10:
        total = max((-(-size // 3) - 1) * 3 + 5 - size, 0)
        written = write(folder / f"written{size}.onnx", [node("Conv", "x w", "y", pads=[total - total // 2,
                                                                                        total // 2], **ways)],
                        [value("x", [1, 2, size])], [value("y", None)], weight)
        agree(package, written, {"x": normal(1, 2, size)}, folder, 2e-6, size)


@case
def convolutions_of_bytes_that_keep_the_size(folder):
    def conv(random, attributes):
        weight = random.integers(0, 256, (3, 2, *attributes["kernel_shape"])).astype(np.uint8)
        return [node("ConvInteger", "x w zero", "y", **attributes)], {"w": weight, "zero": np.uint8(131)}

    random = np.random.default_rng([SEED, 7])
    same_padding(folder, "ConvInteger", conv, tolerance=0, input_type=T.UINT8, count=3,
                 draw=lambda *shape: random.integers(0, 256, shape).astype(np.uint8))


def widened(attributes):
    """ONNX Runtime refuses pools whose windows are narrower than their strides and need less than no padding."""
    kernel = [max(sizes) for sizes in zip(attributes["kernel_shape"], attributes["strides"])]
    return {**attributes, "kernel_shape": kernel}


@case(seconds=9)
def greatest_elements_and_their_places_under_padding(folder):
    def pool(random, attributes):
        attributes = widened(attributes)
        return [helper.make_node("MaxPool", ["x"], ["y", "z"], **attributes,
                                 storage_order=int(random.integers(0, 2)))], {}

    same_padding(folder, "MaxPool", pool, tolerance=0, outputs="y z")
    # Infinities are elements like any other: the padding is below all of them.
    same_padding(folder, "MaxPoolInf", pool, tolerance=0, outputs="y z", count=2,
                 draw=lambda *shape: np.where(normal(*shape) < 0.8, -np.inf, normal(*shape, key=1)).astype(FLOAT))


@case(seconds=5)
def means_under_padding(folder):
    def pool(random, attributes):
        return [node("AveragePool", "x", "y", **widened(attributes), count_include_pad=int(random.integers(0, 2)))], {}

    def norm(random, attributes):
        return [node("LpPool", "x", "y", **widened(attributes), p=int(random.integers(1, 4)))], {}

    same_padding(folder, "AveragePool", pool)
    same_padding(folder, "LpPool", norm, tolerance=1e-5)  # roots and powers of f32


def pooled(x, kernel, stride, mode, reduce):
    """A pool of square windows by NumPy: padding is NaN, which `reduce` leaves out."""
    for axis in -2, -1:
        size = x.shape[axis]
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        ends = (total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2)
        widths = [(0, 0)] * x.ndim
        widths[axis] = ends
        x = np.pad(x.astype(np.float64), widths, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(-2, -1))[..., ::stride, ::stride, :,
                                                                                           :]
    return reduce(windows, axis=(-2, -1)).astype(FLOAT)


@case(seconds=4)
def pools_of_windows_narrower_than_their_strides(folder):
    for (kernel, stride), mode in itertools.product(((1, 2), (2, 3), (2, 5)), ("SAME_UPPER", "SAME_LOWER")):
        ways = dict(kernel_shape=[kernel, kernel], strides=[stride, stride], auto_pad=mode)
        model = write(folder / f"narrow{kernel}{stride}{mode}.onnx",
                      [node("MaxPool", "x", "y", **ways), node("AveragePool", "x", "z", **ways)],
                      [value("x", [1, 2, "h", "w"])], [value("y", None), value("z", None)])
        package, _ = compiled(model, folder)
        for sizes in (1, 1), (2, 3), (4, 7), (9, 10):
            x = normal(1, 2, *sizes)
            found = run_package(package, {"x": x}, folder)
            for name, reduce in ("y", np.nanmax), ("z", np.nanmean):
                expected = pooled(x, kernel, stride, mode, reduce)
                expect(distance(found[name], expected) <= 1e-6,  # means of at most four elements
                       f"seed {SEED}: {ways} {sizes} {name}: {found[name]} against {expected}")


@case
def a_branch_of_convolution_and_pooling_keeps_one_size(folder):
    """The two results have sizes of one text, so that their sum needs no check."""
    ways = dict(strides=[2, 2], auto_pad="SAME_UPPER")
    nodes = [node("Conv", "x w", "c", **ways), node("MaxPool", "x", "p", kernel_shape=[3, 3], **ways),
             node("Add", "c p", "y")]
    model = write(folder / "both.onnx", nodes, [value("x", [1, 2, "h", "w"])], [value("y", None)],
                  {"w": normal(2, 2, 3, 3)})
    package, _ = compiled(model, folder)
    for sizes in (1, 1), (7, 4), (2, 9), (6, 6):
        agree(package, model, {"x": normal(1, 2, *sizes)}, folder, 2e-6, sizes)


@case(seconds=4)
def transposed_convolutions_with_automatic_padding(folder):
    def transpose(random, attributes):
        strides = attributes["strides"]
        attributes["kernel_shape"] = [max(sizes) for sizes in zip(attributes["kernel_shape"], strides)]
        extra = [int(random.integers(0, size)) for size in strides]
        weight = normal(2, 3, *attributes["kernel_shape"])
        return [node("ConvTranspose", "x w", "y", **attributes, output_padding=extra)], {"w": weight}

    same_padding(folder, "ConvTranspose", transpose)
    # Windows narrower than their stride leave gaps. The standard asks for sizes of operand times stride all the same,
    # as ONNX's reference evaluator has it; ONNX Runtime's results are shorter.
    from onnx.reference import ReferenceEvaluator
    for mode, kernel, stride in ("SAME_UPPER", 2, 4), ("SAME_LOWER", 1, 3), ("SAME_LOWER", 2, 5):
        made = node("ConvTranspose", "x w", "y", auto_pad=mode, strides=[stride])
        model = write(folder / f"narrow{kernel}{stride}.onnx", [made], [value("x", [1, 2, "n"])], [value("y", None)],
                      {"w": normal(2, 3, kernel)}, opsets=[("", 17)])
        package, _ = compiled(model, folder)
        for size in 1, 2, 7:
            x = normal(1, 2, size)
            expected, = ReferenceEvaluator(str(model)).run(None, {"x": x})
            found = run_package(package, {"x": x}, folder)["y"]
            expect(distance(found, expected) <= 2e-6, f"{mode} {kernel} {stride} {size}: {found} against {expected}")


# ---- what the quantizer writes ----

def quantized(source, target, **options):
    from onnxruntime.quantization import quantize_dynamic
    logging.disable(logging.WARNING)
    try:
        quantize_dynamic(source, target, **options)
    finally:
        logging.disable(logging.NOTSET)
    return target


def kinds_of_weights():
    from onnxruntime.quantization import QuantType
    return {"u8": {"weight_type": QuantType.QUInt8}, "i8": {"weight_type": QuantType.QInt8},
            "rows": {"weight_type": QuantType.QInt8, "per_channel": True}}


def recurrent_model(path, random, operator, gates, direction, optional):
    directions = 2 if direction == "bidirectional" else 1
    inputs, hidden = 5, 6
    weights = {"W": (0.4 * random.standard_normal((directions, gates * hidden, inputs))).astype(FLOAT),
               "R": (0.4 * random.standard_normal((directions, gates * hidden, hidden))).astype(FLOAT)}
    names, ends = ["x", "W", "R", "", "", "", "", ""], [value("x", ["length", "batch", inputs])]
    if "B" in optional:
        weights["B"], names[3] = (0.4 * random.standard_normal((directions, 2 * gates * hidden))).astype(FLOAT), "B"
    if "P" in optional and operator == "LSTM":
        weights["P"], names[7] = (0.4 * random.standard_normal((directions, 3 * hidden))).astype(FLOAT), "P"
    if "lengths" in optional:
        names[4] = "lengths"
        ends.append(value("lengths", ["batch"], T.INT32))
    if "states" in optional:
        for place, name in ((5, "h"), (6, "c"))[:1 + (operator == "LSTM")]:
            names[place] = name
            ends.append(value(name, [directions, "batch", hidden]))
    results = ["y", "yh", "yc"][:2 + (operator == "LSTM")]
    while names[-1] == "":
        names.pop()
    made = helper.make_node(operator, names, results, hidden_size=hidden, direction=direction)
    write(path, [made], ends, [value(name, None) for name in results], weights)

    def feeds(length, batch):
        drawn = {"x": random.standard_normal((length, batch, inputs)).astype(FLOAT)}
        if "lengths" in optional:
            drawn["lengths"] = random.integers(0, length + 1, batch).astype(np.int32)
        if "states" in optional:
            for name in [*"hc"][:1 + (operator == "LSTM")]:
                drawn[name] = (0.5 * random.standard_normal((directions, batch, hidden))).astype(FLOAT)
        return drawn
    return feeds


def single_threaded(model, feeds):
    """ONNX Runtime with one thread: with more, each quantizes the states of its own rows, and the numbers vary."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, feeds)))


def unsigned(source, target):
    """The same weights as u8 with a zero point of 128."""
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if tensor.data_type == T.INT8:
            shifted = (numpy_helper.to_array(tensor).astype(np.int16) + 128).astype(np.uint8)
            tensor.CopyFrom(stored(tensor.name, shifted))
    onnx.save(model, target)
    return target


@case(seconds=23)
def quantized_recurrent_networks(folder):
    """The sequence and every state are rounded to 255 steps of their range, on both sides alike. A number on the border
    of two steps may fall to either side by the last bit of an f32; then states are a step apart for a while. So almost
    all calls agree to a few f32 roundings, and none is further away than a step of the sequence (2 / 255 of 4
    deviations times weights of 0.4) moves it. In reverse, ONNX Runtime rounds states of sequences of different lengths
    together that are no neighbours here: there the distance is that of two roundings everywhere. Weights have seven
    bits, as sums of two products of full bytes saturate in ONNX Runtime on processors without dot products of bytes."""
    random = np.random.default_rng([SEED, 11])
    options = [(), ("B",), ("B", "lengths"), ("B", "P", "states"), ("lengths", "states")]
    directions, calls = ("forward", "reverse", "bidirectional"), []
    for (name, kind), direction in itertools.product(kinds_of_weights().items(), directions):
        optional = options[int(random.integers(len(options)))]
        source = folder / f"{direction}_{name}.onnx"
        feeds = recurrent_model(source, random, "LSTM", 4, direction, optional)
        model = quantized(source, folder / f"{direction}_{name}_q.onnx", reduce_range=True, **kind)
        expect([n.op_type for n in onnx.load(model).graph.node] == ["DynamicQuantizeLSTM"], "expected a quantized LSTM")
        if name == "u8":  # the quantizer makes i8 of every LSTM
            model = unsigned(model, folder / f"{direction}_u.onnx")
        package, warnings = compiled(model, folder)
        warned(warnings)
        # Bytes are multiplied as they are stored, not as floats, four times as large.
        report = tool("ds-opt", model, "--report", "--stop-after=memory", "-o", folder / "m.mlir")
        factored = 4 if direction == "bidirectional" else 2
        expect(f"factor-zero-points: {factored} products factored" in report.out + report.err, f"{model.stem}: {report.err}")
        regrouped = "lengths" in optional and direction != "forward"
        for length, batch in (1, 1), (6, 1), (4, 3):
            given = feeds(length, batch)
            ours, theirs = run_package(package, given, folder), single_threaded(model, given)
            moved = 0.0
            for output, expected in theirs.items():
                found, apart = distance(ours[output], expected), np.abs(ours[output] - expected)
                text = f"seed {SEED}: {model.stem} {optional} {length}x{batch}, output {output}: {found:.3g}"
                expect(found <= 0.02, text)
                moved = max(moved, np.median(apart))
            if not regrouped:
                calls.append(moved)
    # A call makes some hundred roundings; one in ten thousand numbers is that near to a border.
    expect(sum(moved > 1e-6 for moved in calls) <= len(calls) / 5, f"seed {SEED}: medians of differences {calls}")
    for operator, gates in ("GRU", 3), ("RNN", 1):  # which it leaves alone
        feeds = recurrent_model(folder / f"{operator}.onnx", random, operator, gates, "forward", ("B",))
        model = quantized(folder / f"{operator}.onnx", folder / f"{operator}_q.onnx")
        agree(compiled(model, folder)[0], model, feeds(4, 2), folder, 2e-5)


@case
def quantized_embeddings(folder):
    for segments in False, True:
        tables = {"words": normal(20, 8), "places": normal(10, 8), "kinds": normal(2, 8), "scale": normal(8),
                  "bias": normal(8)}
        inputs = ["ids", "seg" if segments else "", "words", "places", "kinds" if segments else "", "scale", "bias",
                  "mask"]
        made = helper.make_node("EmbedLayerNormalization", inputs, ["y", "count"], domain="com.microsoft", epsilon=1e-6)
        if not segments:
            del tables["kinds"]
        ends = [value(name, ["batch", "seq"], T.INT32) for name in ["ids", "mask", *["seg"] * segments]]
        write(folder / "plain.onnx", [made], ends, [value("y", None), value("count", None, T.INT32)], tables)
        try:
            model = quantized(folder / "plain.onnx", folder / f"embed{segments}.onnx")
        except Exception:
            expect(not segments, "expected ONNX Runtime to quantize an embedding with segments")
            continue  # it cannot quantize what is absent
        expect([n.op_type for n in onnx.load(model).graph.node] == ["QEmbedLayerNormalization"],
               "expected a quantized one")
        package, warnings = compiled(model, folder)
        warned(warnings)
        random = np.random.default_rng([SEED, 13])
        for batch, seq in (1, 1), (3, 7):
            feeds = {"ids": random.integers(0, 20, (batch, seq)), "mask": random.integers(0, 2, (batch, seq))}
            if segments:
                feeds["seg"] = random.integers(0, 2, (batch, seq))
            # One sum of eight elements in another order, divided by a deviation.
            agree(package, model, {name: array.astype(np.int32) for name, array in feeds.items()}, folder, 1e-5,
                  (batch, seq))


@case(seconds=4)
def quantized_attention(folder):
    for name, kind in kinds_of_weights().items():
        made = helper.make_node("Attention", ["x", "W", "B"], ["y"], domain="com.microsoft", num_heads=2)
        write(folder / "plain.onnx", [made], [value("x", ["batch", "seq", 8])], [value("y", None)],
              {"W": normal(8, 24), "B": normal(24)})
        model = quantized(folder / "plain.onnx", folder / f"attention_{name}.onnx", reduce_range=True, **kind)
        package, warnings = compiled(model, folder)
        warned(warnings)
        for batch, seq in (1, 1), (2, 5):
            # The operand is rounded once, by the same sums on both sides: a softmax in f32 remains.
            agree(package, model, {"x": normal(batch, seq, 8)}, folder, 1e-5, (batch, seq))


@case
def quantized_lstms_that_are_no_such(folder):
    shapes = {"W": (1, 5, 24), "R": (1, 6, 24), "ws": (1,), "wz": (1,), "rs": (1,), "rz": (1,)}
    inputs = ["x", "W", "R", "", "", "", "", "", "ws", "wz", "rs", "rz"]
    arrays = {key: np.ones(size, FLOAT if key in ("ws", "rs") else np.uint8) for key, size in shapes.items()}

    def refused_with(names, stored, says):
        made = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=6)
        refused(write(folder / "no.onnx", [made], [value("x", [3, 1, 5])], [value("y", None)], stored),
                "DynamicQuantizeLSTM", says)

    for name, shape, says in [("W", (1, 24, 5), "input 1: expected [1, input size, 24]"),
                              ("ws", (1, 23), "input 8: expected f32[1] or [1, 24], found f32[1, 23]"),
                              ("rz", (2,), "input 11: expected ui8[1] or [1, 24], found ui8[2]"),
                              ("rs", (), "input 10: expected f32[1] or [1, 24], found f32[]")]:
        refused_with(inputs, {**arrays, name: np.ones(shape, arrays[name].dtype)}, says)
    for place, says in [(8, "the scale of input 1"), (9, "the zero point of input 1"), (10, "the scale of input 2"),
                        (11, "the zero point of input 2")]:
        for names in inputs[:place], inputs[:place] + [""] + inputs[place + 1:]:
            refused_with(names, arrays, f"input {place}: expected {says}, found none")
