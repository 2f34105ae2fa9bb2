"""Products in bf16 and f16 (--precision) against NumPy, which rounds both sides on its own and multiplies in double precision."""
import ctypes
import os
import struct
import subprocess

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
from kit import BIN, MINILM, Skip, case, compile_model, distance, expect, has_tiles, processors, run_package, tool
from model_cases import COSINES, SENTENCES, tokens
from programs import SEED
from quantized_row_cases import expected as expected_of_bytes
from quantized_weight_cases import Products

SHAPES = ((1, 1), (2, 600), (33, 49), (64, 100), (65, 16), (97, 48), (770, 50), (40, 1030))
ROWS = (0, 1, 2, 3, 7, 8, 9, 16, 17, 40, 131)
UNIT = 2.0**-24
TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11}


def rounded(x, precision):
    with np.errstate(over="ignore"):
        return x.astype(TYPES[precision]).astype(np.float64)


def judge(precision, x, w, bias, y, what):
    a, b = rounded(x, precision), rounded(w, precision)
    # At most two roundings for a step of K, and one of the bias.
    bound = (2 * len(w) + 2) * UNIT * (np.abs(a) @ np.abs(b) + np.abs(bias))
    far = np.abs(y - (a @ b + bias))
    expect(y.dtype == np.float32 and far.shape == y.shape and (far <= bound).all(),
           f"{what}: off by {(far - bound).max(initial=0)} beyond rounding")
    # The stated bound of both roundings; what f16 rounds to multiples of 2^-24 is small.
    x, w, u = x.astype(np.float64), w.astype(np.float64), ROUNDING[precision]
    bound += (2 * u + u * u) * (np.abs(x) @ np.abs(w))
    if precision == "f16":
        bound += 2.0**-25 * (np.abs(x).sum(1, keepdims=True) + np.abs(w).sum(0) + len(w) * 2.0**-25)
    far = np.abs(y - (x @ w + bias))
    expect((far <= bound).all(), f"{what}: beyond the stated bound by {(far - bound).max(initial=0)}")


def verify(precision, folder):
    m = Products(precision, SHAPES)
    feeds = {rows: m.feed(rows) for rows in ROWS}
    for option in [*(f"--mcpu={cpu}" for cpu in (*processors(), "host")), "--reference"]:
        package = m.compiled(folder, f"--precision={precision}", option)
        whole = None
        for rows, feed in feeds.items():
            found = run_package(package, feed, folder, f"--threads={1 + rows % 3}")
            for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                judge(precision, feed[f"x{i}"], w, bias, found[f"y{i}"], f"{option} {rows} rows, y{i} of {w.shape} (DS_SEED={SEED})")
            whole = (feed, found) if rows == max(ROWS) else whole
        feed, found = whole
        for first, count, threads in ((0, 1, 1), (3, 8, 2), (40, 13, 1), (5, 17, 3), (17, 64, 2)):
            part = {key: array[first:first + count] for key, array in feed.items()}
            for key, array in run_package(package, part, folder, f"--threads={threads}").items():
                expect(array.tobytes() == found[key][first:first + count].tobytes(),
                       f"{option}: {key} has other bits in {count} rows than in {max(ROWS)} (DS_SEED={SEED})")


@case(seconds=23)
def products_in_bf16(folder):
    verify("bf16", folder)


@case(seconds=23)
def products_in_f16(folder):
    verify("f16", folder)


@case
def squares_at_their_edges(folder):
    """AMX: K around squares of 32 pairs and 64 bytes and their blocks, N around 16 and 48, M around 16, 32 and a sweep of 128."""
    if not has_tiles():
        raise Skip("no AMX here")
    random = np.random.default_rng([SEED, 7])
    edge = lambda unit, most: max(1, int(unit * random.integers(0, most) + random.integers(-1, 2)))
    shapes = [(edge(32, 8), edge(16, 7)) for _ in range(4)] + [(edge(64, 20), edge(48, 3)) for _ in range(4)] + [(1, 49), (63, 1), (1025, 47)]
    m = Products("squares", shapes)
    counts = sorted({1, 128, 129, int(random.integers(257, 400)), *(edge(16, 20) for _ in range(5))})
    feeds = {rows: m.feed(rows) for rows in counts}
    packages = {}
    for how, options in (("bf16", ["--precision=bf16"]), ("bytes", ["--quantize=int8", "--activations=int8"])):
        (folder / how).mkdir()
        packages[how] = m.compiled(folder / how, *options, "--mcpu=sapphirerapids")
    kept = [4 * k * n <= 4096 or k * n + 4 * n >= 4 * k * n for k, n in shapes]
    for rows, feed in feeds.items():
        for how, package in packages.items():
            found = run_package(package, feed, folder, f"--threads={random.integers(1, 4)}")
            for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                x, y, what = feed[f"x{i}"], found[f"y{i}"], f"{how}, {rows} rows, y{i} of {w.shape} (DS_SEED={SEED})"
                if how == "bf16":
                    judge("bf16", x, w, bias, y, what)
                elif not kept[i]:
                    want = expected_of_bytes(x, w, bias)[0]
                    expect(np.array_equal(y, want), f"{what}: {np.argwhere(y != want)[:3].tolist()} differ")
            last = {key: array[-1:] for key, array in feed.items()}
            for key, array in run_package(package, last, folder, "--threads=1").items():
                expect(array.tobytes() == found[key][-1:].tobytes(), f"{how}: {key} has other bits alone than among {rows} (DS_SEED={SEED})")


@case(seconds=6)
def what_fewer_bits_do_not_hold(folder):
    """NaN and infinities stay what they are, the largest numbers become infinite; other rows know nothing of it."""
    m = Products("limits", ((64, 48), (65, 100)))
    m.weights = [np.abs(w) + 1 for w in m.weights]
    for i, w in enumerate(m.weights):
        m.model.graph.initializer[2 * i].raw_data = w.tobytes()
    for precision, option in [(p, o) for p in TYPES for o in ("--mcpu=host", "--mcpu=x86-64-v3", "--reference")]:
        package = m.compiled(folder, f"--precision={precision}", option)
        feed = m.feed(8)
        for x in feed.values():
            x[1, 5], x[3, 7], x[4, 0], x[6, 2] = np.nan, np.inf, -np.inf, np.finfo(np.float32).max
        for name, y in run_package(package, feed, folder).items():
            expect(np.isnan(y[1]).all() and np.isposinf(y[[3, 6]]).all() and np.isneginf(y[4]).all(), f"{precision} {option} {name}: {y[:, 0]}")
            expect(np.isfinite(y[[0, 2, 5, 7]]).all(), f"{precision} {option} {name}: other rows are not finite")


@case(seconds=23)
def models_in_bf16(folder):
    """Sentence vectors keep their cosines; a BERT block's merged products give what single ones give."""
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    package = compile_model(MINILM, folder, "--precision=bf16")
    vectors = run_package(package, inputs, folder)["461"].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for (i, j), cosine in COSINES.items():
        found = float(vectors[i] @ vectors[j])
        expect(abs(found - cosine) <= 0.01, f"cosine {i + 1}·{j + 1}: expected {cosine}, found {found:.4f}")
    plain = compile_model(MINILM, folder, name="plain.dsp")
    sizes = [(path / "weights.bin").stat().st_size for path in (package, plain)]
    expect(sizes[0] < 0.85 * sizes[1], f"expected weights of products in half the bytes, found {sizes}")  # the table of words stays
    model = generate.save(generate.bert(layers=1, hidden=64, heads=4), folder / "bert.onnx")
    values = tokens(2, 9, SEED)
    found = [run_package(compile_model(model, folder, "--precision=bf16", f"--fusion={fusion}", name=f"{fusion}.dsp"), values, folder)
             for fusion in ("none", "specialized")]
    for name, array in found[0].items():
        far = distance(found[1][name], array)
        # The sums have the same bits; what follows them is rounded to bf16 again, where one unit of f32 may decide.
        expect(far <= 0.01, f"{name}: fusion moves numbers by {far:.3g}")


@case
def tiles_that_the_system_refuses(folder):
    """AMX without permission: another variant runs, or one line says why none does."""
    if not has_tiles():
        raise Skip("no AMX here")
    m = Products("refused", ((70, 50),))
    feed = m.feed(40)
    np.savez(folder / "inputs.npz", **feed)
    for cpus in ("sapphirerapids", "sapphirerapids,x86-64-v4"):
        package = m.compiled(folder, "--precision=bf16", f"--mcpu={cpus}")
        command = [BIN / "ds-run", package, "--inputs", folder / "inputs.npz", "--output", folder / "y.npz"]
        found = subprocess.run(command, preexec_fn=refuse_arch_prctl, capture_output=True, text=True, timeout=60)
        if "," in cpus:
            expect(found.returncode == 0, f"the other variant does not run: {found.stderr}")
            judge("bf16", feed["x0"], m.weights[0], m.biases[0], np.load(folder / "y.npz")["y0"], cpus)
        else:
            expect(found.returncode == 1 and "amx_tile" in found.stderr and "does not let this process use" in found.stderr
                   and found.stderr.count("\n") == 1, f"{found.returncode}: {found.stderr}")


def refuse_arch_prctl():
    """A filter of system calls for this process and its children: arch_prctl(ARCH_REQ_XCOMP_PERM) fails."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06  # of the number (0) or the first argument's lower half (16)
    allow, refuse = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM
    steps = [(load, 0, 0, 0), (jump_if_equal, 0, 3, 158), (load, 0, 0, 16), (jump_if_equal, 0, 1, 0x1023), (give, 0, 0, refuse),
             (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):  # no new privileges; the filter
        os._exit(77)


@case
def weights_beyond_f16(folder):
    """A finite element beyond 65504 keeps its product in f32, and is named; 65519 is rounded to 65504."""
    random = np.random.default_rng([SEED, 11])
    weights = {name: random.standard_normal((70, 50)).astype(np.float32) for name in ("fits", "large", "infinite")}
    weights["fits"][3, 4], weights["large"][69, 49], weights["infinite"][0, 0] = 65519, -65520, np.inf
    nodes = [helper.make_node("MatMul", ["x", name], [f"of_{name}"]) for name in weights]
    outputs = [helper.make_tensor_value_info(f"of_{name}", TensorProto.FLOAT, ["m", 50]) for name in weights]
    graph = helper.make_graph(nodes, "beyond", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", 70])], outputs,
                              [numpy_helper.from_array(w, name) for name, w in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "beyond.onnx")
    tool("ds-opt", folder / "beyond.onnx", "-o", folder / "beyond.dsp", "--precision=f16", "--report",
         says="'large' has an element of magnitude 6.552e+04")
    x = np.abs(random.standard_normal((5, 70))).astype(np.float32) + 1
    found = run_package(folder / "beyond.dsp", {"x": x}, folder)
    judge("f16", x, weights["fits"], 0, found["of_fits"], "the weight that fits")
    exact = x.astype(np.float64) @ weights["large"].astype(np.float64)
    bound = 71 * UNIT * (np.abs(x).astype(np.float64) @ np.abs(weights["large"].astype(np.float64)))
    expect((np.abs(found["of_large"] - exact) <= bound).all(), "the large weight is not multiplied in f32")
    expect(np.isposinf(found["of_infinite"][:, 0]).all() and np.isfinite(found["of_infinite"][:, 1:]).all(), "the infinite one")


@case
def nothing_to_round_is_said(folder):
    text = 'func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {\n  return %x : tensor<4xf32>\n}\n'
    (folder / "none.mlir").write_text(text)
    tool("ds-opt", folder / "none.mlir", "-o", folder / "none.dsp", "--precision=bf16", code=1,
         says="no product was rounded: there is no product with a weight")
