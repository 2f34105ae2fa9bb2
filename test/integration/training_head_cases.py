"""--head: a fresh layer on an output, what it begins with, what an exported model has of it."""
import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, onnx_runtime, run_package, tool
from programs import SEED


def model(folder):
    g = np.random.default_rng(SEED)
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[n, 6] x) => (float[n, 8] features)
        { h = MatMul (x, w) features = Tanh (h) }""")
    proto.graph.initializer.append(numpy_helper.from_array(g.standard_normal((6, 8), np.float32), "w"))
    onnx.save(proto, folder / "m.onnx")
    x = g.standard_normal((40, 6), np.float32)
    np.savez(folder / "data.npz", x=x, labels=(x[:, 0] > 0).astype(np.int64) + 2 * (x[:, 1] > 0))
    return x


def train(folder, *options, steps=60):
    package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=cross_entropy", "--labels=labels", "--head=features:4", *options)
    tool("ds-run", "train", package, f"--data={folder / 'data.npz'}", f"--steps={steps}", f"--checkpoint={folder / 'ck'}", "--tag=t")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    return package, {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "out.onnx").graph.initializer}


@case(seconds=3)
def learned_and_exported(folder):
    """The layer begins by the seed within 1 / sqrt(8), learns alone where --train says so, and is part of the exported model."""
    x = model(folder)
    package, arrays = train(folder, "--train=^head")
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "m.onnx").graph.initializer}
    expect(set(arrays) == {"w", "head.weight", "head.bias"} and np.array_equal(arrays["w"], stored["w"]), f"{sorted(arrays)}")
    ours = run_package(package, {"x": x, "labels": np.zeros(40, np.int64)}, folder, "--entry=eval")
    first = ours["head"]
    weight = np.linalg.lstsq(ours["features"].astype(float), first.astype(float), rcond=None)[0]
    expect(np.max(np.abs(weight)) <= 8**-0.5 + 1e-4 and np.std(weight) > 0.1, f"the layer began with {weight}")  # least squares in f32
    onnx.checker.check_model(folder / "out.onnx", full_check=True)
    theirs = onnx_runtime(folder / "out.onnx", {"x": x})["head"]
    expected = np.tanh(x.astype(float) @ stored["w"]) @ arrays["head.weight"] + arrays["head.bias"]
    expect(np.allclose(theirs, expected, atol=1e-5), "the exported model computes something else")
    labels = np.load(folder / "data.npz")["labels"]
    nll = lambda z: -np.mean((z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(40), labels])
    expect(nll(expected) < nll(first.astype(float)), "nothing was learned")


@case(seconds=12)
def drawn_by_the_seed(folder):
    model(folder)
    found = []
    for seed in ("0", "1", "1"):
        package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=cross_entropy", "--labels=labels", "--head=features:4",
                                f"--seed={seed}")
        found.append(run_package(package, {"x": np.ones((1, 6), np.float32), "labels": np.zeros(1, np.int64)}, folder, "--entry=eval")["head"])
    expect(not np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2]), f"{found}")


@case
def what_is_refused(folder):
    model(folder)
    for options, says in ((["--head=features"], "--head expects OUTPUT:CLASSES"), (["--head=features:0"], "--head expects OUTPUT:CLASSES"),
                          (["--head=x:4"], "expected an output of the model, found 'x'; legal are 'features'"), (["--seed=3"], "found no --head")):
        tool("ds-opt", folder / "m.onnx", "-o", folder / "p.dsp", "--mode=train", "--loss=cross_entropy", "--labels=labels", "--logits=head",
             *options, code=None, says=says)
