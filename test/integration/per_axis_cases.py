"""Operands of one element per place of an axis: what is longer or shorter is refused with one line, when the model is
compiled where its sizes are static, else by the run. ONNX Runtime must refuse it, too, or is noted not to; what it
accepts agrees with ours."""
import itertools

import numpy as np
import onnx
from onnx import helper

from kit import case, distance, expect, onnx_runtime, tool
from programs import SEED

F, U, I, L = np.float32, np.uint8, np.int32, np.int64
MICROSOFT = "com.microsoft"


class Subject:
    """One node. `wrong` and `right` give an input other sizes; of each input the first sizes are legal ones."""

    def __init__(self, op, inputs, wrong, right=(), domain="", opset=21, static=False, unjudged=False, fixed=None, outputs=1, late=False,
                 **attributes):
        self.op, self.inputs, self.wrong, self.right = op, inputs, wrong, right
        self.domain, self.opset, self.static, self.outputs = domain, opset, static, outputs
        self.unjudged = unjudged  # ONNX Runtime broadcasts, against the standard
        self.late = late  # static sizes meet one that is an input
        self.fixed, self.attributes = fixed or {}, attributes

    def model(self, path, feeds, dynamic):
        node = helper.make_node(self.op, [name if name in feeds else "" for name, *_ in self.inputs],
                                [f"y{i}" for i in range(self.outputs)], domain=self.domain, **self.attributes)
        arguments = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                                   [f"{name}{i}" if dynamic else size for i, size in enumerate(array.shape)])
                     for name, array in feeds.items()]
        graph = helper.make_graph([node], "g", arguments, [onnx.ValueInfoProto(name="y0")])
        imports = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))

    def feeds(self, changed):
        random = np.random.default_rng([SEED, len(self.op)])
        result = {}
        for name, kind, *sizes in self.inputs:
            if not sizes:
                continue  # left out
            sizes = changed.get(name, sizes[0])
            result[name] = self.fixed[name] if name in self.fixed else \
                random.uniform(0.5, 2, sizes).astype(kind) if kind == F else random.integers(1, 3, sizes).astype(kind)
        return result

    def check(self, folder):
        everything = [({}, True)] + [(c, True) for c in self.right] + [(c, False) for c in self.wrong]
        for number, ((changed, isLegal), dynamic) in enumerate(itertools.product(everything, (False, True))):
            if dynamic and self.static:
                continue
            what = f"seed {SEED}: {self.op}, {'dynamic' if dynamic else 'static'} sizes, {changed}"
            feeds = self.feeds(changed)
            model, package = folder / f"{self.op}{number}.onnx", folder / "model.dsp"
            self.model(model, feeds, dynamic)
            theirs = None
            if not self.unjudged:
                try:
                    theirs = onnx_runtime(model, feeds)
                except Exception as refusal:  # ONNX Runtime has several kinds of them
                    expect("ONNXRuntimeError" in str(refusal), f"{what}: {refusal}")
                expect((theirs is not None) == isLegal, f"{what}: ONNX Runtime {'refuses' if isLegal else 'runs'} it")
            result = tool("ds-opt", model, "-o", package, code=None)
            if result.code == 0:
                expect(dynamic or isLegal or self.late, f"{what}: expected a diagnostic, found none")
                np.savez(folder / "in.npz", **feeds)
                result = tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
            if not isLegal:
                expect(result.code == 1 and len(result.err.strip().splitlines()) == 1 and self.op in result.err,
                       f"{what}: expected one line, found {result}")
                expect("found" in result.err, f"{what}: {result.err}")
                continue
            expect(result.code == 0, f"{what}: {result}")
            if theirs:
                with np.load(folder / "out.npz") as ours:
                    found, expected = ours["y0"], theirs["y0"]
                    expect(found.shape == expected.shape and found.dtype == expected.dtype and
                           distance(found, expected) <= 1e-4, f"{what}: expected {expected}, found {found}")


def each(names, *sizes):
    return [{name: size} for name in names for size in sizes]


NORM = [("x", F, (2, 4, 3)), ("s", F, (4,)), ("b", F, (4,))]
BATCH = [*NORM, ("m", F, (4,)), ("v", F, (4,))]
PRODUCT = [("a", U, (2, 3)), ("sa", F, ()), ("za", U, ()), ("b", U, (3, 4)), ("sb", F, (4,)), ("zb", U, (4,)),
           ("sy", F, ()), ("zy", U, ())]
IMAGE = [("x", U, (1, 2, 4, 4)), ("sx", F, ()), ("zx", U, ()), ("w", U, (3, 2, 2, 2)), ("sw", F, (3,)), ("zw", U, (3,)),
         ("sy", F, ()), ("zy", U, ()), ("bias", I, (3,))]
SKIP = [("x", F, (2, 3, 4)), ("skip", F, (2, 3, 4)), ("g", F, (4,)), ("b", F, (4,)), ("bias", F, (4,))]


def quantization(op, kind):
    tensor = ("x", kind, (2, 4, 3))
    vectors = [tensor, ("s", F, (4,)), ("z", U, (4,))]
    one = [{"s": s, "z": z} for s in ((), (1,)) for z in ((), (1,))]
    blocks = [tensor, ("s", F, (2, 2, 3)), ("z", U, (2, 2, 3))]
    return [Subject(op, vectors, [*each("sz", (1,), (), (3,), (5,)), {"x": (2, 1, 3)}], one),
            Subject(op, [*vectors[:2], ("z", U)], [{"s": (3,)}, {"s": (5,)}, {"x": (2, 1, 3)}], [{"s": (1,)}, {"s": ()}]),
            Subject(op, blocks, [{"s": s, "z": s} for s in ((1, 2, 3), (2, 2, 1), (2, 3, 3), (2, 1, 3))] +
                    each("z", (1, 2, 3), (2, 1, 3), (1,)), [{"x": (2, 3, 3)}], block_size=2),
            Subject(op, [tensor, ("s", F, (2, 2, 3)), ("z", U)], [{"s": (1, 1, 1)}], static=True, block_size=2)]


def recurrent(op, gates, peepholes=False):
    inputs = [("x", F, (2, 3, 2)), ("w", F, (1, 2 * gates, 2)), ("r", F, (1, 2 * gates, 2)), ("b", F, (1, 4 * gates)),
              ("l", I), ("h", F, (1, 3, 2))]
    wrong = [{"b": (1, 4 * gates + 1)}, {"b": (2, 4 * gates)}, {"b": (1, 2 * gates)}, {"h": (2, 3, 2)}, {"h": (1, 2, 3)}]
    if peepholes:
        inputs += [("c", F, (1, 3, 2)), ("p", F, (1, 6))]
        wrong += [{"c": (1, 2, 3)}, {"p": (1, 8)}, {"p": (2, 6)}]
    return Subject(op, inputs, wrong, static=True, hidden_size=2)


SUBJECTS = {
    "batch_norm": [Subject("BatchNormalization", BATCH, [*each("sbmv", (1,), (3,), (5,), (), (1, 4)), {"x": (2, 1, 3)}]),
                   Subject("BatchNormalization", BATCH, [*each("sbmv", (1,), (3,)), {"x": (2, 1, 3)}], outputs=3,
                           training_mode=1)],
    "instance_norm": [Subject("InstanceNormalization", NORM, [*each("sb", (1,), (3,), (5,), (), (1, 4)), {"x": (2, 1, 3)}])],
    # ONNX Runtime runs the function body of the standard, which broadcasts; the standard says [C] and [num_groups].
    "group_norm": [Subject("GroupNormalization", NORM, [*each("sb", (1,), (3,), (5,), (), (1, 4)), {"x": (2, 2, 3)}],
                           unjudged=True, num_groups=2),
                   Subject("GroupNormalization", [NORM[0], ("s", F, (2,)), ("b", F, (2,))], each("sb", (1,), (4,), ()),
                           unjudged=True, opset=18, num_groups=2)],
    "dequantize": quantization("DequantizeLinear", U),
    "quantize": quantization("QuantizeLinear", F),
    "reverse_sequence": [Subject("ReverseSequence", [("x", F, (4, 2, 3)), ("n", L, (2,))],
                                 [{"n": (1,)}, {"n": (3,)}, {"x": (4, 1, 3)}])],
    "tensor_scatter": [Subject("TensorScatter", [("c", F, (2, 4, 3)), ("u", F, (2, 2, 3)), ("w", L, (2,))],
                               [{"w": (1,)}, {"w": (3,)}], opset=24)],
    "integer_product": [
        Subject("MatMulInteger", [("a", U, (2, 3)), ("b", U, (3, 4)), ("za", U, ()), ("zb", U, (4,))],
                [{"za": (3,)}, {"za": (1, 2)}, {"zb": (2,)}, {"zb": (3, 4)}, {"b": (3, 1)}], each(["za", "zb"], (1,), ())),
        Subject("MatMulInteger", [("a", U, (5, 2, 3)), ("b", U, (5, 3, 4)), ("za", U, ()), ("zb", U, (5, 1, 4))],
                each(["zb"], (1, 1, 4), (1, 4), (5, 3, 4), (2, 5, 1, 4))),
        Subject("QLinearMatMul", PRODUCT, [{"sa": (3,)}, {"za": (3,)}, {"sb": (2,)}, {"zb": (2,)}, {"sy": (3,)}, {"zy": (3,)},
                                           {"b": (3, 1)}], [{"sa": (1,), "za": (1,)}, {"sb": (), "zb": ()}])],
    "integer_convolution": [
        Subject("ConvInteger", [IMAGE[0], IMAGE[3], ("zx", U, ()), ("zw", U, (1,))],
                [{"zx": (2,)}, {"zx": (4,)}, {"zw": (2,)}, {"zw": (4,)}], static=True),
        Subject("QLinearConv", IMAGE, [*each(["sx", "zx"], (2,), (3,)), {"sw": (2,)}, {"zw": (2,)}, {"bias": (1,)}],
                [{"sx": (1,), "zx": (1,)}, {"sw": (), "zw": ()}], static=True)],
    "products": [Subject("Gemm", [("a", F, (2, 3)), ("b", F, (3, 4)), ("c", F, (4,))],
                         [*each("c", (1, 2, 4), (5, 2, 4), (3,), (3, 4)), {"b": (3, 1)}, {"a": (1, 3), "c": (2, 1)}],
                         each("c", (), (1,), (2, 1), (1, 4), (2, 4)))],
    "recurrent": [recurrent("RNN", 1), recurrent("GRU", 3), recurrent("LSTM", 4, peepholes=True)],
    "windows": [Subject("STFT", [("x", F, (1, 16, 1)), ("step", L, ()), ("w", F, (8,)), ("l", L, ())],
                        [{"w": (1,)}, {"w": (4,)}], static=True, late=True, fixed={"step": np.array(4), "l": np.array(8)}),
                Subject("DeformConv", [("x", F, (1, 2, 4, 4)), ("w", F, (3, 2, 2, 2)), ("o", F, (1, 8, 3, 3)), ("b", F, (3,))],
                        each("b", (1,), (2,)), static=True)],
    "microsoft_norms": [
        Subject("SkipLayerNormalization", SKIP, [*each(["g", "b", "bias"], (1,), (3, 4)),
                                                 *each(["skip"], (2, 1, 4), (2, 3, 1), (1, 1, 4), (3, 1))],
                each(["skip"], (1, 3, 4), (3, 4)), domain=MICROSOFT),
        Subject("SkipSimplifiedLayerNormalization", [*SKIP[:3], SKIP[4]], [{"g": (1,)}, {"bias": (1,)}, {"bias": (3, 4)}],
                domain=MICROSOFT),
        *(Subject(op, [SKIP[0], ("b", F, (4,))], [*each("b", (1,), (3, 4), (2, 3, 4)), {"x": (2, 3, 1)}], domain=MICROSOFT)
          for op in ("BiasGelu", "FastGelu"))],
    "microsoft_products": [
        Subject("MatMulIntegerToFloat", [("a", U, (2, 3)), ("b", U, (3, 4)), ("sa", F, ()), ("sb", F, (4,)), ("za", U, ()),
                                         ("zb", U, (4,)), ("bias", F, (4,))],
                [{"sb": (3,)}, {"zb": (3,)}, *each(["bias"], (1,), (2, 4), (3,))], domain=MICROSOFT),
        Subject("DynamicQuantizeMatMul", [("a", F, (2, 3)), ("b", U, (3, 4)), ("sb", F, (4,)), ("zb", U, (4,)), ("bias", F, (4,))],
                [{"sb": (3,)}, {"zb": (3,)}, *each(["bias"], (1,), (2, 4))], domain=MICROSOFT),
        Subject("QGemm", [*PRODUCT[:6], ("c", I, (4,)), *PRODUCT[6:]],
                [{"za": (2,)}, {"sb": (3,), "zb": (3,)}, {"c": (5, 2, 4)}, {"zy": (2,)}], [{"c": (1,)}, {"c": (2, 1)}],
                domain=MICROSOFT),
        Subject("QLinearMul", [("a", U, (2, 3)), ("sa", F, ()), ("za", U, ()), ("b", U, (2, 3)), ("sb", F, ()), ("zb", U, ()),
                               ("sy", F, ()), ("zy", U, ())], each(["za", "zb"], (2,), (3,)), domain=MICROSOFT),
        Subject("FusedConv", [("x", F, (1, 2, 4, 4)), ("w", F, (3, 2, 2, 2)), ("b", F, (3,)), ("z", F, (1, 3, 3, 3))],
                each("z", (3, 1, 1), (1,), (2, 3, 3, 3)), static=True, domain=MICROSOFT),
        Subject("MatMulNBits", [("x", F, (2, 32)), ("w", U, (4, 2, 8)), ("s", F, (4, 2)), ("z", U), ("g", I), ("bias", F, (4,))],
                each(["bias"], (1,), (2, 4)), static=True, domain=MICROSOFT, K=32, N=4, block_size=16, bits=4)],
}


def define(name):
    def run(folder):
        for number, subject in enumerate(SUBJECTS[name]):
            (folder / str(number)).mkdir()
            subject.check(folder / str(number))
    run.__name__ = f"lengths_of_{name}"
    case(seconds=6)(run)


for name in SUBJECTS:
    define(name)


@case
def groups_divide_channels_of_the_run(folder):
    """2 groups of 3 channels are no groups, whoever knows the channels."""
    subject = Subject("GroupNormalization", [("x", F, (2, 4, 3)), ("s", F, (4,)), ("b", F, (4,))], (), num_groups=2)
    subject.model(folder / "m.onnx", subject.feeds({}), dynamic=True)
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp")
    for channels, is_legal in ((4, True), (2, True), (6, True), (3, False), (5, False), (1, False)):
        feeds = subject.feeds({"x": (2, channels, 2), "s": (channels,), "b": (channels,)})
        np.savez(folder / "in.npz", **feeds)
        result = tool("ds-run", folder / "m.dsp", "--inputs", folder / "in.npz", "--output", folder / "out.npz",
                      code=0 if is_legal else 1)
        if not is_legal:
            expect(len(result.err.strip().splitlines()) == 1, f"{channels}: {result}")
            continue
        x = feeds["x"].astype(np.float64).reshape(2, 2, -1)
        x = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
        expected = x.reshape(2, channels, 2) * feeds["s"][:, None] + feeds["b"][:, None]
        with np.load(folder / "out.npz") as found:  # f32 sums of a few numbers
            expect(distance(found["y0"], expected.astype(F)) <= 1e-4, f"{channels}: found {found['y0']}, expected {expected}")
