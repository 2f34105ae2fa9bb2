"""Attention whose weights become codes, over more keys than scratch has scores of at a time: numbers beside NumPy, whose softmax is in
float64, bits without fusion, with other threads and alone, scratch that does not grow.

A weight that lies within 1e-5 of its size from the middle between two codes may become either: a sum of f32 in blocks of 2,048, and an
exponential, are a few units in the last place off. Nothing else is rounded where NumPy does not round, too.
"""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, processors, run_package
from long_attention_cases import scratches
from programs import SEED, some
from statically_quantized_cases import SIZES, feed, gpt2, judge, llama, quantized
import layers

BLOCK = 8192  # keys, of few features; panels of f32 have fewer
LENGTHS = [1, 2047, 2049, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 2049, 2 * BLOCK + 3]
CODES = {TensorProto.UINT8: (0, 256), TensorProto.INT8: (-128, 128)}


class Attention:
    """Queries [batch, heads, rows, features], keys and values in codes; keys are [..., features, keys] where they are turned, and
    codes of floats that are joined along features where they are joined. `mask` has these of the axes of scores."""

    def __init__(self, random, rows, keys, features=16, width=16, dynamic=True, heads=2, turned=False, joined=False, mask="batch 1 1 keys"):
        self.random, self.rows, self.keys, self.features, self.width = random, rows, keys, features, width
        self.heads, self.turned, self.joined, self.masked = heads, turned or joined, joined, mask is not None
        self.types = [int(random.choice(list(CODES))) for _ in range(3)]  # of queries, keys and values
        self.zeros = [int(random.integers(*CODES[kind])) // 4 for kind in self.types]
        self.scale = np.float32(2 / 5461 / np.sqrt(features))  # a product of two codes has a variance of about 5461 squared
        self.step = np.float32(random.uniform(0.1, 0.5) / min(keys, 200))
        self.dims = [["batch", heads, "rows", features], ["batch", heads, *((features, "keys") if self.turned else ("keys", features))],
                     ["batch", heads, "keys", width], [1 if axis == "1" else heads if axis == "heads" else axis for axis in (mask or "").split()]]
        if not dynamic:
            named = {"batch": 2, "rows": rows, "keys": keys}
            self.dims = [[named.get(d, d) for d in dims] for dims in self.dims]

    def model(self):
        nodes = [] if self.turned else [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])]
        if self.joined:
            nodes = [helper.make_node("Concat", ["k0", "k1"], ["floats"], axis=2), helper.make_node("QuantizeLinear", ["floats", "one", "kz"], ["k"])]
        nodes += [helper.make_node("MatMulInteger", ["q", "k" if self.turned else "kt", "qz", "kz"], ["products"]),
                  helper.make_node("Cast", ["products"], ["numbers"], to=TensorProto.FLOAT),
                  helper.make_node("Mul", ["numbers", "scale"], ["scaled"]),
                  helper.make_node("Add", ["scaled", "mask"], ["scores"]) if self.masked else helper.make_node("Identity", ["scaled"], ["scores"]),
                  helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
                  helper.make_node("QuantizeLinear", ["weights", "step", "none"], ["codes"]),
                  helper.make_node("MatMulInteger", ["codes", "v", "none", "vz"], ["y"])]
        initial = {"scale": self.scale, "step": self.step, "none": np.uint8(0), "one": np.float32(1)}
        for name, kind, zero in zip(("qz", "kz", "vz"), self.types, self.zeros):
            initial[name] = np.array(zero, helper.tensor_dtype_to_np_dtype(kind))
        kinds = [*self.types, TensorProto.FLOAT]
        inputs = [helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in zip(("q", "k", "v", "mask"), kinds, self.dims)]
        inputs = inputs[:4 if self.masked else 3]
        if self.joined:
            dims = self.dims[1]
            inputs[1:2] = [helper.make_tensor_value_info(f"k{part}", TensorProto.FLOAT, [*dims[:2], size, dims[3]])
                           for part, size in enumerate((1, self.features - 1))]
        graph = helper.make_graph(nodes, "attention", inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
                                  [numpy_helper.from_array(np.asarray(array), name) for name, array in initial.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def feed(self, batch=2):
        sizes = {"batch": batch, "rows": self.rows, "keys": self.keys}
        arrays = {}
        for name, kind, dims in zip("qkv", self.types, self.dims):
            shape = [sizes.get(d, d) for d in dims]
            arrays[name] = self.random.integers(*CODES[kind], shape).astype(helper.tensor_dtype_to_np_dtype(kind))
        if self.masked:
            mask = self.random.standard_normal([sizes.get(d, d) for d in self.dims[3]]).astype(np.float32)
            mask[self.random.uniform(size=mask.shape) < 0.2] = -1e4 if mask.shape[-1] > 1 else 3
            arrays["mask"] = mask
        return arrays

    def inputs(self, arrays):
        """What the model takes of what it is judged by."""
        if not self.joined:
            return arrays
        floats = (arrays["k"].astype(np.int64) - self.zeros[1]).astype(np.float32)
        return {name: array for name, array in arrays.items() if name != "k"} | {"k0": floats[:, :, :1], "k1": floats[:, :, 1:]}

    def alone(self, arrays, entry):
        return {name: array[entry:entry + 1] if dims and dims[0] == "batch" else array for (name, array), dims in zip(arrays.items(), self.dims)}

    def verify(self, given, found, what):
        """The result is exact, but for weights between two codes."""
        q, k, v = (given[name].astype(np.int64) - zero for name, zero in zip("qkv", self.zeros))
        scores = (q @ (k if self.turned else k.swapaxes(-1, -2))).astype(np.float32) * self.scale
        scores = (scores + given["mask"] if self.masked else scores).astype(np.float64)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True) / np.float64(self.step)
        codes = np.clip(np.rint(weights), 0, 255).astype(np.int64)
        isUncertain = np.abs(weights - np.floor(weights) - 0.5) <= 1e-5 * np.maximum(weights, 1)
        expect(isUncertain.mean() < 1e-3 and len(np.unique(codes)) >= min(self.keys, 4), f"{what}: what is compared says nothing")
        bound = isUncertain.astype(np.int64) @ np.abs(v)
        far = np.abs(found.astype(np.int64) - codes @ v) - bound
        expect(far.max() <= 0, f"{what}: {np.count_nonzero(far > 0)} of {far.size} elements are wrong, by up to {far.max()}")


def compare(folder, attention, what):
    model = folder / "attention.onnx"
    onnx.save(attention.model(), model)
    (cpu,) = some(processors(), 1)
    apart, one = (compile_model(model, folder, f"--mcpu={cpu}", f"--fusion={fusion}", name=f"{fusion}.dsp") for fusion in ("none", "specialized"))
    (variant,) = json.loads((one / "manifest.json").read_text())["variants"]
    expect(len(variant["entries"][0]["launches"]) == 1 + attention.joined, f"{what}: not one kernel")
    given = attention.feed()
    found = [run_package(package, attention.inputs(given), folder, f"--threads={threads}")["y"] for package, threads in ((one, 2), (one, 1), (one, 3), (apart, 2))]
    what = f"{what} on {cpu} (DS_SEED={SEED})"
    attention.verify(given, found[0], what)
    for other, why in zip(found[1:], ("threads", "threads", "fusion")):
        expect(other.tobytes() == found[0].tobytes(), f"{what}: bits depend on {why}")
    if attention.dims[0][0] == "batch":
        for entry in range(2):
            alone = run_package(one, attention.inputs(attention.alone(given, entry)), folder)["y"]
            expect(alone.tobytes() == found[0][entry:entry + 1].tobytes(), f"{what}: entry {entry} has other bits alone")


@case(seconds=25)
def blocks_of_keys(folder):
    random = np.random.default_rng([SEED, 1])
    for number, keys in enumerate(some(LENGTHS, 5)):
        rows, (features, width) = int(random.choice([1, 5, 40, 600])), ((16, 16), (64, 64), (33, 20), (7, 80))[random.integers(4)]
        if rows == 600 and keys > BLOCK + 1:
            rows = 70
        masks = "batch 1 1 keys", "batch 1 rows 1", "1", "heads rows keys", "1 1 1 keys", None
        options = {"dynamic": bool(random.integers(3)), "turned": bool(random.integers(2)), "joined": not random.integers(4),
                   "mask": masks[random.integers(len(masks))]}
        attention = Attention(random, rows, keys, features, width, heads=int(random.choice([1, 3])), **options)
        compare(folder, attention, f"{number}: {rows} rows, {keys} keys, {features} and {width} features, {options}")


@case(seconds=12)
def sweeps_of_rows(folder):
    """More rows than meet the packed keys at a time, and more keys than are packed; one number for all keys of a row."""
    random = np.random.default_rng([SEED, 2])
    compare(folder, Attention(random, 700, BLOCK + 70, 8, 8, heads=1), "many rows")
    for mask in ("batch 1 rows 1", "1"):
        compare(folder, Attention(random, 3, BLOCK + 9, 8, 8, heads=1, mask=mask), f"mask of {mask}")


@case(seconds=20)
def steps_over_long_caches(folder):
    """Keys and values that the kernel puts together from caches and new rows, turned, normalized and shared by heads."""
    for name, make, tokens in some((("gpt2", gpt2, 1), ("llama", llama, 1), ("rows", lambda n: llama(n, tokens="tokens"), 3), ("whisper", layers.whisper, 1)), 2):
        (folder / name).mkdir()
        model = quantized(folder / name, make, 1, reduce_range=True)
        sizes = dict(SIZES, batch=1, tokens=tokens, past=BLOCK + 9, total=BLOCK + 9 + tokens, values=BLOCK + 9, frames=BLOCK + 1)
        judge(model, folder / name, [feed(onnx.load(model), np.random.default_rng([SEED, 3]), sizes)], most=0.05)


@case(seconds=10)
def scratch_of_codes(folder):
    """Known without the number of keys, and no more for more of them."""
    random = np.random.default_rng([SEED, 4])
    found = []
    for keys, dynamic in ((20000, False), (50000, False), (7, True)):
        for joined in (False, True):
            onnx.save(Attention(random, 3, keys, 64, 64, dynamic, joined=joined).model(), folder / "attention.onnx")
            found.append(scratches(compile_model(folder / "attention.onnx", folder), "matmul"))
    expect(found[:2] == found[2:4], f"scratch of 20000 and 50000 keys: {found}")
    expect(all(len(sizes) == 1 and sizes[0].isdigit() and int(sizes[0]) < 8 << 20 for sizes in found), f"scratch: {found}")
    for name, make in (("gpt2", gpt2), ("llama", llama), ("rows", lambda n: llama(n, tokens="tokens")), ("whisper", layers.whisper)):
        (folder / name).mkdir()
        package = compile_model(quantized(folder / name, make, 1), folder / name)
        sizes = scratches(package, "matmul")
        expect(sizes and all(size.isdigit() and int(size) < 8 << 20 for size in sizes), f"{name}: {sizes}")
