"""Weights in 8 and 4 bits (--quantize) against NumPy, which quantizes on its own and multiplies in double precision."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
from kit import MINILM, case, compile_model, distance, expect, run_package, tool
from model_cases import COSINES, SENTENCES, tokens
from programs import SEED, some

# Each way to quantize gets three of these, and the last one, with every vector and group cut.
SHAPES = ((1, 1), (2, 600), (3, 1025), (31, 48), (32, 33), (33, 49), (64, 100), (65, 16), (96, 47), (769, 50))
ROWS = (0, 1, 2, 3, 5, 8, 9, 16, 17, 40, 131)
UNIT = 2.0**-24


def least_loss(part, low, high, bottom, top):
    """The scale of three by which a group of each column loses least."""
    reach = lambda side, other, most: np.maximum(side / most, other / (top + 0.5))
    smallest, turned = reach(-low, high, 0.5 - bottom), reach(high, -low, 0.5 - bottom)
    ways = [np.where(smallest <= turned, smallest, -turned),
            np.where(-low >= high, reach(-low, high, -bottom), -reach(high, -low, -bottom)), np.maximum(-low, high) / top]
    ways = np.array(ways).astype(np.float32)
    wide = np.where(ways == 0, 1, ways.astype(np.float64))[:, None]
    loss = np.zeros(ways.shape)
    for row in (part - np.clip(np.rint(part / wide), bottom, top) * ways[:, None]).transpose(1, 0, 2):
        loss += row**2
    return np.take_along_axis(ways, loss.argmin(0)[None], 0)[0]


def quantized(w, bits, group, scheme):
    """What a weight [K, N] stands for afterwards, its scales, and its codes, elementwise and in float64."""
    w, stands, scales, codes = w.astype(np.float64), np.zeros(w.shape), np.zeros(w.shape), np.zeros(w.shape)
    group = group if 0 < group < len(w) else max(len(w), 1)
    for start in range(0, len(w), group):
        part = w[start:start + group]
        low, high = np.minimum(part.min(0), 0), np.maximum(part.max(0), 0)
        top, bottom = 2**(bits - 1) - 1, -2**(bits - 1)
        scale = least_loss(part, low, high, bottom, top) if scheme == "symmetric" else ((high - low) / (top - bottom)).astype(np.float32)
        step = np.where(scale == 0, 1, scale.astype(np.float64))
        zero = np.clip(np.rint(bottom - low / step), bottom, top) * (scale > 0) if scheme == "asymmetric" else 0
        code = np.clip(np.rint(part / step) + zero, bottom, top)
        here = slice(start, start + group)
        codes[here], scales[here] = code, scale
        stands[here] = (code - zero) * scale.astype(np.float64)
    return stands, scales, codes


def digits_lose(x, stands):
    """At most, where rows become digits: half a unit of the lowest one for each element, 2^-22.9 of the greatest of its row."""
    return 2**1.1 * UNIT * np.abs(x).max(1, initial=0)[:, None] * np.abs(stands).sum(0)


def rounding(x, stands, bias):
    """How far a product of rows may be from one with what codes stand for: one rounding per step of K, one of each weight and its
    scale, one of the bias, and what digits lose."""
    return (len(stands) + 5) * UNIT * (np.abs(x) @ np.abs(stands) + np.abs(bias)) + digits_lose(x, stands)


def option(bits, group, scheme):
    return f"--quantize=int{bits},group={group},scheme={scheme},mixed=no"


class Products:
    """One product with bias per shape, each of an input of its own."""

    def __init__(self, name, shapes=SHAPES):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.weights, self.biases, nodes, inputs, outputs, constants = [], [], [], [], [], []
        for i, (k, n) in enumerate(shapes):
            w = (self.random.standard_normal((k, n)) * np.exp(self.random.standard_normal(n))).astype(np.float32)
            w[:, 0] *= i % 3 != 1  # a column of zeros
            self.weights.append(w + np.float32(i % 2))
            self.biases.append(self.random.standard_normal(n).astype(np.float32))
            constants += [numpy_helper.from_array(self.weights[-1], f"w{i}"), numpy_helper.from_array(self.biases[-1], f"b{i}")]
            nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]), helper.make_node("Add", [f"p{i}", f"b{i}"], [f"y{i}"])]
            # Some learn from the weight alone how long a row is.
            inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["m", f"k{i}" if i % 4 == 3 else k]))
            outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["m", n]))
        graph = helper.make_graph(nodes, "products", inputs, outputs, constants)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def compiled(self, folder, *options):
        onnx.save(self.model, str(folder / "products.onnx"))
        return compile_model(folder / "products.onnx", folder, *options)

    def feed(self, rows):
        return {f"x{i}": self.random.standard_normal((rows, len(w))).astype(np.float32) for i, w in enumerate(self.weights)}

    def judge(self, feed, found, how, about):
        for i, (w, b) in enumerate(zip(self.weights, self.biases)):
            bits, group, scheme = how
            k, n = w.shape
            groups = -(-k // group) if 0 < group < k else 1
            packed = -(-k * bits // 8) * n + groups * n * (5 if scheme == "asymmetric" else 4)
            isKept = 4 * k * n <= 4096 or packed >= 4 * k * n  # small ones lie in the program
            x, actual = feed[f"x{i}"].astype(np.float64), found[f"y{i}"].astype(np.float64)
            stands, scales, _ = quantized(w, *how) if not isKept else (w.astype(np.float64), 0 * w, w)
            near = rounding(x, stands, b)
            what = f"{about} y{i} of {w.shape} in {how} (DS_SEED={SEED})"
            expect(actual.shape == (len(x), n), f"{what}: found shape {actual.shape}")
            far = np.abs(actual - (x @ stands + b))
            expect((far <= near).all(), f"{what}: {far.max(initial=0)} from what the codes stand for")
            # The stated bound: half a step of every weight. Codes at the ends are off by the rounding of the scale.
            bound = np.abs(x) @ (np.abs(scales) * (0.5 + 256 * UNIT)) + near
            far = np.abs(actual - (x @ w.astype(np.float64) + b))
            expect((far <= bound).all(), f"{what}: beyond half a step of every weight, by {(far - bound).max(initial=0)}")


def products(folder, name, hows, *options):
    for number, how in enumerate(hows):
        m = Products(f"{name} {how}", [*(SHAPES[(3 * number + i) % 9] for i in range(3)), SHAPES[-1]])
        package = m.compiled(folder, option(*how), *options)
        kept = None
        for rows in ROWS:
            feed = m.feed(rows)
            found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
            m.judge(feed, found, how, f"{name} {rows} rows:")
            kept = (feed, found) if rows == max(ROWS) else kept
        feed, found = kept
        for first, count, threads in ((0, 1, 1), (3, 8, 2), (40, 13, 1), (5, 17, 3)):
            part = {key: array[first:first + count] for key, array in feed.items()}
            for key, array in run_package(package, part, folder, f"--threads={threads}").items():
                same = array.tobytes() == found[key][first:first + count].tobytes()
                expect(same, f"{name} {how}: {key} has other bits in {count} rows than in {max(ROWS)} (DS_SEED={SEED})")


HOWS = [(bits, group, scheme) for bits in (8, 4) for group in (0, 32) for scheme in ("symmetric", "asymmetric")]


@case(seconds=23)
def products_of_codes(folder):
    products(folder, "host", some(HOWS, 5))


@case(seconds=23)
def products_of_codes_in_short_groups(folder):
    products(folder, "short groups", [(4, 2, "symmetric"), (8, 6, "asymmetric"), (4, 10, "asymmetric"), (8, 128, "symmetric")])


@case(seconds=23)
def products_of_codes_with_short_vectors(folder):
    products(folder, "AVX2", some(HOWS, 4), "--mcpu=x86-64-v3")


@case(seconds=5)
def products_of_codes_in_plain_loops(folder):
    for number, how in enumerate(HOWS):
        m = Products(f"plain {how}")
        package = m.compiled(folder, option(*how), ("--reference", "--reference=f64")[number % 2])
        for rows in (0, 1, 3):
            feed = m.feed(rows)
            m.judge(feed, run_package(package, feed, folder), how, f"plain {rows} rows:")


def constants(package):
    manifest = json.loads((package / "manifest.json").read_text())
    stored = (package / "weights.bin").read_bytes()
    return {c["name"]: (c, stored[c["offset"]:c["offset"] + c["bytes"]]) for c in manifest["variants"][0]["constants"]}


@case(seconds=12)
def codes_are_packed_and_nothing_else_has_their_size(folder):
    for bits, group, scheme in HOWS:
        m = Products("layout", shapes=((65, 100), (1024, 2048)))
        package = m.compiled(folder, option(bits, group, scheme), "--mcpu=x86-64-v3")
        found = constants(package)
        for i, w in enumerate(m.weights):
            k, n = w.shape
            info, data = found[f"w{i}.int{bits}.packed"]
            panels, steps, width = info["shape"]
            expect((width, steps) == (16, k if bits == 8 else -(-k // 2)), f"unexpected panels: {info}")
            codes = np.frombuffer(data, np.int8).reshape(panels, steps, width)
            if bits == 4:  # the low half is the first of two steps
                codes = np.stack([np.left_shift(codes, 4) >> 4, codes >> 4], 2).reshape(panels, 2 * steps, width)
            codes = codes.transpose(1, 0, 2).reshape(codes.shape[1], -1)[:k, :n]
            _, scales, expected = quantized(w, bits, group, scheme)
            expect((codes == expected).all(), f"int{bits} {group} {scheme}: {(codes != expected).sum()} codes of {w.shape} "
                                              f"are not NumPy's (DS_SEED={SEED})")
            groups = -(-k // group) if group else 1
            stored = np.frombuffer(found[f"w{i}.scales.packed"][1], np.float32).reshape(panels, groups, width)
            stored = stored.transpose(1, 0, 2).reshape(groups, -1)[:, :n]
            expect((stored == scales[::group or k].astype(np.float32)).all(), f"int{bits} {group}: other scales")
        largest = 1024 * 2048 * bits // 8
        total = sum(info["bytes"] for info, _ in found.values())
        expect(total < largest * (1.4 if group else 1.1), f"{total} bytes of constants around {largest} of codes")
        plan = tool("ds-run", "inspect", package, "--dim", "m=64").out
        expect("workspace: 0 buffers, 0 bytes" in plan, f"buffers beside the codes: {plan}")


@case(seconds=23)
def weights_on_a_grid_stay_what_they_are(folder):
    """What training for quantization leaves: multiples of a step, cut at either end. Judged by the weights themselves."""
    for bits, group in some(((8, 0), (8, 32), (4, 32), (4, 0)), 2):
        m = Products(f"grid {bits} {group}", SHAPES[4:])
        reach = 2**(bits - 1)
        for i, w in enumerate(m.weights):
            codes = m.random.integers(-reach, reach, w.shape) if i % 2 else m.random.integers(1 - reach, reach, w.shape)
            codes[::group or len(w)] = -reach if i % 2 else m.random.choice([1 - reach, reach - 1], codes[::group or len(w)].shape)
            m.weights[i] = (codes * np.exp(m.random.standard_normal(w.shape[1]))).astype(np.float32)
            next(c for c in m.model.graph.initializer if c.name == f"w{i}").CopyFrom(numpy_helper.from_array(m.weights[i], f"w{i}"))
        found = run_package(m.compiled(folder, option(bits, group, "symmetric")), feed := m.feed(9), folder)
        for i, (w, b) in enumerate(zip(m.weights, m.biases)):
            x = feed[f"x{i}"].astype(np.float64)
            rounding = (len(w) + 9) * UNIT * (np.abs(x) @ np.abs(w) + np.abs(b))  # of the weight, its scale and each step
            far = np.abs(found[f"y{i}"] - (x @ w + b))
            expect((far <= rounding).all(), f"int{bits} {group} y{i}: {far.max()} from the floats (DS_SEED={SEED})")


@case(seconds=12)
def decoders_compute_what_their_codes_stand_for(folder):
    model = folder / "decoder.onnx"
    generate.save(generate.gpt2_step(layers=2, hidden=96, heads=4, vocabulary=500, seed=SEED), model)
    random = np.random.default_rng([SEED, 1])
    given = lambda *shape: random.standard_normal(shape).astype(np.float32)
    feeds = []
    for batch, past in ((1, 5), (3, 1), (20, 2)):
        past_values = {f"past.{layer}.{kind}": given(batch, 4, past, 24) for layer in range(2) for kind in ("key", "value")}
        feeds.append({"hidden": given(batch, 1, 96), **past_values})
    plain = compile_model(model, folder, "--reference=f64", name="plain.dsp")
    for bits, group, furthest in ((8, 0, 0.02), (4, 32, 0.3)):
        how = option(bits, group, "asymmetric") + ",keep=h.1.attn"
        package = compile_model(model, folder, how)
        exact = compile_model(model, folder, how, "--reference=f64", name="exact.dsp")
        names = set(constants(package))
        expect(any("h.0.attn.c_attn.weight.int" in name for name in names), f"nothing quantized among {sorted(names)}")
        expect(not any("h.1.attn" in name and ".int" in name for name in names), f"not kept: {sorted(names)}")
        for feed in feeds:
            ours, theirs = run_package(package, feed, folder), run_package(exact, feed, folder)
            floats = run_package(plain, feed, folder)
            for name, right in theirs.items():
                # Tens of roundings in f32 on numbers about 1, in sums of at most 384.
                far = distance(ours[name], right)
                expect(far <= 1e-4, f"int{bits} {name}: {far} from --reference=f64 of the same codes (DS_SEED={SEED})")
                share = np.sqrt(np.mean((right - floats[name])**2) / np.mean(floats[name]**2))
                expect(share <= furthest, f"int{bits} {name}: relative root mean square {share:.3f} from the floats")


def bfloat16(w):
    """The upper halves of floats, to nearest, ties to even."""
    bits = w.view(np.uint32)
    return (bits + 0x7fff + (bits >> 16 & 1) >> 16).astype(np.uint16)


def attention_and_more(random, width=40, inner=2 * 160):
    """Eight products by weights that each have their name, the values' among them, one weight with rows of outliers, and one with a column of little."""
    weights = {name: random.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[0])) for name, shape in {
        "wq": (width, width), "wk": (width, width), "wv": (width, width), "wo": (width, width),
        "up": (width, inner), "down": (inner, width), "last": (width, inner), "beside": (width, width)}.items()}
    weights["down"][random.integers(inner)] *= 100
    weights["beside"][:, random.integers(width)] *= 1e-8
    node = lambda kind, inputs, output, **more: helper.make_node(kind, inputs.split(), [output], **more)
    nodes = [node("MatMul", "x wq", "q"), node("MatMul", "x wk", "k"), node("MatMul", "x wv", "v"), node("Transpose", "k", "t", perm=[1, 0]),
             node("MatMul", "q t", "s"), node("Softmax", "s", "p", axis=1), node("MatMul", "p v", "a"), node("MatMul", "a wo", "o"),
             node("MatMul", "o up", "u"), node("Tanh", "u", "h"), node("MatMul", "h down", "d"), node("Tanh", "d", "e"),
             node("MatMul", "e last", "y"), node("MatMul", "e beside", "z")]
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["m", k]) for n, k in (("x", width), ("y", inner), ("z", width))]
    graph = helper.make_graph(nodes, "g", shapes[:1], shapes[1:], [numpy_helper.from_array(w, n) for n, w in weights.items()])
    return weights, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def finer_group(w, group, scheme):
    """Beside 4 bits: columns of 8 where they lose at most 1.8 times what groups lose."""
    lost = [np.linalg.norm(quantized(w, 8, of, scheme)[0] - w.astype(np.float64)) for of in (0, group)]
    return 0 if lost[0] <= 1.8 * lost[1] else group


@case(seconds=23)
def sensitive_weights_in_finer_steps(folder):
    """Values, the last two of eight products and, where 8 bits stay 8, outliers and what stands beside values: codes and f16 by NumPy,
    in the reference, too, and so its numbers. A column below f16 keeps a weight from it."""
    random = np.random.default_rng([SEED, 5])
    weights, model = attention_and_more(random)
    onnx.save(model, str(folder / "m.onnx"))
    finer = {"wv", "last", "beside"}
    for bits, group, scheme in ((4, 8, "symmetric"), (4, 32, "asymmetric"), (8, 0, "symmetric"), (8, 8, "symmetric"), (8, 32, "asymmetric"), (8, 512, "symmetric")):
        isWide = bits == 8 and not 0 < group <= 32
        how = f"--quantize=int{bits},group={group},scheme={scheme}"
        package = compile_model(folder / "m.onnx", folder, how, "--fusion=none")
        exact = compile_model(folder / "m.onnx", folder, how, "--reference=f64", name="exact.dsp")
        found = constants(exact)
        for name, w in weights.items():
            what = f"{how}: {name} (DS_SEED={SEED})"
            if bits == 8 and not isWide and name in finer - {"beside"}:
                expect(f"{name}.f16" in found, f"{what}: expected f16, found {sorted(found)}")
                expect(found[f"{name}.f16"][1] == w.astype(np.float16).tobytes(), f"{what}: other f16 than NumPy's")
                continue
            isFiner = name in finer or (isWide and name in {"down", "wq", "wk"})
            stored = (8, 32 if isWide else group if bits == 8 else finer_group(w, group, scheme), scheme) if isFiner else (bits, 0 if group >= len(w) else group, scheme)
            _, scales, codes = quantized(w, *stored)
            groups = -(-len(w) // stored[1]) if stored[1] else 1
            expect(f"{name}.int{stored[0]}" in found, f"{what}: expected {stored}, found {sorted(found)}")
            info, data = found[f"{name}.scales"]
            expect(tuple(info["shape"]) == (groups, w.shape[1]), f"{what}: {info}")
            expect(np.array_equal(np.frombuffer(data, np.float32).reshape(groups, -1), scales[::stored[1] or len(w)].astype(np.float32)), f"{what}: scales")
            if stored[0] == 8:
                data = np.frombuffer(found[f"{name}.int8"][1], np.int8).reshape(w.shape)
                expect(np.array_equal(data, codes), f"{what}: {(data != codes).sum()} codes")
        for rows in (1, 19):
            feed = {"x": random.standard_normal((rows, 40)).astype(np.float32)}
            ours, theirs = run_package(package, feed, folder), run_package(exact, feed, folder)
            for name, right in theirs.items():
                # Sums of at most 320 numbers about 1, or 100 in the row of outliers, under a tanh.
                far = np.abs(ours[name] - right).max()
                expect(far <= 1e-3, f"{how} {name}: {far} from the reference (DS_SEED={SEED})")
    rounded = compile_model(folder / "m.onnx", folder, "--quantize=int8,group=32", "--precision=bf16", "--reference", name="rounded.dsp")
    found = {data for info, data in constants(rounded).values() if info["type"] == "bf16"}
    expected = {bfloat16(weights[name]).tobytes() for name in finer}
    expect(found == expected, f"bf16: {len(found & expected)} of {len(expected)} weights are NumPy's, {len(found)} are there (DS_SEED={SEED})")


@case(seconds=23)
def quantized_minilm_keeps_its_cosines(folder):
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    # Errors of weights are random; those of 4 bits are about 14 times those of 8.
    for how, furthest in (("int8", 0.01), ("int8,group=64,scheme=asymmetric", 0.01), ("int4", 0.1)):
        package = compile_model(MINILM, folder, f"--quantize={how}")
        vectors = run_package(package, inputs, folder)["461"].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for (i, j), expected in COSINES.items():
            found = float(vectors[i] @ vectors[j])
            expect(abs(found - expected) <= furthest, f"{how}: cosine {i + 1}·{j + 1}: expected {expected}, found {found:.4f}")
        values = tokens(3, 24, SEED)
        whole = run_package(package, values, folder)["461"]
        for row in range(3):
            alone = run_package(package, {name: array[row:row + 1] for name, array in values.items()}, folder)["461"]
            expect(alone.tobytes() == whole[row:row + 1].tobytes(), f"{how}: row {row} has other bits alone")


@case
def what_cannot_be_quantized_is_kept_or_refused(folder):
    m = Products("kept", shapes=((64, 64), (64, 64)))
    m.weights[1][3, 5] = np.nan
    bad = m.model.graph.initializer[2]
    bad.CopyFrom(numpy_helper.from_array(m.weights[1], "w1"))
    onnx.save(m.model, str(folder / "nan.onnx"))
    result = tool("ds-opt", folder / "nan.onnx", "-o", folder / "nan.dsp", "--quantize=int8", "--report")
    expect("weight 'w1' is kept: it has elements that are not finite" in result.err, f"no remark: {result}")
    expect("quantize-weights: 1 weights quantized" in result.out, f"no report: {result}")
    feed = m.feed(2)
    found = run_package(folder / "nan.dsp", feed, folder)
    expect(np.isnan(found["y1"][:, 5]).all() and np.isfinite(np.delete(found["y1"], 5, 1)).all(), "the NaN went astray")
    m.weights, m.biases = m.weights[:1], m.biases[:1]
    m.judge(feed, found, (8, 0, "symmetric"), "beside NaN:")
    tool("ds-opt", folder / "nan.onnx", "-o", folder / "no.dsp", "--quantize=int8,keep=w", code=1,
         says="no weight was quantized: weight 'w0' is kept: 'w' matches its name or its product's")
    expect(not (folder / "no.dsp").exists(), "a package although nothing was quantized")
