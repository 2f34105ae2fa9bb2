"""Transformer layers as ONNX Runtime's quantize_dynamic writes them: how many launches one takes, its numbers beside ONNX
Runtime's, and its bits without fusion."""
import numpy as np
import onnx

import generate
from kit import case, compile_model, expect, onnx_runtime, processors, run_package
from layer_cases import launches
from layers import Layers, t5
from optimized_cases import apart, quantization
from programs import SEED, some

MOST_ROWS = 32768 // 60  # of 60 elements, of which each thread takes the extremes of a norm again, where their number is known
LAUNCHES = 5  # norm and product, attention, product, norm and product, product


def bert(layers):
    return generate.bert(layers=layers, hidden=128, heads=4, vocabulary=50, positions=64)


def quantized(folder, layers, make=bert, **options):
    """Weights of 7 bits: on CPUs without VNNI, ONNX Runtime's sums of two u8 × i8 products saturate at 16 bits."""
    tools = quantization()
    generate.save(make(layers), folder / "float.onnx")
    path = folder / f"quantized-{layers}.onnx"
    tools.quantize_dynamic(folder / "float.onnx", path, reduce_range=True, **options)
    return path


def feed(random, batch, length):
    return {"input_ids": random.integers(1, 50, (batch, length)),
            "attention_mask": (np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int64)}


@case
def launches_of_a_dynamically_quantized_layer(folder):
    untyped = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # of results that ONNX's inference of shapes does not know
    for make, expected in ((bert, LAUNCHES), (lambda n: generate.gpt2_step(layers=n, hidden=96, heads=3, vocabulary=100), LAUNCHES),
                           (lambda n: t5(n, decoder=True), LAUNCHES + 3)):
        found = launches(folder, lambda layers: onnx.load(quantized(folder, layers, make, extra_options=untyped)))
        expect(found == expected, f"a layer takes {found} launches, expected {expected}")


def judge(model, folder, inputs, most):
    """No bit depends on fusion or threads; from ONNX Runtime's numbers a share of `most` of the root mean square, as a code that
    falls to the other side of a step moves all behind it."""
    for cpu in some(processors(), 1):
        packages = [compile_model(model, folder, f"--mcpu={cpu}", f"--fusion={fusion}", name=f"{fusion}-{cpu}.dsp")
                    for fusion in ("none", "specialized")]
        for given in inputs:
            found = [run_package(package, given, folder, f"--threads={threads}")
                     for package, threads in zip([*packages, packages[-1]], (2, 3, 1))]
            for name, array in onnx_runtime(model, given).items():
                for other in found[1:]:
                    expect(other[name].tobytes() == found[0][name].tobytes(), f"{cpu} {name} of {array.shape}: fusion changes bits (DS_SEED={SEED})")
                far = apart(found[0][name], array)
                expect(far < most, f"{cpu} {name} of {array.shape}: relative root mean square {far:.3g} from ONNX Runtime")


def compare(folder, **options):
    """Fusion decides whose kernel multiplies the zero points."""
    model, random = quantized(folder, 1, **options), np.random.default_rng([SEED, len(options)])
    judge(model, folder, [feed(random, *sizes) for sizes in ((1, 1), (2, 7), (5, 33))], most=0.02)


@case(seconds=5)
def dynamically_quantized_layer(folder):
    compare(folder)


@case(seconds=6)
def dynamically_quantized_layer_per_channel(folder):
    compare(folder, per_channel=True)


class Codes(Layers):
    def codes(self, x, rows, columns):
        """As quantize_dynamic writes a product with a weight."""
        numbers, scale, zero = self.op("DynamicQuantizeLinear", x, outputs=3)
        weight = self.constant(self.random.integers(-60, 60, (rows, columns)).astype(np.int8))
        product = self.op("Cast", self.op("MatMulInteger", numbers, weight, zero), to=onnx.TensorProto.FLOAT)
        return self.op("Mul", product, self.op("Mul", scale, self.number(0.01)))


def extremes(seed):
    """A norm, attention and a product with what follows it, each before a product of their codes; 40 columns are no whole panels."""
    g = Codes(64, seed)
    x, codes = g.input("x", "batch", "tokens", 64), g.codes
    heads = lambda x: g.turned(g.heads(x, 4, 16))
    normal = g.layer_norm(x, "norm")
    context = g.attention(*(heads(codes(normal, 64, 64)) for _ in "qkv"), 4, 4, 16)
    inner = g.gelu(codes(context, 64, 192))
    for columns in (64, 40):
        g.output(g.op("Identity", codes(g.op("Relu", codes(inner, 192, columns)), columns, 24), name=f"y{columns}"), "batch", "tokens", 24)
    return g.model(g.inputs, g.outputs)


@case(seconds=8)
def extremes_of_parts(folder):
    """No bit depends on where they are taken: of no rows, of one, of more than a block, where rows are NaN or infinite, and where
    all are zeros, whose norm is its bias."""
    random = np.random.default_rng([SEED, 7])
    generate.save(extremes(int(random.integers(1000))), folder / "m.onnx")
    cpu = some(processors(), 1)[0]
    packages = [compile_model(folder / "m.onnx", folder, f"--mcpu={cpu}", f"--fusion={fusion}", name=f"{fusion}.dsp") for fusion in ("none", "specialized")]
    for batch, tokens in ((0, 3), (1, 1), (2, 7), (3, 67)):
        for special in ((), (np.nan,), (np.inf, -np.inf), (0,)) if batch == 2 else ((),):
            x = random.standard_normal((batch, tokens, 64)).astype(np.float32)
            for number in special:
                x[-1:, -1:, :] = number
            if special == (0,):
                x[:] = 0
            none, *others = [run_package(package, {"x": x}, folder, f"--threads={threads}") for package, threads in zip([*packages, packages[-1]], (2, 3, 1))]
            for name, array in none.items():
                for other in others:
                    expect(np.array_equal(array, other[name], equal_nan=True), f"{cpu} {name} of {x.shape} with {special}: fusion changes numbers (DS_SEED={SEED})")
            if special or batch == 0:
                continue
            for name, array in onnx_runtime(folder / "m.onnx", {"x": x}, cache={}).items():
                far = apart(none[name], array)
                expect(far < 0.05, f"{name} of {x.shape}: {far} from ONNX Runtime (DS_SEED={SEED})")


def normed(seed, rows):
    """Norms whose codes are multiplied; a residual reads the first one, too."""
    g = Codes(60, seed)
    normal = g.layer_norm(g.input("x", rows, 60), "first")
    y = g.op("Add", normal, g.codes(normal, 60, 60))
    g.output(g.op("Identity", g.codes(g.rms_norm(y, "second"), 60, 40), name="y"), rows, 40)
    return g.model(g.inputs, g.outputs)


def same(a, b):
    """Bit for bit, but for those of what is no number."""
    return np.array_equal(np.isnan(a), np.isnan(b)) and a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()


@case(seconds=6)
def extremes_of_norms(folder):
    """No bit depends on which launch takes them: that of the product, where rows are unknown or as many as it takes in, or
    one before it, where there is one more; of no rows, of one, of more than a block; where numbers are NaN or infinite."""
    random = np.random.default_rng([SEED, 8])
    cpu, seed = some(processors(), 1)[0], int(random.integers(1000))
    for size in ("rows", MOST_ROWS, MOST_ROWS + 1):
        generate.save(normed(seed, size), folder / "m.onnx")
        package = compile_model(folder / "m.onnx", folder, f"--mcpu={cpu}", name=f"{size}.dsp")
        if size == "rows":
            plain = compile_model(folder / "m.onnx", folder, f"--mcpu={cpu}", "--fusion=none", name="none.dsp")
        run = lambda package, threads: next(iter(run_package(package, {"x": x}, folder, f"--threads={threads}").values()))
        for rows in (0, 1, 3, 130) if size == "rows" else (size,):
            for special in ((), (np.nan,), (np.inf, -np.inf)) if rows == 3 else ((),):
                x = random.standard_normal((rows, 60)).astype(np.float32)
                for number in special:
                    x[random.integers(rows), :: random.integers(1, 4)] = number
                found = run(plain, 1)
                for threads in (1, 2, 5):
                    expect(same(found, run(package, threads)), f"{cpu} {rows} of {size} rows with {special}, {threads} threads: fusion changes numbers (DS_SEED={SEED})")
                if special or rows == 0:
                    continue
                far = apart(found, next(iter(onnx_runtime(folder / "m.onnx", {"x": x}, cache={}).values())))
                expect(far < 0.05, f"{rows} of {size} rows: {far} from ONNX Runtime (DS_SEED={SEED})")
