"""A compilation goes on from any dumped phase: the package is that of the direct one, and what was edited acts. Expected
values of edits are NumPy's."""
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import generate
from kit import BIN, case, expect, onnx_runtime, run_package, tool
from training_runs import settings, write_config

TANH = re.compile(r"ds\.unary +tanh")
PHASES = ["01-import", "02-graph", "03-training", "04-distribution", "05-optimization", "06-memory"]
X = {"x": np.linspace(-1, 1, 192, dtype=np.float32).reshape(3, 64)}


def model_in(folder):
    """y = tanh(x · w) + b, with weights that are worth a place in weights.bin, and codes of 8 bits."""
    g = generate.Graph(0)
    g.op("Add", g.op("Tanh", g.op("MatMul", "x", g.weight("w", 64, 64, scale=0.1))), g.weight("b", 64), name="last")
    g.nodes[-1].output[0] = "y"
    model = g.model([generate.value("x", TensorProto.FLOAT, "n", 64)], [generate.value("y", TensorProto.FLOAT, "n", 64)])
    return generate.save(model, folder / "small.onnx")


def files(package):
    return {str(path.relative_to(package)): path.read_bytes() for path in sorted(Path(package).rglob("*")) if path.is_file()}


def same_package(found, expected, what):
    a, b = files(found), files(expected)
    differ = [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)]
    expect(not differ, f"{what}: these files differ from those of the direct package: {differ}")


def dumped(folder, model, *options):
    tool("ds-opt", model, "-o", folder / "direct.dsp", "--dump-dir", folder / "dumps", *options)
    return folder / "direct.dsp"


@case(seconds=3)
def from_every_phase_of_an_inference_model(folder):
    """In another folder, of a model that was named from its own; quantized, too, with options that are not given again."""
    for name, options in (("plain", []), ("quantized", ["--quantize=int8", "--dim=n=3"])):
        here = folder / name
        here.mkdir()
        model_in(here)
        subprocess.run([BIN / "ds-opt", "small.onnx", "-o", "direct.dsp", "--dump-dir", "dumps", *options], cwd=here, check=True)
        for phase in PHASES:
            tool("ds-opt", here / f"dumps/{phase}.mlir", "-o", folder / "on.dsp")
            same_package(folder / "on.dsp", here / "direct.dsp", f"{name}, {phase}")


@case(seconds=6)
def from_every_phase_of_a_training(folder):
    model = model_in(folder)
    config = write_config(folder, settings("AdamW"))
    direct = dumped(folder, model, "--mode=train", "--loss=mse", "--logits=y", "--labels=labels", f"--config={config}")
    for phase in PHASES:
        tool("ds-opt", folder / f"dumps/{phase}.mlir", "-o", folder / "on.dsp")
        same_package(folder / "on.dsp", direct, phase)
    config.write_text(config.read_text() + " ")
    tool("ds-opt", folder / "dumps/03-training.mlir", "-o", folder / "on.dsp", code=1, says="as it was when this program was dumped")
    config.write_text(config.read_text()[:-1])
    model.rename(folder / "gone.onnx")
    result = tool("ds-opt", folder / "dumps/06-memory.mlir", "-o", folder / "x.dsp", code=1, says="expected '" + str(model))
    expect(len(result.err.splitlines()) == 1 and not (folder / "x.dsp").exists(), f"{result}")


@case(seconds=3)
def options_of_training_are_given_anew(folder):
    """What acts in a phase to come: the package is that of a direct compilation with the new options."""
    model, parts = model_in(folder), ["--mode=train", "--logits=y", "--labels=labels"]
    first = write_config(folder, settings("AdamW"))
    dumped(folder, model, *parts, "--loss=cross_entropy", "--ignore-index=3", f"--config={first}")
    (folder / "other").mkdir()
    second = write_config(folder / "other", settings("SGD"))
    tool("ds-opt", model, "-o", folder / "new.dsp", *parts, "--loss=cross_entropy", "--ignore-index=3", f"--config={second}")
    tool("ds-opt", model, "-o", folder / "mse.dsp", *parts, "--loss=mse", f"--config={first}")
    before = files(folder / "direct.dsp")
    for name, given in (("new.dsp", [f"--config={second}"]), ("mse.dsp", ["--loss=mse"])):
        expect(files(folder / name) != before, f"{name}: the option does nothing")
        for phase in PHASES[:2]:
            tool("ds-opt", folder / f"dumps/{phase}.mlir", "-o", folder / "on.dsp", *given)
            same_package(folder / "on.dsp", folder / name, f"{given}, {phase}")
    for phase, given, code, says in (("03-training", f"--config={second}", 2, "--config acts from phase 'training' on"),
                                     ("02-graph", "--train=w", 2, "--train acts from phase 'graph' on"),
                                     ("01-import", "--mode=infer", 2, "--mode acts from phase 'import' on"),
                                     ("02-graph", "--loss=y", 1, "--loss: expected an output of one float"),
                                     ("02-graph", "--quantize=int8", 2, "cannot be combined with --quantize")):
        result = tool("ds-opt", folder / f"dumps/{phase}.mlir", "-o", folder / "x.dsp", given, code=code, says=says)
        expect(result.err.count("error: ") == 1 or code == 2 and len(result.err.splitlines()) == 1, f"expected one error: {result}")
    tool("ds-opt", model, "--stop-after=graph", "-o", folder / "none.mlir")  # no dump: nothing says that it is for training
    tool("ds-opt", folder / "none.mlir", "-o", folder / "x.dsp", f"--config={second}", code=2, says="--config is about training")


@case
def weights_beside_the_model_are_as_they_were(folder):
    model = onnx.load(model_in(folder))
    onnx.save(model, folder / "small.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    direct = dumped(folder, folder / "small.onnx")
    data = (folder / "weights.bin").read_bytes()
    (folder / "weights.bin").write_bytes(bytes([data[0] ^ 1]) + data[1:])
    for phase in PHASES:
        result = tool("ds-opt", folder / f"dumps/{phase}.mlir", "-o", folder / "x.dsp", code=1,
                      says=f"expected '{folder / 'weights.bin'}', of which the model's weights are, as it was")
        expect(len(result.err.splitlines()) == 1 and not (folder / "x.dsp").exists(), f"{phase}: {result}")
    (folder / "weights.bin").write_bytes(data)
    tool("ds-opt", folder / "dumps/06-memory.mlir", "-o", folder / "on.dsp")
    same_package(folder / "on.dsp", direct, "with the weights that were")


@case
def what_is_edited_acts(folder):
    """Another function of elements, written into the program of each phase."""
    model = model_in(folder)
    dumped(folder, model)
    expected = onnx_runtime(model, X)["y"]
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(model).graph.initializer}
    edited = np.maximum(X["x"] @ values["w"], 0) + values["b"]
    expect(np.abs(edited - expected).max() > 0.1, "the edit would not show")
    for phase in PHASES:
        text = (folder / f"dumps/{phase}.mlir").read_text()
        expect(len(TANH.findall(text)) == 1, f"{phase}: expected one tanh to edit")
        (folder / "edited.mlir").write_text(TANH.sub("ds.unary relu", text))
        tool("ds-opt", folder / "edited.mlir", "-o", folder / "edited.dsp")
        found = run_package(folder / "edited.dsp", X, folder)["y"]
        expect(np.allclose(found, edited, 1e-5, 1e-5), f"{phase}: {found}")
    tool("ds-opt", folder / "dumps/02-graph.mlir", "-o", folder / "pinned.dsp", "--dim=n=3")  # folds once more
    expect(np.allclose(run_package(folder / "pinned.dsp", X, folder)["y"], expected, 1e-5, 1e-5), "pinned later: wrong numbers")
    np.savez(folder / "wrong.npz", x=np.zeros((2, 64), np.float32))
    tool("ds-run", folder / "pinned.dsp", "--inputs", folder / "wrong.npz", code=1)
    tool("ds-opt", folder / "dumps/02-graph.mlir", "-o", folder / "later.dsp", "--quantize=int8")  # acts in a phase to come
    plain, later = (sum(len(data) for name, data in files(folder / p).items() if "weights" in name) for p in ("direct.dsp", "later.dsp"))
    expect(later < plain, f"--quantize did nothing: {later} bytes of weights, {plain} without")


@case
def what_cannot_go_on_says_why(folder):
    model = model_in(folder)
    dumped(folder, model, "--mcpu=x86-64-v3")
    dumps = folder / "dumps"
    text = (dumps / "02-graph.mlir").read_text()
    for name, arguments, code, says in (
            ("05-optimization", ["--quantize=int8"], 2, "--quantize acts from phase 'optimization' on"),
            ("06-memory", ["--dim=n=3"], 2, "--dim acts from phase 'import' on"),
            ("06-memory", ["--mcpu=x86-64-v3"], 2, "--mcpu acts from"),
            ("02-graph", ["--shape=x=3,64"], 2, "--shape acts from phase 'import' on"),
            ("01-import", ["--mode=train", "--loss=y"], 2, "--mode acts from phase 'import' on"),
            ("02-graph", ["--reference"], 2, "--reference acts from phase 'graph' on")):
        result = tool("ds-opt", dumps / f"{name}.mlir", "-o", folder / "x.dsp", *arguments, code=code, says=says)
        expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")
    tool("ds-opt", dumps / "06-memory.mlir", "--stop-after=graph", code=2, says="has phase 'memory' behind it")
    for old, new, says in (('phase = "graph"', 'phase = "nowhere"', "expected the phase, model and options"),
                           ('"--mcpu=x86-64-v3"', '"--mcpu=z80"', "z80"), ('"--mcpu=x86-64-v3"', '"--report"', "found '--report'"),
                           ("ds.entry, ", "", ""), ("ds.linear", "ds.nosuch", "nosuch")):
        expect(old in text or not says, f"no {old} in the dump")
        if old in text:
            (folder / "wrong.mlir").write_text(text.replace(old, new))
            result = tool("ds-opt", folder / "wrong.mlir", "-o", folder / "x.dsp", code=None, says=says)
            expect(result.code in (1, 2) and not (folder / "x.dsp").exists(), f"{old}: {result}")
    text = (dumps / "05-optimization.mlir").read_text()
    expect('target = "x86-64-v3, ' in text, "the dump does not say for which processor it is")
    (folder / "wrong.mlir").write_text(text.replace('target = "x86-64-v3, ', 'target = "x86-64-v9, '))
    result = tool("ds-opt", folder / "wrong.mlir", "-o", folder / "x.dsp", code=1, says="expected the processor that this program was scheduled for (x86-64-v9")
    expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")
    small = (folder / "small.onnx").read_bytes()
    (folder / "small.onnx").unlink()
    tool("ds-opt", dumps / "06-memory.mlir", "-o", folder / "x.dsp", code=1, says="small.onnx")
    (folder / "small.onnx").write_bytes(b"\x3a\x00" + small)  # an empty name of the producer before: weights lie elsewhere
    for name in ("01-import", "06-memory"):
        tool("ds-opt", dumps / f"{name}.mlir", "-o", folder / "x.dsp", code=1, says="small.onnx' as it was when this program was dumped")
    (folder / "small.onnx").write_bytes(small)
    with (dumps / "02-graph.mlir").open() as stream:
        done = subprocess.run([BIN / "ds-opt", "-", "-o", folder / "x.dsp"], stdin=stream, capture_output=True, text=True)
    expect(done.returncode == 1 and "expected its file, found a stream" in done.stderr, f"{done}")
