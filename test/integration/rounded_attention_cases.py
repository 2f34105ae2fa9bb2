"""Attention whose products are bf16 (`rounds bf16`), against NumPy, which rounds queries, keys and values on its own."""
import json

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

import generate
from kit import case, compile_model, distance, expect, processors, run_package, tool
from model_cases import tokens
from programs import SEED

UNIT, HALF = 2.0**-24, 2.0**-8  # of f32; half a unit of bf16, relative

PROGRAM = """
func.func @main(%q: tensor<?x{heads}x?x{depth}xf32> {{ds.name = "q", ds.dims = ["b", {heads}, "s", {depth}]}},
                %k: tensor<?x{groups}x?x{depth}xf32> {{ds.name = "k", ds.dims = ["b", {groups}, "t", {depth}]}},
                %v: tensor<?x{groups}x?x{width}xf32> {{ds.name = "v", ds.dims = ["b", {groups}, "t", {width}]}},
                %m: tensor<?x1x1x?xf32> {{ds.name = "m", ds.dims = ["b", 1, 1, "t"]}})
    -> (tensor<?x{heads}x?x{width}xf32> {{ds.name = "y"}}) attributes {{ds.entry}} {{
  %y = ds.attention %q, %k, %v [{steps}] {window} scale {scale} rounds bf16
      : (tensor<?x{heads}x?x{depth}xf32>, tensor<?x{groups}x?x{depth}xf32>, tensor<?x{groups}x?x{width}xf32>{types}) -> tensor<?x{heads}x?x{width}xf32>
  return %y : tensor<?x{heads}x?x{width}xf32>
}}
"""
# Steps, how the program writes the window, and whether a mask is added; hidden for good, or by a finite number.
MASKS = {"mask": ("add %m", "", True), "causal": ("window else 0xFFF0000000000000", "past [\"t - s\"] right 0", False),
         "sliding": ("add %m, window else -30.0", "past [\"t - s\"] left 5 right 1", True)}


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def expected(feed, mask, scale):
    """The result on rounded operands in double precision, and how far rounding may take it."""
    q, k, v = (rounded(feed[name]) for name in "qkv")
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores, sizes = scale * (q @ k.swapaxes(2, 3)), scale * (np.abs(q) @ np.abs(k).swapaxes(2, 3))
    if MASKS[mask][2]:
        scores, sizes = scores + feed["m"], sizes + np.abs(feed["m"])
    place = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - np.arange(k.shape[2])
    if mask == "causal":
        scores = np.where(place < 0, -np.inf, scores)
    if mask == "sliding":
        scores = np.where((place > 5) | (place < -1), -30.0, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    # A step rounds each sum of a score once or twice; each weight is rounded, then each step of their product.
    changed = 4 * UNIT * (q.shape[3] + 8) * sizes.max(-1, keepdims=True)
    return weights @ v, (HALF * 1.01 + changed + 2 * UNIT * (k.shape[2] + 16)) * (weights @ np.abs(v)) + 1e-30


def drawn(random, batch, heads, groups, rows, keys, depth, width):
    normal = lambda *shape: (random.standard_normal(shape) * 1.5).astype(np.float32)
    mask = np.where(random.random((batch, 1, 1, keys)) < 0.3, np.float32(-1e4), normal(batch, 1, 1, keys))
    mask[..., 0] = 0
    return {"q": normal(batch, heads, rows, depth), "k": normal(batch, groups, keys, depth), "v": normal(batch, groups, keys, width), "m": mask}


@case(seconds=23)
def attention_of_rounded_operands(folder):
    """Sizes around vectors, squares and blocks of rows; a batch entry has the bits it has alone, with any number of threads."""
    random = np.random.default_rng([SEED, 3])
    pick = lambda *numbers: int(random.choice(numbers))
    for mask, (steps, window, hasMask) in MASKS.items():
        depth, width = pick(1, 7, 16, 31, 32, 33), pick(64, 80, 96)
        for depth, width in ((depth, pick(1, 5, 16, 17, 48)), (64, 64), (pick(40, 80, 128), width)):
            groups = pick(1, 2)
            shape = dict(heads=groups * pick(1, 2, 3), groups=groups, depth=depth, width=width)
            scale = 1 / np.sqrt(depth)
            path = folder / "attention.mlir"
            path.write_text(PROGRAM.format(steps=steps, window=window, scale=scale, types=", tensor<?x1x1x?xf32>" if hasMask else "", **shape))
            feeds = []
            for _ in range(3):
                rows = pick(1, 2, 15, 16, 17, 31, 32, 33, 70)
                keys = rows + pick(0, 0, 1, 15, 31, 64, 100)
                feeds.append(drawn(random, pick(1, 2), rows=rows, keys=keys, **shape))
            for option in [*(f"--mcpu={cpu}" for cpu in random.choice([*processors(), "host"], 1)), "--reference"]:
                package = compile_model(path, folder, option)
                for feed in feeds:
                    found = run_package(package, feed, folder, f"--threads={pick(1, 2, 3)}")["y"]
                    wanted, bound = expected(feed, mask, scale)
                    far = np.abs(found - wanted)
                    what = f"{mask} {option} {shape} of {[feed[name].shape for name in 'qkv']} (DS_SEED={SEED})"
                    expect(found.shape == wanted.shape and (far <= bound).all(), f"{what}: {(far / bound).max():.2f} of what rounding gives")
                    last = run_package(package, {name: x[-1:] for name, x in feed.items()}, folder, "--threads=1")["y"]
                    expect(last.tobytes() == found[-1:].tobytes(), f"{what}: other bits alone")


@case
def attention_alone_is_enough(folder):
    """--precision=bf16 has something to round without a product with a weight, where the machine multiplies bf16 fast."""
    names = ["q", "k", "v"]
    graph = helper.make_graph([helper.make_node("Attention", names, ["y"])], "g", [helper.make_tensor_value_info(name, 1, ["b", 2, "s", 16]) for name in names],
                              [helper.make_tensor_value_info("y", 1, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), str(folder / "m.onnx"))
    (folder / "fast.json").write_text(json.dumps({"ceilings": {"f32_gflops": 100, "bf16_gflops": 200}}))
    report = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--precision=bf16", "--mcpu=znver5", f"--ceilings={folder / 'fast.json'}", "--report")
    expect("1 attentions rounded" in report.out, str(report))
    tool("ds-opt", folder / "m.onnx", "-o", folder / "no.dsp", "--precision=bf16", "--mcpu=x86-64-v3", code=1,
         says="no product was rounded: there is no product with a weight")


@case(seconds=12)
def layers_with_rounded_attention(folder):
    """Where the machine multiplies bf16 fast, --precision=bf16 rounds attention, and a model stays as near to f32 as before."""
    model = generate.save(generate.bert(layers=2, hidden=128, heads=4), folder / "bert.onnx")
    values = tokens(2, 37, SEED)
    exact = run_package(compile_model(model, folder, name="exact.dsp"), values, folder)
    for cpu in processors():
        report = tool("ds-opt", model, "-o", folder / "rounded.dsp", "--precision=bf16", f"--mcpu={cpu}", "--report")
        rounds = cpu == "sapphirerapids"
        expect(("2 attentions rounded" in report.out) == rounds, str(report))
        found = run_package(folder / "rounded.dsp", values, folder)
        for name, y in found.items():
            expect(distance(y, exact[name]) <= 0.02, f"{cpu} {name}: {distance(y, exact[name])} from f32 (DS_SEED={SEED})")


@case(seconds=2)
def one_query_stays_exact(folder):
    """A decoder's step reads keys and values once: --precision=bf16 leaves its attention in f32, whatever it does to products."""
    random = np.random.default_rng([SEED, 4])
    names, shape = ["q", "k", "v"], dict(batch=2, heads=3, groups=3, rows=1, keys=int(random.integers(2, 90)), depth=32, width=32)
    feed = drawn(random, **shape)
    del feed["m"]
    feed["x"] = random.standard_normal((4, 32)).astype(np.float32)
    weight = random.standard_normal((32, 48)).astype(np.float32)
    dims = {"q": ["b", 3, 1, 32], "k": ["b", 3, "t", 32], "v": ["b", 3, "t", 32], "x": ["n", 32]}
    graph = helper.make_graph([helper.make_node("Attention", names, ["y"]), helper.make_node("MatMul", ["x", "w"], ["z"])], "g",
                              [helper.make_tensor_value_info(name, 1, sizes) for name, sizes in dims.items()],
                              [helper.make_tensor_value_info(name, 1, None) for name in "yz"], [onnx.numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), str(folder / "m.onnx"))
    (folder / "fast.json").write_text(json.dumps({"ceilings": {"f32_gflops": 100, "bf16_gflops": 200}}))
    q, k, v = (feed[name].astype(np.float64) for name in names)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(32)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v
    for cpu in [*processors(), "host"]:
        report = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--precision=bf16", f"--mcpu={cpu}", f"--ceilings={folder / 'fast.json'}", "--report")
        expect("0 attentions rounded" in report.out and "1 products rounded" in report.out, str(report))
        found = run_package(folder / "m.dsp", feed, folder)
        # Rounded operands would be off by some 2^-8, rounded sums of f32 by far less than 2^-14 of values of a few.
        expect(np.abs(found["y"] - wanted).max() <= 2.0**-14, f"{cpu}: {np.abs(found['y'] - wanted).max()} (DS_SEED={SEED})")
        product = feed["x"].astype(np.float64) @ weight
        far = np.abs(found["z"] - product) / (np.abs(feed["x"]) @ np.abs(weight))
        expect(far.max() <= 2.02 * HALF, f"{cpu}: product {far.max()} (DS_SEED={SEED})")
