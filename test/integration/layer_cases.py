"""Transformer layers as exporters write them: how many launches one takes, its numbers beside ONNX Runtime's over several
steps whose caches are fed back, and its bits without fusion."""
import functools
import json
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import generate
import layers
from kit import case, compile_model, expect, onnx_runtime, processors, run_package, tool
from programs import SEED

# Launches a layer, by default and with products and attention alone; cross-attention takes three more, and two where it
# computes its keys and values. The two norms behind the blocks of Gemma 2 are kernels, as the next ones join products.
LAUNCHES = {
    "bert": (lambda n: generate.bert(layers=n, hidden=64, heads=4, vocabulary=50, positions=64), 5, 10),
    "gpt2": (lambda n: generate.gpt2_step(layers=n, hidden=96, heads=3, vocabulary=100), 5, 12),
    "llama": (layers.llama, 5, 15),
    "llama, many tokens": (functools.partial(layers.llama, tokens="tokens"), 5, 15),
    "qwen3": (functools.partial(layers.llama, normed=True), 5, 17),
    "olmo 2": (functools.partial(layers.llama, normed=True, norms=["behind"]), 5, 17),
    "gemma 2": (functools.partial(layers.llama, norms=["before", "behind"]), 7, 17),
    "vit": (layers.vit, 5, 10),
    "whisper": (layers.whisper, 8, 16),
    "whisper, first step": (functools.partial(layers.whisper, first=True), 9, 18),
    "t5 encoder": (layers.t5, 5, 11),
    "t5 decoder": (functools.partial(layers.t5, decoder=True), 8, 17),
    "t5 decoder, first step": (functools.partial(layers.t5, decoder=True, first=True), 9, 19),
}


def launches(folder, make, options=(), fewest=1):
    """What a layer beyond the `fewest` takes."""
    counts = []
    for number in (fewest, fewest + 1):
        generate.save(make(number), folder / "m.onnx")
        report = tool("ds-opt", folder / "m.onnx", "--report", "--stop-after=memory", "-o", folder / "m.mlir", *options)
        counts.append(int(re.search(r"(\d+) launches", report.out + report.err).group(1)))
    return counts[1] - counts[0]


@case(seconds=3)
def launches_of_a_layer(folder):
    for name, (make, *expected) in LAUNCHES.items():
        found = [launches(folder, make, [f"--fusion={fusion}"]) for fusion in ("specialized", "generic")]
        expect(found == expected, f"{name}: a layer takes {found} launches, expected {expected}")


def dims_of(model):
    return {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}


def compare(folder, make, seed, sizes, steps=2, options=(), tolerance=2e-4, cpus=None):
    """Steps by one token each; caches grow by what the step before showed."""
    random, path = np.random.default_rng([SEED, seed]), folder / f"m{seed}.onnx"
    model = make(seed=int(random.integers(1000)))
    generate.save(model, path)
    packages = {(fusion, cpu): compile_model(path, folder, f"--fusion={fusion}", f"--mcpu={cpu}", *options, name=f"{fusion}-{cpu}.dsp")
                for cpu in cpus or dict.fromkeys(["x86-64-v3", processors()[-1]]) for fusion in ("none", "generic", "specialized")}
    for size in sizes:
        feed, size = {}, dict(size)
        for step in range(steps):
            for name, dims in dims_of(model).items():
                if name in feed:
                    continue
                known = dict(size, total=size["past"] + size["tokens"])
                shape = [known.get(d, d) for d in dims]
                feed[name] = np.full(shape, size["past"]) + np.arange(shape[1]) if name == "positions" else random.standard_normal(shape).astype(np.float32)
            expected = onnx_runtime(path, feed)
            found = {key: run_package(package, feed, folder, f"--threads={1 + (step + number) % 4}") for number, (key, package) in enumerate(packages.items())}
            for (fusion, cpu), results in found.items():
                for name, array in expected.items():
                    error = np.abs(results[name] - array).max(initial=0)
                    expect(results[name].shape == array.shape and error <= tolerance, f"{fusion} {cpu} {name} of {size}: an error of {error} (DS_SEED={SEED})")
                    expect(results[name].tobytes() == found["none", cpu][name].tobytes(), f"{cpu} {name} of {size}: fusion changes bits (DS_SEED={SEED})")
            # The next step reads what this one showed, and new numbers else.
            shown = {name.replace("present", "past").removesuffix("_output_0"): array for name, array in list(found.values())[-1].items() if name.startswith("present")}
            if not shown:
                break
            feed = {name: array for name, array in feed.items() if name.startswith("0.cross")} | shown
            size["past"] += size["tokens"]


SIZES = [{"batch": batch, "past": past, "tokens": 1, "frames": frames} for batch, past, frames in ((2, 0, 3), (1, 1, 1), (1, 13, 7))]


@case(seconds=23)
def llama_steps(folder):
    compare(folder, layers.llama, 1, SIZES[:1], steps=4)
    compare(folder, functools.partial(layers.llama, layers=1, heads=6, groups=2, width=32, inner=50, normed=True), 2, SIZES[1:])
    compare(folder, functools.partial(layers.llama, layers=1, heads=3, groups=1, width=6, inner=10, tokens="tokens"), 3,
            [dict(SIZES[1], tokens=3), dict(SIZES[2], tokens=21)], steps=2)
    compare(folder, functools.partial(layers.llama, norms=["before", "behind"]), 9, SIZES[1:2])


@case(seconds=14)
def large_caches(folder):
    """Results of 1 MB and more are written past the caches, in whole vectors where they begin at one."""
    for number, (groups, width, size) in enumerate(((6, 16, {"batch": 9, "past": 611}), (2, 20, {"batch": 5, "past": 1383}),
                                                    (1, 8, {"batch": 1, "past": 40000}), (2, 24, {"batch": 1, "past": 20000}))):
        make = functools.partial(layers.llama, layers=1, hidden=24, heads=6, groups=groups, width=width, inner=20)
        compare(folder, make, 30 + number, [dict(size, tokens=1)], steps=1, cpus=[("x86-64-v3", processors()[-1])[number % 2]])


@case(seconds=23)
def encoder_and_decoder_steps(folder):
    compare(folder, functools.partial(layers.whisper, layers=1), 4, SIZES[:2])
    compare(folder, functools.partial(layers.whisper, layers=1, first=True), 5, SIZES[2:])
    compare(folder, functools.partial(layers.t5, layers=1, decoder=True), 6, SIZES[1:])
    compare(folder, functools.partial(layers.t5, layers=1), 7, [dict(SIZES[1], tokens=11)])
    compare(folder, functools.partial(layers.vit, layers=1), 8, [dict(SIZES[1], tokens=9)])


@case(seconds=23)
def gates_of_other_types(folder):
    """Both halves of a gate in 8 and 4 bits, as they are and widened, and in bf16."""
    many = [dict(SIZES[0], tokens=3), dict(SIZES[1], tokens=19)]
    make = functools.partial(layers.llama, layers=1, inner=100, tokens="tokens")
    for number, options in enumerate((["--quantize=int8"], ["--quantize=int4,group=32"], ["--quantize=int8,group=16,scheme=asymmetric"],
                                      ["--quantize=int8", "--activations=int8"], ["--precision=bf16"], ["--precision=f16"])):
        compare(folder, make, 10 + number, many, steps=1, options=options, tolerance=np.inf, cpus=[processors()[number % 2 - 1]])


def flattened(hidden, seed):
    """An attention-free layer of GPT-2 as its exporters write it: every product between two reshapes."""
    random = np.random.default_rng(seed)
    nodes, constants = [], []

    def node(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def constant(array):
        constants.append(numpy_helper.from_array(array, f"c{len(constants)}"))
        return constants[-1].name

    def weight(*shape):
        return constant((random.standard_normal(shape) * 0.2).astype(np.float32))

    def product(x, depth, columns):
        rows = node("Reshape", [x, constant(np.array([-1, depth]))])
        rows = node("Gemm", [rows, weight(depth, columns), weight(columns)])
        shape = node("Slice", [node("Shape", [x]), constant(np.array([0])), constant(np.array([-1]))])
        return node("Reshape", [rows, node("Concat", [shape, constant(np.array([columns]))], axis=0)])

    x = "x"
    for _ in range(2):
        norm = node("LayerNormalization", [x, weight(hidden), weight(hidden)], axis=-1)
        up = node("Gelu", [product(norm, hidden, 4 * hidden)], approximate="tanh")
        x = node("Add", [product(up, 4 * hidden, hidden), x])
    graph = helper.make_graph(nodes, "flattened", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", hidden])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@case(seconds=8)
def products_of_flattened_rows(folder):
    """A norm, an activation and a residual share the kernels of products whose rows were flattened."""
    random, hidden = np.random.default_rng([SEED, 61]), 48
    generate.save(flattened(hidden, SEED), folder / "m.onnx")
    for options in ([], ["--precision=bf16"], ["--quantize=int8"], ["--quantize=int8", "--activations=int8"]):
        result = tool("ds-opt", folder / "m.onnx", "--report", "-o", folder / "m.dsp", "--no-cache", *options)
        expect("unflatten-rows: 4 products" in result.out, f"{options}: {result}")
        launches = json.loads((folder / "m.dsp/manifest.json").read_text())["variants"][0]["entries"][0]["launches"]
        expect(len(launches) == 4, f"{options}: {len(launches)} launches for four products")
        for shape in ((1, 1), (2, 7), (3, 1), (1, 40)):
            x = random.standard_normal((*shape, hidden)).astype(np.float32)
            (ours,), (theirs,) = (list(found.values()) for found in (run_package(folder / "m.dsp", {"x": x}, folder), onnx_runtime(folder / "m.onnx", {"x": x})))
            far = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            expect(ours.shape == theirs.shape and far <= (3e-2 if options else 1e-5), f"{options} {shape}: {far} away (DS_SEED={SEED})")
